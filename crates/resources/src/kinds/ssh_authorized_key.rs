//! The `ssh:authorized_key` kind: a key with which somebody may log in.
//!
//! Entries are found by their key, and not by their text: a key that is in the file with other options or another comment is changed, and one that shall
//! not be there goes however it is written. How entries are read and written is in `entry`.

mod entry;

use memchr::memmem;
use setpoint_engine::{
    Apply, Attempting, Claim, DriftValue, Failure, Handle, Identity, IfSet, Level, Resource, Stake, Text,
    Wanted, Watch, async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::files::{AbsolutePath, Entry, Replace};
use setpoint_host::users::Account as FoundAccount;

use self::entry::KeyEntry;
use crate::account_tools::invalid_name;
use crate::edited_file::EditedFile;
use crate::home_file::{self, HomeFile};
use crate::presence::{Presence, state_missing};
use crate::sorts::{Account, SSH_KEY, USER};
use crate::text_lines::{bare, end_last_line, end_of_lines, lines, read};
use crate::turns::Turn;

/// A key with which a user may log in over SSH, or may not.
///
/// The entry is `content`, or made of `options`, `type`, `key` and `comment`; with none of them it is the resource's name. Other keys in the file stay.
///
/// ```mcl
/// ssh:authorized_key "ada at work" {
///     state => "exists",
///     user => "ada",
///     type => "ssh-ed25519",
///     key => "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f",
///     comment => "ada@work",
/// }
/// ```
///
/// A key that may only fetch a backup, and one that has been lost:
///
/// ```mcl
/// ssh:authorized_key "backup" {
///     state => "exists",
///     user => "root",
///     options => ["restrict", "command=\"/usr/local/bin/backup\""],
///     type => "ssh-ed25519",
///     key => "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f",
/// }
///
/// ssh:authorized_key "lost" {
///     state => "absent",
///     user => "ada",
///     content => "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICAhIiMkJSYnKCkqKywtLi8wMTIzNDU2Nzg5Ojs8PT4/ stolen",
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "ssh:authorized_key", autoedge)]
pub(crate) struct SshAuthorizedKey {
    /// Whether the key is there.
    #[param(default = IfSet(Some(Presence::Exists)))]
    state: IfSet<Presence>,
    /// The file: an absolute path, or one that begins with `~/` or `~NAME/`. Unset: `.ssh/authorized_keys` in the home of `user`, or our own.
    file: String,
    /// Whose file it is: who gets what is made.
    user: String,
    /// The whole entry, as it stands in a line.
    content: String,
    /// What the key may do, such as `no-pty` or `from="10.0.0.0/8"`.
    options: Vec<String>,
    /// The type of the key, such as `ssh-ed25519`.
    #[param(name = "type")]
    key_type: String,
    /// The key in Base64.
    key: String,
    /// What people know it by.
    comment: String,
    /// Whether the directory `.ssh` of the file is made.
    #[param(default = true)]
    mkdir: bool,
    #[name]
    name: Text,
    #[state]
    found: HomeFile,
}

