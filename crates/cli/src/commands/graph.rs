//! `setpoint graph`: what the machine shall be, without touching it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use setpoint_agent::prefix::Prefix;
use setpoint_agent::runner::NO_RESOURCES;
use setpoint_cf::errors::told;
use setpoint_cf::export::LANGUAGE;
use setpoint_diagnostics::Diagnostics;
use setpoint_engine::{Preparation, read_reversals};
use setpoint_graph::{DesiredGraph, PrintedGraph, ResourceId, dot, json, text};
use setpoint_host::files::AbsolutePath;
use setpoint_programs::SourceAccess;
use setpoint_programs::failure::Failure;
use setpoint_programs::languages::compilation::Compilation;
use setpoint_programs::languages::included_programs::Evaluating as EvaluatingIncluded;
use setpoint_programs::languages::model::ModelWork;
use setpoint_programs::local_machine::{LocalMachine, Presence};
use setpoint_programs::program_input::ProgramInput;
use setpoint_programs::report::errors_first;
use setpoint_value::quote;

use super::modules::follow_imports;
use crate::arguments::{ModuleArguments, ProgramArguments, parse_seconds};
use crate::desired::{Desired, Evaluating, desired, would_add};
use crate::exit_code;
use crate::output::Output;
use crate::session::Session;
use crate::store_arguments::StoreArguments;

/// Print the desired graph of a program
///
/// Compiles the program, takes the first value of every source and prints the resources and edges that follow. Nothing is
/// changed: a directory that `deploy.directory` would copy is read from the program itself. What `run` would undo, because it left the
/// program, is marked. On errors the exit code is 1.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    program: ProgramArguments,

    #[command(flatten)]
    modules: ModuleArguments,

    #[command(flatten)]
    store: StoreArguments,

    /// How to print it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// State directory to read values and numbers from [default: as for `setpoint run`]
    #[arg(long = "state-dir", alias = "prefix", value_name = "DIR")]
    prefix: Option<PathBuf>,

    /// Ask this machine for nothing: what does not follow from the program alone is unknown
    ///
    /// For programs that are not trusted. No source is read, time and random numbers included; what depends on one is shown as
    /// unknown, or left out and listed as such.
    #[arg(long, conflicts_with = "prefix")]
    pure: bool,

    /// Leave out the edges that `run` adds by itself
    #[arg(long)]
    no_autoedges: bool,

    /// Leave out which resources `run` applies as one
    #[arg(long)]
    no_autogroup: bool,

    /// Show through which includes, loops and conditions each resource comes to be there
    ///
    /// Beside each resource stand the steps that lead to it, the innermost first; with `--format json` under `chain`. The format
    /// `dot` has no room for them.
    #[arg(long)]
    chains: bool,

    /// Of a model, show only what is in this resource set; can be given several times
    #[arg(long = "set", value_name = "NAME")]
    sets: Vec<String>,

    /// Seconds that a source has to give its first value
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = parse_seconds, default_value = "10")]
    timeout: Duration,
}

impl Arguments {
    /// This machine, which is only looked at.
    fn machine(&self, session: &Session, hostname: &str) -> Result<LocalMachine, Failure> {
        LocalMachine::open(
            session.assembly.kind_names(),
            &session.output,
            hostname,
            Prefix::place(self.prefix.clone())?,
            self.store.open(&session.output)?,
            Presence::Onlooker,
            false,
        )
    }

