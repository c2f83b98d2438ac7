//! The naive evaluator: everything from scratch, by recursion, for one moment of the outside.
//!
//! It shares no code with the real one but the functions that are called and what makes resources of statements.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use setpoint_diagnostics::{Diagnostics, Span};
use setpoint_flow::{Block, Operation, Program, Slot, TemplateId};
use setpoint_graph::{
    DesiredGraph, StatementOutput, UnknownPart, UnknownWhat, assemble, build_edge, build_resource,
};
use setpoint_simulated::SimulatedCapabilities;
use setpoint_value::{
    CallContext, CallError, CallSite, Callable, Capabilities, Func, FunctionSpec, Implementation, Marks,
    ScopeArgument, ScopeBuilder, Type, Value, Wake, call,
};

use crate::plain::PLAIN;

/// What holds at one moment.
pub(crate) struct Moment {
    /// What is wrong while values flow: code and place.
    pub(crate) wrong: BTreeSet<(&'static str, Span, String)>,
    /// Calls of sources without a value.
    pub(crate) pending: BTreeSet<Span>,
    /// What is wrong with single statements.
    pub(crate) statements: Diagnostics,
    /// The graph, if nothing of the above is wrong or pending.
    pub(crate) graph: Option<Result<DesiredGraph, Diagnostics>>,
}

/// Evaluates a program.
pub(crate) fn evaluate(program: &Program, machine: &SimulatedCapabilities) -> Moment {
    let oracle = Oracle {
        program,
        capabilities: Arc::new(machine.clone()),
        seen: Mutex::default(),
    };
    let entry = Instance::new(program, program.entry, Vec::new());
    oracle.statements(&entry);
    let mut seen = oracle.seen.into_inner().unwrap();
    let is_good = seen.wrong.is_empty() && seen.pending.is_empty() && !seen.diagnostics.has_errors();
    Moment {
        wrong: seen.wrong,
        pending: seen.pending,
        statements: seen.diagnostics,
        graph: is_good.then(|| assemble(std::mem::take(&mut seen.outputs), &PLAIN)),
    }
}

struct Oracle<'a> {
    program: &'a Program,
    capabilities: Arc<dyn Capabilities>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    wrong: BTreeSet<(&'static str, Span, String)>,
    pending: BTreeSet<Span>,
    diagnostics: Diagnostics,
    outputs: Vec<StatementOutput>,
}

/// What an expression has.
#[derive(Clone)]
enum Outcome {
    Pending,
    Failed(CallError, Span),
    Value(Value),
}

/// A template in place; what its slots have is found out once.
struct Instance {
    template: TemplateId,
    inputs: Vec<Input>,
    known: Mutex<Vec<Option<Outcome>>>,
    inner: Mutex<Vec<Option<Arc<Instance>>>>,
}

#[derive(Clone)]
enum Input {
    Value(Outcome),
    Slot(Arc<Instance>, Slot),
}

impl Instance {
    fn new(program: &Program, template: TemplateId, inputs: Vec<Input>) -> Arc<Instance> {
        let count = program.template(template).nodes.len();
        Arc::new(Instance {
            template,
            inputs,
            known: Mutex::new(vec![None; count]),
            inner: Mutex::new(vec![None; count]),
        })
    }
}

struct NaiveClosure {
    home: Arc<Instance>,
    block: Block,
}

impl Callable for NaiveClosure {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn call(&self, _: &[Value]) -> Result<Value, CallError> {
        Err(CallError::fatal("only the oracle calls this"))
    }
}

#[derive(Default)]
struct Calls(Vec<(Func, Vec<ScopeArgument>)>);

impl ScopeBuilder for Calls {
    fn call(&mut self, slot: usize, function: &Func, arguments: &[ScopeArgument]) {
        self.0.truncate(slot);
        self.0.push((function.clone(), arguments.to_vec()));
    }

