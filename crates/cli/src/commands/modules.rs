//! `setpoint modules`: the modules that a program imports by their addresses.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use setpoint_diagnostics::visible;
use setpoint_mcl::RemoteImport;
use setpoint_programs::failure::Failure;
use setpoint_programs::languages::compilation::{Compilation, ProgramSource};
use setpoint_programs::module_policy::{Fetch, ModulePolicy};
use setpoint_programs::modules::{LockFile, Standing, commit_of, standing};

use crate::arguments::{DownloadPatience, ProgramArguments};
use crate::exit_code;
use crate::output::Output;
use crate::session::Session;

/// Download, update and list remote modules
///
/// Remote modules are git repositories that a program imports by address. They are stored below `path` of the importing
/// module's `metadata.yaml`, below --module-path, or in the state directory. A lock file in the directory of the program
/// records the commits.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Fetch what is missing, as the lock file says where it says something, and write the lock file
    Get(FetchArguments),
    /// Fetch what is missing and the newest version of what is there, and write the lock file
    Update(FetchArguments),
    /// List the modules with their commits
    List(ListArguments),
}

#[derive(Debug, Args)]
struct FetchArguments {
    #[command(flatten)]
    program: ProgramArguments,

    /// State directory for the modules [default: as for `setpoint run`]
    #[arg(long = "state-dir", alias = "prefix", value_name = "DIR")]
    prefix: Option<PathBuf>,

    #[command(flatten)]
    patience: DownloadPatience,
}

#[derive(Debug, Args)]
struct ListArguments {
    #[command(flatten)]
    program: ProgramArguments,

    /// State directory with the modules [default: as for `setpoint run`]
    #[arg(long = "state-dir", alias = "prefix", value_name = "DIR")]
    prefix: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Result<u8, Failure> {
    let (fetching, update) = match &arguments.action {
        Action::Get(fetching) => (fetching, false),
        Action::Update(fetching) => (fetching, true),
        Action::List(listing) => return list(session, listing),
    };
    let policy = ModulePolicy {
        fetch: Some(Fetch {
            update,
            patience: fetching.patience.download_timeout,
        }),
        ..ModulePolicy::default()
    };
    let input = fetching.program.parse(&session.output)?;
    let source = session.program(&input, policy, fetching.prefix.clone(), true)?;
    follow_imports(source, &session.output)
}

/// Fetches what is asked for, follows all imports, and says what is wrong up to there.
pub(super) fn follow_imports(mut source: ProgramSource, output: &Output) -> Result<u8, Failure> {
    source.options.skip_types = true;
    let compilation = source.fetch_and_compile(output)?;
    compilation.report(output);
    Ok(match compilation.diagnostics.has_errors() {
        true => exit_code::WRONG,
        false => exit_code::DONE,
    })
}

fn list(session: &Session, arguments: &ListArguments) -> Result<u8, Failure> {
    let output = &session.output;
    let policy = ModulePolicy::default();
    let input = arguments.program.parse(output)?;
    let source = session.program(&input, policy, arguments.prefix.clone(), true)?;
    let compilation = source.compile();
    let rows = rows(&compilation)?;
    if arguments.json {
        let modules: Vec<_> = rows.iter().map(Row::json).collect();
        output.print(&format!("{}\n", json!({ "modules": modules })))?;
    } else {
        output.print(&table(&rows))?;
    }
    compilation.report(output);
    Ok(match compilation.diagnostics.has_errors() {
        true => exit_code::WRONG,
        false => exit_code::DONE,
    })
}

/// A module that is imported.
struct Row {
    import: String,
    /// None while it is missing.
    directory: Option<String>,
    /// None while it is missing, and where it is no repository.
    commit: Option<String>,
    state: &'static str,
}

impl Row {
    fn json(&self) -> serde_json::Value {
        json!({
            "import": self.import,
            "directory": self.directory,
            "commit": self.commit,
            "state": self.state,
        })
    }
}

/// The modules of a program, in the order of its imports, each once.
fn rows(compilation: &Compilation) -> Result<Vec<Row>, Failure> {
    let (Some(input), Some(compiled)) = (&compilation.input, &compilation.compiled) else {
        return Ok(Vec::new());
    };
    let lock = LockFile::of(input)?;
    let global = compilation.modules_directory.as_deref();
    let mut seen: Vec<&RemoteImport> = Vec::new();
    let mut rows = Vec::new();
    for import in &compiled.remote_imports {
        let is_same = |other: &&RemoteImport| {
            (&other.import, &other.modules_directory) == (&import.import, &import.modules_directory)
        };
        if seen.iter().any(is_same) {
            continue;
        }
        seen.push(import);
        if !import.is_there {
            rows.push(Row {
                import: import.import.to_string(),
                directory: None,
                commit: None,
                state: "missing",
            });
            continue;
        }
        let directory = import.modules_directory.as_deref().unwrap_or_default();
        let directory = input.shown(&format!("{directory}{}", import.module));
        let locked = lock.as_ref().and_then(|lock| lock.get(import, global));
        let state = match standing(Path::new(&input.root), import, locked) {
            Standing::Locked => "locked",
            Standing::Unknown => "not locked",
            Standing::OtherCommit { .. } => "other commit than locked",
            Standing::Changed => "changed",
            Standing::Unreadable(_) => "unreadable",
        };
        rows.push(Row {
            import: import.import.to_string(),
            commit: commit_of(Path::new(&directory)),
            directory: Some(directory),
            state,
        });
    }
    Ok(rows)
}

fn table(rows: &[Row]) -> String {
    let cells: Vec<[String; 4]> = rows
        .iter()
        .map(|row| {
            let commit = row.commit.as_deref().unwrap_or("-");
            [
                visible(&row.import).into_owned(),
                commit.get(..12).unwrap_or(commit).to_owned(),
                row.state.to_owned(),
                visible(row.directory.as_deref().unwrap_or("-")).into_owned(),
            ]
        })
        .collect();
    let width = |column: usize| {
        cells
            .iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2)];
    let mut text = String::new();
    for row in &cells {
        for (cell, width) in row.iter().zip(widths) {
            text.push_str(&format!("{cell:width$}  "));
        }
        text.push_str(&row[3]);
        text.push('\n');
    }
    text
}
