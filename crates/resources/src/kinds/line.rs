//! The `line` kind: a line, or some consecutive ones, in a text file that others write, too.
//!
//! The file is read as bytes, and what is not concerned stays as it is, ends of lines included. Resources that edit one file follow each other.

use setpoint_engine::{
    Apply, Claim, DriftValue, Failure, Handle, Identity, IfSet, Resource, Stake, Text, Wanted, Watch,
    async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::files::{Replace, umask};

use crate::edited_file::EditedFile;
use crate::home_file::{self, HomeFile};
use crate::presence::{Presence, state_missing};
use crate::sorts::LINE;
use crate::text_lines::{bare, end_last_line, end_of_lines, lines, read};
use crate::turns::Turn;
use crate::validation::Validation;

/// A line, or a block of consecutive lines, that is in a file or not.
///
/// A line that is missing is added at the end. One that shall not be there is removed wherever it is. Everything else in the file stays as it is.
///
/// ```mcl
/// line "our database" {
///     file => "/etc/hosts",
///     state => "exists",
///     content => "192.0.2.7 db",
/// }
/// ```
///
/// ```mcl
/// line "no root by password" {
///     file => "/etc/ssh/sshd_config",
///     state => "absent",
///     content => "PermitRootLogin yes",
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "line", autoedge)]
pub(crate) struct Line {
    /// The file: an absolute path, or one that begins with `~/`, our home, or `~NAME/`, that of a user.
    file: String,
    /// Whether the lines are there. It must be set.
    state: IfSet<Presence>,
    /// The lines. Without any there is nothing to do.
    content: Text,
    /// Whether white space at both ends of `content` is left out.
    trim: bool,
    #[param(flatten(validate, validate_timeout))]
    validation: Validation,
    #[state]
    found: HomeFile,
}

#[async_trait]
impl Resource for Line {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        invalid.extend(home_file::refused(&self.file));
        self.validation.refused(invalid);
        if self.state.is_none() {
            invalid.push(state_missing());
        }
    }

    fn identities(&self) -> Vec<Identity> {
        EditedFile::named(&self.file).identities()
    }

    fn claims(&self) -> Vec<Claim> {
        let file = EditedFile::named(&self.file);
        let claim = |text: &[u8], stake| file.part(&LINE, text, Stake::value(stake));
        let content = self.content();
        let is_absent = *self.state == Some(Presence::Absent);
        let state: &[u8] = if is_absent { b"absent" } else { b"exists" };
        let mut parts = vec![claim(content, state)];
        // A removal of several lines does not disagree with one of them on its own.
        let lines = content.split(|byte| *byte == b'\n').filter(|_| !is_absent);
        parts.extend(
            lines
                .filter(|line| *line != content)
                .map(|line| claim(line, state)),
        );
        match content.is_empty() {
            true => Vec::new(),
            false => file.claims(parts),
        }
    }

    fn wanted(&self) -> Vec<Wanted> {
        home_file::wanted(&self.file)
    }

    fn init(&mut self, handle: &Handle) -> Result<(), Failure> {
        self.found.init(&self.file, handle);
        Ok(())
    }

    fn watches(&self) -> Vec<Watch> {
        self.found.watches(&self.file)
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let content = self.content().to_vec();
        if content.is_empty() {
            return Ok(());
        }
        let path = self.found.find(&self.file, apply)?;
        let _turn = Turn::at_file(&path, apply).await?;
        let before = read(&path)?;
        let wanted: Vec<&[u8]> = content.split(|byte| *byte == b'\n').collect();
        let text = before.as_deref().unwrap_or_default();
        let after = match *self.state {
            Some(Presence::Absent) => without(text, &wanted),
            _ => with(text, &wanted),
        };
        let Some(after) = after else {
            return Ok(());
        };
        let shown = DriftValue::from(String::from_utf8_lossy(&content).into_owned());
        let (is, want) = match *self.state {
            Some(Presence::Absent) => (shown, DriftValue::Absent),
            _ => (DriftValue::Absent, shown),
        };
        self.validation.check(apply, &path, &after).await?;
        if apply.existence("line", is, want) {
            let mut request = Replace::bytes(path, after);
            if before.is_none() {
                request = request.mode(0o600 & !umask());
            }
            apply.replace_at_once(request)?;
        }
        Ok(())
    }
}

