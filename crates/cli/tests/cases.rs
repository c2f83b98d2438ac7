//! The cases of the stage *graph*: programs through compiler and evaluator, on a simulated machine.
//!
//! The expectation has what is wrong, then the desired graph, a resource or edge a line, as `setpoint graph --format json` has
//! them. A case with steps goes on from there: each line changes the machine, and what follows from it is written below.
//!
//! ```text
//! set file /etc/motd "text"      remove file /etc/motd      tick 1500ms
//! export from other.example      what this program exports now, that host exports
//! ```
//!
//! The cases of `mistakes` and `model_mistakes` are programs that a newcomer writes, and what is then seen; pages of the book are made of them.
//!
//! The cases of the stage *model* are programs in the other language: what they become, and what one machine keeps of that.
//!
//! The files that a folder holds beside its texts are those of the deploy. An analysis of each program says first what compiling says.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use setpoint_cf::compile::Compiled;
use setpoint_cf::datum::{Datum, from_json};
use setpoint_cf::errors::told;
use setpoint_cf::execute::Inputs;
use setpoint_cf::export::{Deferrals, LANGUAGE, Machine, MachineOutputs, machine_outputs};
use setpoint_cf::{json, project};
use setpoint_diagnostics::{
    Diagnostic, Diagnostics, Loader, MemoryLoader, RenderStyle, Severity, SourceMap, render,
};
use setpoint_flow::{Evaluator, SourceId, Step};
use setpoint_graph::json::{edge_json, resource_json};
use setpoint_graph::{Assembler, encode_exported};
use setpoint_mcl::analysis::{AnalysisOptions, analyse};
use setpoint_mcl::lint::{apply, fixes, lint};
use setpoint_mcl::{CompileOptions, Entry, compile};
use setpoint_programs::{Assembly, DirectoryLoader};
use setpoint_simulated::SimulatedCapabilities;
use setpoint_testing::cases::{self, Case, Sections, Stage, diagnostics_text};
use setpoint_value::{Exported, Wake};

fn main() -> ExitCode {
    cases::main(
        &[
            Stage::Graph,
            Stage::Lint,
            Stage::Mistake,
            Stage::Model,
            Stage::ModelMistake,
        ],
        |case| match case.stage {
            Stage::Lint => lint_case(case),
            Stage::Mistake => mistake_case(case),
            Stage::ModelMistake => model_mistake_case(case),
            Stage::Model => model_case(case),
            Stage::Parse | Stage::Format | Stage::Analysis | Stage::Graph => run(case),
        },
    )
}

/// What the linter finds in a program, and the text after its quick fixes.
fn lint_case(case: &Case) -> Result<String, String> {
    let library = Assembly::standard().library("host.example");
    let mut text = case.text()?;
    let mut sections = Sections::new();
    let mut is_fixed = false;
    loop {
        let loader = MemoryLoader::new().with("main.mcl", &text);
        let entry = Entry::File("main.mcl".to_owned());
        let analysis = analyse(&entry, &AnalysisOptions::default(), &loader, &library);
        let analysis = analysis.ok_or("nobody stops the analysis")?;
        let mut found = Diagnostics::new();
        let errors = analysis
            .diagnostics
            .iter()
            .filter(|found| found.severity == Severity::Error);
        found.extend(errors.cloned());
        found.append(lint(&analysis, &library, &|_| true));
        if !is_fixed {
            sections.add("diagnostics", &diagnostics_text(&found, &analysis.sources));
        }
        let file = analysis.file_named("main.mcl").ok_or("the program has a file")?;
        let edits = fixes(&found, file);
        if edits.is_empty() {
            break;
        }
        text = apply(&text, &edits);
        is_fixed = true;
    }
    if is_fixed {
        sections.add("fixed", &text);
    }
    Ok(sections.finish())
}

