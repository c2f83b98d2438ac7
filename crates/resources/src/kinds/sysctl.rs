//! The `sysctl` kind: a parameter of the kernel, now and after the next start.

mod assignments;
mod at_start;

use setpoint_engine::{
    Apply, Attempting, Claim, Failure, Identity, Level, Resource, Stake, Text, Wanted, Watch, async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::files::{AbsolutePath, Entry, Replace};

use crate::edited_file::EditedFile;
use crate::sorts::KERNEL_PARAMETER;
use crate::text_lines;
use crate::turns::Turn;

/// A parameter of the kernel, now and after the next start.
///
/// The name is dotted, `net.ipv4.ip_forward`. If its first separator is a slash, all are, and dots are part of names: `net/ipv4/conf/eth0.100/forwarding`. Runs of
/// blanks and tabs count as one blank, as the kernel writes them otherwise than people do. Where another file is read later at the start and says something
/// else, that is told.
///
/// ```mcl
/// sysctl "net.ipv4.ip_forward" {
///     value => "1",
/// }
/// ```
///
/// Until the next start alone:
///
/// ```mcl
/// sysctl "vm.swappiness" {
///     value => "10",
///     persist => false,
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "sysctl", autoedge)]
pub(crate) struct Sysctl {
    /// The value, as the kernel prints it.
    value: String,
    /// Whether it is set now.
    #[param(default = true)]
    runtime: bool,
    /// Whether a file is written from which it is set at each start.
    #[param(default = true)]
    persist: bool,
    /// That file; ends in `.conf`. Unset: `/etc/sysctl.d/99-NAME.conf`.
    ///
    /// Only the line that sets the parameter is edited, so several may be in one file, and what others have written in it stays.
    path: Text,
    #[name]
    name: String,
    /// What was said of other files, so that it is said once.
    #[state]
    told: Option<String>,
}

#[async_trait]
impl Resource for Sysctl {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        if let Err(message) = parts(&self.name) {
            invalid.push(Invalid::new(message));
        }
        if self.value.is_empty() {
            invalid.push(Invalid::parameter("value", "must not be empty"));
        } else if self.value.trim() != self.value || self.value.contains('\n') {
            let message = "must have no white space at its ends, and be one line";
            invalid.push(Invalid::parameter("value", message));
        }
        if !self.runtime && !self.persist {
            let message = "nothing would be set: one of `runtime` and `persist` must be true";
            invalid.push(Invalid::parameter("persist", message));
        }
        if !self.persist {
            return;
        }
        match self.file() {
            // Of the name it was said already.
            Err(_) if self.path.is_empty() => {}
            Err(message) => invalid.push(Invalid::parameter("path", message)),
            Ok(path) if !path.as_bytes().ends_with(b".conf") => {
                let message = "must end in `.conf`, or nothing reads it at the start";
                invalid.push(Invalid::parameter("path", message));
            }
            Ok(_) => {}
        }
    }

    fn identities(&self) -> Vec<Identity> {
        self.edited().map_or(Vec::new(), |file| file.identities())
    }

    fn claims(&self) -> Vec<Claim> {
        let Ok(parts) = parts(&self.name) else {
            return Vec::new();
        };
        let name = parts.join("/");
        let value = || Stake::value(even(&self.value).into_bytes());
        let now = self.runtime.then(|| Claim {
            place: KERNEL_PARAMETER.identity(name.as_bytes()),
            stake: value(),
        });
        let at_start = self
            .edited()
            .map(|file| file.claims([file.part(&KERNEL_PARAMETER, name.as_bytes(), value())]));
        now.into_iter().chain(at_start.into_iter().flatten()).collect()
    }

    fn wanted(&self) -> Vec<Wanted> {
        self.edited().map_or(Vec::new(), |file| file.wanted())
    }

    fn watches(&self) -> Vec<Watch> {
        let parameter = self.parameter().ok().filter(|_| self.runtime);
        let file = self.file().ok().filter(|_| self.persist);
        parameter.into_iter().chain(file).map(Watch::path).collect()
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        if self.runtime {
            self.check_runtime(apply)?;
        }
        if self.persist {
            self.check_file(apply).await?;
            self.warn_of_others(apply)?;
        }
        Ok(())
    }
}

impl Sysctl {
    /// Where the kernel has it.
    fn parameter(&self) -> Result<AbsolutePath, String> {
        let path = format!("/proc/sys/{}", parts(&self.name)?.join("/"));
        AbsolutePath::new(path).map_err(|error| error.to_string())
    }

    /// The file that is read at the start.
    fn file(&self) -> Result<AbsolutePath, String> {
        if self.path.is_empty() {
            let name = parts(&self.name)?.join(".");
            let path = format!("/etc/sysctl.d/99-{name}.conf");
            return AbsolutePath::new(path).map_err(|error| error.to_string());
        }
        let path = String::from_utf8_lossy(self.path.as_bytes()).into_owned();
        AbsolutePath::new(&path).map_err(|error| format!("{error}: `{path}`"))
    }

    /// The file that is read at the start, if this one edits it.
    fn edited(&self) -> Option<EditedFile> {
        let file = self.file().ok().filter(|_| self.persist)?;
        Some(EditedFile::at(&file))
    }

