//! For tests only: a machine made of memory, with everything a source may use, settable from outside.
//!
//! It stands in for the real one wherever a program is evaluated in a test, a benchmark or under a fuzzer. Like a machine it is
//! shared and changes while others look, so it holds a lock; wakes are called outside it.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use setpoint_value::{
    Background, Capabilities, Exported, FunctionLog, HostFact, Interface, QualifiedName, Timer, Value, Wake,
    WatchDepth, WorldQuery,
};

mod offers;

/// A simulated machine. A clone is the same machine.
#[derive(Clone)]
pub struct SimulatedCapabilities {
    state: Arc<Mutex<MachineState>>,
    effects: bool,
    background: SimulatedBackground,
    log: Option<SimulatedLog>,
}

/// Keeps what is said of calls of some functions.
#[derive(Clone)]
struct SimulatedLog {
    functions: Arc<[String]>,
    lines: Arc<Mutex<Vec<String>>>,
}

impl SimulatedLog {
    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FunctionLog for SimulatedLog {
    fn wants(&self, function: QualifiedName<'_>) -> bool {
        self.functions.iter().any(|name| *name == function.to_string())
    }

    fn debug(&self, line: String) {
        self.lock().push(line);
    }
}

/// The background of a simulated machine: work is done at once, or when the owner says so.
#[derive(Clone, Default)]
struct SimulatedBackground(Arc<Mutex<Option<Vec<Work>>>>);

type Work = Box<dyn FnOnce() + Send>;

impl SimulatedBackground {
    fn lock(&self) -> MutexGuard<'_, Option<Vec<Work>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Background for SimulatedBackground {
    fn run(&self, work: Work) {
        if let Some(kept) = &mut *self.lock() {
            kept.push(work);
            return;
        }
        work();
    }
}

/// Counts wakes, for whoever owns subscriptions of a simulated machine.
#[derive(Clone, Default)]
pub struct WakeFlag(Arc<AtomicUsize>);

impl WakeFlag {
    /// A wake that is counted here.
    #[must_use]
    pub fn wake(&self) -> Wake {
        let count = self.0.clone();
        Wake::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
        })
    }

    /// Whether there were wakes since the last call.
    #[must_use]
    pub fn take(&self) -> bool {
        self.0.swap(0, Ordering::SeqCst) > 0
    }
}

struct MachineState {
    now: Duration,
    booted: Duration,
    zone: Option<String>,
    next_watch: u64,
    timers: BTreeMap<u64, RunningTimer>,
    watches: BTreeMap<u64, (Watched, Wake)>,
    files: BTreeMap<String, Entry>,
    hostname: String,
    system_hostname: String,
    environment: BTreeMap<String, String>,
    arguments: Vec<String>,
    load: [f64; 3],
    homes: BTreeMap<String, String>,
    user_ids: BTreeMap<String, u32>,
    firmware_reboot: bool,
    seed: u64,
    deploy: BTreeMap<String, Vec<u8>>,
    plain_file: bool,
    commands: BTreeMap<String, Vec<Vec<u8>>>,
    /// How each command that has ended did that.
    ended_commands: BTreeMap<String, String>,
    interfaces: Vec<Interface>,
    strings: BTreeMap<String, String>,
    strings_by_host: BTreeMap<String, BTreeMap<String, String>>,
    schedules: BTreeMap<String, Vec<String>>,
    exports: BTreeMap<String, Vec<Exported>>,
    kinds: Option<BTreeSet<String>>,
    values: BTreeMap<String, Value>,
    responses: BTreeMap<String, (i64, Vec<u8>)>,
    provisioner: BTreeMap<String, Value>,
}

struct RunningTimer {
    next: Duration,
    period: Option<Duration>,
    wake: Wake,
}

/// What a watch is for.
#[derive(Clone, PartialEq, Eq)]
enum Watched {
    File(String, WatchDepth),
    Fact(HostFact),
    Network,
    World(WorldQuery),
    Value(String),
    Response(String),
    Command(String),
}

#[derive(Clone)]
enum Entry {
    File { content: Vec<u8>, executable: bool },
    Directory,
    Link(String),
}

impl Default for SimulatedCapabilities {
    fn default() -> SimulatedCapabilities {
        SimulatedCapabilities::new()
    }
}

