//! `setpoint.yml`: binds entities that know nothing of resources, for example of a module that was written for something else.
//!
//! ```yaml
//! resources:
//!   apt::Repository:
//!     kind: file
//!     name: "apt-{name}"             # text with {attribute.path} fields; or from: attribute.path
//!     machine: host.name
//!     params:
//!       path: {from: path}
//!       mode: {value: "u=rw,go=r"}
//!     purged: {state: absent}        # parameters that hold instead when `purged` is true
//!     when: enabled
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_saphyr::{Location, Spanned};
use setpoint_cf_names::hir::Model;
use setpoint_cf_names::ids::EntityId;
use setpoint_diagnostics::{Diagnostic, Diagnostics, FileId, Span, did_you_mean};
use setpoint_graph::{KindSchema, ParameterSchema};

use super::bindings::{Bindings, Path, Plan, PlanKind, Source, Text, missing_step};
use super::codes;

/// A binding file that was read.
#[derive(Debug, Clone)]
pub struct BindingFile {
    /// Where it is in the sources.
    pub file: FileId,
    /// Its text.
    pub text: Arc<str>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    resources: BTreeMap<String, Spanned<Resource>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resource {
    kind: Spanned<String>,
    name: Spanned<Name>,
    machine: Option<Spanned<String>>,
    #[serde(default)]
    params: BTreeMap<String, Spanned<Parameter>>,
    purged: Option<Spanned<BTreeMap<String, serde_json::Value>>>,
    when: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    From { from: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameter {
    from: Option<String>,
    value: Option<serde_json::Value>,
}

/// The plans of a file. What is wrong with one is told, and it is left out.
pub(super) fn read(
    file: &BindingFile,
    model: &Model,
    bindings: &Bindings,
    default_machine: &Source,
    diagnostics: &mut Diagnostics,
) -> Vec<Plan> {
    let mut reading = Reading {
        file,
        model,
        bindings,
        diagnostics,
    };
    let parsed: File = match serde_saphyr::from_str(&file.text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let text = error.to_string();
            let message = text
                .lines()
                .next()
                .unwrap_or("it cannot be read as YAML")
                .to_owned();
            let place = error
                .location()
                .map_or(Span::new(file.file, 0, 0), |at| reading.place(at));
            reading.error(place, message);
            return Vec::new();
        }
    };
    let plans = parsed.resources.iter();
    plans
        .filter_map(|(name, resource)| reading.plan(name, resource, default_machine))
        .collect()
}

struct Reading<'a> {
    file: &'a BindingFile,
    model: &'a Model,
    bindings: &'a Bindings,
    diagnostics: &'a mut Diagnostics,
}

impl Reading<'_> {
    fn plan(&mut self, name: &str, resource: &Spanned<Resource>, default_machine: &Source) -> Option<Plan> {
        let span = self.place(resource.referenced);
        let resource = &resource.value;
        let entity = self.entity(name, span)?;
        let kind = &resource.kind.value;
        let Some(schema) = self.bindings.kinds.get(kind.as_str()).copied() else {
            let kinds = self.bindings.kinds.keys().copied();
            let help = did_you_mean(kind, kinds);
            let span = self.place(resource.kind.referenced);
            self.error_with(span, format!("there is no kind of resource `{kind}`"), help);
            return None;
        };
        let at = self.place(resource.name.referenced);
        let name = match &resource.name.value {
            Name::Text(text) => self.template(text, entity, at)?,
            Name::From { from } => Text::Source(Source::Path(self.path(from, entity, at)?)),
        };
        let machine = match &resource.machine {
            Some(path) => {
                let at = self.place(path.referenced);
                Source::Path(self.path(&path.value, entity, at)?)
            }
            None => default_machine.clone(),
        };
        let mut parameters = Vec::new();
        for (name, given) in &resource.params {
            let at = self.place(given.referenced);
            let parameter = self.parameter(schema, name, at)?;
            let source = match &given.value {
                Parameter {
                    from: Some(path),
                    value: None,
                } => Source::Path(self.path(path, entity, at)?),
                Parameter {
                    from: None,
                    value: Some(value),
                } => Source::Constant(setpoint_cf_names::datum::from_json(value)),
                _ => {
                    self.error(at, format!("`{name}` needs either `from` or `value`"));
                    return None;
                }
            };
            parameters.push((parameter, source));
        }
        let purged = match &resource.purged {
            None => None,
            Some(given) => {
                let at = self.place(given.referenced);
                let mut all = parameters.clone();
                for (name, value) in &given.value {
                    let parameter = self.parameter(schema, name, at)?;
                    all.retain(|(other, _)| other.name != parameter.name);
                    all.push((
                        parameter,
                        Source::Constant(setpoint_cf_names::datum::from_json(value)),
                    ));
                }
                Some(all)
            }
        };
        let when = match &resource.when {
            None => None,
            Some(path) => {
                let at = self.place(path.referenced);
                Some(self.path(&path.value, entity, at)?)
            }
        };
        Some(Plan {
            entity,
            kind: PlanKind::Kind(schema),
            name,
            machine,
            parameters,
            purged,
            when,
        })
    }

