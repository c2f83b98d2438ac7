//! Trees as text: all that a tree says but places, with parentheses around every operator.

use std::fmt::Write;

use setpoint_cf::syntax::ast::*;

pub(crate) fn file(file: &File) -> String {
    let mut out = String::new();
    if let Some(doc) = &file.doc {
        let _ = writeln!(out, "doc {:?}", doc.text);
    }
    for each in &file.items {
        item(&mut out, each);
    }
    out
}

fn doc(text: Option<&Doc>) -> String {
    text.map_or(String::new(), |doc| format!(" doc {:?}", doc.text))
}

pub(crate) fn path(path: &Path) -> String {
    let mut names: Vec<&str> = path.namespace.iter().map(|name| &*name.text).collect();
    names.push(&path.name.text);
    names.join("::")
}

pub(crate) fn reference(reference: &Reference) -> String {
    let mut out = path(&reference.variable);
    for name in &reference.attributes {
        out.push('.');
        out.push_str(&name.text);
    }
    out
}

fn item(out: &mut String, item: &Item) {
    let _ = match item {
        Item::Import(import) => {
            let alias = import
                .alias
                .as_ref()
                .map_or(String::new(), |alias| format!(" as {}", alias.text));
            writeln!(out, "import {}{alias}", path(&import.path))
        }
        Item::Entity(entity) => {
            let parents: Vec<String> = entity.parents.iter().map(path).collect();
            let _ = writeln!(
                out,
                "entity {} [{}]{}",
                entity.name.text,
                parents.join(" "),
                doc(entity.doc.as_ref())
            );
            for attribute in &entity.attributes {
                let list = if attribute.ty.list { "[]" } else { "" };
                let nullable = if attribute.ty.nullable { "?" } else { "" };
                let default = match &attribute.default {
                    None => String::new(),
                    Some(Default::Undef(_)) => " = undef".to_owned(),
                    Some(Default::Value(value)) => format!(" = {}", expression(value)),
                };
                let _ = writeln!(
                    out,
                    "    {}{list}{nullable} {}{default}",
                    path(&attribute.ty.path),
                    attribute.name.text
                );
            }
            Ok(())
        }
        Item::Relation(relation) => {
            let annotations: Vec<String> = relation.annotations.iter().map(expression).collect();
            let inverse = relation
                .right
                .inverse
                .as_ref()
                .map_or(String::new(), |(name, many)| {
                    format!(".{} {}", name.text, multiplicity(*many))
                });
            writeln!(
                out,
                "relation {}.{} {} ({}) {}{inverse}{}",
                path(&relation.left.entity),
                relation.left.name.text,
                multiplicity(relation.left.multiplicity),
                annotations.join(", "),
                path(&relation.right.entity),
                doc(relation.doc.as_ref())
            )
        }
        Item::Typedef(typedef) => {
            let constraint = match &typedef.constraint {
                Constraint::Expression(condition) => expression(condition),
                Constraint::Regex(regex) => format!("/{}/", regex.pattern),
            };
            writeln!(
                out,
                "typedef {} {} {constraint}{}",
                typedef.name.text,
                path(&typedef.base),
                doc(typedef.doc.as_ref())
            )
        }
        Item::Index(index) => {
            let members: Vec<&str> = index.members.iter().map(|name| &*name.text).collect();
            writeln!(out, "index {} {}", path(&index.entity), members.join(" "))
        }
        Item::Implementation(implementation) => {
            let _ = writeln!(
                out,
                "implementation {} {}{}",
                implementation.name.text,
                path(&implementation.entity),
                doc(implementation.doc.as_ref())
            );
            block(out, &implementation.body, 1);
            Ok(())
        }
        Item::Implement(implement) => {
            let using: Vec<String> = implement
                .using
                .iter()
                .map(|using| match using {
                    Using::Implementation(name) => path(name),
                    Using::Parents(_) => "PARENTS".to_owned(),
                })
                .collect();
            let condition = implement.condition.as_ref().map_or(String::new(), |condition| {
                format!(" when {}", expression(condition))
            });
            writeln!(
                out,
                "implement {} {}{condition}{}",
                path(&implement.entity),
                using.join(" "),
                doc(implement.doc.as_ref())
            )
        }
        Item::Statement(each) => {
            statement(out, each, 0);
            Ok(())
        }
    };
}

fn multiplicity(many: Multiplicity) -> String {
    let high = many.high.map_or("many".to_owned(), |high| high.to_string());
    format!("{}..{high}", many.low)
}

fn block(out: &mut String, block: &Block, depth: usize) {
    for each in &block.statements {
        statement(out, each, depth);
    }
}

