//! Following the outside.
//!
//! Calls of one function with equal arguments share a subscription, but for functions with state for each call. A call whose
//! arguments change takes its subscription along if nobody else uses it; either way it shows its last value until the
//! new one is there.
//!
//! Nothing here waits. What gives one answer and no more (a file that is read once, a template) is worked out in the
//! background; until all such answers are there the wave pauses at the height of those who asked, and goes on from there as
//! if they had been there at once. What others have to tell meanwhile waits for the next wave.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_value::{
    CallContext, CallError, CallSite, Class, FunctionRef, Implementation, Marks, Subscription, Type, Value,
    Wake,
};

use super::arena::Kind;
use super::computation::{guarded, redacted, unknown_result};
use super::state::{NodeState, is_identical};
use super::{Evaluator, SourceId};

/// A call of a source.
pub(super) struct SourceNode {
    function: FunctionRef,
    module_directory: Arc<str>,
    /// What it follows, and its place among those who follow it.
    following: Option<(u64, u32)>,
    /// Marks of its arguments.
    marks: Marks,
    /// Whether its state comes from a subscription, and so holds until there is something newer.
    holds: bool,
}

impl SourceNode {
    pub(super) fn new(function: FunctionRef, module_directory: Arc<str>) -> SourceNode {
        SourceNode {
            function,
            module_directory,
            following: None,
            marks: Marks::none(),
            holds: false,
        }
    }
}

/// What calls that share a subscription have in common.
#[derive(Clone, PartialEq, Eq, Hash)]
struct SourceKey {
    function: FunctionRef,
    result: Type,
    arguments: Vec<Value>,
    /// For functions that read it.
    module_directory: Option<Arc<str>>,
    /// For functions with state for each call.
    site: Option<u64>,
}

/// A subscription.
struct Followed {
    key: SourceKey,
    function: FunctionRef,
    subscription: Box<dyn Subscription>,
    latest: Option<Result<Value, CallError>>,
    /// The calls that show it.
    nodes: Vec<u32>,
    wake: Wake,
    site: CallSite,
}

/// All subscriptions.
#[derive(Default)]
pub(super) struct Sources {
    next: u64,
    followed: BTreeMap<u64, Followed>,
    by_key: FxHashMap<SourceKey, u64>,
    /// Calls without a value for their arguments, though these are there; nothing is told of a program with such calls.
    pending: BTreeSet<u32>,
    /// Subscriptions whose one answer is on its way. The wave goes no higher than those who asked before it is there.
    awaited: BTreeSet<u64>,
    /// How high the wave may go meanwhile.
    held_at: Option<u32>,
    /// Subscriptions that read a change.
    reading: BTreeSet<u64>,
    /// How many of them can change by themselves.
    changing: usize,
}

impl Sources {
    /// Whether anything can change by itself, or has still to give a first value.
    pub(super) fn can_change(&self) -> bool {
        self.changing > 0 || !self.pending.is_empty()
    }

    /// Whether a change is being read.
    pub(super) fn is_reading(&self) -> bool {
        !self.reading.is_empty()
    }

    /// How high a wave may go now.
    pub(super) fn highest(&self) -> u32 {
        self.held_at.unwrap_or(u32::MAX)
    }

    /// Whether the wave waits for an answer.
    pub(super) fn is_awaiting(&self) -> bool {
        !self.awaited.is_empty()
    }

    /// Whether the wave waits for the answer of this one.
    pub(super) fn is_awaited(&self, id: SourceId) -> bool {
        self.awaited.contains(&id.0)
    }

    /// Wakes the owner for this source again.
    pub(super) fn wake_again(&self, id: SourceId) {
        if let Some(followed) = self.followed.get(&id.0) {
            followed.wake.wake();
        }
    }

    fn no_longer_awaited(&mut self, id: u64) {
        if self.awaited.remove(&id) && self.awaited.is_empty() {
            self.held_at = None;
        }
    }

    /// A call is gone.
    pub(super) fn forget(&mut self, index: u32) {
        self.pending.remove(&index);
    }

    /// Calls without a first value.
    pub(super) fn pending(&self) -> impl Iterator<Item = u32> {
        self.pending.iter().copied()
    }
}

impl Evaluator {
    /// Takes what a source has to tell.
    pub(super) fn receive(&mut self, id: SourceId) {
        let Some(followed) = self.sources.followed.get_mut(&id.0) else {
            return;
        };
        let is_new = take(followed);
        match followed.subscription.is_reading() {
            true => self.sources.reading.insert(id.0),
            false => self.sources.reading.remove(&id.0),
        };
        let nodes = if is_new {
            followed.nodes.clone()
        } else {
            Vec::new()
        };
        if followed.latest.is_some() {
            self.sources.no_longer_awaited(id.0);
        }
        for node in nodes {
            self.enqueue(node);
        }
    }

