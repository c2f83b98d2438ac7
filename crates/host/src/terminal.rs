//! Asking somebody at the terminal, one question at a time in the whole process.
//!
//! What is typed is not shown where it is a secret. The terminal is as it was when the question is over, however it ends: answered, given up, or
//! with the process, whose tasks are dropped. Keys that would end or stop the process past that do nothing meanwhile.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The longest answer. The kernel takes no longer line.
const LONGEST: usize = 4096;

/// Whoever asks holds it.
static QUESTION: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Why there is no answer. The texts stand after a colon.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoAnswer {
    /// Nobody could be asked.
    #[error("there is no terminal at which somebody could be asked for the password")]
    NoTerminal,
    /// The terminal is somebody else's now.
    #[error("this process is in the background of its terminal, where nobody can be asked for the password")]
    Background,
    /// Nobody answered.
    #[error("nobody has entered a password in {} s", .0.as_secs())]
    Late(Duration),
    /// Whoever was asked did not want to.
    #[error("no password was entered")]
    Nothing,
    /// The terminal is of no use.
    #[error("the terminal cannot be used to ask for the password: {0}")]
    Unusable(String),
}

/// Asks, and waits for a line. With `is_secret` nobody sees what is typed.
pub(crate) async fn ask(
    question: &str,
    is_secret: bool,
    limit: Option<Duration>,
) -> Result<String, NoAnswer> {
    let _turn = QUESTION.lock().await;
    let mut options = File::options();
    options.read(true).write(true);
    // It must not become ours by being opened, and nobody waits for it but by its events.
    options.custom_flags(
        (OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC)
            .bits()
            .cast_signed(),
    );
    let terminal = options.open("/dev/tty").map_err(|_| NoAnswer::NoTerminal)?;
    if tcgetpgrp(&terminal).ok() != Some(rustix::process::getpgrp()) {
        return Err(NoAnswer::Background);
    }
    let terminal = followed(terminal).map_err(unusable)?;
    let asking = async {
        let _quiet = Quiet::begin(terminal.get_ref(), is_secret)?;
        write(&terminal, question.as_bytes()).await?;
        let line = read_line(&terminal).await;
        if is_secret {
            // The line feed that was typed was not shown either.
            write(&terminal, b"\n").await?;
        }
        line
    };
    match limit {
        None => asking.await,
        Some(limit) => match tokio::time::timeout(limit, asking).await {
            Ok(answer) => answer,
            Err(_) => {
                let _ = tokio::time::timeout(Duration::from_secs(1), write(&terminal, b"\n")).await;
                Err(NoAnswer::Late(limit))
            }
        },
    }
}

#[expect(
    deprecated,
    reason = "its replacement is for what may lie about its descriptor, and unsafe; a file keeps its own while it lives"
)]
fn followed(terminal: File) -> io::Result<AsyncFd<File>> {
    AsyncFd::with_interest(terminal, Interest::READABLE | Interest::WRITABLE)
}

fn unusable(error: io::Error) -> NoAnswer {
    let text = error.to_string();
    let end = text.rfind(" (os error ").unwrap_or(text.len());
    NoAnswer::Unusable(text[..end].to_owned())
}

async fn write(terminal: &AsyncFd<File>, bytes: &[u8]) -> Result<(), NoAnswer> {
    let mut left = bytes;
    while !left.is_empty() {
        let mut ready = terminal.writable().await.map_err(unusable)?;
        match ready.try_io(|terminal| Ok(rustix::io::write(terminal.get_ref(), left)?)) {
            Ok(Ok(written)) => left = &left[written..],
            Ok(Err(error)) => return Err(unusable(error)),
            Err(_) => {}
        }
    }
    Ok(())
}

async fn read_line(terminal: &AsyncFd<File>) -> Result<String, NoAnswer> {
    let mut line = Vec::new();
    let mut buffer = [0; 256];
    loop {
        let mut ready = terminal.readable().await.map_err(unusable)?;
        match ready.try_io(|terminal| Ok(rustix::io::read(terminal.get_ref(), &mut buffer)?)) {
            Ok(Ok(0)) => break,
            Ok(Ok(count)) => line.extend_from_slice(&buffer[..count]),
            Ok(Err(error)) => return Err(unusable(error)),
            Err(_) => continue,
        }
        if line.ends_with(b"\n") || line.len() > LONGEST {
            break;
        }
    }
    let line =
        String::from_utf8(line).map_err(|_| NoAnswer::Unusable("what was entered is no text".to_owned()))?;
    match line.trim_end_matches(['\n', '\r']) {
        "" => Err(NoAnswer::Nothing),
        line => Ok(line.to_owned()),
    }
}

/// A terminal that shows nothing of what is typed, until this is dropped.
struct Quiet {
    terminal: File,
    was: Termios,
}

impl Quiet {
    fn begin(terminal: &File, is_secret: bool) -> Result<Quiet, NoAnswer> {
        let refused = |error: rustix::io::Errno| unusable(error.into());
        let was = tcgetattr(terminal).map_err(refused)?;
        let quiet = Quiet {
            terminal: terminal.try_clone().map_err(unusable)?,
            was: was.clone(),
        };
        let mut wanted = was;
        wanted.local_modes |= LocalModes::ICANON;
        if is_secret {
            wanted.local_modes -= LocalModes::ECHO;
        }
        // These would leave the terminal as it is now. Ctrl-C is heard by the process as usual.
        wanted.special_codes[SpecialCodeIndex::VQUIT] = 0;
        wanted.special_codes[SpecialCodeIndex::VSUSP] = 0;
        // What was typed before the question is no answer to it.
        tcsetattr(terminal, OptionalActions::Flush, &wanted).map_err(refused)?;
        Ok(quiet)
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.was);
    }
}
