//! What a function in Python takes and gives: from what the worker says to types of the model.
//!
//! Types are texts of the model language (`string[]?`, `std::Host`), or what Python's own annotations come to. Names in them are looked up when the
//! function is called for the first time, as the namespace of the function sees them: its own first, then those of its parents and `std`.

use std::sync::{Arc, OnceLock};

use serde::Deserialize;

use super::conversation::Conversation;
use crate::hir::Model;
use crate::ids::{EntityId, TypedefId};
use crate::types::{AttributeType, BaseType, SignatureType};

/// A function as the worker describes it.
#[derive(Debug, Deserialize)]
pub(super) struct FoundFunction {
    pub(super) namespace: String,
    pub(super) name: String,
    parameters: Vec<PluginParameter>,
    result: FoundType,
    allow_unknown: bool,
    deprecated: Option<Deprecated>,
    file: String,
    line: u32,
    takes_context: bool,
}

/// A parameter as the worker describes it.
#[derive(Debug, Deserialize)]
pub struct PluginParameter {
    /// Its name.
    pub name: String,
    /// What it takes.
    pub takes: ParameterKind,
    #[serde(rename = "type")]
    ty: FoundType,
    /// Whether it can be left out.
    pub optional: bool,
}

/// Arguments that a parameter of a function in Python takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParameterKind {
    /// One argument.
    One,
    /// One argument, which must be given by name.
    Keyword,
    /// All that are given by position and left.
    Variadic,
    /// All that are given by name and left.
    Keywords,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FoundType {
    Any,
    Object,
    Null,
    Text(String),
    List(Option<Box<FoundType>>),
    Dict(Option<Box<FoundType>>),
    Union(Vec<FoundType>),
    Reference(Box<FoundType>),
}

#[derive(Debug, Clone, Deserialize)]
struct Deprecated {
    by: Option<String>,
}

/// A file that the worker could not import.
#[derive(Debug, Deserialize)]
pub(super) struct ImportFailure {
    #[serde(rename = "type")]
    ty: String,
    message: String,
    file: Option<String>,
    line: u32,
}

impl ImportFailure {
    /// Names the file as everybody else does.
    pub(super) fn name_file(&mut self, name: impl Fn(&str) -> String) {
        self.file = self.file.as_deref().map(name);
    }

    /// `libs/web/plugins/__init__.py:3: ModuleNotFoundError: No module named 'yaml'`.
    pub(super) fn sentence(&self) -> String {
        let file = self.file.as_deref().unwrap_or("?");
        let what = exception_text(&self.ty, &self.message);
        match self.line {
            0 => format!("{file}: {what}"),
            line => format!("{file}:{line}: {what}"),
        }
    }
}

/// What an exception says in one line.
#[must_use]
pub fn exception_text(ty: &str, message: &str) -> String {
    let line = message.lines().next().unwrap_or_default().trim();
    match (ty, line) {
        ("", line) => line.to_owned(),
        (ty, "") => ty.to_owned(),
        (ty, line) => format!("{ty}: {line}"),
    }
}

/// A function that a module has in Python.
#[derive(Debug)]
pub struct PluginFunction {
    found: FoundFunction,
    full_name: Arc<str>,
    /// None: only its name is known.
    conversation: Option<Arc<Conversation>>,
    signature: OnceLock<Result<PluginSignature, String>>,
}

/// Types of a function, in the order of its parameters.
#[derive(Debug)]
pub struct PluginSignature {
    /// Of the parameters, in order.
    pub parameters: Vec<SignatureType>,
    /// Of the result.
    pub result: SignatureType,
}

impl PluginFunction {
    pub(super) fn new(found: FoundFunction, conversation: Arc<Conversation>) -> PluginFunction {
        PluginFunction {
            full_name: format!("{}::{}", found.namespace, found.name).into(),
            found,
            conversation: Some(conversation),
            signature: OnceLock::new(),
        }
    }

    /// One of which only the name is known.
    pub(super) fn named(namespace: &str, name: &str) -> PluginFunction {
        PluginFunction {
            full_name: format!("{namespace}::{name}").into(),
            found: FoundFunction {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                parameters: Vec::new(),
                result: FoundType::Any,
                allow_unknown: true,
                deprecated: None,
                file: String::new(),
                line: 0,
                takes_context: false,
            },
            conversation: None,
            signature: OnceLock::new(),
        }
    }

    /// Whether more is known than its name.
    #[must_use]
    pub fn is_run(&self) -> bool {
        self.conversation.is_some()
    }

    /// With its namespace.
    #[must_use]
    pub fn full_name(&self) -> &str {
        &self.full_name
    }

    /// Who runs it; none if only its name is known.
    #[must_use]
    pub fn conversation(&self) -> Option<&Conversation> {
        self.conversation.as_deref()
    }

    /// Its namespace and its name there.
    #[must_use]
    pub fn path(&self) -> (&str, &str) {
        (&self.found.namespace, &self.found.name)
    }

    /// Whether it wants to know more than its arguments.
    #[must_use]
    pub fn takes_context(&self) -> bool {
        self.found.takes_context
    }

    /// Whether it is called also with arguments that are not known.
    #[must_use]
    pub fn allows_unknown(&self) -> bool {
        self.found.allow_unknown
    }

    /// Whether it is deprecated, and which function replaces it.
    #[must_use]
    pub fn deprecated(&self) -> Option<Option<&str>> {
        let deprecated = self.found.deprecated.as_ref()?;
        Some(deprecated.by.as_deref())
    }

