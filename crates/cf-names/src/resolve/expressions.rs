//! Expressions: names in them, and what is called.

use std::sync::Arc;

use setpoint_cf_syntax::ast::{self, Argument};
use setpoint_cf_syntax::compile_pattern;
use setpoint_diagnostics::{Diagnostic, Span};

use super::bodies::{Body, nothing};
use super::codes;
use super::constructors::Wanted;
use super::names::Definition;
use crate::datum::Datum;
use crate::hir::{Comprehension, Expression, ExpressionKind, FormatPart, MapLookup, TextPart};
use crate::ids::Symbol;
use crate::types::BaseType;

/// Arguments by name, with the places of the names.
pub(super) type Keywords = Vec<(Symbol, Span, Expression)>;

impl Body<'_, '_> {
    /// An expression. `wanted` is what the language knows of the place that takes it.
    pub(super) fn expression(&mut self, tree: &ast::Expression, wanted: Wanted) -> Expression {
        let span = tree.span;
        let any = Wanted::Anything;
        let kind = match &tree.kind {
            ast::ExpressionKind::Literal(literal) => ExpressionKind::Literal(literal.clone()),
            ast::ExpressionKind::Regex(regex) => match compile_pattern(&regex.pattern) {
                Ok(compiled) => ExpressionKind::Matches {
                    place: self.unqualified(&"self".into()),
                    regex: Arc::new(compiled),
                },
                // That was told when the file was parsed.
                Err(_) => nothing(),
            },
            ast::ExpressionKind::Interpolated(parts) => {
                let part = |part: &ast::TextPart| match part {
                    ast::TextPart::Text(text) => TextPart::Text(text.clone()),
                    ast::TextPart::Field(field) => TextPart::Field(self.reference(field)),
                };
                ExpressionKind::Interpolated(parts.iter().map(part).collect())
            }
            ast::ExpressionKind::Format(parts) => ExpressionKind::Format(self.format_parts(parts)),
            ast::ExpressionKind::Reference(reference) => return self.reference(reference),
            ast::ExpressionKind::Parentheses(inner) => return self.expression(inner, wanted),
            ast::ExpressionKind::List(elements) => self.list(elements, wanted),
            ast::ExpressionKind::Dict(entries) => {
                let entry = |(key, value): &(ast::DictKey, ast::Expression)| {
                    (key.text.clone(), self.expression(value, any))
                };
                ExpressionKind::Dict(entries.iter().map(entry).collect())
            }
            ast::ExpressionKind::Comprehension(comprehension) => {
                let comprehension = self.comprehension(comprehension, &mut Vec::new(), wanted);
                ExpressionKind::Comprehension(Box::new(comprehension))
            }
            ast::ExpressionKind::Not(operand) => ExpressionKind::Not(Box::new(self.expression(operand, any))),
            ast::ExpressionKind::Operators { first, rest } => ExpressionKind::Operators {
                first: Box::new(self.expression(first, any)),
                rest: rest
                    .iter()
                    .map(|(operator, place, operand)| (*operator, *place, self.expression(operand, any)))
                    .collect(),
            },
            ast::ExpressionKind::Conditional {
                condition,
                then,
                otherwise,
            } => ExpressionKind::Conditional {
                condition: Box::new(self.expression(condition, any)),
                then: Box::new(self.expression(then, wanted)),
                otherwise: Box::new(self.expression(otherwise, wanted)),
            },
            ast::ExpressionKind::IsDefined(reference) => {
                ExpressionKind::IsDefined(Box::new(self.reference(reference)))
            }
            ast::ExpressionKind::LookupIsDefined(lookup) => {
                ExpressionKind::LookupIsDefined(Box::new(self.map_lookup(lookup)))
            }
            ast::ExpressionKind::MapLookup(lookup) => {
                ExpressionKind::MapLookup(Box::new(self.map_lookup(lookup)))
            }
            ast::ExpressionKind::Call { function, arguments } => self.call(function, arguments, span),
            ast::ExpressionKind::Constructor { entity, arguments } => {
                self.constructor(entity, arguments, wanted)
            }
            ast::ExpressionKind::IndexLookup { entity, arguments } => {
                let found = self.resolver.find_entity(self.namespace, entity);
                let (_, keywords, dicts) = self.arguments(arguments);
                match found {
                    Some(entity) => {
                        self.resolver.mention_keywords(entity, &keywords);
                        ExpressionKind::IndexLookup {
                            entity,
                            keywords,
                            dicts,
                        }
                    }
                    None => nothing(),
                }
            }
            ast::ExpressionKind::SelectorLookup { relation, arguments } => {
                let (_, keywords, dicts) = self.arguments(arguments);
                match relation.attributes.split_last() {
                    Some((last, before)) => {
                        let instance = Box::new(self.access(&relation.variable, before));
                        if let Some(mentions) = &mut self.resolver.mentions {
                            mentions.selected.insert(instance.span, last.span);
                        }
                        ExpressionKind::SelectorLookup {
                            instance,
                            relation: self.resolver.symbol(&last.text),
                            keywords,
                            dicts,
                        }
                    }
                    None => nothing(),
                }
            }
            ast::ExpressionKind::Missing => nothing(),
        };
        Expression { kind, span }
    }

    fn reference(&mut self, reference: &ast::Reference) -> Expression {
        self.access(&reference.variable, &reference.attributes)
    }

