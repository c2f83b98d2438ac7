//! Semantic tokens: what the lexer sees, refined by what names mean.

use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::Value as Json;
use setpoint_diagnostics::Span;
use setpoint_mcl::analysis::Target;
use setpoint_mcl::hir::DefinitionKind;
use setpoint_mcl::syntax::TokenKind as K;

use super::{Answer, Context, Here, Place, document_path, model, written};
use crate::positions::{Encoding, Text};

/// Names of the types, in the order of their numbers.
pub(super) const TYPES: [&str; 12] = [
    "comment",
    "string",
    "number",
    "keyword",
    "operator",
    "variable",
    "parameter",
    "function",
    "class",
    "namespace",
    "type",
    "property",
];

/// Names of the modifiers, in the order of their bits.
pub(super) const MODIFIERS: [&str; 3] = ["declaration", "readonly", "defaultLibrary"];

pub(super) const DECLARATION: u32 = 1;
pub(super) const READONLY: u32 = 2;
pub(super) const LIBRARY: u32 = 4;

/// The number of a type.
pub(super) fn number(name: &str) -> u32 {
    TYPES.iter().position(|known| *known == name).unwrap_or_default() as u32
}

/// How many numbers tell a token.
const NUMBERS: usize = 5;

/// The tokens that clients were told last, by document, for those who take changes of them.
#[derive(Debug, Default)]
pub(crate) struct ToldTokens {
    answers: u64,
    documents: FxHashMap<String, (String, Vec<u32>)>,
}

/// Tokens, five numbers each: lines and units since the one before, length, type, modifiers.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tokens<'a> {
    /// What the answer is called when its changes are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    result_id: Option<&'a str>,
    data: &'a [u32],
}

/// What has changed since another answer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Changes<'a> {
    result_id: &'a str,
    edits: Vec<Change<'a>>,
}

/// Some of the numbers, and what now stands for them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Change<'a> {
    start: usize,
    delete_count: usize,
    data: &'a [u32],
}

/// The tokens of a whole document: where the client was told those of the answer `since` last, what has changed.
pub(super) fn whole(context: &mut Context<'_>, params: &Json, since: Option<&str>) -> Answer {
    let found = match Here::of(context, params, None) {
        Ok(place) => place.and_then(|place| tokens(&place, None)),
        Err(answer) => return answer,
    };
    let (Some(path), Some(data)) = (document_path(params), found) else {
        return Json::Null.into();
    };
    if !context.client.token_changes {
        return tell(&Tokens {
            result_id: None,
            data: &data,
        });
    }
    let told = &mut *context.told_tokens;
    told.answers += 1;
    let result_id = told.answers.to_string();
    let before = told.documents.remove(&path);
    let answer = match before.filter(|(id, _)| Some(&**id) == since) {
        Some((_, before)) => tell(&Changes {
            result_id: &result_id,
            edits: changes(&before, &data),
        }),
        None => tell(&Tokens {
            result_id: Some(&result_id),
            data: &data,
        }),
    };
    let documents = &context.snapshot.documents;
    told.documents.retain(|path, _| documents.contains_key(path));
    if documents.contains_key(&path) {
        told.documents.insert(path, (result_id, data));
    }
    answer
}

/// The tokens of a part of a document.
pub(super) fn of_part(place: &Here<'_>, part: Span) -> Option<Answer> {
    let data = tokens(place, Some(part))?;
    Some(tell(&Tokens {
        result_id: None,
        data: &data,
    }))
}

fn tell(tokens: &impl Serialize) -> Answer {
    written(tokens).map_or(Answer::Result(Json::Null), Answer::Written)
}

/// What lies between the tokens that are the same at both ends. Who types changes one place.
fn changes<'a>(before: &[u32], now: &'a [u32]) -> Vec<Change<'a>> {
    let is_same = |(a, b): &(&[u32], &[u32])| a == b;
    let (old, new) = (before.chunks(NUMBERS), now.chunks(NUMBERS));
    let front = NUMBERS * old.clone().zip(new.clone()).take_while(is_same).count();
    let most = before.len().min(now.len()) - front;
    let back = old.rev().zip(new.rev()).take(most / NUMBERS).take_while(is_same);
    let back = NUMBERS * back.count();
    let change = Change {
        start: front,
        delete_count: before.len() - back - front,
        data: &now[front..now.len() - back],
    };
    let is_change = change.delete_count > 0 || !change.data.is_empty();
    is_change.then_some(change).into_iter().collect()
}

/// The tokens of a document, or of a part of it.
fn tokens(place: &Here<'_>, part: Option<Span>) -> Option<Vec<u32>> {
    match place {
        Here::Mcl(place) => of_program(place, part),
        Here::Model(place) => model::tokens(place, part),
    }
}

