//! Sources: functions whose value changes by itself.

use std::sync::Arc;

use crate::{CallError, Capabilities, Type, Value, Wake};

/// A function that follows something outside.
pub trait Source: Sync {
    /// Begins to follow. The subscription gives its first value as soon as it can.
    ///
    /// # Errors
    /// When the arguments cannot be used. What goes wrong later is given as a value by [`Subscription::take`].
    fn open(
        &self,
        context: &CallContext<'_>,
        arguments: &[Value],
    ) -> Result<Box<dyn Subscription>, CallError>;

    /// Whether the answer depends on the directory of the module that calls; such calls are shared only within one.
    fn reads_module_directory(&self) -> bool {
        false
    }
}

/// Something that is followed. Dropping it ends it: no watch, timer or process is left.
pub trait Subscription: Send {
    /// The newest value or failure since the last call; `None` when there is nothing new. Called once after opening and
    /// after each wake. Intermediate values may be skipped.
    fn take(&mut self) -> Option<Result<Value, CallError>>;

    /// Takes new arguments without being dropped: a changed path moves the watch. The old value stays until
    /// [`Subscription::take`] gives one for the new arguments.
    ///
    /// # Errors
    /// When the arguments cannot be used (a fixed key was changed).
    fn update(&mut self, context: &CallContext<'_>, arguments: &[Value]) -> Result<(), CallError>;
}

/// What a source is given when it is opened.
pub struct CallContext<'a> {
    /// What the machine offers.
    pub capabilities: &'a Arc<dyn Capabilities>,
    /// To be called whenever [`Subscription::take`] would answer something new. It may be called from any thread and
    /// never calls back.
    pub wake: Wake,
    /// Which call this is.
    pub site: CallSite,
    /// The type that was decided for the result, for sources whose type follows from use.
    pub result: &'a Type,
}

/// Identity and surroundings of a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallSite {
    /// Distinct for each call-site instance (class include, loop element, rebuilt branch) while it lives.
    pub id: u64,
    /// Directory, inside the deploy and with a trailing `/`, of the module whose text calls.
    pub module_directory: Arc<str>,
}

/// A source that reads the machine once for given arguments, and again when those change: class `Environment`.
pub struct ReadOnce {
    /// What it reads.
    pub read: fn(&CallContext<'_>, &[Value]) -> Result<Value, CallError>,
    /// See [`Source::reads_module_directory`].
    pub reads_module_directory: bool,
}

impl Source for ReadOnce {
    fn open(
        &self,
        context: &CallContext<'_>,
        arguments: &[Value],
    ) -> Result<Box<dyn Subscription>, CallError> {
        let answer = Some((self.read)(context, arguments));
        Ok(Box::new(OnceRead {
            read: self.read,
            answer,
        }))
    }

    fn reads_module_directory(&self) -> bool {
        self.reads_module_directory
    }
}

struct OnceRead {
    read: fn(&CallContext<'_>, &[Value]) -> Result<Value, CallError>,
    answer: Option<Result<Value, CallError>>,
}

impl Subscription for OnceRead {
    fn take(&mut self) -> Option<Result<Value, CallError>> {
        self.answer.take()
    }

    fn update(&mut self, context: &CallContext<'_>, arguments: &[Value]) -> Result<(), CallError> {
        self.answer = Some((self.read)(context, arguments));
        context.wake.wake();
        Ok(())
    }
}
