//! Parameters that are written as text and mean less than any text: one of some words, a path, or nothing.

use std::os::unix::ffi::OsStrExt;

use setpoint_diagnostics::did_you_mean;
use setpoint_graph::{ParameterType, TypeMismatch};
use setpoint_host::files::{AbsolutePath, InvalidPath};
use setpoint_host::processes::{Capability, Limit, Signal};
use setpoint_value::Value;

use super::{Parameter, Text};

/// A type whose values have names, by which a parameter says one of them.
pub trait Words: Copy + PartialEq + 'static {
    /// What one of them is called: `a signal`.
    const ONE: &'static str;

    /// Where all of them are listed, if they are many: `signal(7)`.
    const LIST: Option<&'static str> = None;

    /// All names with their values. Of two names for one value the first is shown.
    fn words() -> impl Iterator<Item = (&'static str, Self)>;
}

impl<T: Words> Parameter for T {
    const TYPE: ParameterType = ParameterType::Str;
    const FORM: Option<fn() -> String> = Some(|| match T::LIST {
        Some(list) => {
            let example = T::words().next().map_or("", |(name, _)| name);
            format!("{} of {list}, like `{example}`", T::ONE)
        }
        None => either::<T>(),
    });

    fn decode(value: &Value) -> Result<T, TypeMismatch> {
        let text = Text::decode(value)?;
        let found = T::words().find(|(name, _)| name.as_bytes() == text.as_bytes());
        found.map(|(_, word)| word).ok_or_else(|| {
            let text = String::from_utf8_lossy(text.as_bytes());
            TypeMismatch::new(format!("`{text}` is not {}", T::ONE)).help(suggestion::<T>(text.trim()))
        })
    }

    fn encode(&self) -> Value {
        let found = T::words().find(|(_, word)| word == self);
        Value::str(found.map_or("", |(name, _)| name))
    }
}

/// The name that is probably meant, or where to look for it.
fn suggestion<T: Words>(text: &str) -> String {
    let names = || T::words().map(|(name, _)| name);
    // `int` and `NET_ADMIN`: what is missing is what all names begin with.
    let meant = names().find(|name| {
        let parts = name
            .len()
            .checked_sub(text.len())
            .and_then(|at| name.split_at_checked(at));
        parts.is_some_and(|(prefix, end)| {
            !end.is_empty() && end.eq_ignore_ascii_case(text) && names().all(|name| name.starts_with(prefix))
        })
    });
    if let Some(meant) = meant {
        return format!("did you mean `{meant}`?");
    }
    did_you_mean(text, names()).unwrap_or_else(|| match T::LIST {
        Some(list) => format!("{list} lists them"),
        None => format!("it is {}", either::<T>()),
    })
}

/// All names: `` `a`, `b` or `c` ``.
fn either<T: Words>() -> String {
    let mut names: Vec<String> = T::words().map(|(name, _)| format!("`{name}`")).collect();
    let last = names.pop().unwrap_or_default();
    if names.is_empty() {
        last
    } else {
        format!("{} or {last}", names.join(", "))
    }
}

impl Words for Signal {
    const ONE: &'static str = "a signal";
    const LIST: Option<&'static str> = Some("signal(7)");

    fn words() -> impl Iterator<Item = (&'static str, Signal)> {
        Signal::all()
    }
}

impl Words for Limit {
    const ONE: &'static str = "a limit";

    fn words() -> impl Iterator<Item = (&'static str, Limit)> {
        Limit::ALL.into_iter()
    }
}

impl Words for Capability {
    const ONE: &'static str = "a capability";
    const LIST: Option<&'static str> = Some("capabilities(7)");

    fn words() -> impl Iterator<Item = (&'static str, Capability)> {
        Capability::all()
    }
}

/// Kept as it is written.
impl Parameter for AbsolutePath {
    const TYPE: ParameterType = ParameterType::Str;
    const FORM: Option<fn() -> String> = Some(|| "an absolute path".to_owned());

