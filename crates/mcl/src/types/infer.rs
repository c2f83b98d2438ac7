//! Equations of statements and definitions, in the order of the rules typing.5 and typing.6, placed as typing.7 says; those of expressions are next door.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_diagnostics::{Diagnostic, Diagnostics, Span};
use setpoint_graph::Library;
use setpoint_value::Type;

use super::codes;
use super::completion::Check;
use super::conflicts::{Reason, conflict_diagnostic};
use super::deferred::{Deferred, DeferredKind};
use super::findings::{Findings, Phase};
use super::instances::{Instance, InstanceId, Typed};
use super::messages::Calls;
use super::order::Node;
use super::places::{Place, Places, Segment};
use super::schemes::{Application, FunctionTyping, Scheme};
use super::solver::{Conflict, Solver};
use super::syntactic::SyntacticFacts;
use crate::hir::{
    BodyId, ClassId, DefinitionId, DefinitionKind, ExprId, ExprKind, FunctionId, Hir, IncludeId, Owner,
    Resource, Statement,
};
use crate::stack::with_room;

/// Inference under way: of a program, and then of what it does not use.
pub(crate) struct Inference<'a> {
    pub(super) hir: &'a Hir,
    pub(super) library: &'a Library,
    pub(super) solver: Solver,
    pub(super) typed: Typed,
    pub(super) places: Places,
    /// What was typed before its first use, with the equations that are to stand there.
    pub(super) ahead: FxHashMap<Node, Segment>,
    /// What is being typed. A circle would come back to it.
    pub(super) in_progress: FxHashSet<Node>,
    /// The functions that were called, by the instance that defines them.
    pub(super) functions: FxHashMap<(InstanceId, FunctionId), FunctionTyping>,
    pub(super) schemes: Vec<Arc<Scheme>>,
    /// More instances are refused.
    pub(super) most_instances: usize,
    /// How much was copied of them for calls.
    pub(super) copied: usize,
    /// Calls of functions with schemes, outside of such functions.
    pub(super) applications: Vec<Application>,
    /// How many definitions have been typed.
    pub(super) definitions_typed: usize,
    /// Types of expressions in the order in which they were met.
    pub(super) recorded: Vec<Recorded>,
    pub(super) deferred: Vec<Deferred>,
    /// Types written for what is a variable's value.
    pub(super) imposed: Vec<Deferred>,
    /// Results of what cannot be built: that they stay open is not worth telling.
    pub(super) failed: Vec<Type>,
    /// Whether something has no meaning, which was reported: what stays open because of that is not worth telling either.
    pub(super) has_unknown: bool,
    /// Checks on solved types.
    pub(super) checks: Vec<Check>,
    /// Names of resources and edge endpoints that are not evident: str or list of str.
    pub(super) names: Vec<(Place, Type, Span)>,
    /// What is wrong.
    pub(super) findings: Findings,
    /// Kinds that do not exist, of resources without parameters. By themselves they are refused later; beside an error of this
    /// stage they are told with it.
    pub(super) bare_unknown_kinds: Vec<(Arc<str>, Span, Span)>,
    /// Resources whose meta parameters only types tell.
    pub(super) meta_structs: Vec<(Place, InstanceId, &'a Resource)>,
    /// The place of what is decided now, if it was met earlier.
    pub(super) replayed: Option<Place>,
    /// The calls through which that came.
    pub(super) through: Calls,
    /// What was found to be plain from the text.
    pub(super) syntactic: SyntacticFacts,
    /// How many calls of functions without a scheme are being typed inside each other.
    pub(super) calls: u32,
}

/// The type of an expression.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) place: Place,
    /// Where it is; none for what stands only for a part that a call must decide.
    pub(super) instance: Option<InstanceId>,
    pub(super) expr: ExprId,
    pub(super) ty: Type,
}

/// Calls inside calls inside calls beyond this are refused, where each needs a copy of the function's body.
pub(super) const MAXIMUM_CALLS: u32 = 400;

/// A program with more includes and calls than this has grown out of hand (classes that include two classes that include
/// two classes …).
const MAXIMUM_INSTANCES: usize = 1 << 18;

