//! Types, their spelling, and their predicates.
//!
//! A type is a small enum over shared parts, so that a clone is a reference count and comparing a type with itself is a
//! pointer comparison: parts are compared by address first and by structure only when the addresses differ. That
//! keeps the promise of interning without a table that all threads share.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The type of a value, or a constraint on types.
///
/// ```
/// use setpoint_value::Type;
/// let ty = Type::parse("func(map{str: []?7}, ?7) struct{a int; b ?7}").unwrap();
/// assert_eq!(ty.to_string(), "func(map{str: []?1}, ?1) struct{a int; b ?1}");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Type {
    /// True or false.
    Bool,
    /// Bytes, normally UTF-8.
    Str,
    /// 64 bits, signed.
    Int,
    /// 64 bits, IEEE 754.
    Float,
    /// In a constraint any type at all; on a value, a type that is not known yet.
    Dynamic,
    /// A constraint that int and float satisfy.
    Number,
    /// A variable of a signature or of inference.
    Variable(u32),
    /// Elements of one type, in order.
    List(Arc<Type>),
    /// Distinct elements of one type.
    Set(Arc<Type>),
    /// Keys of one type to values of one type.
    Map(Arc<(Type, Type)>),
    /// As many values as types, in order.
    Tuple(Arc<[Type]>),
    /// Named fields, in order.
    Struct(Arc<StructType>),
    /// A function.
    Func(Arc<FuncType>),
    /// The type, or null.
    Optional(Arc<Type>),
    /// Something of the application's, known by a name.
    Opaque(Arc<str>),
}

/// The fields of a struct type; their order is part of the type.
#[derive(Clone)]
pub struct StructType {
    /// In declared order, names distinct.
    pub fields: Box<[Field]>,
    /// The positions of the fields in the order of their names; empty where there are few.
    by_name: Box<[u32]>,
}

/// Up to so many fields are looked through one by one.
const FEW_FIELDS: usize = 16;

/// A field of a struct type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Field {
    /// Its name.
    pub name: Arc<str>,
    /// Its type.
    pub ty: Type,
}

/// Parameters and result of a function type. Parameter names are documentation: they do not count in equality.
#[derive(Debug, Clone)]
pub struct FuncType {
    /// In order.
    pub parameters: Vec<FuncParameter>,
    /// What a call gives.
    pub result: Type,
}

/// A parameter of a function type.
#[derive(Debug, Clone)]
pub struct FuncParameter {
    /// Its name; the position in decimal where none was written.
    pub name: Arc<str>,
    /// Its type.
    pub ty: Type,
}

impl PartialEq for FuncType {
    fn eq(&self, other: &FuncType) -> bool {
        self.result == other.result
            && self.parameters.len() == other.parameters.len()
            && self
                .parameters
                .iter()
                .zip(&other.parameters)
                .all(|(a, b)| a.ty == b.ty)
    }
}

impl Eq for FuncType {}

impl Hash for FuncType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for parameter in &self.parameters {
            parameter.ty.hash(state);
        }
        self.result.hash(state);
    }
}

impl StructType {
    fn new(fields: Box<[Field]>) -> StructType {
        let mut by_name: Box<[u32]> = match fields.len() {
            ..=FEW_FIELDS => Box::default(),
            many => (0..many as u32).collect(),
        };
        by_name.sort_by_key(|position| &fields[*position as usize].name);
        StructType { fields, by_name }
    }

    /// The position of a field.
    #[must_use]
    pub fn index(&self, name: &str) -> Option<usize> {
        if self.fields.len() <= FEW_FIELDS {
            return self.fields.iter().position(|f| &*f.name == name);
        }
        let name_at = |position: &u32| &*self.fields[*position as usize].name;
        let found = self
            .by_name
            .binary_search_by(|position| name_at(position).cmp(name));
        found.ok().map(|found| self.by_name[found] as usize)
    }

