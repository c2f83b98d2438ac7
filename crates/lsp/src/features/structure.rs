//! What follows from syntax alone: what can be folded, and ever larger selections.

use lsp_types::{FoldingRange, FoldingRangeKind, Position, SelectionRange};
use serde_json::Value as Json;
use setpoint_diagnostics::Span;
use setpoint_mcl::analysis::ParsedFile;
use setpoint_mcl::syntax::{ExprId, StmtId, TokenKind};

use super::{Place, to_json};
use crate::language::Analysed;

/// Brackets over several lines, comments of several lines, and imports that stand together.
pub(super) fn folding(place: &Place<'_>) -> Option<Json> {
    let parsed = place.analysis().parsed(place.file)?;
    let line = |offset: u32| place.position(offset).line;
    let mut folds = Vec::new();
    let mut open = Vec::new();
    for (kind, range) in parsed.tokens.iter() {
        if kind.is_opening() {
            open.push(range.start);
        } else if matches!(
            kind,
            TokenKind::RightBrace | TokenKind::RightParen | TokenKind::RightBracket
        ) && let Some(start) = open.pop()
        {
            // The line of the closing bracket stays to be seen.
            let (first, last) = (line(start), line(range.start));
            if last > first + 1 {
                folds.push(fold(first, last - 1, None));
            }
        }
    }
    let comments: Vec<u32> = parsed
        .comments
        .iter()
        .filter(|comment| is_alone(parsed, comment.span))
        .map(|comment| line(comment.span.start))
        .collect();
    folds.extend(runs(&comments).map(|(first, last)| fold(first, last, Some(FoldingRangeKind::Comment))));
    let imports: Vec<u32> = parsed
        .ast
        .root
        .statements
        .iter()
        .map(|id| parsed.ast.stmt(*id))
        .filter(|statement| matches!(statement.kind, setpoint_mcl::syntax::StmtKind::Import(_)))
        .map(|statement| line(statement.span.start))
        .collect();
    folds.extend(runs(&imports).map(|(first, last)| fold(first, last, Some(FoldingRangeKind::Imports))));
    folds.sort_by_key(|fold| (fold.start_line, fold.end_line));
    folds.dedup_by_key(|fold| fold.start_line);
    to_json(folds)
}

/// Lines that can be folded.
pub(super) fn fold(start: u32, end: u32, kind: Option<FoldingRangeKind>) -> FoldingRange {
    FoldingRange {
        start_line: start,
        end_line: end,
        kind,
        ..FoldingRange::default()
    }
}

/// Whether nothing but white space stands before it on its line.
fn is_alone(parsed: &ParsedFile, comment: Span) -> bool {
    let before = parsed.text.get(..comment.start as usize).unwrap_or_default();
    before.rsplit('\n').next().unwrap_or_default().trim().is_empty()
}

/// Lines that follow each other, where there are several.
pub(super) fn runs(lines: &[u32]) -> impl Iterator<Item = (u32, u32)> {
    let chunks = lines.chunk_by(|a, b| *b == a + 1);
    chunks
        .filter(|chunk| chunk.len() > 1)
        .map(|chunk| (chunk[0], chunk[chunk.len() - 1]))
}

/// For each position the word, the expressions and the statements around it, from the inside out.
pub(super) fn selections(place: &Place<'_>, positions: &[Position]) -> Option<Json> {
    let parsed = place.analysis().parsed(place.file)?;
    let ranges: Vec<SelectionRange> = positions
        .iter()
        .map(|position| selection(place, parsed, *position))
        .collect();
    to_json(ranges)
}

fn selection(place: &Place<'_>, parsed: &ParsedFile, position: Position) -> SelectionRange {
    let offset = place.text.offset(position, place.client.encoding);
    let holds = |span: &Span| span.start <= offset && offset <= span.end;
    let ast = &parsed.ast;
    let mut around: Vec<Span> = vec![ast.root.span];
    let statements = (0..ast.stmt_count() as u32).map(|id| ast.stmt(StmtId(id)).span);
    let expressions = (0..ast.expr_count() as u32).map(|id| ast.expr(ExprId(id)).span);
    around.extend(statements.chain(expressions).filter(holds));
    let token = parsed.tokens.range(parsed.tokens.at(offset));
    let token = Span::new(place.file, token.start, token.end);
    if token.end > token.start {
        around.push(token);
    }
    nested(place, around, position)
}

/// Each of what is around a position within the next larger one.
pub(super) fn nested<A: Analysed>(
    place: &Place<'_, A>,
    mut around: Vec<Span>,
    position: Position,
) -> SelectionRange {
    around.sort_by_key(|span| (std::cmp::Reverse(span.end - span.start), span.start));
    let mut found: Option<SelectionRange> = None;
    let mut outer: Option<Span> = None;
    for span in around {
        let is_inside =
            outer.is_none_or(|outer| outer != span && outer.start <= span.start && span.end <= outer.end);
        if is_inside {
            outer = Some(span);
            found = Some(SelectionRange {
                range: place.range(span),
                parent: found.map(Box::new),
            });
        }
    }
    found.unwrap_or(SelectionRange {
        range: lsp_types::Range::new(position, position),
        parent: None,
    })
}
