//! What the manager says by itself: how units change, which jobs ended, that files were changed or read again.
//!
//! There is one of this for each manager while somebody watches a unit or waits for something. The signals of units come one by one. Of changed files the manager
//! says only that there were some, so it is asked how all watched units are, in two questions, and not more often than costs it a tenth of its time.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use tokio::sync::watch;
use zbus::message::Type as MessageType;
use zbus::{MatchRule, Message, OwnedObjectPath, Variant};

use super::jobs::Jobs;
use super::unit::{ActiveState, Settled, Unit, UnitName, object_path};
use super::{MANAGER, MANAGER_PATH, SERVICE, UNIT, UNIT_PATHS, file_state_of, manager};
use crate::bus::{Bus, BusError, Following, Heard, Link, Method};
use crate::sync::{Mutex, MutexGuard};

const BUS: &str = "org.freedesktop.DBus";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// How much longer than a look at all units the pause after it is.
const PAUSE: u32 = 9;

/// What is heard of a watched unit.
#[derive(Debug)]
pub enum UnitNews<'a> {
    /// From here on it is watched.
    Armed,
    /// It is, or may be, another than it was; in few words.
    Changed(&'a str),
    /// The manager cannot be reached, and could not be before; that is tried again.
    Unreachable(&'a BusError),
}

type Hears = Box<dyn Fn(UnitNews<'_>) + Send + Sync>;

/// Hears of a unit as long as it lives.
#[must_use = "it is watched as long as this lives"]
pub struct UnitWatch {
    followed: Arc<Followed>,
    path: String,
    number: u64,
}

/// How it stands with the manager.
#[derive(Debug, Clone)]
enum Standing {
    /// Nothing is known yet.
    Connecting,
    /// It can be asked, and its signals are heard.
    Connected(Link),
    /// There is no way to it now.
    Unreachable(BusError),
}

/// The manager, followed.
pub(super) struct Followed {
    bus: Bus,
    direct: Option<Bus>,
    standing: watch::Sender<Standing>,
    units: Mutex<Units>,
    jobs: Mutex<Jobs>,
    following: Mutex<Vec<(Way, Following)>>,
    /// Why there is no bus, and why the manager itself cannot be reached either; none: it is not known, or they can.
    closed: Mutex<Closed>,
    own: Weak<Followed>,
}

/// The ways that are closed.
#[derive(Default)]
struct Closed {
    bus: Option<BusError>,
    direct: Option<BusError>,
}

/// How the manager is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Bus,
    Direct,
}

#[derive(Default)]
struct Units {
    /// By the path of the unit on the bus.
    watched: HashMap<String, Watched>,
    /// Under which other paths a unit is watched, by the path that the manager gives it.
    aliases: HashMap<String, Vec<String>>,
    next: u64,
    /// Whose signals are those of the manager; none: there is no bus in between.
    owner: Option<String>,
    /// Whether all are being looked at.
    is_looking: bool,
    /// Whether they must be looked at again.
    look_again: bool,
}

struct Watched {
    name: UnitName,
    /// What was read or told last.
    known: Known,
    by_number: HashMap<u64, Arc<Watcher>>,
}

struct Watcher {
    hears: Hears,
    /// Whether it was told that it watches.
    is_armed: std::sync::atomic::AtomicBool,
}

/// How a unit was when it was read or told last; none: not known, or of no interest.
#[derive(Debug, Default, PartialEq)]
struct Known {
    settled: Option<Settled>,
    load_state: Option<String>,
    file_state: Option<String>,
}

impl Followed {
    pub(super) fn start(bus: &Bus, direct: Option<&Bus>) -> Result<Arc<Followed>, BusError> {
        let followed = Arc::new_cyclic(|own| Followed {
            bus: bus.clone(),
            direct: direct.cloned(),
            standing: watch::Sender::new(Standing::Connecting),
            units: Mutex::default(),
            jobs: Mutex::default(),
            following: Mutex::default(),
            closed: Mutex::default(),
            own: own.clone(),
        });
        followed.follow(Way::Bus)?;
        Ok(followed)
    }

    fn follow(&self, way: Way) -> Result<(), BusError> {
        let bus = match (way, &self.direct) {
            (Way::Bus, _) => &self.bus,
            (Way::Direct, Some(direct)) => direct,
            (Way::Direct, None) => return Ok(()),
        };
        let mut following = self.following.lock();
        if following.iter().any(|(known, _)| *known == way) {
            return Ok(());
        }
        let own = self.own.clone();
        let hears = move |heard: Heard<'_>| {
            if let Some(followed) = own.upgrade() {
                followed.hear(way, heard);
            }
        };
        following.push((way, bus.follow(rules(), hears)?));
        Ok(())
    }

    /// A connection to the manager on which its signals are heard.
    pub(super) async fn link(&self) -> Result<Link, BusError> {
        let mut standing = self.standing.subscribe();
        let known = standing
            .wait_for(|standing| !matches!(standing, Standing::Connecting))
            .await;
        match known.as_deref() {
            Ok(Standing::Connected(link)) => Ok(link.clone()),
            Ok(Standing::Unreachable(error)) => Err(error.clone()),
            Ok(Standing::Connecting) | Err(_) => unreachable!("it was waited for, and the sender is our own"),
        }
    }

    pub(super) fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock()
    }

    pub(super) fn watch(self: Arc<Self>, name: &UnitName, hears: Hears) -> UnitWatch {
        let path = name.object_path();
        let watcher = Arc::new(Watcher {
            hears,
            is_armed: false.into(),
        });
        let mut units = self.units.lock();
        let number = units.next;
        units.next += 1;
        let watched = units.watched.entry(path.clone()).or_insert_with(|| Watched {
            name: name.clone(),
            known: Known::default(),
            by_number: HashMap::new(),
        });
        watched.by_number.insert(number, watcher.clone());
        drop(units);
        // Whoever changes the standing looks at the watchers after that: one of both sees the other.
        let standing = self.standing.borrow().clone();
        match standing {
            Standing::Connecting => {}
            Standing::Connected(_) => watcher.arm(),
            Standing::Unreachable(error) => (watcher.hears)(UnitNews::Unreachable(&error)),
        }
        UnitWatch {
            followed: self,
            path,
            number,
        }
    }

    /// A unit was read: what is the same later is no news.
    pub(super) fn was_read(&self, name: &UnitName, unit: &Unit, file_state: bool) {
        let path = name.object_path();
        let mut units = self.units.lock();
        let Some(watched) = units.watched.get_mut(&path) else {
            return;
        };
        watched.known = Known {
            settled: unit.active_state.settled(),
            load_state: Some(unit.load_state.clone()),
            file_state: file_state.then(|| unit.file_state.clone()),
        };
        if unit.id != name.as_str() {
            let aliases = units.aliases.entry(object_path(&unit.id)).or_default();
            if !aliases.contains(&path) {
                aliases.push(path);
            }
        }
    }

    fn hear(&self, way: Way, heard: Heard<'_>) {
        match heard {
            Heard::Connected(link) => self.greet(way, link.clone()),
            Heard::Signal(message) => self.signal(message),
            Heard::Lost => self.lost(way),
            Heard::Unreachable(error) => self.unreachable(way, error),
        }
    }

    /// There is a connection. Whether the manager is there too must be asked.
    fn greet(&self, way: Way, link: Link) {
        let Some(own) = self.own.upgrade() else { return };
        // Not kept alive by what it waits for: the last who watches may go meanwhile.
        let own = Arc::downgrade(&own);
        let greeting = async move {
            let greeted = introduce(&link).await;
            let Some(followed) = own.upgrade() else { return };
            match greeted {
                Ok(owner) => followed.connected(way, link, owner),
                Err(error) => followed.unreachable(way, &error),
            }
        };
        // There is a thread: we are called on it.
        let _ = self.bus.spawn(greeting);
    }

    fn connected(&self, way: Way, link: Link, owner: Option<String>) {
        self.units.lock().owner = owner;
        // What was said while nobody listened is not known.
        self.jobs().forget();
        self.standing.send_replace(Standing::Connected(link));
        *self.closed.lock() = Closed::default();
        if way == Way::Bus {
            self.leave(Way::Direct);
        }
        for watcher in self.watchers() {
            watcher.arm();
        }
        self.look();
    }

    /// Follows one way no longer.
    fn leave(&self, way: Way) {
        let mut following = self.following.lock();
        let at = following.iter().position(|(known, _)| *known == way);
        let left = at.map(|at| following.swap_remove(at));
        drop(following);
        drop(left);
    }

    fn lost(&self, way: Way) {
        let lost = |standing: &mut Standing| {
            let is_of_it =
                matches!(standing, Standing::Connected(link) if link.is_direct() == (way == Way::Direct));
            if is_of_it {
                *standing = Standing::Connecting;
            }
            is_of_it
        };
        if self.standing.send_if_modified(lost) {
            self.jobs().forget();
        }
    }

    fn unreachable(&self, way: Way, error: &BusError) {
        if matches!(&*self.standing.borrow(), Standing::Connected(link) if !link.is_direct() || way == Way::Bus)
        {
            return;
        }
        let mut closed = self.closed.lock();
        match way {
            Way::Bus => closed.bus = Some(error.clone()),
            Way::Direct => closed.direct = Some(error.clone()),
        }
        // What is said is why there is no bus.
        let said = match (&closed.bus, &closed.direct) {
            (Some(bus), Some(_)) => Some(bus.clone()),
            (Some(bus), None) if self.direct.is_none() => Some(bus.clone()),
            _ => None,
        };
        drop(closed);
        if way == Way::Bus
            && let Err(error) = self.follow(Way::Direct)
        {
            return self.unreachable(Way::Direct, &error);
        }
        let Some(error) = &said else { return };
        self.standing.send_replace(Standing::Unreachable(error.clone()));
        for watcher in self.watchers() {
            if !watcher.is_armed.load(std::sync::atomic::Ordering::Acquire) {
                (watcher.hears)(UnitNews::Unreachable(error));
            }
        }
    }

    fn watchers(&self) -> Vec<Arc<Watcher>> {
        let units = self.units.lock();
        let watched = units.watched.values();
        watched
            .flat_map(|watched| watched.by_number.values().cloned())
            .collect()
    }

    fn signal(&self, message: &Message) {
        let header = message.header();
        if header.message_type() != MessageType::Signal {
            return;
        }
        let sender = header.sender().map(zbus::names::UniqueName::as_str);
        let path = header.path().map_or("", |path| path.as_str());
        let member = header.member().map_or("", |member| member.as_str());
        let interface = header.interface().map_or("", |interface| interface.as_str());
        match (interface, member) {
            (BUS, "NameOwnerChanged") if sender == Some(BUS) => self.owner_changed(message),
            (PROPERTIES, "PropertiesChanged") if self.is_of_manager(sender) => {
                self.unit_changed(path, message);
            }
            (MANAGER, "JobRemoved") if self.is_of_manager(sender) => {
                let body = message.body();
                if let Ok((id, _, _, result)) = body.deserialize::<(u32, zbus::ObjectPath<'_>, &str, &str)>()
                {
                    self.jobs().ended(id, result);
                }
            }
            // It is said before all units are read, too.
            (MANAGER, "Reloading") if message.body().deserialize::<bool>().is_ok_and(|begins| begins) => {}
            (MANAGER, "Reloading" | "UnitFilesChanged") if self.is_of_manager(sender) => self.look(),
            _ => {}
        }
    }

    fn is_of_manager(&self, sender: Option<&str>) -> bool {
        let units = self.units.lock();
        units.owner.as_deref().is_none_or(|owner| Some(owner) == sender)
    }

    /// The manager has left the bus, or is there again.
    fn owner_changed(&self, message: &Message) {
        let body = message.body();
        let Ok((name, _, owner)) = body.deserialize::<(&str, &str, &str)>() else {
            return;
        };
        if name != SERVICE {
            return;
        }
        let link = match &*self.standing.borrow() {
            Standing::Connected(link) if link.is_direct() => None,
            Standing::Connected(link) => Some(link.clone()),
            _ => None,
        };
        if owner.is_empty() {
            return self.lost(Way::Bus);
        }
        let Some(own) = self.own.upgrade() else { return };
        let bus = self.bus.clone();
        let _ = self.bus.spawn(async move {
            let link = match link {
                Some(link) => Ok(link),
                None => bus.link().await,
            };
            if let Ok(link) = link {
                own.greet(Way::Bus, link);
            }
        });
    }

    fn unit_changed(&self, path: &str, message: &Message) {
        // Most units of a machine are watched by nobody.
        if self.units.lock().under(path).is_empty() {
            return;
        }
        let body = message.body();
        let Ok((interface, changed, _)) = body.deserialize::<(&str, HashMap<&str, Variant<'_>>, Vec<&str>)>()
        else {
            return;
        };
        let state = match changed.get("ActiveState") {
            Some(Variant::Str(state)) if interface == UNIT => ActiveState::parse(state.as_str()),
            _ => return,
        };
        let Some(settled) = state.settled() else { return };
        let changed = |known: &mut Known| known.settled.replace(settled) != Some(settled);
        self.tell(path, state.as_str(), changed);
    }

    /// Tells all who watch the unit of a path, under whichever name, if what is known of it changes.
    fn tell(&self, path: &str, what: &str, changed: impl Fn(&mut Known) -> bool) {
        let mut told = Vec::new();
        let mut units = self.units.lock();
        for path in units.under(path) {
            let Some(watched) = units.watched.get_mut(&path) else {
                continue;
            };
            if changed(&mut watched.known) {
                let what = format!("{} is {what}", watched.name);
                told.extend(
                    watched
                        .by_number
                        .values()
                        .map(|watcher| (watcher.clone(), what.clone())),
                );
            }
        }
        drop(units);
        for (watcher, what) in told {
            (watcher.hears)(UnitNews::Changed(&what));
        }
    }

    /// Looks at all units that are watched, now or when the look that is under way has ended.
    fn look(&self) {
        let mut units = self.units.lock();
        units.look_again = true;
        if std::mem::replace(&mut units.is_looking, true) {
            return;
        }
        drop(units);
        let own = self.own.clone();
        // There is a thread: we are called on it.
        let _ = self.bus.spawn(async move {
            loop {
                let Some(followed) = own.upgrade() else { return };
                {
                    let mut units = followed.units.lock();
                    if !std::mem::take(&mut units.look_again) {
                        units.is_looking = false;
                        return;
                    }
                }
                let begun = tokio::time::Instant::now();
                // Who cannot be asked is asked when there is a connection again.
                let _ = followed.look_at_all().await;
                drop(followed);
                tokio::time::sleep(begun.elapsed() * PAUSE).await;
            }
        });
    }

    async fn look_at_all(&self) -> Result<(), BusError> {
        let (names, with_files) = {
            let units = self.units.lock();
            let known = units
                .watched
                .values()
                .filter(|unit| unit.known.load_state.is_some());
            let names: Vec<UnitName> = known.clone().map(|unit| unit.name.clone()).collect();
            let with_files = known.filter(|unit| unit.known.file_state.is_some());
            (
                names,
                with_files.map(|unit| unit.name.clone()).collect::<Vec<_>>(),
            )
        };
        let texts = |names: &[UnitName]| -> Vec<String> {
            names.iter().map(|name| name.as_str().to_owned()).collect()
        };
        if names.is_empty() {
            return Ok(());
        }
        let link = self.link().await?;
        let listed: Vec<Listed> = link.call(manager("ListUnitsByNames"), &texts(&names)).await?;
        let mut files: BTreeMap<String, String> = BTreeMap::new();
        if !with_files.is_empty() {
            let nothing: &[&str] = &[];
            let arguments = (nothing, texts(&with_files));
            let found: Vec<(String, String)> =
                link.call(manager("ListUnitFilesByPatterns"), &arguments).await?;
            for (path, state) in found {
                let name = path.rsplit('/').next().unwrap_or_default().to_owned();
                files.insert(name, state);
            }
            for name in &with_files {
                // Instances of templates have no file of their own.
                if !files.contains_key(name.as_str()) {
                    let state = file_state_of(&link, name).await.unwrap_or_default();
                    files.insert(name.as_str().to_owned(), state);
                }
            }
        }
        for (_, _, load_state, active_state, _, _, path, ..) in listed {
            let settled = ActiveState::parse(&active_state).settled();
            self.tell(path.as_str(), "not as it was", |known| {
                let now = Known {
                    settled: settled.or(known.settled),
                    load_state: Some(load_state.clone()),
                    file_state: known.file_state.clone(),
                };
                let changed = known.load_state.is_some() && *known != now;
                *known = now;
                changed
            });
        }
        for (name, state) in files {
            self.tell(&object_path(&name), "not as it was", |known| {
                let file_state = known.file_state.as_mut();
                file_state.is_some_and(|known| std::mem::replace(known, state.clone()) != state)
            });
        }
        Ok(())
    }
}

impl Units {
    /// The paths under which the unit of a path is watched.
    fn under(&self, path: &str) -> Vec<String> {
        let own = self.watched.get_key_value(path).map(|(path, _)| path);
        let aliases = self.aliases.get(path).into_iter().flatten();
        own.into_iter().chain(aliases).cloned().collect()
    }
}

/// A unit in a list: its name, description, load state, active state, sub state, whom it follows, its path, and number, sort and path of its job.
type Listed = (
    String,
    String,
    String,
    String,
    String,
    String,
    OwnedObjectPath,
    u32,
    String,
    OwnedObjectPath,
);

impl Watcher {
    /// Tells it that it watches; if it did before, that something may have been missed is found out by a look.
    fn arm(&self) {
        if !self.is_armed.swap(true, std::sync::atomic::Ordering::AcqRel) {
            (self.hears)(UnitNews::Armed);
        }
    }
}

/// Asks the manager for its signals. Whose name they will bear, if there is a bus.
async fn introduce(link: &Link) -> Result<Option<String>, BusError> {
    match link.call::<()>(manager("Subscribe"), &()).await {
        Ok(()) => {}
        Err(error) if error.is_named("org.freedesktop.systemd1.AlreadySubscribed") => {}
        Err(error) => return Err(error),
    }
    if link.is_direct() {
        return Ok(None);
    }
    let method = Method {
        service: BUS,
        path: "/org/freedesktop/DBus",
        interface: BUS,
        name: "GetNameOwner",
    };
    link.call(method, &SERVICE).await.map(Some)
}

/// What is to be heard.
fn rules() -> Vec<MatchRule<'static>> {
    let signals = |interface: &'static str, member: &'static str| {
        MatchRule::builder()
            .msg_type(MessageType::Signal)
            .interface(interface)
            .member(member)
    };
    let of_manager = |member| signals(MANAGER, member).path(MANAGER_PATH).sender(SERVICE);
    let units = signals(PROPERTIES, "PropertiesChanged")
        .path_namespace(UNIT_PATHS)
        .sender(SERVICE);
    // The same is said of other interfaces of a unit, and far more often: a line of status, an amount of memory.
    let units = units.arg(0, UNIT);
    let owner = signals(BUS, "NameOwnerChanged").sender(BUS).arg(0, SERVICE);
    let rules = [
        units,
        of_manager("JobRemoved"),
        of_manager("Reloading"),
        of_manager("UnitFilesChanged"),
        owner,
    ];
    rules
        .into_iter()
        .map(|rule| {
            rule.build()
                .expect("the constants are names and paths of the bus")
        })
        .collect()
}

impl Drop for UnitWatch {
    fn drop(&mut self) {
        let mut units = self.followed.units.lock();
        let Some(watched) = units.watched.get_mut(&self.path) else {
            return;
        };
        let gone = watched.by_number.remove(&self.number);
        if watched.by_number.is_empty() {
            units.watched.remove(&self.path);
            units.aliases.retain(|_, paths| {
                paths.retain(|path| *path != self.path);
                !paths.is_empty()
            });
        }
        drop(units);
        // Outside the lock: what hears may own others that watch.
        drop(gone);
    }
}

impl std::fmt::Debug for UnitWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "UnitWatch({})", self.path)
    }
}
