//! Archives of tar: what is in one, how it is written, and how one that is there differs from it.
//!
//! Headers are of POSIX.1-2017, `pax`, section *ustar Interchange Format*. What they have no room for (long names, numbers of more digits) goes into an extended header of pax before them, or in the format of GNU into members called `././@LongLink`. Times are in whole seconds.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use setpoint_engine::{Apply, DriftValue, Failure};
use setpoint_host::files::{AbsolutePath, Entry, OpenFile, Stat};
use setpoint_host::users::Users;
use tar::{Builder, EntryType, Header};

use crate::derived_file::{self, Found, Origin};

/// All members of an archive, in their order.
#[derive(Debug)]
pub(crate) struct Members(Vec<Member>);

/// A member of an archive.
#[derive(Debug)]
pub(crate) struct Member {
    /// Its name in the archive; that of a directory ends in a slash.
    pub(crate) name: Vec<u8>,
    /// Its permission bits.
    pub(crate) mode: u32,
    /// Its owner and group.
    pub(crate) owners: (u32, u32),
    /// When it was changed, in seconds.
    pub(crate) time: i64,
    pub(crate) what: What,
}

/// What a member is.
#[derive(Debug)]
pub(crate) enum What {
    /// The regular file at this path, as it was found.
    File(AbsolutePath, Stat),
    /// A file with these bytes.
    Bytes(Arc<[u8]>),
    Directory,
    /// A symbolic link with this text.
    Link(PathBuf),
}

impl Member {
    /// Its length, in bytes.
    fn size(&self) -> u64 {
        match &self.what {
            What::File(_, stat) => stat.size,
            What::Bytes(bytes) => bytes.len() as u64,
            What::Directory | What::Link(_) => 0,
        }
    }
}

impl Members {
    /// These.
    pub(crate) fn new(members: Vec<Member>) -> Members {
        Members(members)
    }

    fn iter(&self) -> impl Iterator<Item = &Member> {
        self.0.iter()
    }

    /// Names that more than one member has.
    pub(crate) fn twice(&self) -> Vec<&[u8]> {
        let mut seen = HashSet::new();
        let names = self.0.iter().map(|member| member.name.as_slice());
        names
            .filter(|name| !name.ends_with(b"/") && !seen.insert(*name))
            .collect()
    }

    /// Says what an archive of them is made of.
    fn add_to(&self, origin: &mut Origin) {
        for member in &self.0 {
            origin.add(&member.name);
            let (uid, gid) = member.owners;
            origin.add(&[member.mode, uid, gid].map(u32::to_le_bytes).concat());
            origin.add(&member.time.to_le_bytes());
            match &member.what {
                What::File(_, stat) => origin.add_file(stat),
                What::Bytes(bytes) => origin.add(bytes),
                What::Directory => {}
                What::Link(text) => origin.add(text.as_os_str().as_bytes()),
            }
        }
    }
}

/// A format of archives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Format {
    /// Ustar, and pax for what that has no room for.
    #[default]
    Fitting,
    Ustar,
    Pax,
    Gnu,
}

impl Format {
    /// The one with this number.
    pub(crate) fn of(number: i64) -> Option<Format> {
        match number {
            0 => Some(Format::Fitting),
            2 => Some(Format::Ustar),
            4 => Some(Format::Pax),
            8 => Some(Format::Gnu),
            _ => None,
        }
    }

    fn number(self) -> i64 {
        match self {
            Format::Fitting => 0,
            Format::Ustar => 2,
            Format::Pax => 4,
            Format::Gnu => 8,
        }
    }
}

/// An archive to be written.
pub(crate) struct Archive {
    format: Format,
    members: Members,
    /// What users and groups are called; those without a name are not there.
    users: HashMap<u32, String>,
    groups: HashMap<u32, String>,
}

/// Room of a header's fields, in bytes.
const NAME: usize = 100;
const PREFIX: usize = 155;
const ACCOUNT: usize = 31;
/// The first number that has no room in eleven octal digits, and in seven.
const TOO_LARGE: u64 = 1 << 33;
const TOO_LARGE_ID: u32 = 1 << 21;

/// So many changed members are told by name.
const TOLD: usize = 5;

impl Archive {
    pub(crate) fn new(format: Format, members: Members, users: &Users) -> Archive {
        let (mut user_names, mut group_names) = (HashMap::new(), HashMap::new());
        for Member {
            owners: (uid, gid), ..
        } in members.iter()
        {
            user_names.entry(*uid).or_insert_with(|| users.user_name(*uid));
            group_names.entry(*gid).or_insert_with(|| users.group_name(*gid));
        }
        // What has no name is called by its number, which is there anyway.
        user_names.retain(|id, name| *name != id.to_string());
        group_names.retain(|id, name| *name != id.to_string());
        Archive {
            format,
            members,
            users: user_names,
            groups: group_names,
        }
    }