    /// The type of a field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Type> {
        self.index(name).map(|position| &self.fields[position].ty)
    }
}

impl fmt::Debug for StructType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StructType").field(&self.fields).finish()
    }
}

impl PartialEq for StructType {
    fn eq(&self, other: &StructType) -> bool {
        self.fields == other.fields
    }
}

impl Eq for StructType {}

impl Hash for StructType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fields.hash(state);
    }
}

impl Type {
    /// `[]element`.
    #[must_use]
    pub fn list(element: Type) -> Type {
        Type::List(Arc::new(element))
    }

    /// `set{element}`.
    #[must_use]
    pub fn set(element: Type) -> Type {
        Type::Set(Arc::new(element))
    }

    /// `map{key: value}`.
    #[must_use]
    pub fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new((key, value)))
    }

    /// `tuple(…)`.
    #[must_use]
    pub fn tuple(elements: impl IntoIterator<Item = Type>) -> Type {
        Type::Tuple(elements.into_iter().collect())
    }

    /// `struct{name type; …}`. The names must be distinct.
    #[must_use]
    pub fn structure<N: Into<Arc<str>>>(fields: impl IntoIterator<Item = (N, Type)>) -> Type {
        let fields = fields
            .into_iter()
            .map(|(name, ty)| Field {
                name: name.into(),
                ty,
            })
            .collect();
        Type::Struct(Arc::new(StructType::new(fields)))
    }

    /// `func(name type, …) result`.
    #[must_use]
    pub fn func<N: Into<Arc<str>>>(parameters: impl IntoIterator<Item = (N, Type)>, result: Type) -> Type {
        let parameters = parameters
            .into_iter()
            .map(|(name, ty)| FuncParameter {
                name: name.into(),
                ty,
            })
            .collect();
        Type::Func(Arc::new(FuncType { parameters, result }))
    }

    /// `type?`.
    #[must_use]
    pub fn optional(ty: Type) -> Type {
        Type::Optional(Arc::new(ty))
    }

    /// The type of a list's or set's elements.
    #[must_use]
    pub fn element(&self) -> Option<&Type> {
        match self {
            Type::List(element) | Type::Set(element) => Some(element),
            _ => None,
        }
    }

    /// The struct type, if it is one.
    #[must_use]
    pub fn as_struct(&self) -> Option<&StructType> {
        match self {
            Type::Struct(ty) => Some(ty),
            _ => None,
        }
    }

    /// The function type, if it is one.
    #[must_use]
    pub fn as_func(&self) -> Option<&FuncType> {
        match self {
            Type::Func(ty) => Some(ty),
            _ => None,
        }
    }

    /// The word for the outermost form, for messages: `int`, `list`, `func`.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        match self {
            Type::Bool => "bool",
            Type::Str => "str",
            Type::Int => "int",
            Type::Float => "float",
            Type::Dynamic => "dynamic",
            Type::Number => "number",
            Type::Variable(_) => "unknown type",
            Type::List(_) => "list",
            Type::Set(_) => "set",
            Type::Map(_) => "map",
            Type::Tuple(_) => "tuple",
            Type::Struct(_) => "struct",
            Type::Func(_) => "func",
            Type::Optional(_) => "optional",
            Type::Opaque(_) => "opaque",
        }
    }

    /// Visits what it is directly made of.
    pub fn for_each_part(&self, visit: &mut dyn FnMut(&Type)) {
        match self {
            Type::List(part) | Type::Set(part) | Type::Optional(part) => visit(part),
            Type::Map(parts) => {
                visit(&parts.0);
                visit(&parts.1);
            }
            Type::Tuple(parts) => parts.iter().for_each(visit),
            Type::Struct(of) => of.fields.iter().for_each(|field| visit(&field.ty)),
            Type::Func(of) => {
                of.parameters.iter().for_each(|parameter| visit(&parameter.ty));
                visit(&of.result);
            }
            Type::Bool
            | Type::Str
            | Type::Int
            | Type::Float
            | Type::Dynamic
            | Type::Number
            | Type::Variable(_)
            | Type::Opaque(_) => {}
        }
    }

    /// Visits what two types are directly made of, side by side; fails at the first part that the other type does not have.
    pub fn zip<E: From<FormMismatch>>(
        &self,
        other: &Type,
        visit: &mut dyn FnMut(&Type, &Type) -> Result<(), E>,
    ) -> Result<(), E> {
        match (self, other) {
            (Type::List(a), Type::List(b))
            | (Type::Set(a), Type::Set(b))
            | (Type::Optional(a), Type::Optional(b)) => visit(a, b),
            (Type::Map(a), Type::Map(b)) => {
                visit(&a.0, &b.0)?;
                visit(&a.1, &b.1)
            }
            (Type::Tuple(a), Type::Tuple(b)) if a.len() == b.len() => {
                a.iter().zip(b.iter()).try_for_each(|(a, b)| visit(a, b))
            }
            (Type::Struct(a), Type::Struct(b)) => {
                if a.fields.len() != b.fields.len() {
                    return Err(FormMismatch::FieldCount.into());
                }
                a.fields.iter().zip(&b.fields).try_for_each(|(a, b)| {
                    if a.name != b.name {
                        return Err(FormMismatch::FieldNames.into());
                    }
                    visit(&a.ty, &b.ty)
                })
            }
            (Type::Func(a), Type::Func(b)) => {
                if a.parameters.len() != b.parameters.len() {
                    return Err(FormMismatch::ParameterCount.into());
                }
                let mut pairs = a.parameters.iter().zip(&b.parameters);
                pairs.try_for_each(|(a, b)| visit(&a.ty, &b.ty))?;
                visit(&a.result, &b.result)
            }
            (a, b) if a == b => Ok(()),
            _ => Err(FormMismatch::Kinds.into()),
        }
    }

    /// Whether `test` holds for this type or any part of it.
    pub fn any_part(&self, test: &mut dyn FnMut(&Type) -> bool) -> bool {
        let mut holds = test(self);
        if !holds {
            self.for_each_part(&mut |part| holds = holds || part.any_part(test));
        }
        holds
    }

    /// The type with each part replaced for which `replace` answers one, outermost first.
    #[must_use]
    pub fn replace(&self, replace: &mut dyn FnMut(&Type) -> Option<Type>) -> Type {
        replace(self).unwrap_or_else(|| self.map_parts(&mut |part| part.replace(replace)))
    }

    /// The type with each of the parts that it is directly made of replaced.
    #[must_use]
    pub fn map_parts(&self, replace: &mut dyn FnMut(&Type) -> Type) -> Type {
        match self {
            Type::List(part) => Type::list(replace(part)),
            Type::Set(part) => Type::set(replace(part)),
            Type::Optional(part) => Type::optional(replace(part)),
            Type::Map(parts) => Type::map(replace(&parts.0), replace(&parts.1)),
            Type::Tuple(parts) => Type::tuple(parts.iter().map(replace)),
            Type::Struct(of) => Type::structure(
                of.fields
                    .iter()
                    .map(|field| (field.name.clone(), replace(&field.ty))),
            ),
            Type::Func(of) => {
                let parameters = of.parameters.iter();
                let parameters = parameters.map(|parameter| (parameter.name.clone(), replace(&parameter.ty)));
                let parameters: Vec<_> = parameters.collect();
                Type::func(parameters, replace(&of.result))
            }
            Type::Bool
            | Type::Str
            | Type::Int
            | Type::Float
            | Type::Dynamic
            | Type::Number
            | Type::Variable(_)
            | Type::Opaque(_) => self.clone(),
        }
    }

    /// Whether a variable, `dynamic` or `number` is left in it.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.any_part(&mut |t| matches!(t, Type::Variable(_) | Type::Dynamic | Type::Number))
    }

    /// Whether a function is anywhere inside; such values cannot be compared, nor be map keys.
    #[must_use]
    pub fn contains_func(&self) -> bool {
        self.any_part(&mut |t| matches!(t, Type::Func(_)))
    }

    /// Parses the form of signatures, with the further spellings `set{T}`, `tuple(T, U)`, `T?`,
    /// `dynamic`, `number` and `opaque(name)`. Types nest at most 100 deep.
    #[must_use]
    pub fn parse(text: &str) -> Option<Type> {
        parse(text, DEEPEST)
    }
}

