//! Conversion: making a value of one type into one of another.
//!
//! A *safe* conversion succeeds for every value of its source type; an *unsafe* one may fail, and then says where, and
//! never what a sensitive value was.

use std::fmt;

use crate::conformance::plain;
use crate::unify::{is_hole, unify};
use crate::{
    ArgumentError, Field, FunctionSpec, Map, Mark, Path, PathStep, Refinement, Struct, Type, Value, conforms,
    format_float, value_conforms,
};

/// What is wrong with a null where there may be none.
const NULL: &str = "must not be null";

/// Whether a conversion can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Safety {
    /// Every value converts.
    Safe,
    /// It depends on the value.
    Unsafe,
}

/// Why a value does not convert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversionError {
    /// Where in the value.
    pub path: Path,
    /// What is wrong there, without anything of a sensitive value.
    pub message: String,
}

impl ConversionError {
    /// Whether a null stood where none may be.
    #[must_use]
    pub fn is_about_null(&self) -> bool {
        self.message == NULL
    }

    fn new(message: impl Into<String>) -> ConversionError {
        ConversionError {
            path: Path::default(),
            message: message.into(),
        }
    }

    fn none(from: &Type, to: &Type) -> ConversionError {
        ConversionError::new(format!("{from} does not convert to {to}"))
    }

    fn within(mut self, step: PathStep) -> ConversionError {
        self.path.enter(step);
        self
    }

    /// The same as an error of the argument at a position.
    #[must_use]
    pub fn at_argument(self, index: usize) -> ArgumentError {
        ArgumentError {
            path: self.path.to_string(),
            ..ArgumentError::at(index, self.message)
        }
    }
}

impl fmt::Display for ConversionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

impl std::error::Error for ConversionError {}

/// Whether values of type `from` convert to `to`, and whether all of them do. None: not one does. An open place in `to`
/// takes what fits.
#[must_use]
pub fn conversion(from: &Type, to: &Type) -> Option<Safety> {
    use Safety::{Safe, Unsafe};
    let all = |parts: &mut dyn Iterator<Item = Option<Safety>>| {
        parts
            .collect::<Option<Vec<_>>>()
            .map(|all| all.into_iter().max().unwrap_or(Safe))
    };
    match (from, to) {
        _ if from == to => Some(Safe),
        (_, Type::Dynamic | Type::Variable(_)) => Some(Safe),
        (Type::Dynamic | Type::Variable(_), _) => Some(Unsafe),
        (Type::Optional(from), Type::Optional(to)) => conversion(from, to),
        (_, Type::Optional(to)) => conversion(from, to),
        (Type::Optional(from), _) => conversion(from, to).map(|_| Unsafe),
        (Type::Int | Type::Float, Type::Number) | (Type::Int, Type::Float) => Some(Safe),
        (Type::Float | Type::Number, Type::Int) | (Type::Number, Type::Float) => Some(Unsafe),
        (Type::Int | Type::Float | Type::Number | Type::Bool, Type::Str) => Some(Safe),
        (Type::Str, Type::Int | Type::Float | Type::Number | Type::Bool) => Some(Unsafe),
        (Type::List(a), Type::List(b) | Type::Set(b)) | (Type::Set(a), Type::Set(b)) => conversion(a, b),
        (Type::Set(a), Type::List(b)) => conversion(a, b).map(|_| Unsafe),
        (Type::Tuple(types), Type::List(b) | Type::Set(b)) => {
            if is_hole(b) {
                return unify(types).ok().map(|_| Safe);
            }
            all(&mut types.iter().map(|a| conversion(a, b)))
        }
        (Type::List(a), Type::Tuple(types)) => {
            all(&mut types.iter().map(|b| conversion(a, b))).map(|_| Unsafe)
        }
        (Type::Tuple(a), Type::Tuple(b)) if a.len() == b.len() => {
            all(&mut a.iter().zip(b.iter()).map(|(a, b)| conversion(a, b)))
        }
        (Type::Struct(s), Type::Map(kv)) => {
            conversion(&Type::Str, &kv.0).filter(|s| *s == Safe)?;
            if is_hole(&kv.1) {
                return unify(&field_types(s)).ok().map(|_| Safe);
            }
            all(&mut s.fields.iter().map(|f| conversion(&f.ty, &kv.1)))
        }
        (Type::Map(kv), Type::Struct(s)) if kv.0 == Type::Str => {
            all(&mut s.fields.iter().map(|f| conversion(&kv.1, &f.ty))).map(|_| Unsafe)
        }
        (Type::Map(a), Type::Map(b)) => {
            let keys = conversion(&a.0, &b.0)?;
            // Distinct ints may become one float.
            let keys = if a.0 == b.0 || plain(&b.0) == &Type::Str || is_hole(&b.0) {
                keys
            } else {
                Unsafe
            };
            Some(keys.max(conversion(&a.1, &b.1)?))
        }
        (Type::Struct(a), Type::Struct(b)) => {
            all(&mut b.fields.iter().map(|wanted| match a.field(&wanted.name) {
                Some(found) => conversion(found, &wanted.ty),
                None if matches!(wanted.ty, Type::Optional(_)) => Some(Safe),
                None => None,
            }))
        }
        _ => None,
    }
}

