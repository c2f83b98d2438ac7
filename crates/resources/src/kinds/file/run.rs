//! One run of a `file`: state, then contents, then (in `metadata`) owner, group, mode and context.
//!
//! Everything that was found before the run decides what is reported, so that a run that may not repair reports the same as
//! one that does: contents are replaced together with their final owner and mode, and what a run has made itself is
//! completed without further reports.

use std::fmt::Write;
use std::io::ErrorKind;
use std::sync::Arc;

use setpoint_engine::{Apply, DriftValue, Failure, Level, Text};
use setpoint_host::files::{
    AbsolutePath, Content, Directory, Entry, FileError, FileType, Fingerprint, Method, OpenFile, Replace,
    Replaced, Stat, Timestamp, is_temporary, own_uid, same_content, umask,
};
use sha2::{Digest, Sha256};

use super::metadata::Identities;
use super::{File, SECRETS, path};
use crate::enclosing;
use crate::file_mode::Mode;
use crate::presence::Presence;
use crate::validation;

/// What is said of a directory that somebody put where a file is to be undone: no parameter can help there.
const DIRECTORY_STAYS: &str = "it is a directory now, which is not undone: move it away";

/// A run in progress.
pub(super) struct Run<'r, 'a> {
    pub(super) file: &'r File,
    pub(super) apply: &'r mut Apply<'a>,
    pub(super) path: AbsolutePath,
    pub(super) mode: Option<Mode>,
    pub(super) identities: Identities,
    /// What was there when the run began; what is there now.
    pub(super) occupant: Occupant,
    pub(super) progress: Progress,
    /// Where the contents come from that were found right, if the file is to be taken from its owner all the same.
    pub(super) certain: Option<Certain>,
    /// Whether this run made an empty file, with a mode that lets only its owner in.
    pub(super) made_empty: bool,
}

/// Contents that are known to be the wanted ones, whoever can still write to the file that holds them.
pub(super) enum Certain {
    /// Bytes that the program or another file gave.
    Bytes(Text),
    /// Those of the source.
    Source(AbsolutePath),
}

/// How things stand after the steps so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// As it was found.
    Found,
    /// This run made it: what it lacks is completed without another report.
    Made,
    /// It is not there, and this run may not make it: there is nothing to look at.
    Pending,
    /// It was to go.
    Gone,
    /// Its replacement is ready, with owner, mode and all, and takes its place when the run is over.
    Ready,
}

/// The permission bit with which everybody may read a file.
pub(super) const READ_BY_OTHERS: u32 = 0o004;

/// How much of contents reports show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reported {
    Nothing,
    LengthAndHash,
    /// All, unless the file at the path is private or becomes private.
    AsPathAllows,
}

/// What is at the path.
pub(super) struct Occupant {
    /// The path itself; none when a directory on the way is missing.
    pub(super) entry: Option<Entry>,
    /// What is there itself.
    pub(super) own: Option<Stat>,
    /// Where links lead; the path itself if it is none. None when a directory on the way is missing.
    pub(super) end: Option<Entry>,
    /// What is there after following links.
    pub(super) found: Option<Stat>,
}

impl Occupant {
    /// Looks at the entry of a path, or at why there is none; for a resource that is the link itself without following it.
    pub(super) fn look(entry: Result<Entry, FileError>, follow: bool) -> Result<Occupant, FileError> {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) if error.is_not_found() => {
                return Ok(Occupant {
                    entry: None,
                    own: None,
                    end: None,
                    found: None,
                });
            }
            Err(error) => return Err(error),
        };
        let own = entry.stat()?;
        let (end, found) = match own {
            Some(stat) if follow && stat.is_link() => match entry.follow() {
                Ok(end) => {
                    let found = end.stat()?;
                    (Some(end), found)
                }
                Err(error) if error.is_not_found() => (None, None),
                Err(error) => return Err(error),
            },
            own => (Some(entry.clone()), own),
        };
        Ok(Occupant {
            entry: Some(entry),
            own,
            end,
            found,
        })
    }
}

