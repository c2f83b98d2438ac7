//! The evaluator: instances of a program's templates, kept up to date.
//!
//! **Nodes** live in an arena ([`arena`]) and have a *height* above everything they are computed from. A step writes what
//! came in and computes the queue ([`queue`]) from the lowest height upwards, so that no node is computed twice and none sees
//! old and new at once; where a value stays identical, the wave ends.
//!
//! **Scopes** ([`environment`]) come and go: a *switch* node ([`switches`], [`loops`], [`shapes`]) looks at a condition, a
//! list or a function value and owns the scopes that follow from it; a *join* node outside shows what a scope results in.
//! Everything in a scope is higher than its switch, so a scope that goes away does so before its nodes would be computed.
//! A join that comes to lie too low is raised with all that depends on it; heights never go down.
//!
//! **Demand** ([`instantiate`], [`resolution`], [`statements`]): statements are there because the program says them, everything else because somebody
//! asks for it, and for as long. What a branch captures is made when the branch is taken. What depends on no source is a
//! constant and no node.
//!
//! Nothing recurses: instantiation, heights, removal and the wave work on explicit stacks.

mod arena;
mod computation;
mod environment;
mod errors;
mod instantiate;
mod loops;
mod outputs;
mod prepared;
mod queue;
mod resolution;
mod shapes;
mod sources;
mod state;
mod statements;
mod switches;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use setpoint_diagnostics::{Diagnostics, Span};
use setpoint_graph::{DesiredGraph, Link, StatementOutput, UnknownPart};
use setpoint_value::{Capabilities, Class, FunctionSpec, Wake};
use smallvec::SmallVec;

use self::arena::{Arena, Input, Kind, Reference, Site};
use self::environment::{Environment, Scope, ScopeId, Slab};
use self::errors::Problem;
use self::instantiate::InstanceSite;
use self::outputs::{OutputKey, Outputs};
use self::prepared::Prepared;
use self::queue::HeightQueue;
use self::sources::Sources;
use self::state::NodeState;
use crate::{Expansion, Operation, Program, Slot, TemplateId, TemplateNode};

/// A running program. It is stepped by its owner and does nothing by itself.
///
/// ```
/// use std::sync::Arc;
/// use setpoint_flow::{Evaluator, Program, Template, TemplateId};
/// use setpoint_simulated::SimulatedCapabilities;
/// use setpoint_value::Wake;
/// # use setpoint_diagnostics::{CodeInfo, Stage};
/// # #[derive(Debug)]
/// # struct MyLanguage;
/// # static CODE: CodeInfo = CodeInfo { code: "E1", rule: "", stage: Stage::new("run"), summary: "" };
/// # impl setpoint_graph::Language for MyLanguage {
/// #     fn code(&self, _: &setpoint_graph::Problem) -> &'static CodeInfo { &CODE }
/// #     fn meta_parameter(&self, name: setpoint_graph::MetaName) -> String { name.name().to_owned() }
/// # }
/// # impl setpoint_flow::Language for MyLanguage {
/// #     fn evaluation_code(&self, _: setpoint_flow::EvaluationProblem) -> &'static CodeInfo { &CODE }
/// # }
///
/// let entry = Template { name: "the entry".into(), inputs: 0, nodes: vec![], result: None, exports: vec![] };
/// let program = Program { templates: vec![entry], entry: TemplateId(0), language: &MyLanguage };
/// let machine = Arc::new(SimulatedCapabilities::new());
/// let mut evaluator = Evaluator::new(Arc::new(program), machine, Box::new(|_| Wake::new(|| ())));
/// let step = evaluator.step(&[]);
/// assert!(step.graph.is_some_and(|graph| graph.resources.is_empty()));
/// ```
pub struct Evaluator {
    program: Arc<Program>,
    prepared: Prepared,
    /// None where nothing asks for anything.
    capabilities: Option<Arc<dyn Capabilities>>,
    wake: Box<dyn Fn(SourceId) -> Wake + Send>,
    /// Which calls give unknowns.
    unasked: Unasked,
    /// Knows which resources stand for others.
    expansion: Option<Arc<dyn Expansion>>,
    started: bool,
    arena: Arena,
    queue: HeightQueue,
    environments: Slab<Environment>,
    scopes: Slab<Scope>,
    entry_scope: ScopeId,
    sources: Sources,
    outputs: Outputs,
    /// What is wrong at each node, for nodes at which something is.
    problems: BTreeMap<u32, Vec<Problem>>,
    /// Statements over unknown conditions, lists and maps, with what they give to the graph: that there may be more.
    unknown: BTreeMap<u32, (OutputKey, Arc<StatementOutput>)>,
    /// Tells the function values of this evaluator from those of others.
    identity: Arc<()>,
    computed: usize,
    record: Option<Vec<Recomputed>>,
    stop: Stop,
    /// The last step is not finished.
    is_paused: bool,
    /// What had news while a step was not finished.
    deferred: BTreeSet<SourceId>,
}

