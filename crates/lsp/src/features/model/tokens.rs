//! Semantic tokens: what the lexer sees, refined by what names mean.

use setpoint_cf::analysis::Target;
use setpoint_cf::syntax::TokenKind as K;
use setpoint_diagnostics::Span;

use super::Place;
use crate::features::tokens::{DECLARATION, LIBRARY, READONLY, Writer, number};

/// The tokens of a document, or of a part of it.
pub(in crate::features) fn tokens(place: &Place<'_>, part: Option<Span>) -> Option<Vec<u32>> {
    let analysis = place.analysis;
    let lexed = analysis.lexed(place.file)?;
    let names = analysis.names_in(place.file);
    let mut pieces: Vec<(u32, u32, (u32, u32))> = Vec::new();
    for comment in &lexed.comments {
        pieces.push((comment.start, comment.end, (number("comment"), 0)));
    }
    for token in &lexed.tokens {
        if token.kind.is_string() {
            // Names in texts are names.
            let from = names.partition_point(|name| name.span.start < token.start);
            let inside = names[from..].iter().take_while(|name| name.span.end < token.end);
            let mut at = token.start;
            for name in inside.filter(|name| name.span.start > token.start) {
                if name.span.start < at {
                    continue;
                }
                pieces.push((at, name.span.start, (number("string"), 0)));
                pieces.push((
                    name.span.start,
                    name.span.end,
                    meaning(place, &name.target, name.is_definition),
                ));
                at = name.span.end;
            }
            pieces.push((at, token.end, (number("string"), 0)));
            continue;
        }
        let at = names.partition_point(|name| name.span.start < token.start);
        let name = names
            .get(at)
            .filter(|name| name.span.start == token.start && name.span.end == token.end);
        // The parts of a namespace are one name with what is between them.
        let around = names[..at]
            .last()
            .filter(|name| token.end <= name.span.end)
            .or(names.get(at));
        let around = around.filter(|name| name.span.start <= token.start && token.end <= name.span.end);
        let known = name.or(around.filter(|_| token.kind.is_name()));
        let known = known.map(|name| meaning(place, &name.target, name.is_definition));
        let plain = || Some((number(of_token(token.kind)?), 0));
        if let Some(meaning) = known.or_else(plain) {
            pieces.push((token.start, token.end, meaning));
        }
    }
    pieces.sort_unstable();
    let mut writer = Writer::new(&place.text, place.client.encoding);
    for (start, end, meaning) in pieces {
        if !part.is_some_and(|part| end < part.start || part.end < start) {
            writer.push(start, end, meaning);
        }
    }
    Some(writer.data)
}

/// What a token is by itself; names only say so by what they mean.
fn of_token(kind: K) -> Option<&'static str> {
    Some(match kind {
        K::Integer | K::Float => "number",
        K::Regex => "string",
        K::Dict => "type",
        kind if kind.is_keyword() => "keyword",
        K::Capitalized => "class",
        K::Relation
        | K::NotEqual
        | K::Equal
        | K::GreaterOrEqual
        | K::LessOrEqual
        | K::Less
        | K::Greater
        | K::AddAssign
        | K::Plus
        | K::Minus
        | K::Slash
        | K::DoubleStar
        | K::Assign
        | K::Question
        | K::Star
        | K::Percent => "operator",
        _ => return None,
    })
}

fn meaning(place: &Place<'_>, target: &Target, is_definition: bool) -> (u32, u32) {
    let declaration = if is_definition { DECLARATION } else { 0 };
    let built_in = match place.analysis.definition(target) {
        Some(span) if !place.analysis.sources.file(span.file).name.starts_with('<') => 0,
        _ => LIBRARY,
    };
    let (name, modifiers) = match target {
        Target::Primitive(_) | Target::Typedef(_) => ("type", built_in),
        Target::Entity(_) => ("class", built_in),
        Target::Implementation(_) => ("function", built_in),
        Target::Function(..) => ("function", LIBRARY),
        Target::Namespace(_) | Target::Alias(..) => ("namespace", 0),
        Target::Variable(_) => ("variable", READONLY),
        Target::Member(..) => ("property", built_in),
        Target::Instance(_) | Target::Value(_) => ("variable", READONLY | LIBRARY),
    };
    (number(name), modifiers | declaration)
}
