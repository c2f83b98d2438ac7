//! A line that replaces those that match a pattern.

use setpoint_engine::DriftValue;

use super::inserted;
use crate::pattern::Pattern;
use crate::text_edit::{Difference, NewText};
use crate::text_lines::{bare, lines};
use crate::text_place::TextPlace;

/// A line, and the lines that it replaces.
pub(super) struct Matching<'a> {
    pub(super) pattern: &'a Pattern,
    /// The line, without its end.
    pub(super) content: &'a [u8],
    /// None for those of most files.
    pub(super) comment_marks: Option<&'a [String]>,
    /// Whether each line that matches is replaced, and not only one.
    pub(super) each: bool,
    /// The place of a line that is missing; none if it is not added.
    pub(super) insert: Option<&'a TextPlace>,
}

/// A line that matches, or is the wanted one.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    at: usize,
    is_comment: bool,
    is_right: bool,
}

impl Matching<'_> {
    /// The text in which the line stands; none if it does and nothing contradicts it.
    ///
    /// # Errors
    /// When the place of a new line is missing.
    pub(super) fn replaced(&self, text: &[u8]) -> Result<Option<NewText>, String> {
        let lines = lines(text);
        let candidates = self.candidates(&lines);
        let active = || candidates.iter().filter(|candidate| !candidate.is_comment);
        if self.each && active().next().is_some() {
            let wrong: Vec<usize> = active().filter(|one| !one.is_right).map(|one| one.at).collect();
            return Ok(self.rewritten(&lines, &wrong, &[]));
        }
        let right = candidates.iter().find(|candidate| candidate.is_right);
        let Some(place) = right.or_else(|| active().next()).or(candidates.first()) else {
            let Some(place) = self.insert else { return Ok(None) };
            let at = place.find(text)?;
            return Ok(Some(NewText {
                text: inserted(text, &[self.content], at),
                differences: vec![difference(at, None, Some(self.content))],
            }));
        };
        let wrong = (!place.is_right).then_some(place.at);
        let surplus: Vec<usize> = active()
            .filter(|other| other.at != place.at)
            .map(|other| other.at)
            .collect();
        Ok(self.rewritten(&lines, wrong.as_slice(), &surplus))
    }

    /// The text without the lines that match; none if none does.
    pub(super) fn removed(&self, text: &[u8]) -> Option<NewText> {
        let lines = lines(text);
        let surplus: Vec<usize> = self
            .candidates(&lines)
            .iter()
            .map(|candidate| candidate.at)
            .collect();
        self.rewritten(&lines, &[], &surplus)
    }

    fn candidates(&self, lines: &[&[u8]]) -> Vec<Candidate> {
        let candidate = |(at, line): (usize, &&[u8])| {
            let line = bare(line);
            let is_right = line == self.content && !self.content.is_empty();
            (is_right || self.pattern.is_match(line)).then(|| Candidate {
                at,
                is_comment: self.is_comment(line),
                is_right,
            })
        };
        lines.iter().enumerate().filter_map(candidate).collect()
    }

    fn is_comment(&self, line: &[u8]) -> bool {
        let line = line.trim_ascii_start();
        match self.comment_marks {
            Some(marks) => marks
                .iter()
                .any(|mark| !mark.is_empty() && line.starts_with(mark.as_bytes())),
            None => line.starts_with(b"#") || line.starts_with(b";"),
        }
    }

    /// The text with the line instead of some, and without others.
    fn rewritten(&self, lines: &[&[u8]], wrong: &[usize], surplus: &[usize]) -> Option<NewText> {
        let mut new = NewText::default();
        for (at, line) in lines.iter().enumerate() {
            if wrong.contains(&at) {
                new.text.extend_from_slice(self.content);
                new.text.extend_from_slice(&line[bare(line).len()..]);
                new.differences
                    .push(difference(at, Some(bare(line)), Some(self.content)));
            } else if surplus.contains(&at) {
                new.differences.push(difference(at, Some(bare(line)), None));
            } else {
                new.text.extend_from_slice(line);
            }
        }
        (!new.differences.is_empty()).then_some(new)
    }
}

