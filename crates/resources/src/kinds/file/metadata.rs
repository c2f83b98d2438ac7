//! Owner, group, mode and SELinux context of a `file`.

use setpoint_engine::{Apply, DriftValue, Failure};
use setpoint_host::files::{Entry, Stat};

use super::run::{Place, Run, Standing};
use super::{File, Wish};

/// Wanted owner and group as numbers, and what was found before anything was changed.
pub(super) struct Identities {
    pub(super) owner: Option<u32>,
    pub(super) group: Option<u32>,
    /// What counts for reports: of the link itself for `symlink`, else of what it leads to.
    before: Option<Stat>,
    context_before: Option<Vec<u8>>,
}

impl Identities {
    pub(super) fn look_up(file: &File, apply: &Apply<'_>, place: &Place) -> Result<Identities, Failure> {
        let users = apply.handle().users();
        let skip = file.wish() == Wish::Absent;
        let wanted = |text: &str| !skip && !text.is_empty();
        let owner = wanted(&file.owner)
            .then(|| {
                users
                    .user(&file.owner)
                    .map_err(|error| failed(file, "find the owner of", error))
            })
            .transpose()?;
        let group = wanted(&file.group)
            .then(|| {
                users
                    .group(&file.group)
                    .map_err(|error| failed(file, "find the group of", error))
            })
            .transpose()?;
        let context_before = match (&file.selinux, &place.entry, place.own) {
            (Some(_), Some(entry), Some(_)) => entry.security_context()?,
            _ => None,
        };
        Ok(Identities {
            owner,
            group,
            before: if file.symlink { place.own } else { place.found },
            context_before,
        })
    }
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
        let nothing_wanted = self.identities.owner.is_none()
            && self.identities.group.is_none()
            && self.mode.is_none()
            && file.selinux.is_none();
        let nothing_there = matches!(self.standing, Standing::Pending | Standing::Gone);
        let undefined_link = file.symlink && file.wish() == Wish::Undefined && self.place.own.is_none();
        if nothing_wanted || nothing_there || undefined_link || file.wish() == Wish::Absent {
            return Ok(());
        }
        let (entry, now) = self.subject()?;
        // What this run made, or put in the place of something else, has no state of its own to report.
        let before = match self.standing {
            Standing::Made => None,
            _ => self
                .identities
                .before
                .filter(|before| before.file_type == now.file_type),
        };
        let changed = self.set_owner(&entry, &now, before.as_ref())?;
        self.set_mode(&entry, &now, before.as_ref(), changed)?;
        self.set_context(before.is_some())
    }

    /// What owner and mode are those of.
    fn subject(&self) -> Result<(Entry, Stat), Failure> {
        let (entry, stat) = if self.file.symlink {
            (&self.place.entry, self.place.own)
        } else {
            (&self.place.end, self.place.found)
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
            let is = self.apply.handle().users().user_name(before.uid);
            permitted[0] = self.apply.drift("owner", is, self.file.owner.as_str());
        }
        if let (Some(before), Some(group)) = (before, group)
            && before.gid != group
        {
            let is = self.apply.handle().users().group_name(before.gid);
            permitted[1] = self.apply.drift("group", is, self.file.group.as_str());
        }
        let owner = owner.filter(|owner| permitted[0] && *owner != now.uid);
        let group = group.filter(|group| permitted[1] && *group != now.gid);
        if owner.is_none() && group.is_none() {
            return Ok(false);
        }
        entry.set_owner(owner, group)?;
        Ok(true)
    }

    fn set_mode(
        &mut self,
        entry: &Entry,
        now: &Stat,
        before: Option<&Stat>,
        owner_changed: bool,
    ) -> Result<(), Failure> {
        let Some(mode) = &self.mode else {
            return Ok(());
        };
        let wanted = mode.of(before.map_or(now.mode, |before| before.mode));
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
