//! What cannot be decided where it is met, and is when more is known.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_diagnostics::{Diagnostic, Span, did_you_mean};
use setpoint_value::{FunctionRef, InferArguments, StructType, Type, Value};

use super::codes;
use super::completion::Check;
use super::conflicts::Reason;
use super::expressions::call_type;
use super::findings::Phase;
use super::infer::Inference;
use super::instances::InstanceId;
use super::messages::{Calls, in_few_words};
use super::places::Place;
use super::solver::Conflict;
use crate::adapt::{infer as infer_adapted, is_adapted};
use crate::hir::ExprId;

/// What waits for a type to become known.
#[derive(Debug, Clone)]
pub(super) struct Deferred {
    /// Where it stands among the equations.
    pub(super) place: Place,
    pub(super) span: Span,
    /// The calls through which it came here, if it is of a function's scheme.
    pub(super) calls: Calls,
    pub(super) what: DeferredKind,
}

impl Deferred {
    pub(super) fn new(place: Place, span: Span, what: DeferredKind) -> Deferred {
        Deferred {
            place,
            span,
            calls: Calls::default(),
            what,
        }
    }

    /// The same for a call of the function that it is part of.
    pub(super) fn for_call(&self, call: Span, put: &mut dyn FnMut(&Type) -> Type) -> Deferred {
        let mut copy = self.clone();
        copy.calls.push(call);
        for ty in copy.what.types_mut() {
            *ty = put(ty);
        }
        copy
    }
}

#[derive(Debug, Clone)]
pub(super) enum DeferredKind {
    /// `base[index]`, which is not plainly a list or a map.
    Lookup { base: Type, index: Type, result: Type },
    /// `base->field`, with or without a default of the result's type.
    Field {
        base: Type,
        field: Arc<str>,
        result: Type,
        has_default: bool,
    },
    /// A library function with more than one signature for as many arguments.
    Overload {
        spec: FunctionRef,
        candidates: Vec<usize>,
        call: Type,
    },
    /// A library function that types its calls by their arguments.
    Hooked(HookedCall),
    /// What a variable must be: imposed on what it has become, so that it decides nothing else.
    Imposed {
        wanted: Type,
        actual: Type,
        reason: Reason,
    },
}

impl DeferredKind {
    /// The types in it, but those of a hooked call, which is no part of a scheme.
    pub(super) fn types_mut(&mut self) -> Vec<&mut Type> {
        match self {
            DeferredKind::Lookup { base, index, result } => vec![base, index, result],
            DeferredKind::Field { base, result, .. } => vec![base, result],
            DeferredKind::Overload { call, .. } => vec![call],
            DeferredKind::Imposed { wanted, actual, .. } => vec![wanted, actual],
            DeferredKind::Hooked(_) => Vec::new(),
        }
    }

    /// What it asks, and what the answer is called. Equal questions have equal answers.
    pub(super) fn question(&self) -> Option<(Question, Type)> {
        let question = |asked: Vec<Type>| Question {
            asked,
            field: None,
            function: None,
        };
        match self {
            DeferredKind::Lookup { base, index, result } => {
                Some((question(vec![base.clone(), index.clone()]), result.clone()))
            }
            DeferredKind::Field {
                base,
                field,
                result,
                has_default,
            } => {
                // A default may be of another type where there is no such field.
                let asked = if *has_default {
                    vec![base.clone(), result.clone()]
                } else {
                    vec![base.clone()]
                };
                let field = Some(field.clone());
                Some((
                    Question {
                        field,
                        ..question(asked)
                    },
                    result.clone(),
                ))
            }
            DeferredKind::Overload { spec, call, .. } => {
                let call = call.as_func()?;
                let asked = call.parameters.iter().map(|p| p.ty.clone()).collect();
                let function = Some(spec.called());
                let question = Question {
                    function,
                    ..question(asked)
                };
                Some((question, call.result.clone()))
            }
            DeferredKind::Hooked(_) | DeferredKind::Imposed { .. } => None,
        }
    }
}

