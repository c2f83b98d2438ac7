//! A program of one expression, compiled and evaluated for real, whose value is followed.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use setpoint_diagnostics::{Diagnostics, RenderStyle, SourceMap, render};
use setpoint_flow::{Evaluator, SourceId, Step};
use setpoint_graph::Library;
use setpoint_mcl::{CompileOptions, Compiled, Entry, compile};
use setpoint_programs::{Assembly, DirectoryLoader};
use setpoint_value::{Capabilities, Value, Wake};

/// How long anything may take before a test gives up.
const LIMIT: Duration = Duration::from_secs(40);

/// A program that compiled, or what is wrong with it.
pub(crate) struct Text {
    pub(crate) compiled: Compiled,
    pub(crate) sources: SourceMap,
    pub(crate) diagnostics: Diagnostics,
}

/// Compiles code with the standard library.
pub(crate) fn compile_code(text: &str) -> Text {
    compile_with(text, &Assembly::standard().library("host.example"))
}

/// Compiles code with a library.
pub(crate) fn compile_with(text: &str, library: &Library) -> Text {
    let entry = Entry::Code {
        name: "program.mcl".to_owned(),
        text: text.to_owned(),
    };
    compile_entry(&entry, &DirectoryLoader::new("/nonexistent"), library)
}

/// Compiles what lies somewhere.
pub(crate) fn compile_entry(entry: &Entry, loader: &DirectoryLoader, library: &Library) -> Text {
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let options = CompileOptions::default();
    let compiled = compile(entry, &options, loader, library, &mut sources, &mut diagnostics);
    Text {
        compiled,
        sources,
        diagnostics,
    }
}

/// Code with the value of one expression in it: the imports, then a resource that holds it.
pub(crate) fn code(imports: &[&str], expression: &str) -> String {
    let mut text: String = imports
        .iter()
        .map(|module| match module.replace('/', "_") {
            alias if module.starts_with("golang/") => format!("import \"{module}\" as {alias}\n"),
            _ => format!("import \"{module}\"\n"),
        })
        .collect();
    text.push_str(&format!("test \"value\" {{ interface => {expression}, }}\n"));
    text
}

/// A running program. Its value is compared as it is written.
pub(crate) struct Followed {
    evaluator: Evaluator,
    woken: Receiver<SourceId>,
    sources: SourceMap,
    newest: Result<String, String>,
    /// Of the newest graph.
    good: Result<String, String>,
    pending: bool,
    /// Every value there was, one after another.
    pub(crate) history: Vec<Result<String, String>>,
}

impl Followed {
    /// Starts a compiled program and takes its first values, as far as they are there at once.
    pub(crate) fn start(text: Text, capabilities: Arc<dyn Capabilities>) -> Followed {
        let Some(program) = text.compiled.program.clone() else {
            panic!(
                "the program is wrong:\n{}",
                rendered(&text.diagnostics, &text.sources)
            );
        };
        let (sender, woken) = channel();
        let wake = move |source: SourceId| {
            let sender = sender.clone();
            Wake::new(move || {
                let _ = sender.send(source);
            })
        };
        let mut followed = Followed {
            evaluator: Evaluator::new(program, capabilities, Box::new(wake)),
            woken,
            sources: text.sources,
            newest: Err("nothing yet".to_owned()),
            good: Err("nothing yet".to_owned()),
            pending: true,
            history: Vec::new(),
        };
        let step = followed.evaluator.step(&[]);
        followed.take(step);
        followed
    }

    fn take(&mut self, step: Step) {
        self.pending = !step.pending.is_empty();
        if step.diagnostics.has_errors() {
            self.newest = Err(rendered(&step.diagnostics, &self.sources));
        } else if let Some(graph) = step.graph {
            let value = graph
                .resources
                .values()
                .find_map(|resource| resource.parameters.get("interface"));
            self.newest = Ok(value.map(Value::to_string).unwrap_or_default());
            self.good.clone_from(&self.newest);
        } else if self.pending {
            return;
        } else {
            // The graph is the one that was last handed out; what was wrong between is not any more.
            self.newest.clone_from(&self.good);
        }
        if self.history.last() != Some(&self.newest) {
            self.history.push(self.newest.clone());
        }
    }

    /// Waits for a source to say that it has news and takes them; false when none does in time.
    pub(crate) fn step(&mut self, limit: Duration) -> bool {
        let first = match self.woken.recv_timeout(limit) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return false,
        };
        let mut news: Vec<SourceId> = std::iter::once(first).chain(self.woken.try_iter()).collect();
        news.sort();
        news.dedup();
        let step = self.evaluator.step(&news);
        self.take(step);
        true
    }

    /// Takes what is there already and answers the value.
    pub(crate) fn now(&mut self) -> Result<String, String> {
        while self.step(Duration::ZERO) {}
        self.newest.clone()
    }

    /// The first value; waits for it.
    pub(crate) fn first(&mut self) -> Result<String, String> {
        let deadline = Instant::now() + LIMIT;
        while self.pending {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(self.step(left), "there is no value in time");
        }
        self.newest.clone()
    }

    /// Whether a source that is needed has given nothing yet.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending
    }

    /// Waits until the value is one that is wanted.
    pub(crate) fn until(&mut self, what: &str, wanted: impl Fn(&Result<String, String>) -> bool) -> String {
        let deadline = Instant::now() + LIMIT;
        while self.pending || !wanted(&self.newest) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                self.step(left),
                "no {what} in time; there were {:#?}",
                self.history
            );
        }
        match &self.newest {
            Ok(text) | Err(text) => text.clone(),
        }
    }

    /// Waits until the value is written like this, and stays so as long as there are news at once.
    pub(crate) fn becomes(&mut self, value: &str) {
        self.until(value, |newest| newest.as_deref() == Ok(value));
        assert_eq!(self.now().as_deref(), Ok(value));
    }

    /// Waits until the program fails, and answers how.
    pub(crate) fn fails(&mut self) -> String {
        self.until("failure", Result::is_err)
    }

    /// How often the value changed since the last call.
    pub(crate) fn changes(&mut self) -> usize {
        std::mem::take(&mut self.history).len()
    }
}

/// Diagnostics as text.
pub(crate) fn rendered(diagnostics: &Diagnostics, sources: &SourceMap) -> String {
    diagnostics
        .iter()
        .map(|diagnostic| render(diagnostic, sources, RenderStyle::PLAIN) + "\n")
        .collect()
}
