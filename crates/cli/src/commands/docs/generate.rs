//! `setpoint docs generate`: what kinds and functions there are, as JSON for other programs.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value as Json, json};
use setpoint_graph::KindSchema;
use setpoint_host::files::{AbsolutePath, Committer, Replace};
use setpoint_mcl::writable_parameters;
use setpoint_programs::failure::Failure;
use setpoint_value::FunctionSpec;

use super::{calls, schemas, visible, with_form};
use crate::exit_code;
use crate::session::Session;

/// What is written, and where.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Where it is written; its name ends in `.json`
    #[arg(long, value_name = "FILE")]
    output: PathBuf,

    /// Leave the kinds out
    #[arg(long)]
    no_resources: bool,

    /// Leave the functions out
    #[arg(long)]
    no_functions: bool,

    /// Has no effect: everything is known without the source
    #[arg(long, value_name = "DIR", hide = true)]
    root_dir: Option<PathBuf>,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Result<u8, Failure> {
    let path = &arguments.output;
    let shown = path.display();
    if path.extension().is_none_or(|extension| extension != "json") {
        return Err(Failure::usage(format!(
            "`--output {shown}`: the name of the file has to end in `.json`"
        )));
    }
    if arguments.root_dir.is_some() {
        session.output.warning("`--root-dir` has no effect");
    }
    let absolute =
        std::path::absolute(path).map_err(|error| Failure::io(format_args!("find {shown}"), &error))?;
    let absolute = AbsolutePath::new(absolute)
        .map_err(|error| Failure::usage(format!("`--output {shown}`: {error}")))?;
    let mut all = Map::new();
    all.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
    if !arguments.no_resources {
        let kinds = schemas(&session.assembly).map(|schema| (schema.kind.to_owned(), kind(schema)));
        all.insert("resources".to_owned(), Json::Object(kinds.collect()));
    }
    if !arguments.no_functions {
        let modules = session.assembly.modules().iter();
        let functions = modules.flat_map(|module| visible(module));
        let functions = functions.map(|spec| (spec.to_string(), function(spec)));
        all.insert("functions".to_owned(), Json::Object(functions.collect()));
    }
    let text = format!("{}\n", Json::Object(all));
    let replaced = Committer::new().replace(Replace::bytes(absolute, text.into_bytes()));
    replaced.map_err(|error| Failure::wrong(format!("failed to write {shown}")).because(error))?;
    Ok(exit_code::DONE)
}

fn kind(schema: &KindSchema) -> Json {
    let fields = writable_parameters(schema).map(|parameter| {
        let field = json!({
            "name": parameter.name,
            "type": parameter.parameter_type.describe(),
            "description": with_form(parameter),
        });
        (parameter.name.to_owned(), field)
    });
    json!({
        "name": schema.kind,
        "kind": schema.kind,
        "description": schema.doc.trim(),
        "fields": fields.collect::<Map<String, Json>>(),
    })
}

fn function(spec: &FunctionSpec) -> Json {
    let signatures: Vec<String> = calls(spec).collect();
    json!({
        "name": spec.to_string(),
        "package": spec.module,
        "func": spec.name,
        "description": spec.doc.trim(),
        "signature": signatures.join("\n"),
    })
}