/// Ends an evaluation from any thread, also in the midst of a step. A clone stops the same evaluation.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Stops, for good.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A source that an evaluator follows. Never used again within one evaluator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub u64);

/// What a step led to.
#[derive(Debug, Clone)]
pub struct Step {
    /// Whether everything was computed that the news lead to. If not, an answer is on its way (its source wakes when it is
    /// there) or the evaluator was stopped; of the rest, only `pending` and `recomputed` say something.
    pub is_finished: bool,
    /// The new desired graph, if there is one: nothing is pending, nothing is wrong, and something changed.
    pub graph: Option<DesiredGraph>,
    /// Everything that is wrong now, in the order of the text.
    pub diagnostics: Diagnostics,
    /// Sources that are needed and have given nothing yet. While there are some there is no graph. Of an evaluator that was
    /// stopped, also what it was computing.
    pub pending: Vec<Pending>,
    /// What is left out of the graph because it is unknown until it is applied.
    pub unknown: Vec<UnknownPart>,
    /// How many nodes were computed.
    pub recomputed: usize,
}

/// Which calls give unknowns instead of being made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unasked {
    Nothing,
    /// Those of unpredictable functions, with those that run commands or without.
    Unpredictable {
        but_commands: bool,
    },
    /// Of all functions that ask for anything but their arguments.
    Machine,
}

impl Unasked {
    fn holds_for(self, function: &FunctionSpec) -> bool {
        match self {
            Unasked::Nothing => false,
            Unasked::Unpredictable { but_commands } => {
                function.unpredictable && !(but_commands && function.runs_commands)
            }
            Unasked::Machine => function.unpredictable || function.class != Class::Pure,
        }
    }
}

/// A source without a first value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pending {
    /// The call.
    pub span: Span,
    /// The function, as [`setpoint_value::FunctionSpec`] prints it.
    pub function: String,
}

/// A node that a step computed: an instance of this slot of this template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Recomputed {
    /// The template.
    pub template: TemplateId,
    /// The slot.
    pub slot: Slot,
    /// Which node it is: no other has this number while the evaluator lives, or at worst after very many steps.
    pub node: u64,
}

impl Evaluator {
    /// A program that is not running yet: the first [`Evaluator::step`] starts it. `wake` makes what a source is given to
    /// say that it has news; it may be called in any step, and what it makes from any thread.
    #[must_use]
    pub fn new(
        program: Arc<Program>,
        capabilities: Arc<dyn Capabilities>,
        wake: Box<dyn Fn(SourceId) -> Wake + Send>,
    ) -> Evaluator {
        Evaluator::with(program, Some(capabilities), wake)
    }

    /// A program that asks nobody: all calls give unknowns that ask for anything but their arguments.
    #[must_use]
    pub fn alone(program: Arc<Program>) -> Evaluator {
        Evaluator::with(program, None, Box::new(|_| Wake::new(|| ()))).without_machine()
    }

    fn with(
        program: Arc<Program>,
        capabilities: Option<Arc<dyn Capabilities>>,
        wake: Box<dyn Fn(SourceId) -> Wake + Send>,
    ) -> Evaluator {
        let prepared = Prepared::new(&program);
        let mut scopes = Slab::default();
        let entry_scope = ScopeId(scopes.insert(Scope::default()));
        let outputs = Outputs::new(program.language);
        Evaluator {
            program,
            prepared,
            capabilities,
            wake,
            unasked: Unasked::Nothing,
            expansion: None,
            started: false,
            arena: Arena::default(),
            queue: HeightQueue::default(),
            environments: Slab::default(),
            scopes,
            entry_scope,
            sources: Sources::default(),
            outputs,
            problems: BTreeMap::new(),
            unknown: BTreeMap::new(),
            identity: Arc::new(()),
            computed: 0,
            record: None,
            stop: Stop::default(),
            is_paused: false,
            deferred: BTreeSet::new(),
        }
    }

