//! From a statement and its current values to resources and edges (rules resources.1 to edges.14 of the language).
//!
//! Everything that is wrong with a statement is reported, in the order in which the language rejects it: values that do
//! not fit at their field, then at the resource its name, its meta parameters and what its kind says. A resource whose
//! identity is known is built all the same, so that edges to it do not fail as well; whoever calls looks at the diagnostics.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use setpoint_diagnostics::{Diagnostic, Diagnostics, Span};
use setpoint_value::{Marks, Value};

use crate::{
    Cause, CollectProblem, DesiredEdge, DesiredMembers, DesiredResource, EdgeProperty, EdgeStatement,
    Finding, Invalid, KindSchema, Language, Link, MetaItem, MetaName, MetaParameters, Named, Parameters,
    Problem, ResourceId, ResourceStatement, StatementOutput, UnknownPart, UnknownWhat, Written,
};

/// A resource that another host exports, as a collect statement starts from it.
#[derive(Debug, Clone)]
pub struct CollectedResource {
    /// The name under which it is exported.
    pub name: Arc<str>,
    /// The host that exports it.
    pub host: Arc<str>,
    /// What its program set.
    pub parameters: Parameters,
    /// What its engine was told.
    pub meta: MetaParameters,
}

/// The resources and edges of a statement. `value` gives the current value of a slot and is asked only for what counts:
/// not for a parameter whose condition is false. The resources know the `chain` through which the statement comes to be there.
pub fn build_resource<S>(
    statement: &ResourceStatement<S>,
    chain: Option<&Arc<Link>>,
    value: &dyn Fn(&S) -> Value,
    language: &dyn Language,
    diagnostics: &mut Diagnostics,
) -> StatementOutput {
    let mut building = Building::new(statement, chain, value, language, diagnostics);
    let Some(schema) = building.schema() else {
        return building.output;
    };
    let names = building.names(
        &value(&statement.name),
        statement.span,
        &UnknownWhat::Name(statement.kind.clone()),
    );
    let bases = names.into_iter().map(|name| Base {
        name,
        parameters: Parameters::default(),
        meta: MetaParameters::default(),
        host: None,
    });
    building.finish(schema, bases.collect())
}

/// The beginning of a resource, before the statement sets its parameters.
struct Base {
    name: Arc<str>,
    parameters: Parameters,
    meta: MetaParameters,
    /// The host that exports it, if it is collected.
    host: Option<Arc<str>>,
}

/// The resources and edges of a collect statement: what was found in the world, with the statement's parameters and meta
/// parameters set over it. What is collected is neither exported again nor hidden, unless the statement says so. The
/// statement's name is not looked at.
pub fn build_collected<S>(
    statement: &ResourceStatement<S>,
    collected: &[CollectedResource],
    chain: Option<&Arc<Link>>,
    value: &dyn Fn(&S) -> Value,
    language: &dyn Language,
    diagnostics: &mut Diagnostics,
) -> StatementOutput {
    let mut building = Building::new(statement, chain, value, language, diagnostics);
    let Some(schema) = building.schema() else {
        return building.output;
    };
    let bases = collected.iter().map(|found| {
        let mut meta = found.meta.clone();
        meta.export.clear();
        meta.hidden = false;
        Base {
            name: found.name.clone(),
            parameters: found.parameters.clone(),
            meta,
            host: Some(found.host.clone()),
        }
    });
    building.finish(schema, bases.collect())
}

/// What a collect statement asks the world for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectRequest {
    /// The name of the resource.
    pub name: Arc<str>,
    /// The host that exports it; any host where there is none.
    pub host: Option<Arc<str>>,
}

