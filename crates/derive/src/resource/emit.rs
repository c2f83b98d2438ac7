//! What `#[derive(Resource)]` emits: a schema, decoding, setting of one parameter, `SPEC`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, Lit};

use super::attributes::{Default, Kind, KindField, Parameter, Role, span_of};
use super::plain_name;

/// Everything for one kind.
pub(super) fn kind(kind: &Kind) -> TokenStream {
    let Kind {
        ident, visibility, ..
    } = kind;
    let schema = schema(kind);
    let decode = decode(kind);
    let set = set(kind);
    let get = get(kind);
    let name = span_of(kind.options.kind.as_ref());
    let asynchronous = kind.options.asynchronous.then(|| quote!(.asynchronous()));
    let words = kind.options.action_words.as_ref();
    let action = words.map(|(done, would)| quote!(.with_action(#done, #would)));
    let background = kind
        .options
        .background
        .as_ref()
        .map(|path| quote!(.with_background(|task| ::std::boxed::Box::pin(#path(task)))));
    let spec = quote_spanned! {name=>
        impl #ident {
            /// The kind, complete.
            #visibility const SPEC: ::setpoint_engine::KindSpec =
                ::setpoint_engine::KindSpec::of::<#ident>() #asynchronous #background #action;
        }
    };
    quote! {
        const _: () = {
            #schema
            #[automatically_derived]
            impl ::setpoint_engine::Kind for #ident {
                const SCHEMA: &'static ::setpoint_graph::KindSchema = &SCHEMA;
                #decode
            }
            #[automatically_derived]
            impl ::setpoint_engine::ParameterAccess for #ident {
                fn schema(&self) -> &'static ::setpoint_graph::KindSchema {
                    &SCHEMA
                }
                #set
                #get
            }
        };
        #spec
    }
}

fn schema(kind: &Kind) -> TokenStream {
    let Kind {
        ident, doc, options, ..
    } = kind;
    let name = options.kind.as_ref();
    let parameters = kind.parameters().map(|(field, parameter)| {
        let Parameter {
            name,
            yaml_name,
            doc,
            unreachable,
            ..
        } = parameter;
        let ty = &field.ty;
        let parameter_type = quote_spanned!(ty.span()=> <#ty as ::setpoint_engine::Parameter>::TYPE);
        let default = parameter.default.text();
        let reachable = !unreachable;
        quote! {
            ::setpoint_graph::ParameterSchema {
                name: #name,
                yaml_name: #yaml_name,
                parameter_type: &#parameter_type,
                doc: #doc,
                default: #default,
                reachable: #reachable,
            }
        }
    });
    let constants = options.constants.iter().map(|(parameter, name, value)| {
        let (parameter, name) = (plain_name(parameter), plain_name(name));
        let value = match value {
            Lit::Int(number) => quote!(Int(#number)),
            text => quote!(Str(#text)),
        };
        quote! {
            ::setpoint_graph::Constant {
                parameter: #parameter,
                name: #name,
                value: ::setpoint_graph::ConstantValue::#value,
            }
        }
    });
    let sends = options
        .sends
        .as_ref()
        .map_or_else(|| quote!(()), |path| quote!(#path));
    let sends = quote_spanned!(sends.span()=> <#sends as ::setpoint_engine::Sends>::KEYS);
    let merge = options
        .merge
        .as_ref()
        .map_or_else(|| quote!(None), |path| quote!(Some(#path)));
    let flags = {
        let super::attributes::Options {
            receives,
            refreshable,
            reversible,
            autoedge,
            autogroup,
            exclusive,
            action,
            ..
        } = options;
        quote! {
            receives: #receives,
            refreshable: #refreshable,
            reversible: #reversible,
            autoedge: #autoedge,
            autogroup: #autogroup,
            exclusive: #exclusive,
            action: #action,
        }
    };
    quote! {
        static SCHEMA: ::setpoint_graph::KindSchema = ::setpoint_graph::KindSchema {
            kind: #name,
            doc: #doc,
            parameters: &[#(#parameters),*],
            sends: #sends,
            #flags
            constants: &[#(#constants),*],
            check: ::setpoint_engine::check::<#ident>,
            merge: #merge,
        };
    }
}

fn decode(kind: &Kind) -> TokenStream {
    let fields = kind.fields.iter().map(|field| {
        let KindField { ident, ty, role } = field;
        let value = match role {
            Role::State => quote!(::core::default::Default::default()),
            Role::Name => quote_spanned!(ty.span()=> <#ty as ::core::convert::From<&str>>::from(name)),
            Role::Parameter(parameter) => {
                let name = &parameter.name;
                let default = default(field, parameter);
                quote! {
                    ::setpoint_engine::parameter::decoded(parameters, #name, #default, &mut invalid)
                }
            }
        };
        quote!(#ident: #value)
    });
    quote! {
        fn decode(
            name: &str,
            parameters: &::setpoint_graph::Parameters,
        ) -> ::core::result::Result<Self, ::std::vec::Vec<::setpoint_graph::Invalid>> {
            let _ = (name, parameters);
            #[allow(unused_mut, reason = "a kind may have no parameters")]
            let mut invalid = ::std::vec::Vec::new();
            let decoded = Self { #(#fields),* };
            if invalid.is_empty() { Ok(decoded) } else { Err(invalid) }
        }
    }
}

fn set(kind: &Kind) -> TokenStream {
    let arms = kind.parameters().map(|(field, parameter)| {
        let ident = &field.ident;
        let name = &parameter.name;
        let default = default(field, parameter);
        quote! {
            #name => self.#ident = ::setpoint_engine::parameter::given(#name, value, #default)?,
        }
    });
    quote! {
        fn set(
            &mut self,
            name: &str,
            parameter: &str,
            value: ::core::option::Option<&::setpoint_value::Value>,
        ) -> ::core::result::Result<(), ::setpoint_graph::Invalid> {
            let _ = (name, value);
            match parameter {
                #(#arms)*
                other => return Err(::setpoint_engine::parameter::no_such(other)),
            }
            #[allow(unreachable_code, reason = "a kind may have no parameters")]
            Ok(())
        }
    }
}

fn get(kind: &Kind) -> TokenStream {
    let arms = kind.parameters().map(|(field, parameter)| {
        let ident = &field.ident;
        let name = &parameter.name;
        quote!(#name => ::setpoint_engine::Parameter::encode(&self.#ident),)
    });
    quote! {
        fn get(&self, parameter: &str) -> ::core::option::Option<::setpoint_value::Value> {
            #[allow(unreachable_code, reason = "a kind may have no parameters")]
            Some(match parameter {
                #(#arms)*
                _ => return None,
            })
        }
    }
}

/// A function for the value of a parameter that is not set. `name` is in scope.
fn default(field: &KindField, parameter: &Parameter) -> TokenStream {
    let ty = &field.ty;
    match &parameter.default {
        Default::Zero => {
            quote_spanned!(ty.span()=> <#ty as ::core::default::Default>::default)
        }
        Default::Expression(expression) => {
            let text = matches!(&**expression, Expr::Lit(literal) if matches!(literal.lit, Lit::Str(_)));
            if text {
                quote_spanned!(expression.span()=> || <#ty as ::core::convert::From<&str>>::from(#expression))
            } else {
                quote_spanned!(expression.span()=> || -> #ty { #expression })
            }
        }
        Default::Function(path) => quote_spanned!(path.span()=> || -> #ty { #path() }),
        Default::Name => quote_spanned!(ty.span()=> || <#ty as ::core::convert::From<&str>>::from(name)),
    }
}
