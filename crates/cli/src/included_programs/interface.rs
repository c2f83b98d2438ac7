//! What a program offers to a model: its classes as entities, as a text in the language of models.
//!
//! The text is read instead of a file that nobody wrote. It is made anew when a text of the program changes, and says so in its last line, so
//! that whoever compares texts sees that.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use setpoint_diagnostics::{FileId, Span};
use setpoint_mcl::analysis::Analysis;
use setpoint_mcl::syntax::{Class, Parameter, StmtKind};
use setpoint_model::ports::PortType;
use setpoint_model::resolve::kinds::{attribute_name, entity_of};
use setpoint_value::Type;

use super::{CLASS, INPUTS, MODULE};

/// A class that a model can name.
pub(super) struct Offered {
    pub(super) class: String,
    /// The entity, without its namespace.
    pub(super) entity: String,
    /// In the order of the parameters.
    pub(super) inputs: Vec<(String, PortType)>,
    /// In the order of the text.
    pub(super) outputs: Vec<(String, PortType)>,
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
                    entity,
                    inputs,
                    outputs: outputs.collect(),
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

/// The text of the module for the model, in its layout.
pub(super) fn text(directory: &str, classes: &[Offered], texts: &impl Hash) -> String {
    let mut text = "\"\"\"\nThe classes of a program.\n\"\"\"\nimport setpoint\n".to_owned();
    for class in classes {
        // Writing into a text cannot fail.
        let _ = write_class(&mut text, directory, class);
    }
    let mut hasher = DefaultHasher::new();
    texts.hash(&mut hasher);
    let _ = writeln!(text, "\n# Of texts {:016x}.", hasher.finish());
    text
}

fn write_class(text: &mut String, directory: &str, offered: &Offered) -> std::fmt::Result {
    let Offered {
        class,
        entity,
        inputs,
        outputs,
    } = offered;
    writeln!(text, "\nentity {entity} extends setpoint::Program:")?;
    writeln!(text, "    \"\"\"\n    The class `{class}`.\n    \"\"\"")?;
    let mut names = BTreeSet::new();
    let distinct = inputs
        .iter()
        .chain(outputs)
        .filter(|(name, _)| names.insert(name));
    for (name, ty) in distinct {
        writeln!(text, "    {ty} {}", attribute(name))?;
    }
    let given = inputs
        .iter()
        .map(|(name, _)| format!("\"{name}\": self.{}", attribute(name)));
    let given: Vec<String> = given.collect();
    writeln!(text, "end\n\nimplement {entity} using program_{class}\n")?;
    writeln!(text, "implementation program_{class} for {entity}:")?;
    writeln!(text, "    self.{MODULE} = {}", quoted(directory))?;
    writeln!(text, "    self.{CLASS} = \"{class}\"")?;
    writeln!(text, "    self.{INPUTS} = {{{}}}", given.join(", "))?;
    for (name, _) in outputs {
        writeln!(
            text,
            "    self.{} = std::getfact(self, \"{name}\")",
            attribute(name)
        )?;
    }
    writeln!(text, "end")
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
