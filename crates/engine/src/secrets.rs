//! Sensitive texts, so that none of them is said.
//!
//! Drift of a sensitive parameter is redacted whatever it says. What a kind says in its own words (a refusal, a failure, a
//! line of the log) may still hold the text of such a parameter, because an error of the system quotes what it was given.
//! That is looked for here.

use setpoint_graph::{Invalid, Parameters};
use setpoint_value::Value;

use crate::Failure;

/// What stands in the place of a sensitive text.
const HIDDEN: &str = "(sensitive)";

/// Shorter texts are in many words, so they are only looked for in what is said of their own parameter.
const SHORT: usize = 4;

/// The texts of sensitive parameters. Does not show what it holds.
#[derive(Clone, Default)]
pub(crate) struct Secrets {
    /// The longest first, so that what holds another one is replaced as a whole.
    texts: Vec<String>,
    parameters: Vec<&'static str>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Secrets").field(&self.parameters).finish()
    }
}

impl Secrets {
    /// Of all parts of these parameters.
    pub(crate) fn of<'a>(parameters: impl IntoIterator<Item = (&'static str, &'a Value)>) -> Secrets {
        let mut secrets = Secrets::default();
        for (name, value) in parameters {
            secrets.parameters.push(name);
            collect(value, &mut secrets.texts);
        }
        secrets.texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        secrets
    }

    /// Of those parameters that are sensitive.
    pub(crate) fn of_parameters(parameters: &Parameters) -> Secrets {
        Secrets::of(parameters.iter().filter(|(_, value)| value.is_sensitive()))
    }

    /// With those of another one, which are not of a parameter of this one.
    pub(crate) fn add(&mut self, others: &Secrets) {
        self.texts.extend(others.texts.iter().cloned());
        self.texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
    }

    fn are_in(&self, text: &str, of: Option<&'static str>) -> bool {
        let is_own = of.is_some_and(|parameter| self.parameters.contains(&parameter));
        let mut looked_for = self.texts.iter().filter(|secret| is_own || secret.len() >= SHORT);
        looked_for.any(|secret| text.contains(secret.as_str()))
    }

    /// The text without them.
    pub(crate) fn hide(&self, text: &str) -> Option<String> {
        let mut hidden: Option<String> = None;
        for secret in self.texts.iter().filter(|secret| secret.len() >= SHORT) {
            let shown = hidden.as_deref().unwrap_or(text);
            if shown.contains(secret.as_str()) {
                hidden = Some(shown.replace(secret.as_str(), HIDDEN));
            }
        }
        hidden
    }

    /// A refusal without them.
    pub(crate) fn hide_in(&self, invalid: &mut Invalid) {
        if self.are_in(&invalid.message, invalid.parameter) {
            invalid.message = "the value is refused, and is not shown because it is sensitive".to_owned();
            invalid.help = None;
        } else if invalid
            .help
            .as_deref()
            .is_some_and(|help| self.are_in(help, invalid.parameter))
        {
            invalid.help = None;
        }
    }

    /// Refusals without them.
    pub(crate) fn hide_in_all(&self, invalid: &mut [Invalid]) {
        for invalid in invalid {
            self.hide_in(invalid);
        }
    }

    /// A failure without them.
    pub(crate) fn hide_in_failure(&self, failure: Failure) -> Failure {
        if self.texts.is_empty() || self.hide(&failure.chain()).is_none() {
            return failure;
        }
        let hidden = |text: &str| self.hide(text).unwrap_or_else(|| text.to_owned());
        let mut found = Failure::new(hidden(failure.attempted())).reasoned(failure.reason());
        if let Some(target) = failure.target() {
            found = found.on(hidden(target));
        }
        let chain = failure.chain();
        match chain.strip_prefix(&format!("{failure}: ")) {
            Some(causes) => found.because(hidden(causes)),
            None => found,
        }
    }
}

fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::Marked(inner) => collect(&inner.0, texts),
        Value::Str(text) => {
            if let Some(text) = text.as_str().map(str::trim).filter(|text| !text.is_empty()) {
                texts.push(text.to_owned());
            }
        }
        Value::Int(number) => texts.push(number.to_string()),
        Value::Float(number) => texts.push(number.0.to_string()),
        Value::List(list) => list.iter().for_each(|item| collect(item, texts)),
        Value::Set(set) => set.iter().for_each(|item| collect(item, texts)),
        Value::Tuple(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Struct(fields) => fields.fields().iter().for_each(|item| collect(item, texts)),
        Value::Map(map) => map.iter().for_each(|(key, item)| {
            collect(key, texts);
            collect(item, texts);
        }),
        // One of two words says nothing; the others have no text.
        Value::Bool(_) | Value::Null(_) | Value::Func(_) | Value::Unknown(_) | Value::Opaque(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_sensitive_value_is_left_in_a_message() {
        let words = Value::strings(["hunter7", "hunter7-long"]);
        let secrets = Secrets::of([("words", &words), ("mode", &Value::str("ab"))]);
        assert_eq!(
            secrets.hide("run mysql -phunter7-long -p hunter7 about"),
            Some("run mysql -p(sensitive) -p (sensitive) about".to_owned())
        );
        assert_eq!(secrets.hide("nothing of it"), None);
        let mut invalid = Invalid::parameter("mode", "`ab` is not a mode").help("write 0ab");
        secrets.hide_in(&mut invalid);
        assert!(!invalid.message.contains("ab"), "{}", invalid.message);
        assert_eq!(invalid.help, None);
        let mut other = Invalid::parameter("owner", "is about another parameter");
        secrets.hide_in(&mut other);
        assert_eq!(other.message, "is about another parameter");
        assert!(!format!("{secrets:?}").contains("hunter"));
    }

    #[test]
    fn a_failure_keeps_its_shape() {
        let secrets = Secrets::of([("cmd", &Value::str("hunter7"))]);
        let failure = Failure::new("open")
            .on("/x/hunter7")
            .because(std::io::Error::other("hunter7: not there"));
        let hidden = secrets.hide_in_failure(failure);
        assert_eq!(hidden.chain(), "open /x/(sensitive): (sensitive): not there");
    }
}
