//! `project.yml`: what a project is called, where its modules are, and how Setpoint treats it.

use std::sync::Arc;
use std::time::Duration;

use setpoint_diagnostics::{Diagnostic, Span, did_you_mean};

use super::yaml::{self, Key, Node, Yaml};
use super::{Reading, codes};
use crate::project::{Port, PortType};

/// A project.
#[derive(Debug, Clone, Default)]
pub struct Project {
    /// Its directory.
    pub directory: String,
    /// Its name.
    pub name: Arc<str>,
    /// What it is.
    pub description: Option<Arc<str>>,
    /// Its licence.
    pub license: Option<Arc<str>>,
    /// Where its modules are, in the order in which they are searched.
    pub module_path: Vec<String>,
    /// Modules that it needs, with their versions, and where it says so.
    pub requires: Vec<(Arc<str>, Span)>,
    /// Which relations are frozen before which.
    pub precedence: Vec<Rule>,
    /// How Setpoint treats it.
    pub settings: Settings,
}

/// A line of `relation_precedence_policy`.
#[derive(Debug, Clone)]
pub struct Rule {
    /// As it is written: `a::A.r before b::B.s`.
    pub text: Arc<str>,
    /// Its place.
    pub span: Span,
}

/// The map `setpoint` of `project.yml`.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The machine of bound entities that name none.
    pub default_machine: Arc<str>,
    /// Whether requirements through entities that are no resources are kept.
    pub flatten_requires: bool,
    /// How long changes are collected.
    pub debounce: Duration,
    /// How long a fact outlives the engine that published it; none: for ever.
    pub fact_ttl: Option<Duration>,
    /// So many instances at most.
    pub max_instances: u64,
    /// So many units of work at most.
    pub max_units: u64,
    /// Further files of bindings, with the places where they are named.
    pub bindings: Vec<(Arc<str>, Span)>,
    /// What whoever includes the model gives it, in the order of the text.
    pub inputs: Vec<Port>,
    /// What it gives them.
    pub outputs: Vec<Port>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            default_machine: "*".into(),
            flatten_requires: false,
            debounce: Duration::from_millis(50),
            fact_ttl: None,
            max_instances: 5_000_000,
            max_units: 500_000_000,
            bindings: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        }
    }
}

/// What a field that has no effect may hold. It is checked nevertheless: other programs read the same file.
enum Ignored {
    Text,
    Truth,
    OneOf(&'static [&'static str]),
    Any,
}

const IGNORED: &[(&str, Ignored)] = &[
    ("author", Ignored::Text),
    ("author_email", Ignored::Text),
    ("copyright", Ignored::Text),
    ("downloadpath", Ignored::Text),
    ("repo", Ignored::Any),
    (
        "install_mode",
        Ignored::OneOf(&["release", "prerelease", "master"]),
    ),
    ("freeze_recursive", Ignored::Truth),
    ("freeze_operator", Ignored::OneOf(&["~=", "==", ">="])),
    ("agent_install_dependency_modules", Ignored::Truth),
    ("pip", Ignored::Any),
    ("environment_settings", Ignored::Any),
];

/// Reads the `project.yml` of a directory.
pub(super) fn read(reading: &mut Reading<'_>, directory: &str, needed: bool) -> Project {
    let mut project = Project {
        directory: directory.to_owned(),
        ..Project::default()
    };
    let path = super::join(directory, "project.yml");
    if !reading.loader.is_file(&path) {
        reading.reads.push(path.clone());
        if needed {
            let file = super::source_file(reading.sources, &path, "");
            let shown = if directory.is_empty() { "." } else { directory };
            let error = Diagnostic::error(
                &codes::NO_PROJECT,
                Span::new(file, 0, 0),
                format!("`{shown}` is no project: there is no `project.yml` in it"),
            );
            let help = "a `project.yml` needs one line: `name: NAME`";
            reading
                .diagnostics
                .push(error.of_class("ProjectNotFoundException").help(help));
        }
        return project;
    }
    let text = match reading.text(&path) {
        Ok(text) => text,
        Err(reason) => {
            let file = super::source_file(reading.sources, &path, "");
            let message = format!("`{path}` cannot be read: {reason}");
            reading
                .diagnostics
                .push(codes::bad_field(Span::new(file, 0, 0), message));
            return project;
        }
    };
    let file = super::source_file(reading.sources, &path, &text);
    match yaml::parse(file, &text) {
        Err(malformed) => {
            let message = format!("`{path}` is no YAML: {}", malformed.reason);
            reading
                .diagnostics
                .push(codes::bad_field(malformed.span, message));
        }
        Ok(node) => match node.map() {
            None => {
                let message = format!("`{path}` must be a map, not {}", node.value.sort());
                reading.diagnostics.push(codes::bad_field(node.span, message));
            }
            Some(fields) => fields
                .iter()
                .for_each(|(key, node)| field(reading, &mut project, key, node)),
        },
    }
    if project.name.is_empty() && !reading.diagnostics.has_errors() {
        let first = text.lines().next().unwrap_or("").len() as u32;
        let error = codes::bad_field(Span::new(file, 0, first), format!("`{path}` has no `name`"));
        reading.diagnostics.push(error);
    }
    project
}