/// Whether every value of type `from` converts to `to`.
#[must_use]
pub fn converts_safely(from: &Type, to: &Type) -> bool {
    conversion(from, to) == Some(Safety::Safe)
}

/// The type that converting a value of type `from` to `to` gives: `to` with its open places filled.
#[must_use]
pub fn converted_type(from: &Type, to: &Type) -> Type {
    match (from, to) {
        _ if from == to => from.clone(),
        (_, Type::Dynamic | Type::Variable(_)) => from.clone(),
        (Type::Int | Type::Float, Type::Number) => from.clone(),
        (_, Type::Number) => Type::Number,
        _ if !to.is_open() => to.clone(),
        (Type::Optional(a), Type::Optional(b)) => Type::optional(converted_type(a, b)),
        (a, Type::Optional(b)) => Type::optional(converted_type(a, b)),
        (Type::Optional(a), b) => converted_type(a, b),
        (Type::List(a) | Type::Set(a), Type::List(b)) => Type::list(converted_type(a, b)),
        (Type::List(a) | Type::Set(a), Type::Set(b)) => Type::set(converted_type(a, b)),
        (Type::Tuple(types), Type::List(b)) => Type::list(unified_as(types, b)),
        (Type::Tuple(types), Type::Set(b)) => Type::set(unified_as(types, b)),
        (Type::List(a), Type::Tuple(types)) => Type::tuple(types.iter().map(|b| converted_type(a, b))),
        (Type::Tuple(a), Type::Tuple(b)) => {
            Type::tuple(a.iter().zip(b.iter()).map(|(a, b)| converted_type(a, b)))
        }
        (Type::Struct(s), Type::Map(kv)) => Type::map(
            converted_type(&Type::Str, &kv.0),
            unified_as(&field_types(s), &kv.1),
        ),
        (Type::Map(a), Type::Map(b)) => Type::map(converted_type(&a.0, &b.0), converted_type(&a.1, &b.1)),
        (Type::Map(kv), Type::Struct(s)) => Type::structure(
            s.fields
                .iter()
                .map(|f| (f.name.clone(), converted_type(&kv.1, &f.ty))),
        ),
        (Type::Struct(a), Type::Struct(b)) => Type::structure(b.fields.iter().map(|wanted| {
            let ty = a
                .field(&wanted.name)
                .map_or_else(|| wanted.ty.clone(), |f| converted_type(f, &wanted.ty));
            (wanted.name.clone(), ty)
        })),
        _ => to.clone(),
    }
}

