//! Being let in by an SSH server: with each key in turn, until one does, and then with passwords, where there are some.

use russh::client::AuthResult;
use russh::keys::agent::AgentIdentity;
use russh::keys::{HashAlg, PrivateKeyWithHashAlg, PublicKey};
use russh::{MethodKind, MethodSet};

use super::host_keys::shown;
use super::identities::{Agent, Identities, OfAgent, agent_socket, shown_of_agent};
use super::passwords::{NotLetIn, Passwords, Search};
use super::{LETTING_IN, SshAddress, SshConnection, SshError};

/// Why we are not in.
pub(super) enum NotIn {
    /// The server has ended the connection while somebody was being asked for the password: another connection goes on there.
    EndedWhileAsking,
    /// For good.
    Failed(SshError),
}

impl From<SshError> for NotIn {
    fn from(error: SshError) -> NotIn {
        NotIn::Failed(error)
    }
}

/// What was tried until now.
#[derive(Default)]
struct Tried {
    /// With what, for messages.
    with: Vec<String>,
    /// What the server says that it takes.
    takes: Option<MethodSet>,
    /// Whether it took one, but wants more.
    is_half: bool,
}

/// Is let in, or tells why not.
pub(super) async fn log_in(
    connection: &mut SshConnection,
    address: &SshAddress,
    identities: &Identities,
    passwords: &Passwords,
    search: &mut Search,
) -> Result<(), NotIn> {
    let mut tried = Tried::default();
    let mut problem = None;
    if !search.goes_on_without_keys() {
        let by_keys = with_keys(connection, address, identities, &mut tried);
        match tokio::time::timeout(LETTING_IN, by_keys).await {
            Err(_) => {
                let reason = format!("it gives no answer in {} s", LETTING_IN.as_secs());
                let place = address.place();
                return Err(SshError::Away { place, reason }.into());
            }
            Ok(Ok(Keys::LetIn)) => return Ok(()),
            Ok(Ok(Keys::Refused(why))) => problem = why,
            Ok(Err(error)) => return Err(error.into()),
        }
    }
    if passwords.is_empty() || connection.handle.is_closed() {
        return Err(tried.refused(connection, address, identities, problem).into());
    }
    search.is_after_key |= tried.is_half;
    let searched = search
        .log_in(connection, address, passwords, tried.takes.clone())
        .await;
    searched.map_err(|why| match why {
        NotLetIn::Ended => NotIn::EndedWhileAsking,
        NotLetIn::Failed(error) => error.into(),
        NotLetIn::Refused(mut reason) => {
            if !tried.with.is_empty() {
                reason.push_str(&format!(", nor the keys {}", tried.with.join(", ")));
            }
            SshError::NotLetIn {
                place: address.place(),
                user: address.user.clone(),
                reason,
            }
            .into()
        }
    })
}

/// What came of the keys.
enum Keys {
    LetIn,
    /// What else was in the way.
    Refused(Option<String>),
}

async fn with_keys(
    connection: &mut SshConnection,
    address: &SshAddress,
    identities: &Identities,
    tried: &mut Tried,
) -> Result<Keys, SshError> {
    let user = &address.user;
    let hash = match identities.keys.is_empty() && matches!(identities.of_agent, OfAgent::None) {
        true => None,
        false => {
            let best = connection.handle.best_supported_rsa_hash().await;
            best.map_err(|error| connection.has_ended(&error))?.flatten()
        }
    };
    for file in &identities.keys {
        tried.with.push(file.path.display().to_string());
        let key = PrivateKeyWithHashAlg::new(file.key.clone(), hash);
        let answer = connection.handle.authenticate_publickey(user, key).await;
        let answer = answer.map_err(|error| connection.has_ended(&error))?;
        if tried.is_let_in(answer) {
            return Ok(Keys::LetIn);
        }
        if connection.handle.is_closed() {
            return Ok(Keys::Refused(None));
        }
    }
    let binding = connection.handle.agent_session_binding().cloned();
    let mut problem = None;
    match Agent::ask(&identities.of_agent, &identities.keys, binding.as_ref()).await {
        Err(why) => problem = Some(why),
        Ok(None) => {}
        Ok(Some(mut agent)) => {
            for identity in std::mem::take(&mut agent.identities) {
                let answer = signed_by_agent(connection, user, &mut agent, &identity, hash).await;
                tried.with.push(shown_of_agent(&identity));
                // Whoever is asked to confirm may not have done it.
                let Some(answer) = answer else {
                    problem = Some(format!("{} did not sign", shown_of_agent(&identity)));
                    continue;
                };
                if tried.is_let_in(answer) {
                    return Ok(Keys::LetIn);
                }
                if connection.handle.is_closed() {
                    break;
                }
            }
        }
    }
    Ok(Keys::Refused(problem))
}

