//! Arguments of filters and methods, given as Python gives them: by position or by name.

use minijinja::value::{Kwargs, Rest, ValueOrKwargs};
use minijinja::{Error, ErrorKind, Value};
use setpoint_value::LONGEST_TEXT;

/// The arguments of one call, bound to the names of its parameters.
pub(super) struct Parameters<const N: usize> {
    values: [Option<Value>; N],
}

impl<const N: usize> Parameters<N> {
    /// Of a filter: what it filters, and its parameters by name.
    pub(super) fn of_filter(
        arguments: Rest<ValueOrKwargs>,
        names: [&str; N],
    ) -> Result<(Value, Parameters<N>), Error> {
        let values = arguments.into_values();
        let Some((first, rest)) = values.split_first() else {
            return Err(ErrorKind::MissingArgument.into());
        };
        if first.is_undefined() {
            return Err(ErrorKind::UndefinedError.into());
        }
        Ok((first.clone(), Parameters::bound(rest, names)?))
    }

    /// Of a method.
    pub(super) fn bound(arguments: &[Value], names: [&str; N]) -> Result<Parameters<N>, Error> {
        let (positional, keywords) = match arguments.split_last() {
            Some((last, before)) if last.is_kwargs() => (before, Some(Kwargs::try_from(last.clone())?)),
            _ => (arguments, None),
        };
        if positional.len() > N {
            return Err(ErrorKind::TooManyArguments.into());
        }
        let mut values = names.map(|_| None);
        for (at, name) in names.into_iter().enumerate() {
            let by_name = match &keywords {
                Some(keywords) if keywords.has(name) => Some(keywords.get::<Value>(name)?),
                _ => None,
            };
            values[at] = match (positional.get(at), by_name) {
                (Some(_), Some(_)) => return Err(wrong(format!("`{name}` is given twice"))),
                (given, by_name) => given.cloned().or(by_name),
            };
        }
        if let Some(keywords) = keywords {
            keywords.assert_all_used()?;
        }
        Ok(Parameters { values })
    }

    pub(super) fn value(&self, at: usize) -> Option<&Value> {
        self.values[at].as_ref()
    }

    pub(super) fn bool(&self, at: usize) -> bool {
        self.values[at].as_ref().is_some_and(Value::is_true)
    }

    /// A number of characters, which no text may exceed.
    pub(super) fn count(&self, at: usize, otherwise: usize) -> Result<usize, Error> {
        let Some(value) = self.value(at).filter(|value| !value.is_none()) else {
            return Ok(otherwise);
        };
        let count = value.as_i64().ok_or_else(|| wrong("expected an integer"))?;
        match usize::try_from(count.max(0)) {
            Ok(count) if count <= LONGEST_TEXT => Ok(count),
            _ => Err(wrong(format!(
                "the text would be longer than {} MiB",
                LONGEST_TEXT >> 20
            ))),
        }
    }

    pub(super) fn text(&self, at: usize, otherwise: &str) -> Result<String, Error> {
        match self.value(at).filter(|value| !value.is_none()) {
            None => Ok(otherwise.to_owned()),
            Some(value) => text_of(value).map(str::to_owned),
        }
    }

    pub(super) fn required_text(&self, at: usize) -> Result<&str, Error> {
        self.value(at)
            .map_or_else(|| Err(ErrorKind::MissingArgument.into()), text_of)
    }
}

fn text_of(value: &Value) -> Result<&str, Error> {
    value
        .as_str()
        .ok_or_else(|| wrong(format!("expected a text, not a {}", value.kind())))
}

pub(super) fn wrong(why: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, why)
}