/// Converts a value, safely or not. Marks stay where they are.
///
/// # Errors
/// Where it does not convert, and why.
///
/// ```
/// use setpoint_value::{Type, Value, convert};
/// assert_eq!(convert(&Value::str("42"), &Type::Int), Ok(Value::Int(42)));
/// let error = convert(&Value::strings(["1", "x"]), &Type::list(Type::Int)).unwrap_err();
/// assert_eq!(error.to_string(), "[1]: the str \"x\" is not an int");
/// ```
pub fn convert(value: &Value, to: &Type) -> Result<Value, ConversionError> {
    convert_within(value, to, false)
}

/// Converts a value if every value of its type would convert.
///
/// # Errors
/// When the types have no safe conversion.
pub fn convert_safely(value: &Value, to: &Type) -> Result<Value, ConversionError> {
    let from = value.ty();
    if converts_safely(&from, to) || value.is_null() && matches!(to, Type::Optional(_)) {
        convert(value, to)
    } else {
        Err(ConversionError::none(&from, to))
    }
}

fn convert_within(value: &Value, to: &Type, sensitive: bool) -> Result<Value, ConversionError> {
    if let Value::Marked(inner) = value {
        let sensitive = sensitive || inner.1.contains(&Mark::Sensitive);
        return Ok(convert_within(&inner.0, to, sensitive)?.with_marks(&inner.1));
    }
    if is_hole(to) {
        return Ok(value.clone());
    }
    match (value, to) {
        (Value::Unknown(unknown), _) => {
            if conversion(&unknown.ty, to).is_none() {
                return Err(ConversionError::none(&unknown.ty, to));
            }
            let ty = converted_type(&unknown.ty, to);
            let kept = carried(&unknown.refinement, plain(&unknown.ty), plain(&ty));
            Ok(Value::refined(ty, kept))
        }
        (Value::Null(ty), Type::Optional(inner)) if conversion(plain(ty), inner).is_some() => {
            Ok(Value::Null(to.clone()))
        }
        (Value::Null(ty), Type::Optional(_)) => Err(ConversionError::none(ty, to)),
        (Value::Null(ty), _) if ty == to => Ok(value.clone()),
        (Value::Null(_), _) => Err(ConversionError::new(NULL)),
        (_, Type::Optional(inner)) => convert_within(value, inner, sensitive),
        _ if value.ty() == *to => Ok(value.clone()),
        (Value::Int(_) | Value::Float(_), Type::Number) => Ok(value.clone()),
        (Value::Int(i), Type::Float) => Ok(Value::float(*i as f64)),
        (Value::Float(f), Type::Int) => whole(f.0)
            .map(Value::Int)
            .ok_or_else(|| refused(value, "an int", sensitive)),
        (Value::Bool(b), Type::Str) => Ok(Value::str(if *b { "true" } else { "false" })),
        (Value::Int(i), Type::Str) => Ok(Value::str(i.to_string())),
        (Value::Float(f), Type::Str) => Ok(Value::str(format_float(f.0))),
        (Value::Str(text), Type::Bool) => match text.as_bytes() {
            b"true" | b"1" => Ok(Value::Bool(true)),
            b"false" | b"0" => Ok(Value::Bool(false)),
            _ => Err(refused(value, "a bool", sensitive)),
        },
        (Value::Str(text), Type::Int) => match parse_number(text.as_bytes()) {
            Some(Value::Int(i)) => Ok(Value::Int(i)),
            Some(Value::Float(f)) => whole(f.0)
                .map(Value::Int)
                .ok_or_else(|| refused(value, "an int", sensitive)),
            _ => Err(refused(value, "an int", sensitive)),
        },
        (Value::Str(text), Type::Float) => match parse_number(text.as_bytes()) {
            Some(Value::Int(i)) => Ok(Value::float(i as f64)),
            Some(number) => Ok(number),
            None => Err(refused(value, "a number", sensitive)),
        },
        (Value::Str(text), Type::Number) => {
            parse_number(text.as_bytes()).ok_or_else(|| refused(value, "a number", sensitive))
        }
        _ => convert_container(value, to, sensitive),
    }
}

