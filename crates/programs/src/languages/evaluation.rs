//! Waiting for the first values: what `graph` needs of a program before it can say what the machine shall be.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use setpoint_diagnostics::{Diagnostic, Diagnostics};
use setpoint_flow::{EvaluationProblem, Evaluator, Language, Pending, Program, SourceId, Stop};
use setpoint_graph::{DesiredGraph, UnknownPart};
use setpoint_host::sync::{Condvar, Mutex, wait, wait_timeout};
use setpoint_value::{Capabilities, Wake};

use crate::languages::included_models::IncludedModels;

/// Which sources have news. Wakes of one source coalesce.
#[derive(Clone, Default)]
pub struct Woken(Arc<(Mutex<News>, Condvar)>);

#[derive(Default)]
struct News {
    sources: BTreeSet<SourceId>,
    /// Nobody takes news any more.
    closed: bool,
}

impl Woken {
    /// What a source is given to say that it has news.
    pub fn wake(&self, source: SourceId) -> Wake {
        self.wake_saying(source, || ())
    }

    /// The same, with something to be done when there are news and were none, before anybody can take them. It must not block.
    pub fn wake_saying(&self, source: SourceId, first: impl Fn() + Send + Sync + 'static) -> Wake {
        let woken = self.clone();
        Wake::new(move || {
            let (news, condition) = &*woken.0;
            let mut news = news.lock();
            if news.sources.is_empty() {
                first();
            }
            if news.sources.insert(source) {
                condition.notify_one();
            }
        })
    }

    /// The sources that have news, as soon as there are some; none at the deadline, or when it was closed.
    pub fn wait(&self, deadline: Option<Instant>) -> Vec<SourceId> {
        let (sources, condition) = &*self.0;
        let mut woken = sources.lock();
        while woken.sources.is_empty() && !woken.closed {
            woken = match deadline {
                None => wait(condition, woken),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    wait_timeout(condition, woken, left).0
                }
            };
        }
        std::mem::take(&mut woken.sources).into_iter().collect()
    }

    /// Does this if no source has news, and lets none come meanwhile.
    pub fn if_quiet(&self, action: impl FnOnce()) {
        let news = self.0.0.lock();
        if news.sources.is_empty() {
            action();
        }
    }

    /// Lets whoever waits go.
    pub fn close(&self) {
        self.0.0.lock().closed = true;
        self.0.1.notify_all();
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.0.0.lock().closed
    }

    /// Waits until it is closed; news are of no interest any more.
    pub fn wait_for_close(&self) {
        let (news, condition) = &*self.0;
        let mut news = news.lock();
        while !news.closed {
            news = wait(condition, news);
        }
    }
}

/// What a program wants at first.
pub struct First {
    /// Without it there are errors.
    pub graph: Option<DesiredGraph>,
    /// What the graph lacks because it is not known.
    pub unknown: Vec<UnknownPart>,
    /// What is wrong.
    pub diagnostics: Diagnostics,
    /// Whether the time was over before all was computed.
    pub is_stopped: bool,
}

/// Evaluates a program until every source that is needed has given a value. With `pure`, no source is asked.
pub fn first_graph(
    program: Arc<Program>,
    capabilities: Arc<dyn Capabilities>,
    models: &IncludedModels,
    limit: Duration,
    pure: bool,
) -> First {
    let woken = Woken::default();
    let waking = woken.clone();
    // The limit holds for waiting and for computing alike.
    let (stop, stopping) = (Stop::default(), woken.clone());
    let ending = stop.clone();
    let _limit = capabilities.clock().after(
        limit,
        Wake::new(move || {
            ending.stop();
            stopping.close();
        }),
    );
    let language = program.language;
    let mut evaluator = Evaluator::new(program, capabilities, Box::new(move |source| waking.wake(source)))
        .stopped_by(stop.clone())
        .expanding(Arc::new(models.clone()));
    if pure {
        evaluator = evaluator.without_machine();
    }
    let mut step = evaluator.step(&[]);
    while !step.is_finished || !step.pending.is_empty() {
        let news = match stop.is_stopped() {
            true => Vec::new(),
            false => woken.wait(None),
        };
        if news.is_empty() {
            let mut diagnostics = step.diagnostics;
            diagnostics.extend(
                step.pending
                    .iter()
                    .map(|pending| no_value(language, pending, limit)),
            );
            return First {
                graph: None,
                unknown: Vec::new(),
                diagnostics,
                is_stopped: true,
            };
        }
        step = evaluator.step(&news);
    }
    First {
        graph: step.graph,
        unknown: step.unknown,
        diagnostics: step.diagnostics,
        is_stopped: false,
    }
}

/// The error of a source that has given no value within this time.
pub fn no_value(language: &dyn Language, pending: &Pending, limit: Duration) -> Diagnostic {
    let message = format!("`{}` gives no value within {}", pending.function, seconds(limit));
    let what = EvaluationProblem::NoValue;
    let error = Diagnostic::error(language.evaluation_code(what), pending.span, message)
        .help("`--timeout` sets how long to wait");
    language.complete_evaluation(what, error)
}

fn seconds(limit: Duration) -> String {
    match limit.as_secs_f64() {
        1.0 => "1 second".to_owned(),
        other => format!("{other} seconds"),
    }
}
