//! `sys` and `sys/fwupd`: facts about the machine.

use std::time::Duration;

use setpoint_value::native::{shown, text};
use setpoint_value::{
    CallContext, CallError, Files, HostFact, Map, Module, Timer, Type, Value, WatchDepth, function,
};

pub(crate) mod fwupd;

pub(crate) static MODULE: Module = Module::new(
    "sys",
    "Facts about the machine.",
    &[&CPU_COUNT, &ENV, &GETENV, &HASENV, &HOSTNAME, &LOAD, &UPTIME],
);

/// How many processors are online.
#[function(watch = watch_processors, example(call = "sys.cpu_count()", result = ""))]
fn cpu_count(context: &CallContext<'_>) -> Result<i64, CallError> {
    online_processors(context.capabilities.files())
}

fn watch_processors(context: &CallContext<'_>, _: &[Value]) -> Result<Vec<Timer>, CallError> {
    Ok(watch_fact(context, HostFact::Processors))
}

/// Wakes when a fact changes, where that can be followed.
fn watch_fact(context: &CallContext<'_>, fact: HostFact) -> Vec<Timer> {
    let watch = context.capabilities.host().watch(fact, context.wake.clone());
    watch.into_iter().collect()
}

/// All environment variables of the process.
#[function(
    environment,
    signature = "func() map{str: str}",
    example(call = "sys.env()", result = "")
)]
fn env(context: &CallContext<'_>) -> Value {
    let variables = context.capabilities.host().environment();
    let entries = variables
        .into_iter()
        .map(|(name, value)| (Value::str(name), Value::str(value)));
    Value::Map(Map::new(Type::Str, Type::Str, entries))
}

/// An environment variable of the process.
///
/// One that is not set fails in a way that `<|>` catches.
#[function(
    environment,
    signature = "func(name str) str",
    example(
        call = r#"sys.getenv("NO_SUCH_VARIABLE") <|> "default""#,
        result = r#""default""#
    )
)]
fn getenv(
    context: &CallContext<'_>,
    /// The variable's name.
    name: &Value,
) -> Result<String, CallError> {
    let wanted = text(std::slice::from_ref(name), 0)?;
    let mut variables = context.capabilities.host().environment();
    variables.remove(wanted).ok_or_else(|| {
        let name = shown(name);
        CallError::catchable(format!("environment variable not set: {name}"))
    })
}

/// Whether an environment variable of the process is set.
#[function(
    environment,
    example(call = r#"sys.hasenv("NO_SUCH_VARIABLE")"#, result = "false")
)]
fn hasenv(
    context: &CallContext<'_>,
    /// The variable's name.
    name: &str,
) -> bool {
    context.capabilities.host().environment().contains_key(name)
}

/// The machine's host name.
///
/// `$hostname` is the name that the program runs as, which `--hostname` sets.
#[function(watch = watch_hostname, example(call = "sys.hostname()", result = ""))]
fn hostname(context: &CallContext<'_>) -> String {
    context.capabilities.host().system_hostname()
}

fn watch_hostname(context: &CallContext<'_>, _: &[Value]) -> Result<Vec<Timer>, CallError> {
    let files = context.capabilities.files();
    let file = files.watch("/etc/hostname", WatchDepth::Entry, context.wake.clone());
    let file = file.map_err(|error| CallError::fatal(format!("can't watch `/etc/hostname`: {error}")))?;
    let mut guards = watch_fact(context, HostFact::Hostname);
    guards.push(file);
    Ok(guards)
}

/// The load averages over 1, 5 and 15 minutes, each 5 seconds.
#[function(
    watch = every_5_seconds,
    signature = "func() struct{x1 float; x5 float; x15 float}",
    example(call = "sys.load()", result = "")
)]
fn load(context: &CallContext<'_>, result: &Type) -> Result<Value, CallError> {
    let load = context.capabilities.host().load();
    let load = load.ok_or_else(|| CallError::fatal("the load can't be read"))?;
    Ok(Value::structure(result.clone(), load.map(Value::float).to_vec()))
}

fn every_5_seconds(context: &CallContext<'_>, _: &[Value]) -> Result<Vec<Timer>, CallError> {
    let clock = context.capabilities.clock();
    Ok(vec![clock.every(Duration::from_secs(5), context.wake.clone())])
}

/// Seconds since the machine was started, each second.
#[function(watch = every_second, example(call = "sys.uptime()", result = ""))]
fn uptime(context: &CallContext<'_>) -> Result<i64, CallError> {
    let uptime = context.capabilities.host().uptime();
    let uptime = uptime.ok_or_else(|| CallError::fatal("the uptime can't be read"))?;
    Ok(i64::try_from(uptime.as_secs()).unwrap_or(i64::MAX))
}

pub(crate) fn every_second(context: &CallContext<'_>, _: &[Value]) -> Result<Vec<Timer>, CallError> {
    let clock = context.capabilities.clock();
    Ok(vec![clock.every(Duration::from_secs(1), context.wake.clone())])
}

/// The number of processors in `/sys/devices/system/cpu/online`: `0-3,6`.
pub(crate) fn online_processors(files: &dyn Files) -> Result<i64, CallError> {
    const PATH: &str = "/sys/devices/system/cpu/online";
    let content = files
        .read(PATH)
        .map_err(|error| CallError::fatal(format!("can't read `{PATH}`: {error}")))?;
    let text = String::from_utf8_lossy(&content);
    let ranges = text.trim().split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (i64, i64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        Some(last.checked_sub(first)?.max(-1) + 1)
    });
    ranges
        .sum::<Option<i64>>()
        .ok_or_else(|| CallError::fatal(format!("`{PATH}` has an unexpected form")))
}