impl SimulatedCapabilities {
    /// A machine called `host1` with an empty disk, at 2001-09-09 01:46:40 UTC, a thousand seconds after it was started.
    #[must_use]
    pub fn new() -> SimulatedCapabilities {
        let now = Duration::from_secs(1_000_000_000);
        let state = MachineState {
            now,
            booted: now - Duration::from_secs(1000),
            zone: Some("UTC".to_owned()),
            next_watch: 0,
            timers: BTreeMap::new(),
            watches: BTreeMap::new(),
            files: BTreeMap::from([("/".to_owned(), Entry::Directory)]),
            hostname: "host1".to_owned(),
            system_hostname: "host1".to_owned(),
            environment: BTreeMap::new(),
            arguments: vec!["setpoint".to_owned()],
            load: [0.0; 3],
            homes: BTreeMap::from([
                (String::new(), "/root".to_owned()),
                ("root".to_owned(), "/root".to_owned()),
            ]),
            user_ids: BTreeMap::from([("root".to_owned(), 0)]),
            firmware_reboot: false,
            seed: 1,
            deploy: BTreeMap::new(),
            plain_file: false,
            commands: BTreeMap::new(),
            ended_commands: BTreeMap::new(),
            interfaces: Vec::new(),
            strings: BTreeMap::new(),
            strings_by_host: BTreeMap::new(),
            schedules: BTreeMap::new(),
            exports: BTreeMap::new(),
            kinds: None,
            values: BTreeMap::new(),
            responses: BTreeMap::new(),
            provisioner: BTreeMap::new(),
        };
        SimulatedCapabilities {
            state: Arc::new(Mutex::new(state)),
            effects: true,
            background: SimulatedBackground::default(),
            log: None,
        }
    }

    /// The same machine, seen without the right to change it.
    #[must_use]
    pub fn without_effects(&self) -> SimulatedCapabilities {
        SimulatedCapabilities {
            effects: false,
            ..self.clone()
        }
    }

    /// The same machine, seen by somebody who is told of the calls of these functions, named as `module.function`.
    #[must_use]
    pub fn listening_to(&self, functions: &[&str]) -> SimulatedCapabilities {
        let functions = functions.iter().map(|name| (*name).to_owned()).collect();
        SimulatedCapabilities {
            log: Some(SimulatedLog {
                functions,
                lines: Arc::default(),
            }),
            ..self.clone()
        }
    }

    /// What was said of calls since this was asked last.
    #[must_use]
    pub fn said(&self) -> Vec<String> {
        self.log
            .as_ref()
            .map(|log| std::mem::take(&mut *log.lock()))
            .unwrap_or_default()
    }

    /// Keeps what is to be done in the background until [`SimulatedCapabilities::do_background_work`].
    pub fn keep_background_work(&self) {
        self.background.lock().get_or_insert_default();
    }

    /// Does what was kept, in the order in which it came; how much that was.
    pub fn do_background_work(&self) -> usize {
        let kept = self.background.lock().as_mut().map(std::mem::take);
        let kept = kept.unwrap_or_default();
        let count = kept.len();
        for work in kept {
            work();
        }
        count
    }

    /// Does the first piece of what was kept; whether there was one.
    pub fn do_first_background_work(&self) -> bool {
        let first = match &mut *self.background.lock() {
            Some(kept) if !kept.is_empty() => kept.remove(0),
            _ => return false,
        };
        first();
        true
    }

    /// As what sources are given.
    #[must_use]
    pub fn shared(&self) -> Arc<dyn Capabilities> {
        Arc::new(self.clone())
    }

    fn lock(&self) -> MutexGuard<'_, MachineState> {
        // Nothing panics while it holds the lock but by a bug, after which the state is as good as any.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and then wakes those who watch what `of` accepts.
    fn change(&self, change: impl FnOnce(&mut MachineState), of: impl Fn(&Watched) -> bool) {
        let wakes: Vec<Wake> = {
            let mut state = self.lock();
            change(&mut state);
            state
                .watches
                .values()
                .filter(|(watched, _)| of(watched))
                .map(|(_, wake)| wake.clone())
                .collect()
        };
        for wake in wakes {
            wake.wake();
        }
    }