fn field(reading: &mut Reading<'_>, project: &mut Project, key: &Key, node: &Node) {
    match &*key.text {
        "name" => project.name = text(reading, key, node).unwrap_or_default(),
        "description" => project.description = optional_text(reading, key, node),
        "license" => project.license = optional_text(reading, key, node),
        "modulepath" => {
            let texts = texts(reading, key, node);
            project.module_path = texts.into_iter().map(|(text, _)| text.to_string()).collect();
        }
        "requires" => project.requires = texts(reading, key, node),
        "relation_precedence_policy" => {
            let rule = |(text, span)| Rule { text, span };
            project.precedence = texts(reading, key, node).into_iter().map(rule).collect();
        }
        "setpoint" => settings(reading, &mut project.settings, node),
        name => match IGNORED.iter().find(|(known, _)| *known == name) {
            Some((_, expected)) => ignored(reading, key, node, expected),
            None => misspelt(reading, key),
        },
    }
}

/// Fields that mean something here.
const FIELDS: [&str; 7] = [
    "name",
    "description",
    "license",
    "modulepath",
    "requires",
    "relation_precedence_policy",
    "setpoint",
];

/// Fields of which nothing is known are for other programs, unless they look like one that was meant.
fn misspelt(reading: &mut Reading<'_>, key: &Key) {
    let known = FIELDS.into_iter().chain(IGNORED.iter().map(|(known, _)| *known));
    if let Some(meant) = did_you_mean(&key.text, known) {
        let message = format!("`{}` is no field of a project, and has no effect", key.text);
        let warning = Diagnostic::warning(&codes::IGNORED_FIELD, key.span, message);
        reading.diagnostics.push(warning.help(meant));
    }
}

fn ignored(reading: &mut Reading<'_>, key: &Key, node: &Node, expected: &Ignored) {
    let wanted = match (expected, &node.value) {
        (Ignored::Any, _) | (_, Yaml::Null) | (Ignored::Truth, Yaml::Bool(_)) => None,
        (Ignored::Text, _) => node.text().is_none().then(|| "a text".to_owned()),
        (Ignored::Truth, _) => Some("`true` or `false`".to_owned()),
        (Ignored::OneOf(words), _) => {
            let fits = node.text().is_some_and(|text| words.contains(&&*text));
            (!fits).then(|| format!("one of `{}`", words.join("`, `")))
        }
    };
    if let Some(wanted) = wanted {
        let message = format!("`{}` must be {wanted}", key.text);
        reading.diagnostics.push(codes::bad_field(node.span, message));
        return;
    }
    let warning = Diagnostic::warning(
        &codes::IGNORED_FIELD,
        key.span,
        format!("`{}` has no effect", key.text),
    );
    reading.diagnostics.push(warning);
    let packages = match &node.value {
        Yaml::Map(entries) if &*key.text == "pip" => {
            let known = ["index_url", "extra_index_url", "pre", "use_system_config"];
            let unknown = entries.iter().filter(|(key, _)| !known.contains(&&*key.text));
            unknown
                .map(|(key, _)| (key.span, format!("`pip.{}` is no setting", key.text)))
                .collect()
        }
        Yaml::List(repositories) if &*key.text == "repo" => {
            let is_package = |node: &&Node| {
                let kind = node
                    .map()
                    .unwrap_or_default()
                    .iter()
                    .find(|(key, _)| &*key.text == "type");
                kind.is_some_and(|(_, kind)| kind.text().as_deref() == Some("package"))
            };
            let packages = repositories.iter().filter(is_package);
            packages
                .map(|node| (node.span, "repositories of packages have no effect".to_owned()))
                .collect()
        }
        _ => Vec::new(),
    };
    for (span, message) in packages {
        let warning = Diagnostic::warning(&codes::IGNORED_SETTING, span, message);
        reading
            .diagnostics
            .push(warning.of_class("ProjectConfigurationWarning"));
    }
}

