//! Lists and tuples.

use setpoint_value::{
    ArgumentError, CallError, Equality, InferArguments, Inferred, Marks, Refinement, Type, Value,
    compare_numbers, convert, equals, function, length_range, unify,
};

use super::{
    MARKED, MARKED_FIRST, MODULE, argument, elements, flags, is_untyped_and_empty, not_null, outer_marks,
    plain, refuse, type_at, whole_number,
};

/// More steps than this are a mistake.
const MOST_STEPS: usize = 1024;

/// The elements of all lists or tuples, one after another.
///
/// Lists whose elements have a type in common give a list; with a tuple among them the result is a tuple.
#[function(
    raw,
    signature = "func(first []?1, more []?1…) []?1",
    signature = "func(first dynamic, more dynamic…) dynamic",
    parameters(
        /// A list or tuple.
        first,
        /// Further lists or tuples.
        more,
    ),
    flags = MARKED,
    result_type = concat_type,
    refine = not_null,
    example(call = "cty.concat([1], [2, 3])", result = "[1, 2, 3]")
)]
pub fn concat(arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
    let mut items = Vec::new();
    for index in 0..arguments.len() {
        match elements(argument(arguments, index)?) {
            Some(more) => items.extend(more.into_iter().cloned()),
            None => return refuse(index, "is not a list or tuple"),
        }
    }
    Ok(sequence(items, ty)?.with_marks(&outer_marks(arguments)))
}

fn concat_type(arguments: &[Value]) -> Result<Type, ArgumentError> {
    let mut lists = Some(Vec::new());
    let mut parts = Some(Vec::new());
    for (index, argument) in arguments.iter().enumerate() {
        match type_at(arguments, index) {
            Type::List(element) => {
                if let Some(lists) = &mut lists
                    && !is_untyped_and_empty(argument)
                {
                    lists.push((*element).clone());
                }
                match argument.as_list() {
                    Some(list) => parts
                        .iter_mut()
                        .for_each(|p| p.extend(list.iter().map(Value::ty))),
                    None => parts = None,
                }
            }
            Type::Tuple(types) => {
                lists = None;
                parts.iter_mut().for_each(|p| p.extend(types.iter().cloned()));
            }
            Type::Dynamic => return Ok(Type::Dynamic),
            other => {
                return Err(ArgumentError::at(
                    index,
                    format!("{other} is not a list or tuple"),
                ));
            }
        }
    }
    if let Some(Ok(element)) = lists.map(|types| unify(&types)) {
        return Ok(Type::list(element));
    }
    Ok(parts.map_or(Type::Dynamic, Type::tuple))
}

/// Elements as a list or tuple of a decided type.
fn sequence(items: Vec<Value>, ty: &Type) -> Result<Value, CallError> {
    let Some(element) = ty.element() else {
        return Ok(Value::tuple(items));
    };
    let items = items
        .iter()
        .map(|item| convert(item, element))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| CallError::fatal(error.to_string()))?;
    Ok(Value::list(element.clone(), items))
}

/// Numbers from `start` up or down to, but not including, `limit`, `step` apart.
#[function(
    raw,
    signature = "func(limit number) []number",
    signature = "func(start number, limit number) []number",
    signature = "func(start number, limit number, step number) []number",
    parameters(
        /// The first number.
        #[default(0)]
        start,
        /// The end of the range, which is not included.
        limit,
        /// The distance from each number to the next.
        #[default = "1, or -1 when limit is below start"]
        step,
    ),
    refine = not_null,
    example(call = "cty.range(3)", result = "[0, 1, 2]"),
    example(call = "cty.range(1, 4)", result = "[1, 2, 3]"),
    example(call = "cty.range(5, 0, -2)", result = "[5, 3, 1]")
)]
pub fn range(arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
    let (zero, one) = (Value::Int(0), Value::Int(1));
    let (start, limit, step) = match arguments {
        [limit] => (&zero, limit, None),
        [start, limit] => (start, limit, None),
        [start, limit, step] => (start, limit, Some(step)),
        _ => return refuse(0, "a limit is needed"),
    };
    let (Some(direction), Some(size)) = (
        compare_numbers(limit, start),
        step.map_or(Some(std::cmp::Ordering::Equal), |s| compare_numbers(s, &zero)),
    ) else {
        return refuse(0, "NaN has no place in a range");
    };
    match step {
        Some(_) if size.is_eq() => return refuse(2, "a step of 0 leads nowhere"),
        Some(_) if direction.is_ne() && direction != size => {
            return refuse(2, "the step leads away from the limit");
        }
        _ => {}
    }
    let down = Value::Int(-1);
    let step = step.unwrap_or(if direction.is_lt() { &down } else { &one });
    let element = ty.element().cloned().unwrap_or(Type::Int);
    let mut items = Vec::new();
    // Each number is computed from the start, so that errors of rounding do not add up.
    for count in 0..=MOST_STEPS {
        let Some(next) = nth(start, step, count) else {
            break;
        };
        let before_limit =
            compare_numbers(limit, &next).is_some_and(|order| order == direction && order.is_ne());
        if !before_limit {
            break;
        }
        if count == MOST_STEPS {
            return Err(CallError::catchable(format!(
                "a range has at most {MOST_STEPS} numbers"
            )));
        }
        items.push(match (&element, next) {
            (Type::Float, Value::Int(int)) => Value::float(int as f64),
            (_, next) => next,
        });
    }
    Ok(Value::list(element, items))
}

