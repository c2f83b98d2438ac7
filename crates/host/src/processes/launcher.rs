//! Starting a command through a launcher: a program of ours that becomes the command.
//!
//! Some things about a new process only the process itself can arrange: a session of its own, the end of descriptors that it
//! was not meant to inherit, the signal that it gets when we die, other rights. Code between fork and exec of a process with
//! threads would be `unsafe`; so the new process is our own program, started anew under the name [`NAME`]. It has one thread and
//! nothing of ours in memory, is told on its standard input what to do, does it, and becomes the command under the same
//! process number.
//!
//! Its own environment is empty: a library that `env` names for the command must not be loaded while it still has our rights.

use super::launch::{Launch, LaunchFailure, Step};
use super::limits::Capability;
use super::program::{self, ProgramError};
use rustix::io::Errno;
use rustix::process::{Pid, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setrlimit, setsid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, Gid, Uid, configure_capability_in_ambient_set,
    disable_transparent_huge_pages, remove_capability_from_bounding_set, set_capabilities,
    set_keep_capabilities, set_no_new_privs, set_thread_gid, set_thread_groups, set_thread_uid,
};
use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2,
};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;

/// The name under which our program knows that it is a launcher.
pub(super) const NAME: &str = "setpoint-launcher";

/// What a launcher is to do: to become a command. A program that is no launcher refuses this argument, which matters where a test
/// is one by mistake.
pub(super) const DUTY: &str = "--become-command";

/// The program that becomes each command.
#[derive(Debug, Clone)]
pub struct Launcher {
    program: PathBuf,
}

impl Launcher {
    /// The running program itself, which calls [`Launcher::main`] before anything else. It is found also after its file was
    /// replaced by a newer version.
    #[must_use]
    pub fn own_program() -> Launcher {
        Launcher {
            program: PathBuf::from("/proc/self/exe"),
        }
    }

