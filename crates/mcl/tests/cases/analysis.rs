//! Cases of what an editor asks: a program in which `¦` marks places, and what is known at each of them.

use std::fmt::Write as _;

use setpoint_diagnostics::{MemoryLoader, SourceMap, Span};
use setpoint_graph::{
    Invalid, KindSchema, Library, MetaParameters, ParameterSchema, ParameterType, Parameters, Secrecy,
    SendKey,
};
use setpoint_mcl::analysis::{Analysis, AnalysisOptions, Entry, Expected, Space, Symbol, Target, analyse};
use setpoint_testing::cases::{Case, Sections, diagnostics_text};
use setpoint_value::Value;

/// Marks a place. It is no part of the program.
const MARK: char = '¦';

pub(super) fn run(case: &Case) -> Result<String, String> {
    let mut loader = MemoryLoader::new();
    let mut marks: Vec<(String, u32)> = Vec::new();
    for (name, text) in texts(case)? {
        let mut plain = String::new();
        for part in text.split_inclusive(MARK) {
            match part.strip_suffix(MARK) {
                Some(part) => {
                    plain.push_str(part);
                    marks.push((name.clone(), plain.len() as u32));
                }
                None => plain.push_str(part),
            }
        }
        loader = loader.with(name, plain);
    }
    let library = library();
    let entry = Entry::File("main.mcl".to_owned());
    let analysis = analyse(&entry, &AnalysisOptions::default(), &loader, &library)
        .ok_or("the analysis was stopped, but nobody stopped it")?;
    let mut sections = Sections::new();
    let diagnostics = diagnostics_text(&analysis.diagnostics, &analysis.sources);
    sections.add("diagnostics", &diagnostics);
    sections.add("outline", &outline(&analysis));
    sections.add("not mentioned", &unused(&analysis));
    sections.add("hidden", &hidden(&analysis));
    for (number, (name, offset)) in marks.iter().enumerate() {
        let file = analysis
            .file_named(name)
            .ok_or_else(|| format!("{name} is no part of the program"))?;
        let place = shown(&analysis, Span::new(file, *offset, *offset));
        let heading = format!("place {} at {place}", number + 1);
        sections.add(&heading, &at(&analysis, file, *offset, &library));
    }
    Ok(sections.finish())
}

#[expect(clippy::disallowed_methods, reason = "a test reads its cases")]
fn texts(case: &Case) -> Result<Vec<(String, String)>, String> {
    if !case.is_folder {
        return Ok(vec![("main.mcl".to_owned(), case.text()?)]);
    }
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(&case.path).map_err(|error| error.to_string())? {
        let path = entry.map_err(|error| error.to_string())?.path();
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        if name.ends_with(".mcl") {
            texts.push((
                name,
                std::fs::read_to_string(&path).map_err(|error| error.to_string())?,
            ));
        }
    }
    texts.sort();
    Ok(texts)
}

/// What is known at a place.
fn at(analysis: &Analysis, file: setpoint_diagnostics::FileId, offset: u32, library: &Library) -> String {
    let mut out = String::new();
    if let Some(name) = analysis.name_at(file, offset) {
        let text = analysis.sources.text(name.span);
        let _ = writeln!(out, "`{text}` is {}", described(analysis, &name.target));
        if let Some(definition) = analysis.definition(&name.target) {
            let _ = writeln!(out, "defined at {}", shown(analysis, definition));
        }
        let mentions: Vec<String> = analysis
            .references(&name.target)
            .iter()
            .map(|name| shown(analysis, name.span))
            .collect();
        let _ = writeln!(out, "named at {}", mentions.join(", "));
        if let Target::Variable(id) = &name.target
            && let Some(value) = analysis.value_of(*id)
        {
            let _ = writeln!(out, "value {value}");
        }
    }
    let types = analysis.types_at(file, offset);
    if !types.is_empty() {
        let types: Vec<String> = types.iter().map(ToString::to_string).collect();
        let _ = writeln!(out, "type {}", types.join(" | "));
    }
    if let Some(call) = analysis.call_at(file, offset) {
        let dollar = if call.is_variable { "$" } else { "" };
        let name = analysis.sources.text(call.name);
        let _ = writeln!(out, "in argument {} of {dollar}{name}", call.argument + 1);
    }
    let expected = analysis.expected(file, offset);
    let _ = writeln!(out, "can follow: {}", expectation(analysis, &expected));
    let space = match &expected {
        Expected::Variable(name) => Some((Space::Variable, name)),
        Expected::Value { name, .. } => Some((Space::Function, name)),
        Expected::Class(name) => Some((Space::Class, name)),
        _ => None,
    };
    if let Some((space, name)) = space {
        let qualifier = name.qualifier.as_deref();
        let visible = analysis.visible(file, offset, space, qualifier, library);
        let names: Vec<String> = visible
            .into_iter()
            // Without those of every program.
            .filter(|visible| qualifier.is_some() || is_of_text(analysis, visible.target.as_ref()))
            .map(|visible| visible.name)
            .collect();
        let _ = writeln!(out, "known: {}", names.join(" "));
    }
    out
}

fn is_of_text(analysis: &Analysis, target: Option<&Target>) -> bool {
    target.is_some_and(|target| analysis.definition(target).is_some())
}

