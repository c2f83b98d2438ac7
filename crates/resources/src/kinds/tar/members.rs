//! What goes into an archive: found by walking, in an order that is always the same.

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use setpoint_engine::{Apply, Attempting, Failure};
use setpoint_host::files::{AbsolutePath, Entry, Stat};

use crate::tar_archive::{Member, Members, What};

/// What is attempted with an input.
const ATTEMPTED: &str = "read what goes into the archive:";

/// Those that inputs make.
pub(super) fn members(inputs: &[AbsolutePath], apply: &Apply<'_>) -> Result<Members, Failure> {
    let mut members = Vec::new();
    for input in inputs {
        // What is named itself is followed if it is a link.
        let entry = Entry::at(input).and_then(|entry| entry.follow());
        let entry = entry.attempting(ATTEMPTED, input)?;
        let stat = entry.stat().attempting(ATTEMPTED, input)?;
        let stat = stat.ok_or_else(|| Failure::new(ATTEMPTED).on(input).because("it does not exist"))?;
        let base = input.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
        if stat.is_directory() {
            let below = match input.names_directory() {
                true => Vec::new(),
                false => [base, b"/"].concat(),
            };
            walk(&entry, below, apply, &mut members)?;
        } else if input.names_directory() {
            return Err(Failure::new(ATTEMPTED).on(input).because("it is not a directory"));
        } else {
            members.push(member(&entry, base.to_vec(), stat)?);
        }
    }
    Ok(Members::new(members))
}

fn member(entry: &Entry, mut name: Vec<u8>, stat: Stat) -> Result<Member, Failure> {
    let path = entry.path();
    let what = if stat.is_regular() {
        let path = AbsolutePath::new(path).map_err(|error| Failure::new(ATTEMPTED).because(error))?;
        What::File(path, stat)
    } else if stat.is_directory() {
        name.push(b'/');
        What::Directory
    } else if stat.is_link() {
        let text = entry.read_link().attempting(ATTEMPTED, path.display())?;
        What::Link(text.ok_or_else(|| {
            Failure::new(ATTEMPTED)
                .on(path.display())
                .because("it changed just now")
        })?)
    } else {
        let why = format!("it is a {}, which no archive holds", stat.file_type);
        return Err(Failure::new(ATTEMPTED).on(path.display()).because(why));
    };
    Ok(Member {
        name,
        mode: stat.mode,
        owners: (stat.uid, stat.gid),
        time: stat.modified.seconds,
        what,
    })
}

/// Adds what is in a directory and below, each with a name that begins with `below`. Depth is the depth of the tree; each level holds a
/// directory open.
fn walk(
    directory: &Entry,
    below: Vec<u8>,
    apply: &Apply<'_>,
    members: &mut Vec<Member>,
) -> Result<(), Failure> {
    let mut open = vec![(listed(directory)?, below)];
    while let Some((entries, below)) = open.last_mut() {
        apply.cancellation().check("read what goes into the archive")?;
        let Some(entry) = entries.next() else {
            open.pop();
            continue;
        };
        let name = [below.as_slice(), entry.name().as_bytes()].concat();
        let path = entry.path();
        let stat = match entry.stat() {
            // Gone since the directory was listed.
            Ok(None) => continue,
            Ok(Some(stat)) => stat,
            Err(error) => return Err(error).attempting(ATTEMPTED, path.display()),
        };
        let inside = match stat.is_directory() {
            true => Some(listed(&entry)?),
            false => None,
        };
        let member = member(&entry, name, stat)?;
        let below = member.name.clone();
        members.push(member);
        open.extend(inside.map(|entries| (entries, below)));
    }
    Ok(())
}

/// What is in a directory, by name.
fn listed(directory: &Entry) -> Result<std::vec::IntoIter<Entry>, Failure> {
    let path = directory.path();
    let open = directory.open_directory().map(Arc::new);
    let open = open.attempting(ATTEMPTED, path.display())?;
    let entries = open.list().attempting(ATTEMPTED, path.display())?;
    let entries: Vec<Entry> = entries
        .into_iter()
        .map(|listed| open.entry(listed.name))
        .collect();
    Ok(entries.into_iter())
}