fn convert_container(value: &Value, to: &Type, sensitive: bool) -> Result<Value, ConversionError> {
    let from = value.ty();
    if conversion(&from, to).is_none() {
        return Err(ConversionError::none(&from, to));
    }
    let ty = converted_type(&from, to);
    match (value, &ty) {
        (Value::List(list), Type::List(element)) => list_of(&mut list.iter(), element, sensitive),
        (Value::Set(set), Type::List(element)) => list_of(&mut set.iter(), element, sensitive),
        (Value::Tuple(tuple), Type::List(element)) => list_of(&mut tuple.iter(), element, sensitive),
        (Value::List(list), Type::Set(element)) => set_of(&mut list.iter(), element, sensitive),
        (Value::Set(set), Type::Set(element)) => set_of(&mut set.iter(), element, sensitive),
        (Value::Tuple(tuple), Type::Set(element)) => set_of(&mut tuple.iter(), element, sensitive),
        (Value::List(list), Type::Tuple(types)) if list.len() != types.len() => {
            let (found, wanted) = (list.len(), types.len());
            let message = format!("a list of {found} does not convert to a tuple of {wanted}");
            Err(ConversionError::new(message))
        }
        (Value::List(list), Type::Tuple(types)) => tuple(&mut list.iter(), types, sensitive),
        (Value::Tuple(items), Type::Tuple(types)) => tuple(&mut items.iter(), types, sensitive),
        (Value::Struct(found), Type::Map(kv)) => struct_to_map(found, kv, sensitive),
        (Value::Map(map), Type::Map(kv)) => map_to_map(map, kv, sensitive),
        (Value::Map(map), Type::Struct(wanted)) => {
            let fields = wanted.fields.iter().map(|f| {
                let key = Value::str(&*f.name);
                let step = || PathStep::Key(hidden_if(sensitive, &key));
                field(map.get(&key), f, step, sensitive)
            });
            let fields = fields.collect::<Result<Vec<Value>, ConversionError>>()?;
            Ok(Value::structure(ty.clone(), fields))
        }
        (Value::Struct(found), Type::Struct(wanted)) => {
            let fields = wanted.fields.iter().map(|f| {
                let step = || PathStep::Field(f.name.clone());
                field(found.get(&f.name), f, step, sensitive)
            });
            let fields = fields.collect::<Result<Vec<Value>, ConversionError>>()?;
            Ok(Value::structure(ty.clone(), fields))
        }
        // Functions and opaque values that conform to an open type.
        _ if value_conforms(value, to).is_ok() => Ok(value.clone()),
        _ => Err(ConversionError::none(&from, to)),
    }
}

fn list_of(
    items: &mut dyn Iterator<Item = &Value>,
    element: &Type,
    sensitive: bool,
) -> Result<Value, ConversionError> {
    elements(items, element, sensitive).map(|(element, items)| Value::list(element, items))
}

fn set_of(
    items: &mut dyn Iterator<Item = &Value>,
    element: &Type,
    sensitive: bool,
) -> Result<Value, ConversionError> {
    elements(items, element, sensitive).map(|(element, items)| Value::set(element, items))
}

/// The converted elements, and the type that they have.
fn elements(
    items: &mut dyn Iterator<Item = &Value>,
    element: &Type,
    sensitive: bool,
) -> Result<(Type, Vec<Value>), ConversionError> {
    let items = items
        .enumerate()
        .map(|(i, v)| convert_within(v, element, sensitive).map_err(|e| e.within(PathStep::Index(i))))
        .collect::<Result<Vec<Value>, ConversionError>>()?;
    Ok(numbers_of_one_type(element, items))
}