    fn watch_for(&self, watched: Watched, wake: Wake) -> Timer {
        let id = {
            let mut state = self.lock();
            let id = state.fresh();
            state.watches.insert(id, (watched, wake));
            id
        };
        Box::new(Guard {
            state: self.state.clone(),
            id,
        })
    }

    fn start_timer(&self, delay: Duration, period: Option<Duration>, wake: Wake) -> Timer {
        let id = {
            let mut state = self.lock();
            let id = state.fresh();
            let next = state.now + delay;
            state.timers.insert(id, RunningTimer { next, period, wake });
            id
        };
        Box::new(Guard {
            state: self.state.clone(),
            id,
        })
    }

    /// How many timers and watches are alive.
    #[must_use]
    pub fn live_watches(&self) -> usize {
        let state = self.lock();
        state.timers.len() + state.watches.len()
    }

    /// When the next timer is due, from now.
    #[must_use]
    pub fn next_timer(&self) -> Option<Duration> {
        let state = self.lock();
        let next = state.timers.values().map(|t| t.next).min()?;
        Some(next.saturating_sub(state.now))
    }

    /// Lets time pass. Each timer that falls due wakes once.
    pub fn advance(&self, by: Duration) {
        let wakes: Vec<Wake> = {
            let mut state = self.lock();
            state.now += by;
            let now = state.now;
            let mut due: Vec<(Duration, u64)> = state
                .timers
                .iter()
                .filter(|(_, t)| t.next <= now)
                .map(|(id, t)| (t.next, *id))
                .collect();
            due.sort_unstable();
            let mut wakes = Vec::with_capacity(due.len());
            for (_, id) in due {
                let Some(timer) = state.timers.get_mut(&id) else {
                    continue;
                };
                wakes.push(timer.wake.clone());
                match timer.period {
                    Some(period) => {
                        let period = period.as_nanos().max(1);
                        let missed = (now - timer.next).as_nanos() / period + 1;
                        let nanos = u64::try_from(period * missed).unwrap_or(u64::MAX);
                        timer.next += Duration::from_nanos(nanos);
                    }
                    None => {
                        state.timers.remove(&id);
                    }
                }
            }
            wakes
        };
        for wake in wakes {
            wake.wake();
        }
    }

    /// Sets the clock; timers run on from there.
    pub fn set_now(&self, now: Duration) {
        let mut state = self.lock();
        let shift = |at: Duration, before: Duration| (at + now).saturating_sub(before);
        let before = state.now;
        for timer in state.timers.values_mut() {
            timer.next = shift(timer.next, before);
        }
        state.booted = shift(state.booted, before);
        state.now = now;
    }

    /// Sets the time zone; none for one without a name.
    pub fn set_zone(&self, zone: Option<&str>) {
        self.lock().zone = zone.map(str::to_owned);
    }

    /// Writes a file, with the directories that lead to it.
    pub fn set_file(&self, path: &str, content: impl Into<Vec<u8>>) {
        self.put(
            path,
            Entry::File {
                content: content.into(),
                executable: false,
            },
        );
    }

    /// Writes a file that can be executed.
    pub fn set_program(&self, path: &str, content: impl Into<Vec<u8>>) {
        self.put(
            path,
            Entry::File {
                content: content.into(),
                executable: true,
            },
        );
    }

    /// Makes a directory.
    pub fn set_directory(&self, path: &str) {
        self.put(path, Entry::Directory);
    }

    /// Makes a symbolic link.
    pub fn set_link(&self, path: &str, target: &str) {
        self.put(path, Entry::Link(target.to_owned()));
    }

    /// Removes a path and all below it.
    pub fn remove_file(&self, path: &str) {
        let path = normal(path);
        self.change(
            |state| {
                let below = format!("{path}/");
                state.files.retain(|p, _| *p != path && !p.starts_with(&below));
            },
            |watched| touches(watched, &path),
        );
    }

    fn put(&self, path: &str, entry: Entry) {
        let path = normal(path);
        self.change(
            |state| {
                let mut parent = path.as_str();
                while let Some((up, _)) = parent.rsplit_once('/') {
                    parent = up;
                    let directory = if up.is_empty() { "/" } else { up };
                    state
                        .files
                        .entry(directory.to_owned())
                        .or_insert(Entry::Directory);
                }
                if path != "/" {
                    state.files.insert(path.clone(), entry);
                }
            },
            |watched| touches(watched, &path),
        );
    }

