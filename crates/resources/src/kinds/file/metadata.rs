//! Owner, group, mode and SELinux context of a `file`.

use setpoint_engine::{Apply, DriftValue, Failure, Sort};
use setpoint_host::files::{Content, Entry, FileType, Replace, Stat, own_gid, own_uid, umask};

use super::File;
use super::run::{Certain, Occupant, Progress, Run, is_secret};
use crate::file_mode::Mode;
use crate::sorts::{Account, GROUP, USER};

/// Wanted owner and group as numbers, and what was found before anything was changed.
pub(super) struct Identities {
    pub(super) owner: Option<u32>,
    pub(super) group: Option<u32>,
    /// An earlier resource would create the owner: it has no number yet.
    planned_owner: bool,
    /// The same of the group.
    planned_group: bool,
    /// What counts for reports: of the link itself for `symlink`, else of what it leads to.
    before: Option<Stat>,
    /// Whether what was found is taken from a user who is not trusted. They may hold the file open or mapped, and may
    /// have chosen its group, mode and access list to let somebody in; so a file becomes a new one, and nothing of
    /// that is kept.
    pub(super) takes_over: bool,
    context_before: Option<Vec<u8>>,
}

impl Identities {
    pub(super) fn look_up(
        file: &File,
        apply: &mut Apply<'_>,
        occupant: &Occupant,
    ) -> Result<Identities, Failure> {
        let skip = file.is_absent();
        let wanted = |text: &str| !skip && !text.is_empty();
        let (mut owner, mut planned_owner) = (None, false);
        if wanted(&file.owner) {
            match apply.user(&file.owner) {
                Ok(found) => owner = Some(found),
                Err(_) if foresees(apply, "user", &file.owner, &USER) => planned_owner = true,
                Err(error) => return Err(failed(file, "find the owner of", error)),
            }
        }
        let (mut group, mut planned_group) = (None, false);
        if wanted(&file.group) {
            match apply.group(&file.group) {
                Ok(found) => group = Some(found),
                Err(_) if foresees(apply, "group", &file.group, &GROUP) => planned_group = true,
                Err(error) => return Err(failed(file, "find the group of", error)),
            }
        }
        let found = occupant
            .found
            .filter(|found| found.is_regular() || found.is_directory());
        let foreign = found.filter(|found| !file.symlink && !skip && found.is_made_by_others());
        // A secret never stays with somebody who was not named.
        let owner = match foreign {
            Some(found) if owner.is_none() && found.is_regular() && is_secret(apply) => Some(own_uid()),
            _ => owner,
        };
        let takes_over = foreign.is_some_and(|found| owner.is_some_and(|owner| owner != found.uid));
        let group = group.or_else(|| takes_over.then(own_gid));
        let context_before = match (&file.selinux, &occupant.entry, occupant.own) {
            (Some(_), Some(entry), Some(_)) => entry.security_context()?,
            _ => None,
        };
        Ok(Identities {
            owner,
            group,
            planned_owner,
            planned_group,
            before: if file.symlink {
                occupant.own
            } else {
                occupant.found
            },
            takes_over,
            context_before,
        })
    }

    /// The bits that a symbolic mode changes. Whoever made the file has no say in whose rights it runs with.
    pub(super) fn mode_to_start_from(&self, found: &Stat) -> u32 {
        if self.takes_over {
            found.mode & 0o777
        } else {
            found.mode
        }
    }
}

/// Whether an earlier resource would create an account that was not found.
fn foresees(apply: &mut Apply<'_>, noun: &str, name: &str, sort: &'static Sort) -> bool {
    apply.foresees(&Account::written(name).identity(sort), format!("{noun} {name}"))
}

fn failed(file: &File, attempted: &'static str, error: setpoint_host::users::AccountError) -> Failure {
    Failure::new(attempted)
        .on(String::from_utf8_lossy(&file.effective()))
        .because(error)
}

impl Run<'_, '_> {
    /// The steps owner and group, mode, context.
    pub(super) fn metadata(&mut self) -> Result<(), Failure> {
        let file = self.file;
        self.report_planned_accounts();
        let nothing_wanted = self.identities.owner.is_none()
            && self.identities.group.is_none()
            && self.mode.is_none()
            && file.selinux.is_none();
        let nothing_there = matches!(
            self.progress,
            Progress::Pending | Progress::Gone | Progress::Ready
        );
        let undefined_link = file.symlink && file.state.is_none() && self.occupant.own.is_none();
        if nothing_wanted || nothing_there || undefined_link || file.is_absent() {
            return Ok(());
        }
        let (entry, now) = self.subject()?;
        // What this run made, or put in the place of something else, has no state of its own to report.
        let before = match self.progress {
            Progress::Made => None,
            _ => self
                .identities
                .before
                .filter(|before| before.file_type == now.file_type),
        };
        let changed = self.set_owner(&entry, &now, before.as_ref())?;
        let (entry, now) = self.subject()?;
        self.set_mode(&entry, &now, before.as_ref(), changed)?;
        self.remove_access_lists(&entry, before.is_some())?;
        self.set_context(before.is_some())
    }

