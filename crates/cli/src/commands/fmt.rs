//! `setpoint fmt`: one layout for every text.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use setpoint_diagnostics::{SourceMap, visible, without_system_numbers};
use setpoint_host::files::{AbsolutePath, Committer, Replace};
use setpoint_mcl::format::{FormatError, format_file};
use setpoint_programs::failure::{Failure, system_text};

use crate::exit_code;
use crate::output::Output;

/// Format programs
///
/// Files are rewritten in place, keeping owner and mode. A directory means every `.mcl` file below it, and every `.cf` file below a
/// `project.yml` or `module.yml`: other programs have files of that name too. Links are left alone.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Files and directories; `-` formats standard input to standard output
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<String>,

    /// Change nothing; exit with 1 if something is not formatted
    #[arg(short = 't', long, visible_alias = "test")]
    check: bool,

    /// Name every file
    #[arg(short, long)]
    verbose: bool,
}

pub(super) fn run(output: &Output, arguments: &Arguments) -> Result<u8, Failure> {
    let mut formatter = Formatter {
        output,
        check: arguments.check,
        committer: Committer::new(),
        failed: false,
    };
    if arguments.paths.iter().any(String::is_empty) {
        return Err(Failure::usage(
            "there is nothing to format: the argument is empty",
        ));
    }
    for path in &arguments.paths {
        if path == "-" {
            formatter.standard_input()?;
            continue;
        }
        let files = files(path)?;
        if files.is_empty() {
            let directory = visible(path);
            output.error(format!("there is no program to format below {directory}"));
            formatter.failed = true;
        }
        for file in files {
            let changed = formatter.file(&file)?;
            if arguments.verbose && !changed {
                output.print(&format!("{} is formatted\n", file.display()))?;
            }
        }
    }
    Ok(if formatter.failed {
        exit_code::WRONG
    } else {
        exit_code::DONE
    })
}

struct Formatter<'a> {
    output: &'a Output,
    check: bool,
    committer: Committer,
    failed: bool,
}

impl Formatter<'_> {
    /// Whether the file was not formatted.
    fn file(&mut self, path: &Path) -> Result<bool, Failure> {
        let shown = path.display();
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.complain(&format!("failed to read {shown}: {}", system_text(&error)));
                return Ok(false);
            }
        };
        let Ok(text) = String::from_utf8(bytes) else {
            self.complain(&format!("{shown} is not UTF-8 text"));
            return Ok(false);
        };
        let Some(formatted) = self.formatted(&shown.to_string(), &text) else {
            return Ok(false);
        };
        if formatted == text {
            return Ok(false);
        }
        if self.check {
            self.failed = true;
            self.output.print(&format!("{shown} is not formatted\n"))?;
            return Ok(true);
        }
        match self.replace(path, formatted) {
            Ok(()) => self.output.print(&format!("{shown}\n"))?,
            Err(message) => self.complain(&message),
        }
        Ok(true)
    }

    fn replace(&self, path: &Path, text: String) -> Result<(), String> {
        let absolute = std::path::absolute(path)
            .map_err(|error| format!("failed to find {}: {}", path.display(), system_text(&error)))?;
        let absolute = AbsolutePath::new(absolute).map_err(|error| format!("{}: {error}", path.display()))?;
        self.committer
            .replace(Replace::bytes(absolute, text.into_bytes()))
            .map(drop)
            .map_err(|error| without_system_numbers(&format!("failed to {error}")))
    }

    fn standard_input(&mut self) -> Result<(), Failure> {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|error| Failure::io("read standard input", &error))?;
        let Some(formatted) = self.formatted("<stdin>", &text) else {
            return Ok(());
        };
        if self.check {
            self.failed |= formatted != text;
            return Ok(());
        }
        self.output.print(&formatted)
    }

    /// None after saying why not.
    fn formatted(&mut self, name: &str, text: &str) -> Option<String> {
        let mut sources = SourceMap::new();
        let file = sources.add(name, text);
        let formatted = match name.ends_with(".cf") {
            true => setpoint_cf::format::format(file, text).map_err(FormatError::Syntax),
            false => format_file(file, text),
        };
        match formatted {
            Ok(formatted) => Some(formatted),
            Err(FormatError::Syntax(diagnostics)) => {
                self.output.diagnostics(&diagnostics, &sources);
                self.failed = true;
                None
            }
            Err(error @ FormatError::Unfaithful(_)) => {
                self.complain(&format!(
                    "{name} is left alone, because {error}; that is a bug in setpoint"
                ));
                None
            }
        }
    }

    fn complain(&mut self, message: &str) {
        self.failed = true;
        self.output.error(visible(message));
    }
}

/// Whether a file of this name is a program, in a model or not.
fn is_program(path: &Path, is_model: bool) -> bool {
    let extension = path.extension();
    extension.is_some_and(|extension| extension == "mcl" || extension == "cf" && is_model)
}

/// Whether a model, or a module of one, begins in this directory.
fn has_model(directory: &Path) -> bool {
    ["project.yml", "module.yml"]
        .into_iter()
        .any(|name| directory.join(name).is_file())
}

/// Whether the directory is a part of a model.
fn is_in_model(directory: &Path) -> bool {
    let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    absolute.ancestors().any(has_model)
}

/// The file, or all programs below the directory, sorted. Links below it are left alone: they lead where nobody asked to write.
fn files(argument: &str) -> Result<Vec<PathBuf>, Failure> {
    let path = Path::new(argument);
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let mut waiting = vec![(path.to_owned(), is_in_model(path))];
    while let Some((directory, is_above_model)) = waiting.pop() {
        let is_model = is_above_model || has_model(&directory);
        let failed =
            |error: std::io::Error| Failure::io(format_args!("list {}", directory.display()), &error);
        for entry in std::fs::read_dir(&directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            let path = entry.path();
            if kind.is_dir() {
                waiting.push((path, is_model));
            } else if is_program(&path, is_model) && kind.is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    // `./x.mcl` is known as `x.mcl` to whoever did not write the dot.
    let found = found
        .into_iter()
        .map(|file| file.strip_prefix(".").map(Path::to_owned).unwrap_or(file));
    Ok(found.collect())
}
