//! `setpoint lsp`: the language server, on standard input and output.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args;
use setpoint_diagnostics::Loader;
use setpoint_graph::Library;
use setpoint_host::sync::Mutex;
use setpoint_lsp::{Ending, Files, Setup, Transport, serve};
use setpoint_programs::DirectoryLoader;
use setpoint_programs::capabilities::system_hostname;
use setpoint_programs::failure::Failure;
use setpoint_programs::languages::included_models::IncludedModels;
use setpoint_programs::languages::included_programs::{IncludedPrograms, with_programs};
use setpoint_programs::languages::installed_modules::installed_modules;
use setpoint_programs::languages::model::ModelSettings;
use setpoint_programs::languages::model_loader::model_loader;

use crate::arguments::modules_directory;
use crate::exit_code;
use crate::output::Output;
use crate::page;
use crate::session::Session;

/// Run the language server
///
/// Editors start this command. It speaks the Language Server Protocol on standard input and output: diagnostics while you type,
/// completion, navigation and formatting. It changes no files.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Where modules from elsewhere are; ends in `/`. Also the variable SETPOINT_MODULE_PATH [default: modules/ below the prefix]
    #[arg(long, value_name = "DIR")]
    module_path: Option<String>,

    /// What some editors give every server; it is the only way there is
    #[arg(long, hide = true)]
    stdio: bool,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Result<u8, Failure> {
    let modules_directory = modules_directory(arguments.module_path.as_deref())?;
    // Nothing is executed here; they are there so that imports of models are understood.
    let library = session.assembly.library(&system_hostname());
    let models = IncludedModels::new("", &library, &ModelSettings::default(), &session.output);
    let model_library = with_programs(&library);
    let setup = Setup {
        library: models.library(),
        files: Box::new(Disk {
            modules_directory: modules_directory.clone(),
            models,
            library,
            programs: Mutex::default(),
            output: session.output.clone(),
        }),
        model_library,
        modules_directory,
        page,
        version: env!("CARGO_PKG_VERSION"),
    };
    let failed = |error| Failure::io("serve the editor", &error);
    let transport = Transport::new(std::io::stdin(), std::io::stdout()).map_err(failed)?;
    let ending = serve(&transport.connection, setup).map_err(failed)?;
    match (ending, transport.finish()) {
        (Ending::Clean, Ok(())) => Ok(exit_code::DONE),
        // The editor is gone: there is nobody to whom more could be said.
        _ => Ok(exit_code::WRONG),
    }
}

/// The files of this machine.
struct Disk {
    modules_directory: Option<String>,
    models: IncludedModels,
    library: Library,
    /// Programs that models import, by the directory of the project: compiled once as long as their texts stay.
    programs: Mutex<BTreeMap<String, IncludedPrograms>>,
    output: Output,
}

impl Files for Disk {
    fn open(&self, root: &str, entry: Option<&str>) -> Box<dyn Loader> {
        let loader = DirectoryLoader::new(root).with_modules(self.modules_directory.as_deref());
        let loader = match entry {
            Some(file) => loader.with_entry(file),
            None => loader,
        };
        Box::new(self.models.modules(Box::new(loader)))
    }

    fn open_model(&self, root: &str) -> Box<dyn Loader> {
        let mut known = self.programs.lock();
        let programs = known.entry(root.to_owned()).or_insert_with(|| {
            let directory = format!("{}/", root.trim_end_matches('/'));
            IncludedPrograms::new(&directory, &self.library, true, Vec::new(), &self.output)
        });
        Box::new(programs.modules(model_loader(root, &self.module_path())))
    }

    fn module_path(&self) -> Vec<String> {
        installed_modules()
    }

    fn is_file(&self, path: &str) -> bool {
        Path::new(path).is_file()
    }

    fn names(&self, directory: &str) -> Vec<String> {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let is_directory = entry.path().is_dir();
                Some(if is_directory { format!("{name}/") } else { name })
            })
            .collect();
        names.sort();
        names
    }
}