/// Values that were converted to `number` as ints, or as floats where one is a float; while one is not known it can be either.
fn numbers_of_one_type(element: &Type, values: Vec<Value>) -> (Type, Vec<Value>) {
    if *element != Type::Number || values.iter().any(|value| value.unmarked().is_unknown()) {
        return (element.clone(), values);
    }
    if values.iter().all(|value| value.ty() == Type::Int) {
        return (Type::Int, values);
    }
    // Every number converts to a float.
    let as_float = |value: Value| convert(&value, &Type::Float).unwrap_or(value);
    (Type::Float, values.into_iter().map(as_float).collect())
}

fn struct_to_map(
    found: &Struct,
    (key, element): &(Type, Type),
    sensitive: bool,
) -> Result<Value, ConversionError> {
    let entries = found.iter().map(|(name, v)| {
        let v = convert_within(v, element, sensitive);
        let v = v.map_err(|e| e.within(PathStep::Field(name.into())))?;
        Ok((Value::str(name), v))
    });
    let entries = entries.collect::<Result<Vec<_>, ConversionError>>()?;
    let (names, values): (Vec<Value>, Vec<Value>) = entries.into_iter().unzip();
    let (element, values) = numbers_of_one_type(element, values);
    Ok(Value::map(key.clone(), element, names.into_iter().zip(values)))
}

fn map_to_map(
    map: &Map,
    (key_type, element): &(Type, Type),
    sensitive: bool,
) -> Result<Value, ConversionError> {
    let entries = map.iter().map(|(key, v)| {
        let step = || PathStep::Key(hidden_if(sensitive, key));
        let new = convert_within(key, key_type, sensitive).map_err(|e| e.within(step()))?;
        let v = convert_within(v, element, sensitive).map_err(|e| e.within(step()))?;
        Ok((new, v))
    });
    let entries = entries.collect::<Result<Vec<_>, ConversionError>>()?;
    let count = entries.len();
    let (keys, values): (Vec<Value>, Vec<Value>) = entries.into_iter().unzip();
    let (element, values) = numbers_of_one_type(element, values);
    let converted = Value::map(key_type.clone(), element, keys.into_iter().zip(values));
    if converted.as_map().is_some_and(|m| m.len() != count) {
        return Err(ConversionError::new(format!("two keys become one as {key_type}")));
    }
    Ok(converted)
}

/// The value of a field of a struct, converted from what stands in its place, if anything does.
fn field(
    found: Option<&Value>,
    wanted: &Field,
    step: impl FnOnce() -> PathStep,
    sensitive: bool,
) -> Result<Value, ConversionError> {
    match found {
        Some(v) => convert_within(v, &wanted.ty, sensitive).map_err(|e| e.within(step())),
        None => missing(&wanted.name, &wanted.ty),
    }
}

fn tuple(
    items: &mut dyn Iterator<Item = &Value>,
    types: &[Type],
    sensitive: bool,
) -> Result<Value, ConversionError> {
    let converted = items
        .zip(types)
        .enumerate()
        .map(|(i, (v, t))| convert_within(v, t, sensitive).map_err(|e| e.within(PathStep::Index(i))));
    Ok(Value::Tuple(converted.collect::<Result<_, _>>()?))
}

fn missing(name: &str, ty: &Type) -> Result<Value, ConversionError> {
    match ty {
        Type::Optional(_) => Ok(Value::Null(ty.clone())),
        _ => Err(ConversionError::new(format!("`{name}` is missing"))),
    }
}

fn hidden_if(sensitive: bool, key: &Value) -> Value {
    if sensitive {
        key.clone().sensitive()
    } else {
        key.clone()
    }
}

fn refused(value: &Value, wanted: &str, sensitive: bool) -> ConversionError {
    let ty = value.ty();
    let text = value.to_string();
    // A long text in a message hides the message.
    if sensitive || text.len() > 60 {
        ConversionError::new(format!("this {ty} is not {wanted}"))
    } else {
        ConversionError::new(format!("the {ty} {text} is not {wanted}"))
    }
}

