//! `setpoint diff`: how two versions of a program differ.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use setpoint_agent::deploys::{DeployedProgram, Deploys};
use setpoint_agent::prefix::Prefix;
use setpoint_cf::errors::told;
use setpoint_diagnostics::{Places, SourceMap};
use setpoint_engine::Preparation;
use setpoint_graph::{DesiredGraph, DesiredResource};
use setpoint_plan::{Place, Plan, compare_graphs};
use setpoint_programs::failure::Failure;
use setpoint_programs::local_machine::{LocalMachine, Presence};
use setpoint_programs::program_input::{ProgramInput, ProgramLanguage};
use setpoint_programs::report::errors_first;
use tempfile::TempDir;

use super::deploy::existing;
use super::plan::{Printing, making, print_as};
use crate::arguments::{ModuleArguments, hostname_argument, parse_seconds};
use crate::desired::{Desired, Evaluating, desired};
use crate::exit_code;
use crate::headings;
use crate::session::Session;
use crate::store_arguments::StoreArguments;

/// Show how two versions of a program differ
///
/// Compares the desired state of two programs, and not the machine. A version is a path, `REVISION:PATH` of the git repository around the
/// current directory, `deploy:ID` or `deploy:newest`. Values that depend on the machine, the time or chance are unknown, unless you pass
/// `--here`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Old version: a path, `REVISION:PATH` or `deploy:ID`
    #[arg(value_name = "OLD")]
    old: String,

    /// New version: a path, `REVISION:PATH` or `deploy:ID`
    #[arg(value_name = "NEW")]
    new: String,

    /// Host name that the programs use [default: name of the machine]
    #[arg(long, value_name = "NAME", help_heading = headings::PROGRAM)]
    hostname: Option<String>,

    /// Read the values that depend on this machine
    #[arg(long)]
    here: bool,

    #[command(flatten)]
    modules: ModuleArguments,

    #[command(flatten)]
    store: StoreArguments,

    /// State directory to read with `--here` [default: as for `setpoint run`]
    #[arg(long = "state-dir", alias = "prefix", value_name = "DIR", requires = "here")]
    state_dir: Option<PathBuf>,

    /// Seconds that a source has to give its first value
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = parse_seconds, default_value = "10", hide_short_help = true)]
    timeout: Duration,

    #[command(flatten)]
    printing: Printing,

    /// Exit with code 2 if the programs differ
    #[arg(long)]
    detailed_exitcode: bool,
}

