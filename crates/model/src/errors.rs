//! Errors as the language orders them: which of several is told first.
//!
//! Each error has a class ([`Diagnostic::class`]), and each class an importance: what is more likely the reason of the others comes
//! first. An error that wraps another is a little less important than what it wraps. One error is told as it is; several become the
//! causes of one [`MULTIPLE`].
//!
//! Programs get errors like that. People are [`told`] of each by itself, and of one that only wraps another together with it.

use setpoint_diagnostics::{Diagnostic, Diagnostics, Label, SourceMap};

use crate::execute::codes::{FROZEN, NOT_SET};
use crate::export::codes::BAD_BINDING;
use crate::project::MAIN;
use crate::resolve::codes::PRECEDENCE;
use crate::stage::EVAL;

setpoint_diagnostics::codes! {
    pub
    MULTIPLE = "E0635" "" EVAL "several errors at once";
}

/// Classes that wrap other errors.
const WRAPPING: &[&str] = &["AttributeException", "WrappingRuntimeException"];

/// What classes without an importance of their own have.
const LEAST: u32 = 100;

/// How important an error is: the lower, the earlier it is told.
#[must_use]
pub fn importance(error: &Diagnostic) -> u32 {
    if WRAPPING.contains(&error.class) {
        let wrapped = error.causes.iter().map(importance).min();
        return wrapped.unwrap_or(LEAST).saturating_add(1);
    }
    match error.class {
        "ModuleLoadingException" => 5,
        "DataClassException" => 9,
        "TypingException"
        | "IndexException"
        | "IndexCollisionException"
        | "CycleException"
        | "InvalidTypeAnnotation"
        | "IndexAttributeMissingInConstructorException" => 10,
        "DirectExecuteException" => 11,
        "NotFoundException"
        | "TypeNotFoundException"
        | "MissingImportException"
        | "AmbiguousTypeException" => 20,
        "DuplicateException" => 40,
        "ModifiedAfterFreezeException" => 50,
        "DoubleSetException" => 51,
        "ExternalException" | "ExplicitPluginException" => 60,
        "OptionalValueException" => 61,
        "KeyException" => 70,
        _ => LEAST,
    }
}

/// Puts errors in the order in which they are told: by importance, file and line. Those that tie stay as they are.
pub fn sort(errors: &mut [Diagnostic], sources: &SourceMap) {
    errors.sort_by_cached_key(|error| {
        let span = error.rule_place();
        let file = sources.files().nth(span.file.0 as usize);
        let place = file.map(|(_, file)| (file.name.clone(), file.position(span.start).line));
        (importance(error), place)
    });
}

/// One error that tells of all: itself if it is the only one, else one with the others as causes, most important first.
#[must_use]
pub fn combine(mut errors: Vec<Diagnostic>, sources: &SourceMap) -> Option<Diagnostic> {
    if errors.len() < 2 {
        return errors.pop();
    }
    sort(&mut errors, sources);
    let message = format!("the model has {} errors", errors.len());
    let multiple = Diagnostic::error(&MULTIPLE, errors[0].rule_place(), message).of_class("MultiException");
    Some(errors.into_iter().fold(multiple, Diagnostic::caused_by))
}

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
    use setpoint_diagnostics::Span;

    #[test]
    fn several_errors_are_told_by_importance_and_then_by_place() {
        let mut sources = SourceMap::new();
        let main = sources.add("main.cf", "a\nb\nc\n");
        let library = sources.add("libs/a.cf", "a\n");
        let error = |class, file, at, message: &str| {
            Diagnostic::error(&MULTIPLE, Span::new(file, at, at + 1), message).of_class(class)
        };
        let unset = |file, at, message| error("UnsetException", file, at, message);
        let double = error("DoubleSetException", main, 4, "double");
        let wrapped = error("AttributeException", main, 4, "wrapped").caused_by(double.clone());
        let errors = vec![
            unset(main, 2, "b"),
            unset(main, 0, "a"),
            unset(library, 0, "library"),
            wrapped,
            double,
        ];
        let combined = combine(errors, &sources).expect("there are some");
        let told: Vec<&str> = combined
            .causes
            .iter()
            .map(|cause| cause.message.as_str())
            .collect();
        assert_eq!(told, ["double", "wrapped", "library", "a", "b"]);
        assert_eq!(combined.class, "MultiException");
    }

    #[test]
    fn people_are_told_of_each_error_once_and_programs_of_all_that_it_wraps() {
        let mut sources = SourceMap::new();
        let main = sources.add("main.cf", "Host(port=\"80\")\n");
        let value = Span::new(main, 10, 14);
        let cause = Diagnostic::error(&crate::functions::codes::WRONG_TYPE, value, "expected `int`")
            .label("this is of type string")
            .help("write `80`");
        let message = "could not set attribute `port` on instance `__config__::Host`: expected `int`";
        let wrapped = Diagnostic::error(&NOT_SET, value, message).caused_by(cause);
        let other = Diagnostic::error(&crate::execute::codes::INCOMPLETE, value, "not complete");
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

    #[test]
    fn one_error_is_told_as_it_is() {
        let mut sources = SourceMap::new();
        let main = sources.add("main.cf", "a");
        let error = Diagnostic::error(&MULTIPLE, Span::new(main, 0, 1), "x").of_class("TypingException");
        assert_eq!(combine(vec![error.clone()], &sources), Some(error));
        assert_eq!(combine(Vec::new(), &sources), None);
    }
}
