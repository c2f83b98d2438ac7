//! The TextMate grammars, run over all cases of the languages: each token has a scope of its class.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use fancy_regex::Regex;
use serde_json::Value as Json;
use setpoint_cf::syntax::{TokenKind as M, lex};
use setpoint_diagnostics::{Diagnostics, FileId};
use setpoint_mcl::syntax::{TokenKind as K, parse};
use setpoint_testing::repository;

const GRAMMAR: &str = "editors/vscode/syntaxes/mcl.tmLanguage.json";
const MODEL_GRAMMAR: &str = "editors/vscode/syntaxes/cf.tmLanguage.json";

/// A rule as an editor runs it. What the grammar does not use is not here: no `while`, no `\G`, no back reference from an end to its begin.
enum Rule {
    Match {
        regex: Regex,
        scope: String,
        captures: Captures,
    },
    Region {
        begin: Regex,
        end: Regex,
        scope: String,
        at_begin: Captures,
        at_end: Captures,
        inside: Vec<usize>,
    },
}

type Captures = Vec<(usize, String)>;

#[derive(Default)]
struct Grammar {
    rules: Vec<Rule>,
    top: Vec<usize>,
}

impl Grammar {
    fn load(path: &str) -> Grammar {
        let text = std::fs::read_to_string(repository().join(path)).unwrap();
        let json: Json = serde_json::from_str(&text).unwrap();
        let mut grammar = Grammar::default();
        let mut known = HashMap::new();
        grammar.top = grammar.patterns(&json["patterns"], &json["repository"], &mut known);
        grammar
    }

    fn patterns(
        &mut self,
        patterns: &Json,
        repository: &Json,
        known: &mut HashMap<String, Vec<usize>>,
    ) -> Vec<usize> {
        let patterns = patterns.as_array().into_iter().flatten();
        patterns
            .flat_map(|pattern| self.pattern(pattern, repository, known))
            .collect()
    }

    fn pattern(
        &mut self,
        pattern: &Json,
        repository: &Json,
        known: &mut HashMap<String, Vec<usize>>,
    ) -> Vec<usize> {
        if let Some(name) = pattern["include"].as_str() {
            let name = name.trim_start_matches('#').to_owned();
            if let Some(known) = known.get(&name) {
                return known.clone();
            }
            assert!(!repository[&name].is_null(), "the grammar has no `{name}`");
            let rules = self.pattern(&repository[&name], repository, known);
            known.insert(name, rules.clone());
            return rules;
        }
        let regex = |name: &str| Regex::new(pattern[name].as_str().unwrap()).unwrap();
        let scope = pattern["name"].as_str().unwrap_or_default().to_owned();
        let rule = if pattern["match"].is_string() {
            Rule::Match {
                regex: regex("match"),
                scope,
                captures: captures(&pattern["captures"]),
            }
        } else if pattern["begin"].is_string() {
            Rule::Region {
                begin: regex("begin"),
                end: regex("end"),
                scope,
                at_begin: captures(&pattern["beginCaptures"]),
                at_end: captures(&pattern["endCaptures"]),
                inside: self.patterns(&pattern["patterns"], repository, known),
            }
        } else {
            return self.patterns(&pattern["patterns"], repository, known);
        };
        self.rules.push(rule);
        vec![self.rules.len() - 1]
    }

