//! `setpoint cf`: what can be done with models only.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use setpoint_cf::errors::told;
use setpoint_cf::execute::Instance;
use setpoint_cf::export::State;
use setpoint_cf::{json, syntax};
use setpoint_diagnostics::{Diagnostics, SourceMap};
use setpoint_graph::Library;
use setpoint_programs::failure::{Failure, system_text};
use setpoint_programs::languages::model::{ModelSettings, ModelSource, ModelWork};
use setpoint_programs::report::{Importance, errors_first};

use crate::arguments::{hostname_argument, parse_assignment};
use crate::exit_code;
use crate::output::Output;
use crate::session::Session;

/// Inspect a model (`.cf`)
///
/// The commands `check`, `graph` and `run` also accept models. The commands below are for models only.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check a model without executing it: syntax, modules, definitions, names
    Check(Model),
    /// Execute a model: what it prints, what is wrong with it, and with --json everything that it becomes
    Compile(Model),
    /// Look at the syntax of files only
    Parse(Parse),
    /// List what a model asked for and is not known yet, and what is held because of it
    Unknowns(Model),
}

#[derive(Debug, Args)]
struct Model {
    /// A directory that is a project or lies in one, or a `.cf` file
    #[arg(value_name = "DIR", default_value = ".")]
    directory: String,

    /// The main file of the project
    #[arg(short = 'f', value_name = "FILE")]
    file: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// A further directory of modules; can be given several times
    #[arg(long, value_name = "DIR")]
    module_path: Vec<String>,

    /// A variable of the environment; with it, these are all that there are
    #[arg(long, value_name = "K=V", value_parser = parse_assignment)]
    env: Vec<(String, String)>,

    /// What an input of the model is: `domain=example.org`, `ports=[80, 443]`; can be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_assignment)]
    input: Vec<(String, String)>,

    /// A JSON file with facts, by machine, resource and name: `{"web1": {"file[/etc/motd]": {"size": 12}}}`
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,

    /// The machine whose resources are looked at [default: this one]
    #[arg(long, value_name = "NAME")]
    hostname: Option<String>,

    /// Do not run the functions that modules have in Python. Also the variable SETPOINT_NO_PYTHON
    #[arg(long)]
    no_python: bool,
}

#[derive(Debug, Args)]
struct Parse {
    /// The files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Result<u8, Failure> {
    match &arguments.command {
        Command::Check(model) => check(session, model),
        Command::Compile(model) => compile(session, model),
        Command::Parse(parse) => parse_files(&session.output, parse),
        Command::Unknowns(model) => unknowns(session, model),
    }
}

impl Model {
    fn work(&self, session: &Session) -> Result<ModelWork, Failure> {
        let hostname = hostname_argument(self.hostname.as_deref())?;
        let library: Library = session.assembly.library(&hostname);
        let environment = self.env.iter();
        let environment: BTreeMap<Arc<str>, Arc<str>> = environment
            .map(|(name, value)| (Arc::from(name.as_str()), Arc::from(value.as_str())))
            .collect();
        let settings = ModelSettings {
            main: self.file.clone(),
            module_path: self.module_path.clone(),
            environment: (!environment.is_empty()).then_some(environment),
            facts: self.facts.clone(),
            no_python: self.no_python,
            inputs: self.input.clone(),
            ..ModelSettings::default()
        };
        Ok(ModelWork::new(ModelSource::find(
            &self.directory,
            settings,
            library,
            hostname,
            &session.output,
        )?))
    }
}

fn check(session: &Session, arguments: &Model) -> Result<u8, Failure> {
    let mut work = arguments.work(session)?;
    let (checked, diagnostics) = work.check();
    if arguments.json {
        let object = json::checked(&checked, &diagnostics, &work.sources);
        session.output.print(&format!("{object}\n"))?;
    } else {
        report(&session.output, &diagnostics, &work);
        if !diagnostics.has_errors() {
            let files = count(work.own_files(), "file");
            session.output.say(Importance::Info, format!("checked {files}"));
        }
    }
    Ok(code(&diagnostics))
}

