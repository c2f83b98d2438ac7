//! Equations of statements and expressions, in the order of mcl-language §6.3 and §6.4.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_diagnostics::{Diagnostic, Diagnostics, Span, did_you_mean};
use setpoint_graph::Library;
use setpoint_value::{FunctionSpec, InferArguments, Signature, Type, operators};

use super::codes;
use super::instances::{Instance, InstanceId, Typed};
use super::solver::{Conflict, Solver};
use crate::hir::{
    BodyId, Callee, ClassId, DefinitionId, DefinitionKind, ExprId, ExprKind, Hir, IncludeId, Owner, Part,
    Statement,
};
use crate::syntax::Operator;

/// Infers the types of a program. Errors go to the sink, those that count first in front.
pub fn infer(hir: &Hir, library: &Library, diagnostics: &mut Diagnostics) -> Typed {
    let mut inference = Inference {
        hir,
        library,
        solver: Solver::default(),
        typed: Typed::default(),
        recorded: Vec::new(),
        parked: Vec::new(),
        checks: Vec::new(),
        names: Vec::new(),
        generation: Diagnostics::new(),
        solving: Diagnostics::new(),
        completion: Diagnostics::new(),
        depth: 0,
        calls: 0,
    };
    if hir.bodies.is_empty() {
        return inference.typed;
    }
    let entry = inference.top(BodyId(0));
    inference.body(entry, BodyId(0));
    inference.finish(diagnostics)
}

pub(super) struct Inference<'a> {
    pub(super) hir: &'a Hir,
    pub(super) library: &'a Library,
    pub(super) solver: Solver,
    pub(super) typed: Typed,
    /// Types of expressions in the order in which they were met.
    recorded: Vec<((InstanceId, ExprId), Type)>,
    parked: Vec<Parked>,
    /// Checks on solved types.
    checks: Vec<Check>,
    /// Names of resources and edge halves that are not evident: str or list of str.
    pub(super) names: Vec<(Type, Span)>,
    pub(super) generation: Diagnostics,
    pub(super) solving: Diagnostics,
    completion: Diagnostics,
    /// How many definitions are being typed inside each other.
    pub(super) depth: u32,
    /// How many calls of named functions are being typed inside each other.
    calls: u32,
}

/// Deeper chains of definitions than this are typed from their far end, so that the stack stays bounded.
const CHAIN: u32 = 100;

/// Calls inside calls inside calls beyond this are refused.
const MAXIMUM_CALLS: u32 = 400;

/// A program with more includes and calls than this has grown out of hand (classes that include two classes that include
/// two classes …).
const MAXIMUM_INSTANCES: usize = 1 << 20;

/// What waits for a type to become known.
#[derive(Debug, Clone)]
enum Parked {
    Lookup {
        key: (InstanceId, ExprId),
        base: Type,
        index: Type,
        result: Type,
        span: Span,
    },
    Field {
        base: Type,
        field: Arc<str>,
        result: Type,
        span: Span,
    },
    FieldOr {
        base: Type,
        field: Arc<str>,
        result: Type,
        span: Span,
    },
    Overload {
        spec: &'static FunctionSpec,
        candidates: Vec<usize>,
        call: Type,
        span: Span,
    },
}

/// What is looked at when all types are known.
#[derive(Debug, Clone)]
enum Check {
    /// The variable of an operator or function stands for one of these types.
    OneOf {
        what: String,
        ty: Type,
        allowed: Vec<Type>,
        span: Span,
    },
    /// No function anywhere inside.
    NoFunction {
        what: &'static str,
        ty: Type,
        span: Span,
    },
    /// A map's key type.
    Key { ty: Type, span: Span },
    /// The library function that a call came out as is one that can be built.
    Unsupported {
        spec: &'static FunctionSpec,
        call: Type,
        span: Span,
    },
}

