//! The `archive` kind: a directory that holds what an archive does. Not one of mgmt's kinds.
//!
//! The members are unpacked into a second directory, which then replaces the first one in one step. A manifest in the private directory of the
//! resource says what was unpacked, so that the archive is read again only when something differs.

mod manifest;
mod reader;
mod unpacking;

use std::path::Path;
use std::sync::Arc;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use setpoint_engine::{
    Apply, Attempting, DriftValue, Failure, Identity, IfSet, Level, Resource, Sends, Wanted, Watch, Words,
    async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::files::{AbsolutePath, Directory, Entry, OpenFile};
use setpoint_host::watch::{Depth, Follow};
use tokio::task::block_in_place;

use self::manifest::{Comparison, Difference, Manifest, stamp};
use self::reader::{Format, Limits};
use self::unpacking::Unpacking;
use crate::checksum::{Algorithm, Checksum};
use crate::enclosing;
use crate::file_mode::Mode;
use crate::presence::Presence;
use crate::remote_contents::{Memory, New, RemoteContents};
use crate::replaced_directory::remove_leftover;
use crate::sorts::Account;

/// So many differences are reported one by one.
const TOLD: usize = 20;

/// The most that comes out of an archive, if the program does not say it.
const LIMIT: i64 = 16 << 30;
const LIMIT_ENTRIES: i64 = 1_000_000;

/// A directory that holds what an archive does: tar (gzip, xz, zstd, bzip2 or not compressed) or zip.
///
/// The directory belongs to the archive alone. A new version takes its place in one step, and nothing of the old version is left, except for what `keep` names.
/// Files that are changed, missing or added are repaired.
///
/// ```mcl
/// archive "/opt/prometheus/" {
///     url => ["https://example.org/prometheus-3.1.0.linux-amd64.tar.gz"],
///     checksum => "sha256:5c8b1f0f0f4b1a1c7d2b6f1a8f0e5d4c3b2a190817161514131211100f0e0d0c",
///     strip => 1,
///     keep => ["prometheus.yml"],
/// }
/// ```
///
/// With the layout `merge`, other files in the directory stay:
///
/// ```mcl
/// archive "/usr/local/" {
///     source => "/srv/packages/tool.tar.xz",
///     layout => "merge",
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "archive", autoedge, receives, refreshable, asynchronous, sends = Sent)]
pub(crate) struct Archive {
    /// The directory, with a slash at the end. Unset: the resource's name.
    path: IfSet<AbsolutePath>,
    /// Whether the members are there. With `absent`, everything that was unpacked is removed.
    #[param(default = Presence::Exists)]
    state: Presence,
    /// An archive on this machine. Unset: the archive is fetched from `url`.
    source: IfSet<AbsolutePath>,
    #[param(flatten(
        url,
        checksum,
        checksum_url,
        checksum_name,
        signature_url,
        signer,
        every,
        headers,
        username,
        password,
        ca,
        client_cert,
        client_key,
        limit = "download_limit",
        timeout
    ))]
    remote: RemoteContents,
    /// The format of the archive. `auto` recognises it. The compression is always recognised.
    #[param(default = Format::Auto)]
    format: Format,
    /// Whether the `whole` directory belongs to the archive, or the members `merge` with other files in it.
    #[param(default = Layout::Whole)]
    layout: Layout,
    /// Leading parts of each path that are dropped. Members with fewer parts are left out.
    strip: u32,
    /// Patterns of the members that are unpacked, after `strip`. `*` does not match `/`, and `**` does. Unset: all.
    only: Vec<String>,
    /// Patterns of members that are left out.
    exclude: Vec<String>,
    /// The owner of all members, by name or number. Unset: our own user.
    owner: String,
    /// The group of all members, by name or number. Unset: our own group.
    group: String,
    /// The mode of all members. An octal mode is for files, and directories can be entered by those who can read them. Unset: the modes of the archive, less the umask.
    mode_below: IfSet<Mode>,
    /// Patterns of entries that are created if they are missing, and then belong to others. They survive a new version.
    keep: Vec<String>,
    /// Compares the `content` of members, or only their `presence`.
    #[param(default = Compare::Content)]
    compare: Compare,
    /// Whether symbolic links can lead only `inside` of the directory, or to `any` place.
    #[param(default = Links::Inside)]
    links: Links,
    /// Whether members keep the bits that let a program run as its owner or group.
    set_id: bool,
    /// The most bytes that come out of the archive.
    #[param(default = LIMIT)]
    limit: i64,
    /// The most members.
    #[param(default = LIMIT_ENTRIES)]
    limit_entries: i64,
    /// Whether a directory with other entries is taken over. They are removed.
    adopt: bool,
    #[name]
    name: String,
}

