//! The `block` kind: some lines of a text file that others write, too, between two marks. Not one of mgmt's kinds.
//!
//! The marks say whose lines they are, so that other lines take their place when the resource changes. Nothing outside of the marks is touched.

use setpoint_engine::{
    Apply, Claim, DriftValue, Failure, Handle, Identity, IfSet, Resource, Text, Wanted, Watch, async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};

use crate::edited_file::EditedFile;
use crate::home_file::{self, HomeFile};
use crate::presence::{Presence, state_missing};
use crate::text_edit::{Difference, NewText, TextFile};
use crate::text_lines::{bare, end_last_line, end_of_lines, lines};
use crate::text_place::TextPlace;
use crate::validation::Validation;

/// Some lines in a text file that others write, too, between two marks with the resource's name.
///
/// When the lines change, those between the marks do; everything else in the file is left unchanged.
///
/// ```mcl
/// block "cluster" {
///     file => "/etc/hosts",
///     state => "exists",
///     content => "192.0.2.7 db\n192.0.2.8 web\n",
/// }
/// ```
///
/// In a file whose comments begin and end, after a line that is there:
///
/// ```mcl
/// block "limits" {
///     file => "/etc/app.xml",
///     state => "exists",
///     content => "  <limit>10</limit>\n",
///     comment => "<!--",
///     comment_end => "-->",
///     after => "<app>",
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "block", autoedge)]
pub(crate) struct Block {
    /// The file: an absolute path, or one that begins with `~/` (own home) or `~NAME/` (home of a user).
    file: String,
    /// Whether the block is there.
    #[param(default = IfSet(Some(Presence::Exists)))]
    state: IfSet<Presence>,
    /// The lines between the marks.
    content: Text,
    /// The text that begins a comment in the file.
    #[param(default = "#".to_owned())]
    comment: String,
    /// The text that ends a comment, unless the end of the line does.
    comment_end: String,
    #[param(flatten(after, before, after_match, before_match))]
    place: TextPlace,
    /// Whether a missing file is created.
    #[param(default = true)]
    create: bool,
    #[name]
    name: String,
    #[param(flatten(validate, validate_timeout))]
    validation: Validation,
    #[state]
    found: HomeFile,
}

#[async_trait]
impl Resource for Block {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        invalid.extend(home_file::refused(&self.file));
        self.validation.refused(invalid);
        if self.state.is_none() {
            invalid.push(state_missing());
        }
        if self.name.contains(['\n', '\r']) {
            invalid.push(Invalid::new("its name is in the marks, so it must be one line"));
        }
        let one_line = [("comment", &self.comment), ("comment_end", &self.comment_end)];
        for (parameter, text) in one_line {
            if text.contains(['\n', '\r']) {
                invalid.push(Invalid::parameter(parameter, "must be one line"));
            }
        }
        if self.comment.trim().is_empty() {
            invalid.push(Invalid::parameter(
                "comment",
                "must not be empty: the marks are comments",
            ));
        }
        self.place.refused(invalid);
        let marks = self.marks();
        let mut content = lines(self.content.as_bytes()).into_iter();
        if content.any(|line| marks.iter().any(|mark| bare(line) == mark.as_bytes())) {
            invalid.push(Invalid::parameter(
                "content",
                "must not have the marks of the block in it",
            ));
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
        let path = self.found.find(&self.file, apply)?;
        let file = TextFile {
            path,
            creates: self.create || *self.state == Some(Presence::Absent),
            validation: &self.validation,
        };
        file.edit(apply, |text| self.change(text)).await
    }
}

impl Block {
    /// The text in which the block is as it must be; none if it is.
    fn change(&self, text: &[u8]) -> Result<Option<NewText>, String> {
        let there = self.find(text)?;
        let wanted = (*self.state != Some(Presence::Absent)).then(|| self.block(end_of_lines(text)));
        let is = there.as_ref().map(|range| &text[range.clone()]);
        if is == wanted.as_deref() {
            return Ok(None);
        }
        let shown = |block: Option<&[u8]>| block.map_or(DriftValue::Absent, DriftValue::content);
        let difference = Difference {
            field: "content".to_owned(),
            is: shown(is),
            want: shown(wanted.as_deref()),
            is_existence: true,
        };
        let mut after = text.to_vec();
        match there {
            Some(range) => drop(after.splice(range, wanted.into_iter().flatten())),
            None => {
                let at = lines(text)[..self.place.find(text)?].concat().len();
                let rest = after.split_off(at);
                end_last_line(&mut after, end_of_lines(text));
                after.extend(wanted.into_iter().flatten());
                after.extend(rest);
            }
        }
        Ok(Some(NewText {
            text: after,
            differences: vec![difference],
        }))
    }

    /// The lines that begin and end it.
    fn marks(&self) -> [String; 2] {
        let end = match self.comment_end.trim() {
            "" => String::new(),
            end => format!(" {end}"),
        };
        ["begin", "end"]
            .map(|what| format!("{} setpoint {what}: {}{end}", self.comment.trim_end(), self.name))
    }

    /// The whole block, marks included, with these ends of lines.
    fn block(&self, end: &[u8]) -> Vec<u8> {
        let [begin, finish] = self.marks();
        let mut block = [begin.as_bytes(), end].concat();
        for line in lines(self.content.as_bytes()) {
            block.extend([bare(line), end].concat());
        }
        block.extend([finish.as_bytes(), end].concat());
        block
    }

    /// The range of the block in a text.
    fn find(&self, text: &[u8]) -> Result<Option<std::ops::Range<usize>>, String> {
        let [begin, finish] = self.marks();
        let mut found = None;
        let mut open = None;
        let mut at = 0;
        for line in lines(text) {
            let next = at + line.len();
            if bare(line) == begin.as_bytes() {
                if open.is_some() || found.is_some() {
                    return Err(format!("the mark `{begin}` is there more than once"));
                }
                open = Some(at);
            } else if bare(line) == finish.as_bytes() {
                let begun = open
                    .take()
                    .ok_or_else(|| format!("the mark `{finish}` has no beginning before it"))?;
                found = Some(begun..next);
            }
            at = next;
        }
        match open {
            Some(_) => Err(format!("the mark `{begin}` has no end after it")),
            None => Ok(found),
        }
    }
}
