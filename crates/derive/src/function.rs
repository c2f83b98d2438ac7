//! `#[function]`: a Rust function, or a source or shape of its own, becomes a `static` description of a function of the library.
//!
//! The attribute emits data and one small wrapper, nothing else. A function stays as it was written, beside it a `static NAME:
//! FunctionSpec` of the same visibility; a `static` that holds a source or shape is described in its place. Both belong to the module whose
//! table `MODULE` is in scope. Doc comments and other attributes of parameters move into the description, because the compiler does not
//! allow them there. Decoding of arguments and encoding of results are ordinary trait implementations in `setpoint_value::native`, so that
//! what the macro writes is only their calls.

mod options;
mod parameter_doc;
mod signature;

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::{Attribute, FnArg, Ident, Item, ItemFn, ItemStatic, LitStr, Pat, Type};

use crate::doc_comment::doc_comment;
use options::Options;
use parameter_doc::{ParameterDoc, check_documented, without_parameter_attributes};
use signature::{derived_signature, generic, parameter_names, referenced};

/// Expands the attribute; mistakes become compile errors at their place.
pub(crate) fn expand(attributes: TokenStream, item: TokenStream) -> TokenStream {
    let options = Options::parse(attributes);
    let (described, item) = match syn::parse2(item.clone()) {
        Ok(Item::Fn(function)) => {
            let described = options.and_then(|options| describe(&options, &function));
            let function = without_parameter_attributes(function);
            (described, function.into_token_stream())
        }
        Ok(Item::Static(source)) => {
            let described = options.and_then(|options| describe_static(&options, &source));
            // The description replaces the item.
            let item = if described.is_ok() {
                TokenStream::new()
            } else {
                item
            };
            (described, item)
        }
        Ok(other) => {
            let error = syn::Error::new_spanned(&other, "expected a `fn`, or a `static` source or shape");
            (Err(error), item)
        }
        Err(error) => (Err(error), item),
    };
    let described = described.unwrap_or_else(|error| error.to_compile_error());
    quote!(#described #item)
}

/// The description of a function.
fn describe(options: &Options, function: &ItemFn) -> syn::Result<TokenStream> {
    let ident = &function.sig.ident;
    let rust_name = ident.unraw().to_string();
    let name = options
        .name
        .as_ref()
        .map_or_else(|| rust_name.clone(), LitStr::value);
    let spec = format_ident!("{}", rust_name.to_uppercase(), span = ident.span());
    let visibility = &function.vis;
    let doc_attributes = function.attrs.iter().filter(|a| a.path().is_ident("doc"));
    let parameters = parameters(options, function)?;
    let documented = parameters.iter().filter_map(|parameter| match parameter {
        Parameter::Argument { doc, .. } => Some(doc),
        Parameter::Context | Parameter::Result => None,
    });
    let documented: Vec<&ParameterDoc> = documented.chain(&options.parameters).collect();
    check_documented(&options.signatures, &documented)?;

    let signatures: Vec<TokenStream> = if options.signatures.is_empty() {
        let text = derived_signature(function, &parameters)?;
        vec![quote!(#text)]
    } else {
        options.signatures.iter().map(|s| quote!(#s)).collect()
    };

    let implementation = implementation(options, ident, &parameters)?;
    let constructor = |module: TokenStream| {
        if let Some(class) = options.class {
            let class = format_ident!("{class}");
            let (module_directory, rearmed, keyed) =
                (options.module_directory, options.rearmed, options.keyed);
            let source = match &options.watch {
                Some(watch) => quote! {
                    ::setpoint_value::Follow { read: #implementation, watch: #watch, rearmed: #rearmed, keyed: #keyed }
                },
                None => quote! {
                    ::setpoint_value::ReadOnce { read: #implementation, reads_module_directory: #module_directory }
                },
            };
            quote! {
                ::setpoint_value::FunctionSpec::source(
                    #module, #name, &[#(#signatures),*], ::setpoint_value::Class::#class, &#source,
                )
            }
        } else {
            quote!(::setpoint_value::FunctionSpec::pure(#module, #name, &[#(#signatures),*], #implementation))
        }
    };
    let further = options.further(&function.attrs, &documented, flags(options, &parameters));
    let mut listed = vec![(spec, constructor(quote!(MODULE.name)))];
    if let Some(module) = &options.alias {
        let prefix = module.value().replace('/', "_").to_uppercase();
        let spec = format_ident!("{prefix}_{}", listed[0].0);
        listed.push((spec, constructor(module.to_token_stream())));
    }
    let doc_attributes: Vec<_> = doc_attributes.collect();
    let described = listed.iter().map(|(spec, constructor)| {
        quote! {
            #(#doc_attributes)*
            #visibility static #spec: ::setpoint_value::FunctionSpec = #constructor #further;
        }
    });
    Ok(quote!(#(#described)*))
}

/// The description of a source or shape, in the place of the `static` that holds it.
fn describe_static(options: &Options, item: &ItemStatic) -> syn::Result<TokenStream> {
    let (ident, visibility, ty, expr) = (&item.ident, &item.vis, &item.ty, &item.expr);
    let name = options
        .name
        .as_ref()
        .map_or_else(|| ident.to_string().to_lowercase(), LitStr::value);
    if options.signatures.is_empty() {
        return Err(syn::Error::new_spanned(
            ident,
            "write `signature = \"func(…) …\"`",
        ));
    }
    let signatures = &options.signatures;
    let (constructor, class) = if options.shape {
        (format_ident!("shape"), None)
    } else {
        let class = format_ident!("{}", options.class.unwrap_or("Source"));
        (
            format_ident!("source"),
            Some(quote!(::setpoint_value::Class::#class,)),
        )
    };
    let flags = options.flags.as_ref().map(|flags| quote!(.with_flags(#flags)));
    let documented: Vec<&ParameterDoc> = options.parameters.iter().collect();
    check_documented(signatures, &documented)?;
    let further = options.further(&item.attrs, &documented, flags);
    let doc_attributes = item.attrs.iter().filter(|a| a.path().is_ident("doc"));
    Ok(quote! {
        #(#doc_attributes)*
        #visibility static #ident: ::setpoint_value::FunctionSpec = ::setpoint_value::FunctionSpec::#constructor(
            MODULE.name, #name, &[#(#signatures),*], #class
            { static IMPLEMENTATION: #ty = #expr; &IMPLEMENTATION },
        ) #further;
    })
}

impl Options {
    /// What follows the constructor: documentation, and all that is not at its default.
    fn further(
        &self,
        attributes: &[Attribute],
        parameters: &[&ParameterDoc],
        flags: Option<TokenStream>,
    ) -> TokenStream {
        let doc = doc_comment(attributes);
        let examples = (self.examples.iter())
            .map(|(call, result)| quote!(::setpoint_value::Example { call: #call, result: #result }));
        let parameters = parameters.iter().map(|parameter| {
            let (name, doc) = (&parameter.name, &parameter.doc);
            let default = parameter.default_text();
            quote!(::setpoint_value::ParameterDoc { name: #name, doc: #doc, default: #default })
        });
        let unpredictable = self.unpredictable.then(|| quote!(.unpredictable()));
        let commands = self.runs_commands.then(|| quote!(.running_commands()));
        let extension = self.extension.then(|| quote!(.extension()));
        let infer = self.infer.as_ref().map(|e| quote!(.inferred_by(#e)));
        let result_type = self.result_type.as_ref().map(|e| quote!(.typed_by(#e)));
        let refine = self.refine.as_ref().map(|e| quote!(.refined_by(#e)));
        quote! {
            .documented(#doc, &[#(#parameters),*], &[#(#examples),*])
            #flags #unpredictable #commands #extension #infer #result_type #refine
        }
    }
}

/// A parameter of the Rust function that takes part in the description.
enum Parameter<'a> {
    /// An argument of the call.
    Argument { doc: ParameterDoc, ty: &'a Type },
    /// The `&CallContext` of what asks the machine.
    Context,
    /// A `&Type`: the result type that was decided for the call.
    Result,
}

fn parameters<'a>(options: &Options, function: &'a ItemFn) -> syn::Result<Vec<Parameter<'a>>> {
    if options.raw {
        return Ok(Vec::new());
    }
    let mut parameters = Vec::new();
    for input in &function.sig.inputs {
        let FnArg::Typed(input) = input else {
            return Err(syn::Error::new_spanned(
                input,
                "a function of the library has no `self`",
            ));
        };
        let Pat::Ident(pattern) = &*input.pat else {
            return Err(syn::Error::new_spanned(&input.pat, "expected a plain name"));
        };
        parameters.push(match referenced(&input.ty).as_deref() {
            Some("CallContext") => Parameter::Context,
            Some("Type") => Parameter::Result,
            _ => Parameter::Argument {
                doc: ParameterDoc::new(&pattern.ident, &input.attrs)?,
                ty: &input.ty,
            },
        });
    }
    Ok(parameters)
}

/// `fn(&[Value], &Type) -> Result<Value, CallError>`, or with the context first.
fn implementation(
    options: &Options,
    ident: &Ident,
    parameters: &[Parameter<'_>],
) -> syn::Result<TokenStream> {
    if options.raw {
        return Ok(quote!(#ident));
    }
    let call = call(options, ident, parameters)?;
    Ok(if options.class.is_some() {
        quote! {
            |context, arguments| {
                let _ = arguments;
                let result = context.result;
                ::setpoint_value::native::decoded(result, (|| Ok(#call))())
            }
        }
    } else {
        quote! {
            |arguments, result| {
                let _ = arguments;
                ::setpoint_value::native::decoded(result, (|| Ok(#call))())
            }
        }
    })
}

/// The call of the function. If signatures leave out parameters, the number of arguments selects one.
fn call(options: &Options, ident: &Ident, parameters: &[Parameter<'_>]) -> syn::Result<TokenStream> {
    let docs = parameters.iter().filter_map(|parameter| match parameter {
        Parameter::Argument { doc, .. } => Some(doc),
        Parameter::Context | Parameter::Result => None,
    });
    let docs: Vec<&ParameterDoc> = docs.collect();
    let call = |position: &dyn Fn(&ParameterDoc) -> Option<usize>| {
        let inputs = parameters.iter().map(|parameter| {
            Ok(match parameter {
                Parameter::Context => quote!(context),
                Parameter::Result => quote!(result),
                Parameter::Argument { doc, .. } => match position(doc) {
                    Some(at) => quote!(::setpoint_value::native::argument(arguments, #at)?),
                    None => doc.default_value()?.clone(),
                },
            })
        });
        let inputs = inputs.collect::<syn::Result<Vec<_>>>()?;
        Ok::<_, syn::Error>(quote!(::setpoint_value::native::answer(#ident(#(#inputs),*), result)))
    };
    let alternatives: Vec<Vec<String>> = options
        .signatures
        .iter()
        .map(|signature| parameter_names(&signature.value()))
        .collect();
    if alternatives.iter().all(|names| names.len() == docs.len()) {
        return call(&|doc| docs.iter().position(|other| other.name == doc.name));
    }
    let arms = alternatives.iter().enumerate().map(|(at, names)| {
        let call = call(&|doc| names.iter().position(|name| *name == doc.name))?;
        let count = names.len();
        let is_last = at + 1 == alternatives.len();
        Ok(if is_last {
            quote!(_ => #call)
        } else {
            quote!(#count => #call)
        })
    });
    let arms = arms.collect::<syn::Result<Vec<TokenStream>>>()?;
    Ok(quote!(match arguments.len() { #(#arms),* }))
}

/// `Option<T>` parameters take null; nothing else does unless the attribute says so.
fn flags(options: &Options, parameters: &[Parameter<'_>]) -> Option<TokenStream> {
    if let Some(flags) = &options.flags {
        return Some(quote!(.with_flags(#flags)));
    }
    let nullable: Vec<bool> = parameters
        .iter()
        .filter_map(|p| match p {
            Parameter::Argument { ty, .. } => Some(generic(ty, "Option").is_some()),
            Parameter::Context | Parameter::Result => None,
        })
        .collect();
    nullable.contains(&true).then(|| {
        let flags = nullable.iter().map(|allow_null| {
            quote!(::setpoint_value::ParameterFlags {
                allow_null: #allow_null,
                allow_unknown: false,
                allow_dynamic: false,
                allow_marked: false,
            })
        });
        quote!(.with_flags(&[#(#flags),*]))
    })
}

#[cfg(test)]
mod tests;