fn of_program(place: &Place<'_>, part: Option<Span>) -> Option<Vec<u32>> {
    let analysis = place.analysis();
    let parsed = analysis.parsed(place.file)?;
    let mut meanings: FxHashMap<u32, (u32, (u32, u32))> = FxHashMap::default();
    let mut inside_strings: Vec<(Span, (u32, u32))> = Vec::new();
    let names = analysis.names_in(place.file);
    meanings.reserve(names.len());
    for name in names {
        let Some(meaning) = meaning(place, &name.target, name.is_definition) else {
            continue;
        };
        meanings.insert(name.span.start, (name.span.end, meaning));
        inside_strings.push((name.span, meaning));
    }
    let mut writer = Writer::new(&place.text, place.client.encoding);
    for (kind, range) in parsed.tokens.iter() {
        if part.is_some_and(|part| range.end < part.start || part.end < range.start) {
            continue;
        }
        if kind == K::String {
            let from = inside_strings.partition_point(|(span, _)| span.start < range.start);
            let inside = inside_strings[from..]
                .iter()
                .take_while(|(span, _)| span.end < range.end);
            let mut at = range.start;
            for (span, meaning) in inside.filter(|(span, _)| span.start > range.start) {
                if span.start < at {
                    continue;
                }
                writer.push(at, span.start, (number("string"), 0));
                writer.push(span.start, span.end, *meaning);
                at = span.end;
            }
            writer.push(at, range.end, (number("string"), 0));
            continue;
        }
        let known = meanings.get(&range.start).map(|(_, meaning)| *meaning);
        let plain = || Some((number(of_token(kind)?), 0));
        if let Some(meaning) = known.or_else(plain) {
            writer.push(range.start, range.end, meaning);
        }
    }
    Some(writer.data)
}

/// What a token is by itself; names only say so by what they mean.
fn of_token(kind: K) -> Option<&'static str> {
    Some(match kind {
        K::Comment => "comment",
        K::IntegerNumber | K::FloatNumber => "number",
        K::Bool | K::Str | K::Int | K::Float | K::Map | K::Struct | K::Variant => "type",
        kind if kind.is_word() => "keyword",
        K::Elvis
        | K::Except
        | K::Bars
        | K::Rocket
        | K::Equals
        | K::Plus
        | K::Minus
        | K::Star
        | K::Slash
        | K::Equal
        | K::NotEqual
        | K::Less
        | K::Greater
        | K::LessEqual
        | K::GreaterEqual
        | K::Arrow => "operator",
        K::Capitalized => "type",
        _ => return None,
    })
}

fn meaning(place: &Place<'_>, target: &Target, is_definition: bool) -> Option<(u32, u32)> {
    let declaration = if is_definition { DECLARATION } else { 0 };
    let (name, modifiers) = match target {
        Target::Variable(id) => match &place.analysis().hir.definition(*id).kind {
            DefinitionKind::Bind { .. } | DefinitionKind::LoopKey | DefinitionKind::LoopValue => {
                ("variable", READONLY)
            }
            DefinitionKind::ClassParameter { .. } | DefinitionKind::Parameter { .. } => {
                ("parameter", READONLY)
            }
            DefinitionKind::Library(_) => ("variable", READONLY | LIBRARY),
        },
        Target::Function(_) => ("function", 0),
        Target::LibraryFunction(_) => ("function", LIBRARY),
        Target::Class(_) => ("class", 0),
        Target::Alias(_) => ("namespace", 0),
        // The path is a string.
        Target::File(_) => return None,
        Target::Kind(_) => ("type", LIBRARY),
        Target::Parameter { .. } | Target::Meta(_) => ("property", LIBRARY),
    };
    Some((number(name), modifiers | declaration))
}

/// Tokens relative to the one before, a line at a time.
pub(super) struct Writer<'a> {
    text: &'a Text,
    encoding: Encoding,
    pub(super) data: Vec<u32>,
    /// Where the last token begins.
    line: u32,
    character: u32,
    offset: u32,
}

impl<'a> Writer<'a> {
    /// For the tokens of a text, which come in its order.
    pub(super) fn new(text: &'a Text, encoding: Encoding) -> Writer<'a> {
        Writer {
            text,
            encoding,
            data: Vec::new(),
            line: 0,
            character: 0,
            offset: 0,
        }
    }

    pub(super) fn push(&mut self, start: u32, end: u32, (token_type, modifiers): (u32, u32)) {
        let text = self.text;
        let whole = text.as_str().get(start as usize..end as usize);
        let mut at = start;
        for piece in whole.unwrap_or_default().split_inclusive('\n') {
            let content = piece.trim_end_matches(['\n', '\r']);
            let length = self.encoding.units(content);
            if length > 0 {
                // Most tokens are on the line of the one before, or on one of the next.
                let (mut line, mut from, mut before) = (self.line, self.offset, self.character);
                while let Some(next) = text.line_start(line + 1).filter(|next| *next <= at) {
                    (line, from, before) = (line + 1, next, 0);
                }
                let between = text.as_str().get(from as usize..at as usize);
                let character = before + self.encoding.units(between.unwrap_or_default());
                let delta_line = line - self.line;
                let delta_start = match delta_line {
                    0 => character - self.character,
                    _ => character,
                };
                self.data
                    .extend([delta_line, delta_start, length, token_type, modifiers]);
                (self.line, self.character, self.offset) = (line, character, at);
            }
            at += piece.len() as u32;
        }
    }
}