async fn signed_by_agent(
    connection: &mut SshConnection,
    user: &str,
    agent: &mut Agent,
    identity: &AgentIdentity,
    hash: Option<HashAlg>,
) -> Option<AuthResult> {
    let handle = &mut connection.handle;
    let answer = match identity {
        AgentIdentity::PublicKey { key, .. } => {
            let hash = hash.filter(|_| is_rsa(key));
            handle
                .authenticate_publickey_with(user, key.clone(), hash, &mut agent.client)
                .await
        }
        AgentIdentity::Certificate { certificate, .. } => {
            handle
                .authenticate_certificate_with(user, certificate.clone(), hash, &mut agent.client)
                .await
        }
    };
    answer.ok()
}

fn is_rsa(key: &PublicKey) -> bool {
    matches!(key.algorithm(), russh::keys::Algorithm::Rsa { .. })
}

impl Tried {
    fn is_let_in(&mut self, answer: AuthResult) -> bool {
        match answer {
            AuthResult::Success => true,
            AuthResult::Failure {
                remaining_methods,
                partial_success,
            } => {
                self.takes = Some(remaining_methods);
                self.is_half |= partial_success;
                false
            }
        }
    }

    fn refused(
        self,
        connection: &SshConnection,
        address: &SshAddress,
        identities: &Identities,
        problem: Option<String>,
    ) -> SshError {
        let mut reason = self.why(connection, identities);
        for further in identities
            .skipped
            .iter()
            .chain(&identities.left_to_agent)
            .chain(&problem)
        {
            reason.push_str("; ");
            reason.push_str(further);
        }
        SshError::NotLetIn {
            place: address.place(),
            user: address.user.clone(),
            reason,
        }
    }

    fn why(&self, connection: &SshConnection, identities: &Identities) -> String {
        if self.with.is_empty() {
            let found = match agent_socket().is_some() {
                true => "in `~/.ssh/id_*` with its `.pub` beside it, nor at the agent",
                false => "in `~/.ssh/id_*` with its `.pub` beside it, and there is no agent",
            };
            return format!("there is no private key to show: none that can be used {found}");
        }
        let with = self.with.join(", ");
        if self.is_half {
            let more = self.takes.as_ref().map(methods).unwrap_or_default();
            return format!("it wants more than the right key ({with}): {more}, which cannot be given here");
        }
        if connection.handle.is_closed() {
            return match self.with.len() {
                1 => format!("it has closed the connection when it was shown {with}"),
                count => format!(
                    "it has closed the connection after {count} keys ({with}), perhaps as these were too many: name the right one"
                ),
            };
        }
        if let Some(takes) = &self.takes
            && !takes.contains(&MethodKind::PublicKey)
            && !takes.is_empty()
        {
            return format!("it takes no keys, only {}", methods(takes));
        }
        let keys = identities.keys.iter().map(|file| shown(file.key.public_key()));
        let keys: Vec<String> = keys.collect();
        match keys.as_slice() {
            [key] if self.with.len() == 1 => format!(
                "it does not take the key {with} ({key}); its public half belongs into that user's `~/.ssh/authorized_keys` there"
            ),
            _ => format!(
                "it takes none of the keys {with}; the public half of one belongs into that user's `~/.ssh/authorized_keys` there"
            ),
        }
    }
}

fn methods(set: &MethodSet) -> String {
    let names: Vec<&str> = set.iter().map(Into::into).collect();
    names.join(", ")
}
