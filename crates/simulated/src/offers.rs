//! What a simulated machine offers to sources.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::{Entry, SimulatedCapabilities, Watched, normal};
use setpoint_value::{
    Background, Capabilities, Clock, Commands, Deploy, Effects, FileWatch, Files, FollowedFile, FunctionLog,
    HostFact, HostFacts, HttpResponses, Interface, Network, Random, RunningCommand, Timer, Value, Values,
    Wake, WatchDepth, WorldAnswer, WorldFeed, WorldQuery, WorldReader,
};

impl Capabilities for SimulatedCapabilities {
    fn background(&self) -> &dyn Background {
        &self.background
    }

    fn log(&self) -> Option<&dyn FunctionLog> {
        self.log.as_ref().map(|log| log as &dyn FunctionLog)
    }

    fn clock(&self) -> &dyn Clock {
        self
    }

    fn files(&self) -> &dyn Files {
        self
    }

    fn host(&self) -> &dyn HostFacts {
        self
    }

    fn random(&self) -> &dyn Random {
        self
    }

    fn deploy(&self) -> &dyn Deploy {
        self
    }

    fn effects(&self) -> Option<&dyn Effects> {
        self.effects.then_some(self as &dyn Effects)
    }

    fn commands(&self) -> Option<&dyn Commands> {
        self.effects.then_some(self as &dyn Commands)
    }

    fn network(&self) -> Option<&dyn Network> {
        Some(self)
    }

    fn world(&self) -> Option<&dyn WorldReader> {
        Some(self)
    }

    fn values(&self) -> Option<&dyn Values> {
        Some(self)
    }

    fn http_responses(&self) -> Option<&dyn HttpResponses> {
        Some(self)
    }

    fn provisioner_option(&self, name: &str) -> Option<Value> {
        self.lock().provisioner.get(name).cloned()
    }
}

impl Clock for SimulatedCapabilities {
    fn now(&self) -> Duration {
        self.lock().now
    }

    fn every(&self, period: Duration, wake: Wake) -> Timer {
        let period = period.max(Duration::from_nanos(1));
        self.start_timer(period, Some(period), wake)
    }

    fn after(&self, delay: Duration, wake: Wake) -> Timer {
        self.start_timer(delay, None, wake)
    }

    fn zone(&self) -> Option<String> {
        self.lock().zone.clone()
    }
}

impl Files for SimulatedCapabilities {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        match self.lock().entry(path)? {
            Entry::File { content, .. } => Ok(content.clone()),
            Entry::Directory | Entry::Link(_) => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a directory"))
            }
        }
    }

    fn follow(&self, path: &str, wake: Wake) -> Box<dyn FollowedFile> {
        let is_new = Arc::new(AtomicBool::new(true));
        let changed = is_new.clone();
        let wake = Wake::new(move || {
            changed.store(true, Ordering::SeqCst);
            wake.wake();
        });
        Box::new(Followed {
            machine: self.clone(),
            path: path.to_owned(),
            is_new,
            _watch: self.watch_for(Watched::File(normal(path), WatchDepth::Entry), wake),
        })
    }

    fn exists(&self, path: &str) -> bool {
        self.lock().entry(path).is_ok()
    }

    fn is_executable(&self, path: &str) -> bool {
        matches!(self.lock().entry(path), Ok(Entry::File { executable: true, .. }))
    }

    fn read_link(&self, path: &str) -> io::Result<String> {
        match self.lock().files.get(&normal(path)) {
            Some(Entry::Link(target)) => Ok(target.clone()),
            Some(_) => Err(io::Error::from(io::ErrorKind::InvalidInput)),
            None => Err(io::Error::from(io::ErrorKind::NotFound)),
        }
    }

    fn canonical(&self, path: &str) -> io::Result<String> {
        let state = self.lock();
        state.entry(path)?;
        state.resolve(path)
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let state = self.lock();
        if !matches!(state.entry(path)?, Entry::Directory) {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        let resolved = state.resolve(path)?;
        let below = if resolved == "/" {
            resolved
        } else {
            format!("{resolved}/")
        };
        let names = state.files.keys().filter_map(|p| p.strip_prefix(&below));
        Ok(names
            .filter(|rest| !rest.is_empty() && !rest.contains('/'))
            .map(str::to_owned)
            .collect())
    }

    fn watch(&self, path: &str, depth: WatchDepth, wake: Wake) -> io::Result<FileWatch> {
        Ok(self.watch_for(Watched::File(normal(path), depth), wake))
    }
}