/// Whose directory it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    Whole,
    Merge,
}

impl Words for Layout {
    const ONE: &'static str = "a layout";

    fn words() -> impl Iterator<Item = (&'static str, Layout)> {
        [("whole", Layout::Whole), ("merge", Layout::Merge)].into_iter()
    }
}

/// The compared part of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compare {
    Content,
    Presence,
}

impl Words for Compare {
    const ONE: &'static str = "a comparison";

    fn words() -> impl Iterator<Item = (&'static str, Compare)> {
        [("content", Compare::Content), ("presence", Compare::Presence)].into_iter()
    }
}

/// The allowed targets of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    Inside,
    Any,
}

impl Words for Links {
    const ONE: &'static str = "a rule for links";

    fn words() -> impl Iterator<Item = (&'static str, Links)> {
        [("inside", Links::Inside), ("any", Links::Any)].into_iter()
    }
}

/// Values that it sends.
#[derive(Sends)]
struct Sent {
    /// The path of the directory.
    path: String,
    /// The checksum of the archive that was unpacked last.
    version: String,
}

/// The archive to unpack.
enum Target {
    /// With this version, and this stamp of a file on this machine.
    Version { version: String, source: String },
    /// The server has not been asked yet, or an earlier resource brings the archive.
    Unknown,
}

#[async_trait]
impl Resource for Archive {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        match self.path() {
            Err(message) => invalid.push(Invalid::parameter("path", message)),
            Ok(path) if !path.names_directory() => {
                invalid.push(Invalid::parameter(
                    "path",
                    "must be a directory: it ends in no slash",
                ));
            }
            Ok(path) if path.cleaned().as_bytes() == b"/" => {
                invalid.push(Invalid::parameter("path", "must not be the root directory"));
            }
            Ok(_) => {}
        }
        if self.state == Presence::Exists && self.source.is_none() == self.remote.url.is_empty() {
            let message = "set either `source` or `url`";
            invalid.push(Invalid::parameter("source", message));
        }
        self.remote.refused(false, invalid);
        for (parameter, patterns) in [
            ("only", &self.only),
            ("exclude", &self.exclude),
            ("keep", &self.keep),
        ] {
            if let Err(why) = globs(patterns) {
                invalid.push(Invalid::parameter(parameter, why));
            }
        }
        for (parameter, number) in [("limit", self.limit), ("limit_entries", self.limit_entries)] {
            if number <= 0 {
                invalid.push(Invalid::parameter(parameter, "must be more than 0"));
            }
        }
        if self.layout == Layout::Merge && self.adopt {
            let message = "the layout `merge` leaves other entries alone";
            invalid.push(Invalid::parameter("adopt", message));
        }
    }

    fn identities(&self) -> Vec<Identity> {
        let path = self.path().ok().filter(|_| self.state == Presence::Exists);
        let is_whole = self.layout == Layout::Whole;
        path.iter().filter(|_| is_whole).map(enclosing::file).collect()
    }

    fn wanted(&self) -> Vec<Wanted> {
        let path = self.path().ok();
        let directory = path.iter().map(|path| match self.layout {
            Layout::Whole => enclosing::wanted(&enclosing::file(path)),
            Layout::Merge => enclosing::wanted_in(path),
        });
        let source = self.source.iter().map(enclosing::file);
        let accounts = Account::identities(&self.owner, &self.group);
        let first = self.remote.files().into_iter().chain(source).chain(accounts);
        let first = first.collect::<Vec<_>>();
        directory.chain([Wanted::first_of_each(first)]).collect()
    }

    fn watches(&self) -> Vec<Watch> {
        let depth = match self.compare {
            Compare::Content => Depth::Recursive,
            Compare::Presence => Depth::Children,
        };
        let path = self.path().ok().map(|path| Watch::Path {
            path,
            depth,
            follow: Follow::Target,
        });
        let source = self.source.0.clone().map(Watch::path);
        path.into_iter()
            .chain(source)
            .chain(self.remote.watch())
            .collect()
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let path = self
            .path()
            .map_err(|why| Failure::new("use the path").because(why))?;
        let manifest = block_in_place(|| Manifest::load(apply))?;
        if self.state == Presence::Absent {
            return block_in_place(|| self.remove(&path, manifest.as_ref(), apply));
        }
        let memory = self
            .remote
            .memory(apply)?
            .filter(|memory| self.remote.is_from_here(memory));
        let version = self.keep_unpacked(&path, manifest, memory, apply).await?;
        apply.send(Sent {
            path: path.to_string(),
            version,
        });
        Ok(())
    }
}

