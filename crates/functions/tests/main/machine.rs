//! A simulated machine with calls on it.

use std::sync::Arc;
use std::time::Duration;

use setpoint_functions::MODULES;
use setpoint_simulated::{SimulatedCapabilities, WakeFlag};
use setpoint_value::call::{self, call_typed};
use setpoint_value::{
    CallContext, CallError, CallSite, FunctionSpec, Implementation, Subscription, Type, Value,
};

/// Every function of the library.
pub(crate) fn all() -> impl Iterator<Item = &'static FunctionSpec> {
    MODULES.iter().flat_map(|module| module.functions.iter().copied())
}

/// The function of a name as it is shown, `golang/strings.title`.
pub(crate) fn spec(name: &str) -> &'static FunctionSpec {
    let (module, function) = name.rsplit_once('.').unwrap_or(("", name));
    all()
        .find(|spec| spec.module == module && spec.name == function)
        .unwrap_or_else(|| panic!("there is a function `{name}`"))
}

/// Calls a pure function as mcl does; the result type follows from the arguments.
pub(crate) fn pure(name: &str, arguments: &[Value]) -> Result<Value, CallError> {
    let spec = spec(name);
    let result = call::prepare(spec, arguments)?.result;
    call_typed(spec, arguments, &result)
}

/// Calls a pure function for a result type.
pub(crate) fn pure_as(name: &str, arguments: &[Value], result: &str) -> Result<Value, CallError> {
    let result = Type::parse(result).expect("a type");
    call_typed(spec(name), arguments, &result)
}

/// A source that is followed on a simulated machine.
pub(crate) struct Followed {
    machine: SimulatedCapabilities,
    wake: WakeFlag,
    result: Type,
    pub(crate) subscription: Box<dyn Subscription>,
}

/// Opens a source; its result type follows from the arguments.
pub(crate) fn follow(
    machine: &SimulatedCapabilities,
    name: &str,
    arguments: &[Value],
) -> Result<Followed, CallError> {
    let result = call::prepare(spec(name), arguments)?.result;
    follow_as(machine, name, arguments, &result)
}

/// Opens a source for a result type.
pub(crate) fn follow_as(
    machine: &SimulatedCapabilities,
    name: &str,
    arguments: &[Value],
    result: &Type,
) -> Result<Followed, CallError> {
    let Implementation::Source(source) = &spec(name).implementation else {
        panic!("`{name}` is a source");
    };
    let wake = WakeFlag::default();
    let capabilities = machine.shared();
    let subscription = source.open(
        &CallContext {
            capabilities: &capabilities,
            wake: wake.wake(),
            site: site(),
            result,
        },
        arguments,
    )?;
    Ok(Followed {
        machine: machine.clone(),
        wake,
        result: result.clone(),
        subscription,
    })
}

fn site() -> CallSite {
    CallSite {
        id: 1,
        module_directory: Arc::from("/modules/a/"),
    }
}

impl Followed {
    /// What the subscription gives now, without having been woken.
    pub(crate) fn first(&mut self) -> Result<Value, CallError> {
        let first = self.subscription.take();
        first.expect("a value at once")
    }

    /// What it gives after a wake; nothing if it was not woken or has nothing new.
    pub(crate) fn news(&mut self) -> Option<Result<Value, CallError>> {
        if self.wake.take() {
            self.subscription.take()
        } else {
            None
        }
    }

    /// Gives new arguments.
    pub(crate) fn update(&mut self, arguments: &[Value]) -> Result<(), CallError> {
        let capabilities = self.machine.shared();
        let context = CallContext {
            capabilities: &capabilities,
            wake: self.wake.wake(),
            site: site(),
            result: &self.result,
        };
        self.subscription.update(&context, arguments)
    }

    /// Lets time pass and gives what is new.
    pub(crate) fn after(&mut self, milliseconds: u64) -> Option<Result<Value, CallError>> {
        self.machine.advance(Duration::from_millis(milliseconds));
        self.news()
    }
}

/// The first value of a source.
pub(crate) fn once(
    machine: &SimulatedCapabilities,
    name: &str,
    arguments: &[Value],
) -> Result<Value, CallError> {
    follow(machine, name, arguments)?.first()
}

/// A string value.
pub(crate) fn text(text: &str) -> Value {
    Value::str(text)
}
