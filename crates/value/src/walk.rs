//! Going over all parts of a value, replacing them, and finding the part at a path.
//!
//! Parts are the elements of lists, tuples and sets, the fields of structs, and the values of maps; keys are not. An element of
//! a set is at itself ([`PathStep::Key`]). Everything else, unknowns included, is a leaf.

use std::fmt;

use crate::{Map, Marks, Path, PathStep, Set, Struct, Type, Value, compare, value_conforms};

/// Whether a walk goes on into the parts of what it has just visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descend {
    /// Its parts are visited next.
    Into,
    /// Its parts are left out.
    Past,
}

/// Why there is nothing at a path. It shows the path and types, never values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSuchPart {
    /// The path up to the step that leads nowhere.
    pub path: Path,
    /// The type of the value that the step was taken from.
    pub container: Type,
    /// Whether that value is null.
    pub null: bool,
}

impl fmt::Display for NoSuchPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoSuchPart {
            path,
            container,
            null,
        } = self;
        if *null {
            write!(f, "{path} does not exist: what it would be part of is null")
        } else {
            write!(f, "{path} does not exist in a value of type {container}")
        }
    }
}

impl std::error::Error for NoSuchPart {}

/// Why a container cannot be made of parts that were replaced: they are of several types, and it has one for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MixedTypes {
    /// Where the container is.
    pub path: Path,
    /// One of the types.
    pub one: Type,
    /// Another one.
    pub other: Type,
}

impl fmt::Display for MixedTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MixedTypes { path, one, other } = self;
        if !path.is_empty() {
            write!(f, "{path}: ")?;
        }
        write!(f, "the parts must be of one type, and are {one} and {other}")
    }
}

impl std::error::Error for MixedTypes {}

impl Path {
    /// The part of `value` to which the path leads. It carries the marks of everything on the way, and of the keys in the path.
    /// A part of an unknown is an unknown of the part's type, and so is what an unknown key leads to.
    ///
    /// # Errors
    /// When there is no such part.
    ///
    /// ```
    /// use setpoint_value::{Path, PathStep, Type, Value};
    /// let value = Value::object([("a", Value::strings(["x", "y"]).sensitive())]);
    /// let path: Path = [PathStep::Field("a".into()), PathStep::Index(1)].into_iter().collect();
    /// assert_eq!(path.apply(&value), Ok(Value::str("y").sensitive()));
    /// assert!(path.apply(&Value::unknown(value.ty())).is_ok_and(|part| part.ty() == Type::Str));
    /// ```
    pub fn apply(&self, value: &Value) -> Result<Value, NoSuchPart> {
        let mut part = value.clone();
        for (taken, step) in self.steps().iter().enumerate() {
            let (container, mut marks) = part.unmark();
            let found = part_at(container, step).ok_or_else(|| NoSuchPart {
                path: self.steps()[..=taken].iter().cloned().collect(),
                container: container.ty(),
                null: container.is_null(),
            })?;
            if let PathStep::Key(key) = step {
                key.collect_marks(&mut marks);
            }
            part = found.with_marks(&marks);
        }
        Ok(part)
    }
}

/// The part of an unmarked value that is one step away.
fn part_at(container: &Value, step: &PathStep) -> Option<Value> {
    match (container, step) {
        (Value::Unknown(unknown), _) => {
            if let PathStep::Index(index) = step
                && unknown
                    .refinement
                    .maximum_length
                    .is_some_and(|most| *index >= most)
            {
                return None;
            }
            part_type(&unknown.ty, step).map(Value::unknown)
        }
        (Value::List(list), PathStep::Index(index)) => list.get(*index).cloned(),
        (Value::Tuple(items), PathStep::Index(index)) => items.get(*index).cloned(),
        (Value::Struct(structure), PathStep::Field(name)) => structure.get(name).cloned(),
        (Value::Map(map), PathStep::Key(key)) => {
            let key = key.unmark_deep(&mut Marks::none());
            let mut keys = map.iter().map(|(other, _)| other);
            let found = map.get(&key).filter(|_| key.is_wholly_known()).cloned();
            found.or_else(|| {
                let certain = key.is_wholly_known() && keys.all(Value::is_wholly_known);
                (!certain).then(|| Value::unknown(map.value_type().clone()))
            })
        }
        (Value::Set(set), PathStep::Key(element)) => {
            let element = element.unmark_deep(&mut Marks::none());
            if !element.is_wholly_known() {
                return Some(Value::unknown(set.element_type().clone()));
            }
            let found = set.iter().find(|other| compare(other, &element).is_eq()).cloned();
            found.or_else(|| {
                let certain = container.is_wholly_known();
                (!certain).then(|| Value::unknown(set.element_type().clone()))
            })
        }
        _ => None,
    }
}