impl Archive {
    fn path(&self) -> Result<AbsolutePath, String> {
        match &*self.path {
            Some(path) => Ok(path.clone()),
            None => AbsolutePath::new(&self.name).map_err(|error| format!("{error}: `{}`", self.name)),
        }
    }

    /// Has the directory hold the members. Answers the version.
    async fn keep_unpacked(
        &self,
        path: &AbsolutePath,
        manifest: Option<Manifest>,
        memory: Option<Memory>,
        apply: &mut Apply<'_>,
    ) -> Result<String, Failure> {
        let options = self.options();
        let is_due = self.source.is_none() && self.remote.is_due(memory.as_ref(), apply);
        let known = manifest
            .as_ref()
            .map(|manifest| manifest.version.clone())
            .unwrap_or_default();
        let wanted = self
            .wanted_version(manifest.as_ref(), memory.as_ref(), is_due, apply)
            .await?;
        let is_same = match &wanted {
            Target::Version { version, .. } => *version == known,
            Target::Unknown => false,
        };
        let mut differences = Vec::new();
        if let Some(manifest) = manifest
            .as_ref()
            .filter(|manifest| is_same && manifest.options == options)
        {
            differences = block_in_place(|| self.differences(path, manifest, apply))?;
            if differences.is_empty() && apply.may_repair() {
                block_in_place(|| remove_leftover(path))?;
            }
            if differences.is_empty()
                && !(is_due && self.remote.checksum.is_none() && self.remote.checksum_url.is_empty())
            {
                return Ok(known);
            }
        }
        let is_only_asked =
            is_same && differences.is_empty() && manifest.as_ref().is_some_and(|m| m.options == options);
        if !is_only_asked
            && !self
                .report(path, &known, &wanted, &differences, manifest.is_some(), apply)
                .await?
        {
            return Ok(known);
        }
        if is_only_asked && !apply.may_repair() {
            return Ok(known);
        }
        let asked = memory.as_ref().filter(|_| is_only_asked);
        let Some((archive, version, source, new)) = self.open(&wanted, asked, apply).await? else {
            if let Some(memory) = memory {
                self.remote.asked(memory, None, apply)?;
            }
            return Ok(known);
        };
        if is_only_asked && version != known {
            let wanted = Target::Version {
                version: version.clone(),
                source: source.clone(),
            };
            if !self.report(path, &known, &wanted, &[], true, apply).await? {
                return Ok(known);
            }
        } else if is_same && version != known && !is_due {
            let why = format!(
                "the server has another version now, {version}; set `checksum`, or `every` to follow it"
            );
            return Err(Failure::new("repair").on(path).because(why));
        }
        if !is_only_asked || version != known {
            block_in_place(|| self.unpack(path, archive, &version, &source, manifest.as_ref(), apply))?;
        }
        if let Some(new) = new {
            let listed = self.remote.wanted(memory.as_ref(), false, apply).await?;
            self.remote.remember(&new, listed.as_ref(), apply)?;
            new.part.remove();
        }
        Ok(version)
    }

    /// The version to unpack, if it is known without fetching it.
    async fn wanted_version(
        &self,
        manifest: Option<&Manifest>,
        memory: Option<&Memory>,
        is_due: bool,
        apply: &mut Apply<'_>,
    ) -> Result<Target, Failure> {
        let Some(source) = &*self.source else {
            let listed = self.remote.wanted(memory, is_due, apply).await?;
            let put = || memory.map(|memory| memory.sha256.clone());
            return Ok(match listed.map(|sum| sum.to_string()).or_else(put) {
                Some(version) => Target::Version {
                    version,
                    source: String::new(),
                },
                None => Target::Unknown,
            });
        };
        let source = &enclosing::reads(apply, source);
        let attempted = "read the archive";
        let entry = Entry::at(source).and_then(|entry| entry.follow());
        let stat = entry.as_ref().map_or(Ok(None), Entry::stat);
        let Some(stat) = block_in_place(|| stat).attempting(attempted, source)? else {
            if apply.foresees(&enclosing::file(source), source.to_string()) {
                return Ok(Target::Unknown);
            }
            return Err(Failure::new(attempted)
                .on(source)
                .because("there is no such file"));
        };
        let stamp = stamp(&stat);
        if let Some(manifest) = manifest.filter(|manifest| manifest.source == stamp) {
            return Ok(Target::Version {
                version: manifest.version.clone(),
                source: stamp,
            });
        }
        let sum = block_in_place(|| {
            let mut archive = entry
                .and_then(|entry| entry.open())
                .attempting(attempted, source)?;
            let stop = apply.cancellation().token();
            Algorithm::Sha256
                .of(&mut archive, stop)
                .map_err(|error| Failure::new(attempted).on(source).because(error))
        })?;
        Ok(Target::Version {
            version: sum.to_string(),
            source: stamp,
        })
    }

