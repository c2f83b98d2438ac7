//! From data of a model to values of parameters.
//!
//! A datum becomes a value of the parameter's own type, or there is an error that says where in it something does not fit. Nothing is
//! converted silently: an int is no float. What is unknown stays so, with the type that it will have; marks are kept. A deferred reference
//! becomes an unknown too, and is noted.

use std::sync::Arc;

use setpoint_cf_names::datum::{Datum, Deferred};
use setpoint_graph::{ParameterType, TypeMismatch};
use setpoint_value::{Type, Value};

/// A datum as a value of a parameter.
#[derive(Debug, Clone)]
pub(super) struct Converted {
    pub value: Value,
    /// Whether a part is not known.
    pub has_unknown: bool,
    /// The deferred references in it, with where they are: empty for the whole.
    pub deferred: Vec<(String, Arc<Deferred>)>,
}

/// Converts a datum.
///
/// # Errors
/// The first place that does not fit.
pub(super) fn convert(datum: &Datum, to: &ParameterType) -> Result<Converted, TypeMismatch> {
    let mut conversion = Conversion::default();
    let value = conversion.convert(datum, to)?;
    to.check(&value)?;
    Ok(Converted {
        value,
        has_unknown: conversion.has_unknown,
        deferred: conversion.deferred,
    })
}

#[derive(Default)]
struct Conversion {
    path: String,
    has_unknown: bool,
    deferred: Vec<(String, Arc<Deferred>)>,
}

impl Conversion {
    fn mismatch(&self, message: impl Into<String>) -> TypeMismatch {
        TypeMismatch::new(message).inside(&self.path)
    }

    /// Converts a part, whose place is added to the path meanwhile.
    fn part(&mut self, step: &str, datum: &Datum, to: &ParameterType) -> Result<Value, TypeMismatch> {
        let length = self.path.len();
        self.path.push_str(step);
        let value = self.convert(datum, to)?;
        self.path.truncate(length);
        Ok(value)
    }

    fn convert(&mut self, datum: &Datum, to: &ParameterType) -> Result<Value, TypeMismatch> {
        match (to, datum) {
            (to, Datum::Marked(marked)) => Ok(self.convert(&marked.datum, to)?.with_marks(&marked.marks)),
            (to, Datum::Unknown(_)) => {
                self.has_unknown = true;
                Ok(Value::unknown(to.ty()))
            }
            (to, Datum::Deferred(deferred)) => {
                self.deferred.push((self.path.clone(), deferred.clone()));
                Ok(Value::unknown(to.ty()))
            }
            (ParameterType::Optional(inner), Datum::Null) => Ok(Value::Null(inner.ty())),
            (ParameterType::Optional(inner), datum) => self.convert(datum, inner),
            (ParameterType::Any, datum) => self.natural(datum),
            (ParameterType::Bool, Datum::Bool(value)) => Ok(Value::Bool(*value)),
            (ParameterType::Str, Datum::Text(text)) => Ok(Value::str(&**text)),
            (ParameterType::Int { .. }, Datum::Int(number)) => Ok(Value::Int(*number)),
            // In this language a bool is an int.
            (ParameterType::Int { .. }, Datum::Bool(value)) => Ok(Value::Int((*value).into())),
            (ParameterType::Float { .. }, Datum::Float(number)) => Ok(Value::float(*number)),
            (ParameterType::Float { .. }, Datum::Int(number)) => {
                let message = format!("{number} is an int and not a float");
                Err(self.mismatch(message).help(format!("write `{number} * 1.0`")))
            }
            (ParameterType::List(element) | ParameterType::Array(element, _), Datum::List(items)) => {
                let mut values = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    values.push(self.part(&format!("[{index}]"), item, element)?);
                }
                Ok(Value::list(element.ty(), values))
            }
            (ParameterType::Map(key, element), Datum::Dict(dict)) => {
                let mut entries = Vec::with_capacity(dict.len());
                for (name, item) in dict.iter() {
                    let step = format!("[{name:?}]");
                    let key = self.part(&step, &Datum::Text(name.clone()), key)?;
                    entries.push((key, self.part(&step, item, element)?));
                }
                Ok(Value::map(key.ty(), element.ty(), entries))
            }
            (ParameterType::Struct(fields), Datum::Dict(dict)) => self.structure(dict, fields, to),
            (to, datum) => {
                let message = format!("{} is not {}", described(datum), to.describe());
                Err(self.mismatch(message))
            }
        }
    }

    fn structure(
        &mut self,
        dict: &setpoint_cf_names::datum::Dict,
        fields: &[(&'static str, &'static ParameterType)],
        to: &ParameterType,
    ) -> Result<Value, TypeMismatch> {
        let known = |name: &str| fields.iter().any(|(field, _)| *field == name);
        if let Some((name, _)) = dict.iter().find(|(name, _)| !known(name)) {
            let names: Vec<String> = fields.iter().map(|(name, _)| format!("`{name}`")).collect();
            let help = setpoint_diagnostics::did_you_mean(name, fields.iter().map(|(name, _)| *name))
                .unwrap_or_else(|| format!("the keys are {}", names.join(", ")));
            let message = format!("there is no key `{name}`");
            return Err(self.mismatch(message).help(help));
        }
        let mut values = Vec::with_capacity(fields.len());
        for (name, field) in fields {
            values.push(match (dict.get(name), field) {
                (Some(item), _) => self.part(&format!(".{name}"), item, field)?,
                (None, ParameterType::Optional(inner)) => Value::Null(inner.ty()),
                (None, _) => return Err(self.mismatch(format!("the key `{name}` is missing"))),
            });
        }
        Ok(Value::structure(to.ty(), values))
    }

    /// A value of the type that follows from the datum itself: lists and dicts of one type become lists and maps, others tuples and
    /// structs.
    fn natural(&mut self, datum: &Datum) -> Result<Value, TypeMismatch> {
        match datum {
            Datum::Bool(value) => Ok(Value::Bool(*value)),
            Datum::Int(number) => Ok(Value::Int(*number)),
            Datum::Float(number) => Ok(Value::float(*number)),
            Datum::Text(text) => Ok(Value::str(&**text)),
            Datum::List(items) => {
                let mut values = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    values.push(self.part(&format!("[{index}]"), item, &ParameterType::Any)?);
                }
                Ok(match common_type(&values) {
                    Some(ty) => Value::list(ty, values),
                    None if values.is_empty() => Value::list(Type::Str, values),
                    None => Value::tuple(values),
                })
            }
            Datum::Dict(dict) => {
                let mut entries = Vec::with_capacity(dict.len());
                for (name, item) in dict.iter() {
                    entries.push((
                        name,
                        self.part(&format!("[{name:?}]"), item, &ParameterType::Any)?,
                    ));
                }
                let values: Vec<Value> = entries.iter().map(|(_, value)| value.clone()).collect();
                Ok(match common_type(&values) {
                    Some(ty) => {
                        let entries = entries.into_iter();
                        Value::map(
                            Type::Str,
                            ty,
                            entries.map(|(key, value)| (Value::str(&**key), value)),
                        )
                    }
                    None => Value::object(entries.into_iter().map(|(key, value)| (key.clone(), value))),
                })
            }
            other => Err(self.mismatch(format!("{} cannot be part of a parameter", described(other)))),
        }
    }
}

