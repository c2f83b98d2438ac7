//! Signals by name.

use std::fmt;

/// A signal that can be sent to a process group.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signal(rustix::process::Signal);

/// Every name of `signal(7)` on Linux; of two names for one number the first is printed.
const NAMES: &[(&str, rustix::process::Signal)] = {
    use rustix::process::Signal;
    &[
        ("SIGHUP", Signal::HUP),
        ("SIGINT", Signal::INT),
        ("SIGQUIT", Signal::QUIT),
        ("SIGILL", Signal::ILL),
        ("SIGTRAP", Signal::TRAP),
        ("SIGABRT", Signal::ABORT),
        ("SIGIOT", Signal::ABORT),
        ("SIGBUS", Signal::BUS),
        ("SIGFPE", Signal::FPE),
        ("SIGKILL", Signal::KILL),
        ("SIGUSR1", Signal::USR1),
        ("SIGSEGV", Signal::SEGV),
        ("SIGUSR2", Signal::USR2),
        ("SIGPIPE", Signal::PIPE),
        ("SIGALRM", Signal::ALARM),
        ("SIGTERM", Signal::TERM),
        ("SIGCHLD", Signal::CHILD),
        ("SIGCLD", Signal::CHILD),
        ("SIGCONT", Signal::CONT),
        ("SIGSTOP", Signal::STOP),
        ("SIGTSTP", Signal::TSTP),
        ("SIGTTIN", Signal::TTIN),
        ("SIGTTOU", Signal::TTOU),
        ("SIGURG", Signal::URG),
        ("SIGXCPU", Signal::XCPU),
        ("SIGXFSZ", Signal::XFSZ),
        ("SIGVTALRM", Signal::VTALARM),
        ("SIGPROF", Signal::PROF),
        ("SIGWINCH", Signal::WINCH),
        ("SIGIO", Signal::IO),
        ("SIGPOLL", Signal::IO),
        ("SIGPWR", Signal::POWER),
        ("SIGSYS", Signal::SYS),
    ]
};

impl Signal {
    /// The polite request to end.
    pub const TERM: Self = Self(rustix::process::Signal::TERM);
    /// What no process can ignore.
    pub const KILL: Self = Self(rustix::process::Signal::KILL);

    /// All names with their signals.
    pub fn all() -> impl Iterator<Item = (&'static str, Signal)> {
        NAMES.iter().map(|(name, signal)| (*name, Self(*signal)))
    }

    /// The name of a signal's number.
    pub fn name_of(number: i32) -> Option<&'static str> {
        NAMES
            .iter()
            .find(|(_, signal)| signal.as_raw() == number)
            .map(|(name, _)| *name)
    }

    pub(super) fn raw(self) -> rustix::process::Signal {
        self.0
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(Self::name_of(self.0.as_raw()).unwrap_or("signal"))
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
