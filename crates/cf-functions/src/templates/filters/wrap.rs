//! Lines of limited width, as Python's `textwrap` makes them.

use minijinja::Error;

use super::super::conversion::printed;
use super::super::parameters::Parameters;
use super::Arguments;

pub(super) fn wordwrap(arguments: Arguments) -> Result<String, Error> {
    let names = ["width", "break_long_words", "wrapstring", "break_on_hyphens"];
    let (value, parameters) = Parameters::of_filter(arguments, names)?;
    let is_set = |at: usize| parameters.value(at).is_none_or(minijinja::Value::is_true);
    let wrap = Wrap {
        width: parameters.count(0, 79)?.max(1),
        breaks_words: is_set(1),
        breaks_at_hyphens: is_set(3),
    };
    let between = parameters.text(2, "\n")?;
    let text = printed(&value)?;
    let lines = text.lines().map(|line| wrap.lines(line).join(&between));
    Ok(lines.collect::<Vec<_>>().join(&between))
}

struct Wrap {
    width: usize,
    breaks_words: bool,
    breaks_at_hyphens: bool,
}

impl Wrap {
    fn lines(&self, text: &str) -> Vec<String> {
        let mut chunks: Vec<Vec<char>> = self.chunks(text);
        chunks.reverse();
        let mut lines: Vec<String> = Vec::new();
        while let Some(chunk) = chunks.last() {
            if is_blank(chunk) && !lines.is_empty() {
                chunks.pop();
                continue;
            }
            let mut line: Vec<Vec<char>> = Vec::new();
            let mut length = 0;
            while let Some(chunk) = chunks.pop_if(|chunk| length + chunk.len() <= self.width) {
                length += chunk.len();
                line.push(chunk);
            }
            if let Some(long) = chunks.pop_if(|chunk| chunk.len() > self.width) {
                let (now, later) =
                    self.broken(long, self.width.saturating_sub(length).max(1), line.is_empty());
                line.extend(now);
                chunks.extend(later);
            }
            if line.last().is_some_and(|chunk| is_blank(chunk)) {
                line.pop();
            }
            if !line.is_empty() {
                lines.push(line.into_iter().flatten().collect());
            }
        }
        lines
    }

    /// Splits a word that is longer than a line: the part for this line, and the rest.
    fn broken(
        &self,
        mut word: Vec<char>,
        space: usize,
        begins_line: bool,
    ) -> (Option<Vec<char>>, Option<Vec<char>>) {
        if !self.breaks_words {
            return match begins_line {
                true => (Some(word), None),
                false => (None, Some(word)),
            };
        }
        let mut end = space.min(word.len());
        if self.breaks_at_hyphens && word.len() > space {
            let hyphen = word[..space].iter().rposition(|c| *c == '-');
            end = hyphen
                .filter(|at| word[..*at].iter().any(|c| *c != '-'))
                .map_or(end, |at| at + 1);
        }
        let rest = word.split_off(end);
        (Some(word), Some(rest).filter(|rest| !rest.is_empty()))
    }

    /// Runs of blanks, and words between them, which also end behind a hyphen between letters.
    fn chunks(&self, text: &str) -> Vec<Vec<char>> {
        let mut chunks: Vec<Vec<char>> = Vec::new();
        let chars: Vec<char> = text.chars().collect();
        for (at, c) in chars.iter().enumerate() {
            let begins = at == 0
                || is_space(*c) != is_space(chars[at - 1])
                || self.breaks_at_hyphens && ends_behind_hyphen(&chars, at);
            match chunks.last_mut() {
                Some(last) if !begins => last.push(*c),
                _ => chunks.push(vec![*c]),
            }
        }
        chunks
    }
}

/// Whether a word may be broken before this place. That is so after a hyphen, if two characters of a word stand on each side: on the left the
/// nearer one is a letter, on the right any but the first.
fn ends_behind_hyphen(chars: &[char], at: usize) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let is_letter = |c: char| is_word(c) && !c.is_numeric();
    if at < 3 || chars[at - 1] != '-' || !is_letter(chars[at - 2]) || !is_word(chars[at - 3]) {
        return false;
    }
    let mut after = chars[at..].iter().take_while(|c| is_word(**c));
    after.next().is_some() && after.any(|c| is_letter(*c))
}

fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' | ' ')
}

fn is_blank(chunk: &[char]) -> bool {
    chunk.iter().all(|c| is_space(*c))
}