    fn truncate(&mut self, first: usize) {
        self.0.truncate(first);
    }
}

impl Oracle<'_> {
    fn value(&self, instance: &Arc<Instance>, slot: Slot) -> Outcome {
        let template = self.program.template(instance.template);
        if slot.0 < template.inputs {
            return match &instance.inputs[slot.0 as usize] {
                Input::Value(outcome) => outcome.clone(),
                Input::Slot(outer, slot) => self.value(outer, *slot),
            };
        }
        let node = (slot.0 - template.inputs) as usize;
        if let Some(known) = &instance.known.lock().unwrap()[node] {
            return known.clone();
        }
        let outcome = self.compute(instance, node);
        instance.known.lock().unwrap()[node] = Some(outcome.clone());
        outcome
    }

    /// The instance behind a slot that stands for one.
    fn instance(&self, around: &Arc<Instance>, slot: Slot) -> Arc<Instance> {
        let template = self.program.template(around.template);
        if slot.0 < template.inputs {
            return match &around.inputs[slot.0 as usize] {
                Input::Slot(outer, slot) => self.instance(outer, *slot),
                Input::Value(_) => panic!("an instance is not a value"),
            };
        }
        let node = (slot.0 - template.inputs) as usize;
        if let Some(known) = &around.inner.lock().unwrap()[node] {
            return known.clone();
        }
        let inner = match &template.nodes[node].operation {
            Operation::Instance { template, arguments } => {
                Instance::new(self.program, *template, slots(around, arguments))
            }
            Operation::Exported { instance, export } => {
                let inner = self.instance(around, *instance);
                let slot = self.program.template(inner.template).exports[*export as usize];
                self.instance(&inner, slot)
            }
            other => panic!("{other:?} is no instance"),
        };
        around.inner.lock().unwrap()[node] = Some(inner.clone());
        inner
    }

    fn fail(&self, error: CallError, span: Span) -> Outcome {
        if !error.is_catchable() {
            let entry = ("fatal", span, error.to_string());
            self.seen.lock().unwrap().wrong.insert(entry);
        }
        Outcome::Failed(error, span)
    }

    fn all(&self, instance: &Arc<Instance>, slots: &[Slot]) -> Result<Vec<Value>, Outcome> {
        let outcomes: Vec<Outcome> = slots.iter().map(|slot| self.value(instance, *slot)).collect();
        if let Some(failed) = outcomes.iter().find(|o| matches!(o, Outcome::Failed(..))) {
            return Err(failed.clone());
        }
        outcomes
            .into_iter()
            .map(|outcome| match outcome {
                Outcome::Value(value) => Ok(value),
                other => Err(other),
            })
            .collect()
    }

    fn compute(&self, instance: &Arc<Instance>, node: usize) -> Outcome {
        match self.try_compute(instance, node) {
            Ok(value) => Outcome::Value(value),
            Err(outcome) => outcome,
        }
    }