/// The type of the parts that a step can lead to, in a value of a type.
fn part_type(ty: &Type, step: &PathStep) -> Option<Type> {
    match (ty, step) {
        (Type::Dynamic, _) => Some(Type::Dynamic),
        (Type::Optional(inner), _) => part_type(inner, step),
        (Type::List(element), PathStep::Index(_)) | (Type::Set(element), PathStep::Key(_)) => {
            Some((**element).clone())
        }
        (Type::Tuple(types), PathStep::Index(index)) => types.get(*index).cloned(),
        (Type::Struct(structure), PathStep::Field(name)) => structure.field(name).cloned(),
        (Type::Map(types), PathStep::Key(_)) => Some(types.1.clone()),
        _ => None,
    }
}

impl Value {
    /// Visits the value and all its parts, each before its own parts and with the marks that it has itself, in their order.
    /// `visit` gets the path from this value.
    ///
    /// # Errors
    /// The first one of `visit`, which ends the walk.
    pub fn walk<E>(&self, visit: &mut dyn FnMut(&Path, &Value) -> Result<Descend, E>) -> Result<(), E> {
        self.walk_at(&mut Path::default(), visit)
    }

    fn walk_at<E>(
        &self,
        path: &mut Path,
        visit: &mut dyn FnMut(&Path, &Value) -> Result<Descend, E>,
    ) -> Result<(), E> {
        if visit(path, self)? == Descend::Past {
            return Ok(());
        }
        let mut into = |step: PathStep, part: &Value| {
            path.push(step);
            let result = part.walk_at(path, visit);
            path.pop();
            result
        };
        match self.unmarked() {
            Value::List(list) => {
                let mut items = list.iter().enumerate();
                items.try_for_each(|(index, item)| into(PathStep::Index(index), item))
            }
            Value::Tuple(items) => {
                let mut items = items.iter().enumerate();
                items.try_for_each(|(index, item)| into(PathStep::Index(index), item))
            }
            Value::Set(set) => set
                .iter()
                .try_for_each(|item| into(PathStep::Key(item.clone()), item)),
            Value::Map(map) => map
                .iter()
                .try_for_each(|(key, value)| into(PathStep::Key(key.clone()), value)),
            Value::Struct(structure) => structure
                .iter()
                .try_for_each(|(name, value)| into(PathStep::Field(name.into()), value)),
            _ => Ok(()),
        }
    }

    /// The value with each part, and then itself, replaced by what `replace` answers; parts come before what holds them.
    ///
    /// Containers keep their types while the new parts conform to them; otherwise they take on those of the new parts. A container
    /// that has marks has them still, and what `replace` gets shows them. New elements of a set follow [`Value::set`]: their
    /// marks move to it, and equal ones become one.
    ///
    /// # Errors
    /// That of `replace`, or when the new parts of a list, set or map are of several types; both end it.
    pub fn transform<E: From<MixedTypes>>(
        &self,
        replace: &mut dyn FnMut(&Path, Value) -> Result<Value, E>,
    ) -> Result<Value, E> {
        self.transform_at(&mut Path::default(), replace)
    }