    /// What `run` would add to a graph by itself, as far as it is wanted.
    fn preparation(&self) -> Preparation {
        Preparation {
            automatic_edges: !self.no_autoedges,
            grouping: !self.no_autogroup,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A listing for people
    Text,
    /// One JSON object, diagnostics included
    Json,
    /// The language of Graphviz
    Dot,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Result<u8, Failure> {
    let input = arguments.program.parse(&session.output)?;
    if let Some(model) = input.model(&session.assembly, &session.output)? {
        return model_graph(session, arguments, &input, model);
    }
    if !arguments.sets.is_empty() {
        return Err(Failure::wrong(
            "`--set` is for models: programs have no resource sets",
        ));
    }
    let mut source = session.program(
        &input,
        arguments.modules.policy(&session.output),
        arguments.prefix.clone(),
        false,
    )?;
    if arguments.modules.only_download {
        return follow_imports(source, &session.output);
    }
    if arguments.pure && !input.has_hostname {
        source.without_hostname();
    }
    let mut compilation = source.fetch_and_compile(&session.output)?;
    let machine = arguments.machine(session, &input.hostname)?;
    let evaluating = Evaluating {
        timeout: arguments.timeout,
        pure: arguments.pure,
        preparation: arguments.preparation(),
    };
    let Desired {
        mut graph,
        additions,
        unknown,
        ..
    } = desired(session, &mut compilation, &machine, evaluating)?;
    let is_empty = |graph: &DesiredGraph| graph.resources.is_empty() && unknown.is_empty();
    if graph.as_ref().is_some_and(is_empty) {
        session.output.warning(NO_RESOURCES);
    }
    if let Some(graph) = &mut graph {
        add_reversals(session, arguments, graph)?;
    }
    let printed = graph.as_ref().map(|graph| PrintedGraph {
        graph,
        automatic: &additions.edges,
        groups: &additions.groups,
        unknown: &unknown,
        chains: arguments.chains,
    });
    print(&session.output, arguments.format, printed, &compilation)?;
    Ok(if graph.is_some() {
        exit_code::DONE
    } else {
        exit_code::WRONG
    })
}

/// The same for a model. What is held is in the graph, too, and told besides.
fn model_graph(
    session: &Session,
    arguments: &Arguments,
    input: &ProgramInput,
    mut model: ModelWork,
) -> Result<u8, Failure> {
    let output = &session.output;
    if arguments.pure {
        model.without_machine();
    }
    let mut compilation = model.compile();
    if model.has_programs() && !arguments.pure {
        model.evaluate_programs(EvaluatingIncluded {
            machine: arguments.machine(session, &input.hostname)?,
            access: SourceAccess::Read,
            wait: arguments.timeout,
            ring: Arc::new(|| ()),
        });
        compilation = model.compile();
    }
    let diagnostics = errors_first(&compilation.diagnostics);
    let Some(mut desired) = compilation.desired else {
        return wrong_model(arguments, output, &diagnostics, &model);
    };
    desired.keep_sets(&arguments.sets)?;
    let mut graph = desired.with_held();
    let additions = match would_add(session, arguments.preparation(), &graph) {
        Ok(additions) => additions,
        Err(refused) => {
            let mut diagnostics = diagnostics;
            diagnostics.extend(refused.into_iter().map(|finding| finding.tell(&LANGUAGE)));
            return wrong_model(arguments, output, &diagnostics, &model);
        }
    };
    if graph.resources.is_empty() {
        let machine = model.hostname();
        output.warning(format!(
            "the model describes no resources of the machine `{machine}`"
        ));
    }
    add_reversals(session, arguments, &mut graph)?;
    let printed = PrintedGraph {
        graph: &graph,
        automatic: &additions.edges,
        groups: &additions.groups,
        unknown: &[],
        chains: false,
    };
    if arguments.format == Format::Json {
        let mut object = json::graph_json(printed, &diagnostics, &model.sources);
        let held = desired.held.iter().map(|held| {
            serde_json::json!({
                "kind": &*held.id.kind,
                "name": &*held.id.name,
                "state": held.state.name(),
                "reason": held.reason,
            })
        });
        object["held"] = held.collect();
        for row in object["resources"].as_array_mut().into_iter().flatten() {
            let text = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
            let set = desired.sets.get(&ResourceId::new(text("kind"), text("name")));
            row["set"] = set.map(|set| &**set).into();
        }
        output.print(&format!("{object}\n"))?;
        return Ok(exit_code::DONE);
    }
    output.diagnostics(&told(&diagnostics), &model.shown_sources());
    desired.say_held(output);
    match arguments.format {
        Format::Dot => output.print(&dot::graph_dot(printed))?,
        _ => {
            let mut text = text::graph_text(printed, Some(&model.shown_sources()));
            let is_shown = |id: &ResourceId| graph.resources.contains_key(id);
            let labels = desired.sets.iter().filter(|(id, _)| is_shown(id));
            let labels: String = labels
                .map(|(id, set)| format!("{} {} has set={set}\n", id.kind, quote(id.name.as_bytes())))
                .collect();
            if !labels.is_empty() {
                text = format!("{text}\n{labels}");
            }
            output.print(&text)?;
        }
    }
    Ok(exit_code::DONE)
}

/// Reports a model without a graph.
fn wrong_model(
    arguments: &Arguments,
    output: &Output,
    diagnostics: &Diagnostics,
    model: &ModelWork,
) -> Result<u8, Failure> {
    match arguments.format {
        Format::Json => {
            let object = json::graph_json(&DesiredGraph::default(), diagnostics, &model.sources);
            output.print(&format!("{object}\n"))?;
        }
        Format::Text | Format::Dot => output.diagnostics(&told(diagnostics), &model.shown_sources()),
    }
    Ok(exit_code::WRONG)
}

/// Adds what undoes those resources that a program before had, that are to be undone, and that this one lacks.
fn add_reversals(session: &Session, arguments: &Arguments, graph: &mut DesiredGraph) -> Result<(), Failure> {
    if arguments.pure {
        return Ok(());
    }
    let Ok(prefix) = AbsolutePath::new(Prefix::place(arguments.prefix.clone())?) else {
        return Ok(());
    };
    let kinds: Vec<_> = session.assembly.kinds().iter().map(|kind| **kind).collect();
    match read_reversals(&prefix, &kinds) {
        Ok(found) => {
            for why in found.unusable {
                session.output.warning(why);
            }
            for reversal in found.resources {
                let id = &reversal.id;
                if !graph.resources.contains_key(id) {
                    graph.resources.insert(id.clone(), reversal);
                }
            }
        }
        Err(failure) => session.output.warning(format!(
            "what would be undone is not shown: failed to {}",
            failure.chain()
        )),
    }
    Ok(())
}

fn print(
    output: &Output,
    format: Format,
    graph: Option<PrintedGraph<'_>>,
    compilation: &Compilation,
) -> Result<(), Failure> {
    if format == Format::Json {
        let nothing = DesiredGraph::default();
        let object = json::graph_json(
            graph.unwrap_or((&nothing).into()),
            &errors_first(&compilation.diagnostics),
            &compilation.sources,
        );
        return output.print(&format!("{object}\n"));
    }
    compilation.report(output);
    let Some(graph) = graph else { return Ok(()) };
    match format {
        Format::Dot => output.print(&dot::graph_dot(graph)),
        _ => output.print(&text::graph_text(graph, Some(&compilation.shown_sources()))),
    }
}
