//! Sets. Elements of different sets are converted to one type.

use setpoint_value::{ArgumentError, CallError, Set, Type, Value, convert, function, unify};

use super::{
    MODULE, argument, elements, is_untyped_and_empty, not_null, outer_marks, plain, refuse, type_at,
};

/// A product with more combinations than this is a mistake.
const MOST_COMBINATIONS: usize = 1 << 18;

/// Whether a set has an element.
#[function(
    signature = "func(set set{dynamic}, elem dynamic) bool",
    result_type = |_| Ok(Type::Bool),
    refine = not_null,
    example(call = r#"cty.set_has_element(["a", "b"], "b")"#, result = "true")
)]
pub fn set_has_element(
    /// The set to look into.
    set: &Value,
    /// The element to look for.
    elem: &Value,
) -> Result<Value, CallError> {
    let Value::Set(set) = set else {
        return refuse(0, format!("{} is not a set", set.ty()));
    };
    // What does not convert to the elements' type is none of them.
    let Ok(element) = convert(elem, set.element_type()) else {
        return Ok(Value::Bool(false));
    };
    if element.is_wholly_known() && set.contains(&element) {
        return Ok(Value::Bool(true));
    }
    let open = !element.is_wholly_known() || set.iter().any(|v| !v.is_wholly_known());
    Ok(if open && !set.is_empty() {
        Value::unknown(Type::Bool)
    } else {
        Value::Bool(false)
    })
}

/// The elements that are in any of the sets.
#[function(
    raw,
    signature = "func(first set{dynamic}, more set{dynamic}…) set{dynamic}",
    parameters(
        /// A set.
        first,
        /// Further sets.
        more,
    ),
    result_type = common_type,
    refine = not_null,
    example(call = "cty.set_union([1, 2], [2, 3])", result = "[1, 2, 3]")
)]
pub fn set_union(arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
    let sets = sets(arguments, ty)?;
    Ok(of_type(ty, sets.iter().flat_map(Set::iter).cloned().collect()))
}

/// The elements that are in all of the sets.
#[function(
    raw,
    signature = "func(first set{dynamic}, more set{dynamic}…) set{dynamic}",
    parameters(
        /// A set.
        first,
        /// Further sets.
        more,
    ),
    result_type = common_type,
    refine = not_null,
    example(call = "cty.set_intersection([1, 2], [2, 3])", result = "[2]")
)]
pub fn set_intersection(arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
    combined(arguments, ty, |a, b| {
        a.iter().filter(|v| b.contains(v)).cloned().collect()
    })
}

/// The elements of `a` that are not in `b`.
#[function(
    raw,
    signature = "func(a set{dynamic}, b set{dynamic}) set{dynamic}",
    parameters(
        /// A set.
        a,
        /// The set to subtract.
        b,
    ),
    result_type = common_type,
    refine = not_null,
    example(call = "cty.set_subtract([1, 2], [2, 3])", result = "[1]")
)]
pub fn set_subtract(arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
    combined(arguments, ty, |a, b| {
        a.iter().filter(|v| !b.contains(v)).cloned().collect()
    })
}

/// The elements that are in one of two sets; with more sets, in an odd number of them.
#[function(
    raw,
    signature = "func(first set{dynamic}, more set{dynamic}…) set{dynamic}",
    parameters(
        /// A set.
        first,
        /// Further sets.
        more,
    ),
    result_type = common_type,
    refine = not_null,
    example(call = "cty.set_symmetric_difference([1, 2], [2, 3])", result = "[1, 3]")
)]
pub fn set_symmetric_difference(arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
    combined(arguments, ty, |a, b| {
        let only_a = a.iter().filter(|v| !b.contains(v));
        only_a
            .chain(b.iter().filter(|v| !a.contains(v)))
            .cloned()
            .collect()
    })
}

fn combined(
    arguments: &[Value],
    ty: &Type,
    combine: fn(&Set, &Set) -> Vec<Value>,
) -> Result<Value, CallError> {
    let sets = sets(arguments, ty)?;
    // Which elements meet is open while one of them is.
    if sets.iter().any(|s| s.iter().any(|v| !v.is_wholly_known())) {
        return Ok(Value::unknown(ty.clone()));
    }
    let mut sets = sets.into_iter();
    let Some(mut result) = sets.next() else {
        return refuse(0, "at least one set is needed");
    };
    for other in sets {
        result = Set::new(result.element_type().clone(), combine(&result, &other));
    }
    Ok(Value::Set(result))
}

fn of_type(ty: &Type, items: Vec<Value>) -> Value {
    Value::set(ty.element().cloned().unwrap_or(Type::Dynamic), items)
}

