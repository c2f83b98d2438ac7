//! Packages of the distribution: what is installed, and how that is changed, behind one interface for all managers of packages.
//!
//! Whoever wants many packages asks once and changes once: a [`PackageManager`] makes one transaction of them, and says of each that it could not bring into its
//! state why.

mod apk;
pub(crate) mod apt;
mod change;
mod command;
pub(crate) mod dnf;
mod packagekit;
mod pacman;
mod rpm_version;
mod tool;

use std::sync::Arc;

use setpoint_engine::{Apply, Failure, Handle, Watch, async_trait};
use setpoint_host::files::AbsolutePath;

use apk::Apk;
use apt::Apt;
use dnf::Dnf;
use packagekit::PackageKit;
use pacman::Pacman;

/// What is wanted of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WantedPackage {
    pub(crate) name: String,
    pub(crate) state: PackageState,
    /// Whether it may go to a lower version.
    pub(crate) allow_downgrade: bool,
    /// Whether it need not be signed.
    pub(crate) allow_untrusted: bool,
    /// Whether it may come from a part of the distribution that is not free.
    pub(crate) allow_nonfree: bool,
    /// Whether it may come from a part that the distribution does not support.
    pub(crate) allow_unsupported: bool,
    /// Whether upgrades leave it alone; none where nobody says so.
    pub(crate) hold: Option<bool>,
}

impl WantedPackage {
    /// Its name, with the version that it shall have.
    fn with_version(&self, separator: char) -> String {
        match &self.state {
            PackageState::Version(version) => format!("{}{separator}{version}", self.name),
            PackageState::Installed | PackageState::Uninstalled | PackageState::Newest => self.name.clone(),
        }
    }
}

/// In what state a package shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PackageState {
    Installed,
    Uninstalled,
    /// Installed, in the newest version that there is.
    Newest,
    /// Installed, in exactly this version.
    Version(String),
}

/// What is found of a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FoundPackage {
    /// The version that is installed, wholly.
    pub(crate) version: Option<String>,
    /// In what state it is in, when it is neither installed nor not: `half-configured`.
    pub(crate) broken: Option<String>,
    /// The newest version that there is, if that was asked for and there is one.
    pub(crate) newest: Option<String>,
    /// Whether upgrades leave it alone.
    pub(crate) held: bool,
    /// In a plan: whether no list of packages has one of this name.
    pub(crate) is_unknown: bool,
}

/// A manager of packages.
#[async_trait]
pub(crate) trait PackageManager: Send + Sync {
    /// What changes when packages do; with `newest` also when others can be had.
    fn watches(&self, newest: bool) -> Vec<Watch>;

    /// What there is of each of these packages, in their order.
    async fn look(&self, wanted: &[WantedPackage], apply: &Apply<'_>) -> Result<Vec<FoundPackage>, Failure>;

    /// Brings these packages into their state, in one transaction if that is possible. All of them are of one state, but for versions. The answer
    /// is why not, for each in their order; none for those that are right.
    async fn change(
        &self,
        wanted: &[WantedPackage],
        apply: &Apply<'_>,
    ) -> Result<Vec<Option<Failure>>, Failure>;

    /// Whether upgrades shall leave a package alone.
    async fn hold(&self, name: &str, hold: bool, apply: &Apply<'_>) -> Result<(), Failure>;

    /// The paths that an installed package has brought, directories with a slash at their end; nothing for one that is not installed.
    async fn files(&self, name: &str, handle: &Handle) -> Result<Vec<Vec<u8>>, Failure>;
}

/// The manager of packages of this machine: the one whose list of what is installed is there. PackageKit is asked where that is nobody's whom we know.
pub(crate) fn package_manager() -> Result<Arc<dyn PackageManager>, Failure> {
    if Apt::is_here() {
        Ok(Arc::new(Apt))
    } else if Dnf::is_here() {
        Ok(Arc::new(Dnf))
    } else if Pacman::is_here() {
        Ok(Arc::new(Pacman))
    } else if Apk::is_here() {
        Ok(Arc::new(Apk))
    } else if PackageKit::is_here() {
        Ok(Arc::new(PackageKit))
    } else {
        let why = "there is none of apt, dnf, pacman, apk and PackageKit that has packages of this machine";
        Err(Failure::new("find the manager of packages").because(why))
    }
}

fn watches(paths: impl IntoIterator<Item = String>) -> Vec<Watch> {
    let paths = paths.into_iter().filter_map(|path| AbsolutePath::new(path).ok());
    paths.map(Watch::path).collect()
}

/// Paths in their order, with a slash at the end of those that are above others.
fn directories_marked(files: impl Iterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
    let mut files: Vec<Vec<u8>> = files.collect();
    files.sort();
    let mut marked: Vec<Vec<u8>> = Vec::with_capacity(files.len());
    for (at, file) in files.iter().enumerate() {
        // Of those that begin with it, `/a-b` may stand before `/a/b`.
        let is_above = files[at + 1..]
            .iter()
            .take_while(|next| next.starts_with(file))
            .any(|next| next.get(file.len()) == Some(&b'/'));
        let mut file = file.clone();
        if is_above && !file.ends_with(b"/") {
            file.push(b'/');
        }
        marked.push(file);
    }
    marked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_others_is_a_directory() {
        let files = ["/a", "/a/b", "/a-c", "/a/b/c", "/d/"].map(|file| file.as_bytes().to_vec());
        let marked = directories_marked(files.into_iter());
        let marked: Vec<&str> = marked
            .iter()
            .filter_map(|file| std::str::from_utf8(file).ok())
            .collect();
        assert_eq!(marked, ["/a/", "/a-c", "/a/b/", "/a/b/c", "/d/"]);
    }
}
