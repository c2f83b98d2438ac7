//! The codes of what can be wrong with a project, its modules and their metadata.

use setpoint_cf_syntax::stage::SCOPE;
use setpoint_diagnostics::{Diagnostic, FileId, Span};

setpoint_diagnostics::codes! {
    pub
    MODULE = "E0520" "" SCOPE "a module or a part of it that cannot be loaded";
    METADATA = "E0521" "" SCOPE "a field of `project.yml`, `module.yml` or `setup.cfg` that is wrong";
    NO_PROJECT = "E0522" "" SCOPE "no project";
    IGNORED_FIELD = "W0501" "" SCOPE "a field of `project.yml` that has no effect";
    DEPRECATED_MODULE = "W0603" "" SCOPE "a module that is deprecated, or has an older layout";
    IGNORED_SETTING = "W0604" "" SCOPE "a setting about packages that has no effect";
}

/// A namespace that cannot be loaded, with the reason as its cause.
pub(super) fn not_loaded(name: &str, import: Option<Span>, cause: &'static str, reason: &str) -> Diagnostic {
    let place = import.unwrap_or(Span::new(FileId(0), 0, 0));
    let sort = if name.contains("::") { "part" } else { "module" };
    Diagnostic::error(
        &MODULE,
        place,
        format!("{sort} `{name}` cannot be loaded: {reason}"),
    )
    .of_class("ModuleLoadingException")
    .label("imported here")
    .caused_by(Diagnostic::error(&MODULE, place, reason).of_class(cause))
}

/// A field of metadata that is wrong.
pub fn bad_field(place: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(&METADATA, place, message).of_class("InvalidMetadata")
}
