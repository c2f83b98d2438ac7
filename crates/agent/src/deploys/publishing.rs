//! Programs as deploys: what a program is published as, and the program that a deploy is.

use std::path::Path;

use setpoint_diagnostics::visible;
use setpoint_mcl::CompileOptions;
use setpoint_programs::Assembly;
use setpoint_programs::failure::Failure;
use setpoint_programs::imposed::Imposed;
use setpoint_programs::languages::compilation::{Compilation, ProgramSource};
use setpoint_programs::languages::model::ModelSettings;
use setpoint_programs::module_policy::ModulePolicy;
use setpoint_programs::report::Reporter;

use super::{Deployed, DeployedFile, Deploys, Frontend, LARGEST, Record};

/// The record of a program, whose files are stored before.
///
/// # Errors
/// When a file cannot be read or is too large, or the store does not take it.
pub async fn record_of(
    deploys: &Deploys,
    compilation: &Compilation,
    imposed: Imposed,
) -> Result<Record, Failure> {
    let (mut record, files) = program_of(compilation, imposed)?;
    let stored = deploys.store_files(&files).await;
    let key = stored.map_err(|error| cannot("store the program's files", error))?;
    record.files = Some(key);
    Ok(record)
}

/// The newest deploy that is this program already.
///
/// # Errors
/// When a file cannot be read or is too large, or the store cannot be asked.
pub(crate) async fn deploy_of(
    deploys: &Deploys,
    compilation: &Compilation,
    imposed: Imposed,
) -> Result<Option<u64>, Failure> {
    let (record, files) = program_of(compilation, imposed)?;
    let found = deploys.of_same_program(&record, &files).await;
    found.map_err(|error| cannot("look for earlier deploys of the program", error))
}

/// The record of a program, and its files, which are not stored yet.
fn program_of(compilation: &Compilation, imposed: Imposed) -> Result<(Record, Vec<DeployedFile>), Failure> {
    let is_yaml = compilation.input.as_ref().is_some_and(|input| input.is_yaml);
    let files = compilation.program_files(String::new())?;
    let mut all = Vec::new();
    for (path, mode, content) in files.all(&compilation.sources) {
        let content = content.map_err(|why| cannot(&format!("read `{path}`"), why))?;
        if content.len() as u64 > LARGEST {
            let why = format!("`{}` is larger than {} MiB", visible(&path), LARGEST >> 20);
            let failure = cannot("deploy", why);
            return Err(
                failure.hint("large files belong on a server for files, with their checksum in the program")
            );
        }
        let path = match is_yaml {
            // Its name says nothing any more, but that it is one.
            true if path != METADATA => YAML.to_owned(),
            _ => path,
        };
        all.push(DeployedFile { path, mode, content });
    }
    let frontend = if is_yaml { Frontend::Yaml } else { Frontend::Lang };
    Ok((Record::of(frontend).with(imposed), all))
}

/// The file that names the entry of a program.
const METADATA: &str = "/metadata.yaml";

/// The path of a YAML graph in its deploy.
const YAML: &str = "/graph.yaml";

/// The program of a deploy, whose files are in a directory.
pub struct DeployedProgram {
    /// A path, or code.
    pub argument: String,
    /// Whether it is a graph in YAML.
    pub is_yaml: bool,
    /// The directory of its modules, with a trailing slash.
    pub modules: String,
}

impl Record {
    /// The program of the deploy.
    pub fn program(&self, directory: &Path) -> DeployedProgram {
        let directory = format!("{}/", directory.display());
        let modules = format!("{directory}modules/");
        let (argument, is_yaml) = match self.frontend {
            Frontend::Lang => (directory, false),
            Frontend::Yaml => (format!("{directory}{}", &YAML[1..]), true),
            // It is code, which describes nothing.
            Frontend::Empty => ("# an empty deploy".to_owned(), false),
        };
        DeployedProgram {
            argument,
            is_yaml,
            modules,
        }
    }
}

impl Deployed {
    /// The program that it is.
    pub(crate) fn source(&self, assembly: &Assembly, hostname: &str, reporter: &Reporter) -> ProgramSource {
        let program = self.record.program(&self.directory);
        ProgramSource {
            argument: program.argument,
            is_yaml: program.is_yaml,
            options: CompileOptions {
                modules_directory: Some(program.modules),
                skip_types: false,
            },
            library: assembly.library(hostname),
            lint: false,
            modules: ModulePolicy::default(),
            model_settings: ModelSettings::default(),
            imposed: self.record.imposed.clone(),
            deploy: Some(self.id),
            reporter: reporter.clone(),
        }
    }
}

fn cannot(what: &str, why: impl std::fmt::Display) -> Failure {
    Failure::wrong(format!("failed to {what}")).because(why)
}