    /// Keeps it at a path: whether it is there is told, and it is made where that may be repaired.
    pub(crate) fn keep(self, path: &AbsolutePath, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let mut origin = Origin::of(&self.format.number().to_le_bytes());
        self.members.add_to(&mut origin);
        let found = derived_file::compare(apply, path, &origin, |writer| self.write(writer))?;
        let (is, want) = match found {
            Found::Right => return Ok(()),
            Found::Nothing => (DriftValue::Absent, self.summary()),
            Found::Other => (DriftValue::from("another archive"), self.difference(path)),
        };
        if apply.existence("output", is, want) {
            derived_file::make(apply, path, &origin, found, move |writer| self.write(writer))?;
        }
        Ok(())
    }

    /// Writes it whole.
    fn write(&self, writer: &mut dyn Write) -> io::Result<()> {
        let mut builder = Builder::new(io::BufWriter::with_capacity(1 << 16, writer));
        for member in self.members.iter() {
            self.write_member(&mut builder, member)?;
        }
        builder.into_inner()?.flush()
    }

    fn write_member<W: Write>(&self, builder: &mut Builder<W>, member: &Member) -> io::Result<()> {
        let link = match &member.what {
            What::Link(text) => text.as_os_str().as_bytes(),
            What::File(..) | What::Bytes(_) | What::Directory => b"",
        };
        let mut header = match self.format {
            Format::Gnu => Header::new_gnu(),
            Format::Fitting | Format::Ustar | Format::Pax => Header::new_ustar(),
        };
        header.set_entry_type(match &member.what {
            What::File(..) | What::Bytes(_) => EntryType::Regular,
            What::Directory => EntryType::Directory,
            What::Link(_) => EntryType::Symlink,
        });
        let (uid, gid) = member.owners;
        header.set_mode(member.mode);
        let size = member.size();
        let time = u64::try_from(member.time).unwrap_or(0);
        let user = self.users.get(&uid).map_or("", String::as_str);
        let group = self.groups.get(&gid).map_or("", String::as_str);
        match self.format {
            Format::Gnu => {
                write_long(builder, EntryType::GNULongName, &member.name)?;
                write_long(builder, EntryType::GNULongLink, link)?;
                put(&mut header.as_old_mut().name, &member.name);
                header.set_uid(uid.into());
                header.set_gid(gid.into());
                header.set_size(size);
                header.set_mtime(time);
                put_account(&mut header, user, group);
            }
            Format::Fitting | Format::Ustar | Format::Pax => {
                let mut records: Vec<(&str, Vec<u8>)> = Vec::new();
                match split(&member.name) {
                    Some((prefix, name)) => {
                        put(&mut header.as_old_mut().name, name);
                        if let Some(ustar) = header.as_ustar_mut() {
                            put(&mut ustar.prefix, prefix);
                        }
                    }
                    None => {
                        put(&mut header.as_old_mut().name, &member.name);
                        records.push(("path", member.name.clone()));
                    }
                }
                if !fits(link, NAME) {
                    records.push(("linkpath", link.to_vec()));
                }
                let mut number = |key, number: u64, limit: u64| match number < limit {
                    true => number,
                    false => {
                        records.push((key, number.to_string().into_bytes()));
                        0
                    }
                };
                header.set_uid(number("uid", uid.into(), TOO_LARGE_ID.into()));
                header.set_gid(number("gid", gid.into(), TOO_LARGE_ID.into()));
                header.set_mtime(number("mtime", time, TOO_LARGE));
                // Whoever copies the member goes by the header, so that is right in any case.
                number("size", size, TOO_LARGE);
                header.set_size(size);
                let mut name = |key, name: &str| match fits(name.as_bytes(), ACCOUNT) {
                    true => name.to_owned(),
                    false => {
                        records.push((key, name.as_bytes().to_vec()));
                        String::new()
                    }
                };
                let (user, group) = (name("uname", user), name("gname", group));
                put_account(&mut header, &user, &group);
                if !records.is_empty() {
                    if self.format == Format::Ustar {
                        let fields: Vec<&str> = records.iter().map(|(key, _)| *key).collect();
                        let name = String::from_utf8_lossy(&member.name);
                        let fields = fields.join(", ");
                        let why =
                            format!("ustar has no room for {fields} of the member {name}; `format => 4` has");
                        return Err(io::Error::other(why));
                    }
                    builder
                        .append_pax_extensions(records.iter().map(|(key, value)| (*key, value.as_slice())))?;
                }
            }
        }
        put(&mut header.as_old_mut().linkname, link);
        header.set_cksum();
        match &member.what {
            What::File(path, stat) => builder.append(&header, content(path, stat)?),
            What::Bytes(bytes) => builder.append(&header, &bytes[..]),
            What::Directory | What::Link(_) => builder.append(&header, io::empty()),
        }
    }

    /// What it is, in few words.
    fn summary(&self) -> String {
        match self.members.0.len() {
            1 => "an archive of 1 member".to_owned(),
            count => format!("an archive of {count} members"),
        }
    }

