//! The `deploy:tar` kind: an archive of the files that the program came with.
//!
//! What counts are names, contents and whether a file may be executed: owners and times are those of nobody and of no day, so that all hosts of a cluster make
//! the same archive of a deploy. Whether one is right is found out as for the kind `tar`, without memory of what was made before.

use std::collections::BTreeSet;

use setpoint_engine::{Apply, Attempting, Failure, HubWatcher, IfSet, Resource, Wanted, Watch, async_trait};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::files::{AbsolutePath, Entry};

use crate::enclosing;
use crate::program_files::{FollowedFiles, ProgramFile, ProgramFileContent, ProgramFiles};
use crate::tar_archive::{Archive, Format, Member, Members, What};

/// A tar archive of the files that the program came with.
///
/// Of a program that was deployed to the hosts of a cluster these are all files of the deploy; of one that is run from a directory its texts, those of its
/// modules, and their `files/`. Names begin with a slash, which is the root of the deploy. All hosts make the same archive: members belong to root, are one second
/// younger than the epoch, and have mode 0755 if they may be executed, or 0644. When another program takes the place of this one, the archive is made anew.
///
/// ```mcl
/// deploy:tar "/srv/deploy.tar" {}
/// ```
///
/// ```mcl
/// deploy:tar "handed on" {
///     path => "/srv/next/deploy.tar",
///     format => $const.res.tar.format.gnu,
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "deploy:tar", autoedge)]
pub(crate) struct DeployTar {
    /// The archive. Unset: the resource's name.
    path: IfSet<AbsolutePath>,
    /// Its format: 2 ustar, 4 pax, 8 GNU; 0 is ustar, with what that has no room for in the way of pax.
    format: i64,
    #[name]
    name: String,
}

/// What is attempted with the files.
const ATTEMPTED: &str = "read the program's file";

/// When all members were changed: one second after the epoch, for who unpacks what has no time at all is warned of it.
const TIME: i64 = 1;

#[async_trait]
impl Resource for DeployTar {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        match self.path() {
            Err(message) => invalid.push(Invalid::parameter("path", message)),
            Ok(path) if path.names_directory() => {
                invalid.push(Invalid::parameter("path", "must be a file: it ends in a slash"));
            }
            Ok(_) => {}
        }
        if Format::of(self.format).is_none() {
            let message = "must be 0, 2 for ustar, 4 for pax or 8 for GNU";
            invalid.push(Invalid::parameter("format", message));
        }
    }

    fn wanted(&self) -> Vec<Wanted> {
        let path = self.path().ok();
        path.iter()
            .map(|path| enclosing::wanted(&enclosing::file(path)))
            .collect()
    }

    fn watches(&self) -> Vec<Watch> {
        let path = self.path().ok().map(Watch::path);
        path.into_iter().chain([Watch::hub(follow)]).collect()
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let path = self
            .path()
            .map_err(|why| Failure::new("use the path").because(why))?;
        let format = Format::of(self.format).unwrap_or_default();
        let Some(files) = apply.handle().extension::<ProgramFiles>()?.current() else {
            let why = "what runs came without files: only programs have them, models do not";
            return Err(Failure::new("archive the program").because(why));
        };
        let members = members(&files)?;
        Archive::new(format, members, apply.handle().users()).keep(&path, apply)
    }
}

impl DeployTar {
    fn path(&self) -> Result<AbsolutePath, String> {
        match &*self.path {
            Some(path) => Ok(path.clone()),
            None => AbsolutePath::new(&self.name).map_err(|error| format!("{error}: `{}`", self.name)),
        }
    }
}

fn follow(watcher: HubWatcher) -> Result<FollowedFiles, Failure> {
    let files = watcher.handle.extension::<ProgramFiles>()?.clone();
    let (event, armed) = (std::sync::Arc::new(watcher.event), "the program is followed");
    let hears = event.clone();
    let followed = files.follow(move || hears("another program runs"));
    event(armed);
    Ok(followed)
}

/// Files as members of an archive, each behind the directories in which it is.
fn members(files: &[ProgramFile]) -> Result<Members, Failure> {
    let mut sorted: Vec<&ProgramFile> = files.iter().collect();
    sorted.sort_by(|left, right| left.path.cmp(&right.path));
    let mut made = BTreeSet::new();
    let mut members = Vec::new();
    for file in sorted {
        let slashes = file
            .path
            .match_indices('/')
            .map(|(at, _)| at)
            .filter(|at| *at > 0);
        for at in slashes {
            let directory = &file.path[..=at];
            if made.insert(directory) {
                members.push(member(directory, 0o755, What::Directory));
            }
        }
        let (mode, what) = match &file.content {
            ProgramFileContent::Bytes(bytes) => (0o644, What::Bytes(bytes.clone())),
            ProgramFileContent::At(path) => {
                let entry = Entry::at(path).attempting(ATTEMPTED, path)?;
                let stat = entry.stat().attempting(ATTEMPTED, path)?;
                let stat =
                    stat.ok_or_else(|| Failure::new(ATTEMPTED).on(path).because("it does not exist"))?;
                if !stat.is_regular() {
                    let why = format!("it is a {}", stat.file_type);
                    return Err(Failure::new(ATTEMPTED).on(path).because(why));
                }
                let mode = if stat.mode & 0o100 == 0 { 0o644 } else { 0o755 };
                (mode, What::File(path.clone(), stat))
            }
        };
        members.push(member(&file.path, mode, what));
    }
    Ok(Members::new(members))
}

fn member(name: &str, mode: u32, what: What) -> Member {
    Member {
        name: name.as_bytes().to_vec(),
        mode,
        owners: (0, 0),
        time: TIME,
        what,
    }
}
