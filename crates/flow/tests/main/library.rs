//! Functions and a kind for tests. What the outside says is what the simulated machine holds as named values.

use setpoint_graph::{Invalid, KindSchema, ParameterSchema, ParameterType};
use setpoint_value::{
    CallContext, CallError, Class, Func, FunctionSpec, List, ScopeArgument, ScopeBuilder, Shape, ShapeState,
    Source, Subscription, Timer, Type, Value,
};

/// A resource with one parameter that takes anything.
pub(crate) static TEST: KindSchema = KindSchema {
    kind: "test",
    doc: "",
    parameters: &[ParameterSchema {
        name: "value",
        yaml_name: "value",
        parameter_type: &ParameterType::Any,
        form: None,
        doc: "",
        default: "",
    }],
    check: |_, parameters, _| match parameters.get("value") {
        Some(Value::Str(text)) if text.as_str() == Some("!refuse") => vec![Invalid::new("this is refused")],
        Some(Value::Str(text)) if text.as_str() == Some("!crash") => panic!("the check crashes"),
        _ => Vec::new(),
    },
    ..KindSchema::plain("", "", &[])
};

/// What the outside says under a key. The strs `!fail` and `!fatal` stand for failures; nothing said is no value yet.
pub(crate) static OUTSIDE: FunctionSpec =
    FunctionSpec::source("outside", "get", &["func(key str) ?1"], Class::Source, &Outside);

/// The same, but each call has its own number: `key#number`.
pub(crate) static NUMBERED: FunctionSpec = FunctionSpec::source(
    "outside",
    "numbered",
    &["func(key str) str"],
    Class::Stateful,
    &Numbered,
);

/// The directory of the module that calls.
pub(crate) static DIRECTORY: FunctionSpec = FunctionSpec::source(
    "outside",
    "directory",
    &["func() str"],
    Class::Environment,
    &Directory,
);

/// Crashes.
pub(crate) static CRASHES: FunctionSpec = FunctionSpec::source(
    "outside",
    "crashes",
    &["func(key str) str"],
    Class::Source,
    &Crashes,
);

struct Outside;

impl Source for Outside {
    fn open(
        &self,
        context: &CallContext<'_>,
        arguments: &[Value],
    ) -> Result<Box<dyn Subscription>, CallError> {
        let mut following = Following::default();
        following.update(context, arguments)?;
        Ok(Box::new(following))
    }
}

#[derive(Default)]
struct Following {
    key: String,
    watch: Option<Timer>,
    read: Option<Box<dyn Fn() -> Option<Value> + Send>>,
}

impl Subscription for Following {
    fn take(&mut self) -> Option<Result<Value, CallError>> {
        let value = self.read.as_ref()?()?;
        Some(match &value {
            Value::Str(text) if text.as_str() == Some("!fail") => {
                Err(CallError::catchable(format!("`{}` is not there", self.key)))
            }
            Value::Str(text) if text.as_str() == Some("!fatal") => {
                Err(CallError::fatal(format!("`{}` is broken", self.key)))
            }
            _ => Ok(value),
        })
    }

    fn update(&mut self, context: &CallContext<'_>, arguments: &[Value]) -> Result<(), CallError> {
        let key = match arguments {
            [Value::Str(key)] => key.to_lossy().into_owned(),
            _ => return Err(CallError::fatal("a key is needed")),
        };
        if key.starts_with('!') {
            return Err(CallError::catchable("a key must not begin with `!`"));
        }
        let values = context.capabilities.values().expect("a machine with values");
        self.watch = Some(values.watch(&key, context.wake.clone()));
        let capabilities = context.capabilities.clone();
        let of = key.clone();
        self.read = Some(Box::new(move || capabilities.values().and_then(|v| v.get(&of))));
        self.key = key;
        Ok(())
    }
}

struct Numbered;

impl Source for Numbered {
    fn open(
        &self,
        context: &CallContext<'_>,
        arguments: &[Value],
    ) -> Result<Box<dyn Subscription>, CallError> {
        let mut numbered = OneNumber(context.site.id, None);
        numbered.update(context, arguments)?;
        Ok(Box::new(numbered))
    }
}

struct OneNumber(u64, Option<Value>);

impl Subscription for OneNumber {
    fn take(&mut self) -> Option<Result<Value, CallError>> {
        self.1.take().map(Ok)
    }

    fn update(&mut self, _: &CallContext<'_>, arguments: &[Value]) -> Result<(), CallError> {
        let key = arguments[0].as_str().expect("a str").to_lossy().into_owned();
        self.1 = Some(Value::str(format!("{key}#{}", self.0)));
        Ok(())
    }
}

struct Directory;

impl Source for Directory {
    fn open(&self, context: &CallContext<'_>, _: &[Value]) -> Result<Box<dyn Subscription>, CallError> {
        Ok(Box::new(OneNumber(
            0,
            Some(Value::str(&*context.site.module_directory)),
        )))
    }

    fn reads_module_directory(&self) -> bool {
        true
    }
}

struct Crashes;

impl Source for Crashes {
    fn open(&self, _: &CallContext<'_>, _: &[Value]) -> Result<Box<dyn Subscription>, CallError> {
        panic!("the source crashes")
    }
}

/// An int as text.
pub(crate) static TO_STR: FunctionSpec =
    FunctionSpec::pure("test", "to_str", &["func(n int) str"], |arguments, _| {
        Ok(Value::str(arguments[0].to_string()))
    });

