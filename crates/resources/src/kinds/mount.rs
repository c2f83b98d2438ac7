//! The `mount` kind: an entry of `/etc/fstab`, and the file system that it says mounted.
//!
//! The file is edited in `mount/fstab.rs`; how a mounted file system is compared with what is wanted stands in `mount/mounted.rs`. What is mounted is seen when the kernel
//! says that it changed.
//!
//! What differs from the reference: nothing is looked up on the machine before a run; file systems without a device can be used; every other line of the file stays as it is;
//! there is one entry for each mount point; only this one is mounted, and not all of the file; it is remounted when only its options differ. With `noauto` the entry alone is
//! kept, as that says that somebody else decides when it is mounted.
//!
//! What counts is what the mount point leads to: the file system on top, of several that are stacked there, and none that something is mounted over above it. To unmount is to
//! unmount all of a stack. How long systemd waits for a device or a server that does not answer is systemd's to know: a minute and a half, or what the option
//! `x-systemd.mount-timeout` says. Nothing of ours waits at a file system that hangs, as what is mounted is read from lists of the kernel.

mod fstab;
mod mounted;
mod options;

use std::collections::BTreeMap;
use std::path::Path;

use setpoint_engine::{
    Apply, Attempting, Claim, DriftValue, Failure, FailureReason, Identity, IfSet, Resource, Wanted, Watch,
    Watcher, async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::files::{AbsolutePath, Replace};
use setpoint_host::mounts::{MountChanges, set_flags, uses};
use setpoint_host::systemd::{ActiveState, ServiceManager, UnitName};
use tokio::task::block_in_place;

use crate::edited_file::EditedFile;
use crate::enclosing;
use crate::presence::{Presence, state_missing};
use crate::sorts::{FILE, MOUNT_POINT, UNMOUNTED};
use crate::turns::Turn;
use crate::{text_lines, unit_control};
use fstab::Entry;
use mounted::Differs;
use options::Options;

/// Where the machine's file systems are listed.
const FSTAB: &str = "/etc/fstab";

/// How many of those are named that keep a file system busy.
const MOST_NAMED: usize = 5;

/// A file system that is mounted, and mounted again at each start: an entry of `/etc/fstab`.
///
/// The name is the mount point. Its entry is edited and every other byte of the file stays; systemd mounts it, and makes the mount point if it is missing. What is
/// unmounted or mounted otherwise by hand is put right when it happens.
///
/// ```mcl
/// mount "/srv/scratch" {
///     state => "exists",
///     device => "tmpfs",
///     type => "tmpfs",
///     options => {"size" => "64m", "nosuid" => ""},
/// }
/// ```
///
/// ```mcl
/// mount "/srv/data" {
///     state => "exists",
///     device => "UUID=0a3407de-014b-458b-b5c1-848e92a327a3",
///     type => "ext4",
///     passno => 2,
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "mount", brings = anything, autoedge, asynchronous)]
pub(crate) struct Mount {
    /// Whether it is there.
    #[param(default = IfSet(Some(Presence::Exists)))]
    state: IfSet<Presence>,
    /// What is mounted: a path, `UUID=`, `LABEL=`, `PARTUUID=` or `PARTLABEL=` with a value, `host:/path`, or any word for what has no device.
    device: String,
    /// The type of the file system: `ext4`, `tmpfs`, `none` for what is bound.
    #[param(name = "type")]
    kind: String,
    /// Options with their values; those without one have an empty text.
    #[param(default_with = the_option_defaults)]
    options: BTreeMap<String, String>,
    /// How often it is dumped, for dump(8).
    freq: u32,
    /// In which pass it is checked at the start: 1 for the root, 2 for others, 0 for never.
    passno: u32,
    #[name]
    name: String,
}

/// What mount(8) calls the default options.
fn the_option_defaults() -> BTreeMap<String, String> {
    BTreeMap::from([("defaults".to_owned(), String::new())])
}

