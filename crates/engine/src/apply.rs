//! A run: what a kind is given for one `check_apply`, and what it says back.
//!
//! Each difference goes through [`Apply::drift`], which records it and answers whether to repair it now. So check,
//! plan and repair are one code path and cannot disagree.

use setpoint_graph::{KindSchema, ResourceId, Secrecy};
use setpoint_host::files::{AbsolutePath, Entry, FileError, Prepared, Replace, Replaced, Writer};
use setpoint_host::users::AccountError;
use setpoint_value::Value;
use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

use crate::batch::Batch;
use crate::secrets::Secrets;
use crate::sensitivity::Sensitivity;
use crate::{Cancellation, Drift, DriftValue, Failure, Handle, Level, MemberRequest, Received, Sends, Sent};

/// What the engine knows before a run.
pub struct RunInput<'a> {
    /// The resource's handle.
    pub handle: &'a Handle,
    /// Whether repairs are allowed: not under `noop`, nor in `plan`.
    pub repair: bool,
    /// Whether the resource is what undoes one that left the program: nobody can set other parameters of it.
    pub undoes: bool,
    /// Whose notifications wait.
    pub refresh: &'a [ResourceId],
    /// All parameters that are received.
    pub received: &'a [Received],
    /// What members receive, sorted by their identity; those that receive nothing are not in it.
    pub members: &'a [MemberRequest],
    /// How the run is told to stop.
    pub cancellation: &'a Cancellation,
    /// Who hears of things while they happen.
    pub observer: &'a dyn Observer,
}

/// Hears what happens in a run, while it happens. Nothing sensitive reaches it. Never blocks for long.
pub trait Observer: Send + Sync {
    /// Before the first repair of the run: stores the outgoing notifications as *perhaps*.
    ///
    /// # Errors
    /// Then nothing is repaired, and the run fails with this.
    fn before_first_repair(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// A difference was found.
    fn drift(&self, _drift: &Drift) {}

    /// A line for the log: of a member, or else of the resource itself. With [`Level::Display`] it is what the program wants shown.
    fn log(&self, _member: Option<&ResourceId>, _level: Level, _message: &str) {}
}

/// What a run left behind.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What was found wrong, in order. Empty: *ok*.
    pub drifts: Vec<Drift>,
    /// What was published, if anything.
    pub sent: Option<Sent>,
    /// What members published.
    pub sent_by_members: Vec<(ResourceId, Sent)>,
    /// Members that could not be brought into their state, and why.
    pub failed_members: Vec<(ResourceId, Failure)>,
    /// Whether the interval of the resource's watch begins anew.
    pub restart_interval: bool,
    /// Whether the resource is asked again what it watches.
    pub watch_anew: bool,
    /// Why nothing could be repaired although it was allowed: the run failed with this, whatever it answered.
    pub refused: Option<Failure>,
}

/// The context of one run.
pub struct Apply<'a> {
    input: RunInput<'a>,
    /// Of which member of the resource it is, if it is of one.
    member: Option<&'a ResourceId>,
    schema: Option<&'static KindSchema>,
    sensitivity: Sensitivity,
    secrets: Secrets,
    prepared: bool,
    batch: Option<&'a Batch>,
    writer: Option<Writer>,
    replacement: Option<Replacement>,
    outcome: Outcome,
}

/// The replacement of a file with which a run ends. Runs that are made at the same time share its syncs.
pub struct Replacement {
    pub(crate) prepared: Prepared,
    pub(crate) then: AfterReplacement,
    /// Whether the outgoing notifications are still to be stored, before the new contents are seen.
    pub(crate) is_first_repair: bool,
}

/// Takes a replacement in, and answers a line for the log if there is something to say about it.
pub(crate) type AfterReplacement = Box<dyn FnOnce(&Replaced) -> Option<String> + Send + Sync>;