/// `a / b` of ints; by zero it fails catchably.
pub(crate) static DIVIDE: FunctionSpec =
    FunctionSpec::pure("test", "divide", &["func(a int, b int) int"], |arguments, _| {
        let (a, b) = (arguments[0].as_int(), arguments[1].as_int());
        match (a, b) {
            (Some(a), Some(b)) if b != 0 => Ok(Value::Int(a.wrapping_div(b))),
            _ => Err(CallError::catchable("division by zero")),
        }
    });

/// The remainder by 4, never negative.
pub(crate) static MODULO: FunctionSpec =
    FunctionSpec::pure("test", "modulo", &["func(a int) int"], |arguments, _| {
        Ok(Value::Int(arguments[0].as_int().unwrap_or(0).rem_euclid(4)))
    });

/// The number itself; 13 fails for good, 17 crashes.
pub(crate) static PICKY: FunctionSpec = FunctionSpec::pure(
    "test",
    "picky",
    &["func(a int) int"],
    |arguments, _| match arguments[0].as_int() {
        Some(13) => Err(CallError::fatal("13 is bad luck")),
        Some(17) => panic!("17 is too much"),
        _ => Ok(arguments[0].clone()),
    },
);

/// How long a list is.
pub(crate) static LEN: FunctionSpec =
    FunctionSpec::pure("test", "len", &["func(list []?1) int"], |arguments, _| {
        Ok(Value::Int(arguments[0].as_list().map_or(0, |l| l.len() as i64)))
    });

/// `map(list, function)`.
pub(crate) static MAP: FunctionSpec = FunctionSpec::shape(
    "test",
    "map",
    &["func(list []?1, f func(?1) ?2) []?2"],
    &Elements(Form::Map),
);

/// `filter(list, function)`.
pub(crate) static FILTER: FunctionSpec = FunctionSpec::shape(
    "test",
    "filter",
    &["func(list []?1, f func(?1) bool) []?1"],
    &Elements(Form::Filter),
);

/// `reduce(list, function)`: 0 for the empty list.
pub(crate) static REDUCE: FunctionSpec = FunctionSpec::shape(
    "test",
    "reduce",
    &["func(list []int, f func(int, int) int) int"],
    &Elements(Form::Reduce),
);

/// `chain(list, function)`: what each element stands for is the function of the result with that number, or of 1 if it is negative.
pub(crate) static CHAIN: FunctionSpec = FunctionSpec::shape(
    "test",
    "chain",
    &["func(list []int, f func(int) int) []int"],
    &Elements(Form::Chain),
);

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Map,
    Filter,
    Reduce,
    Chain,
}

struct Elements(Form);

impl Shape for Elements {
    fn start(&self) -> Box<dyn ShapeState> {
        Box::new(ElementsState {
            form: self.0,
            list: None,
            function: None,
            kept: Vec::new(),
        })
    }
}

struct ElementsState {
    form: Form,
    list: Option<List>,
    function: Option<Func>,
    /// Results, kept from one time to the next so that `changed` must be right.
    kept: Vec<Value>,
}

impl ShapeState for ElementsState {
    fn update(&mut self, arguments: &[Value], builder: &mut dyn ScopeBuilder) -> Result<(), CallError> {
        let (Some(list), Some(function)) = (arguments[0].as_list(), arguments[1].as_func()) else {
            return Err(CallError::fatal("a list and a function are needed"));
        };
        if list.iter().any(|v| matches!(v, Value::Int(666_666))) {
            return Err(CallError::catchable("666666 is in the list"));
        }
        let is_same_function = self.function.as_ref() == Some(function);
        for (slot, element) in list.iter().enumerate() {
            let old = self.list.as_ref().and_then(|old| old.get(slot));
            if is_same_function && old == Some(element) {
                continue;
            }
            let earlier = element.as_int().and_then(|at| usize::try_from(at).ok());
            let element = ScopeArgument::Value(element.clone());
            let arguments = match (self.form, slot) {
                (Form::Chain, _) => {
                    vec![earlier.map_or(ScopeArgument::Value(Value::Int(1)), ScopeArgument::Result)]
                }
                (Form::Reduce, 0) => vec![ScopeArgument::Value(Value::Int(0)), element],
                (Form::Reduce, _) => vec![ScopeArgument::Result(slot - 1), element],
                _ => vec![element],
            };
            builder.call(slot, function, &arguments);
        }
        builder.truncate(list.len());
        self.kept.truncate(list.len());
        self.kept.resize(list.len(), Value::Null(Type::Dynamic));
        self.list = Some(list.clone());
        self.function = Some(function.clone());
        Ok(())
    }

    fn collect(&mut self, results: &dyn Fn(usize) -> Value, changed: &[usize]) -> Result<Value, CallError> {
        for slot in changed {
            self.kept[*slot] = results(*slot);
        }
        let list = self.list.as_ref().expect("collect comes after update");
        Ok(match self.form {
            Form::Map | Form::Chain => Value::list(Type::Int, self.kept.iter().cloned()),
            Form::Filter if self.kept.iter().any(Value::is_unknown) => {
                Value::unknown(Type::list(list.element_type().clone()))
            }
            Form::Filter => {
                let kept = list.iter().zip(&self.kept);
                let chosen = kept.filter(|(_, keep)| keep.as_bool() == Some(true));
                Value::list(
                    list.element_type().clone(),
                    chosen.map(|(element, _)| element.clone()),
                )
            }
            Form::Reduce => self.kept.last().cloned().unwrap_or(Value::Int(0)),
        })
    }
}