pub(crate) fn statement(out: &mut String, statement: &Statement, depth: usize) {
    let indent = "    ".repeat(depth);
    match &statement.kind {
        StatementKind::Assign(assignment) => {
            let operator = if assignment.add { "+=" } else { "=" };
            let _ = writeln!(
                out,
                "{indent}{} {operator} {}",
                reference(&assignment.target),
                expression(&assignment.value)
            );
        }
        StatementKind::For {
            variable,
            iterable,
            body,
        } => {
            let _ = writeln!(out, "{indent}for {} in {}", variable.text, expression(iterable));
            block(out, body, depth + 1);
        }
        StatementKind::If { branches, otherwise } => {
            for (condition, body) in branches {
                let _ = writeln!(out, "{indent}if {}", expression(condition));
                block(out, body, depth + 1);
            }
            if let Some(body) = otherwise {
                let _ = writeln!(out, "{indent}else");
                block(out, body, depth + 1);
            }
        }
        StatementKind::Expression(value) => {
            let _ = writeln!(out, "{indent}{}", expression(value));
        }
    }
}

pub(crate) fn expression(value: &Expression) -> String {
    match &value.kind {
        ExpressionKind::Literal(literal) => match literal {
            Literal::Int(value) => value.to_string(),
            Literal::Float(value) => format!("{value:?}"),
            Literal::Text(text) => format!("{text:?}"),
            Literal::Bool(value) => value.to_string(),
            Literal::Null => "null".to_owned(),
        },
        ExpressionKind::Regex(regex) => format!("matching /{}/", regex.pattern),
        ExpressionKind::Interpolated(parts) => {
            let parts: Vec<String> = parts
                .iter()
                .map(|part| match part {
                    TextPart::Text(text) => format!("{text:?}"),
                    TextPart::Field(field) => reference(field),
                })
                .collect();
            format!("text<{}>", parts.join(" "))
        }
        ExpressionKind::Format(parts) => format!("format<{}>", format_parts(parts)),
        ExpressionKind::Reference(value) => reference(value),
        ExpressionKind::Parentheses(inner) => format!("paren{}", list("(", std::slice::from_ref(inner), ")")),
        ExpressionKind::List(elements) => list("[", elements, "]"),
        ExpressionKind::Dict(entries) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{:?}: {}", key.text, expression(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        ExpressionKind::Comprehension(comprehension) => {
            let mut out = format!("[{}", expression(&comprehension.value));
            for (variable, iterable) in &comprehension.loops {
                let _ = write!(out, " for {} in {}", variable.text, expression(iterable));
            }
            for condition in &comprehension.conditions {
                let _ = write!(out, " if {}", expression(condition));
            }
            out + "]"
        }
        ExpressionKind::Not(operand) => format!("(not {})", expression(operand)),
        ExpressionKind::Operators { first, rest } => rest
            .iter()
            .fold(expression(first), |left, (operator, _, operand)| {
                format!("({left} {operator:?} {})", expression(operand))
            }),
        ExpressionKind::Conditional {
            condition,
            then,
            otherwise,
        } => {
            format!(
                "({} ? {} : {})",
                expression(condition),
                expression(then),
                expression(otherwise)
            )
        }
        ExpressionKind::IsDefined(value) => format!("({} is defined)", reference(value)),
        ExpressionKind::LookupIsDefined(lookup) => format!(
            "({}[{}] is defined)",
            expression(&lookup.dict),
            expression(&lookup.key)
        ),
        ExpressionKind::MapLookup(lookup) => {
            format!("{}[{}]", expression(&lookup.dict), expression(&lookup.key))
        }
        ExpressionKind::Call { function, arguments } => {
            format!("call {}({})", path(function), self::arguments(arguments))
        }
        ExpressionKind::Constructor { entity, arguments } => {
            format!("new {}({})", path(entity), self::arguments(arguments))
        }
        ExpressionKind::IndexLookup { entity, arguments } => {
            format!("index {}[{}]", path(entity), self::arguments(arguments))
        }
        ExpressionKind::SelectorLookup { relation, arguments } => {
            format!("select {}[{}]", reference(relation), self::arguments(arguments))
        }
        ExpressionKind::Missing => "MISSING".to_owned(),
    }
}

fn list<E: std::borrow::Borrow<Expression>>(open: &str, elements: &[E], close: &str) -> String {
    let elements: Vec<String> = elements
        .iter()
        .map(|element| expression(element.borrow()))
        .collect();
    format!("{open}{}{close}", elements.join(", "))
}

fn arguments(arguments: &[Argument]) -> String {
    let arguments: Vec<String> = arguments
        .iter()
        .map(|argument| match argument {
            Argument::Positional(value) => expression(value),
            Argument::Keyword(name, value) => format!("{}={}", name.text, expression(value)),
            Argument::Dict(_, value) => format!("**{}", expression(value)),
        })
        .collect();
    arguments.join(", ")
}

fn format_parts(parts: &[FormatPart]) -> String {
    let parts: Vec<String> = parts
        .iter()
        .map(|part| match part {
            FormatPart::Text(text) => format!("{text:?}"),
            FormatPart::Field {
                value,
                conversion,
                specification,
                ..
            } => {
                let value = match value {
                    FormatValue::Reference(value) => reference(value),
                    FormatValue::Positional => "POSITIONAL".to_owned(),
                };
                let conversion = conversion.map_or(String::new(), |character| format!("!{character}"));
                let specification = if specification.is_empty() {
                    String::new()
                } else {
                    format!(":<{}>", format_parts(specification))
                };
                format!("{{{value}{conversion}{specification}}}")
            }
        })
        .collect();
    parts.join(" ")
}
