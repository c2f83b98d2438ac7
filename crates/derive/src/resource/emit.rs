//! What `#[derive(Resource)]` emits: a schema, decoding, setting of one parameter, `SPEC`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, Lit};

use super::attributes::{Default, Kind, KindField, Parameter, Role, span_of};
use super::plain_name;
use super::structs::group_constant;

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
    let inquires = kind.options.inquires.then(|| quote!(.inquiring()));
    let asynchronous = kind.options.asynchronous.then(|| quote!(.asynchronous()));
    let reads_back = kind.options.reads_back.then(|| quote!(.reading_back()));
    let words = kind.options.action_words.as_ref();
    let action = words.map(|(done, would)| quote!(.with_action(#done, #would)));
    let brings = kind.options.brings.as_ref().map(|word| {
        let variant = if word == "anything" { "Anything" } else { "Nothing" };
        let variant = syn::Ident::new(variant, word.span());
        quote!(.bringing(::setpoint_engine::Brings::#variant))
    });
    let independent: Vec<&str> = kind.fields.iter().filter_map(independent).collect();
    let independent = (!independent.is_empty()).then(|| quote!(.with_independent(&[#(#independent),*])));
    let background = kind
        .options
        .background
        .as_ref()
        .map(|path| quote!(.with_background(|task| ::std::boxed::Box::pin(#path(task)))));
    let spec = quote_spanned! {name=>
        impl #ident {
            /// The kind, complete.
            #visibility const SPEC: ::setpoint_engine::KindSpec =
                ::setpoint_engine::KindSpec::of::<#ident>() #asynchronous #reads_back #inquires #brings #independent #background #action;
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

/// The name of an independent parameter.
fn independent(field: &KindField) -> Option<&str> {
    match &field.role {
        Role::Parameter(parameter) if parameter.independent => Some(&parameter.name),
        _ => None,
    }
}

fn schema(kind: &Kind) -> TokenStream {
    let Kind {
        ident, doc, options, ..
    } = kind;
    let name = options.kind.as_ref();
    let parameters = kind.fields.iter().flat_map(parameter_schemas);
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
            has_doubts: ::setpoint_engine::has_doubts::<#ident>,
            merge: #merge,
        };
    }
}

/// The descriptions of the parameters that a field is.
fn parameter_schemas(field: &KindField) -> Vec<TokenStream> {
    let ty = &field.ty;
    match &field.role {
        Role::Parameter(parameter) => {
            let Parameter {
                name, yaml_name, doc, ..
            } = &**parameter;
            let described = quote_spanned!(ty.span()=> <#ty as ::setpoint_engine::Parameter>);
            let default = parameter.default.text();
            vec![quote! {
                ::setpoint_graph::ParameterSchema {
                    name: #name,
                    yaml_name: #yaml_name,
                    parameter_type: &#described::TYPE,
                    form: #described::FORM,
                    doc: #doc,
                    default: #default,
                }
            }]
        }
        Role::Group(members) => members
            .iter()
            .map(|member| {
                let name = &member.name;
                let doc = member.doc.as_ref().map(|doc| quote!(doc: #doc,));
                let constant = group_constant(&member.ident);
                let described = quote_spanned!(ty.span()=> <#ty>::#constant);
                quote!(::setpoint_graph::ParameterSchema { name: #name, yaml_name: #name, #doc ..#described })
            })
            .collect(),
        Role::Name | Role::State => Vec::new(),
    }
}

fn decode(kind: &Kind) -> TokenStream {
    let fields = kind.fields.iter().map(|field| {
        let KindField { ident, ty, role } = field;
        let decoded = |name: &str, default| {
            quote!(::setpoint_engine::parameter::decoded(parameters, #name, #default, invalid))
        };
        let value = match role {
            Role::State => quote!(::core::default::Default::default()),
            Role::Name => quote_spanned!(ty.span()=> <#ty as ::core::convert::From<&str>>::from(name)),
            Role::Parameter(parameter) => decoded(&parameter.name, default(field, parameter)),
            Role::Group(members) => {
                let members = members.iter().map(|member| {
                    let ident = &member.ident;
                    let value = decoded(&member.name, quote!(::core::default::Default::default));
                    quote!(#ident: #value)
                });
                quote_spanned!(ty.span()=> #ty { #(#members),* })
            }
        };
        quote!(#ident: #value)
    });
    quote! {
        fn decode(
            name: &str,
            parameters: &::setpoint_graph::Parameters,
            invalid: &mut ::std::vec::Vec<::setpoint_graph::Invalid>,
        ) -> Self {
            let _ = (name, parameters, &invalid);
            Self { #(#fields),* }
        }
    }
}

fn set(kind: &Kind) -> TokenStream {
    let arms = places(kind).map(|(name, place, default)| {
        quote!(#name => self.#place = ::setpoint_engine::parameter::given(#name, value, #default)?,)
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
    let arms = places(kind)
        .map(|(name, place, _)| quote!(#name => ::setpoint_engine::Parameter::encode(&self.#place),));
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

/// Each parameter's name, where in the struct it is kept, and a function for its value when it is not set.
fn places(kind: &Kind) -> impl Iterator<Item = (&str, TokenStream, TokenStream)> {
    kind.fields.iter().flat_map(|field| {
        let ident = &field.ident;
        match &field.role {
            Role::Parameter(parameter) => {
                vec![(parameter.name.as_str(), quote!(#ident), default(field, parameter))]
            }
            Role::Group(members) => {
                let place = |inner| (quote!(#ident.#inner), quote!(::core::default::Default::default));
                let members = members
                    .iter()
                    .map(|member| (member.name.as_str(), place(&member.ident)));
                members
                    .map(|(name, (place, default))| (name, place, default))
                    .collect()
            }
            Role::Name | Role::State => Vec::new(),
        }
    })
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