/// `start + count × step`; none where an int would overflow, which is beyond any limit.
fn nth(start: &Value, step: &Value, count: usize) -> Option<Value> {
    let float = |value: &Value| match value {
        Value::Int(int) => *int as f64,
        other => other.as_float().unwrap_or(f64::NAN),
    };
    match (start, step) {
        (Value::Int(start), Value::Int(step)) => {
            let way = step.checked_mul(i64::try_from(count).ok()?)?;
            start.checked_add(way).map(Value::Int)
        }
        _ => Some(Value::float(float(start) + float(step) * count as f64)),
    }
}

/// The element at an index, counted round and round.
///
/// In a tuple the index decides the type. An empty list fails in a way that `<|>` catches.
#[function(
    raw,
    signature = "func(list []?1, index int) ?1",
    signature = "func(list dynamic, index number) dynamic",
    parameters(
        /// A list or a tuple.
        list,
        /// The index of the element, counted from 0. After the last element it continues with the first; a negative index counts from the end.
        index,
    ),
    flags = MARKED_FIRST,
    result_type = element_type,
    example(call = r#"cty.element(["a", "b", "c"], 4)"#, result = r#""b""#),
    example(call = r#"cty.element(["a", "b", "c"], -1)"#, result = r#""c""#)
)]
pub fn element(arguments: &[Value], _: &Type) -> Result<Value, CallError> {
    let marks = outer_marks(arguments);
    let index = whole_number(arguments, 1)?;
    let Some(items) = elements(argument(arguments, 0)?) else {
        return refuse(0, "is not a list or tuple");
    };
    if items.is_empty() {
        return Err(CallError::catchable("an empty list has no elements"));
    }
    Ok(items[around(index, items.len())].clone().with_marks(&marks))
}

/// The place of an index that goes round and round: -1 is the last one. There is at least one place.
fn around(index: i64, count: usize) -> usize {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    usize::try_from(index.rem_euclid(count)).unwrap_or(0)
}

fn element_type(arguments: &[Value]) -> Result<Type, ArgumentError> {
    match type_at(arguments, 0) {
        Type::List(element) => Ok((*element).clone()),
        Type::Tuple(types) if types.is_empty() => Err(ArgumentError::at(0, "an empty tuple has no elements")),
        Type::Tuple(types) => match arguments.get(1) {
            Some(index) if !index.is_unknown() => match whole_number(arguments, 1) {
                Ok(index) => Ok(types[around(index, types.len())].clone()),
                Err(_) => Err(ArgumentError::at(1, "an index is a whole number")),
            },
            _ => Ok(Type::Dynamic),
        },
        Type::Dynamic => Ok(Type::Dynamic),
        other => Err(ArgumentError::at(0, format!("{other} is not a list or tuple"))),
    }
}