    /// Opens the archive: the one on this machine, or one that is fetched. None if the server has nothing new.
    async fn open(
        &self,
        wanted: &Target,
        asked: Option<&Memory>,
        apply: &Apply<'_>,
    ) -> Result<Option<(OpenFile, String, String, Option<New>)>, Failure> {
        if let Some(source) = &*self.source {
            let opened = block_in_place(|| Entry::at(source)?.follow()?.open());
            let archive = opened.attempting("read the archive", source)?;
            let (version, stamp) = match wanted {
                Target::Version { version, source } => (version.clone(), source.clone()),
                Target::Unknown => (String::new(), String::new()),
            };
            return Ok(Some((archive, version, stamp, None)));
        }
        let sum = match wanted {
            Target::Version { version, .. }
                if self.remote.checksum.is_some() || !self.remote.checksum_url.is_empty() =>
            {
                version
                    .split_once(':')
                    .and_then(|(_, digits)| Checksum::of_digits(digits))
            }
            _ => None,
        };
        let Some(new) = self.remote.fetch(sum.as_ref(), asked, apply).await? else {
            return Ok(None);
        };
        let version = sum.as_ref().unwrap_or(&new.sha256).to_string();
        Ok(Some((new.open()?, version, String::new(), Some(new))))
    }

    /// The parameters that decide what comes out of the archive.
    fn options(&self) -> String {
        let mode = self.mode_below.as_ref().map(ToString::to_string);
        format!(
            "{:?} {:?} {} {:?} {:?} {}:{} {mode:?} {:?} {}",
            self.format,
            self.layout,
            self.strip,
            self.only,
            self.exclude,
            self.owner,
            self.group,
            self.links,
            self.set_id
        )
    }

