//! Rules of linters, and comments that silence them: `# setpoint: allow(NAME, NAME)` behind the line, or on a line of its own above it.
//! What is warned of without a rule is named by its code.

use std::collections::{BTreeSet, HashMap};

use crate::{CodeInfo, Diagnostic, Diagnostics, FileId, Span, did_you_mean};

/// A rule of a linter.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// As comments call it.
    pub name: &'static str,
    /// What it raises.
    pub code: &'static CodeInfo,
}

/// Defines `RULES`, the rules of a linter: each its name and its code.
#[macro_export]
macro_rules! rules {
    ($($name:literal $code:path;)*) => {
        /// All rules, by the order of their codes.
        pub static RULES: &[$crate::Rule] = &[$($crate::Rule { name: $name, code: &$code }),*];
    };
}

/// The linter of a language.
#[derive(Debug, Clone, Copy)]
pub struct Linter {
    /// Its rules.
    pub rules: &'static [Rule],
    /// What a comment is told that allows what there is no rule for.
    pub unknown: &'static CodeInfo,
    /// What a comment is told that allows what is not there.
    pub unused: &'static CodeInfo,
}

/// A text with its comments, each from its `#` to the end of the line.
#[derive(Debug, Clone)]
pub struct Commented<'t> {
    /// Which text.
    pub file: FileId,
    /// All of it.
    pub text: &'t str,
    /// Its comments.
    pub comments: Vec<Span>,
}

/// A name in such a comment.
struct Allowance {
    rule: String,
    /// The name.
    span: Span,
    /// The whole comment.
    comment: Span,
    /// Where the line begins and ends that it is about.
    line: (u32, u32),
    is_used: bool,
}