/// The first list or tuple that is neither null nor empty.
#[function(
    raw,
    signature = "func(first []?1, more []?1…) []?1",
    signature = "func(first dynamic, more dynamic…) dynamic",
    parameters(
        /// The list to take if it has elements.
        first,
        /// The lists to try after it, in order.
        more,
    ),
    flags = &[flags("?")],
    result_type = coalesce_list_type,
    refine = not_null,
    example(call = "cty.coalesce_list(cty.slice([1], 0, 0), [2, 3])", result = "[2, 3]")
)]
pub fn coalesce_list(arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
    for (index, argument) in arguments.iter().enumerate() {
        match elements(argument) {
            _ if argument.is_null() => {}
            Some(items) if items.is_empty() => {}
            Some(items) => return sequence(items.into_iter().cloned().collect(), ty),
            None => return refuse(index, "is not a list or tuple"),
        }
    }
    Err(CallError::catchable("all lists are empty"))
}

/// The type of the one that is taken; while that is open, the type that all have that it can be.
fn coalesce_list_type(arguments: &[Value]) -> Result<Type, ArgumentError> {
    let mut given: Vec<(&Value, Type)> = Vec::new();
    for (index, argument) in arguments.iter().enumerate() {
        match type_at(arguments, index) {
            ty @ (Type::List(_) | Type::Tuple(_) | Type::Dynamic) => given.push((argument, ty)),
            other => {
                let message = format!("{other} is not a list or tuple");
                return Err(ArgumentError::at(index, message));
            }
        }
    }
    let is_empty = |argument: &Value| matches!(length_range(argument), Some((_, Some(0))));
    let is_taken =
        |argument: &Value| matches!(length_range(argument), Some((1.., _))) && !may_be_null(argument);
    given.retain(|(argument, _)| !argument.is_null() && !is_empty(argument));
    if let Some(first) = given.iter().position(|(argument, _)| is_taken(argument)) {
        given.truncate(first + 1);
    }
    match given.split_first() {
        Some(((_, first), others)) if others.iter().all(|(_, other)| other == first) => Ok(first.clone()),
        _ => Ok(Type::Dynamic),
    }
}

fn may_be_null(argument: &Value) -> bool {
    argument
        .as_unknown()
        .is_some_and(|unknown| !unknown.refinement.not_null)
}

/// The texts that are not empty.
#[function(
    signature = "func(list []str) []str",
    refine = not_null,
    example(call = r#"cty.compact(["a", "", "b"])"#, result = r#"["a", "b"]"#)
)]
pub fn compact(
    /// A list of texts.
    list: &Value,
    ty: &Type,
) -> Result<Value, CallError> {
    if !list.is_wholly_known() {
        let most = length_range(list).and_then(|(_, most)| most);
        return Ok(Value::refined(
            ty.clone(),
            Refinement::not_null().with_length(0, most),
        ));
    }
    let items = elements(list).unwrap_or_default();
    let filled = |item: &&&Value| item.as_str().is_some_and(|text| !text.is_empty());
    Ok(Value::list(
        Type::Str,
        items.iter().filter(filled).map(|item| (*item).clone()),
    ))
}

/// Whether a list, set or tuple has an element equal to a value.
#[function(
    signature = "func(list []?1, value ?1) bool",
    signature = "func(list dynamic, value dynamic) bool",
    flags = &[flags(""), flags("?")],
    result_type = contains_type,
    refine = not_null,
    example(call = r#"cty.contains(["a", "b"], "b")"#, result = "true")
)]
pub fn contains(
    /// A list, set or tuple.
    list: &Value,
    /// The value to look for.
    value: &Value,
) -> Value {
    let mut open = false;
    for item in elements(list).unwrap_or_default() {
        match equals(item, value) {
            Equality::Equal => return Value::Bool(true),
            Equality::Unknown => open = true,
            Equality::Unequal => {}
        }
    }
    if open {
        Value::unknown(Type::Bool)
    } else {
        Value::Bool(false)
    }
}

fn contains_type(arguments: &[Value]) -> Result<Type, ArgumentError> {
    match type_at(arguments, 0) {
        Type::List(_) | Type::Set(_) | Type::Tuple(_) | Type::Dynamic => Ok(Type::Bool),
        other => Err(ArgumentError::at(
            0,
            format!("{other} is not a list, set or tuple"),
        )),
    }
}