    fn decode(value: &Value) -> Result<AbsolutePath, TypeMismatch> {
        let text = Text::decode(value)?;
        AbsolutePath::new(std::ffi::OsStr::from_bytes(text.as_bytes())).map_err(|error| {
            let text = String::from_utf8_lossy(text.as_bytes());
            let mismatch = TypeMismatch::new(format!("`{text}` is not an absolute path"));
            match error {
                InvalidPath::Empty | InvalidPath::Relative => mismatch.help("it begins with a slash"),
                InvalidPath::ContainsNul => mismatch.help("no path contains a NUL byte"),
            }
        })
    }

    fn encode(&self) -> Value {
        Text::new(self.as_bytes()).encode()
    }
}

/// A parameter that is written as text, and is not set if that text is empty: not every language has a null for its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IfSet<T>(pub Option<T>);

impl<T> Default for IfSet<T> {
    fn default() -> IfSet<T> {
        IfSet(None)
    }
}

impl<T> std::ops::Deref for IfSet<T> {
    type Target = Option<T>;

    fn deref(&self) -> &Option<T> {
        &self.0
    }
}

impl<T: Parameter> Parameter for IfSet<T> {
    const TYPE: ParameterType = T::TYPE;
    const FORM: Option<fn() -> String> = T::FORM;

    fn decode(value: &Value) -> Result<IfSet<T>, TypeMismatch> {
        if value.as_str().is_some_and(|text| text.as_bytes().is_empty()) {
            return Ok(IfSet(None));
        }
        T::decode(value).map(|value| IfSet(Some(value)))
    }

    fn encode(&self) -> Value {
        self.as_ref().map_or_else(|| Value::str(""), T::encode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused<T: Parameter + std::fmt::Debug>(text: &str, message: &str, help: &str) {
        let mismatch = T::decode(&Value::str(text)).unwrap_err();
        assert_eq!(mismatch.to_string(), message);
        assert_eq!(mismatch.help.as_deref(), Some(help));
    }

    #[test]
    fn a_wrong_word_is_answered_with_the_right_one() {
        refused::<Signal>("int", "`int` is not a signal", "did you mean `SIGINT`?");
        refused::<Signal>("sigterm", "`sigterm` is not a signal", "did you mean `SIGTERM`?");
        refused::<Signal>("SIGTREM", "`SIGTREM` is not a signal", "did you mean `SIGTERM`?");
        refused::<Signal>("whatever", "`whatever` is not a signal", "signal(7) lists them");
        let meant = "did you mean `CAP_NET_ADMIN`?";
        refused::<Capability>("net_admin", "`net_admin` is not a capability", meant);
        let list = "capabilities(7) lists them";
        refused::<Capability>("ADMIN", "`ADMIN` is not a capability", list);
        let limits = "it is `core`, `cpu`, `file_size`, `files`, `memory` or `processes`";
        refused::<Limit>("ram", "`ram` is not a limit", limits);
    }

    #[test]
    fn a_word_is_shown_as_it_is_read() {
        for (name, signal) in Signal::all() {
            assert_eq!(Signal::decode(&Value::str(name)).unwrap(), signal);
            assert_eq!(Signal::decode(&signal.encode()).unwrap(), signal);
        }
        let poll = Signal::decode(&Value::str("SIGPOLL")).unwrap();
        assert_eq!(poll.encode(), Value::str("SIGIO"));
    }

    #[test]
    fn the_empty_text_is_unset_where_that_is_allowed() {
        assert_eq!(IfSet::<Signal>::decode(&Value::str("")).unwrap(), IfSet(None));
        assert_eq!(IfSet::<Signal>(None).encode(), Value::str(""));
        let slash = "it begins with a slash";
        refused::<AbsolutePath>("", "`` is not an absolute path", slash);
        refused::<AbsolutePath>("a", "`a` is not an absolute path", slash);
        refused::<AbsolutePath>(
            "/\0",
            "`/\0` is not an absolute path",
            "no path contains a NUL byte",
        );
    }

    #[test]
    fn a_wrong_part_is_named_by_its_place() {
        let paths = Value::strings(["/a", "b"]);
        let mismatch = Vec::<AbsolutePath>::decode(&paths).unwrap_err();
        assert_eq!(mismatch.to_string(), "at `[1]`: `b` is not an absolute path");
    }
}
