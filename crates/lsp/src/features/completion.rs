//! Completion: what can stand at a place, with documentation and, where the client knows them, snippets.

use lsp_types::Range;
use serde_json::{Value as Json, json};
use setpoint_graph::{KindSchema, MetaName};
use setpoint_mcl::analysis::{Expected, QualifiedName, Space, Target, Visible};
use setpoint_mcl::writable_parameters;
use setpoint_value::FunctionSpec;

use super::{Place, hover};
use crate::library_text as library;
use crate::uri;

/// More entries help nobody; the client asks again when more letters are there.
const MOST: usize = 2000;

/// The words that statements begin with, and what follows them.
const STATEMENTS: [(&str, &str); 9] = [
    ("if", "if ${1:condition} {\n\t$0\n}"),
    ("for", "for \\$${1:index}, \\$${2:value} in ${3:list} {\n\t$0\n}"),
    ("forkv", "forkv \\$${1:key}, \\$${2:value} in ${3:map} {\n\t$0\n}"),
    ("class", "class ${1:name}($2) {\n\t$0\n}"),
    ("include", "include ${1:class}"),
    ("import", "import \"$1\""),
    ("func", "func ${1:name}($2) {\n\t$0\n}"),
    ("panic", "panic($1)"),
    ("collect", "collect $1"),
];

/// The words that expressions may begin with.
const EXPRESSIONS: [&str; 6] = ["true", "false", "not", "if", "func", "struct"];

const TYPES: [&str; 8] = ["bool", "str", "int", "float", "map", "struct", "func", "variant"];

/// Numbers of the protocol for the sorts of entries.
mod sort {
    pub(super) const FUNCTION: u8 = 3;
    pub(super) const FIELD: u8 = 5;
    pub(super) const VARIABLE: u8 = 6;
    pub(super) const CLASS: u8 = 7;
    pub(super) const MODULE: u8 = 9;
    pub(super) const PROPERTY: u8 = 10;
    pub(super) const VALUE: u8 = 12;
    pub(super) const KEYWORD: u8 = 14;
    pub(super) const FILE: u8 = 17;
    pub(super) const FOLDER: u8 = 19;
    pub(super) const CONSTANT: u8 = 21;
    pub(super) const STRUCT: u8 = 22;
}

pub(super) fn completion(place: &Place<'_>) -> Option<Json> {
    let mut list = List {
        place,
        items: Vec::new(),
        replaced: Range::default(),
        underscores: 0,
        is_incomplete: false,
    };
    // No name ends in an underscore, but one that is being written does.
    let before = place.text.as_str().get(..place.offset as usize)?;
    let name = before.trim_end_matches('_');
    let is_written = name.ends_with(|last: char| last.is_ascii_lowercase() || last.is_ascii_digit());
    let end = if is_written {
        name.len() as u32
    } else {
        place.offset
    };
    list.underscores = place.offset - end;
    list.fill(&place.analysis().expected(place.file, end));
    Some(json!({ "isIncomplete": list.is_incomplete, "items": list.items }))
}

struct List<'a> {
    place: &'a Place<'a>,
    items: Vec<Json>,
    /// What an entry replaces.
    replaced: Range,
    /// So many underscores behind the name are replaced with it.
    underscores: u32,
    is_incomplete: bool,
}

/// An entry.
#[derive(Default)]
struct Entry<'e> {
    label: &'e str,
    sort: u8,
    detail: String,
    doc: String,
    /// What is inserted, as a snippet; the label without it.
    snippet: Option<String>,
    /// Entries of smaller numbers come first.
    rank: u8,
}