    /// The innermost scope of each byte.
    fn scopes(&self, text: &str) -> Vec<String> {
        let mut scopes = vec![String::new(); text.len()];
        let mut open: Vec<usize> = Vec::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            self.line(line, start, &mut open, &mut scopes);
            start += line.len();
        }
        scopes
    }

    fn line(&self, line: &str, start: usize, open: &mut Vec<usize>, scopes: &mut [String]) {
        let mut at = 0;
        while at <= line.len() {
            let around = open.last().map(|rule| &self.rules[*rule]);
            let (inside, scope) = match around {
                Some(Rule::Region { inside, scope, .. }) => (inside, scope.as_str()),
                _ => (&self.top, ""),
            };
            // The nearest one counts, of several the first; the end of a region before all.
            let mut best: Option<(usize, usize, Option<usize>)> = None;
            if let Some(Rule::Region { end, .. }) = around
                && let Some(found) = end.find_from_pos(line, at).unwrap()
            {
                best = Some((found.start(), found.end(), None));
            }
            for rule in inside {
                let (Rule::Match { regex, .. } | Rule::Region { begin: regex, .. }) = &self.rules[*rule];
                if let Some(found) = regex.find_from_pos(line, at).unwrap()
                    && best.is_none_or(|(best, ..)| found.start() < best)
                {
                    best = Some((found.start(), found.end(), Some(*rule)));
                }
            }
            let mut paint = |from: usize, to: usize, scope: &str| {
                scopes[start + from..start + to]
                    .iter_mut()
                    .for_each(|byte| scope.clone_into(byte));
            };
            let Some((from, to, rule)) = best else {
                paint(at, line.len(), scope);
                return;
            };
            paint(at, from, scope);
            let mut with_captures = |regex: &Regex, scope: &str, captures: &Captures| {
                paint(from, to, scope);
                let groups = regex.captures_from_pos(line, from).unwrap().unwrap();
                for (group, scope) in captures {
                    if let Some(group) = groups.get(*group) {
                        paint(group.start(), group.end(), scope);
                    }
                }
            };
            match rule.map(|rule| (rule, &self.rules[rule])) {
                None => {
                    if let Some(Rule::Region {
                        end, at_end, scope, ..
                    }) = around
                    {
                        with_captures(end, scope, at_end);
                    }
                    open.pop();
                }
                Some((
                    _,
                    Rule::Match {
                        regex,
                        scope,
                        captures,
                    },
                )) => with_captures(regex, scope, captures),
                Some((
                    rule,
                    Rule::Region {
                        begin,
                        scope,
                        at_begin,
                        ..
                    },
                )) => {
                    with_captures(begin, scope, at_begin);
                    open.push(rule);
                }
            }
            assert!(to > at || to > from, "the grammar goes on");
            at = to;
        }
    }
}

fn captures(json: &Json) -> Captures {
    let entries = json.as_object().into_iter().flatten();
    entries
        .map(|(group, capture)| {
            (
                group.parse().unwrap(),
                capture["name"].as_str().unwrap().to_owned(),
            )
        })
        .collect()
}

/// The beginnings of scopes that a token may have. `is_name` where a word stands where names do.
fn allowed(kind: K, is_name: bool) -> &'static [&'static str] {
    const NAMES: &[&str] = &["variable.", "entity.name."];
    match kind {
        K::Comment => &["comment."],
        K::String => &[
            "string.",
            "punctuation.definition.string",
            "punctuation.definition.interpolation",
            "constant.character",
            "variable.",
            "invalid.illegal.escape",
            "meta.interpolation",
        ],
        K::IntegerNumber => &["constant.numeric.integer"],
        K::FloatNumber => &["constant.numeric.float"],
        K::Identifier | K::Capitalized => NAMES,
        kind if kind.is_word() && is_name => &[
            "variable.",
            "entity.name.",
            "keyword.",
            "storage.",
            "constant.language",
        ],
        K::If | K::Else => &["keyword.control.conditional"],
        K::For | K::ForKv => &["keyword.control.loop"],
        K::Import | K::Include | K::As => &["keyword.control.import"],
        K::Panic | K::Collect => &["keyword.control"],
        K::And | K::Or | K::Not | K::In => &["keyword.operator.word"],
        K::Class | K::Func | K::Bool | K::Str | K::Int | K::Float | K::Map | K::Struct | K::Variant => {
            &["storage.type"]
        }
        K::True | K::False => &["constant.language.boolean"],
        K::LeftBrace | K::RightBrace | K::LeftParen | K::RightParen | K::LeftBracket | K::RightBracket => {
            &["punctuation.section"]
        }
        K::Comma | K::Colon | K::Semicolon => &["punctuation.separator"],
        K::Dot => &["punctuation.accessor"],
        K::Dollar => &["punctuation.definition.variable"],
        K::Except | K::Bars => &["keyword.operator.fallback"],
        K::Rocket | K::Arrow => &["keyword.operator.arrow"],
        K::Elvis => &["keyword.operator.conditional"],
        K::Equals => &["keyword.operator.assignment"],
        K::Plus | K::Minus | K::Star | K::Slash => &["keyword.operator.arithmetic"],
        K::Equal | K::NotEqual | K::Less | K::Greater | K::LessEqual | K::GreaterEqual => {
            &["keyword.operator.comparison"]
        }
        K::Error => &["invalid.illegal"],
        K::Whitespace | K::CarriageReturn | K::Newline | K::EndOfFile => &[""],
    }
}

