//! `setpoint docs NAME`: whatever has a name, or a part of it: kinds with their parameters and constants, meta parameters, functions,
//! modules, rules of the linter, codes.

use std::fmt::Write;

use setpoint_diagnostics::{CodeInfo, did_you_mean};
use setpoint_graph::{Constant, KindSchema, MetaName, ParameterSchema};
use setpoint_mcl::lint::{RULES, Rule};
use setpoint_mcl::writable_parameters;
use setpoint_programs::failure::Failure;
use setpoint_programs::{Assembly, codes};
use setpoint_value::{FunctionSpec, Module};

use super::models::{self, Thing};
use super::{
    constant_value, entry, first_line, function_line, function_page, kind_page, module_page, parameter_title,
    schemas, visible, with_form,
};

use crate::page;

/// The names of a list are padded up to this width.
const WIDEST: usize = 40;

/// The page of the one thing that is called so; a list of all whose name holds the text, if there are several.
pub(super) fn find(assembly: &Assembly, name: &str) -> Result<String, Failure> {
    let wanted = name.to_lowercase();
    let models = models::built_in(assembly);
    let subjects = subjects(assembly, &models);
    let is_called = |subject: &&Subject<'_>| subject.names().iter().any(|name| name.to_lowercase() == wanted);
    let mut found: Vec<&Subject<'_>> = subjects.iter().filter(is_called).collect();
    if found.is_empty() {
        let holds = |text: &str| text.to_lowercase().contains(&wanted);
        let is_meant = |subject: &&Subject<'_>| {
            subject.names().iter().any(|name| holds(name)) || holds(subject.summary())
        };
        found = subjects.iter().filter(is_meant).collect();
        if found.len() > 1 {
            return Ok(list(&found));
        }
    }
    if found.is_empty() {
        let names: Vec<String> = subjects.iter().flat_map(Subject::names).collect();
        let help = did_you_mean(name, names.iter().map(String::as_str));
        return Err(Failure::wrong(format!("nothing is called `{name}`")).hint_if(help));
    }
    let mut out = String::new();
    for subject in found {
        if !out.is_empty() && !out.ends_with("\n\n") {
            out.push('\n');
        }
        subject.page(&mut out);
    }
    Ok(out)
}

