//! What the service manager is told, by sd_notify(3): that the machine's first graph is in place, that the program is being read again, how
//! things are in a line, that we are alive, and that we stop.
//!
//! The protocol is a datagram of `NAME=VALUE` lines. It is written here and not taken from a library because no datagram may ever be waited for, and
//! because nothing else of such a library is needed.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use setpoint_engine::{Engine, Event, EventKind, EventStream};
use setpoint_programs::failure::Failure;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::attachment::{AgentHandle, Attached, Attachment};
use crate::health::Health;
use crate::program_state::{ProgramState, Reloads};

/// How events are waited for after some have come: a line in a second is enough.
const BREATH: Duration = Duration::from_millis(200);

/// A service manager that wants to be told.
pub(crate) struct ServiceManager {
    socket: UnixDatagram,
    address: SocketAddr,
    /// How often it wants to hear that we are alive.
    watchdog: Option<Duration>,
    /// Whether nothing is ready before the first graph.
    needs_graph: bool,
}

impl Attachment for ServiceManager {
    /// Tells what there is to be told, until the engine has ended.
    fn start(self: Box<Self>, agent: &AgentHandle) -> Result<Attached, Failure> {
        // From now on, and not from when the task is first run: the first graph may be in place before that.
        let (events, reloads) = (agent.engine.events(), agent.state.follow_reloads());
        let telling = self.tell_all(agent.engine.clone(), agent.state.clone(), events, reloads);
        // The stop is announced even if the engine has stopped by the time that the task sees it.
        Ok(Attached::Finishes(agent.runtime.spawn(telling)))
    }
}

impl ServiceManager {
    /// The one that the environment names, if there is one and it can be reached. `needs_graph` says that there is a program, and that nothing
    /// is ready before its first graph.
    pub(crate) fn find(needs_graph: bool) -> Option<ServiceManager> {
        let path = std::env::var("NOTIFY_SOCKET").ok()?;
        let address = match path.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name).ok()?,
            None if path.starts_with('/') => SocketAddr::from_pathname(&path).ok()?,
            None => return None,
        };
        let socket = UnixDatagram::unbound().ok()?;
        socket.set_nonblocking(true).ok()?;
        Some(ServiceManager {
            socket,
            address,
            watchdog: watchdog(),
            needs_graph,
        })
    }

    /// Tells. That it does not hear is its own matter.
    fn tell(&self, lines: &str) {
        let _ = self.socket.send_to_addr(lines.as_bytes(), &self.address);
    }

    async fn tell_all(
        self: Box<Self>,
        engine: Engine,
        program: ProgramState,
        mut events: EventStream,
        mut reloads: watch::Receiver<Reloads>,
    ) {
        // Half of what it waits, as it asks for.
        let mut alive = self.watchdog.map(|period| {
            let mut ticks = interval(period / 2);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        });
        let mut is_ready = !self.needs_graph;
        if is_ready {
            self.tell("READY=1\nSTATUS=no program");
        }
        let (mut told, mut begun) = (String::new(), 0);
        loop {
            let tick = async {
                match &mut alive {
                    Some(ticks) => drop(ticks.tick().await),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                event = events.next() => {
                    let Some(event) = event else { break };
                    let mut stopping = self.take(&event, &mut is_ready);
                    while let Some(event) = events.try_next() {
                        stopping |= self.take(&event, &mut is_ready);
                    }
                    if !stopping && is_ready {
                        self.say_how_things_are(&engine, &program, &mut told).await;
                        sleep(BREATH).await;
                    }
                }
                () = tick => {
                    // Who owns the machine is asked: that this task goes on says nothing.
                    let patience = self.watchdog.unwrap_or_default() / 4;
                    if let Ok(Some(_)) = timeout(patience, engine.summary()).await {
                        self.tell("WATCHDOG=1");
                    }
                }
                Ok(()) = reloads.changed() => {
                    let now = *reloads.borrow_and_update();
                    if std::mem::replace(&mut begun, now.begun) != now.begun {
                        let at = monotonic();
                        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={at}\nSTATUS=reading the program again"));
                    }
                    if !now.is_under_way {
                        self.tell("READY=1");
                        told.clear();
                        self.say_how_things_are(&engine, &program, &mut told).await;
                    }
                }
            }
        }
    }

    /// Takes note of an event. Answers whether it is about the end.
    fn take(&self, event: &Event, is_ready: &mut bool) -> bool {
        match &event.what {
            EventKind::GraphSwapped { .. } if !*is_ready => {
                *is_ready = true;
                self.tell("READY=1");
                false
            }
            EventKind::Stopping { stage, waiting_for } => {
                let what = match (*stage, waiting_for.len()) {
                    (_, 0) => "stopping".to_owned(),
                    (1, count) => format!("stopping: waiting for {count} runs"),
                    (2, count) => format!("stopping: cancelling {count} runs"),
                    (_, count) => format!("stopping: killing {count} runs"),
                };
                self.tell(&format!("STOPPING=1\nSTATUS={what}"));
                true
            }
            _ => false,
        }
    }

    async fn say_how_things_are(&self, engine: &Engine, program: &ProgramState, told: &mut String) {
        let Some(summary) = engine.summary().await else {
            return;
        };
        let mut line = Health::of(summary.counts).line(summary.counts);
        if summary.paused.is_some() {
            line = format!("paused; {line}");
        }
        if program.get().wrong.is_some() {
            line = format!("the newest program is wrong and not in use; {line}");
        }
        if *told != line && summary.stopping.is_none() {
            self.tell(&format!("STATUS={line}"));
            *told = line;
        }
    }
}

/// How often it wants to hear from this process.
fn watchdog() -> Option<Duration> {
    let variable = |name: &str| std::env::var(name).ok();
    if variable("WATCHDOG_PID").is_some_and(|pid| pid != std::process::id().to_string()) {
        return None;
    }
    let microseconds: u64 = variable("WATCHDOG_USEC")?.parse().ok()?;
    (microseconds > 0).then(|| Duration::from_micros(microseconds))
}

/// The monotonic clock in microseconds: by it the service manager tells this announcement from older ones.
fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or_default();
    seconds
        .saturating_mul(1_000_000)
        .saturating_add(nanoseconds / 1000)
}
