//! Rules about strings.

use setpoint_diagnostics::{Diagnostic, Span};

use super::{Linter, codes};
use crate::analysis::Visible;
use crate::scope::Space;
use crate::syntax::{Ast, ExprId, ExprKind};

impl Linter<'_> {
    /// Names of variables that stand in a string without their braces, and so for themselves.
    pub(super) fn strings(&mut self, ast: &Ast) {
        for id in (0..ast.expr_count() as u32).map(ExprId) {
            let expr = ast.expr(id);
            let ExprKind::String(raw) = &expr.kind else {
                continue;
            };
            let mut visible: Option<Vec<Visible>> = None;
            for (at, name) in names(raw) {
                let known = visible.get_or_insert_with(|| {
                    let span = expr.span;
                    let analysis = self.analysis;
                    analysis.visible(span.file, span.start, Space::Variable, None, self.library)
                });
                if !known.iter().any(|known| known.name == name) {
                    continue;
                }
                // The raw text begins behind the quote.
                let start = expr.span.start + 1 + at as u32;
                let span = Span::new(expr.span.file, start, start + 1 + name.len() as u32);
                let message = format!("`${name}` in a string is only text");
                let warning = Diagnostic::warning(&codes::DOLLAR_WITHOUT_BRACES, span, message);
                let help =
                    format!("write `${{{name}}}` for the value of the variable, or `\\${name}` for the text");
                self.warn(warning.help(help));
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
        assert_eq!(names("a $x ${y} \\$z $1 $$w $é"), [(2, "x"), (16, "w")]);
        assert_eq!(names("$"), []);
    }
}
