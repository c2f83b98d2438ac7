//! Values: immutable, shared, cheap to clone. What is part of the data type is here: its containers, paths into it, unknowns, its order, and
//! how it reads as text.

mod collections;
mod handles;
mod order;
mod path;
mod scalars;
mod text;
mod unknown;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::{Mark, Marks, Type};

pub use collections::{List, Map, Set, Struct};
pub use handles::{Callable, Func, Opaque};
pub use order::{MapKey, compare};
pub use path::{Path, PathStep};
pub use scalars::{FloatBits, Str};
pub use text::{format_float, quote};
pub use unknown::{Bound, Refinement, Unknown};

use handles::NoFunction;

/// Whether marks or unknowns are anywhere inside; what containers remember about their contents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) marked: bool,
    pub(crate) unknown: bool,
}

impl Contents {
    /// Takes in what is in one more part.
    pub(crate) fn add(&mut self, value: &Value) {
        let contents = value.contents();
        self.marked |= contents.marked;
        self.unknown |= contents.unknown;
    }

    pub(crate) fn of_all<'a>(values: impl Iterator<Item = &'a Value>) -> Contents {
        let mut contents = Contents::default();
        for value in values {
            contents.add(value);
        }
        contents
    }

    /// Nothing but ordinary, known data.
    pub(crate) fn is_plain(self) -> bool {
        self == Contents::default()
    }
}

/// What is in a container, found out when it is first asked for.
#[derive(Debug, Default)]
pub(crate) struct LazyContents(AtomicU8);

impl LazyContents {
    const KNOWN: u8 = 1;
    const MARKED: u8 = 2;
    const UNKNOWN: u8 = 4;

    /// What has been found out, if it has.
    pub(crate) fn get(&self) -> Option<Contents> {
        // Whoever finds nothing looks himself, and everybody finds the same: no order is needed.
        let bits = self.0.load(Ordering::Relaxed);
        (bits != 0).then_some(Contents {
            marked: bits & Self::MARKED != 0,
            unknown: bits & Self::UNKNOWN != 0,
        })
    }

    pub(crate) fn get_or_look(&self, look: impl FnOnce() -> Contents) -> Contents {
        self.get().unwrap_or_else(|| {
            let contents = look();
            self.0
                .store(LazyContents::from(contents).0.into_inner(), Ordering::Relaxed);
            contents
        })
    }
}