#[async_trait]
impl Resource for SshAuthorizedKey {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        if self.state.is_none() {
            invalid.push(state_missing());
        }
        if !self.file.is_empty() {
            invalid.extend(home_file::refused(&self.file));
        }
        if let Some(message) = invalid_name(&self.user).filter(|_| !self.user.is_empty()) {
            invalid.push(Invalid::parameter("user", message));
        }
        let parts = [
            ("options", !self.options.is_empty()),
            ("type", !self.key_type.is_empty()),
            ("key", !self.key.is_empty()),
            ("comment", !self.comment.is_empty()),
        ];
        if !self.content.is_empty() {
            for (parameter, _) in parts.into_iter().filter(|(_, is_set)| *is_set) {
                let message = format!("`content` is the whole entry; `{parameter}` is in it");
                invalid.push(Invalid::parameter(parameter, message));
            }
        } else if self.key_type.is_empty() != self.key.is_empty() {
            let (set, missing) = match self.key.is_empty() {
                true => ("type", "key"),
                false => ("key", "type"),
            };
            invalid.push(Invalid::parameter(set, format!("needs `{missing}`, too")));
            return;
        }
        if let Err((parameter, message)) = self.entry() {
            invalid.push(match parameter {
                Some(parameter) => Invalid::parameter(parameter, message),
                None => Invalid::new(message)
                    .help("set `content`, or `type` and `key`; with none of them the name is the entry"),
            });
        }
    }

    fn identities(&self) -> Vec<Identity> {
        EditedFile::named(&self.file()).identities()
    }

    fn claims(&self) -> Vec<Claim> {
        let file = EditedFile::named(&self.file());
        let Ok(entry) = self.entry() else {
            return Vec::new();
        };
        let wanted = match *self.state {
            Some(Presence::Absent) => String::new(),
            _ => entry.to_string(),
        };
        let key = entry.written_key();
        file.claims([file.part(&SSH_KEY, key.as_bytes(), Stake::value(wanted.as_bytes()))])
    }

    fn wanted(&self) -> Vec<Wanted> {
        let mut wanted = EditedFile::named(&self.file()).wanted();
        if !self.user.is_empty() {
            wanted.push(Wanted::first_of_each([
                Account::written(&self.user).identity(&USER)
            ]));
        }
        wanted
    }

    fn init(&mut self, handle: &Handle) -> Result<(), Failure> {
        let file = self.file();
        self.found.init(&file, handle);
        Ok(())
    }

    fn watches(&self) -> Vec<Watch> {
        self.found.watches(&self.file())
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let file = self.file();
        let path = self.found.find(&file, apply)?;
        let entry = self
            .entry()
            .map_err(|(_, why)| Failure::new("read the key").because(why))?;
        let _turn = Turn::at_file(&path, apply).await?;
        let owner = self.owner(apply.handle())?;
        let text = read(&path)?;
        let before = text.as_deref().unwrap_or_default();
        let exists = *self.state != Some(Presence::Absent);
        if exists && self.mkdir && !make_directory(&path, owner.as_ref(), apply)? {
            // Without it nothing is in it, and this run may not make it.
            let _ = apply.existence("line", DriftValue::Absent, entry.to_string());
            return Ok(());
        }
        let edited = match exists {
            true => with(before, &entry),
            false => without(before, &entry),
        };
        if let Some(edited) = edited {
            let shown = |found: &[String]| match found {
                [] => DriftValue::Absent,
                found => DriftValue::from(found.join("; ")),
            };
            let is = shown(&edited.found);
            let want = match exists {
                true => DriftValue::from(entry.to_string()),
                false => DriftValue::Absent,
            };
            if apply.existence("line", is, want) {
                let mut request = Replace::bytes(path.clone(), edited.text);
                if text.is_none() {
                    let (uid, gid) = (
                        owner.as_ref().map(|owner| owner.uid),
                        owner.as_ref().map(|owner| owner.gid),
                    );
                    request = request.mode(0o600).owner(uid, gid);
                }
                apply.replace_at_once(request)?;
            }
        }
        if exists {
            doubt_modes(&path, apply);
        }
        Ok(())
    }
}

impl SshAuthorizedKey {
    fn file(&self) -> String {
        match self.file.is_empty() {
            true => format!("~{}/.ssh/authorized_keys", self.user),
            false => self.file.clone(),
        }
    }

    /// The entry, or what is wrong with it, and in which parameter.
    fn entry(&self) -> Result<KeyEntry, (Option<&'static str>, String)> {
        if !self.content.is_empty() {
            let read = KeyEntry::read(self.content.trim().as_bytes());
            return read.map_err(|why| (Some("content"), format!("is not one entry: {why}")));
        }
        if self.key.is_empty() {
            let read = KeyEntry::read(self.name.as_bytes().trim_ascii());
            return read.map_err(|why| (None, format!("its name is not one entry: {why}")));
        }
        let mut entry = KeyEntry::of_key(self.key.trim()).map_err(|why| (Some("key"), why))?;
        if entry.key_type() != self.key_type.trim() {
            let message = format!(
                "is `{}`, and the key itself is of type `{}`",
                self.key_type,
                entry.key_type()
            );
            return Err((Some("type"), message));
        }
        for option in &self.options {
            entry
                .add_option(option)
                .map_err(|why| (Some("options"), format!("`{option}`: {why}")))?;
        }
        entry
            .set_comment(&self.comment)
            .map_err(|why| (Some("comment"), why))?;
        Ok(entry)
    }

    /// Who gets what is made; nobody said so without `user`.
    fn owner(&self, handle: &Handle) -> Result<Option<FoundAccount>, Failure> {
        if self.user.is_empty() {
            return Ok(None);
        }
        let attempted = "find the user";
        let account = handle
            .users()
            .account(&self.user)
            .attempting(attempted, &self.user)?;
        let missing = || {
            Failure::new(attempted)
                .on(&self.user)
                .because("there is none of that name")
        };
        account.ok_or_else(missing).map(Some)
    }
}

/// Makes the directory `.ssh` of a file if it is missing. Answers whether there is one now.
fn make_directory(
    path: &AbsolutePath,
    owner: Option<&FoundAccount>,
    apply: &mut Apply<'_>,
) -> Result<bool, Failure> {
    let attempted = "look at";
    let Some(directory) = path
        .parent()
        .filter(|parent| parent.file_name().is_some_and(|name| name == ".ssh"))
    else {
        return Ok(true);
    };
    let entry = Entry::at(&directory).attempting(attempted, &directory)?;
    if entry
        .stat_following()
        .attempting(attempted, &directory)?
        .is_some()
    {
        return Ok(true);
    }
    if !apply.drift("dir", DriftValue::Absent, DriftValue::mode(0o700)) {
        return Ok(false);
    }
    entry.create_directory(0o700)?;
    if let Some(owner) = owner {
        entry.set_owner(Some(owner.uid), Some(owner.gid))?;
    }
    Ok(true)
}

