//! The `test` kind: a parameter of every type, for tests of languages and engine.

use std::collections::BTreeMap;
use std::time::Duration;

use setpoint_engine::{
    Apply, Failure, Grouping, KindTask, Level, Members, Parameter, ParameterAccess, ParameterStruct,
    Resource, Sends, Text, async_trait,
};
use setpoint_graph::{Invalid, MetaParameters, ParameterType, Parameters, TypeMismatch};
use setpoint_value::{Func, Type, Value};

/// Mostly inert; has a parameter of every type.
#[derive(Debug, Resource)]
#[resource(kind = "test", brings = nothing, receives, refreshable, autogroup, action, asynchronous, background = log_every_second, sends = Sent)]
pub(crate) struct Test {
    /// Only in YAML.
    bool: bool,
    /// Only in YAML.
    str: Text,
    /// Only in YAML.
    int: i64,
    /// A number.
    int8: i8,
    /// A number.
    int16: i16,
    /// A number.
    int32: i32,
    /// A number.
    int64: i64,
    /// A number that is not negative.
    uint: u64,
    /// A number that is not negative.
    uint8: u8,
    /// A number that is not negative.
    uint16: u16,
    /// A number that is not negative.
    uint32: u32,
    /// A number that is not negative.
    uint64: u64,
    /// A byte.
    byte: u8,
    /// A code point.
    rune: i32,
    /// A number.
    float32: f32,
    /// A number.
    float64: f64,
    /// May be unset.
    #[param(yaml = "bool_ptr")]
    boolptr: Option<bool>,
    /// May be unset.
    #[param(yaml = "string_ptr")]
    stringptr: Option<Text>,
    /// May be unset.
    int64ptr: Option<i64>,
    /// May be unset.
    int8ptr: Option<i8>,
    /// May be unset.
    uint8ptr: Option<u8>,
    /// May be unset, at three levels.
    int8ptrptrptr: Option<Option<Option<i8>>>,
    /// A list.
    slicestring: Vec<Text>,
    /// A map.
    mapintfloat: Map,
    /// A struct.
    mixedstruct: Mixed,
    /// Anything.
    interface: Option<Value>,
    /// A text.
    anotherstr: Text,
    /// A note for whoever reads the program.
    comment: Text,
    /// Called with 42 in each run.
    func1: Function,
    /// Makes validation fail.
    #[param(yaml = "validate_bool")]
    validatebool: bool,
    /// Makes validation fail with this text.
    #[param(yaml = "validate_error")]
    validateerror: Text,
    /// Takes other resources of this kind into its group.
    #[param(yaml = "always_group")]
    alwaysgroup: bool,
    /// Makes it differ from any other, even an equal one.
    #[param(yaml = "compare_fail")]
    comparefail: bool,
    /// What is sent as `hello`.
    #[param(yaml = "send_value")]
    sendvalue: Text,
    /// As many keys must have been received.
    #[param(yaml = "expect_recv")]
    expectrecv: Option<Vec<Text>>,
    /// Which parameters are shown in each run. Without any, all are logged, which `-v` shows.
    #[param(yaml = "only_show")]
    onlyshow: Vec<Text>,
    /// Milliseconds after which the run fails; 0 does not fail.
    waitforerror: i64,
    #[state]
    members: Members,
}

type Map = BTreeMap<i64, f64>;

/// A struct with a field of each plain type.
#[derive(Debug, Default, ParameterStruct)]
struct Mixed {
    somebool: bool,
    somestr: Text,
    someint: i64,
    somefloat: f64,
}

/// What it sends, in each run.
#[derive(Sends)]
struct Sent {
    /// What `sendvalue` says.
    hello: Option<Text>,
    /// 42.
    #[send(reveals_nothing)]
    answer: i64,
}

/// A function from a number to a text, or none.
#[derive(Default)]
struct Function(Option<Func>);

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Function" } else { "None" })
    }
}

const SIGNATURE: &str = "func(int) str";

impl Parameter for Function {
    const TYPE: ParameterType = ParameterType::Func(SIGNATURE);

    fn decode(value: &Value) -> Result<Function, TypeMismatch> {
        let function = value.as_func().cloned();
        function
            .map(|function| Function(Some(function)))
            .ok_or_else(|| setpoint_engine::parameter::mismatch(value, &Self::TYPE))
    }

