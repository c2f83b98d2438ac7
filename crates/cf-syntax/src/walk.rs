//! Going through expressions.

use crate::ast::{Argument, Expression, ExpressionKind as E, FormatPart, FormatValue, Reference, TextPart};

impl Expression {
    /// The expressions directly inside of this one, in the order of the text.
    pub fn for_each_child<'e>(&'e self, visit: &mut dyn FnMut(&'e Expression)) {
        match &self.kind {
            E::Literal(_)
            | E::Regex(_)
            | E::Interpolated(_)
            | E::Format(_)
            | E::Reference(_)
            | E::IsDefined(_)
            | E::Missing => {}
            E::Parentheses(inner) | E::Not(inner) => visit(inner),
            E::List(elements) => elements.iter().for_each(visit),
            E::Dict(entries) => entries.iter().for_each(|(_, value)| visit(value)),
            E::Comprehension(comprehension) => {
                visit(&comprehension.value);
                comprehension
                    .loops
                    .iter()
                    .for_each(|(_, iterable)| visit(iterable));
                comprehension.conditions.iter().for_each(visit);
            }
            E::Operators { first, rest } => {
                visit(first);
                rest.iter().for_each(|(_, _, operand)| visit(operand));
            }
            E::Conditional {
                condition,
                then,
                otherwise,
            } => [condition, then, otherwise].into_iter().for_each(|e| visit(e)),
            E::LookupIsDefined(lookup) | E::MapLookup(lookup) => {
                visit(&lookup.dict);
                visit(&lookup.key);
            }
            E::Call { arguments, .. }
            | E::Constructor { arguments, .. }
            | E::IndexLookup { arguments, .. }
            | E::SelectorLookup { arguments, .. } => arguments.iter().for_each(|argument| match argument {
                Argument::Positional(value) | Argument::Keyword(_, value) | Argument::Dict(_, value) => {
                    visit(value);
                }
            }),
        }
    }

    /// The references that stand directly in this expression, in texts too.
    pub fn for_each_reference<'e>(&'e self, visit: &mut dyn FnMut(&'e Reference)) {
        match &self.kind {
            E::Reference(reference)
            | E::IsDefined(reference)
            | E::SelectorLookup {
                relation: reference, ..
            } => visit(reference),
            E::Interpolated(parts) => {
                for part in parts {
                    if let TextPart::Field(reference) = part {
                        visit(reference);
                    }
                }
            }
            E::Format(parts) => format_references(parts, visit),
            _ => {}
        }
    }

    /// Whether it, or an expression in it, refers to something that passes a test.
    pub(super) fn refers_to(&self, test: &dyn Fn(&Reference) -> bool) -> bool {
        let mut found = false;
        self.for_each_reference(&mut |reference| found |= test(reference));
        self.for_each_child(&mut |child| found = found || child.refers_to(test));
        found
    }

    /// Whether there is a regular expression in it, which looks at `self`.
    pub(super) fn holds_pattern(&self) -> bool {
        let mut found = matches!(self.kind, E::Regex(_));
        self.for_each_child(&mut |child| found = found || child.holds_pattern());
        found
    }

    /// How many expressions stand on the way to its deepest part.
    pub(super) fn height(&self) -> usize {
        let mut highest = 0;
        self.for_each_child(&mut |child| highest = highest.max(child.height()));
        highest + 1
    }
}

fn format_references<'e>(parts: &'e [FormatPart], visit: &mut dyn FnMut(&'e Reference)) {
    for part in parts {
        if let FormatPart::Field {
            value, specification, ..
        } = part
        {
            if let FormatValue::Reference(reference) = value {
                visit(reference);
            }
            format_references(specification, visit);
        }
    }
}
