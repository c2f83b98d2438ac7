//! The macros `#[derive(Resource)]` and `#[function]`: they turn a definition into a static description.

#![forbid(unsafe_code)]

use proc_macro::TokenStream;

mod function;
mod resource;

/// Turns a function into a `static` `FunctionSpec` of the same name in capitals and the same visibility; the function itself stays.
///
/// ```text
/// /// Every letter of `text` in lower case.
/// #[function(example(call = r#"strings.to_lower("AB")"#, result = r#""ab""#))]
/// fn to_lower(text: &str) -> String { text.to_lowercase() }
/// ```
///
/// `name`, `signature` (once for each alternative) and `flags` override what follows from the Rust function. `raw` hands
/// over `(&[Value], &Type)`. `environment` makes a source that reads once; its first parameter is the `&CallContext`, and
/// `module_directory` says that its answer depends on the module that calls. A parameter of type `&Type` receives the
/// decided result type. `unpredictable`, `extension`, `infer`, `result_type` and `refine` set the field of that name.
/// It belongs to the module whose table, `MODULE`, is in scope.
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

/// Makes a struct the send keys of a kind.
#[proc_macro_derive(Sends, attributes(send))]
pub fn sends(item: TokenStream) -> TokenStream {
    resource::expand_sends(item.into()).into()
}
