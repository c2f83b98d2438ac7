//! Whether a datum is of a type: that of an attribute, or that of a parameter or result of a function.
//!
//! What is not known is of every type. Of a typedef, the base is checked first, then the constraint.

mod conditions;

use setpoint_cf_names::datum::{Datum, InstanceId, Instances};
use setpoint_cf_names::hir::{Constraint, Model};
use setpoint_cf_names::ids::{EntityId, TypedefId};
use setpoint_cf_names::types::{AttributeType, BaseType, SignatureType};
use setpoint_diagnostics::{Diagnostic, Span};

use crate::casts::is_true;
use crate::codes::{self, class};
use crate::operators::{Outcome, matches};
use crate::text::{Naming, base_name, shown, type_name, type_text};

/// Checks what is assigned to an attribute. `span` is where.
///
/// # Errors
/// When it is not of the type; for a typedef that does not accept it, at the typedef.
pub fn check_attribute(ty: AttributeType, datum: &Datum, span: Span, naming: Naming<'_>) -> Outcome<()> {
    let plain = datum.unmarked();
    match plain {
        Datum::Unknown(_) => Ok(()),
        Datum::Null if ty.nullable => Ok(()),
        Datum::Deferred(deferred) => {
            if is_subtype(&deferred.ty, &SignatureType::Attribute(ty), naming.model) {
                return Ok(());
            }
            Err(wrong_type(datum, &SignatureType::Attribute(ty), span, naming))
        }
        Datum::List(items) if ty.list => {
            for (index, item) in items.iter().enumerate() {
                check_element(ty.base, item, span, naming)
                    .map_err(|error| Box::new(error.note(format!("it is the element with index {index}"))))?;
            }
            Ok(())
        }
        _ if ty.list => Err(wrong_type(datum, &SignatureType::Attribute(ty), span, naming)),
        _ => check_base(ty.base, datum, span, naming),
    }
}

fn check_element(base: BaseType, datum: &Datum, span: Span, naming: Naming<'_>) -> Outcome<()> {
    let ty = AttributeType {
        base,
        list: false,
        nullable: false,
    };
    check_attribute(ty, datum, span, naming)
}

/// Checks what is assigned to a relation, or one element of that.
///
/// # Errors
/// When it is no instance of the entity.
pub fn check_entity(entity: EntityId, datum: &Datum, span: Span, naming: Naming<'_>) -> Outcome<()> {
    let wanted = &naming.model.entities[entity.index()].name;
    let short = match &**wanted {
        // Whatever it is an instance of.
        "std::Entity" => "E",
        wanted => wanted.rsplit_once("::").map_or(wanted, |(_, short)| short),
    };
    let refuse = |message: String| {
        let label = format!("this is {}", described_type(datum, naming));
        let error = Diagnostic::error(&codes::WRONG_TYPE, span, message)
            .of_class(class::RUNTIME)
            .label(label);
        Err(Box::new(match datum.unmarked() {
            Datum::List(_) => error.help("a relation with one end takes one instance, without brackets"),
            Datum::Instance(_) => error,
            _ => error.help(format!(
                "a relation holds instances, which are constructed, `{short}(…)`, or looked up, `{short}[…]`"
            )),
        }))
    };
    match datum.unmarked() {
        Datum::Unknown(_) => Ok(()),
        Datum::Instance(instance) => {
            let found = naming.instances.entity(*instance);
            if naming.model.is_below(found, entity) {
                return Ok(());
            }
            let place = naming.instances.places(*instance).into_iter().next();
            let place = place.map_or(String::new(), |place| format!(" (instantiated at {place})"));
            let found = naming.entity(*instance);
            refuse(format!(
                "invalid class type for `{found}{place}`, should be `{wanted}`"
            ))
        }
        other => refuse(format!(
            "invalid type for value `{}`, should be type `{wanted}` and is {}",
            shown(datum, naming),
            type_name(other, naming)
        )),
    }
}

/// Checks an argument or result of a function.
///
/// # Errors
/// When it is not of the type.
pub fn check_signature(ty: &SignatureType, datum: &Datum, span: Span, naming: Naming<'_>) -> Outcome<()> {
    let plain = datum.unmarked();
    if matches!(plain, Datum::Unknown(_)) {
        return Ok(());
    }
    let refuse = || Err(wrong_type(datum, ty, span, naming));
    match (ty, plain) {
        (SignatureType::Anything, _) => Ok(()),
        (SignatureType::Reference(of), Datum::Deferred(deferred)) => {
            if is_subtype(&deferred.ty, of, naming.model) {
                Ok(())
            } else {
                refuse()
            }
        }
        (SignatureType::Union(members), _) => {
            let accepted = members
                .iter()
                .any(|member| check_signature(member, datum, span, naming).is_ok());
            if accepted { Ok(()) } else { refuse() }
        }
        (_, Datum::Deferred(_)) | (SignatureType::Reference(_), _) => refuse(),
        (SignatureType::Any, _)
        | (SignatureType::Null, Datum::Null)
        | (SignatureType::List, Datum::List(_))
        | (SignatureType::Dict, Datum::Dict(_)) => Ok(()),
        (SignatureType::Null | SignatureType::List | SignatureType::Dict, _) => refuse(),
        (SignatureType::Attribute(ty), _) => check_attribute(*ty, datum, span, naming),
        (SignatureType::ListOf(element), Datum::List(items)) => items
            .iter()
            .try_for_each(|item| check_signature(element, item, span, naming)),
        (SignatureType::DictOf(value), Datum::Dict(dict)) => dict
            .iter()
            .try_for_each(|(_, item)| check_signature(value, item, span, naming)),
        (SignatureType::ListOf(_) | SignatureType::DictOf(_), _) => refuse(),
        (SignatureType::Entity(entity), _) => check_entity(*entity, datum, span, naming),
    }
}