/// All sets with elements of the result's type.
fn sets(arguments: &[Value], ty: &Type) -> Result<Vec<Set>, CallError> {
    let converted = |index: usize| {
        let value = convert(argument(arguments, index)?, ty).map_err(|error| error.at_argument(index))?;
        match value.as_set() {
            Some(set) => Ok(set.clone()),
            None => refuse(index, "its elements are not known well enough"),
        }
    };
    (0..arguments.len()).map(converted).collect()
}

fn common_type(arguments: &[Value]) -> Result<Type, ArgumentError> {
    let typed: Vec<usize> = (0..arguments.len())
        .filter(|index| !is_untyped_and_empty(&arguments[*index]))
        .collect();
    let element = |index: &usize| type_at(arguments, *index).element().cloned();
    let types: Vec<Type> = typed
        .iter()
        .map(|index| element(index).unwrap_or(Type::Dynamic))
        .collect();
    let element = unify(&types).map_err(|d| ArgumentError::at(typed[d.second], d.to_string()))?;
    Ok(Type::set(element))
}

/// All combinations of one element of each collection, as tuples in the order of the collections.
///
/// A set if all of the collections are, else a list.
#[function(
    raw,
    signature = "func(first []?1, second []?1, more []?1…) [][]?1",
    signature = "func(first dynamic, second dynamic, more dynamic…) dynamic",
    parameters(
        /// A list, set or tuple.
        first,
        /// Another list, set or tuple.
        second,
        /// Further lists, sets or tuples.
        more,
    ),
    flags = &[super::flags("~#")],
    result_type = product_type,
    refine = not_null,
    example(call = r#"cty.set_product(["a", "b"], ["x", "y"])"#, result = r#"[["a", "x"], ["a", "y"], ["b", "x"], ["b", "y"]]"#)
)]
pub fn set_product(arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
    let marks = outer_marks(arguments);
    let Some(Type::Tuple(types)) = ty.element() else {
        return Ok(Value::unknown(ty.clone()).with_marks(&marks));
    };
    let mut rows: Vec<Vec<Value>> = vec![Vec::new()];
    for (index, wanted) in types.iter().enumerate() {
        let Some(items) = elements(argument(arguments, index)?) else {
            let refinement = length_of_product(arguments);
            return Ok(Value::refined(ty.clone(), refinement).with_marks(&marks));
        };
        if rows.len().saturating_mul(items.len()) > MOST_COMBINATIONS {
            return refuse(
                index,
                format!("there are more than {MOST_COMBINATIONS} combinations"),
            );
        }
        let items = items
            .iter()
            .map(|v| convert(v, wanted).map_err(|error| error.at_argument(index)))
            .collect::<Result<Vec<_>, _>>()?;
        let longer = |row: &Vec<Value>, item: &Value| {
            let mut row = row.clone();
            row.push(item.clone());
            row
        };
        rows = rows
            .iter()
            .flat_map(|row| items.iter().map(move |item| longer(row, item)))
            .collect();
    }
    let rows: Vec<Value> = rows.into_iter().map(Value::tuple).collect();
    let element = Type::Tuple(types.clone());
    let product = match ty {
        Type::Set(_) => Value::set(element, rows),
        _ => Value::list(element, rows),
    };
    Ok(product.with_marks(&marks))
}

/// How many combinations there can be while a collection is unknown.
fn length_of_product(arguments: &[Value]) -> setpoint_value::Refinement {
    let mut least = 1usize;
    let mut most = Some(1usize);
    for argument in arguments {
        let (minimum, maximum) = setpoint_value::length_range(argument).unwrap_or((0, None));
        least = least.saturating_mul(minimum);
        most = match (most, maximum) {
            (Some(0), _) | (_, Some(0)) => Some(0),
            (Some(a), Some(b)) => a.checked_mul(b),
            _ => None,
        };
    }
    setpoint_value::Refinement::not_null().with_length(least, most)
}

fn product_type(arguments: &[Value]) -> Result<Type, ArgumentError> {
    let mut types = Vec::with_capacity(arguments.len());
    let mut all_sets = true;
    for (index, argument) in arguments.iter().enumerate() {
        let ty = type_at(arguments, index);
        all_sets &= matches!(ty, Type::Set(_));
        types.push(match plain(&ty) {
            Type::List(element) | Type::Set(element) => (**element).clone(),
            Type::Tuple(types) => unify(types).map_err(|d| ArgumentError::at(index, d.to_string()))?,
            Type::Dynamic => return Ok(Type::Dynamic),
            _ => {
                let message = format!("{} is not a list, set or tuple", argument.ty());
                return Err(ArgumentError::at(index, message));
            }
        });
    }
    let row = Type::tuple(types);
    Ok(if all_sets { Type::set(row) } else { Type::list(row) })
}