impl Line {
    /// The lines, as they stand in the file.
    fn content(&self) -> &[u8] {
        match self.trim {
            true => self.content.as_bytes().trim_ascii(),
            false => self.content.as_bytes(),
        }
    }
}

/// Whether the wanted lines begin a text.
fn begin(lines: &[&[u8]], wanted: &[&[u8]]) -> bool {
    lines.len() >= wanted.len()
        && lines
            .iter()
            .zip(wanted)
            .all(|(line, wanted)| bare(line) == bare(wanted))
}

/// A text with the wanted lines at its end; none if they are in it.
fn with(text: &[u8], wanted: &[&[u8]]) -> Option<Vec<u8>> {
    let lines = lines(text);
    if lines.windows(wanted.len()).any(|window| begin(window, wanted)) {
        return None;
    }
    let end = end_of_lines(text);
    let mut after = text.to_vec();
    end_last_line(&mut after, end);
    for line in wanted {
        after.extend_from_slice(bare(line));
        after.extend_from_slice(end);
    }
    Some(after)
}

/// A text without the wanted lines, wherever they are; none if they are nowhere.
fn without(text: &[u8], wanted: &[&[u8]]) -> Option<Vec<u8>> {
    let lines = lines(text);
    let mut after = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < lines.len() {
        if begin(&lines[at..], wanted) {
            at += wanted.len();
        } else {
            after.extend_from_slice(lines[at]);
            at += 1;
        }
    }
    (after.len() < text.len()).then_some(after)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(content: &str) -> Vec<&[u8]> {
        content.as_bytes().split(|byte| *byte == b'\n').collect()
    }

    fn added(text: &str, content: &str) -> Option<String> {
        with(text.as_bytes(), &split(content)).map(|text| String::from_utf8(text).unwrap())
    }

    fn removed(text: &str, content: &str) -> Option<String> {
        without(text.as_bytes(), &split(content)).map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn what_is_missing_comes_at_the_end() {
        assert_eq!(added("a\nb\n", "b"), None);
        assert_eq!(added("a\nb\n", "a\nb"), None);
        assert_eq!(added("a\nx\nb\n", "a\nb").as_deref(), Some("a\nx\nb\na\nb\n"));
        assert_eq!(added("", "a").as_deref(), Some("a\n"));
        assert_eq!(
            added("a", "b").as_deref(),
            Some("a\nb\n"),
            "a last line without an end gets one"
        );
        assert_eq!(added("a\r\nb\r\n", "c").as_deref(), Some("a\r\nb\r\nc\r\n"));
        assert_eq!(added("a\r\n", "a"), None);
        assert_eq!(
            added("a\n", "a\n").as_deref(),
            Some("a\na\n\n"),
            "a line feed at the end wants an empty line"
        );
    }

    #[test]
    fn what_goes_goes_everywhere_and_the_rest_stays_as_it_is() {
        assert_eq!(removed("a\nb\na\n", "a").as_deref(), Some("b\n"));
        assert_eq!(removed("a\r\nb\r\nc", "b").as_deref(), Some("a\r\nc"));
        assert_eq!(removed("a\na\na\n", "a\na").as_deref(), Some("a\n"));
        assert_eq!(removed("ab\n", "a"), None);
        assert_eq!(removed("a", "a").as_deref(), Some(""));
        assert_eq!(removed("", "a"), None);
    }

    proptest! {
        /// What is added is there, what is removed is not, and both are done once.
        #[test]
        fn once_is_enough(text in "[ab\\r\\n]{0,20}", content in "[ab]{1,2}(\n[ab]{0,2}){0,2}") {
            let wanted = split(&content);
            if let Some(text) = with(text.as_bytes(), &wanted) {
                prop_assert_eq!(with(&text, &wanted), None);
            }
            let mut text = text.into_bytes();
            let mut rounds = 0;
            while let Some(after) = without(&text, &wanted) {
                prop_assert!(after.len() < text.len());
                text = after;
                rounds += 1;
                prop_assert!(rounds < 20);
            }
        }
    }
}