/// Says when sshd would not look at the file: others could have changed it.
fn doubt_modes(path: &AbsolutePath, apply: &Apply<'_>) {
    let directory = path.parent();
    let home = directory.as_ref().and_then(AbsolutePath::parent);
    for place in [Some(path.clone()), directory, home].into_iter().flatten() {
        let stat = Entry::at(&place).and_then(|entry| entry.stat_following());
        if let Ok(Some(stat)) = stat
            && stat.mode & 0o022 != 0
            && stat.mode & 0o1000 == 0
        {
            let message = format!(
                "{place} can be written by others (mode {:04o}): with `StrictModes` sshd does not take the key",
                stat.mode
            );
            apply.log(Level::Warning, message);
        }
    }
}

/// A text that was edited.
#[derive(Debug, PartialEq, Eq)]
struct Edited {
    text: Vec<u8>,
    /// The entries with the key that were there.
    found: Vec<String>,
}

/// A text in which an entry is the only one with its key; none if it is so already.
fn with(text: &[u8], wanted: &KeyEntry) -> Option<Edited> {
    let end = end_of_lines(text);
    let mut after = Vec::with_capacity(text.len());
    let mut found = Vec::new();
    let mut is_right = false;
    let same_key = SameKey::of(wanted);
    for line in lines(text) {
        match same_key.read(line) {
            Some(entry) => {
                if found.is_empty() {
                    is_right = entry == *wanted;
                    match is_right {
                        true => after.extend_from_slice(line),
                        false => after.extend([wanted.to_string().as_bytes(), end].concat()),
                    }
                }
                found.push(entry.to_string());
            }
            None => after.extend_from_slice(line),
        }
    }
    if is_right && found.len() == 1 {
        return None;
    }
    if found.is_empty() {
        end_last_line(&mut after, end);
        after.extend([wanted.to_string().as_bytes(), end].concat());
    }
    Some(Edited { text: after, found })
}

/// Finds entries with a key. A key is written in one way alone, so lines without it need not be taken apart: of a thousand resources for one file each
/// looks at all of its lines.
struct SameKey<'a> {
    wanted: &'a KeyEntry,
    written: memmem::Finder<'static>,
}

impl SameKey<'_> {
    fn of(wanted: &KeyEntry) -> SameKey<'_> {
        let written = memmem::Finder::new(&wanted.written_key()).into_owned();
        SameKey { wanted, written }
    }

    fn read(&self, line: &[u8]) -> Option<KeyEntry> {
        self.written.find(line)?;
        let entry = KeyEntry::read(bare(line)).ok()?;
        entry.is_of_same_key(self.wanted).then_some(entry)
    }
}

/// A text without entries with a key; none if there are none.
fn without(text: &[u8], unwanted: &KeyEntry) -> Option<Edited> {
    let mut after = Vec::with_capacity(text.len());
    let mut found = Vec::new();
    let same_key = SameKey::of(unwanted);
    for line in lines(text) {
        match same_key.read(line) {
            Some(entry) => found.push(entry.to_string()),
            None => after.extend_from_slice(line),
        }
    }
    (!found.is_empty()).then_some(Edited { text: after, found })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
    const OTHER: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICAhIiMkJSYnKCkqKywtLi8wMTIzNDU2Nzg5Ojs8PT4/";

    fn entry(text: &str) -> KeyEntry {
        KeyEntry::read(text.as_bytes()).unwrap()
    }

    fn text(edited: Option<Edited>) -> Option<String> {
        edited.map(|edited| String::from_utf8(edited.text).unwrap())
    }

    #[test]
    fn an_entry_is_added_changed_in_its_place_and_made_the_only_one_of_its_key() {
        let wanted = entry(&format!("{KEY} ada"));
        assert_eq!(text(with(b"", &wanted)), Some(format!("{KEY} ada\n")));
        let others = format!("# mine\n\n{OTHER} b");
        let expected = format!("{others}\n{KEY} ada\n");
        assert_eq!(text(with(others.as_bytes(), &wanted)), Some(expected.clone()));
        assert_eq!(with(expected.as_bytes(), &wanted), None);
        let unlike = format!("no-pty {KEY} old\n{OTHER} b\n{KEY} ada\n");
        let edited = with(unlike.as_bytes(), &wanted).unwrap();
        assert_eq!(edited.found, [format!("no-pty {KEY} old"), format!("{KEY} ada")]);
        assert_eq!(text(Some(edited)), Some(format!("{KEY} ada\n{OTHER} b\n")));
    }

    #[test]
    fn a_key_goes_however_it_is_written() {
        let unwanted = entry(KEY);
        let before = format!(
            "{OTHER} b\n  from=\"10.0.0.0/8\",no-pty   {KEY}   with a comment\r\nnot an entry\n{KEY}"
        );
        let after = format!("{OTHER} b\nnot an entry\n");
        assert_eq!(text(without(before.as_bytes(), &unwanted)), Some(after.clone()));
        assert_eq!(without(after.as_bytes(), &unwanted), None);
    }
}
