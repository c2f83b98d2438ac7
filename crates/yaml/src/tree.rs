//! YAML as a tree with places, for files whose mistakes are shown where they are.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};
use setpoint_diagnostics::{FileId, Span};

/// A value and where it stands.
#[derive(Debug, Clone)]
pub struct Node {
    /// The value.
    pub value: Yaml,
    /// Its place.
    pub span: Span,
}

/// A value.
#[derive(Debug, Clone)]
pub enum Yaml {
    /// Nothing, `null`, `~`.
    Null,
    /// `true`, `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number as it is written.
    Number(Arc<str>),
    /// A text.
    Text(Arc<str>),
    /// A list.
    List(Vec<Node>),
    /// A map with texts as keys, in order.
    Map(Vec<(Key, Node)>),
}

/// A key of a map.
#[derive(Debug, Clone)]
pub struct Key {
    /// The key.
    pub text: Arc<str>,
    /// Its place.
    pub span: Span,
}

/// Text that is no YAML: why, and where if that is known.
#[derive(Debug, Clone)]
pub struct Malformed {
    /// Why.
    pub reason: String,
    /// Where; the beginning of the file if that is not known.
    pub span: Span,
}

/// Reads a text.
///
/// # Errors
/// When it is no YAML.
pub fn parse(file: FileId, text: &str) -> Result<Node, Malformed> {
    let whole = Span::new(file, 0, text.len() as u32);
    let nothing = Node {
        value: Yaml::Null,
        span: whole,
    };
    if text
        .lines()
        .all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
    {
        return Ok(nothing);
    }
    match serde_saphyr::from_str::<Spanned<Raw>>(text) {
        Ok(raw) => Ok(placed(raw, file, text)),
        Err(error) => {
            let message = error.to_string();
            let reason = message.lines().next().unwrap_or("it cannot be read as YAML");
            let reason = reason.strip_prefix("error: ").unwrap_or(reason);
            // The place is shown apart.
            let reason = match reason.split_once(": ") {
                Some((place, reason)) if place.starts_with("line ") => reason.to_owned(),
                _ => reason.to_owned(),
            };
            let span = error
                .location()
                .map_or(Span::new(file, 0, 0), |location| span_of(location, file, text));
            Err(Malformed { reason, span })
        }
    }
}

impl Yaml {
    /// What it is, for messages: `a list`.
    #[must_use]
    pub fn sort(&self) -> &'static str {
        match self {
            Yaml::Null => "nothing",
            Yaml::Bool(_) => "a truth value",
            Yaml::Int(_) | Yaml::Number(_) => "a number",
            Yaml::Text(_) => "a text",
            Yaml::List(_) => "a list",
            Yaml::Map(_) => "a map",
        }
    }
}

impl Node {
    /// As a text. Numbers are texts too, as they are written.
    #[must_use]
    pub fn text(&self) -> Option<Arc<str>> {
        match &self.value {
            Yaml::Text(text) | Yaml::Number(text) => Some(text.clone()),
            Yaml::Int(number) => Some(number.to_string().into()),
            Yaml::Null | Yaml::Bool(_) | Yaml::List(_) | Yaml::Map(_) => None,
        }
    }

    /// As a map.
    #[must_use]
    pub fn map(&self) -> Option<&[(Key, Node)]> {
        match &self.value {
            Yaml::Map(entries) => Some(entries),
            Yaml::Null => Some(&[]),
            Yaml::Bool(_) | Yaml::Int(_) | Yaml::Number(_) | Yaml::Text(_) | Yaml::List(_) => None,
        }
    }
}

/// What the library gives, before places are made of locations.
enum Raw {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Raw, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        Raw::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(i64::try_from(value).map_or(Raw::Float(value as f64), Raw::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Raw, E> {
        Ok(Raw::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element()? {
            list.push(element);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Raw, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Raw::Map(map))
    }
}

fn placed(raw: Spanned<Raw>, file: FileId, text: &str) -> Node {
    let span = span_of(raw.referenced, file, text);
    let value = match raw.value {
        Raw::Null => Yaml::Null,
        Raw::Bool(value) => Yaml::Bool(value),
        Raw::Int(value) => Yaml::Int(value),
        Raw::Float(value) => {
            // `1.10` is a version to people who write it: what stands there counts.
            let written = text.get(span.start as usize..span.end as usize).map(str::trim);
            let written = written.filter(|written| written.parse::<f64>().is_ok());
            Yaml::Number(written.map_or_else(|| value.to_string().into(), Into::into))
        }
        Raw::Text(value) => Yaml::Text(value.into()),
        Raw::List(elements) => Yaml::List(elements.into_iter().map(|e| placed(e, file, text)).collect()),
        Raw::Map(entries) => {
            let entry = |(key, value): (Spanned<String>, Spanned<Raw>)| {
                let span = span_of(key.referenced, file, text);
                let text_of_key = Key {
                    text: key.value.into(),
                    span,
                };
                (text_of_key, placed(value, file, text))
            };
            Yaml::Map(entries.into_iter().map(entry).collect())
        }
    };
    Node { value, span }
}

fn span_of(location: Location, file: FileId, text: &str) -> Span {
    let span = location.span();
    let (start, length) = match (span.byte_offset(), span.byte_len()) {
        (Some(start), Some(length)) => (start as usize, length as usize),
        _ => {
            let mut lines = text.split_inclusive('\n');
            let before = (location.line() as usize).saturating_sub(1);
            let start: usize = lines.by_ref().take(before).map(str::len).sum();
            let line = lines.next().unwrap_or("").chars();
            let column = (location.column() as usize).saturating_sub(1);
            (start + line.take(column).map(char::len_utf8).sum::<usize>(), 0)
        }
    };
    let start = start.min(text.len());
    let end = (start + length).min(text.len());
    // What is nested ends where the next begins; what is shown of it is its first line.
    let shown = text.get(start..end).unwrap_or("");
    let line = shown.lines().next().unwrap_or("").trim_end();
    Span::new(file, start as u32, (start + line.len()) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_know_where_they_stand() {
        let text = "name: a\nversion: 1.10\nlist: [x, 2]\nmap:\n  inner: true\n";
        let node = parse(FileId(0), text).expect("it is YAML");
        let map = node.map().expect("it is a map");
        let written = |span: Span| &text[span.start as usize..span.end as usize];
        let keys: Vec<&str> = map.iter().map(|(key, _)| written(key.span)).collect();
        assert_eq!(keys, ["name", "version", "list", "map"]);
        assert_eq!(map[1].1.text().as_deref(), Some("1.10"));
        assert_eq!(written(map[0].1.span), "a");
        let Yaml::List(list) = &map[2].1.value else {
            panic!("it is a list");
        };
        assert_eq!(written(list[1].span), "2");
        let inner = map[3].1.map().expect("it is a map");
        assert_eq!(written(inner[0].1.span), "true");
    }

    #[test]
    fn what_is_no_yaml_is_refused_at_its_place() {
        let text = "name: a\nother: [1, 2\n";
        let malformed = parse(FileId(0), text).expect_err("the list is open");
        assert!(!malformed.reason.is_empty());
        assert!(malformed.span.start >= 8, "{malformed:?}");
    }

    #[test]
    fn a_file_of_comments_is_nothing() {
        let node = parse(FileId(0), "# x\n\n").expect("it is YAML");
        assert!(matches!(node.value, Yaml::Null));
    }
}
