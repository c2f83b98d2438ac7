//! What models define, as a reference: entities, typedefs, implementations and functions of the modules that are built in, or of a project.

use std::collections::BTreeMap;
use std::fmt::Write;

use clap::Args;
use setpoint_cf::analysis::completion::Sort;
use setpoint_cf::analysis::describe::{Description, shown};
use setpoint_cf::analysis::{Analysis, Target, built_in as analyse_built_in};
use setpoint_cf::hir::FunctionImplementation;
use setpoint_cf::ids::NamespaceId;
use setpoint_cf::project::MAIN;
use setpoint_diagnostics::did_you_mean;
use setpoint_graph::Library;
use setpoint_programs::Assembly;
use setpoint_programs::failure::Failure;
use setpoint_programs::languages::model::{ModelSettings, ModelSource, ModelWork};

use super::{entry, first_line, heading};
use crate::session::Session;

/// The names of a list are padded up to this width.
const WIDEST: usize = 44;

#[derive(Debug, Args)]
pub(super) struct Selection {
    /// A name, as `std::Host` or `Host`, a namespace, or a part of a name; all are listed without it
    name: Option<String>,

    /// The model whose own definitions, and those of its modules, are shown too: a project or a file
    #[arg(long, value_name = "MODEL")]
    of: Option<String>,

    /// Print everything as Markdown
    #[arg(long)]
    markdown: bool,
}

/// Something that a model defines.
pub(super) struct Thing {
    /// Its whole name; that of something of the main file is short.
    pub(super) name: String,
    namespace: String,
    sort: Sort,
    description: Description,
}

pub(super) fn models(session: &Session, selection: &Selection) -> Result<String, Failure> {
    let library = session.assembly.library("localhost");
    let (analysis, of_kinds) = match &selection.of {
        None => (analyse_built_in(&library), true),
        Some(argument) => {
            let source = ModelSource::find(
                argument,
                ModelSettings::default(),
                library.clone(),
                "localhost".to_owned(),
                &session.output,
            )?;
            (ModelWork::new(source).analyse(&BTreeMap::new()), false)
        }
    };
    let mut namespaces: Vec<Namespace> = namespaces(&analysis, &library, of_kinds);
    if selection.of.is_some() {
        // What belongs to the model comes before what is built in.
        namespaces.sort_by_key(|namespace| namespace.is_built_in);
    }
    let Some(name) = &selection.name else {
        return Ok(match selection.markdown {
            true => pages(&namespaces),
            false => namespaces.iter().map(Namespace::list).collect(),
        });
    };
    let mut out = String::new();
    if let Some(namespace) = namespaces.iter().find(|namespace| namespace.name == *name) {
        return Ok(match selection.markdown {
            true => pages(std::slice::from_ref(namespace)),
            false => namespace.list(),
        });
    }
    let things = || namespaces.iter().flat_map(|namespace| &namespace.things);
    let is_called = |thing: &&Thing| thing.name == *name || thing.name.rsplit("::").next() == Some(name);
    let mut found: Vec<&Thing> = things().filter(is_called).collect();
    if found.is_empty() {
        let part = name.to_lowercase();
        found = things()
            .filter(|thing| thing.name.to_lowercase().contains(&part))
            .collect();
        if found.len() > 1 {
            list(&found, &mut out);
            return Ok(out);
        }
    }
    if found.is_empty() {
        let mut names: Vec<&str> = things().map(|thing| &*thing.name).collect();
        names.extend(things().filter_map(|thing| thing.name.rsplit("::").next()));
        let help = did_you_mean(name, names);
        return Err(Failure::wrong(format!("no model here defines `{name}`")).hint_if(help));
    }
    for thing in found {
        thing.page(selection.markdown, &mut out);
    }
    Ok(out)
}

/// What is built in, without the entities that stand for kinds, which are described with these.
pub(super) fn built_in(assembly: &Assembly) -> Vec<Thing> {
    let library = assembly.library("localhost");
    let namespaces = namespaces(&analyse_built_in(&library), &library, false);
    namespaces
        .into_iter()
        .flat_map(|namespace| namespace.things)
        .collect()
}

/// The same, as a page of the book.
pub(super) fn built_in_pages(assembly: &Assembly) -> String {
    let library = assembly.library("localhost");
    let namespaces = namespaces(&analyse_built_in(&library), &library, false);
    format!(
        "# What models can use\n\nThe modules that every model finds. Beside what stands here each [kind of resource](kinds.md) is an entity of `setpoint`: `file` is\n`setpoint::File`, and `setpoint docs models setpoint::File` shows it. The modules of [functions](functions.md) can be imported, too.\n\n{}",
        pages(&namespaces)
    )
}

