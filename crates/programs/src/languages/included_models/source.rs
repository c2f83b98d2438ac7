//! The function by which the module of a model executes it, and does so again when what the model reads changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use setpoint_host::sync::Mutex;
use setpoint_value::{
    Awaited, CallContext, CallError, Capabilities, Class, FileWatch, FunctionRef, FunctionSpec,
    Implementation, ParameterFlags, PureFunction, Shared, Source, Subscription, Timer, Type, Value, Wake,
    WatchDepth,
};

use super::{EXECUTION, Execution, IncludedModels};
use crate::languages::model::ModelWork;

/// The module that the function is in. Nobody imports it but what stands for a model.
pub(super) const MODULE: &str = "setpoint/model";

/// Its name.
pub(super) const FUNCTION: &str = "execute";

/// Changes of files are collected for so long.
const SETTLED: Duration = Duration::from_millis(50);

/// The field that holds an input.
pub(super) fn of_input(name: &str) -> String {
    format!("input_{name}")
}

/// The field that holds an output.
pub(super) fn of_output(name: &str) -> String {
    format!("output_{name}")
}

/// The function: of the directory of a model and a struct with its inputs, a struct with its outputs.
pub(super) fn function(models: &IncludedModels) -> Result<FunctionRef, String> {
    let never = PureFunction::made(|_, _| Err(CallError::fatal("a model is executed by who follows it")));
    let signature = "func(directory str, inputs ?1) ?2";
    let mut spec = FunctionSpec::made(MODULE, FUNCTION, [signature], never)?
        .described("What a model gives for its inputs: its outputs, and the key of its resources.");
    spec.class = Class::Source;
    spec.implementation = Implementation::Source(Shared::Made(Arc::new(Execute(models.clone()))));
    let all = ParameterFlags {
        allow_unknown: true,
        allow_marked: true,
        ..ParameterFlags::default()
    };
    spec.parameters = vec![all].into();
    Ok(FunctionRef::from(spec))
}

struct Execute(IncludedModels);

impl Source for Execute {
    fn open(
        &self,
        context: &CallContext<'_>,
        arguments: &[Value],
    ) -> Result<Box<dyn Subscription>, CallError> {
        let directory = arguments.first().and_then(Value::as_str);
        let directory = directory
            .map(|text| text.to_lossy().into_owned())
            .unwrap_or_default();
        let work = self
            .0
            .work(&directory)
            .map_err(|failure| CallError::fatal(failure.to_string()))?;
        let (is_stale, is_settled) = <(Arc<AtomicBool>, Arc<AtomicBool>)>::default();
        let setting = |flag: &Arc<AtomicBool>| {
            let (flag, owner) = (flag.clone(), context.wake.clone());
            Wake::new(move || {
                flag.store(true, Ordering::SeqCst);
                owner.wake();
            })
        };
        let mut following = Following {
            models: self.0.clone(),
            capabilities: context.capabilities.clone(),
            wake: context.wake.clone(),
            changed: setting(&is_stale),
            is_stale,
            settled: setting(&is_settled),
            is_settled,
            settling: None,
            work: Arc::new(Mutex::new(work)),
            directory,
            inputs: inputs_of(arguments),
            result: context.result.clone(),
            executing: None,
            newest: None,
            watched: BTreeMap::new(),
        };
        following.begin();
        Ok(Box::new(following))
    }
}

/// What is given for each input.
fn inputs_of(arguments: &[Value]) -> BTreeMap<Arc<str>, Value> {
    let Some(given) = arguments.get(1) else {
        return BTreeMap::new();
    };
    let (plain, marks) = given.unmark();
    let Some(fields) = plain.as_struct() else {
        return BTreeMap::new();
    };
    let named = fields.iter().filter_map(|(name, value)| {
        let name = name.strip_prefix("input_")?;
        Some((Arc::from(name), value.clone().with_marks(&marks)))
    });
    named.collect()
}