/// A number in decimal: an int if it is written as one and fits, else a float. Neither blanks, nor `inf` or `nan`.
#[must_use]
pub fn parse_number(text: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(text).ok()?;
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        || !digits
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'))
    {
        return None;
    }
    if let Ok(int) = text.parse::<i64>() {
        return Some(Value::Int(int));
    }
    text.parse::<f64>()
        .ok()
        .filter(|f| f.is_finite())
        .map(Value::float)
}

/// The int that a float is exactly.
#[must_use]
pub fn whole(float: f64) -> Option<i64> {
    let in_range = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float);
    (in_range && float.trunc() == float).then_some(float as i64)
}

/// What of a refinement still holds after a conversion.
fn carried(refinement: &Refinement, from: &Type, to: &Type) -> Refinement {
    let mut kept = Refinement {
        not_null: refinement.not_null,
        ..Refinement::default()
    };
    let number = |ty: &Type| matches!(ty, Type::Int | Type::Float | Type::Number);
    if from == to && *to == Type::Str {
        kept.prefix = refinement.prefix.clone();
    }
    if number(from) && number(to) {
        kept.lower = refinement.lower;
        kept.upper = refinement.upper;
    }
    match (from, to) {
        (Type::List(_) | Type::Set(_), Type::List(_)) | (Type::Map(_), Type::Map(_)) => {
            kept.minimum_length = refinement.minimum_length;
            kept.maximum_length = refinement.maximum_length;
        }
        (Type::List(_) | Type::Set(_), Type::Set(_)) => {
            kept.minimum_length = refinement.minimum_length.map(|n| n.min(1));
            kept.maximum_length = refinement.maximum_length;
        }
        (Type::Tuple(types), Type::List(_)) => {
            kept.minimum_length = Some(types.len());
            kept.maximum_length = Some(types.len());
        }
        (Type::Tuple(types), Type::Set(_)) => {
            kept.minimum_length = Some(types.len().min(1));
            kept.maximum_length = Some(types.len());
        }
        (Type::Struct(fields), Type::Map(_)) => {
            kept.minimum_length = Some(fields.fields.len());
            kept.maximum_length = Some(fields.fields.len());
        }
        _ => {}
    }
    kept
}

fn field_types(s: &crate::StructType) -> Vec<Type> {
    s.fields.iter().map(|f| f.ty.clone()).collect()
}

/// The element type of a collection made of parts of these types, for an element constraint.
fn unified_as(types: &[Type], element: &Type) -> Type {
    let converted: Vec<Type> = types.iter().map(|ty| converted_type(ty, element)).collect();
    unify(&converted).unwrap_or_else(|_| element.clone())
}

/// Converts arguments safely to the types of the parameters, where they differ and that is possible. What is not is left
/// for the call to refuse.
#[must_use]
pub fn convert_arguments(spec: &FunctionSpec, arguments: &[Value]) -> Vec<Value> {
    let candidates = || {
        spec.alternatives()
            .iter()
            .filter(|s| s.accepts_count(arguments.len()))
    };
    let types: Vec<Option<Type>> = arguments
        .iter()
        .map(|argument| (!argument.is_null()).then(|| argument.ty()))
        .collect();
    // What fits without conversion is not converted.
    if candidates().any(|signature| signature.takes(&types)) {
        return arguments.to_vec();
    }
    // Where a list of any elements is taken, elements of different types keep them.
    let listed: Vec<Value> = arguments.iter().map(as_list_of_anything).collect();
    let changed = arguments
        .iter()
        .zip(&listed)
        .map(|(before, after)| before.ty() != after.ty());
    let changed: Vec<bool> = changed.collect();
    let takes_any = |signature: &&crate::Signature| {
        let mut parameters = changed.iter().enumerate().filter(|(_, changed)| **changed);
        parameters.all(|(index, _)| signature.parameter(index).is_some_and(|p| p.ty.is_open()))
    };
    let types: Vec<Option<Type>> = listed
        .iter()
        .map(|argument| (!argument.is_null()).then(|| argument.ty()))
        .collect();
    if candidates()
        .filter(takes_any)
        .any(|signature| signature.takes(&types))
    {
        return listed;
    }
    let mut nearest = None;
    for signature in candidates() {
        let mut all = true;
        let mut convert_one = |(index, argument): (usize, &Value)| {
            let wanted = signature.parameter(index).map_or(&Type::Dynamic, |p| &p.ty);
            let ty = argument.ty();
            if argument.is_null() || conforms(&ty, wanted).is_ok() {
                return argument.clone();
            }
            let converted = converts_safely(&ty, wanted)
                .then(|| convert(argument, wanted).ok())
                .flatten();
            all &= converted.is_some();
            converted.unwrap_or_else(|| argument.clone())
        };
        let converted: Vec<Value> = arguments.iter().enumerate().map(&mut convert_one).collect();
        if all {
            return converted;
        }
        nearest.get_or_insert(converted);
    }
    nearest.unwrap_or_else(|| arguments.to_vec())
}