    pub(super) fn compute_source(&mut self, index: u32) {
        let at = index as usize;
        let values = self.gather(index);
        let kind = std::mem::replace(&mut self.arena.kind[at], Kind::Plain);
        let Kind::Source(mut source) = kind else {
            self.arena.kind[at] = kind;
            return;
        };
        self.sources.pending.remove(&index);
        let state = match values {
            Err(NodeState::Failed(failure)) => {
                self.detach(&mut source);
                source.holds = false;
                NodeState::Failed(failure)
            }
            Err(state) => {
                source.holds = false;
                state
            }
            Ok(values) => {
                let state = self.follow(index, &mut source, &values);
                let given = match &state {
                    NodeState::Value(value) => Some(Ok(value)),
                    NodeState::Failed(failure) => Some(Err(&failure.error)),
                    NodeState::Pending => None,
                };
                self.log_call(&source.function, &values, given);
                state
            }
        };
        self.arena.kind[at] = Kind::Source(source);
        self.set_state(index, state);
    }

    /// Sees to it that a call follows what its arguments say; the state that it has then.
    fn follow(&mut self, index: u32, source: &mut SourceNode, values: &[Value]) -> NodeState {
        let function = source.function.clone();
        let flags = |at: usize| function.flags(at);
        let is_unknown = |(at, value): (usize, &Value)| !flags(at).allow_unknown && value.is_unknown();
        if self.unasked.holds_for(&function) || values.iter().enumerate().any(is_unknown) {
            self.detach(source);
            source.holds = false;
            let ty = &Self::node_of(&self.program, self.arena.site[index as usize]).ty;
            return NodeState::Value(unknown_result(&function, values, ty));
        }
        source.marks = Marks::none();
        let mut arguments = Vec::with_capacity(values.len());
        for (at, value) in values.iter().enumerate() {
            if flags(at).allow_marked {
                arguments.push(value.clone());
            } else {
                arguments.push(value.unmark_deep(&mut source.marks));
            }
        }
        if let Err(error) = self.attach(index, source, arguments) {
            source.holds = false;
            return self.fail(index, redacted(error, values));
        }
        let latest = source
            .following
            .and_then(|(id, _)| self.sources.followed.get(&id))
            .and_then(|followed| followed.latest.clone());
        match latest {
            Some(Ok(value)) => {
                source.holds = true;
                NodeState::Value(value.with_marks(&source.marks))
            }
            Some(Err(error)) => {
                source.holds = true;
                self.fail(index, redacted(error, values))
            }
            None if self.is_held(source) => {
                // No answer yet to the only question there is: what depends on it stays as it is until then.
                let height = self.arena.height[index as usize];
                let held_at = self.sources.held_at.get_or_insert(height);
                *held_at = height.min(*held_at);
                self.sources.pending.insert(index);
                self.held(index)
            }
            None if source.holds => self.held(index),
            None => {
                self.sources.pending.insert(index);
                NodeState::Pending
            }
        }
    }

    /// Whether a call waits for an answer that is certain to come.
    fn is_held(&self, source: &SourceNode) -> bool {
        let following = source.following.map(|(id, _)| SourceId(id));
        following.is_some_and(|id| self.sources.is_awaited(id))
    }

    /// The state of a call that waits for news and shows the old meanwhile; a fatal failure stays noted as wrong.
    fn held(&mut self, index: u32) -> NodeState {
        let state = self.arena.state[index as usize].clone();
        match state {
            NodeState::Failed(failure) => self.fail(index, failure.error.clone()),
            state => state,
        }
    }

    /// Brings a call to the subscription for these arguments.
    fn attach(
        &mut self,
        index: u32,
        source: &mut SourceNode,
        arguments: Vec<Value>,
    ) -> Result<(), CallError> {
        let function = source.function.clone();
        let Implementation::Source(implementation) = &function.implementation else {
            return Err(CallError::fatal("this function is not a source"));
        };
        let result = Self::node_of(&self.program, self.arena.site[index as usize])
            .ty
            .clone();
        let is_stateful = source.function.class == Class::Stateful;
        let reads_directory = implementation.reads_module_directory();
        let mut key = SourceKey {
            function: source.function.clone(),
            result,
            arguments,
            module_directory: reads_directory.then(|| source.module_directory.clone()),
            site: None,
        };
        if let Some((id, _)) = source.following
            && let Some(followed) = self.sources.followed.get_mut(&id)
        {
            key.site = followed.key.site;
            if is_same_key(&followed.key, &key) {
                return Ok(());
            }
            let is_alone = followed.nodes.len() == 1;
            if is_alone && !self.sources.by_key.contains_key(&key) {
                return self.move_along(id, source, key);
            }
        }
        if is_stateful {
            key.site = Some(self.sources.next);
        } else if let Some(id) = self.sources.by_key.get(&key).copied() {
            self.join_in(index, source, id);
            return Ok(());
        }
        let id = self.sources.next;
        self.sources.next += 1;
        let wake = (self.wake)(SourceId(id));
        let site = CallSite {
            id,
            module_directory: source.module_directory.clone(),
        };
        let Some(capabilities) = &self.capabilities else {
            return Err(nobody_to_ask());
        };
        let context = CallContext {
            capabilities,
            wake: wake.clone(),
            site: site.clone(),
            result: &key.result,
        };
        let opened = guarded(&source.function, || implementation.open(&context, &key.arguments));
        let subscription = match opened {
            Ok(subscription) => subscription,
            Err(error) => {
                self.detach(source);
                return Err(error);
            }
        };
        let mut followed = Followed {
            key: key.clone(),
            function: source.function.clone(),
            subscription,
            latest: None,
            nodes: Vec::new(),
            wake,
            site,
        };
        take(&mut followed);
        if followed.latest.is_none() && implementation.as_read_once().is_some() {
            self.sources.awaited.insert(id);
        }
        self.sources.changing += usize::from(source.function.class != Class::Environment);
        self.sources.followed.insert(id, followed);
        self.sources.by_key.insert(key, id);
        self.join_in(index, source, id);
        Ok(())
    }

