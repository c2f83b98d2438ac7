//! A model with the programs that it imports: what they give to it, until nobody has anything new.

use std::path::PathBuf;

use setpoint_cf::compile::Compiled;
use setpoint_cf::export::codes;
use setpoint_diagnostics::{Diagnostic, FileId, Span};

use super::{ModelCompilation, ModelWork};
use crate::languages::included_programs::{Evaluating, KIND};

impl ModelWork {
    /// Executes the model again as long as programs have something to tell that it was not given.
    pub(super) fn with_programs(&mut self, mut compilation: ModelCompilation) -> ModelCompilation {
        /// Of as many rounds a chain of programs, each with what another one gives, may take two for each.
        const ROUNDS_AT_LEAST: usize = 20;
        let mut rounds = 0;
        while self.take_outputs() {
            let instances = compilation.compiled.exported.as_ref();
            let most = ROUNDS_AT_LEAST + 4 * instances.map_or(0, |exported| exported.resources.len());
            rounds += 1;
            if rounds > most {
                compilation.desired = None;
                compilation.diagnostics.push(endless(&compilation.compiled));
                return compilation;
            }
            let stored = compilation
                .compiled
                .execution
                .iter()
                .flat_map(|execution| &execution.stored);
            let stored = stored.map(|(path, text)| (path.clone(), text.clone()));
            self.source.kept.extend(stored);
            compilation = self.update_once(compilation);
        }
        compilation
    }

    /// Gives the model what programs hold in their variables now. Answers whether that is something else than before.
    fn take_outputs(&mut self) -> bool {
        let (old, new) = (&self.source.of_programs, self.source.evaluations.facts());
        let mut pairs = old.iter().zip(new);
        if old.len() == new.len() && pairs.all(|(old, new)| old.0 == new.0 && old.1.is_identical(new.1)) {
            return false;
        }
        self.source.of_programs = new.clone();
        true
    }

    /// Evaluates the programs that the model imports from now on.
    pub fn evaluate_programs(&mut self, evaluating: Evaluating) {
        self.source.evaluations.evaluate(evaluating);
    }

    /// Whether it imports programs.
    pub fn has_programs(&self) -> bool {
        !self.source.programs.is_empty()
    }

    /// Whether a program is waited for, which rings when there is something.
    pub fn waits_for_programs(&self) -> bool {
        self.source.evaluations.is_waiting()
    }

    /// The files that imported programs are made of, as absolute paths.
    pub fn program_files(&self) -> Vec<PathBuf> {
        self.source.programs.files()
    }
}

/// That outputs of programs and what depends on them do not come to rest.
fn endless(compiled: &Compiled) -> Diagnostic {
    // Without one nothing is given anything.
    let whole = Span::new(FileId(0), 0, 0);
    let resources = compiled.exported.iter().flat_map(|exported| &exported.resources);
    let mut programs = resources.filter(|resource| &*resource.identity.kind == KIND);
    let span = programs.next().map_or(whole, |resource| resource.span);
    let message = "what programs are given does not come to rest: it depends on what they give, and changes that in turn";
    Diagnostic::error(&codes::UNFIT, span, message)
        .of_class("ResourceException")
        .label("one of the programs")
        .help("let the inputs not depend on whether the outputs are known")
}