/// What a collect statement asks for: its names, a str, a list of str, or a list of structs with `name` and `host`. A pair that
/// stands for no resource is reported at the statement; unknown ones are left out.
pub fn read_collect(
    names: &Value,
    statement: Span,
    language: &dyn Language,
    diagnostics: &mut Diagnostics,
) -> Vec<CollectRequest> {
    let one = std::slice::from_ref(names);
    let items: Vec<&Value> = match names.unmarked() {
        Value::List(list) => list.iter().collect(),
        _ => one.iter().collect(),
    };
    let mut unknown = Vec::new();
    let mut requests = Vec::new();
    for item in items {
        let Some(pair) = item.as_struct() else {
            let names = read_names(
                item,
                statement,
                &UnknownWhat::Block,
                &mut unknown,
                language,
                diagnostics,
            );
            requests.extend(names.into_iter().map(|name| CollectRequest { name, host: None }));
            continue;
        };
        let mut part = |field: &str| {
            let value = pair.get(field)?;
            read_names(
                value,
                statement,
                &UnknownWhat::Block,
                &mut unknown,
                language,
                diagnostics,
            )
            .pop()
        };
        let (Some(name), Some(host)) = (part("name"), part("host")) else {
            continue;
        };
        let wrong = match (&*name, &*host) {
            ("", _) => "the name of a resource to collect is empty".to_owned(),
            (name, "") => format!("the host to collect `{name}` from is empty"),
            (name, "*") => format!("`{name}` cannot be collected from the host `*`"),
            _ => {
                let host = Some(host);
                requests.push(CollectRequest { name, host });
                continue;
            }
        };
        let problem = Problem::BadCollect(CollectProblem::BadPair);
        diagnostics.push(Finding::error(problem, statement, wrong).tell(language));
    }
    requests
}

/// The edges of an edge statement: of each pair of neighbours every name of the left with every name of the right.
pub fn build_edge<S>(
    statement: &EdgeStatement<S>,
    value: &dyn Fn(&S) -> Value,
    language: &dyn Language,
    diagnostics: &mut Diagnostics,
) -> StatementOutput {
    let mut output = StatementOutput {
        span: Some(statement.span),
        ..StatementOutput::default()
    };
    let endpoints: Vec<Vec<ResourceId>> = statement
        .endpoints
        .iter()
        .map(|endpoint| {
            let names = read_names(
                &value(&endpoint.name),
                endpoint.span,
                &UnknownWhat::EdgeName,
                &mut output.unknown,
                language,
                diagnostics,
            );
            let id = |name| ResourceId::new(endpoint.kind.clone(), name);
            names.into_iter().map(id).collect()
        })
        .collect();
    for (index, pair) in endpoints.windows(2).enumerate() {
        let span = statement.endpoints[index]
            .span
            .to(statement.endpoints[index + 1].span);
        for from in &pair[0] {
            for to in &pair[1] {
                output.edges.push(DesiredEdge {
                    from: from.clone(),
                    to: to.clone(),
                    notify: false,
                    send: statement.send.iter().cloned().collect(),
                    span,
                    parts: None,
                });
            }
        }
    }
    output
}

/// Whether an item of a statement counts.
enum Condition {
    Absent,
    /// It counts; the marks of the condition go to the value.
    Present(Marks),
    /// It may count.
    Unknown(Marks),
}

/// A resource statement on its way.
struct Building<'a, S> {
    statement: &'a ResourceStatement<S>,
    chain: Option<&'a Arc<Link>>,
    value: &'a dyn Fn(&S) -> Value,
    language: &'a dyn Language,
    diagnostics: &'a mut Diagnostics,
    output: StatementOutput,
}

