//! A regular expression, as a parameter.

use regex::bytes::{Regex, RegexBuilder};
use setpoint_engine::Parameter;
use setpoint_graph::{ParameterType, TypeMismatch};
use setpoint_value::Value;

/// A regular expression in the syntax of the crate `regex`, which compares bytes in linear time.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    written: String,
    regex: Regex,
    /// The same expression, in which `^` and `$` match at each line.
    in_lines: Regex,
}

impl Parameter for Pattern {
    const TYPE: ParameterType = ParameterType::Str;
    const FORM: Option<fn() -> String> = Some(|| {
        "a [regular expression](https://docs.rs/regex/latest/regex/#syntax), like `^Port `".to_owned()
    });

    fn decode(value: &Value) -> Result<Pattern, TypeMismatch> {
        let written = String::decode(value)?;
        let build = |in_lines: bool| RegexBuilder::new(&written).multi_line(in_lines).build();
        match (build(false), build(true)) {
            (Ok(regex), Ok(in_lines)) => Ok(Pattern {
                regex,
                in_lines,
                written,
            }),
            (Err(error), _) | (_, Err(error)) => Err(mismatch(&written, &error)),
        }
    }

    fn encode(&self) -> Value {
        Value::str(self.written.as_str())
    }
}

impl Pattern {
    /// The expression as the program writes it.
    pub(crate) fn written(&self) -> &str {
        &self.written
    }

    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        self.regex.is_match(text)
    }

    /// The expression for a text of several lines.
    pub(crate) fn in_lines(&self) -> &Regex {
        &self.in_lines
    }
}

fn mismatch(written: &str, error: &regex::Error) -> TypeMismatch {
    let parsed = regex_syntax::Parser::new().parse(written);
    let why = match parsed {
        Err(regex_syntax::Error::Parse(error)) => {
            format!("{} at column {}", error.kind(), error.span().start.column)
        }
        Err(regex_syntax::Error::Translate(error)) => {
            format!("{} at column {}", error.kind(), error.span().start.column)
        }
        _ => error.to_string(),
    };
    TypeMismatch::new(format!("`{written}` is not a regular expression: {why}"))
        .help("write a sign that is meant literally with a backslash: `\\(`, in a string `\"\\\\(\"`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named_with_its_column() {
        for (written, why) in [
            ("a(b", "unclosed group at column 2"),
            ("a{2", "unclosed counted repetition at column 2"),
            ("[z-a]", "invalid character class range"),
            ("\\1", "backreferences are not supported at column 1"),
        ] {
            let refused = Pattern::decode(&Value::str(written)).unwrap_err().to_string();
            assert!(
                refused.starts_with(&format!("`{written}` is not a regular expression: "))
                    && refused.contains(why),
                "{refused}"
            );
        }
        let large = Pattern::decode(&Value::str("(a{1000}){1000}"))
            .unwrap_err()
            .to_string();
        assert!(large.contains("exceeds size limit"), "{large}");
    }
}