    /// Lets somebody end it. After that no step is finished, and the evaluator is good for nothing but being dropped.
    #[must_use]
    pub fn stopped_by(mut self, stop: Stop) -> Evaluator {
        self.stop = stop;
        self
    }

    /// With resources that stand for others. To be said before the first step.
    #[must_use]
    pub fn expanding(mut self, expansion: Arc<dyn Expansion>) -> Evaluator {
        self.expansion = Some(expansion);
        self
    }

    /// Lets calls of unpredictable functions give unknowns, as `plan` wants it; `but_commands` lets those run that run a command. To be
    /// said before the first step.
    #[must_use]
    pub fn predicting(mut self, but_commands: bool) -> Evaluator {
        self.unasked = Unasked::Unpredictable { but_commands };
        self
    }

    /// Lets all calls give unknowns that ask for anything but their arguments: no source is opened, and what is computed follows
    /// from the program's text alone. To be said before the first step.
    #[must_use]
    pub fn without_machine(mut self) -> Evaluator {
        self.unasked = Unasked::Machine;
        self
    }

    /// Takes what these sources have to tell, computes what depends on it, and answers what holds then. The first step puts
    /// the program in place and takes the first values of its sources. A step that is not finished goes on with the next call;
    /// what other sources have to tell is taken after that, for which they wake once more.
    #[must_use]
    pub fn step(&mut self, woken: &[SourceId]) -> Step {
        self.computed = 0;
        if !self.started {
            self.started = true;
            self.put_entry_in_place();
        }
        for id in woken {
            if self.is_paused && !self.sources.is_awaited(*id) {
                self.deferred.insert(*id);
            } else {
                self.receive(*id);
            }
        }
        let at = self.run();
        self.is_paused = self.stop.is_stopped() || self.sources.is_awaiting();
        if self.is_paused {
            return self.report_unfinished(at);
        }
        // A step of their own follows: whoever drives this one learns what it has led to first.
        for id in std::mem::take(&mut self.deferred) {
            self.sources.wake_again(id);
        }
        self.report()
    }

    /// Whether a source reads a change, so that the program may have another value soon. The source wakes when it has read.
    #[must_use]
    pub fn is_reading(&self) -> bool {
        self.sources.is_reading()
    }

    /// Whether something can change by itself: a source is followed that is more than a fact read once.
    #[must_use]
    pub fn has_sources(&self) -> bool {
        self.sources.can_change()
    }

    /// How many nodes there are: what is left of the program after everything that depends on no source is folded.
    #[must_use]
    pub fn live_nodes(&self) -> usize {
        self.arena.live()
    }

    /// How many instances of templates there are: what is put in place and taken away leaves none behind.
    #[must_use]
    pub fn live_instances(&self) -> usize {
        self.environments.len()
    }

    /// Begins or ends noting which nodes are computed, for [`Evaluator::take_record`].
    pub fn set_recording(&mut self, on: bool) {
        self.record = on.then(Vec::new);
    }

