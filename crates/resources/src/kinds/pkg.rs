//! The `pkg` kind: a package of the distribution.
//!
//! Packages that are wanted in the same way are one transaction: one of them takes in the others. Whatever names a manager of packages has is behind
//! `crate::packages`. Beside what the reference has: `hold`.

use setpoint_engine::{
    Apply, DriftValue, Effect, Failure, Grouping, Handle, Identity, Members, Relations, Resource, Wanted,
    WantedOrder, WantedReach, Watch, async_trait,
};
use setpoint_graph::{Invalid, MetaParameters, Parameters};
use setpoint_value::Value;

use crate::packages::{FoundPackage, PackageState, WantedPackage, package_manager};
use crate::sorts::{FILE, PACKAGE_FILE, REPOSITORY, SERVICE, of_service_manager};

/// A package of the distribution.
///
/// Many of them are installed together, in one transaction. One that cannot be installed is named, and does not keep the others from it. Files of configuration
/// that were edited stay as they are, and nothing else is removed to make room.
///
/// What is `newest` is known from the lists that the manager of packages has. With apt they are fetched when they are older than a day, by a run that may repair, and each hour
/// it is looked whether they are; dnf does the same by itself, and for pacman and apk somebody else has to.
///
/// It knows apt, dnf, pacman and apk, and asks PackageKit where it finds none of these. A version is written as the distribution writes it: `2.10-3`, `1:6.1-2.fc41`, `1.36.1-r2`.
///
/// ```mcl
/// pkg "nginx" {}
///
/// pkg "telnetd" {
///     state => "uninstalled",
/// }
/// ```
///
/// One that is kept at its newest version, and one that stays at the one that it has:
///
/// ```mcl
/// pkg "ca-certificates" {
///     state => "newest",
/// }
///
/// pkg "postgresql-15" {
///     state => "15.14-0+deb12u1",
///     hold => true,
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "pkg", brings = anything, autoedge, autogroup, inquires, asynchronous, merge = merged)]
pub(crate) struct Pkg {
    /// `installed`, `uninstalled`, `newest`, or exactly this version.
    #[param(default = "installed".to_owned())]
    state: String,
    /// Whether a version that is lower than the installed one may take its place.
    allowdowngrade: bool,
    /// Whether it need not be signed.
    allowuntrusted: bool,
    /// Whether it may come from a part of the distribution that is not free.
    allownonfree: bool,
    /// Whether it may come from a part that the distribution does not support.
    allowunsupported: bool,
    /// Whether upgrades leave it alone. Unset: that is not managed. Not one of mgmt's parameters.
    hold: Option<bool>,
    #[name]
    name: String,
    #[state]
    members: Members,
}