/// An execution, and the watches of what only this one read.
type Followed = (Arc<Execution>, Vec<(String, FileWatch)>);

struct Following {
    models: IncludedModels,
    capabilities: Arc<dyn Capabilities>,
    /// Says that there may be something to take.
    wake: Wake,
    /// What watches call: a file has changed.
    changed: Wake,
    is_stale: Arc<AtomicBool>,
    /// What the timer calls: files have been left alone.
    settled: Wake,
    is_settled: Arc<AtomicBool>,
    /// Runs while files are left alone.
    settling: Option<Timer>,
    work: Arc<Mutex<ModelWork>>,
    directory: String,
    inputs: BTreeMap<Arc<str>, Value>,
    result: Type,
    executing: Option<Awaited<Followed>>,
    /// Kept, so that its resources can be found by its key.
    newest: Option<Arc<Execution>>,
    /// What the newest execution read besides texts, with the watches.
    watched: BTreeMap<String, FileWatch>,
}

impl Following {
    fn begin(&mut self) {
        let (models, work, capabilities) =
            (self.models.clone(), self.work.clone(), self.capabilities.clone());
        let (directory, inputs) = (self.directory.clone(), self.inputs.clone());
        let known: BTreeSet<String> = self.watched.keys().cloned().collect();
        let changed = self.changed.clone();
        let execute = move || {
            let store = capabilities.effects().is_some();
            let execution = models.execute(&mut work.lock(), &directory, inputs, store);
            let new = execution.files.difference(&known);
            let files = capabilities.files();
            let watches: Vec<(String, FileWatch)> = new
                .filter_map(|path| {
                    let watch = files.watch(path, WatchDepth::Entry, changed.clone()).ok()?;
                    Some((path.clone(), watch))
                })
                .collect();
            if !watches.is_empty() {
                // They may have changed since they were read, before somebody watched.
                changed.wake();
            }
            (execution, watches)
        };
        let background = self.capabilities.background();
        self.executing = Some(Awaited::begin(background, self.wake.clone(), execute));
    }

    /// What an execution gives to the program.
    fn value(&self, execution: &Execution) -> Value {
        let fields = self
            .result
            .as_struct()
            .map(|ty| &ty.fields[..])
            .unwrap_or_default();
        let values = fields.iter().map(|field| {
            if &*field.name == EXECUTION {
                return Value::str(execution.key.as_str());
            }
            let name = field.name.strip_prefix("output_").unwrap_or_default();
            let found = execution.outputs.get(name).filter(|value| value.ty() == field.ty);
            found.cloned().unwrap_or_else(|| Value::unknown(field.ty.clone()))
        });
        Value::structure(self.result.clone(), values.collect::<Vec<Value>>())
    }
}

impl Subscription for Following {
    fn take(&mut self) -> Option<Result<Value, CallError>> {
        if self.is_settled.swap(false, Ordering::SeqCst) {
            self.settling = None;
            self.begin();
        }
        let mut news = None;
        // Asked whenever something was begun: who was not asked in vain wakes nobody.
        if let Some(executing) = &mut self.executing
            && let Some((execution, watches)) = executing.take()
        {
            self.executing = None;
            self.watched.retain(|path, _| execution.files.contains(path));
            self.watched.extend(watches);
            news = Some(Ok(self.value(&execution)));
            self.newest = Some(execution);
        }
        if self.executing.is_none() && self.is_stale.swap(false, Ordering::SeqCst) {
            self.is_settled.store(false, Ordering::SeqCst);
            self.settling = Some(self.capabilities.clock().after(SETTLED, self.settled.clone()));
        }
        news
    }

    fn update(&mut self, context: &CallContext<'_>, arguments: &[Value]) -> Result<(), CallError> {
        self.inputs = inputs_of(arguments);
        self.result = context.result.clone();
        // What is being executed for the old inputs is of no interest any more.
        self.begin();
        self.wake.wake();
        Ok(())
    }
}