/// A file of a simulated machine, which is always settled.
struct Followed {
    machine: SimulatedCapabilities,
    path: String,
    is_new: Arc<AtomicBool>,
    _watch: Timer,
}

impl FollowedFile for Followed {
    fn take(&mut self) -> Option<io::Result<Vec<u8>>> {
        let is_new = self.is_new.swap(false, Ordering::SeqCst);
        is_new.then(|| match self.path.starts_with('/') {
            true => Files::read(&self.machine, &self.path),
            false => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the path is not absolute",
            )),
        })
    }
}

impl HostFacts for SimulatedCapabilities {
    fn hostname(&self) -> String {
        self.lock().hostname.clone()
    }

    fn system_hostname(&self) -> String {
        self.lock().system_hostname.clone()
    }

    fn environment(&self) -> BTreeMap<String, String> {
        self.lock().environment.clone()
    }

    fn arguments(&self) -> Vec<String> {
        self.lock().arguments.clone()
    }

    fn executable(&self) -> Option<String> {
        Some("/usr/bin/setpoint".to_owned())
    }

    fn working_directory(&self) -> Option<String> {
        Some("/root".to_owned())
    }

    fn load(&self) -> Option<[f64; 3]> {
        Some(self.lock().load)
    }

    fn uptime(&self) -> Option<Duration> {
        let state = self.lock();
        Some(state.now.saturating_sub(state.booted))
    }

    fn home(&self, user: &str) -> Option<String> {
        self.lock().homes.get(user).cloned()
    }

    fn user_id(&self, user: &str) -> Option<u32> {
        self.lock().user_ids.get(user).copied()
    }

    fn ids(&self) -> [u32; 4] {
        [0; 4]
    }

    fn process_ids(&self) -> [u32; 2] {
        [100, 1]
    }

    fn page_size(&self) -> usize {
        4096
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn firmware_reboot_needed(&self) -> bool {
        self.lock().firmware_reboot
    }

    fn watch(&self, fact: HostFact, wake: Wake) -> Option<Timer> {
        Some(self.watch_for(Watched::Fact(fact), wake))
    }
}

impl Random for SimulatedCapabilities {
    fn fill(&self, buffer: &mut [u8]) {
        let mut state = self.lock();
        for chunk in buffer.chunks_mut(8) {
            let bytes = state.random().to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}

impl Deploy for SimulatedCapabilities {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let state = self.lock();
        let content = state.deploy.get(&normal(path)).cloned();
        content.ok_or_else(|| "no such file".to_owned())
    }

    fn exists(&self, path: &str) -> bool {
        self.lock().deploy.contains_key(&normal(path))
    }

    fn list(&self, directory: &str) -> Vec<String> {
        let below = match normal(directory) {
            root if root == "/" => root,
            other => format!("{other}/"),
        };
        let state = self.lock();
        let paths = state.deploy.keys().filter(|p| p.starts_with(&below));
        paths.cloned().collect()
    }

    fn is_plain_file(&self) -> bool {
        self.lock().plain_file
    }

    fn state_directory(&self) -> String {
        "/var/lib/setpoint/local/".to_owned()
    }
}

impl Commands for SimulatedCapabilities {
    fn run_shell(&self, command: &str, wake: Wake) -> Box<dyn RunningCommand> {
        Box::new(SimulatedCommand::start(self, command, wake))
    }
}

impl Effects for SimulatedCapabilities {
    fn create_directory(&self, path: &str, _mode: u32) -> io::Result<()> {
        if !Files::exists(self, path) {
            self.put(path, Entry::Directory);
        }
        Ok(())
    }

