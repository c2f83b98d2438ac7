//! The linter: what means something, but probably not what was meant, and what other implementations of the language refuse.
//!
//! ```text
//! Analysis ─┬ what checking warns of ─┐
//!           └ rules ──────────────────┴─▶ without what a comment allows ─▶ warnings, in the order of the texts
//! ```
//!
//! Each rule has a name, by which a comment silences it at its line: `# setpoint: allow(hyphen-in-name)`. A rule raises one code. It would
//! rather miss something than be wrong about a model that is right: what others may use counts as used.

pub mod codes;
mod unused;

use rustc_hash::FxHashMap;
use setpoint_cf_names::ids::NamespaceId;
use setpoint_cf_names::{project, resolve};
use setpoint_cf_syntax::{self as syntax, ast};
use setpoint_diagnostics::{
    Commented, Diagnostic, Diagnostics, FileId, Linter, Severity, Span, did_you_mean,
};

use crate::analysis::{Analysis, Target, Unknown};

setpoint_diagnostics::rules! {
    "ignored-field" project::codes::IGNORED_FIELD;
    "unknown-escape" syntax::UNKNOWN_ESCAPE;
    "number-type" resolve::codes::NUMBER_TYPE;
    "builtin-name" resolve::codes::BUILTIN_NAME;
    "hyphen-in-name" codes::HYPHEN_IN_NAME;
    "positional-constructor" codes::POSITIONAL_CONSTRUCTOR;
    "not-comparison" codes::NOT_COMPARISON;
    "typedef-shadows-variable" codes::TYPEDEF_SHADOWS_VARIABLE;
    "unused-import" codes::UNUSED_IMPORT;
    "unused-typedef" codes::UNUSED_TYPEDEF;
    "unused-implementation" codes::UNUSED_IMPLEMENTATION;
    "unknown-variable" codes::UNKNOWN_VARIABLE;
    "unknown-member" codes::UNKNOWN_MEMBER;
    "shadowed-variable" resolve::codes::SHADOWED;
    "deprecated-module" project::codes::DEPRECATED_MODULE;
    "ignored-setting" project::codes::IGNORED_SETTING;
}

/// What belongs to the rules: comments that allow what they find.
pub static LINTER: Linter = Linter {
    rules: RULES,
    unknown: &codes::UNKNOWN_RULE,
    unused: &codes::UNUSED_ALLOW,
};

/// What the linter finds in the project's own files, and what checking warned of, in the order of the texts. What a comment allows is left
/// out; a comment that allows nothing is warned of.
#[must_use]
pub fn lint(analysis: &Analysis) -> Diagnostics {
    let mut files: Vec<FileId> = analysis.files().filter(|file| analysis.is_own(*file)).collect();
    files.sort_unstable();
    files.dedup();
    let warnings = analysis.diagnostics.iter();
    let warnings = warnings.filter(|found| found.severity == Severity::Warning);
    let mut found: Vec<Diagnostic> = warnings.cloned().collect();
    // A model that is wrong is not understood well enough to say what is superfluous in it.
    let is_right = !analysis.diagnostics.has_errors();
    for file in &files {
        if let Some(tree) = analysis.tree(*file) {
            comparisons(tree, &mut found);
        }
    }
    hyphens(analysis, &mut found);
    if is_right {
        positional(analysis, &mut found);
        typedefs_and_variables(analysis, &mut found);
        unused::unused(analysis, &mut found);
        unknown(analysis, &mut found);
    }
    let is_model = |file: FileId| analysis.lexed(file).is_some();
    found.retain(|found| {
        let file = found.primary.span.file;
        !is_model(file) || files.binary_search(&file).is_ok()
    });
    let mut others: Vec<FileId> = found.iter().map(|found| found.primary.span.file).collect();
    others.retain(|file| !is_model(*file));
    others.sort_unstable();
    others.dedup();
    let texts = files.iter().chain(&others).map(|file| Commented {
        file: *file,
        text: &analysis.sources.file(*file).text,
        comments: match analysis.lexed(*file) {
            Some(lexed) => lexed.comments.clone(),
            None => comments_of_settings(*file, &analysis.sources.file(*file).text),
        },
    });
    let texts: Vec<Commented<'_>> = texts.collect();
    LINTER.without_allowed(&texts, found, is_right)
}

