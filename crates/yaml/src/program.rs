//! A file of resources and edges as a program.
//!
//! ```yaml
//! graph: web                      # its name
//! comment: what it is for
//! resources:
//!   file:                         # a kind, with its resources
//!   - name: /etc/motd
//!     content: "hello\n"          # its parameters
//!     meta: {retry: 3}            # its meta parameters
//!   noop:
//!   - name: after
//! edges:
//! - name: first                   # for people only
//!   from: {kind: file, name: /etc/motd}
//!   to: {kind: noop, name: after}
//!   notify: true
//! ```
//!
//! A name that begins with `@@` is that of a resource for other hosts: it is exported to all and kept from being applied here.

use std::sync::Arc;

use setpoint_diagnostics::{Diagnostic, Diagnostics, FileId, Span, did_you_mean};
use setpoint_flow::{Language, Operation, Program, Slot, Template, TemplateId, TemplateNode};
use setpoint_graph::{
    EdgeEndpoint, EdgeItem, EdgeProperty, EdgeStatement, FieldItem, KindSchema, Library, MetaItem, MetaName,
    ResourceStatement,
};
use setpoint_value::{Type, Value};

use crate::codes;
use crate::tree::{self, Key, Node, Yaml};
use crate::values::{natural, value};

/// Compiles a file. What is wrong is told, as much of it as there is; then there is no program. `language` tells what is wrong with the
/// graph.
pub fn compile(
    file: FileId,
    text: &str,
    library: &Library,
    language: &'static dyn Language,
    diagnostics: &mut Diagnostics,
) -> Option<Program> {
    let root = match tree::parse(file, text) {
        Ok(root) => root,
        Err(malformed) => {
            let message = format!("this is no YAML: {}", malformed.reason);
            diagnostics.push(Diagnostic::error(&codes::NO_YAML, malformed.span, message));
            return None;
        }
    };
    let mut reading = Reading {
        text,
        library,
        diagnostics,
        nodes: Vec::new(),
        resources: Vec::new(),
        edges: Vec::new(),
    };
    reading.root(&root);
    if reading.diagnostics.has_errors() {
        return None;
    }
    let mut nodes = reading.nodes;
    let statement = |operation, span| TemplateNode {
        operation,
        ty: Type::Dynamic,
        span,
    };
    for resource in reading.resources {
        let span = resource.span;
        nodes.push(statement(Operation::Resource(Arc::new(resource)), span));
    }
    for edge in reading.edges {
        let span = edge.span;
        nodes.push(statement(Operation::Edge(Arc::new(edge)), span));
    }
    let entry = Template {
        name: "the graph".into(),
        inputs: 0,
        nodes,
        result: None,
        exports: Vec::new(),
    };
    Some(Program {
        templates: vec![entry],
        entry: TemplateId(0),
        language,
    })
}

/// The keys of a file.
pub(crate) const KEYS: [&str; 5] = ["graph", "comment", "resources", "edges", "collect"];

/// The keys of an edge.
pub(crate) const EDGE_KEYS: [&str; 4] = ["name", "from", "to", "notify"];

/// The keys of an end of an edge.
pub(crate) const END_KEYS: [&str; 2] = ["kind", "name"];

struct Reading<'a> {
    text: &'a str,
    library: &'a Library,
    diagnostics: &'a mut Diagnostics,
    nodes: Vec<TemplateNode>,
    resources: Vec<ResourceStatement<Slot>>,
    edges: Vec<EdgeStatement<Slot>>,
}