impl<'r, 'a> Run<'r, 'a> {
    /// Looks at the machine and looks names up.
    pub(super) fn begin(file: &'r File, apply: &'r mut Apply<'a>) -> Result<Run<'r, 'a>, Failure> {
        let path = file.effective_path()?;
        let occupant = Occupant::look(apply.entry(&path), !file.symlink)?;
        let identities = Identities::look_up(file, apply, &occupant)?;
        let mut mode = file.wanted_mode();
        if mode.is_none()
            && let (true, Some(found)) = (identities.takes_over, occupant.found)
        {
            let open = found.mode & 0o777 & !umask();
            mode = Some(Mode::Octal(if is_secret(apply) { open & 0o700 } else { open }));
        }
        Ok(Run {
            identities,
            mode,
            file,
            apply,
            path,
            occupant,
            progress: Progress::Found,
            certain: None,
            made_empty: false,
        })
    }

    /// Takes all steps, from the state to the context.
    pub(super) async fn finish(mut self) -> Result<(), Failure> {
        if self.file.symlink {
            self.link()?;
        } else {
            self.state()?;
            self.contents().await?;
        }
        self.metadata()
    }

    /// What to say if sensitive contents go where everybody can read them, and only this run can know of it: the program was
    /// warned of what it says itself.
    pub(super) fn readers_of_a_secret(&self) -> Option<&'static str> {
        if !is_secret(self.apply) || self.file.is_absent() {
            return None;
        }
        let of_file = |found: Stat| found.is_regular() && found.mode & READ_BY_OTHERS != 0;
        let mut received = self.apply.received().iter().map(|received| received.parameter);
        match &self.mode {
            None => self.occupant.found.is_some_and(of_file).then_some(
                "everybody on this machine can read the sensitive contents: the file that is there has such a mode, \
                 and `mode` is not set",
            ),
            Some(mode) => (mode.lets_others_read() && received.any(|name| name == "mode" || SECRETS.contains(&name)))
                .then_some("everybody on this machine can read the sensitive contents: `mode` lets others read"),
        }
    }

    /// Looks again, after something was changed.
    pub(super) fn look_again(&mut self) -> Result<(), Failure> {
        self.occupant = Occupant::look(Entry::at(&self.path), !self.file.symlink)?;
        Ok(())
    }

    pub(super) fn failed(&self, attempted: &'static str) -> Failure {
        Failure::new(attempted).on(&self.path)
    }

    pub(super) fn entry(&self) -> Result<Entry, Failure> {
        match &self.occupant.entry {
            Some(entry) => Ok(entry.clone()),
            None => Ok(Entry::at(&self.path)?),
        }
    }

    // State

    fn state(&mut self) -> Result<(), Failure> {
        let file = self.file;
        match (*file.state, self.occupant.found) {
            (None, _) | (Some(Presence::Absent), None) => Ok(()),
            (Some(Presence::Absent), Some(found)) => self.remove(&found),
            (Some(Presence::Exists), _) if file.is_directory() => self.directory(),
            (Some(Presence::Exists), Some(_)) => Ok(()),
            (Some(Presence::Exists), None) => {
                let has_contents =
                    file.content.is_some() || !file.fragments.is_empty() || !file.source.is_empty();
                let repair = match has_contents {
                    true => self.creates_by_replacement()?,
                    false => self.creates()?,
                };
                if !repair {
                    self.progress = Progress::Pending;
                } else if !has_contents {
                    // Whom it is for is said only after it was made, so until then it is for nobody else.
                    let restricted = self.mode.is_some() || !file.owner.is_empty() || !file.group.is_empty();
                    self.entry()?
                        .create_file(if restricted { 0o600 } else { 0o666 })?;
                    self.progress = Progress::Made;
                    self.made_empty = true;
                    self.look_again()?;
                }
                Ok(())
            }
        }
    }

    /// It does not exist, and is created. Answers whether to do that now.
    fn creates(&mut self) -> Result<bool, Failure> {
        self.needs_directory()?;
        let attributes = self.attributes_of_new();
        Ok(self.apply.create(attributes))
    }

    /// The same where the replacement creates it with which the run ends.
    fn creates_by_replacement(&mut self) -> Result<bool, Failure> {
        self.refuse_interface_of_kernel()?;
        self.needs_directory()?;
        let attributes = self.attributes_of_new();
        Ok(match self.ends_with_replacement() {
            true => self.apply.create_for_replacement("state", "exists", attributes),
            false => self.apply.create(attributes),
        })
    }

    /// In a plan, fails like the run if the directory of a new file is missing, and no earlier resource creates it.
    fn needs_directory(&mut self) -> Result<(), Failure> {
        if !self.apply.is_plan() || self.occupant.entry.is_some() {
            return Ok(());
        }
        let own = enclosing::file(&self.path);
        if self.file.recurse && self.file.is_directory() {
            enclosing::ancestors(&own).for_each(|above| self.apply.would_create(above));
            return Ok(());
        }
        let Some(directory) = enclosing::ancestors(&own).next() else {
            return Ok(());
        };
        let shown = String::from_utf8_lossy(&directory.key).into_owned();
        if self.apply.foresees(&directory, shown) {
            return Ok(());
        }
        match Entry::at(&self.path) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn remove(&mut self, found: &Stat) -> Result<(), Failure> {
        let is = match &self.occupant.entry {
            Some(entry) if self.file.recurse => extent(entry, found)?,
            _ => found.file_type.to_string().into(),
        };
        let repair = self.apply.remove(is);
        self.progress = Progress::Gone;
        if !repair {
            return Ok(());
        }
        let entry = self.entry()?;
        if entry.name() == "." {
            return Err(self
                .failed("remove")
                .because("it is the root directory, or says `..`"));
        }
        // A directory goes only if it is empty, or with all that is in it.
        if self.file.recurse || !found.is_directory() {
            self.back_up(&entry)?;
        }
        if self.file.recurse {
            entry.remove_tree()?;
        } else if self.occupant.own.is_some_and(|own| own.is_directory()) {
            entry.remove_directory().map_err(|error| {
                let is_full = error.kind() == ErrorKind::DirectoryNotEmpty;
                match is_full && self.apply.undoes() {
                    true => self.failed("remove").because(DIRECTORY_STAYS),
                    false => error.into(),
                }
            })?;
        } else {
            entry.remove_file()?;
        }
        self.apply.handle().verified().forget(self.path.as_path());
        Ok(())
    }

    fn directory(&mut self) -> Result<(), Failure> {
        if self.occupant.found.is_some_and(|found| found.is_directory()) {
            return Ok(());
        }
        let in_the_way = self.occupant.own;
        if let Some(other) = in_the_way
            && !self.file.force
        {
            let cause = format!("a {} is in the way, and `force` is not set", other.file_type);
            return Err(self.failed("make the directory").because(cause));
        }
        let permitted = match in_the_way {
            Some(other) => self
                .apply
                .drift("state", other.file_type.to_string(), "directory"),
            None => self.creates()?,
        };
        if !permitted {
            self.progress = Progress::Pending;
            return Ok(());
        }
        if in_the_way.is_some() {
            let entry = self.entry()?;
            self.back_up(&entry)?;
            entry.remove_file()?;
        }
        let mode = self.mode.as_ref().map_or(0o777, |mode| mode.of(0));
        if self.file.recurse {
            Entry::create_directories(&self.path, mode, 0o777)?;
        } else {
            self.entry()?.create_directory(mode)?;
        }
        self.progress = Progress::Made;
        self.look_again()
    }

    // Contents

    async fn contents(&mut self) -> Result<(), Failure> {
        if self.progress == Progress::Gone {
            return Ok(());
        }
        let file = self.file;
        let is_there = self.occupant.found.is_some_and(|found| found.is_regular());
        if !file.replace && is_there && !file.is_directory() && !self.identities.takes_over {
            return Ok(());
        }
        if let Some(content) = &file.content {
            self.write_bytes(content.clone(), file.fingerprint, Reported::AsPathAllows)
                .await?;
        }
        if file.is_directory() {
            if !file.source.is_empty() || file.purge {
                self.tree()?;
            }
        } else if !file.source.is_empty() {
            self.copy().await?;
        }
        if !file.fragments.is_empty() {
            let (bytes, are_public) = self.fragments()?;
            let fingerprint = fingerprint(bytes.as_bytes());
            let reported = match (self.apply.is_sensitive("fragments"), are_public) {
                (true, _) => Reported::Nothing,
                (false, false) => Reported::LengthAndHash,
                (false, true) => Reported::AsPathAllows,
            };
            self.write_bytes(bytes, Some(fingerprint), reported).await?;
        }
        Ok(())
    }

    /// These bytes, whatever is there.
    async fn write_bytes(
        &mut self,
        bytes: Text,
        fingerprint: Option<Fingerprint>,
        reported: Reported,
    ) -> Result<(), Failure> {
        if let Some(found) = self.target()? {
            let verified = self.apply.handle().verified();
            let known =
                fingerprint.is_some_and(|print| verified.holds(self.path.as_path(), found.stamp(), print));
            if known && !self.identities.takes_over {
                return Ok(());
            }
            let now = Timestamp::now();
            let mut there = self.open_target()?;
            let stamp = there.stat().stamp();
            if there.holds(bytes.as_bytes())? {
                if let Some(print) = fingerprint {
                    verified.record(self.path.as_path(), stamp, print, now);
                }
                self.certain = Some(Certain::Bytes(bytes));
                return Ok(());
            }
        }
        let (is, want) = if reported == Reported::Nothing || self.apply.is_sensitive("content") {
            let is = self.occupant.found.map(|_| DriftValue::Sensitive);
            (is.unwrap_or(DriftValue::Absent), DriftValue::Sensitive)
        } else {
            let digest = Sha256::digest(bytes.as_bytes());
            let want = with_digest(DriftValue::content(bytes.as_bytes()), &digest);
            self.reported(self.contents_found()?, want, reported == Reported::AsPathAllows)
        };
        self.validated(bytes.as_bytes(), None).await?;
        if !self.replacement_drift("content", is, want)? {
            return self.not_permitted();
        }
        let request = Replace::bytes(self.path.clone(), bytes);
        self.replace(request, None, fingerprint)
    }

    /// The bytes of the one file `source`.
    async fn copy(&mut self) -> Result<(), Failure> {
        let source_path = path::absolute(self.file.source.as_bytes())
            .map_err(|error| Failure::new("use the source").because(error))?;
        let origin = enclosing::reads(self.apply, &source_path);
        let open = || -> Result<OpenFile, Failure> { Ok(Entry::at(&origin)?.follow()?.open()?) };
        let mut source = open()?;
        let mode = source.stat().mode & 0o777 & !umask();
        let fingerprint = source_fingerprint(source.stat());
        let target = self.target()?;
        if target.is_none() && self.file.state.is_none() && self.occupant.own.is_none() {
            let cause = "it does not exist, and with `state` not set nothing is created from a `source`";
            return Err(self.failed("replace the contents of").because(cause));
        }
        if let Some(found) = target {
            let verified = self.apply.handle().verified();
            let known =
                fingerprint.is_some_and(|print| verified.holds(self.path.as_path(), found.stamp(), print));
            if found.is_same_file(source.stat()) || (known && !self.identities.takes_over) {
                return Ok(());
            }
            let now = Timestamp::now();
            let mut there = self.open_target()?;
            let stamp = there.stat().stamp();
            if same_content(&mut source, &mut there)? {
                if let Some(print) = fingerprint {
                    verified.record(self.path.as_path(), stamp, print, now);
                }
                self.certain = Some(Certain::Source(source_path));
                return Ok(());
            }
        }
        let is_public = source.stat().mode & READ_BY_OTHERS != 0;
        let (is, want) = self.reported(self.contents_found()?, describe(&mut open()?)?, is_public);
        if self.file.validation.is_set() {
            let contents = open()?.read_all()?;
            self.validated(&contents, Some(mode)).await?;
        }
        if !self.replacement_drift("source", is, want)? {
            return self.not_permitted();
        }
        let request = Replace::new(self.path.clone(), Content::Copy(open()?));
        self.replace(request, Some(mode), fingerprint)
    }

    /// The regular file that is to be compared; none if there is nothing, or a directory that may be replaced.
    fn target(&mut self) -> Result<Option<Stat>, Failure> {
        match self.occupant.found {
            Some(found) if found.is_directory() && self.file.force => Ok(None),
            Some(found) if found.is_directory() => {
                Err(self
                    .failed("replace the contents of")
                    .because(match self.apply.undoes() {
                        true => DIRECTORY_STAYS,
                        false => "it is a directory, and `force` is not set",
                    }))
            }
            Some(found) if !found.is_regular() => Err(self
                .failed("replace the contents of")
                .because(format!("it is a {}", found.file_type))),
            found => Ok(found),
        }
    }

    fn open_target(&self) -> Result<OpenFile, Failure> {
        match (&self.occupant.end, &self.occupant.found) {
            (Some(end), Some(found)) => Ok(OpenFile::open_found(end, found)?),
            _ => Err(self.failed("read")),
        }
    }

    /// Fails if the program's own check refuses new contents.
    async fn validated(&mut self, contents: &[u8], mode: Option<u32>) -> Result<(), Failure> {
        let file = self.file;
        if !file.validation.is_set() {
            return Ok(());
        }
        let found = self.occupant.found.filter(Stat::is_regular);
        let start = match found {
            Some(found) => self.identities.mode_to_start_from(&found),
            None if is_secret(self.apply) => 0o600,
            None => mode.unwrap_or(0o666 & !umask()),
        };
        let mode = self.mode.as_ref().map(|wanted| wanted.of(start)).or(mode);
        let owner = validation::owner(found, self.identities.owner, self.identities.group);
        let path = self.path.clone();
        file.validation
            .check_with(self.apply, &path, contents, owner, mode.unwrap_or(start))
            .await
    }

    /// A difference that is repaired by the replacement with which this run ends.
    fn replacement_drift(
        &mut self,
        field: &'static str,
        is: impl Into<DriftValue>,
        want: impl Into<DriftValue>,
    ) -> Result<bool, Failure> {
        let is = is.into();
        // Also where nothing is repaired: a plan must not promise it.
        self.refuse_interface_of_kernel()?;
        if is == DriftValue::Absent && self.file.state.is_none() {
            self.needs_directory()?;
            let attributes = self.attributes_of_new();
            return Ok(self.apply.create_for_replacement(field, want, attributes));
        }
        Ok(match self.ends_with_replacement() {
            true => self.apply.drift_for_replacement(field, is, want),
            false => self.apply.drift(field, is, want),
        })
    }

    /// The kernel makes up the files below these directories: none can be made or replaced, and what is written is not what is read.
    fn refuse_interface_of_kernel(&self) -> Result<(), Failure> {
        let why = match self.path.as_bytes() {
            path if path.starts_with(b"/proc/sys/") => "the kind `sysctl` sets parameters of the kernel",
            path if path.starts_with(b"/proc/") || path.starts_with(b"/sys/") => {
                "the kernel lets no file be made or replaced there; an `exec` with `ifcmd` can write to one"
            }
            _ => return Ok(()),
        };
        Err(self.failed("replace the contents of").because(why))
    }

    /// Whether nothing is left to do before or after the replacement. A directory must go first; a context belongs to the
    /// path itself, where a link is followed.
    fn ends_with_replacement(&self) -> bool {
        let directory = self.occupant.found.is_some_and(|found| found.is_directory());
        !directory && self.file.selinux.is_none()
    }

    /// What is there now, for a report.
    fn contents_found(&self) -> Result<DriftValue, Failure> {
        match self.occupant.found {
            None => Ok(DriftValue::Absent),
            Some(found) if found.is_regular() => {
                let mut there = self.open_target()?;
                if self.may_show(there.stat()) {
                    Ok(describe(&mut there)?)
                } else {
                    Ok(size_alone(there.stat()))
                }
            }
            Some(found) => Ok(extent(&self.entry()?, &found)?),
        }
    }

    /// Whether reports may show what a file holds: everybody may read it, or it belongs to whom it shall belong to.
    /// Else it may be somebody's secret, which is not ours to publish.
    pub(super) fn may_show(&self, found: &Stat) -> bool {
        found.mode & READ_BY_OTHERS != 0 || found.uid == self.identities.owner.unwrap_or_else(own_uid)
    }

    /// Old and new contents for a report. If they are private or become private, at their source or at their path, the report has their length and hash.
    fn reported(&self, is: DriftValue, want: DriftValue, is_source_public: bool) -> (DriftValue, DriftValue) {
        let found = self.occupant.found.filter(Stat::is_regular);
        let current = found.map_or(0o666 & !umask(), |found| found.mode);
        let wanted = self.mode.as_ref().map_or(current, |mode| mode.of(current));
        let is_public = found.is_none_or(|found| found.mode & READ_BY_OTHERS != 0);
        match is_public && is_source_public && wanted & READ_BY_OTHERS != 0 {
            true => (is, want),
            false => (is.without_text(), want.without_text()),
        }
    }

    fn not_permitted(&mut self) -> Result<(), Failure> {
        if self.occupant.found.is_none_or(|found| !found.is_regular()) {
            self.progress = Progress::Pending;
        }
        Ok(())
    }

    fn replace(
        &mut self,
        request: Replace,
        mode: Option<u32>,
        fingerprint: Option<Fingerprint>,
    ) -> Result<(), Failure> {
        self.apply.cancellation().check("replace the contents")?;
        let before = self.occupant.found.filter(Stat::is_regular);
        if let Some(end) = &self.occupant.end {
            let is_executable = before.is_some_and(|stat| stat.mode & 0o111 != 0);
            if is_executable && end.attribute(CAPABILITIES)?.is_some() {
                let text = "the old contents had capabilities, which the new ones do not get; `setcap` sets them again";
                self.apply.log(Level::Warning, text);
            }
            self.back_up(end)?;
        }
        if self.occupant.found.is_some_and(|found| found.is_directory()) {
            self.entry()?.remove_tree()?;
        }
        // A secret that nobody said a mode for is for its owner alone.
        let mode = match before {
            None if is_secret(self.apply) => Some(mode.unwrap_or(0o600) & 0o700),
            _ => mode,
        };
        let current = before.map_or(mode.unwrap_or(0o666 & !umask()), |stat| {
            self.identities.mode_to_start_from(&stat)
        });
        let wanted = self.mode.as_ref().map(|wanted| wanted.of(current)).or(mode);
        let request = self.with_metadata(request, wanted);
        let verified = Arc::clone(&self.apply.handle().services().verified);
        let (path, has_mode) = (self.path.clone(), self.mode.is_some());
        let then = move |replaced: &Replaced| {
            if let Some(print) = fingerprint {
                verified.record_written(path.as_path(), replaced, print, has_mode);
            }
            how_it_was_written(&path, replaced.method)
        };
        if self.ends_with_replacement() {
            let request = match &self.occupant.end {
                Some(end) => request.seen(end.clone(), self.occupant.found),
                None => request,
            };
            self.report_metadata(FileType::Regular)?;
            self.progress = Progress::Ready;
            return self.apply.replace(request, then);
        }
        let replaced = self.apply.handle().committer().replace(request)?;
        if let Some(message) = then(&replaced) {
            self.apply.log(Level::Info, message);
        }
        if before.is_none() {
            self.progress = Progress::Made;
        }
        self.look_again()
    }

    /// A request that asks for the final owner, mode and context.
    fn with_metadata(&self, request: Replace, mode: Option<u32>) -> Replace {
        let context = self.file.selinux.as_ref();
        request
            .owner(self.identities.owner, self.identities.group)
            .mode(mode)
            .security_context(context.map(|context| context.as_bytes().to_vec()))
    }

    /// Replaces the file now, with the final owner, mode and context.
    pub(super) fn replace_now(&self, request: Replace, mode: Option<u32>) -> Result<(), Failure> {
        let request = self.with_metadata(request, mode);
        let replaced = self.apply.handle().committer().replace(request)?;
        if let Some(message) = how_it_was_written(&self.path, replaced.method) {
            self.apply.log(Level::Info, message);
        }
        Ok(())
    }

    /// All fragments, one after the other, and whether everybody may read each.
    fn fragments(&mut self) -> Result<(Text, bool), Failure> {
        let mut all = Vec::new();
        let mut are_public = true;
        let mut take = |file: Result<Entry, FileError>| -> Result<(), Failure> {
            let mut file = file?.open()?;
            are_public &= file.stat().mode & READ_BY_OTHERS != 0;
            all.extend(file.read_all()?);
            Ok(())
        };
        for fragment in &self.file.fragments {
            self.apply.cancellation().check("read the fragments")?;
            let fragment = &enclosing::reads(self.apply, fragment);
            if !fragment.names_directory() {
                take(Entry::at(fragment)?.follow())?;
                continue;
            }
            let directory = Arc::new(Directory::open(fragment)?);
            for listed in directory.list()? {
                if listed.file_type != FileType::Directory && !is_temporary(&listed.name) {
                    take(directory.entry(listed.name).follow())?;
                }
            }
        }
        Ok((Text::new(all), are_public))
    }

    // Link

    fn link(&mut self) -> Result<(), Failure> {
        let text = match (*self.file.state, &self.occupant.entry) {
            (None, _) => return Ok(()),
            (_, Some(entry)) => entry.read_link()?,
            (_, None) => None,
        };
        let is_link = self.occupant.own.is_some_and(|own| own.is_link());
        let other = self.occupant.own.filter(|own| !own.is_link());
        let is = match (other, &text) {
            (Some(other), _) => DriftValue::Text(other.file_type.to_string()),
            (None, Some(text)) => DriftValue::Text(text.display().to_string()),
            (None, None) => DriftValue::Absent,
        };
        let in_the_way = |run: &Run<'_, '_>, attempted| match other {
            Some(other) if !run.file.force => Err(run.failed(attempted).because(format!(
                "it is a {} and not a link, and `force` is not set",
                other.file_type
            ))),
            _ => Ok(()),
        };
        if self.file.is_absent() {
            let Some(own) = self.occupant.own else {
                return Ok(());
            };
            self.progress = Progress::Gone;
            if self.apply.remove(own.file_type.to_string()) {
                in_the_way(self, "remove")?;
                self.remove_one(own)?;
            }
            return Ok(());
        }
        let wanted = std::path::PathBuf::from(std::ffi::OsString::from(
            <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(self.file.source.as_bytes()),
        ));
        if is_link
            && text
                .as_ref()
                .is_some_and(|text| text.as_os_str() == wanted.as_os_str())
        {
            return Ok(());
        }
        if !self.replacement_drift("target", is, wanted.display().to_string())? {
            if !is_link {
                self.progress = Progress::Pending;
            }
            return Ok(());
        }
        in_the_way(self, "make the link")?;
        let request =
            Replace::link(self.path.clone(), wanted).owner(self.identities.owner, self.identities.group);
        if other.is_some_and(|other| !other.is_directory()) {
            let entry = self.entry()?;
            self.back_up(&entry)?;
        }
        if self.ends_with_replacement() {
            self.report_metadata(FileType::Link)?;
            self.progress = Progress::Ready;
            return self.apply.replace(request, |_| None);
        }
        if other.is_some_and(|other| other.is_directory()) {
            self.entry()?.remove_directory()?;
        }
        self.apply.handle().committer().replace(request)?;
        if !is_link {
            self.progress = Progress::Made;
        }
        self.look_again()
    }

    fn remove_one(&self, own: Stat) -> Result<(), Failure> {
        let entry = self.entry()?;
        if own.is_directory() {
            entry.remove_directory()?;
        } else {
            self.back_up(&entry)?;
            entry.remove_file()?;
        }
        Ok(())
    }
}