    /// Another program that calls [`Launcher::main`].
    pub fn program(path: impl Into<PathBuf>) -> Launcher {
        Launcher { program: path.into() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.program
    }

    /// If the process was started as a launcher: becomes the command, or answers with which code to exit. Nothing if it was
    /// not. To be called while there is only one thread.
    pub fn main(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
        let mut arguments = arguments.into_iter();
        if arguments.next()? != NAME {
            return None;
        }
        Some(match arguments.next() {
            Some(duty) if duty == super::guardian::DUTY => super::guardian::main(),
            Some(duty) if duty == DUTY => launch(),
            _ => ExitCode::FAILURE,
        })
    }
}

fn launch() -> ExitCode {
    // Until it becomes the command, lists of processes would show the name `exe`.
    let _ = rustix::thread::set_name(c"setpoint-launch");
    let Ok((mut connection, launch)) = isolate() else {
        return ExitCode::FAILURE;
    };
    let failure = become_command(&launch);
    if let Ok(answer) = postcard::to_allocvec(&failure) {
        // Whoever waits for it may have gone.
        let _ = connection.write_all(&answer);
    }
    ExitCode::FAILURE
}

/// Leaves what is ours but for the connection, and reads what to do.
fn isolate() -> Result<(UnixStream, Launch), std::io::Error> {
    setsid()?;
    restore_signals()?;
    close_inherited()?;
    let connection = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let null = rustix::fs::open(
        "/dev/null",
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?;
    rustix::stdio::dup2_stdin(null)?;
    // What suits our own memory says nothing about the command's. Where it cannot be changed it was not.
    let _ = disable_transparent_huge_pages(false);
    let mut connection = UnixStream::from(connection);
    let mut told = Vec::new();
    connection.read_to_end(&mut told)?;
    Ok((
        connection,
        postcard::from_bytes(&told).map_err(std::io::Error::other)?,
    ))
}

/// Restores the default action of signals that a shell ignores in what it starts with `nohup` or in the background. A command inherits
/// an ignored signal, but exec turns a handler into the default action.
fn restore_signals() -> std::io::Result<()> {
    for signal in [
        SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD, SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU,
    ] {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    Ok(())
}

/// Closes every descriptor but the three standard ones: our own are closed by exec, but not those that we inherited.
pub(super) fn close_inherited() -> std::io::Result<()> {
    let mut open = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let name = entry?.file_name();
        open.extend(name.to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        // The one that the directory was read through is closed already.
        let _ = nix::unistd::close(descriptor);
    }
    Ok(())
}

/// Answers only when it could not.
fn become_command(launch: &Launch) -> LaunchFailure {
    match prepare(launch) {
        Ok(program) => {
            let mut command = Command::new(&program);
            command.arg0(&launch.program).args(&launch.arguments);
            command.env_clear().envs(&launch.environment);
            let error = command.exec();
            let error = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
            let step = Step::Start(program.into_os_string());
            LaunchFailure { step, error }
        }
        Err(failure) => failure,
    }
}

fn prepare(launch: &Launch) -> Result<PathBuf, LaunchFailure> {
    let failed = |step: Step| {
        move |error: Errno| LaunchFailure {
            step,
            error: error.raw_os_error(),
        }
    };
    let program = find(launch)?;
    for (limit, most) in &launch.limits {
        let resource = limit.resource();
        let maximum = match getrlimit(resource).maximum {
            Some(maximum) => maximum.min(*most),
            None => *most,
        };
        let wanted = Rlimit {
            current: Some(maximum),
            maximum: Some(maximum),
        };
        setrlimit(resource, wanted).map_err(failed(Step::Limit(*limit)))?;
    }
    let kept = launch.capabilities.as_deref().map(|list| {
        let sets = list.iter().copied().map(Capability::set);
        sets.fold(CapabilitySet::empty(), CapabilitySet::union)
    });
    if let Some(kept) = kept {
        bound(kept).map_err(failed(Step::Capabilities))?;
    }
    if let Some(credentials) = &launch.credentials {
        let set = || {
            set_keep_capabilities(kept.is_some())?;
            let groups: Vec<Gid> = credentials.groups.iter().copied().map(Gid::from_raw).collect();
            set_thread_groups(&groups)?;
            set_thread_gid(Gid::from_raw(credentials.group))?;
            set_thread_uid(Uid::from_raw(credentials.user))?;
            // Nothing that a set-id program could give back: whoever gave rights up does so for good.
            set_no_new_privs(true)
        };
        set().map_err(failed(Step::Credentials))?;
    }
    if let Some(kept) = kept {
        keep(kept).map_err(failed(Step::Capabilities))?;
    }
    // After the change of rights, which takes it back.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed(Step::Isolate))?;
    if rustix::process::getppid().map(Pid::as_raw_nonzero)
        != Pid::from_raw(launch.parent).map(Pid::as_raw_nonzero)
    {
        // It came too late: we are orphaned already.
        return Err(failed(Step::Isolate)(Errno::SRCH));
    }
    if let Some(directory) = &launch.directory {
        rustix::process::chdir(directory).map_err(failed(Step::Directory))?;
    }
    Ok(program)
}

fn find(launch: &Launch) -> Result<PathBuf, LaunchFailure> {
    let directory = launch.directory.as_deref().map(Path::new);
    program::find(&launch.program, directory, &launch.search_path).map_err(|error| LaunchFailure {
        step: match error {
            ProgramError::NotFound { .. } => Step::Find,
            ProgramError::RelativeEntry { entry, .. } => Step::FindInRelative(entry.into_os_string()),
        },
        error: Errno::NOENT.raw_os_error(),
    })
}

/// Takes away for good what is not in `kept`, also from what the command starts.
fn bound(kept: CapabilitySet) -> rustix::io::Result<()> {
    let others = (0..u64::BITS).map(|number| CapabilitySet::from_bits_retain(1 << number));
    for other in others.filter(|one| !kept.contains(*one)) {
        match remove_capability_from_bounding_set(other) {
            // There is none of this number in this kernel.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Holds what is in `kept` and no more, over the start of a program too.
fn keep(kept: CapabilitySet) -> rustix::io::Result<()> {
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: kept,
    };
    set_capabilities(None, sets)?;
    for one in kept.iter() {
        configure_capability_in_ambient_set(one, true)?;
    }
    Ok(())
}
