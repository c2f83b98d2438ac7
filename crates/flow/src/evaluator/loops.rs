//! `for` and `forkv`: a scope for each element, kept for as long as the element's index or key is there.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use imbl::ordmap::DiffItem;
use setpoint_value::{CallError, List, Map, MapKey, Marks, Value};

use super::Evaluator;
use super::arena::Kind;
use super::environment::{Binding, EnvironmentId, ScopeId};
use super::instantiate::Part;
use super::state::{NodeState, differing, has_subtle_keys};
use super::switches::Decided;
use crate::Operation;

/// The scope of an element, and the node that holds the element.
#[derive(Clone, Copy)]
struct Element {
    scope: ScopeId,
    given: u32,
}

/// What there is inside a `for`.
#[derive(Default)]
pub(super) struct ForLoop {
    list: Option<(List, Marks)>,
    elements: Vec<Element>,
}

impl ForLoop {
    pub(super) fn scopes(&self) -> impl Iterator<Item = ScopeId> {
        self.elements.iter().map(|element| element.scope)
    }
}

/// What there is inside a `forkv`.
#[derive(Default)]
pub(super) struct KeyLoop {
    map: Option<(Map, Marks)>,
    entries: BTreeMap<MapKey, Entry>,
    /// Numbers that give the entries their place in program order: those not in use, and the first never used.
    free: BinaryHeap<Reverse<u32>>,
    next: u32,
}

struct Entry {
    element: Element,
    number: u32,
}

impl KeyLoop {
    pub(super) fn scopes(&self) -> impl Iterator<Item = ScopeId> {
        self.entries.values().map(|entry| entry.element.scope)
    }

    fn number(&mut self) -> u32 {
        if let Some(Reverse(number)) = self.free.pop() {
            return number;
        }
        self.next += 1;
        self.next - 1
    }
}

impl Evaluator {
    pub(super) fn compute_for(&mut self, index: u32, environment: EnvironmentId, body: &mut ForLoop) {
        let state = match self.decided(index) {
            Decided::Known(Value::List(list), marks) => {
                self.update_for(index, environment, body, list, marks);
                return;
            }
            Decided::Known(..) => self.fail(
                index,
                CallError::fatal("the loop is over something that is not a list"),
            ),
            Decided::Pending => NodeState::Pending,
            Decided::Failed(failure) => NodeState::Failed(failure),
            Decided::Unknown(marks) => NodeState::Value(self.unknown_of(index).with_marks(&marks)),
        };
        self.settle(index, environment, None, state);
        body.list = None;
        for element in std::mem::take(&mut body.elements) {
            self.tear_down(element.scope);
        }
    }

    fn update_for(
        &mut self,
        index: u32,
        environment: EnvironmentId,
        body: &mut ForLoop,
        list: List,
        marks: Marks,
    ) {
        let old = body.list.take();
        if let Some((old, old_marks)) = &old {
            let elements = &body.elements;
            if *old_marks != marks {
                for (element, value) in elements.iter().zip(list.iter()) {
                    self.give(element.given, value.clone().with_marks(&marks));
                }
            } else if !old.is_same(&list) {
                differing(old, &list, |at, _, value| {
                    if let Some(element) = elements.get(at) {
                        self.give(element.given, value.clone().with_marks(&marks));
                    }
                    false
                });
            }
        }
        while body.elements.len() > list.len() {
            if let Some(element) = body.elements.pop() {
                self.tear_down(element.scope);
            }
        }
        let start = body.elements.len();
        for at in start..list.len() {
            let Some(value) = list.get(at) else {
                break;
            };
            let first = Value::Int(at as i64);
            let value = value.clone().with_marks(&marks);
            let element = self.build_element(index, environment, first, value, at as u32);
            body.elements.push(element);
        }
        body.list = Some((list, marks));
    }

    pub(super) fn compute_key_loop(&mut self, index: u32, environment: EnvironmentId, body: &mut KeyLoop) {
        let state = match self.decided(index) {
            Decided::Known(Value::Map(map), marks) => {
                self.update_key_loop(index, environment, body, map, marks);
                return;
            }
            Decided::Known(..) => self.fail(
                index,
                CallError::fatal("the loop is over something that is not a map"),
            ),
            Decided::Pending => NodeState::Pending,
            Decided::Failed(failure) => NodeState::Failed(failure),
            Decided::Unknown(marks) => NodeState::Value(self.unknown_of(index).with_marks(&marks)),
        };
        self.settle(index, environment, None, state);
        self.clear_key_loop(body);
    }

