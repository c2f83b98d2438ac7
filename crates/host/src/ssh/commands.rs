//! Commands on the other host: what they read, what they print as far as that is kept, and how they end.

use std::fmt;
use std::fs::File;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use russh::client::Msg;
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf};

use super::{SshConnection, SshError, refused};

/// How much is kept of what a command prints: the beginning of its output, the end of its errors.
const KEPT_OUTPUT: usize = 1 << 20;
const KEPT_ERRORS: usize = 16 << 10;

/// What SSH calls the stream of errors.
const ERRORS: u32 = 1;

/// A command, and what holds for it.
#[derive(Debug)]
pub struct RemoteCommand {
    /// What the user's shell there is given; see [`quoted`].
    pub line: String,
    /// What it reads.
    pub input: RemoteInput,
    /// How long it may take.
    pub limit: Duration,
}

/// What a command reads.
#[derive(Debug)]
pub enum RemoteInput {
    /// Nothing.
    Nothing,
    /// These bytes.
    Bytes(Vec<u8>),
    /// A file, from where it stands to its end.
    File(File),
}

/// What came of a command.
#[derive(Debug)]
pub struct RemoteOutput {
    /// How it ended.
    pub exit: RemoteExit,
    /// The first megabyte that it printed.
    pub output: Vec<u8>,
    /// The last of what it printed as errors.
    pub errors: Vec<u8>,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteExit {
    /// With this status.
    Code(u32),
    /// By a signal, which is named without `SIG`.
    Signal(String),
    /// The server did not say.
    Unknown,
}

impl RemoteExit {
    /// Whether all is well.
    #[must_use]
    pub fn is_success(&self) -> bool {
        *self == RemoteExit::Code(0)
    }
}

/// Says it after «it».
impl fmt::Display for RemoteExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RemoteExit::Code(code) => write!(f, "ended with status {code}"),
            RemoteExit::Signal(name) => write!(f, "was ended by SIG{name}"),
            RemoteExit::Unknown => f.write_str("ended, and the server does not say how"),
        }
    }
}

/// A word as shells take it for one word, whatever is in it. Backslashes and exclamation marks stand outside of quotes, where all shells agree on them.
#[must_use]
pub fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:,@%+=".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let mut quoted = String::with_capacity(word.len() + 2);
    quoted.push('\'');
    for letter in word.chars() {
        if matches!(letter, '\'' | '\\' | '!') {
            quoted.push_str("'\\");
            quoted.push(letter);
            quoted.push('\'');
        } else {
            quoted.push(letter);
        }
    }
    quoted.push('\'');
    quoted
}

impl SshConnection {
    /// Runs a command on the other host, and waits for its end. Whoever gives up waiting closes what goes to and comes from it; the command itself may go on.
    ///
    /// # Errors
    /// When it cannot be run, takes too long, or the connection ends. That it fails is no error.
    pub async fn run(&self, command: RemoteCommand) -> Result<RemoteOutput, SshError> {
        let limit = command.limit;
        let ran = tokio::time::timeout(limit, self.converse(command)).await;
        ran.unwrap_or_else(|_| {
            Err(self.runs_nothing(format!("there was no end of it in {} s", limit.as_secs())))
        })
    }

    async fn converse(&self, command: RemoteCommand) -> Result<RemoteOutput, SshError> {
        let channel = match self.handle.channel_open_session().await {
            Ok(channel) => channel,
            Err(russh::Error::ChannelOpenFailure(failure)) => {
                return Err(self.runs_nothing(refused(&failure)));
            }
            Err(error) => return Err(self.has_ended(&error)),
        };
        let (mut from, to) = channel.split();
        let to = Closing(Arc::new(to));
        let begun = to.0.exec(true, command.line).await;
        begun.map_err(|error| self.has_ended(&error))?;
        let input = command.input;
        // What is not read any more need not be sent.
        let mut feeding = pin!(async {
            let fed = match input {
                RemoteInput::Nothing => Ok(()),
                RemoteInput::Bytes(bytes) => to.0.data(&*bytes).await,
                RemoteInput::File(file) => to.0.data(tokio::fs::File::from_std(file)).await,
            };
            if fed.is_ok() {
                let _ = to.0.eof().await;
            }
        });
        let mut hearing = pin!(self.hear(&mut from));
        let mut is_fed = false;
        loop {
            tokio::select! {
                heard = &mut hearing => return heard,
                () = &mut feeding, if !is_fed => is_fed = true,
            }
        }
    }

    async fn hear(&self, from: &mut ChannelReadHalf) -> Result<RemoteOutput, SshError> {
        let mut heard = RemoteOutput {
            exit: RemoteExit::Unknown,
            output: Vec::new(),
            errors: Vec::new(),
        };
        let mut is_closed = false;
        while let Some(message) = from.wait().await {
            match message {
                ChannelMsg::Data { data } => {
                    let room = KEPT_OUTPUT - heard.output.len();
                    heard.output.extend_from_slice(&data[..data.len().min(room)]);
                }
                ChannelMsg::ExtendedData { data, ext: ERRORS } => {
                    heard.errors.extend_from_slice(&data);
                    let beyond = heard.errors.len().saturating_sub(KEPT_ERRORS);
                    heard.errors.drain(..beyond);
                }
                ChannelMsg::Failure => return Err(self.runs_nothing("it refuses to".to_owned())),
                ChannelMsg::ExitStatus { exit_status } => heard.exit = RemoteExit::Code(exit_status),
                ChannelMsg::ExitSignal { signal_name, .. } => {
                    let name = format!("{signal_name:?}");
                    heard.exit = RemoteExit::Signal(name);
                }
                ChannelMsg::Close => {
                    is_closed = true;
                    break;
                }
                _ => {}
            }
        }
        if !is_closed && heard.exit == RemoteExit::Unknown {
            return Err(self.has_ended(&russh::Error::Disconnect));
        }
        Ok(heard)
    }

    fn runs_nothing(&self, reason: String) -> SshError {
        SshError::Command {
            place: self.place.clone(),
            reason,
        }
    }
}

/// Closes a channel when nobody listens any more.
struct Closing(Arc<ChannelWriteHalf<Msg>>);

impl Drop for Closing {
    fn drop(&mut self) {
        let half = self.0.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { half.close().await });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_any_word_for_what_it_is() {
        for word in [
            "",
            "plain-word_1.2/3",
            "two words",
            "it's",
            "'",
            "a\\b",
            "\\'",
            "$(reboot) `reboot` $HOME",
            "a\nb\tc",
            "*?[a]{b,c}~",
            "!! !history",
            "\"double\"",
            "ä ✓ \u{1b}",
            "--option",
            ";&|<>()#",
        ] {
            for shell in ["sh", "bash"] {
                let line = format!("printf %s {}", quoted(word));
                let printed = std::process::Command::new(shell).args(["-c", &line]).output();
                let printed = printed.expect("there is such a shell");
                assert_eq!(String::from_utf8_lossy(&printed.stdout), word, "{shell}: {line}");
            }
        }
    }
}
