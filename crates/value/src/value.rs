//! Values: immutable, shared, cheap to clone.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::{CallError, MapKey, Mark, Marks, Refinement, Type, Unknown};

/// A datum of any of the languages.
///
/// `==` and `Hash` mean *identical*: floats by their bits, functions by identity, marks and unknowns included. They
/// drive change detection. What the languages call equal is [`crate::equals`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Value {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A floating-point number.
    Float(FloatBits),
    /// Bytes, normally UTF-8.
    Str(Str),
    /// A list.
    List(List),
    /// A map.
    Map(Map),
    /// A set.
    Set(Set),
    /// A tuple.
    Tuple(Arc<[Value]>),
    /// A struct.
    Struct(Struct),
    /// A function value.
    Func(Func),
    /// The absent value of a type.
    Null(Type),
    /// A value that will be known later.
    Unknown(Arc<Unknown>),
    /// Something of the application's.
    Opaque(Opaque),
    /// A value with marks. Never directly inside another one, and the marks are never empty.
    Marked(Arc<(Value, Marks)>),
}

/// A float whose equality and hash go by its bits.
#[derive(Clone, Copy)]
pub struct FloatBits(pub f64);

impl PartialEq for FloatBits {
    fn eq(&self, other: &FloatBits) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for FloatBits {}

impl Hash for FloatBits {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// Shared bytes that remember whether they are UTF-8.
#[derive(Clone)]
pub struct Str {
    bytes: Arc<[u8]>,
    utf8: bool,
}

impl Str {
    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The text, when the bytes are UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        // The flag makes the refusal cheap; the check of valid text is a linear scan that vectorises well.
        if self.utf8 {
            std::str::from_utf8(&self.bytes).ok()
        } else {
            None
        }
    }

    /// The text, with `�` for what is not UTF-8.
    #[must_use]
    pub fn to_lossy(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The shared bytes.
    #[must_use]
    pub fn shared(&self) -> Arc<[u8]> {
        self.bytes.clone()
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Str {
        Str {
            bytes: text.as_bytes().into(),
            utf8: true,
        }
    }
}

impl From<String> for Str {
    fn from(text: String) -> Str {
        Str {
            bytes: text.into_bytes().into(),
            utf8: true,
        }
    }
}

impl From<&[u8]> for Str {
    fn from(bytes: &[u8]) -> Str {
        Str {
            utf8: std::str::from_utf8(bytes).is_ok(),
            bytes: bytes.into(),
        }
    }
}

impl From<Vec<u8>> for Str {
    fn from(bytes: Vec<u8>) -> Str {
        Str {
            utf8: std::str::from_utf8(&bytes).is_ok(),
            bytes: bytes.into(),
        }
    }
}

impl From<Arc<[u8]>> for Str {
    fn from(bytes: Arc<[u8]>) -> Str {
        Str {
            utf8: std::str::from_utf8(&bytes).is_ok(),
            bytes,
        }
    }
}

impl PartialEq for Str {
    fn eq(&self, other: &Str) -> bool {
        Arc::ptr_eq(&self.bytes, &other.bytes) || self.bytes == other.bytes
    }
}

impl Eq for Str {}

impl Hash for Str {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes.hash(state);
    }
}

impl PartialOrd for Str {
    fn partial_cmp(&self, other: &Str) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Str {
    fn cmp(&self, other: &Str) -> std::cmp::Ordering {
        self.bytes.cmp(&other.bytes)
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::quote(&self.bytes))
    }
}

/// A list. A changed copy shares all but the path to what changed, so that finding a difference between two versions
/// is comparing addresses of chunks.
#[derive(Clone)]
pub struct List(Arc<ListData>);

struct ListData {
    element: Type,
    items: imbl::Vector<Value>,
}

impl List {
    /// A list of these items, each of type `element`.
    #[must_use]
    pub fn new(element: Type, items: impl IntoIterator<Item = Value>) -> List {
        List(Arc::new(ListData {
            element,
            items: items.into_iter().collect(),
        }))
    }

    /// A list over an existing persistent vector.
    #[must_use]
    pub fn from_vector(element: Type, items: imbl::Vector<Value>) -> List {
        List(Arc::new(ListData { element, items }))
    }

    /// The type of the elements.
    #[must_use]
    pub fn element_type(&self) -> &Type {
        &self.0.element
    }

