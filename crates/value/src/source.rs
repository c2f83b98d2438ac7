//! Sources: functions whose value changes by itself.

use std::sync::Arc;

use crate::{Awaited, CallError, Capabilities, Type, Value, Wake};

/// A function that follows something outside.
pub trait Source: Send + Sync {
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

    /// The reading behind a source that does nothing but read once. Exactly one answer follows each opening and each update,
    /// and an evaluator computes nothing that depends on it before it is there: no value of such a source is ever seen beside
    /// newer ones of what it is computed from.
    fn as_read_once(&self) -> Option<&ReadOnce> {
        None
    }
}

/// Something that is followed. Dropping it ends it: no watch, timer or process is left.
pub trait Subscription: Send {
    /// The newest value or failure since the last call; `None` when there is nothing new, or nothing yet. Called once after
    /// opening, after each update and after each wake. Never waits. Intermediate values may be skipped.
    fn take(&mut self) -> Option<Result<Value, CallError>>;

    /// Whether a change is being read, so that it will wake again. Until then, the value of the program is not the newest one.
    fn is_reading(&self) -> bool {
        false
    }

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

impl ReadOnce {
    /// Has it read in the background.
    fn begin(&self, context: &CallContext<'_>, arguments: &[Value]) -> Awaited<Result<Value, CallError>> {
        let read = self.read;
        let capabilities = context.capabilities.clone();
        let (site, result) = (context.site.clone(), context.result.clone());
        let arguments = arguments.to_vec();
        let wake = context.wake.clone();
        Awaited::begin(
            context.capabilities.background(),
            context.wake.clone(),
            move || {
                let context = CallContext {
                    capabilities: &capabilities,
                    wake,
                    site,
                    result: &result,
                };
                read(&context, &arguments)
            },
        )
    }
}

impl Source for ReadOnce {
    fn open(
        &self,
        context: &CallContext<'_>,
        arguments: &[Value],
    ) -> Result<Box<dyn Subscription>, CallError> {
        Ok(Box::new(OnceRead {
            read: self.read,
            answer: Some(self.begin(context, arguments)),
        }))
    }

    fn reads_module_directory(&self) -> bool {
        self.reads_module_directory
    }

    fn as_read_once(&self) -> Option<&ReadOnce> {
        Some(self)
    }
}

struct OnceRead {
    read: fn(&CallContext<'_>, &[Value]) -> Result<Value, CallError>,
    answer: Option<Awaited<Result<Value, CallError>>>,
}

impl Subscription for OnceRead {
    fn take(&mut self) -> Option<Result<Value, CallError>> {
        let answer = self.answer.as_mut()?.take()?;
        self.answer = None;
        Some(answer)
    }

    fn update(&mut self, context: &CallContext<'_>, arguments: &[Value]) -> Result<(), CallError> {
        let source = ReadOnce {
            read: self.read,
            reads_module_directory: false,
        };
        // What the old arguments would have given is of no interest any more.
        self.answer = Some(source.begin(context, arguments));
        context.wake.wake();
        Ok(())
    }
}