/// Why two types must be the same, for the message.
#[derive(Debug, Clone)]
pub(super) enum Reason {
    Element(Span),
    Key(Span),
    MapValue(Span),
    Condition,
    Branches(Span),
    Fallback(Span),
    Interpolation,
    Annotation(Span),
    Call(Span),
    LibraryCall(&'static FunctionSpec),
    Result(Span),
    Operands(&'static str),
    Index,
    Parameter(Arc<str>, Arc<str>, &'static str),
    Meta(&'static str),
    MetaStruct,
    Name,
    List,
    Map,
    Argument(Span),
    Panic,
}

impl<'a> Inference<'a> {
    pub(super) fn top(&mut self, body: BodyId) -> InstanceId {
        if let Some(found) = self.typed.tops.get(&body) {
            return *found;
        }
        let id = self.instance(Owner::Top(body), None);
        self.typed.tops.insert(body, id);
        id
    }

    fn instance(&mut self, owner: Owner, parent: Option<InstanceId>) -> InstanceId {
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
        if let Owner::Top(body) = owner {
            return self.top(body);
        }
        let mut at = Some(from);
        while let Some(id) = at {
            let instance = self.typed.instance(id);
            if instance.owner == owner {
                return id;
            }
            at = instance.parent;
        }
        // Resolution only makes references that lead outward to their owner.
        from
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
        let parent = self.follow(holder, &include.path, class.owner);
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

    fn body(&mut self, instance: InstanceId, body: BodyId) {
        let hir = self.hir;
        for statement in &hir.body(body).statements {
            self.statement(instance, statement);
        }
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
                self.equate(&Type::Bool, &ty, *span, &Reason::Condition);
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
                self.equate(&wanted, &ty, *span, &reason);
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
        if self.typed.instances.len() >= MAXIMUM_INSTANCES {
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
                self.equate(wanted, &ty, include.span, &Reason::Argument(definition.span));
            }
        }
    }

    /// Reports, once, that the program cannot be unfolded.
    fn too_much(&mut self, span: Span) {
        let told = self.generation.iter().any(|d| d.code == &codes::TOO_DEEP);
        if !told {
            let message = "this unfolds into more calls and includes than can be handled";
            let note =
                format!("at most {MAXIMUM_CALLS} calls inside each other, and {MAXIMUM_INSTANCES} in all");
            self.generation
                .push(Diagnostic::error(&codes::TOO_DEEP, span, message).note(note));
        }
    }

    fn panic(&mut self, instance: InstanceId, arguments: &[ExprId], span: Span) {
        let types: Vec<Type> = arguments.iter().map(|id| self.infer(instance, *id)).collect();
        match types.as_slice() {
            [condition] => {
                let known = self.solver.shallow(condition);
                match known {
                    Type::Variable(_) | Type::Bool | Type::Str => {}
                    other => {
                        let message =
                            format!("`panic` takes a bool or a str, not {}", self.solver.zonk(&other));
                        self.completion
                            .push(Diagnostic::error(&codes::UNSUPPORTED, span, message));
                    }
                }
            }
            [condition, message] => {
                self.equate(&Type::Bool, condition, span, &Reason::Panic);
                self.equate(&Type::Str, message, span, &Reason::Panic);
            }
            [] => {
                let message = "`panic` takes one or two arguments";
                self.solving
                    .push(Diagnostic::error(&codes::ARGUMENT_COUNT, span, message));
            }
            _ => {
                let message = format!("`panic` takes one or two arguments, given {}", types.len());
                self.generation
                    .push(Diagnostic::error(&codes::TOO_MANY_ARGUMENTS, span, message));
            }
        }
    }

    /// The type of a definition, found by its first use.
    fn definition_type(&mut self, holder: InstanceId, id: DefinitionId) -> Type {
        if let Some(found) = self.typed.instance(holder).definitions.get(&id) {
            return found.clone();
        }
        self.depth += 1;
        if self.depth > CHAIN {
            self.type_far_end_first(holder, id);
        }
        let ty = self.new_definition_type(holder, id);
        self.depth -= 1;
        ty
    }

    /// Types the binds that a bind needs before itself, with a stack of its own.
    fn type_far_end_first(&mut self, holder: InstanceId, id: DefinitionId) {
        let hir = self.hir;
        let mut open = vec![(holder, id, false)];
        while let Some((holder, id, seen)) = open.pop() {
            if self.typed.instance(holder).definitions.contains_key(&id) {
                continue;
            }
            let DefinitionKind::Bind { value, .. } = &hir.definition(id).kind else {
                continue;
            };
            if seen {
                self.new_definition_type(holder, id);
                continue;
            }
            open.push((holder, id, true));
            for (path, needed) in hir.variables(*value) {
                let holder = self.follow(holder, path, hir.definition(needed).owner);
                open.push((holder, needed, false));
            }
        }
    }

    fn new_definition_type(&mut self, holder: InstanceId, id: DefinitionId) -> Type {
        if let Some(found) = self.typed.instance(holder).definitions.get(&id) {
            return found.clone();
        }
        let hir = self.hir;
        let definition = hir.definition(id);
        let ty = match &definition.kind {
            DefinitionKind::Bind { value, annotation } => {
                let ty = self.infer(holder, *value);
                if let Some(wanted) = annotation {
                    let span = hir.expr(*value).span;
                    self.equate(wanted, &ty, span, &Reason::Annotation(definition.span));
                }
                ty
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

    fn record(&mut self, instance: InstanceId, id: ExprId, ty: Type) -> Type {
        self.recorded.push(((instance, id), ty.clone()));
        ty
    }

    /// Infers, and says that the type must be `wanted`, at the expression itself.
    fn check(&mut self, instance: InstanceId, id: ExprId, wanted: &Type, reason: &Reason) {
        let ty = self.infer(instance, id);
        self.equate(wanted, &ty, self.hir.expr(id).span, reason);
    }

    /// The type of an expression, with equations for what is in it.
    pub(super) fn infer(&mut self, instance: InstanceId, id: ExprId) -> Type {
        let hir = self.hir;
        let expr = hir.expr(id);
        let span = expr.span;
        let ty = match &expr.kind {
            ExprKind::Literal(value) => return value.ty(),
            ExprKind::Variable { path, definition } => {
                let holder = self.follow(instance, path, hir.definition(*definition).owner);
                return self.definition_type(holder, *definition);
            }
            ExprKind::Interpolation(parts) => {
                for part in parts {
                    if let Part::Variable(id) = part {
                        self.check(instance, *id, &Type::Str, &Reason::Interpolation);
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
                    self.check(instance, *k, &key, &Reason::Key(hir.expr(entries[0].0).span));
                    self.check(
                        instance,
                        *v,
                        &value,
                        &Reason::MapValue(hir.expr(entries[0].1).span),
                    );
                }
                self.checks.push(Check::Key {
                    ty: key.clone(),
                    span,
                });
                Type::map(key, value)
            }
            ExprKind::Struct(fields) => {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(name, v)| (name.clone(), self.infer(instance, *v)))
                    .collect();
                Type::structure(fields)
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
                let types = [self.infer(instance, *left), self.infer(instance, *right)];
                self.library_signature(
                    operator_spec(*operator),
                    &types,
                    span,
                    &Reason::Operands(operator.text()),
                )
            }
            ExprKind::Not(inner) => {
                let types = [self.infer(instance, *inner)];
                self.library_signature(&operators::NOT, &types, span, &Reason::Operands("not"))
            }
            ExprKind::In { left, right } => {
                let types = [self.infer(instance, *left), self.infer(instance, *right)];
                self.library_signature(&operators::CONTAINS, &types, span, &Reason::Operands("in"))
            }
            ExprKind::Lookup { base, index } => {
                let (base, index) = (self.infer(instance, *base), self.infer(instance, *index));
                let result = self.solver.fresh();
                self.park(Parked::Lookup {
                    key: (instance, id),
                    base,
                    index,
                    result: result.clone(),
                    span,
                });
                result
            }
            ExprKind::Field { base, field } => {
                let base = self.infer(instance, *base);
                let result = self.solver.fresh();
                self.park(Parked::Field {
                    base,
                    field: field.clone(),
                    result: result.clone(),
                    span,
                });
                result
            }
            ExprKind::FieldOr { base, field, default } => {
                let evident = self.evident(instance, *base);
                let base = self.infer(instance, *base);
                let result = self.infer(instance, *default);
                let field = field.clone();
                // A struct type that is plain from the text makes a wrong default a type error at once.
                if let Some(found) = evident
                    .as_ref()
                    .and_then(Type::as_struct)
                    .and_then(|s| s.field(&field))
                {
                    let found = found.clone();
                    self.equate(&found, &result, span, &Reason::Result(hir.expr(*default).span));
                }
                self.park(Parked::FieldOr {
                    base,
                    field,
                    result: result.clone(),
                    span,
                });
                result
            }
            ExprKind::Call { callee, arguments } => self.call(instance, id, callee, arguments, span),
        };
        self.record(instance, id, ty)
    }

    fn lambda(&mut self, instance: InstanceId, id: ExprId) -> Type {
        let hir = self.hir;
        let ExprKind::Lambda(function) = hir.expr(id).kind else {
            return self.solver.fresh();
        };
        self.function_type(instance, function)
    }

    /// The type of a function whose body is in `instance`, with the equations of its body.
    fn function_type(&mut self, instance: InstanceId, id: crate::hir::FunctionId) -> Type {
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
        Type::func(parameters, result)
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
                self.equate(&wanted, &found, at, &Reason::Call(span));
                result
            }
            Callee::Function { path, function } => {
                let definition = hir.function(*function);
                if self.calls >= MAXIMUM_CALLS || self.typed.instances.len() >= MAXIMUM_INSTANCES {
                    self.too_much(span);
                    return self.solver.fresh();
                }
                let parent = self.follow(instance, path, definition.owner);
                let inner = self.instance(Owner::Function(*function), Some(parent));
                self.typed.instances[instance.0 as usize].calls.insert(id, inner);
                self.calls += 1;
                let found = self.function_type(inner, *function);
                self.calls -= 1;
                let result = self.solver.fresh();
                let wanted = call_type(&types, result.clone());
                self.equate(&wanted, &found, definition.span, &Reason::Call(span));
                result
            }
            Callee::Library(spec, _) => {
                if let Some(hook) = spec.infer {
                    let evident: Vec<_> = arguments.iter().map(|id| self.evident(instance, *id)).collect();
                    let values: Vec<_> = arguments
                        .iter()
                        .map(|id| self.static_value(instance, *id))
                        .collect();
                    return match hook(&InferArguments {
                        types: &evident,
                        values: &values,
                    }) {
                        Ok(inferred) => {
                            let signature = self.instantiate(&inferred.signature, &mut FxHashMap::default());
                            let result = self.solver.fresh();
                            let call = call_type(&types, result.clone());
                            self.equate(&signature, &call, span, &Reason::LibraryCall(spec));
                            result
                        }
                        Err(error) => {
                            let message = format!("`{}`: {error}", shown(spec));
                            let mut diagnostic = Diagnostic::error(&codes::BAD_ARGUMENTS, span, message);
                            if let Some(argument) = error.index.and_then(|index| arguments.get(index)) {
                                diagnostic =
                                    diagnostic.because(hir.expr(*argument).span, error.message.clone());
                            }
                            self.generation.push(diagnostic);
                            self.solver.fresh()
                        }
                    };
                }
                self.library_signature(spec, &types, span, &Reason::LibraryCall(spec))
            }
        }
    }

    /// The result of calling a library function with arguments of these types.
    fn library_signature(
        &mut self,
        spec: &'static FunctionSpec,
        types: &[Type],
        span: Span,
        reason: &Reason,
    ) -> Type {
        let alternatives = spec.alternatives();
        let result = self.solver.fresh();
        let call = call_type(types, result.clone());
        let candidates: Vec<usize> = (0..alternatives.len())
            .filter(|i| alternatives[*i].accepts_count(types.len()))
            .collect();
        match candidates.as_slice() {
            [] => {
                let most = alternatives.iter().map(|a| a.parameters.len()).max().unwrap_or(0);
                let wanted = counts(alternatives);
                let message = format!("`{}` takes {wanted}, given {}", shown(spec), types.len());
                if types.len() > most {
                    self.generation
                        .push(Diagnostic::error(&codes::TOO_MANY_ARGUMENTS, span, message));
                } else {
                    self.solving
                        .push(Diagnostic::error(&codes::ARGUMENT_COUNT, span, message));
                }
            }
            [only] => self.use_alternative(spec, &alternatives[*only], &call, types.len(), span, reason),
            _ => self.park(Parked::Overload {
                spec,
                candidates,
                call,
                span,
            }),
        }
        result
    }

    fn use_alternative(
        &mut self,
        spec: &'static FunctionSpec,
        signature: &Signature,
        call: &Type,
        count: usize,
        span: Span,
        reason: &Reason,
    ) {
        let Some(ty) = signature.func_type(count) else {
            return;
        };
        let mut variables = FxHashMap::default();
        let ty = self.instantiate(&ty, &mut variables);
        for (variable, allowed) in &signature.limits {
            if let Some(fresh) = variables.get(variable) {
                let (ty, allowed) = (fresh.clone(), allowed.clone());
                self.checks.push(Check::OneOf {
                    what: shown(spec),
                    ty,
                    allowed,
                    span,
                });
            }
        }
        let compares = [&operators::EQUAL, &operators::NOT_EQUAL, &operators::CONTAINS];
        if compares
            .iter()
            .any(|c| std::ptr::eq::<FunctionSpec>(&raw const **c, spec))
        {
            let ty = variables.get(&1).cloned().unwrap_or(Type::Bool);
            self.checks.push(Check::NoFunction {
                what: "compared",
                ty,
                span,
            });
        }
        self.equate(&ty, call, span, reason);
    }

    /// A signature's type with variables of its own. `variant` stands for a type of its own at each place, `number` for one
    /// and the same int or float.
    fn instantiate(&mut self, ty: &Type, variables: &mut FxHashMap<u32, Type>) -> Type {
        let solver = &mut self.solver;
        let checks = &mut self.checks;
        let _ = checks;
        ty.replace(&mut |part| match part {
            Type::Variable(variable) => Some(
                variables
                    .entry(*variable)
                    .or_insert_with(|| solver.fresh())
                    .clone(),
            ),
            Type::Number => Some(
                variables
                    .entry(u32::MAX)
                    .or_insert_with(|| solver.fresh())
                    .clone(),
            ),
            Type::Variant | Type::Dynamic => Some(solver.fresh()),
            _ => None,
        })
    }

    fn park(&mut self, parked: Parked) {
        if !self.decide(&parked, false) {
            self.parked.push(parked);
        }
    }

    /// Tries to decide what was parked. `last`: nothing more will become known.
    fn decide(&mut self, parked: &Parked, last: bool) -> bool {
        match parked {
            Parked::Lookup {
                key,
                base,
                index,
                result,
                span,
            } => {
                let spec = match (self.solver.shallow(base), self.solver.shallow(index)) {
                    (Type::List(element), _) => {
                        self.equate(&Type::Int, index, *span, &Reason::Index);
                        let element = (*element).clone();
                        self.equate(&element, result, *span, &Reason::Index);
                        &operators::LIST_LOOKUP
                    }
                    (Type::Map(kv), _) => {
                        self.equate(&kv.0, index, *span, &Reason::Index);
                        self.equate(&kv.1, result, *span, &Reason::Index);
                        &operators::MAP_LOOKUP
                    }
                    (Type::Variable(_), Type::Variable(_) | Type::Int) => return false,
                    (Type::Variable(_), key) => {
                        let wanted = Type::map(key, result.clone());
                        self.equate(&wanted, base, *span, &Reason::Index);
                        &operators::MAP_LOOKUP
                    }
                    (other, _) => {
                        let message = format!("{} has no elements to look up", self.solver.zonk(&other));
                        let error = Diagnostic::error(&codes::UNSUPPORTED, *span, message);
                        self.completion
                            .push(error.help("`[…]` looks into a list or a map; a field is read with `->`"));
                        &operators::LIST_LOOKUP
                    }
                };
                self.typed.lookups.insert(*key, spec);
                true
            }
            Parked::Field {
                base,
                field,
                result,
                span,
            } => match self.solver.shallow(base) {
                Type::Variable(_) => false,
                Type::Struct(s) => {
                    match s.field(field) {
                        Some(ty) => self.equate_builtin(ty, result, *span),
                        None => self.no_field(&s, field, *span),
                    }
                    true
                }
                other => {
                    let message = format!(
                        "{} is no struct and has no field `{field}`",
                        self.solver.zonk(&other)
                    );
                    self.completion
                        .push(Diagnostic::error(&codes::UNSUPPORTED, *span, message));
                    true
                }
            },
            Parked::FieldOr {
                base,
                field,
                result,
                span,
            } => match self.solver.shallow(base) {
                Type::Variable(_) => false,
                Type::Struct(s) => {
                    if let Some(ty) = s.field(field) {
                        self.equate_builtin(ty, result, *span);
                    }
                    true
                }
                other => {
                    let message = format!(
                        "{} is no struct and has no field `{field}`",
                        self.solver.zonk(&other)
                    );
                    self.completion
                        .push(Diagnostic::error(&codes::UNSUPPORTED, *span, message));
                    true
                }
            },
            Parked::Overload {
                spec,
                candidates,
                call,
                span,
            } => {
                let Some(wanted) = call.as_func().cloned() else {
                    return true;
                };
                let count = wanted.parameters.len();
                let alternatives = spec.alternatives();
                let mut fitting: Vec<usize> = Vec::new();
                for candidate in candidates {
                    let Some(ty) = alternatives[*candidate].func_type(count) else {
                        continue;
                    };
                    let mut variables = FxHashMap::default();
                    let ty = self.instantiate(&ty, &mut variables);
                    if self.solver.compatible(&ty, call) {
                        fitting.push(*candidate);
                    }
                }
                match fitting.as_slice() {
                    [] => {
                        let check = Check::Unsupported {
                            spec,
                            call: call.clone(),
                            span: *span,
                        };
                        self.checks.push(check);
                        true
                    }
                    [only] => {
                        let signature = &alternatives[*only];
                        self.use_alternative(spec, signature, call, count, *span, &Reason::LibraryCall(spec));
                        true
                    }
                    // Undecided to the end stays open and is reported as such.
                    _ => last,
                }
            }
        }
    }

    /// Makes two types equal where a conflict means that a built-in does not support the type (U7).
    fn equate_builtin(&mut self, expect: &Type, actual: &Type, span: Span) {
        if self.solver.unify(expect, actual).is_err() {
            let (expect, actual) = (self.solver.zonk(expect), self.solver.zonk(actual));
            let message = format!("the field is {expect}, where {actual} is needed");
            self.completion
                .push(Diagnostic::error(&codes::UNSUPPORTED, span, message));
        }
    }

    fn no_field(&mut self, s: &setpoint_value::StructType, field: &str, span: Span) {
        let message = format!("the struct has no field `{field}`");
        let names: Vec<&str> = s.fields.iter().map(|f| &*f.name).collect();
        let help = did_you_mean(field, names.iter().copied()).unwrap_or_else(|| match names.as_slice() {
            [] => "it has no fields at all".to_owned(),
            names => format!("its fields are `{}`", names.join("`, `")),
        });
        self.completion
            .push(Diagnostic::error(&codes::UNSUPPORTED, span, message).help(help));
    }

    /// Solves one equation, and reports a conflict at `span`.
    pub(super) fn equate(&mut self, expect: &Type, actual: &Type, span: Span, reason: &Reason) {
        if let Err(conflict) = self.solver.unify(expect, actual) {
            let (expect, actual) = (self.solver.zonk(expect), self.solver.zonk(actual));
            self.solving
                .push(conflict_diagnostic(conflict, &expect, &actual, span, reason));
        }
    }

    fn finish(mut self, diagnostics: &mut Diagnostics) -> Typed {
        let mut parked = std::mem::take(&mut self.parked);
        loop {
            let before = parked.len();
            let again = std::mem::take(&mut parked);
            parked = again.into_iter().filter(|p| !self.decide(p, false)).collect();
            parked.append(&mut self.parked);
            if parked.len() == before {
                break;
            }
        }
        for (ty, span) in std::mem::take(&mut self.names) {
            self.name_type(&ty, span);
        }
        let late = std::mem::take(&mut parked);
        for parked in late {
            self.decide(&parked, true);
        }
        let clean = self.generation.is_empty() && self.solving.is_empty();
        if clean {
            self.complete();
        }
        diagnostics.append(self.generation);
        diagnostics.append(self.solving);
        if clean {
            diagnostics.append(self.completion);
        }
        self.typed
    }

    /// A name that is not evidently one or many: whichever the solver found, and many where nothing says.
    fn name_type(&mut self, ty: &Type, span: Span) {
        match self.solver.shallow(ty) {
            Type::Str => {}
            _ => self.equate(&Type::list(Type::Str), ty, span, &Reason::Name),
        }
    }

    fn complete(&mut self) {
        let recorded = std::mem::take(&mut self.recorded);
        let mut open = Diagnostics::new();
        let mut types = FxHashMap::default();
        types.reserve(recorded.len());
        for ((instance, id), ty) in recorded {
            let ty = self.solver.zonk(&ty);
            let is_open = !matches!(ty, Type::Bool | Type::Str | Type::Int | Type::Float)
                && ty.any_part(&mut |t| matches!(t, Type::Variable(_)));
            if is_open && open.is_empty() {
                let span = self.hir.expr(id).span;
                let message = format!("nothing determines the type of this: {ty}");
                let error = Diagnostic::error(&codes::AMBIGUOUS, span, message).label("of what type?");
                open.push(error.help("write the type where the value is bound: `$name []str = []`"));
            }
            types.insert((instance, id), ty);
        }
        for index in 0..self.typed.instances.len() {
            let mut definitions = std::mem::take(&mut self.typed.instances[index].definitions);
            #[expect(clippy::iter_over_hash_type, reason = "each entry is solved on its own")]
            for ty in definitions.values_mut() {
                *ty = self.solver.zonk(ty);
            }
            self.typed.instances[index].definitions = definitions;
        }
        self.typed.types = types;
        if open.has_errors() {
            let unsupported = std::mem::take(&mut self.completion);
            open.append(unsupported);
            self.completion = open;
            return;
        }
        for check in std::mem::take(&mut self.checks) {
            self.check_solved(check);
        }
    }

    fn check_solved(&mut self, check: Check) {
        let (code, span, message, help) = match check {
            Check::OneOf {
                what,
                ty,
                allowed,
                span,
            } => {
                let ty = self.solver.zonk(&ty);
                if allowed.contains(&ty) {
                    return;
                }
                let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
                let message = format!("`{what}` does not work on {ty}");
                (
                    &codes::UNSUPPORTED,
                    span,
                    message,
                    Some(format!("it works on {}", allowed.join(", "))),
                )
            }
            Check::NoFunction { what, ty, span } => {
                let ty = self.solver.zonk(&ty);
                if !ty.contains_func() {
                    return;
                }
                (
                    &codes::UNSUPPORTED,
                    span,
                    format!("functions cannot be {what}, and {ty} holds one"),
                    None,
                )
            }
            Check::Key { ty, span } => {
                let ty = self.solver.zonk(&ty);
                if !ty.contains_func() {
                    return;
                }
                (
                    &codes::UNHASHABLE,
                    span,
                    format!("a map key cannot hold a function, and {ty} does"),
                    None,
                )
            }
            Check::Unsupported { spec, call, span } => {
                let call = self.solver.zonk(&call);
                let arguments = call
                    .as_func()
                    .map(|f| f.parameters.iter().map(|p| p.ty.to_string()).collect::<Vec<_>>());
                let arguments = arguments.unwrap_or_default().join(", ");
                let forms = spec.signatures.join("` or `");
                let message = format!("`{}` cannot be called with ({arguments})", shown(spec));
                (
                    &codes::UNSUPPORTED,
                    span,
                    message,
                    Some(format!("it is `{forms}`")),
                )
            }
        };
        self.completion
            .push(Diagnostic::error(code, span, message).help_if(help));
    }
}

/// The specification behind an operator.
pub(crate) fn operator_spec(operator: Operator) -> &'static FunctionSpec {
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

fn call_type(arguments: &[Type], result: Type) -> Type {
    Type::func(
        arguments
            .iter()
            .enumerate()
            .map(|(i, ty)| (i.to_string(), ty.clone())),
        result,
    )
}

/// A function as a user writes it: `fmt.printf`.
fn shown(spec: &FunctionSpec) -> String {
    let alias = spec.module.rsplit('/').next().unwrap_or_default();
    if alias.is_empty() {
        spec.name.to_owned()
    } else {
        format!("{alias}.{}", spec.name)
    }
}

fn counts(alternatives: &[Signature]) -> String {
    let mut counts: Vec<String> = alternatives
        .iter()
        .map(|a| {
            format!(
                "{}{}",
                a.parameters.len(),
                if a.variadic.is_some() { " or more" } else { "" }
            )
        })
        .collect();
    counts.dedup();
    let noun = if counts == ["1"] { "argument" } else { "arguments" };
    format!("{} {noun}", counts.join(" or "))
}

fn conflict_diagnostic(
    conflict: Conflict,
    expect: &Type,
    actual: &Type,
    span: Span,
    reason: &Reason,
) -> Diagnostic {
    let code = match conflict {
        Conflict::Kinds => &codes::MISMATCH,
        Conflict::ParameterCount => &codes::ARGUMENT_COUNT,
        Conflict::FieldCount => &codes::FIELD_COUNT,
        Conflict::FieldNames => &codes::FIELD_NAMES,
        Conflict::Infinite => &codes::INFINITE,
    };
    if conflict == Conflict::Infinite {
        let error = Diagnostic::error(code, span, "this would have to be a type that contains itself");
        return error.note(format!("{actual} and {expect} cannot be the same"));
    }
    let mut label = format!("this is {actual}");
    let mut secondary: Option<(Span, String)> = None;
    let mut help = None;
    let message = match reason {
        Reason::Element(first) => {
            secondary =
                (*first != span).then(|| (*first, format!("the first element makes it a list of {expect}")));
            format!("the elements of a list have one type: {expect} and {actual} differ")
        }
        Reason::Key(first) => {
            secondary = (*first != span).then(|| (*first, format!("the first key is {expect}")));
            format!("the keys of a map have one type: {expect} and {actual} differ")
        }
        Reason::MapValue(first) => {
            secondary = (*first != span).then(|| (*first, format!("the first value is {expect}")));
            format!("the values of a map have one type: {expect} and {actual} differ")
        }
        Reason::Condition => format!("a condition is a bool, not {actual}"),
        Reason::Branches(then) => {
            secondary = (*then != span).then(|| (*then, format!("the other branch is {expect}")));
            format!("both branches have one type: {expect} and {actual} differ")
        }
        Reason::Fallback(left) => {
            secondary = (*left != span).then(|| (*left, format!("the left side is {expect}")));
            format!("both sides of `<|>` have one type: {expect} and {actual} differ")
        }
        Reason::Interpolation => {
            help = Some("only a str can stand in a string; format others with `fmt.printf`".to_owned());
            format!("a variable in a string is a str, not {actual}")
        }
        Reason::Annotation(bind) => {
            secondary = Some((*bind, format!("declared as {expect}")));
            format!("the value is {actual}, but the declared type is {expect}")
        }
        Reason::Call(call) => {
            label = format!("this is {actual}");
            secondary = Some((*call, format!("called here as {expect}")));
            if conflict == Conflict::ParameterCount {
                let count = |ty: &Type| ty.as_func().map_or(0, |f| f.parameters.len());
                let (wanted, given) = (count(actual), count(expect));
                let noun = if wanted == 1 { "argument" } else { "arguments" };
                format!("this function takes {wanted} {noun}, but is called with {given}")
            } else if actual.as_func().is_none() && !matches!(actual, Type::Variable(_)) {
                format!("{actual} is not a function and cannot be called")
            } else {
                let described = difference(expect, actual);
                format!("this function is not called with the types that it takes{described}")
            }
        }
        Reason::LibraryCall(spec) => {
            label = format!("called as {actual}");
            help = Some(format!("it is `{}`", spec.signatures.join("` or `")));
            format!(
                "`{}` does not take these arguments{}",
                shown(spec),
                difference(expect, actual)
            )
        }
        Reason::Operands(operator) => {
            label = format!("used as {actual}");
            if let Some(f) = actual.as_func()
                && let [a, b] = f.parameters.as_slice()
                && a.ty != b.ty
                && *operator != "in"
            {
                help = Some(format!(
                    "convert one side; there is no conversion between {} and {} by itself",
                    a.ty, b.ty
                ));
                format!(
                    "both sides of `{operator}` have one type: {} and {} differ",
                    a.ty, b.ty
                )
            } else {
                format!(
                    "`{operator}` does not work on these{}",
                    difference(expect, actual)
                )
            }
        }
        Reason::Result(declared) => {
            secondary =
                (*declared != span).then(|| (*declared, format!("{expect} is wanted because of this")));
            format!("the result is {actual}, where {expect} is needed")
        }
        Reason::Index => format!("this lookup needs {expect}, but has {actual}"),
        Reason::Parameter(kind, name, doc) => {
            help = (!doc.is_empty()).then(|| format!("`{name}`: {doc}"));
            format!("`{name}` of `{kind}` is {expect}, not {actual}")
        }
        Reason::Meta(name) => format!("`Meta:{name}` is {expect}, not {actual}"),
        Reason::MetaStruct => {
            let names = setpoint_graph::MetaName::ALL.map(setpoint_graph::MetaName::name);
            help = Some(format!(
                "a `Meta` struct whose fields are not plain has all of {}",
                names.join(", ")
            ));
            format!("a `Meta` struct cannot be {actual}")
        }
        Reason::Name => {
            help =
                Some("a name is a str or a list of str; interpolate a variable as `\"${name}\"`".to_owned());
            format!("a name is a str or a list of str, not {actual}")
        }
        Reason::List => {
            if matches!(actual, Type::Map(_)) {
                help = Some("a map is walked with `forkv $key, $value in …`".to_owned());
            }
            format!("`for` walks a list, not {actual}")
        }
        Reason::Map => {
            if matches!(actual, Type::List(_)) {
                help = Some("a list is walked with `for $index, $value in …`".to_owned());
            }
            format!("`forkv` walks a map, not {actual}")
        }
        Reason::Argument(parameter) => {
            secondary = Some((*parameter, format!("declared as {expect}")));
            format!("the class takes {expect} here, given {actual}")
        }
        Reason::Panic => format!("`panic` takes a bool and a str here; {actual} is not {expect}"),
    };
    let mut diagnostic = Diagnostic::error(code, span, message).label(label).help_if(help);
    if let Some((span, text)) = secondary {
        diagnostic = diagnostic.because(span, text);
    }
    diagnostic
}

/// `: int is not str` for the first place where two types differ; empty when they cannot be told apart.
fn difference(expect: &Type, actual: &Type) -> String {
    fn first(a: &Type, b: &Type) -> Option<(Type, Type)> {
        match (a, b) {
            (Type::Variable(_), _) | (_, Type::Variable(_)) => None,
            (Type::List(a), Type::List(b)) => first(a, b),
            (Type::Map(a), Type::Map(b)) => first(&a.0, &b.0).or_else(|| first(&a.1, &b.1)),
            (Type::Func(a), Type::Func(b)) if a.parameters.len() == b.parameters.len() => {
                let mut pairs = a.parameters.iter().zip(&b.parameters);
                pairs
                    .find_map(|(a, b)| first(&a.ty, &b.ty))
                    .or_else(|| first(&a.result, &b.result))
            }
            (a, b) if a == b => None,
            (a, b) => Some((a.clone(), b.clone())),
        }
    }
    first(expect, actual).map_or_else(String::new, |(wanted, found)| {
        format!(": {found} is not {wanted}")
    })
}
