//! The first compilation of the program that a command runs or plans.

use std::path::PathBuf;

use setpoint_agent::first_program::FirstProgram;
use setpoint_cf::errors::told;
use setpoint_programs::failure::Failure;
use setpoint_programs::languages::compilation::ProgramSource;
use setpoint_programs::program_input::ProgramInput;
use setpoint_programs::report::errors_first;

use crate::process::warn_of_foreign_text;
use crate::session::Session;

/// The first compilation of a program.
pub(crate) enum Compiled {
    /// It is wrong, which was reported.
    Wrong,
    Right(FirstProgram),
}

/// How a model is read.
pub(crate) struct ModelReading<'a> {
    /// Facts that override those that resources publish.
    pub(crate) facts: Option<&'a PathBuf>,
    /// Whether it follows its files.
    pub(crate) follows: bool,
}

/// Compiles the program, and reports what is wrong with it. None for the word that stands for no program.
///
/// # Errors
/// When it cannot be read, or an option is not for it.
pub(crate) fn first_program(
    session: &Session,
    input: &ProgramInput,
    source: impl FnOnce() -> Result<ProgramSource, Failure>,
    reading: &ModelReading<'_>,
) -> Result<Option<Compiled>, Failure> {
    let output = &session.output;
    let model = input.model(&session.assembly, output)?;
    if reading.facts.is_some() && model.is_none() {
        return Err(Failure::usage("`--facts` is for models"));
    }
    if input.is_empty() {
        return Ok(None);
    }
    if let Some(mut model) = model {
        if reading.follows {
            model.follow();
        }
        if let Some(facts) = reading.facts {
            model.take_facts(facts.clone())?;
        }
        let compilation = model.compile();
        if compilation.diagnostics.has_errors() {
            let found = errors_first(&compilation.diagnostics);
            output.diagnostics(&told(&found), &model.shown_sources());
            return Ok(Some(Compiled::Wrong));
        }
        let program = FirstProgram::Model(Box::new((model, compilation)));
        return Ok(Some(Compiled::Right(program)));
    }
    let source = source()?;
    let compilation = source.fetch_and_compile(output)?;
    output.diagnostics(&compilation.diagnostics, &compilation.shown_sources());
    if compilation.diagnostics.has_errors() {
        return Ok(Some(Compiled::Wrong));
    }
    warn_of_foreign_text(&compilation.files().unwrap_or_default(), output);
    let program = FirstProgram::Program(Box::new((source, compilation)));
    Ok(Some(Compiled::Right(program)))
}