impl List<'_> {
    fn fill(&mut self, expected: &Expected) {
        match expected {
            Expected::Nothing => {}
            Expected::Variable(name) => {
                self.replace(name);
                self.names(name, Space::Variable, "");
            }
            Expected::Value { name, parameter } => {
                self.replace(name);
                if name.qualifier.is_none() {
                    if let Some((kind, parameter)) = parameter {
                        self.values_of(kind, parameter);
                    }
                    self.names(name, Space::Variable, "$");
                    EXPRESSIONS.iter().for_each(|word| self.word(word, None));
                }
                self.names(name, Space::Function, "");
            }
            Expected::Statement(name) => {
                self.replace(name);
                if name.qualifier.is_some() {
                    return;
                }
                for (word, snippet) in STATEMENTS {
                    self.word(word, Some(snippet));
                }
                self.kinds(|schema| Some(library::kind_snippet(schema)));
            }
            Expected::Class(name) => {
                self.replace(name);
                self.names(name, Space::Class, "");
            }
            Expected::Kind(name) => {
                self.replace(name);
                self.kinds(|schema| Some(library::kind_snippet(schema)));
            }
            Expected::EdgeKind(name) => {
                self.replace(name);
                self.edge_kinds();
            }
            Expected::EdgeField { kind, receives, name } => {
                self.replace(name);
                match receives {
                    true => self.received(kind),
                    false => self.sent(kind),
                }
            }
            Expected::Parameter { kind, name, present } => {
                self.replace(name);
                self.body(kind, present);
            }
            Expected::MetaParameter(name) => {
                self.replace(name);
                self.meta_parameters();
            }
            Expected::Field { base, name } => {
                self.replace(name);
                self.fields(*base);
            }
            Expected::ImportPath { prefix, replaced } => {
                self.replaced = self.place.range(*replaced);
                self.imports(prefix);
            }
            Expected::Type(name) => {
                self.replace(name);
                TYPES.iter().for_each(|word| self.word(word, None));
            }
        }
    }

    fn edge_kinds(&mut self) {
        for schema in library::kinds(&self.place.setup.library) {
            let label = library::capitalized(schema.kind);
            self.push(Entry {
                label: &label,
                sort: sort::STRUCT,
                detail: library::first_line(schema.doc).to_owned(),
                snippet: Some(format!("{label}[\"$1\"]")),
                ..Entry::default()
            });
        }
    }

    /// The values that a kind sends.
    fn sent(&mut self, kind: &str) {
        let Some(schema) = self.schema(kind) else { return };
        for key in schema.sends {
            self.push(Entry {
                label: key.name,
                sort: sort::PROPERTY,
                detail: format!("sends {}", key.parameter_type.describe()),
                doc: key.doc.to_owned(),
                ..Entry::default()
            });
        }
    }

    /// The parameters that a kind can receive.
    fn received(&mut self, kind: &str) {
        let Some(schema) = self.schema(kind).filter(|schema| schema.receives) else {
            return;
        };
        for parameter in writable_parameters(schema) {
            self.push(Entry {
                label: parameter.name,
                sort: sort::PROPERTY,
                detail: parameter.parameter_type.describe(),
                doc: library::parameter(schema, parameter),
                ..Entry::default()
            });
        }
    }

    fn meta_parameters(&mut self) {
        for meta in MetaName::ALL {
            let value = library::placeholder(&meta.ty(), 1);
            self.push(Entry {
                label: meta.name(),
                sort: sort::PROPERTY,
                detail: meta.ty().to_string(),
                doc: library::meta(meta),
                snippet: Some(format!("{} => {value},", meta.name())),
                ..Entry::default()
            });
        }
    }

    fn fields(&mut self, base: u32) {
        let types = self.place.analysis().types_at(self.place.file, base);
        let structs = types.iter().filter_map(|ty| ty.as_struct());
        for field in structs.flat_map(|ty| ty.fields.iter()) {
            self.push(Entry {
                label: &field.name,
                sort: sort::FIELD,
                detail: field.ty.to_string(),
                ..Entry::default()
            });
        }
    }

    fn replace(&mut self, name: &QualifiedName) {
        self.replaced = self.place.range(name.replaced);
        self.replaced.end.character += self.underscores;
    }

    fn schema(&self, kind: &str) -> Option<&'static KindSchema> {
        self.place.setup.library.kinds.get(kind).copied()
    }

    fn push(&mut self, entry: Entry<'_>) {
        if self.items.len() >= MOST {
            self.is_incomplete = true;
            return;
        }
        let snippet = entry.snippet.filter(|_| self.place.client.snippets);
        let mut item = json!({
            "label": entry.label,
            "kind": entry.sort,
            "sortText": format!("{}{}", entry.rank, entry.label),
            "filterText": entry.label,
            "insertTextFormat": if snippet.is_some() { 2 } else { 1 },
            "textEdit": {
                "range": self.replaced,
                "newText": snippet.as_deref().unwrap_or(entry.label),
            },
        });
        if !entry.detail.is_empty() {
            item["detail"] = entry.detail.into();
        }
        if !entry.doc.is_empty() {
            item["documentation"] = json!({ "kind": "markdown", "value": entry.doc.trim() });
        }
        self.items.push(item);
    }

    fn word(&mut self, word: &str, snippet: Option<&str>) {
        self.push(Entry {
            label: word,
            sort: sort::KEYWORD,
            snippet: snippet.map(str::to_owned),
            rank: 3,
            ..Entry::default()
        });
    }

    fn kinds(&mut self, snippet: impl Fn(&KindSchema) -> Option<String>) {
        for schema in library::kinds(&self.place.setup.library) {
            self.push(Entry {
                label: schema.kind,
                sort: sort::STRUCT,
                detail: "kind".to_owned(),
                doc: library::kind(schema),
                snippet: snippet(schema),
                ..Entry::default()
            });
        }
    }

    /// Names of a space that are visible, behind a sigil.
    fn names(&mut self, name: &QualifiedName, space: Space, sigil: &str) {
        let place = self.place;
        let qualifier = name.qualifier.as_deref();
        let library = &place.setup.library;
        let mut visible = place
            .analysis()
            .visible(place.file, place.offset, space, qualifier, library);
        // The client chooses among those that it has; of very many it gets those that begin like what is written.
        if visible.len() > MOST {
            self.is_incomplete = true;
            let written = place
                .text
                .as_str()
                .get(..place.offset as usize)
                .unwrap_or_default();
            let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            let begun = &written[written.trim_end_matches(is_part).len()..];
            visible.retain(|visible| visible.name.starts_with(begun));
        }
        for Visible { name, target, value } in visible {
            if self.items.len() >= MOST {
                self.is_incomplete = true;
                break;
            }
            // Constants of kinds are many; they are offered where they belong, and behind what is written of them.
            if qualifier.is_none() && name.contains('.') && !sigil.is_empty() {
                continue;
            }
            let label = format!("{sigil}{name}");
            let is_alias = matches!(target, Some(Target::Alias(_)));
            let entry = match &target {
                Some(Target::LibraryFunction(function)) => {
                    if function.name.starts_with('_') {
                        continue;
                    }
                    function_entry(&label, function)
                }
                Some(target) => Entry {
                    label: &label,
                    sort: match target {
                        Target::Variable(_) => sort::VARIABLE,
                        Target::Function(_) => sort::FUNCTION,
                        Target::Class(_) => sort::CLASS,
                        _ => sort::MODULE,
                    },
                    detail: detail(place, target),
                    doc: match is_alias {
                        true => String::new(),
                        false => hover::about(place, target).unwrap_or_default(),
                    },
                    snippet: called(place, &label, target),
                    rank: u8::from(is_alias),
                },
                None => Entry {
                    label: &label,
                    sort: sort::CONSTANT,
                    detail: value.as_ref().map(library::value).unwrap_or_default(),
                    rank: 2,
                    ..Entry::default()
                },
            };
            self.push(entry);
        }
    }

    /// Values for a parameter: its constants, `true` and `false`.
    fn values_of(&mut self, kind: &str, parameter: &str) {
        let Some(schema) = self.schema(kind) else { return };
        for (name, value) in library::constants(schema, parameter) {
            self.push(Entry {
                label: &format!("${name}"),
                sort: sort::CONSTANT,
                detail: library::value(&value),
                ..Entry::default()
            });
            if self
                .place
                .analysis()
                .sources
                .text(self.place.span(self.replaced))
                .is_empty()
            {
                self.push(Entry {
                    label: &library::value(&value),
                    sort: sort::VALUE,
                    ..Entry::default()
                });
            }
        }
    }

    /// Lines of a resource's body: parameters that it does not have yet, edge properties, meta parameters.
    fn body(&mut self, kind: &str, present: &[String]) {
        if let Some(schema) = self.schema(kind) {
            let is_free = |name: &str| !present.iter().any(|present| present == name);
            let parameters = writable_parameters(schema);
            for parameter in parameters.filter(|parameter| is_free(parameter.name)) {
                self.push(Entry {
                    label: parameter.name,
                    sort: sort::PROPERTY,
                    detail: parameter.parameter_type.describe(),
                    doc: library::parameter(schema, parameter),
                    snippet: Some(library::parameter_snippet(parameter)),
                    ..Entry::default()
                });
            }
        }
        for (_, name, doc) in library::EDGE_PROPERTIES {
            self.push(Entry {
                label: name,
                sort: sort::KEYWORD,
                detail: doc.to_owned(),
                snippet: Some(format!("{name} => ${{1:Kind}}[\"$2\"],")),
                rank: 1,
                ..Entry::default()
            });
        }
        for meta in MetaName::ALL {
            let label = format!("Meta:{}", meta.name());
            let value = library::placeholder(&meta.ty(), 1);
            self.push(Entry {
                label: &label,
                sort: sort::PROPERTY,
                detail: meta.ty().to_string(),
                doc: library::meta(meta),
                snippet: Some(format!("{label} => {value},")),
                rank: 2,
            });
        }
    }

    /// Modules of the library; files and directories beside the file.
    fn imports(&mut self, prefix: &str) {
        let place = self.place;
        for module in place.setup.library.functions.module_names() {
            if module.is_empty() || module.starts_with('_') {
                continue;
            }
            self.push(Entry {
                label: module,
                sort: sort::MODULE,
                ..Entry::default()
            });
        }
        let Some(path) = place.program.path(place.file).filter(|path| uri::is_file(path)) else {
            return;
        };
        let inside = &prefix[..prefix.rfind('/').map_or(0, |at| at + 1)];
        if inside.split('/').any(|part| part == "..") {
            return;
        }
        let directory = format!("{}{inside}", uri::directory(path));
        for name in place.setup.files.names(&directory) {
            let is_directory = name.ends_with('/');
            let label = format!("{inside}{name}");
            let is_itself = format!("{directory}{name}") == path;
            if is_itself || name.starts_with('.') || !(is_directory || name.ends_with(".mcl")) {
                continue;
            }
            self.push(Entry {
                label: &label,
                sort: if is_directory { sort::FOLDER } else { sort::FILE },
                rank: 1,
                ..Entry::default()
            });
        }
    }
}

