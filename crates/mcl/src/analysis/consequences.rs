//! What would not be said if something else were right.
//!
//! A part of a text that does not parse is looked at by later stages as far as it was understood, which an editor needs. What they
//! find wrong *there* is no news; nor is it that a name is missing which stands in such a part, because that may define it.

use rustc_hash::FxHashSet;
use setpoint_diagnostics::{Diagnostic, Diagnostics, SourceMap, Span};

use crate::scope::ParsedFile;
use crate::stage::{LEX, PARSE};

/// Drops what follows from parts that do not parse.
pub(super) fn drop_consequences<'a>(
    diagnostics: &mut Diagnostics,
    files: impl IntoIterator<Item = &'a ParsedFile>,
    sources: &SourceMap,
) {
    let damaged: Vec<&ParsedFile> = files
        .into_iter()
        .filter(|parsed| !parsed.damaged.is_empty())
        .collect();
    if damaged.is_empty() {
        return;
    }
    let files: Vec<Damage<'_>> = damaged.into_iter().map(Damage::of).collect();
    let is_news = |found: &Diagnostic| {
        [LEX, PARSE].contains(&found.code.stage) || files.iter().all(|file| !file.explains(found, sources))
    };
    let kept: Vec<Diagnostic> = std::mem::take(diagnostics).into_iter().filter(is_news).collect();
    diagnostics.extend(kept);
}

struct Damage<'a> {
    /// The damaged parts, in order; none touches another.
    parts: Vec<Span>,
    /// The words in the damaged parts.
    words: FxHashSet<&'a str>,
}

impl Damage<'_> {
    fn of(parsed: &ParsedFile) -> Damage<'_> {
        let mut sorted = parsed.damaged.clone();
        sorted.sort_unstable();
        let mut parts: Vec<Span> = Vec::with_capacity(sorted.len());
        for part in sorted {
            match parts.last_mut() {
                Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
                _ => parts.push(part),
            }
        }
        let text = |span: &Span| parsed.text.get(span.start as usize..span.end as usize);
        let words = parts.iter().filter_map(text).flat_map(words).collect();
        Damage { parts, words }
    }

    fn explains(&self, found: &Diagnostic, sources: &SourceMap) -> bool {
        let place = found.primary.span;
        if self.parts.first().is_none_or(|part| part.file != place.file) {
            return false;
        }
        let next = self.parts.partition_point(|part| part.start <= place.start);
        if next > 0 && place.start < self.parts[next - 1].end {
            return true;
        }
        let names_something = matches!(found.code.code, "E0101" | "E0102" | "E0103");
        let shown = &sources.file(place.file).text;
        let shown = shown.get(place.start as usize..place.end as usize).unwrap_or("");
        let name = shown.split('(').next().unwrap_or("");
        names_something && words(name).any(|word| self.words.contains(word))
    }
}

/// The names in a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase()) && *word != "include")
}
