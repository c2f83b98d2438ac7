//! A file of settings as its lines. Lines without edits are written as they were read, byte by byte.

use std::collections::BTreeMap;
use std::ops::Range;

use setpoint_engine::DriftValue;

use super::dialect::{Dialect, Setting};
use crate::text_edit::Difference;
use crate::text_lines::{bare, end_last_line, end_of_lines, lines};

/// The first bytes of some files.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A file of settings.
#[derive(Debug)]
pub(super) struct Document<'a> {
    rules: &'a Rules,
    entries: Vec<Entry>,
    /// The end of its lines.
    end: &'static [u8],
    pub(super) differences: Vec<Difference>,
}

/// How a document is read and written.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) dialect: Dialect,
    pub(super) ignore_case: bool,
    /// Between the keys and values of new lines. None: as the file has it.
    pub(super) separator: Option<String>,
}

/// A line, or a setting with the lines that continue it.
#[derive(Debug)]
struct Entry {
    text: Vec<u8>,
    /// Its number in the file that was read, from 1. 0 for a new line.
    number: usize,
    what: What,
}

#[derive(Debug)]
enum What {
    Section(Vec<u8>),
    Setting(Setting),
    /// A comment, which may be a setting that is commented out.
    Comment(Option<Setting>),
    Other,
}

/// The section to edit: one, or those of a name that have these settings.
#[derive(Debug)]
pub(super) struct Section<'a> {
    /// Empty for the lines before the first section.
    pub(super) name: &'a str,
    pub(super) having: &'a BTreeMap<String, String>,
}

/// The entries of a section.
#[derive(Debug, Clone)]
struct Found {
    /// The line of the name; none before the first section.
    header: Option<usize>,
    body: Range<usize>,
}