    /// Where it is: file, as the worker names it, and line.
    #[must_use]
    pub fn place(&self) -> (&str, u32) {
        (&self.found.file, self.found.line)
    }

    /// Its parameters, in order.
    #[must_use]
    pub fn parameters(&self) -> &[PluginParameter] {
        &self.found.parameters
    }

    /// Its types in this model, which is always the same one.
    ///
    /// # Errors
    /// What is wrong with a type.
    pub fn signature(&self, model: &Model) -> Result<&PluginSignature, &str> {
        let resolved = self.signature.get_or_init(|| {
            let names = TypeNames {
                model,
                namespace: &self.found.namespace,
            };
            let parameters = self.found.parameters.iter();
            let parameters = parameters
                .map(|parameter| {
                    let ty = names.resolve(&parameter.ty);
                    ty.map_err(|what| format!("of parameter `{}` {what}", parameter.name))
                })
                .collect::<Result<Vec<_>, _>>()?;
            let result = names.resolve(&self.found.result);
            Ok(PluginSignature {
                parameters,
                result: result.map_err(|what| format!("of the result {what}"))?,
            })
        });
        resolved.as_ref().map_err(String::as_str)
    }
}

/// Finds what names of types mean in a namespace.
struct TypeNames<'a> {
    model: &'a Model,
    namespace: &'a str,
}

impl TypeNames<'_> {
    fn resolve(&self, found: &FoundType) -> Result<SignatureType, String> {
        let boxed = |found: &FoundType| self.resolve(found).map(Box::new);
        Ok(match found {
            FoundType::Any => SignatureType::Any,
            FoundType::Object => SignatureType::Any,
            FoundType::Null => SignatureType::Null,
            FoundType::Text(text) => self.text(text)?,
            FoundType::List(None) => SignatureType::List,
            FoundType::Dict(None) => SignatureType::Dict,
            FoundType::List(Some(element)) => SignatureType::ListOf(boxed(element)?),
            FoundType::Dict(Some(value)) => SignatureType::DictOf(boxed(value)?),
            FoundType::Reference(of) => match self.resolve(of)? {
                SignatureType::Any => SignatureType::Reference(Box::new(SignatureType::Anything)),
                of => SignatureType::Reference(Box::new(of)),
            },
            FoundType::Union(members) => {
                let members: Result<Vec<_>, _> = members.iter().map(|member| self.resolve(member)).collect();
                SignatureType::Union(members?)
            }
        })
    }

    /// `T`, `T[]`, `T?`, `T[]?`, and these with `|` between them.
    fn text(&self, text: &str) -> Result<SignatureType, String> {
        let mut members = text.split('|').map(|member| self.member(member.trim()));
        let first = members.next().unwrap_or_else(|| Err("is empty".to_owned()))?;
        let others = members.collect::<Result<Vec<_>, _>>()?;
        if others.is_empty() {
            return Ok(first);
        }
        Ok(SignatureType::Union(
            std::iter::once(first).chain(others).collect(),
        ))
    }

    fn member(&self, text: &str) -> Result<SignatureType, String> {
        let bare = text.strip_suffix('?').map_or(text, str::trim_end);
        let nullable = bare.len() < text.len();
        let name = bare.strip_suffix("[]").map_or(bare, str::trim_end);
        let list = name.len() < bare.len();
        let base = match name {
            "string" => Some(BaseType::String),
            "int" => Some(BaseType::Int),
            "float" => Some(BaseType::Float),
            "number" => Some(BaseType::Number),
            "bool" => Some(BaseType::Bool),
            _ => self.typedef(name).map(BaseType::Typedef),
        };
        if let Some(base) = base {
            return Ok(SignatureType::Attribute(AttributeType { base, list, nullable }));
        }
        let one = match name {
            "any" | "expression" => SignatureType::Any,
            "null" => SignatureType::Null,
            "list" => SignatureType::List,
            "dict" => SignatureType::Dict,
            name => match self.entity(name) {
                Some(entity) => SignatureType::Entity(entity),
                None => return Err(format!("names `{name}`, which is no type that there is here")),
            },
        };
        let all = match list {
            true => SignatureType::ListOf(Box::new(one)),
            false => one,
        };
        Ok(match nullable {
            true => SignatureType::Union(vec![SignatureType::Null, all]),
            false => all,
        })
    }

    fn typedef(&self, name: &str) -> Option<TypedefId> {
        let all = &self.model.typedefs;
        let at = self.find(name, |full| all.iter().position(|typedef| *typedef.name == *full))?;
        u32::try_from(at).ok().map(TypedefId)
    }

    fn entity(&self, name: &str) -> Option<EntityId> {
        let all = &self.model.entities;
        let at = self.find(name, |full| all.iter().position(|entity| *entity.name == *full))?;
        u32::try_from(at).ok().map(EntityId)
    }

    /// Looks a name up as it is if it is qualified, else in the namespace, those around it, and `std`.
    fn find(&self, name: &str, at: impl Fn(&str) -> Option<usize>) -> Option<usize> {
        if name.contains("::") {
            return at(name);
        }
        let mut namespace = Some(self.namespace);
        while let Some(own) = namespace {
            if let Some(found) = at(&format!("{own}::{name}")) {
                return Some(found);
            }
            namespace = own.rsplit_once("::").map(|(outer, _)| outer);
        }
        at(&format!("std::{name}"))
    }
}