#[async_trait]
impl Resource for Pkg {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        if let Some(message) = refused_name(&self.name) {
            invalid.push(Invalid::new(message));
        }
        let meant = match self.state.as_str() {
            "" => Some("installed"),
            "latest" => Some("newest"),
            "present" | "exists" | "install" => Some("installed"),
            "absent" | "removed" | "remove" | "purged" => Some("uninstalled"),
            _ => None,
        };
        if let Some(meant) = meant {
            let message = match self.state.as_str() {
                "" => "must not be empty".to_owned(),
                state => format!("`{state}` is not a state of a package"),
            };
            invalid.push(Invalid::parameter("state", message).help(format!("write `{meant}`")));
        } else if let PackageState::Version(version) = self.state()
            && !version
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b".+-~:_^".contains(&byte))
        {
            let message = format!(
                "`{version}` is neither a version nor one of `installed`, `uninstalled` and `newest`"
            );
            invalid.push(Invalid::parameter("state", message));
        }
        if self.hold == Some(true) && self.state() == PackageState::Uninstalled {
            let message = "what is not installed cannot be held";
            invalid.push(Invalid::parameter("hold", message));
        }
    }

    fn wanted(&self) -> Vec<Wanted> {
        let wanted = |order, identities, reach| Wanted {
            order,
            identities,
            reach,
        };
        let mut all = vec![wanted(
            WantedOrder::FoundFirst,
            vec![REPOSITORY.identity(Vec::new())],
            WantedReach::All,
        )];
        if self.state() != PackageState::Uninstalled {
            // Which services it has is known only once it is installed; most have one of its own name.
            let service = of_service_manager(&SERVICE, false, &self.name);
            all.push(wanted(WantedOrder::FoundAfter, vec![service], WantedReach::First));
        }
        all
    }

    async fn inquire(&self, handle: &Handle) -> Result<Relations, Failure> {
        let files = package_manager()?.files(&self.name, handle).await?;
        let mut services = Vec::new();
        for file in &files {
            let unit = UNIT_DIRECTORIES
                .iter()
                .find_map(|directory| file.strip_prefix(directory.as_bytes()));
            let service = unit.and_then(|unit| unit.strip_suffix(b".service"));
            if let Some(service) = service.and_then(|name| std::str::from_utf8(name).ok())
                && !service.contains('/')
            {
                services.push(of_service_manager(&SERVICE, false, service));
            }
        }
        let of = |sort: &'static setpoint_engine::Sort| -> Vec<Identity> {
            files.iter().map(|file| sort.identity(file.as_slice())).collect()
        };
        Ok(Relations {
            identities: of(&PACKAGE_FILE),
            wanted: [services, of(&FILE)]
                .map(|identities| Wanted {
                    order: WantedOrder::FoundAfter,
                    identities,
                    reach: WantedReach::Each,
                })
                .to_vec(),
        })
    }

    fn grouping(&self) -> Grouping {
        if matches!(self.state(), PackageState::Version(_)) {
            return Grouping::none();
        }
        let Pkg {
            state,
            allowuntrusted,
            allownonfree,
            allowunsupported,
            ..
        } = self;
        Grouping::with_equals(
            "pkg",
            format!("{state} {allowuntrusted} {allownonfree} {allowunsupported}"),
        )
    }

    fn members(&mut self) -> Option<&mut Members> {
        Some(&mut self.members)
    }

    fn watches(&self) -> Vec<Watch> {
        let newest = self.state() == PackageState::Newest;
        package_manager()
            .map(|manager| manager.watches(newest))
            .unwrap_or_default()
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let manager = package_manager()?;
        let members: Vec<(_, WantedPackage)> = self
            .members
            .of::<Pkg>()
            .map(|(member, package)| (member, package.package()))
            .collect();
        let wanted: Vec<WantedPackage> = std::iter::once(self.package())
            .chain(members.iter().map(|(_, package)| package.clone()))
            .collect();
        let found = manager.look(&wanted, apply).await?;
        let mut changes = Vec::new();
        let mut holds = Vec::new();
        for (at, (package, found)) in wanted.iter().zip(&found).enumerate() {
            let (change, hold) = match at.checked_sub(1).and_then(|at| members.get(at)) {
                Some((member, _)) => differences(package, found, &mut apply.member(member)),
                None => differences(package, found, apply),
            };
            if change {
                changes.push(at);
            }
            if let Some(hold) = hold {
                holds.push((at, hold));
            }
        }
        let unknown = |found: &FoundPackage, package: &WantedPackage| {
            let failure = Failure::new("install").on(&package.name);
            found
                .is_unknown
                .then(|| failure.because("no source of packages has one of this name"))
        };
        let mut failures: Vec<Option<Failure>> = found
            .iter()
            .zip(&wanted)
            .map(|(found, package)| unknown(found, package))
            .collect();
        if !changes.is_empty() {
            let packages: Vec<WantedPackage> = changes.iter().map(|at| wanted[*at].clone()).collect();
            let changed = manager.change(&packages, apply).await?;
            for (at, failure) in changes.into_iter().zip(changed) {
                failures[at] = failure;
            }
        }
        for (at, hold) in holds {
            if failures[at].is_none() {
                failures[at] = manager.hold(&wanted[at].name, hold, apply).await.err();
            }
        }
        // Of several, those are named that are to blame; it may be the one that has taken in the others.
        let is_alone = members.is_empty();
        for (at, failure) in failures.into_iter().enumerate() {
            let Some(failure) = failure else { continue };
            match at.checked_sub(1).and_then(|at| members.get(at)) {
                Some((member, _)) => apply.member_failed(member.id(), failure),
                None if is_alone => return Err(failure),
                None => apply.member_failed(&apply.handle().id().clone(), failure),
            }
        }
        Ok(())
    }
}

/// Where units of services are that packages bring.
const UNIT_DIRECTORIES: [&str; 3] = [
    "/usr/lib/systemd/system/",
    "/lib/systemd/system/",
    "/etc/systemd/system/",
];

impl Pkg {
    fn state(&self) -> PackageState {
        match self.state.as_str() {
            "installed" => PackageState::Installed,
            "uninstalled" => PackageState::Uninstalled,
            "newest" => PackageState::Newest,
            version => PackageState::Version(version.to_owned()),
        }
    }

