//! The place of new lines in a text file, as parameters.

use setpoint_engine::{IfSet, ParameterGroup};
use setpoint_graph::Invalid;

use crate::pattern::Pattern;
use crate::text_lines::{bare, lines};

/// The parameters, the same for all kinds that add lines.
#[derive(Debug, Clone, ParameterGroup)]
pub(crate) struct TextPlace {
    /// Adds what is missing after the last line that is exactly this one. Unset: at the end.
    pub(crate) after: String,
    /// Adds what is missing before the first line that is exactly this one.
    pub(crate) before: String,
    /// Adds what is missing after the last line that matches.
    pub(crate) after_match: IfSet<Pattern>,
    /// Adds what is missing before the first line that matches.
    pub(crate) before_match: IfSet<Pattern>,
}

impl TextPlace {
    /// Reports parameters that are invalid.
    pub(crate) fn refused(&self, invalid: &mut Vec<Invalid>) {
        for (parameter, text) in [("after", &self.after), ("before", &self.before)] {
            if text.contains(['\n', '\r']) {
                invalid.push(Invalid::parameter(parameter, "must be one line"));
            }
        }
        let set = [
            ("after", !self.after.is_empty()),
            ("before", !self.before.is_empty()),
            ("after_match", self.after_match.is_some()),
            ("before_match", self.before_match.is_some()),
        ];
        let mut set = set.into_iter().filter(|(_, is_set)| *is_set);
        if let (Some((first, _)), Some((second, _))) = (set.next(), set.next()) {
            let message = format!("one place is enough: `{first}` is set, too");
            invalid.push(Invalid::parameter(second, message));
        }
    }

    /// The place in a text: the number of lines before it.
    ///
    /// # Errors
    /// When there is no such line.
    pub(crate) fn find(&self, text: &[u8]) -> Result<usize, String> {
        let lines = lines(text);
        let missing = |line: &str| format!("there is no line `{line}`, where it would be added");
        let unmatched =
            |pattern: &Pattern| format!("no line matches `{}`, where it would be added", pattern.written());
        if !self.after.is_empty() {
            let found = lines.iter().rposition(|line| bare(line) == self.after.as_bytes());
            return found.map(|at| at + 1).ok_or_else(|| missing(&self.after));
        }
        if !self.before.is_empty() {
            let found = lines.iter().position(|line| bare(line) == self.before.as_bytes());
            return found.ok_or_else(|| missing(&self.before));
        }
        if let Some(pattern) = &*self.after_match {
            let found = lines.iter().rposition(|line| pattern.is_match(bare(line)));
            return found.map(|at| at + 1).ok_or_else(|| unmatched(pattern));
        }
        if let Some(pattern) = &*self.before_match {
            let found = lines.iter().position(|line| pattern.is_match(bare(line)));
            return found.ok_or_else(|| unmatched(pattern));
        }
        Ok(lines.len())
    }
}
