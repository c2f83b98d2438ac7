//! Passwords, for servers that let nobody in by a key alone: one that was given, and those that somebody enters at the terminal.

use std::fmt;
use std::time::Duration;

use russh::client::{AuthResult, KeyboardInteractiveAuthResponse};
use russh::{MethodKind, MethodSet};

use super::{LETTING_IN, SshAddress, SshConnection, SshError};
use crate::sync::Mutex;
use crate::terminal;

/// How often a server may ask further questions in one login.
const ROUNDS: usize = 16;

/// Which passwords a server is shown that takes no key. The one that it took is remembered as long as this lives.
#[derive(Default)]
pub struct Passwords {
    given: Option<String>,
    asking: Option<Asking>,
    remembered: Mutex<Option<String>>,
}

/// How somebody is asked at the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asking {
    /// How long an answer may take; none: without end.
    pub limit: Option<Duration>,
    /// How often; none: as often as is wanted.
    pub tries: Option<u32>,
}

impl Passwords {
    /// None but these.
    #[must_use]
    pub fn new(given: Option<String>, asking: Option<Asking>) -> Passwords {
        Passwords {
            given,
            asking,
            remembered: Mutex::default(),
        }
    }

    /// Whether there is anything to show.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.given.is_none() && self.asking.is_none()
    }
}

/// Nothing secret.
impl fmt::Debug for Passwords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passwords")
            .field("asking", &self.asking)
            .finish_non_exhaustive()
    }
}

/// How far the search for the right password has come, over several connections: a server ends one after some tries.
#[derive(Default)]
pub(super) struct Search {
    /// How often somebody was asked.
    asked: u32,
    /// Whether those that are known were shown.
    known_are_shown: bool,
    /// Whether the server wants a key and then a password.
    pub(super) is_after_key: bool,
    /// One that was entered and that the server has not heard, because it had ended the connection meanwhile.
    entered: Option<String>,
}

/// Why no password lets in.
pub(super) enum NotLetIn {
    /// The server has ended the connection while somebody was being asked, who may go on.
    Ended,
    /// For this reason.
    Refused(String),
    /// It is no matter of passwords.
    Failed(SshError),
}

impl Search {
    /// Whether keys were shown in an earlier connection, and need not be again.
    pub(super) fn goes_on_without_keys(&self) -> bool {
        self.known_are_shown && !self.is_after_key
    }

    /// Shows passwords to a server until one lets in.
    pub(super) async fn log_in(
        &mut self,
        connection: &mut SshConnection,
        address: &SshAddress,
        passwords: &Passwords,
        takes: Option<MethodSet>,
    ) -> Result<(), NotLetIn> {
        let method = match Method::of(connection, address, takes).await? {
            Ok(method) => method,
            Err(methods) => {
                return Err(NotLetIn::Refused(format!(
                    "it takes no passwords, only {methods}"
                )));
            }
        };
        if !std::mem::replace(&mut self.known_are_shown, true) {
            let remembered = passwords.remembered.lock().clone();
            let known = [(remembered, true), (passwords.given.clone(), false)];
            for (password, was_remembered) in known {
                let Some(password) = password else { continue };
                match self.show(connection, address, passwords, method, &password).await {
                    Ok(true) => return Ok(()),
                    // The next connection begins where this one ends.
                    Ok(false) if was_remembered => *passwords.remembered.lock() = None,
                    Ok(false) => {}
                    Err(problem) => return Err(problem),
                }
            }
        }
        let Some(asking) = passwords.asking else {
            return Err(NotLetIn::Refused("it does not take the password".to_owned()));
        };
        loop {
            let password = match self.entered.take() {
                Some(password) => password,
                None => self.ask(address, asking).await?,
            };
            if connection.handle.is_closed() {
                self.entered = Some(password);
                return Err(NotLetIn::Ended);
            }
            match self.show(connection, address, passwords, method, &password).await {
                Ok(true) => {
                    *passwords.remembered.lock() = Some(password);
                    return Ok(());
                }
                Ok(false) => {}
                Err(problem) => return Err(problem),
            }
        }
    }

    async fn ask(&mut self, address: &SshAddress, asking: Asking) -> Result<String, NotLetIn> {
        if let Some(tries) = asking.tries.filter(|tries| self.asked >= *tries) {
            let count = match tries {
                1 => "the password that was entered".to_owned(),
                tries => format!("any of the {tries} passwords that were entered"),
            };
            return Err(NotLetIn::Refused(format!("it does not take {count}")));
        }
        let again = if self.asked == 0 { "" } else { "It was not right. " };
        self.asked += 1;
        let question = format!("{again}Password of {} at {}: ", address.user, address.place());
        let answer = terminal::ask(&question, true, asking.limit).await;
        answer.map_err(|why| NotLetIn::Refused(why.to_string()))
    }

