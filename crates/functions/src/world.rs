//! `world`: what all members share.
//!
//! Where there is no world, nothing is in it.

use setpoint_value::native::{shown, text};
use setpoint_value::{
    CallContext, CallError, Map, Module, Source, StoredText, Subscription, Type, Value, WorldAnswer,
    WorldFeed, WorldQuery, function,
};

pub(crate) mod collect;

pub(crate) static MODULE: Module = Module::new(
    "world",
    "What the members of a cluster share; alone, there is nothing in it.",
    &[&GETVAL, &KVLOOKUP, &SCHEDULE],
);

/// The string of a key, and whether there is one.
#[function(
    signature = "func(key str) struct{value str; exists bool}",
    parameters(
        /// The key, as the kind `kv` has it. It must not change while the program runs.
        key,
    ),
    example(call = r#"world.getval("nobody sets this")->exists"#, result = "false")
)]
static GETVAL: Ask = Ask {
    query: WorldQuery::String,
    answer: |answer, ty| match answer {
        WorldAnswer::String(value) => {
            let exists = Value::Bool(value.is_some());
            let value = value.map_or_else(|| Value::str(""), StoredText::into_value);
            Some(Value::structure(ty.clone(), vec![value, exists]))
        }
        _ => None,
    },
    nothing: || WorldAnswer::String(None),
    is_kind: false,
};

/// What each host has set under a name with the kind `kv`.
#[function(
    signature = "func(namespace str) map{str: str}",
    parameters(
        /// The key, as the kind `kv` has it. It must not change while the program runs.
        namespace,
    ),
    example(call = r#"len(world.kvlookup("nobody sets this"))"#, result = "0")
)]
static KVLOOKUP: Ask = Ask {
    query: WorldQuery::Strings,
    answer: |answer, _| match answer {
        WorldAnswer::Strings(strings) => {
            let entries = strings.into_iter();
            let entries = entries.map(|(host, value)| (Value::str(host), value.into_value()));
            Some(Value::Map(Map::new(Type::Str, Type::Str, entries)))
        }
        _ => None,
    },
    nothing: || WorldAnswer::Strings(std::collections::BTreeMap::new()),
    is_kind: false,
};

/// The hosts that were chosen among those which the kind `schedule` offers.
#[function(
    signature = "func(namespace str) []str",
    parameters(
        /// The name of the `schedule` resources. It must not change while the program runs.
        namespace,
    ),
    example(call = r#"len(world.schedule("nobody takes part"))"#, result = "0")
)]
static SCHEDULE: Ask = Ask {
    query: WorldQuery::Schedule,
    answer: |answer, _| match answer {
        WorldAnswer::Hosts(hosts) => Some(Value::strings(hosts)),
        _ => None,
    },
    nothing: || WorldAnswer::Hosts(Vec::new()),
    is_kind: false,
};

/// A source that asks the world.
struct Ask {
    query: fn(String) -> WorldQuery,
    /// The answer as a value of the result type; none for an answer to another question.
    answer: fn(WorldAnswer, &Type) -> Option<Value>,
    /// What stands in an empty world.
    nothing: fn() -> WorldAnswer,
    /// Whether the argument names a kind of resource.
    is_kind: bool,
}

impl Source for Ask {
    fn open(
        &self,
        context: &CallContext<'_>,
        arguments: &[Value],
    ) -> Result<Box<dyn Subscription>, CallError> {
        let key = text(arguments, 0)?;
        if key.is_empty() {
            return Err(CallError::fatal("the key must not be empty"));
        }
        let feed = match context.capabilities.world() {
            Some(world) => {
                if self.is_kind && !world.knows_kind(key) {
                    let kind = shown(&arguments[0]);
                    return Err(CallError::fatal(format!("there is no kind `{kind}`")));
                }
                world.follow(&(self.query)(key.to_owned()), context.wake.clone())
            }
            None => Box::new(Nothing((self.nothing)())) as Box<dyn WorldFeed>,
        };
        Ok(Box::new(Asked {
            feed,
            answer: self.answer,
            key: arguments.to_vec(),
            result: context.result.clone(),
            last: None,
        }))
    }
}

/// The only answer of an empty world.
struct Nothing(WorldAnswer);

impl WorldFeed for Nothing {
    fn latest(&mut self) -> Option<Result<WorldAnswer, String>> {
        Some(Ok(self.0.clone()))
    }
}

struct Asked {
    feed: Box<dyn WorldFeed>,
    answer: fn(WorldAnswer, &Type) -> Option<Value>,
    key: Vec<Value>,
    result: Type,
    last: Option<Result<Value, CallError>>,
}

impl Subscription for Asked {
    fn take(&mut self) -> Option<Result<Value, CallError>> {
        let answer = match self.feed.latest()? {
            Ok(answer) => (self.answer)(answer, &self.result)
                .ok_or_else(|| CallError::fatal("the world answered another question")),
            Err(problem) => Err(CallError::fatal(format!("the world can't answer: {problem}"))),
        };
        if self.last.as_ref() == Some(&answer) {
            return None;
        }
        self.last = Some(answer.clone());
        Some(answer)
    }

    fn update(&mut self, _: &CallContext<'_>, arguments: &[Value]) -> Result<(), CallError> {
        if self.key == arguments {
            return Ok(());
        }
        let before = self.key.first().map(shown).unwrap_or_default();
        Err(CallError::fatal(format!(
            "can't change key, previously: {before}"
        )))
    }
}
