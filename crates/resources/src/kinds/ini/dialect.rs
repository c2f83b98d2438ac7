//! The dialects of files with settings: which lines are sections, comments and settings, and how values are written.

use std::borrow::Cow;

use setpoint_engine::Words;

/// The syntax of a file of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Ini,
    Properties,
    Env,
    Systemd,
    Git,
    Desktop,
}

impl Words for Dialect {
    const ONE: &'static str = "a dialect";

    fn words() -> impl Iterator<Item = (&'static str, Dialect)> {
        [
            ("ini", Dialect::Ini),
            ("properties", Dialect::Properties),
            ("env", Dialect::Env),
            ("systemd", Dialect::Systemd),
            ("git", Dialect::Git),
            ("desktop", Dialect::Desktop),
        ]
        .into_iter()
    }
}

/// A setting in a line: the parts of the text, as offsets from its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) key: std::ops::Range<usize>,
    /// From the end of the key to the value.
    pub(super) separator: std::ops::Range<usize>,
    /// The written value. An inline comment and the end of the line follow it.
    pub(super) value: std::ops::Range<usize>,
}

impl Dialect {
    pub(super) fn has_sections(self) -> bool {
        !matches!(self, Dialect::Properties | Dialect::Env)
    }

    fn comment_marks(self) -> &'static [u8] {
        match self {
            Dialect::Ini | Dialect::Systemd | Dialect::Git => b"#;",
            Dialect::Properties => b"#!",
            Dialect::Env | Dialect::Desktop => b"#",
        }
    }

    /// Between key and value, where the file shows no other form.
    pub(super) fn separator(self) -> &'static str {
        match self {
            Dialect::Ini | Dialect::Git => " = ",
            _ => "=",
        }
    }

    /// Before the key of a new line, where the file shows no other form.
    pub(super) fn indent(self) -> &'static str {
        match self {
            Dialect::Git => "\t",
            _ => "",
        }
    }

    /// Whether a separator can be written.
    pub(super) fn takes_separator(self, separator: &str) -> bool {
        match (self, separator.trim()) {
            (Dialect::Env, _) => separator == "=",
            (Dialect::Properties, "") => !separator.is_empty(),
            (_, "=") | (Dialect::Ini | Dialect::Properties, ":") => true,
            _ => false,
        }
    }

    /// Whether a value can span lines when it is written.
    pub(super) fn takes_line_feeds(self) -> bool {
        matches!(self, Dialect::Properties | Dialect::Git)
    }

    /// The offset behind the comment mark of a line, if it is a comment.
    pub(super) fn comment(self, line: &[u8]) -> Option<usize> {
        let start = blanks(line, 0);
        let mark = line.get(start)?;
        self.comment_marks().contains(mark).then_some(start + 1)
    }

    /// The name of the section that a line begins.
    ///
    /// # Errors
    /// When something stands behind the brackets.
    pub(super) fn section(self, line: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let start = blanks(line, 0);
        if !self.has_sections() || line.get(start) != Some(&b'[') {
            return Ok(None);
        }
        let mut quoted = false;
        let end = line[start..].iter().position(|byte| {
            quoted ^= *byte == b'"' && self == Dialect::Git;
            *byte == b']' && !quoted
        });
        let Some(end) = end.map(|end| start + end) else {
            return Ok(None);
        };
        let rest = line[end + 1..].trim_ascii();
        if !rest.is_empty() && !self.comment_marks().contains(&rest[0]) {
            return Err("something stands behind the brackets of a section".to_owned());
        }
        Ok(Some(line[start + 1..end].trim_ascii().to_vec()))
    }

    /// Whether the next line continues this one. `first` is the first line of the setting.
    pub(super) fn continues(self, first: &[u8], line: &[u8], next: &[u8]) -> bool {
        match self {
            Dialect::Properties | Dialect::Systemd | Dialect::Git => {
                let backslashes = line.iter().rev().take_while(|byte| **byte == b'\\').count();
                backslashes % 2 == 1
                    || (self == Dialect::Systemd && line.len() != first.len() && self.comment(line).is_some())
            }
            Dialect::Ini => {
                let is_deeper = blanks(next, 0) > blanks(first, 0);
                is_deeper && !next.trim_ascii().is_empty() && self.comment(next).is_none()
            }
            Dialect::Env | Dialect::Desktop => false,
        }
    }

    /// The setting in a text, from an offset. The text ends without its last line end. `needs_separator` is set in a comment.
    pub(super) fn setting(self, text: &[u8], from: usize, needs_separator: bool) -> Option<Setting> {
        let mut start = blanks(text, from);
        if self == Dialect::Env && text[start..].starts_with(b"export ") {
            start = blanks(text, start + "export ".len());
        }
        let (key_end, value_start) = self.separation(text, start)?;
        let has_separator = text[key_end..value_start].iter().any(|byte| b"=:".contains(byte))
            || (self == Dialect::Properties && value_start > key_end);
        if key_end == start || (needs_separator && !has_separator) {
            return None;
        }
        let end = value_start + self.value_end(&text[value_start..]);
        Some(Setting {
            key: start..key_end,
            separator: key_end..value_start,
            value: value_start..end,
        })
    }

    /// The end of the key and the start of the value.
    fn separation(self, text: &[u8], start: usize) -> Option<(usize, usize)> {
        let line_end = text[start..]
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(text.len(), |end| start + end);
        let line = &text[start..line_end];
        let separators: &[u8] = match self {
            Dialect::Ini => b"=:",
            _ => b"=",
        };
        let (key, at) = match self {
            Dialect::Properties => {
                let mut escaped = false;
                let end = line.iter().position(|byte| {
                    let ends = !escaped && b"=: \t\x0c".contains(byte);
                    escaped = *byte == b'\\' && !escaped;
                    ends
                });
                let key = start + end.unwrap_or(line.len());
                let at = blanks(text, key);
                let is_sign = text.get(at).is_some_and(|byte| b"=:".contains(byte));
                return Some((key, blanks(text, at + usize::from(is_sign)).min(text.len())));
            }
            Dialect::Env => {
                let end = line.iter().position(|byte| *byte == b'=')?;
                let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
                if !line[..end].iter().all(is_name) {
                    return None;
                }
                return Some((start + end, start + end + 1));
            }
            _ => match line.iter().position(|byte| separators.contains(byte)) {
                Some(at) => (line[..at].trim_ascii_end().len(), Some(at)),
                // A key alone: `skip-networking` of MySQL, `bare` of git.
                None => (line[..self.value_end(line)].trim_ascii_end().len(), None),
            },
        };
        if self == Dialect::Git {
            let is_key = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
            if !line[..key].iter().all(is_key) {
                return None;
            }
        }
        let value = match at {
            Some(at) => blanks(text, start + at + 1),
            None => start + key,
        };
        Some((start + key, value))
    }

    /// The length of a value without an inline comment and blanks at its end.
    fn value_end(self, text: &[u8]) -> usize {
        let mut quote = None;
        let mut before = b' ';
        let mut end = text.len();
        let mut is_escaped = false;
        if matches!(self, Dialect::Ini | Dialect::Env | Dialect::Git) {
            for (at, byte) in text.iter().enumerate() {
                let has_escapes = self != Dialect::Ini && quote != Some(b'\'');
                let was_escaped = is_escaped;
                is_escaped = has_escapes && !was_escaped && *byte == b'\\';
                if was_escaped {
                    before = *byte;
                    continue;
                }
                let is_mark = self.comment_marks().contains(byte);
                // In git's files a comment needs no blank before it.
                let is_apart = before.is_ascii_whitespace() || self == Dialect::Git;
                match quote {
                    None if is_mark && is_apart && (at > 0 || self != Dialect::Env) => {
                        end = at;
                        break;
                    }
                    None if *byte == b'"' || (*byte == b'\'' && self != Dialect::Git) => quote = Some(*byte),
                    Some(open) if open == *byte => quote = None,
                    _ => {}
                }
                before = *byte;
            }
            if quote.is_some() {
                end = text.len();
            }
        }
        text[..end].trim_ascii_end().len()
    }

    /// The meaning of a written value.
    pub(super) fn decoded(self, written: &[u8]) -> Vec<u8> {
        match self {
            Dialect::Ini => lines_joined(written, "\n"),
            Dialect::Desktop => written.to_vec(),
            Dialect::Systemd => {
                let mut parts: Vec<&[u8]> = Vec::new();
                for line in written.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
                    if parts.is_empty() || self.comment(line).is_none() {
                        parts.push(line.strip_suffix(b"\\").unwrap_or(line).trim_ascii_end());
                    }
                }
                parts.join(&b' ')
            }
            Dialect::Properties => unescaped(&continued(written)),
            Dialect::Env => unquoted(written).unwrap_or_else(|| written.to_vec()),
            Dialect::Git => git_value(&continued(written)),
        }
    }

    /// The written form of a value.
    pub(super) fn encoded(self, value: &str) -> Cow<'_, str> {
        match self {
            Dialect::Ini | Dialect::Desktop | Dialect::Systemd => value.into(),
            Dialect::Properties => {
                let text = value
                    .replace('\\', "\\\\")
                    .replace('\n', "\\n")
                    .replace('\t', "\\t");
                match text.starts_with(' ') {
                    true => format!("\\{text}").into(),
                    false => text.into(),
                }
            }
            Dialect::Env => {
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./:@%+,-".contains(&byte);
                if value.bytes().all(is_plain) {
                    value.into()
                } else if value.contains(['$', '`', '"', '\\']) && !value.contains('\'') {
                    format!("'{value}'").into()
                } else {
                    let mut text = value.replace('\\', "\\\\");
                    for sign in ["\"", "$", "`"] {
                        text = text.replace(sign, &format!("\\{sign}"));
                    }
                    format!("\"{text}\"").into()
                }
            }
            Dialect::Git => {
                let escaped = value
                    .replace('\\', "\\\\")
                    .replace('"', "\\\"")
                    .replace('\n', "\\n")
                    .replace('\t', "\\t");
                let needs_quotes = value.trim() != value || value.contains(['#', ';']);
                match needs_quotes {
                    true => format!("\"{escaped}\"").into(),
                    false => escaped.into(),
                }
            }
        }
    }

    /// Whether two section names are the same.
    pub(super) fn is_same_section(self, a: &[u8], b: &[u8], ignore_case: bool) -> bool {
        match self {
            Dialect::Git => {
                let parts = |name: &[u8]| {
                    let at = name.iter().position(|byte| *byte == b'"').unwrap_or(name.len());
                    (name[..at].trim_ascii().to_ascii_lowercase(), name[at..].to_vec())
                };
                parts(a) == parts(b)
            }
            _ if ignore_case => a.eq_ignore_ascii_case(b),
            _ => a == b,
        }
    }

    /// Whether two keys are the same.
    pub(super) fn is_same_key(self, a: &[u8], b: &[u8], ignore_case: bool) -> bool {
        match ignore_case || self == Dialect::Git {
            true => a.eq_ignore_ascii_case(b),
            false => a == b,
        }
    }
}