#[async_trait]
impl Resource for Mount {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        match AbsolutePath::new(&self.name) {
            Err(error) => invalid.push(Invalid::new(format!("{error}: `{}`", self.name))),
            Ok(_) if self.name.contains("//") || (self.name.len() > 1 && self.name.ends_with('/')) => {
                let message = "a mount point is written without doubled slashes and without one at its end";
                invalid.push(Invalid::new(message));
            }
            Ok(path) if path.cleaned().as_bytes() != self.name.as_bytes() => {
                invalid.push(Invalid::new("a mount point is written without `.` and `..`"));
            }
            Ok(_) => {}
        }
        match *self.state {
            None => invalid.push(state_missing()),
            Some(Presence::Absent) => {
                if self.name == "/" {
                    invalid.push(Invalid::new("`/` cannot be unmounted"));
                }
            }
            Some(Presence::Exists) => {
                for (parameter, value) in [("device", &self.device), ("type", &self.kind)] {
                    if value.is_empty() {
                        let message = format!("`{parameter}` must be set");
                        invalid.push(Invalid::parameter(parameter, message));
                    }
                }
            }
        }
        if self
            .kind
            .contains(|sign: char| sign.is_whitespace() || sign == ',')
        {
            invalid.push(Invalid::parameter(
                "type",
                format!("`{}` is not a type of file systems", self.kind),
            ));
        }
        for (parameter, text) in [("device", &self.device), ("type", &self.kind)] {
            if text.contains(char::is_control) {
                invalid.push(Invalid::parameter(parameter, "must be one line of plain text"));
            } else if text.starts_with('#') {
                invalid.push(Invalid::parameter(
                    parameter,
                    "must not begin with `#`, which makes a comment",
                ));
            }
        }
        if let Some((tag, value)) = self.device.split_once('=')
            && value.is_empty()
            && !tag.contains('/')
        {
            invalid.push(Invalid::parameter(
                "device",
                format!("nothing stands after `{tag}=`"),
            ));
        }
        for (key, value) in &self.options {
            let is_wrong = |text: &str| text.contains(|sign: char| sign.is_control() || sign == ',');
            if key.is_empty() || key.contains('=') || is_wrong(key) || is_wrong(value) {
                let message = format!(
                    "`{key}` is not an option: keys are not empty and have no `=`, and there is no comma in either"
                );
                invalid.push(Invalid::parameter("options", message));
            }
        }
    }

    fn identities(&self) -> Vec<Identity> {
        let sort = match *self.state {
            Some(Presence::Absent) => &UNMOUNTED,
            _ => &MOUNT_POINT,
        };
        let own = self.point().map(|point| Identity { sort, key: point.key });
        let table = AbsolutePath::new(FSTAB).map_or(Vec::new(), |path| EditedFile::at(&path).identities());
        own.into_iter().chain(table).collect()
    }

    fn claims(&self) -> Vec<Claim> {
        AbsolutePath::new(FSTAB).map_or(Vec::new(), |path| EditedFile::at(&path).claims([]))
    }

    fn wanted(&self) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        if let Some(point) = self.point() {
            if *self.state == Some(Presence::Absent) {
                wanted.push(enclosing::wanted_to_go(&point));
            } else {
                wanted.push(enclosing::wanted(&point));
            }
            // A resource that makes the mount point comes before the mount.
            wanted.push(Wanted::first_of_each([point]));
        }
        if let Ok(device) = AbsolutePath::new(&self.device) {
            // A bind mount may have a directory as its device.
            let file = enclosing::file(&device);
            let directory = FILE.identity([&file.key, b"/".as_slice()].concat());
            wanted.push(Wanted::first_of_each([file.clone(), directory.clone()]));
            wanted.push(enclosing::wanted_in(&device));
        }
        wanted
    }

    fn watches(&self) -> Vec<Watch> {
        let file = AbsolutePath::new(FSTAB).map(Watch::path);
        let mut watches: Vec<Watch> = file.into_iter().collect();
        watches.push(Watch::own(follow_mounts));
        watches
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let manager = unit_control::manager(apply.handle(), false)?;
        let is_entry_changed = self.keep_entry(apply).await?;
        if is_entry_changed && apply.may_repair() {
            unit_control::reload(manager).await?;
        }
        match *self.state {
            Some(Presence::Exists) => self.keep_mounted(manager, is_entry_changed, apply).await,
            _ => self.keep_unmounted(manager, apply).await,
        }
    }
}

impl Mount {
    /// The mount point, as a directory.
    fn point(&self) -> Option<Identity> {
        let path = AbsolutePath::new(format!("{}/", self.name.trim_end_matches('/'))).ok()?;
        Some(enclosing::file(&path))
    }