impl<'a> Apply<'a> {
    /// A run that begins.
    #[must_use]
    pub fn new(input: RunInput<'a>) -> Apply<'a> {
        Apply {
            input,
            member: None,
            schema: None,
            sensitivity: Sensitivity::default(),
            secrets: Secrets::default(),
            prepared: false,
            batch: None,
            writer: None,
            replacement: None,
            outcome: Outcome::default(),
        }
    }

    /// The run is one of these that are made together.
    #[must_use]
    pub(crate) fn in_batch(mut self, batch: &'a Batch) -> Apply<'a> {
        self.batch = Some(batch);
        self
    }

    /// The run need not be told when it has replaced its file.
    #[must_use]
    pub(crate) fn written_by(mut self, writer: Option<Writer>) -> Apply<'a> {
        self.writer = writer;
        self
    }

    /// What it left behind. A replacement that nobody has taken is made here, and waited for.
    #[must_use]
    pub fn finish(mut self) -> Outcome {
        if let Some(replacement) = self.replacement.take() {
            let replaced = self.replace_now(replacement);
            self.outcome.refused = self.outcome.refused.or(replaced.err());
        }
        self.outcome
    }

    fn replace_now(&self, replacement: Replacement) -> Result<(), Failure> {
        if replacement.is_first_repair {
            self.input.observer.before_first_repair()?;
        }
        let replaced = self.handle().committer().commit(replacement.prepared)?;
        if let Some(message) = (replacement.then)(&replaced) {
            self.log(Level::Info, message);
        }
        Ok(())
    }

    /// The replacement with which the run ends, for who makes many of them together.
    pub(crate) fn take_replacement(&mut self) -> Option<Replacement> {
        self.replacement.take()
    }

    /// Whose run it is; done by [`crate::Instance`] before the kind's code runs.
    pub(crate) fn describe(
        &mut self,
        schema: &'static KindSchema,
        sensitivity: Sensitivity,
        secrets: Secrets,
    ) {
        self.schema = Some(schema);
        self.sensitivity = sensitivity;
        self.secrets = secrets;
    }

    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Records a difference and answers whether to repair it now. Never under `noop` or in `plan`.
    ///
    /// A field that is named like a parameter is redacted when that parameter is sensitive, any other when any
    /// parameter is. What was found is redacted also when the parameter was sensitive before: a kind may remember it.
    #[must_use = "it answers whether to repair"]
    pub fn drift(
        &mut self,
        field: impl Into<Cow<'static, str>>,
        is: impl Into<DriftValue>,
        want: impl Into<DriftValue>,
    ) -> bool {
        self.before_first_repair();
        self.drift_for_replacement(field, is, want)
    }

    /// The same for a difference that only [`Apply::replace`] repairs: the notifications that it may cause are stored together
    /// with those of others.
    #[must_use = "it answers whether to repair"]
    pub fn drift_for_replacement(
        &mut self,
        field: impl Into<Cow<'static, str>>,
        is: impl Into<DriftValue>,
        want: impl Into<DriftValue>,
    ) -> bool {
        let field = field.into();
        let (was_secret, is_secret) = self.is_secret(&field);
        self.report(field, was_secret, is_secret, is.into(), want.into())
    }

    /// The same as [`Apply::drift`] for a field whose value is that of a parameter with another name: it is as secret as that.
    #[must_use = "it answers whether to repair"]
    pub fn drift_of(
        &mut self,
        parameter: &str,
        field: impl Into<Cow<'static, str>>,
        is: impl Into<DriftValue>,
        want: impl Into<DriftValue>,
    ) -> bool {
        self.before_first_repair();
        let (was_secret, is_secret) = self.is_secret(parameter);
        self.report(field.into(), was_secret, is_secret, is.into(), want.into())
    }

    /// A difference that was recorded is repaired, whatever becomes of the run.
    pub fn done(&mut self, field: &str) {
        let mut drifts = self.outcome.drifts.iter_mut().rev();
        if let Some(drift) = drifts.find(|drift| drift.field == field) {
            drift.is_done = drift.repaired;
        }
    }

    fn before_first_repair(&mut self) {
        if self.input.repair && !self.prepared {
            self.prepared = true;
            self.outcome.refused = self.input.observer.before_first_repair().err();
        }
    }

    fn report(
        &mut self,
        field: Cow<'static, str>,
        was_secret: bool,
        is_secret: bool,
        is: DriftValue,
        want: DriftValue,
    ) -> bool {
        // A value may have come into a field that is not its own.
        let holds_secret = |value: &DriftValue| match value {
            DriftValue::Text(text) => self.secrets.hide(text).is_some(),
            DriftValue::Content { text: Some(text), .. } => self.secrets.hide(text).is_some(),
            DriftValue::Absent | DriftValue::Content { text: None, .. } | DriftValue::Sensitive => false,
        };
        let redact = |value: DriftValue, secret: bool| match value {
            DriftValue::Absent => DriftValue::Absent,
            value if secret || holds_secret(&value) => DriftValue::Sensitive,
            value => value,
        };
        let repaired = self.input.repair && self.outcome.refused.is_none();
        let drift = Drift {
            member: self.member.cloned(),
            is: redact(is, was_secret),
            want: redact(want, is_secret),
            field,
            repaired,
            is_done: false,
        };
        self.input.observer.drift(&drift);
        self.outcome.drifts.push(drift);
        repaired
    }

    /// Replaces a file as the last thing that the run repairs. The temporary file is written here; the new contents are put
    /// in place after the run, together with those of other runs, and `then` is called. The run is over when they are
    /// durable.
    ///
    /// # Errors
    /// When the temporary file cannot be written. What goes wrong later is the run's failure all the same.
    pub fn replace(
        &mut self,
        request: Replace,
        then: impl FnOnce(&Replaced) -> Option<String> + Send + Sync + 'static,
    ) -> Result<(), Failure> {
        let request = request.written_by(self.writer.clone());
        self.replacement = Some(Replacement {
            prepared: self.handle().committer().prepare(request)?,
            then: Box::new(then),
            is_first_repair: !std::mem::replace(&mut self.prepared, true),
        });
        Ok(())
    }

    /// Replaces a file and returns when the new contents are durable: for what must be in place before the run goes on. Blocks. It goes
    /// through [`Apply::drift`] before.
    ///
    /// # Errors
    /// As the system says.
    pub fn replace_at_once(&mut self, request: Replace) -> Result<Replaced, Failure> {
        let request = request.written_by(self.writer.clone());
        Ok(self.handle().committer().replace(request)?)
    }

    /// The entry at a path. Runs that are made together open its directory once.
    ///
    /// # Errors
    /// When the directory cannot be opened.
    pub fn entry(&self, path: &AbsolutePath) -> Result<Entry, FileError> {
        match self.batch {
            Some(batch) => batch.entry(path),
            None => Entry::at(path),
        }
    }

    /// The number of a user given by name or number. Runs that are made together look once.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn user(&self, text: &str) -> Result<u32, AccountError> {
        let users = self.handle().users();
        self.batch
            .map_or_else(|| users.user(text), |batch| batch.user(users, text))
    }