    /// Gives a subscription new arguments.
    fn move_along(&mut self, id: u64, source: &mut SourceNode, key: SourceKey) -> Result<(), CallError> {
        let Some(followed) = self.sources.followed.get_mut(&id) else {
            return Ok(());
        };
        let Some(capabilities) = &self.capabilities else {
            return Err(nobody_to_ask());
        };
        let context = CallContext {
            capabilities,
            wake: followed.wake.clone(),
            site: followed.site.clone(),
            result: &key.result,
        };
        let subscription = &mut followed.subscription;
        let moved = guarded(&source.function, || subscription.update(&context, &key.arguments));
        if let Err(error) = moved {
            self.detach(source);
            return Err(error);
        }
        self.sources.by_key.remove(&followed.key);
        self.sources.by_key.insert(key.clone(), id);
        followed.key = key;
        followed.latest = None;
        take(followed);
        let is_once = matches!(
            &source.function.implementation,
            Implementation::Source(source) if source.as_read_once().is_some()
        );
        if is_once && followed.latest.is_none() {
            self.sources.awaited.insert(id);
        } else {
            self.sources.no_longer_awaited(id);
        }
        Ok(())
    }

    fn join_in(&mut self, index: u32, source: &mut SourceNode, id: u64) {
        // First in, then out: what both need stays.
        let left = source.following.take();
        if let Some(followed) = self.sources.followed.get_mut(&id) {
            source.following = Some((id, followed.nodes.len() as u32));
            followed.nodes.push(index);
        }
        self.leave(left);
    }

    /// Lets a call follow nothing.
    pub(super) fn detach(&mut self, source: &mut SourceNode) {
        let left = source.following.take();
        self.leave(left);
    }

    fn leave(&mut self, left: Option<(u64, u32)>) {
        let Some((id, place)) = left else {
            return;
        };
        let Some(followed) = self.sources.followed.get_mut(&id) else {
            return;
        };
        followed.nodes.swap_remove(place as usize);
        if let Some(moved) = followed.nodes.get(place as usize) {
            if let Kind::Source(other) = &mut self.arena.kind[*moved as usize] {
                other.following = Some((id, place));
            }
        } else if followed.nodes.is_empty()
            && let Some(followed) = self.sources.followed.remove(&id)
        {
            self.sources.changing -= usize::from(followed.function.class != Class::Environment);
            self.sources.by_key.remove(&followed.key);
            self.sources.reading.remove(&id);
            self.sources.no_longer_awaited(id);
        }
    }
}

/// Takes the newest from a subscription; whether it is another than before.
fn take(followed: &mut Followed) -> bool {
    let subscription = &mut followed.subscription;
    let taken = guarded(&followed.function, || Ok(subscription.take()));
    let news = match taken {
        Ok(None) => return false,
        Ok(Some(news)) => news,
        Err(panic) => Err(panic),
    };
    let is_same = match (&followed.latest, &news) {
        (Some(Ok(old)), Ok(new)) => is_identical(old, new),
        (Some(Err(old)), Err(new)) => old == new,
        _ => false,
    };
    if !is_same {
        followed.latest = Some(news);
    }
    !is_same
}

fn is_same_key(a: &SourceKey, b: &SourceKey) -> bool {
    a.function == b.function
        && a.site == b.site
        && a.result == b.result
        && a.module_directory == b.module_directory
        && a.arguments.len() == b.arguments.len()
        && a.arguments
            .iter()
            .zip(&b.arguments)
            .all(|(a, b)| is_identical(a, b))
}

/// Of an evaluator that asks nobody no source is opened.
fn nobody_to_ask() -> CallError {
    CallError::fatal("there is no machine to ask")
}
