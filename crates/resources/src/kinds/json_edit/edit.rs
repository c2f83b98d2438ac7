//! One edit of a JSON document, as it is written: `.path = value`, or `del(.path)`.
//!
//! ```text
//! edit    = path "=" json | "del" "(" path ")"
//! path    = "." step { "." step | bracket }
//! step    = name | bracket
//! name    = ( "_" | letter ) { "_" | letter | digit }
//! bracket = "[" json-string "]"
//! ```
//!
//! White space may stand between all parts.

use std::collections::BTreeMap;

use setpoint_engine::Stake;

use super::document::Node;

/// An edit.
#[derive(Debug, Clone)]
pub(super) struct Edit {
    /// The names to walk through; at least one.
    pub(super) path: Vec<String>,
    pub(super) what: What,
}

/// What is done at the end of the path.
#[derive(Debug, Clone)]
pub(super) enum What {
    Set(Node),
    Delete,
}

/// What is wrong with an edit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) message: String,
    pub(super) help: Option<&'static str>,
}

impl Edit {
    /// Reads an edit.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(text: &str) -> Result<Edit, Wrong> {
        let mut reader = Reader(text.trim_matches(BLANKS));
        if let Some(rest) = reader.0.strip_prefix("del") {
            reader.0 = rest;
            reader.expect('(', "`(` after `del`")?;
            let path = reader.path()?;
            reader.expect(')', "`)` after the path")?;
            reader.blanks();
            return match reader.0 {
                "" => Ok(Edit {
                    path,
                    what: What::Delete,
                }),
                rest => Err(unexpected(rest, "nothing more after `)`")),
            };
        }
        let path = reader.path()?;
        reader.expect('=', "`=`, `.` or `[` after the path")?;
        let value = Node::read(reader.0).map_err(|error| Wrong {
            message: format!("what follows `=` is not one JSON value: {error}"),
            help: Some("texts stand in double quotes: `.name = \"text\"`"),
        })?;
        Ok(Edit {
            path,
            what: What::Set(value),
        })
    }

    /// The value, as it would be written; the empty text for none.
    fn value(&self) -> String {
        match &self.what {
            What::Set(value) => value.compact(),
            What::Delete => String::new(),
        }
    }

    /// The path, as it is shown.
    pub(super) fn shown_path(&self) -> String {
        shown(&self.path)
    }
}

/// The wishes of a sequence of edits, by the shown path of each entry.
///
/// An object on the way to an entry is shared with others who edit entries of it.
pub(super) fn stakes(edits: &[Edit]) -> BTreeMap<String, Stake> {
    let mut stakes: BTreeMap<Vec<String>, Stake> = BTreeMap::new();
    for edit in edits {
        for length in 1..edit.path.len() {
            let above = stakes.entry(edit.path[..length].to_vec()).or_insert(Stake::Part);
            if let Stake::Value(set) = above {
                // A later edit changes a value that an earlier one set.
                *above = Stake::value([set, shown(&edit.path).as_bytes(), edit.value().as_bytes()].concat());
            }
        }
        stakes.retain(|path, _| !path.starts_with(&edit.path));
        stakes.insert(edit.path.clone(), Stake::value(edit.value().into_bytes()));
    }
    stakes
        .into_iter()
        .map(|(path, stake)| (shown(&path), stake))
        .collect()
}

/// A path, or the beginning of one, as it would be written.
pub(super) fn shown(path: &[String]) -> String {
    let step = |name: &String| {
        let is_name = !name.starts_with(|first: char| first.is_ascii_digit())
            && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
        match is_name {
            true => format!(".{name}"),
            false => format!("[{}]", serde_json::Value::from(name.as_str())),
        }
    };
    let steps: String = path.iter().map(step).collect();
    match steps.starts_with('.') {
        true => steps,
        false => format!(".{steps}"),
    }
}

const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

struct Reader<'a>(&'a str);

