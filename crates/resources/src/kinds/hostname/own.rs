//! The names of a machine without systemd-hostnamed: where that service has them, they are read and set there.
//!
//! The static one is `/etc/hostname` (hostname(5)), the pretty one a line of `/etc/machine-info` (machine-info(5)), and the transient one the kernel's.

use setpoint_engine::{Apply, Attempting, Failure};
use setpoint_host::files::{AbsolutePath, Entry, Replace};

use super::{KERNEL, Kept, MACHINE_INFO, STATIC};
use crate::text_lines::{self, bare, end_last_line, lines};
use crate::turns::Turn;

/// The variable that the pretty name is.
const PRETTY: &[u8] = b"PRETTY_HOSTNAME=";

impl Kept<'_> {
    /// The name, as the machine has it.
    pub(super) fn read_own(&self) -> Result<String, Failure> {
        match self.parameter {
            "pretty_hostname" => Ok(pretty(&text(MACHINE_INFO)?)),
            "static_hostname" => Ok(static_one(&text(STATIC)?)),
            _ => Ok(String::from_utf8_lossy(&text(KERNEL)?).trim_end().to_owned()),
        }
    }

    /// Sets it.
    pub(super) async fn set_own(&self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let (file, content) = match self.parameter {
            "pretty_hostname" => (MACHINE_INFO, None),
            "static_hostname" => (STATIC, Some(format!("{}\n", self.wanted).into_bytes())),
            _ => {
                let entry = Entry::at(&path(KERNEL)?).attempting("set", self.parameter)?;
                return entry
                    .write_parameter(self.wanted.as_bytes())
                    .attempting("set", self.parameter);
            }
        };
        let path = path(file)?;
        let _turn = Turn::at_file(&path, apply).await?;
        let content = match content {
            Some(content) => content,
            None => with_pretty(&text(file)?, self.wanted),
        };
        let is_new = text_lines::read(&path)?.is_none();
        let request = Replace::bytes(path, content).mode(is_new.then_some(0o644));
        apply.replace_at_once(request).map(drop)
    }
}

fn path(path: &'static str) -> Result<AbsolutePath, Failure> {
    AbsolutePath::new(path).attempting("use the path", path)
}

fn text(file: &'static str) -> Result<Vec<u8>, Failure> {
    Ok(text_lines::read(&path(file)?)?.unwrap_or_default())
}

/// The first line that is neither empty nor a comment.
fn static_one(text: &[u8]) -> String {
    let said = lines(text).into_iter().map(<[u8]>::trim_ascii);
    let mut said = said.filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    String::from_utf8_lossy(said.next().unwrap_or_default()).into_owned()
}

/// What the variable is; nothing where it is not set. The last line holds, as for a shell.
fn pretty(text: &[u8]) -> String {
    let values = lines(text).into_iter().rev();
    let value = values.filter_map(|line| bare(line).strip_prefix(PRETTY)).next();
    unquoted(&String::from_utf8_lossy(value.unwrap_or_default()))
}

/// The text with the variable in it once.
fn with_pretty(text: &[u8], name: &str) -> Vec<u8> {
    let mut quoted = String::from("\"");
    for sign in name.chars() {
        if ['"', '\\', '$', '`'].contains(&sign) {
            quoted.push('\\');
        }
        quoted.push(sign);
    }
    quoted.push('"');
    let mut line = PRETTY.to_vec();
    line.extend_from_slice(quoted.as_bytes());
    line.push(b'\n');
    let mut after = Vec::new();
    let mut is_written = false;
    for old in lines(text) {
        if !old.starts_with(PRETTY) {
            after.extend_from_slice(old);
        } else if !std::mem::replace(&mut is_written, true) {
            after.extend_from_slice(&line);
        }
    }
    if !is_written {
        end_last_line(&mut after, b"\n");
        after.extend_from_slice(&line);
    }
    after
}

/// A value of such a file as a shell reads it.
fn unquoted(value: &str) -> String {
    let value = value.trim();
    if let Some(inner) = value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return inner.to_owned();
    }
    let inner = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let mut signs = inner.unwrap_or(value).chars();
    let mut text = String::new();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => text.extend(signs.next()),
            sign => text.push(sign),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_the_files_have_them() {
        assert_eq!(static_one(b"# mine\n\n web1 \nother\n"), "web1");
        assert_eq!(static_one(b""), "");
        assert_eq!(pretty(b"ICON_NAME=x\nPRETTY_HOSTNAME='a b'\n"), "a b");
        assert_eq!(
            pretty(b"PRETTY_HOSTNAME=one\nPRETTY_HOSTNAME=\"t\\\"w\\$o\""),
            "t\"w$o"
        );
    }

    #[test]
    fn a_pretty_name_is_written_once_and_the_rest_stays() {
        let after = with_pretty(
            b"A=1\r\nPRETTY_HOSTNAME=x\nB=2\nPRETTY_HOSTNAME=y",
            "Ann's \"$5\" `box` \\",
        );
        let text = String::from_utf8_lossy(&after);
        assert_eq!(
            text,
            "A=1\r\nPRETTY_HOSTNAME=\"Ann's \\\"\\$5\\\" \\`box\\` \\\\\"\nB=2\n"
        );
        assert_eq!(pretty(&after), "Ann's \"$5\" `box` \\");
        assert_eq!(with_pretty(b"A=1", "b"), b"A=1\nPRETTY_HOSTNAME=\"b\"\n");
    }
}