    /// An entity by its full name, or by its name in the project's own file.
    fn entity(&mut self, name: &str, span: Span) -> Option<EntityId> {
        let own = format!("__config__::{name}");
        let entities = &self.model.entities;
        let found = [name, own.as_str()]
            .into_iter()
            .find_map(|name| entities.iter().position(|entity| &*entity.name == name));
        if found.is_none() {
            let names: Vec<&str> = entities
                .iter()
                .map(|entity| entity.name.strip_prefix("__config__::").unwrap_or(&entity.name))
                .collect();
            let help = did_you_mean(name, names);
            self.error_with(span, format!("there is no entity `{name}`"), help);
        }
        found.map(|at| EntityId(at as u32))
    }

    fn parameter(
        &mut self,
        schema: &'static KindSchema,
        name: &str,
        span: Span,
    ) -> Option<&'static ParameterSchema> {
        let found = schema.parameter(name);
        if found.is_none() {
            let help = did_you_mean(name, schema.parameters.iter().map(|parameter| parameter.name));
            self.error_with(
                span,
                format!("the kind `{}` has no parameter `{name}`", schema.kind),
                help,
            );
        }
        found
    }

    fn path(&mut self, text: &str, entity: EntityId, span: Span) -> Option<Path> {
        let mut path = Path(Vec::new());
        let entity_name = &self.model.entities[entity.index()].name;
        for step in text.split('.') {
            // A name that the model does not mention is that of no attribute.
            let Some(symbol) = self.bindings.symbol(step) else {
                let message =
                    format!("`{text}` does not lead anywhere from `{entity_name}`: there is no `{step}`");
                let members = self.model.entities[entity.index()].members.iter();
                let names: Vec<&str> = members.map(|member| &**self.model.text(member.name)).collect();
                let help = did_you_mean(step, names);
                self.error_with(span, message, help);
                return None;
            };
            path.0.push(symbol);
        }
        let Some((missing_of, step)) = missing_step(self.model, entity, &path) else {
            return Some(path);
        };
        let (of, step) = (&self.model.entities[missing_of.index()], self.model.text(step));
        let message = format!(
            "`{text}` does not lead anywhere from `{entity_name}`: `{}` has no `{step}`",
            of.name
        );
        let names: Vec<&str> = of
            .members
            .iter()
            .map(|member| &**self.model.text(member.name))
            .collect();
        let help = did_you_mean(step, names);
        self.error_with(span, message, help);
        None
    }

    /// A text with fields in braces.
    fn template(&mut self, text: &str, entity: EntityId, span: Span) -> Option<Text> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((fixed, behind)) = rest.split_once('{') {
            let Some((path, behind)) = behind.split_once('}') else {
                self.error(span, format!("the brace in `{text}` is not closed"));
                return None;
            };
            parts.push((fixed.into(), Some(self.path(path.trim(), entity, span)?)));
            rest = behind;
        }
        parts.push((rest.into(), None));
        Some(Text::Template(parts))
    }

    fn error(&mut self, span: Span, message: String) {
        self.error_with(span, message, None);
    }

    fn error_with(&mut self, span: Span, message: String, help: Option<String>) {
        let error = Diagnostic::error(&codes::BAD_BINDING, span, message);
        self.diagnostics
            .push(error.of_class("InvalidMetadata").help_if(help));
    }

    /// From a place to the end of its line.
    fn place(&self, at: Location) -> Span {
        let text = &*self.file.text;
        let before = usize::try_from(at.line().saturating_sub(1)).unwrap_or(usize::MAX);
        let start: usize = text.split_inclusive('\n').take(before).map(str::len).sum();
        let line = text[start..].lines().next().unwrap_or_default();
        let column = usize::try_from(at.column().saturating_sub(1)).unwrap_or(usize::MAX);
        let within = line.char_indices().nth(column).map_or(0, |(at, _)| at);
        let end = start + line.trim_end().len();
        Span::new(self.file.file, (start + within).min(end) as u32, end as u32)
    }
}