/// What becomes of a model: what it prints, its resources of all machines, and what `host.example` keeps of them. The environment is one
/// variable, and facts are those of the file `facts.json` of a folder.
fn model_case(case: &Case) -> Result<String, String> {
    let (root, main) = match case.is_folder {
        true => (case.path.clone(), "main.cf".to_owned()),
        false => {
            let name = case.path.file_name().ok_or("a case has a name")?;
            (
                case.path.parent().map(ToOwned::to_owned).unwrap_or_default(),
                name.to_string_lossy().into_owned(),
            )
        }
    };
    let loader = DirectoryLoader::new(&root);
    let mut options = project::Options {
        main: Some(main),
        ..project::Options::default()
    };
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let (compiled, machine) = compile_model(&loader, &mut options, &mut sources, &mut diagnostics)?;
    let object = json::compiled(&compiled, &diagnostics, &sources);
    let lines = |key: &str| -> String {
        let rows = object[key].as_array().into_iter().flatten();
        rows.map(|row| format!("{row}\n")).collect()
    };
    let mut sections = Sections::new();
    sections.add("diagnostics", &diagnostics_text(&diagnostics, &sources));
    sections.add("stdout", object["stdout"].as_str().unwrap_or_default());
    sections.add("resources", &lines("resources"));
    let mut graph = String::new();
    match Assembler::new(&LANGUAGE).replace_all(machine.outputs) {
        Ok(kept) if !diagnostics.has_errors() => {
            let resources = kept.resources.values();
            graph.extend(resources.map(|resource| format!("{}\n", resource_json(resource, &sources))));
            graph.extend(kept.edges.values().map(|edge| format!("{}\n", edge_json(edge))));
        }
        Ok(_) => {}
        Err(found) => graph = diagnostics_text(&found, &sources),
    }
    sections.add("host.example", &graph);
    let held = machine.held.iter();
    let held: String = held
        .map(|held| format!("{} {}: {}\n", held.id, held.state.name(), held.reason))
        .collect();
    sections.add("held", &held);
    Ok(sections.finish())
}

/// Compiles a model, and finds what `host.example` keeps of it. The environment is one variable.
fn compile_model(
    loader: &dyn Loader,
    options: &mut project::Options,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Result<(Compiled, MachineOutputs), String> {
    let library = Assembly::standard().library("host.example");
    let inputs = Inputs {
        environment: [("HOME".into(), "/root".into())].into(),
        facts: model_facts(loader)?,
        ..Inputs::default()
    };
    let compiled = setpoint_cf::compile::compile(loader, &library, options, &inputs, sources, diagnostics);
    let machine = match &compiled.exported {
        Some(exported) if !diagnostics.has_errors() => {
            let machine = Machine {
                hostname: "host.example",
                deploy: "local",
                kinds: &library.internal_kinds,
                deferrals: &Deferred(&inputs),
            };
            machine_outputs(exported, &machine, diagnostics)
        }
        _ => MachineOutputs::default(),
    };
    Ok((compiled, machine))
}

/// The facts of a case, by `machine/kind[name]/fact`.
fn model_facts(loader: &dyn Loader) -> Result<BTreeMap<Arc<str>, Datum>, String> {
    let Ok(bytes) = loader.read("facts.json") else {
        return Ok(BTreeMap::new());
    };
    let facts: BTreeMap<String, serde_json::Value> =
        serde_json::from_slice(&bytes).map_err(|error| format!("facts.json: {error}"))?;
    Ok(facts
        .iter()
        .map(|(key, value)| (key.as_str().into(), from_json(value)))
        .collect())
}

/// Answers to deferred references out of what the model was given.
struct Deferred<'a>(&'a Inputs);

impl Deferrals for Deferred<'_> {
    fn environment(&self, name: &str) -> Option<Arc<str>> {
        self.0.environment.get(name).cloned()
    }

    fn fact(&self, key: &str) -> Option<Datum> {
        self.0.facts.get(key).cloned()
    }
}