    /// The nodes computed since recording began or this was called last, in order.
    pub fn take_record(&mut self) -> Vec<Recomputed> {
        self.record.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn put_entry_in_place(&mut self) {
        let place = InstanceSite {
            scope: self.entry_scope,
            parent: None,
            path: OutputKey::default(),
            chain: None,
        };
        let mut tasks = Vec::new();
        let entry = self.instance(self.program.entry, Vec::new(), place, &mut tasks);
        self.work(&mut tasks);
        self.forget_unless_lasting(entry, None);
    }

    /// Computes until nothing is left to compute or an answer is needed for going on. If it is stopped, says where.
    fn run(&mut self) -> Option<u32> {
        while let Some((index, height)) = self.queue.pop(self.sources.highest()) {
            let at = index as usize;
            self.arena.queued[at] = false;
            if matches!(self.arena.kind[at], Kind::Free) {
                self.arena.release(index);
            } else if self.arena.height[at] > height {
                // Raised while it was waiting.
                self.enqueue(index);
            } else {
                self.computed += 1;
                if self.record.is_some() {
                    let site = self.arena.site[at];
                    let slot = Slot(self.program.template(site.template).inputs + site.node);
                    let id = self.arena.id(index);
                    let node = u64::from(id.generation) << 32 | u64::from(id.index);
                    let template = site.template;
                    self.record
                        .get_or_insert_default()
                        .push(Recomputed { template, slot, node });
                }
                self.compute(index);
            }
            if self.stop.is_stopped() {
                return (!matches!(self.arena.kind[at], Kind::Free)).then_some(index);
            }
        }
        None
    }

    fn compute(&mut self, index: u32) {
        self.problems.remove(&index);
        match &self.arena.kind[index as usize] {
            Kind::Free | Kind::Given => {}
            Kind::Plain => self.compute_plain(index),
            Kind::Direct => self.compute_direct(index),
            Kind::Source(_) => self.compute_source(index),
            Kind::Switch(_) => self.compute_switch(index),
            Kind::Join(_) => self.compute_join(index),
            Kind::Gather(_) => self.compute_gather(index),
            Kind::Output(_) => self.compute_output(index),
            Kind::Panic => self.compute_panic(index),
            Kind::Broken => self.compute_broken(index),
        }
    }

    /// Gives a node a state and, if it is another one, its dependants something to do.
    fn set_state(&mut self, index: u32, state: NodeState) {
        let at = index as usize;
        if self.arena.state[at].is_same(&state) {
            return;
        }
        self.arena.state[at] = state;
        for i in 0..self.arena.dependants[at].len() {
            let dependant = self.arena.dependants[at][i];
            if let Kind::Gather(gather) = &mut self.arena.kind[dependant.index as usize]
                && let Some(slot) = dependant.port.checked_sub(1)
            {
                gather.changed.push(slot);
            }
            self.enqueue(dependant.index);
        }
    }

    fn enqueue(&mut self, index: u32) {
        let at = index as usize;
        if !std::mem::replace(&mut self.arena.queued[at], true) {
            self.queue.push(index, self.arena.height[at]);
        }
    }

    /// A node above its inputs and the switch of its scope, waiting to be computed.
    fn add_node(
        &mut self,
        kind: Kind,
        site: Site,
        scope: ScopeId,
        chain: Option<Arc<Link>>,
        inputs: &[Reference],
    ) -> u32 {
        let mut height = self.base(scope);
        for input in inputs {
            if let Reference::Node(id) = input {
                height = height.max(self.arena.height[id.index as usize].saturating_add(1));
            }
        }
        let index = self.arena.add(kind, site, scope, chain, height);
        for input in inputs {
            self.arena.push_input(index, input.clone());
        }
        let id = self.arena.id(index);
        let arena = &self.arena;
        if let Some(scope) = self.scopes.get_mut(scope.0)
            && scope.switch.is_some()
        {
            if scope.members.len() >= scope.prune_at {
                scope.members.retain(|id| arena.is_alive(*id));
                scope.prune_at = (2 * scope.members.len()).max(16);
            }
            scope.members.push(id);
        }
        self.enqueue(index);
        index
    }

    /// The lowest height in a scope.
    fn base(&self, scope: ScopeId) -> u32 {
        match self.scopes.get(scope.0).and_then(|scope| scope.switch) {
            Some(switch) => self.arena.height[switch as usize].saturating_add(1),
            None => 0,
        }
    }

    /// Lifts a node to a height, and everything above it as far as that takes.
    fn raise(&mut self, index: u32, height: u32) {
        if self.arena.height[index as usize] >= height {
            return;
        }
        self.arena.height[index as usize] = height;
        let mut raised = vec![index];
        while let Some(index) = raised.pop() {
            let least = self.arena.height[index as usize].saturating_add(1);
            for dependant in &self.arena.dependants[index as usize] {
                let place = &mut self.arena.height[dependant.index as usize];
                if *place < least {
                    *place = least;
                    raised.push(dependant.index);
                }
            }
            if let Kind::Switch(switch) = &self.arena.kind[index as usize] {
                for pinned in switch.body.pinned() {
                    if self.arena.height[pinned as usize] < least {
                        self.arena.height[pinned as usize] = least;
                        raised.push(pinned);
                    }
                }
                for scope in switch.body.scopes() {
                    let members = self.scopes.get(scope.0).map(|scope| &scope.members);
                    for id in members.into_iter().flatten() {
                        if self.arena.is_alive(*id) && self.arena.height[id.index as usize] < least {
                            self.arena.height[id.index as usize] = least;
                            raised.push(id.index);
                        }
                    }
                }
            }
        }
    }

    /// Removes a node if nobody needs it, and what nobody needs without it.
    fn drop_if_idle(&mut self, index: u32) {
        if self.arena.is_idle(index) {
            self.remove(Doomed::Node(index));
        }
    }

    /// Takes down a scope: its statements, and what nobody needs without them.
    fn tear_down(&mut self, scope: ScopeId) {
        self.remove(Doomed::Scope(scope));
    }

    fn remove(&mut self, first: Doomed) {
        let mut doomed = vec![first];
        while let Some(next) = doomed.pop() {
            match next {
                Doomed::Scope(id) => {
                    let Some(scope) = self.scopes.remove(id.0) else {
                        continue;
                    };
                    for environment in &scope.environments {
                        self.forget(*environment);
                    }
                    for (key, output) in scope.outputs {
                        self.outputs.record(key.clone(), Some(output), None);
                        self.outputs.clear_notes(&key);
                    }
                    for given in &scope.given {
                        self.arena.pinned[*given as usize] = false;
                        if self.arena.is_idle(*given) {
                            doomed.push(Doomed::Node(*given));
                        }
                    }
                    doomed.extend(scope.roots.into_iter().rev().map(Doomed::Node));
                }
                Doomed::Node(index) => self.remove_node(index, &mut doomed),
            }
        }
    }

    fn remove_node(&mut self, index: u32, doomed: &mut Vec<Doomed>) {
        if matches!(self.arena.kind[index as usize], Kind::Free) {
            return;
        }
        for port in 0..self.arena.inputs[index as usize].len() {
            if let Some(source) = self.arena.clear_input(index, port as u32)
                && self.arena.is_idle(source)
            {
                doomed.push(Doomed::Node(source));
            }
        }
        self.problems.remove(&index);
        let kind = std::mem::replace(&mut self.arena.kind[index as usize], Kind::Broken);
        match kind {
            Kind::Source(mut source) => {
                self.sources.forget(index);
                self.detach(&mut source);
            }
            Kind::Switch(switch) => {
                self.no_longer_unknown(index);
                doomed.extend(switch.body.scopes().map(Doomed::Scope));
                for pinned in switch.body.pinned() {
                    self.arena.pinned[pinned as usize] = false;
                    if self.arena.is_idle(pinned) {
                        doomed.push(Doomed::Node(pinned));
                    }
                }
            }
            Kind::Output(output) => {
                self.outputs.clear_notes(&output.key);
                if output.output.is_some() {
                    self.outputs.record(output.key, output.output, None);
                }
            }
            Kind::Free
            | Kind::Given
            | Kind::Plain
            | Kind::Direct
            | Kind::Join(_)
            | Kind::Gather(_)
            | Kind::Panic
            | Kind::Broken => {}
        }
        self.arena.remove(index);
    }

    /// The template node behind a node.
    fn node_of(program: &Program, site: Site) -> &TemplateNode {
        &program.template(site.template).nodes[site.node as usize]
    }

    fn operation_of(&self, index: u32) -> &Operation {
        &Self::node_of(&self.program, self.arena.site[index as usize]).operation
    }

    fn span_of(&self, index: u32) -> Span {
        Self::node_of(&self.program, self.arena.site[index as usize]).span
    }

    /// The state of an input.
    fn input(&self, index: u32, port: usize) -> NodeState {
        match self.arena.inputs[index as usize].get(port) {
            Some(Input::Constant(value)) => NodeState::Value(value.clone()),
            Some(Input::Node { index, .. }) => self.arena.state[*index as usize].clone(),
            Some(Input::Nothing) | None => NodeState::Pending,
        }
    }

    /// The values of all inputs, unless one failed or has none: then what that means for a node computed from them.
    fn gather(&self, index: u32) -> Result<SmallVec<[setpoint_value::Value; 4]>, NodeState> {
        let inputs = &self.arena.inputs[index as usize];
        let mut values = SmallVec::with_capacity(inputs.len());
        let mut pending = false;
        for input in inputs {
            match input {
                Input::Constant(value) => values.push(value.clone()),
                Input::Node { index, .. } => match &self.arena.state[*index as usize] {
                    NodeState::Value(value) => values.push(value.clone()),
                    NodeState::Failed(failure) => return Err(NodeState::Failed(failure.clone())),
                    NodeState::Pending => pending = true,
                },
                Input::Nothing => pending = true,
            }
        }
        if pending {
            Err(NodeState::Pending)
        } else {
            Ok(values)
        }
    }
}

/// Something to be removed.
enum Doomed {
    Node(u32),
    Scope(ScopeId),
}