    /// The same, and what in the one at a path is otherwise.
    fn difference(&self, path: &AbsolutePath) -> String {
        let summary = self.summary();
        match changed(self, path) {
            Some(changed) if !changed.is_empty() => {
                let more = changed.len().saturating_sub(TOLD);
                let mut told: Vec<String> = changed.into_iter().take(TOLD).collect();
                if more > 0 {
                    told.push(format!("{more} more"));
                }
                format!("{summary} ({})", told.join(", "))
            }
            _ => summary,
        }
    }
}

/// What was changed in an archive, as far as its headers tell; none if it is none.
fn changed(archive: &Archive, path: &AbsolutePath) -> Option<Vec<String>> {
    let open = Entry::at(path).and_then(|entry| entry.follow()?.open()).ok()?;
    let mut there: BTreeMap<Vec<u8>, (u64, u64, Option<u32>)> = BTreeMap::new();
    for entry in tar::Archive::new(io::BufReader::new(open)).entries().ok()? {
        let entry = entry.ok()?;
        let (time, mode) = (entry.header().mtime().ok()?, entry.header().mode().ok());
        there.insert(entry.path_bytes().into_owned(), (entry.size(), time, mode));
    }
    let mut changed = Vec::new();
    for member in archive.members.iter() {
        let size = member.size();
        let time = u64::try_from(member.time).unwrap_or(0);
        let name = String::from_utf8_lossy(&member.name);
        match there.remove(&member.name) {
            None => changed.push(format!("new: {name}")),
            Some(found) if found != (size, time, Some(member.mode)) => {
                changed.push(format!("changed: {name}"));
            }
            Some(_) => {}
        }
    }
    let gone = there
        .keys()
        .map(|name| format!("gone: {}", String::from_utf8_lossy(name)));
    changed.extend(gone);
    Some(changed)
}

/// The contents of a member, exactly as long as its header says.
fn content(path: &AbsolutePath, stat: &Stat) -> io::Result<impl Read> {
    let changed = || io::Error::other(format!("{path} changed while it was read"));
    let open: OpenFile = Entry::at(path)
        .and_then(|entry| entry.open())
        .map_err(io::Error::other)?;
    match open.stat().is_same_file(stat) && open.stat().size == stat.size {
        true => Ok(Exactly {
            rest: stat.size,
            file: open,
            path: path.clone(),
        }),
        false => Err(changed()),
    }
}

/// Reads so many bytes of a file, or fails.
struct Exactly {
    rest: u64,
    file: OpenFile,
    path: AbsolutePath,
}

impl Read for Exactly {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.rest).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        match self.file.read(&mut buffer[..most])? {
            0 => Err(io::Error::other(format!(
                "{} changed while it was read",
                self.path
            ))),
            count => {
                self.rest -= count as u64;
                Ok(count)
            }
        }
    }
}

/// A member of GNU's that says what has no room in the header of the next one.
fn write_long<W: Write>(builder: &mut Builder<W>, entry_type: EntryType, text: &[u8]) -> io::Result<()> {
    if text.len() <= NAME {
        return Ok(());
    }
    let mut header = Header::new_gnu();
    put(&mut header.as_old_mut().name, b"././@LongLink");
    header.set_entry_type(entry_type);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(text.len() as u64 + 1);
    header.set_cksum();
    builder.append(&header, text.chain(&[0][..]))
}

/// Whether a text has room in a field, and is of the signs that everybody reads alike.
fn fits(text: &[u8], room: usize) -> bool {
    text.len() <= room && text.is_ascii()
}

/// A name in two parts, of which the slash between them is left out, if it has room in a header of ustar.
fn split(name: &[u8]) -> Option<(&[u8], &[u8])> {
    if fits(name, NAME) {
        return Some((b"", name));
    }
    // The slash at the end of a directory's name belongs to it.
    let slashes = (0..name.len().saturating_sub(1)).filter(|at| name[*at] == b'/');
    slashes
        .map(|at| (&name[..at], &name[at + 1..]))
        .find(|(prefix, name)| !prefix.is_empty() && fits(prefix, PREFIX) && fits(name, NAME))
}

/// As much of a text as there is room for.
fn put(field: &mut [u8], text: &[u8]) {
    field.fill(0);
    let room = field.len().min(text.len());
    field[..room].copy_from_slice(&text[..room]);
}

fn put_account(header: &mut Header, user: &str, group: &str) {
    // They fail for headers that have no such fields, which these are not.
    if let Some(ustar) = header.as_ustar_mut() {
        put(&mut ustar.uname, user.as_bytes());
        put(&mut ustar.gname, group.as_bytes());
    } else if let Some(gnu) = header.as_gnu_mut() {
        put(&mut gnu.uname, user.as_bytes());
        put(&mut gnu.gname, group.as_bytes());
    }
}