/// How the outermost forms of two types differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormMismatch {
    /// One is of another kind than the other.
    Kinds,
    /// Functions with different numbers of parameters.
    ParameterCount,
    /// Structs with different numbers of fields.
    FieldCount,
    /// Structs with other names or another order of fields.
    FieldNames,
}

/// Types that nest deeper than this are not read.
const DEEPEST: usize = 100;

/// Reads a type; `depth` is how deep its parts may still nest. Each level reads its text once more, so that the depth bounds
/// the time as well as the stack.
fn parse(text: &str, depth: usize) -> Option<Type> {
    let depth = depth.checked_sub(1)?;
    match text {
        "bool" => return Some(Type::Bool),
        "str" => return Some(Type::Str),
        "int" => return Some(Type::Int),
        "float" => return Some(Type::Float),
        "dynamic" => return Some(Type::Dynamic),
        "number" => return Some(Type::Number),
        _ => {}
    }
    if let Some(rest) = text.strip_prefix("func(") {
        return parse_func(rest, depth);
    }
    if let Some(inner) = text.strip_suffix('?') {
        return parse(inner, depth).map(Type::optional);
    }
    if let Some(element) = text.strip_prefix("[]") {
        return parse(element, depth).map(Type::list);
    }
    if let Some(inner) = text.strip_prefix("map{").and_then(|t| t.strip_suffix('}')) {
        let colon = split_points(inner, b':').pop()?;
        let (key, value) = (inner[..colon].trim(), inner[colon + 1..].trim());
        return Some(Type::map(parse(key, depth)?, parse(value, depth)?));
    }
    if let Some(inner) = text.strip_prefix("set{").and_then(|t| t.strip_suffix('}')) {
        return parse(inner.trim(), depth).map(Type::set);
    }
    if let Some(inner) = text.strip_prefix("tuple(").and_then(|t| t.strip_suffix(')')) {
        let parts = split(inner, b',');
        let types = parts
            .iter()
            .filter(|p| !p.is_empty())
            .map(|p| parse(p, depth))
            .collect::<Option<Vec<_>>>()?;
        return Some(Type::tuple(types));
    }
    if let Some(inner) = text.strip_prefix("struct{").and_then(|t| t.strip_suffix('}')) {
        return parse_struct(inner, depth);
    }
    if let Some(name) = text.strip_prefix("opaque(").and_then(|t| t.strip_suffix(')')) {
        return Some(Type::Opaque(name.into()));
    }
    let digits = text.strip_prefix('?')?;
    if digits.starts_with('0') || digits.starts_with('+') {
        return None;
    }
    digits.parse().ok().map(Type::Variable)
}