fn programs(directory: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            programs(&path, ending, found);
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
        }
    }
}

#[test]
fn every_token_of_every_case_has_a_scope_of_its_class() {
    let grammar = Grammar::load(GRAMMAR);
    let mut paths = Vec::new();
    programs(&repository().join("tests/cases"), "mcl", &mut paths);
    programs(&repository().join("examples"), "mcl", &mut paths);
    paths.sort();
    assert!(paths.len() > 500, "{} programs", paths.len());
    let (mut tokens, mut wrong) = (0, Vec::new());
    for path in paths {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        let parsed = parse(FileId(0), &text, &mut Diagnostics::new());
        let scopes = grammar.scopes(&text);
        let all: Vec<_> = parsed
            .tokens
            .iter()
            .filter(|(kind, _)| !kind.is_trivia() || *kind == K::Comment)
            .collect();
        for (index, (kind, range)) in all.iter().enumerate() {
            let token = &text[range.start as usize..range.end as usize];
            // Only the lexer looks ahead to the end of the text for the quote that closes a string.
            if *kind == K::Error && token.starts_with('"') {
                break;
            }
            let near = |index: Option<usize>| index.and_then(|index| all.get(index)).map(|(kind, _)| *kind);
            let before = near(index.checked_sub(1));
            let is_name = matches!(before, Some(K::Dot | K::Dollar | K::Func | K::Class))
                || near(Some(index + 1)) == Some(K::Dot);
            // What another language writes is taken for a token of ours by the lexer, which reports it, and not by the grammar.
            let is_foreign = match kind {
                K::Not => token == "!",
                K::And => token == "&&",
                K::String => !token.starts_with('"'),
                _ => false,
            };
            let allowed = if is_foreign {
                &["invalid.illegal"][..]
            } else {
                allowed(*kind, is_name)
            };
            tokens += 1;
            let bytes = &scopes[range.start as usize..range.end as usize];
            let bad = bytes
                .iter()
                .find(|scope| !allowed.iter().any(|allowed| scope.starts_with(allowed)));
            if let Some(bad) = bad {
                wrong.push(format!("{}: {kind:?} `{token}` is `{bad}`", path.display()));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {tokens} tokens\n{}",
        wrong.len(),
        wrong[..wrong.len().min(40)].join("\n")
    );
    assert!(tokens > 10_000, "{tokens} tokens");
}

/// The beginnings of scopes that a token of a model may have.
fn allowed_in_models(kind: M) -> &'static [&'static str] {
    match kind {
        M::Regex => &[
            "keyword.other.matching",
            "",
            "punctuation.definition.string",
            "string.regexp",
        ],
        M::FormatString | M::RawString | M::String | M::MultilineString => &[
            "string.",
            "punctuation.definition.string",
            "punctuation.definition.interpolation",
            "constant.character.escape",
            "variable.",
            "meta.interpolation",
        ],
        M::Identifier => &["variable.", "entity.name.", "support.type"],
        M::Capitalized => &["entity.name.type"],
        M::Float => &["constant.numeric.float"],
        M::Integer => &["constant.numeric.integer"],
        M::Relation => &["keyword.operator.relation"],
        M::Error => &["invalid.illegal"],
        M::EndOfFile => &[""],
        M::If | M::Else | M::Elif | M::When => &["keyword.control.conditional"],
        M::For => &["keyword.control.loop", "keyword.other.for"],
        M::Import | M::As => &["keyword.control.import"],
        M::End => &["keyword.control.end"],
        M::And | M::Or | M::Not | M::In | M::Is | M::Defined => &["keyword.operator.word"],
        M::Entity | M::Typedef | M::Implementation | M::Implement | M::Index | M::Dict => &["storage.type"],
        M::Extends | M::Matching | M::Using | M::Parents => &["keyword.other"],
        M::True | M::False => &["constant.language.boolean"],
        M::Null | M::Undef => &["constant.language.null"],
        M::Separator => &["punctuation.separator.namespace"],
        M::NotEqual | M::Equal | M::GreaterOrEqual | M::LessOrEqual | M::Less | M::Greater => {
            &["keyword.operator.comparison"]
        }
        M::AddAssign | M::Assign => &["keyword.operator.assignment"],
        M::Plus | M::Minus | M::Slash | M::DoubleStar | M::Star | M::Percent => {
            &["keyword.operator.arithmetic"]
        }
        M::Question => &["keyword.operator.conditional"],
        M::Colon | M::Comma => &["punctuation.separator"],
        M::Dot => &["punctuation.accessor"],
        M::LeftBracket
        | M::RightBracket
        | M::LeftParenthesis
        | M::RightParenthesis
        | M::LeftBrace
        | M::RightBrace => &["punctuation.section"],
    }
}

#[test]
fn every_token_of_every_model_has_a_scope_of_its_class() {
    let grammar = Grammar::load(MODEL_GRAMMAR);
    let mut paths = Vec::new();
    for folder in [
        "tests/cases",
        "examples",
        "crates/cf-names/std",
        "crates/cf/tests",
    ] {
        programs(&repository().join(folder), "cf", &mut paths);
    }
    paths.sort();
    assert!(paths.len() > 70, "{} models", paths.len());
    let (mut tokens, mut wrong) = (0, Vec::new());
    for path in paths {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        let lexed = lex(FileId(0), &text);
        let scopes = grammar.scopes(&text);
        let comments = lexed.comments.iter();
        let comments = comments.map(|span| (span.start, span.end, &["comment."][..]));
        let others = lexed.tokens.iter().map(|token| {
            let written = &text[token.start as usize..token.end as usize];
            // What other languages write is taken for a token of ours by the lexer, which reports it, and not by the grammar.
            let is_foreign = matches!(written, "&&" | "&" | "||" | "|" | "!");
            let allowed = if is_foreign {
                &["invalid.illegal"]
            } else {
                allowed_in_models(token.kind)
            };
            (token.start, token.end, allowed)
        });
        let mut all: Vec<_> = comments.chain(others).collect();
        all.sort_unstable();
        // Only the lexer looks ahead over lines for the end of a text, and for that of a comment of other languages.
        let broken = lexed
            .tokens
            .iter()
            .find(|token| token.kind == M::Error && text[token.start as usize..].starts_with("\"\"\""));
        let end = broken
            .map_or(text.len(), |token| token.start as usize)
            .min(text.find("/*").unwrap_or(text.len()));
        for (start, to, allowed) in all {
            if start as usize >= end {
                break;
            }
            // Grammars see one line at a time.
            if text[start as usize..].starts_with("matching")
                && text[start as usize..to as usize].contains('\n')
            {
                continue;
            }
            tokens += 1;
            let bytes = &scopes[start as usize..to as usize];
            let bad = bytes.iter().find(|scope| {
                !allowed.iter().any(|allowed| match *allowed {
                    "" => scope.is_empty(),
                    allowed => scope.starts_with(allowed),
                })
            });
            if let Some(bad) = bad {
                let token = &text[start as usize..to as usize];
                wrong.push(format!(
                    "{}: `{token}` is `{bad}`, not {allowed:?}",
                    path.display()
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {tokens} tokens\n{}",
        wrong.len(),
        wrong[..wrong.len().min(40)].join("\n")
    );
    assert!(tokens > 5000, "{tokens} tokens");
}
