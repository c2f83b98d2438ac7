//! Packages by PackageKit, for distributions whose own manager is not known here.
//!
//! Each question and each change is a transaction: an object of its own, which tells over signals what it finds, what goes wrong, and that it has ended. It is the service who asks the
//! distribution, so only changes that it learns of are seen when they happen. It has no way to hold a package. Which of two versions is the higher one it does not tell: the
//! order of rpm is taken, which most of those have who are asked this way.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use setpoint_engine::{
    Apply, Attempting, Cancellation, Failure, Handle, HubWatcher, Level, Watch, async_trait,
};
use setpoint_host::bus::{
    Buses, DynamicType, Following, Heard, Link, Message, Method, OwnedObjectPath, all_signals, owner_changes,
    signals,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::change::{Helped, Transactions, change, failed, going_lower};
use super::command::Ended;
use super::{FoundPackage, PackageManager, PackageState, WantedPackage, directories_marked};
use crate::system_bus;

const SERVICE: &str = "org.freedesktop.PackageKit";
const OBJECT: &str = "/org/freedesktop/PackageKit";
const TRANSACTION: &str = "org.freedesktop.PackageKit.Transaction";
/// Says that the bus can start it.
const ACTIVATION: &str = "/usr/share/dbus-1/system-services/org.freedesktop.PackageKit.service";

/// How long the bus may take until signals are heard.
const LISTENING: Duration = Duration::from_secs(30);

/// Bits of a filter of packages.
const INSTALLED: u64 = 1 << 2;
const FREE: u64 = 1 << 8;
const SUPPORTED: u64 = 1 << 12;
const NEWEST: u64 = 1 << 16;
const ARCHITECTURE: u64 = 1 << 18;

/// Bits of what a change may do.
const ONLY_TRUSTED: u64 = 1 << 1;
const ALLOW_DOWNGRADE: u64 = 1 << 6;

/// What a transaction says in the end when it went well.
const SUCCESS: u32 = 1;

/// What is told of a package that is installed.
const IS_INSTALLED: u32 = 1;

/// What went wrong, in the numbers of its errors.
const NO_NETWORK: u32 = 2;
const GPG_FAILURE: u32 = 5;
const ALREADY_INSTALLED: u32 = 9;
const BAD_SIGNATURE: u32 = 30;
const MISSING_SIGNATURE: u32 = 31;

/// The packages of this machine.
pub(crate) struct PackageKit;

impl PackageKit {
    /// Whether the bus knows of it.
    pub(crate) fn is_here() -> bool {
        Path::new(ACTIVATION).exists()
    }
}

#[async_trait]
impl PackageManager for PackageKit {
    fn watches(&self, _: bool) -> Vec<Watch> {
        vec![Watch::hub(follow)]
    }

    async fn look(&self, wanted: &[WantedPackage], apply: &Apply<'_>) -> Result<Vec<FoundPackage>, Failure> {
        let resolved = resolve(
            wanted.iter().collect(),
            apply.handle(),
            Some(apply.cancellation()),
        )
        .await?;
        Ok(resolved.into_iter().map(|resolved| resolved.found).collect())
    }

    async fn change(
        &self,
        wanted: &[WantedPackage],
        apply: &Apply<'_>,
    ) -> Result<Vec<Option<Failure>>, Failure> {
        let brings = |wanted: &&WantedPackage| wanted.state != PackageState::Uninstalled;
        if wanted.iter().any(|wanted| brings(&wanted)) {
            let told = transact(
                apply.handle(),
                Some(apply.cancellation()),
                "RefreshCache",
                &(false,),
            )
            .await?;
            if let Some(error) = told.error {
                let message = format!("not all lists of packages could be fetched: {}", error.text);
                apply.log(Level::Warning, message);
            }
        }
        let resolved = resolve(
            wanted.iter().collect(),
            apply.handle(),
            Some(apply.cancellation()),
        )
        .await?;
        let mut failures = Vec::new();
        for (wanted, resolved) in wanted.iter().zip(resolved) {
            failures.push(match resolved.id {
                None if brings(&wanted) => Some(failed(wanted, why_not_found(wanted, apply).await?)),
                // Not all of those whom it asks refuse it by themselves.
                _ => going_lower(wanted, &resolved.found),
            });
        }
        change(self, wanted, failures, apply).await
    }

    async fn hold(&self, name: &str, _: bool, _: &Apply<'_>) -> Result<(), Failure> {
        let why = "PackageKit, which manages the packages of this machine, has no way to do that";
        Err(Failure::new("hold").on(name).because(why))
    }

    async fn files(&self, name: &str, handle: &Handle) -> Result<Vec<Vec<u8>>, Failure> {
        let told = transact(handle, None, "Resolve", &(INSTALLED | ARCHITECTURE, vec![name])).await?;
        let Some(there) = told.packages.into_iter().find(|package| package.is_installed) else {
            return Ok(Vec::new());
        };
        let told = transact(handle, None, "GetFiles", &(vec![there.id],)).await?;
        Ok(directories_marked(told.files.into_iter().map(String::into_bytes)))
    }
}

#[async_trait]
impl Transactions for PackageKit {
    const PROGRAM: &'static str = "PackageKit";

    async fn transaction(&self, packages: &[&WantedPackage], apply: &Apply<'_>) -> Result<Ended, Failure> {
        let resolved = resolve(packages.to_vec(), apply.handle(), Some(apply.cancellation())).await?;
        let any = |holds: fn(&WantedPackage) -> bool| packages.iter().any(|wanted| holds(wanted));
        let mut flags = 0;
        if !any(|wanted| wanted.allow_untrusted) {
            flags |= ONLY_TRUSTED;
        }
        if any(|wanted| wanted.allow_downgrade && matches!(wanted.state, PackageState::Version(_))) {
            flags |= ALLOW_DOWNGRADE;
        }
        let is_removal = packages
            .first()
            .is_some_and(|wanted| wanted.state == PackageState::Uninstalled);
        let (mut removed, mut updated, mut installed) = (Vec::new(), Vec::new(), Vec::new());
        for (wanted, resolved) in packages.iter().zip(resolved) {
            let list = match (is_removal, &resolved.found.version, &wanted.state) {
                (true, None, _) => continue,
                (true, ..) => &mut removed,
                (false, Some(_), PackageState::Newest) => &mut updated,
                _ => &mut installed,
            };
            list.extend(resolved.id);
        }
        let cancellation = Some(apply.cancellation());
        let mut errors = Vec::new();
        if !removed.is_empty() {
            // With what needs them; what they needed stays.
            let told = transact(
                apply.handle(),
                cancellation,
                "RemovePackages",
                &(flags, removed, true, false),
            )
            .await?;
            errors.extend(told.error);
        }
        for (method, ids) in [("UpdatePackages", updated), ("InstallPackages", installed)] {
            if !ids.is_empty() && errors.is_empty() {
                let told = transact(apply.handle(), cancellation, method, &(flags, ids)).await?;
                errors.extend(told.error);
            }
        }
        let error = errors.pop();
        Ok(Ended {
            is_success: error.is_none(),
            stdout: String::new(),
            stderr: error.map(|error| error.explained()).unwrap_or_default(),
            how: "an error".to_owned(),
        })
    }

    async fn installed(
        &self,
        packages: &[&WantedPackage],
        apply: &Apply<'_>,
    ) -> Result<Vec<FoundPackage>, Failure> {
        let resolved = resolve(packages.to_vec(), apply.handle(), Some(apply.cancellation())).await?;
        Ok(resolved.into_iter().map(|resolved| resolved.found).collect())
    }

    fn blamed(&self, _: &Ended, names: &[&str]) -> Vec<Option<String>> {
        // Its errors are texts of many makers.
        names.iter().map(|_| None).collect()
    }

    fn said(&self, ended: &Ended) -> String {
        ended.stderr.clone()
    }

    async fn help(&self, _: &Ended, _: &mut Helped, _: &Apply<'_>) -> Result<bool, Failure> {
        Ok(false)
    }
}

/// What there is of a package.
#[derive(Debug, Default)]
struct Resolved {
    found: FoundPackage,
    /// What names it to the service, in the state that is wanted; none if there is no such package.
    id: Option<String>,
}

/// What the service tells of a package.
#[derive(Debug, Clone)]
struct Listed {
    id: String,
    is_installed: bool,
}

impl Listed {
    /// `info` is its number for what is told of it; some say it in the last part of the id, too.
    fn of(info: u32, id: String) -> Listed {
        let is_said = id
            .rsplit(';')
            .next()
            .is_some_and(|data| data.split(':').any(|part| part == "installed"));
        Listed {
            is_installed: info == IS_INSTALLED || is_said,
            id,
        }
    }

    fn parts(&self) -> Option<PackageId<'_>> {
        let parts: Vec<&str> = self.id.split(';').collect();
        let [name, version, architecture, _] = parts.as_slice() else {
            return None;
        };
        Some(PackageId {
            name,
            version,
            architecture,
        })
    }
}