    fn try_compute(&self, instance: &Arc<Instance>, node: usize) -> Result<Value, Outcome> {
        let node = &self.program.template(instance.template).nodes[node];
        let unknown = |marks: &Marks| Ok(Value::unknown(node.ty.clone()).with_marks(marks));
        match &node.operation {
            Operation::Constant(value) => Ok(value.clone()),
            Operation::List(items) => {
                let Type::List(element) = &node.ty else { panic!() };
                let items = self.all(instance, items)?;
                Ok(Value::list((**element).clone(), items))
            }
            Operation::Map(entries) => {
                let flat: Vec<Slot> = entries.iter().flat_map(|(k, v)| [*k, *v]).collect();
                let values = self.all(instance, &flat)?;
                if values.iter().step_by(2).any(|key| !key.is_wholly_known()) {
                    return unknown(&Marks::none());
                }
                let Type::Map(of) = &node.ty else { panic!() };
                let entries = values.chunks(2).map(|entry| (entry[0].clone(), entry[1].clone()));
                Ok(Value::map(of.0.clone(), of.1.clone(), entries))
            }
            Operation::Struct(fields) => Ok(Value::structure(node.ty.clone(), self.all(instance, fields)?)),
            Operation::Field { of, index } => {
                let of = self.all(instance, &[*of])?.remove(0);
                let (plain, marks) = of.unmark();
                match plain {
                    Value::Struct(fields) => Ok(fields.fields()[*index as usize].clone().with_marks(&marks)),
                    _ => unknown(&marks),
                }
            }
            Operation::Call {
                function,
                arguments,
                module_directory,
            } => {
                let values = self.all(instance, arguments)?;
                self.call(function, &values, &node.ty, node.span, module_directory)
            }
            Operation::Closure(block) => Ok(Value::Func(Func::new(
                node.ty.clone(),
                NaiveClosure {
                    home: instance.clone(),
                    block: block.clone(),
                },
            ))),
            Operation::Apply { function, arguments } => {
                let function = self.all(instance, &[*function])?.remove(0);
                let (plain, marks) = function.unmark();
                let Value::Func(function) = plain else {
                    return unknown(&marks);
                };
                marked(self.apply(function, slots(instance, arguments)), &marks)
            }
            Operation::Instance { .. } | Operation::Exported { .. } => {
                let template = self.program.template(instance.template);
                let index = template.nodes.iter().position(|n| std::ptr::eq(n, node)).unwrap();
                if let Operation::Exported { instance: of, export } = &node.operation {
                    let inner = self.instance(instance, *of);
                    let slot = self.program.template(inner.template).exports[*export as usize];
                    return settled(self.value(&inner, slot));
                }
                let inner = self.instance(instance, Slot(template.inputs + index as u32));
                let result = self.program.template(inner.template).result.unwrap();
                settled(self.value(&inner, result))
            }
            Operation::If {
                condition,
                then,
                otherwise,
            } => {
                let condition = self.all(instance, &[*condition])?.remove(0);
                let (plain, marks) = condition.unmark();
                let Value::Bool(condition) = plain else {
                    return unknown(&marks);
                };
                let block = if *condition { then } else { otherwise };
                marked(self.block(instance, block), &marks)
            }
            Operation::Except { value, fallback } => match self.value(instance, *value) {
                Outcome::Failed(error, _) if error.is_catchable() => settled(self.block(instance, fallback)),
                Outcome::Value(value) if value.is_unknown() => unknown(&value.unmark().1),
                other => settled(other),
            },
            Operation::IfStatement { .. }
            | Operation::For { .. }
            | Operation::ForKv { .. }
            | Operation::Resource(_)
            | Operation::Collect { .. }
            | Operation::Edge(_)
            | Operation::Panic { .. } => panic!("a statement is not a value"),
        }
    }

    fn block(&self, around: &Arc<Instance>, block: &Block) -> Outcome {
        let inner = Instance::new(self.program, block.template, slots(around, &block.captures));
        let result = self.program.template(block.template).result.unwrap();
        self.value(&inner, result)
    }

    fn apply(&self, function: &Func, mut inputs: Vec<Input>) -> Outcome {
        let closure = function
            .implementation()
            .as_any()
            .downcast_ref::<NaiveClosure>()
            .unwrap();
        inputs.extend(slots(&closure.home, &closure.block.captures));
        let inner = Instance::new(self.program, closure.block.template, inputs);
        let result = self.program.template(closure.block.template).result.unwrap();
        self.value(&inner, result)
    }

