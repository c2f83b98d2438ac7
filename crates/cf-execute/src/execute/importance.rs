//! The order in which the language reports several errors.
//!
//! Each error has a class ([`Diagnostic::class`]), and each class an importance: what is more likely the reason of the others comes
//! first. An error that wraps another is a little less important than what it wraps. One error is reported as it is; several become the
//! causes of one [`MULTIPLE`].

use setpoint_diagnostics::{Diagnostic, SourceMap};

use super::codes::MULTIPLE;

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
    fn one_error_is_told_as_it_is() {
        let mut sources = SourceMap::new();
        let main = sources.add("main.cf", "a");
        let error = Diagnostic::error(&MULTIPLE, Span::new(main, 0, 1), "x").of_class("TypingException");
        assert_eq!(combine(vec![error.clone()], &sources), Some(error));
        assert_eq!(combine(Vec::new(), &sources), None);
    }
}
