//! The `substitute` kind: text in a file that is replaced wherever a pattern matches. Not one of mgmt's kinds.

use setpoint_engine::{
    Apply, Claim, DriftValue, Failure, Handle, Identity, IfSet, Level, Resource, Wanted, Watch, async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};

use crate::edited_file::EditedFile;
use crate::home_file::{self, HomeFile};
use crate::pattern::Pattern;
use crate::text_edit::{Difference, NewText, TextFile};
use crate::text_lines::lines;
use crate::validation::Validation;

/// The largest file, in bytes.
const LARGEST: usize = 64 << 20;

/// Text that is replaced in a file, wherever a pattern matches.
///
/// For changes inside of lines, or across lines. To replace whole lines, use `line` with `match`; for settings, use `ini`.
///
/// ```mcl
/// substitute "listen on loopback" {
///     file => "/etc/app.conf",
///     pattern => "^(listen *= *)0\\.0\\.0\\.0:",
///     with => "\${1}127.0.0.1:",
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "substitute", autoedge)]
pub(crate) struct Substitute {
    /// The file: an absolute path, or one that begins with `~/` (own home) or `~NAME/` (home of a user). It must exist.
    file: String,
    /// The text to replace. `^` and `$` match at the ends of lines.
    pattern: IfSet<Pattern>,
    /// The new text. `$1` or `${name}` stands for a group of the pattern, and `$$` for a dollar sign. In a program, write `\${name}`.
    ///
    /// The pattern must not match in the result in a way that changes it again: the edit would never end.
    with: String,
    /// How many matches are replaced, from the beginning of the file. 0 means all.
    count: u32,
    #[param(flatten(validate, validate_timeout))]
    validation: Validation,
    #[state]
    found: HomeFile,
    /// Whether a pattern that matches nothing was reported.
    #[state]
    is_reported: bool,
}

#[async_trait]
impl Resource for Substitute {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        invalid.extend(home_file::refused(&self.file));
        self.validation.refused(invalid);
        match &*self.pattern {
            None => invalid.push(Invalid::parameter("pattern", "the pattern is missing")),
            Some(pattern) if pattern.is_match(b"") => {
                let message = "must not match the empty text: it would match everywhere";
                invalid.push(Invalid::parameter("pattern", message));
            }
            Some(_) => {}
        }
    }

    fn identities(&self) -> Vec<Identity> {
        EditedFile::named(&self.file).identities()
    }

    fn claims(&self) -> Vec<Claim> {
        EditedFile::named(&self.file).claims([])
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
        let Some(pattern) = self.pattern.0.clone() else {
            return Ok(());
        };
        let path = self.found.find(&self.file, apply)?;
        let file = TextFile {
            path,
            creates: false,
            validation: &self.validation,
        };
        let mut is_missing = false;
        file.edit(apply, |text| {
            let new = self.change(&pattern, text);
            is_missing = new == Ok(None) && !self.has_result(text);
            new
        })
        .await?;
        if is_missing && !std::mem::replace(&mut self.is_reported, true) && !apply.has_sensitive() {
            let note = format!("nothing in {} matches `{}`", self.file, pattern.written());
            apply.log(Level::Warning, note);
        }
        Ok(())
    }
}

impl Substitute {
    /// The text with everything replaced; none if that changes nothing.
    fn change(&self, pattern: &Pattern, text: &[u8]) -> Result<Option<NewText>, String> {
        if text.len() > LARGEST {
            return Err(format!("it is larger than {} MiB", LARGEST >> 20));
        }
        let after = self.replaced(pattern, text);
        if after == text {
            return Ok(None);
        }
        if self.replaced(pattern, &after) != after {
            let why = "a second run would replace text in the result of the first, and so on; the pattern must not match what `with` writes";
            return Err(why.to_owned());
        }
        let (is, want) = changed_lines(text, &after);
        let difference = Difference {
            field: "text".to_owned(),
            is: DriftValue::content(&is),
            want: DriftValue::content(&want),
            is_existence: false,
        };
        Ok(Some(NewText {
            text: after,
            differences: vec![difference],
        }))
    }

    fn replaced(&self, pattern: &Pattern, text: &[u8]) -> Vec<u8> {
        let after = pattern
            .in_lines()
            .replacen(text, self.count as usize, self.with.as_bytes());
        after.into_owned()
    }

    /// Whether a text may be the result of an earlier run.
    fn has_result(&self, text: &[u8]) -> bool {
        self.with.contains('$') || memchr::memmem::find(text, self.with.as_bytes()).is_some()
    }
}

/// The lines from the first to the last that differ, of both texts.
fn changed_lines(before: &[u8], after: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (before, after) = (lines(before), lines(after));
    let first = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let (before, after) = (&before[first..], &after[first..]);
    let last = before.iter().rev().zip(after.iter().rev());
    let last = last.take_while(|(a, b)| a == b).count();
    let part = |lines: &[&[u8]]| lines[..lines.len() - last].concat();
    (part(before), part(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_differ_are_shown() {
        let part = |a: &str, b: &str| {
            let (a, b) = changed_lines(a.as_bytes(), b.as_bytes());
            (String::from_utf8(a).unwrap(), String::from_utf8(b).unwrap())
        };
        assert_eq!(
            part("a\nb\nc\n", "a\nx\nc\n"),
            ("b\n".to_owned(), "x\n".to_owned())
        );
        assert_eq!(part("a\na\n", "a\n"), ("a\n".to_owned(), String::new()));
        assert_eq!(part("a", "b"), ("a".to_owned(), "b".to_owned()));
    }
}