    fn encode(&self) -> Value {
        self.0
            .clone()
            .map_or_else(|| Value::Null(Type::Dynamic), Value::Func)
    }
}

#[async_trait]
impl Resource for Test {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        if self.validatebool {
            invalid.push(Invalid::parameter(
                "validatebool",
                "the validation fails as it was told to",
            ));
        }
        if !self.validateerror.is_empty() {
            let text = String::from_utf8_lossy(self.validateerror.as_bytes());
            invalid.push(Invalid::parameter("validateerror", text));
        }
    }

    fn same(_: &str, a: &Parameters, b: &Parameters) -> bool {
        let fails =
            |parameters: &Parameters| parameters.get("comparefail").and_then(Value::as_bool) == Some(true);
        let compared = |parameters: &Parameters| {
            let all = parameters.iter().filter(|(name, _)| *name != "func1");
            all.map(|(name, value)| (name, value.clone())).collect::<Vec<_>>()
        };
        !fails(a) && !fails(b) && compared(a) == compared(b)
    }

    fn grouping(&self) -> Grouping {
        let grouping = Grouping::none().joining("test", "");
        match self.alwaysgroup {
            true => grouping.taking("test", ""),
            false => grouping,
        }
    }

    fn members(&mut self) -> Option<&mut Members> {
        Some(&mut self.members)
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        for received in apply.received() {
            let changed = if received.changed { ", changed" } else { "" };
            let (parameter, key, from) = (received.parameter, &received.key, &received.from);
            apply.log(
                Level::Info,
                format!("received `{parameter}` from `{key}` of {from}{changed}"),
            );
        }
        if apply.refresh_pending() {
            apply.log(Level::Info, "received a notification");
        }
        if let Some(expected) = &self.expectrecv
            && expected.len() != apply.received().len()
        {
            let (count, wanted) = (apply.received().len(), expected.len());
            let cause = format!("{count} came, {wanted} were expected");
            return Err(Failure::new("receive what is expected").because(cause));
        }
        if let Ok(wait @ 1..) = u64::try_from(self.waitforerror) {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(wait)) => {
                    return Err(Failure::new("succeed").because("it fails as it was told to"));
                }
                () = apply.cancellation().cancelled() => return Err(Failure::cancelled("wait for the error")),
            }
        }
        self.log_parameters(apply);
        if let Function(Some(function)) = &self.func1 {
            let answer = function.implementation().call(&[Value::Int(42)]);
            let answer = answer.map_err(|error| Failure::new("call `func1`").because(error))?;
            apply.log(Level::Info, format!("func1(42): {answer}"));
        }
        apply.send(Sent {
            hello: Some(self.sendvalue.clone()),
            answer: 42,
        });
        self.members.check_apply(apply).await;
        Ok(())
    }
}

impl Test {
    fn log_parameters(&self, apply: &Apply<'_>) {
        use setpoint_engine::Kind;
        let shown: Vec<String> = self
            .onlyshow
            .iter()
            .filter_map(|name| Some(folded(name.as_str()?)))
            .collect();
        // Who names parameters to be shown wants to see them; all of them are for whoever looks closer.
        let tell = |line: String| match self.onlyshow.as_slice() {
            [] => apply.log(Level::Info, line),
            _ => apply.display(line),
        };
        for parameter in Test::SCHEMA.parameters {
            if !self.onlyshow.is_empty() && !shown.contains(&folded(parameter.name)) {
                continue;
            }
            let Some(value) = self.get(parameter.name) else {
                continue;
            };
            let name = parameter.name;
            if apply.is_sensitive(name) {
                tell(format!("{name}: (sensitive)"));
            } else {
                tell(format!("{name}: {value}"));
            }
        }
    }
}

/// A name without regard to case and underscores.
fn folded(name: &str) -> String {
    name.chars()
        .filter(|c| *c != '_')
        .flat_map(char::to_lowercase)
        .collect()
}

/// The kind's own task.
async fn log_every_second(task: KindTask) -> Result<(), Failure> {
    (task.ready)();
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            _ = ticks.tick() => (task.log)(Level::Debug, "the task of the kind `test` runs"),
            () = task.cancellation.cancelled() => return Ok(()),
        }
    }
}
