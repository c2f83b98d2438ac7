//! The last phase: nothing is open, and every built-in gets types that it supports.

use rustc_hash::FxHashMap;
use setpoint_diagnostics::{Diagnostic, Diagnostics, Span};
use setpoint_value::{FunctionRef, Type};

use super::codes;
use super::infer::Inference;
use super::instances::Typed;
use super::messages::Reason;

/// What is looked at when all types are known.
#[derive(Debug)]
pub(super) struct Check {
    /// Where it stands among the equations.
    order: u32,
    span: Span,
    what: Checked,
}

#[derive(Debug)]
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

#[derive(Debug)]
enum CheckedName {
    Library(FunctionRef),
    Word(&'static str),
}

impl Check {
    /// What a limited variable of a signature has become.
    pub(super) fn limit(order: u32, span: Span, spec: FunctionRef, ty: Type, allowed: &[Type]) -> Check {
        let what = Checked::OneOf {
            name: CheckedName::Library(spec),
            ty,
            allowed: allowed.to_vec(),
        };
        Check { order, span, what }
    }

    /// The argument of a statement of the language.
    pub(super) fn one_of(order: u32, span: Span, word: &'static str, ty: Type, allowed: Vec<Type>) -> Check {
        let what = Checked::OneOf {
            name: CheckedName::Word(word),
            ty,
            allowed,
        };
        Check { order, span, what }
    }

    /// What is compared.
    pub(super) fn comparable(order: u32, span: Span, ty: Type) -> Check {
        let what = Checked::Comparable(ty);
        Check { order, span, what }
    }

    /// The key type of a map literal.
    pub(super) fn key(order: u32, span: Span, ty: Type) -> Check {
        let what = Checked::Key(ty);
        Check { order, span, what }
    }

    /// A call for which no signature is left.
    pub(super) fn unsupported(order: u32, span: Span, spec: FunctionRef, call: &Type) -> Check {
        let call = call.clone();
        let what = Checked::Unsupported { spec, call };
        Check { order, span, what }
    }
}

impl Inference<'_> {
    /// Ends inference: what was deferred, what is open, what cannot be built.
    pub(super) fn finish(mut self, diagnostics: &mut Diagnostics) -> Typed {
        self.resolve_deferred(false);
        self.impose();
        self.resolve_deferred(false);
        for (order, ty, span) in std::mem::take(&mut self.names) {
            self.replayed = Some(order);
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
        let is_unknown_kind = |error: &Diagnostic| error.code == &codes::UNKNOWN_KIND;
        if self.generation.iter().any(is_unknown_kind) {
            for (kind, span, kind_span) in std::mem::take(&mut self.bare_unknown_kinds) {
                self.unknown_kind(&kind, span, kind_span);
            }
        }
        let unsolved = self.take_unsolved();
        let clean = self.generation.is_empty() && unsolved.is_empty();
        if clean {
            self.complete(diagnostics);
        }
        diagnostics.append(self.generation);
        diagnostics.extend(unsolved.into_iter().map(|(_, error)| error));
        self.typed
    }

    /// A name that is not evidently one or many: whichever the solver found, and many where nothing says.
    fn name_type(&mut self, ty: &Type, span: Span) {
        match self.solver.shallow(ty) {
            Type::Str => {}
            _ => self.equate(&Type::list(Type::Str), ty, span, &Reason::Name),
        }
    }

    fn complete(&mut self, diagnostics: &mut Diagnostics) {
        let recorded = std::mem::take(&mut self.recorded);
        let mut types = FxHashMap::default();
        types.reserve(recorded.len());
        let mut open = None;
        for (key, ty) in recorded {
            let ty = self.solver.zonk(&ty);
            if open.is_none() && is_open(&ty) {
                open = Some((key.1, ty.clone()));
            }
            types.insert(key, ty);
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
        if let Some((id, ty)) = open {
            let message = format!("nothing determines the type of this: {ty}");
            let error = Diagnostic::error(&codes::AMBIGUOUS, self.hir.expr(id).span, message);
            let help = "write the type where the value is bound: `$name []str = []`";
            diagnostics.push(error.label("of what type?").help(help));
        } else {
            for check in std::mem::take(&mut self.checks) {
                self.check_solved(check);
            }
        }
        // In the order of the equations: what is first is found with the expression that is told its type first.
        let mut found = std::mem::take(&mut self.completion);
        found.sort_by_key(|(order, _)| *order);
        diagnostics.extend(found.into_iter().map(|(_, error)| error));
    }

    fn check_solved(&mut self, check: Check) {
        let Check { order, span, what } = check;
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
                let message = format!("`{name}` does not work on {ty}");
                let help = format!("it works on {}", allowed.join(", "));
                self.unsupported(order, span, message, Some(help));
            }
            Checked::Comparable(ty) => {
                let ty = self.solver.zonk(&ty);
                if ty.contains_func() {
                    let message = format!("functions cannot be compared, and {ty} holds one");
                    self.unsupported(order, span, message, None);
                }
            }
            Checked::Key(ty) => {
                let ty = self.solver.zonk(&ty);
                if ty.contains_func() {
                    let message = format!("a map key cannot hold a function, and {ty} does");
                    let error = Diagnostic::error(&codes::UNHASHABLE, span, message);
                    self.completion.push((order, error));
                }
            }
            Checked::Unsupported { spec, call } => {
                let call = self.solver.zonk(&call);
                let arguments = call
                    .as_func()
                    .map(|f| f.parameters.iter().map(|p| p.ty.to_string()).collect::<Vec<_>>());
                let arguments = arguments.unwrap_or_default().join(", ");
                let forms = spec.signatures().join("` or `");
                let message = format!("`{}` cannot be called with ({arguments})", spec.called());
                self.unsupported(order, span, message, Some(format!("it is `{forms}`")));
            }
        }
    }
}

fn is_open(ty: &Type) -> bool {
    !matches!(ty, Type::Bool | Type::Str | Type::Int | Type::Float)
        && ty.any_part(&mut |part| matches!(part, Type::Variable(_)))
}