/// What waits, without its answer.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    pub(super) asked: Vec<Type>,
    field: Option<Arc<str>>,
    function: Option<String>,
}

/// A call of a library function that types its calls by their arguments.
#[derive(Debug, Clone)]
pub(super) struct HookedCall {
    pub(super) instance: InstanceId,
    pub(super) spec: FunctionRef,
    pub(super) arguments: Vec<ExprId>,
    /// The types of the arguments, as far as they are inferred.
    pub(super) types: Vec<Type>,
    pub(super) result: Type,
}

impl Inference<'_> {
    /// Decides what was deferred, as far as all that is known allows.
    pub(super) fn resolve_deferred(&mut self, last: bool) {
        loop {
            let before = self.deferred.len();
            for deferred in std::mem::take(&mut self.deferred) {
                self.replayed = Some(deferred.place);
                self.through = deferred.calls.clone();
                let decided = self.decide(&deferred, last);
                self.through = Calls::default();
                self.replayed = None;
                if !decided {
                    self.deferred.push(deferred);
                }
            }
            if self.deferred.len() == before {
                return;
            }
        }
    }

    /// Imposes types on variables, after all equations that could find them.
    pub(super) fn impose(&mut self) {
        for deferred in std::mem::take(&mut self.imposed) {
            self.through = deferred.calls.clone();
            if let DeferredKind::Imposed {
                wanted,
                actual,
                reason,
            } = &deferred.what
                && let Err(conflict) = self.solver.unify(wanted, actual)
            {
                let error = self.conflict(conflict, wanted, actual, deferred.span, reason);
                self.incomplete(deferred.place, error);
            }
            self.through = Calls::default();
        }
    }

    /// Notes an error of the last phase.
    pub(super) fn incomplete(&mut self, place: Place, error: Diagnostic) {
        let error = self.through.on(error);
        self.findings.push(Phase::Completion, place, error);
    }

    /// Tries to decide what was deferred. `last`: nothing more will become known.
    fn decide(&mut self, deferred: &Deferred, last: bool) -> bool {
        let (place, span) = (deferred.place, deferred.span);
        match &deferred.what {
            DeferredKind::Lookup { base, index, result } => self.decide_lookup(deferred, base, index, result),
            DeferredKind::Field {
                base,
                field,
                result,
                has_default,
            } => match self.solver.shallow(base) {
                Type::Variable(_) => false,
                Type::Struct(s) => {
                    match s.field(field) {
                        Some(ty) => {
                            let what = format!("the field `{field}`");
                            self.equate_built(place, span, &what, ty, result);
                        }
                        None if *has_default => {}
                        None => {
                            self.failed.push(result.clone());
                            self.no_field(place, span, &s, field);
                        }
                    }
                    true
                }
                other => {
                    let other = self.solver.zonk(&other);
                    let message = format!(
                        "{} is not a struct and has no field `{field}`",
                        in_few_words(&other)
                    );
                    self.failed.push(result.clone());
                    let help = matches!(other, Type::Map(_))
                        .then(|| format!("an entry of a map is `$map[\"{field}\"]`"));
                    self.unsupported(place, span, message, help);
                    true
                }
            },
            DeferredKind::Overload {
                spec,
                candidates,
                call,
            } => self.decide_overload(deferred, spec, candidates, call, last),
            DeferredKind::Hooked(call) => self.decide_hooked(call, span, last),
            DeferredKind::Imposed { .. } => true,
        }
    }

    /// Asks a function for the signature of a call. A function of the dynamic protocol may be asked again once more is known
    /// of its arguments; for any other only what the text makes evident counts.
    pub(super) fn decide_hooked(&mut self, call: &HookedCall, span: Span, last: bool) -> bool {
        let spec = &call.spec;
        let is_adapted = is_adapted(spec);
        let mut evident = Vec::with_capacity(call.arguments.len());
        for (id, ty) in call.arguments.iter().zip(&call.types) {
            let found = self.syntactic_type(call.instance, *id).or_else(|| {
                let inferred = self.solver.zonk(ty);
                (is_adapted && !matches!(inferred, Type::Variable(_))).then_some(inferred)
            });
            evident.push(found);
        }
        let values: Vec<_> = call
            .arguments
            .iter()
            .map(|id| self.static_value(call.instance, *id))
            .collect();
        let is_open = |ty: &Option<Type>| ty.as_ref().is_none_or(Type::is_open);
        let arguments = InferArguments {
            types: &evident,
            values: &values,
        };
        let inferred = match spec.infer {
            _ if is_adapted => infer_adapted(spec, &arguments),
            Some(hook) => hook(&arguments),
            None => return true,
        };
        match inferred {
            Ok(inferred) => {
                let signature = self.instantiate(&inferred.signature, &mut FxHashMap::default());
                let wanted = call_type(&call.types, call.result.clone());
                if let Err(conflict) = self.solver.unify(&signature, &wanted) {
                    let error = self.hooked_conflict(conflict, call, &values, &signature, &wanted, span);
                    self.unsolved(error);
                }
                true
            }
            Err(_) if is_adapted && !last && evident.iter().any(is_open) => false,
            Err(error) => {
                let message = format!("`{}`: {error}", spec.called());
                let mut diagnostic = Diagnostic::error(&codes::BAD_ARGUMENTS, span, message);
                let argument = error.index.filter(|index| *index < call.arguments.len());
                if let Some(index) = argument {
                    let at = self.hir.place(call.arguments[index]);
                    diagnostic = diagnostic.shown_at(at);
                    if evident.get(index).is_some_and(is_open) {
                        diagnostic = diagnostic.help(
                            "a name with a type says what it is: `$name []str = …`, and then `$name` here",
                        );
                    }
                }
                self.refuse(diagnostic);
                true
            }
        }
    }

    /// The error of a call whose signature follows from its arguments. Whoever computes that signature knows best what is wrong.
    fn hooked_conflict(
        &mut self,
        conflict: Conflict,
        call: &HookedCall,
        values: &[Option<Value>],
        signature: &Type,
        wanted: &Type,
        span: Span,
    ) -> Diagnostic {
        let spec = &call.spec;
        let error = self.conflict(
            conflict,
            signature,
            wanted,
            span,
            &Reason::LibraryCall(spec.clone(), None),
        );
        let types: Vec<Option<Type>> = call
            .types
            .iter()
            .map(|ty| Some(self.solver.zonk(ty)).filter(|ty| !ty.is_open()))
            .collect();
        let arguments = InferArguments {
            types: &types,
            values,
        };
        let told = spec.infer.and_then(|hook| hook(&arguments).err());
        let argument = told.as_ref().and_then(|told| told.index);
        let Some((told, argument)) = told.zip(argument.and_then(|index| call.arguments.get(index))) else {
            return error;
        };
        let message = format!("`{}`: {told}", spec.called());
        let error = Diagnostic::error(error.code, error.rule_place(), message);
        self.shown_at(error, (call.instance, *argument))
    }

    fn decide_lookup(&mut self, deferred: &Deferred, base: &Type, index: &Type, result: &Type) -> bool {
        let (place, span) = (deferred.place, deferred.span);
        let (wanted, found) = match (self.solver.shallow(base), self.solver.shallow(index)) {
            (Type::List(element), _) => (Type::Int, (*element).clone()),
            (Type::Map(kv), _) => (kv.0.clone(), kv.1.clone()),
            (Type::Variable(_), Type::Variable(_) | Type::Int) => return false,
            (Type::Variable(_), _) => {
                self.map_lookup(base, index, result, span, None);
                return true;
            }
            (other, _) => {
                self.failed.push(result.clone());
                self.nothing_to_look_up(place, &other, span);
                return true;
            }
        };
        self.equate_built(place, span, "what this is looked up with", index, &wanted);
        self.equate_built(place, span, "what is found here", &found, result);
        true
    }

    /// A lookup in what must be a list. An index that is none is shown at `written`.
    pub(super) fn list_lookup(
        &mut self,
        base: &Type,
        index: &Type,
        result: &Type,
        span: Span,
        written: ExprId,
    ) {
        self.equate(&Type::list(result.clone()), base, span, &Reason::LookedInto);
        let at = self.hir.place(written);
        self.equate(&Type::Int, index, span, &Reason::Index(at));
    }

    /// A lookup in what must be a map. A key of another type is shown at `written`, where that is known.
    pub(super) fn map_lookup(
        &mut self,
        base: &Type,
        key: &Type,
        result: &Type,
        span: Span,
        written: Option<ExprId>,
    ) {
        let key_type = self.solver.fresh();
        let wanted = Type::map(key_type.clone(), result.clone());
        self.equate(&wanted, base, span, &Reason::LookedInto);
        let at = written.map_or(span, |written| self.hir.place(written));
        self.equate(&key_type, key, span, &Reason::Key(at));
    }

    /// A lookup in what is neither a list nor a map.
    pub(super) fn nothing_to_look_up(&mut self, place: Place, base: &Type, span: Span) {
        let base = self.solver.zonk(base);
        let message = format!("{} has no elements to look up", in_few_words(&base));
        let help = "`[…]` looks into a list or a map; a field is read with `->`";
        self.unsupported(place, span, message, Some(help.to_owned()));
    }

    fn decide_overload(
        &mut self,
        deferred: &Deferred,
        spec: &FunctionRef,
        candidates: &[usize],
        call: &Type,
        last: bool,
    ) -> bool {
        let Some(wanted) = call.as_func().cloned() else {
            return true;
        };
        let alternatives = spec.alternatives();
        let mut fitting: Vec<usize> = Vec::new();
        for candidate in candidates {
            let Some(ty) = alternatives[*candidate].func_type(wanted.parameters.len()) else {
                continue;
            };
            let ty = self.instantiate(&ty, &mut FxHashMap::default());
            if self.solver.compatible(&ty, call) {
                fitting.push(*candidate);
            }
        }
        match fitting.as_slice() {
            [] => {
                self.failed.push(wanted.result.clone());
                self.checks.push(Check::unsupported(
                    deferred.place,
                    deferred.span,
                    spec.clone(),
                    call,
                ));
            }
            [only] => {
                let signature = &alternatives[*only];
                let types: Vec<Type> = wanted.parameters.iter().map(|p| p.ty.clone()).collect();
                let reason = Reason::LibraryCall(spec.clone(), None);
                let found =
                    self.use_alternative(spec, signature, &types, deferred.place, deferred.span, &reason);
                self.equate(&found, &wanted.result, deferred.span, &reason);
            }
            // Undecided to the end stays open and is reported as such.
            _ => return last,
        }
        true
    }

    /// Makes two types equal where a conflict means that a built-in does not support the type (U7).
    fn equate_built(&mut self, place: Place, span: Span, what: &str, has: &Type, needed: &Type) {
        if self.solver.unify(has, needed).is_err() {
            let (has, needed) = (self.solver.zonk(has), self.solver.zonk(needed));
            self.unsupported(
                place,
                span,
                format!("{what} is {has}, where {needed} is needed"),
                None,
            );
        }
    }

    fn no_field(&mut self, place: Place, span: Span, s: &StructType, field: &str) {
        let message = format!("the struct has no field `{field}`");
        let names: Vec<&str> = s.fields.iter().map(|f| &*f.name).collect();
        let help = did_you_mean(field, names.iter().copied()).unwrap_or_else(|| match names.as_slice() {
            [] => "it has no fields at all".to_owned(),
            names => format!("its fields are `{}`", names.join("`, `")),
        });
        // The expression ends with the field.
        let name = Span {
            start: span.end.saturating_sub(field.len() as u32),
            ..span
        };
        let error = Diagnostic::error(&codes::UNSUPPORTED, span, message).help(help);
        self.incomplete(place, error.shown_at(name));
    }

    /// Notes that a built-in cannot be built for the types that it has got.
    pub(super) fn unsupported(&mut self, place: Place, span: Span, message: String, help: Option<String>) {
        let error = Diagnostic::error(&codes::UNSUPPORTED, span, message).help_if(help);
        self.incomplete(place, error);
    }
}