fn parse_struct(inner: &str, depth: usize) -> Option<Type> {
    let mut pieces = split(inner, b';');
    if pieces.last().is_some_and(|p| p.is_empty()) {
        pieces.pop();
    }
    let mut fields: Vec<(Arc<str>, Type)> = Vec::new();
    for piece in pieces {
        let (name, ty) = piece.split_once(' ')?;
        if name.is_empty() || fields.iter().any(|(n, _)| &**n == name) {
            return None;
        }
        fields.push((name.into(), parse(ty, depth)?));
    }
    Some(Type::structure(fields))
}

fn parse_func(rest: &str, depth: usize) -> Option<Type> {
    let close = closing(rest)?;
    let (inner, result) = (&rest[..close], rest[close + 1..].trim());
    let mut parameters: Vec<(Arc<str>, Type)> = Vec::new();
    if !inner.trim().is_empty() {
        for (index, piece) in split(inner, b',').into_iter().enumerate() {
            let (name, ty) = match piece.find([' ', ',', '{', '(']) {
                Some(at) if piece.as_bytes()[at] == b' ' => (piece[..at].into(), piece[at + 1..].trim()),
                _ => (index.to_string().into(), piece),
            };
            if parameters.iter().any(|(n, _): &(Arc<str>, Type)| *n == name) {
                return None;
            }
            parameters.push((name, parse(ty, depth)?));
        }
    }
    Some(Type::func(parameters, parse(result, depth)?))
}

