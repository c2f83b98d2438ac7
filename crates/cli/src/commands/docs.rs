//! `setpoint docs`: the reference of kinds, functions and whatever else has a name, from their descriptions.

mod book;
mod events;
mod find;
mod generate;
mod man;
mod models;

use std::fmt::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use setpoint_diagnostics::did_you_mean;
use setpoint_graph::{Constant, ConstantValue, KindSchema, ParameterSchema, Secrecy};
use setpoint_mcl::writable_parameters;
use setpoint_programs::Assembly;
use setpoint_programs::failure::Failure;
use setpoint_value::{Class, FunctionSpec, Module};

use crate::exit_code;
use crate::session::Session;

/// Print the reference of a kind, parameter, function or code
///
/// Pass a name or a part of a name. The command searches kinds, parameters, constants, meta parameters, functions, modules, the
/// modules `std` and `setpoint` of models, lint rules, and the codes of errors and warnings with their summaries. It prints a
/// single result in full, and several results as a list.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(super) struct Arguments {
    /// What is looked for: `file`, `file.mode`, `Meta:retry`, `printf`, `unused-variable`, `E0101`, `std::Host`
    name: Option<String>,

    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Kinds of resources with their parameters
    Kinds(Selection),
    /// Functions with their types; part of a name finds all that have it
    Functions(Selection),
    /// Entities, typedefs, implementations and functions of models; part of a name finds all that have it
    Models(models::Selection),
    /// Write everything as the pages of a book: `commands.md`, `events.md`, `events.schema.json`, `graph.schema.json`, `plan.schema.json`, `kinds.md`, `models.md`, `functions.md`, `functions/MODULE.md`
    Book {
        /// Where the pages go
        directory: PathBuf,
    },
    /// Write kinds and functions as one JSON object, for other programs
    Generate(generate::Arguments),
    /// Write a page of the manual for each command, `setpoint.1`, `setpoint-run.1`: to be put where man(1) looks
    Man {
        /// Where the pages go
        directory: PathBuf,
    },
}

#[derive(Debug, Args)]
struct Selection {
    /// One kind, function or module; all are listed without it
    name: Option<String>,

    /// Print everything as Markdown
    #[arg(long)]
    markdown: bool,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Result<u8, Failure> {
    let assembly = &session.assembly;
    let text = match &arguments.what {
        Some(What::Kinds(selection)) => kinds(assembly, selection)?,
        Some(What::Functions(selection)) => functions(assembly, selection)?,
        Some(What::Models(selection)) => models::models(session, selection)?,
        Some(What::Book { directory }) => {
            book::write(assembly, directory)?;
            return Ok(exit_code::DONE);
        }
        Some(What::Generate(arguments)) => return generate::run(session, arguments),
        Some(What::Man { directory }) => {
            man::write(directory)?;
            return Ok(exit_code::DONE);
        }
        None => find::find(assembly, arguments.name.as_deref().unwrap_or_default())?,
    };
    session.output.print(&text)?;
    Ok(exit_code::DONE)
}

fn kinds(assembly: &Assembly, selection: &Selection) -> Result<String, Failure> {
    let schemas = || schemas(assembly);
    let mut out = String::new();
    if let Some(name) = &selection.name {
        let Some(schema) = schemas().find(|schema| schema.kind == name) else {
            return Err(unknown(
                "kind",
                name,
                schemas().map(|schema| schema.kind.to_owned()).collect(),
            ));
        };
        kind_page(schema, selection.markdown, &mut out);
    } else if selection.markdown {
        all_kinds(assembly, &mut out);
    } else {
        let width = schemas().map(|schema| schema.kind.len()).max().unwrap_or(0);
        for schema in schemas() {
            let _ = writeln!(out, "{:width$}  {}", schema.kind, first_line(schema.doc));
        }
    }
    Ok(out)
}

/// The kinds that a program can use.
fn schemas(assembly: &Assembly) -> impl Iterator<Item = &'static KindSchema> {
    let schemas = assembly.kinds().iter().map(|kind| kind.schema);
    schemas.filter(|schema| !schema.kind.starts_with('_'))
}

fn all_kinds(assembly: &Assembly, out: &mut String) {
    out.push_str("# Kinds of resources\n\n");
    for schema in schemas(assembly) {
        kind_page(schema, true, out);
        out.push('\n');
    }
}

