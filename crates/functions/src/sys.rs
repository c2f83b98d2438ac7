//! `sys` and `sys/fwupd`: facts about the machine.

use std::time::Duration;

use setpoint_value::{
    CallContext, CallError, Class, Example, Files, FunctionSpec, HostFact, Map, Module, Type, Value,
    WatchDepth, function,
};

use crate::follow::Follow;

pub(crate) static MODULE: Module = Module::new(
    "sys",
    "Facts about the machine.",
    &[&CPU_COUNT, &ENV, &GETENV, &HASENV, &HOSTNAME, &LOAD, &UPTIME],
);

pub(crate) static FWUPD: Module = Module::new("sys/fwupd", "Firmware updates.", &[&REBOOT_NEEDED]);

static CPU_COUNT: FunctionSpec = FunctionSpec::source(
    MODULE.name,
    "cpu_count",
    &["func() int"],
    Class::Source,
    &Follow::new(
        |reading, _| online_processors(reading.capabilities.files()).map(Value::Int),
        |watching, _| {
            let host = watching.capabilities.host();
            Ok(host
                .watch(HostFact::Processors, watching.wake.clone())
                .into_iter()
                .collect())
        },
    ),
)
.documented(
    "How many processors are online.",
    &[Example {
        call: "sys.cpu_count()",
        result: "",
    }],
);

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
    signature = "func(str) str",
    example(
        call = r#"sys.getenv("NO_SUCH_VARIABLE") <|> "default""#,
        result = r#""default""#
    )
)]
fn getenv(context: &CallContext<'_>, name: &Value) -> Result<String, CallError> {
    let wanted = crate::follow::text(std::slice::from_ref(name), 0)?;
    let mut variables = context.capabilities.host().environment();
    variables.remove(wanted).ok_or_else(|| {
        let name = crate::follow::shown(name);
        CallError::catchable(format!("environment variable not set: {name}"))
    })
}

/// Whether an environment variable of the process is set.
#[function(
    environment,
    signature = "func(str) bool",
    example(call = r#"sys.hasenv("NO_SUCH_VARIABLE")"#, result = "false")
)]
fn hasenv(context: &CallContext<'_>, name: &str) -> bool {
    context.capabilities.host().environment().contains_key(name)
}

static HOSTNAME: FunctionSpec = FunctionSpec::source(
    MODULE.name,
    "hostname",
    &["func() str"],
    Class::Source,
    &Follow::new(
        |reading, _| Ok(Value::str(reading.capabilities.host().system_hostname())),
        |watching, _| {
            let file = watching
                .capabilities
                .files()
                .watch("/etc/hostname", WatchDepth::Entry, watching.wake.clone())
                .map_err(|error| CallError::fatal(format!("can't watch `/etc/hostname`: {error}")))?;
            let fact = watching
                .capabilities
                .host()
                .watch(HostFact::Hostname, watching.wake.clone());
            Ok(fact.into_iter().chain([file]).collect())
        },
    ),
)
.documented(
    "The machine's host name.",
    &[Example {
        call: "sys.hostname()",
        result: "",
    }],
);

static LOAD: FunctionSpec = FunctionSpec::source(
    MODULE.name,
    "load",
    &["func() struct{x1 float; x5 float; x15 float}"],
    Class::Source,
    &Follow::new(
        |reading, _| {
            let load = reading.capabilities.host().load();
            let load = load.ok_or_else(|| CallError::fatal("the load can't be read"))?;
            Ok(Value::structure(
                reading.result.clone(),
                load.map(Value::float).to_vec(),
            ))
        },
        |watching, _| {
            let clock = watching.capabilities.clock();
            Ok(vec![clock.every(Duration::from_secs(5), watching.wake.clone())])
        },
    ),
)
.documented(
    "The load averages over 1, 5 and 15 minutes, each 5 seconds.",
    &[Example {
        call: "sys.load()",
        result: "",
    }],
);

static UPTIME: FunctionSpec = FunctionSpec::source(
    MODULE.name,
    "uptime",
    &["func() int"],
    Class::Source,
    &Follow::new(
        |reading, _| {
            let uptime = reading.capabilities.host().uptime();
            let uptime = uptime.ok_or_else(|| CallError::fatal("the uptime can't be read"))?;
            Ok(Value::Int(i64::try_from(uptime.as_secs()).unwrap_or(i64::MAX)))
        },
        |watching, _| {
            let clock = watching.capabilities.clock();
            Ok(vec![clock.every(Duration::from_secs(1), watching.wake.clone())])
        },
    ),
)
.documented(
    "Seconds since the machine was started, each second.",
    &[Example {
        call: "sys.uptime()",
        result: "",
    }],
);

static REBOOT_NEEDED: FunctionSpec = FunctionSpec::source(
    FWUPD.name,
    "reboot_needed",
    &["func() bool"],
    Class::Source,
    &Follow::new(
        |reading, _| Ok(Value::Bool(reading.capabilities.host().firmware_reboot_needed())),
        |watching, _| {
            let host = watching.capabilities.host();
            Ok(host
                .watch(HostFact::FirmwareReboot, watching.wake.clone())
                .into_iter()
                .collect())
        },
    ),
)
.documented(
    "Whether a device waits for a restart to finish its firmware update.\n\nFalse where there is no fwupd.",
    &[Example {
        call: "fwupd.reboot_needed()",
        result: "",
    }],
);

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
