//! What stands in the attribute `#[function(…)]`.

use proc_macro2::{Span, TokenStream};
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::{Expr, Ident, LitStr};

use super::parameter_doc::ParameterDoc;

/// What stands in the attribute.
#[derive(Default)]
pub(super) struct Options {
    pub(super) name: Option<LitStr>,
    /// Another module that has the function too.
    pub(super) alias: Option<LitStr>,
    pub(super) signatures: Vec<LitStr>,
    pub(super) examples: Vec<(LitStr, LitStr)>,
    /// Documentation of the parameters in the signatures, if no parameters of a Rust function carry it.
    pub(super) parameters: Vec<ParameterDoc>,
    /// Arguments as they are: `fn(&[Value], &Type)`, or `fn(&CallContext, &[Value])` of what asks the machine.
    pub(super) raw: bool,
    /// `environment`, `source` or `stateful`: it asks the machine. The first parameter of a function is the `&CallContext`.
    pub(super) class: Option<&'static str>,
    /// What tells a source to read again.
    pub(super) watch: Option<Expr>,
    pub(super) rearmed: bool,
    pub(super) keyed: bool,
    /// The `static` is a shape.
    pub(super) shape: bool,
    /// The answer depends on the module that calls.
    pub(super) module_directory: bool,
    pub(super) unpredictable: bool,
    pub(super) runs_commands: bool,
    /// Beyond what other implementations of mcl have.
    pub(super) extension: bool,
    pub(super) infer: Option<Expr>,
    pub(super) flags: Option<Expr>,
    pub(super) result_type: Option<Expr>,
    pub(super) refine: Option<Expr>,
}

impl Options {
    pub(super) fn parse(attributes: TokenStream) -> syn::Result<Options> {
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
            "alias" => self.alias = Some(meta.value()?.parse()?),
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
            "parameters" => {
                let content;
                syn::parenthesized!(content in meta.input);
                let parameters = content.parse_terminated(ParameterDoc::parse, syn::Token![,])?;
                self.parameters = parameters.into_iter().collect();
            }
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
            "runs_commands" => self.runs_commands = true,
            "extension" => self.extension = true,
            "infer" => self.infer = Some(meta.value()?.parse()?),
            "flags" => self.flags = Some(meta.value()?.parse()?),
            "result_type" => self.result_type = Some(meta.value()?.parse()?),
            "refine" => self.refine = Some(meta.value()?.parse()?),
            _ => return Err(meta.error(format!("`{key}` is not an option of `#[function]`"))),
        }
        Ok(())
    }
}

/// `example(call = "…", result = "…")`.
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
