//! What somebody probably meant who used a name that is not there: what another tool or language calls something, the end of a relation that
//! has no name, a variable of a block.

use setpoint_diagnostics::Span;

use crate::hir::{Block, Model, StatementKind};
use crate::ids::{EntityId, Symbol};

/// What is called otherwise here, with what it is called.
const OTHER_NAMES: &[(&str, &str)] = &[
    // Types.
    ("str", "string"),
    ("text", "string"),
    ("integer", "int"),
    ("long", "int"),
    ("boolean", "bool"),
    ("double", "float"),
    ("decimal", "float"),
    ("array", "list"),
    ("map", "dict"),
    ("hash", "dict"),
    // Functions.
    ("range", "std::sequence"),
    ("lookup", "std::get_env"),
    ("getenv", "std::get_env"),
    ("json_encode", "std::json_dumps"),
    ("json_decode", "std::json_loads"),
    ("toUpper", "std::upper"),
    ("toLower", "std::lower"),
    // Kinds.
    ("Package", "Pkg"),
    ("Service", "Svc"),
    ("Systemd", "Svc"),
    ("Directory", "File"),
    ("Link", "File"),
    ("Copy", "File"),
    ("Template", "File"),
    ("Command", "Exec"),
    ("Shell", "Exec"),
    ("Script", "Exec"),
    ("Account", "User"),
    // Attributes of kinds.
    ("ensure", "state"),
    ("dest", "path"),
    ("target", "path"),
    ("filename", "path"),
    ("src", "source"),
    ("command", "cmd"),
    ("text", "content"),
    ("body", "content"),
    ("permissions", "mode"),
    ("enabled", "startup"),
    ("depends_on", "requires"),
    ("require", "requires"),
    ("host", "machine"),
];

/// What is called here what another tool calls `name`, if `is_there` knows it.
pub(crate) fn other_name(name: &str, is_there: &dyn Fn(&str) -> bool) -> Option<&'static str> {
    let names = OTHER_NAMES.iter().filter(|(other, _)| *other == name);
    names.map(|(_, own)| *own).find(|own| is_there(own))
}

/// Advice for a member that an entity does not have, but that would be the other end of a relation to it.
#[must_use]
pub fn unnamed_end<'m>(
    model: &'m Model,
    entity: EntityId,
    name: &str,
    text: &dyn Fn(Symbol) -> &'m str,
) -> Option<String> {
    let short = |id: EntityId| {
        let whole = &model.entities[id.index()].name;
        whole.rsplit_once("::").map_or(&**whole, |(_, short)| short)
    };
    let wanted = name.trim_end_matches('s').replace('_', "");
    let found = model.relations.iter().find(|relation| {
        relation.inverse.is_none()
            && model.is_below(entity, relation.target)
            && short(relation.owner).eq_ignore_ascii_case(&wanted)
    })?;
    let (owner, target, relation) = (short(found.owner), short(found.target), text(found.name));
    let high = found
        .multiplicity
        .high
        .map_or(String::new(), |high| high.to_string());
    let bounds = match found.multiplicity.high == Some(found.multiplicity.low) {
        true => high,
        false => format!("{}:{high}", found.multiplicity.low),
    };
    Some(format!(
        "relation `{owner}.{relation}` has no name at this end; to give it one, write `{owner}.{relation} [{bounds}] -- {target}.{name} [0:]`"
    ))
}

/// Where a variable of this name is assigned in a block inside of `block`.
#[must_use]
pub fn inner_variable(model: &Model, block: &Block, name: &str) -> Option<Span> {
    let mut next: Vec<&Block> = vec![block];
    while let Some(block) = next.pop() {
        let mut inside: Vec<&Block> = Vec::new();
        for statement in &block.statements {
            match &statement.kind {
                StatementKind::For { body, .. } => inside.push(body),
                StatementKind::If { branches, otherwise } => {
                    inside.extend(branches.iter().map(|(_, block)| block));
                    inside.extend(otherwise);
                }
                StatementKind::AssignVariable { .. }
                | StatementKind::AssignMember { .. }
                | StatementKind::Expression(_) => {}
            }
        }
        let mut variables = inside.iter().flat_map(|block| &block.variables);
        if let Some(found) = variables.find(|variable| &**model.text(variable.name) == name) {
            return Some(found.span);
        }
        next.append(&mut inside);
    }
    None
}