/// One of the two versions.
struct Version {
    graph: DesiredGraph,
    places: Places,
    root: PathBuf,
    /// A checkout of a revision, which goes away with it.
    _checkout: Option<TempDir>,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Result<u8, Failure> {
    let Some(old) = version(session, arguments, &arguments.old)? else {
        return Ok(exit_code::WRONG);
    };
    let Some(new) = version(session, arguments, &arguments.new)? else {
        return Ok(exit_code::WRONG);
    };
    let place = |resource: &DesiredResource, is_new: bool| match is_new {
        true => new.place(resource),
        false => old.place(resource),
    };
    let (rows, summary) = compare_graphs(&old.graph, &new.graph, place);
    let differs = !rows.is_empty();
    let hostname = hostname_argument(arguments.hostname.as_deref())?;
    let plan = Plan {
        summary,
        rows,
        exit_code: if differs {
            exit_code::CHANGED
        } else {
            exit_code::DONE
        },
        ..making::empty(&hostname, &arguments.new)
    };
    let header = format!("{} -> {} on {hostname}", arguments.old, arguments.new);
    print_as(&session.output, plan, &header, &arguments.printing, true)?;
    Ok(match differs && arguments.detailed_exitcode {
        true => exit_code::CHANGED,
        false => exit_code::DONE,
    })
}

impl Version {
    fn place(&self, resource: &DesiredResource) -> Option<Place> {
        let (file, start) = self.places.place(resource.span)?;
        let below = Path::new(file).strip_prefix(&self.root).ok();
        let file = below.map_or_else(|| file.to_owned(), |below| below.display().to_string());
        Some(Place {
            file: file.into(),
            line: start.line,
            column: start.column,
        })
    }
}

/// The absolute path of a file of a program.
fn absolute(name: &str) -> Arc<str> {
    std::path::absolute(name).map_or_else(|_| name.into(), |path| path.display().to_string().into())
}

/// Evaluates a version. None if it is wrong, which was reported.
fn version(session: &Session, arguments: &Arguments, name: &str) -> Result<Option<Version>, Failure> {
    let mut input = ProgramInput {
        argument: name.to_owned(),
        language: None,
        hostname: hostname_argument(arguments.hostname.as_deref())?,
        has_hostname: arguments.hostname.is_some(),
        module_path: None,
        no_python: false,
        inputs: Vec::new(),
    };
    let deploy = name.strip_prefix("deploy:").filter(|_| !Path::new(name).exists());
    let checkout = match deploy {
        Some(id) => {
            let (directory, program) = fetched(session, arguments, id)?;
            input.argument = program.argument;
            input.module_path = Some(program.modules);
            input.language = program.is_yaml.then_some(ProgramLanguage::Yaml);
            Some(directory)
        }
        None => checked_out(name)?.map(|(directory, path)| {
            input.argument = path.display().to_string();
            directory
        }),
    };
    let argument = input.argument.clone();
    let found = match input.model(&session.assembly, &session.output)? {
        Some(mut model) => {
            if !arguments.here {
                model.without_machine();
            }
            let compilation = model.compile();
            let found = errors_first(&compilation.diagnostics);
            session.output.diagnostics(&told(&found), &model.shown_sources());
            compilation
                .desired
                .map(|desired| (desired.with_held(), model.shown_sources()))
        }
        None => program(session, arguments, &input)?,
    };
    Ok(found.map(|(graph, sources)| Version {
        graph,
        places: Places::of(&sources, absolute),
        root: making::root_of(&argument),
        _checkout: checkout,
    }))
}

fn program(
    session: &Session,
    arguments: &Arguments,
    input: &ProgramInput,
) -> Result<Option<(DesiredGraph, SourceMap)>, Failure> {
    let output = &session.output;
    let modules = arguments.modules.policy(output);
    let source = session.program(input, modules, arguments.state_dir.clone(), false)?;
    let mut compilation = source.fetch_and_compile(output)?;
    let machine = LocalMachine::open(
        session.assembly.kind_names(),
        output,
        &input.hostname,
        Prefix::place(arguments.state_dir.clone())?,
        arguments.store.open(output)?,
        Presence::Onlooker,
        false,
    )?;
    let evaluating = Evaluating {
        timeout: arguments.timeout,
        pure: !arguments.here,
        preparation: Preparation {
            automatic_edges: false,
            grouping: false,
        },
    };
    let Desired { graph, unknown, .. } = desired(session, &mut compilation, &machine, evaluating)?;
    compilation.report(output);
    for part in unknown {
        output.warning(format!("not compared, because it is unknown: {}", part.what));
    }
    Ok(graph.map(|graph| (graph, compilation.shown_sources())))
}

/// The files of a deploy, and its program.
fn fetched(
    session: &Session,
    arguments: &Arguments,
    id: &str,
) -> Result<(TempDir, DeployedProgram), Failure> {
    let Some(store) = arguments.store.open(&session.output)? else {
        let failure = Failure::usage("a deploy is in the store that hosts share");
        return Err(failure.hint("name its members: `--etcd-endpoints https://host:2379`"));
    };
    let deploys = Deploys::new(store);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::io("start", &error))?;
    let root = tempfile::tempdir().map_err(|error| Failure::io("create a temporary directory", &error))?;
    let directory = root.path().join("deploy");
    let program = runtime.block_on(async {
        let stored = existing(&deploys, id).await?;
        let failed = |why: &dyn std::fmt::Display| {
            Failure::wrong(format!("failed to fetch deploy {}", stored.id)).because(why)
        };
        let record = stored.record.as_ref().map_err(|why| failed(why))?;
        if let Some(key) = &record.files {
            let fetched = deploys.fetch_files(key, &directory).await;
            fetched.map_err(|error| failed(&error))?;
        }
        Ok(record.program(&directory))
    })?;
    Ok((root, program))
}

/// A checkout of `REVISION:PATH`, and the path in it. None for a path.
fn checked_out(name: &str) -> Result<Option<(TempDir, PathBuf)>, Failure> {
    let Some((revision, path)) = name.split_once(':').filter(|_| !Path::new(name).exists()) else {
        return Ok(None);
    };
    let top = git(&["rev-parse", "--show-toplevel"])?;
    let below = git(&["rev-parse", "--show-prefix"])?;
    let commit = git(&[
        "rev-parse",
        "--verify",
        "--end-of-options",
        &format!("{revision}^{{commit}}"),
    ])?;
    let directory =
        tempfile::tempdir().map_err(|error| Failure::io("create a temporary directory", &error))?;
    let failed = |error: std::io::Error| Failure::io("check out the revision", &error);
    let mut archive = Command::new("git")
        .args(["-C", &top, "archive", "--format=tar", &commit])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let stdout = archive.stdout.take().map_or_else(Stdio::null, Stdio::from);
    let mut unpack = Command::new("tar");
    unpack.arg("-x").arg("-C").arg(directory.path()).stdin(stdout);
    let unpacked = unpack.status().map_err(failed)?;
    let archived = archive.wait().map_err(failed)?;
    if !unpacked.success() || !archived.success() {
        return Err(Failure::wrong(format!("cannot check out {revision}")));
    }
    let path = directory.path().join(below).join(path);
    Ok(Some((directory, path)))
}

/// The first line that git prints.
fn git(arguments: &[&str]) -> Result<String, Failure> {
    let run = Command::new("git").args(arguments).stdin(Stdio::null()).output();
    let run = run.map_err(|error| Failure::io("run git", &error))?;
    if !run.status.success() {
        let why = String::from_utf8_lossy(&run.stderr).trim().to_owned();
        return Err(Failure::wrong(format!("git refuses: {why}"))
            .hint("a version is a path, or `REVISION:PATH` in a git repository"));
    }
    Ok(String::from_utf8_lossy(&run.stdout).trim_end().to_owned())
}