impl<'a> Inference<'a> {
    pub(crate) fn new(hir: &'a Hir, library: &'a Library) -> Inference<'a> {
        Inference {
            hir,
            library,
            solver: Solver::default(),
            typed: Typed::default(),
            places: Places::default(),
            ahead: FxHashMap::default(),
            in_progress: FxHashSet::default(),
            functions: FxHashMap::default(),
            schemes: Vec::new(),
            copied: 0,
            most_instances: MAXIMUM_INSTANCES,
            applications: Vec::new(),
            definitions_typed: 0,
            recorded: Vec::new(),
            deferred: Vec::new(),
            imposed: Vec::new(),
            failed: Vec::new(),
            has_unknown: false,
            checks: Vec::new(),
            names: Vec::new(),
            findings: Findings::default(),
            bare_unknown_kinds: Vec::new(),
            meta_structs: Vec::new(),
            replayed: None,
            through: Calls::default(),
            syntactic: SyntacticFacts::default(),
            calls: 0,
        }
    }

    /// Infers the types of the program. Errors go to the sink, those that count first in front; with `beside_errors` types are told
    /// beside them too, as far as they are known.
    pub(crate) fn infer_program(&mut self, diagnostics: &mut Diagnostics, beside_errors: bool) {
        if !self.hir.bodies.is_empty() {
            let entry = self.top(BodyId(0));
            self.body(entry, BodyId(0));
        }
        let found = self.finish(beside_errors);
        if found.iter().any(|error| error.code == &codes::TOO_DEEP) {
            // Types would be what is too large.
            self.typed = Typed::default();
        }
        diagnostics.extend(found);
    }

    /// What was inferred up to now.
    pub(crate) fn typed(&self) -> &Typed {
        &self.typed
    }

    pub(crate) fn into_typed(self) -> Typed {
        self.typed
    }

    pub(super) fn top(&mut self, body: BodyId) -> InstanceId {
        if let Some(found) = self.typed.tops.get(&body) {
            return *found;
        }
        let id = self.instance(Owner::Top(body), None);
        self.typed.tops.insert(body, id);
        id
    }

    pub(super) fn instance(&mut self, owner: Owner, parent: Option<InstanceId>) -> InstanceId {
        self.typed.instances.push(Instance {
            owner,
            parent,
            includes: FxHashMap::default(),
            calls: FxHashMap::default(),
            definitions: FxHashMap::default(),
            site: None,
            entered: false,
            arguments: Vec::new(),
        });
        InstanceId(self.typed.instances.len() as u32 - 1)
    }

    fn outward(&mut self, from: InstanceId, owner: Owner) -> InstanceId {
        match owner {
            Owner::Top(body) => self.top(body),
            // Resolution only makes references that lead outward to their owner, but for those of what has errors.
            Owner::Class(_) | Owner::Function(_) => self.typed.outward(from, owner).unwrap_or(from),
        }
    }

    /// The instance that a path leads to and in which `owner`'s things are.
    pub(super) fn follow(&mut self, from: InstanceId, path: &[IncludeId], owner: Owner) -> InstanceId {
        let mut at = from;
        for include in path {
            at = self.include_instance(at, *include);
        }
        self.outward(at, owner)
    }

    fn include_instance(&mut self, from: InstanceId, id: IncludeId) -> InstanceId {
        let hir = self.hir;
        let include = hir.include(id);
        let holder = self.outward(from, include.owner);
        if let Some(found) = self.typed.instance(holder).includes.get(&id) {
            return *found;
        }
        let class = hir.class(include.class);
        let parent = with_room(|| self.follow(holder, &include.path, class.owner));
        let new = self.instance(Owner::Class(include.class), Some(parent));
        self.typed.instances[new.0 as usize].site = Some((holder, id));
        self.typed.instances[new.0 as usize].arguments = vec![None; include.arguments.len()];
        self.typed.instances[holder.0 as usize].includes.insert(id, new);
        new
    }

    /// The argument expression of an included class, with the instance it is written in.
    pub(super) fn argument(&self, instance: InstanceId, index: usize) -> Option<(InstanceId, ExprId)> {
        let (site, include) = self.typed.instance(instance).site?;
        Some((site, *self.hir.include(include).arguments.get(index)?))
    }

    /// The expression that is the value of a definition, and the instance that it is in; none for what has its values from elsewhere.
    pub(super) fn value_of(&self, holder: InstanceId, id: DefinitionId) -> Option<(InstanceId, ExprId)> {
        match &self.hir.definition(id).kind {
            DefinitionKind::Bind { value, .. } => Some((holder, *value)),
            DefinitionKind::ClassParameter { index, .. } => self.argument(holder, *index),
            DefinitionKind::Parameter { .. }
            | DefinitionKind::LoopKey
            | DefinitionKind::LoopValue
            | DefinitionKind::Library(_) => None,
        }
    }

    fn argument_type(&mut self, instance: InstanceId, index: usize) -> Type {
        if let Some(Some(ty)) = self.typed.instance(instance).arguments.get(index) {
            return ty.clone();
        }
        let ty = match self.argument(instance, index) {
            Some((site, id)) => self.infer(site, id),
            None => self.solver.fresh(),
        };
        if let Some(place) = self.typed.instances[instance.0 as usize].arguments.get_mut(index) {
            *place = Some(ty.clone());
        }
        ty
    }

    pub(super) fn body(&mut self, instance: InstanceId, body: BodyId) {
        let hir = self.hir;
        with_room(|| {
            for statement in &hir.body(body).statements {
                self.statement(instance, statement);
            }
        });
    }

    fn statement(&mut self, instance: InstanceId, statement: &'a Statement) {
        match statement {
            Statement::If {
                condition,
                then,
                otherwise,
                span,
            } => {
                let ty = self.infer(instance, *condition);
                self.equate_value(
                    &Type::Bool,
                    &ty,
                    *span,
                    &Reason::Condition,
                    (instance, *condition),
                );
                self.body(instance, *then);
                if let Some(body) = otherwise {
                    self.body(instance, *body);
                }
            }
            Statement::Loop {
                over_map,
                iterable,
                key,
                value,
                body,
                span,
            } => {
                let ty = self.infer(instance, *iterable);
                let element = self.solver.fresh();
                let (key_type, wanted, reason) = if *over_map {
                    let key = self.solver.fresh();
                    (key.clone(), Type::map(key, element.clone()), Reason::Map)
                } else {
                    (Type::Int, Type::list(element.clone()), Reason::List)
                };
                self.equate_value(&wanted, &ty, *span, &reason, (instance, *iterable));
                let definitions = &mut self.typed.instances[instance.0 as usize].definitions;
                definitions.insert(*key, key_type);
                definitions.insert(*value, element);
                self.body(instance, *body);
            }
            Statement::Resource(resource) => self.resource(instance, resource),
            Statement::Edge(edge) => self.edge(instance, edge),
            Statement::Include(include) => self.include(instance, *include),
            Statement::Panic { arguments, span } => self.panic(instance, arguments, *span),
        }
    }

    fn include(&mut self, instance: InstanceId, id: IncludeId) {
        let hir = self.hir;
        let include = hir.include(id);
        if include.class == ClassId(u32::MAX) {
            return;
        }
        if self.typed.instances.len() >= self.most_instances {
            self.too_much(include.span);
            return;
        }
        let inner = self.include_instance(instance, id);
        if !std::mem::replace(&mut self.typed.instances[inner.0 as usize].entered, true)
            && let Some(body) = hir.class(include.class).body
        {
            self.body(inner, body);
        }
        for (index, parameter) in hir.class(include.class).parameters.iter().enumerate() {
            let ty = self.argument_type(inner, index);
            let definition = hir.definition(*parameter);
            if let DefinitionKind::ClassParameter {
                annotation: Some(wanted),
                ..
            } = &definition.kind
            {
                let reason = Reason::Argument(definition.span);
                match self.argument(inner, index) {
                    Some(argument) => self.equate_value(wanted, &ty, include.span, &reason, argument),
                    None => self.equate(wanted, &ty, include.span, &reason),
                }
            }
        }
    }

    /// Reports, once, that the program cannot be unfolded.
    pub(super) fn too_much(&mut self, span: Span) {
        if !self.findings.has(&codes::TOO_DEEP) {
            let message = "this unfolds into more calls and includes than can be handled";
            let note =
                format!("at most {MAXIMUM_CALLS} calls inside each other, and {MAXIMUM_INSTANCES} in all");
            self.refuse(Diagnostic::error(&codes::TOO_DEEP, span, message).note(note));
        }
    }

    /// The type of a definition, found by its first use.
    pub(super) fn definition_type(&mut self, holder: InstanceId, id: DefinitionId) -> Type {
        let node = Node::Definition(holder, id);
        if let Some(found) = self.typed.instance(holder).definitions.get(&id).cloned() {
            self.used(node);
            return found;
        }
        if let DefinitionKind::Library(value) = &self.hir.definition(id).kind {
            return value.ty();
        }
        self.type_needs(node);
        let ty = self.new_definition_type(holder, id);
        self.in_progress.remove(&node);
        ty
    }

    /// The type of a definition whose needs are typed.
    pub(super) fn new_definition_type(&mut self, holder: InstanceId, id: DefinitionId) -> Type {
        if let Some(found) = self.typed.instance(holder).definitions.get(&id) {
            return found.clone();
        }
        self.definitions_typed += 1;
        let hir = self.hir;
        let definition = hir.definition(id);
        let ty = match &definition.kind {
            DefinitionKind::Bind { value, annotation } => {
                let ty = self.infer(holder, *value);
                match annotation {
                    None => ty,
                    Some(wanted) => self.annotated(wanted, ty, *value, definition.span),
                }
            }
            // The body is compared with the declared type, and so is the argument, at the include.
            DefinitionKind::ClassParameter {
                annotation: Some(declared),
                ..
            } => declared.clone(),
            DefinitionKind::ClassParameter {
                index,
                annotation: None,
            } => self.argument_type(holder, *index),
            DefinitionKind::Library(value) => value.ty(),
            // Their types are set before their body is walked.
            DefinitionKind::Parameter { .. } | DefinitionKind::LoopKey | DefinitionKind::LoopValue => {
                self.solver.fresh()
            }
        };
        self.typed.instances[holder.0 as usize]
            .definitions
            .insert(id, ty.clone());
        ty
    }

    /// The type of a bind's value that has a written one.
    fn annotated(&mut self, wanted: &Type, ty: Type, value: ExprId, bind: Span) -> Type {
        let expr = self.hir.expr(value);
        let reason = Reason::Annotation(bind);
        if let ExprKind::Variable { .. } = expr.kind {
            self.check_later(wanted.clone(), &ty, expr.span, reason);
            return ty;
        }
        match self.solver.unify(wanted, &ty) {
            Ok(()) => ty,
            Err(conflict) => {
                let error = self.conflict(conflict, wanted, &ty, expr.span, &reason);
                self.unsolved(error);
                wanted.clone()
            }
        }
    }

    /// Says what a variable must be, without letting that decide anything.
    pub(super) fn check_later(&mut self, wanted: Type, actual: &Type, span: Span, reason: Reason) {
        let actual = actual.clone();
        let place = self.places.next();
        let what = DeferredKind::Imposed {
            wanted,
            actual,
            reason,
        };
        self.imposed.push(Deferred::new(place, span, what));
    }

    /// Notes an error of collecting equations.
    pub(super) fn refuse(&mut self, error: Diagnostic) {
        let place = self.place();
        let error = self.through.on(error);
        self.findings.push(Phase::Collecting, place, error);
    }

    /// Notes an error of solving.
    pub(super) fn unsolved(&mut self, error: Diagnostic) {
        let place = self.place();
        let error = self.through.on(error);
        self.findings.push(Phase::Solving, place, error);
    }

    /// The place of what is met now, or was met when what is decided now was deferred.
    fn place(&mut self) -> Place {
        match self.replayed {
            Some(place) => place,
            None => self.places.next(),
        }
    }

    pub(super) fn record(&mut self, instance: InstanceId, expr: ExprId, ty: Type) -> Type {
        let place = self.places.next();
        self.recorded.push(Recorded {
            place,
            instance: Some(instance),
            expr,
            ty: ty.clone(),
        });
        ty
    }

    /// Solves one equation, and reports a conflict at `span`.
    pub(super) fn equate(&mut self, expect: &Type, actual: &Type, span: Span, reason: &Reason) {
        if let Err(conflict) = self.solver.unify(expect, actual) {
            let error = self.conflict(conflict, expect, actual, span, reason);
            self.unsolved(error);
        }
    }

    /// A conflict as an error, in terms of all that is known.
    pub(super) fn conflict(
        &mut self,
        conflict: Conflict,
        expect: &Type,
        actual: &Type,
        span: Span,
        reason: &Reason,
    ) -> Diagnostic {
        let (expect, actual) = (self.solver.zonk(expect), self.solver.zonk(actual));
        let error = conflict_diagnostic(conflict, &expect, &actual, span, reason);
        match reason {
            Reason::LibraryCall(spec, Some(call)) => self.at_argument(error, spec, *call, &expect, &actual),
            _ => error,
        }
    }
}