impl Reader<'_> {
    fn blanks(&mut self) {
        self.0 = self.0.trim_start_matches(BLANKS);
    }

    fn take(&mut self, sign: char) -> bool {
        self.blanks();
        let rest = self.0.strip_prefix(sign);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn expect(&mut self, sign: char, what: &str) -> Result<(), Wrong> {
        match self.take(sign) {
            true => Ok(()),
            false => Err(unexpected(self.0, what)),
        }
    }

    fn path(&mut self) -> Result<Vec<String>, Wrong> {
        self.expect('.', "a path, which begins with a dot")?;
        let mut path = vec![self.step()?];
        loop {
            if self.take('.') {
                path.push(self.step()?);
            } else if self.take('[') {
                path.push(self.bracket()?);
            } else {
                return Ok(path);
            }
        }
    }

    fn step(&mut self) -> Result<String, Wrong> {
        if self.take('[') {
            return self.bracket();
        }
        let end = self.0.find(|c: char| c != '_' && !c.is_ascii_alphanumeric());
        let (name, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
            let wrong = unexpected(self.0, "a name after the dot");
            return Err(Wrong {
                help: Some(
                    "the document itself cannot be replaced; other names stand in brackets: `.[\"a-b\"]`",
                ),
                ..wrong
            });
        }
        if rest.starts_with('-') {
            return Err(Wrong {
                message: format!("`-` cannot be part of the name `{name}`"),
                help: Some("other names stand in brackets: `.[\"a-b\"]`"),
            });
        }
        self.0 = rest;
        Ok(name.to_owned())
    }

    fn bracket(&mut self) -> Result<String, Wrong> {
        self.blanks();
        let mut values = serde_json::Deserializer::from_str(self.0).into_iter::<String>();
        let name = values.next().and_then(Result::ok).filter(|name| !name.is_empty());
        let read = values.byte_offset();
        let Some(name) = name else {
            return Err(Wrong {
                message: "what stands in brackets is a text that is not empty, in double quotes".to_owned(),
                help: Some("elements of arrays cannot be edited; set the array as a whole"),
            });
        };
        self.0 = self.0.get(read..).unwrap_or_default();
        self.expect(']', "`]`")?;
        Ok(name)
    }
}

fn unexpected(found: &str, wanted: &str) -> Wrong {
    let found = match found.chars().next() {
        None => "it ends".to_owned(),
        Some(sign) => format!("there is `{sign}`"),
    };
    Wrong {
        message: format!("{found} where {wanted} is expected"),
        help: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, Option<String>) {
        let edit = Edit::read(text).unwrap();
        let value = match &edit.what {
            What::Set(value) => Some(value.compact()),
            What::Delete => None,
        };
        (edit.shown_path(), value)
    }

    #[test]
    fn edits_are_read() {
        let set = |path: &str, value: &str| (path.to_owned(), Some(value.to_owned()));
        assert_eq!(read(".a = 1"), set(".a", "1"));
        assert_eq!(
            read(" .a.b_2 .\t[\"c d\"] [\"e\"]=\n{\"x\":[1]}\n"),
            set(".a.b_2[\"c d\"].e", "{\"x\": [1]}")
        );
        assert_eq!(read(".[\"1\"] = \"=\""), set(".[\"1\"]", "\"=\""));
        assert_eq!(read("del(.a.b)"), (".a.b".to_owned(), None));
        assert_eq!(read("del ( .[\"a\\\"]\"] ) "), (".[\"a\\\"]\"]".to_owned(), None));
        assert_eq!(read(".del = 1"), set(".del", "1"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |text: &str| Edit::read(text).unwrap_err().message;
        for (text, message) in [
            ("", "it ends where a path, which begins with a dot is expected"),
            (
                "a = 1",
                "there is `a` where a path, which begins with a dot is expected",
            ),
            (". = 1", "there is `=` where a name after the dot is expected"),
            (".a", "it ends where `=`, `.` or `[` after the path is expected"),
            (
                ".a == 1",
                "what follows `=` is not one JSON value: expected value at line 1 column 1",
            ),
            (
                ".a = 1 2",
                "what follows `=` is not one JSON value: trailing characters at line 1 column 4",
            ),
            (
                ".a = text",
                "what follows `=` is not one JSON value: expected ident at line 1 column 3",
            ),
            (".a-b = 1", "`-` cannot be part of the name `a`"),
            (".1 = 1", "there is `1` where a name after the dot is expected"),
            (
                ".a[0] = 1",
                "what stands in brackets is a text that is not empty, in double quotes",
            ),
            (
                ".a[\"\"] = 1",
                "what stands in brackets is a text that is not empty, in double quotes",
            ),
            (".a[\"b\" = 1", "there is `=` where `]` is expected"),
            ("del .a", "there is `.` where `(` after `del` is expected"),
            ("del(.a", "it ends where `)` after the path is expected"),
            (
                "del(.a) = 1",
                "there is `=` where nothing more after `)` is expected",
            ),
            (
                ".a | .b = 1",
                "there is `|` where `=`, `.` or `[` after the path is expected",
            ),
            (".ä = 1", "there is `ä` where a name after the dot is expected"),
        ] {
            assert_eq!(wrong(text), message, "{text}");
        }
    }
}
