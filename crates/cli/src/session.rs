//! The session that every command receives.

use std::path::PathBuf;

use setpoint_programs::Assembly;
use setpoint_programs::failure::Failure;
use setpoint_programs::languages::compilation::ProgramSource;
use setpoint_programs::module_policy::ModulePolicy;
use setpoint_programs::program_input::ProgramInput;

use crate::arguments::compile_options;
use crate::output::Output;

/// What every command is given.
pub(crate) struct Session {
    /// What programs can use.
    pub(crate) assembly: Assembly,
    /// Where the command prints.
    pub(crate) output: Output,
}

impl Session {
    /// With the standard streams of the process.
    pub(crate) fn new(assembly: Assembly) -> Session {
        Session {
            assembly,
            output: Output::default(),
        }
    }

    /// The program that the command line names, and how it is compiled. Modules from elsewhere lie below `prefix`, or the usual one,
    /// where nobody names another directory.
    pub(crate) fn program(
        &self,
        input: &ProgramInput,
        mut modules: ModulePolicy,
        prefix: Option<PathBuf>,
        skip_types: bool,
    ) -> Result<ProgramSource, Failure> {
        let options = compile_options(input, &mut modules, prefix, skip_types)?;
        Ok(input.program(&self.assembly, options, modules, &self.output))
    }
}