    fn call(
        &self,
        function: &FunctionSpec,
        values: &[Value],
        ty: &Type,
        span: Span,
        directory: &Arc<str>,
    ) -> Result<Value, Outcome> {
        let hide = |error: CallError| {
            if values.iter().any(Value::is_sensitive) {
                hidden(error)
            } else {
                error
            }
        };
        let mut marks = Marks::none();
        let plain: Vec<Value> = values.iter().map(|value| value.unmark_deep(&mut marks)).collect();
        match &function.implementation {
            Implementation::Pure(_) => {
                call::call_typed(function, values, ty).map_err(|error| self.fail(hide(error), span))
            }
            _ if plain.iter().any(Value::is_unknown) => Ok(Value::unknown(ty.clone()).with_marks(&marks)),
            Implementation::Source(source) => {
                let context = CallContext {
                    capabilities: &self.capabilities,
                    wake: Wake::new(|| ()),
                    site: CallSite {
                        id: 0,
                        module_directory: directory.clone(),
                    },
                    result: ty,
                };
                let opened = source.open(&context, &plain);
                match opened.map(|mut subscription| subscription.take()) {
                    Ok(None) => {
                        self.seen.lock().unwrap().pending.insert(span);
                        Err(Outcome::Pending)
                    }
                    Ok(Some(Ok(value))) => Ok(value.with_marks(&marks)),
                    Ok(Some(Err(error))) | Err(error) => Err(self.fail(hide(error), span)),
                }
            }
            Implementation::Shape(shape) => {
                let mut state = shape.start();
                let mut calls = Calls::default();
                state
                    .update(&plain, &mut calls)
                    .map_err(|error| self.fail(hide(error), span))?;
                let mut results: Vec<Outcome> = Vec::new();
                for (function, arguments) in calls.0 {
                    let inputs = arguments.iter().map(|argument| match argument {
                        ScopeArgument::Value(value) => Input::Value(Outcome::Value(value.clone())),
                        ScopeArgument::Result(slot) => Input::Value(results[*slot].clone()),
                    });
                    let result = self.apply(&function, inputs.collect());
                    results.push(result);
                }
                if let Some(failed) = results.iter().find(|o| matches!(o, Outcome::Failed(..))) {
                    return Err(failed.clone());
                }
                let values: Option<Vec<Value>> = results
                    .iter()
                    .map(|outcome| match outcome {
                        Outcome::Value(value) => Some(value.clone()),
                        _ => None,
                    })
                    .collect();
                let values = values.ok_or(Outcome::Pending)?;
                let all: Vec<usize> = (0..values.len()).collect();
                let collected = state.collect(&|slot| values[slot].clone(), &all);
                let value = collected.map_err(|error| self.fail(hide(error), span))?;
                Ok(value.with_marks(&marks))
            }
        }
    }

    /// The values that a statement needs; failures are noted as uncaught.
    fn needed(&self, instance: &Arc<Instance>, slots: &[Slot]) -> Option<Vec<Value>> {
        let mut values = Vec::new();
        let mut complete = true;
        for slot in slots {
            match self.value(instance, *slot) {
                Outcome::Value(value) => values.push(value),
                Outcome::Pending => complete = false,
                Outcome::Failed(error, span) => {
                    complete = false;
                    if error.is_catchable() {
                        let entry = ("uncaught", span, error.to_string());
                        self.seen.lock().unwrap().wrong.insert(entry);
                    }
                }
            }
        }
        complete.then_some(values)
    }

    fn statements(&self, instance: &Arc<Instance>) {
        let template = self.program.template(instance.template);
        for (index, node) in template.nodes.iter().enumerate() {
            self.statement(instance, index, &node.operation, node.span);
        }
    }