/// Whether the file is to hold what not everybody may read.
pub(super) fn is_secret(apply: &Apply<'_>) -> bool {
    SECRETS.into_iter().any(|parameter| apply.is_sensitive(parameter))
}

/// What there is to say about the way in which a file was replaced.
/// Where the kernel keeps the capabilities of a program.
const CAPABILITIES: &str = "security.capability";

fn how_it_was_written(path: &AbsolutePath, method: Method) -> Option<String> {
    match method {
        Method::Atomically => None,
        Method::InPlace(reason) => Some(format!("{path} was written in place, not replaced: {reason}")),
    }
}

/// Stands for these bytes in the memory of verified files.
pub(super) fn fingerprint(bytes: &[u8]) -> Fingerprint {
    Fingerprint::of_digest(&Sha256::digest(bytes))
}

/// Stands for the contents of a source file; none while a change of it could still go unseen.
pub(super) fn source_fingerprint(source: &Stat) -> Option<Fingerprint> {
    const SETTLED_SECONDS: i64 = 4;
    let age = Timestamp::now().seconds.saturating_sub(source.changed.seconds);
    if age < SETTLED_SECONDS {
        return None;
    }
    let mut hash = Sha256::new();
    for part in [source.device, source.inode, source.size] {
        hash.update(part.to_le_bytes());
    }
    for time in [source.modified, source.changed] {
        hash.update(time.seconds.to_le_bytes());
        hash.update(time.nanoseconds.to_le_bytes());
    }
    Some(Fingerprint::of_digest(&hash.finalize()))
}