    /// Paths of all regular files on the disk.
    #[must_use]
    pub fn file_paths(&self) -> Vec<String> {
        let state = self.lock();
        let files = state
            .files
            .iter()
            .filter(|(_, e)| matches!(e, Entry::File { .. }));
        files.map(|(path, _)| path.clone()).collect()
    }

    /// Sets or unsets an environment variable.
    pub fn set_environment(&self, name: &str, value: Option<&str>) {
        let mut state = self.lock();
        match value {
            Some(value) => state.environment.insert(name.to_owned(), value.to_owned()),
            None => state.environment.remove(name),
        };
    }

    /// Sets the process's arguments.
    pub fn set_arguments(&self, arguments: &[&str]) {
        self.lock().arguments = arguments.iter().map(|a| (*a).to_owned()).collect();
    }

    /// Sets the member's name.
    pub fn set_hostname(&self, name: &str) {
        name.clone_into(&mut self.lock().hostname);
    }

    /// Sets the machine's host name.
    pub fn set_system_hostname(&self, name: &str) {
        self.change(
            |state| name.clone_into(&mut state.system_hostname),
            |watched| *watched == Watched::Fact(HostFact::Hostname),
        );
    }

    /// Sets the load averages.
    pub fn set_load(&self, load: [f64; 3]) {
        self.lock().load = load;
    }

    /// Adds a user.
    pub fn set_user(&self, name: &str, id: u32, home: &str) {
        let mut state = self.lock();
        state.homes.insert(name.to_owned(), home.to_owned());
        state.user_ids.insert(name.to_owned(), id);
    }

    /// Sets whether firmware waits for a restart.
    pub fn set_firmware_reboot(&self, needed: bool) {
        self.change(
            |state| state.firmware_reboot = needed,
            |watched| *watched == Watched::Fact(HostFact::FirmwareReboot),
        );
    }

    /// Begins the random bytes anew from a seed.
    pub fn set_seed(&self, seed: u64) {
        self.lock().seed = seed;
    }

    /// Adds a file to the deploy; the path begins with `/`.
    pub fn set_deploy_file(&self, path: &str, content: impl Into<Vec<u8>>) {
        self.lock().deploy.insert(normal(path), content.into());
    }

    /// Sets whether the program was given as a plain file.
    pub fn set_plain_file(&self, plain: bool) {
        self.lock().plain_file = plain;
    }

    /// Lets a command print a line, now if it runs and at once when it is started otherwise.
    pub fn print_line(&self, command: &str, line: &str) {
        self.change(
            |state| {
                let lines = state.commands.entry(command.to_owned()).or_default();
                lines.push(line.as_bytes().to_vec());
            },
            |watched| *watched == Watched::Command(command.to_owned()),
        );
    }

    /// Lets a command end: `exit status 0`.
    pub fn end_command(&self, command: &str, exit: &str) {
        self.change(
            |state| {
                state.ended_commands.insert(command.to_owned(), exit.to_owned());
            },
            |watched| *watched == Watched::Command(command.to_owned()),
        );
    }

    /// Sets the network interfaces.
    pub fn set_interfaces(&self, interfaces: Vec<Interface>) {
        self.change(
            |state| state.interfaces = interfaces,
            |watched| *watched == Watched::Network,
        );
    }

    /// Sets or removes a string of the world.
    pub fn set_world_string(&self, key: &str, value: Option<&str>) {
        self.change(
            |state| {
                match value {
                    Some(value) => state.strings.insert(key.to_owned(), value.to_owned()),
                    None => state.strings.remove(key),
                };
            },
            |watched| *watched == Watched::World(WorldQuery::String(key.to_owned())),
        );
    }

    /// Sets or removes a host's string in a namespace of the world.
    pub fn set_world_string_of(&self, namespace: &str, host: &str, value: Option<&str>) {
        self.change(
            |state| {
                let strings = state.strings_by_host.entry(namespace.to_owned()).or_default();
                match value {
                    Some(value) => strings.insert(host.to_owned(), value.to_owned()),
                    None => strings.remove(host),
                };
            },
            |watched| *watched == Watched::World(WorldQuery::Strings(namespace.to_owned())),
        );
    }

