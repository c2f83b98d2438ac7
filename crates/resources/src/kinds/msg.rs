//! The `msg` kind: a message to our log, the journal and `syslog(3)`.
//!
//! What is sensitive leaves in none of them: whoever reads logs is rarely who may read secrets.

use std::collections::BTreeMap;

use jiff::Zoned;
use setpoint_engine::{Apply, Effect, Failure, IfSet, Level, Resource, Text, Words, async_trait};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::journal::{JOURNAL, JournalEntry, LogSocket, SYSLOG};

/// A message to the log, once at the start and again at each notification.
///
/// ```mcl
/// msg "hello" {
///     body => "this host is managed",
///     priority => "Info",
/// }
/// ```
///
/// To the journal, with fields by which `journalctl` finds it, when a file changes:
///
/// ```mcl
/// file "/etc/motd" {
///     state => "exists",
///     content => "welcome\n",
///
///     Notify => Msg["changed"],
/// }
///
/// msg "changed" {
///     body => "the greeting was written",
///     priority => "Notice",
///     journal => true,
///     fields => {"GREETING" => "/etc/motd"},
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "msg", brings = nothing, refreshable, action(done = "told", would = "tell"))]
pub(crate) struct Msg {
    /// The message.
    body: Text,
    /// How much it matters. It must be set.
    priority: IfSet<Priority>,
    /// Fields of the journal's entry beside the message. Names are of `A-Z`, `0-9` and `_`.
    fields: BTreeMap<String, Text>,
    /// Whether it goes to the journal of systemd.
    journal: bool,
    /// Whether it goes to what listens at `/dev/log`, as with `syslog(3)`.
    syslog: bool,
    /// Which of them have it.
    #[state]
    told: Told,
}

/// Who has been told.
#[derive(Debug, Default)]
struct Told {
    /// Our own log.
    log: bool,
    /// Anybody, by a run that was allowed to.
    anybody: bool,
    journal: bool,
    syslog: bool,
}

/// How much a message matters, from 0 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Priority {
    Emerg,
    Alert,
    Crit,
    Err,
    Warning,
    Notice,
    Info,
    Debug,
}

impl Words for Priority {
    const ONE: &'static str = "a priority";

    fn words() -> impl Iterator<Item = (&'static str, Priority)> {
        [
            ("Emerg", Priority::Emerg),
            ("Alert", Priority::Alert),
            ("Crit", Priority::Crit),
            ("Err", Priority::Err),
            ("Warning", Priority::Warning),
            ("Notice", Priority::Notice),
            ("Info", Priority::Info),
            ("Debug", Priority::Debug),
        ]
        .into_iter()
    }
}

impl Priority {
    /// How much it matters in our log.
    fn level(self) -> Level {
        match self {
            Priority::Emerg | Priority::Alert | Priority::Crit | Priority::Err => Level::Error,
            Priority::Warning => Level::Warning,
            Priority::Notice | Priority::Info => Level::Info,
            Priority::Debug => Level::Debug,
        }
    }
}

/// What stands in the place of what is sensitive.
const HIDDEN: &str = "(sensitive)";

/// The longest name of a field that the journal takes.
const LONGEST_FIELD: usize = 64;

/// The facility of programs that are no part of the system: RFC 3164, section 4.1.1.
const USER_FACILITY: u8 = 1;

#[async_trait]
impl Resource for Msg {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        if self.priority.is_none() {
            let all: Vec<&str> = Priority::words().map(|(name, _)| name).collect();
            let message = format!("`priority` must be one of {}", all.join(", "));
            invalid.push(Invalid::parameter("priority", message).help("write `priority => \"Info\",`"));
        }
        for name in self.fields.keys() {
            if let Some(message) = refused_field(name) {
                let message = format!("`{name}` is not the name of a field: {message}");
                let meant = name.trim_start_matches('_').to_ascii_uppercase();
                let help = refused_field(&meant)
                    .is_none()
                    .then(|| format!("write `{meant}`"));
                invalid.push(Invalid::parameter("fields", message).help_if(help));
            }
        }
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let Some(priority) = *self.priority else {
            return Ok(());
        };
        if apply.refresh_pending() {
            self.told = Told::default();
        }
        let body = match apply.is_sensitive("body") {
            true => HIDDEN.to_owned(),
            false => String::from_utf8_lossy(self.body.as_bytes()).into_owned(),
        };
        // Our own log has it in every mode; under noop, too, it is said once.
        if !self.told.log {
            apply.log(priority.level(), &body);
            self.told.log = true;
        }
        let journal = self.journal && !self.told.journal;
        let syslog = self.syslog && !self.told.syslog;
        let is_told = self.told.anybody && !journal && !syslog;
        if is_told || !apply.act(Effect::Run, "body", None::<&str>, body.as_str()) {
            return Ok(());
        }
        self.told.anybody = true;
        if journal {
            self.tell_journal(priority, &body, apply)?;
            self.told.journal = true;
        }
        if syslog {
            tell_syslog(priority, &body)?;
            self.told.syslog = true;
        }
        Ok(())
    }
}

impl Msg {
    fn tell_journal(&self, priority: Priority, body: &str, apply: &Apply<'_>) -> Result<(), Failure> {
        let id = apply.handle().id();
        let mut entry = JournalEntry::new()
            .with("MESSAGE", body)
            .with("PRIORITY", (priority as u8).to_string())
            .with("SYSLOG_IDENTIFIER", "setpoint")
            .with("SETPOINT_RESOURCE", id.to_string());
        let is_secret = apply.is_sensitive("fields");
        for (name, value) in &self.fields {
            let value = if is_secret {
                HIDDEN.as_bytes()
            } else {
                value.as_bytes()
            };
            entry = entry.with(name, value);
        }
        let sent = LogSocket::at(JOURNAL).and_then(|journal| journal.send(&entry));
        sent.map_err(|error| Failure::new("write to the journal at").on(JOURNAL).because(error))
    }
}

fn tell_syslog(priority: Priority, body: &str) -> Result<(), Failure> {
    let code = USER_FACILITY * 8 + priority as u8;
    let time = Zoned::now().strftime("%b %e %H:%M:%S").to_string();
    let line = format!("<{code}>{time} setpoint[{}]: {body}", std::process::id());
    let sent = LogSocket::at(SYSLOG).and_then(|log| log.send_datagram(line.as_bytes()));
    sent.map_err(|error| {
        Failure::new("write to the system's log at")
            .on(SYSLOG)
            .because(error)
    })
}

/// Fields that each entry has of ours.
const OWN_FIELDS: [&str; 4] = ["MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER", "SETPOINT_RESOURCE"];

/// Why the journal would not take a field of this name.
fn refused_field(name: &str) -> Option<&'static str> {
    let is_allowed = |sign: u8| sign.is_ascii_uppercase() || sign.is_ascii_digit() || sign == b'_';
    if name.is_empty() {
        Some("it is empty")
    } else if name.starts_with('_') {
        Some("those that begin with `_` are the journal's own")
    } else if name.starts_with(|sign: char| sign.is_ascii_digit()) {
        Some("it begins with a digit")
    } else if !name.bytes().all(is_allowed) {
        Some("it is made of `A-Z`, `0-9` and `_`")
    } else if OWN_FIELDS.contains(&name) {
        Some("that one says what `body` and `priority` do, or from whom the message is")
    } else if name.len() > LONGEST_FIELD {
        Some("it is longer than 64 characters")
    } else {
        None
    }
}