    fn statement(&self, instance: &Arc<Instance>, index: usize, operation: &Operation, span: Span) {
        let template = self.program.template(instance.template);
        let inside = |block: &Block, first: Vec<Value>| {
            let mut inputs: Vec<Input> = first
                .into_iter()
                .map(|v| Input::Value(Outcome::Value(v)))
                .collect();
            inputs.extend(slots(instance, &block.captures));
            self.statements(&Instance::new(self.program, block.template, inputs));
        };
        match operation {
            Operation::Instance { template: inner, .. } if self.has_statements(*inner) => {
                self.statements(&self.instance(instance, Slot(template.inputs + index as u32)));
            }
            Operation::Resource(statement) => {
                let mut used = vec![statement.name];
                for field in &statement.fields {
                    used.push(field.value);
                    used.extend(field.condition);
                }
                if let Some(values) = self.needed(instance, &used) {
                    let get = |slot: &Slot| values[used.iter().position(|s| s == slot).unwrap()].clone();
                    let mut diagnostics = Diagnostics::new();
                    let output = build_resource(statement, None, &get, &PLAIN, &mut diagnostics);
                    let mut seen = self.seen.lock().unwrap();
                    seen.diagnostics.append(diagnostics);
                    seen.outputs.push(output);
                }
            }
            Operation::Edge(statement) => {
                let used: Vec<Slot> = statement.endpoints.iter().map(|endpoint| endpoint.name).collect();
                if let Some(values) = self.needed(instance, &used) {
                    let get = |slot: &Slot| values[used.iter().position(|s| s == slot).unwrap()].clone();
                    let mut diagnostics = Diagnostics::new();
                    let output = build_edge(statement, &get, &PLAIN, &mut diagnostics);
                    let mut seen = self.seen.lock().unwrap();
                    seen.diagnostics.append(diagnostics);
                    seen.outputs.push(output);
                }
            }
            Operation::Panic { condition, message } => {
                let used: Vec<Slot> = [Some(*condition), *message].into_iter().flatten().collect();
                let Some(values) = self.needed(instance, &used) else {
                    return;
                };
                let fires = match values[0].unmarked() {
                    Value::Bool(fires) => *fires,
                    Value::Str(text) => !text.is_empty(),
                    _ => false,
                };
                if fires {
                    self.seen
                        .lock()
                        .unwrap()
                        .wrong
                        .insert(("panic", span, String::new()));
                }
            }
            Operation::IfStatement {
                condition,
                then,
                otherwise,
                ..
            } => {
                let Some(values) = self.needed(instance, &[*condition]) else {
                    return;
                };
                match values[0].as_bool() {
                    Some(true) => then.iter().for_each(|block| inside(block, Vec::new())),
                    Some(false) => otherwise.iter().for_each(|block| inside(block, Vec::new())),
                    None => self.unknown_block(span),
                }
            }
            Operation::For { list, body, .. } => {
                let Some(values) = self.needed(instance, &[*list]) else {
                    return;
                };
                let (_, marks) = values[0].unmark();
                match values[0].as_list() {
                    Some(list) => {
                        for (index, element) in list.iter().enumerate() {
                            let element = element.clone().with_marks(&marks);
                            inside(body, vec![Value::Int(index as i64), element]);
                        }
                    }
                    None => self.unknown_block(span),
                }
            }
            Operation::ForKv { map, body, .. } => {
                let Some(values) = self.needed(instance, &[*map]) else {
                    return;
                };
                let (_, marks) = values[0].unmark();
                match values[0].as_map() {
                    Some(map) => {
                        for (key, value) in map.iter() {
                            let marked = |value: &Value| value.clone().with_marks(&marks);
                            inside(body, vec![marked(key), marked(value)]);
                        }
                    }
                    None => self.unknown_block(span),
                }
            }
            _ => {}
        }
    }

    fn unknown_block(&self, span: Span) {
        self.seen.lock().unwrap().outputs.push(StatementOutput {
            unknown: vec![UnknownPart {
                span,
                what: UnknownWhat::Block,
            }],
            span: Some(span),
            ..StatementOutput::default()
        });
    }

    fn has_statements(&self, template: TemplateId) -> bool {
        self.program
            .template(template)
            .nodes
            .iter()
            .any(|node| match &node.operation {
                Operation::Instance { template, .. } => self.has_statements(*template),
                Operation::IfStatement { .. }
                | Operation::For { .. }
                | Operation::ForKv { .. }
                | Operation::Resource(_)
                | Operation::Collect { .. }
                | Operation::Edge(_)
                | Operation::Panic { .. } => true,
                _ => false,
            })
    }
}

fn slots(instance: &Arc<Instance>, slots: &[Slot]) -> Vec<Input> {
    slots
        .iter()
        .map(|slot| Input::Slot(instance.clone(), *slot))
        .collect()
}

fn settled(outcome: Outcome) -> Result<Value, Outcome> {
    match outcome {
        Outcome::Value(value) => Ok(value),
        other => Err(other),
    }
}

fn marked(outcome: Outcome, marks: &Marks) -> Result<Value, Outcome> {
    settled(outcome).map(|value| value.with_marks(marks))
}

/// Errors about secrets do not tell their reason.
fn hidden(error: CallError) -> CallError {
    let message = "the reason is not shown because an argument is sensitive".to_owned();
    match error {
        CallError::Argument(mut argument) => {
            argument.message = message;
            CallError::Argument(argument)
        }
        CallError::Refused(mut argument) => {
            argument.message = message;
            CallError::Refused(argument)
        }
        CallError::Failed { catchable, .. } => CallError::Failed { message, catchable },
        CallError::Panicked { function, .. } => CallError::Panicked { function, message },
    }
}
