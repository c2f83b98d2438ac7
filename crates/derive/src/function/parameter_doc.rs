//! Documentation of parameters: doc comments, names and defaults in their attributes.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Attribute, Expr, FnArg, Ident, ItemFn, LitStr, Meta, MetaNameValue};

use crate::doc_comment::doc_comment;

use super::signature::parameter_names;

/// Documentation of a parameter: its doc comment, and its default if it can be left out.
pub(super) struct ParameterDoc {
    /// The name in the signatures: that of the Rust parameter, or `#[name = "…"]`.
    pub(super) name: String,
    span: Span,
    pub(super) doc: String,
    default: Option<DefaultValue>,
}

/// What holds if a call leaves out a parameter.
struct DefaultValue {
    /// The default in the documentation.
    spelling: String,
    /// Its value. None if the attribute describes it in words.
    value: Option<TokenStream>,
}

impl ParameterDoc {
    /// A name in `parameters(…)`, after its attributes.
    pub(super) fn parse(input: syn::parse::ParseStream<'_>) -> syn::Result<ParameterDoc> {
        let attributes = input.call(Attribute::parse_outer)?;
        ParameterDoc::new(&input.call(Ident::parse_any)?, &attributes)
    }

    pub(super) fn new(ident: &Ident, attributes: &[Attribute]) -> syn::Result<ParameterDoc> {
        let doc = doc_comment(attributes).replace('\n', " ");
        if doc.is_empty() {
            let message = format!("document the parameter `{ident}` with a doc comment");
            return Err(syn::Error::new(ident.span(), message));
        }
        let attribute = |name| attributes.iter().find(|a| a.path().is_ident(name));
        Ok(ParameterDoc {
            name: match attribute("name") {
                Some(attribute) => literal(attribute.meta.require_name_value()?)?.value(),
                None => ident.unraw().to_string(),
            },
            span: ident.span(),
            doc,
            default: attribute("default").map(DefaultValue::parse).transpose()?,
        })
    }

    /// The value for a call that leaves out the parameter.
    pub(super) fn default_value(&self) -> syn::Result<&TokenStream> {
        let value = self.default.as_ref().and_then(|default| default.value.as_ref());
        value.ok_or_else(|| syn::Error::new(self.span, "a signature leaves it out: write `#[default(…)]`"))
    }

    /// The default in the documentation; empty if calls must provide the parameter.
    pub(super) fn default_text(&self) -> &str {
        self.default.as_ref().map_or("", |default| &default.spelling)
    }
}

impl DefaultValue {
    /// `#[default(0)]` is a value, `#[default = "the current directory"]` describes one in words.
    fn parse(attribute: &Attribute) -> syn::Result<DefaultValue> {
        if let Meta::NameValue(words) = &attribute.meta {
            return Ok(DefaultValue {
                spelling: literal(words)?.value(),
                value: None,
            });
        }
        let value = attribute.parse_args::<Expr>()?.into_token_stream();
        Ok(DefaultValue {
            spelling: value.to_string(),
            value: Some(value),
        })
    }
}

/// Checks that the parameters of the written signatures, and no others, are documented.
pub(super) fn check_documented(signatures: &[LitStr], documented: &[&ParameterDoc]) -> syn::Result<()> {
    let mut names = Vec::new();
    for signature in signatures {
        for name in parameter_names(&signature.value()) {
            if documented.iter().all(|parameter| parameter.name != name) {
                let message = format!("document the parameter `{name}` with a doc comment");
                return Err(syn::Error::new(signature.span(), message));
            }
            names.push(name);
        }
    }
    let unknown = |parameter: &&&ParameterDoc| !names.contains(&parameter.name);
    match documented.iter().find(unknown) {
        Some(parameter) if !signatures.is_empty() => {
            let message = format!("no signature has a parameter `{}`", parameter.name);
            Err(syn::Error::new(parameter.span, message))
        }
        _ => Ok(()),
    }
}

/// The function as the compiler takes it.
pub(super) fn without_parameter_attributes(mut function: ItemFn) -> ItemFn {
    for input in &mut function.sig.inputs {
        if let FnArg::Typed(input) = input {
            let is_ours = |name: &Ident| ["doc", "default", "name"].iter().any(|ours| name == ours);
            (input.attrs).retain(|attribute| !attribute.path().get_ident().is_some_and(is_ours));
        }
    }
    function
}

/// The string of `name = "…"`.
fn literal(pair: &MetaNameValue) -> syn::Result<LitStr> {
    syn::parse2(pair.value.to_token_stream())
}