impl<'a, S> Building<'a, S> {
    fn new(
        statement: &'a ResourceStatement<S>,
        chain: Option<&'a Arc<Link>>,
        value: &'a dyn Fn(&S) -> Value,
        language: &'a dyn Language,
        diagnostics: &'a mut Diagnostics,
    ) -> Building<'a, S> {
        let output = StatementOutput {
            span: Some(statement.span),
            ..StatementOutput::default()
        };
        Building {
            statement,
            chain,
            value,
            language,
            diagnostics,
            output,
        }
    }

    fn report(&mut self, finding: Finding) {
        self.diagnostics.push(finding.tell(self.language));
    }

    fn schema(&mut self) -> Option<&'static KindSchema> {
        if self.statement.schema.is_none() {
            let ResourceStatement { kind, head, span, .. } = self.statement;
            self.report(Finding::unknown_kind(kind, *span).shown_at(*head));
        }
        self.statement.schema
    }

    fn names(&mut self, value: &Value, span: Span, unknown: &UnknownWhat) -> Vec<Arc<str>> {
        read_names(
            value,
            span,
            unknown,
            &mut self.output.unknown,
            self.language,
            self.diagnostics,
        )
    }

    fn finish(mut self, schema: &'static KindSchema, bases: Vec<Base>) -> StatementOutput {
        // A list without names makes nothing, so nothing is wrong with it either.
        if bases.is_empty() && self.output.unknown.is_empty() {
            return self.output;
        }
        let (entries, fits) = self.parameters();
        let spans: Arc<[(&'static str, Span)]> =
            entries.iter().map(|(name, _, span)| (*name, *span)).collect();
        let entries: Vec<(&'static str, Value)> = entries
            .into_iter()
            .map(|(name, value, _)| (name, value))
            .collect();
        if bases.iter().any(|base| base.name.is_empty()) {
            let message = format!("the name of a `{}` is empty", self.statement.kind);
            let label = "a resource needs a name that is not empty";
            let found = Finding::error(Problem::EmptyName, self.statement.span, message);
            self.report(found.shown_at(self.statement.head).label(label));
        }
        let settings = self.meta();
        let plain = Parameters::new(entries.iter().cloned());
        let mut ends: Vec<ResourceId> = Vec::with_capacity(bases.len());
        let mut reported: FxHashSet<(Option<&'static str>, String)> = FxHashSet::default();
        for base in bases {
            let Base {
                name,
                parameters: base,
                mut meta,
                host,
            } = base;
            if name.is_empty() {
                continue;
            }
            for (name, value) in &settings.known {
                // What is wrong with a value was reported once, for all names.
                let _ = meta.set(*name, value);
            }
            let parameters = if base.is_empty() {
                plain.clone()
            } else {
                base.overlaid(entries.iter().cloned())
            };
            let id = ResourceId::new(self.statement.kind.clone(), name);
            let named = Named {
                id: &id,
                meta: &meta,
                unknown: &settings.unknown,
                span: self.statement.span,
            };
            let refused = self.language.refuse_name(&named);
            let is_named = refused.is_none();
            let head = self.statement.head;
            self.diagnostics
                .extend(refused.map(|refused| refused.shown_at(head)));
            let hidden = meta.hidden || settings.unknown.contains(MetaName::Hidden);
            let mut found = Vec::new();
            if fits && is_named && !hidden {
                found = invalid(schema, &id.name, &parameters, &meta);
            }
            let resource = DesiredResource {
                id: id.clone(),
                schema,
                parameters,
                meta: meta.into(),
                span: self.statement.span,
                parameter_spans: spans.clone(),
                chain: self.chain_of(host.as_ref()),
                members: DesiredMembers::default(),
            };
            if let Some(host) = &host
                && let Some(why) = self.unusable(&resource, &found, &spans)
            {
                self.diagnostics
                    .push(left_out(&id, host, &why, self.statement.span, self.language));
                continue;
            }
            for invalid in found {
                if reported.insert((invalid.parameter, invalid.message.clone())) {
                    self.report_invalid(&id, invalid, &spans);
                }
            }
            ends.push(id);
            self.output.resources.push(Arc::new(resource));
        }
        self.edges(&ends);
        self.output
    }

    fn condition(&self, condition: Option<&S>) -> Condition {
        let Some(slot) = condition else {
            return Condition::Present(Marks::none());
        };
        let value = (self.value)(slot);
        let (plain, marks) = value.unmark();
        match plain {
            Value::Bool(true) => Condition::Present(marks),
            Value::Unknown(_) => Condition::Unknown(marks),
            _ => Condition::Absent,
        }
    }

    fn unknown(&mut self, span: Span, what: UnknownWhat) {
        self.output.unknown.push(UnknownPart { span, what });
    }

    /// The parameters that are set, and whether all of them fit.
    fn parameters(&mut self) -> (Vec<(&'static str, Value, Span)>, bool) {
        let mut entries = Vec::with_capacity(self.statement.fields.len());
        let mut fits = true;
        for field in &self.statement.fields {
            let parameter = field.parameter;
            let value = match self.condition(field.condition.as_ref()) {
                Condition::Absent => continue,
                Condition::Unknown(marks) => {
                    self.unknown(field.span, UnknownWhat::Condition(parameter.name));
                    Value::unknown(parameter.parameter_type.ty()).with_marks(&marks)
                }
                Condition::Present(marks) => (self.value)(&field.value).with_marks(&marks),
            };
            if let Err(mismatch) = parameter.parameter_type.check(&value) {
                fits = false;
                let message = format!(
                    "the parameter `{}` of `{}` cannot hold this value: {mismatch}",
                    parameter.name, self.statement.kind
                );
                let problem = Problem::ValueDoesNotFit(parameter.name);
                self.report(Finding::error(problem, field.span, message));
            }
            entries.push((parameter.name, value, field.span));
        }
        (entries, fits)
    }

    /// The meta parameters that are set and right; what is wrong is reported.
    fn meta(&mut self) -> Settings {
        let mut settings = Settings::default();
        let mut tried = MetaParameters::default();
        let mut last = self.statement.span;
        for item in &self.statement.meta {
            match self.condition(item.condition.as_ref()) {
                Condition::Absent => {}
                Condition::Unknown(_) => self.meta_unknown(item, item.name, &mut settings),
                Condition::Present(_) => {
                    let value = (self.value)(&item.value);
                    match (item.name, value.unmarked()) {
                        (name, Value::Unknown(_)) => self.meta_unknown(item, name, &mut settings),
                        (Some(name), _) => self.set_meta(item, name, &value, &mut tried, &mut settings),
                        (None, Value::Struct(fields)) => {
                            let (_, marks) = value.unmark();
                            for (field, value) in fields.iter() {
                                match MetaName::parse(field) {
                                    Some(name) if value.is_unknown() => {
                                        self.meta_unknown(item, Some(name), &mut settings);
                                    }
                                    Some(name) => {
                                        let value = value.clone().with_marks(&marks);
                                        self.set_meta(item, name, &value, &mut tried, &mut settings);
                                    }
                                    None => {
                                        let message = format!("there is no meta parameter `{field}`");
                                        self.report_meta(None, item.span, message);
                                    }
                                }
                            }
                        }
                        (None, value) => {
                            let message =
                                format!("the meta parameters are of type {}, not a struct", value.ty());
                            self.report_meta(None, item.span, message);
                        }
                    }
                }
            }
            if matches!(item.name, Some(MetaName::Limit) | None) {
                last = item.span;
            }
        }
        let unsure = settings.unknown.contains(MetaName::Limit) || settings.unknown.contains(MetaName::Burst);
        if tried.limit.is_finite() && tried.burst == 0 && !unsure {
            let message = "the meta parameter `limit` needs a `burst` above 0";
            self.report_meta(Some(MetaName::Burst), last, message.to_owned());
        }
        settings
    }

    fn meta_unknown(&mut self, item: &MetaItem<S>, name: Option<MetaName>, settings: &mut Settings) {
        self.unknown(item.span, UnknownWhat::Meta(name));
        match name {
            Some(name) => settings.unknown.insert(name),
            None => MetaName::ALL
                .into_iter()
                .for_each(|name| settings.unknown.insert(name)),
        }
    }

    fn set_meta(
        &mut self,
        item: &MetaItem<S>,
        name: MetaName,
        value: &Value,
        tried: &mut MetaParameters,
        settings: &mut Settings,
    ) {
        if !value.is_wholly_known() {
            self.meta_unknown(item, Some(name), settings);
            return;
        }
        match tried.set(name, value) {
            Ok(()) => settings.known.push((name, value.clone())),
            Err(message) => {
                let message = format!("the meta parameter `{}` {message}", name.name());
                self.report_meta(Some(name), item.span, message);
            }
        }
    }

    fn report_meta(&mut self, name: Option<MetaName>, item: Span, message: String) {
        let problem = Problem::BadMeta(name);
        let found = Finding::error(problem, self.statement.span, message);
        self.report(found.shown_at(item));
    }

    /// The way to a resource. For a collected resource, it begins with the host that exports the resource.
    fn chain_of(&self, host: Option<&Arc<str>>) -> Option<Arc<Link>> {
        let around = self.chain.cloned();
        let Some(host) = host else {
            return around;
        };
        Some(Arc::new(Link {
            cause: Cause::Collect(host.clone()),
            span: self.statement.span,
            outer: around,
        }))
    }

    /// Why a collected resource is left out, whatever the statement sets. The other resources of the program do not wait for it.
    fn unusable(
        &self,
        resource: &DesiredResource,
        invalid: &[Invalid],
        spans: &[(&'static str, Span)],
    ) -> Option<String> {
        let is_of_statement = |invalid: &Invalid| {
            let mut written = spans.iter();
            written.any(|(name, _)| Some(*name) == invalid.parameter)
        };
        if let Some(wrong) = invalid.iter().find(|invalid| !is_of_statement(invalid)) {
            let parameter = wrong.parameter.map_or(String::new(), |name| format!("`{name}` "));
            return Some(format!("{parameter}{}", wrong.message));
        }
        if resource.schema.merge.is_some() {
            return None;
        }
        let mut others = self.output.resources.iter();
        let other = others.find(|other| other.id == resource.id)?;
        let is_same = other.parameters == resource.parameters && other.meta.is_same(&resource.meta);
        (!is_same)
            .then(|| "another host exports the same name with other parameters, and comes first".to_owned())
    }

    fn report_invalid(&mut self, id: &ResourceId, invalid: Invalid, spans: &[(&'static str, Span)]) {
        let place = spans.iter().find(|(name, _)| Some(*name) == invalid.parameter);
        let place = place.map_or((self.statement.head, false), |(_, span)| (*span, true));
        self.report(Finding::invalid(id, invalid, self.statement.span, place));
    }

    fn edges(&mut self, own: &[ResourceId]) {
        for item in &self.statement.edges {
            match self.condition(item.condition.as_ref()) {
                Condition::Absent => continue,
                Condition::Unknown(_) => {
                    self.unknown(item.span, UnknownWhat::EdgeCondition);
                    continue;
                }
                Condition::Present(_) => {}
            }
            let others = self.names(
                &(self.value)(&item.endpoint.name),
                item.endpoint.span,
                &UnknownWhat::EdgeName,
            );
            for id in own {
                for other in &others {
                    let other = ResourceId::new(item.endpoint.kind.clone(), other.clone());
                    let (from, to) = match item.property {
                        EdgeProperty::Before | EdgeProperty::Notify => (id.clone(), other),
                        EdgeProperty::Depend | EdgeProperty::Listen => (other, id.clone()),
                    };
                    self.output.edges.push(DesiredEdge {
                        from,
                        to,
                        notify: matches!(item.property, EdgeProperty::Notify | EdgeProperty::Listen),
                        send: Vec::new(),
                        span: item.span,
                        parts: None,
                    });
                }
            }
        }
    }
}

/// Reports a resource of another host that is left out.
pub(crate) fn left_out(
    id: &ResourceId,
    host: &str,
    why: &str,
    statement: Span,
    language: &dyn Language,
) -> Diagnostic {
    let message = format!("`{id}` of the host `{host}` cannot be collected: {why}");
    let problem = Problem::BadCollect(CollectProblem::Unreadable);
    let error = Finding::error(problem, statement, message).tell(language);
    error.as_warning("this resource is left out, and the rest of the program is applied")
}

/// The meta parameters of a statement.
#[derive(Default)]
struct Settings {
    known: Vec<(MetaName, Value)>,
    unknown: Written,
}

/// What the kind refuses, without what would tell a secret.
fn invalid(schema: &KindSchema, name: &str, parameters: &Parameters, meta: &MetaParameters) -> Vec<Invalid> {
    let mut found = certain(schema, name, parameters, meta);
    for invalid in &mut found {
        if tells_a_secret(invalid, parameters) {
            "the reason is not shown because a parameter is sensitive".clone_into(&mut invalid.message);
            invalid.help = None;
        }
    }
    found
}

/// What the kind refuses. While a parameter is unknown, only what is wrong whether or not it will be set.
fn certain(schema: &KindSchema, name: &str, parameters: &Parameters, meta: &MetaParameters) -> Vec<Invalid> {
    let mut found = (schema.check)(name, parameters, meta);
    if found.is_empty() || parameters.iter().all(|(_, value)| value.is_wholly_known()) {
        return found;
    }
    let known = parameters.iter().filter(|(_, value)| value.is_wholly_known());
    let known = Parameters::new(known.map(|(name, value)| (name, value.clone())));
    let certain = (schema.check)(name, &known, meta);
    found.retain(|invalid| {
        certain.contains(invalid)
            && invalid
                .parameter
                .is_none_or(|name| parameters.get(name).is_none_or(Value::is_wholly_known))
    });
    found
}

/// Whether a refusal may show something sensitive: it is about a sensitive parameter, or a text of one is in it.
fn tells_a_secret(invalid: &Invalid, parameters: &Parameters) -> bool {
    let mut sensitive = parameters.iter().filter(|(_, value)| value.is_sensitive());
    sensitive.any(|(name, value)| {
        Some(name) == invalid.parameter
            || value.any_part(&mut |part| match part {
                Value::Str(text) => {
                    let text = text.to_lossy();
                    !text.is_empty() && invalid.message.contains(&*text)
                }
                _ => false,
            })
    })
}

/// The distinct names of a str or a list of str, in order. An unknown one is noted, a bad one reported.
fn read_names(
    value: &Value,
    span: Span,
    what: &UnknownWhat,
    unknown: &mut Vec<UnknownPart>,
    language: &dyn Language,
    diagnostics: &mut Diagnostics,
) -> Vec<Arc<str>> {
    if value.is_sensitive() {
        let message = "the name of a resource must not be sensitive: it is shown everywhere";
        diagnostics.push(Finding::error(Problem::SensitiveName, span, message).tell(language));
        return Vec::new();
    }
    let mut names: Vec<Arc<str>> = Vec::new();
    let mut seen: FxHashSet<Arc<str>> = FxHashSet::default();
    let mut is_unknown = false;
    let mut read = |value: &Value, alone: bool| match value.unmarked() {
        Value::Unknown(_) => is_unknown = true,
        Value::Str(text) => match text.as_str() {
            Some(text) => {
                let name: Arc<str> = text.into();
                if alone || seen.insert(name.clone()) {
                    names.push(name);
                }
            }
            None => {
                let message = format!("the name {value} is not valid UTF-8");
                diagnostics.push(Finding::error(Problem::NameNotText, span, message).tell(language));
            }
        },
        other => {
            let message = format!(
                "the name of a resource is a str or a list of them, not {}",
                other.ty()
            );
            diagnostics.push(Finding::error(Problem::NameNotText, span, message).tell(language));
        }
    };
    match value.unmarked() {
        Value::List(list) => list.iter().for_each(|item| read(item, false)),
        one => read(one, true),
    }
    if is_unknown {
        unknown.push(UnknownPart {
            span,
            what: what.clone(),
        });
    }
    names
}