    fn entry(&self) -> Entry {
        Entry {
            device: mounted::normal(&self.device),
            point: self.name.clone(),
            kind: self.kind.clone(),
            options: Options::unordered(&self.options),
            freq: self.freq,
            passno: self.passno,
        }
    }

    /// Brings the file to hold the entry, or none. Whether it was wrong.
    async fn keep_entry(&self, apply: &mut Apply<'_>) -> Result<bool, Failure> {
        let path = AbsolutePath::new(FSTAB).attempting("use the path", FSTAB)?;
        let _turn = Turn::at_file(&path, apply).await?;
        block_in_place(|| self.keep_entry_in(path, apply))
    }

    fn keep_entry_in(&self, path: AbsolutePath, apply: &mut Apply<'_>) -> Result<bool, Failure> {
        let text = text_lines::read(&path)?;
        let is_new = text.is_none();
        let text = text.unwrap_or_default();
        let wanted = (*self.state == Some(Presence::Exists)).then(|| self.entry());
        let Some(edited) = fstab::edited(&text, &self.name, wanted.as_ref()) else {
            return Ok(false);
        };
        let is = fstab::shown(&text, &self.name).map_or(DriftValue::Absent, DriftValue::from);
        let want = fstab::shown(&edited, &self.name).map_or(DriftValue::Absent, DriftValue::from);
        if apply.existence("fstab", is, want) {
            let request = Replace::bytes(path, edited).mode(is_new.then_some(0o644));
            apply.replace_at_once(request)?;
        }
        Ok(true)
    }

    async fn keep_mounted(
        &self,
        manager: &ServiceManager,
        is_entry_changed: bool,
        apply: &mut Apply<'_>,
    ) -> Result<(), Failure> {
        if self.options.contains_key("noauto") {
            return Ok(());
        }
        let is_automatic = self.options.contains_key("x-systemd.automount");
        let unit = unit_of(&self.name, if is_automatic { "automount" } else { "mount" })?;
        let found = block_in_place(|| mounted::find(&self.name))?;
        let Some(found) = found else {
            if apply.drift("mounted", "no", "yes") {
                self.job(manager, &unit, "StartUnit", "mount", apply).await?;
                self.must_be_mounted()?;
            }
            return Ok(());
        };
        if is_automatic && found.kind == "autofs" {
            return Ok(());
        }
        let mount = unit_of(&self.name, "mount")?;
        let Some(differs) = block_in_place(|| mounted::differs(&found, &self.entry())) else {
            if is_entry_changed && apply.may_repair() {
                // The kernel does not list all options.
                self.job(manager, &mount, "ReloadUnit", "mount again", apply)
                    .await?;
            }
            return Ok(());
        };
        let (field, method, is, want) = match differs {
            Differs::Device(is) => ("device", "RestartUnit", is, self.device.clone()),
            Differs::Kind(is) => ("type", "RestartUnit", is, self.kind.clone()),
            Differs::Options(is, want) => ("options", "ReloadUnit", is, want),
        };
        if !apply.drift(field, is, want) {
            return Ok(());
        }
        // systemd knows of what somebody has mounted by hand, too.
        self.job(manager, &mount, method, "mount again", apply).await?;
        self.set_flags()?;
        match block_in_place(|| mounted::find(&self.name))? {
            None => self.must_be_mounted(),
            Some(found) => match block_in_place(|| mounted::differs(&found, &self.entry())) {
                None => Ok(()),
                Some(still) => {
                    let failure = Failure::new("mount again").on(&self.name);
                    Err(failure.because(format!("the kernel has it with {} all the same", still.shown())))
                }
            },
        }
    }

    /// Sets the flags of the mount point that a remount keeps when no option names them.
    fn set_flags(&self) -> Result<(), Failure> {
        let wanted = self.entry();
        let found = block_in_place(|| mounted::find(&self.name))?;
        let Some(found) = found else {
            return Ok(());
        };
        match mounted::differs(&found, &wanted) {
            Some(Differs::Options(..)) => {
                let flags = mounted::flags_of_point(&found, &wanted);
                block_in_place(|| set_flags(Path::new(&self.name), &flags))
                    .attempting("mount again", &self.name)
            }
            _ => Ok(()),
        }
    }

    fn must_be_mounted(&self) -> Result<(), Failure> {
        match block_in_place(|| mounted::find(&self.name))? {
            Some(_) => Ok(()),
            None => {
                let why = "systemd says that it is done, and nothing is mounted there";
                Err(Failure::new("mount").on(&self.name).because(why))
            }
        }
    }

