//! Each row of the table of types, typedefs, and what their conditions can be.

use std::sync::Arc;

use setpoint_cf_names::datum::{Deferred, DeferredSource, InstanceId};
use setpoint_cf_names::hir::{Expression, ExpressionKind, Place, Typedef};
use setpoint_cf_names::ids::{NamespaceId, Symbol};
use setpoint_cf_syntax::ast::{Literal, Operator, Regex};

use super::*;
use crate::testing::{World, nowhere};

fn ty(base: BaseType) -> AttributeType {
    AttributeType {
        base,
        list: false,
        nullable: false,
    }
}

fn list(base: BaseType) -> AttributeType {
    AttributeType {
        list: true,
        ..ty(base)
    }
}

fn nullable(base: BaseType) -> AttributeType {
    AttributeType {
        nullable: true,
        ..ty(base)
    }
}

fn items<const N: usize>(items: [Datum; N]) -> Datum {
    Datum::List(items.into())
}

fn expression(kind: ExpressionKind) -> Expression {
    Expression {
        kind,
        span: nowhere(),
    }
}

fn value() -> Expression {
    expression(ExpressionKind::Variable(Place::TypedefSelf))
}

fn literal(literal: Literal) -> Expression {
    expression(ExpressionKind::Literal(literal))
}

fn compared(operator: Operator, right: Literal) -> Expression {
    expression(ExpressionKind::Operators {
        first: Box::new(value()),
        rest: vec![(operator, nowhere(), literal(right))],
    })
}

/// A world with typedefs: 0 is an int above zero, 1 such an int below ten, 2 a lower case word, 3 and up as given.
fn world(others: impl IntoIterator<Item = Expression>) -> World {
    let mut world = World::new();
    world.model.symbols.push("other".into());
    let regex = fancy_regex::Regex::new("[a-z]+").expect("a pattern");
    let written = Regex {
        pattern: "[a-z]+".into(),
        span: nowhere(),
    };
    let typedef = |name: &str, base, constraint| Typedef {
        name: name.into(),
        namespace: NamespaceId(0),
        span: None,
        base,
        constraint,
        doc: None,
    };
    let positive = Constraint::Expression(compared(Operator::Greater, Literal::Int(0)));
    let digit = Constraint::Expression(compared(Operator::Less, Literal::Int(10)));
    world.model.typedefs = vec![
        typedef("__config__::positive", BaseType::Int, positive),
        typedef("__config__::digit", BaseType::Typedef(TypedefId(0)), digit),
        typedef(
            "__config__::word",
            BaseType::String,
            Constraint::Regex(written, Arc::new(regex)),
        ),
    ];
    for other in others {
        let other = typedef(
            "__config__::other",
            BaseType::String,
            Constraint::Expression(other),
        );
        world.model.typedefs.push(other);
    }
    world
}

fn checked(world: &World, ty: AttributeType, datum: &Datum) -> Result<(), String> {
    check_attribute(ty, datum, nowhere(), world.naming())
        .map_err(|error| format!("{} {}: {}", error.code.code, error.class, error.message))
}

#[test]
fn what_each_type_accepts_and_rejects() {
    use BaseType::{Bool, Dict, Float, Int, List, Number, String};
    let world = world([]);
    let instance = || Datum::Instance(InstanceId(0));
    let dict = |value: Datum| Datum::Dict(Arc::new([(Arc::from("k"), value)].into_iter().collect()));
    let accepted = [
        (ty(String), Datum::text("")),
        (ty(Int), Datum::Int(1)),
        (ty(Int), Datum::Bool(true)),
        (ty(Float), Datum::Float(1.0)),
        (ty(Number), Datum::Int(1)),
        (ty(Number), Datum::Float(1.5)),
        (ty(Number), Datum::Bool(false)),
        (ty(Bool), Datum::Bool(false)),
        (list(Int), items([])),
        (list(Int), items([Datum::Int(1), Datum::Bool(true)])),
        (nullable(Int), Datum::Null),
        (nullable(Int), Datum::Int(1)),
        (
            ty(List),
            items([Datum::Null, items([Datum::text("")]), dict(Datum::Int(1))]),
        ),
        (ty(Dict), dict(items([Datum::Null]))),
        (ty(Int), Datum::Unknown(setpoint_cf_names::datum::UnknownId(0))),
        (
            list(Int),
            items([Datum::Unknown(setpoint_cf_names::datum::UnknownId(0))]),
        ),
    ];
    for (ty, datum) in &accepted {
        assert_eq!(checked(&world, *ty, datum), Ok(()), "{ty:?} {datum:?}");
    }
    for (ty, datum, expected) in [
        (ty(String), Datum::Int(1), "invalid value `1`, expected `string`"),
        (ty(Int), Datum::Float(1.0), "invalid value `1.0`, expected `int`"),
        (ty(Float), Datum::Int(5), "invalid value `5`, expected `float`"),
        (ty(Bool), Datum::Int(1), "invalid value `1`, expected `bool`"),
        (ty(Int), Datum::Null, "invalid value `null`, expected `int`"),
        (
            list(Int),
            items([Datum::Int(1), Datum::text("a")]),
            "invalid value `'a'`, expected `int`",
        ),
        (
            ty(List),
            items([items([instance()])]),
            "invalid value `[[__config__::Host 0]]`, expected `list`",
        ),
        (
            ty(Dict),
            dict(instance()),
            "invalid value `{'k': __config__::Host 0}`, expected `dict`",
        ),
        (ty(Dict), items([]), "invalid value `[]`, expected `dict`"),
    ] {
        let expected = format!("E0604 RuntimeException: {expected}");
        assert_eq!(checked(&world, ty, &datum), Err(expected), "{ty:?} {datum:?}");
    }
    for (ty, expected) in [(list(Int), "int[]"), (ty(List), "list")] {
        let expected = format!("E0604 TypingException: invalid value `1`, expected `{expected}`");
        assert_eq!(checked(&world, ty, &Datum::Int(1)), Err(expected));
    }
}

