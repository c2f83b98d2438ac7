//! A run: the context and the outcome of one `check_apply`.
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
use crate::foresight::{Becomes, Foresight};
use crate::secrets::Secrets;
use crate::sensitivity::Sensitivity;
use crate::{
    Cancellation, Drift, DriftValue, Effect, Failure, Foreseen, Handle, Identity, Level, MemberRequest, Need,
    Permits, Received, ResourceName, Sends, Sent,
};

/// The input of a run.
pub struct RunInput<'a> {
    /// The resource's handle.
    pub handle: &'a Handle,
    /// Whether repairs are allowed: not under `noop`, nor in `plan`.
    pub repair: bool,
    /// Whether the resource is what undoes one that left the program: nobody can set other parameters of it.
    pub undoes: bool,
    /// The senders of pending notifications.
    pub refresh: &'a [ResourceId],
    /// All parameters that are received.
    pub received: &'a [Received],
    /// The parameters that members receive, sorted by identity. Members that receive nothing are left out.
    pub members: &'a [MemberRequest],
    /// The signal to stop.
    pub cancellation: &'a Cancellation,
    /// The listener that gets drift and messages during the run.
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

/// The outcome of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The drift found, in order. Empty: *ok*.
    pub drifts: Vec<Drift>,
    /// The published values, if there are some.
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
    /// Things that it would create and its identities do not name.
    pub creates: Vec<Identity>,
    /// Things that it did not find, and that no earlier resource creates.
    pub missing: Vec<Identity>,
    /// Things that it needs, and that an earlier resource would create or may bring.
    pub needs: Vec<Need>,
    /// Why it cannot be said what it would do.
    pub doubt: Option<String>,
}

