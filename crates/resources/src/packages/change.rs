//! Changes of packages: all together if that is possible. Whom the manager of packages blames is left out, and the others are tried again; where it blames nobody, each is
//! tried by itself.

use std::cmp::Ordering;

use setpoint_engine::{Apply, Failure, Level, async_trait};

use super::command::{Ended, run};
use super::rpm_version::compare;
use super::{FoundPackage, PackageState, WantedPackage};

/// A manager of packages that makes one transaction of many changes.
#[async_trait]
pub(super) trait Transactions: Send + Sync {
    /// What it is called, for people.
    const PROGRAM: &'static str;

    /// Brings these into their state, which is the same for all but for versions; all of them or none, as far as it can do that.
    async fn transaction(&self, packages: &[&WantedPackage], apply: &Apply<'_>) -> Result<Ended, Failure>;

    /// What is installed of each now.
    async fn installed(
        &self,
        packages: &[&WantedPackage],
        apply: &Apply<'_>,
    ) -> Result<Vec<FoundPackage>, Failure>;

    /// Whom a failed transaction blames, and for what, of each name; none of those that it does not blame.
    fn blamed(&self, ended: &Ended, names: &[&str]) -> Vec<Option<String>>;

    /// The most that a failed transaction says of why it failed.
    fn said(&self, ended: &Ended) -> String;

    /// Whether something could be done about what went wrong, so that it can be tried again.
    async fn help(&self, ended: &Ended, helped: &mut Helped, apply: &Apply<'_>) -> Result<bool, Failure>;

    /// What has ended, if that was well; else a failure with what it says.
    fn checked(&self, ended: Ended, failure: Failure) -> Result<Ended, Failure> {
        match ended.is_success {
            true => Ok(ended),
            false => Err(failure.because(self.said(&ended))),
        }
    }

    /// Fetches the lists of what can be had, unless that was done. Answers whether they are newer now.
    async fn fetch_lists(
        &self,
        arguments: &[&str],
        helped: &mut Helped,
        apply: &Apply<'_>,
    ) -> Result<bool, Failure> {
        if std::mem::replace(&mut helped.refreshed, true) {
            return Ok(false);
        }
        let ended = run(Self::PROGRAM, arguments, "fetch the lists of packages", apply).await?;
        if !ended.is_success {
            let why = self.said(&ended);
            apply.log(
                Level::Warning,
                format!("not all lists of packages could be fetched: {why}"),
            );
        }
        Ok(ended.is_success)
    }
}

/// What has been done already about what went wrong; each is done once.
#[derive(Debug, Default)]
pub(super) struct Helped {
    /// What was interrupted has been brought to its end.
    pub(super) mended: bool,
    /// The lists of what can be had have been fetched.
    pub(super) refreshed: bool,
}

/// Brings packages into their state, without those that have failed already. The answer is why not, for each.
pub(super) async fn change<T: Transactions>(
    tool: &T,
    wanted: &[WantedPackage],
    failures: Vec<Option<Failure>>,
    apply: &Apply<'_>,
) -> Result<Vec<Option<Failure>>, Failure> {
    let rest = (0..wanted.len()).filter(|at| failures[*at].is_none()).collect();
    let mut change = Change {
        tool,
        wanted,
        apply,
        failures,
        helped: Helped::default(),
    };
    change.make(rest).await?;
    let all: Vec<&WantedPackage> = wanted.iter().collect();
    let found = tool.installed(&all, apply).await?;
    for ((wanted, found), failure) in wanted.iter().zip(found).zip(&mut change.failures) {
        if failure.is_none() && !is_right(&found, &wanted.state) {
            let why = format!("`{}` says that all went well, and it is not so", T::PROGRAM);
            *failure = Some(failed(wanted, why));
        }
    }
    Ok(change.failures)
}

/// Changes that are being made.
struct Change<'c, 'a, T> {
    tool: &'c T,
    wanted: &'c [WantedPackage],
    apply: &'c Apply<'a>,
    failures: Vec<Option<Failure>>,
    helped: Helped,
}

impl<T: Transactions> Change<'_, '_, T> {
    /// Makes them together; without those who are to blame if that fails.
    async fn make(&mut self, mut rest: Vec<usize>) -> Result<(), Failure> {
        while !rest.is_empty() {
            let packages: Vec<&WantedPackage> = rest.iter().map(|at| &self.wanted[*at]).collect();
            let ended = self.tool.transaction(&packages, self.apply).await?;
            if ended.is_success {
                return Ok(());
            }
            if self.tool.help(&ended, &mut self.helped, self.apply).await? {
                continue;
            }
            // Others may have been brought into their state all the same.
            let found = self.tool.installed(&packages, self.apply).await?;
            let names: Vec<&str> = packages.iter().map(|wanted| wanted.name.as_str()).collect();
            let blamed = self.tool.blamed(&ended, &names);
            let before = rest.len();
            let mut left = Vec::new();
            for ((at, blamed), found) in rest.into_iter().zip(blamed).zip(found) {
                let wanted = &self.wanted[at];
                match blamed {
                    Some(why) => self.failures[at] = Some(failed(wanted, why)),
                    None if is_right(&found, &wanted.state) && wanted.state != PackageState::Newest => {}
                    None => left.push(at),
                }
            }
            rest = left;
            if rest.len() < before {
                continue;
            }
            if let [one] = rest[..] {
                self.failures[one] = Some(failed(&self.wanted[one], self.tool.said(&ended)));
                return Ok(());
            }
            for one in std::mem::take(&mut rest) {
                Box::pin(self.make(vec![one])).await?;
            }
        }
        Ok(())
    }
}

/// That a package could not be brought into its state.
pub(super) fn failed(wanted: &WantedPackage, why: impl Into<String>) -> Failure {
    let attempted = match wanted.state {
        PackageState::Uninstalled => "remove",
        PackageState::Newest => "bring to its newest version",
        PackageState::Installed | PackageState::Version(_) => "install",
    };
    let target = match &wanted.state {
        PackageState::Version(version) => format!("{} in the version {version}", wanted.name),
        PackageState::Installed | PackageState::Uninstalled | PackageState::Newest => wanted.name.clone(),
    };
    Failure::new(attempted).on(target).because(why.into())
}

/// Why a package cannot go to a version that is lower than the installed one, if nobody allows that.
pub(super) fn going_lower(wanted: &WantedPackage, found: &FoundPackage) -> Option<Failure> {
    let (PackageState::Version(version), Some(there)) = (&wanted.state, &found.version) else {
        return None;
    };
    let is_lower = compare(version, there) == Ordering::Less;
    (is_lower && !wanted.allow_downgrade).then(|| later_is_installed(wanted, there))
}

/// That a package would go to a lower version than the one that is there.
pub(super) fn later_is_installed(wanted: &WantedPackage, there: &str) -> Failure {
    let why = format!("the later version {there} is installed; `allowdowngrade => true` allows to go back");
    failed(wanted, why)
}

/// Whether a package is in its state, as far as what is installed tells.
fn is_right(found: &FoundPackage, state: &PackageState) -> bool {
    match state {
        PackageState::Installed | PackageState::Newest => found.version.is_some(),
        PackageState::Uninstalled => found.version.is_none() && found.broken.is_none(),
        PackageState::Version(version) => found.version.as_ref() == Some(version),
    }
}