#[test]
fn instances_are_of_their_entity_and_those_above() {
    let world = World::new();
    let check = |entity: u32, datum: Datum| {
        check_entity(EntityId(entity), &datum, nowhere(), world.naming()).map_err(|error| error.message)
    };
    // 4 is a `Pkg`, which is below `std::Resource`.
    assert_eq!(check(4, Datum::Instance(InstanceId(4))), Ok(()));
    assert_eq!(check(3, Datum::Instance(InstanceId(4))), Ok(()));
    assert_eq!(check(0, Datum::Instance(InstanceId(4))), Ok(()));
    assert_eq!(
        check(1, Datum::Instance(InstanceId(4))).expect_err("another entity"),
        "invalid class type for `__config__::Pkg (instantiated at main.cf:7)`, should be `__config__::Host`"
    );
    assert_eq!(
        check(1, Datum::Null).expect_err("no instance"),
        "invalid type for value `null`, should be type `__config__::Host` and is null"
    );
}

#[test]
fn typedefs_check_their_base_first() {
    let world = world([]);
    let digit = ty(BaseType::Typedef(TypedefId(1)));
    let word = ty(BaseType::Typedef(TypedefId(2)));
    assert_eq!(checked(&world, digit, &Datum::Int(5)), Ok(()));
    assert_eq!(checked(&world, word, &Datum::text("ab1")), Ok(()));
    for (ty, datum, expected) in [
        (
            digit,
            Datum::Int(10),
            "E0605 RuntimeException: invalid value `10`, does not match constraint of `__config__::digit`",
        ),
        (
            digit,
            Datum::Int(0),
            "E0605 RuntimeException: invalid value `0`, does not match constraint of `__config__::positive`",
        ),
        (
            digit,
            Datum::text("5"),
            "E0604 RuntimeException: invalid value `'5'`, expected `__config__::digit`",
        ),
        (
            word,
            Datum::text("1ab"),
            "E0605 RuntimeException: invalid value `'1ab'`, does not match constraint of `__config__::word`",
        ),
    ] {
        assert_eq!(checked(&world, ty, &datum), Err(expected.to_owned()));
    }
}

#[test]
fn conditions_know_nothing_but_self_and_wait_for_nothing() {
    let attribute = expression(ExpressionKind::Attribute {
        of: Box::new(value()),
        name: Symbol(0),
        name_span: nowhere(),
    });
    let world = world([
        expression(ExpressionKind::Variable(Place::NotFound(Symbol(0)))),
        attribute,
        expression(ExpressionKind::Interpolated(Vec::new())),
        expression(ExpressionKind::Format(Vec::new())),
        expression(ExpressionKind::IsDefined(Box::new(value()))),
    ]);
    let refused = |typedef: u32| {
        let ty = ty(BaseType::Typedef(TypedefId(typedef)));
        checked(&world, ty, &Datum::text("a")).expect_err("it is refused")
    };
    assert_eq!(
        refused(3),
        "E0606 NotFoundException: unable to resolve `other`: a type constraint can not reference variables"
    );
    for (typedef, what) in [
        (4, "access to attributes"),
        (5, "a string with `{{…}}`"),
        (6, "an f-string"),
        (7, "`is defined`"),
    ] {
        let expected = format!("E0607 DirectExecuteException: {what} can not be executed in this context");
        assert_eq!(refused(typedef), expected);
    }
}