    /// Shows one password. Answers whether it lets in.
    async fn show(
        &self,
        connection: &mut SshConnection,
        address: &SshAddress,
        passwords: &Passwords,
        method: Method,
        password: &str,
    ) -> Result<bool, NotLetIn> {
        let answer = match method {
            Method::Password => {
                let shown = connection.handle.authenticate_password(&address.user, password);
                match tokio::time::timeout(LETTING_IN, shown).await {
                    Ok(answer) => answer,
                    Err(_) => return Err(silent()),
                }
            }
            Method::Questions => {
                let limit = passwords.asking.and_then(|asking| asking.limit);
                answer_questions(connection, address, password, passwords.asking.is_some(), limit).await?
            }
        };
        match answer {
            Ok(AuthResult::Success) => Ok(true),
            Ok(AuthResult::Failure {
                partial_success: true,
                remaining_methods,
            }) => {
                let names: Vec<&str> = remaining_methods.iter().map(Into::into).collect();
                let more = names.join(", ");
                Err(NotLetIn::Refused(format!(
                    "it wants more than the right password: {more}, which cannot be given here"
                )))
            }
            Ok(AuthResult::Failure { .. }) if connection.handle.is_closed() => match passwords.asking {
                Some(_) => Err(NotLetIn::Ended),
                None => Err(NotLetIn::Refused(
                    "it has closed the connection when it was shown the password".to_owned(),
                )),
            },
            Ok(AuthResult::Failure { .. }) => Ok(false),
            Err(error) => Err(NotLetIn::Failed(connection.has_ended(&error))),
        }
    }
}

/// How a server takes passwords.
#[derive(Clone, Copy)]
enum Method {
    Password,
    /// It asks questions, of which one is the password.
    Questions,
}

impl Method {
    /// The one that this server takes; else what it takes.
    async fn of(
        connection: &mut SshConnection,
        address: &SshAddress,
        takes: Option<MethodSet>,
    ) -> Result<Result<Method, String>, NotLetIn> {
        let takes = match takes.filter(|takes| !takes.is_empty()) {
            Some(takes) => takes,
            None => {
                let asked = connection.handle.authenticate_none(&address.user);
                match tokio::time::timeout(LETTING_IN, asked).await {
                    Err(_) => return Err(silent()),
                    Ok(Err(error)) => return Err(NotLetIn::Failed(connection.has_ended(&error))),
                    // It lets in whoever comes; then it takes any password, too.
                    Ok(Ok(AuthResult::Success)) => return Ok(Ok(Method::Password)),
                    Ok(Ok(AuthResult::Failure {
                        remaining_methods, ..
                    })) => remaining_methods,
                }
            }
        };
        Ok(if takes.contains(&MethodKind::Password) {
            Ok(Method::Password)
        } else if takes.contains(&MethodKind::KeyboardInteractive) {
            Ok(Method::Questions)
        } else {
            let names: Vec<&str> = takes.iter().map(Into::into).collect();
            Err(names.join(", "))
        })
    }
}

/// Answers what a server asks: the first secret question with the password, others as somebody does at the terminal.
async fn answer_questions(
    connection: &mut SshConnection,
    address: &SshAddress,
    password: &str,
    may_ask: bool,
    limit: Option<Duration>,
) -> Result<Result<AuthResult, russh::Error>, NotLetIn> {
    let handle = &mut connection.handle;
    let begun = handle.authenticate_keyboard_interactive_start(&address.user, None);
    let mut said = tokio::time::timeout(LETTING_IN, begun)
        .await
        .map_err(|_| silent())?;
    let mut password = Some(password);
    for _ in 0..ROUNDS {
        let prompts = match said {
            Ok(KeyboardInteractiveAuthResponse::Success) => return Ok(Ok(AuthResult::Success)),
            Ok(KeyboardInteractiveAuthResponse::Failure {
                remaining_methods,
                partial_success,
            }) => {
                return Ok(Ok(AuthResult::Failure {
                    remaining_methods,
                    partial_success,
                }));
            }
            Ok(KeyboardInteractiveAuthResponse::InfoRequest { prompts, .. }) => prompts,
            Err(error) => return Ok(Err(error)),
        };
        let mut answers = Vec::new();
        for prompt in prompts {
            let answer = match password.take_if(|_| !prompt.echo) {
                Some(password) => password.to_owned(),
                None if may_ask => {
                    let words: String = prompt
                        .prompt
                        .chars()
                        .filter(|letter| !letter.is_control())
                        .collect();
                    let question = format!("{} asks: {words} ", address.place());
                    let entered = terminal::ask(&question, !prompt.echo, limit).await;
                    entered.map_err(|why| NotLetIn::Refused(why.to_string()))?
                }
                None => {
                    let why = "it asks more than the password, and there is nobody to answer";
                    return Err(NotLetIn::Refused(why.to_owned()));
                }
            };
            answers.push(answer);
        }
        let answered = handle.authenticate_keyboard_interactive_respond(answers);
        said = tokio::time::timeout(LETTING_IN, answered)
            .await
            .map_err(|_| silent())?;
    }
    Err(NotLetIn::Refused("it does not end to ask".to_owned()))
}

fn silent() -> NotLetIn {
    NotLetIn::Refused(format!("it gives no answer in {} s", LETTING_IN.as_secs()))
}
