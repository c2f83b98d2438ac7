//! The linter: what means something, but probably not what was meant.
//!
//! ```text
//! Analysis ─┬ what compiling warns of ─┐
//!           └ rules, one file a topic ─┴─▶ without what a comment allows ─▶ warnings, in the order of the texts
//! ```
//!
//! Each rule has a name, by which a comment silences it at its line: `# setpoint: allow(unused-variable)`. A rule raises one code. It
//! would rather miss something than be wrong about a program that is right: what others may use counts as used.

mod codes;
mod conditions;
mod kinds;
mod resources;
mod strings;
mod unused;

use setpoint_diagnostics::{Commented, Diagnostic, Diagnostics, FileId, Severity, Span};
use setpoint_graph::Library;

use crate::analysis::Analysis;
use crate::language;
use crate::syntax::{self, Ast, Block, StmtId, StmtKind};

pub(crate) use codes::CODES;
pub use setpoint_diagnostics::{Rule, apply, fixes};

setpoint_diagnostics::rules! {
    "old-default" syntax::OLD_DEFAULT;
    "unused-variable" codes::UNUSED_VARIABLE;
    "unused-import" codes::UNUSED_IMPORT;
    "unused-class" codes::UNUSED_CLASS;
    "unused-function" codes::UNUSED_FUNCTION;
    "unused-parameter" codes::UNUSED_PARAMETER;
    "shadowed-variable" codes::SHADOWED_VARIABLE;
    "dollar-without-braces" codes::DOLLAR_WITHOUT_BRACES;
    "constant-condition" codes::CONSTANT_CONDITION;
    "same-condition" codes::SAME_CONDITION;
    "same-branches" codes::SAME_BRANCHES;
    "comparison-with-bool" codes::COMPARISON_WITH_BOOL;
    "empty-body" codes::EMPTY_BODY;
    "notification-without-effect" codes::NOTIFICATION_WITHOUT_EFFECT;
    "duplicate-edge" codes::DUPLICATE_EDGE;
    "same-name-in-loop" codes::SAME_NAME_IN_LOOP;
    "class-without-parent" codes::CLASS_WITHOUT_PARENT;
    "lone-percent-sign" codes::LONE_PERCENT_SIGN;
    "doubtful-resource" language::DOUBTFUL_RESOURCE;
    "readable-secret" language::READABLE_SECRET;
}

/// What the linter finds in the files that `is_own` accepts, and what compiling warned of in them, in the order of the texts. What a
/// comment allows is left out; a comment that allows nothing is warned of.
#[must_use]
pub fn lint(analysis: &Analysis, library: &Library, is_own: &dyn Fn(FileId) -> bool) -> Diagnostics {
    let mut files: Vec<FileId> = analysis
        .files()
        .map(|(id, _)| id)
        .filter(|id| is_own(*id))
        .collect();
    files.sort_unstable();
    files.dedup();
    let mut linter = Linter {
        analysis,
        library,
        found: Vec::new(),
    };
    let warnings = analysis.diagnostics.iter();
    let warnings = warnings.filter(|found| found.severity == Severity::Warning);
    linter.found.extend(warnings.cloned());
    // A program that is wrong is not understood well enough to say what is superfluous in it.
    let is_right = !analysis.diagnostics.has_errors();
    for file in &files {
        let Some(parsed) = analysis.parsed(*file) else {
            continue;
        };
        // Of what does not parse only a part is known.
        if !parsed.damaged.is_empty() {
            continue;
        }
        linter.conditions(&parsed.ast);
        linter.edges_and_loops(&parsed.ast);
        linter.classes(&parsed.ast);
        if is_right {
            linter.strings(&parsed.ast);
        }
    }
    if is_right {
        let places = unused::places(analysis);
        linter.unused(&places);
        linter.shadowing(&places);
        linter.doubts();
    }
    let mut found = linter.found;
    found.retain(|found| files.binary_search(&found.primary.span.file).is_ok());
    let texts: Vec<Commented<'_>> = files
        .iter()
        .filter_map(|file| commented(analysis, *file))
        .collect();
    LINTER.without_allowed(&texts, found, is_right)
}

/// What belongs to the rules: comments that allow what they find.
static LINTER: setpoint_diagnostics::Linter = setpoint_diagnostics::Linter {
    rules: RULES,
    unknown: &codes::UNKNOWN_RULE,
    unused: &codes::UNUSED_ALLOW,
};

/// A text with its comments.
fn commented(analysis: &Analysis, file: FileId) -> Option<Commented<'_>> {
    let parsed = analysis.parsed(file)?;
    Some(Commented {
        file,
        text: &parsed.text,
        comments: parsed.comments.iter().map(|comment| comment.span).collect(),
    })
}

struct Linter<'a> {
    analysis: &'a Analysis,
    library: &'a Library,
    found: Vec<Diagnostic>,
}

impl Linter<'_> {
    fn warn(&mut self, diagnostic: Diagnostic) {
        self.found.push(diagnostic);
    }
}

/// Whether a file is there for others: it describes nothing by itself.
fn is_for_others(ast: &Ast) -> bool {
    ast.root.statements.iter().all(|id| {
        matches!(
            ast.stmt(*id).kind,
            StmtKind::Bind(_) | StmtKind::Func(_) | StmtKind::Class(_) | StmtKind::Import(_)
        )
    })
}

/// The name of a variable with its dollar.
fn with_dollar(name: Span) -> Span {
    Span {
        start: name.start.saturating_sub(1),
        ..name
    }
}

/// Every block of a file with the statement that it belongs to; none for the file itself.
fn blocks(ast: &Ast) -> Vec<(Option<StmtId>, &Block)> {
    let mut found = vec![(None, &ast.root)];
    let mut at = 0;
    while at < found.len() {
        let (_, block) = found[at];
        at += 1;
        for id in &block.statements {
            let inner = ast.stmt(*id).kind.blocks();
            found.extend(inner.map(|block| (Some(*id), block)));
        }
    }
    found
}

/// The text at a place.
fn text_at(analysis: &Analysis, span: Span) -> &str {
    let text = &analysis.sources.file(span.file).text;
    text.get(span.start as usize..span.end as usize)
        .unwrap_or_default()
}
