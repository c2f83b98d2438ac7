//! A program at work: its evaluator on a thread of its own, fed by sources, handing graphs to the engine.
//!
//! ```text
//!  sources ─ wake ─▶ Woken ─▶ this thread: evaluator.step ─▶ engine.submit
//! ```
//!
//! Wakes of one source coalesce, and whatever came while a step ran is taken together by the next one. Before the first graph, what
//! is wrong ends the command; afterwards it is told, the machine stays with the newest good graph, and the next change is
//! evaluated again.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use setpoint_diagnostics::{Diagnostics, SourceMap};
use setpoint_engine::{Engine, Submitted};
use setpoint_flow::{Evaluator, Step, Stop};
use setpoint_value::Capabilities;
use tokio::sync::Notify;

use crate::compilation::Compilation;
use crate::evaluation::Woken;
use crate::output;

/// A running program. Dropping it closes its sources.
pub(crate) struct Program {
    ended: Arc<Notify>,
    woken: Woken,
    stop: Stop,
    /// Says, by being disconnected, that the thread has ended.
    running: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

/// How long the end of everything waits for the call that is being computed to come to an end.
const PATIENCE_AT_END: Duration = Duration::from_secs(2);

/// The program cannot go on; what is wrong with it was told.
pub(crate) struct Ended;

impl Program {
    /// Starts a compiled program. With `follow`, values that change make new graphs.
    pub(crate) fn start(
        compilation: Compilation,
        capabilities: Arc<dyn Capabilities>,
        engine: Engine,
        follow: bool,
    ) -> Program {
        let ended = Arc::new(Notify::new());
        let woken = Woken::default();
        engine.sources_busy(true);
        let (notify, waker) = (ended.clone(), woken.clone());
        let stop = Stop::default();
        let stopped = stop.clone();
        let (alive, running) = channel();
        let work = move || {
            let _alive = alive;
            if let Err(Ended) = evaluate(&compilation, capabilities, &engine, &waker, &stopped, follow) {
                notify.notify_one();
            }
        };
        let thread = std::thread::Builder::new()
            .name("program".to_owned())
            .spawn(work)
            .ok();
        if thread.is_none() {
            output::talk("error: the system gives no thread for the program\n");
            ended.notify_one();
        }
        Program {
            ended,
            woken,
            stop,
            running,
            thread,
        }
    }

    /// Waits until the program cannot go on. A program that is right never ends by itself.
    pub(crate) async fn ended(&self) -> Ended {
        self.ended.notified().await;
        Ended
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.stop.stop();
        self.woken.close();
        // A thread that is not done by then ends with the process.
        let ended = self.running.recv_timeout(PATIENCE_AT_END);
        if let (Some(thread), Err(RecvTimeoutError::Disconnected)) = (self.thread.take(), ended) {
            let _ = thread.join();
        }
    }
}

fn evaluate(
    compilation: &Compilation,
    capabilities: Arc<dyn Capabilities>,
    engine: &Engine,
    woken: &Woken,
    stop: &Stop,
    follow: bool,
) -> Result<(), Ended> {
    let Some(program) = compilation
        .compiled
        .as_ref()
        .and_then(|compiled| compiled.program.clone())
    else {
        return Err(Ended);
    };
    let sources = compilation.shown_sources();
    let (waking, busy) = (woken.clone(), engine.clone());
    let mut evaluator = Evaluator::new(
        program,
        capabilities,
        Box::new(move |source| {
            let busy = busy.clone();
            waking.wake_saying(source, move || busy.sources_busy(true))
        }),
    )
    .stopped_by(stop.clone());
    let mut told = Diagnostics::new();
    let mut has_graph = false;
    // Who waits for longer than this wants to know what for.
    let mut patience = Instant::now().checked_add(Duration::from_secs(5));
    let mut step = evaluator.step(&[]);
    loop {
        if stop.is_stopped() {
            return Ok(());
        }
        let pending = std::mem::take(&mut step.pending);
        // What holds is said when all of it is known.
        if step.is_finished {
            take(step, engine, &sources, &mut told, &mut has_graph)?;
        }
        if !evaluator.has_sources() || (has_graph && !follow) {
            engine.sources_busy(false);
            woken.wait_for_close();
            return Ok(());
        }
        woken.if_quiet(|| engine.sources_busy(!pending.is_empty()));
        let mut news = woken.wait(patience.filter(|_| !has_graph && !pending.is_empty()));
        if news.is_empty() && !woken.is_closed() {
            patience = None;
            let mut functions: Vec<String> = pending
                .iter()
                .map(|pending| format!("`{}`", pending.function))
                .collect();
            functions.dedup();
            output::talk(&format!(
                "waiting for the first value of {}\n",
                functions.join(", ")
            ));
            news = woken.wait(None);
        }
        if woken.is_closed() {
            return Ok(());
        }
        step = evaluator.step(&news);
    }
}

/// Hands on what a step gave.
fn take(
    step: Step,
    engine: &Engine,
    sources: &SourceMap,
    told: &mut Diagnostics,
    has_graph: &mut bool,
) -> Result<(), Ended> {
    let mut found = step.diagnostics;
    if let Some(graph) = step.graph.filter(|_| !found.has_errors()) {
        match engine.submit(graph).blocking_recv() {
            Ok(Submitted::Accepted | Submitted::Superseded) => *has_graph = true,
            Ok(Submitted::Rejected(rejected)) => found.append(rejected),
            // The engine has ended; so does everything.
            Err(_) => return Ok(()),
        }
    }
    // What is still wrong was told when it began to be.
    if found != *told {
        output::talk_diagnostics(&found, sources);
        if found.has_errors() && *has_graph {
            let messages: Vec<&str> = found.iter().map(|found| found.message.as_str()).collect();
            engine.reject(messages.join("\n"));
            output::talk("the machine is kept as the last good values want it, until the program recovers\n");
        }
        if !found.has_errors() && told.has_errors() {
            output::talk("the program has recovered\n");
        }
        told.clone_from(&found);
    }
    if found.has_errors() && !*has_graph {
        Err(Ended)
    } else {
        Ok(())
    }
}