/// Where the bracket that is open at the beginning of `text` closes.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (i, b) in text.bytes().enumerate() {
        match b {
            b'(' | b'{' => depth += 1,
            b')' | b'}' if depth == 0 => return Some(i),
            b')' | b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Where `separator` stands outside all brackets.
fn split_points(text: &str, separator: u8) -> Vec<usize> {
    let mut depth = 0i32;
    let mut points = Vec::new();
    for (i, b) in text.bytes().enumerate() {
        match b {
            b'(' | b'{' => depth += 1,
            b')' | b'}' => depth -= 1,
            b if b == separator && depth == 0 => points.push(i),
            _ => {}
        }
    }
    points
}

fn split(text: &str, separator: u8) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for point in split_points(text, separator) {
        parts.push(text[start..point].trim());
        start = point + 1;
    }
    parts.push(text[start..].trim());
    parts
}

impl fmt::Display for Type {
    /// The canonical spelling; variables are numbered in the order of their first appearance.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_type(self, &mut HashMap::new(), f)
    }
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn write_type(ty: &Type, names: &mut HashMap<u32, usize>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match ty {
        Type::Variable(v) => {
            let next = names.len() + 1;
            write!(f, "?{}", names.entry(*v).or_insert(next))
        }
        Type::List(t) => {
            f.write_str("[]")?;
            write_type(t, names, f)
        }
        Type::Set(t) => {
            f.write_str("set{")?;
            write_type(t, names, f)?;
            f.write_str("}")
        }
        Type::Map(kv) => {
            f.write_str("map{")?;
            write_type(&kv.0, names, f)?;
            f.write_str(": ")?;
            write_type(&kv.1, names, f)?;
            f.write_str("}")
        }
        Type::Tuple(types) => {
            f.write_str("tuple(")?;
            for (i, t) in types.iter().enumerate() {
                f.write_str(if i == 0 { "" } else { ", " })?;
                write_type(t, names, f)?;
            }
            f.write_str(")")
        }
        Type::Struct(s) => {
            f.write_str("struct{")?;
            for (i, field) in s.fields.iter().enumerate() {
                write!(f, "{}{} ", if i == 0 { "" } else { "; " }, field.name)?;
                write_type(&field.ty, names, f)?;
            }
            f.write_str("}")
        }
        Type::Func(func) => {
            f.write_str("func(")?;
            for (i, p) in func.parameters.iter().enumerate() {
                f.write_str(if i == 0 { "" } else { ", " })?;
                // A parameter without a name is known by its position, which nobody wrote.
                if !p.name.starts_with(|c: char| c.is_ascii_digit()) {
                    write!(f, "{} ", p.name)?;
                }
                write_type(&p.ty, names, f)?;
            }
            f.write_str(") ")?;
            write_type(&func.result, names, f)
        }
        Type::Optional(t) => {
            write_type(t, names, f)?;
            f.write_str("?")
        }
        Type::Opaque(name) => write!(f, "opaque({name})"),
        Type::Bool | Type::Str | Type::Int | Type::Float | Type::Dynamic | Type::Number => {
            f.write_str(ty.kind_name())
        }
    }
}

#[cfg(test)]
mod tests;
