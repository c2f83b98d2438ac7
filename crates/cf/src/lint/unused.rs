//! Imports, typedefs and implementations that nothing uses.
//!
//! A typedef or implementation of a module may be there for those who import it, so only those of the main file are judged. An import also
//! runs the statements of what it loads, so one is only superfluous if everything that it loads has none, or is loaded anyway.

use rustc_hash::FxHashSet;
use setpoint_cf_names::ids::NamespaceId;
use setpoint_cf_names::project::full_name;
use setpoint_cf_syntax::ast;
use setpoint_diagnostics::{Diagnostic, Span};

use super::codes;
use crate::analysis::{Analysis, Target};

pub(super) fn unused(analysis: &Analysis, found: &mut Vec<Diagnostic>) {
    let mut typedefs = FxHashSet::default();
    let mut implementations = FxHashSet::default();
    for name in analysis.names().iter().filter(|name| !name.is_definition) {
        match name.target {
            Target::Typedef(id) => {
                typedefs.insert(id.index());
            }
            Target::Implementation(id) => {
                implementations.insert(id.index());
            }
            _ => {}
        }
    }
    for (at, typedef) in analysis.model.typedefs.iter().enumerate() {
        let place = typedef.span.filter(|_| analysis.is_main(typedef.namespace));
        if let Some(place) = place.filter(|_| !typedefs.contains(&at)) {
            let message = format!("typedef `{}` is not used", analysis.text_at(place));
            found.push(
                Diagnostic::warning(&codes::UNUSED_TYPEDEF, place, message).label("nothing is of this type"),
            );
        }
    }
    for (at, implementation) in analysis.model.implementations.iter().enumerate() {
        let place = implementation
            .span
            .filter(|_| analysis.is_main(implementation.namespace));
        if let Some(place) = place.filter(|_| !implementations.contains(&at)) {
            let name = analysis.text_at(place);
            let entity = analysis.entity_name(implementation.entity);
            let message = format!("implementation `{name}` is not used");
            let warning = Diagnostic::warning(&codes::UNUSED_IMPLEMENTATION, place, message);
            let help = format!("`implement {entity} using {name}` uses it");
            found.push(warning.label("no `implement` names it").help(help));
        }
    }
    for (at, file) in analysis.loaded.files.iter().enumerate() {
        if analysis.is_own(file.tree.file) {
            imports(analysis, NamespaceId(at as u32), &file.tree, found);
        }
    }
}

fn imports(analysis: &Analysis, namespace: NamespaceId, tree: &ast::File, found: &mut Vec<Diagnostic>) {
    // Templates see what is imported, and nobody looks into them here.
    let renders = |target: &Target| matches!(target, Target::Function(name, _) if &**name == "std::template");
    if analysis
        .names_in(tree.file)
        .iter()
        .any(|name| renders(&name.target))
    {
        return;
    }
    for item in &tree.items {
        let ast::Item::Import(import) = item else { continue };
        let name = full_name(&import.path);
        let Some(target) = analysis.namespace(&name) else {
            continue;
        };
        if analysis.used_imports().contains(&import.span)
            || names_something_of(analysis, tree, target)
            || !is_inert(analysis, namespace, import.span, target)
        {
            continue;
        }
        let message = format!("import `{name}` is not used");
        let warning = Diagnostic::warning(&codes::UNUSED_IMPORT, import.path.span, message);
        let warning = warning.label("nothing names it, and it does nothing by itself");
        found.push(warning.fix("take it away", whole_lines(analysis, import.span), ""));
    }
}

/// Whether a file names something of a namespace without its name, as constructors inside of others can.
fn names_something_of(analysis: &Analysis, tree: &ast::File, namespace: NamespaceId) -> bool {
    analysis
        .names_in(tree.file)
        .iter()
        .any(|name| match &name.target {
            Target::Entity(id) => analysis.model.entities[id.index()].namespace == namespace,
            _ => false,
        })
}

/// Whether what an import loads does nothing by itself.
fn is_inert(analysis: &Analysis, from: NamespaceId, import: Span, target: NamespaceId) -> bool {
    let files = &analysis.loaded.files;
    let mut waiting = vec![target];
    let mut seen: FxHashSet<NamespaceId> = FxHashSet::from_iter([from]);
    while let Some(namespace) = waiting.pop() {
        if !seen.insert(namespace) {
            continue;
        }
        let file = &files[namespace.index()];
        // What is built in defines things and does nothing.
        if analysis.sources.file(file.tree.file).name.starts_with('<') {
            continue;
        }
        for item in &file.tree.items {
            match item {
                ast::Item::Import(inner) if inner.span != import => {
                    waiting.extend(analysis.namespace(&full_name(&inner.path)));
                }
                ast::Item::Import(_)
                | ast::Item::Entity(_)
                | ast::Item::Typedef(_)
                | ast::Item::Implementation(_) => {}
                ast::Item::Relation(_)
                | ast::Item::Index(_)
                | ast::Item::Implement(_)
                | ast::Item::Statement(_) => {
                    return false;
                }
            }
        }
        waiting.extend(analysis.model.namespaces[namespace.index()].parent);
    }
    true
}

/// A statement with its lines, if it is alone on them.
fn whole_lines(analysis: &Analysis, statement: Span) -> Span {
    let text = &*analysis.sources.file(statement.file).text;
    let (start, end) = (statement.start as usize, statement.end as usize);
    let line = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let next = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
    let is_alone = text[line..start].trim().is_empty() && text[end..next].trim().is_empty();
    match is_alone {
        true => Span::new(statement.file, line as u32, next as u32),
        false => statement,
    }
}