/// Comments of a `project.yml` and the like: those that have a line of their own.
fn comments_of_settings(file: FileId, text: &str) -> Vec<Span> {
    let mut comments = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let indentation = line.len() - line.trim_start().len();
        let content = line.trim();
        if content.starts_with('#') {
            let at = (start + indentation) as u32;
            comments.push(Span::new(file, at, at + content.len() as u32));
        }
        start += line.len();
    }
    comments
}

/// Variables and entities whose names have a hyphen, which is easily taken for a minus, and which others refuse.
fn hyphens(analysis: &Analysis, found: &mut Vec<Diagnostic>) {
    for name in analysis.names() {
        let sort = match name.target {
            Target::Variable(_) => "variable",
            Target::Entity(_) => "entity",
            _ => continue,
        };
        let text = analysis.text_at(name.span);
        if !name.is_definition || !text.contains('-') {
            continue;
        }
        let message = format!("{sort} `{text}` has a hyphen in its name");
        let warning = Diagnostic::warning(&codes::HYPHEN_IN_NAME, name.span, message);
        let advice = format!("call it `{}`", text.replace('-', "_"));
        let note = "`a-b` is one name here, and a subtraction in most languages; other implementations refuse such names";
        found.push(
            warning
                .label("one name, not a subtraction")
                .note(note)
                .help(advice),
        );
    }
}

/// Values that constructors are given by position, which only this implementation takes.
fn positional(analysis: &Analysis, found: &mut Vec<Diagnostic>) {
    for (value, entity, member) in analysis.positional() {
        let (entity, member) = (analysis.entity_name(*entity), analysis.text_of(*member));
        let message = format!("`{entity}(…)` is given `{member}` by position");
        let warning = Diagnostic::warning(&codes::POSITIONAL_CONSTRUCTOR, *value, message);
        let warning = warning
            .label(format!("this is `{member}`"))
            .note("other implementations only take values by name");
        let help = format!("write `{member}=` before it");
        let start = Span::new(value.file, value.start, value.start);
        found.push(match begins_argument(analysis, *value) {
            true => warning.fix(help, start, format!("{member}=")),
            false => warning.help(help),
        });
    }
}

/// Whether nothing of the argument stands before a value, such as a parenthesis.
fn begins_argument(analysis: &Analysis, value: Span) -> bool {
    let Some(lexed) = analysis.lexed(value.file) else {
        return false;
    };
    let at = lexed.tokens.partition_point(|token| token.start < value.start);
    let kind = |back: usize| at.checked_sub(back).map(|at| lexed.tokens[at].kind);
    match kind(1) {
        Some(syntax::TokenKind::Comma) => true,
        Some(syntax::TokenKind::LeftParenthesis) => kind(2).is_some_and(syntax::TokenKind::is_name),
        _ => false,
    }
}

/// `not a == b`, which is `(not a) == b`.
fn comparisons(tree: &ast::File, found: &mut Vec<Diagnostic>) {
    for item in &tree.items {
        match item {
            ast::Item::Import(_) | ast::Item::Index(_) => {}
            ast::Item::Entity(entity) => {
                for attribute in &entity.attributes {
                    if let Some(ast::Default::Value(value)) = &attribute.default {
                        comparison(value, found);
                    }
                }
            }
            ast::Item::Relation(relation) => {
                relation
                    .annotations
                    .iter()
                    .for_each(|value| comparison(value, found));
            }
            ast::Item::Typedef(typedef) => {
                if let ast::Constraint::Expression(condition) = &typedef.constraint {
                    comparison(condition, found);
                }
            }
            ast::Item::Implementation(implementation) => block(&implementation.body, found),
            ast::Item::Implement(implement) => {
                implement
                    .condition
                    .iter()
                    .for_each(|value| comparison(value, found));
            }
            ast::Item::Statement(item) => statement(item, found),
        }
    }
}

fn block(tree: &ast::Block, found: &mut Vec<Diagnostic>) {
    tree.statements.iter().for_each(|tree| statement(tree, found));
}