/// `of type string`, `an instance of Host`.
fn described_type(datum: &Datum, naming: Naming<'_>) -> String {
    match datum.unmarked() {
        Datum::Instance(instance) => {
            let entity = naming.instances.entity(*instance);
            format!("an instance of `{}`", naming.model.entities[entity.index()].name)
        }
        other => format!("of type {}", type_name(other, naming)),
    }
}

/// Whether an instance has an attribute `name`.
fn has_name(instance: InstanceId, naming: Naming<'_>) -> bool {
    let entity = &naming.model.entities[naming.instances.entity(instance).index()];
    let mut members = entity.members.iter();
    members.any(|member| &**naming.model.text(member.name) == "name")
}

fn wrong_type(datum: &Datum, ty: &SignatureType, span: Span, naming: Naming<'_>) -> Box<Diagnostic> {
    let expected = type_text(ty, naming.model);
    let message = format!("invalid value `{}`, expected `{expected}`", shown(datum, naming));
    let wants_list = expected.trim_end_matches('?').ends_with("[]") || matches!(&*expected, "list" | "list?");
    let class = match wants_list && !matches!(datum.unmarked(), Datum::List(_)) {
        true => class::TYPING,
        false => class::RUNTIME,
    };
    let error = Diagnostic::error(&codes::WRONG_TYPE, span, message)
        .of_class(class)
        .label(format!("this is {}", described_type(datum, naming)));
    let list = matches!(ty, SignatureType::Attribute(ty) if ty.list);
    Box::new(match (datum.unmarked(), &*expected) {
        (Datum::Int(int), "float" | "float?") => {
            error.help(format!("write `{int}.0`, or cast with `float(…)`"))
        }
        (Datum::Text(text), "int" | "int?") if text.parse::<i64>().is_ok() => {
            error.help(format!("write `{text}` without quotes, or cast with `int(…)`"))
        }
        (Datum::Text(_), "bool" | "bool?") => error.help("a bool is `true` or `false`, without quotes"),
        (Datum::Int(_) | Datum::Float(_) | Datum::Bool(_), "string" | "string?") => {
            error.help("write it in quotes, or cast with `string(…)`")
        }
        (Datum::Int(0 | 1), "bool" | "bool?") => error.help("a bool is `true` or `false`"),
        (Datum::Null, expected) if !expected.ends_with('?') && matches!(ty, SignatureType::Attribute(_)) => {
            error.help(format!("only a type with `?` holds null: `{expected}?`"))
        }
        (Datum::List(_), "dict" | "dict?") => error.help(r#"a dict is written `{"key": value}`"#),
        (Datum::List(_), _) if !list => {
            error.help("one value is wanted; a list of them is another type, with `[]`")
        }
        (Datum::Instance(instance), "string" | "string?") if has_name(*instance, naming) => {
            error.help("an attribute of an instance is read behind it: `x.name`")
        }
        (Datum::Instance(_), _) if matches!(ty, SignatureType::Attribute(_)) => error.help(
            "attributes hold no instances; what has to do with another entity is a relation: `A.b [1] -- B`",
        ),
        (Datum::List(_) | Datum::Null | Datum::Dict(_), _) => error,
        _ if list => error.help("put it in brackets to make a list of it"),
        _ => error,
    })
}

/// Checks that a known datum that is neither list of the type nor null is of a base type.
fn check_base(base: BaseType, datum: &Datum, span: Span, naming: Naming<'_>) -> Outcome<()> {
    let (primitive, chain) = typedefs(base, naming.model);
    if !is_primitive(primitive, datum.unmarked()) {
        // Of a chain, the one that was asked for is the one that the user knows.
        let ty = AttributeType {
            base,
            list: false,
            nullable: false,
        };
        let error = wrong_type(datum, &SignatureType::Attribute(ty), span, naming);
        return Err(if chain.is_empty() {
            error
        } else {
            Box::new(error.note(format!("it is based on `{}`", base_name(primitive, naming.model))))
        });
    }
    chain
        .iter()
        .rev()
        .try_for_each(|typedef| check_constraint(*typedef, datum, span, naming))
}

/// The primitive that a type is based on, and the typedefs on the way, the type itself first.
fn typedefs(base: BaseType, model: &Model) -> (BaseType, Vec<TypedefId>) {
    let mut chain = Vec::new();
    let mut base = base;
    while let BaseType::Typedef(typedef) = base {
        // More than there are: they are based on each other, which has been reported.
        if chain.len() > model.typedefs.len() {
            break;
        }
        chain.push(typedef);
        base = model.typedefs[typedef.index()].base;
    }
    (base, chain)
}

fn is_primitive(base: BaseType, datum: &Datum) -> bool {
    match (base, datum) {
        (BaseType::String, Datum::Text(_))
        | (BaseType::Int, Datum::Int(_) | Datum::Bool(_))
        | (BaseType::Float, Datum::Float(_))
        | (BaseType::Number, Datum::Int(_) | Datum::Float(_) | Datum::Bool(_))
        | (BaseType::Bool, Datum::Bool(_)) => true,
        (BaseType::List, Datum::List(_)) | (BaseType::Dict, Datum::Dict(_)) => {
            !datum.any_part(&mut |part| matches!(part, Datum::Instance(_)))
        }
        _ => false,
    }
}

fn check_constraint(typedef: TypedefId, datum: &Datum, span: Span, naming: Naming<'_>) -> Outcome<()> {
    let typedef = &naming.model.typedefs[typedef.index()];
    let place = typedef.span.unwrap_or(span);
    let (holds, pattern) = match &typedef.constraint {
        Constraint::Regex(written, regex) => (
            matches(regex, datum, span, naming)?.unwrap_or(true),
            Some(&written.pattern),
        ),
        Constraint::Expression(condition) => (
            is_true(&conditions::evaluate(condition, datum, typedef, naming)?),
            None,
        ),
    };
    if holds {
        return Ok(());
    }
    let message = format!(
        "invalid value `{}`, does not match constraint of `{}`",
        shown(datum, naming),
        typedef.name
    );
    let mut error = Diagnostic::error(&codes::CONSTRAINT, place, message)
        .of_class(class::RUNTIME)
        .label("this type does not accept it");
    if let Some(pattern) = pattern {
        error = error.note(format!("the pattern is `{pattern}`, matched at the start"));
    }
    if place != span {
        error = error.because(span, "the value comes from here");
    }
    Err(Box::new(error))
}

/// Whether every value of one type is of another.
#[must_use]
pub fn is_subtype(of: &SignatureType, wanted: &SignatureType, model: &Model) -> bool {
    use SignatureType as Type;
    match (of, wanted) {
        (_, Type::Any | Type::Anything) => true,
        (Type::Union(members), _) => members.iter().all(|member| is_subtype(member, wanted, model)),
        (_, Type::Union(members)) => members.iter().any(|member| is_subtype(of, member, model)),
        (Type::Null, Type::Attribute(wanted)) => wanted.nullable,
        (Type::Attribute(of), Type::Attribute(wanted)) => {
            (!of.nullable || wanted.nullable)
                && (of.list == wanted.list && is_base_subtype(of.base, wanted.base, model)
                    || of.list && !wanted.list && wanted.base == BaseType::List)
        }
        (Type::Entity(of), Type::Entity(wanted)) => model.is_below(*of, *wanted),
        (Type::ListOf(of), Type::ListOf(wanted)) | (Type::DictOf(of), Type::DictOf(wanted)) => {
            is_subtype(of, wanted, model)
        }
        (Type::ListOf(_), Type::List) | (Type::DictOf(_), Type::Dict) => true,
        (Type::Attribute(of), Type::List) => !of.nullable && (of.list || of.base == BaseType::List),
        (Type::Attribute(of), Type::Dict) => !of.nullable && !of.list && of.base == BaseType::Dict,
        (Type::Attribute(of), Type::ListOf(wanted)) => {
            let element = AttributeType {
                list: false,
                nullable: false,
                ..*of
            };
            of.list && !of.nullable && is_subtype(&Type::Attribute(element), wanted, model)
        }
        (Type::Reference(of), Type::Reference(wanted)) => is_subtype(of, wanted, model),
        (of, wanted) => of == wanted,
    }
}

fn is_base_subtype(of: BaseType, wanted: BaseType, model: &Model) -> bool {
    let (primitive, chain) = typedefs(of, model);
    match wanted {
        BaseType::Typedef(wanted) => chain.contains(&wanted),
        BaseType::Number => matches!(primitive, BaseType::Int | BaseType::Float | BaseType::Number),
        wanted => primitive == wanted,
    }
}

/// Checks a constant before the model runs.
///
/// # Errors
/// As those of [`check_attribute`].
pub fn check_constant(ty: AttributeType, constant: &Datum, span: Span, model: &Model) -> Outcome<()> {
    let naming = Naming {
        model,
        instances: &NoInstances,
    };
    check_attribute(ty, constant, span, naming)
}

/// Constants hold no instances.
struct NoInstances;

impl Instances for NoInstances {
    fn entity(&self, _: InstanceId) -> EntityId {
        EntityId(0)
    }

    fn places(&self, _: InstanceId) -> Vec<String> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests;