/// What a user sees: of `check`, and if that finds nothing, of a run. The first line of the program is a comment that says what the
/// mistake is; it is no part of what is looked at.
fn mistake_case(case: &Case) -> Result<String, String> {
    let library = Assembly::standard().library("host.example");
    let text = case.text()?;
    let (sentence, program) = text.split_once('\n').ok_or("a program has lines")?;
    if !sentence.starts_with("# ") || !sentence.ends_with('.') {
        return Err("the first line says in a sentence what the mistake is".to_owned());
    }
    let loader = MemoryLoader::new().with("main.mcl", program);
    let entry = Entry::File("main.mcl".to_owned());
    let analysis = analyse(&entry, &AnalysisOptions::default(), &loader, &library);
    let mut analysis = analysis.ok_or("nobody stops the analysis")?;
    let is_error = |found: &&Diagnostic| found.severity == Severity::Error;
    let mut screen: Vec<Diagnostic> = analysis.diagnostics.iter().filter(is_error).cloned().collect();
    let has_errors = !screen.is_empty();
    screen.extend(lint(&analysis, &library, &|_| true));
    if let Some(program) = analysis.compiled.program.take().filter(|_| !has_errors) {
        let machine = SimulatedCapabilities::new().without_effects();
        let wake = |_: SourceId| Wake::new(|| {});
        let step = Evaluator::new(program, machine.shared(), Box::new(wake)).step(&[]);
        let news = step
            .diagnostics
            .into_iter()
            .filter(|found| screen.iter().all(|told| told.message != found.message));
        let news: Vec<Diagnostic> = news.collect();
        screen.extend(news);
    }
    let screen: Vec<String> = screen
        .iter()
        .map(|found| render(found, &analysis.sources, RenderStyle::PLAIN))
        .collect();
    Ok(screen.join("\n\n") + "\n")
}

/// The same of a model: what `compile` answers, errors first. In a folder, the main file has the sentence.
fn model_mistake_case(case: &Case) -> Result<String, String> {
    let (sentence, files) = case.model_mistake()?;
    if !sentence.ends_with('.') {
        return Err("the first line says in a sentence what the mistake is".to_owned());
    }
    let loader = files
        .into_iter()
        .fold(MemoryLoader::new(), |loader, (name, text)| {
            loader.with(name, text)
        });
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let mut options = project::Options::default();
    let (_, machine) = compile_model(&loader, &mut options, &mut sources, &mut diagnostics)?;
    if !diagnostics.has_errors()
        && let Err(found) = Assembler::new(&LANGUAGE).replace_all(machine.outputs)
    {
        diagnostics.append(found);
    }
    let mut screen = told(&diagnostics).into_vec();
    if screen.is_empty() {
        return Err("nothing is seen of this mistake".to_owned());
    }
    screen.sort_by_key(|found| found.severity);
    let screen: Vec<String> = screen
        .iter()
        .map(|found| render(found, &sources, RenderStyle::PLAIN))
        .collect();
    Ok(screen.join("\n\n") + "\n")
}

fn run(case: &Case) -> Result<String, String> {
    let library = Assembly::standard().library("host.example");
    let name = case
        .path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let (root, entry) = if case.is_folder {
        (case.path.clone(), Entry::Directory(String::new()))
    } else {
        (
            case.path.parent().map(ToOwned::to_owned).unwrap_or_default(),
            Entry::File(name),
        )
    };
    let loader = DirectoryLoader::new(&root);
    let modules = case.path.join("modules");
    let options = CompileOptions {
        modules_directory: (case.is_folder && modules.is_dir()).then(|| "modules/".to_owned()),
        skip_types: false,
    };
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let compiled = compile(
        &entry,
        &options,
        &loader,
        &library,
        &mut sources,
        &mut diagnostics,
    );
    let analysis = AnalysisOptions {
        modules_directory: options.modules_directory,
        ..AnalysisOptions::default()
    };
    let analysis = analyse(&entry, &analysis, &loader, &library).ok_or("the analysis was stopped")?;
    let (compiling, analysing) = (
        diagnostics_text(&diagnostics, &sources),
        diagnostics_text(&analysis.diagnostics, &analysis.sources),
    );
    if !analysing.starts_with(&compiling) || analysis.compiled.program.is_some() != compiled.program.is_some()
    {
        return Err(format!(
            "compiling says\n{compiling}\nbut an analysis says first\n{analysing}"
        ));
    }
    let mut sections = Sections::new();
    let Some(program) = compiled.program else {
        if !diagnostics.has_errors() {
            return Err("there is neither a program nor an error".to_owned());
        }
        sections.add("diagnostics", &diagnostics_text(&diagnostics, &sources));
        return Ok(sections.finish());
    };
    let machine = SimulatedCapabilities::new().without_effects();
    for path in &compiled.files {
        let Some(directory) = path.strip_suffix("metadata.yaml") else {
            continue;
        };
        for file in loader.list(&format!("{directory}files/")).unwrap_or_default() {
            let content = loader.read(&file).map_err(|error| error.to_string())?;
            machine.set_deploy_file(&format!("/{file}"), content.to_vec());
        }
    }
    let woken: Arc<Mutex<BTreeSet<SourceId>>> = Arc::default();
    let waking = woken.clone();
    let wake = move |source: SourceId| {
        let waking = waking.clone();
        Wake::new(move || {
            waking.lock().expect("nobody panics with the lock").insert(source);
        })
    };
    let mut evaluator = Evaluator::new(program, machine.shared(), Box::new(wake));
    let step = evaluator.step(&[]);
    let mut all = diagnostics;
    all.extend(step.diagnostics.clone());
    sections.add("diagnostics", &diagnostics_text(&all, &sources));
    sections.add("pending", &pending_text(&step));
    sections.add("graph", &graph_text(&step, &sources));
    let mut exported = exports_of(&step);
    for line in case
        .steps
        .iter()
        .flat_map(|steps| steps.lines())
        .filter(|line| !line.is_empty())
    {
        match line.strip_prefix("export from ") {
            Some(host) => export(&machine, &exported, host),
            None => change(&machine, line)?,
        }
        let news: Vec<SourceId> = std::mem::take(&mut *woken.lock().expect("nobody panics with the lock"))
            .into_iter()
            .collect();
        let step = evaluator.step(&news);
        if step.graph.is_some() {
            exported = exports_of(&step);
        }
        let mut text = diagnostics_text(&step.diagnostics, &sources);
        text.push_str(&pending_text(&step));
        text.push_str(&graph_text(&step, &sources));
        sections.add(line, if text.is_empty() { "(the same)" } else { &text });
    }
    Ok(sections.finish())
}