/// What names a package to the service: `name;version;architecture;data`.
struct PackageId<'t> {
    name: &'t str,
    version: &'t str,
    architecture: &'t str,
}

/// Architectures like this machine's, and none in particular, in the words of all distributions.
fn architectures() -> Vec<&'static str> {
    let ours: &[&str] = match std::env::consts::ARCH {
        "x86_64" => &["x86_64", "amd64"],
        "aarch64" => &["aarch64", "arm64"],
        "x86" => &["i686", "i586", "i486", "i386"],
        other => &[other],
    };
    ours.iter().copied().chain(["noarch", "any", "all"]).collect()
}

/// Finds what there is of each. They are of one state, but for versions.
async fn resolve(
    wanted: Vec<&WantedPackage>,
    handle: &Handle,
    cancellation: Option<&Cancellation>,
) -> Result<Vec<Resolved>, Failure> {
    let Some(first) = wanted.first() else {
        return Ok(Vec::new());
    };
    let mut filter = ARCHITECTURE;
    if !first.allow_nonfree {
        filter |= FREE;
    }
    if !first.allow_unsupported {
        filter |= SUPPORTED;
    }
    let with_newest = filter | NEWEST;
    let wants_newest = matches!(first.state, PackageState::Installed | PackageState::Newest);
    let asked = if wants_newest { with_newest } else { filter };
    let names: HashSet<&str> = wanted.iter().map(|wanted| wanted.name.as_str()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let told = transact(handle, cancellation, "Resolve", &(asked, &names)).await?;
    // The newest one hides those that are installed from some.
    let installed = transact(
        handle,
        cancellation,
        "Resolve",
        &(INSTALLED | ARCHITECTURE, &names),
    )
    .await?;
    let updates = match wanted.iter().any(|wanted| wanted.state == PackageState::Newest) {
        true => {
            transact(handle, cancellation, "GetUpdates", &(filter,))
                .await?
                .packages
        }
        false => Vec::new(),
    };
    if let Some(error) = told.error.as_ref().or(installed.error.as_ref()) {
        return Err(Failure::new("find packages").because(error.explained()));
    }
    let mut all: Vec<Listed> = told.packages.into_iter().chain(installed.packages).collect();
    // Of several versions some only tell the newest, and find others when they are named wholly.
    let is_one = |wanted: &&&WantedPackage| matches!(wanted.state, PackageState::Version(_));
    let others: Vec<String> = wanted
        .iter()
        .filter(is_one)
        .flat_map(|wanted| wholly(wanted))
        .collect();
    if !others.is_empty() {
        all.extend(
            transact(handle, cancellation, "Resolve", &(filter, &others))
                .await?
                .packages,
        );
    }
    let updates = by_name(&updates);
    let all = by_name(&all);
    let resolved = wanted.iter().map(|wanted| {
        let mut resolved = Resolved::default();
        let of_it = all
            .get(wanted.name.as_str())
            .map(Vec::as_slice)
            .unwrap_or_default();
        for (listed, id) in of_it {
            if listed.is_installed {
                resolved.found.version = Some(id.version.to_owned());
            }
            let is_it = match &wanted.state {
                PackageState::Version(version) => id.version == version.as_str(),
                PackageState::Uninstalled => listed.is_installed,
                PackageState::Installed | PackageState::Newest => true,
            };
            // What is not installed yet can be installed.
            if is_it && (resolved.id.is_none() || !listed.is_installed) {
                resolved.id = Some(listed.id.clone());
            }
        }
        let update = updates.get(wanted.name.as_str()).and_then(|of_it| of_it.last());
        match update {
            Some((listed, id)) if wanted.state == PackageState::Newest => {
                resolved.found.newest = Some(id.version.to_owned());
                resolved.id = Some(listed.id.clone());
            }
            _ => resolved.found.newest.clone_from(&resolved.found.version),
        }
        resolved
    });
    Ok(resolved.collect())
}

/// How a package is asked for in the state that is wanted: by its name, or wholly if a version is.
fn wholly(wanted: &WantedPackage) -> Vec<String> {
    let name = &wanted.name;
    match &wanted.state {
        PackageState::Version(version) => {
            let of = |architecture| format!("{name};{version};{architecture};");
            architectures().into_iter().map(of).collect()
        }
        _ => vec![name.clone()],
    }
}

/// Those that are for this machine, by the name of the package.
fn by_name(all: &[Listed]) -> HashMap<&str, Vec<(&Listed, PackageId<'_>)>> {
    let ours = architectures();
    let mut by_name: HashMap<&str, Vec<(&Listed, PackageId<'_>)>> = HashMap::new();
    for listed in all {
        if let Some(id) = listed.parts().filter(|id| ours.contains(&id.architecture)) {
            by_name.entry(id.name).or_default().push((listed, id));
        }
    }
    by_name
}

/// Why there is nothing that could be installed.
async fn why_not_found(wanted: &WantedPackage, apply: &Apply<'_>) -> Result<String, Failure> {
    for (allowed, missing, parameter) in [
        (wanted.allow_nonfree, SUPPORTED, "allownonfree"),
        (wanted.allow_unsupported, FREE, "allowunsupported"),
        (
            wanted.allow_nonfree && wanted.allow_unsupported,
            0,
            "allownonfree => true` with `allowunsupported",
        ),
    ] {
        if allowed {
            continue;
        }
        let asked = (ARCHITECTURE | missing, wholly(wanted));
        let told = transact(apply.handle(), Some(apply.cancellation()), "Resolve", &asked).await?;
        if by_name(&told.packages).contains_key(wanted.name.as_str()) {
            return Ok(format!("`{parameter} => true` allows it"));
        }
    }
    Ok(match &wanted.state {
        PackageState::Version(version) => format!("there is no version {version} of it"),
        _ => "no source of packages has one of this name".to_owned(),
    })
}

/// What a transaction told.
#[derive(Debug, Default)]
struct Told {
    packages: Vec<Listed>,
    files: Vec<String>,
    error: Option<TransactionError>,
}

#[derive(Debug)]
struct TransactionError {
    code: u32,
    text: String,
}

impl TransactionError {
    fn explained(&self) -> String {
        let text = self.text.trim().replace('\n', "; ");
        match self.code {
            ALREADY_INSTALLED => {
                format!(
                    "{text}: a later version may be installed; `allowdowngrade => true` allows to go back"
                )
            }
            GPG_FAILURE | BAD_SIGNATURE | MISSING_SIGNATURE => {
                format!("{text}: `allowuntrusted => true` allows what is not signed")
            }
            NO_NETWORK => format!("{text}: there is no network"),
            _ => text,
        }
    }
}

/// What is heard of a transaction.
enum News {
    Connected,
    Of(Message),
    /// The service or the bus has gone.
    Gone,
}

/// Makes a transaction, and answers what it told until its end.
async fn transact(
    handle: &Handle,
    cancellation: Option<&Cancellation>,
    method: &str,
    arguments: &(impl Serialize + DynamicType + Sync),
) -> Result<Told, Failure> {
    let attempted = "let PackageKit work";
    let buses = handle.extension::<Buses>()?;
    let bus = &buses.system;
    let link = bus.link().await.attempting(attempted, method)?;
    let (tell, mut heard) = unbounded_channel();
    let rules = vec![all_signals(SERVICE, TRANSACTION), owner_changes(SERVICE)];
    let _following = bus
        .follow(rules, move |news| {
            let news = match news {
                Heard::Connected(_) => News::Connected,
                Heard::Signal(message) => News::Of(message.clone()),
                Heard::Lost => News::Gone,
                Heard::Unreachable(_) => return,
            };
            // Who does not wait any more has what it wanted.
            let _ = tell.send(news);
        })
        .attempting(attempted, method)?;
    // The service may come or go just now, which is heard, too.
    let listening = async {
        loop {
            match heard.recv().await {
                Some(News::Connected) => return true,
                Some(News::Of(_) | News::Gone) => {}
                None => return false,
            }
        }
    };
    if !matches!(tokio::time::timeout(LISTENING, listening).await, Ok(true)) {
        return Err(Failure::new(attempted)
            .on(method)
            .because("its signals cannot be heard"));
    }
    let path: OwnedObjectPath = link
        .call(of_service("CreateTransaction"), &())
        .await
        .attempting(attempted, method)?;
    let of_it = |name| Method {
        service: SERVICE,
        path: path.as_str(),
        interface: TRANSACTION,
        name,
    };
    let hints = vec!["interactive=false", "background=false"];
    link.call::<()>(of_it("SetHints"), &(hints,))
        .await
        .attempting(attempted, method)?;
    link.call::<()>(of_it(method), arguments)
        .await
        .attempting(attempted, method)?;
    listen(&link, of_it("Cancel"), &mut heard, cancellation).await
}

async fn listen(
    link: &Link,
    cancel: Method<'_>,
    heard: &mut UnboundedReceiver<News>,
    cancellation: Option<&Cancellation>,
) -> Result<Told, Failure> {
    let attempted = "let PackageKit work";
    let mut told = Told::default();
    let mut is_cancelled = false;
    loop {
        let news = tokio::select! {
            news = heard.recv() => news,
            () = cancelled(cancellation), if !is_cancelled => {
                is_cancelled = true;
                // It says that it has ended all the same; what cannot be cancelled comes to its end.
                let _ = link.call::<()>(cancel, &()).await;
                continue;
            }
        };
        let message = match news {
            Some(News::Of(message)) => message,
            Some(News::Connected) => continue,
            Some(News::Gone) | None => {
                return Err(
                    Failure::new(attempted).because("the connection over the bus ended before it was done")
                );
            }
        };
        let header = message.header();
        let member = header.member().map(ToString::to_string).unwrap_or_default();
        if member == "NameOwnerChanged" {
            let change: Result<(String, String, String), _> = message.body().deserialize();
            if change.is_ok_and(|(name, _, new)| name == SERVICE && new.is_empty()) {
                return Err(Failure::new(attempted).because("it ended before it was done"));
            }
            continue;
        }
        if header.path().is_none_or(|path| path.as_str() != cancel.path) {
            continue;
        }
        let body = message.body();
        match member.as_str() {
            "Package" => {
                let one = body.deserialize::<(u32, String, String)>();
                told.packages
                    .extend(one.ok().map(|(info, id, _)| Listed::of(info, id)));
            }
            "Packages" => {
                let all = body
                    .deserialize::<(Vec<(u32, String, String)>,)>()
                    .map(|(all,)| all);
                let all = all.unwrap_or_default().into_iter();
                told.packages
                    .extend(all.map(|(info, id, _)| Listed::of(info, id)));
            }
            "Files" => {
                let files = body
                    .deserialize::<(String, Vec<String>)>()
                    .map(|(_, files)| files);
                told.files.extend(files.unwrap_or_default());
            }
            "ErrorCode" => {
                let error = body.deserialize::<(u32, String)>().ok();
                told.error = error.map(|(code, text)| TransactionError { code, text });
            }
            "Finished" => {
                let end = body.deserialize::<(u32, u32)>().map_or(0, |(end, _)| end);
                if let Some(cancellation) = cancellation {
                    cancellation.check(attempted)?;
                }
                if end != SUCCESS && told.error.is_none() {
                    let text = "it says no more than that it failed".to_owned();
                    told.error = Some(TransactionError { code: 0, text });
                }
                return Ok(told);
            }
            _ => {}
        }
    }
}

async fn cancelled(cancellation: Option<&Cancellation>) {
    match cancellation {
        Some(cancellation) => cancellation.cancelled().await,
        None => std::future::pending().await,
    }
}

fn of_service(name: &str) -> Method<'_> {
    Method {
        service: SERVICE,
        path: OBJECT,
        interface: SERVICE,
        name,
    }
}

/// Hears when the service learns of changes.
fn follow(watcher: HubWatcher) -> Result<Following, Failure> {
    let rule = signals(SERVICE, OBJECT, SERVICE, "UpdatesChanged");
    let told = |_: &_| Some("PackageKit tells of changed packages");
    system_bus::follow(watcher, "PackageKit", vec![rule], told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_a_package_is_read() {
        let of = |info, id: &str| Listed::of(info, id.to_owned());
        assert!(of(1, "foo;1-1;all;manual:local").is_installed);
        assert!(of(2, "foo;1-1;all;installed:local").is_installed);
        assert!(!of(2, "foo;1-1;all;debian").is_installed);
        let all = [of(2, "foo;1-1;all;x"), of(2, "foo;1-2;sparc;x"), of(2, "foo;1-3")];
        let by_name = by_name(&all);
        let versions: Vec<&str> = by_name["foo"].iter().map(|(_, id)| id.version).collect();
        assert_eq!(versions, ["1-1"]);
    }
}