impl Reading<'_> {
    fn root(&mut self, root: &Node) {
        let Some(entries) = self.map(root, "a graph") else {
            return;
        };
        match entries.iter().find(|(key, _)| &*key.text == "graph") {
            Some((_, node)) => {
                if node.text().is_none_or(|name| name.is_empty()) {
                    self.shape(node, "the name of the graph", "a text that is not empty");
                }
            }
            None => {
                let help = "the name of the graph stands in front: `graph: NAME`";
                let span = Span::new(root.span.file, root.span.start, root.span.start);
                let error = Diagnostic::error(&codes::MISSING_KEY, span, "the key `graph` is missing");
                self.diagnostics.push(error.help(help));
            }
        }
        for (key, node) in entries {
            match &*key.text {
                "graph" => {}
                "comment" => {
                    if node.text().is_none() && !matches!(node.value, Yaml::Null) {
                        self.shape(node, "a comment", "a text");
                    }
                }
                "resources" => self.resources(node),
                "edges" => {}
                "collect" => {
                    let message = "`collect` has no effect";
                    self.diagnostics
                        .push(Diagnostic::warning(&codes::WITHOUT_EFFECT, key.span, message));
                }
                _ => self.unknown_key(key, KEYS),
            }
        }
        // Wherever they stand: those that notify belong to their resources.
        for (_, node) in entries.iter().filter(|(key, _)| &*key.text == "edges") {
            for edge in self.list(node, "edges") {
                self.edge(edge);
            }
        }
    }

    fn resources(&mut self, node: &Node) {
        for (key, node) in self.map(node, "the resources").unwrap_or_default() {
            let kind = key.text.to_lowercase();
            let Some(schema) = self.library.kinds.get(&*kind).copied() else {
                let message = format!("there is no kind `{kind}`");
                let help = did_you_mean(&kind, self.library.kinds.keys().copied());
                let error = Diagnostic::error(&codes::UNKNOWN_KIND, key.span, message);
                self.diagnostics.push(error.help_if(help));
                continue;
            };
            for resource in self.list(node, "the resources of a kind") {
                self.resource(schema, resource);
            }
        }
    }

    fn resource(&mut self, schema: &'static KindSchema, node: &Node) {
        let Some(entries) = self.map(node, "a resource") else {
            return;
        };
        let Some((name, name_span)) = self.name(node, entries, "a resource") else {
            return;
        };
        let (name, is_exported) = match name.strip_prefix("@@") {
            Some(name) => (Arc::from(name), true),
            None => (name, false),
        };
        let mut fields: Vec<FieldItem<Slot>> = Vec::new();
        let mut meta = Vec::new();
        for (key, node) in entries {
            let span = key.span.to(node.span);
            match &*key.text {
                "name" => {}
                "meta" => self.meta(node, &mut meta),
                written => {
                    let known = schema.parameters.iter().find(|known| known.yaml_name == written);
                    let Some(parameter) = known else {
                        let names = schema.parameters.iter().map(|known| known.yaml_name);
                        self.unknown_key(key, names.chain(["name", "meta"]));
                        continue;
                    };
                    // Nothing is what the kind takes by itself.
                    if matches!(node.value, Yaml::Null) {
                        continue;
                    }
                    match value(node, parameter.parameter_type, written, self.text) {
                        Ok(value) => {
                            let value = self.constant(value, node.span);
                            fields.push(FieldItem {
                                parameter,
                                value,
                                condition: None,
                                span,
                            });
                        }
                        Err(error) => self.diagnostics.push(*error),
                    }
                }
            }
        }
        if is_exported {
            let everybody = Value::list(Type::Str, [Value::str("*")]);
            for (name, value) in [
                (MetaName::Hidden, Value::Bool(true)),
                (MetaName::Export, everybody),
            ] {
                let value = self.constant(value, name_span);
                meta.push(MetaItem {
                    name: Some(name),
                    value,
                    condition: None,
                    span: name_span,
                });
            }
        }
        let name = self.constant(Value::str(&*name), name_span);
        self.resources.push(ResourceStatement {
            kind: schema.kind.into(),
            schema: Some(schema),
            name,
            fields,
            meta,
            edges: Vec::new(),
            head: node.span.to(name_span),
            span: node.span.to(name_span),
        });
    }

    fn meta(&mut self, node: &Node, meta: &mut Vec<MetaItem<Slot>>) {
        for (key, node) in self.map(node, "the meta parameters").unwrap_or_default() {
            let Some(name) = MetaName::parse(&key.text) else {
                self.unknown_key(key, MetaName::ALL.map(MetaName::name));
                continue;
            };
            let value = match (&node.value, name) {
                // A whole number is a number, too.
                (Yaml::Int(number), MetaName::Limit) => Value::float(*number as f64),
                _ => natural(node),
            };
            let value = self.constant(value, node.span);
            meta.push(MetaItem {
                name: Some(name),
                value,
                condition: None,
                span: key.span.to(node.span),
            });
        }
    }

    fn edge(&mut self, node: &Node) {
        let Some(entries) = self.map(node, "an edge") else {
            return;
        };
        for (key, _) in entries {
            if !EDGE_KEYS.contains(&&*key.text) {
                self.unknown_key(key, EDGE_KEYS);
            }
        }
        let part = |name: &str| {
            entries
                .iter()
                .find(|(key, _)| &*key.text == name)
                .map(|(_, node)| node)
        };
        let notify = match part("notify").map(|node| (node, &node.value)) {
            None | Some((_, Yaml::Null)) => false,
            Some((_, Yaml::Bool(notify))) => *notify,
            Some((node, _)) => return self.shape(node, "`notify`", "`true` or `false`"),
        };
        let mut ends = Vec::new();
        for name in ["from", "to"] {
            match part(name) {
                Some(node) => ends.extend(self.end(node)),
                None => self.missing(node, name, "an edge"),
            }
        }
        let Ok([from, to]) = <[(String, Arc<str>, EdgeEndpoint<Slot>); 2]>::try_from(ends) else {
            return;
        };
        if !notify {
            self.edges.push(EdgeStatement {
                endpoints: vec![from.2, to.2],
                send: None,
                span: node.span,
            });
            return;
        }
        let nodes = &self.nodes;
        let is_from = |resource: &&mut ResourceStatement<Slot>| {
            let name = &nodes[resource.name.0 as usize].operation;
            *resource.kind == from.0
                && matches!(name, Operation::Constant(name) if *name == Value::str(&*from.1))
        };
        match self.resources.iter_mut().find(is_from) {
            Some(resource) => resource.edges.push(EdgeItem {
                property: EdgeProperty::Notify,
                endpoint: to.2,
                condition: None,
                span: node.span,
            }),
            None => {
                let message = format!("there is no `{}[{}]` that could notify", from.0, from.1);
                self.diagnostics
                    .push(Diagnostic::error(&codes::MISSING_END, from.2.span, message));
            }
        }
    }

    /// Kind and name of an end of an edge.
    fn end(&mut self, node: &Node) -> Option<(String, Arc<str>, EdgeEndpoint<Slot>)> {
        let entries = self.map(node, "an end of an edge")?;
        for (key, _) in entries {
            if !END_KEYS.contains(&&*key.text) {
                self.unknown_key(key, END_KEYS);
            }
        }
        let kind = entries.iter().find(|(key, _)| &*key.text == "kind");
        let Some((kind, kind_span)) = kind.and_then(|(_, node)| Some((node.text()?, node.span))) else {
            self.missing(node, "kind", "an end of an edge");
            return None;
        };
        let (name, name_span) = self.name(node, entries, "an end of an edge")?;
        let kind = kind.to_lowercase();
        let slot = self.constant(Value::str(&*name), name_span);
        let endpoint = EdgeEndpoint {
            kind: (*kind).into(),
            name: slot,
            span: kind_span.to(name_span),
        };
        Some((kind, name, endpoint))
    }

    /// The key `name`, which everything has that can be referred to.
    fn name(&mut self, node: &Node, entries: &[(Key, Node)], of: &str) -> Option<(Arc<str>, Span)> {
        let Some((_, found)) = entries.iter().find(|(key, _)| &*key.text == "name") else {
            self.missing(node, "name", of);
            return None;
        };
        let text = match &found.value {
            Yaml::Text(text) => Some(text.clone()),
            // As it is written.
            Yaml::Int(_) | Yaml::Number(_) | Yaml::Bool(_) => self
                .text
                .get(found.span.start as usize..found.span.end as usize)
                .map(|text| text.trim().into()),
            Yaml::Null | Yaml::List(_) | Yaml::Map(_) => None,
        };
        if text.is_none() {
            self.shape(found, "a name", "a text");
        }
        Some((text?, found.span))
    }

    fn constant(&mut self, value: Value, span: Span) -> Slot {
        self.nodes.push(TemplateNode {
            ty: value.ty(),
            operation: Operation::Constant(value),
            span,
        });
        Slot(self.nodes.len() as u32 - 1)
    }

    fn map<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [(Key, Node)]> {
        let found = node.map();
        if found.is_none() {
            self.shape(node, what, "a map");
        }
        found
    }

    fn list<'n>(&mut self, node: &'n Node, what: &str) -> &'n [Node] {
        match &node.value {
            Yaml::List(items) => items,
            Yaml::Null => &[],
            _ => {
                self.shape(node, what, "a list");
                &[]
            }
        }
    }

    fn shape(&mut self, node: &Node, what: &str, wanted: &str) {
        let message = format!("{what} must be {wanted}, not {}", node.value.sort());
        self.diagnostics
            .push(Diagnostic::error(&codes::SHAPE, node.span, message));
    }

    fn missing(&mut self, node: &Node, key: &str, of: &str) {
        let message = format!("{of} needs the key `{key}`");
        self.diagnostics
            .push(Diagnostic::error(&codes::MISSING_KEY, node.span, message));
    }

    /// Other programs put keys of their own into such files, so it is no error.
    fn unknown_key<'k>(&mut self, key: &Key, known: impl IntoIterator<Item = &'k str>) {
        let known: Vec<&str> = known.into_iter().collect();
        let message = format!("`{}` means nothing here", key.text);
        let help = did_you_mean(&key.text, known.iter().copied())
            .unwrap_or_else(|| format!("the keys are `{}`", known.join("`, `")));
        self.diagnostics
            .push(Diagnostic::warning(&codes::UNKNOWN_KEY, key.span, message).help(help));
    }
}
