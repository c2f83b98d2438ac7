//! `iter`: functions over lists.
//!
//! Those that take a function value are shapes: they ask for one call an element and make their result of the calls'
//! results. All of them are incremental: an element that changes costs about as much as one element.

use setpoint_value::{CallError, List, Module, ParameterFlags, Type, Value, function};

mod changes;
mod filter;
mod map;
mod reduce;
mod zip;

pub(crate) static MODULE: Module = Module::new(
    "iter",
    "Functions over lists.",
    &[&FILTER, &FLATTEN, &MAP, &RANGE, &REDUCE, &ZIP],
);

/// Shapes look only at the outermost marks of a list and whether it is known; its elements go to the calls as they are.
const AS_THEY_ARE: &[ParameterFlags] = &[ParameterFlags {
    allow_null: false,
    allow_unknown: true,
    allow_dynamic: true,
    allow_marked: true,
}];

/// The elements for which the function gives true, in their order.
#[function(
    shape,
    flags = AS_THEY_ARE,
    signature = "func(inputs []?1, function func(?1) bool) []?1",
    parameters(
        /// The list.
        inputs,
        /// The function that decides whether to keep an element.
        function,
    ),
    example(call = "iter.filter([1, 2, 3], func($x) { $x > 1 })", result = "[2, 3]")
)]
static FILTER: filter::Filter = filter::Filter;

/// The elements of all lists of a list.
#[function(
    signature = "func(inputs [][]?1) []?1",
    example(call = "iter.flatten([[1], [], [2, 3]])", result = "[1, 2, 3]")
)]
fn flatten(
    /// A list of lists.
    inputs: &List,
    ty: &Type,
) -> Result<Value, CallError> {
    let mut items = imbl::Vector::new();
    for list in inputs.iter() {
        match list {
            Value::List(list) => items.append(list.items().clone()),
            // How long it is decides where everything after it stands.
            Value::Unknown(_) => return Ok(Value::unknown(ty.clone())),
            _ => return Err(CallError::fatal("only lists can be flattened")),
        }
    }
    let element = ty.element().cloned().unwrap_or(Type::Dynamic);
    Ok(Value::List(List::from_vector(element, items)))
}

/// What the function gives for each element.
#[function(
    shape,
    flags = AS_THEY_ARE,
    signature = "func(inputs []?1, function func(?1) ?2) []?2",
    parameters(
        /// The list.
        inputs,
        /// The function to apply to each element.
        function,
    ),
    example(call = "iter.map([1, 2, 3], func($x) { $x * 2 })", result = "[2, 4, 6]")
)]
static MAP: map::MapShape = map::MapShape;

/// A longer list is a mistake, and would not fit the memory of small machines.
const LONGEST_RANGE: i128 = 4_000_000;

/// The numbers from `start` up to and without `stop`, `step` apart.
///
/// A negative step counts down. A step of 0, or more than 4000000 numbers, is an error that `<|>` does not catch.
#[function(
    signature = "func(stop int) []int",
    signature = "func(start int, stop int) []int",
    signature = "func(start int, stop int, step int) []int",
    example(call = "iter.range(3)", result = "[0, 1, 2]"),
    example(call = "iter.range(5, 0, -2)", result = "[5, 3, 1]")
)]
fn range(
    /// The first number.
    #[default(0)]
    start: i64,
    /// The end of the range, which is not included.
    stop: i64,
    /// The distance from each number to the next; not 0.
    #[default(1)]
    step: i64,
) -> Result<Value, CallError> {
    if step == 0 {
        return Err(CallError::fatal("step value cannot be 0"));
    }
    let (start, stop, step) = (i128::from(start), i128::from(stop), i128::from(step));
    let distance = if step > 0 { stop - start } else { start - stop };
    let count = (distance.max(0) + step.abs() - 1) / step.abs();
    if count > LONGEST_RANGE {
        return Err(CallError::fatal(format!(
            "a range of {count} numbers is longer than {LONGEST_RANGE}"
        )));
    }
    // Between `start` and `stop`, so all of them are ints.
    let numbers = (0..count).filter_map(|index| i64::try_from(start + index * step).ok());
    Ok(Value::list(Type::Int, numbers.map(Value::Int)))
}

/// One value of all elements: the function of the first two, then of that and the third, and so on.
///
/// An empty list without a first value is an error.
#[function(
    shape,
    flags = AS_THEY_ARE,
    signature = "func(inputs []?1, function func(?1, ?1) ?1) ?1",
    signature = "func(initval ?1, inputs []?1, function func(?1, ?1) ?1) ?1",
    parameters(
        /// The initial value, before the first element.
        #[default = "nothing"]
        initval,
        /// The list.
        inputs,
        /// The function to apply to the result so far and the next element.
        function,
    ),
    example(call = "iter.reduce([1, 2, 3], func($a, $b) { $a + $b })", result = "6"),
    example(call = "iter.reduce(10, [], func($a, $b) { $a + $b })", result = "10")
)]
static REDUCE: reduce::Reduce = reduce::Reduce;

/// What the function gives for the elements of two lists at each place, up to the end of the shorter one.
#[function(
    shape,
    flags = AS_THEY_ARE,
    signature = "func(inputs1 []?1, inputs2 []?2, function func(x ?1, y ?2) ?3) []?3",
    parameters(
        /// The first list.
        inputs1,
        /// The second list.
        inputs2,
        /// The function to apply to an element of each list.
        function,
    ),
    example(call = r#"iter.zip([1, 2], ["a", "b"], func($x, $y) { $y })"#, result = r#"["a", "b"]"#)
)]
static ZIP: zip::Zip = zip::Zip;
