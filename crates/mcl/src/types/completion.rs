//! The last phase: nothing is open, and every built-in gets types that it supports.

use setpoint_diagnostics::{Diagnostic, Span};
use setpoint_value::{FunctionRef, Type};

use super::codes;
use super::conflicts::Reason;
use super::findings::Phase;
use super::infer::Inference;
use super::messages::{Calls, in_few_words, in_words, too_deep};
use super::places::Place;
use super::program::TypedProgram;
use super::resources::meta_twice;

/// What is looked at when all types are known.
#[derive(Debug, Clone)]
pub(super) struct Check {
    /// Where it stands among the equations.
    pub(super) place: Place,
    pub(super) span: Span,
    /// The calls through which it came here, if it is of a function's scheme.
    calls: Calls,
    what: Checked,
}

#[derive(Debug, Clone)]
enum Checked {
    /// The variable of an operator or function stands for one of these types.
    OneOf {
        name: CheckedName,
        ty: Type,
        allowed: Vec<Type>,
    },
    /// No function anywhere inside.
    Comparable(Type),
    /// A map's key type.
    Key(Type),
    /// The library function that a call came out as is one that can be built.
    Unsupported { spec: FunctionRef, call: Type },
}

#[derive(Debug, Clone)]
enum CheckedName {
    Library(FunctionRef),
    Word(&'static str),
}

impl Check {
    fn new(place: Place, span: Span, what: Checked) -> Check {
        Check {
            place,
            span,
            calls: Calls::default(),
            what,
        }
    }

    /// The type that is looked at.
    pub(super) fn ty_mut(&mut self) -> &mut Type {
        match &mut self.what {
            Checked::OneOf { ty, .. }
            | Checked::Comparable(ty)
            | Checked::Key(ty)
            | Checked::Unsupported { call: ty, .. } => ty,
        }
    }

    /// What is asked of the type. Of two checks with one meaning only the first can tell anything new.
    pub(super) fn meaning(&self) -> (u8, Type, Vec<Type>) {
        match &self.what {
            Checked::OneOf { ty, allowed, .. } => (0, ty.clone(), allowed.clone()),
            Checked::Comparable(ty) => (1, ty.clone(), Vec::new()),
            Checked::Key(ty) => (2, ty.clone(), Vec::new()),
            Checked::Unsupported { call, .. } => (3, call.clone(), Vec::new()),
        }
    }

    /// The same for a call of the function that it is part of.
    pub(super) fn for_call(&self, call: Span, put: &mut dyn FnMut(&Type) -> Type) -> Check {
        let mut copy = self.clone();
        copy.calls.push(call);
        let ty = copy.ty_mut();
        *ty = put(ty);
        copy
    }

    /// What a limited variable of a signature has become.
    pub(super) fn limit(place: Place, span: Span, spec: FunctionRef, ty: Type, allowed: &[Type]) -> Check {
        let what = Checked::OneOf {
            name: CheckedName::Library(spec),
            ty,
            allowed: allowed.to_vec(),
        };
        Check::new(place, span, what)
    }

    /// The argument of a statement of the language.
    pub(super) fn one_of(
        place: Place,
        span: Span,
        word: &'static str,
        ty: Type,
        allowed: Vec<Type>,
    ) -> Check {
        let what = Checked::OneOf {
            name: CheckedName::Word(word),
            ty,
            allowed,
        };
        Check::new(place, span, what)
    }

    /// What is compared.
    pub(super) fn comparable(place: Place, span: Span, ty: Type) -> Check {
        let what = Checked::Comparable(ty);
        Check::new(place, span, what)
    }

    /// The key type of a map literal.
    pub(super) fn key(place: Place, span: Span, ty: Type) -> Check {
        let what = Checked::Key(ty);
        Check::new(place, span, what)
    }

    /// A call for which no signature is left.
    pub(super) fn unsupported(place: Place, span: Span, spec: FunctionRef, call: &Type) -> Check {
        let call = call.clone();
        let what = Checked::Unsupported { spec, call };
        Check::new(place, span, what)
    }
}

impl Inference<'_> {
    /// Ends inference of the program, and answers what is wrong with it, what counts first in front. With `beside_errors` types are
    /// told beside errors too, as far as they are known.
    pub(super) fn finish(&mut self, beside_errors: bool) -> Vec<Diagnostic> {
        self.decide_all(beside_errors);
        self.typed.is_complete = self.findings.is_empty() && !self.has_unknown;
        let meta_structs = std::mem::take(&mut self.meta_structs);
        if let Some(program) = TypedProgram::new(self.hir, &self.typed) {
            for (place, instance, resource) in meta_structs {
                if let Some(error) = meta_twice(&program, instance, resource) {
                    self.findings.push(Phase::Statements, place, error);
                }
            }
        }
        self.typed.is_complete &= self.findings.is_empty();
        self.findings.take_ranked(&self.places.order())
    }

    /// Ends inference of what was met behind the program, and answers what is wrong with that alone.
    pub(super) fn finish_unused(&mut self) -> Vec<Diagnostic> {
        self.decide_all(true);
        self.findings.take_ranked(&self.places.order())
    }