    fn write_file(&self, path: &str, content: &[u8], mode: u32) -> io::Result<()> {
        self.put(
            path,
            Entry::File {
                content: content.to_vec(),
                executable: mode & 0o111 != 0,
            },
        );
        Ok(())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        if !self.lock().files.contains_key(&normal(path)) {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        self.remove_file(path);
        Ok(())
    }

    fn create_new(&self, path: &str, content: &[u8]) -> io::Result<()> {
        if self.lock().files.contains_key(&normal(path)) {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        self.set_file(path, content);
        Ok(())
    }
}

struct SimulatedCommand {
    machine: SimulatedCapabilities,
    command: String,
    wake: Wake,
    seen: usize,
    _watch: Timer,
}

impl SimulatedCommand {
    fn start(machine: &SimulatedCapabilities, command: &str, wake: Wake) -> SimulatedCommand {
        let watch = machine.watch_for(Watched::Command(command.to_owned()), wake.clone());
        if machine.lock().commands.contains_key(command) {
            wake.wake();
        }
        SimulatedCommand {
            machine: machine.clone(),
            command: command.to_owned(),
            wake,
            seen: 0,
            _watch: watch,
        }
    }
}

impl RunningCommand for SimulatedCommand {
    fn lines(&mut self) -> io::Result<(Vec<Vec<u8>>, Option<String>)> {
        let state = self.machine.lock();
        let all = state
            .commands
            .get(&self.command)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let new = all.get(self.seen..).unwrap_or_default().to_vec();
        self.seen = all.len();
        Ok((new, state.ended_commands.get(&self.command).cloned()))
    }

    fn replace(&mut self, command: &str) {
        *self = SimulatedCommand::start(&self.machine, command, self.wake.clone());
    }
}

impl Network for SimulatedCapabilities {
    fn interfaces(&self) -> io::Result<Vec<Interface>> {
        Ok(self.lock().interfaces.clone())
    }

    fn watch(&self, wake: Wake) -> io::Result<Timer> {
        Ok(self.watch_for(Watched::Network, wake))
    }
}

impl WorldReader for SimulatedCapabilities {
    fn follow(&self, query: &WorldQuery, wake: Wake) -> Box<dyn WorldFeed> {
        let watch = self.watch_for(Watched::World(query.clone()), wake);
        Box::new(SimulatedFeed {
            machine: self.clone(),
            query: query.clone(),
            _watch: watch,
        })
    }

    fn knows_kind(&self, kind: &str) -> bool {
        self.lock()
            .kinds
            .as_ref()
            .is_none_or(|kinds| kinds.contains(kind))
    }
}

struct SimulatedFeed {
    machine: SimulatedCapabilities,
    query: WorldQuery,
    _watch: Timer,
}

impl WorldFeed for SimulatedFeed {
    fn latest(&mut self) -> Option<Result<WorldAnswer, String>> {
        let state = self.machine.lock();
        Some(Ok(match &self.query {
            WorldQuery::String(key) => WorldAnswer::String(state.strings.get(key).cloned().map(Into::into)),
            WorldQuery::Strings(namespace) => {
                let strings = state.strings_by_host.get(namespace).cloned().unwrap_or_default();
                let strings = strings.into_iter().map(|(host, text)| (host, text.into()));
                WorldAnswer::Strings(strings.collect())
            }
            WorldQuery::Schedule(namespace) => {
                WorldAnswer::Hosts(state.schedules.get(namespace).cloned().unwrap_or_default())
            }
            WorldQuery::Exports(kind) => {
                WorldAnswer::Exports(state.exports.get(kind).cloned().unwrap_or_default())
            }
        }))
    }
}

impl Values for SimulatedCapabilities {
    fn get(&self, key: &str) -> Option<Value> {
        self.lock().values.get(key).cloned()
    }

    fn watch(&self, key: &str, wake: Wake) -> Timer {
        self.watch_for(Watched::Value(key.to_owned()), wake)
    }
}

impl HttpResponses for SimulatedCapabilities {
    fn get(&self, uid: &str) -> Result<Option<(i64, Vec<u8>)>, String> {
        Ok(self.lock().responses.get(uid).cloned())
    }

    fn watch(&self, uid: &str, wake: Wake) -> Timer {
        self.watch_for(Watched::Response(uid.to_owned()), wake)
    }
}