    /// Sets the hosts chosen for a namespace.
    pub fn set_schedule(&self, namespace: &str, hosts: &[&str]) {
        self.change(
            |state| {
                let hosts = hosts.iter().map(|h| (*h).to_owned()).collect();
                state.schedules.insert(namespace.to_owned(), hosts);
            },
            |watched| *watched == Watched::World(WorldQuery::Schedule(namespace.to_owned())),
        );
    }

    /// Sets what is exported of a kind to this host.
    pub fn set_exports(&self, kind: &str, mut exports: Vec<Exported>) {
        exports.sort();
        self.change(
            |state| {
                state.exports.insert(kind.to_owned(), exports);
            },
            |watched| *watched == Watched::World(WorldQuery::Exports(kind.to_owned())),
        );
    }

    /// Sets the kinds that there are; before, every name is one.
    pub fn set_kinds(&self, kinds: &[&str]) {
        self.lock().kinds = Some(kinds.iter().map(|k| (*k).to_owned()).collect());
    }

    /// Sets or removes a named value of the host.
    pub fn set_value(&self, key: &str, value: Option<Value>) {
        self.change(
            |state| {
                match value {
                    Some(value) => state.values.insert(key.to_owned(), value),
                    None => state.values.remove(key),
                };
            },
            |watched| *watched == Watched::Value(key.to_owned()),
        );
    }

    /// Publishes an HTTP answer.
    pub fn set_response(&self, uid: &str, status: i64, body: impl Into<Vec<u8>>) {
        self.change(
            |state| {
                state.responses.insert(uid.to_owned(), (status, body.into()));
            },
            |watched| *watched == Watched::Response(uid.to_owned()),
        );
    }

    /// Sets an option of the provisioner.
    pub fn set_provisioner_option(&self, name: &str, value: Value) {
        self.lock().provisioner.insert(name.to_owned(), value);
    }
}

/// Ends a timer or a watch when it is dropped.
struct Guard {
    state: Arc<Mutex<MachineState>>,
    id: u64,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.timers.remove(&self.id);
        state.watches.remove(&self.id);
    }
}

impl MachineState {
    fn fresh(&mut self) -> u64 {
        self.next_watch += 1;
        self.next_watch
    }

    /// The path with links resolved, whether or not the last component exists.
    fn resolve(&self, path: &str) -> io::Result<String> {
        let mut left: Vec<String> = normal(path).split('/').rev().map(str::to_owned).collect();
        let mut done = String::new();
        let mut links = 0;
        while let Some(component) = left.pop() {
            if component.is_empty() {
                continue;
            }
            let next = format!("{done}/{component}");
            if let Some(Entry::Link(target)) = self.files.get(&next) {
                links += 1;
                if links > 40 {
                    return Err(io::Error::from_raw_os_error(40));
                }
                let target = if target.starts_with('/') {
                    target.clone()
                } else {
                    format!("{done}/{target}")
                };
                left.extend(normal(&target).split('/').rev().map(str::to_owned));
                done.clear();
            } else {
                done = next;
            }
        }
        Ok(if done.is_empty() { "/".to_owned() } else { done })
    }

    fn entry(&self, path: &str) -> io::Result<&Entry> {
        let resolved = self.resolve(path)?;
        self.files
            .get(&resolved)
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn random(&mut self) -> u64 {
        // SplitMix64: every seed gives another sequence, and it needs no warming up.
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// An absolute path without empty components, `.` and `..`, and without a trailing `/`.
fn normal(path: &str) -> String {
    let mut components: Vec<&str> = Vec::new();
    for component in path.split('/') {
        match component {
            "" | "." => {}
            ".." => {
                components.pop();
            }
            other => components.push(other),
        }
    }
    format!("/{}", components.join("/"))
}

/// Whether a change of `path` concerns a watch.
fn touches(watched: &Watched, path: &str) -> bool {
    let Watched::File(of, depth) = watched else {
        return false;
    };
    let below = |inner: &str, outer: &str| {
        outer == "/" || inner == outer || inner.strip_prefix(outer).is_some_and(|r| r.starts_with('/'))
    };
    below(of, path)
        || match depth {
            WatchDepth::Recursive => below(path, of),
            WatchDepth::Entry => path.rsplit_once('/').is_some_and(|(up, _)| {
                let up = if up.is_empty() { "/" } else { up };
                up == of
            }),
        }
}