    async fn keep_unmounted(&self, manager: &ServiceManager, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let Some(found) = block_in_place(|| mounted::find(&self.name))? else {
            return Ok(());
        };
        if !apply.drift("mounted", found.shown(), "no") {
            return Ok(());
        }
        for suffix in ["automount", "mount"] {
            let unit = unit_of(&self.name, suffix)?;
            let is = manager.unit(&unit, false).await;
            let is = is.attempting("ask systemd about", &unit)?;
            if !matches!(is.active_state, ActiveState::Inactive | ActiveState::Failed) {
                self.job(manager, &unit, "StopUnit", "unmount", apply).await?;
            }
        }
        match block_in_place(|| mounted::find(&self.name))? {
            None => Ok(()),
            Some(still) => {
                let used = self.used().unwrap_or_else(|| {
                    "systemd says that it is done, and it is not in use as far as can be seen".to_owned()
                });
                let why = format!("{} is mounted there all the same: {used}", still.shown());
                Err(Failure::new("unmount").on(&self.name).because(why))
            }
        }
    }

    /// Has systemd do a job. Why it cannot be done is said as far as that can be seen, or where to look.
    async fn job(
        &self,
        manager: &ServiceManager,
        unit: &UnitName,
        method: &str,
        attempted: &'static str,
        apply: &Apply<'_>,
    ) -> Result<(), Failure> {
        let Err(failure) = unit_control::job(manager, unit, method, attempted, apply).await else {
            return Ok(());
        };
        let reason = failure.reason();
        if reason == FailureReason::Cancelled {
            return Err(failure);
        }
        let seen = block_in_place(|| match attempted {
            "mount" => self.why_not_mounted(),
            "mount again" => self.used().or_else(|| self.why_not_mounted()),
            _ => self.used(),
        });
        let is_late = manager.result(unit).await.is_ok_and(|result| result == "timeout");
        let seen = match seen {
            Some(seen) => seen,
            None if is_late => {
                "it took longer than systemd waits; the option `x-systemd.mount-timeout` says how long that is"
                    .to_owned()
            }
            // That the job failed says where to look.
            None => String::new(),
        };
        let why = match seen.is_empty() {
            true => failure.chain(),
            false => format!("{}; {seen}", failure.chain()),
        };
        Err(Failure::new(attempted)
            .on(&self.name)
            .because(why)
            .reasoned(reason))
    }

    /// Who uses what is mounted, as far as that can be seen.
    fn used(&self) -> Option<String> {
        let mounted = mounted::find(&self.name).ok()??;
        let mut by: Vec<String> = uses(&mounted, MOST_NAMED + 1)
            .iter()
            .map(ToString::to_string)
            .collect();
        if by.len() > MOST_NAMED {
            by.truncate(MOST_NAMED);
            by.push("and others".to_owned());
        }
        (!by.is_empty()).then(|| format!("it is in use by {}", by.join("; ")))
    }

    /// Why it cannot be mounted, as far as that can be seen.
    fn why_not_mounted(&self) -> Option<String> {
        mounted::why_not_mounted(&self.entry()).or_else(|| {
            // The mount point itself may be missing, and what is above it.
            let there = Path::new(&self.name).ancestors().find(|path| path.exists())?;
            let real = there.canonicalize().ok()?;
            let written = real.join(Path::new(&self.name).strip_prefix(there).ok()?);
            (real != there).then(|| {
                format!(
                    "there is a link in the mount point, which systemd does not take; without it is {}",
                    written.display()
                )
            })
        })
    }
}

/// The unit that systemd has for a mount point.
fn unit_of(point: &str, suffix: &str) -> Result<UnitName, Failure> {
    UnitName::of_path(point, suffix).attempting("find the unit of", point)
}

/// Hears when file systems are mounted and unmounted.
async fn follow_mounts(watcher: Watcher) -> Result<(), Failure> {
    let attempted = "follow";
    let mut changes = MountChanges::follow().attempting(attempted, "the mounted file systems")?;
    (watcher.event)("the mounted file systems are followed");
    loop {
        tokio::select! {
            () = watcher.cancellation.cancelled() => return Ok(()),
            changed = changes.changed() => changed.attempting(attempted, "the mounted file systems")?,
        }
        (watcher.event)("file systems were mounted or unmounted");
    }
}