/// The context of one run.
pub struct Apply<'a> {
    input: RunInput<'a>,
    /// Of which member of the resource it is, if it is of one.
    member: Option<&'a ResourceId>,
    /// The resource whose run it is, also where this is the part of a member.
    head: &'a ResourceId,
    /// The planned world, in a plan.
    foresight: Option<&'a Foresight>,
    /// Whether a run with repairs would leave the resource alone, too (`Meta:noop`).
    is_off: bool,
    /// The permitted repairs; none permits all.
    permits: Option<&'a Permits>,
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
            head: input.handle.id(),
            foresight: None,
            is_off: false,
            permits: None,
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

    /// Nothing is repaired, and this is known of earlier resources. `is_off`: a run with repairs would leave this one alone, too.
    #[must_use]
    pub(crate) fn foreseeing(mut self, foresight: Option<&'a Foresight>, is_off: bool) -> Apply<'a> {
        self.foresight = foresight;
        self.is_off = is_off;
        self
    }

    /// Only this may be repaired.
    #[must_use]
    pub(crate) fn permitted(mut self, permits: Option<&'a Permits>) -> Apply<'a> {
        self.permits = permits;
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
        let secrecy = self.is_secret(&field);
        self.report(Effect::Change, field, secrecy, is.into(), want.into(), Vec::new())
    }

    /// The same as [`Apply::drift`] for the field that says whether the resource exists at all: it is created if it
    /// is absent, and removed if it must be absent.
    #[must_use = "it answers whether to repair"]
    pub fn existence(
        &mut self,
        field: impl Into<Cow<'static, str>>,
        is: impl Into<DriftValue>,
        want: impl Into<DriftValue>,
    ) -> bool {
        let (is, want) = (is.into(), want.into());
        let effect = match (&is, &want) {
            (DriftValue::Absent, _) => Effect::Create,
            (_, DriftValue::Absent) => Effect::Remove,
            _ => Effect::Change,
        };
        self.before_first_repair();
        let field = field.into();
        let secrecy = self.is_secret(&field);
        self.report(effect, field, secrecy, is, want, Vec::new())
    }

    /// The resource does not exist, and is created with these attributes. They are shown, and not compared.
    #[must_use = "it answers whether to repair"]
    pub fn create(&mut self, attributes: Vec<(&'static str, DriftValue)>) -> bool {
        self.before_first_repair();
        self.report_new("state", "exists".into(), attributes)
    }

    /// The same for a resource that only [`Apply::replace`] creates (see [`Apply::drift_for_replacement`]), told of this field.
    #[must_use = "it answers whether to repair"]
    pub fn create_for_replacement(
        &mut self,
        field: &'static str,
        want: impl Into<DriftValue>,
        attributes: Vec<(&'static str, DriftValue)>,
    ) -> bool {
        self.report_new(field, want.into(), attributes)
    }

    fn report_new(
        &mut self,
        field: &'static str,
        want: DriftValue,
        attributes: Vec<(&'static str, DriftValue)>,
    ) -> bool {
        let shown = attributes.into_iter().map(|(name, value)| {
            let (_, is_secret) = self.is_secret(name);
            (
                name,
                self.redact(value, is_secret && self.place_of(name).is_some()),
            )
        });
        let attributes = shown.collect();
        let secrecy = match field {
            "state" => (false, false),
            field => self.is_secret(field),
        };
        self.report(
            Effect::Create,
            field.into(),
            secrecy,
            DriftValue::Absent,
            want,
            attributes,
        )
    }

    /// The resource exists as `is`, and is removed.
    #[must_use = "it answers whether to repair"]
    pub fn remove(&mut self, is: impl Into<DriftValue>) -> bool {
        self.existence("state", is, DriftValue::Absent)
    }

    /// Something is done rather than changed: a command, a reload, a message. `because` says why, and `what` is its object.
    #[must_use = "it answers whether to do it"]
    pub fn act(
        &mut self,
        effect: Effect,
        field: impl Into<Cow<'static, str>>,
        because: impl Into<DriftValue>,
        what: impl Into<DriftValue>,
    ) -> bool {
        self.before_first_repair();
        let field = field.into();
        let secrecy = self.is_secret(&field);
        self.report(effect, field, secrecy, because.into(), what.into(), Vec::new())
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
        let secrecy = self.is_secret(parameter);
        self.report(
            Effect::Change,
            field.into(),
            secrecy,
            is.into(),
            want.into(),
            Vec::new(),
        )
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
        effect: Effect,
        field: Cow<'static, str>,
        (was_secret, is_secret): (bool, bool),
        is: DriftValue,
        want: DriftValue,
        attributes: Vec<(&'static str, DriftValue)>,
    ) -> bool {
        let repaired = self.input.repair && self.outcome.refused.is_none();
        let mut drift = Drift {
            member: self.member.cloned(),
            effect,
            is: self.redact(is, was_secret),
            want: self.redact(want, is_secret),
            field,
            attributes,
            repaired,
            is_done: false,
        };
        if let Some(permits) = self.permits.filter(|_| drift.repaired) {
            let id = self.member.unwrap_or(self.head);
            self.outcome.refused = permits.check(id, &drift).err();
            drift.repaired = self.outcome.refused.is_none();
        }
        let repaired = drift.repaired;
        self.input.observer.drift(&drift);
        self.outcome.drifts.push(drift);
        repaired
    }

    /// A value as it can be shown. A sensitive value may have come into a field that is not its own.
    fn redact(&self, value: DriftValue, is_secret: bool) -> DriftValue {
        let holds_secret = match &value {
            DriftValue::Text(text) | DriftValue::Content { text: Some(text), .. } => {
                self.secrets.hide(text).is_some()
            }
            DriftValue::Content { text: None, .. } | DriftValue::Sensitive => false,
            DriftValue::Absent | DriftValue::Unknown(_) => return value,
        };
        match is_secret || holds_secret {
            true => DriftValue::Sensitive,
            false => value,
        }
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

    /// Whether nothing is repaired at all, and the run says what the run that repairs would do.
    #[must_use]
    pub fn is_plan(&self) -> bool {
        self.foresight.is_some()
    }

    /// Whether nothing is repaired now, and the run that a plan foresees would repair this resource.
    #[must_use]
    pub fn would_repair(&self) -> bool {
        self.is_plan() && !self.is_off
    }

    /// Whether something that was not found will be there when this resource runs, because an earlier one creates it. Only where
    /// nothing is repaired; a run that repairs comes after what it needs.
    pub fn foresees(&mut self, identity: &Identity, what: impl Into<String>) -> bool {
        let Some(foresight) = self.foresight else {
            return false;
        };
        let (by, is_certain) = match foresight.asks(self.head, identity) {
            Foreseen::No => {
                self.outcome.missing.push(identity.clone());
                return false;
            }
            Foreseen::Created(by) => (by, true),
            Foreseen::Perhaps(by) => (by, false),
        };
        let what = what.into();
        let needs = &mut self.outcome.needs;
        if !needs.iter().any(|need| need.what == what) {
            needs.push(Need {
                what,
                by: ResourceName::from(&by),
                is_certain,
            });
        }
        true
    }

    /// Whether something will exist when this resource runs, if it exists today or not. In a plan, if that cannot be said, `why` is
    /// kept as for [`Apply::uncertain`].
    pub fn will_exist(&mut self, identity: &Identity, today: bool, why: impl FnOnce() -> String) -> bool {
        let foreseen = self
            .foresight
            .and_then(|foresight| foresight.becomes(self.head, identity));
        match foreseen {
            Some((_, Becomes::Created)) => true,
            Some((_, Becomes::Removed)) => false,
            Some((_, Becomes::Unsure { .. })) => {
                self.uncertain(why);
                today
            }
            Some((_, Becomes::Changed)) | None => today,
        }
    }

    /// The run depends on the contents of this. In a plan, if an earlier resource would change them, or what is in it, it cannot be said
    /// what the run does.
    pub fn reads(&mut self, identity: &Identity, what: &str) {
        let by = self
            .foresight
            .and_then(|foresight| foresight.alters(self.head, identity));
        if let Some(by) = by {
            self.uncertain(|| format!("it reads {what}, which {by} changes"));
        }
    }

    /// The run would create this, and the identities of the resource do not name it.
    pub fn would_create(&mut self, identity: Identity) {
        if self.foresight.is_some() {
            self.outcome.creates.push(identity);
        }
    }

    /// An answer of the machine can change when earlier resources have run. In a plan, if one of them would change something, the
    /// reason is kept, as a part of a sentence: ``runs if `sshd -t` then succeeds``.
    pub fn uncertain(&mut self, why: impl FnOnce() -> String) {
        let is_after_changes = |foresight: &Foresight| foresight.moved_before(self.head).is_some();
        if self.foresight.is_some_and(is_after_changes) {
            self.outcome.doubt.get_or_insert_with(why);
        }
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
        part.head = self.head;
        part.foresight = self.foresight;
        part.is_off = self.is_off || noop;
        part.permits = self.permits;
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
        self.outcome.creates.extend(part.creates);
        self.outcome.missing.extend(part.missing);
        self.outcome.needs.extend(part.needs);
        self.outcome.doubt = self.outcome.doubt.take().or(part.doubt);
        self.outcome.restart_interval |= part.restart_interval;
        self.outcome.watch_anew |= part.watch_anew;
        if self.outcome.refused.is_none() {
            self.outcome.refused = part.refused;
        }
    }
}
