//! What stands in `#[resource(…)]` and `#[param(…)]`.

use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, DeriveInput, Expr, Field, Ident, Lit, LitStr, Path, Type, Visibility};

use super::{documentation, named_fields, plain_name};

/// A kind as it is written.
pub(super) struct Kind {
    pub(super) ident: Ident,
    pub(super) visibility: Visibility,
    pub(super) doc: String,
    pub(super) options: Options,
    pub(super) fields: Vec<KindField>,
}

/// Options of the kind.
#[derive(Default)]
pub(super) struct Options {
    pub(super) kind: Option<LitStr>,
    pub(super) receives: bool,
    pub(super) refreshable: bool,
    pub(super) reversible: bool,
    pub(super) autoedge: bool,
    pub(super) autogroup: bool,
    pub(super) exclusive: bool,
    pub(super) action: bool,
    /// How the action is told: done, and after *would*.
    pub(super) action_words: Option<(LitStr, LitStr)>,
    pub(super) asynchronous: bool,
    /// Whether the engine looks again after a repair.
    pub(super) reads_back: bool,
    pub(super) inquires: bool,
    /// A variant of `Brings`, in lower case.
    pub(super) brings: Option<Ident>,
    pub(super) background: Option<Path>,
    pub(super) sends: Option<Path>,
    pub(super) merge: Option<Path>,
    /// Parameter, name, value.
    pub(super) constants: Vec<(Ident, Ident, Lit)>,
}

/// A field of the kind's struct.
pub(super) struct KindField {
    pub(super) ident: Ident,
    pub(super) ty: Type,
    pub(super) role: Role,
}

/// What a field is.
pub(super) enum Role {
    /// A parameter.
    Parameter(Box<Parameter>),
    /// Several parameters, each a field of the struct that is the field's type.
    Group(Vec<Member>),
    /// The resource's name.
    Name,
    /// The kind's own; starts as the type's default.
    State,
}

/// A parameter of a group.
pub(super) struct Member {
    /// Its field in the group.
    pub(super) ident: Ident,
    /// What the kind calls it.
    pub(super) name: String,
    /// What the kind says of it, instead of what the group says.
    pub(super) doc: Option<String>,
}

/// Options of a parameter.
#[derive(Default)]
pub(super) struct Parameter {
    pub(super) doc: String,
    pub(super) name: String,
    pub(super) yaml_name: String,
    pub(super) default: Default,
    /// Whether nothing else of the resource depends on it.
    pub(super) independent: bool,
    /// The parameters of the group that it is; none if it is one parameter.
    members: Vec<Member>,
}

/// What holds when a parameter is not set.
#[derive(Default)]
pub(super) enum Default {
    /// The type's default.
    #[default]
    Zero,
    /// A literal or other expression.
    Expression(Box<Expr>),
    /// What a function answers.
    Function(Path),
    /// The resource's name.
    Name,
}

impl Kind {
    pub(super) fn parse(input: &DeriveInput) -> syn::Result<Kind> {
        let fields = named_fields(input)?;
        let mut options = Options::default();
        for attribute in input.attrs.iter().filter(|a| a.path().is_ident("resource")) {
            attribute.parse_nested_meta(|meta| options.entry(&meta))?;
        }
        if options.kind.is_none() {
            return Err(syn::Error::new_spanned(
                &input.ident,
                "a kind has a name: `#[resource(kind = \"…\")]`",
            ));
        }
        let mut errors: Option<syn::Error> = None;
        let mut parsed = Vec::new();
        for field in &fields.named {
            match KindField::parse(field) {
                Ok(field) => parsed.push(field),
                Err(error) => match &mut errors {
                    Some(all) => all.combine(error),
                    None => errors = Some(error),
                },
            }
        }
        if let Some(errors) = errors {
            return Err(errors);
        }
        let kind = Kind {
            ident: input.ident.clone(),
            visibility: input.vis.clone(),
            doc: documentation(&input.attrs, &input.ident)?,
            options,
            fields: parsed,
        };
        kind.check_names()?;
        Ok(kind)
    }

    /// The names of the parameters, each with the place to point at, in order.
    fn names(&self) -> impl Iterator<Item = (&Ident, &str)> {
        self.fields.iter().flat_map(|field| match &field.role {
            Role::Parameter(parameter) => vec![(&field.ident, parameter.name.as_str())],
            Role::Group(members) => members.iter().map(|m| (&m.ident, m.name.as_str())).collect(),
            Role::Name | Role::State => Vec::new(),
        })
    }