/// A namespace with what it defines.
struct Namespace {
    name: String,
    doc: String,
    is_built_in: bool,
    things: Vec<Thing>,
}

/// All namespaces that define something, without functions of the shared library.
fn namespaces(analysis: &Analysis, library: &Library, of_kinds: bool) -> Vec<Namespace> {
    let mut found = Vec::new();
    for (at, namespace) in analysis.model.namespaces.iter().enumerate() {
        let id = NamespaceId(at as u32);
        let mut things = Vec::new();
        let is_shared = library.functions.module(&namespace.name).is_some();
        analysis.each_of(id, library, &mut |name, sort, target| {
            let is_of_kind = match &target {
                Target::Entity(id) => analysis.model.entities[id.index()].kind.is_some(),
                Target::Function(_, FunctionImplementation::Library(_)) if is_shared => return,
                _ => false,
            };
            if is_of_kind && !of_kinds {
                return;
            }
            let whole = format!("{}::{name}", namespace.name);
            things.extend(analysis.describe(&target).map(|description| Thing {
                name: shown(&whole).to_owned(),
                namespace: namespace.name.to_string(),
                sort,
                description,
            }));
        });
        if things.is_empty() {
            continue;
        }
        let doc = analysis.describe(&Target::Namespace(id));
        found.push(Namespace {
            name: namespace.name.to_string(),
            doc: doc.map_or(String::new(), |description| description.doc),
            is_built_in: analysis.sources.file(namespace.file).name.starts_with('<'),
            things,
        });
    }
    found
}

impl Namespace {
    fn title(&self) -> &str {
        match &*self.name {
            MAIN => "The main file",
            name => name,
        }
    }

    /// A line for each of what it defines.
    fn list(&self) -> String {
        let mut out = format!("{}\n", self.title());
        let things: Vec<&Thing> = self.things.iter().collect();
        list(&things, &mut out);
        out.push('\n');
        out
    }
}

/// Everything in full, as Markdown.
fn pages(namespaces: &[Namespace]) -> String {
    let mut out = String::new();
    for namespace in namespaces {
        heading(&mut out, true, 2, namespace.title());
        if !namespace.doc.is_empty() {
            let _ = writeln!(out, "{}\n", namespace.doc);
        }
        for thing in &namespace.things {
            thing.page(true, &mut out);
        }
    }
    out
}

fn list(things: &[&Thing], out: &mut String) {
    let names = things.iter().map(|thing| thing.name.chars().count());
    let width = names.max().unwrap_or(0).min(WIDEST);
    for thing in things {
        let line = thing.line();
        let _ = writeln!(out, "{}", format!("    {:width$}  {line}", thing.name).trim_end());
    }
}

impl Thing {
    /// What lists say of it.
    pub(super) fn line(&self) -> &str {
        match first_line(&self.description.doc) {
            "" => match self.sort {
                // What it narrows says enough.
                Sort::Type => {
                    let code = &self.description.code;
                    code.split_once(" as ").map_or(code, |(_, narrowed)| narrowed)
                }
                _ => "",
            },
            line => line,
        }
    }

    pub(super) fn page(&self, markdown: bool, out: &mut String) {
        let Description { code, doc, sections } = &self.description;
        match markdown {
            true => {
                heading(out, true, 3, &self.name);
                let _ = writeln!(out, "```cf\n{code}\n```\n");
            }
            false => {
                if self.namespace != MAIN {
                    let _ = writeln!(out, "import {}\n", self.namespace);
                }
                let _ = writeln!(out, "{code}\n");
            }
        }
        if !doc.is_empty() {
            let _ = writeln!(out, "{}\n", doc.trim());
        }
        for section in sections {
            match markdown {
                true => {
                    let _ = writeln!(out, "{}:\n", section.title);
                }
                false => heading(out, false, 4, section.title),
            }
            for (code, doc) in &section.entries {
                match (doc.is_empty(), markdown) {
                    (true, true) => {
                        let _ = writeln!(out, "- `{code}`");
                    }
                    (true, false) => {
                        let _ = writeln!(out, "    {code}");
                    }
                    (false, _) => entry(out, markdown, code, doc),
                }
            }
            out.push('\n');
        }
    }
}
