//! `#[derive(ParameterStruct)]`, `#[derive(ParameterGroup)]` and `#[derive(Sends)]`: structs inside parameters, structs of several
//! parameters, and structs of send keys.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, DeriveInput, Ident, Type};

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
        let parameter_type = quote_spanned!(ty.span()=> <#ty as ::setpoint_engine::Parameter>::TYPE);
        quote!((#name, &#parameter_type))
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
            const FIELDS: &'static [(&'static str, &'static ::setpoint_graph::ParameterType)] = &[#(#natives),*];
        }

        #[automatically_derived]
        impl ::setpoint_engine::Parameter for #ident {
            const TYPE: ::setpoint_graph::ParameterType =
                ::setpoint_graph::ParameterType::Struct(<#ident as ::setpoint_engine::ParameterStruct>::FIELDS);

            fn decode(
                value: &::setpoint_value::Value,
            ) -> ::core::result::Result<Self, ::setpoint_graph::TypeMismatch> {
                Ok(Self { #(#decoded),* })
            }

            fn encode(&self) -> ::setpoint_value::Value {
                ::setpoint_value::Value::structure(
                    <Self as ::setpoint_engine::Parameter>::TYPE.ty(),
                    ::std::vec![#(#encoded),*],
                )
            }
        }
    })
}

/// Gives each field a constant with its description, for the kinds that take the group in.
pub(super) fn parameter_group(input: &DeriveInput) -> syn::Result<TokenStream> {
    let (ident, visibility) = (&input.ident, &input.vis);
    let mut constants = Vec::new();
    for field in &named_fields(input)?.named {
        let (Some(field_ident), ty) = (&field.ident, &field.ty) else {
            continue;
        };
        let name = plain_name(field_ident);
        let doc = documentation(&field.attrs, field_ident)?;
        let constant = group_constant(field_ident);
        let parameter = quote_spanned!(ty.span()=> <#ty as ::setpoint_engine::Parameter>);
        constants.push(quote! {
            #visibility const #constant: ::setpoint_graph::ParameterSchema = ::setpoint_graph::ParameterSchema {
                name: #name,
                yaml_name: #name,
                parameter_type: &#parameter::TYPE,
                form: #parameter::FORM,
                doc: #doc,
                default: "",
            };
        });
    }
    Ok(quote! {
        #[automatically_derived]
        impl #ident { #(#constants)* }
    })
}

/// The constant of a group with the description of a field.
pub(super) fn group_constant(field: &Ident) -> Ident {
    Ident::new(&plain_name(field).to_uppercase(), field.span())
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
        let secrecy = secrecy(&field.attrs)?;
        let parameter_type = quote_spanned!(ty.span()=> <#ty as ::setpoint_engine::Sendable>::SENT);
        keys.push(quote! {
            ::setpoint_graph::SendKey {
                name: #name,
                parameter_type: &#parameter_type,
                doc: #doc,
                secrecy: #secrecy,
            }
        });
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

/// When a key is sensitive, as `#[send(…)]` says it.
fn secrecy(attributes: &[Attribute]) -> syn::Result<TokenStream> {
    let mut found = quote!(WithParameters);
    for attribute in attributes.iter().filter(|a| a.path().is_ident("send")) {
        attribute.parse_nested_meta(|meta| {
            found = if meta.path.is_ident("reveals_nothing") {
                quote!(Never)
            } else if meta.path.is_ident("sensitive") {
                quote!(Always)
            } else {
                return Err(meta.error("the options of `#[send]` are `reveals_nothing` and `sensitive`"));
            };
            Ok(())
        })?;
    }
    Ok(quote!(::setpoint_graph::Secrecy::#found))
}
