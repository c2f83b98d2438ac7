//! Arbitrary types and values.

use proptest::prelude::*;
use setpoint_value::{Bound, Map, Refinement, Type, Value, length_range};

/// A closed type without functions, small enough that two of them often have something to do with each other.
pub(crate) fn any_type() -> BoxedStrategy<Type> {
    let leaf = prop_oneof![
        Just(Type::Bool),
        Just(Type::Int),
        Just(Type::Float),
        Just(Type::Str),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(Type::list),
            inner.clone().prop_map(|t| Type::set(without_optional(t))),
            (prop_oneof![Just(Type::Str), Just(Type::Int)], inner.clone()).prop_map(|(k, v)| Type::map(k, v)),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Type::tuple),
            (prop::collection::vec(inner.clone(), 0..3), any::<bool>()).prop_map(|(types, swap)| {
                let mut fields: Vec<_> = ["a", "b", "c"].into_iter().zip(types).collect();
                if swap {
                    fields.reverse();
                }
                Type::structure(fields)
            }),
            inner.prop_map(|t| Type::optional(without_optional(t))),
        ]
    })
    .boxed()
}

fn without_optional(ty: Type) -> Type {
    match ty {
        Type::Optional(inner) => (*inner).clone(),
        other => other,
    }
}

/// A known value of a type.
pub(crate) fn value_of(ty: &Type) -> BoxedStrategy<Value> {
    match ty {
        Type::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        Type::Int => prop_oneof![-3i64..4, any::<i64>()].prop_map(Value::Int).boxed(),
        Type::Float => prop_oneof![
            Just(0.0),
            Just(-0.0),
            Just(f64::NAN),
            Just(f64::INFINITY),
            -2.0f64..2.0,
            (-3i32..4).prop_map(f64::from),
        ]
        .prop_map(Value::float)
        .boxed(),
        Type::Str => prop_oneof![
            "[ab/1]{0,4}".prop_map(Value::str),
            Just(Value::str("e\u{301}x")),
            Just(Value::str(b"a\xff".as_slice())),
        ]
        .boxed(),
        Type::List(element) => {
            let element = (**element).clone();
            prop::collection::vec(value_of(&element), 0..4)
                .prop_map(move |items| Value::list(element.clone(), items))
                .boxed()
        }
        Type::Set(element) => {
            let element = (**element).clone();
            prop::collection::vec(value_of(&element), 0..4)
                .prop_map(move |items| Value::set(element.clone(), items))
                .boxed()
        }
        Type::Map(kv) => {
            let (key, value) = (kv.0.clone(), kv.1.clone());
            prop::collection::vec((value_of(&key), value_of(&value)), 0..4)
                .prop_map(move |entries| Value::map(key.clone(), value.clone(), entries))
                .boxed()
        }
        Type::Tuple(types) => {
            let items: Vec<_> = types.iter().map(value_of).collect();
            items.prop_map(Value::tuple).boxed()
        }
        Type::Struct(s) => {
            let ty = ty.clone();
            let fields: Vec<_> = s.fields.iter().map(|f| value_of(&f.ty)).collect();
            fields
                .prop_map(move |fields| Value::structure(ty.clone(), fields))
                .boxed()
        }
        Type::Optional(inner) => {
            let null = Value::Null(ty.clone());
            prop_oneof![1 => Just(null), 3 => value_of(inner)].boxed()
        }
        other => panic!("no values of {other} are generated"),
    }
}

/// A value with its type.
pub(crate) fn any_value() -> BoxedStrategy<(Type, Value)> {
    any_type()
        .prop_flat_map(|ty| value_of(&ty).prop_map(move |value| (ty.clone(), value)))
        .boxed()
}

/// The decisions of [`blur`] and [`tag`]; it repeats when it is used up.
pub(crate) fn decisions() -> BoxedStrategy<Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..24).boxed()
}

/// Hands out decisions.
pub(crate) struct Choices {
    bytes: Vec<u8>,
    next: usize,
}

impl Choices {
    pub(crate) fn new(bytes: Vec<u8>) -> Choices {
        Choices { bytes, next: 0 }
    }

    fn take(&mut self) -> u8 {
        self.next += 1;
        self.bytes[(self.next - 1) % self.bytes.len()]
    }
}

/// The value with some of its parts replaced by unknowns that could become them.
pub(crate) fn blur(value: &Value, ty: &Type, choices: &mut Choices) -> Value {
    if choices.take() < 80 {
        return Value::refined(ty.clone(), truth(value, choices));
    }
    rebuild(value, ty, &mut |part, ty| blur(part, ty, choices))
}

/// The value with marks on some of its parts.
pub(crate) fn tag(value: &Value, ty: &Type, choices: &mut Choices) -> Value {
    let tagged = rebuild(value, ty, &mut |part, ty| tag(part, ty, choices));
    match choices.take() {
        0..60 => tagged.sensitive(),
        _ => tagged,
    }
}

fn rebuild(value: &Value, ty: &Type, part: &mut dyn FnMut(&Value, &Type) -> Value) -> Value {
    let inner = match ty {
        Type::Optional(inner) => inner,
        other => other,
    };
    match (value, inner) {
        (Value::List(list), Type::List(element)) => {
            let items: Vec<_> = list.iter().map(|v| part(v, element)).collect();
            Value::list((**element).clone(), items)
        }
        (Value::Tuple(items), Type::Tuple(types)) => Value::tuple(
            items
                .iter()
                .zip(types.iter())
                .map(|(v, t)| part(v, t))
                .collect::<Vec<_>>(),
        ),
        (Value::Struct(s), Type::Struct(wanted)) => {
            let fields: Vec<_> = s
                .fields()
                .iter()
                .zip(&wanted.fields)
                .map(|(v, f)| part(v, &f.ty))
                .collect();
            Value::structure(s.ty().clone(), fields)
        }
        (Value::Map(map), Type::Map(kv)) => {
            let entries: Vec<_> = map.iter().map(|(k, v)| (k.clone(), part(v, &kv.1))).collect();
            Value::Map(Map::new(kv.0.clone(), kv.1.clone(), entries))
        }
        (plain, _) => plain.clone(),
    }
}

/// A refinement that is true of a value.
fn truth(value: &Value, choices: &mut Choices) -> Refinement {
    let detail = choices.take();
    if value.is_null() || detail < 50 {
        return Refinement::default();
    }
    let refinement = Refinement::not_null();
    match value {
        Value::Int(i) if detail > 120 && i.unsigned_abs() < 1 << 50 => {
            let i = *i as f64;
            match detail % 3 {
                0 => refinement.with_lower(Bound::inclusive(i)),
                1 => refinement.with_upper(Bound::exclusive(i + 1.0)),
                _ => refinement
                    .with_lower(Bound::exclusive(i - 2.0))
                    .with_upper(Bound::inclusive(i)),
            }
        }
        Value::Float(f) if detail > 120 && !f.0.is_nan() => match detail % 2 {
            0 => refinement.with_lower(Bound::inclusive(f.0)),
            _ => refinement.with_upper(Bound::inclusive(f.0)),
        },
        Value::Str(s) if detail > 120 => {
            let bytes = s.as_bytes();
            refinement.with_prefix(bytes[..usize::from(detail) % (bytes.len() + 1)].to_vec())
        }
        Value::List(_) | Value::Map(_) | Value::Set(_) if detail > 120 => {
            let (least, most) = length_range(value).unwrap();
            match detail % 3 {
                0 => refinement.with_length(least, None),
                1 => refinement.with_length(0, most.map(|m| m + 1)),
                _ => refinement.with_length(least, most),
            }
        }
        _ => refinement,
    }
}
