//! Programs in mcl and YAML, as a frontend: each text is compiled into a program that evaluates on a thread of its own.
//!
//! A program that is read again runs beside the old one until the engine has accepted its first graph; only then does the old one end.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use setpoint_programs::languages::compilation::{Compilation, ProgramSource, Version};
use setpoint_programs::report::Importance;

use super::evaluation::{Gate, Program};
use super::{Frontend, Reading};
use crate::messages::Message;
use crate::surroundings::Surroundings;

/// Files must be left alone for so long before they are read.
const SETTLED: Duration = Duration::from_millis(100);

/// A program in mcl or YAML.
pub(crate) struct ProgramFrontend {
    source: ProgramSource,
    /// The first compilation, until it begins.
    first: Option<Compilation>,
    surroundings: Surroundings,
    gate: Arc<Gate>,
    sender: Sender<Message>,
    /// The oldest first.
    running: Vec<Program>,
    newest: u64,
    /// The newest, right or wrong.
    version: Version,
}

impl ProgramFrontend {
    /// With a first compilation, which is right.
    pub(crate) fn new(
        source: ProgramSource,
        compilation: Compilation,
        surroundings: Surroundings,
        sender: Sender<Message>,
    ) -> ProgramFrontend {
        ProgramFrontend {
            source,
            version: compilation.version(),
            first: Some(compilation),
            surroundings,
            gate: Arc::default(),
            sender,
            running: Vec::new(),
            newest: 0,
        }
    }

    /// Starts the newest compilation.
    fn start(&mut self, compilation: Compilation) -> Reading {
        self.newest += 1;
        let started = Program::start(
            self.newest,
            compilation,
            &self.surroundings,
            &self.gate,
            self.sender.clone(),
        );
        match started {
            Ok(program) => self.running.push(program),
            Err(failure) => {
                self.surroundings.reporter.failure(&failure);
                let _ = self.sender.send(Message::Refused(self.newest));
            }
        }
        Reading::Started(self.newest)
    }

    fn say_kept(&self) {
        let text = "the new text is not used; the machine is kept as the program was before";
        self.surroundings.reporter.say(Importance::Warning, text);
    }
}

impl Frontend for ProgramFrontend {
    fn begin(&mut self) -> Reading {
        match self.first.take() {
            Some(compilation) => self.start(compilation),
            None => Reading::Same,
        }
    }

    /// Where nobody asked for it, it only counts if the text differs.
    fn read(&mut self, is_asked: bool) -> Reading {
        if self.version.files.is_none() {
            return Reading::NotAFile;
        }
        let compilation = self.source.compile();
        let version = compilation.version();
        if !is_asked && version.texts == self.version.texts {
            return Reading::Same;
        }
        self.version = version;
        let Surroundings {
            reporter,
            engine,
            state,
            ..
        } = &self.surroundings;
        let found = &compilation.diagnostics;
        reporter.diagnostics(found, &compilation.shown_sources());
        if found.has_errors() {
            let messages: Vec<&str> = found.iter().map(|found| found.message.as_str()).collect();
            let messages = messages.join("\n");
            engine.reject(messages.clone());
            self.say_kept();
            state.set_wrong(Some(messages.clone()));
            return Reading::Rejected(messages);
        }
        self.start(compilation)
    }

    fn replace(&mut self, source: ProgramSource) {
        self.source = source;
        self.version.files.get_or_insert_default();
    }

    fn accepted(&mut self, number: u64) {
        // Ends the others, waiting for a step that they may be amid.
        self.running.retain(|program| program.number() >= number);
        if number > 1 {
            let reporter = &self.surroundings.reporter;
            reporter.say(Importance::Notice, "the program was read again");
        }
    }

    fn refused(&mut self, number: u64) -> bool {
        self.running.retain(|program| program.number() != number);
        let another_runs = !self.running.is_empty();
        if another_runs {
            self.say_kept();
        }
        another_runs
    }

    fn files(&self) -> Vec<PathBuf> {
        self.version.files.clone().unwrap_or_default()
    }

    fn is_wrong(&self) -> bool {
        self.version.has_errors
    }

    fn settle(&self) -> Duration {
        SETTLED
    }
}