fn described(analysis: &Analysis, target: &Target) -> String {
    match target {
        Target::Variable(id) => format!("the variable ${}", analysis.hir.definition(*id).name),
        Target::Function(id) => {
            let name = analysis.hir.function(*id).name.as_deref();
            format!("the function {}", name.unwrap_or_default())
        }
        Target::LibraryFunction(function) => format!("the library's {}", function.called()),
        Target::Class(id) => format!("the class {}", analysis.hir.class(*id).name),
        Target::Alias(id) => match &analysis.alias(*id).name {
            Some(name) => format!("the alias {name}"),
            None => "a star".to_owned(),
        },
        Target::File(file) => format!("the file {}", analysis.sources.file(*file).name),
        Target::Kind(kind) => format!("the kind {kind}"),
        Target::Parameter { kind, name } => format!("{name} of {kind}"),
        Target::Meta(name) => format!("the meta parameter {}", name.name()),
    }
}

fn expectation(analysis: &Analysis, expected: &Expected) -> String {
    let named = |what: &str, name: &setpoint_mcl::analysis::QualifiedName| {
        let qualifier = match &name.qualifier {
            Some(qualifier) => format!("{qualifier}."),
            None => String::new(),
        };
        let replaced = analysis.sources.text(name.replaced);
        format!("{what} `{qualifier}{}` in place of `{replaced}`", name.prefix)
    };
    match expected {
        Expected::Nothing => "nothing".to_owned(),
        Expected::Variable(name) => named("a variable", name),
        Expected::Value { name, parameter } => {
            let of = match parameter {
                Some((kind, parameter)) => format!(" of {kind}'s {parameter}"),
                None => String::new(),
            };
            named(&format!("a value{of}"), name)
        }
        Expected::Statement(name) => named("a statement", name),
        Expected::Class(name) => named("a class", name),
        Expected::Kind(name) => named("a kind", name),
        Expected::EdgeKind(name) => named("an end of an edge", name),
        Expected::EdgeField {
            kind,
            receives: true,
            name,
        } => named(&format!("what {kind} receives"), name),
        Expected::EdgeField { kind, name, .. } => named(&format!("what {kind} sends"), name),
        Expected::Parameter { kind, name, present } => named(
            &format!("a parameter of {kind} (there: {})", present.join(" ")),
            name,
        ),
        Expected::MetaParameter(name) => named("a meta parameter", name),
        Expected::Field { base, name } => named(&format!("a field of what ends at {base}"), name),
        Expected::ImportPath { prefix, .. } => format!("a path `{prefix}`"),
        Expected::Type(name) => named("a type", name),
    }
}

fn outline(analysis: &Analysis) -> String {
    fn lines(analysis: &Analysis, symbols: &[Symbol], depth: usize, out: &mut String) {
        for symbol in symbols {
            let place = shown(analysis, symbol.name_span);
            let _ = writeln!(
                out,
                "{}{:?} {} at {place}",
                "  ".repeat(depth),
                symbol.kind,
                symbol.name
            );
            lines(analysis, &symbol.children, depth + 1, out);
        }
    }
    let mut out = String::new();
    for (file, _) in analysis.files() {
        lines(analysis, &analysis.symbols(file), 0, &mut out);
    }
    out
}

fn unused(analysis: &Analysis) -> String {
    let mut out = String::new();
    for unused in analysis.unused() {
        let what = described(analysis, &unused.target);
        let _ = writeln!(out, "{what} at {}", shown(analysis, unused.name));
    }
    out
}

fn hidden(analysis: &Analysis) -> String {
    let mut out = String::new();
    for shadowing in analysis.shadowing() {
        let (inner, outer) = (shown(analysis, shadowing.inner), shown(analysis, shadowing.outer));
        let _ = writeln!(out, "{inner} hides {outer}");
    }
    out
}

fn shown(analysis: &Analysis, span: Span) -> String {
    let sources: &SourceMap = &analysis.sources;
    let file = sources.file(span.file);
    let at = file.position(span.start);
    match &*file.name {
        "main.mcl" => format!("{}:{}", at.line, at.column),
        name => format!("{name}:{}:{}", at.line, at.column),
    }
}

/// All functions, and a kind that is described like `file`.
fn library() -> Library {
    static PARAMETERS: &[ParameterSchema] = &[
        parameter("content", &ParameterType::Str),
        parameter("mode", &ParameterType::Str),
        parameter("state", &ParameterType::Str),
    ];
    static SENDS: &[SendKey] = &[SendKey {
        name: "content",
        parameter_type: &ParameterType::Str,
        doc: "Contents.",
        secrecy: Secrecy::WithParameters,
    }];
    static FILE: KindSchema = KindSchema {
        kind: "file",
        doc: "A file.",
        parameters: PARAMETERS,
        sends: SENDS,
        receives: true,
        refreshable: true,
        autoedge: true,
        check: nothing_wrong,
        ..KindSchema::plain("", "", &[])
    };
    Library::new(setpoint_functions::registry(), [&FILE]).with_variable("hostname", Value::str("here"))
}

const fn parameter(name: &'static str, parameter_type: &'static ParameterType) -> ParameterSchema {
    ParameterSchema {
        name,
        yaml_name: name,
        parameter_type,
        form: None,
        doc: "",
        default: "",
    }
}

fn nothing_wrong(_: &str, _: &Parameters, _: &MetaParameters) -> Vec<Invalid> {
    Vec::new()
}
