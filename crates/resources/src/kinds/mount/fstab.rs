//! `/etc/fstab`, fstab(5): one mount point's entry is edited, and every other byte stays. In the entry itself only what is wrong is written anew: what separates its fields, and the
//! order of its options, stay as somebody has written them. Options that come to it are sorted.

use super::options::{self, Options};
use crate::text_lines::{bare, end_last_line, end_of_lines, lines};

/// An entry.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) device: String,
    pub(super) point: String,
    pub(super) kind: String,
    pub(super) options: Options,
    pub(super) freq: u32,
    pub(super) passno: u32,
}

impl Entry {
    /// As a line, without its end.
    pub(super) fn line(&self) -> String {
        let options = self.written_options();
        let fields = [&self.device, &self.point, &self.kind, &options].map(|field| escaped(field));
        format!("{} {} {}", fields.join(" "), self.freq, self.passno)
    }

    fn written_options(&self) -> String {
        let options: Vec<String> = self.options.iter().map(options::shown).collect();
        match options.as_slice() {
            [] => "defaults".to_owned(),
            options => options.join(","),
        }
    }

    /// The entry of a line; none for comments, and what is no entry.
    fn parse(line: &[u8]) -> Option<Entry> {
        let line = String::from_utf8_lossy(bare(line)).into_owned();
        let mut fields = line.split([' ', '\t']).filter(|field| !field.is_empty());
        let first = fields.next().filter(|field| !field.starts_with('#'))?;
        let (point, kind) = (fields.next()?, fields.next()?);
        let mut number = || fields.next().map(str::to_owned);
        let written = number().unwrap_or_else(|| "defaults".to_owned());
        let freq = number().map_or(Some(0), |text| text.parse().ok())?;
        let passno = number().map_or(Some(0), |text| text.parse().ok())?;
        Some(Entry {
            device: plain(first),
            point: plain(point),
            kind: plain(kind),
            options: Options::written(&plain(&written)),
            freq,
            passno,
        })
    }

    /// Whether it says the same.
    fn says(&self, other: &Entry) -> bool {
        let rest = |entry: &Entry| (entry.device.clone(), entry.kind.clone(), entry.freq, entry.passno);
        rest(self) == rest(other) && self.options.are_as(&other.options)
    }

    /// A line of its mount point, made to say what it says. Without its end, as the result.
    fn written_into(&self, line: &[u8]) -> Vec<u8> {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let mut rest = line;
        let mut written = Vec::with_capacity(line.len() + 32);
        for (at, wanted) in self.fields().into_iter().enumerate() {
            let blanks = rest.iter().take_while(|byte| is_blank(byte)).count();
            let length = rest[blanks..].iter().take_while(|byte| !is_blank(byte)).count();
            let (separator, field) = (&rest[..blanks], &rest[blanks..blanks + length]);
            if field.is_empty() {
                // What can be left out is, unless something has to stand behind it.
                if self.fields_from(at).any(|(wanted, default)| wanted != default) {
                    if written.last().is_some_and(|last| !is_blank(last)) {
                        written.push(b' ');
                    }
                    written.extend_from_slice(wanted.as_bytes());
                }
                continue;
            }
            rest = &rest[blanks + length..];
            written.extend_from_slice(separator);
            let is = String::from_utf8_lossy(field);
            match at {
                OPTIONS => written.extend_from_slice(self.options_written_into(&is).as_bytes()),
                _ if plain(&is) == plain(&wanted) || at == POINT => written.extend_from_slice(field),
                _ => written.extend_from_slice(wanted.as_bytes()),
            }
        }
        written.extend_from_slice(rest);
        written
    }

    /// The fields of the line.
    fn fields(&self) -> Vec<String> {
        self.line().split(' ').map(str::to_owned).collect()
    }

    /// The fields from one on, each with what it is when it is left out; those that cannot be left out with nothing.
    fn fields_from(&self, at: usize) -> impl Iterator<Item = (String, &'static str)> {
        let defaults = ["", "", "", "defaults", "0", "0"];
        self.fields().into_iter().zip(defaults).skip(at)
    }

    /// Options of a line as they are wanted.
    fn options_written_into(&self, line: &str) -> String {
        if Options::written(&plain(line)).are_as(&self.options) {
            return line.to_owned();
        }
        let mut missing: Vec<(&str, &str)> = self.options.iter().collect();
        let mut written: Vec<String> = Vec::new();
        for own in line.split(',') {
            let plain = plain(own);
            let key = plain.split('=').next().unwrap_or_default();
            if let Some(at) = missing.iter().position(|(wanted, _)| *wanted == key) {
                let wanted = options::shown(missing.remove(at));
                written.push(match wanted == plain {
                    true => own.to_owned(),
                    false => escaped(&wanted),
                });
            }
        }
        written.extend(
            missing
                .into_iter()
                .map(|missing| escaped(&options::shown(missing))),
        );
        // An order that means something else is not kept.
        let means = Options::written(&plain(&written.join(",")));
        match written.as_slice() {
            [] => "defaults".to_owned(),
            written if means.are_as(&self.options) => written.join(","),
            _ => escaped(&self.written_options()),
        }
    }
}

