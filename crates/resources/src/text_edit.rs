//! The steps that all kinds share that edit a part of a text file: from reading it to replacing it.

use setpoint_engine::{Apply, DriftValue, Failure};
use setpoint_host::files::{AbsolutePath, Replace, umask};

use crate::enclosing;
use crate::text_lines::read;
use crate::turns::Turn;
use crate::validation::Validation;

/// A text file that a resource edits.
pub(crate) struct TextFile<'a> {
    pub(crate) path: AbsolutePath,
    /// Whether a missing file is created.
    pub(crate) creates: bool,
    pub(crate) validation: &'a Validation,
}

/// The text that a file will have, and how it differs from the text that it has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NewText {
    pub(crate) text: Vec<u8>,
    pub(crate) differences: Vec<Difference>,
}

/// A difference between two texts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The field of the resource.
    pub(crate) field: String,
    pub(crate) is: DriftValue,
    pub(crate) want: DriftValue,
    /// Whether it is the whole of what the resource manages, which is then created or removed.
    pub(crate) is_existence: bool,
}

impl TextFile<'_> {
    /// Edits the file. `change` computes the new text from the text that it has; none if nothing differs. A missing file has an empty text.
    ///
    /// # Errors
    /// When the file cannot be read or written, `change` refuses its text, or its new text is refused.
    pub(crate) async fn edit(
        self,
        apply: &mut Apply<'_>,
        change: impl FnOnce(&[u8]) -> Result<Option<NewText>, String>,
    ) -> Result<(), Failure> {
        let path = &self.path;
        let _turn = Turn::at_file(path, apply).await?;
        let before = read(path)?;
        let failed = |why: String| Failure::new("edit").on(path).because(why);
        if before.is_none() && !self.creates {
            let is_created = apply.foresees(&enclosing::file(path), path.to_string());
            if !is_created {
                return Err(failed("there is no such file".to_owned()));
            }
        }
        let Some(new) = change(before.as_deref().unwrap_or_default()).map_err(failed)? else {
            return Ok(());
        };
        self.validation.check(apply, path, &new.text).await?;
        let mut may_repair = true;
        for difference in new.differences {
            let Difference {
                field,
                is,
                want,
                is_existence,
            } = difference;
            may_repair &= match is_existence {
                true => apply.existence(field, is, want),
                false => apply.drift(field, is, want),
            };
        }
        if may_repair {
            let mode = new_mode(path, apply.has_sensitive());
            let request = Replace::bytes(path.clone(), new.text);
            apply.replace_at_once(match before {
                None => request.mode(mode),
                Some(_) => request,
            })?;
        }
        Ok(())
    }
}

/// The mode of a file that an edit creates. Other programs read the configuration below `/etc`.
fn new_mode(path: &AbsolutePath, is_sensitive: bool) -> u32 {
    match path.as_path().starts_with("/etc") && !is_sensitive {
        true => 0o644,
        false => 0o600 & !umask(),
    }
}
