//! `#[derive(ParameterStruct)]` and `#[derive(Sends)]`: structs inside parameters, and structs of send keys.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DeriveInput, Ident, Type};

use super::{documentation, named_fields, plain_name};

/// Implements `ParameterStruct` and, over it, `Parameter`.
pub(super) fn parameter_struct(input: &DeriveInput) -> syn::Result<TokenStream> {
    let ident = &input.ident;
    let fields: Vec<(&Ident, String, &Type)> = named_fields(input)?
        .named
        .iter()
        .filter_map(|field| {
            let ident = field.ident.as_ref()?;
            Some((ident, plain_name(ident), &field.ty))
        })
        .collect();
    let natives = fields.iter().map(|(_, name, ty)| {
        let native = quote_spanned!(ty.span()=> <#ty as ::setpoint_engine::Parameter>::NATIVE);
        quote!((#name, &#native))
    });
    let decoded = fields
        .iter()
        .map(|(ident, name, _)| quote!(#ident: ::setpoint_engine::parameter::struct_field(value, #name)?));
    let encoded = fields
        .iter()
        .map(|(ident, ..)| quote!(::setpoint_engine::Parameter::encode(&self.#ident)));
    Ok(quote! {
        #[automatically_derived]
        impl ::setpoint_engine::ParameterStruct for #ident {
            const FIELDS: &'static [(&'static str, &'static ::setpoint_graph::Native)] = &[#(#natives),*];
        }

        #[automatically_derived]
        impl ::setpoint_engine::Parameter for #ident {
            const NATIVE: ::setpoint_graph::Native =
                ::setpoint_graph::Native::Struct(<#ident as ::setpoint_engine::ParameterStruct>::FIELDS);

            fn decode(
                value: &::setpoint_value::Value,
            ) -> ::core::result::Result<Self, ::setpoint_graph::Misfit> {
                Ok(Self { #(#decoded),* })
            }

            fn encode(&self) -> ::setpoint_value::Value {
                ::setpoint_value::Value::structure(
                    <Self as ::setpoint_engine::Parameter>::NATIVE.ty(),
                    ::std::vec![#(#encoded),*],
                )
            }
        }
    })
}

/// Implements `Sends`.
pub(super) fn sends(input: &DeriveInput) -> syn::Result<TokenStream> {
    let ident = &input.ident;
    let mut keys = Vec::new();
    let mut values = Vec::new();
    for field in &named_fields(input)?.named {
        let (Some(field_ident), ty) = (&field.ident, &field.ty) else {
            continue;
        };
        let name = plain_name(field_ident);
        let doc = documentation(&field.attrs, field_ident)?;
        let native = quote_spanned!(ty.span()=> <#ty as ::setpoint_engine::Sendable>::SENT);
        keys.push(quote!(::setpoint_graph::SendKey { name: #name, native: &#native, doc: #doc }));
        values.push(quote!((#name, ::setpoint_engine::Sendable::into_sent(self.#field_ident))));
    }
    Ok(quote! {
        #[automatically_derived]
        impl ::setpoint_engine::Sends for #ident {
            const KEYS: &'static [::setpoint_graph::SendKey] = &[#(#keys),*];

            fn into_keys(
                self,
            ) -> ::std::vec::Vec<(&'static str, ::core::option::Option<::setpoint_value::Value>)> {
                ::std::vec![#(#values),*]
            }
        }
    })
}