fn kind_page(schema: &KindSchema, markdown: bool, out: &mut String) {
    heading(out, markdown, 2, schema.kind);
    let _ = writeln!(out, "{}\n", schema.doc.trim());
    if !schema.parameters.is_empty() {
        heading(out, markdown, 3, "Parameters");
        for parameter in writable_parameters(schema) {
            entry(out, markdown, &parameter_title(parameter), &with_form(parameter));
        }
        out.push('\n');
    }
    if !schema.sends.is_empty() {
        heading(out, markdown, 3, "Sends");
        for key in schema.sends {
            entry(
                out,
                markdown,
                &format!(
                    "{} {}{}",
                    key.name,
                    key.parameter_type.describe(),
                    match key.secrecy {
                        Secrecy::Always => ", sensitive",
                        Secrecy::WithParameters | Secrecy::Never => "",
                    }
                ),
                key.doc,
            );
        }
        out.push('\n');
    }
    if !schema.constants.is_empty() {
        heading(out, markdown, 3, "Constants");
        for constant in schema.constants {
            let name = format!(
                "$const.res.{}.{}.{}",
                schema.kind, constant.parameter, constant.name
            );
            entry(out, markdown, &name, &constant_value(constant));
        }
        out.push('\n');
    }
    let traits = [
        (
            schema.receives,
            "its parameters can be received from other resources",
        ),
        (schema.refreshable, "a notification makes it run"),
        (
            schema.reversible,
            "`Meta:reverse` undoes it when it leaves the program",
        ),
        (schema.autoedge, "it takes part in automatic edges"),
        (schema.autogroup, "several of them can be applied as one"),
        (
            schema.merge.is_some(),
            "two of one name are merged when they do not contradict",
        ),
    ];
    let traits: Vec<&str> = traits
        .into_iter()
        .filter(|(holds, _)| *holds)
        .map(|(_, text)| text)
        .collect();
    if !traits.is_empty() {
        heading(out, markdown, 3, "Properties");
        for text in traits {
            let _ = writeln!(out, "{}{text}", if markdown { "- " } else { "    " });
        }
    }
}

fn functions(assembly: &Assembly, selection: &Selection) -> Result<String, Failure> {
    let modules = assembly.modules();
    let mut out = String::new();
    let Some(name) = &selection.name else {
        if selection.markdown {
            out.push_str("# Functions\n\n");
        }
        for module in modules {
            module_page(module, &visible(module), selection.markdown, &mut out);
        }
        return Ok(out);
    };
    if let Some(module) = modules.iter().find(|module| module.name == name) {
        module_page(module, &visible(module), selection.markdown, &mut out);
        return Ok(out);
    }
    let all = || modules.iter().flat_map(|module| visible(module));
    let found: Vec<&FunctionSpec> = all()
        .filter(|spec| spec.to_string() == *name || spec.called() == *name)
        .collect();
    if found.is_empty() {
        // Part of a name finds all that have it.
        let part = name.to_lowercase();
        let holding: Vec<&FunctionSpec> = all()
            .filter(|spec| spec.called().to_lowercase().contains(&part))
            .collect();
        if let [only] = holding.as_slice() {
            function_page(only, selection.markdown, &mut out);
            return Ok(out);
        }
        if !holding.is_empty() {
            for spec in holding {
                function_line(spec, &mut out);
            }
            return Ok(out);
        }
        let mut names: Vec<String> = all().map(ToString::to_string).collect();
        names.extend(modules.iter().map(|module| module.name.to_owned()));
        return Err(unknown("function or module", name, names));
    }
    for spec in found {
        function_page(spec, selection.markdown, &mut out);
    }
    Ok(out)
}

/// The functions that a program can call.
fn visible(module: &Module) -> Vec<&'static FunctionSpec> {
    let functions = module.functions.iter().copied();
    functions.filter(|spec| !spec.name.starts_with('_')).collect()
}

/// What must be written to use a module.
fn title(module: &Module) -> String {
    match module.name {
        "" => "Without an import".to_owned(),
        name => format!("import \"{name}\""),
    }
}