/// The elements without those that are equal to an earlier one.
#[function(
    signature = "func(list []?1) []?1",
    refine = not_null,
    example(call = r#"cty.distinct(["a", "b", "a"])"#, result = r#"["a", "b"]"#)
)]
pub fn distinct(
    /// The list.
    list: &Value,
    ty: &Type,
) -> Value {
    let items = elements(list).unwrap_or_default();
    if !list.is_wholly_known() {
        let refinement = Refinement::not_null().with_length(items.len().min(1), Some(items.len()));
        return Value::refined(ty.clone(), refinement);
    }
    let mut seen = std::collections::BTreeSet::new();
    let mut kept: Vec<Value> = Vec::new();
    for item in items {
        // NaN is unequal to itself, but the order has a place for it.
        let is_new = seen.insert(setpoint_value::MapKey(item.clone()));
        if is_new || equals(item, item) == Equality::Unequal {
            kept.push(item.clone());
        }
    }
    Value::list(ty.element().cloned().unwrap_or(Type::Dynamic), kept)
}

/// The elements in chunks of a size, the last of which may be shorter; a size of 0 is one chunk.
#[function(
    signature = "func(list []?1, size int) [][]?1",
    flags = &[flags("#")],
    refine = not_null,
    example(call = "cty.chunklist([1, 2, 3], 2)", result = "[[1, 2], [3]]"),
    example(call = "cty.chunklist([1, 2, 3], 0)", result = "[[1, 2, 3]]")
)]
pub fn chunklist(
    /// The list.
    list: &Value,
    /// The maximum number of elements in a piece; 0 for a single piece.
    size: &Value,
    ty: &Type,
) -> Result<Value, CallError> {
    let Some(count) = size.as_int().and_then(|size| usize::try_from(size).ok()) else {
        return refuse(1, "a size is not negative");
    };
    let items: Vec<Value> = elements(list).unwrap_or_default().into_iter().cloned().collect();
    let chunk_type = ty.element().cloned().unwrap_or(Type::Dynamic);
    let element = chunk_type.element().cloned().unwrap_or(Type::Dynamic);
    let chunk = |items: &[Value]| Value::list(element.clone(), items.iter().cloned());
    let chunks: Vec<Value> = if count == 0 {
        vec![chunk(&items)]
    } else {
        items.chunks(count).map(chunk).collect()
    };
    Ok(Value::list(chunk_type, chunks).with_marks(&outer_marks([list, size])))
}

/// The elements of lists in lists, sets and tuples at any depth, as one tuple; in mcl as one list.
#[function(
    signature = "func(list dynamic) dynamic",
    flags = MARKED,
    result_type = flatten_type,
    infer = infer_flatten,
    refine = not_null,
    example(call = "cty.flatten([[1, 2], [3]])", result = "[1, 2, 3]")
)]
pub fn flatten(
    /// A list or tuple that contains lists or tuples.
    list: &Value,
    ty: &Type,
) -> Value {
    if *ty == Type::Dynamic {
        // A part whose length is not known hides how many there will be.
        let mut marks = Marks::none();
        list.collect_marks(&mut marks);
        return Value::unknown(Type::Dynamic).with_marks(&marks);
    }
    let (mut flat, mut marks) = (Vec::new(), Marks::none());
    collect_flat(list, &mut flat, &mut marks);
    Value::tuple(flat.into_iter().cloned()).with_marks(&marks)
}

/// Answers false where a part's length is not known. Marks of lists are those of the whole, for the lists are gone.
fn collect_flat<'a>(value: &'a Value, flat: &mut Vec<&'a Value>, marks: &mut Marks) -> bool {
    marks.union(&value.own_marks());
    match elements(value) {
        Some(items) => {
            let mut decided = true;
            for item in items {
                let nested = !item.is_null() && is_sequence(plain(&item.ty()));
                if nested {
                    decided &= collect_flat(item, flat, marks);
                } else {
                    decided &= item.ty() != Type::Dynamic || item.is_null();
                    flat.push(item);
                }
            }
            decided
        }
        None => false,
    }
}

fn is_sequence(ty: &Type) -> bool {
    matches!(ty, Type::List(_) | Type::Set(_) | Type::Tuple(_))
}