/// Where the mount point stands in a line, and where the options do.
const POINT: usize = 1;
const OPTIONS: usize = 3;

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
    // Of several one stays: the one that is right, or else the first.
    let kept = wanted.and_then(|wanted| {
        let is_right = |line: &&&[u8]| Entry::parse(line).is_some_and(|is| is.says(wanted));
        own.iter().find(is_right).or(own.first()).copied()
    });
    let mut edited = Vec::with_capacity(text.len() + 128);
    let mut to_write = wanted;
    for line in all {
        if !is_of(line, point) {
            edited.extend_from_slice(line);
        } else if kept.is_some_and(|kept| std::ptr::eq(kept, line))
            && let Some(entry) = to_write.take()
        {
            edited.extend_from_slice(&entry.written_into(bare(line)));
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
            options: Options::unordered(&options.collect()),
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
            text.replace(
                " tmpfs /a tmpfs size=1m 0 0",
                " tmpfs /a tmpfs size=2m,nosuid 0 0"
            )
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
            edit("x /a y\nb /b c\ntmpfs\t/a tmpfs\n", &wanted).unwrap(),
            "b /b c\ntmpfs\t/a tmpfs\n",
            "the one that is right"
        );
        assert_eq!(
            edit("x /a y\nb /b c\nz /a tmpfs\n", &wanted).unwrap(),
            "tmpfs /a tmpfs\nb /b c\n"
        );
    }

    #[test]
    fn of_an_entry_only_what_is_wrong_is_written() {
        let wanted = entry(
            "/a",
            &[("size", "2m"), ("nosuid", ""), ("mode", "700"), ("x", "a b")],
        );
        for (is, shall) in [
            (
                "tmpfs\t/a   tmpfs\tnosuid,size=1m,ro,mode=700\t0 0  # why",
                "tmpfs\t/a   tmpfs\tnosuid,size=2m,mode=700,x=a\\040b\t0 0  # why",
            ),
            ("tmpfs /a tmpfs mode=700,x=a\\040b,size=2m,nosuid,size=2m", ""),
            (
                "other\t/a/\ttmpfs\tx=a\\040b,mode=700,size=2m,nosuid",
                "tmpfs\t/a/\ttmpfs\tx=a\\040b,mode=700,size=2m,nosuid",
            ),
            (
                "tmpfs /a ext4",
                "tmpfs /a tmpfs mode=700,nosuid,size=2m,x=a\\040b",
            ),
            ("tmpfs /a", "tmpfs /a tmpfs mode=700,nosuid,size=2m,x=a\\040b"),
            (
                "tmpfs /a tmpfs size=1m,size=3m,mode=700 1 2",
                "tmpfs /a tmpfs size=2m,mode=700,nosuid,x=a\\040b 0 0",
            ),
        ] {
            let edited = edit(&format!("{is}\r\n"), &wanted);
            let shall = (!shall.is_empty()).then(|| format!("{shall}\r\n"));
            assert_eq!(edited, shall, "{is}");
            if let Some(edited) = edited {
                assert_eq!(edit(&edited, &wanted), None, "{edited}");
            }
        }
        let by_users = entry("/a", &[("exec", ""), ("user", "")]);
        let line = "tmpfs /a tmpfs user,exec 0 0\n";
        assert_eq!(edit("", &by_users).unwrap(), line);
        assert_eq!(edit("tmpfs /a tmpfs exec,user 0 0\n", &by_users).unwrap(), line);
        assert_eq!(edit("tmpfs /a tmpfs exec 0 0\n", &by_users).unwrap(), line);
        // Fields that can be left out stay so, and come when others have to stand behind them.
        let numbered = Entry {
            passno: 2,
            ..entry("/a", &[])
        };
        assert_eq!(
            edit("tmpfs /a tmpfs\n", &numbered).unwrap(),
            "tmpfs /a tmpfs defaults 0 2\n"
        );
        assert_eq!(
            edit("tmpfs /a tmpfs defaults 0 \t1\n", &numbered).unwrap(),
            "tmpfs /a tmpfs defaults 0 \t2\n"
        );
        assert_eq!(
            edit("tmpfs /a tmpfs defaults some\n", &numbered).unwrap(),
            "tmpfs /a tmpfs defaults 0 2\n"
        );
        assert_eq!(
            edit("tmpfs /a tmpfs ro\n", &entry("/a", &[])).unwrap(),
            "tmpfs /a tmpfs defaults\n"
        );
    }
}
