//! Facts of resources, for models: what a file says of them, and what the resources of a run publish.
//!
//! ```text
//!  a run of a resource publishes ──▶ PublishedFacts ── if the model asked for it ──▶ Message::Changed: executed again
//! ```
//!
//! A resource publishes what it sends: a fact of each key. What the model asked for is left in a file for the next process, so that a restart
//! does not make it unknown again; what is sensitive is not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use serde_json::Value as Json;
use setpoint_cf::datum::{Datum, Unknowns, to_datum, to_json};
use setpoint_engine::{Control, SentListener};
use setpoint_graph::ResourceId;
use setpoint_host::Host;
use setpoint_host::files::{AbsolutePath, Entry, Replace};
use setpoint_host::sync::Mutex;
use setpoint_programs::facts::{Facts, parse_facts};
use setpoint_programs::failure::Failure;
use setpoint_value::Value;

use crate::messages::Message;

/// What the resources of a run published, now or in a process before. Clones are one and the same.
#[derive(Clone)]
pub(crate) struct PublishedFacts(Arc<Mutex<Known>>);

struct Known {
    /// Under these names resources of this machine are known to models.
    machines: [String; 3],
    /// By `kind[name]/fact`; none for what is withheld.
    published: BTreeMap<String, Option<Datum>>,
    /// What a process before left, by the whole key.
    left: Facts,
    /// What the model asked for the last time.
    asked: BTreeSet<Arc<str>>,
    /// Whether something that was asked for has changed since the model was given it.
    is_new: bool,
    /// Told when that comes to be.
    sender: Option<Sender<Message>>,
    /// Where they are left.
    file: AbsolutePath,
    /// What is there.
    written: String,
}

impl PublishedFacts {
    /// With what a process before left in a file.
    pub(crate) fn open(hostname: &str, file: AbsolutePath) -> PublishedFacts {
        let written = std::fs::read_to_string(file.as_path()).unwrap_or_default();
        // A file that is damaged is as good as none: what is missing is published again.
        let left = parse_facts(&written).unwrap_or_default();
        PublishedFacts(Arc::new(Mutex::new(Known {
            machines: [hostname, "*", "internal"].map(str::to_owned),
            published: BTreeMap::new(),
            asked: left.keys().cloned().collect(),
            left,
            is_new: false,
            sender: None,
            file,
            written,
        })))
    }

    /// What the engine calls when a run published something.
    pub(crate) fn listener(&self, control: Control) -> SentListener {
        let known = self.0.clone();
        Arc::new(move |id: &ResourceId, sent| {
            let mut known = known.lock();
            for (name, value) in &sent.keys {
                known.publish(&format!("{id}/{name}"), value.as_ref(), &control);
            }
        })
    }

    /// Tells somebody from now on when what was asked for changes.
    pub(crate) fn tell(&self, sender: Sender<Message>) {
        let mut known = self.0.lock();
        known.sender = Some(sender);
    }

    /// All that was asked for and is known.
    pub(crate) fn take(&self) -> Facts {
        let mut known = self.0.lock();
        known.is_new = false;
        let asked = known.asked.iter();
        asked
            .filter_map(|key| Some((key.clone(), known.value(key)?)))
            .collect()
    }

    /// Notes what the model asks for. Answers whether more of that is known than the model was given.
    pub(crate) fn ask(&self, asked: BTreeSet<Arc<str>>, given: &Facts) -> bool {
        let mut known = self.0.lock();
        let is_new = asked
            .iter()
            .any(|key| !given.contains_key(key) && known.value(key).is_some());
        known.asked = asked;
        known.is_new |= is_new;
        is_new
    }

    /// Says that the model is at rest, unless there is something new for it.
    pub(crate) fn rest(&self, say: impl FnOnce()) {
        let known = self.0.lock();
        if !known.is_new {
            say();
        }
    }

    /// Leaves what was asked for to the next process.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn leave(&self, host: &Host) -> Result<(), Failure> {
        let mut known = self.0.lock();
        let text = known.text();
        if text == known.written {
            return Ok(());
        }
        let file = known.file.clone();
        let failed = |why: String| {
            Failure::wrong(format!("facts cannot be left in `{}`", file.as_path().display())).because(why)
        };
        if let Some(parent) = file.parent() {
            Entry::create_directories(&parent, 0o700, 0o700).map_err(|error| failed(error.to_string()))?;
        }
        let request = Replace::bytes(file.clone(), text.clone().into_bytes()).mode(0o600);
        host.committer
            .replace(request)
            .map_err(|error| failed(error.to_string()))?;
        known.written = text;
        Ok(())
    }
}

impl Known {
    fn value(&self, key: &str) -> Option<Datum> {
        let of_this_machine = self
            .machines
            .iter()
            .find_map(|machine| key.strip_prefix(machine.as_str())?.strip_prefix('/'));
        match of_this_machine.and_then(|rest| self.published.get(rest)) {
            Some(value) => value.clone(),
            None => self.left.get(key).cloned(),
        }
    }

    fn publish(&mut self, key: &str, value: Option<&Value>, control: &Control) {
        // What the language has no value for stays unknown to it.
        let datum = value.and_then(|value| to_datum(value, &mut Unknowns::default()).ok());
        let datum = datum.filter(|datum| !datum.any_part(&mut |part| matches!(part, Datum::Unknown(_))));
        let is_same = |old: &Option<Datum>| match (old, &datum) {
            (None, None) => true,
            (Some(old), Some(new)) => old.is_identical(new),
            _ => false,
        };
        if self.published.get(key).is_some_and(is_same) {
            return;
        }
        let asked: Vec<String> = self
            .machines
            .iter()
            .map(|machine| format!("{machine}/{key}"))
            .collect();
        let before: Vec<Option<Datum>> = asked.iter().map(|key| self.value(key)).collect();
        let is_asked = asked
            .iter()
            .zip(&before)
            .any(|(key, before)| self.asked.contains(key.as_str()) && !is_same(before));
        self.published.insert(key.to_owned(), datum);
        if is_asked && !self.is_new {
            self.is_new = true;
            // Before the engine hears that the run ended: it must not take the machine to be right already.
            control.sources_busy(true);
            if let Some(sender) = &self.sender {
                let _ = sender.send(Message::Changed);
            }
        }
    }

    /// What was asked for, as the file holds it.
    fn text(&self) -> String {
        let mut machines: BTreeMap<&str, BTreeMap<&str, BTreeMap<&str, Json>>> = BTreeMap::new();
        for key in &self.asked {
            // Names of resources may hold a slash, those of machines and facts do not.
            let parts = key.split_once('/').and_then(|(machine, rest)| {
                rest.rsplit_once('/')
                    .map(|(resource, fact)| (machine, resource, fact))
            });
            if let Some((machine, resource, fact)) = parts
                && let Some(value) = self.value(key).and_then(|value| to_json(&value))
            {
                machines
                    .entry(machine)
                    .or_default()
                    .entry(resource)
                    .or_default()
                    .insert(fact, value);
            }
        }
        match machines.is_empty() {
            true => String::new(),
            false => serde_json::to_string_pretty(&machines).unwrap_or_default() + "\n",
        }
    }
}