fn flatten_type(arguments: &[Value]) -> Result<Type, ArgumentError> {
    let ty = type_at(arguments, 0);
    if !is_sequence(&ty) && ty != Type::Dynamic {
        return Err(ArgumentError::at(0, format!("{ty} is not a list, set or tuple")));
    }
    let mut flat = Vec::new();
    let decided = arguments
        .first()
        .is_some_and(|value| collect_flat(value, &mut flat, &mut Marks::none()));
    Ok(if decided {
        Type::tuple(flat.into_iter().map(Value::ty))
    } else {
        Type::Dynamic
    })
}

/// In a statically typed language all elements have one type, whatever the lengths.
fn infer_flatten(arguments: &InferArguments<'_>) -> Result<Inferred, ArgumentError> {
    let [Some(list @ Type::List(_))] = arguments.types else {
        return Err(ArgumentError::whole("only of lists the type is known beforehand"));
    };
    let mut innermost = list;
    while let Type::List(element) = innermost {
        innermost = element;
    }
    if innermost.is_open() {
        return Err(ArgumentError::at(0, "its type is not known"));
    }
    Ok(Inferred {
        signature: Type::func([("list", list.clone())], Type::list(innermost.clone())),
    })
}

/// The elements from the last to the first.
#[function(
    signature = "func(list []?1) []?1",
    signature = "func(list dynamic) dynamic",
    flags = MARKED_FIRST,
    result_type = reverse_type,
    refine = not_null,
    example(call = "cty.reverse_list([1, 2, 3])", result = "[3, 2, 1]")
)]
pub fn reverse_list(
    /// A list or a tuple.
    list: &Value,
    ty: &Type,
) -> Result<Value, CallError> {
    let mut items: Vec<Value> = elements(list).unwrap_or_default().into_iter().cloned().collect();
    items.reverse();
    Ok(sequence(items, ty)?.with_marks(&outer_marks([list])))
}

fn reverse_type(arguments: &[Value]) -> Result<Type, ArgumentError> {
    match type_at(arguments, 0) {
        Type::Tuple(types) => Ok(Type::tuple(types.iter().rev().cloned())),
        Type::Set(element) => Ok(Type::List(element)),
        ty @ (Type::List(_) | Type::Dynamic) => Ok(ty),
        other => Err(ArgumentError::at(
            0,
            format!("{other} is not a list, set or tuple"),
        )),
    }
}

/// The elements from `start` up to, but not including, `end`.
///
/// In a tuple the indexes decide the type.
#[function(
    raw,
    signature = "func(list []?1, start int, end int) []?1",
    signature = "func(list dynamic, start number, end number) dynamic",
    parameters(
        /// A list or a tuple.
        list,
        /// The first element to take, counted from 0.
        start,
        /// The first element to leave out.
        end,
    ),
    flags = MARKED_FIRST,
    result_type = slice_type,
    refine = not_null,
    example(call = "cty.slice([1, 2, 3, 4], 1, 3)", result = "[2, 3]")
)]
pub fn slice(arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
    let items = elements(argument(arguments, 0)?).unwrap_or_default();
    let (start, end) = bounds(arguments, items.len())?;
    let part: Vec<Value> = items[start..end].iter().map(|item| (*item).clone()).collect();
    Ok(sequence(part, ty)?.with_marks(&outer_marks(arguments)))
}

fn bounds(arguments: &[Value], length: usize) -> Result<(usize, usize), ArgumentError> {
    let position = |index: usize| match whole_number(arguments, index).map(usize::try_from) {
        Ok(Ok(position)) if position <= length => Ok(position),
        _ => Err(ArgumentError::at(
            index,
            format!("must be a whole number between 0 and {length}"),
        )),
    };
    let (start, end) = (position(1)?, position(2)?);
    if start > end {
        return Err(ArgumentError::at(1, "the start is after the end"));
    }
    Ok((start, end))
}

fn slice_type(arguments: &[Value]) -> Result<Type, ArgumentError> {
    match type_at(arguments, 0) {
        ty @ (Type::List(_) | Type::Dynamic) => Ok(ty),
        Type::Tuple(_) if arguments.iter().skip(1).any(Value::is_unknown) => Ok(Type::Dynamic),
        Type::Tuple(types) => {
            let (start, end) = bounds(arguments, types.len())?;
            Ok(Type::tuple(types[start..end].iter().cloned()))
        }
        other => Err(ArgumentError::at(0, format!("{other} is not a list or tuple"))),
    }
}