fn graph_text(step: &Step, sources: &SourceMap) -> String {
    let Some(graph) = &step.graph else {
        return String::new();
    };
    let hidden = graph.hidden.values().flatten();
    let mut lines: Vec<String> = graph
        .resources
        .values()
        .chain(hidden)
        .map(|resource| resource_json(resource, sources).to_string())
        .collect();
    lines.extend(graph.edges.values().map(|edge| edge_json(edge).to_string()));
    if lines.is_empty() {
        "(empty)\n".to_owned()
    } else {
        lines.join("\n") + "\n"
    }
}

fn pending_text(step: &Step) -> String {
    step.pending
        .iter()
        .map(|pending| format!("waits for `{}`\n", pending.function))
        .collect()
}

/// Kind, name and text of what a program exports.
fn exports_of(step: &Step) -> Vec<(String, String, String)> {
    let resources = step.graph.iter().flat_map(|graph| {
        let hidden = graph.hidden.values().flatten();
        graph.resources.values().chain(hidden)
    });
    resources
        .filter(|resource| !resource.meta.export.is_empty())
        .map(|resource| {
            let text = encode_exported(resource)
                .expect("a resource of the cases has a text")
                .text;
            (resource.id.kind.to_string(), resource.id.name.to_string(), text)
        })
        .collect()
}

fn export(machine: &SimulatedCapabilities, exported: &[(String, String, String)], host: &str) {
    let kinds: BTreeSet<&String> = exported.iter().map(|(kind, _, _)| kind).collect();
    for kind in kinds {
        let own = exported.iter().filter(|(other, _, _)| other == kind);
        let exports = own.map(|(_, name, data)| Exported {
            name: name.clone(),
            host: host.to_owned(),
            data: data.clone().into(),
        });
        machine.set_exports(kind, exports.collect());
    }
}

fn change(machine: &SimulatedCapabilities, line: &str) -> Result<(), String> {
    let bad = || format!("no step: {line}");
    let words: Vec<&str> = line.splitn(4, ' ').collect();
    match words.as_slice() {
        ["set", "file", path, content] => {
            let content: String =
                serde_json::from_str(content).map_err(|error| format!("{line}: {error}"))?;
            machine.set_file(path, content);
        }
        ["remove", "file", path] => machine.remove_file(path),
        ["tick", time] => {
            let (number, unit) = time.split_at(time.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?);
            let number: u64 = number.parse().map_err(|_| bad())?;
            machine.advance(match unit {
                "ms" => Duration::from_millis(number),
                "s" => Duration::from_secs(number),
                _ => return Err(bad()),
            });
        }
        _ => return Err(bad()),
    }
    Ok(())
}