impl From<Contents> for LazyContents {
    fn from(contents: Contents) -> LazyContents {
        let mut bits = Self::KNOWN;
        if contents.marked {
            bits |= Self::MARKED;
        }
        if contents.unknown {
            bits |= Self::UNKNOWN;
        }
        LazyContents(AtomicU8::new(bits))
    }
}

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

    /// A set of `element`s. Marks of elements move to the set. Elements that are not wholly known may turn out equal to
    /// others, so with more than one element such a set is itself unknown, between one and as many elements.
    #[must_use]
    pub fn set(element: Type, items: impl IntoIterator<Item = Value>) -> Value {
        let mut marks = Marks::none();
        let items: Vec<Value> = items.into_iter().map(|v| v.unmark_deep(&mut marks)).collect();
        let open = items.len() > 1 && items.iter().any(|v| !v.is_wholly_known());
        let set = if open {
            let known = Set::new(
                element.clone(),
                items.iter().filter(|v| v.is_wholly_known()).cloned(),
            );
            Value::refined(
                Type::set(element),
                Refinement {
                    not_null: true,
                    minimum_length: Some(known.len().max(1)),
                    maximum_length: Some(items.len()),
                    ..Refinement::default()
                },
            )
        } else {
            Value::Set(Set::new(element, items))
        };
        set.with_marks(&marks)
    }

    /// A map; see [`Map::new`]. Marks of keys move to the map.
    #[must_use]
    pub fn map(key: Type, value: Type, entries: impl IntoIterator<Item = (Value, Value)>) -> Value {
        let mut marks = Marks::none();
        let entries: Vec<_> = entries
            .into_iter()
            .map(|(k, v)| (k.unmark_deep(&mut marks), v))
            .collect();
        Value::Map(Map::new(key, value, entries)).with_marks(&marks)
    }

    /// A tuple.
    #[must_use]
    pub fn tuple(items: impl IntoIterator<Item = Value>) -> Value {
        Value::Tuple(items.into_iter().collect())
    }

    /// A struct of these fields, of the type that follows from them. The names must be distinct.
    #[must_use]
    pub fn object<N: Into<Arc<str>>>(fields: impl IntoIterator<Item = (N, Value)>) -> Value {
        let (names, values): (Vec<Arc<str>>, Vec<Value>) = fields
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .unzip();
        let ty = Type::structure(names.into_iter().zip(values.iter().map(Value::ty)));
        Value::structure(ty, values)
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

    /// An unknown of a type with a refinement. Unknowns of dynamic type take none. A refinement that leaves one value
    /// gives that value; one that fixes the length of a list gives a list of unknowns.
    #[must_use]
    pub fn refined(ty: Type, refinement: Refinement) -> Value {
        if ty == Type::Dynamic {
            return Value::Unknown(Arc::new(Unknown {
                ty,
                refinement: Refinement::default(),
            }));
        }
        refinement
            .collapsed(&ty)
            .unwrap_or_else(|| Value::Unknown(Arc::new(Unknown { ty, refinement })))
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

    /// The marks of the value itself, without those of what is in it.
    #[must_use]
    pub fn own_marks(&self) -> Marks {
        match self {
            Value::Marked(inner) => inner.1.clone(),
            _ => Marks::none(),
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
            Value::Set(set) => {
                let items: Vec<Value> = set.iter().map(|v| v.unmark_deep(marks)).collect();
                Value::Set(Set::new(set.element_type().clone(), items))
            }
            Value::Struct(s) => {
                let fields: Vec<Value> = s.fields().iter().map(|v| v.unmark_deep(marks)).collect();
                Value::structure(s.ty().clone(), fields)
            }
            plain => plain.clone(),
        }
    }

    /// Adds the marks at every depth to `marks`.
    pub fn collect_marks(&self, marks: &mut Marks) {
        if self.has_marks() {
            self.any_part(&mut |part| {
                if let Value::Marked(inner) = part {
                    marks.union(&inner.1);
                }
                false
            });
        }
    }

    /// Takes the marks off at every depth and says where they were, outermost first. [`Value::with_marks_at`] puts them
    /// back.
    #[must_use]
    pub fn unmark_deep_with_paths(&self) -> (Value, Vec<(Path, Marks)>) {
        let mut found = Vec::new();
        let value = self.unmark_at(&mut Path::default(), &mut found);
        (value, found)
    }

    fn unmark_at(&self, path: &mut Path, found: &mut Vec<(Path, Marks)>) -> Value {
        if !self.has_marks() {
            return self.clone();
        }
        if let Value::Marked(inner) = self {
            found.push((path.clone(), inner.1.clone()));
        }
        let value = self.unmarked().map_parts(&mut |step, part| {
            path.push(step);
            let part = part.unmark_at(path, found);
            path.pop();
            part
        });
        // Marks of elements of sets and of keys belong to the container.
        let mut rest = Marks::none();
        let value = value.unmark_deep(&mut rest);
        if !rest.is_empty() {
            found.push((path.clone(), rest));
        }
        value
    }

    /// The value with marks added at each of the paths. A path that leads nowhere marks the last part that it reaches, so
    /// that no mark is ever lost.
    #[must_use]
    pub fn with_marks_at(&self, marks: &[(Path, Marks)]) -> Value {
        let marks: Vec<(&[PathStep], &Marks)> = marks.iter().map(|(p, m)| (p.steps(), m)).collect();
        self.marked_at(&marks)
    }

    fn marked_at(&self, marks: &[(&[PathStep], &Marks)]) -> Value {
        let mut here = Marks::none();
        let mut used = vec![false; marks.len()];
        let inside = marks.iter().any(|(path, _)| !path.is_empty());
        let value = if inside {
            self.unmarked().map_parts(&mut |step, part| {
                let mut below = Vec::new();
                for (index, (path, marks)) in marks.iter().enumerate() {
                    if path.first() == Some(&step) {
                        used[index] = true;
                        below.push((&path[1..], *marks));
                    }
                }
                if below.is_empty() {
                    part.clone()
                } else {
                    part.marked_at(&below)
                }
            })
        } else {
            self.unmarked().clone()
        };
        for (used, (_, marks)) in used.iter().zip(marks) {
            if !used {
                here.union(marks);
            }
        }
        value.with_marks(&self.unmark().1).with_marks(&here)
    }

    /// A container with each part replaced; elements of sets and keys of maps stay. Anything else as it is.
    fn map_parts(&self, replace: &mut dyn FnMut(PathStep, &Value) -> Value) -> Value {
        match self {
            Value::List(list) => {
                let items = list.iter().enumerate();
                let items: Vec<Value> = items.map(|(i, v)| replace(PathStep::Index(i), v)).collect();
                Value::list(list.element_type().clone(), items)
            }
            Value::Tuple(items) => {
                let items = items.iter().enumerate();
                Value::tuple(
                    items
                        .map(|(i, v)| replace(PathStep::Index(i), v))
                        .collect::<Vec<_>>(),
                )
            }
            Value::Map(map) => {
                let entries: Vec<_> = map
                    .iter()
                    .map(|(k, v)| (k.clone(), replace(PathStep::Key(k.clone()), v)))
                    .collect();
                Value::Map(Map::new(
                    map.key_type().clone(),
                    map.value_type().clone(),
                    entries,
                ))
            }
            Value::Struct(s) => {
                let fields: Vec<Value> = s
                    .iter()
                    .map(|(name, v)| replace(PathStep::Field(name.into()), v))
                    .collect();
                Value::structure(s.ty().clone(), fields)
            }
            plain => plain.clone(),
        }
    }

    /// Whether marks are anywhere in it. Containers remember it, so this costs nothing.
    #[must_use]
    pub fn has_marks(&self) -> bool {
        self.contents().marked
    }

    /// Whether `sensitive` is anywhere in it.
    #[must_use]
    pub fn is_sensitive(&self) -> bool {
        self.has_marks()
            && self.any_part(&mut |v| matches!(v, Value::Marked(m) if m.1.contains(&Mark::Sensitive)))
    }

    /// Whether the value itself is an unknown (marks aside).
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        matches!(self.unmarked(), Value::Unknown(_))
    }

    /// Whether no unknown is anywhere in it. Containers remember it, so this costs nothing.
    #[must_use]
    pub fn is_wholly_known(&self) -> bool {
        !self.contents().unknown
    }

    /// What is anywhere in it: marks, unknowns.
    pub(crate) fn contents(&self) -> Contents {
        match self {
            Value::List(list) => list.contents(),
            Value::Map(map) => map.contents(),
            Value::Set(set) => set.contents(),
            Value::Struct(s) => s.contents(),
            Value::Tuple(items) => Contents::of_all(items.iter()),
            Value::Marked(inner) => Contents {
                marked: true,
                ..inner.0.contents()
            },
            Value::Unknown(_) => Contents {
                unknown: true,
                marked: false,
            },
            Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Str(_)
            | Value::Func(_)
            | Value::Null(_)
            | Value::Opaque(_) => Contents::default(),
        }
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
            Value::List(list) => list.iter().any(|v| v.any_part(test)),
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

    /// The zero value of a type: `false`, `""`, `0`, `0.0`, empty collections, structs of zeros; a
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
            Type::Optional(_) => Value::Null(ty.clone()),
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

    /// The set, marks aside.
    #[must_use]
    pub fn as_set(&self) -> Option<&Set> {
        match self.unmarked() {
            Value::Set(value) => Some(value),
            _ => None,
        }
    }

    /// The elements of a tuple, marks aside.
    #[must_use]
    pub fn as_tuple(&self) -> Option<&[Value]> {
        match self.unmarked() {
            Value::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// What is known about it as an unknown, marks aside; none when it is known.
    #[must_use]
    pub fn as_unknown(&self) -> Option<&Unknown> {
        match self.unmarked() {
            Value::Unknown(unknown) => Some(unknown),
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