    fn transform_at<E: From<MixedTypes>>(
        &self,
        path: &mut Path,
        replace: &mut dyn FnMut(&Path, Value) -> Result<Value, E>,
    ) -> Result<Value, E> {
        let mut replaced = |path: &mut Path, step: PathStep, part: &Value| {
            path.push(step);
            let result = part.transform_at(path, replace);
            path.pop();
            result
        };
        let (inner, marks) = self.unmark();
        let value = match inner {
            Value::List(list) => {
                let items = list.iter().enumerate();
                let items = items.map(|(index, item)| replaced(path, PathStep::Index(index), item));
                let items = items.collect::<Result<Vec<_>, E>>()?;
                let element = common_type(list.element_type(), list.iter(), &items, path)?;
                Value::list(element, items)
            }
            Value::Tuple(items) => {
                let items = items.iter().enumerate();
                let items = items.map(|(index, item)| replaced(path, PathStep::Index(index), item));
                Value::Tuple(items.collect::<Result<_, E>>()?)
            }
            Value::Set(set) => {
                let items = set.iter();
                let items = items.map(|item| replaced(path, PathStep::Key(item.clone()), item));
                let items = items.collect::<Result<Vec<_>, E>>()?;
                let element = common_type(set.element_type(), set.iter(), &items, path)?;
                if items.iter().eq(set.iter()) {
                    Value::Set(Set::new(element, items))
                } else {
                    Value::set(element, items)
                }
            }
            Value::Map(map) => {
                let values = map.iter();
                let values = values.map(|(key, value)| replaced(path, PathStep::Key(key.clone()), value));
                let values = values.collect::<Result<Vec<_>, E>>()?;
                let olds = map.iter().map(|(_, value)| value);
                let value = common_type(map.value_type(), olds, &values, path)?;
                let keys = map.iter().map(|(key, _)| key.clone());
                Value::Map(Map::new(map.key_type().clone(), value, keys.zip(values)))
            }
            Value::Struct(structure) => {
                let fields = structure.iter();
                let fields = fields.map(|(name, part)| replaced(path, PathStep::Field(name.into()), part));
                let fields = fields.collect::<Result<Vec<_>, E>>()?;
                Value::Struct(Struct::new(struct_type(structure, &fields), fields))
            }
            leaf => leaf.clone(),
        };
        replace(path, value.with_marks(&marks))
    }
}

/// Whether a new part may stand where the old one did in a container that promises `ty`.
fn still_fits(old: &Value, new: &Value, ty: &Type) -> bool {
    old.ty() == new.ty() || value_conforms(new, ty).is_ok()
}

/// What a container promises of its parts after they were replaced.
fn common_type<'a>(
    promised: &Type,
    olds: impl Iterator<Item = &'a Value>,
    news: &[Value],
    path: &Path,
) -> Result<Type, MixedTypes> {
    if olds.zip(news).all(|(old, new)| still_fits(old, new, promised)) {
        return Ok(promised.clone());
    }
    let mut types = news.iter().map(Value::ty);
    let one = types.next().unwrap_or_else(|| promised.clone());
    match types.find(|other| *other != one) {
        None => Ok(one),
        Some(other) => Err(MixedTypes {
            path: path.clone(),
            one,
            other,
        }),
    }
}

/// The type of a struct after its fields were replaced.
fn struct_type(structure: &Struct, news: &[Value]) -> Type {
    let promised = structure.ty().as_struct().map(|ty| &*ty.fields);
    let promised = promised.unwrap_or_default();
    let mut kept = promised.iter().zip(structure.fields()).zip(news);
    if kept.all(|((field, old), new)| still_fits(old, new, &field.ty)) {
        return structure.ty().clone();
    }
    let fields = promised.iter().zip(structure.fields()).zip(news);
    Type::structure(fields.map(|((field, old), new)| {
        let kept = still_fits(old, new, &field.ty);
        let ty = if kept { field.ty.clone() } else { new.ty() };
        (field.name.clone(), ty)
    }))
}