    /// Decides what was deferred, what is open, what cannot be built.
    fn decide_all(&mut self, beside_errors: bool) {
        self.resolve_deferred(false);
        self.impose();
        self.resolve_deferred(false);
        for (place, ty, span) in std::mem::take(&mut self.names) {
            self.replayed = Some(place);
            self.name_type(&ty, span);
            self.replayed = None;
        }
        self.resolve_deferred(false);
        self.resolve_deferred(true);
        for result in std::mem::take(&mut self.failed) {
            if let Type::Variable(_) = self.solver.shallow(&result) {
                let _ = self.solver.unify(&result, &Type::Bool);
            }
        }
        let is_solved = self.findings.is_solved();
        // Of what cannot be unfolded, types are not told: they are what is too large.
        if is_solved || (beside_errors && !self.findings.has(&codes::TOO_DEEP)) {
            let before = self.findings.count();
            let open = self.complete();
            if !is_solved {
                // What follows from equations that could not be solved is no news.
                self.findings.forget_since(before);
            } else if let Some((place, error)) = open.filter(|_| !self.has_unknown) {
                self.findings.push(Phase::Open, place, error);
            }
        }
        if self.findings.has(&codes::UNKNOWN_KIND) {
            for (kind, span, kind_span) in std::mem::take(&mut self.bare_unknown_kinds) {
                self.unknown_kind(&kind, span, kind_span);
            }
        }
    }

    /// A name that is not evidently one or many: whichever the solver found, and many where nothing says.
    fn name_type(&mut self, ty: &Type, span: Span) {
        match self.solver.shallow(ty) {
            Type::Str => {}
            _ => self.equate(&Type::list(Type::Str), ty, span, &Reason::Name),
        }
    }

    /// Tells all expressions their types, and answers the first that has none.
    fn complete(&mut self) -> Option<(Place, Diagnostic)> {
        self.solver.settle();
        let recorded = std::mem::take(&mut self.recorded);
        let mut types = std::mem::take(&mut self.typed.types);
        types.reserve(recorded.len());
        let mut open = Vec::new();
        for entry in recorded {
            let ty = self.solver.zonk(&entry.ty);
            if self.solver.take_cut() && !self.findings.has(&codes::TOO_DEEP) {
                let error = too_deep(self.hir.expr(entry.expr).span);
                self.findings.push(Phase::Collecting, entry.place, error);
            }
            if self.solver.is_open(&ty) {
                open.push((entry.place, entry.expr, ty.clone()));
            }
            if let Some(instance) = entry.instance {
                types.insert((instance, entry.expr), ty);
            }
        }
        self.instances_of_functions(&mut types);
        for index in 0..self.typed.instances.len() {
            let mut definitions = std::mem::take(&mut self.typed.instances[index].definitions);
            #[expect(clippy::iter_over_hash_type, reason = "each entry is solved on its own")]
            for ty in definitions.values_mut() {
                *ty = self.solver.zonk(ty);
            }
            self.typed.instances[index].definitions = definitions;
        }
        self.typed.types = types;
        let order = self.places.order();
        let first = open.into_iter().min_by_key(|(place, ..)| order.rank(*place));
        let Some((place, id, ty)) = first else {
            for check in std::mem::take(&mut self.checks) {
                self.check_solved(check);
            }
            self.through = Calls::default();
            return None;
        };
        let message = match ty {
            Type::Variable(_) => "nothing determines the type of this".to_owned(),
            _ => format!("nothing determines the type of this: {}", in_words(&ty)),
        };
        let error = Diagnostic::error(&codes::AMBIGUOUS, self.hir.expr(id).span, message);
        let help = "write the type where the value is bound: `$name []str = []`";
        Some((place, error.label("of what type?").help(help)))
    }

    fn check_solved(&mut self, check: Check) {
        let Check {
            place,
            span,
            calls,
            what,
        } = check;
        self.through = calls;
        match what {
            Checked::OneOf { name, ty, allowed } => {
                let ty = self.solver.zonk(&ty);
                if allowed.contains(&ty) {
                    return;
                }
                let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
                let name = match name {
                    CheckedName::Library(spec) => spec.called(),
                    CheckedName::Word(word) => word.to_owned(),
                };
                let message = format!("`{name}` does not work on {}", in_few_words(&ty));
                let help = format!("it works on {}", allowed.join(", "));
                self.unsupported(place, span, message, Some(help));
            }
            Checked::Comparable(ty) => {
                let ty = self.solver.zonk(&ty);
                if ty.contains_func() {
                    let message = format!(
                        "functions cannot be compared, and {} holds one",
                        in_few_words(&ty)
                    );
                    self.unsupported(place, span, message, None);
                }
            }
            Checked::Key(ty) => {
                let ty = self.solver.zonk(&ty);
                if ty.contains_func() {
                    let message = format!("a map key cannot hold a function, and {} does", in_few_words(&ty));
                    let error = Diagnostic::error(&codes::UNHASHABLE, span, message);
                    self.incomplete(place, error);
                }
            }
            Checked::Unsupported { spec, call } => {
                let call = self.solver.zonk(&call);
                let arguments = call.as_func().map(|f| {
                    f.parameters
                        .iter()
                        .map(|p| in_few_words(&p.ty))
                        .collect::<Vec<_>>()
                });
                let arguments = arguments.unwrap_or_default().join(", ");
                let forms = spec.signatures().join("` or `");
                let message = format!("`{}` cannot be called with ({arguments})", spec.called());
                self.unsupported(place, span, message, Some(format!("it is `{forms}`")));
            }
        }
    }
}
