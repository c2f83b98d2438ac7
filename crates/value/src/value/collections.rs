//! Lists, maps, sets and structs: persistent, shared, and aware of whether marks or unknowns are inside.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::{Contents, LazyContents};
use crate::{MapKey, Type, Value};

/// A list. A changed copy shares all but the path to what changed, so that finding a difference between two versions
/// is comparing addresses of chunks.
#[derive(Clone)]
pub struct List(Arc<ListData>);

struct ListData {
    element: Type,
    items: imbl::Vector<Value>,
    contents: LazyContents,
}

impl List {
    /// A list of these items, each of type `element`.
    #[must_use]
    pub fn new(element: Type, items: impl IntoIterator<Item = Value>) -> List {
        let mut contents = Contents::default();
        let items = items.into_iter().inspect(|v| contents.add(v)).collect();
        List(Arc::new(ListData {
            element,
            items,
            contents: contents.into(),
        }))
    }

    /// A list over an existing persistent vector.
    #[must_use]
    pub fn from_vector(element: Type, items: imbl::Vector<Value>) -> List {
        List(Arc::new(ListData {
            element,
            items,
            contents: LazyContents::default(),
        }))
    }

    /// The list with another item at an index, or with one more at its end when there is no such index. Shares the rest,
    /// also what is known of its contents.
    #[must_use]
    pub fn with_item(&self, index: usize, item: Value) -> List {
        let contents = still_plain(&self.0.contents, &[&item]);
        let mut items = self.0.items.clone();
        if index >= items.len() {
            items.push_back(item);
        } else {
            items.set(index, item);
        }
        List(Arc::new(ListData {
            element: self.0.element.clone(),
            items,
            contents,
        }))
    }

    /// A list over a vector that holds nothing but items of this list and `new` ones. Shares what is known of the contents,
    /// so that it need not be found out again.
    #[must_use]
    pub fn with_vector(&self, items: imbl::Vector<Value>, new: &[&Value]) -> List {
        List(Arc::new(ListData {
            element: self.0.element.clone(),
            items,
            contents: still_plain(&self.0.contents, new),
        }))
    }

    pub(crate) fn contents(&self) -> Contents {
        self.0
            .contents
            .get_or_look(|| Contents::of_all(self.0.items.iter()))
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
        Arc::ptr_eq(&self.0, &other.0)
            || (self.0.element == other.0.element
                && self.len() == other.len()
                && same_items(&self.0.items, &other.0.items))
    }
}

/// Whether two vectors of one length hold the same. Chunks that both share are not looked into.
fn same_items(one: &imbl::Vector<Value>, other: &imbl::Vector<Value>) -> bool {
    let (mut one, mut other) = (one.leaves(), other.leaves());
    let (mut a, mut b): (&[Value], &[Value]) = (&[], &[]);
    loop {
        if a.is_empty() {
            let Some(leaf) = one.next() else { return true };
            a = leaf;
        }
        if b.is_empty() {
            let Some(leaf) = other.next() else { return true };
            b = leaf;
        }
        let length = a.len().min(b.len());
        if !std::ptr::eq(a.as_ptr(), b.as_ptr()) && a[..length] != b[..length] {
            return false;
        }
        (a, b) = (&a[length..], &b[length..]);
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
    contents: LazyContents,
}

impl Map {
    /// A map of these entries; a later one of equal key replaces an earlier one.
    #[must_use]
    pub fn new(key: Type, value: Type, entries: impl IntoIterator<Item = (Value, Value)>) -> Map {
        let entries = entries.into_iter().map(|(k, v)| (MapKey(k), v)).collect();
        Map::from_entries(key, value, entries)
    }

    /// A map over an existing persistent one.
    #[must_use]
    pub fn from_entries(key: Type, value: Type, entries: imbl::OrdMap<MapKey, Value>) -> Map {
        Map(Arc::new(MapData {
            key,
            value,
            entries,
            contents: LazyContents::default(),
        }))
    }

    /// The map with an entry more, which replaces one of equal key. Shares the rest, also what is known of its contents.
    #[must_use]
    pub fn with_entry(&self, key: Value, value: Value) -> Map {
        let contents = still_plain(&self.0.contents, &[&key, &value]);
        Map(Arc::new(MapData {
            key: self.0.key.clone(),
            value: self.0.value.clone(),
            entries: self.0.entries.update(MapKey(key), value),
            contents,
        }))
    }

    pub(super) fn contents(&self) -> Contents {
        let entries = || self.0.entries.iter().flat_map(|(k, v)| [&k.0, v]);
        self.0.contents.get_or_look(|| Contents::of_all(entries()))
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
    contents: Contents,
}

impl Set {
    /// A set of these (unmarked) elements. [`Value::set`] also takes marked and unknown ones.
    #[must_use]
    pub fn new(element: Type, items: impl IntoIterator<Item = Value>) -> Set {
        let mut contents = Contents::default();
        let items = items
            .into_iter()
            .inspect(|v| contents.add(v))
            .map(MapKey)
            .collect();
        Set(Arc::new(SetData {
            element,
            items,
            contents,
        }))
    }

    pub(super) fn contents(&self) -> Contents {
        self.0.contents
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
        Arc::ptr_eq(&self.0, &other.0)
            || (self.0.element == other.0.element
                && self.len() == other.len()
                && self.iter().eq(other.iter()))
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

struct StructData {
    ty: Type,
    fields: Box<[Value]>,
    contents: Contents,
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
        let contents = Contents::of_all(fields.iter());
        Struct(Arc::new(StructData { ty, fields, contents }))
    }

    pub(super) fn contents(&self) -> Contents {
        self.0.contents
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
        let names = self.0.ty.as_struct().map(|s| &*s.fields).unwrap_or_default();
        names.iter().map(|f| &*f.name).zip(self.0.fields.iter())
    }
}

impl PartialEq for Struct {
    fn eq(&self, other: &Struct) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.ty == other.0.ty && self.0.fields == other.0.fields)
    }
}

impl Eq for Struct {}

impl Hash for Struct {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.ty.hash(state);
        self.0.fields.hash(state);
    }
}

/// The contents of a changed copy: plain if the original is known to be and the new parts are; else to be found out.
fn still_plain(before: &LazyContents, new: &[&Value]) -> LazyContents {
    let plain = before.get().is_some_and(Contents::is_plain) && new.iter().all(|v| v.contents().is_plain());
    if plain {
        Contents::default().into()
    } else {
        LazyContents::default()
    }
}