/// The type of all of them; none if they differ, or if there are none.
fn common_type(values: &[Value]) -> Option<Type> {
    let first = values.first()?.ty();
    values.iter().all(|value| value.ty() == first).then_some(first)
}

/// A datum in words. What may be secret is not among them.
pub(super) fn described(datum: &Datum) -> &'static str {
    match datum {
        Datum::Null => "null",
        Datum::Bool(_) => "a bool",
        Datum::Int(_) => "an int",
        Datum::Float(_) => "a float",
        Datum::Text(_) => "a string",
        Datum::List(_) => "a list",
        Datum::Dict(_) => "a dict",
        Datum::Instance(_) => "an instance",
        Datum::Unknown(_) => "an unknown",
        Datum::Deferred(_) => "a deferred reference",
        Datum::Marked(marked) => described(&marked.datum),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use setpoint_cf_names::datum::UnknownId;

    const INT: ParameterType = ParameterType::Int {
        bits: 8,
        signed: false,
    };
    const FLOAT: ParameterType = ParameterType::Float { bits: 64 };

    fn list(items: impl IntoIterator<Item = Datum>) -> Datum {
        Datum::List(items.into_iter().collect())
    }

    fn dict(entries: impl IntoIterator<Item = (&'static str, Datum)>) -> Datum {
        let entries = entries.into_iter().map(|(key, value)| (Arc::from(key), value));
        Datum::Dict(Arc::new(entries.collect()))
    }

    fn refused(datum: &Datum, to: &ParameterType) -> String {
        convert(datum, to).expect_err("it does not fit").to_string()
    }

    #[test]
    fn data_become_values_of_the_type_of_the_parameter() {
        let value = |datum: &Datum, to: &ParameterType| convert(datum, to).expect("it fits").value;
        assert_eq!(value(&Datum::Int(7), &INT), Value::Int(7));
        assert_eq!(value(&Datum::Bool(true), &INT), Value::Int(1));
        let texts = list([Datum::Text("a".into()), Datum::Text("b".into())]);
        assert_eq!(
            value(&texts, &ParameterType::List(&ParameterType::Str)),
            Value::strings(["a", "b"])
        );
        let map = ParameterType::Map(&ParameterType::Str, &FLOAT);
        assert_eq!(
            value(&dict([("x", Datum::Float(1.5))]), &map),
            Value::map(Type::Str, Type::Float, [(Value::str("x"), Value::float(1.5))])
        );
        assert_eq!(
            value(
                &list([Datum::Int(1), Datum::Text("a".into())]),
                &ParameterType::Any
            ),
            Value::tuple([Value::Int(1), Value::str("a")])
        );
    }

    #[test]
    fn what_does_not_fit_is_told_with_its_place() {
        assert_eq!(
            refused(&Datum::Int(256), &INT),
            "256 does not fit 8 bits without a sign"
        );
        assert_eq!(refused(&Datum::Int(5), &FLOAT), "5 is an int and not a float");
        let numbers = list([Datum::Int(1), Datum::Text("x".into())]);
        assert_eq!(
            refused(&numbers, &ParameterType::List(&INT)),
            "at `[1]`: a string is not int of 8 bits without a sign"
        );
        let map = ParameterType::Map(&ParameterType::Str, &ParameterType::Bool);
        assert_eq!(
            refused(&dict([("k", Datum::Int(1))]), &map),
            "at `[\"k\"]`: an int is not bool"
        );
        const FIELDS: ParameterType = ParameterType::Struct(&[("port", &INT)]);
        assert_eq!(refused(&dict([]), &FIELDS), "the key `port` is missing");
        assert_eq!(
            refused(&dict([("prt", Datum::Int(1))]), &FIELDS),
            "there is no key `prt`"
        );
    }

    #[test]
    fn what_is_not_known_has_the_type_that_it_will_have() {
        let unknown = Datum::Unknown(UnknownId(0));
        let found = convert(&list([unknown, Datum::Int(1)]), &ParameterType::List(&INT)).expect("it fits");
        assert!(found.has_unknown);
        assert_eq!(
            found.value,
            Value::list(Type::Int, [Value::unknown(Type::Int), Value::Int(1)])
        );
    }
}
