//! Answers that requests for this machine got, by the name under which they are published. In memory only.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use setpoint_host::sync::Mutex;
use setpoint_value::{HttpResponses, Timer, Wake};

use super::listeners::Listeners;

/// The newest answer of each `uid`: what resources of the kind `http:client` publish and `http.response` reads.
pub struct PublishedResponses {
    answers: Mutex<BTreeMap<String, Answer>>,
    listeners: Arc<Listeners<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Answer {
    status: i64,
    /// Where the body lies; none when there is none.
    body: Option<PathBuf>,
}

impl PublishedResponses {
    /// No answers yet.
    #[must_use]
    pub fn new() -> PublishedResponses {
        PublishedResponses {
            answers: Mutex::default(),
            listeners: Arc::new(Listeners::new()),
        }
    }

    /// Publishes an answer; a status of −1 for a request that failed. Equal answers wake nobody.
    pub fn publish(&self, uid: &str, status: i64, body: Option<PathBuf>) {
        let answer = Answer { status, body };
        let before = self.answers.lock().insert(uid.to_owned(), answer.clone());
        if before != Some(answer) {
            self.listeners.tell(&uid.to_owned());
        }
    }
}

impl Default for PublishedResponses {
    fn default() -> PublishedResponses {
        PublishedResponses::new()
    }
}

impl HttpResponses for PublishedResponses {
    fn get(&self, uid: &str) -> Result<Option<(i64, Vec<u8>)>, String> {
        let answers = self.answers.lock();
        let Some(Answer { status, body }) = answers.get(uid).cloned() else {
            return Ok(None);
        };
        drop(answers);
        let body = match body {
            None => Vec::new(),
            Some(path) => {
                std::fs::read(&path).map_err(|error| format!("can't read {}: {error}", path.display()))?
            }
        };
        Ok(Some((status, body)))
    }

    fn watch(&self, uid: &str, wake: Wake) -> Timer {
        self.listeners.join(uid.to_owned(), wake)
    }
}
