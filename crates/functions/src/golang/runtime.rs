//! `golang/runtime`: what Go programs ask of their runtime. There is none here; what makes sense is answered.

use setpoint_value::{CallContext, CallError, Module, function};

use crate::sys::online_processors;

pub(crate) static MODULE: Module = Module::new(
    "golang/runtime",
    "What Go programs ask of their runtime, as far as it makes sense here.",
    &[
        &CPU_PROFILE,
        &GOMAXPROCS,
        &GOROOT,
        &NUM_CGO_CALL,
        &NUM_CPU,
        &NUM_GOROUTINE,
        &READ_TRACE,
        &SET_MUTEX_PROFILE_FRACTION,
        &STACK,
        &VERSION,
    ],
);

/// Not available.
#[function(
    environment,
    example(call = r#"runtime.cpu_profile() <|> "none""#, result = r#""none""#)
)]
fn cpu_profile(_context: &CallContext<'_>) -> Result<String, CallError> {
    Err(not_available())
}

/// The number of processors; it sets nothing.
#[function(environment, example(call = "runtime.gomaxprocs(1)", result = ""))]
fn gomaxprocs(
    context: &CallContext<'_>,
    /// Ignored.
    n: i64,
) -> i64 {
    let _ = n;
    num_cpu(context)
}

/// Empty: there is no Go here.
#[function(environment, example(call = "runtime.goroot()", result = r#""""#))]
fn goroot(_context: &CallContext<'_>) -> &'static str {
    ""
}

/// Always 0.
#[function(environment, example(call = "runtime.num_cgo_call()", result = "0"))]
fn num_cgo_call(_context: &CallContext<'_>) -> i64 {
    0
}

/// The number of processors.
#[function(environment, example(call = "runtime.num_cpu()", result = ""))]
fn num_cpu(context: &CallContext<'_>) -> i64 {
    online_processors(context.capabilities.files()).unwrap_or(1)
}

/// Always 1.
#[function(environment, example(call = "runtime.num_goroutine()", result = "1"))]
fn num_goroutine(_context: &CallContext<'_>) -> i64 {
    1
}

/// Not available.
#[function(
    environment,
    example(call = r#"runtime.read_trace() <|> "none""#, result = r#""none""#)
)]
fn read_trace(_context: &CallContext<'_>) -> Result<String, CallError> {
    Err(not_available())
}

/// Always 0; it sets nothing.
#[function(
    environment,
    example(call = "runtime.set_mutex_profile_fraction(1)", result = "0")
)]
fn set_mutex_profile_fraction(
    _context: &CallContext<'_>,
    /// Ignored.
    rate: i64,
) -> i64 {
    let _ = rate;
    0
}

/// Not available.
#[function(
    environment,
    example(call = r#"runtime.stack("", false) <|> 0"#, result = "0")
)]
fn stack(
    _context: &CallContext<'_>,
    /// Ignored.
    buf: &[u8],
    /// Ignored.
    all: bool,
) -> Result<i64, CallError> {
    let _ = (buf, all);
    Err(not_available())
}

/// Our own version.
#[function(environment, example(call = "runtime.version()", result = ""))]
fn version(context: &CallContext<'_>) -> String {
    context.capabilities.host().version()
}

fn not_available() -> CallError {
    CallError::catchable("not available")
}
