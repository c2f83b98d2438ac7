//! What a program offers to a model: its classes as entities, as a text in the language of models.
//!
//! The text is read instead of a file that nobody wrote. It is made anew when a text of the program changes, and says so in its last line, so
//! that whoever compares texts sees that.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use setpoint_cf::kinds::{attribute_name, entity_of};
use setpoint_cf::project::PortType;
use setpoint_diagnostics::{FileId, Span};
use setpoint_mcl::analysis::Analysis;
use setpoint_mcl::syntax::{Class, Parameter, StmtKind};
use setpoint_value::Type;

use super::{CLASS, INPUTS, MODULE};

/// The text of a module, and where what a line says is in the program.
pub(super) struct Interface {
    pub(super) text: Arc<str>,
    /// By line, in the texts of the program; none where nothing there says it.
    pub(super) lines: Vec<Option<Span>>,
}

/// A class that a model can name.
pub(super) struct Offered {
    pub(super) class: String,
    /// Its name, in the texts of the program.
    pub(super) span: Span,
    /// The entity, without its namespace.
    pub(super) entity: String,
    /// In the order of the parameters.
    pub(super) inputs: Vec<(String, PortType)>,
    /// In the order of the text.
    pub(super) outputs: Vec<(String, PortType)>,
    /// Where inputs and outputs are named, in the texts of the program.
    pub(super) places: BTreeMap<String, Span>,
}

/// A class that stays inside, and why.
pub(super) struct Inner {
    /// What its entity would be.
    pub(super) entity: String,
    /// The place of the reason, in the texts of the program.
    pub(super) span: Span,
    pub(super) reason: String,
}

/// The classes at the top of a file of the program that was analysed.
pub(super) fn classes(analysis: &Analysis, main: FileId) -> (Vec<Offered>, Vec<Inner>) {
    let (mut offered, mut inner): (Vec<Offered>, Vec<Inner>) = <_>::default();
    let Some(parsed) = analysis.parsed(main) else {
        return (offered, inner);
    };
    for id in &parsed.ast.root.statements {
        let StmtKind::Class(class) = &parsed.ast.stmt(*id).kind else {
            continue;
        };
        let (_, entity) = entity_of(&class.name.text);
        match inputs(analysis, class) {
            Ok(inputs) => {
                let bound = class.body.statements.iter();
                let bound = bound.filter_map(|id| match &parsed.ast.stmt(*id).kind {
                    StmtKind::Bind(bind) => Some(bind),
                    _ => None,
                });
                let parameters = class.parameters.iter().flat_map(|parameters| &parameters.items);
                let mut places: BTreeMap<String, Span> = bound
                    .clone()
                    .map(|bind| (bind.name.text.to_string(), bind.name.span))
                    .collect();
                places.extend(parameters.map(|one| (one.name.text.to_string(), one.name.span)));
                let outputs = bound.filter_map(|bind| {
                    let of_name = analysis.types_at(main, bind.name.span.start);
                    // What is only another name for something has no type of its own where nothing uses it.
                    let types = match of_name.is_empty() {
                        true => analysis.types_of_span(parsed.ast.expr(bind.value).span),
                        false => of_name,
                    };
                    let ty = single(&types)?;
                    Some((bind.name.text.to_string(), ty))
                });
                offered.push(Offered {
                    class: class.name.text.to_string(),
                    span: class.name.span,
                    entity,
                    inputs,
                    outputs: outputs.collect(),
                    places,
                });
            }
            Err((span, reason)) => inner.push(Inner { entity, span, reason }),
        }
    }
    (offered, inner)
}