    fn check_names(&self) -> syn::Result<()> {
        let names: Vec<&str> = self.names().map(|(_, name)| name).collect();
        for (index, (ident, name)) in self.names().enumerate() {
            if names[..index].contains(&name) {
                let message = format!("two parameters are called `{name}`");
                return Err(syn::Error::new_spanned(ident, message));
            }
        }
        for (parameter, ..) in &self.options.constants {
            if !names.contains(&plain_name(parameter).as_str()) {
                let message = format!("there is no parameter `{parameter}`");
                return Err(syn::Error::new_spanned(parameter, message));
            }
        }
        Ok(())
    }
}

impl Options {
    fn entry(&mut self, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
        let Some(key) = meta.path.get_ident().map(Ident::to_string) else {
            return Err(meta.error("expected a name"));
        };
        match key.as_str() {
            "kind" => self.kind = Some(meta.value()?.parse()?),
            "receives" => self.receives = true,
            "refreshable" => self.refreshable = true,
            "reversible" => self.reversible = true,
            "autoedge" => self.autoedge = true,
            "autogroup" => self.autogroup = true,
            "exclusive" => self.exclusive = true,
            "action" => {
                self.action = true;
                let (mut done, mut would) = (None, None);
                if meta.input.peek(syn::token::Paren) {
                    meta.parse_nested_meta(|word| {
                        let value: LitStr = word.value()?.parse()?;
                        match word.path.require_ident()?.to_string().as_str() {
                            "done" => done = Some(value),
                            "would" => would = Some(value),
                            _ => return Err(word.error("expected `done` or `would`")),
                        }
                        Ok(())
                    })?;
                    match (done, would) {
                        (Some(done), Some(would)) => self.action_words = Some((done, would)),
                        _ => return Err(meta.error("expected `action(done = \"…\", would = \"…\")`")),
                    }
                }
            }
            "asynchronous" => self.asynchronous = true,
            "reads_back" => self.reads_back = true,
            "inquires" => self.inquires = true,
            "brings" => {
                let word: Ident = meta.value()?.parse()?;
                if word != "anything" && word != "nothing" {
                    return Err(syn::Error::new_spanned(word, "expected `anything` or `nothing`"));
                }
                self.brings = Some(word);
            }
            "background" => self.background = Some(meta.value()?.parse()?),
            "sends" => self.sends = Some(meta.value()?.parse()?),
            "merge" => self.merge = Some(meta.value()?.parse()?),
            "constants" => meta.parse_nested_meta(|of| {
                let parameter = of.path.require_ident()?.clone();
                of.parse_nested_meta(|constant| {
                    let name = constant.path.require_ident()?.clone();
                    if name.to_string().contains(char::is_uppercase) {
                        let message = "a program cannot write capitals in the name of a constant";
                        return Err(syn::Error::new_spanned(name, message));
                    }
                    let value: Lit = constant.value()?.parse()?;
                    if !matches!(value, Lit::Str(_) | Lit::Int(_)) {
                        return Err(syn::Error::new_spanned(value, "expected a text or a number"));
                    }
                    self.constants.push((parameter.clone(), name, value));
                    Ok(())
                })
            })?,
            _ => return Err(meta.error(format!("`{key}` is not an option of `#[resource]`"))),
        }
        Ok(())
    }
}

impl KindField {
    fn parse(field: &Field) -> syn::Result<KindField> {
        let ident = field
            .ident
            .clone()
            .ok_or_else(|| syn::Error::new_spanned(field, "expected a named field"))?;
        let has = |name: &str| field.attrs.iter().any(|a| a.path().is_ident(name));
        let param: Option<&Attribute> = field.attrs.iter().find(|a| a.path().is_ident("param"));
        let role = match (has("name"), has("state"), param) {
            (false, false, _) => Parameter::parse(field, &ident)?,
            (true, false, None) => Role::Name,
            (false, true, None) => Role::State,
            _ => {
                return Err(syn::Error::new_spanned(
                    &ident,
                    "a field is one of `#[param]`, `#[name]` and `#[state]`",
                ));
            }
        };
        Ok(KindField {
            ident,
            ty: field.ty.clone(),
            role,
        })
    }
}

