//! The `line` kind: a line, or some consecutive ones, in a text file that others write, too.
//!
//! The file is read as bytes, and what is not concerned stays as it is, ends of lines included. Resources that edit one file follow each other.

mod matching;

use setpoint_engine::{
    Apply, Claim, DriftValue, Failure, Handle, Identity, IfSet, Level, Resource, Stake, Text, Wanted, Watch,
    Words, async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};

use self::matching::Matching;
use crate::edited_file::EditedFile;
use crate::home_file::{self, HomeFile};
use crate::pattern::Pattern;
use crate::presence::{Presence, state_missing};
use crate::sorts::LINE;
use crate::text_edit::{Difference, NewText, TextFile};
use crate::text_lines::{bare, end_last_line, end_of_lines, lines};
use crate::text_place::TextPlace;
use crate::validation::Validation;

/// A line, or a block of consecutive lines, that is in a file or not.
///
/// A line that is missing is added at the end, or at a place that you name. A line that must be absent is removed wherever it is. Everything else in the file
/// is left unchanged.
///
/// ```mcl
/// line "our database" {
///     file => "/etc/hosts",
///     state => "exists",
///     content => "192.0.2.7 db",
/// }
/// ```
///
/// With `match`, the line replaces the line that matches, also if that is commented out. Further lines that match are removed, except comments:
///
/// ```mcl
/// line "no root by password" {
///     file => "/etc/ssh/sshd_config",
///     state => "exists",
///     match => "^#?PermitRootLogin ",
///     content => "PermitRootLogin no",
///     validate => "/usr/sbin/sshd -t",
/// }
/// ```
///
/// ```mcl
/// line "no forwarding" {
///     file => "/etc/ssh/sshd_config",
///     state => "absent",
///     content => "X11Forwarding yes",
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "line", autoedge)]
pub(crate) struct Line {
    /// The file: an absolute path, or one that begins with `~/` (own home) or `~NAME/` (home of a user).
    file: String,
    /// Whether the lines are there.
    #[param(default = IfSet(Some(Presence::Exists)))]
    state: IfSet<Presence>,
    /// The lines. Without any there is nothing to do, unless `match` is set and `state` is `absent`.
    content: Text,
    /// Whether white space at both ends of `content` is left out.
    trim: bool,
    /// A pattern of lines that `content` replaces. It is compared with each line without its end.
    r#match: IfSet<Pattern>,
    /// How many lines `content` replaces: `one`, and the others that match are removed, or `each` of them.
    #[param(default = Multiple::One)]
    multiple: Multiple,
    /// Whether a missing line is added. If not, and no line matches, there is nothing to do.
    #[param(default = true)]
    insert: bool,
    /// Marks that begin a comment, after white space. A comment is replaced only if no other line matches. Unset: `#` and `;`.
    comment_marks: Option<Vec<String>>,
    #[param(flatten(after, before, after_match, before_match))]
    place: TextPlace,
    /// Whether a missing file is created.
    #[param(default = true)]
    create: bool,
    #[param(flatten(validate, validate_timeout))]
    validation: Validation,
    #[state]
    found: HomeFile,
    /// Whether a line that the new one may contradict was reported.
    #[state]
    is_reported: bool,
}

/// How many lines stand for the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Multiple {
    One,
    Each,
}

impl Words for Multiple {
    const ONE: &'static str = "a number of lines";

    fn words() -> impl Iterator<Item = (&'static str, Multiple)> {
        [("one", Multiple::One), ("each", Multiple::Each)].into_iter()
    }
}

#[async_trait]
impl Resource for Line {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        invalid.extend(home_file::refused(&self.file));
        self.validation.refused(invalid);
        if self.state.is_none() {
            invalid.push(state_missing());
        }
        self.place.refused(invalid);
        if self.r#match.is_none() {
            return;
        }
        if self.content().contains(&b'\n') {
            let message = "must be one line where `match` is set";
            let help = "`block` manages several lines";
            invalid.push(Invalid::parameter("content", message).help(help));
        } else if self.content().is_empty() && !self.is_absent() {
            let message = "the line that replaces the one that matches is missing";
            invalid.push(Invalid::parameter("content", message));
        }
    }

    fn identities(&self) -> Vec<Identity> {
        EditedFile::named(&self.file).identities()
    }

    fn claims(&self) -> Vec<Claim> {
        let file = EditedFile::named(&self.file);
        let claim = |text: &[u8], stake: &[u8]| file.part(&LINE, text, Stake::value(stake));
        let content = self.content();
        let state: &[u8] = if self.is_absent() { b"absent" } else { b"exists" };
        let mut parts = Vec::new();
        if let Some(pattern) = &*self.r#match {
            let of_pattern = format!("lines that match {}", pattern.written());
            parts.push(claim(of_pattern.as_bytes(), &[state, b" ", content].concat()));
        }
        if !content.is_empty() {
            parts.push(claim(content, state));
        }
        // A removal of several lines does not disagree with one of them on its own.
        let lines = content.split(|byte| *byte == b'\n').filter(|_| !self.is_absent());
        parts.extend(
            lines
                .filter(|line| *line != content)
                .map(|line| claim(line, state)),
        );
        match parts.is_empty() {
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
        if self.content().is_empty() && self.r#match.is_none() {
            return Ok(());
        }
        let path = self.found.find(&self.file, apply)?;
        let file = TextFile {
            path,
            creates: self.create || self.is_absent(),
            validation: &self.validation,
        };
        let mut similar = None;
        file.edit(apply, |text| {
            similar = self.similar(text);
            self.change(text)
        })
        .await?;
        if let Some((number, line)) = similar
            && !std::mem::replace(&mut self.is_reported, true)
            && !apply.has_sensitive()
        {
            let note = format!(
                "line {number} of {} is `{line}` as well; `match` would replace it",
                self.file
            );
            apply.log(Level::Warning, note);
        }
        Ok(())
    }
}