    fn differences(
        &self,
        path: &AbsolutePath,
        manifest: &Manifest,
        apply: &Apply<'_>,
    ) -> Result<Vec<Difference>, Failure> {
        let keep = globs(&self.keep).map_err(|why| Failure::new("use `keep`").because(why))?;
        let root = match Directory::open(path) {
            Ok(directory) => Some(Arc::new(directory)),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error.into()),
        };
        manifest.differences(&Comparison {
            root: root.as_ref(),
            keep: &keep,
            contents: self.compare == Compare::Content,
            is_whole: self.layout == Layout::Whole,
            stop: apply.cancellation().token(),
        })
    }

    /// Reports what differs, and answers whether to repair it.
    async fn report(
        &self,
        path: &AbsolutePath,
        known: &str,
        wanted: &Target,
        differences: &[Difference],
        has_manifest: bool,
        apply: &mut Apply<'_>,
    ) -> Result<bool, Failure> {
        let others = match has_manifest {
            true => Vec::new(),
            false => block_in_place(|| self.foreign_entries(path))?,
        };
        let mut may_repair = true;
        for other in others.iter().take(TOLD) {
            may_repair &= apply.drift(format!("extra {other}"), "there", DriftValue::Absent);
        }
        if !differences.is_empty() {
            for difference in differences.iter().take(TOLD) {
                let field = format!("{} {}", difference.what, difference.path.display());
                may_repair &= apply.drift(field, difference.is.as_str(), difference.want.as_str());
            }
            if let Some(more) = differences.len().checked_sub(TOLD).filter(|more| *more > 0) {
                may_repair &= apply.drift(
                    "further entries",
                    format!("{more} are wrong"),
                    "as in the archive",
                );
            }
            return Ok(may_repair);
        }
        let short = |version: &str| match version
            .split_once(':')
            .and_then(|(_, digits)| Checksum::of_digits(digits))
        {
            Some(sum) => sum.short(),
            None => version.to_owned(),
        };
        let want = match wanted {
            Target::Version { version, .. } => DriftValue::from(short(version)),
            Target::Unknown => DriftValue::from("the version that the server has"),
        };
        if apply.is_plan() && self.source.is_none() {
            // A run would fail as well if no server has it.
            self.remote.length(apply).await?;
        }
        let is = (!known.is_empty()).then(|| short(known));
        Ok(apply.existence("version", is, want) && may_repair)
    }

    /// Entries of the directory that no archive of ours has brought.
    ///
    /// # Errors
    /// When there are some, and they are not taken over.
    fn foreign_entries(&self, path: &AbsolutePath) -> Result<Vec<String>, Failure> {
        if self.layout == Layout::Merge {
            return Ok(Vec::new());
        }
        let listed = match Directory::open(path).and_then(|directory| directory.list()) {
            Ok(listed) => listed,
            Err(error) if error.is_not_found() => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let keep = globs(&self.keep).unwrap_or_default();
        let foreign = listed
            .into_iter()
            .filter(|entry| !keep.is_match(Path::new(&entry.name)));
        let foreign: Vec<String> = foreign
            .map(|entry| entry.name.to_string_lossy().into_owned())
            .collect();
        if !foreign.is_empty() && !self.adopt {
            let count = match foreign.len() {
                1 => format!("an entry, {},", foreign[0]),
                many => format!("{many} entries, such as {},", foreign[0]),
            };
            let why = format!(
                "it holds {count} that no archive brought; `adopt` removes them, and the layout `merge` leaves them"
            );
            return Err(Failure::new("unpack into").on(path).because(why));
        }
        Ok(foreign)
    }

    fn unpack(
        &self,
        path: &AbsolutePath,
        archive: OpenFile,
        version: &str,
        source: &str,
        former: Option<&Manifest>,
        apply: &mut Apply<'_>,
    ) -> Result<(), Failure> {
        let failed = |why: String| Failure::new("unpack into").on(path).because(why);
        let account = |text: &str, found: Result<u32, setpoint_host::users::AccountError>| match text {
            "" => Ok(None),
            _ => found.map(Some).map_err(|error| failed(error.to_string())),
        };
        let unpacking = Unpacking {
            path,
            owner: account(&self.owner, apply.user(&self.owner))?,
            group: account(&self.group, apply.group(&self.group))?,
            mode: self.mode_below.0.clone(),
            strip: self.strip as usize,
            only: (!self.only.is_empty())
                .then(|| globs(&self.only).map_err(failed))
                .transpose()?,
            exclude: globs(&self.exclude).map_err(failed)?,
            keep: globs(&self.keep).map_err(failed)?,
            links_stay_inside: self.links == Links::Inside,
            set_id: self.set_id,
            limits: Limits {
                bytes: self.limit.unsigned_abs(),
                entries: self.limit_entries.unsigned_abs(),
                stop: apply.cancellation().token().clone(),
            },
        };
        let mut manifest = Manifest {
            version: version.to_owned(),
            options: self.options(),
            source: source.to_owned(),
            items: std::collections::BTreeMap::new(),
        };
        let is_one_step = match self.layout {
            Layout::Whole => unpacking.whole(archive, self.format, &mut manifest, |manifest| {
                manifest.store(apply)
            })?,
            Layout::Merge => {
                unpacking.merge(archive, self.format, &mut manifest, former)?;
                manifest.store(apply)?;
                true
            }
        };
        if !is_one_step {
            apply.log(
                Level::Warning,
                format!(
                    "{path} could not be exchanged in one step: for a moment there was no such directory"
                ),
            );
        }
        Ok(())
    }

    fn remove(
        &self,
        path: &AbsolutePath,
        manifest: Option<&Manifest>,
        apply: &mut Apply<'_>,
    ) -> Result<(), Failure> {
        let Some(manifest) = manifest else { return Ok(()) };
        let there = unpacking::there(path, manifest)?;
        if there.is_empty() {
            return Ok(());
        }
        if apply.remove(format!("{} entries", there.len())) {
            unpacking::remove(path, &there, self.layout == Layout::Whole)?;
        }
        Ok(())
    }
}

/// The patterns as one.
///
/// # Errors
/// Which is invalid, and why.
fn globs(patterns: &[String]) -> Result<GlobSet, String> {
    let mut all = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = GlobBuilder::new(pattern.trim_end_matches('/'))
            .literal_separator(true)
            .build();
        all.add(glob.map_err(|error| format!("`{pattern}`: {}", error.kind()))?);
    }
    all.build().map_err(|error| error.to_string())
}
