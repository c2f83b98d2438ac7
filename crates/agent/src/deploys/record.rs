//! What a deploy says.

use serde::{Deserialize, Serialize};
use setpoint_programs::imposed::Imposed;

/// What records are written as. Others are refused, not guessed at.
const VERSION: u32 = 1;

/// A deploy's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    version: u32,
    /// In what it is written.
    pub frontend: Frontend,
    /// The key of its files; none of what has none.
    #[serde(default)]
    pub files: Option<String>,
    /// What holds for all of its resources.
    #[serde(flatten)]
    pub imposed: Imposed,
    /// Which one it is a copy of, where somebody went back.
    #[serde(default)]
    pub copy_of: Option<u64>,
}

/// In what a deploy is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Frontend {
    /// A program in mcl.
    Lang,
    /// A graph in YAML.
    Yaml,
    /// Nothing at all.
    Empty,
}

impl Record {
    /// One without files and options.
    pub fn of(frontend: Frontend) -> Record {
        Record {
            version: VERSION,
            frontend,
            files: None,
            imposed: Imposed::default(),
            copy_of: None,
        }
    }

    /// With what holds for all of its resources.
    pub fn with(mut self, imposed: Imposed) -> Record {
        self.imposed = imposed;
        self
    }

    /// The same without the place of its files.
    pub(super) fn without_files(self) -> Record {
        Record {
            files: None,
            copy_of: None,
            ..self
        }
    }

    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(text: &str) -> Result<Record, String> {
        let record: Record =
            serde_json::from_str(text).map_err(|error| format!("it cannot be read: {error}"))?;
        match record.version {
            VERSION => Ok(record),
            other => Err(format!(
                "it is of version {other}, and this program knows version {VERSION}"
            )),
        }
    }

    /// As it is written.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("it has only texts and numbers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_was_written_and_others_are_refused() {
        let mut record = Record::of(Frontend::Lang).with(Imposed {
            noop: true,
            sema: Some(3),
            ..Imposed::default()
        });
        record.files = Some("/fs/deploy/1".to_owned());
        assert_eq!(Record::read(&record.text()), Ok(record));
        assert_eq!(
            Record::read("{\"version\":1,\"frontend\":\"empty\"}"),
            Ok(Record::of(Frontend::Empty))
        );
        for wrong in [
            "",
            "{}",
            "{\"version\":1}",
            "{\"version\":1,\"frontend\":\"puppet\"}",
        ] {
            assert!(Record::read(wrong).is_err(), "{wrong}");
        }
        let newer = Record::read("{\"version\":2,\"frontend\":\"empty\"}").unwrap_err();
        assert_eq!(newer, "it is of version 2, and this program knows version 1");
    }
}
