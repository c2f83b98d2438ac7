//! `#[derive(Resource)]` and what goes with it (`ParameterGroup`, `ParameterStruct`, `Sends`): a struct becomes the description
//! of a kind.
//!
//! What is emitted is data, and calls of ordinary functions of `setpoint_engine::parameter`; no behaviour is written here.
//!
//! ```text
//! /// A file.
//! #[derive(Resource)]
//! #[resource(kind = "file", receives, constants(state(exists = "exists")))]
//! struct File {
//!     /// Where it is.
//!     #[param(default_from = "name")]
//!     path: String,
//!     /// Octal or symbolic.
//!     mode: String,
//!     /// What is in it. The comment is that of `content`; the others have those of the group.
//!     #[param(flatten(text = "content", source))]
//!     contents: Contents,
//!     /// No parameter: starts as the type's default.
//!     #[state]
//!     cached: Option<u64>,
//! }
//! ```

mod attributes;
mod emit;
mod structs;
#[cfg(test)]
mod tests;

use proc_macro2::TokenStream;
use syn::{Attribute, Data, DeriveInput, Fields, FieldsNamed, Ident};

use crate::doc_comment::doc_comment;

/// Expands `#[derive(Resource)]`.
pub(crate) fn expand(item: TokenStream) -> TokenStream {
    answer(syn::parse2(item).and_then(|input| {
        let kind = attributes::Kind::parse(&input)?;
        Ok(emit::kind(&kind))
    }))
}

/// Expands `#[derive(ParameterStruct)]`.
pub(crate) fn expand_struct(item: TokenStream) -> TokenStream {
    answer(syn::parse2(item).and_then(|input| structs::parameter_struct(&input)))
}

/// Expands `#[derive(ParameterGroup)]`.
pub(crate) fn expand_group(item: TokenStream) -> TokenStream {
    answer(syn::parse2(item).and_then(|input| structs::parameter_group(&input)))
}

/// Expands `#[derive(Sends)]`.
pub(crate) fn expand_sends(item: TokenStream) -> TokenStream {
    answer(syn::parse2(item).and_then(|input| structs::sends(&input)))
}

fn answer(result: syn::Result<TokenStream>) -> TokenStream {
    result.unwrap_or_else(|error| error.to_compile_error())
}

/// The named fields of a struct without generics.
fn named_fields(input: &DeriveInput) -> syn::Result<&FieldsNamed> {
    if !input.generics.params.is_empty() {
        return Err(syn::Error::new_spanned(
            &input.generics,
            "generic parameters have no place here",
        ));
    }
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Ok(fields),
            Fields::Unnamed(_) | Fields::Unit => Err(syn::Error::new_spanned(
                &input.ident,
                "write a struct with named fields: `struct X {}`",
            )),
        },
        Data::Enum(_) | Data::Union(_) => Err(syn::Error::new_spanned(
            &input.ident,
            "only a struct can be derived here",
        )),
    }
}

/// A field's name as languages see it.
fn plain_name(ident: &Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").unwrap_or(&name).to_owned()
}

/// The doc comment; an error when there is none.
fn documentation(attributes: &[Attribute], of: &dyn quote::ToTokens) -> syn::Result<String> {
    let text = doc_comment(attributes);
    if text.is_empty() {
        return Err(syn::Error::new_spanned(
            of,
            "has no doc comment: users read it in the reference and in completion",
        ));
    }
    Ok(text)
}