/// The inputs of a class, or what keeps it inside.
fn inputs(analysis: &Analysis, class: &Class) -> Result<Vec<(String, PortType)>, (Span, String)> {
    if class.name.text.contains(':') {
        let reason = "a class whose name has colons is no entity".to_owned();
        return Err((class.name.span, reason));
    }
    let items = class.parameters.iter().flat_map(|parameters| &parameters.items);
    let input = |parameter: &Parameter| {
        let types = analysis.types_at(parameter.name.span.file, parameter.name.span.start);
        let ty = single(&types).filter(|_| parameter.annotation.is_some());
        let name = &parameter.name.text;
        ty.map(|ty| (name.to_string(), ty)).ok_or_else(|| {
            let reason = match &parameter.annotation {
                None => format!("`${name}` has no written type, so the class is no entity"),
                Some(_) => {
                    format!("`${name}` has a type that models have no values of, so the class is no entity")
                }
            };
            (parameter.span, reason)
        })
    };
    items.map(input).collect()
}

fn single(types: &[Type]) -> Option<PortType> {
    match types {
        [ty] => PortType::of_value_type(ty),
        _ => None,
    }
}

/// The module for the model, in its layout.
pub(super) fn interface(directory: &str, classes: &[Offered], texts: &impl Hash) -> Interface {
    let mut lines = Lines::default();
    for line in ["\"\"\"", "The classes of a program.", "\"\"\"", "import setpoint"] {
        lines.push(None, line);
    }
    for class in classes {
        lines.push_class(directory, class);
    }
    let mut hasher = DefaultHasher::new();
    texts.hash(&mut hasher);
    lines.push(None, "");
    lines.push(None, &format!("# Of texts {:016x}.", hasher.finish()));
    Interface {
        text: lines.text.into(),
        lines: lines.spans,
    }
}

/// A text that is being written.
#[derive(Default)]
struct Lines {
    text: String,
    spans: Vec<Option<Span>>,
}

impl Lines {
    fn push(&mut self, span: Option<Span>, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.spans.push(span);
    }

    fn push_class(&mut self, directory: &str, offered: &Offered) {
        let Offered {
            class,
            span,
            entity,
            inputs,
            outputs,
            places,
        } = offered;
        let mut of_class = |line: &str| self.push(Some(*span), line);
        of_class("");
        of_class(&format!("entity {entity} extends setpoint::Program:"));
        for line in ["\"\"\"", &format!("The class `{class}`."), "\"\"\""] {
            of_class(&format!("    {line}"));
        }
        let place = |name: &String| places.get(name).copied().or(Some(*span));
        let mut names = BTreeSet::new();
        let distinct = inputs
            .iter()
            .chain(outputs)
            .filter(|(name, _)| names.insert(name));
        for (name, ty) in distinct {
            self.push(place(name), &format!("    {ty} {}", attribute(name)));
        }
        let given = inputs
            .iter()
            .map(|(name, _)| format!("\"{name}\": self.{}", attribute(name)));
        let given: Vec<String> = given.collect();
        let mut of_class = |line: &str| self.push(Some(*span), line);
        for line in [
            "end",
            "",
            &format!("implement {entity} using program_{class}"),
            "",
        ] {
            of_class(line);
        }
        of_class(&format!("implementation program_{class} for {entity}:"));
        of_class(&format!("    self.{MODULE} = {}", quoted(directory)));
        of_class(&format!("    self.{CLASS} = \"{class}\""));
        of_class(&format!("    self.{INPUTS} = {{{}}}", given.join(", ")));
        for (name, _) in outputs {
            let line = format!("    self.{} = std::getfact(self, \"{name}\")", attribute(name));
            self.push(place(name), &line);
        }
        self.push(Some(*span), "end");
    }
}

/// The attribute that stands for a parameter or variable of a class.
fn attribute(name: &str) -> String {
    match [MODULE, CLASS, INPUTS, "self"].contains(&name) {
        true => format!("{name}_"),
        false => attribute_name(name).into_owned(),
    }
}

/// The name of a directory, which has no quotes in it, as models write it: nothing is replaced.
fn quoted(text: &str) -> String {
    format!("r\"{text}\"")
}
