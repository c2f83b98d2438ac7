//! Comments that silence rules: `# setpoint: allow(NAME, NAME)` behind the line, or on a line of its own above it. What is warned of
//! without a rule of the linter is named by its code.

use std::collections::HashMap;

use setpoint_diagnostics::{Diagnostic, FileId, Span, did_you_mean};

use super::{RULES, codes, names};
use crate::analysis::Analysis;

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

/// Leaves out what comments allow, and adds what is wrong with them. That one allows nothing is only known of programs that are right.
pub(super) fn filter(
    analysis: &Analysis,
    files: &[FileId],
    found: Vec<Diagnostic>,
    is_right: bool,
) -> Vec<Diagnostic> {
    let mut allowances: Vec<Allowance> = files
        .iter()
        .flat_map(|file| allowances(analysis, *file))
        .collect();
    // Lines do not overlap, so those about one are neighbours.
    let start = |allowance: &Allowance| (allowance.span.file, allowance.line.0);
    allowances.sort_by_key(start);
    let mut kept: Vec<Diagnostic> = Vec::with_capacity(found.len());
    for diagnostic in found {
        let rule = RULES.iter().find(|rule| rule.code.code == diagnostic.code.code);
        let place = diagnostic.primary.span;
        let behind = allowances.partition_point(|allowance| start(allowance) <= (place.file, place.start));
        let line = allowances[..behind].last().map(start);
        let allows = |allowance: &Allowance| {
            let name = &*allowance.rule;
            (name == diagnostic.code.code || Some(name) == rule.map(|rule| rule.name))
                && allowance.span.file == place.file
                && place.start <= allowance.line.1
        };
        let about = (0..behind)
            .rev()
            .take_while(|at| Some(start(&allowances[*at])) == line);
        match about.into_iter().find(|at| allows(&allowances[*at])) {
            Some(at) => allowances[at].is_used = true,
            None => kept.push(diagnostic),
        }
    }
    let mut names_in: HashMap<Span, u32> = HashMap::new();
    for allowance in &allowances {
        *names_in.entry(allowance.comment).or_default() += 1;
    }
    for allowance in &allowances {
        let name = &allowance.rule;
        if !is_known(name) {
            let message = format!("there is no rule `{name}`");
            let help = did_you_mean(name, names());
            kept.push(Diagnostic::warning(&codes::UNKNOWN_RULE, allowance.span, message).help_if(help));
        } else if is_right && !allowance.is_used {
            let message = format!("nothing at its line breaks the rule `{name}`");
            let warning = Diagnostic::warning(&codes::UNUSED_ALLOW, allowance.span, message);
            let is_alone = names_in.get(&allowance.comment) == Some(&1);
            let help = "take it away";
            kept.push(match is_alone {
                true => warning.fix(help, removal(analysis, allowance.comment), ""),
                false => warning.help(help),
            });
        }
    }
    kept
}

/// Whether something can be allowed: a rule by its name, or whatever else is warned of by its code.
fn is_known(name: &str) -> bool {
    let is_code = name.len() == 5
        && name.starts_with(['E', 'W'])
        && name[1..].bytes().all(|byte| byte.is_ascii_digit());
    is_code || RULES.iter().any(|rule| rule.name == name)
}

fn allowances(analysis: &Analysis, file: FileId) -> Vec<Allowance> {
    let Some(parsed) = analysis.parsed(file) else {
        return Vec::new();
    };
    let text = &*parsed.text;
    let mut found = Vec::new();
    for comment in &parsed.comments {
        let span = comment.span;
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
                span: Span::new(file, start, start + rule.len() as u32),
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
fn removal(analysis: &Analysis, comment: Span) -> Span {
    let text = &*analysis.sources.file(comment.file).text;
    let (start, end) = line_of(text, comment.start);
    let before = &text[start as usize..comment.start as usize];
    if before.trim().is_empty() {
        let end = (end as usize + 1).min(text.len()) as u32;
        return Span::new(comment.file, start, end);
    }
    let start = start + before.trim_end().len() as u32;
    Span::new(comment.file, start, comment.end)
}
