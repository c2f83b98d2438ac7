//! A length of time, as a parameter.

use std::time::Duration;

use setpoint_engine::Parameter;
use setpoint_graph::{ParameterType, TypeMismatch};
use setpoint_value::Value;

/// A length of time in Go's form: numbers with units, `1h30m`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TimeSpan {
    written: String,
    length: Duration,
}

impl Parameter for TimeSpan {
    const TYPE: ParameterType = ParameterType::Str;
    const FORM: Option<fn() -> String> = Some(|| "a length of time, like `24h` or `1h30m`".to_owned());

    fn decode(value: &Value) -> Result<TimeSpan, TypeMismatch> {
        let written = String::decode(value)?;
        match length(&written) {
            Some(length) if !length.is_zero() => Ok(TimeSpan { written, length }),
            Some(_) => Err(TypeMismatch::new("it must be longer than nothing")),
            None => {
                let message = format!("`{written}` is not a length of time");
                Err(TypeMismatch::new(message).help("write a number with a unit: `24h`, `90m`, `1h30m`"))
            }
        }
    }

    fn encode(&self) -> Value {
        Value::str(self.written.as_str())
    }
}

impl TimeSpan {
    /// As the program writes it.
    pub(crate) fn written(&self) -> &str {
        &self.written
    }

    pub(crate) fn length(&self) -> Duration {
        self.length
    }
}

/// Reads a length of time. Parts of a number count as well: `1.5h`.
fn length(text: &str) -> Option<Duration> {
    const UNITS: [(&str, f64); 8] = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("μs", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
    ];
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|sign: char| !sign.is_ascii_digit() && sign != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let end = rest.find(|sign: char| sign.is_ascii_digit() || sign == '.');
        let (unit, after) = rest.split_at(end.unwrap_or(rest.len()));
        let (_, of_unit) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
        seconds += number * of_unit;
        rest = after;
    }
    (!text.is_empty())
        .then(|| Duration::try_from_secs_f64(seconds).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read() {
        let seconds = |text: &str| length(text).map(|length| length.as_secs_f64());
        assert_eq!(seconds("24h"), Some(86400.0));
        assert_eq!(seconds("1h30m"), Some(5400.0));
        assert_eq!(seconds("1.5h"), Some(5400.0));
        assert_eq!(seconds("250ms"), Some(0.25));
        assert_eq!(seconds("0"), Some(0.0));
        for wrong in [
            "",
            "24",
            "h",
            "1d",
            "-1h",
            "1h30",
            "1 h",
            "1..2h",
            "99999999999999999999999h",
        ] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
