//! `#[function]`: a Rust function, or a source or shape of its own, becomes a `static` description of a function of the library.
//!
//! The attribute emits data and one small wrapper, nothing else. A function stays as it was written, beside it a `static NAME:
//! FunctionSpec` of the same visibility; a `static` that holds a source or shape is described in its place. Both belong to the module whose
//! table `MODULE` is in scope. Decoding of arguments and encoding of results are ordinary trait implementations in
//! `setpoint_value::native`, so that what the macro writes is only their calls.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Expr, FnArg, GenericArgument, Ident, Item, ItemFn, ItemStatic, LitStr, Pat};
use syn::{PathArguments, Type};

/// Expands the attribute; mistakes become compile errors at their place.
pub(crate) fn expand(attributes: TokenStream, item: TokenStream) -> TokenStream {
    let described = Options::parse(attributes).and_then(|options| match syn::parse2(item.clone())? {
        Item::Fn(function) => describe(&options, &function),
        Item::Static(source) => describe_static(&options, &source),
        other => Err(syn::Error::new_spanned(
            other,
            "expected a `fn`, or a `static` source or shape",
        )),
    });
    described.unwrap_or_else(|error| {
        let error = error.to_compile_error();
        quote!(#error #item)
    })
}

/// What stands in the attribute.
#[derive(Default)]
struct Options {
    name: Option<LitStr>,
    signatures: Vec<LitStr>,
    examples: Vec<(LitStr, LitStr)>,
    /// What parameters are for, by name.
    args: Vec<(Ident, LitStr)>,
    /// What holds where a parameter is left out, by name.
    defaults: Vec<(Ident, LitStr)>,
    /// Arguments as they are: `fn(&[Value], &Type)`, or `fn(&CallContext, &[Value])` of what asks the machine.
    raw: bool,
    /// `environment`, `source` or `stateful`: it asks the machine. The first parameter of a function is the `&CallContext`.
    class: Option<&'static str>,
    /// What tells a source to read again.
    watch: Option<Expr>,
    rearmed: bool,
    keyed: bool,
    /// The `static` is a shape.
    shape: bool,
    /// The answer depends on the module that calls.
    module_directory: bool,
    unpredictable: bool,
    /// Beyond what other implementations of mcl have.
    extension: bool,
    infer: Option<Expr>,
    flags: Option<Expr>,
    result_type: Option<Expr>,
    refine: Option<Expr>,
}

impl Options {
    fn parse(attributes: TokenStream) -> syn::Result<Options> {
        let mut options = Options::default();
        let parser = syn::meta::parser(|meta| options.entry(&meta));
        syn::parse::Parser::parse2(parser, attributes)?;
        Ok(options)
    }

    fn entry(&mut self, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
        let Some(key) = meta.path.get_ident().map(Ident::to_string) else {
            return Err(meta.error("expected a name"));
        };
        match key.as_str() {
            "name" => self.name = Some(meta.value()?.parse()?),
            "signature" => self.signatures.push(meta.value()?.parse()?),
            "example" => {
                let mut parts = named_texts(meta)?;
                let mut take = |name| {
                    parts
                        .iter()
                        .position(|(n, _)| n == name)
                        .map(|at| parts.remove(at).1)
                };
                let call = take("call").ok_or_else(|| meta.error("an example has a `call`"))?;
                let result = take("result").unwrap_or_else(|| LitStr::new("", Span::call_site()));
                if !parts.is_empty() {
                    return Err(meta.error("an example has a `call` and a `result`"));
                }
                self.examples.push((call, result));
            }
            "args" => self.args = named_texts(meta)?,
            "defaults" => self.defaults = named_texts(meta)?,
            "raw" => self.raw = true,
            "environment" => self.class = Some("Environment"),
            "source" => self.class = Some("Source"),
            "stateful" => self.class = Some("Stateful"),
            "watch" => {
                self.class = Some("Source");
                self.watch = Some(meta.value()?.parse()?);
            }
            "rearmed" => self.rearmed = true,
            "keyed" => self.keyed = true,
            "shape" => self.shape = true,
            "module_directory" => self.module_directory = true,
            "unpredictable" => self.unpredictable = true,
            "extension" => self.extension = true,
            "infer" => self.infer = Some(meta.value()?.parse()?),
            "flags" => self.flags = Some(meta.value()?.parse()?),
            "result_type" => self.result_type = Some(meta.value()?.parse()?),
            "refine" => self.refine = Some(meta.value()?.parse()?),
            _ => return Err(meta.error(format!("`{key}` is not an option of `#[function]`"))),
        }
        Ok(())
    }

    /// What follows the constructor: documentation, and all that is not at its default.
    fn further(&self, attributes: &[Attribute], flags: Option<TokenStream>) -> TokenStream {
        let doc = documentation(attributes);
        let examples = (self.examples.iter())
            .map(|(call, result)| quote!(::setpoint_value::Example { call: #call, result: #result }));
        let args = self.args.iter().map(|(name, doc)| {
            let default = self
                .defaults
                .iter()
                .find(|(n, _)| n == name)
                .map(|(_, default)| default);
            let (name, default) = (name.unraw().to_string(), default.into_iter());
            quote!(::setpoint_value::ParameterDoc { name: #name, doc: #doc, default: concat!(#(#default)*) })
        });
        let unpredictable = self.unpredictable.then(|| quote!(.unpredictable()));
        let extension = self.extension.then(|| quote!(.extension()));
        let infer = self.infer.as_ref().map(|e| quote!(.inferred_by(#e)));
        let result_type = self.result_type.as_ref().map(|e| quote!(.typed_by(#e)));
        let refine = self.refine.as_ref().map(|e| quote!(.refined_by(#e)));
        quote! {
            .documented(#doc, &[#(#examples),*])
            .with_parameters(&[#(#args),*], MODULE.parameters)
            #flags #unpredictable #extension #infer #result_type #refine
        }
    }
}

/// `args(text = "…", type = "…")`.
fn named_texts(meta: &ParseNestedMeta<'_>) -> syn::Result<Vec<(Ident, LitStr)>> {
    let content;
    syn::parenthesized!(content in meta.input);
    let entry = |input: syn::parse::ParseStream<'_>| {
        let name = input.call(Ident::parse_any)?;
        input.parse::<syn::Token![=]>()?;
        Ok((name, input.parse()?))
    };
    let entries = content.parse_terminated(entry, syn::Token![,])?;
    Ok(entries.into_iter().collect())
}

/// The description and the function itself.
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

    let signatures: Vec<TokenStream> = if options.signatures.is_empty() {
        let text = derived_signature(function, &parameters)?;
        vec![quote!(#text)]
    } else {
        options.signatures.iter().map(|s| quote!(#s)).collect()
    };

    let implementation = implementation(options, ident, &parameters);
    let constructor = if let Some(class) = options.class {
        let class = format_ident!("{class}");
        let (module_directory, rearmed, keyed) = (options.module_directory, options.rearmed, options.keyed);
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
                MODULE.name, #name, &[#(#signatures),*], ::setpoint_value::Class::#class, &#source,
            )
        }
    } else {
        quote!(::setpoint_value::FunctionSpec::pure(MODULE.name, #name, &[#(#signatures),*], #implementation))
    };
    let further = options.further(&function.attrs, flags(options, &parameters));
    Ok(quote! {
        #(#doc_attributes)*
        #visibility static #spec: ::setpoint_value::FunctionSpec = #constructor #further;
        #function
    })
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
    let further = options.further(&item.attrs, flags);
    let doc_attributes = item.attrs.iter().filter(|a| a.path().is_ident("doc"));
    Ok(quote! {
        #(#doc_attributes)*
        #visibility static #ident: ::setpoint_value::FunctionSpec = ::setpoint_value::FunctionSpec::#constructor(
            MODULE.name, #name, &[#(#signatures),*], #class
            { static IMPLEMENTATION: #ty = #expr; &IMPLEMENTATION },
        ) #further;
    })
}

/// A parameter of the Rust function that takes part in the description.
enum Parameter<'a> {
    /// An argument of the call.
    Argument { name: String, ty: &'a Type },
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
                name: pattern.ident.unraw().to_string(),
                ty: &input.ty,
            },
        });
    }
    Ok(parameters)
}

/// `fn(&[Value], &Type) -> Result<Value, CallError>`, or with the context first.
fn implementation(options: &Options, ident: &Ident, parameters: &[Parameter<'_>]) -> TokenStream {
    if options.raw {
        return quote!(#ident);
    }
    let mut index = 0usize;
    let inputs: Vec<TokenStream> = parameters
        .iter()
        .map(|parameter| match parameter {
            Parameter::Context => quote!(context),
            Parameter::Result => quote!(result),
            Parameter::Argument { .. } => {
                let at = index;
                index += 1;
                quote!(::setpoint_value::native::argument(arguments, #at)?)
            }
        })
        .collect();
    let call = quote!(::setpoint_value::native::answer(#ident(#(#inputs),*), result));
    if options.class.is_some() {
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
    }
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

/// The signature that the Rust types spell; an error that asks for `signature` where they do not.
fn derived_signature(function: &ItemFn, parameters: &[Parameter<'_>]) -> syn::Result<String> {
    let unclear = |ty: &dyn quote::ToTokens| {
        syn::Error::new_spanned(ty, "this type says too little: write `signature = \"func(…) …\"`")
    };
    let mut text = String::from("func(");
    let mut first = true;
    for parameter in parameters {
        let Parameter::Argument { name, ty } = parameter else {
            continue;
        };
        if !first {
            text.push_str(", ");
        }
        first = false;
        text.push_str(&format!("{name} {}", spelling(ty).ok_or_else(|| unclear(ty))?));
    }
    let syn::ReturnType::Type(_, ty) = &function.sig.output else {
        return Err(unclear(&function.sig.ident));
    };
    let ty = generic(ty, "Result").unwrap_or(ty);
    text.push_str(&format!(") {}", spelling(ty).ok_or_else(|| unclear(ty))?));
    Ok(text)
}

/// How a Rust type is spelt in a signature.
fn spelling(ty: &Type) -> Option<String> {
    if let Type::Reference(reference) = ty {
        if let Type::Slice(slice) = &*reference.elem {
            return (last_segment(&slice.elem)? == "u8").then(|| "str".to_owned());
        }
        return spelling(&reference.elem);
    }
    if let Some(inner) = generic(ty, "Option") {
        return Some(format!("{}?", spelling(inner)?));
    }
    if let Some(inner) = generic(ty, "Vec") {
        let inner = spelling_of_element(inner)?;
        return Some(inner);
    }
    Some(
        match last_segment(ty)?.as_str() {
            "str" | "String" | "Str" => "str",
            "i64" => "int",
            "f64" => "float",
            "bool" => "bool",
            _ => return None,
        }
        .to_owned(),
    )
}

/// `Vec<u8>` is a string, any other `Vec` a list.
fn spelling_of_element(inner: &Type) -> Option<String> {
    if last_segment(inner).is_some_and(|name| name == "u8") {
        Some("str".to_owned())
    } else {
        Some(format!("[]{}", spelling(inner)?))
    }
}

/// The last name of a path: `Value` of `setpoint_value::Value`.
fn last_segment(ty: &Type) -> Option<String> {
    match ty {
        Type::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
        Type::Reference(reference) => last_segment(&reference.elem),
        _ => None,
    }
}

/// The last name of a path behind a reference.
fn referenced(ty: &Type) -> Option<String> {
    match ty {
        Type::Reference(reference) => last_segment(&reference.elem),
        _ => None,
    }
}

/// `T` of `name<T, …>`.
fn generic<'a>(ty: &'a Type, name: &str) -> Option<&'a Type> {
    let Type::Path(path) = ty else {
        return None;
    };
    let segment = path.path.segments.last().filter(|s| s.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return None;
    };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

/// The doc comment, a line each line.
fn documentation(attributes: &[Attribute]) -> String {
    let mut lines = Vec::new();
    for attribute in attributes.iter().filter(|a| a.path().is_ident("doc")) {
        if let syn::Meta::NameValue(pair) = &attribute.meta
            && let Ok(text) = syn::parse2::<LitStr>(pair.value.to_token_stream())
        {
            let text = text.value();
            lines.push(text.strip_prefix(' ').unwrap_or(&text).to_owned());
        }
    }
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(attributes: TokenStream, item: TokenStream) -> String {
        expand(attributes, item).to_string()
    }

    #[test]
    fn the_signature_follows_from_the_rust_types() {
        let text = expanded(
            quote!(example(call = "m.f(1)", result = "2")),
            quote! {
                /// Says something.
                fn f(a: i64, r#type: &str, c: Vec<&[u8]>, d: Option<f64>) -> Result<Vec<u8>, CallError> { todo() }
            },
        );
        assert!(
            text.contains("\"func(a int, type str, c []str, d float?) str\""),
            "{text}"
        );
        assert!(
            text.contains("static F :")
                && text.contains("MODULE . name")
                && text.contains("\"Says something.\""),
            "{text}"
        );
        assert!(text.contains("allow_null : true"), "{text}");
    }

    #[test]
    fn mistakes_are_errors_that_keep_the_function() {
        for (attributes, item, problem) in [
            (
                quote!(modul = "m"),
                quote!(
                    fn f() -> bool {
                        true
                    }
                ),
                "is not an option",
            ),
            (
                quote!(),
                quote!(
                    fn f(a: &Value) -> bool {
                        true
                    }
                ),
                "says too little",
            ),
            (
                quote!(),
                quote!(
                    fn f() {}
                ),
                "says too little",
            ),
            (
                quote!(example(result = "1")),
                quote!(
                    fn f() -> bool {
                        true
                    }
                ),
                "has a `call`",
            ),
        ] {
            let text = expanded(attributes, item);
            assert!(text.contains("compile_error") && text.contains(problem), "{text}");
            assert!(text.contains("fn f"), "{text}");
        }
    }
}
