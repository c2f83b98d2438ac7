//! The session that every command receives.

use std::path::PathBuf;

use setpoint_graph::Library;

use crate::Assembly;
use crate::arguments::ProgramArguments;
use crate::compilation::ProgramSource;
use crate::failure::Failure;
use crate::imposed::Imposed;
use crate::model::ModelWork;
use crate::modules::ModulePolicy;
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
        arguments: &ProgramArguments,
        mut modules: ModulePolicy,
        prefix: Option<PathBuf>,
        skip_types: bool,
    ) -> Result<ProgramSource, Failure> {
        let library: Library = self.assembly.library(&arguments.hostname()?);
        let options = arguments.compile_options(&mut modules, prefix, skip_types, &self.output)?;
        Ok(ProgramSource {
            argument: arguments.input()?.to_owned(),
            is_yaml: arguments.is_yaml(),
            options,
            library,
            lint: false,
            modules,
            model_settings: arguments.included_model_settings(),
            imposed: Imposed::default(),
            deploy: None,
            output: self.output.clone(),
        })
    }

    /// The model that the command line names, if it names one.
    pub(crate) fn model(&self, arguments: &ProgramArguments) -> Result<Option<ModelWork>, Failure> {
        let library: Library = self.assembly.library(&arguments.hostname()?);
        Ok(arguments.model(library, &self.output)?.map(ModelWork::new))
    }
}
