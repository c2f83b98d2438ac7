//! Managers of packages that are one command: they are asked what is installed, newer and held, and are looked at and changed in the
//! same way, so that each gives only its commands and how to read what they print.

use std::collections::HashMap;

use setpoint_engine::{Apply, Failure, Handle, Watch, async_trait};

use super::change::{Transactions, change, going_lower};
use super::{FoundPackage, PackageManager, PackageState, WantedPackage, watches};

/// A command that manages packages.
#[async_trait]
pub(super) trait Tool: Transactions {
    /// Where it writes what is installed; with `newest` also what can be had.
    fn places(&self, newest: bool) -> Vec<String>;

    /// The versions that would take the place of installed ones, by name.
    async fn upgrades(&self, names: &[&str], apply: &Apply<'_>) -> Result<HashMap<String, String>, Failure>;

    /// A list of those that upgrades leave alone, as it is printed or written.
    async fn held(&self, apply: &Apply<'_>) -> Result<String, Failure>;

    /// Whether that list has a package.
    fn is_held(&self, list: &str, name: &str) -> bool;

    /// Why a package may not be brought into its state; nothing where it may.
    async fn refused(
        &self,
        wanted: &WantedPackage,
        found: &FoundPackage,
        _: &Apply<'_>,
    ) -> Result<Option<Failure>, Failure> {
        Ok(going_lower(wanted, found))
    }

    /// See [`PackageManager::hold`].
    async fn hold(&self, name: &str, hold: bool, apply: &Apply<'_>) -> Result<(), Failure>;

    /// See [`PackageManager::files`].
    async fn files(&self, name: &str, handle: &Handle) -> Result<Vec<Vec<u8>>, Failure>;
}

#[async_trait]
impl<T: Tool> PackageManager for T {
    fn watches(&self, newest: bool) -> Vec<Watch> {
        watches(self.places(newest))
    }

    async fn look(&self, wanted: &[WantedPackage], apply: &Apply<'_>) -> Result<Vec<FoundPackage>, Failure> {
        let all: Vec<&WantedPackage> = wanted.iter().collect();
        let mut found = self.installed(&all, apply).await?;
        let is_asked = |(wanted, found): &(&&WantedPackage, &FoundPackage)| {
            wanted.state == PackageState::Newest && found.version.is_some()
        };
        let asked = all.iter().zip(&found).filter(is_asked);
        let names: Vec<&str> = asked.map(|(wanted, _)| wanted.name.as_str()).collect();
        if !names.is_empty() {
            let upgrades = self.upgrades(&names, apply).await?;
            for (wanted, found) in wanted.iter().zip(&mut found) {
                if wanted.state == PackageState::Newest {
                    let newest = upgrades.get(&wanted.name).cloned();
                    found.newest = newest.or_else(|| found.version.clone());
                }
            }
        }
        if wanted.iter().any(|wanted| wanted.hold.is_some()) {
            let held = self.held(apply).await?;
            for (wanted, found) in wanted.iter().zip(&mut found) {
                found.held = self.is_held(&held, &wanted.name);
            }
        }
        Ok(found)
    }

    async fn change(
        &self,
        wanted: &[WantedPackage],
        apply: &Apply<'_>,
    ) -> Result<Vec<Option<Failure>>, Failure> {
        let all: Vec<&WantedPackage> = wanted.iter().collect();
        let found = self.installed(&all, apply).await?;
        let mut refused = Vec::new();
        for (wanted, found) in wanted.iter().zip(&found) {
            refused.push(self.refused(wanted, found, apply).await?);
        }
        change(self, wanted, refused, apply).await
    }

    async fn hold(&self, name: &str, hold: bool, apply: &Apply<'_>) -> Result<(), Failure> {
        Tool::hold(self, name, hold, apply).await
    }

    async fn files(&self, name: &str, handle: &Handle) -> Result<Vec<Vec<u8>>, Failure> {
        Tool::files(self, name, handle).await
    }
}
