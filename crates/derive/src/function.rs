//! `#[function]`: a Rust function becomes a `static` description of a function of the library.
//!
//! The attribute emits data and one small wrapper, nothing else: the function stays as it was written, beside it a
//! `static NAME: FunctionSpec` of the same visibility, which belongs to the module whose table `MODULE` is in scope. Decoding of arguments and encoding of results are ordinary trait
//! implementations in `setpoint_value::native`, so that what the macro writes is only their calls.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Expr, FnArg, GenericArgument, Ident, ItemFn, LitStr, Pat, PathArguments, Type};

/// Expands the attribute; mistakes become compile errors at their place.
pub(crate) fn expand(attributes: TokenStream, item: TokenStream) -> TokenStream {
    let parsed = Options::parse(attributes).and_then(|options| {
        let function: ItemFn = syn::parse2(item.clone())?;
        Ok((options, function))
    });
    match parsed.and_then(|(options, function)| describe(&options, &function)) {
        Ok(tokens) => tokens,
        Err(error) => {
            let error = error.to_compile_error();
            quote!(#error #item)
        }
    }
}

/// What stands in the attribute.
#[derive(Default)]
struct Options {
    name: Option<LitStr>,
    signatures: Vec<LitStr>,
    examples: Vec<(LitStr, LitStr)>,
    /// Arguments as they are: `fn(&[Value], &Type)`, or `fn(&CallContext, &[Value])` with `environment`.
    raw: bool,
    /// Reads the machine once for given arguments; the first parameter is the `&CallContext`.
    environment: bool,
    /// An `environment` function whose answer depends on the module that calls.
    module_directory: bool,
    unpredictable: bool,
    /// Beyond what other implementations of mcl have.
    extension: bool,
    infer: Option<Expr>,
    /// An inference hook for a function of the dynamic protocol, which mcl calls with conversions.
    adapted: Option<Expr>,
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
                let (mut call, mut result) = (None, None);
                meta.parse_nested_meta(|inner| {
                    if inner.path.is_ident("call") {
                        call = Some(inner.value()?.parse()?);
                    } else if inner.path.is_ident("result") {
                        result = Some(inner.value()?.parse()?);
                    } else {
                        return Err(inner.error("expected `call` or `result`"));
                    }
                    Ok(())
                })?;
                let call = call.ok_or_else(|| meta.error("an example has a `call`"))?;
                self.examples
                    .push((call, result.unwrap_or_else(|| LitStr::new("", Span::call_site()))));
            }
            "raw" => self.raw = true,
            "environment" => self.environment = true,
            "module_directory" => self.module_directory = true,
            "unpredictable" => self.unpredictable = true,
            "extension" => self.extension = true,
            "infer" => self.infer = Some(meta.value()?.parse()?),
            "adapted" => self.adapted = Some(meta.value()?.parse()?),
            "flags" => self.flags = Some(meta.value()?.parse()?),
            "result_type" => self.result_type = Some(meta.value()?.parse()?),
            "refine" => self.refine = Some(meta.value()?.parse()?),
            _ => return Err(meta.error(format!("`{key}` is not an option of `#[function]`"))),
        }
        Ok(())
    }
}

/// The description and the function itself.
fn describe(options: &Options, function: &ItemFn) -> syn::Result<TokenStream> {
    let ident = &function.sig.ident;
    let rust_name = ident.to_string();
    let rust_name = rust_name.trim_start_matches("r#");
    let name = options
        .name
        .as_ref()
        .map_or_else(|| rust_name.to_owned(), LitStr::value);
    let spec = format_ident!("{}", rust_name.to_uppercase(), span = ident.span());
    let doc = documentation(&function.attrs);
    let visibility = &function.vis;
    let doc_attributes = function.attrs.iter().filter(|a| a.path().is_ident("doc"));
    let parameters = parameters(options, function)?;

    let derived = derived_signature(function, &parameters);
    let signatures: Vec<TokenStream> = if options.signatures.is_empty() {
        let text = derived?;
        vec![quote!(#text)]
    } else {
        options.signatures.iter().map(|s| quote!(#s)).collect()
    };

    let implementation = implementation(options, ident, &parameters);
    let constructor = if options.environment {
        let module_directory = options.module_directory;
        quote! {
            ::setpoint_value::FunctionSpec::source(
                MODULE.name, #name, &[#(#signatures),*], ::setpoint_value::Class::Environment,
                &::setpoint_value::ReadOnce { read: #implementation, reads_module_directory: #module_directory },
            )
        }
    } else {
        quote!(::setpoint_value::FunctionSpec::pure(MODULE.name, #name, &[#(#signatures),*], #implementation))
    };
    let examples = options
        .examples
        .iter()
        .map(|(call, result)| quote!(::setpoint_value::Example { call: #call, result: #result }));
    let flags = flags(options, &parameters);
    let unpredictable = options.unpredictable.then(|| quote!(.unpredictable()));
    let extension = options.extension.then(|| quote!(.extension()));
    let infer = options.infer.as_ref().map(|e| quote!(.inferred_by(#e)));
    let adapted = options.adapted.as_ref().map(|e| quote!(.adapted_by(#e)));
    let result_type = options.result_type.as_ref().map(|e| quote!(.typed_by(#e)));
    let refine = options.refine.as_ref().map(|e| quote!(.refined_by(#e)));
    Ok(quote! {
        #(#doc_attributes)*
        #visibility static #spec: ::setpoint_value::FunctionSpec = #constructor
            .documented(#doc, &[#(#examples),*])
            #flags #unpredictable #extension #infer #adapted #result_type #refine;
        #function
    })
}

/// A parameter of the Rust function that takes part in the description.
enum Parameter<'a> {
    /// An argument of the call.
    Argument { name: String, ty: &'a Type },
    /// The `&CallContext` of an environment function.
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
                name: pattern.ident.to_string().trim_start_matches("r#").to_owned(),
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
    if options.environment {
        quote! {
            |context, arguments| {
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
            && let Expr::Lit(literal) = &pair.value
            && let syn::Lit::Str(text) = &literal.lit
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
