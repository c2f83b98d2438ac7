//! Why something is wrong, when that is an error itself.
//!
//! A language that executes may wrap an error in another one at each step outwards, so causes nest, and a program decides how deep.
//! They are bounded here, so that whoever walks over a diagnostic may recurse.

use crate::Diagnostic;

/// Causes nest no deeper than this. Of a longer chain the inner part is kept, where it began.
const MOST_LEVELS: usize = 64;

/// What led to a diagnostic, in the order in which the language tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Causes {
    list: Vec<Diagnostic>,
    /// How many levels of causes there are, these included.
    levels: usize,
    /// How many steps between the diagnostic and these were left out.
    omitted: usize,
}

impl Causes {
    /// Adds one. Where that would nest too deep, it is left out and its own causes stand for it.
    pub(crate) fn push(&mut self, mut cause: Diagnostic) {
        if cause.causes.levels >= MOST_LEVELS {
            let inner = std::mem::take(&mut cause.causes);
            self.omitted = self.omitted.max(inner.omitted + 1);
            self.levels = self.levels.max(inner.levels);
            self.list.extend(inner.list);
            return;
        }
        self.levels = self.levels.max(cause.causes.levels + 1);
        self.list.push(cause);
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// How many steps between the diagnostic and its causes were left out.
    #[must_use]
    pub fn omitted(&self) -> usize {
        self.omitted
    }
}

impl<'a> IntoIterator for &'a Causes {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CodeInfo, FileId, Span, Stage};

    static CODE: CodeInfo = CodeInfo {
        code: "X0001",
        rule: "",
        stage: Stage::new("execute"),
        summary: "a test",
    };

    #[test]
    fn a_chain_of_any_length_stays_shallow_and_keeps_where_it_began() {
        let at = Span::new(FileId(0), 0, 0);
        let mut found = Diagnostic::error(&CODE, at, "0");
        for step in 1..=100_000 {
            found = Diagnostic::error(&CODE, at, step.to_string()).caused_by(found);
        }
        assert_eq!(found.message, "100000");
        assert_eq!(found.causes.omitted(), 100_000 - MOST_LEVELS);
        let (mut level, mut inner) = (0, &found);
        while let Some(cause) = inner.causes.iter().next() {
            (level, inner) = (level + 1, cause);
        }
        assert_eq!((level, inner.message.as_str()), (MOST_LEVELS, "0"));
    }
}