    /// The persistent vector behind it.
    #[must_use]
    pub fn items(&self) -> &imbl::Vector<Value> {
        &self.0.items
    }

    /// The elements.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator {
        self.0.items.iter()
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.items.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.items.is_empty()
    }

    /// The element at an index.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Value> {
        self.0.items.get(index)
    }

    /// Whether both are one object.
    #[must_use]
    pub fn is_same(&self, other: &List) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl PartialEq for List {
    fn eq(&self, other: &List) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.element == other.0.element && self.0.items == other.0.items)
    }
}

impl Eq for List {}

impl Hash for List {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.element.hash(state);
        self.0.items.hash(state);
    }
}

/// A map, ordered by its keys (so that printing and iteration never depend on a hash).
#[derive(Clone)]
pub struct Map(Arc<MapData>);

struct MapData {
    key: Type,
    value: Type,
    entries: imbl::OrdMap<MapKey, Value>,
}

impl Map {
    /// A map of these entries; a later one of equal key replaces an earlier one.
    #[must_use]
    pub fn new(key: Type, value: Type, entries: impl IntoIterator<Item = (Value, Value)>) -> Map {
        let entries = entries.into_iter().map(|(k, v)| (MapKey(k), v)).collect();
        Map(Arc::new(MapData { key, value, entries }))
    }

    /// A map over an existing persistent one.
    #[must_use]
    pub fn from_entries(key: Type, value: Type, entries: imbl::OrdMap<MapKey, Value>) -> Map {
        Map(Arc::new(MapData { key, value, entries }))
    }

    /// The type of the keys.
    #[must_use]
    pub fn key_type(&self) -> &Type {
        &self.0.key
    }

    /// The type of the values.
    #[must_use]
    pub fn value_type(&self) -> &Type {
        &self.0.value
    }

    /// The persistent map behind it.
    #[must_use]
    pub fn entries(&self) -> &imbl::OrdMap<MapKey, Value> {
        &self.0.entries
    }

    /// Keys and values in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&Value, &Value)> {
        self.0.entries.iter().map(|(k, v)| (&k.0, v))
    }

    /// How many entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.entries.is_empty()
    }

    /// The value of a key, by the languages' equality.
    #[must_use]
    pub fn get(&self, key: &Value) -> Option<&Value> {
        if matches!(key, Value::Float(f) if f.0.is_nan()) {
            return None;
        }
        self.0.entries.get(&MapKey(key.clone()))
    }

    /// Whether both are one object.
    #[must_use]
    pub fn is_same(&self, other: &Map) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl PartialEq for Map {
    fn eq(&self, other: &Map) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.0.key == other.0.key
                && self.0.value == other.0.value
                && self.len() == other.len()
                && self.iter().zip(other.iter()).all(|(a, b)| a == b))
    }
}

impl Eq for Map {}

impl Hash for Map {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for (k, v) in self.iter() {
            k.hash(state);
            v.hash(state);
        }
    }
}

/// A set, ordered by its elements. Elements carry no marks: those move to the set.
#[derive(Clone)]
pub struct Set(Arc<SetData>);

struct SetData {
    element: Type,
    items: imbl::OrdSet<MapKey>,
}

impl Set {
    /// A set of these (unmarked) elements.
    #[must_use]
    pub fn new(element: Type, items: impl IntoIterator<Item = Value>) -> Set {
        Set(Arc::new(SetData {
            element,
            items: items.into_iter().map(MapKey).collect(),
        }))
    }

    /// The type of the elements.
    #[must_use]
    pub fn element_type(&self) -> &Type {
        &self.0.element
    }

    /// The elements in order.
    pub fn iter(&self) -> impl Iterator<Item = &Value> {
        self.0.items.iter().map(|k| &k.0)
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.items.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.items.is_empty()
    }

    /// Whether it holds an element.
    #[must_use]
    pub fn contains(&self, element: &Value) -> bool {
        self.0.items.contains(&MapKey(element.clone()))
    }
}

impl PartialEq for Set {
    fn eq(&self, other: &Set) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.len() == other.len() && self.iter().eq(other.iter()))
    }
}

impl Eq for Set {}

impl Hash for Set {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for item in self.iter() {
            item.hash(state);
        }
    }
}

/// A struct: the values of its type's fields, in their order.
#[derive(Clone)]
pub struct Struct(Arc<StructData>);

