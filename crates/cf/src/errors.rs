//! Errors as people read them.
//!
//! Programs get errors as the language orders and combines them ([`importance`](setpoint_cf_execute::execute::importance)). For people,
//! [`told`] takes combined errors apart, and merges an error that only wraps another with it.

use setpoint_cf_execute::execute::codes::{FROZEN, MULTIPLE, NOT_SET};
use setpoint_cf_execute::export::codes::BAD_BINDING;
use setpoint_cf_names::project::MAIN;
use setpoint_cf_names::resolve::codes::PRECEDENCE;
use setpoint_diagnostics::{Diagnostic, Diagnostics, Label};

/// Errors as people are told of them: several at once each by itself, one that wraps another as one, and names of the main file as they are
/// written there.
#[must_use]
pub fn told(diagnostics: &Diagnostics) -> Diagnostics {
    let mut told = Diagnostics::new();
    for diagnostic in diagnostics {
        if diagnostic.code == &MULTIPLE {
            told.extend(diagnostic.causes.iter().map(|cause| plain(merged(cause))));
        } else {
            told.push(plain(merged(diagnostic)));
        }
    }
    told
}

/// An error with what it wraps in it, as far as that is about the same place or assignment.
fn merged(outer: &Diagnostic) -> Diagnostic {
    let mut causes = outer.causes.iter();
    let (Some(cause), None) = (causes.next(), causes.next()) else {
        return outer.clone();
    };
    let sets = outer.code == &NOT_SET;
    let repeats = outer.message.ends_with(&cause.message) && cause.related.is_empty();
    if !sets && !repeats && outer.primary.span != cause.primary.span {
        return outer.clone();
    }
    let wrapped = &cause.message;
    let sets_again = cause.code == &NOT_SET;
    let cause = merged(cause);
    let mut one = outer.clone();
    if sets {
        // What is wrong with the value has the page that helps.
        one.code = cause.code;
        if sets_again && let Some(begin) = one.message.strip_suffix(wrapped.as_str()) {
            // Through which other ends it came is told by the places.
            let reason = innermost(outer);
            one.message = format!("{begin}{reason}");
        }
    }
    let mut labels = vec![cause.primary];
    labels.extend(cause.secondary);
    labels.append(&mut one.secondary);
    for label in labels {
        if label.span == one.primary.span {
            if one.primary.text.is_empty() {
                one.primary.text = label.text;
            }
        } else if one.secondary.iter().all(|known| known.span != label.span) {
            one.secondary.push(label);
        }
    }
    add_new(&mut one.notes, cause.notes);
    add_new(&mut one.help, cause.help);
    add_new(&mut one.related, cause.related);
    one.causes = cause.causes;
    one
}

/// The message of what is wrong behind all that wraps it.
fn innermost(error: &Diagnostic) -> &str {
    let mut at = error;
    while let Some(cause) = at.causes.iter().next().filter(|_| at.code == &NOT_SET) {
        at = cause;
    }
    &at.message
}

fn add_new<T: PartialEq>(list: &mut Vec<T>, more: Vec<T>) {
    for item in more {
        if !list.contains(&item) {
            list.push(item);
        }
    }
}

/// The same without the namespace of the main file, which nobody writes there.
fn plain(mut diagnostic: Diagnostic) -> Diagnostic {
    // Other files must write such names in full.
    if [&PRECEDENCE, &BAD_BINDING].contains(&diagnostic.code) {
        return diagnostic;
    }
    let prefix = format!("{MAIN}::");
    let strip = |text: &mut String| {
        if text.contains(&prefix) {
            *text = text.replace(&prefix, "");
        }
    };
    let label = |label: &mut Label| strip(&mut label.text);
    strip(&mut diagnostic.message);
    label(&mut diagnostic.primary);
    diagnostic.secondary.iter_mut().for_each(label);
    diagnostic.related.iter_mut().for_each(label);
    diagnostic.notes.iter_mut().for_each(strip);
    if diagnostic.code != &FROZEN {
        diagnostic.help.iter_mut().for_each(|help| strip(&mut help.text));
    }
    let causes = std::mem::take(&mut diagnostic.causes);
    causes.iter().fold(diagnostic, |diagnostic, cause| {
        diagnostic.caused_by(plain(cause.clone()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use setpoint_cf_execute::execute::importance::combine;
    use setpoint_diagnostics::{SourceMap, Span};

    #[test]
    fn people_are_told_of_each_error_once_and_programs_of_all_that_it_wraps() {
        let mut sources = SourceMap::new();
        let main = sources.add("main.cf", "Host(port=\"80\")\n");
        let value = Span::new(main, 10, 14);
        let cause = Diagnostic::error(&setpoint_cf_functions::codes::WRONG_TYPE, value, "expected `int`")
            .label("this is of type string")
            .help("write `80`");
        let message = "could not set attribute `port` on instance `__config__::Host`: expected `int`";
        let wrapped = Diagnostic::error(&NOT_SET, value, message).caused_by(cause);
        let other = Diagnostic::error(
            &setpoint_cf_execute::execute::codes::INCOMPLETE,
            value,
            "not complete",
        );
        let multiple = combine(vec![wrapped, other], &sources).expect("there are some");
        let mut all = Diagnostics::new();
        all.push(multiple);
        let told: Vec<Diagnostic> = told(&all).into_vec();
        let codes: Vec<&str> = told.iter().map(|told| told.code.code).collect();
        assert_eq!(codes, ["E0604", "E0631"]);
        assert_eq!(
            told[0].message,
            "could not set attribute `port` on instance `Host`: expected `int`"
        );
        assert_eq!(told[0].primary.text, "this is of type string");
        assert_eq!(told[0].help.len(), 1);
        assert!(told[0].causes.is_empty());
    }
}