/// The contents of an open file, for a report.
pub(super) fn describe(file: &mut OpenFile) -> Result<DriftValue, FileError> {
    /// Up to this many bytes, contents are kept for a report.
    const SMALL: u64 = 16 * 1024;
    /// Up to this many bytes, contents are read for a report. A file may say that it is longer than anybody can wait.
    const LONGEST: u64 = 64 * 1024 * 1024;
    if file.stat().size > LONGEST {
        return Ok(size_alone(file.stat()));
    }
    if file.stat().size <= SMALL {
        let bytes = file.read_all()?;
        return Ok(with_digest(DriftValue::content(&bytes), &Sha256::digest(&bytes)));
    }
    let mut hash = Sha256::new();
    let mut size = 0;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = std::io::Read::read(file, &mut buffer).map_err(|source| FileError::System {
            attempted: "read",
            path: file.path().to_path_buf(),
            source,
        })?;
        if count == 0 {
            break;
        }
        size += count as u64;
        hash.update(&buffer[..count]);
    }
    let content = DriftValue::Content {
        size,
        digest: None,
        text: None,
    };
    Ok(with_digest(content, &hash.finalize()))
}

/// What is found where something else shall be or nothing, and how much goes with it.
pub(super) fn extent(entry: &Entry, found: &Stat) -> Result<DriftValue, FileError> {
    let extent = entry.extent()?;
    Ok(extent
        .map_or_else(|| found.file_type.to_string(), |extent| extent.to_string())
        .into())
}

/// Contents of which nothing is said but their length.
pub(super) fn size_alone(found: &Stat) -> DriftValue {
    DriftValue::Content {
        size: found.size,
        digest: None,
        text: None,
    }
}

fn with_digest(content: DriftValue, digest: &[u8]) -> DriftValue {
    match content {
        DriftValue::Content { size, text, .. } => {
            let mut hexadecimal = String::with_capacity(2 * digest.len());
            for byte in digest {
                let _ = write!(hexadecimal, "{byte:02x}");
            }
            DriftValue::Content {
                size,
                digest: Some(hexadecimal),
                text,
            }
        }
        other => other,
    }
}
