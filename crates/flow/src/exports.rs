//! What other hosts export: the source that collect statements begin from.

use setpoint_value::{
    CallContext, CallError, Class, FunctionSpec, Source, Subscription, Type, Value, WorldAnswer, WorldFeed,
    WorldQuery,
};

/// Everything of a kind that is exported to this host or to all: names, exporting hosts, and the resources themselves. Where
/// there is no world, nothing is in it.
pub static EXPORTS: FunctionSpec = FunctionSpec::source(
    "",
    "_collect",
    &["func(kind str) []struct{name str; host str; data str}"],
    Class::Source,
    &Exports,
);

struct Exports;

impl Source for Exports {
    fn open(
        &self,
        context: &CallContext<'_>,
        arguments: &[Value],
    ) -> Result<Box<dyn Subscription>, CallError> {
        let kind = arguments.first().and_then(Value::as_str);
        let kind = kind.map(|kind| kind.to_lossy().into_owned()).unwrap_or_default();
        let world = context.capabilities.world();
        Ok(Box::new(Followed {
            feed: world.map(|world| world.follow(&WorldQuery::Exports(kind), context.wake.clone())),
            result: context.result.clone(),
            last: None,
        }))
    }
}

struct Followed {
    /// None outside of a world.
    feed: Option<Box<dyn WorldFeed>>,
    result: Type,
    last: Option<Result<Value, CallError>>,
}

impl Followed {
    fn newest(&mut self) -> Option<Result<Value, CallError>> {
        let Some(feed) = &mut self.feed else {
            return Some(self.list(Vec::new()));
        };
        Some(match feed.latest()? {
            Ok(WorldAnswer::Exports(exports)) => {
                let fields = exports
                    .into_iter()
                    .map(|e| vec![Value::str(e.name), Value::str(e.host), e.data.into_value()]);
                self.list(fields.collect())
            }
            Ok(_) => Err(CallError::fatal("the world answered another question")),
            Err(problem) => Err(CallError::fatal(format!("the world can't answer: {problem}"))),
        })
    }

    fn list(&self, exports: Vec<Vec<Value>>) -> Result<Value, CallError> {
        let Some(element) = self.result.element() else {
            return Err(CallError::fatal("the result is a list"));
        };
        let items = exports
            .into_iter()
            .map(|fields| Value::structure(element.clone(), fields));
        Ok(Value::list(element.clone(), items))
    }
}

impl Subscription for Followed {
    fn take(&mut self) -> Option<Result<Value, CallError>> {
        let answer = self.newest()?;
        if self.last.as_ref() == Some(&answer) {
            return None;
        }
        self.last = Some(answer.clone());
        Some(answer)
    }

    fn update(&mut self, _: &CallContext<'_>, _: &[Value]) -> Result<(), CallError> {
        // The kind is written in the program.
        Ok(())
    }
}