fn difference(at: usize, is: Option<&[u8]>, want: Option<&[u8]>) -> Difference {
    let shown = |line: Option<&[u8]>| match line {
        Some(line) => DriftValue::from(String::from_utf8_lossy(line).into_owned()),
        None => DriftValue::Absent,
    };
    Difference {
        field: format!("line {}", at + 1),
        is: shown(is),
        want: shown(want),
        is_existence: true,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use setpoint_engine::{IfSet, Parameter};
    use setpoint_value::Value;

    use super::*;

    fn place() -> TextPlace {
        TextPlace {
            after: String::new(),
            before: String::new(),
            after_match: IfSet::default(),
            before_match: IfSet::default(),
        }
    }

    fn edited(pattern: &str, content: &str, each: bool, text: &str) -> Option<(String, Vec<String>)> {
        let (pattern, place) = (Pattern::decode(&Value::str(pattern)).unwrap(), place());
        let matching = Matching {
            pattern: &pattern,
            content: content.as_bytes(),
            comment_marks: None,
            each,
            insert: Some(&place),
        };
        let new = match content {
            "" => matching.removed(text.as_bytes()),
            _ => matching.replaced(text.as_bytes()).unwrap(),
        };
        new.map(|new| {
            let told = new.differences.iter();
            let told = told.map(|one| format!("{}: {} -> {}", one.field, one.is, one.want));
            (String::from_utf8(new.text).unwrap(), told.collect())
        })
    }

    #[track_caller]
    fn becomes(content: &str, before: &str, after: &str, told: &[&str]) {
        let (text, differences) = edited("^#?Port ", content, false, before).expect("it changes");
        assert_eq!(text, after);
        assert_eq!(differences, told);
        let second = edited("^#?Port ", content, false, &text);
        assert_eq!(second, None, "once is enough");
    }

    #[test]
    fn one_line_stands_for_all_that_match() {
        becomes("Port 22", "", "Port 22\n", &["line 1: (absent) -> Port 22"]);
        becomes(
            "Port 22",
            "a\n#Port 1\nb\n",
            "a\nPort 22\nb\n",
            &["line 2: #Port 1 -> Port 22"],
        );
        becomes(
            "Port 22",
            "#Port 1\nPort 2\r\nPort 3\n",
            "#Port 1\nPort 22\r\n",
            &["line 2: Port 2 -> Port 22", "line 3: Port 3 -> (absent)"],
        );
        becomes(
            "Port 22",
            "Port 2\na\nPort 22",
            "a\nPort 22",
            &["line 1: Port 2 -> (absent)"],
        );
        becomes(
            "Port 22",
            "Port 22\nPort 3",
            "Port 22\n",
            &["line 2: Port 3 -> (absent)"],
        );
        assert_eq!(edited("^#?Port ", "Port 22", false, "#Port 1\nPort 22\n"), None);
        assert_eq!(edited("^#?Port ", "", false, "a\n"), None);
        becomes(
            "",
            "#Port 1\na\nPort 2\n",
            "a\n",
            &["line 1: #Port 1 -> (absent)", "line 3: Port 2 -> (absent)"],
        );
    }

    #[test]
    fn a_pattern_that_does_not_match_its_own_line_finds_it_all_the_same() {
        let (text, _) = edited("^a$", "b", false, "a\n").unwrap();
        assert_eq!(text, "b\n");
        assert_eq!(edited("^a$", "b", false, &text), None);
    }

    #[test]
    fn each_line_that_matches_is_replaced() {
        let (text, _) = edited("^DNS=", "DNS=1", true, "DNS=2\n#DNS=3\nDNS=4\n").unwrap();
        assert_eq!(text, "DNS=1\n#DNS=3\nDNS=1\n");
        let (text, _) = edited("DNS=", "DNS=1", true, "#DNS=3\n").unwrap();
        assert_eq!(text, "DNS=1\n");
    }

    proptest! {
        /// The line stands once, a second edit finds nothing, and lines that are no candidates stay as they are.
        #[test]
        fn once_is_enough(text in "([ab#]{0,3}\\r?\\n?){0,8}", each: bool) {
            let lines_of = |text: &str| -> Vec<String> {
                let kept = text.split('\n').filter(|line| !line.contains('a') && !line.trim_end_matches('\r').is_empty());
                kept.map(|line| line.trim_end_matches('\r').to_owned()).collect()
            };
            if let Some((after, differences)) = edited("a", "ab", each, &text) {
                prop_assert!(!differences.is_empty());
                prop_assert_eq!(edited("a", "ab", each, &after), None, "{:?}", after);
                prop_assert!(after.split('\n').any(|line| line.trim_end_matches('\r') == "ab"));
                prop_assert_eq!(lines_of(&after), lines_of(&text));
            }
        }
    }
}