    fn map_lookup(&mut self, lookup: &ast::MapLookup) -> MapLookup {
        MapLookup {
            dict: self.expression(&lookup.dict, Wanted::Anything),
            key: self.expression(&lookup.key, Wanted::Anything),
        }
    }

    fn list(&mut self, elements: &[ast::Expression], wanted: Wanted) -> ExpressionKind {
        let elements: Vec<Expression> = elements
            .iter()
            .map(|tree| self.expression(tree, wanted))
            .collect();
        let constants = |element: &Expression| {
            matches!(
                element.kind,
                ExpressionKind::Literal(_) | ExpressionKind::ConstantList(_)
            )
        };
        if !elements.iter().all(constants) {
            return ExpressionKind::List(elements);
        }
        let mut flat: Vec<Datum> = Vec::new();
        for element in elements {
            match element.kind {
                ExpressionKind::Literal(literal) => flat.push(Datum::from(&literal)),
                ExpressionKind::ConstantList(inner) => flat.extend(inner.iter().cloned()),
                _ => {}
            }
        }
        ExpressionKind::ConstantList(flat.into())
    }

    fn format_parts(&mut self, parts: &[ast::FormatPart]) -> Vec<FormatPart> {
        let part = |part: &ast::FormatPart| match part {
            ast::FormatPart::Text(text) => FormatPart::Text(text.clone()),
            ast::FormatPart::Field {
                value,
                conversion,
                specification,
                span,
            } => FormatPart::Field {
                value: match value {
                    ast::FormatValue::Reference(reference) => Some(self.reference(reference)),
                    ast::FormatValue::Positional => None,
                },
                conversion: *conversion,
                specification: self.format_parts(specification),
                span: *span,
            },
        };
        parts.iter().map(part).collect()
    }

    /// Goes through the loops one by one: each is a block inside the one before it.
    fn comprehension(
        &mut self,
        tree: &ast::Comprehension,
        loops: &mut Vec<(Symbol, Expression)>,
        wanted: Wanted,
    ) -> Comprehension {
        let Some((variable, iterable)) = tree.loops.get(loops.len()) else {
            let conditions = tree.conditions.iter();
            return Comprehension {
                conditions: conditions
                    .map(|tree| self.expression(tree, Wanted::Anything))
                    .collect(),
                value: self.expression(&tree.value, wanted),
                loops: std::mem::take(loops),
            };
        };
        let iterable = self.expression(iterable, Wanted::Anything);
        if let Some(mentions) = &mut self.resolver.mentions {
            mentions.loop_variables.insert(iterable.span, variable.span);
        }
        loops.push((self.resolver.symbol(&variable.text), iterable));
        self.with_variable(variable, |body| body.comprehension(tree, loops, wanted))
    }

    /// What is given by position, by name, and behind `**`.
    fn arguments(&mut self, arguments: &[Argument]) -> (Vec<Expression>, Keywords, Vec<Expression>) {
        let (mut positional, mut keywords, mut dicts) = (Vec::new(), Vec::new(), Vec::new());
        for argument in arguments {
            match argument {
                Argument::Positional(value) => positional.push(self.expression(value, Wanted::Anything)),
                Argument::Keyword(name, value) => {
                    let symbol = self.resolver.symbol(&name.text);
                    keywords.push((symbol, name.span, self.expression(value, Wanted::Anything)));
                }
                Argument::Dict(_, value) => dicts.push(self.expression(value, Wanted::Anything)),
            }
        }
        (positional, keywords, dicts)
    }

    fn call(&mut self, path: &ast::Path, arguments: &[Argument], span: Span) -> ExpressionKind {
        let found = self.resolver.find(self.namespace, path);
        let (positional, keywords, dicts) = self.arguments(arguments);
        match found {
            Err(error) => {
                self.resolver.found.push(*error);
                nothing()
            }
            Ok(Definition::Function(name, implementation)) => ExpressionKind::Call {
                function: self.resolver.function(name, implementation),
                positional,
                keywords,
                dicts,
                name_span: path.span,
                namespace: self.namespace,
            },
            Ok(Definition::Primitive(to)) if !matches!(to, BaseType::List | BaseType::Dict) => {
                self.cast(path, to, positional, keywords.len() + dicts.len(), span)
            }
            Ok(other) => {
                let message = format!(
                    "`{}` is {}, which cannot be called",
                    crate::project::full_name(path),
                    other.sort()
                );
                let error = Diagnostic::error(&codes::NOT_CALLABLE, path.span, message)
                    .of_class("RuntimeException")
                    .label("no function")
                    .help("functions can be called, and `int`, `float`, `number`, `bool` and `string` to cast a value");
                self.resolver.found.push(match self.resolver.place_of(&other) {
                    Some(place) => error.because(place, "defined here"),
                    None => error,
                });
                nothing()
            }
        }
    }

    fn cast(
        &mut self,
        path: &ast::Path,
        to: BaseType,
        mut positional: Vec<Expression>,
        others: usize,
        span: Span,
    ) -> ExpressionKind {
        if let (1, 0, Some(value)) = (positional.len(), others, positional.pop()) {
            let value = Box::new(value);
            return ExpressionKind::Cast { to, value };
        }
        let name = &path.name.text;
        let message = if others > 0 {
            format!("the cast `{name}` takes its value by position only")
        } else {
            format!("the cast `{name}` takes exactly one value")
        };
        let error = Diagnostic::error(&codes::CAST, span, message);
        self.resolver.found.push(
            error
                .of_class("RuntimeException")
                .help(format!("write `{name}(VALUE)`")),
        );
        nothing()
    }
}
