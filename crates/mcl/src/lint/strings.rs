//! Rules about strings, and formats among them.

use std::collections::HashMap;
use std::sync::Arc;

use setpoint_diagnostics::{Diagnostic, Span};

use super::{Linter, codes};
use crate::analysis::Target;
use crate::syntax::{Ast, Block, BodyItemKind, Call, Callee, ExprId, ExprKind, Parameters, StmtKind};

/// The variables that are known at a place, each with the number of blocks that define it.
type Known = HashMap<Arc<str>, u32>;

impl Linter<'_> {
    /// Names of variables that stand in a string without their braces, and so for themselves.
    pub(super) fn strings(&mut self, ast: &Ast) {
        self.strings_of_block(ast, &ast.root, &[], &mut Known::new());
    }

    fn strings_of_block(&mut self, ast: &Ast, block: &Block, more: &[Arc<str>], known: &mut Known) {
        let binds = block
            .statements
            .iter()
            .filter_map(|id| match &ast.stmt(*id).kind {
                StmtKind::Bind(bind) => Some(bind.name.text.clone()),
                _ => None,
            });
        let names: Vec<Arc<str>> = more.iter().cloned().chain(binds).collect();
        enter(known, &names);
        for id in &block.statements {
            match &ast.stmt(*id).kind {
                StmtKind::Bind(bind) => self.strings_of(ast, vec![bind.value], &[], known),
                StmtKind::If(branches) => {
                    self.strings_of(ast, vec![branches.condition], &[], known);
                    self.strings_of_block(ast, &branches.then_block, &[], known);
                    if let Some(block) = &branches.else_block {
                        self.strings_of_block(ast, block, &[], known);
                    }
                }
                StmtKind::For(body) | StmtKind::ForKv(body) => {
                    self.strings_of(ast, vec![body.iterable], &[], known);
                    let variables = [body.key.text.clone(), body.value.text.clone()];
                    self.strings_of_block(ast, &body.body, &variables, known);
                }
                StmtKind::Class(class) => {
                    let parameters = class.parameters.as_ref().map(names_of).unwrap_or_default();
                    self.strings_of_block(ast, &class.body, &parameters, known);
                }
                StmtKind::Func(func) => {
                    let parameters = names_of(&func.function.parameters);
                    self.strings_of(ast, vec![func.function.body], &parameters, known);
                }
                StmtKind::Resource(resource) => {
                    let items = resource.items.iter();
                    let values =
                        items.flat_map(|item| item.condition.into_iter().chain([value_of(&item.kind)]));
                    let values = std::iter::once(resource.name).chain(values).collect();
                    self.strings_of(ast, values, &[], known);
                }
                StmtKind::Edge(edge) => {
                    let names = edge.endpoints.iter().map(|endpoint| endpoint.name).collect();
                    self.strings_of(ast, names, &[], known);
                }
                StmtKind::Include(include) => {
                    let arguments = include.arguments.as_ref();
                    let arguments = arguments.map(|arguments| arguments.items.clone());
                    self.strings_of(ast, arguments.unwrap_or_default(), &[], known);
                }
                StmtKind::Panic(arguments) => self.strings_of(ast, arguments.items.clone(), &[], known),
                StmtKind::Import(_) => {}
            }
        }
        leave(known, &names);
    }

    /// The strings in these expressions. Parameters of lambdas count as known in all of them.
    fn strings_of(&mut self, ast: &Ast, mut open: Vec<ExprId>, parameters: &[Arc<str>], known: &mut Known) {
        let mut names = parameters.to_vec();
        enter(known, &names);
        while let Some(id) = open.pop() {
            let expr = ast.expr(id);
            match &expr.kind {
                ExprKind::String(raw) => self.string(raw, expr.span, known),
                ExprKind::Call(call) => self.format(ast, call),
                ExprKind::Lambda(function) => {
                    let own = names_of(&function.parameters);
                    enter(known, &own);
                    names.extend(own);
                }
                _ => {}
            }
            expr.kind.for_each_child(|child| open.push(child));
        }
        leave(known, &names);
    }

    fn string(&mut self, raw: &str, literal: Span, known: &Known) {
        for (at, name) in names(raw) {
            if !known.contains_key(name) {
                continue;
            }
            // The raw text begins behind the quote.
            let start = literal.start + 1 + at as u32;
            let span = Span::new(literal.file, start, start + 1 + name.len() as u32);
            let message = format!("`${name}` in a string is only text");
            let warning = Diagnostic::warning(&codes::DOLLAR_WITHOUT_BRACES, span, message);
            let help =
                format!("write `${{{name}}}` for the value of the variable, or `\\${name}` for the text");
            self.warn(warning.help(help));
        }
    }
}

impl Linter<'_> {
    /// A format of `fmt.printf` whose last percent sign belongs to nothing, so that it is not printed.
    fn format(&mut self, ast: &Ast, call: &Call) {
        let (Callee::Function(name), Some(format)) = (&call.callee, call.arguments.items.first()) else {
            return;
        };
        let format = ast.expr(*format);
        let ExprKind::String(raw) = &format.kind else {
            return;
        };
        let percent_signs = raw.len() - raw.trim_end_matches('%').len();
        if percent_signs % 2 == 0 {
            return;
        }
        let called = self.analysis.name_at(name.span.file, name.span.end);
        if !matches!(called.map(|name| &name.target), Some(Target::LibraryFunction(spec)) if spec.called() == "fmt.printf")
        {
            return;
        }
        // Before the quote.
        let end = format.span.end - 1;
        let span = Span::new(format.span.file, end - 1, end);
        let message = "a single `%` at the end of a format is not printed";
        let warning = Diagnostic::warning(&codes::LONE_PERCENT_SIGN, span, message);
        self.warn(warning.help("write `%%` for a percent sign"));
    }
}

fn value_of(item: &BodyItemKind) -> ExprId {
    match item {
        BodyItemKind::Field { value, .. }
        | BodyItemKind::Meta { value, .. }
        | BodyItemKind::MetaStruct { value } => *value,
        BodyItemKind::EdgeProperty { endpoint, .. } => endpoint.name,
    }
}

fn names_of(parameters: &Parameters) -> Vec<Arc<str>> {
    let items = parameters.items.iter();
    items.map(|parameter| parameter.name.text.clone()).collect()
}

fn enter(known: &mut Known, names: &[Arc<str>]) {
    for name in names {
        *known.entry(name.clone()).or_default() += 1;
    }
}

fn leave(known: &mut Known, names: &[Arc<str>]) {
    for name in names {
        if let Some(count) = known.get_mut(name) {
            *count -= 1;
            if *count == 0 {
                known.remove(name);
            }
        }
    }
}

/// Names behind a dollar that has no brace and is not escaped, with the dollar's place.
fn names(raw: &str) -> Vec<(usize, &str)> {
    let bytes = raw.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'$' => {
                let rest = &raw[at + 1..];
                let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
                let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                if rest.starts_with(|c: char| c.is_ascii_lowercase()) {
                    found.push((at, &rest[..length]));
                }
                at += 1 + length;
            }
            _ => at += 1,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn only_bare_names_behind_a_dollar_count() {
        assert_eq!(names("a $x ${y} \\$z $1 $$w $é"), [(2, "x"), (18, "w")]);
        assert_eq!(names("$"), []);
    }
}
