//! The program that a user names, in whichever language it is.

use std::path::Path;

use setpoint_mcl::CompileOptions;

use crate::assembly::Assembly;
use crate::failure::Failure;
use crate::imposed::Imposed;
use crate::languages::compilation::ProgramSource;
use crate::languages::model::{ModelSettings, ModelSource, ModelWork, is_model};
use crate::module_policy::ModulePolicy;
use crate::report::Reporter;

/// The languages in which programs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramLanguage {
    /// Programs, `.mcl`.
    Mcl,
    /// Models, `.cf`.
    Cf,
    /// Graphs, `.yaml`.
    Yaml,
}

/// The program that a user names, with its options.
#[derive(Debug, Clone)]
pub struct ProgramInput {
    /// A path, `-` for standard input, or code.
    pub argument: String,
    /// Its language; none where the argument decides.
    pub language: Option<ProgramLanguage>,
    /// The name of this host, as the program sees it.
    pub hostname: String,
    /// Whether the user named the host.
    pub has_hostname: bool,
    /// Where modules from elsewhere are, as given.
    pub module_path: Option<String>,
    /// Whether the functions that modules of a model have in Python are not run.
    pub no_python: bool,
    /// Values for inputs of a model, by name.
    pub inputs: Vec<(String, String)>,
}

/// Whether a word of the command line is code or standard input, and names no file that a program could be read from again.
#[must_use]
pub fn is_code(argument: &str) -> bool {
    argument == "-" || !matches!(argument, "" | "empty") && !Path::new(argument).exists()
}

impl ProgramInput {
    /// Whether it is the word for no program at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.argument == "empty" && self.language.is_none()
    }

    /// The model that it is, if it is one.
    ///
    /// # Errors
    /// When the model cannot be found, or is no model and has inputs.
    pub fn model(&self, assembly: &Assembly, reporter: &Reporter) -> Result<Option<ModelWork>, Failure> {
        let is_model = match self.language {
            Some(language) => language == ProgramLanguage::Cf,
            None => is_model(&self.argument),
        };
        if !is_model {
            return match self.inputs.is_empty() {
                true => Ok(None),
                false => Err(Failure::usage("`--input` is for models")),
            };
        }
        let settings = ModelSettings {
            module_path: self.module_path.iter().cloned().collect(),
            no_python: self.no_python,
            inputs: self.inputs.clone(),
            ..ModelSettings::default()
        };
        let library = assembly.library(&self.hostname);
        let source = ModelSource::find(&self.argument, settings, library, self.hostname.clone(), reporter)?;
        Ok(Some(ModelWork::new(source)))
    }

    /// The program that it is, and how it is compiled, where it is no model.
    #[must_use]
    pub fn program(
        &self,
        assembly: &Assembly,
        options: CompileOptions,
        modules: ModulePolicy,
        reporter: &Reporter,
    ) -> ProgramSource {
        ProgramSource {
            argument: self.argument.clone(),
            is_yaml: self.language == Some(ProgramLanguage::Yaml),
            options,
            library: assembly.library(&self.hostname),
            lint: false,
            modules,
            model_settings: ModelSettings {
                no_python: self.no_python,
                ..ModelSettings::default()
            },
            imposed: Imposed::default(),
            deploy: None,
            reporter: reporter.clone(),
        }
    }
}