    /// Says which other file holds at the next start instead of this one.
    fn warn_of_others(&mut self, apply: &Apply<'_>) -> Result<(), Failure> {
        let file = self
            .file()
            .map_err(|why| Failure::new("use the path").because(why))?;
        let found = at_start::overruled(&file, &self.name, &self.value);
        if let Some(text) = &found
            && self.told != found
        {
            apply.log(Level::Warning, text);
        }
        self.told = found;
        Ok(())
    }

    fn check_runtime(&self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let path = self
            .parameter()
            .map_err(|why| Failure::new("use the name").because(why))?;
        let attempted = "read the kernel's parameter";
        let missing = || {
            let why = "this kernel has no such parameter; a module that has it may not be loaded";
            Failure::new(attempted).on(&self.name).because(why)
        };
        let entry = match Entry::at(&path) {
            Err(error) if error.is_not_found() => return Err(missing()),
            entry => entry.attempting(attempted, &self.name)?,
        };
        if entry.stat().attempting(attempted, &self.name)?.is_none() {
            return Err(missing());
        }
        let read = || -> Result<String, Failure> {
            let bytes = entry.read().attempting(attempted, &self.name)?;
            Ok(even(&String::from_utf8_lossy(&bytes)))
        };
        let is = read()?;
        let want = even(&self.value);
        if is == want || !apply.drift_of("value", "runtime", is, want.as_str()) {
            return Ok(());
        }
        let attempted = "set the kernel's parameter";
        let line = format!("{}\n", self.value);
        entry
            .write_parameter(line.as_bytes())
            .attempting(attempted, &self.name)?;
        // The kernel may take a value and keep another one; that would go on for ever.
        let kept = read()?;
        match kept == want {
            true => Ok(()),
            false => {
                let why = format!("the kernel was given `{want}` and has `{kept}`");
                Err(Failure::new(attempted).on(&self.name).because(why))
            }
        }
    }

    async fn check_file(&self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let path = self
            .file()
            .map_err(|why| Failure::new("use the path").because(why))?;
        let _turn = Turn::at_file(&path, apply).await?;
        let before = text_lines::read(&path)?;
        let text = before.as_deref().unwrap_or_default();
        let Some(edited) = assignments::edited(text, &self.name, &self.value) else {
            return Ok(());
        };
        let is = assignments::value_in(text, &self.name);
        if apply.drift_of("value", "persist", is, self.value.as_str()) {
            let mode = if apply.has_sensitive() { 0o600 } else { 0o644 };
            let request = Replace::bytes(path, edited).mode(before.is_none().then_some(mode));
            apply.replace_at_once(request)?;
        }
        Ok(())
    }
}

/// The parts of a name, whichever way it is written.
fn parts(name: &str) -> Result<Vec<&str>, String> {
    let wrong = |why: &str| Err(format!("`{name}` is not the name of a parameter: {why}"));
    if name.trim() != name || name.contains(['=', '\n', '\0']) {
        return wrong("it has no white space at its ends and no `=`");
    }
    let separator = name.chars().find(|sign| ['.', '/'].contains(sign)).unwrap_or('.');
    let parts: Vec<&str> = name.split(separator).collect();
    if parts
        .iter()
        .any(|part| part.is_empty() || [".", ".."].contains(part))
    {
        return wrong("a part of it is missing");
    }
    match parts.iter().any(|part| part.contains('/')) {
        true => wrong("where dots separate its parts there is no slash"),
        false => Ok(parts),
    }
}

/// A value as the kernel prints it: with one blank between its words and none around them, and numbers in the decimal form.
fn even(value: &str) -> String {
    let words: Vec<String> = value.split_whitespace().map(as_printed).collect();
    words.join(" ")
}

/// A word as the kernel prints it: it takes whole numbers in hexadecimal and octal as well.
fn as_printed(word: &str) -> String {
    let (sign, digits) = match word.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", word.strip_prefix('+').unwrap_or(word)),
    };
    let number = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16),
        None if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(digits, 8),
        None => digits.parse(),
    };
    match number {
        Ok(number) if digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) => format!("{sign}{number}"),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_both_ways() {
        assert_eq!(
            parts("net.ipv4.ip_forward").unwrap(),
            ["net", "ipv4", "ip_forward"]
        );
        assert_eq!(
            parts("net/ipv4/conf/eth0.100/x").unwrap(),
            ["net", "ipv4", "conf", "eth0.100", "x"]
        );
        for name in [
            "",
            ".a",
            "a.",
            "a..b",
            "a.b/c",
            "a=b",
            " a",
            "../../etc/passwd",
            "a/../b",
            "/proc/sys/a",
        ] {
            assert!(parts(name).is_err(), "{name}");
        }
    }

    #[test]
    fn blanks_do_not_count() {
        assert_eq!(even("4096\t131072\t6291456\n"), even("4096 131072  6291456"));
        assert_eq!(even("01 0x1F +7 -010"), "1 31 7 -8");
        assert_eq!(even("|/usr/bin/x %p 08 0x -"), "|/usr/bin/x %p 08 0x -");
    }
}