fn statement(tree: &ast::Statement, found: &mut Vec<Diagnostic>) {
    match &tree.kind {
        ast::StatementKind::Assign(assignment) => comparison(&assignment.value, found),
        ast::StatementKind::For { iterable, body, .. } => {
            comparison(iterable, found);
            block(body, found);
        }
        ast::StatementKind::If { branches, otherwise } => {
            for (condition, body) in branches {
                comparison(condition, found);
                block(body, found);
            }
            otherwise.iter().for_each(|body| block(body, found));
        }
        ast::StatementKind::Expression(expression) => comparison(expression, found),
    }
}

fn comparison(tree: &ast::Expression, found: &mut Vec<Diagnostic>) {
    if let ast::ExpressionKind::Operators { first, rest } = &tree.kind
        && matches!(first.kind, ast::ExpressionKind::Not(_))
        && let Some((operator, sign, second)) = rest.first()
        && is_comparison(*operator)
    {
        let span = first.span.to(second.span);
        let message = "`not` belongs to the left side of this comparison alone";
        let warning = Diagnostic::warning(&codes::NOT_COMPARISON, span, message);
        let warning = warning
            .label("means `(not …)` compared with the right side")
            .because(*sign, "binds less tightly than `not`");
        let help = "parentheses say what is meant: `not (a == b)`, or `(not a) == b`";
        found.push(warning.help(help));
    }
    tree.for_each_child(&mut |child| comparison(child, found));
}

fn is_comparison(operator: ast::Operator) -> bool {
    use ast::Operator as O;
    matches!(
        operator,
        O::Equal | O::NotEqual | O::Less | O::LessOrEqual | O::Greater | O::GreaterOrEqual
    )
}

/// Names that nothing has: errors as soon as they are executed.
fn unknown(analysis: &Analysis, found: &mut Vec<Diagnostic>) {
    for (place, unknown) in analysis.unknown() {
        let (name, members, what) = match *unknown {
            Unknown::Variable(name, entity) => (name, entity, None),
            Unknown::Member(name, entity) => (name, Some(entity), Some(entity)),
        };
        let name = analysis.text_of(name);
        let members = members.into_iter().flat_map(|entity| {
            let members = analysis.model.entities[entity.index()].members.iter();
            members.map(|member| analysis.text_of(member.name))
        });
        let mut near: Vec<&str> = members.collect();
        let warning = match what {
            Some(entity) => {
                let entity = analysis.entity_name(entity);
                let message = format!("`{entity}` has no attribute or relation `{name}`");
                Diagnostic::warning(&codes::UNKNOWN_MEMBER, *place, message)
            }
            None => {
                let namespace = analysis.namespace_of(place.file);
                let variables =
                    namespace.map(|namespace| &analysis.model.namespaces[namespace.index()].body.variables);
                let variables = variables.into_iter().flatten();
                near.extend(variables.map(|variable| analysis.text_of(variable.name)));
                let message = format!("there is no variable `{name}` here");
                Diagnostic::warning(&codes::UNKNOWN_VARIABLE, *place, message)
            }
        };
        let warning = warning.label("an error as soon as this is executed");
        found.push(warning.help_if(did_you_mean(name, near)));
    }
}

/// Typedefs that are called like a variable of their namespace.
fn typedefs_and_variables(analysis: &Analysis, found: &mut Vec<Diagnostic>) {
    let mut variables: FxHashMap<(NamespaceId, &str), Span> = FxHashMap::default();
    for (at, namespace) in analysis.model.namespaces.iter().enumerate() {
        for variable in &namespace.body.variables {
            let name = analysis.text_of(variable.name);
            variables.insert((NamespaceId(at as u32), name), variable.span);
        }
    }
    for typedef in &analysis.model.typedefs {
        let Some(place) = typedef.span else { continue };
        let name = analysis.text_at(place);
        let Some(variable) = variables.get(&(typedef.namespace, name)) else {
            continue;
        };
        let message = format!("typedef `{name}` has the name of a variable");
        let warning = Diagnostic::warning(&codes::TYPEDEF_SHADOWS_VARIABLE, place, message);
        let warning = warning
            .label("a type")
            .because(*variable, "a variable of the same name");
        found.push(warning.help("give one of them another name"));
    }
}