fn compile(session: &Session, arguments: &Model) -> Result<u8, Failure> {
    let output = &session.output;
    let mut work = arguments.work(session)?;
    let compilation = work.compile();
    work.store(&compilation.compiled)?;
    if arguments.json {
        output.print_written(|writer| {
            json::write_compiled(
                writer,
                &compilation.compiled,
                &compilation.diagnostics,
                &work.sources,
            )?;
            writer.write_all(b"\n")
        })?;
        return Ok(code(&compilation.diagnostics));
    }
    if let Some(execution) = &compilation.compiled.execution {
        let printed: String = execution.printed.iter().map(|line| format!("{line}\n")).collect();
        output.print(&printed)?;
    }
    report(output, &compilation.diagnostics, &work);
    let compiled = &compilation.compiled;
    if let (Some(exported), Some(execution), Some(model)) =
        (&compiled.exported, &compiled.execution, &compiled.checked.model)
        && !compilation.diagnostics.has_errors()
    {
        // Those of `std` are there without anybody's doing.
        let is_own =
            |instance: &&Instance| !model.entities[instance.entity.index()].name.starts_with("std::");
        let instances = execution.instances.iter().filter(is_own).count();
        let resources = exported.resources.len();
        let held = exported
            .resources
            .iter()
            .filter(|resource| resource.state != State::Available)
            .count();
        let verb = if instances == 1 { "becomes" } else { "become" };
        let mut text = format!(
            "{} {verb} {}",
            count(instances, "instance"),
            count(resources, "resource")
        );
        if held > 0 {
            let verb = if held == 1 { "is" } else { "are" };
            text.push_str(&format!(
                ", of which {held} {verb} held: `setpoint cf unknowns` says why"
            ));
        }
        output.say(Importance::Info, text);
    }
    Ok(code(&compilation.diagnostics))
}

fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}

fn unknowns(session: &Session, arguments: &Model) -> Result<u8, Failure> {
    let output = &session.output;
    let mut work = arguments.work(session)?;
    let compilation = work.compile();
    let asked = compilation
        .compiled
        .execution
        .iter()
        .flat_map(|execution| &execution.unknown_reads);
    let inputs = work.missing_inputs(&compilation.compiled);
    let asked: Vec<String> = asked.map(ToString::to_string).chain(inputs).collect();
    let exported = compilation
        .compiled
        .exported
        .iter()
        .flat_map(|exported| &exported.resources);
    let held: Vec<_> = exported
        .filter(|resource| resource.state != State::Available)
        .collect();
    if arguments.json {
        let mut object = json::told(&compilation.diagnostics, &work.sources);
        object["unknown_reads"] = asked.into();
        let row = |resource: &&setpoint_cf::export::Resource| {
            serde_json::json!({
                "resource": resource.identity.key(),
                "state": resource.state.name(),
                "unknown": resource.unknown().collect::<Vec<_>>(),
            })
        };
        object["held"] = held.iter().map(row).collect();
        output.print(&format!("{object}\n"))?;
        return Ok(code(&compilation.diagnostics));
    }
    report(output, &compilation.diagnostics, &work);
    let mut text: String = asked.iter().map(|key| format!("{key}\n")).collect();
    for resource in held {
        let names: Vec<&str> = resource.unknown().collect();
        text.push_str(&format!(
            "{} is {}",
            resource.identity.key(),
            resource.state.name()
        ));
        if !names.is_empty() {
            text.push_str(&format!(": {}", names.join(", ")));
        }
        text.push('\n');
    }
    output.print(&text)?;
    if text.is_empty() && !compilation.diagnostics.has_errors() {
        output.say(Importance::Info, "everything is known");
    }
    Ok(code(&compilation.diagnostics))
}

fn parse_files(output: &Output, arguments: &Parse) -> Result<u8, Failure> {
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    for path in &arguments.files {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::wrong(format!("`{name}` cannot be read")).because(system_text(&error))
        })?;
        let file = sources.add(name, text.as_str());
        syntax::parse(file, &text, &mut diagnostics);
    }
    if arguments.json {
        output.print(&format!("{}\n", json::told(&diagnostics, &sources)))?;
    } else {
        output.diagnostics(&errors_first(&diagnostics), &sources);
    }
    Ok(code(&diagnostics))
}

fn report(output: &Output, diagnostics: &Diagnostics, work: &ModelWork) {
    output.diagnostics(&errors_first(&told(diagnostics)), &work.shown_sources());
}

fn code(diagnostics: &Diagnostics) -> u8 {
    match diagnostics.has_errors() {
        true => exit_code::WRONG,
        false => exit_code::DONE,
    }
}