fn module_page(module: &Module, functions: &[&'static FunctionSpec], markdown: bool, out: &mut String) {
    heading(out, markdown, 2, &title(module));
    module_body(module, functions, markdown, out);
}

fn module_body(module: &Module, functions: &[&'static FunctionSpec], markdown: bool, out: &mut String) {
    let _ = writeln!(out, "{}\n", module.doc.trim());
    for (name, value) in module.variables {
        entry(
            out,
            markdown,
            &format!("${name}"),
            &setpoint_value::quote(value.as_bytes()),
        );
    }
    for spec in functions {
        if markdown {
            function_page(spec, true, out);
        } else {
            function_line(spec, out);
        }
    }
    out.push('\n');
}

/// A function in a list: how it is called, and what it does.
fn function_line(spec: &FunctionSpec, out: &mut String) {
    let calls: Vec<String> = calls(spec).collect();
    entry(out, false, &calls.join("\n    "), first_line(&spec.doc));
}

/// How a function is called, with its types: one line a signature.
fn calls(spec: &FunctionSpec) -> impl Iterator<Item = String> {
    let signatures = spec.signatures().into_iter();
    signatures.map(|signature| {
        let rest = signature.strip_prefix("func").unwrap_or(signature);
        format!("{}{rest}", spec.called())
    })
}

fn function_page(spec: &FunctionSpec, markdown: bool, out: &mut String) {
    heading(out, markdown, 3, &spec.to_string());
    let fence = if markdown { "```\n" } else { "" };
    out.push_str(fence);
    let indent = if markdown { "" } else { "    " };
    // The page of a module begins with it.
    if !markdown && !spec.module.is_empty() {
        let _ = writeln!(out, "{indent}import \"{}\"\n", spec.module);
    }
    for call in calls(spec) {
        let _ = writeln!(out, "{indent}{call}");
    }
    let _ = writeln!(out, "{fence}\n{}", spec.doc.trim());
    let class = match spec.class {
        Class::Pure => "",
        Class::Environment => "The machine is asked once, and again only for other arguments.",
        Class::Source => "When it changes, the program follows.",
        Class::Stateful => "When it changes, the program follows. Each call in the text is on its own.",
    };
    if !class.is_empty() {
        let _ = writeln!(out, "{class}");
    }
    if spec.extension {
        let _ = writeln!(out, "Other implementations of mcl do not have it.");
    }
    let parameters = spec.parameter_docs();
    if !parameters.is_empty() {
        out.push_str(if markdown { "\n" } else { "\nParameters:\n" });
    }
    for parameter in parameters {
        let default = match parameter.default {
            "" => String::new(),
            default => format!(", default {default}"),
        };
        entry(
            out,
            markdown,
            &format!("{}{default}", parameter.name),
            parameter.doc,
        );
    }
    if !spec.examples.is_empty() {
        out.push_str(if markdown { "\n```\n" } else { "\nExamples:\n" });
        for example in spec.examples {
            let indent = if markdown { "" } else { "    " };
            let _ = match example.result {
                "" => writeln!(out, "{indent}{}", example.call),
                result => writeln!(out, "{indent}{} == {result}", example.call),
            };
        }
        out.push_str(fence);
    }
    out.push('\n');
}

fn heading(out: &mut String, markdown: bool, level: usize, text: &str) {
    let _ = match markdown {
        true => writeln!(out, "{} {text}\n", "#".repeat(level)),
        false => writeln!(out, "{text}"),
    };
}

fn entry(out: &mut String, markdown: bool, title: &str, doc: &str) {
    let doc = doc.trim();
    let _ = match markdown {
        true => writeln!(out, "- `{title}`: {}", doc.replace('\n', "\n  ")),
        false => writeln!(out, "    {title}\n        {}", doc.replace('\n', "\n        ")),
    };
}

/// Name, type and default of a parameter.
fn parameter_title(parameter: &ParameterSchema) -> String {
    let default = match parameter.default {
        "" => String::new(),
        default => format!(", default {default}"),
    };
    format!(
        "{} {}{default}",
        parameter.name,
        parameter.parameter_type.describe()
    )
}

fn constant_value(constant: &Constant) -> String {
    match constant.value {
        ConstantValue::Str(text) => setpoint_value::quote(text.as_bytes()),
        ConstantValue::Int(number) => number.to_string(),
    }
}

/// What a parameter means, and after the first paragraph what its text has to be.
fn with_form(parameter: &ParameterSchema) -> String {
    let doc = parameter.doc.trim();
    let Some(form) = parameter.form else {
        return doc.to_owned();
    };
    let form = form();
    let mut letters = form.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    let form: String = first.into_iter().chain(letters).collect();
    let (paragraph, rest) = doc.split_at(doc.find("\n\n").unwrap_or(doc.len()));
    format!("{paragraph} {form}.{rest}")
}

fn first_line(doc: &str) -> &str {
    doc.trim().lines().next().unwrap_or_default()
}

fn unknown(what: &str, name: &str, names: Vec<String>) -> Failure {
    let help = did_you_mean(name, names.iter().map(String::as_str));
    Failure::wrong(format!("there is no {what} `{name}`")).hint_if(help)
}
