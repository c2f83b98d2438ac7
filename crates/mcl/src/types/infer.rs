//! Equations of statements and expressions, in the order of the rules typing.5 and typing.6, placed as typing.7 says.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_diagnostics::{Diagnostic, Diagnostics, Span};
use setpoint_graph::Library;
use setpoint_value::{FunctionSpec, Type, operators};

use super::codes;
use super::completion::Check;
use super::deferred::{Deferred, DeferredKind, HookedCall};
use super::findings::{Findings, Phase};
use super::instances::{Instance, InstanceId, Typed};
use super::messages::{Calls, Reason, conflict_diagnostic, too_deep};
use super::order::Node;
use super::places::{Place, Places, Segment};
use super::schemes::{Application, FunctionTyping, Scheme};
use super::solver::{Conflict, Solver};
use super::syntactic::SyntacticFacts;
use crate::adapt::is_adapted;
use crate::hir::{
    BodyId, Callee, ClassId, DefinitionId, DefinitionKind, ExprId, ExprKind, FunctionId, Hir, IncludeId,
    Owner, Part, Resource, Statement,
};
use crate::stack::with_room;
use crate::syntax::Operator;

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
            DefinitionKind::ClassParameter { index, .. } => self.argument_type(holder, *index),
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
    fn check_later(&mut self, wanted: Type, actual: &Type, span: Span, reason: Reason) {
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

    fn record(&mut self, instance: InstanceId, expr: ExprId, ty: Type) -> Type {
        let place = self.places.next();
        self.recorded.push(Recorded {
            place,
            instance: Some(instance),
            expr,
            ty: ty.clone(),
        });
        ty
    }

    /// Infers, and says that the type must be `wanted`, at the expression itself.
    fn check(&mut self, instance: InstanceId, id: ExprId, wanted: &Type, reason: &Reason) {
        let ty = self.infer(instance, id);
        self.equate_value(wanted, &ty, self.hir.expr(id).span, reason, (instance, id));
    }

    /// The type of an expression, with equations for what is in it.
    pub(super) fn infer(&mut self, instance: InstanceId, id: ExprId) -> Type {
        // Literals are most of what there is.
        if let ExprKind::Literal(value) = &self.hir.expr(id).kind {
            return value.ty();
        }
        with_room(|| self.infer_expr_inner(instance, id))
    }

    fn infer_expr_inner(&mut self, instance: InstanceId, id: ExprId) -> Type {
        let hir = self.hir;
        let expr = hir.expr(id);
        let span = expr.span;
        let ty = match &expr.kind {
            ExprKind::Literal(value) => return value.ty(),
            // Whatever would be right.
            ExprKind::Unknown(parts) => {
                for part in parts {
                    self.infer(instance, *part);
                }
                self.has_unknown = true;
                return self.solver.fresh();
            }
            ExprKind::Variable { path, definition } => {
                let holder = self.follow(instance, path, hir.definition(*definition).owner);
                return self.definition_type(holder, *definition);
            }
            // A lone variable is itself, and must be a str.
            ExprKind::Interpolation(parts) if let [Part::Variable(id)] = parts.as_slice() => {
                let ty = self.infer(instance, *id);
                self.check_later(Type::Str, &ty, span, Reason::Interpolation(hir.place(*id)));
                ty
            }
            ExprKind::Interpolation(parts) => {
                for part in parts {
                    if let Part::Variable(id) = part {
                        let reason = Reason::Interpolation(hir.place(*id));
                        self.check(instance, *id, &Type::Str, &reason);
                    }
                }
                Type::Str
            }
            ExprKind::List(items) => {
                let element = self.solver.fresh();
                for item in items {
                    let reason = Reason::Element(hir.expr(items[0]).span);
                    self.check(instance, *item, &element, &reason);
                }
                Type::list(element)
            }
            ExprKind::Map(entries) => {
                let (key, value) = (self.solver.fresh(), self.solver.fresh());
                for (k, v) in entries {
                    self.check(instance, *k, &key, &Reason::MapKey(hir.expr(entries[0].0).span));
                    self.check(
                        instance,
                        *v,
                        &value,
                        &Reason::MapValue(hir.expr(entries[0].1).span),
                    );
                }
                let place = self.places.next();
                self.checks.push(Check::key(place, span, key.clone()));
                self.bounded(Type::map(key, value), span)
            }
            ExprKind::Struct(fields) => {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(name, v)| (name.clone(), self.infer(instance, *v)))
                    .collect();
                self.bounded(Type::structure(fields), span)
            }
            ExprKind::Lambda(_) => self.lambda(instance, id),
            ExprKind::If {
                condition,
                then,
                otherwise,
            } => {
                self.check(instance, *condition, &Type::Bool, &Reason::Condition);
                let result = self.solver.fresh();
                let reason = Reason::Branches(hir.expr(*then).span);
                self.check(instance, *then, &result, &reason);
                self.check(instance, *otherwise, &result, &reason);
                result
            }
            ExprKind::Except { left, right } => {
                let result = self.solver.fresh();
                let reason = Reason::Fallback(hir.expr(*left).span);
                self.check(instance, *left, &result, &reason);
                self.check(instance, *right, &result, &reason);
                result
            }
            ExprKind::Operator {
                operator,
                left,
                right,
            } => {
                let errors = self.findings.count();
                let left_type = self.infer(instance, *left);
                // `not $a == $b`, where `not` belongs to `$a`: that `not` gives a bool is no news.
                let is_said = matches!(hir.expr(*left).kind, ExprKind::Not(_))
                    && self.findings.unsolved_since(errors).next().is_some();
                let types = [left_type, self.infer(instance, *right)];
                self.contradictions(instance, &[*left, *right]);
                let errors = self.findings.count();
                let reason = Reason::Operands(operator.text());
                let result = self.library_signature(&operator_spec(*operator).into(), &types, span, &reason);
                if is_said {
                    self.findings.forget_unsolved_since(errors);
                }
                self.show_operands(errors, &[(*left, &types[0]), (*right, &types[1])]);
                result
            }
            ExprKind::Not(inner) => {
                let types = [self.infer(instance, *inner)];
                self.contradictions(instance, &[*inner]);
                let errors = self.findings.count();
                let not = (&operators::NOT).into();
                let result = self.library_signature(&not, &types, span, &Reason::Operands("not"));
                self.show_operands(errors, &[(*inner, &types[0])]);
                result
            }
            ExprKind::In { left, right } => {
                let types = [self.infer(instance, *left), self.infer(instance, *right)];
                self.library_signature(
                    &(&operators::CONTAINS).into(),
                    &types,
                    span,
                    &Reason::Operands("in"),
                )
            }
            ExprKind::Lookup { base, index } => self.lookup(instance, *base, *index, span),
            ExprKind::Field { base, field } => {
                let ty = self.infer(instance, *base);
                self.contradictions(instance, &[*base]);
                let result = self.solver.fresh();
                self.park_field(ty, field, &result, false, span);
                result
            }
            ExprKind::FieldOr { base, field, default } => {
                let ty = self.infer(instance, *base);
                let result = self.infer(instance, *default);
                self.contradictions(instance, &[*base, *default]);
                // A struct type that is plain from the text makes a wrong default a type error at once.
                if let Some(Type::Struct(fields)) = self.syntactic_type(instance, *base)
                    && let Some(found) = fields.field(field)
                {
                    let reason = Reason::Result(hir.expr(*default).span);
                    self.equate(found, &result, span, &reason);
                }
                self.park_field(ty, field, &result, true, span);
                result
            }
            ExprKind::Call { callee, arguments } => self.call(instance, id, callee, arguments, span),
        };
        self.record(instance, id, ty)
    }

    /// `base[index]`: a list or a map where that is plain from the text, a map for an index that is plainly no int, and
    /// otherwise whatever solving finds.
    fn lookup(&mut self, instance: InstanceId, base: ExprId, index: ExprId, span: Span) -> Type {
        let (base_type, index_type) = (self.infer(instance, base), self.infer(instance, index));
        self.contradictions(instance, &[base, index]);
        let result = self.solver.fresh();
        match self.syntactic_type(instance, base) {
            Some(Type::List(_)) => self.list_lookup(&base_type, &index_type, &result, span, index),
            Some(Type::Map(_)) => self.map_lookup(&base_type, &index_type, &result, span, Some(index)),
            Some(other) => {
                self.failed.push(result.clone());
                let place = self.places.next();
                self.nothing_to_look_up(place, &other, span);
            }
            None if self
                .syntactic_type(instance, index)
                .is_some_and(|ty| ty != Type::Int) =>
            {
                self.map_lookup(&base_type, &index_type, &result, span, Some(index));
            }
            None => {
                let place = self.places.next();
                let what = DeferredKind::Lookup {
                    base: base_type,
                    index: index_type,
                    result: result.clone(),
                };
                self.deferred.push(Deferred::new(place, span, what));
            }
        }
        result
    }

    fn park_field(&mut self, base: Type, field: &Arc<str>, result: &Type, has_default: bool, span: Span) {
        let place = self.places.next();
        let what = DeferredKind::Field {
            base,
            field: field.clone(),
            result: result.clone(),
            has_default,
        };
        self.deferred.push(Deferred::new(place, span, what));
    }

    /// Arguments of a built-in with a computed signature that are plainly not of the type written for them.
    fn contradictions(&mut self, instance: InstanceId, arguments: &[ExprId]) {
        for argument in arguments {
            if let Some((written, found)) = self.contradiction(instance, *argument) {
                let message = format!("this is said to be {written}, but its value is {found}");
                let span = self.hir.expr(*argument).span;
                let error = Diagnostic::error(&codes::MISMATCH, span, message);
                self.refuse(error.label(format!("this is {found}")));
            }
        }
    }

    fn lambda(&mut self, instance: InstanceId, id: ExprId) -> Type {
        let hir = self.hir;
        let ExprKind::Lambda(function) = hir.expr(id).kind else {
            return self.solver.fresh();
        };
        self.function_type(instance, function)
    }

    /// The type of a function whose body is in `instance`, with the equations of its body.
    pub(super) fn function_type(&mut self, instance: InstanceId, id: crate::hir::FunctionId) -> Type {
        let hir = self.hir;
        let function = hir.function(id);
        let mut parameters = Vec::with_capacity(function.parameters.len());
        for parameter in &function.parameters {
            let definition = hir.definition(*parameter);
            let ty = match &definition.kind {
                DefinitionKind::Parameter {
                    annotation: Some(ty), ..
                } => ty.clone(),
                _ => self.solver.fresh(),
            };
            self.typed.instances[instance.0 as usize]
                .definitions
                .insert(*parameter, ty.clone());
            parameters.push((definition.name.clone(), ty));
        }
        let result = function.result.clone().unwrap_or_else(|| self.solver.fresh());
        self.check(instance, function.body, &result, &Reason::Result(function.span));
        self.bounded(Type::func(parameters, result), function.span)
    }

    /// The type, if it is of a size that can be handled; else that is an error.
    pub(super) fn bounded(&mut self, ty: Type, span: Span) -> Type {
        if !self.solver.is_shallow(&ty) {
            if !self.findings.has(&codes::TOO_DEEP) {
                self.refuse(too_deep(span));
            }
            return self.solver.fresh();
        }
        if self.solver.is_bounded(&ty) {
            return ty;
        }
        self.too_much(span);
        self.solver.fresh()
    }

    fn call(
        &mut self,
        instance: InstanceId,
        id: ExprId,
        callee: &'a Callee,
        arguments: &[ExprId],
        span: Span,
    ) -> Type {
        let hir = self.hir;
        let types: Vec<Type> = arguments.iter().map(|id| self.infer(instance, *id)).collect();
        match callee {
            Callee::Value(callee) => {
                let expr = hir.expr(*callee);
                let found = self.infer(instance, *callee);
                let at = match &expr.kind {
                    ExprKind::Variable { path: _, definition } => match &hir.definition(*definition).kind {
                        DefinitionKind::Bind { value, .. } => hir.expr(*value).span,
                        DefinitionKind::ClassParameter { .. }
                        | DefinitionKind::Parameter { .. }
                        | DefinitionKind::LoopKey
                        | DefinitionKind::LoopValue => hir.definition(*definition).span,
                        DefinitionKind::Library(_) => expr.span,
                    },
                    _ => expr.span,
                };
                let result = self.solver.fresh();
                let wanted = call_type(&types, result.clone());
                self.equate(&wanted, &found, at, &Reason::CallValue(span));
                result
            }
            Callee::Function { path, function } => {
                let parent = self.definer(instance, path, *function);
                let result = self.solver.fresh();
                if let Some(found) = self.called_function(instance, id, parent, *function, span) {
                    let wanted = call_type(&types, result.clone());
                    let at = hir.function(*function).span;
                    if let Err(conflict) = self.solver.unify(&wanted, &found) {
                        let error = self.conflict(conflict, &wanted, &found, at, &Reason::Call(span));
                        let error =
                            self.call_conflict(error, &wanted, &found, *function, instance, arguments);
                        self.unsolved(error);
                    }
                }
                result
            }
            Callee::Library(spec, _) => {
                if spec.infer.is_some() || is_adapted(spec) {
                    let call = HookedCall {
                        instance,
                        spec: spec.clone(),
                        arguments: arguments.to_vec(),
                        types,
                        result: self.solver.fresh(),
                    };
                    self.contradictions(instance, arguments);
                    let place = self.places.next();
                    let result = call.result.clone();
                    if !self.decide_hooked(&call, span, false) {
                        let what = DeferredKind::Hooked(call);
                        self.deferred.push(Deferred::new(place, span, what));
                    }
                    return result;
                }
                let reason = Reason::LibraryCall(spec.clone(), Some(id));
                self.library_signature(spec, &types, span, &reason)
            }
        }
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

/// The specification behind an operator.
pub(super) fn operator_spec(operator: Operator) -> &'static FunctionSpec {
    match operator {
        Operator::Add => &operators::ADD,
        Operator::Subtract => &operators::SUBTRACT,
        Operator::Multiply => &operators::MULTIPLY,
        Operator::Divide => &operators::DIVIDE,
        Operator::Equal => &operators::EQUAL,
        Operator::NotEqual => &operators::NOT_EQUAL,
        Operator::Less => &operators::LESS,
        Operator::Greater => &operators::GREATER,
        Operator::LessEqual => &operators::LESS_OR_EQUAL,
        Operator::GreaterEqual => &operators::GREATER_OR_EQUAL,
        Operator::And => &operators::AND,
        Operator::Or => &operators::OR,
    }
}

pub(super) fn call_type(arguments: &[Type], result: Type) -> Type {
    Type::func(
        arguments
            .iter()
            .enumerate()
            .map(|(i, ty)| (i.to_string(), ty.clone())),
        result,
    )
}