fn function_entry<'e>(label: &'e str, function: &FunctionSpec) -> Entry<'e> {
    let signature = function.signatures().first().copied().unwrap_or_default();
    let takes_nothing = function
        .alternatives()
        .iter()
        .all(|alternative| alternative.parameters.is_empty() && alternative.variadic.is_none());
    Entry {
        label,
        sort: sort::FUNCTION,
        detail: signature.to_owned(),
        doc: library::function(function),
        snippet: Some(match takes_nothing {
            true => format!("{label}()"),
            false => format!("{label}($1)"),
        }),
        ..Entry::default()
    }
}

fn detail(place: &Place<'_>, target: &Target) -> String {
    let analysis = place.analysis();
    match target {
        Target::Variable(id) => {
            let types: Vec<String> = analysis.types_of(*id).iter().map(ToString::to_string).collect();
            types.join(" | ")
        }
        Target::Function(id) => hover::function_head(place, *id),
        Target::Class(id) => hover::class_head(place, *id),
        Target::Alias(id) => {
            let statement = analysis.alias(*id).statement;
            let text = analysis.sources.text(statement);
            text.lines().next().unwrap_or_default().to_owned()
        }
        _ => String::new(),
    }
}

/// A call to fill in, of what takes arguments.
fn called(place: &Place<'_>, label: &str, target: &Target) -> Option<String> {
    let hir = &place.analysis().hir;
    match target {
        Target::Function(id) if hir.function(*id).parameters.is_empty() => Some(format!("{label}()")),
        Target::Function(_) => Some(format!("{label}($1)")),
        Target::Class(id) if !hir.class(*id).parameters.is_empty() => Some(format!("{label}($1)")),
        _ => None,
    }
}