impl<'a> Document<'a> {
    /// Reads a document.
    ///
    /// # Errors
    /// With the number of a line that cannot be edited.
    pub(super) fn read(text: &[u8], rules: &'a Rules) -> Result<Document<'a>, String> {
        let dialect = rules.dialect;
        let lines = lines(text);
        let mut entries = Vec::new();
        let mut at = 0;
        while at < lines.len() {
            let number = at + 1;
            // A byte order mark is no part of the first line.
            let mark = match at {
                0 if lines[0].starts_with(BYTE_ORDER_MARK) => BYTE_ORDER_MARK.len(),
                _ => 0,
            };
            let line = &bare(lines[at])[mark..];
            let section = dialect
                .section(line)
                .map_err(|why| format!("{why} in line {number}"))?;
            let mut end = at + 1;
            let what = match (section, dialect.comment(line)) {
                (Some(name), _) => What::Section(name),
                (None, Some(comment)) => What::Comment(
                    dialect
                        .setting(line, comment, true)
                        .map(|setting| moved(setting, mark)),
                ),
                (None, None) if line.trim_ascii().is_empty() => What::Other,
                (None, None) => {
                    while end < lines.len() && dialect.continues(line, bare(lines[end - 1]), bare(lines[end]))
                    {
                        end += 1;
                    }
                    let whole = lines[at..end].concat();
                    let setting = dialect.setting(bare(&whole), mark, false);
                    setting.map_or(What::Other, What::Setting)
                }
            };
            entries.push(Entry {
                text: lines[at..end].concat(),
                number,
                what,
            });
            at = end;
        }
        Ok(Document {
            rules,
            entries,
            end: end_of_lines(text),
            differences: Vec::new(),
        })
    }

    pub(super) fn text(&self) -> Vec<u8> {
        self.entries
            .iter()
            .flat_map(|entry| &entry.text)
            .copied()
            .collect()
    }

    /// Gives a setting its value.
    ///
    /// # Errors
    /// When several sections have the key.
    pub(super) fn set(&mut self, section: &Section<'_>, key: &str, value: &str) -> Result<(), String> {
        let found = self.find(section)?;
        let holders = self.holders(&found, key, section)?;
        let lines = self.settings_of(&holders, key);
        if let Some((last, surplus)) = lines.split_last() {
            if !self.has_value(*last, value) {
                let is = self.value_of(*last);
                self.tell(field(section, key), Some(&is), Some(value));
                self.write_value(*last, value);
            }
            self.remove_told(surplus);
            return Ok(());
        }
        self.tell(field(section, key), None, Some(value));
        match self.commented(&found, key) {
            Some(at) => self.activate(at, value),
            None => self.add(section, &[(key, value)])?,
        }
        Ok(())
    }

    /// Gives a key that stands in several lines its values, in this order.
    ///
    /// # Errors
    /// When several sections have the key.
    pub(super) fn set_list(
        &mut self,
        section: &Section<'_>,
        key: &str,
        values: &[String],
    ) -> Result<(), String> {
        let found = self.find(section)?;
        let holders = self.holders(&found, key, section)?;
        let lines = self.settings_of(&holders, key);
        // In unit files, an empty value first drops the values of other files.
        let reset = (self.rules.dialect == Dialect::Systemd && !values.is_empty()).then_some("");
        let wanted: Vec<&str> = reset
            .into_iter()
            .chain(values.iter().map(String::as_str))
            .collect();
        let is_right = |(at, value): (&usize, &&str)| self.has_value(*at, value);
        if lines.len() == wanted.len() && lines.iter().zip(&wanted).all(is_right) {
            return Ok(());
        }
        let shown = |at: &usize| String::from_utf8_lossy(&self.value_of(*at)).into_owned();
        let shown: Vec<String> = lines.iter().map(shown).collect();
        let is = (!shown.is_empty()).then(|| shown.join(", "));
        let want = (!wanted.is_empty()).then(|| wanted.join(", "));
        self.tell(
            field(section, key),
            is.as_deref().map(str::as_bytes),
            want.as_deref(),
        );
        for (at, value) in lines.iter().zip(&wanted) {
            if !self.has_value(*at, value) {
                self.write_value(*at, value);
            }
        }
        let common = lines.len().min(wanted.len());
        let missing: Vec<(&str, &str)> = wanted[common..].iter().map(|value| (key, *value)).collect();
        match lines[..common].last() {
            Some(last) if !missing.is_empty() => self.add_after(*last, &missing)?,
            None if !missing.is_empty() => self.add(section, &missing)?,
            _ => self.remove(&lines[common..]),
        }
        Ok(())
    }

    /// Removes all lines of a key.
    ///
    /// # Errors
    /// When several sections have the key.
    pub(super) fn unset(&mut self, section: &Section<'_>, key: &str) -> Result<(), String> {
        let found = self.find(section)?;
        let holders = self.holders(&found, key, section)?;
        let lines = self.settings_of(&holders, key);
        if let Some((last, surplus)) = lines.split_last() {
            let is = self.value_of(*last);
            self.tell(field(section, key), Some(&is), None);
            self.remove(&[*last]);
            self.remove_told(surplus);
        }
        Ok(())
    }

    /// Removes sections with all that is in them, and the comments directly above.
    ///
    /// # Errors
    /// When the section is the lines before the first one.
    pub(super) fn remove_section(&mut self, section: &Section<'_>) -> Result<(), String> {
        let found = self.find(section)?;
        let mut gone = Vec::new();
        for found in &found {
            let header = found
                .header
                .ok_or("the lines before the first section cannot be removed")?;
            let end = self.comments_above(found.body.end).max(header + 1);
            gone.extend(self.comments_above(header)..end);
        }
        if !gone.is_empty() {
            let text: Vec<u8> = gone
                .iter()
                .flat_map(|at| &self.entries[*at].text)
                .copied()
                .collect();
            self.differences.push(Difference {
                field: section.name.to_owned(),
                is: DriftValue::content(&text),
                want: DriftValue::Absent,
                is_existence: true,
            });
            self.remove(&gone);
        }
        Ok(())
    }

    fn tell(&mut self, field: String, is: Option<&[u8]>, want: Option<&str>) {
        let is = is.map(|is| String::from_utf8_lossy(is).into_owned());
        self.differences.push(Difference {
            field,
            is: is.into(),
            want: want.into(),
            is_existence: false,
        });
    }

    /// All sections, those of one name included several times. The lines before the first one are a section without a name.
    fn sections(&self) -> Vec<(&[u8], Found)> {
        let headers = self
            .entries
            .iter()
            .enumerate()
            .filter_map(|(at, entry)| match &entry.what {
                What::Section(name) => Some((at, name.as_slice())),
                _ => None,
            });
        let headers: Vec<(usize, &[u8])> = headers.collect();
        let ends = headers.iter().map(|(at, _)| *at).chain([self.entries.len()]);
        let ends: Vec<usize> = ends.collect();
        let before_all = Found {
            header: None,
            body: 0..ends[0],
        };
        let named = headers.iter().zip(&ends[1..]).map(|((at, name), end)| {
            let found = Found {
                header: Some(*at),
                body: at + 1..*end,
            };
            (*name, found)
        });
        std::iter::once((&b""[..], before_all)).chain(named).collect()
    }

    /// The sections of this name with these settings.
    fn find(&self, section: &Section<'_>) -> Result<Vec<Found>, String> {
        let Rules {
            dialect, ignore_case, ..
        } = *self.rules;
        let is_meant = |name: &[u8], found: &Found| match section.name {
            "" => found.header.is_none(),
            wanted => found.header.is_some() && dialect.is_same_section(name, wanted.as_bytes(), ignore_case),
        };
        let has = |found: &Found, key: &str, value: &str| {
            let lines = self.settings_of(std::slice::from_ref(found), key);
            lines.last().is_some_and(|last| self.has_value(*last, value))
        };
        let sections = self.sections().into_iter();
        let found: Vec<Found> = sections
            .filter(|(name, found)| is_meant(name, found))
            .map(|(_, found)| found)
            .filter(|found| section.having.iter().all(|(key, value)| has(found, key, value)))
            .collect();
        if !section.having.is_empty() && found.len() > 1 {
            let lines = self.numbers(found.iter().filter_map(|found| found.header));
            return Err(format!(
                "several sections [{}] fit `where`, in lines {lines}",
                section.name
            ));
        }
        Ok(found)
    }

    /// The sections that have a key; at most one.
    fn holders(&self, found: &[Found], key: &str, section: &Section<'_>) -> Result<Vec<Found>, String> {
        let has = |found: &&Found| !self.settings_of(std::slice::from_ref(*found), key).is_empty();
        let holders: Vec<Found> = found.iter().filter(has).cloned().collect();
        match holders.len() {
            0 | 1 => Ok(holders),
            _ => Err(format!(
                "the section [{}] stands in lines {}, each with `{key}`; `where` picks one of them",
                section.name,
                self.numbers(holders.iter().filter_map(|found| found.header))
            )),
        }
    }

    fn numbers(&self, entries: impl Iterator<Item = usize>) -> String {
        let numbers: Vec<String> = entries.map(|at| self.entries[at].number.to_string()).collect();
        numbers.join(", ")
    }

    /// The entries that set a key in these sections.
    fn settings_of(&self, found: &[Found], key: &str) -> Vec<usize> {
        let bodies = found.iter().flat_map(|found| found.body.clone());
        bodies
            .filter(|at| match &self.entries[*at].what {
                What::Setting(setting) => self.is_key(*at, setting, key),
                _ => false,
            })
            .collect()
    }

    fn is_key(&self, at: usize, setting: &Setting, key: &str) -> bool {
        let written = &self.entries[at].text[setting.key.clone()];
        self.rules
            .dialect
            .is_same_key(written, key.as_bytes(), self.rules.ignore_case)
    }

    /// The last setting of a key that is commented out.
    fn commented(&self, found: &[Found], key: &str) -> Option<usize> {
        let mut bodies = found.iter().flat_map(|found| found.body.clone()).rev();
        bodies.find(|at| match &self.entries[*at].what {
            What::Comment(Some(setting)) => self.is_key(*at, setting, key),
            _ => false,
        })
    }

    fn value_of(&self, at: usize) -> Vec<u8> {
        let entry = &self.entries[at];
        match &entry.what {
            What::Setting(setting) if setting.separator.is_empty() && self.rules.dialect == Dialect::Git => {
                b"true".to_vec()
            }
            What::Setting(setting) => self.rules.dialect.decoded(&entry.text[setting.value.clone()]),
            _ => Vec::new(),
        }
    }

    /// Whether a setting has a value. Text behind it that looks like a comment may belong to it.
    fn has_value(&self, at: usize, value: &str) -> bool {
        let entry = &self.entries[at];
        let rest = match &entry.what {
            What::Setting(setting) => bare(&entry.text).get(setting.value.start..),
            _ => None,
        };
        self.value_of(at) == value.as_bytes()
            || (self.rules.dialect == Dialect::Ini
                && rest.is_some_and(|rest| rest.trim_ascii() == value.as_bytes()))
    }

    fn write_value(&mut self, at: usize, value: &str) {
        let separator = self.separator();
        let entry = &mut self.entries[at];
        let What::Setting(setting) = &mut entry.what else {
            return;
        };
        if setting.separator.is_empty() {
            let end = setting.key.end;
            entry.text.splice(end..end, separator.bytes());
            setting.separator = end..end + separator.len();
            let length = setting.value.len();
            setting.value = setting.separator.end..setting.separator.end + length;
        } else if setting.value.is_empty() && entry.text[setting.separator.clone()] == *b" =" {
            entry.text.insert(setting.separator.end, b' ');
            setting.separator.end += 1;
            setting.value = setting.separator.end..setting.separator.end;
        }
        let dialect = self.rules.dialect;
        let written = dialect.encoded(value);
        let follows = entry.text.get(setting.value.end).copied();
        entry.text.splice(setting.value.clone(), written.bytes());
        setting.value.end = setting.value.start + written.len();
        // A comment directly behind an empty value.
        if follows.is_some_and(|next| !next.is_ascii_whitespace()) && !written.is_empty() {
            entry.text.insert(setting.value.end, b' ');
        }
        // A value with a quote or the mark of a comment in it can make the comment of the line a part of it.
        let end = bare(&entry.text).len();
        let from = if entry.text.starts_with(BYTE_ORDER_MARK) {
            BYTE_ORDER_MARK.len()
        } else {
            0
        };
        let read = dialect.setting(&entry.text[..end], from, false);
        if read.is_none_or(|read| read.value != setting.value) {
            entry.text.drain(setting.value.end..end);
        }
    }

    /// Takes the mark of a comment away, and gives the setting its value.
    fn activate(&mut self, at: usize, value: &str) {
        let entry = &mut self.entries[at];
        let What::Comment(Some(setting)) = &entry.what else {
            return;
        };
        let setting = setting.clone();
        let mark = self.rules.dialect.comment(&entry.text).map_or(0, |end| end - 1);
        let gap = mark..setting.key.start;
        // An `export` of a shell is between the mark and the key.
        let keeps = entry.text[gap.clone()]
            .windows(7)
            .position(|word| word == b"export ");
        let gap = gap.start..keeps.map_or(gap.end, |keep| gap.start + keep);
        let removed = gap.len();
        entry.text.drain(gap);
        entry.what = What::Setting(Setting {
            key: setting.key.start - removed..setting.key.end - removed,
            separator: setting.separator.start - removed..setting.separator.end - removed,
            value: setting.value.start - removed..setting.value.end - removed,
        });
        self.write_value(at, value);
    }

    /// Adds settings to a section, which is created if it is missing.
    fn add(&mut self, section: &Section<'_>, settings: &[(&str, &str)]) -> Result<(), String> {
        if let Some(found) = self.find(section)?.pop() {
            let mut body = found.body.clone();
            return match body.rfind(|at| matches!(self.entries[*at].what, What::Setting(_))) {
                Some(last) => self.add_after(last, settings),
                None => self.add_first(&found, settings),
            };
        }
        let is_after_text = self
            .entries
            .last()
            .is_some_and(|last| !last.text.trim_ascii().is_empty());
        if is_after_text {
            self.end_last_line();
            self.push(What::Other, self.end.to_vec());
        }
        let header = [b"[", section.name.as_bytes(), b"]", self.end].concat();
        self.push(What::Section(section.name.as_bytes().to_vec()), header);
        let having = section
            .having
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()));
        let all: Vec<(&str, &str)> = having
            .filter(|(key, _)| settings.iter().all(|(other, _)| other != key))
            .chain(settings.iter().copied())
            .collect();
        self.insert(self.entries.len(), &all, None)
    }

    /// Adds settings to a section that has none.
    fn add_first(&mut self, found: &Found, settings: &[(&str, &str)]) -> Result<(), String> {
        if let Some(header) = found.header {
            return self.insert(header + 1, settings, None);
        }
        let at = self.comments_above(found.body.end);
        self.insert(at, settings, None)?;
        let next = at + settings.len();
        if next < self.entries.len() {
            let empty = Entry {
                text: self.end.to_vec(),
                number: 0,
                what: What::Other,
            };
            self.entries.insert(next, empty);
        }
        Ok(())
    }

    fn add_after(&mut self, at: usize, settings: &[(&str, &str)]) -> Result<(), String> {
        let What::Setting(setting) = &self.entries[at].what else {
            return Ok(());
        };
        let text = &self.entries[at].text;
        let start = text[..setting.key.start]
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        let indent = text[..start].to_vec();
        self.insert(at + 1, settings, Some(indent))
    }

    fn insert(
        &mut self,
        at: usize,
        settings: &[(&str, &str)],
        indent: Option<Vec<u8>>,
    ) -> Result<(), String> {
        if let Some(before) = at.checked_sub(1).map(|before| &self.entries[before]) {
            let line = bare(&before.text);
            let is_comment = matches!(before.what, What::Comment(_));
            if !is_comment && self.rules.dialect.continues(line, line, b"") {
                return Err(format!(
                    "line {} ends with a backslash, so the next line would continue it",
                    before.number
                ));
            }
        }
        if at == self.entries.len() {
            self.end_last_line();
        }
        let dialect = self.rules.dialect;
        let separator = self.separator();
        let indent = indent.unwrap_or_else(|| dialect.indent().as_bytes().to_vec());
        for (place, (key, value)) in settings.iter().enumerate() {
            let mut text = indent.clone();
            let start = text.len();
            text.extend_from_slice(key.as_bytes());
            let key = start..text.len();
            // Nothing stands behind the separator of an empty value.
            let separator = match value.is_empty() && !separator.trim().is_empty() {
                true => separator.trim_end(),
                false => &separator,
            };
            text.extend_from_slice(separator.as_bytes());
            let separator = key.end..text.len();
            text.extend_from_slice(dialect.encoded(value).as_bytes());
            let value = separator.end..text.len();
            text.extend_from_slice(self.end);
            let entry = Entry {
                text,
                number: 0,
                what: What::Setting(Setting {
                    key,
                    separator,
                    value,
                }),
            };
            self.entries.insert(at + place, entry);
        }
        Ok(())
    }

    /// The separator of new settings: the same as in the last setting of the file with a value.
    fn separator(&self) -> String {
        if let Some(separator) = &self.rules.separator {
            return separator.clone();
        }
        let mut entries = self.entries.iter().rev();
        let found = entries.find_map(|entry| match &entry.what {
            What::Setting(setting) if !setting.separator.is_empty() && !setting.value.is_empty() => {
                std::str::from_utf8(&entry.text[setting.separator.clone()]).ok()
            }
            _ => None,
        });
        found.unwrap_or(self.rules.dialect.separator()).to_owned()
    }

    /// The first of the comments that stand directly above an entry.
    fn comments_above(&self, at: usize) -> usize {
        let above = self.entries[..at].iter().rev();
        at - above
            .take_while(|entry| matches!(entry.what, What::Comment(_)))
            .count()
    }

    fn end_last_line(&mut self) {
        if let Some(last) = self.entries.last_mut() {
            end_last_line(&mut last.text, self.end);
        }
    }

    fn push(&mut self, what: What, text: Vec<u8>) {
        self.entries.push(Entry {
            text,
            number: 0,
            what,
        });
    }

    /// Removes entries, and tells of each.
    fn remove_told(&mut self, gone: &[usize]) {
        for at in gone {
            let entry = &self.entries[*at];
            let is = String::from_utf8_lossy(bare(&entry.text)).into_owned();
            let field = format!("line {}", entry.number);
            self.differences.push(Difference {
                field,
                is: is.into(),
                want: DriftValue::Absent,
                is_existence: false,
            });
        }
        self.remove(gone);
    }

    fn remove(&mut self, gone: &[usize]) {
        let mut at = 0;
        self.entries.retain(|_| {
            at += 1;
            !gone.contains(&(at - 1))
        });
    }
}

/// The name of a setting in messages.
fn field(section: &Section<'_>, key: &str) -> String {
    match section.name {
        "" => key.to_owned(),
        name => format!("{name}.{key}"),
    }
}

fn moved(setting: Setting, by: usize) -> Setting {
    let moved = |range: Range<usize>| range.start + by..range.end + by;
    Setting {
        key: moved(setting.key),
        separator: moved(setting.separator),
        value: moved(setting.value),
    }
}
