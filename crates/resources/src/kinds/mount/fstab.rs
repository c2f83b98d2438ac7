//! `/etc/fstab`, fstab(5): one mount point's entry is edited, and every other byte stays.

use std::collections::BTreeMap;

use crate::text_lines::{bare, end_last_line, end_of_lines, lines};

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) device: String,
    pub(super) point: String,
    pub(super) kind: String,
    /// Without a value: an empty text.
    pub(super) options: BTreeMap<String, String>,
    pub(super) freq: u32,
    pub(super) passno: u32,
}

impl Entry {
    /// As a line, without its end.
    pub(super) fn line(&self) -> String {
        let options: Vec<String> = self
            .options
            .iter()
            .map(|(key, value)| match value.as_str() {
                "" => key.clone(),
                value => format!("{key}={value}"),
            })
            .collect();
        let options = match options.as_slice() {
            [] => "defaults".to_owned(),
            options => options.join(","),
        };
        let fields = [&self.device, &self.point, &self.kind, &options].map(|field| escaped(field));
        format!("{} {} {}", fields.join(" "), self.freq, self.passno)
    }

    /// The entry of a line; none for comments, and what is no entry.
    fn parse(line: &[u8]) -> Option<Entry> {
        let line = String::from_utf8_lossy(bare(line)).into_owned();
        let mut fields = line.split([' ', '\t']).filter(|field| !field.is_empty());
        let first = fields.next().filter(|field| !field.starts_with('#'))?;
        let (point, kind) = (fields.next()?, fields.next()?);
        let mut number = || fields.next().map(str::to_owned);
        let options = number().unwrap_or_else(|| "defaults".to_owned());
        let freq = number().map_or(Some(0), |text| text.parse().ok())?;
        let passno = number().map_or(Some(0), |text| text.parse().ok())?;
        let options = plain(&options)
            .split(',')
            .filter(|option| !option.is_empty())
            .map(|option| match option.split_once('=') {
                Some((key, value)) => (key.to_owned(), value.to_owned()),
                None => (option.to_owned(), String::new()),
            })
            .collect();
        Some(Entry {
            device: plain(first),
            point: plain(point),
            kind: plain(kind),
            options,
            freq,
            passno,
        })
    }

    /// Whether it says the same; no options are the default ones.
    fn says(&self, other: &Entry) -> bool {
        let options = |entry: &Entry| {
            let mut options = entry.options.clone();
            if options.is_empty() {
                options.insert("defaults".to_owned(), String::new());
            }
            options
        };
        let rest = |entry: &Entry| (entry.device.clone(), entry.kind.clone(), entry.freq, entry.passno);
        rest(self) == rest(other) && options(self) == options(other)
    }
}

/// Whether a line is the entry of a mount point, however wrong its other fields are.
fn is_of(line: &[u8], point: &str) -> bool {
    let line = String::from_utf8_lossy(bare(line)).into_owned();
    let mut fields = line.split([' ', '\t']).filter(|field| !field.is_empty());
    let is_entry = fields.next().is_some_and(|first| !first.starts_with('#'));
    let trimmed = |point: &str| match point.trim_end_matches('/') {
        "" => "/".to_owned(),
        point => point.to_owned(),
    };
    is_entry
        && fields
            .next()
            .is_some_and(|found| trimmed(&plain(found)) == trimmed(point))
}

/// The entries of a mount point as they stand there; none if there are none.
pub(super) fn shown(text: &[u8], point: &str) -> Option<String> {
    let own: Vec<String> = lines(text)
        .into_iter()
        .filter(|line| is_of(line, point))
        .map(|line| String::from_utf8_lossy(bare(line)).into_owned())
        .collect();
    (!own.is_empty()).then(|| own.join("\n"))
}

/// The text with this entry alone for a mount point, or with none; nothing if that is so already.
pub(super) fn edited(text: &[u8], point: &str, wanted: Option<&Entry>) -> Option<Vec<u8>> {
    let all = lines(text);
    let own: Vec<&[u8]> = all.iter().copied().filter(|line| is_of(line, point)).collect();
    let is_right = match (own.as_slice(), wanted) {
        ([], None) => true,
        ([line], Some(wanted)) => Entry::parse(line).is_some_and(|is| is.says(wanted)),
        _ => false,
    };
    if is_right {
        return None;
    }
    let mut edited = Vec::with_capacity(text.len() + 128);
    let mut to_write = wanted;
    for line in all {
        if !is_of(line, point) {
            edited.extend_from_slice(line);
        } else if let Some(entry) = to_write.take() {
            edited.extend_from_slice(entry.line().as_bytes());
            edited.extend_from_slice(&line[bare(line).len()..]);
        }
    }
    if let Some(entry) = to_write {
        let end = end_of_lines(text);
        end_last_line(&mut edited, end);
        edited.extend_from_slice(entry.line().as_bytes());
        edited.extend_from_slice(end);
    }
    Some(edited)
}

/// Blanks and the like as a backslash and three octal digits.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            ' ' | '\t' | '\n' | '\\' => escaped.push_str(&format!("\\{:03o}", u32::from(sign))),
            sign => escaped.push(sign),
        }
    }
    escaped
}

fn plain(text: &str) -> String {
    let bytes = setpoint_host::mounts::unescape(text.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(point: &str, options: &[(&str, &str)]) -> Entry {
        let options = options
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Entry {
            device: "tmpfs".to_owned(),
            point: point.to_owned(),
            kind: "tmpfs".to_owned(),
            options: options.collect(),
            freq: 0,
            passno: 0,
        }
    }

    fn edit(text: &str, wanted: &Entry) -> Option<String> {
        let edited = edited(text.as_bytes(), &wanted.point, Some(wanted))?;
        Some(String::from_utf8(edited).expect("texts stay texts"))
    }

    #[test]
    fn everything_else_stays_byte_for_byte() {
        let text = "# mine\n\n/dev/sda1\t/  ext4 defaults 0 1\nnone swap swap sw\n  broken\n tmpfs /a tmpfs size=1m 0 0\n# end";
        let wanted = entry("/a", &[("size", "2m"), ("nosuid", "")]);
        let edited = edit(text, &wanted).unwrap();
        assert_eq!(
            edited,
            text.replace(" tmpfs /a tmpfs size=1m 0 0", "tmpfs /a tmpfs nosuid,size=2m 0 0")
        );
        assert_eq!(
            edit(&edited, &wanted),
            None,
            "a second time there is nothing to do"
        );
        let gone = super::edited(text.as_bytes(), "/a", None).unwrap();
        assert_eq!(
            gone,
            text.replace(" tmpfs /a tmpfs size=1m 0 0\n", "").into_bytes()
        );
    }

    #[test]
    fn ends_of_lines_and_blanks_in_names_are_kept() {
        let wanted = entry("/a b", &[]);
        assert_eq!(
            edit("x /x y\r\nz", &wanted).unwrap(),
            "x /x y\r\nz\r\ntmpfs /a\\040b tmpfs defaults 0 0\r\n"
        );
        assert_eq!(
            edit("tmpfs /a\\040b tmpfs\n", &wanted),
            None,
            "three fields are enough"
        );
        assert_eq!(edit("tmpfs /a\\040b/ tmpfs defaults 0 0\n", &wanted), None);
    }

    #[test]
    fn of_several_entries_for_a_point_one_stays() {
        let wanted = entry("/a", &[]);
        assert_eq!(
            edit("x /a y\nb /b c\ntmpfs /a tmpfs\n", &wanted).unwrap(),
            "tmpfs /a tmpfs defaults 0 0\nb /b c\n"
        );
    }
}