    /// Reports the owner and group that do not exist yet.
    fn report_planned_accounts(&mut self) {
        let Some(before) = self.identities.before.filter(|_| self.progress != Progress::Gone) else {
            return;
        };
        let users = self.apply.handle().users();
        let (owner, group) = (users.user_name(before.uid), users.group_name(before.gid));
        if self.identities.planned_owner {
            let _ = self.apply.drift("owner", owner, self.file.owner.as_str());
        }
        if self.identities.planned_group {
            let _ = self.apply.drift("group", group, self.file.group.as_str());
        }
    }

    /// The mode, owner and group of a file or directory that is created.
    pub(super) fn attributes_of_new(&self) -> Vec<(&'static str, DriftValue)> {
        let file = self.file;
        let start = match file.is_directory() {
            true => 0o777 & !umask(),
            false if is_secret(self.apply) => 0o600,
            false => 0o666 & !umask(),
        };
        let mode = self.mode.as_ref().map_or(start, |mode| mode.of(start));
        let users = self.apply.handle().users();
        let name = |written: &str, own: String| match written {
            "" => own,
            written => written.to_owned(),
        };
        vec![
            ("mode", DriftValue::mode(mode)),
            ("owner", name(&file.owner, users.user_name(own_uid())).into()),
            ("group", name(&file.group, users.group_name(own_gid())).into()),
        ]
    }

    /// Reports in what, beside its contents, a file or link of this type differs that is replaced by one which has everything
    /// from the start.
    pub(super) fn report_metadata(&mut self, file_type: FileType) -> Result<(), Failure> {
        let Some(before) = self
            .identities
            .before
            .filter(|before| before.file_type == file_type)
        else {
            return Ok(());
        };
        let owner = self.identities.owner.filter(|owner| *owner != before.uid);
        let group = self.identities.group.filter(|group| *group != before.gid);
        if let Some(owner) = owner {
            let (is, want) = self.owners(before.uid, owner);
            let _ = self.apply.drift_for_replacement("owner", is, want);
        }
        if let Some(group) = group {
            let (is, want) = self.groups(before.gid, group);
            let _ = self.apply.drift_for_replacement("group", is, want);
        }
        let Some(mode) = &self.mode else { return Ok(()) };
        let wanted = mode.of(self.identities.mode_to_start_from(&before));
        if wanted != before.mode {
            let (is, want) = (DriftValue::mode(before.mode), DriftValue::mode(wanted));
            let _ = self.apply.drift_for_replacement("mode", is, want);
        }
        let lists = match &self.occupant.end {
            Some(end) => end.access_lists()?,
            None => None,
        };
        if let Some(lists) = lists {
            let _ = self
                .apply
                .drift_for_replacement("access list", lists, DriftValue::Absent);
        }
        Ok(())
    }

    /// The owner that is and the one that shall be, as they are called.
    fn owners(&self, is: u32, want: u32) -> (String, String) {
        let users = self.apply.handle().users();
        let written = Some(self.file.owner.clone()).filter(|written| !written.is_empty());
        (
            users.user_name(is),
            written.unwrap_or_else(|| users.user_name(want)),
        )
    }

    /// The same of groups.
    fn groups(&self, is: u32, want: u32) -> (String, String) {
        let users = self.apply.handle().users();
        let written = Some(self.file.group.clone()).filter(|written| !written.is_empty());
        (
            users.group_name(is),
            written.unwrap_or_else(|| users.group_name(want)),
        )
    }

    /// What owner and mode are those of.
    fn subject(&self) -> Result<(Entry, Stat), Failure> {
        let (entry, stat) = if self.file.symlink {
            (&self.occupant.entry, self.occupant.own)
        } else {
            (&self.occupant.end, self.occupant.found)
        };
        match (entry, stat) {
            (Some(entry), Some(stat)) => Ok((entry.clone(), stat)),
            _ => Err(self.failed("set owner and mode of").because("it does not exist")),
        }
    }