/// A list or tuple as a list whose elements need not be of one type; everything else unchanged.
fn as_list_of_anything(value: &Value) -> Value {
    let (plain, marks) = value.unmark();
    match plain {
        Value::Tuple(items) => Value::list(Type::Dynamic, items.iter().cloned()).with_marks(&marks),
        Value::List(items) => Value::list(Type::Dynamic, items.iter().cloned()).with_marks(&marks),
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ty(text: &str) -> Type {
        Type::parse(text).unwrap()
    }

    fn error(value: &Value, to: &str) -> String {
        convert(value, &ty(to)).unwrap_err().to_string()
    }

    #[test]
    fn scalars_convert_as_the_table_says() {
        let ok = |v: Value, to: &str| convert(&v, &ty(to)).unwrap();
        assert_eq!(ok(Value::Int(-7), "str"), Value::str("-7"));
        assert_eq!(ok(Value::float(1.5), "str"), Value::str("1.5"));
        assert_eq!(ok(Value::Bool(true), "str"), Value::str("true"));
        assert_eq!(ok(Value::str("0"), "bool"), Value::Bool(false));
        assert_eq!(ok(Value::str("1e3"), "int"), Value::Int(1000));
        assert_eq!(ok(Value::str("1.25"), "number"), Value::float(1.25));
        assert_eq!(ok(Value::str("12"), "number"), Value::Int(12));
        assert_eq!(ok(Value::float(4.0), "int"), Value::Int(4));
        assert_eq!(error(&Value::float(4.5), "int"), "the float 4.5 is not an int");
        assert_eq!(error(&Value::str("yes"), "bool"), "the str \"yes\" is not a bool");
        assert_eq!(
            error(&Value::str("inf"), "float"),
            "the str \"inf\" is not a number"
        );
        assert_eq!(error(&Value::Int(1), "bool"), "int does not convert to bool");
        assert_eq!(
            error(&Value::Bool(true), "number"),
            "bool does not convert to number"
        );
    }

    #[test]
    fn collections_of_numbers_have_one_type() {
        let of = |parts: &[Value]| Value::tuple(parts.iter().cloned());
        let numbers = |parts: &[Value], to: &str| convert(&of(parts), &ty(to)).unwrap();
        let (five, twelve) = (Value::Int(5), Value::str("12"));
        let ints = Value::list(Type::Int, [five.clone(), Value::Int(12)]);
        assert_eq!(numbers(&[five.clone(), twelve.clone()], "[]number"), ints);
        let floats = Value::list(Type::Float, [Value::float(5.0), Value::float(1.5)]);
        assert_eq!(numbers(&[five.clone(), Value::str("1.5")], "[]number"), floats);
        let fields = Value::object([("a", five.clone()), ("b", twelve)]);
        let map = convert(&fields, &ty("map{str: number}")).unwrap();
        assert_eq!(map.ty(), ty("map{str: int}"));
        let open = numbers(&[five, Value::unknown(Type::Str)], "[]number");
        assert_eq!(open.ty(), ty("[]number"));
    }

    #[test]
    fn an_unknown_of_known_size_keeps_it() {
        let size = |from: &str, to: &str| {
            let converted = convert(&Value::unknown(ty(from)), &ty(to)).unwrap();
            crate::length_range(&converted)
        };
        assert_eq!(size("tuple(str, str)", "[]str"), Some((2, Some(2))));
        assert_eq!(size("tuple(str, str)", "set{str}"), Some((1, Some(2))));
        assert_eq!(size("tuple()", "set{str}"), Some((0, Some(0))));
        assert_eq!(size("struct{a str}", "map{str: str}"), Some((1, Some(1))));
        assert_eq!(size("[]str", "set{str}"), Some((0, None)));
    }

    #[test]
    fn containers_convert_element_by_element() {
        let tuple = Value::tuple([Value::Int(1), Value::str("x"), Value::Bool(true)]);
        let list = convert(&tuple, &ty("[]dynamic")).unwrap();
        assert_eq!(list, Value::strings(["1", "x", "true"]));
        let object = Value::object([("b", Value::Int(1)), ("a", Value::float(2.5))]);
        let map = convert(&object, &ty("map{str: dynamic}")).unwrap();
        assert_eq!(map.to_string(), r#"{"a": 2.5, "b": 1}"#);
        assert_eq!(map.ty(), ty("map{str: float}"));
        let back = convert(&map, &ty("struct{a str; c int?}")).unwrap();
        assert_eq!(back.to_string(), r#"struct{a: "2.5"; c: null}"#);
        assert_eq!(error(&map, "struct{z int}"), "`z` is missing");
        let set = convert(&Value::strings(["b", "a", "b"]), &ty("set{str}")).unwrap();
        assert_eq!(convert(&set, &ty("[]str")).unwrap(), Value::strings(["a", "b"]));
        assert_eq!(
            error(&Value::strings(["a"]), "tuple(str, str)"),
            "a list of 1 does not convert to a tuple of 2"
        );
    }

    #[test]
    fn errors_say_where_and_hide_what_is_sensitive() {
        let value = Value::object([(
            "a",
            Value::list(Type::Str, [Value::str("1"), Value::str("canary")]),
        )]);
        let to = "struct{a []int}";
        assert_eq!(error(&value, to), r#".a[1]: the str "canary" is not an int"#);
        assert_eq!(error(&value.sensitive(), to), ".a[1]: this str is not an int");
        let map = Value::map(
            Type::Str,
            Type::Str,
            [(Value::str("canary"), Value::str("canary"))],
        )
        .sensitive();
        assert_eq!(
            error(&map, "map{str: int}"),
            "[(sensitive)]: this str is not an int"
        );
    }

    #[test]
    fn unknowns_become_unknowns_that_keep_what_still_holds() {
        let bounded = Value::refined(
            Type::Int,
            Refinement::default().with_lower(crate::Bound::inclusive(1.0)),
        );
        let float = convert(&bounded, &Type::Float).unwrap();
        assert_eq!(
            float.as_unknown().unwrap().refinement.lower,
            Some(crate::Bound::inclusive(1.0))
        );
        let text = convert(&bounded, &Type::Str).unwrap();
        assert_eq!(text.as_unknown().unwrap().refinement, Refinement::not_null());
        assert_eq!(
            convert(&Value::unknown(Type::Dynamic), &Type::Int).unwrap(),
            Value::unknown(Type::Int)
        );
        assert!(convert(&Value::unknown(Type::Bool), &Type::Int).is_err());
        let tuple = Value::unknown(ty("tuple(int, str)"));
        assert_eq!(
            convert(&tuple, &ty("[]dynamic")).unwrap().to_string(),
            "(unknown []str)"
        );
    }
}