    /// The number of a group given by name or number. Runs that are made together look once.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn group(&self, text: &str) -> Result<u32, AccountError> {
        let users = self.handle().users();
        self.batch
            .map_or_else(|| users.group(text), |batch| batch.group(users, text))
    }

    /// Whether repairs are allowed. For work that leads to no difference, such as remembering what was shown; what is
    /// different goes through [`Apply::drift`].
    #[must_use]
    pub fn may_repair(&self) -> bool {
        self.input.repair
    }

    /// Whether the resource is what undoes one that left the program. Its parameters are in a record, so no advice to set one helps.
    #[must_use]
    pub fn undoes(&self) -> bool {
        self.input.undoes
    }

    /// Whether a parameter holds a sensitive value.
    #[must_use]
    pub fn is_sensitive(&self, parameter: &str) -> bool {
        self.place_of(parameter)
            .is_some_and(|index| self.sensitivity.now.contains(index))
    }

    /// Whether any parameter holds a sensitive value. What a run finds out with one (the output of a command) may hold it
    /// too, so it is not written to a disk or shown.
    #[must_use]
    pub fn has_sensitive(&self) -> bool {
        !self.sensitivity.now.is_empty()
    }

    fn place_of(&self, parameter: &str) -> Option<usize> {
        let mut parameters = self.schema?.parameters.iter();
        parameters.position(|p| p.name == parameter)
    }

    /// Whether a field was secret at any time, and whether it is now.
    fn is_secret(&self, field: &str) -> (bool, bool) {
        let base = field.split([':', ' ', '[']).next().unwrap_or(field);
        let Sensitivity { now, ever } = self.sensitivity;
        match self.place_of(base) {
            Some(index) => (ever.contains(index), now.contains(index)),
            None => (!ever.is_empty(), !now.is_empty()),
        }
    }

    /// Whether a notification waits to be served.
    #[must_use]
    pub fn refresh_pending(&self) -> bool {
        !self.input.refresh.is_empty()
    }

    /// Whose notifications wait to be served.
    #[must_use]
    pub fn notified_by(&self) -> &'a [ResourceId] {
        self.input.refresh
    }

    /// Who sent a parameter that was received and changed since the last successful run.
    #[must_use]
    pub fn received_changed(&self, parameter: &str) -> Option<&ResourceId> {
        self.received()
            .iter()
            .find(|received| received.changed && received.parameter == parameter)
            .map(|received| &received.from)
    }

    /// All parameters that are received.
    #[must_use]
    pub fn received(&self) -> &'a [Received] {
        self.input.received
    }

    /// Publishes the send keys. The last call of a run counts. When any parameter is sensitive, so is what is sent, but
    /// for keys that are declared with `#[send(reveals_nothing)]`; one with `#[send(sensitive)]` always is.
    pub fn send(&mut self, keys: impl Sends) {
        self.publish(keys, false);
    }

    /// Publishes values that hold whether or not the run was allowed to repair.
    pub fn send_final(&mut self, keys: impl Sends) {
        self.publish(keys, true);
    }

    fn publish<S: Sends>(&mut self, keys: S, is_final: bool) {
        let mut keys = keys.into_keys();
        let is_secret = |key: &str| match S::KEYS.iter().find(|known| known.name == key)?.secrecy {
            Secrecy::WithParameters => Some(self.has_sensitive()),
            Secrecy::Never => Some(false),
            Secrecy::Always => Some(true),
        };
        for (key, value) in &mut keys {
            if is_secret(key).unwrap_or(true) {
                *value = value.take().map(Value::sensitive);
            }
        }
        self.outcome.sent = Some(Sent { keys, is_final });
    }

    /// How the run is told to stop.
    #[must_use]
    pub fn cancellation(&self) -> &'a Cancellation {
        self.input.cancellation
    }

    /// The resource's handle.
    #[must_use]
    pub fn handle(&self) -> &'a Handle {
        self.input.handle
    }

    /// Begins the interval of the resource's watch anew.
    pub fn restart_interval(&mut self) {
        self.outcome.restart_interval = true;
    }

    /// What is to be watched is no longer what it was: the resource is asked again after the run.
    pub fn watch_anew(&mut self) {
        self.outcome.watch_anew = true;
    }

    /// Says something in the log. Never a value of a sensitive parameter.
    /// Lines for who searches a mistake are dropped unless debug output of this resource is on.
    pub fn log(&self, level: Level, message: impl AsRef<str>) {
        if level == Level::Debug && !self.input.handle.debug() {
            return;
        }
        self.tell(level, message.as_ref());
    }

    /// Shows a message of the program.
    pub fn display(&self, message: impl AsRef<str>) {
        self.tell(Level::Display, message.as_ref());
    }

    fn tell(&self, level: Level, message: &str) {
        let hidden = self.secrets.hide(message);
        let message = hidden.as_deref().unwrap_or(message);
        self.input.observer.log(self.member, level, message);
    }

    pub(crate) fn part<'s>(
        &'s mut self,
        id: &'s ResourceId,
        handle: &'s Handle,
        noop: bool,
    ) -> MemberApply<'s> {
        let request = self.input.members.binary_search_by(|request| request.id.cmp(id));
        let received = request.map_or(&[][..], |at| &self.input.members[at].received);
        let mut part = Apply::new(RunInput {
            handle,
            repair: self.input.repair && !noop,
            undoes: self.input.undoes,
            refresh: self.input.refresh,
            received,
            members: self.input.members,
            cancellation: self.input.cancellation,
            observer: self.input.observer,
        });
        part.member = Some(id);
        part.batch = self.batch;
        part.writer = self.writer.clone();
        part.prepared = self.prepared;
        part.outcome.refused = self.outcome.refused.clone();
        MemberApply {
            part: Some(part),
            prepared: &mut self.prepared,
            outcome: &mut self.outcome,
        }
    }

    /// A member, or the resource itself among its members, could not be brought into its state. The run fails in the end. When it
    /// answers `Ok`, all the others are right, and the resources after them run.
    pub fn member_failed(&mut self, member: &ResourceId, failure: Failure) {
        self.outcome.failed_members.push((member.clone(), failure));
    }
}

/// The part of a run that is about a member; see [`Apply::member`].
pub struct MemberApply<'a> {
    /// There until it is dropped.
    part: Option<Apply<'a>>,
    prepared: &'a mut bool,
    outcome: &'a mut Outcome,
}

impl<'a> Deref for MemberApply<'a> {
    type Target = Apply<'a>;

    fn deref(&self) -> &Apply<'a> {
        self.part.as_ref().expect("it is there until it is dropped")
    }
}

impl<'a> DerefMut for MemberApply<'a> {
    fn deref_mut(&mut self) -> &mut Apply<'a> {
        self.part.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for MemberApply<'_> {
    fn drop(&mut self) {
        let Some(part) = self.part.take() else { return };
        *self.prepared |= part.prepared;
        let member = part.member.cloned();
        let part = part.finish();
        self.outcome.drifts.extend(part.drifts);
        self.outcome.sent_by_members.extend(member.zip(part.sent));
        self.outcome.sent_by_members.extend(part.sent_by_members);
        self.outcome.failed_members.extend(part.failed_members);
        self.outcome.restart_interval |= part.restart_interval;
        self.outcome.watch_anew |= part.watch_anew;
        if self.outcome.refused.is_none() {
            self.outcome.refused = part.refused;
        }
    }
}
