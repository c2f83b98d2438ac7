//! Signals, as requests to a run.

use std::io::IsTerminal;

use setpoint_programs::failure::Failure;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A signal that ends a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// Ctrl-C.
    Interrupt,
    /// From a service manager, or `kill`.
    Terminate,
    /// The terminal went away.
    Hangup,
}

impl StopSignal {
    /// Its name, as a person knows it.
    pub fn name(self) -> &'static str {
        match self {
            StopSignal::Interrupt => "Ctrl-C",
            StopSignal::Terminate => "SIGTERM",
            StopSignal::Hangup => "SIGHUP, because the terminal is gone",
        }
    }

    /// Its number.
    pub fn number(self) -> u8 {
        match self {
            StopSignal::Interrupt => 2,
            StopSignal::Terminate => 15,
            StopSignal::Hangup => 1,
        }
    }

    /// Whether whoever sent it sends it once and then waits, so that further stages of stopping must follow by themselves.
    pub fn comes_once(self) -> bool {
        self != StopSignal::Interrupt
    }
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// To end, or to end faster.
    Stop(StopSignal),
    /// To read the program again.
    Reload,
    /// To look at all resources now.
    Look,
}

/// The signals of this process, from when it is made on.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    look: Signal,
    /// None where whoever started us wants us to survive the terminal (`nohup`).
    hangup: Option<Signal>,
    has_terminal: bool,
}

/// SIGHUP, from when it is made on.
pub struct Hangup(Option<Signal>);

impl Hangup {
    /// Takes the signal; within a runtime.
    pub fn take() -> Result<Hangup, Failure> {
        Ok(Hangup(if ignores_hangup() {
            None
        } else {
            Some(take(SignalKind::hangup())?)
        }))
    }
}

fn take(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|error| Failure::io("listen for signals", &error))
}

impl Signals {
    /// Takes the others too; within a runtime.
    pub fn take(hangup: Hangup) -> Result<Signals, Failure> {
        Ok(Signals {
            interrupt: take(SignalKind::interrupt())?,
            terminate: take(SignalKind::terminate())?,
            look: take(SignalKind::user_defined1())?,
            hangup: hangup.0,
            // Asked now: of a terminal that is gone nobody can say any more that it was one.
            has_terminal: std::io::stdin().is_terminal()
                || std::io::stdout().is_terminal()
                || std::io::stderr().is_terminal(),
        })
    }

    /// The next request.
    pub async fn next(&mut self) -> Request {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Request::Stop(StopSignal::Interrupt),
            _ = self.terminate.recv() => Request::Stop(StopSignal::Terminate),
            _ = self.look.recv() => Request::Look,
            _ = hangup => match self.has_terminal {
                true => Request::Stop(StopSignal::Hangup),
                false => Request::Reload,
            },
        }
    }
}

/// Whether SIGHUP is ignored already. The kernel says so in the set `SigIgn`, with the first signal in the lowest bit.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.is_some_and(|set| u64::from_str_radix(set.trim(), 16).is_ok_and(|set| set & 1 == 1))
}