/// What has a name.
enum Subject<'a> {
    Kind(&'static KindSchema),
    Parameter(&'static KindSchema, &'static ParameterSchema),
    Constant(&'static KindSchema, &'static Constant),
    Meta(MetaName),
    Module(&'a Module),
    Variable(&'a Module, &'static str, &'static str),
    Function(&'static FunctionSpec),
    Model(&'a Thing),
    Rule(&'static Rule),
    Code(&'static CodeInfo),
}

/// Everything that can be found, in the order in which it is listed.
fn subjects<'a>(assembly: &'a Assembly, models: &'a [Thing]) -> Vec<Subject<'a>> {
    let mut subjects: Vec<Subject<'_>> = schemas(assembly).map(Subject::Kind).collect();
    for schema in schemas(assembly) {
        let parameters = writable_parameters(schema);
        subjects.extend(parameters.map(|parameter| Subject::Parameter(schema, parameter)));
    }
    subjects.extend(MetaName::ALL.map(Subject::Meta));
    for schema in schemas(assembly) {
        subjects.extend(
            schema
                .constants
                .iter()
                .map(|constant| Subject::Constant(schema, constant)),
        );
    }
    let modules = || assembly.modules().iter().copied();
    for module in modules() {
        let variables = module.variables.iter();
        subjects.extend(variables.map(|(name, value)| Subject::Variable(module, name, value)));
    }
    subjects.extend(
        modules()
            .filter(|module| !module.name.is_empty())
            .map(Subject::Module),
    );
    subjects.extend(modules().flat_map(visible).map(Subject::Function));
    subjects.extend(models.iter().map(Subject::Model));
    let rules = RULES.iter().chain(setpoint_cf::lint::RULES);
    subjects.extend(rules.map(Subject::Rule));
    subjects.extend(codes::all().into_iter().map(Subject::Code));
    subjects
}

impl Subject<'_> {
    /// What stands above others of its sort.
    fn heading(&self) -> &'static str {
        match self {
            Subject::Kind(_) => "Kinds",
            Subject::Parameter(..) => "Parameters",
            Subject::Constant(..) | Subject::Variable(..) => "Constants",
            Subject::Meta(_) => "Meta parameters",
            Subject::Module(_) => "Modules",
            Subject::Function(_) => "Functions",
            Subject::Model(_) => "Models",
            Subject::Rule(_) => "Rules of the linter",
            Subject::Code(_) => "Codes",
        }
    }

    /// What it is called, as lists show it.
    fn name(&self) -> String {
        match self {
            Subject::Kind(schema) => schema.kind.to_owned(),
            Subject::Parameter(schema, parameter) => format!("{}.{}", schema.kind, parameter.name),
            Subject::Constant(schema, constant) => {
                format!(
                    "$const.res.{}.{}.{}",
                    schema.kind, constant.parameter, constant.name
                )
            }
            Subject::Meta(name) => format!("Meta:{}", name.name()),
            Subject::Module(module) => module.name.to_owned(),
            Subject::Variable(module, name, _) => match module.name.rsplit('/').next() {
                Some(alias) if !alias.is_empty() => format!("${alias}.{name}"),
                _ => format!("${name}"),
            },
            Subject::Function(spec) => spec.called(),
            Subject::Model(thing) => thing.name.clone(),
            Subject::Rule(rule) => rule.name.to_owned(),
            Subject::Code(code) => code.code.to_owned(),
        }
    }

    /// All names that mean exactly it.
    fn names(&self) -> Vec<String> {
        let mut names = vec![self.name()];
        match self {
            Subject::Meta(name) => names.push(name.name().to_owned()),
            Subject::Function(spec) => names.extend([spec.to_string(), spec.name.to_string()]),
            Subject::Constant(..) | Subject::Variable(..) => {
                names.push(names[0].trim_start_matches('$').to_owned());
            }
            Subject::Kind(_)
            | Subject::Parameter(..)
            | Subject::Module(_)
            | Subject::Model(_)
            | Subject::Rule(_)
            | Subject::Code(_) => {}
        }
        names
    }

    /// What is searched beside its names: that of a code is only a number.
    fn summary(&self) -> &'static str {
        match self {
            Subject::Code(code) => code.summary,
            Subject::Rule(rule) => rule.code.summary,
            _ => "",
        }
    }

    /// What lists say of it.
    fn line(&self) -> String {
        match self {
            Subject::Kind(schema) => first_line(schema.doc).to_owned(),
            Subject::Parameter(_, parameter) => first_line(parameter.doc).to_owned(),
            Subject::Constant(_, constant) => constant_value(constant),
            Subject::Variable(_, _, value) => setpoint_value::quote(value.as_bytes()),
            Subject::Meta(name) => name.doc().to_owned(),
            Subject::Module(module) => first_line(module.doc).to_owned(),
            Subject::Function(spec) => first_line(&spec.doc).to_owned(),
            Subject::Model(thing) => thing.line().to_owned(),
            Subject::Rule(rule) => format!("{} ({})", rule.code.summary, rule.code.code),
            Subject::Code(code) => code.summary.to_owned(),
        }
    }

    fn page(&self, out: &mut String) {
        match self {
            Subject::Kind(schema) => kind_page(schema, false, out),
            Subject::Parameter(schema, parameter) => {
                let _ = writeln!(out, "Parameter of the kind {}\n", schema.kind);
                entry(out, false, &parameter_title(parameter), &with_form(parameter));
                out.push('\n');
            }
            Subject::Constant(schema, constant) => {
                let _ = writeln!(
                    out,
                    "Constant for the parameter {} of the kind {}\n",
                    constant.parameter, schema.kind
                );
                entry(out, false, &self.name(), &constant_value(constant));
                out.push('\n');
            }
            Subject::Variable(module, ..) => {
                let _ = writeln!(out, "import \"{}\"\n", module.name);
                entry(out, false, &self.name(), &self.line());
                out.push('\n');
            }
            Subject::Meta(name) => {
                let default = name.default_text();
                let _ = writeln!(out, "Meta parameter of every kind\n");
                entry(
                    out,
                    false,
                    &format!("{} {}, default {}", self.name(), name.ty(), default),
                    name.doc(),
                );
                out.push('\n');
            }
            Subject::Module(module) => module_page(module, &visible(module), false, out),
            Subject::Function(spec) => function_page(spec, false, out),
            Subject::Model(thing) => thing.page(false, out),
            Subject::Rule(rule) => out.push_str(page(rule.code.code).unwrap_or_default()),
            Subject::Code(code) => out.push_str(page(code.code).unwrap_or_default()),
        }
    }
}

/// All of one sort together, a line each; functions with their types.
fn list(found: &[&Subject<'_>]) -> String {
    let mut out = String::new();
    for group in found.chunk_by(|a, b| a.heading() == b.heading()) {
        let _ = writeln!(out, "{}", group[0].heading());
        let names: Vec<String> = group.iter().map(|subject| subject.name()).collect();
        let width = names
            .iter()
            .map(|name| name.chars().count())
            .max()
            .unwrap_or(0)
            .min(WIDEST);
        for (subject, name) in group.iter().zip(names) {
            if let Subject::Function(spec) = subject {
                function_line(spec, &mut out);
            } else {
                let _ = writeln!(out, "    {name:width$}  {}", subject.line());
            }
        }
        out.push('\n');
    }
    out
}