impl Linter {
    /// The name of the rule that a code belongs to, if it does to one.
    #[must_use]
    pub fn rule_of(&self, code: &str) -> Option<&'static str> {
        let rule = self.rules.iter().find(|rule| rule.code.code == code);
        rule.map(|rule| rule.name)
    }

    /// Leaves out what comments allow, and adds what is wrong with them; by their places, each once. That a comment allows nothing is only
    /// known of what `is_right`.
    #[must_use]
    pub fn without_allowed(
        &self,
        texts: &[Commented<'_>],
        found: Vec<Diagnostic>,
        is_right: bool,
    ) -> Diagnostics {
        let mut allowances: Vec<(Allowance, &Commented<'_>)> = texts
            .iter()
            .flat_map(|text| {
                allowances(text)
                    .into_iter()
                    .map(move |allowance| (allowance, text))
            })
            .collect();
        // Lines do not overlap, so those about one are neighbours.
        let start = |allowance: &Allowance| (allowance.span.file, allowance.line.0);
        allowances.sort_by_key(|(allowance, _)| start(allowance));
        let mut kept: Vec<Diagnostic> = Vec::with_capacity(found.len());
        for diagnostic in found {
            let code = diagnostic.code.code;
            let rule = self.rule_of(code);
            let allowed_at = |place: Span| {
                let behind = allowances
                    .partition_point(|(allowance, _)| start(allowance) <= (place.file, place.start));
                let line = allowances[..behind].last().map(|(allowance, _)| start(allowance));
                let allows = |allowance: &Allowance| {
                    let name = &*allowance.rule;
                    (name == code || Some(name) == rule)
                        && allowance.span.file == place.file
                        && place.start <= allowance.line.1
                };
                (0..behind)
                    .rev()
                    .take_while(|at| Some(start(&allowances[*at].0)) == line)
                    .find(|at| allows(&allowances[*at].0))
            };
            // What is shown at a line of a statement can be allowed for the whole of it.
            let shown = allowed_at(diagnostic.primary.span);
            match shown.or_else(|| allowed_at(diagnostic.rule_place())) {
                Some(at) => allowances[at].0.is_used = true,
                None => kept.push(diagnostic),
            }
        }
        let mut names_in: HashMap<Span, u32> = HashMap::new();
        for (allowance, _) in &allowances {
            *names_in.entry(allowance.comment).or_default() += 1;
        }
        for (allowance, text) in &allowances {
            let name = &allowance.rule;
            if !self.is_known(name) {
                let message = format!("there is no rule `{name}`");
                let names: BTreeSet<&str> = self.rules.iter().map(|rule| rule.name).collect();
                let help = did_you_mean(name, names);
                kept.push(Diagnostic::warning(self.unknown, allowance.span, message).help_if(help));
            } else if is_right && !allowance.is_used {
                let message = format!("nothing at its line breaks the rule `{name}`");
                let warning = Diagnostic::warning(self.unused, allowance.span, message);
                let is_alone = names_in.get(&allowance.comment) == Some(&1);
                let help = "take it away";
                kept.push(match is_alone {
                    true => warning.fix(help, removal(text.text, allowance.comment), ""),
                    false => warning.help(help),
                });
            }
        }
        kept.sort_by_key(|found| (found.primary.span, found.code.code));
        kept.dedup_by(|b, a| a.code.code == b.code.code && a.primary.span == b.primary.span);
        let mut diagnostics = Diagnostics::new();
        diagnostics.extend(kept);
        diagnostics
    }

    /// Whether something can be allowed: a rule by its name, or whatever else is warned of by its code.
    fn is_known(&self, name: &str) -> bool {
        let is_code = name.len() == 5
            && name.starts_with(['E', 'W'])
            && name[1..].bytes().all(|byte| byte.is_ascii_digit());
        is_code || self.rules.iter().any(|rule| rule.name == name)
    }
}

fn allowances(of: &Commented<'_>) -> Vec<Allowance> {
    let text = of.text;
    let mut found = Vec::new();
    for span in of.comments.iter().copied() {
        let written = text
            .get(span.start as usize..span.end as usize)
            .unwrap_or_default();
        let Some((before, names)) = written
            .strip_prefix('#')
            .and_then(|rest| rest.trim_start().strip_prefix("setpoint:"))
            .and_then(|rest| rest.trim_start().strip_prefix("allow"))
            .and_then(|rest| rest.trim_start().strip_prefix('('))
            .and_then(|rest| rest.rsplit_once(')'))
            .map(|(names, _)| (written.find('(').map_or(0, |at| at + 1), names))
        else {
            continue;
        };
        let line = line_of(text, span.start);
        let is_alone = text[line.0 as usize..span.start as usize].trim().is_empty();
        let line = match is_alone {
            true => next_line(text, line.1),
            false => line,
        };
        let mut at = span.start + before as u32;
        for name in names.split(',') {
            let start = at + (name.len() - name.trim_start().len()) as u32;
            let rule = name.trim();
            at += name.len() as u32 + 1;
            found.push(Allowance {
                rule: rule.to_owned(),
                span: Span::new(of.file, start, start + rule.len() as u32),
                comment: span,
                line,
                is_used: false,
            });
        }
    }
    found
}

/// The line that holds an offset, without its line feed.
fn line_of(text: &str, offset: u32) -> (u32, u32) {
    let offset = offset as usize;
    let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
    let end = text[offset..].find('\n').map_or(text.len(), |at| offset + at);
    (start as u32, end as u32)
}

/// So many lines may lie between a comment and the line that it is about.
const MOST_LINES: usize = 100;

/// The next line that is neither empty nor a comment.
fn next_line(text: &str, end: u32) -> (u32, u32) {
    let mut line = (end, end);
    for _ in 0..MOST_LINES {
        if line.1 as usize >= text.len() {
            break;
        }
        line = line_of(text, line.1 + 1);
        let written = text[line.0 as usize..line.1 as usize].trim();
        if !written.is_empty() && !written.starts_with('#') {
            break;
        }
    }
    line
}

/// What goes with a comment: the white space before it, or its whole line if nothing else is there.
fn removal(text: &str, comment: Span) -> Span {
    let (start, end) = line_of(text, comment.start);
    let before = &text[start as usize..comment.start as usize];
    if before.trim().is_empty() {
        let end = (end as usize + 1).min(text.len()) as u32;
        return Span::new(comment.file, start, end);
    }
    let start = start + before.trim_end().len() as u32;
    Span::new(comment.file, start, comment.end)
}