impl Parameter {
    fn parse(field: &Field, ident: &Ident) -> syn::Result<Role> {
        let name = plain_name(ident);
        let mut parameter = Parameter {
            yaml_name: name.clone(),
            name,
            ..Parameter::default()
        };
        for attribute in field.attrs.iter().filter(|a| a.path().is_ident("param")) {
            attribute.parse_nested_meta(|meta| parameter.entry(&meta))?;
        }
        let doc = documentation(&field.attrs, ident);
        let mut members = std::mem::take(&mut parameter.members);
        if let Some(first) = members.first_mut() {
            first.doc = doc.ok();
            return Ok(Role::Group(members));
        }
        parameter.doc = doc?;
        Ok(Role::Parameter(Box::new(parameter)))
    }

    fn entry(&mut self, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
        let Some(key) = meta.path.get_ident().map(Ident::to_string) else {
            return Err(meta.error("expected a name"));
        };
        match key.as_str() {
            "name" => {
                let name: LitStr = meta.value()?.parse()?;
                if self.yaml_name == self.name {
                    self.yaml_name = name.value();
                }
                self.name = name.value();
            }
            "independent" => self.independent = true,
            "yaml" => self.yaml_name = meta.value()?.parse::<LitStr>()?.value(),
            "default" => self.default = Default::Expression(Box::new(meta.value()?.parse()?)),
            "default_with" => self.default = Default::Function(meta.value()?.parse()?),
            "default_from" => {
                let from: LitStr = meta.value()?.parse()?;
                if from.value() != "name" {
                    return Err(syn::Error::new(
                        from.span(),
                        "a default comes from the \"name\" or nowhere",
                    ));
                }
                self.default = Default::Name;
            }
            "flatten" => meta.parse_nested_meta(|member| {
                let ident = member.path.require_ident()?.clone();
                let name = match member.input.peek(syn::Token![=]) {
                    true => member.value()?.parse::<LitStr>()?.value(),
                    false => plain_name(&ident),
                };
                let doc = None;
                self.members.push(Member { ident, name, doc });
                Ok(())
            })?,
            _ => return Err(meta.error(format!("`{key}` is not an option of `#[param]`"))),
        }
        Ok(())
    }
}

impl Default {
    /// As the reference shows it; empty for the zero value.
    pub(super) fn text(&self) -> String {
        match self {
            Default::Zero => String::new(),
            Default::Expression(expression) => match &**expression {
                Expr::Lit(literal) => match &literal.lit {
                    Lit::Str(text) => text.value(),
                    other => quote::ToTokens::to_token_stream(other).to_string(),
                },
                // `"text".to_owned()`
                Expr::MethodCall(call) => match &*call.receiver {
                    Expr::Lit(literal) => match &literal.lit {
                        Lit::Str(text) => text.value(),
                        _ => quote::ToTokens::to_token_stream(call).to_string(),
                    },
                    _ => quote::ToTokens::to_token_stream(call).to_string(),
                },
                // Tokens are shown with blanks between them: `- 1`.
                Expr::Unary(negative) => {
                    let tokens = quote::ToTokens::to_token_stream(negative);
                    tokens.into_iter().map(|token| token.to_string()).collect()
                }
                // The word for a variant is its name: `IfSet(Some(Startup::Enabled))`.
                Expr::Path(path) if path.path.segments.len() > 1 => word(&path.path),
                Expr::Call(call) => match call.args.first() {
                    Some(inner) => Default::Expression(Box::new(inner.clone())).text(),
                    None => quote::ToTokens::to_token_stream(call).to_string(),
                },
                other => quote::ToTokens::to_token_stream(other).to_string(),
            },
            Default::Function(path) => {
                let name = path.segments.last().map(|segment| segment.ident.to_string());
                name.unwrap_or_default().replace('_', " ")
            }
            Default::Name => "the resource's name".to_owned(),
        }
    }
}

/// What programs write for a variant of an enum.
fn word(path: &Path) -> String {
    let variant = path.segments.last().map(|segment| segment.ident.to_string());
    variant.unwrap_or_default().to_lowercase()
}

/// The place of an option's value, for what is emitted from it.
pub(super) fn span_of(literal: Option<&LitStr>) -> Span {
    literal.map_or_else(Span::call_site, LitStr::span)
}