impl Line {
    fn is_absent(&self) -> bool {
        *self.state == Some(Presence::Absent)
    }

    /// The lines, as they stand in the file.
    fn content(&self) -> &[u8] {
        match self.trim {
            true => self.content.as_bytes().trim_ascii(),
            false => self.content.as_bytes(),
        }
    }

    /// The text in which the lines are as they must be; none if they are.
    fn change(&self, text: &[u8]) -> Result<Option<NewText>, String> {
        let content = self.content();
        if let Some(pattern) = &*self.r#match {
            let matching = Matching {
                pattern,
                content,
                comment_marks: self.comment_marks.as_deref(),
                each: self.multiple == Multiple::Each,
                insert: self.insert.then_some(&self.place),
            };
            return match self.is_absent() {
                true => Ok(matching.removed(text)),
                false => matching.replaced(text),
            };
        }
        let wanted: Vec<&[u8]> = content.split(|byte| *byte == b'\n').collect();
        let shown = DriftValue::from(String::from_utf8_lossy(content).into_owned());
        let (after, is, want) = match self.is_absent() {
            true => (without(text, &wanted), shown, DriftValue::Absent),
            false if self.insert => (with(text, &wanted, &self.place)?, DriftValue::Absent, shown),
            false => return Ok(None),
        };
        Ok(after.map(|text| NewText {
            text,
            differences: vec![Difference {
                field: "line".to_owned(),
                is,
                want,
                is_existence: true,
            }],
        }))
    }

    /// Another line of the file with the same first word, which the line may contradict, with its number.
    fn similar(&self, text: &[u8]) -> Option<(usize, String)> {
        let content = self.content();
        if self.r#match.is_some() || self.is_absent() || content.contains(&b'\n') {
            return None;
        }
        let first = |line: &[u8]| {
            let mut words = line.split(|byte| byte.is_ascii_whitespace() || *byte == b'=');
            words.find(|word| !word.is_empty()).map(<[u8]>::to_vec)
        };
        // A name of a setting, and no address or other datum of a list.
        let name = first(content).filter(|word| word.first().is_some_and(u8::is_ascii_alphabetic))?;
        let mut others = lines(text).into_iter().map(bare).enumerate();
        let (at, line) = others.find(|(_, line)| *line != content && first(line).as_ref() == Some(&name))?;
        Some((at + 1, String::from_utf8_lossy(line).into_owned()))
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

/// A text with the wanted lines at a place; none if they are in it.
fn with(text: &[u8], wanted: &[&[u8]], place: &TextPlace) -> Result<Option<Vec<u8>>, String> {
    let lines = lines(text);
    if lines.windows(wanted.len()).any(|window| begin(window, wanted)) {
        return Ok(None);
    }
    Ok(Some(inserted(text, wanted, place.find(text)?)))
}

/// A text with further lines after so many of its own.
fn inserted(text: &[u8], new: &[&[u8]], at: usize) -> Vec<u8> {
    let end = end_of_lines(text);
    let lines = lines(text);
    let mut after = lines[..at].concat();
    end_last_line(&mut after, end);
    for line in new {
        after.extend_from_slice(bare(line));
        after.extend_from_slice(end);
    }
    after.extend(lines[at..].concat());
    after
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

    fn at_end() -> TextPlace {
        TextPlace {
            after: String::new(),
            before: String::new(),
            after_match: IfSet::default(),
            before_match: IfSet::default(),
        }
    }

    fn split(content: &str) -> Vec<&[u8]> {
        content.as_bytes().split(|byte| *byte == b'\n').collect()
    }

    fn added(text: &str, content: &str) -> Option<String> {
        let added = with(text.as_bytes(), &split(content), &at_end()).unwrap();
        added.map(|text| String::from_utf8(text).unwrap())
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
    fn what_is_missing_comes_at_its_place() {
        let text = "[one]\r\na\r\n[two]\r\nb";
        let at = |place: TextPlace| {
            let added = with(text.as_bytes(), &split("x"), &place)?;
            Ok::<_, String>(added.map(|text| String::from_utf8(text).unwrap()))
        };
        let after = TextPlace {
            after: "b".to_owned(),
            ..at_end()
        };
        assert_eq!(
            at(after),
            Ok(Some("[one]\r\na\r\n[two]\r\nb\r\nx\r\n".to_owned()))
        );
        let before = TextPlace {
            before: "[two]".to_owned(),
            ..at_end()
        };
        assert_eq!(at(before), Ok(Some("[one]\r\na\r\nx\r\n[two]\r\nb".to_owned())));
        let missing = TextPlace {
            before: "[three]".to_owned(),
            ..at_end()
        };
        assert_eq!(
            at(missing),
            Err("there is no line `[three]`, where it would be added".to_owned())
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
            if let Some(text) = with(text.as_bytes(), &wanted, &at_end()).unwrap() {
                prop_assert_eq!(with(&text, &wanted, &at_end()), Ok(None));
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
