//! Permission bits as users write them: octal, or symbolic clauses. Both say a state, not an operation.

use std::fmt;

use setpoint_engine::{Parameter, Text};
use setpoint_graph::{ParameterType, TypeMismatch};
use setpoint_value::Value;

/// A wanted mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mode {
    /// These twelve bits.
    Octal(u32),
    /// What these clauses make of the current bits, left to right.
    Symbolic(Box<[Clause]>),
}

/// `who=what`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Clause {
    /// The bits that are cleared first: those of who is named.
    clears: u32,
    /// The bits that are set then.
    sets: u32,
}

impl Parameter for Mode {
    const TYPE: ParameterType = ParameterType::Str;
    const FORM: Option<fn() -> String> = Some(|| "octal (`0644`) or symbolic (`u=rw,go=r`)".to_owned());

    fn decode(value: &Value) -> Result<Mode, TypeMismatch> {
        let text = Text::decode(value)?;
        Mode::parse(&String::from_utf8_lossy(text.as_bytes())).map_err(|message| {
            TypeMismatch::new(message)
                .help("write the bits, as in `0644`, or who may do what, as in `u=rw,go=r`")
        })
    }

    fn encode(&self) -> Value {
        Value::str(self.to_string())
    }
}

/// In the shortest spelling that means the same.
impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = |all: &[(char, u32)], bits: u32| {
            let said = all.iter().filter(|(_, bit)| bits & bit != 0);
            said.map(|(letter, _)| letter).collect::<String>()
        };
        let clauses = match self {
            Mode::Octal(bits) => return write!(f, "{bits:04o}"),
            Mode::Symbolic(clauses) => clauses.iter(),
        };
        let clauses = clauses.map(|Clause { clears, sets }| {
            let who = letters(&[('u', USER), ('g', GROUP), ('o', OTHER)], *clears);
            let what = [
                ('r', 0o444),
                ('w', 0o222),
                ('x', 0o111),
                ('s', 0o6000),
                ('t', 0o1000),
            ];
            format!("{who}={}", letters(&what, *sets))
        });
        f.write_str(&clauses.collect::<Vec<_>>().join(","))
    }
}

const USER: u32 = 0o4700;
const GROUP: u32 = 0o2070;
const OTHER: u32 = 0o0007;

impl Mode {
    fn parse(text: &str) -> Result<Mode, String> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return u32::from_str_radix(text, 8)
                .ok()
                .filter(|bits| *bits <= 0o7777)
                .map(Mode::Octal)
                .ok_or_else(|| format!("`{text}` is not an octal mode between `0000` and `7777`"));
        }
        let mut clauses = Vec::new();
        let mut named = 0;
        for clause in text.split(',') {
            let (clause, subjects) = parse_clause(clause)
                .map_err(|reason| format!("`{text}` is not a valid symbolic mode: {reason}"))?;
            if named & subjects != 0 {
                return Err(format!(
                    "`{text}` says twice what one of user, group and others may do"
                ));
            }
            named |= subjects;
            clauses.push(clause);
        }
        Ok(Mode::Symbolic(clauses.into()))
    }

    /// Whether everybody may read what has no other bits than those that it sets.
    pub(crate) fn lets_others_read(&self) -> bool {
        self.of(0) & 0o004 != 0
    }

    /// The twelve bits that it wants of something that has these.
    pub(crate) fn of(&self, current: u32) -> u32 {
        match self {
            Mode::Octal(bits) => *bits,
            Mode::Symbolic(clauses) => clauses.iter().fold(current & 0o7777, |bits, clause| {
                bits & !clause.clears | clause.sets
            }),
        }
    }
}

/// A clause, and which bits its subjects own.
fn parse_clause(text: &str) -> Result<(Clause, u32), &'static str> {
    if text.contains(['+', '-']) {
        return Err("a mode is a state, so only `=` is allowed");
    }
    let Some((who, what)) = text.split_once('=') else {
        return Err("each clause has the form `who=what`");
    };
    let mut subjects = 0;
    for subject in who.chars() {
        subjects |= match subject {
            'u' => USER,
            'g' => GROUP,
            'o' => OTHER,
            'a' => USER | GROUP | OTHER,
            _ => return Err("who is made of `u`, `g`, `o` and `a`"),
        };
    }
    if who.is_empty() {
        subjects = USER | GROUP | OTHER;
    }
    let mut sets = 0;
    for permission in what.chars() {
        sets |= match permission {
            'r' => subjects & 0o444,
            'w' => subjects & 0o222,
            'x' => subjects & 0o111,
            's' => subjects & 0o6000,
            't' => 0o1000,
            _ => return Err("what is made of `r`, `w`, `x`, `s` and `t`"),
        };
    }
    let clears = subjects;
    Ok((Clause { clears, sets }, subjects))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbolic_modes_start_from_what_is_there() {
        for (from, mode, wanted) in [
            (0o640, "u=rwx,g=rx,o=", 0o750),
            (0o600, "g=r", 0o640),
            (0, "ug=rws", 0o6660),
            (0o4755, "u=rwx", 0o755),
            (0o2644, "a=rx", 0o555),
            (0o1777, "o=rx", 0o1775),
            (0o640, "=r", 0o444),
            (0, "o=t", 0o1000),
            (0o777, "0644", 0o644),
            (0o644, "4755", 0o4755),
        ] {
            let read = Mode::parse(mode).unwrap();
            assert_eq!(read.of(from), wanted, "{from:o} {mode}");
            assert_eq!(Mode::decode(&read.encode()), Ok(read), "{mode}");
        }
    }

    #[test]
    fn what_is_no_mode_is_refused() {
        for mode in [
            "u=rw,a=r", "o+w", "u-x", "u=rw,u=r", "10000", "0888", "rwx", "u=g", "u=X", "u=rw,", "a=r,=w",
            "b=r",
        ] {
            assert!(Mode::parse(mode).is_err(), "{mode}");
        }
    }
}