#[derive(PartialEq, Eq, Hash)]
struct StructData {
    ty: Type,
    fields: Box<[Value]>,
}

impl Struct {
    /// A value of struct type `ty` with these fields.
    ///
    /// # Panics
    /// When `ty` is no struct type, or has another number of fields.
    #[must_use]
    pub fn new(ty: Type, fields: impl Into<Box<[Value]>>) -> Struct {
        let fields = fields.into();
        let expected = ty.as_struct().map(|s| s.fields.len());
        assert_eq!(
            expected,
            Some(fields.len()),
            "a struct value has the fields of its type"
        );
        Struct(Arc::new(StructData { ty, fields }))
    }

    /// Its type.
    #[must_use]
    pub fn ty(&self) -> &Type {
        &self.0.ty
    }

    /// The values, in the order of the type's fields.
    #[must_use]
    pub fn fields(&self) -> &[Value] {
        &self.0.fields
    }

    /// The value of a field.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        let index = self.0.ty.as_struct().and_then(|s| s.index(name))?;
        self.0.fields.get(index)
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        let names = self
            .0
            .ty
            .as_struct()
            .map(|s| s.fields.as_slice())
            .unwrap_or_default();
        names.iter().map(|f| &*f.name).zip(self.0.fields.iter())
    }
}

impl PartialEq for Struct {
    fn eq(&self, other: &Struct) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for Struct {}

impl Hash for Struct {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// A function value. Equal only to itself.
#[derive(Clone)]
pub struct Func(Arc<FuncData>);

struct FuncData {
    ty: Type,
    implementation: Box<dyn Callable>,
}

/// What stands behind a function value. The evaluator keeps its closures here and finds them again by `as_any`.
pub trait Callable: Any + Send + Sync {
    /// For finding the concrete type again.
    fn as_any(&self) -> &dyn Any;

    /// Calls it directly with values, where that is possible without an evaluator.
    ///
    /// # Errors
    /// What the function answers, or that it can only be called by an evaluator.
    fn call(&self, arguments: &[Value]) -> Result<Value, CallError>;
}

impl Func {
    /// A function of type `ty`.
    #[must_use]
    pub fn new(ty: Type, implementation: impl Callable) -> Func {
        Func(Arc::new(FuncData {
            ty,
            implementation: Box::new(implementation),
        }))
    }

    /// Its type.
    #[must_use]
    pub fn ty(&self) -> &Type {
        &self.0.ty
    }

    /// What stands behind it.
    #[must_use]
    pub fn implementation(&self) -> &dyn Callable {
        &*self.0.implementation
    }
}

impl PartialEq for Func {
    fn eq(&self, other: &Func) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Func {}

impl Hash for Func {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (Arc::as_ptr(&self.0) as usize).hash(state);
    }
}

/// Something of the application's, equal only to itself.
#[derive(Clone)]
pub struct Opaque {
    name: Arc<str>,
    content: Arc<dyn Any + Send + Sync>,
}

impl Opaque {
    /// Wraps `content` under a type name.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, content: Arc<dyn Any + Send + Sync>) -> Opaque {
        Opaque {
            name: name.into(),
            content,
        }
    }

    /// The name of its type.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// What is inside.
    #[must_use]
    pub fn content(&self) -> &(dyn Any + Send + Sync) {
        &*self.content
    }
}

impl PartialEq for Opaque {
    fn eq(&self, other: &Opaque) -> bool {
        Arc::ptr_eq(&self.content, &other.content)
    }
}

impl Eq for Opaque {}

impl Hash for Opaque {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (Arc::as_ptr(&self.content).cast::<()>() as usize).hash(state);
    }
}

impl Value {
    /// A string.
    #[must_use]
    pub fn str(text: impl Into<Str>) -> Value {
        Value::Str(text.into())
    }

    /// A float.
    #[must_use]
    pub fn float(value: f64) -> Value {
        Value::Float(FloatBits(value))
    }

    /// A list of `element`s.
    #[must_use]
    pub fn list(element: Type, items: impl IntoIterator<Item = Value>) -> Value {
        Value::List(List::new(element, items))
    }

    /// A list of strings.
    #[must_use]
    pub fn strings<S: Into<Str>>(items: impl IntoIterator<Item = S>) -> Value {
        Value::list(Type::Str, items.into_iter().map(Value::str))
    }

