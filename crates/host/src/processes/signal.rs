//! Signals by name.

use std::fmt;

/// A signal that can be sent to a process group.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signal(rustix::process::Signal);

/// A name that is no signal's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is no signal")]
pub struct UnknownSignal {
    /// What was given.
    pub given: String,
    /// What was probably meant, where case and prefix are all that is wrong.
    pub suggestion: Option<&'static str>,
}

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

    /// A signal by its exact name, upper case and with `SIG` before it.
    pub fn parse(name: &str) -> Result<Self, UnknownSignal> {
        if let Some((_, signal)) = NAMES.iter().find(|(known, _)| *known == name) {
            return Ok(Self(*signal));
        }
        let upper = name.trim().to_ascii_uppercase();
        let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
        let suggestion = NAMES
            .iter()
            .map(|(known, _)| *known)
            .find(|known| &known[3..] == bare);
        Err(UnknownSignal {
            given: name.to_owned(),
            suggestion,
        })
    }

    /// All names, for suggestions and completion.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
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