#[test]
fn references_are_of_what_they_will_be() {
    let world = world([]);
    let reference = |base| {
        Datum::Deferred(Arc::new(Deferred {
            source: DeferredSource::Environment(Datum::text("HOME")),
            ty: SignatureType::Attribute(ty(base)),
        }))
    };
    assert_eq!(
        checked(&world, ty(BaseType::String), &reference(BaseType::String)),
        Ok(())
    );
    assert_eq!(
        checked(&world, ty(BaseType::Number), &reference(BaseType::Int)),
        Ok(())
    );
    assert_eq!(
        checked(
            &world,
            list(BaseType::String),
            &items([reference(BaseType::String)])
        ),
        Ok(())
    );
    assert!(checked(&world, ty(BaseType::Int), &reference(BaseType::String)).is_err());
    assert!(
        check_entity(
            EntityId(0),
            &reference(BaseType::String),
            nowhere(),
            world.naming()
        )
        .is_err()
    );
    let signature =
        |ty: &SignatureType| check_signature(ty, &reference(BaseType::Int), nowhere(), world.naming());
    assert!(signature(&SignatureType::Any).is_err());
    assert!(signature(&SignatureType::Anything).is_ok());
    let of_number = SignatureType::Reference(Box::new(SignatureType::Attribute(ty(BaseType::Number))));
    assert!(signature(&of_number).is_ok());
}

#[test]
fn signatures_have_unions_lists_and_dicts() {
    let world = world([]);
    let check =
        |ty: &SignatureType, datum: &Datum| check_signature(ty, datum, nowhere(), world.naming()).is_ok();
    let string = SignatureType::Attribute(ty(BaseType::String));
    let union = SignatureType::Union(vec![string.clone(), SignatureType::Null]);
    assert!(check(&union, &Datum::Null) && check(&union, &Datum::text("")) && !check(&union, &Datum::Int(1)));
    let strings = SignatureType::ListOf(Box::new(string.clone()));
    assert!(check(&strings, &items([Datum::text("")])) && !check(&strings, &items([Datum::Int(1)])));
    assert!(check(
        &SignatureType::List,
        &items([Datum::Instance(InstanceId(0))])
    ));
    assert!(!check(&SignatureType::Dict, &items([])));
    assert!(check(
        &SignatureType::Entity(EntityId(0)),
        &Datum::Instance(InstanceId(0))
    ));
}

#[test]
fn subtypes_follow_bases_lists_nulls_and_unions() {
    let world = world([]);
    let attribute = SignatureType::Attribute;
    let below = |of: &SignatureType, wanted: &SignatureType| is_subtype(of, wanted, &world.model);
    let (int, number) = (attribute(ty(BaseType::Int)), attribute(ty(BaseType::Number)));
    let digit = attribute(ty(BaseType::Typedef(TypedefId(1))));
    assert!(below(&int, &int) && below(&int, &number) && !below(&number, &int));
    assert!(below(&digit, &int) && below(&digit, &number) && !below(&int, &digit));
    assert!(below(&digit, &attribute(ty(BaseType::Typedef(TypedefId(0))))));
    assert!(below(
        &attribute(list(BaseType::Int)),
        &attribute(list(BaseType::Number))
    ));
    assert!(below(&int, &attribute(nullable(BaseType::Int))));
    assert!(!below(&attribute(nullable(BaseType::Int)), &int));
    assert!(below(&SignatureType::Null, &attribute(nullable(BaseType::Int))));
    assert!(below(
        &int,
        &SignatureType::Union(vec![SignatureType::Null, number])
    ));
    assert!(below(
        &SignatureType::Entity(EntityId(4)),
        &SignatureType::Entity(EntityId(3))
    ));
    assert!(below(&int, &SignatureType::Any));
}

/// A condition that calls a function of `std` with `self`.
fn call_of(world: &mut World, name: &str) -> Expression {
    let number = crate::std::number("std", name).expect("there is such a function");
    world.model.functions.push(setpoint_cf_names::hir::Function {
        name: format!("std::{name}").into(),
        implementation: setpoint_cf_names::hir::FunctionImplementation::Std(number),
    });
    let function = u32::try_from(world.model.functions.len() - 1).expect("few functions");
    expression(ExpressionKind::Call {
        function: setpoint_cf_names::ids::FunctionId(function),
        positional: vec![value()],
        keywords: Vec::new(),
        dicts: Vec::new(),
        name_span: nowhere(),
        namespace: NamespaceId(0),
    })
}

#[test]
fn conditions_call_functions_that_need_nothing_else() {
    let mut world = world([]);
    for name in ["is_base64_encoded", "source"] {
        let condition = call_of(&mut world, name);
        world.model.typedefs.push(Typedef {
            name: "__config__::called".into(),
            namespace: NamespaceId(0),
            span: None,
            base: BaseType::String,
            constraint: Constraint::Expression(condition),
            doc: None,
        });
    }
    let base64 = ty(BaseType::Typedef(TypedefId(3)));
    assert_eq!(checked(&world, base64, &Datum::text("YQ==")), Ok(()));
    assert!(checked(&world, base64, &Datum::text("Y")).is_err());
    assert_eq!(
        checked(&world, ty(BaseType::Typedef(TypedefId(4))), &Datum::text("web/x"))
            .expect_err("it reads a file"),
        "E0607 DirectExecuteException: function `std::source` needs more than its arguments, it can not be executed in \
         this context"
    );
}