fn settings(reading: &mut Reading<'_>, settings: &mut Settings, node: &Node) {
    let Some(fields) = node.map() else {
        let message = format!("`setpoint` must be a map, not {}", node.value.sort());
        reading.diagnostics.push(codes::bad_field(node.span, message));
        return;
    };
    for (key, node) in fields {
        match &*key.text {
            "default_machine" => {
                if let Some(machine) = text(reading, key, node) {
                    settings.default_machine = machine;
                }
            }
            "flatten_requires" => match node.value {
                Yaml::Bool(value) => settings.flatten_requires = value,
                _ => wrong(reading, key, node, "`true` or `false`"),
            },
            "debounce_ms" => {
                if let Some(number) = number(reading, key, node) {
                    settings.debounce = Duration::from_millis(number);
                }
            }
            "fact_ttl" => match node.value {
                Yaml::Null => settings.fact_ttl = None,
                _ => settings.fact_ttl = number(reading, key, node).map(Duration::from_secs),
            },
            "max_instances" => {
                settings.max_instances = number(reading, key, node).unwrap_or(settings.max_instances);
            }
            "max_units" => settings.max_units = number(reading, key, node).unwrap_or(settings.max_units),
            "bindings" => settings.bindings = texts(reading, key, node),
            "inputs" => settings.inputs = ports(reading, key, node),
            "outputs" => settings.outputs = ports(reading, key, node),
            name => {
                let known = [
                    "default_machine",
                    "flatten_requires",
                    "debounce_ms",
                    "fact_ttl",
                    "max_instances",
                    "max_units",
                    "bindings",
                    "inputs",
                    "outputs",
                ];
                let error = codes::bad_field(key.span, format!("`setpoint.{name}` is no setting"));
                reading.diagnostics.push(error.help_if(did_you_mean(name, known)));
            }
        }
    }
    for output in &settings.outputs {
        if let Some(input) = settings.inputs.iter().find(|input| input.name == output.name) {
            let message = format!("`{}` is an input and an output", output.name);
            let error = codes::bad_field(output.span, message).because(input.span, "the input");
            reading.diagnostics.push(error);
        }
    }
}

/// A map of names and types.
fn ports(reading: &mut Reading<'_>, key: &Key, node: &Node) -> Vec<Port> {
    let mut found: Vec<Port> = Vec::new();
    let entries = match &node.value {
        Yaml::Null => &[],
        _ => match node.map() {
            Some(entries) => entries,
            None => {
                wrong(reading, key, node, "a map of names and types");
                &[]
            }
        },
    };
    for (name, node) in entries {
        let is_name = name.text.starts_with(|first: char| first.is_ascii_lowercase())
            && name
                .text
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !is_name {
            let message = format!("`{}` cannot be a name in `setpoint.{}`", name.text, key.text);
            let help = "a name is made of small letters, digits and `_`, and begins with a letter";
            reading
                .diagnostics
                .push(codes::bad_field(name.span, message).help(help));
            continue;
        }
        match node.text().and_then(|text| PortType::parse(&text)) {
            Some(ty) => found.push(Port {
                name: name.text.clone(),
                ty,
                span: name.span,
            }),
            None => {
                let written = node.text().map(|text| format!("`{text}`"));
                let written = written.unwrap_or_else(|| node.value.sort().to_owned());
                let message = format!("the type of `{}` cannot be {written}", name.text);
                let help = format!("it is {}", PortType::ALL);
                reading
                    .diagnostics
                    .push(codes::bad_field(node.span, message).help(help));
            }
        }
    }
    found
}

fn wrong(reading: &mut Reading<'_>, key: &Key, node: &Node, wanted: &str) {
    let message = format!("`{}` must be {wanted}, not {}", key.text, node.value.sort());
    reading.diagnostics.push(codes::bad_field(node.span, message));
}

fn text(reading: &mut Reading<'_>, key: &Key, node: &Node) -> Option<Arc<str>> {
    let found = node.text();
    if found.is_none() {
        wrong(reading, key, node, "a text");
    }
    found
}

fn optional_text(reading: &mut Reading<'_>, key: &Key, node: &Node) -> Option<Arc<str>> {
    match node.value {
        Yaml::Null => None,
        _ => text(reading, key, node),
    }
}

/// A text or a list of texts.
pub(super) fn texts(reading: &mut Reading<'_>, key: &Key, node: &Node) -> Vec<(Arc<str>, Span)> {
    match &node.value {
        Yaml::Null => Vec::new(),
        Yaml::List(elements) => {
            let mut found = Vec::new();
            for element in elements {
                match element.text() {
                    Some(text) => found.push((text, element.span)),
                    None => wrong(reading, key, element, "a list of texts"),
                }
            }
            found
        }
        _ => match node.text() {
            Some(text) => vec![(text, node.span)],
            None => {
                wrong(reading, key, node, "a text or a list of texts");
                Vec::new()
            }
        },
    }
}

fn number(reading: &mut Reading<'_>, key: &Key, node: &Node) -> Option<u64> {
    match node.value {
        Yaml::Int(number) if number >= 0 => u64::try_from(number).ok(),
        _ => {
            let message = format!("`{}` must be a whole number from 0 up", key.text);
            reading.diagnostics.push(codes::bad_field(node.span, message));
            None
        }
    }
}