    fn package(&self) -> WantedPackage {
        WantedPackage {
            name: self.name.clone(),
            state: self.state(),
            allow_downgrade: self.allowdowngrade,
            allow_untrusted: self.allowuntrusted,
            allow_nonfree: self.allownonfree,
            allow_unsupported: self.allowunsupported,
            hold: self.hold,
        }
    }
}

/// What is different, and whether that may be repaired: whether to change the package, and whether to hold it from now on.
fn differences(wanted: &WantedPackage, found: &FoundPackage, apply: &mut Apply<'_>) -> (bool, Option<bool>) {
    let is = |absent: DriftValue| match (&found.version, &found.broken) {
        (Some(version), _) => DriftValue::from(format!("installed ({version})")),
        (None, Some(broken)) => DriftValue::from(broken.as_str()),
        (None, None) => absent,
    };
    let uninstalled = || DriftValue::from("uninstalled");
    let change = match (&wanted.state, &found.version) {
        (PackageState::Installed, Some(_)) => false,
        (PackageState::Uninstalled, None) if found.broken.is_none() => false,
        (PackageState::Installed, None) => {
            let newest = found.newest.as_deref().filter(|_| found.broken.is_none());
            let want = newest.map_or("installed".to_owned(), |version| format!("installed ({version})"));
            apply.act(Effect::Create, "state", is(uninstalled()), want)
        }
        (PackageState::Uninstalled, _) => {
            apply.act(Effect::Remove, "state", is(uninstalled()), "uninstalled")
        }
        (PackageState::Newest, None) => {
            let newest = found.newest.as_deref();
            let want = newest.map_or("newest".to_owned(), |version| format!("newest ({version})"));
            apply.act(Effect::Create, "state", is(uninstalled()), want)
        }
        (PackageState::Newest, Some(version)) => match &found.newest {
            Some(newest) if newest != version => apply.drift("version", version.as_str(), newest.as_str()),
            _ => false,
        },
        (PackageState::Version(version), Some(there)) if version == there => false,
        (PackageState::Version(version), _) => {
            apply.existence("version", is(DriftValue::Absent), version.as_str())
        }
    };
    let hold = wanted.hold.filter(|hold| *hold != found.held);
    let word = |held| if held { "held" } else { "not held" };
    let hold = hold.filter(|hold| apply.drift("hold", word(found.held), word(*hold)));
    (change, hold)
}

/// Why a text cannot be the name of a package for any of their managers. Some of them take signs in names for more than names.
fn refused_name(name: &str) -> Option<String> {
    let wrong = |why: &str| Some(format!("`{name}` is not the name of a package: {why}"));
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"+._:-".contains(&byte);
    if let Some((package, version)) = name.split_once('=').filter(|(package, _)| !package.is_empty()) {
        return wrong(&format!(
            "write `pkg \"{package}\"` with `state => \"{version}\"`"
        ));
    }
    if !name.bytes().all(is_sign) {
        return wrong("it is made of letters, digits, `+`, `.`, `_`, `-`, and `:` before an architecture");
    }
    if !name.starts_with(|first: char| first.is_ascii_alphanumeric()) || name.ends_with(['-', ':']) {
        return wrong("it begins with a letter or a digit, and does not end in `-`");
    }
    None
}

/// Two of one name are one, if one wants it installed and the other its newest version.
fn merged(a: &Parameters, b: &Parameters) -> Option<Parameters> {
    let state = |parameters: &Parameters| {
        let state = parameters
            .get("state")
            .and_then(|state| state.unmarked().as_str().cloned());
        state.map_or(Some("installed".to_owned()), |state| {
            state.as_str().map(ToOwned::to_owned)
        })
    };
    let others = |parameters: &Parameters| -> Vec<(&'static str, Value)> {
        let others = parameters.iter().filter(|(name, _)| *name != "state");
        others.map(|(name, value)| (name, value.clone())).collect()
    };
    let mut states = [state(a)?, state(b)?];
    states.sort();
    let is_newest = states == ["installed".to_owned(), "newest".to_owned()];
    if others(a) != others(b) || (states[0] != states[1] && !is_newest) {
        return None;
    }
    let [_, state] = states;
    let all = others(a).into_iter().chain([("state", Value::str(state))]);
    Some(Parameters::new(all))
}