    fn clear_key_loop(&mut self, body: &mut KeyLoop) {
        for entry in std::mem::take(body).entries.into_values() {
            self.tear_down(entry.element.scope);
        }
    }

    fn update_key_loop(
        &mut self,
        index: u32,
        environment: EnvironmentId,
        body: &mut KeyLoop,
        map: Map,
        marks: Marks,
    ) {
        let old = match body.map.take() {
            Some((old, old_marks)) if old_marks == marks => Some(old),
            Some(_) => {
                // Keys are constants of their scopes, and they carry the marks.
                self.clear_key_loop(body);
                None
            }
            None => None,
        };
        let mut added: Vec<(&Value, &Value)> = Vec::new();
        if let Some(old) = &old {
            let subtle = has_subtle_keys(old) || has_subtle_keys(&map);
            for change in old.entries().diff(map.entries()) {
                match change {
                    DiffItem::Add(key, value) => added.push((&key.0, value)),
                    DiffItem::Remove(key, _) => self.remove_entry(body, key),
                    DiffItem::Update {
                        new: (key, value), ..
                    } => {
                        if let Some(entry) = body.entries.get(key) {
                            self.give(entry.element.given, value.clone().with_marks(&marks));
                        }
                    }
                }
            }
            if subtle {
                // A key that compares equal and is another one all the same gets a new scope.
                for (key, value) in map.iter() {
                    let key_of = MapKey(key.clone());
                    let kept = body.entries.get_key_value(&key_of);
                    if kept.is_some_and(|(kept, _)| kept.0 != *key) {
                        self.remove_entry(body, &key_of);
                        added.push((key, value));
                    }
                }
            }
        } else {
            added.extend(map.iter());
        }
        for (key, value) in added {
            let number = body.number();
            let first = key.clone().with_marks(&marks);
            let second = value.clone().with_marks(&marks);
            let element = self.build_element(index, environment, first, second, number);
            let entry = Entry { element, number };
            body.entries.insert(MapKey(key.clone()), entry);
        }
        body.map = Some((map, marks));
    }

    fn remove_entry(&mut self, body: &mut KeyLoop, key: &MapKey) {
        if let Some(entry) = body.entries.remove(key) {
            body.free.push(Reverse(entry.number));
            self.tear_down(entry.element.scope);
        }
    }

    /// The body of a loop for one element; `first` is its index or key.
    fn build_element(
        &mut self,
        owner: u32,
        environment: EnvironmentId,
        first: Value,
        value: Value,
        number: u32,
    ) -> Element {
        let program = Arc::clone(&self.program);
        let scope = self.scope_of(owner);
        let given = self.add_given(owner, scope, value);
        let operation = &Self::node_of(&program, self.arena.site[owner as usize]).operation;
        let of_body = match operation {
            Operation::For { body, .. } => Some((body, Part::Element(number))),
            Operation::ForKv { body, .. } => Some((body, Part::Entry(number, first.clone()))),
            _ => None,
        };
        if let Some((body, part)) = of_body {
            let inputs = [Binding::Constant(first), Binding::Node(self.arena.id(given))]
                .into_iter()
                .chain(Self::captures(&body.captures, environment))
                .collect();
            self.build_in(owner, scope, environment, body.template, inputs, part, false);
        }
        Element { scope, given }
    }

    /// A node in a scope whose value its owner sets.
    pub(super) fn add_given(&mut self, owner: u32, scope: ScopeId, value: Value) -> u32 {
        let at = owner as usize;
        let (site, chain) = (self.arena.site[at], self.arena.chain[at].clone());
        let given = self.add_node(Kind::Given, site, scope, chain, &[]);
        self.arena.state[given as usize] = NodeState::Value(value);
        self.arena.pinned[given as usize] = true;
        if let Some(scope) = self.scopes.get_mut(scope.0) {
            scope.given.push(given);
        }
        given
    }

    /// Sets the value of such a node.
    pub(super) fn give(&mut self, given: u32, value: Value) {
        self.set_state(given, NodeState::Value(value));
    }
}