    /// Answers whether it changed the owner, which clears bits of the mode.
    fn set_owner(&mut self, entry: &Entry, now: &Stat, before: Option<&Stat>) -> Result<bool, Failure> {
        let (owner, group) = (self.identities.owner, self.identities.group);
        let mut permitted = [before.is_none(); 2];
        if let (Some(before), Some(owner)) = (before, owner)
            && before.uid != owner
        {
            let (is, want) = self.owners(before.uid, owner);
            permitted[0] = self.apply.drift("owner", is, want);
        }
        if let (Some(before), Some(group)) = (before, group)
            && before.gid != group
        {
            let (is, want) = self.groups(before.gid, group);
            permitted[1] = self.apply.drift("group", is, want);
        }
        let owner = owner.filter(|owner| permitted[0] && *owner != now.uid);
        let group = group.filter(|group| permitted[1] && *group != now.gid);
        if owner.is_none() && group.is_none() {
            return Ok(false);
        }
        if owner.is_some() && self.identities.takes_over && now.is_regular() {
            self.take_over(now)?;
        } else {
            entry.set_owner(owner, group)?;
        }
        Ok(true)
    }

    /// Puts a new file with the same contents in the place of one whose owner may still hold it open.
    fn take_over(&mut self, now: &Stat) -> Result<(), Failure> {
        let end = self.occupant.end.as_ref();
        let content = match self.certain.take() {
            Some(Certain::Bytes(bytes)) => Content::Bytes(Box::new(bytes)),
            Some(Certain::Source(path)) => Content::Copy(Entry::at(&path)?.follow()?.open()?),
            None => Content::Copy(end.ok_or_else(|| self.failed("take over"))?.open_to_take_over()?),
        };
        let start = self.identities.mode_to_start_from(now);
        let mode = self.mode.as_ref().map(|mode| mode.of(start));
        self.replace_now(Replace::new(self.path.clone(), content), mode)?;
        self.look_again()
    }

    fn set_mode(
        &mut self,
        entry: &Entry,
        now: &Stat,
        before: Option<&Stat>,
        owner_changed: bool,
    ) -> Result<(), Failure> {
        let unrestricted = Mode::Octal(0o666 & !umask());
        let mode = match &self.mode {
            Some(mode) => mode,
            // It was made for its owner alone, until it belonged to the right one.
            None if before.is_none() && self.made_empty => &unrestricted,
            None => return Ok(()),
        };
        let wanted = mode.of(before.map_or(now.mode, |before| self.identities.mode_to_start_from(before)));
        let permitted = match before {
            Some(before) if before.mode != wanted => {
                self.apply
                    .drift("mode", DriftValue::mode(before.mode), DriftValue::mode(wanted))
            }
            Some(_) => owner_changed,
            None => true,
        };
        if permitted && (owner_changed || now.mode != wanted) {
            entry.set_mode(wanted)?;
        }
        Ok(())
    }

    /// A mode says who may do what, so beside it there is no access list.
    fn remove_access_lists(&mut self, entry: &Entry, is_found: bool) -> Result<(), Failure> {
        if self.mode.is_none() {
            return Ok(());
        }
        let handle = self.apply.handle();
        let stamp = self
            .occupant
            .found
            .filter(|_| is_found)
            .map(|found| found.stamp());
        let path = self.path.as_path();
        if stamp.is_some_and(|stamp| handle.verified().has_no_access_list(path, stamp)) {
            return Ok(());
        }
        let Some(lists) = entry.access_lists()? else {
            if let Some(stamp) = stamp {
                handle.verified().record_no_access_list(path, stamp);
            }
            return Ok(());
        };
        if !is_found || self.apply.drift("access list", lists, DriftValue::Absent) {
            entry.remove_access_lists()?;
        }
        Ok(())
    }

    fn set_context(&mut self, is_found: bool) -> Result<(), Failure> {
        let Some(wanted) = &self.file.selinux else {
            return Ok(());
        };
        let wanted = Some(wanted.as_bytes()).filter(|context| !context.is_empty());
        if is_found && self.identities.context_before.as_deref() != wanted {
            let shown = |context: Option<&[u8]>| {
                context.map(|context| DriftValue::Text(String::from_utf8_lossy(context).into_owned()))
            };
            let is = shown(self.identities.context_before.as_deref());
            if !self.apply.drift("selinux", is, shown(wanted)) {
                return Ok(());
            }
        } else if is_found {
            return Ok(());
        }
        let entry = self.entry()?;
        if entry.security_context()?.as_deref() == wanted {
            return Ok(());
        }
        match wanted {
            Some(context) => entry.set_attribute("security.selinux", context)?,
            None => entry.remove_attribute("security.selinux")?,
        }
        Ok(())
    }
}