    /// A struct of type `ty`; see [`Struct::new`].
    #[must_use]
    pub fn structure(ty: Type, fields: impl Into<Box<[Value]>>) -> Value {
        Value::Struct(Struct::new(ty, fields))
    }

    /// An unknown of a type, about which nothing else is certain.
    #[must_use]
    pub fn unknown(ty: Type) -> Value {
        Value::refined(ty, Refinement::default())
    }

    /// An unknown of a type with a refinement. Unknowns of dynamic type take none.
    #[must_use]
    pub fn refined(ty: Type, refinement: Refinement) -> Value {
        let refinement = if ty == Type::Dynamic {
            Refinement::default()
        } else {
            refinement
        };
        Value::Unknown(Arc::new(Unknown { ty, refinement }))
    }

    /// The value with marks added to those it has.
    #[must_use]
    pub fn with_marks(self, marks: &Marks) -> Value {
        if marks.is_empty() {
            return self;
        }
        match self {
            Value::Marked(inner) => {
                let mut all = inner.1.clone();
                all.union(marks);
                Value::Marked(Arc::new((inner.0.clone(), all)))
            }
            plain => Value::Marked(Arc::new((plain, marks.clone()))),
        }
    }

    /// The value marked `sensitive`.
    #[must_use]
    pub fn sensitive(self) -> Value {
        self.with_marks(&Marks::sensitive())
    }

    /// The value without its outermost marks, and these.
    #[must_use]
    pub fn unmark(&self) -> (&Value, Marks) {
        match self {
            Value::Marked(inner) => (&inner.0, inner.1.clone()),
            plain => (plain, Marks::none()),
        }
    }

    /// The value without its outermost marks.
    #[must_use]
    pub fn unmarked(&self) -> &Value {
        match self {
            Value::Marked(inner) => &inner.0,
            plain => plain,
        }
    }

    /// Takes the marks off at every depth, adding them to `marks`. A value without any is returned as it is, shared.
    #[must_use]
    pub fn unmark_deep(&self, marks: &mut Marks) -> Value {
        if !self.has_marks() {
            return self.clone();
        }
        match self {
            Value::Marked(inner) => {
                marks.union(&inner.1);
                inner.0.unmark_deep(marks)
            }
            Value::List(list) => {
                let items: Vec<Value> = list.iter().map(|v| v.unmark_deep(marks)).collect();
                Value::list(list.element_type().clone(), items)
            }
            Value::Map(map) => {
                let entries: Vec<(Value, Value)> = map
                    .iter()
                    .map(|(k, v)| (k.unmark_deep(marks), v.unmark_deep(marks)))
                    .collect();
                Value::Map(Map::new(
                    map.key_type().clone(),
                    map.value_type().clone(),
                    entries,
                ))
            }
            Value::Tuple(items) => Value::Tuple(items.iter().map(|v| v.unmark_deep(marks)).collect()),
            Value::Struct(s) => {
                let fields: Vec<Value> = s.fields().iter().map(|v| v.unmark_deep(marks)).collect();
                Value::structure(s.ty().clone(), fields)
            }
            plain => plain.clone(),
        }
    }

    /// Whether marks are anywhere in it.
    #[must_use]
    pub fn has_marks(&self) -> bool {
        self.any_part(&mut |v| matches!(v, Value::Marked(_)))
    }

    /// Whether `sensitive` is anywhere in it.
    #[must_use]
    pub fn is_sensitive(&self) -> bool {
        self.any_part(&mut |v| matches!(v, Value::Marked(m) if m.1.contains(&Mark::Sensitive)))
    }