/// The offset of the first byte from an offset that is no blank.
fn blanks(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    from + rest
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count()
}

fn lines_joined(written: &[u8], with: &str) -> Vec<u8> {
    let lines: Vec<&[u8]> = written
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .collect();
    lines.join(with.as_bytes())
}

/// The text without line breaks behind a backslash, and without the blanks after them.
fn continued(written: &[u8]) -> Vec<u8> {
    let mut lines = written.split(|byte| *byte == b'\n');
    let bare = |line: &[u8]| line.strip_suffix(b"\r").unwrap_or(line).to_vec();
    let mut all = lines.next().map(bare).unwrap_or_default();
    for line in lines {
        if all.last() == Some(&b'\\') {
            all.pop();
        }
        all.extend_from_slice(&bare(line)[blanks(line, 0).min(bare(line).len())..]);
    }
    all
}

/// The meaning of a value of a Java properties file.
fn unescaped(written: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(written);
    let mut all = String::new();
    let mut signs = text.chars();
    while let Some(sign) = signs.next() {
        if sign != '\\' {
            all.push(sign);
            continue;
        }
        match signs.next() {
            Some('n') => all.push('\n'),
            Some('t') => all.push('\t'),
            Some('r') => all.push('\r'),
            Some('f') => all.push('\u{c}'),
            Some('u') => {
                let digits: String = signs.by_ref().take(4).collect();
                let sign = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                all.push(sign.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(other) => all.push(other),
            None => {}
        }
    }
    all.into_bytes()
}

/// The meaning of a value of git's configuration.
fn git_value(written: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    let mut bytes = written.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => {}
            b'\\' => match bytes.next() {
                Some(b'n') => all.push(b'\n'),
                Some(b't') => all.push(b'\t'),
                Some(b'b') => all.push(8),
                Some(other) => all.push(*other),
                None => {}
            },
            other => all.push(*other),
        }
    }
    all
}

/// The meaning of a value that a shell would read; none if quotes are not closed.
fn unquoted(written: &[u8]) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    let mut quote = None;
    let mut bytes = written.iter().peekable();
    while let Some(byte) = bytes.next() {
        match (quote, byte) {
            (None, b'\'' | b'"') => quote = Some(*byte),
            (Some(open), close) if open == *close => quote = None,
            (None, b'\\') => all.extend(bytes.next()),
            (Some(b'"'), b'\\') => match bytes.peek() {
                Some(b'"' | b'\\' | b'$' | b'`') => all.extend(bytes.next()),
                _ => all.push(b'\\'),
            },
            (_, other) => all.push(*other),
        }
    }
    quote.is_none().then_some(all)
}
