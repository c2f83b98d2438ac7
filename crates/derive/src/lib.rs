//! The macros `#[derive(Resource)]` and `#[function]`: they turn a definition into a static description.

#![forbid(unsafe_code)]

use proc_macro::TokenStream;

mod doc_comment;
mod function;
mod resource;

/// Turns a function into a `static` `FunctionSpec` of the same name in capitals and the same visibility; the function itself stays.
///
/// ```text
/// /// Every letter of a text in lower case.
/// #[function(example(call = r#"strings.to_lower("AB")"#, result = r#""ab""#))]
/// fn to_lower(
///     /// Any text.
///     text: &str,
/// ) -> String {
///     text.to_lowercase()
/// }
/// ```
///
/// It belongs to the module whose table, `MODULE`, is in scope. Each parameter has a doc comment. It can also have attributes:
///
/// - `#[default(0)]` is the value for calls that leave out the parameter. Write a `signature` for each number of arguments.
///   `#[default = "…"]` describes the default of a `raw` function or a `static` in words.
/// - `#[name = "…"]` is its name in signatures, if that is not the name in Rust.
///
/// Options:
///
/// - `parameters(…)` lists the parameters of a `raw` function or a `static`, with their doc comments and attributes.
/// - `name`, `signature` (once for each alternative) and `flags` override what follows from the Rust function.
/// - `alias = "strings"` describes the function of a second module too, in a `static` that is named after both: `STRINGS_TO_LOWER`.
///   The table of that module lists it.
/// - `raw` hands over `(&[Value], &Type)`. Otherwise a parameter of type `&Type` receives the decided result type.
/// - `environment` makes a source that reads once; its first parameter is the `&CallContext`. `source` and `stateful` are the same, of these
///   classes. `module_directory` says that its answer depends on the module that calls.
/// - `watch = f` makes a source that reads again when a timer or watch that `f` arms says so (`Follow`); `rearmed` and `keyed` set the
///   field of that name.
/// - `runs_commands` says that it runs a command of the program; such a function is unpredictable.
/// - `unpredictable`, `extension`, `infer`, `result_type` and `refine` set the field of that name.
///
/// On a `static` whose value is a `Source`, or a `Shape` (`shape`), it makes the `FunctionSpec` of that, and takes its place.
#[proc_macro_attribute]
pub fn function(attributes: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(attributes.into(), item.into()).into()
}

/// Turns a struct of parameters into the description of a kind of resource, `Self::SPEC`.
#[proc_macro_derive(Resource, attributes(resource, param, state, name))]
pub fn resource(item: TokenStream) -> TokenStream {
    resource::expand(item.into()).into()
}

/// Makes a struct usable inside parameters.
#[proc_macro_derive(ParameterStruct)]
pub fn parameter_struct(item: TokenStream) -> TokenStream {
    resource::expand_struct(item.into()).into()
}

/// Makes a struct a group of parameters, which kinds take in with `#[param(flatten(…))]`. A parameter that is not set is its
/// type's default.
#[proc_macro_derive(ParameterGroup)]
pub fn parameter_group(item: TokenStream) -> TokenStream {
    resource::expand_group(item.into()).into()
}

/// Makes a struct the send keys of a kind.
#[proc_macro_derive(Sends, attributes(send))]
pub fn sends(item: TokenStream) -> TokenStream {
    resource::expand_sends(item.into()).into()
}