    /// Whether the value itself is an unknown (marks aside).
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        matches!(self.unmarked(), Value::Unknown(_))
    }

    /// Whether no unknown is anywhere in it.
    #[must_use]
    pub fn is_wholly_known(&self) -> bool {
        !self.any_part(&mut |v| matches!(v, Value::Unknown(_)))
    }

    /// Whether it is null (marks aside).
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self.unmarked(), Value::Null(_))
    }

    /// Whether `test` holds for this value or a part of it.
    pub fn any_part(&self, test: &mut dyn FnMut(&Value) -> bool) -> bool {
        if test(self) {
            return true;
        }
        match self {
            Value::List(list) => match list.element_type() {
                _ if list.is_empty() => false,
                _ => list.iter().any(|v| v.any_part(test)),
            },
            Value::Map(map) => map.iter().any(|(k, v)| k.any_part(test) || v.any_part(test)),
            Value::Set(set) => set.iter().any(|v| v.any_part(test)),
            Value::Tuple(items) => items.iter().any(|v| v.any_part(test)),
            Value::Struct(s) => s.fields().iter().any(|v| v.any_part(test)),
            Value::Marked(inner) => inner.0.any_part(test),
            Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Str(_)
            | Value::Func(_)
            | Value::Null(_)
            | Value::Unknown(_)
            | Value::Opaque(_) => false,
        }
    }

    /// Its type.
    #[must_use]
    pub fn ty(&self) -> Type {
        match self {
            Value::Bool(_) => Type::Bool,
            Value::Int(_) => Type::Int,
            Value::Float(_) => Type::Float,
            Value::Str(_) => Type::Str,
            Value::List(list) => Type::list(list.element_type().clone()),
            Value::Map(map) => Type::map(map.key_type().clone(), map.value_type().clone()),
            Value::Set(set) => Type::set(set.element_type().clone()),
            Value::Tuple(items) => Type::tuple(items.iter().map(Value::ty)),
            Value::Struct(s) => s.ty().clone(),
            Value::Func(f) => f.ty().clone(),
            Value::Null(ty) => ty.clone(),
            Value::Unknown(unknown) => unknown.ty.clone(),
            Value::Opaque(opaque) => Type::Opaque(opaque.name().clone()),
            Value::Marked(inner) => inner.0.ty(),
        }
    }

    /// The zero value of a type (mcl-types §2.2): `false`, `""`, `0`, `0.0`, empty collections, structs of zeros; a
    /// function fails when called. None for a type that is not closed.
    #[must_use]
    pub fn zero(ty: &Type) -> Option<Value> {
        Some(match ty {
            Type::Bool => Value::Bool(false),
            Type::Str => Value::str(""),
            Type::Int => Value::Int(0),
            Type::Float => Value::float(0.0),
            Type::List(element) => Value::list((**element).clone(), []),
            Type::Set(element) => Value::Set(Set::new((**element).clone(), [])),
            Type::Map(kv) => Value::Map(Map::new(kv.0.clone(), kv.1.clone(), [])),
            Type::Tuple(types) => Value::Tuple(types.iter().map(Value::zero).collect::<Option<_>>()?),
            Type::Struct(s) => {
                let fields = s
                    .fields
                    .iter()
                    .map(|f| Value::zero(&f.ty))
                    .collect::<Option<Vec<_>>>()?;
                Value::structure(ty.clone(), fields)
            }
            Type::Func(_) => Value::Func(Func::new(ty.clone(), NoFunction)),
            Type::Optional(_) | Type::Nil | Type::Variant => Value::Null(ty.clone()),
            Type::Dynamic | Type::Number | Type::Variable(_) | Type::Opaque(_) => return None,
        })
    }

    /// The bool, marks aside.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self.unmarked() {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The int, marks aside.
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        match self.unmarked() {
            Value::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The float, marks aside.
    #[must_use]
    pub fn as_float(&self) -> Option<f64> {
        match self.unmarked() {
            Value::Float(value) => Some(value.0),
            _ => None,
        }
    }

    /// The string, marks aside.
    #[must_use]
    pub fn as_str(&self) -> Option<&Str> {
        match self.unmarked() {
            Value::Str(value) => Some(value),
            _ => None,
        }
    }

    /// The list, marks aside.
    #[must_use]
    pub fn as_list(&self) -> Option<&List> {
        match self.unmarked() {
            Value::List(value) => Some(value),
            _ => None,
        }
    }

    /// The map, marks aside.
    #[must_use]
    pub fn as_map(&self) -> Option<&Map> {
        match self.unmarked() {
            Value::Map(value) => Some(value),
            _ => None,
        }
    }

    /// The struct, marks aside.
    #[must_use]
    pub fn as_struct(&self) -> Option<&Struct> {
        match self.unmarked() {
            Value::Struct(value) => Some(value),
            _ => None,
        }
    }

    /// The function, marks aside.
    #[must_use]
    pub fn as_func(&self) -> Option<&Func> {
        match self.unmarked() {
            Value::Func(value) => Some(value),
            _ => None,
        }
    }
}

/// The zero value of function types.
struct NoFunction;

impl Callable for NoFunction {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn call(&self, _: &[Value]) -> Result<Value, CallError> {
        Err(CallError::fatal("nil function"))
    }
}
