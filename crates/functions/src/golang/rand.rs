//! `golang/math/rand`: random numbers, drawn once for given arguments.

use setpoint_value::{CallContext, CallError, Module, Random, function};

pub(crate) static MODULE: Module = Module::new(
    "golang/math/rand",
    "Random numbers, as in Go's package `math/rand`.",
    &[
        &EXP_FLOAT_64,
        &FLOAT_64,
        &INT,
        &INT_63,
        &INT_63_N,
        &INTN,
        &NORM_FLOAT_64,
        &READ,
    ],
);

/// A number from the exponential distribution of rate 1.
#[function(
    environment,
    unpredictable,
    example(call = "rand.exp_float_64()", result = "")
)]
fn exp_float_64(context: &CallContext<'_>) -> f64 {
    exponential(context.capabilities.random())
}

/// A number from 0 up to and without 1.
#[function(environment, unpredictable, example(call = "rand.float_64()", result = ""))]
fn float_64(context: &CallContext<'_>) -> f64 {
    unit(context.capabilities.random())
}

/// A whole number from 0 up.
#[function(
    environment,
    unpredictable,
    example(call = "rand.int() >= 0", result = "true")
)]
fn int(context: &CallContext<'_>) -> i64 {
    int_63(context)
}

/// A whole number from 0 up.
#[function(environment, unpredictable, example(call = "rand.int_63()", result = ""))]
fn int_63(context: &CallContext<'_>) -> i64 {
    i64::try_from(bits(context.capabilities.random()) >> 1).unwrap_or(0)
}

/// A whole number from 0 up to and without `n`.
///
/// A limit that is not above 0 is an error that `<|>` does not catch.
#[function(environment, unpredictable, example(call = "rand.int_63_n(1)", result = "0"))]
fn int_63_n(
    context: &CallContext<'_>,
    /// The exclusive upper bound; above 0.
    n: i64,
) -> Result<i64, CallError> {
    below(context.capabilities.random(), n)
}

/// A whole number from 0 up to and without `n`.
///
/// A limit that is not above 0 is an error that `<|>` does not catch.
#[function(environment, unpredictable, example(call = "rand.intn(1)", result = "0"))]
fn intn(
    context: &CallContext<'_>,
    /// The exclusive upper bound; above 0.
    n: i64,
) -> Result<i64, CallError> {
    below(context.capabilities.random(), n)
}

/// A number from the normal distribution of mean 0 and deviation 1.
#[function(
    environment,
    unpredictable,
    example(call = "rand.norm_float_64()", result = "")
)]
fn norm_float_64(context: &CallContext<'_>) -> f64 {
    let random = context.capabilities.random();
    // Box and Muller's way; 1 − u is never 0.
    let radius = (-2.0 * (1.0 - unit(random)).ln()).sqrt();
    radius * (std::f64::consts::TAU * unit(random)).cos()
}

/// How many bytes `p` has; nothing is drawn.
#[function(
    environment,
    unpredictable,
    example(call = r#"rand.read("abc")"#, result = "3")
)]
fn read(
    _context: &CallContext<'_>,
    /// Any text.
    p: &[u8],
) -> i64 {
    i64::try_from(p.len()).unwrap_or(i64::MAX)
}

fn bits(random: &dyn Random) -> u64 {
    let mut bytes = [0; 8];
    random.fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

fn unit(random: &dyn Random) -> f64 {
    // 53 bits are all that a float between 0 and 1 can hold evenly.
    (bits(random) >> 11) as f64 / (1u64 << 53) as f64
}

fn exponential(random: &dyn Random) -> f64 {
    -(1.0 - unit(random)).ln()
}

fn below(random: &dyn Random, n: i64) -> Result<i64, CallError> {
    let limit = u64::try_from(n).ok().filter(|n| *n > 0);
    let limit = limit.ok_or_else(|| CallError::fatal("the limit must be positive"))?;
    // Draws beyond the last whole multiple would favour small numbers.
    let usable = u64::MAX - u64::MAX % limit;
    loop {
        let drawn = bits(random);
        if drawn < usable {
            return Ok(i64::try_from(drawn % limit).unwrap_or(0));
        }
    }
}
