//! The `tar` kind: an archive of files and directories.
//!
//! What goes into it is in `members`, how it is written in `tar_archive`. Beside contents, also mode, owner, group and time of a member count: they are in
//! the archive. Links are archived as links, but for an input itself, which is what it leads to.

mod members;

use setpoint_engine::{Apply, Failure, IfSet, Level, Resource, Wanted, Watch, async_trait};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::files::AbsolutePath;

use crate::enclosing;
use crate::tar_archive::{Archive, Format};
use members::members;

/// A tar archive of files and directories.
///
/// A file is in it with the last part of its path. Of a directory whose path ends in a slash everything below is in it, with names relative to that; of
/// one without the slash too, below the last part of its path. Inputs are in their order, and what is in a directory by name.
///
/// ```mcl
/// tar "/srv/backup/etc.tar" {
///     inputs => ["/etc/ssh", "/etc/hostname"],
/// }
/// ```
///
/// ```mcl
/// tar "site" {
///     path => "/srv/site.tar",
///     inputs => ["/srv/www/"],
///     format => $const.res.tar.format.gnu,
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(
    kind = "tar",
    autoedge,
    constants(format(unknown = 0, ustar = 2, pax = 4, gnu = 8))
)]
pub(crate) struct Tar {
    /// The archive. Unset: the resource's name.
    path: IfSet<AbsolutePath>,
    /// What is in it.
    inputs: Vec<AbsolutePath>,
    /// Its format: 2 ustar, 4 pax, 8 GNU; 0 is ustar, with what that has no room for in the way of pax.
    format: i64,
    #[name]
    name: String,
}

#[async_trait]
impl Resource for Tar {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        match self.path() {
            Err(message) => invalid.push(Invalid::parameter("path", message)),
            Ok(path) if path.names_directory() => {
                invalid.push(Invalid::parameter("path", "must be a file: it ends in a slash"));
            }
            Ok(path) => {
                for input in &self.inputs {
                    if path.cleaned().is_at_or_under(&input.cleaned()) {
                        let message = format!("the archive would be in itself: it lies in `{input}`");
                        invalid.push(Invalid::parameter("inputs", message));
                    }
                }
            }
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
        path.into_iter()
            .chain(self.inputs.iter().cloned().map(Watch::tree))
            .collect()
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let path = self
            .path()
            .map_err(|why| Failure::new("use the path").because(why))?;
        let format = Format::of(self.format).unwrap_or_default();
        let inputs = self.inputs.iter().map(|input| enclosing::reads(apply, input));
        let inputs: Vec<AbsolutePath> = inputs.collect();
        let members = members(&inputs, apply)?;
        for name in members.twice() {
            let name = String::from_utf8_lossy(name);
            apply.log(
                Level::Warning,
                format!("two inputs make a member {name}: who unpacks the archive gets the last"),
            );
        }
        Archive::new(format, members, apply.handle().users()).keep(&path, apply)
    }
}

impl Tar {
    fn path(&self) -> Result<AbsolutePath, String> {
        match &*self.path {
            Some(path) => Ok(path.clone()),
            None => AbsolutePath::new(&self.name).map_err(|error| format!("{error}: `{}`", self.name)),
        }
    }
}
