//! One instance as a resource.

use std::sync::Arc;

use setpoint_cf_functions::context::Read;
use setpoint_cf_functions::std::file_marker;
use setpoint_cf_names::datum::{Datum, InstanceId};
use setpoint_cf_names::hir::Model;
use setpoint_diagnostics::{Diagnostic, Diagnostics, Span, did_you_mean};
use setpoint_graph::{
    FieldItem, KindSchema, MetaItem, MetaName, ParameterSchema, ResourceStatement, TypeMismatch,
    build_resource,
};
use setpoint_value::{Mark, Value};

use super::bindings::{Bindings, Executed, Identity, Plan, PlanKind, Reader, Source, Unread};
use super::convert::{convert, described};
use super::{LANGUAGE, Resource, SetParameter, State, codes};

/// What comes of an instance.
pub(super) enum Built {
    Resource(Box<Resource>),
    /// It would be one.
    LeftOut,
    /// Its entity is not bound.
    Plain,
}

/// The resource that an instance is. What is wrong with it is told.
pub(super) fn build(
    model: &Model,
    executed: &dyn Executed,
    bindings: &Bindings,
    instance: InstanceId,
    diagnostics: &mut Diagnostics,
) -> Built {
    let Some(plan) = bindings.plan(executed.entity(instance)) else {
        return Built::Plain;
    };
    let mut building = Building {
        model,
        bindings,
        plan,
        instance,
        reader: Reader { model, executed },
        span: executed.span(instance),
        diagnostics,
    };
    match building.resource() {
        Some(resource) => Built::Resource(Box::new(resource)),
        None => Built::LeftOut,
    }
}

struct Building<'a> {
    model: &'a Model,
    bindings: &'a Bindings,
    plan: &'a Plan,
    instance: InstanceId,
    reader: Reader<'a>,
    span: Span,
    diagnostics: &'a mut Diagnostics,
}

impl Building<'_> {
    fn resource(&mut self) -> Option<Resource> {
        let (is_managed, is_wanted) = (self.flag("managed", true)?, self.is_wanted()?);
        if [is_managed, is_wanted].contains(&Flag::Known(false)) {
            return None;
        }
        let schema = self.schema()?;
        let identity = self.identity(schema)?;
        let (schema, identity, null_fails) = match self.plan.kind {
            PlanKind::Null => self.null(identity)?,
            _ => (schema, identity, false),
        };
        let (parameters, fits) = match (self.plan.kind, null_fails) {
            (PlanKind::Null, true) => self.constants(schema, &[("cmd", Datum::Text("false".into()))]),
            (PlanKind::Null, false) => self.comment(schema),
            (PlanKind::Raw, _) => self.raw_parameters(schema),
            (PlanKind::Kind(_), _) => self.parameters(schema)?,
        };
        let meta = self.meta()?;
        let statement = ResourceStatement {
            kind: schema.kind.into(),
            schema: Some(schema),
            name: Value::str(&*identity.name),
            fields: parameters
                .iter()
                .map(|given| FieldItem {
                    parameter: given.parameter,
                    value: given.value.clone(),
                    condition: None,
                    span: given.span,
                })
                .collect(),
            meta: meta
                .iter()
                .map(|(name, value, span)| MetaItem {
                    name: Some(*name),
                    value: value.clone(),
                    condition: None,
                    span: *span,
                })
                .collect(),
            edges: Vec::new(),
            head: self.span,
            span: self.span,
        };
        // What does not fit was told already; without it the kind would say that something is missing.
        let mut found = Diagnostics::new();
        let built = build_resource(&statement, None, &Value::clone, &LANGUAGE, &mut found);
        if fits {
            self.diagnostics.append(found);
        }
        if self.flag("purge_on_delete", false)? == Flag::Known(true) {
            self.tell_purge_on_delete(&identity);
        }
        Some(Resource {
            instance: self.instance,
            span: self.span,
            identity,
            built,
            parameters,
            meta: meta.into_iter().map(|(name, value, _)| (name, value)).collect(),
            requires: Vec::new(),
            state: State::Available,
            set: None,
            is_uncertain: [is_managed, is_wanted, self.flag("report_only", false)?].contains(&Flag::Unknown),
            sends_events: self.flag("send_event", false)? == Flag::Known(true),
            receives_events: self.flag("receive_events", true)? == Flag::Known(true),
        })
    }

    /// A bool that entities of resources have.
    fn flag(&self, name: &str, otherwise: bool) -> Option<Flag> {
        let Some(slot) = self
            .bindings
            .symbol(name)
            .and_then(|name| self.reader.slot(self.instance, name))
        else {
            return Some(Flag::Known(otherwise));
        };
        match self.reader.executed.member(self.instance, slot) {
            Read::Value(datum) => match datum.unmarked() {
                Datum::Bool(value) => Some(Flag::Known(*value)),
                Datum::Unknown(_) => Some(Flag::Unknown),
                _ => Some(Flag::Known(otherwise)),
            },
            Read::Absent | Read::NotFound => Some(Flag::Known(otherwise)),
            // Execution ended with an error.
            Read::Unset(_) => None,
        }
    }

    /// Whether the binding wants a resource.
    fn is_wanted(&mut self) -> Option<Flag> {
        let Some(path) = &self.plan.when else {
            return Some(Flag::Known(true));
        };
        match self.reader.read(self.instance, path) {
            Ok(datum) => match datum.unmarked() {
                Datum::Bool(wanted) => Some(Flag::Known(*wanted)),
                Datum::Unknown(_) => Some(Flag::Unknown),
                other => {
                    let path = self.reader.path_text(path);
                    let message = format!(
                        "`{path}`, which says whether there is a resource, is {}, not a bool",
                        described(other)
                    );
                    self.refuse(&codes::UNFIT, "ResourceException", self.span, message, None);
                    None
                }
            },
            Err(unread) => {
                self.unread(unread, "whether there is a resource", self.span);
                None
            }
        }
    }

    fn schema(&mut self) -> Option<&'static KindSchema> {
        let kind = match self.plan.kind {
            PlanKind::Kind(schema) => return Some(schema),
            PlanKind::Null => Arc::from("noop"),
            PlanKind::Raw => {
                let (datum, span) = self.attribute("kind")?;
                match datum.unmarked() {
                    Datum::Text(kind) => kind.clone(),
                    Datum::Unknown(_) => return None,
                    other => {
                        let message = format!("the kind of a resource is a string, not {}", described(other));
                        self.refuse(&codes::UNFIT, "ResourceException", span, message, None);
                        return None;
                    }
                }
            }
        };
        let found = self.bindings.kinds.get(&*kind).copied();
        if found.is_none() {
            let help = did_you_mean(&kind, self.bindings.kinds.keys().copied());
            let message = format!("there is no kind of resource `{kind}`");
            self.refuse(&codes::UNFIT, "ResourceException", self.span, message, help);
        }
        found
    }

    /// An attribute of the instance with where it was given.
    fn attribute(&self, name: &str) -> Option<(Datum, Span)> {
        let slot = self.reader.slot(self.instance, self.bindings.symbol(name)?)?;
        let place = self
            .reader
            .executed
            .place(self.instance, slot)
            .unwrap_or(self.span);
        match self.reader.executed.member(self.instance, slot) {
            Read::Value(datum) => Some((datum, place)),
            Read::Unset(_) | Read::Absent | Read::NotFound => None,
        }
    }

    fn identity(&mut self, schema: &'static KindSchema) -> Option<Identity> {
        let name_span = match &self.plan.name {
            super::bindings::Text::Source(source) => self.reader.place(self.instance, source),
            super::bindings::Text::Template(_) => None,
        };
        let name = self.reader.text(self.instance, &self.plan.name);
        let name = self.identity_part(name, "name", name_span.unwrap_or(self.span))?;
        let machine_span = self.reader.place(self.instance, &self.plan.machine);
        let machine = self.reader.source(self.instance, &self.plan.machine);
        let machine = self.identity_part(machine, "machine", machine_span.unwrap_or(self.span))?;
        let refused = |text: &str, among: &[char]| {
            text.chars()
                .find(|char| among.contains(char) || char.is_control())
        };
        let (wrong, what, text, span) = match (refused(&name, &[']']), refused(&machine, &[','])) {
            (Some(char), _) => (char, "name", &name, name_span),
            (None, Some(char)) => (char, "machine", &machine, machine_span),
            (None, None) => {
                if machine.is_empty() {
                    let message = format!("the machine of a `{}` is empty", schema.kind);
                    let span = machine_span.unwrap_or(self.span);
                    let help = "`\"*\"` is every machine".to_owned();
                    self.refuse(&codes::IDENTITY, "ResourceException", span, message, Some(help));
                    return None;
                }
                return Some(Identity {
                    machine,
                    kind: schema.kind.into(),
                    name,
                });
            }
        };
        let message = format!("the {what} {text:?} of a resource cannot have {wrong:?} in it");
        self.refuse(
            &codes::IDENTITY,
            "ValueError",
            span.unwrap_or(self.span),
            message,
            None,
        );
        None
    }

    /// A text that names something. None if it is not known, or not right, which is told.
    fn identity_part(&mut self, read: Result<Datum, Unread>, what: &str, span: Span) -> Option<Arc<str>> {
        let datum = match read {
            Ok(datum) => datum,
            Err(unread) => {
                self.unread(unread, &format!("the {what} of a resource"), span);
                return None;
            }
        };
        if let Datum::Marked(marked) = &datum
            && marked.marks.contains(&Mark::Sensitive)
        {
            let message = format!("the {what} of a resource must not be sensitive: it is shown everywhere");
            let help = "keep the secret in a parameter".to_owned();
            self.refuse(&codes::UNFIT, "ResourceException", span, message, Some(help));
            return None;
        }
        match datum.unmarked() {
            Datum::Text(text) => Some(text.clone()),
            // Names are often numbers, and ids are text anyway.
            Datum::Int(number) if what == "name" => Some(number.to_string().into()),
            Datum::Unknown(_) => None,
            other => {
                let message = format!("the {what} of a resource is {}, not a string", described(other));
                self.refuse(&codes::IDENTITY, "ResourceException", span, message, None);
                None
            }
        }
    }

    /// What a null resource is: a command that fails if it shall fail.
    fn null(&mut self, identity: Identity) -> Option<(&'static KindSchema, Identity, bool)> {
        if self.flag("fail", false)? == Flag::Known(true) {
            let schema = self.bindings.kinds.get("exec").copied()?;
            let name = format!("null-{}", identity.name).into();
            let kind = schema.kind.into();
            return Some((
                schema,
                Identity {
                    kind,
                    name,
                    ..identity
                },
                true,
            ));
        }
        Some((self.bindings.kinds.get("noop").copied()?, identity, false))
    }

    fn comment(&mut self, schema: &'static KindSchema) -> (Vec<SetParameter>, bool) {
        match self.attribute("value") {
            Some((datum, _)) if !matches!(&datum, Datum::Text(text) if text.is_empty()) => {
                self.constants(schema, &[("comment", datum)])
            }
            _ => (Vec::new(), true),
        }
    }

    fn constants(
        &mut self,
        schema: &'static KindSchema,
        given: &[(&str, Datum)],
    ) -> (Vec<SetParameter>, bool) {
        let given = given
            .iter()
            .filter_map(|(name, datum)| Some((schema.parameter(name)?, datum.clone(), self.span)));
        let given: Vec<_> = given.collect();
        self.convert_all(schema, given)
    }

    /// The parameters of an entity that is bound: those of the binding, or, if it shall not be there, what makes it so.
    fn parameters(&mut self, schema: &'static KindSchema) -> Option<(Vec<SetParameter>, bool)> {
        let plan = self.plan;
        let is_purged = self.flag("purged", false)?;
        let (sources, absent) = match (is_purged, &plan.purged) {
            (Flag::Known(true), Some(purged)) => (purged, None),
            (Flag::Known(true), None) => (&plan.parameters, Some(self.absent(schema)?)),
            _ => (&plan.parameters, None),
        };
        let mut given = Vec::new();
        for (parameter, source) in sources {
            if absent.is_some() && !IDENTITY_PARAMETERS.contains(&(schema.kind, parameter.name)) {
                continue;
            }
            let span = self.reader.place(self.instance, source).unwrap_or(self.span);
            match self.reader.source(self.instance, source) {
                Ok(Datum::Null) | Err(Unread::Absent(_)) => {}
                Ok(datum) => given.push((*parameter, datum, span)),
                Err(unread) => {
                    let what = format!("the parameter `{}`", parameter.name);
                    self.unread(unread, &what, span);
                    return None;
                }
            }
        }
        for (parameter, value) in absent.into_iter().flatten() {
            given.push((parameter, Datum::Text(value.into()), self.span));
        }
        if is_purged == Flag::Unknown {
            // Neither what makes it be there nor what takes it away may be applied.
            let mut set = self.convert_all(schema, given);
            set.0.iter_mut().for_each(|parameter| parameter.is_unknown = true);
            return Some(set);
        }
        Some(self.convert_all(schema, given))
    }

    /// What makes a resource of a kind not be there.
    fn absent(
        &mut self,
        schema: &'static KindSchema,
    ) -> Option<Vec<(&'static ParameterSchema, &'static str)>> {
        let absent: Vec<_> = ABSENT
            .iter()
            .filter(|(kind, ..)| *kind == schema.kind)
            .filter_map(|(_, parameter, value)| Some((schema.parameter(parameter)?, *value)))
            .collect();
        if absent.is_empty() {
            let message = format!(
                "`{}` cannot be purged: the kind has no state in which it is not there",
                schema.kind
            );
            let span = self.attribute("purged").map_or(self.span, |(_, span)| span);
            self.refuse(&codes::UNFIT, "ResourceException", span, message, None);
            return None;
        }
        Some(absent)
    }

    /// The parameters of a resource of any kind: a dict.
    fn raw_parameters(&mut self, schema: &'static KindSchema) -> (Vec<SetParameter>, bool) {
        let Some((datum, span)) = self.attribute("params") else {
            return (Vec::new(), true);
        };
        let dict = match datum.unmarked() {
            Datum::Dict(dict) => dict.clone(),
            Datum::Null => return (Vec::new(), true),
            Datum::Unknown(_) => {
                // Whatever it sets is not known: so is the first parameter, and the resource is held.
                let all = schema.parameters.iter().take(1);
                let given = all.map(|parameter| (parameter, datum.clone(), span)).collect();
                return self.convert_all(schema, given);
            }
            other => {
                let message = format!(
                    "the parameters of a resource are {}, not a dict",
                    described(other)
                );
                self.refuse(&codes::UNFIT, "ResourceException", span, message, None);
                return (Vec::new(), false);
            }
        };
        let marks = match &datum {
            Datum::Marked(marked) => Some(&marked.marks),
            _ => None,
        };
        let mut fits = true;
        let mut given = Vec::new();
        for (name, value) in dict.iter() {
            let Some(parameter) = schema.parameter(name) else {
                let help = did_you_mean(name, schema.parameters.iter().map(|parameter| parameter.name));
                let message = format!("the kind `{}` has no parameter `{name}`", schema.kind);
                self.refuse(&codes::UNFIT, "ResourceException", span, message, help);
                fits = false;
                continue;
            };
            if matches!(value, Datum::Null) {
                continue;
            }
            let value = match marks {
                Some(marks) => value.clone().with_marks(marks),
                None => value.clone(),
            };
            given.push((parameter, value, span));
        }
        let (set, all_fit) = self.convert_all(schema, given);
        (set, fits && all_fit)
    }

    fn convert_all(
        &mut self,
        schema: &'static KindSchema,
        given: Vec<(&'static ParameterSchema, Datum, Span)>,
    ) -> (Vec<SetParameter>, bool) {
        let mut set = Vec::with_capacity(given.len());
        let mut fits = true;
        for (parameter, datum, span) in given {
            let content = with_contents(self.reader.executed, datum);
            match content.and_then(|datum| convert(&datum, parameter.parameter_type)) {
                Ok(converted) => set.push(SetParameter {
                    parameter,
                    value: converted.value,
                    is_unknown: converted.has_unknown,
                    deferred: converted.deferred,
                    span,
                }),
                Err(mismatch) => {
                    fits = false;
                    let entity =
                        &self.model.entities[self.reader.executed.entity(self.instance).index()].name;
                    let attribute = self.attribute_of(parameter);
                    let message = format!(
                        "{attribute} of `{entity}` cannot be the parameter `{}` of `{}`: {mismatch}",
                        parameter.name, schema.kind
                    );
                    self.refuse(&codes::UNFIT, "ResourceException", span, message, mismatch.help);
                }
            }
        }
        (set, fits)
    }

    /// Where a parameter comes from, in words.
    fn attribute_of(&self, parameter: &'static ParameterSchema) -> String {
        let plan = self
            .plan
            .parameters
            .iter()
            .find(|(other, _)| other.name == parameter.name);
        match plan {
            Some((_, Source::Path(path))) => format!("the attribute `{}`", self.reader.path_text(path)),
            Some((_, Source::Constant(_))) => "the value of the binding".to_owned(),
            None => format!("`{}` in `params`", parameter.name),
        }
    }

    /// The meta parameters: the dict `meta`, and `noop` of what shall only report.
    fn meta(&mut self) -> Option<Vec<(MetaName, Value, Span)>> {
        let mut meta = Vec::new();
        if self.flag("report_only", false)? == Flag::Known(true) {
            let span = self.attribute("report_only").map_or(self.span, |(_, span)| span);
            meta.push((MetaName::Noop, Value::Bool(true), span));
        }
        let Some((datum, span)) = self.attribute("meta").filter(|_| self.has_meta()) else {
            return Some(meta);
        };
        let dict = match datum.unmarked() {
            Datum::Dict(dict) => dict.clone(),
            Datum::Unknown(_) | Datum::Null => return Some(meta),
            other => {
                let message = format!(
                    "the meta parameters of a resource are {}, not a dict",
                    described(other)
                );
                self.refuse(&codes::UNFIT, "ResourceException", span, message, None);
                return Some(meta);
            }
        };
        for (key, value) in dict.iter() {
            // What undoes resources belongs to another language's statements.
            let Some(name) = MetaName::parse(key).filter(|name| *name != MetaName::Reverse) else {
                let names = MetaName::ALL
                    .into_iter()
                    .filter(|name| *name != MetaName::Reverse);
                let help = did_you_mean(key, names.map(MetaName::name));
                let message = format!("there is no meta parameter `{key}`");
                self.refuse(&codes::UNFIT, "ResourceException", span, message, help);
                continue;
            };
            match meta_value(value) {
                Some(value) => meta.push((name, value, span)),
                None => {
                    let message = format!("the meta parameter `{key}` cannot be {}", described(value));
                    self.refuse(&codes::UNFIT, "ResourceException", span, message, None);
                }
            }
        }
        Some(meta)
    }

    /// Whether the attribute `meta` is that of resources: entities of others may have one of their own.
    fn has_meta(&self) -> bool {
        match self.plan.kind {
            PlanKind::Raw => true,
            PlanKind::Null => false,
            PlanKind::Kind(_) => self.model.entities[self.plan.entity.index()].kind.is_some(),
        }
    }

    fn tell_purge_on_delete(&mut self, identity: &Identity) {
        let message = format!(
            "`{}[{}]` will not be purged when it leaves the model: what was there before is not remembered",
            identity.kind, identity.name
        );
        let span = self
            .attribute("purge_on_delete")
            .map_or(self.span, |(_, span)| span);
        let warning = Diagnostic::warning(&codes::NOT_POSSIBLE, span, message);
        self.diagnostics.push(
            warning.help("set `purged` to true for as long as it takes, and take it out of the model then"),
        );
    }

    fn unread(&mut self, unread: Unread, what: &str, span: Span) {
        let text = |name| self.model.text(name);
        let message = match unread {
            // Execution ended with an error.
            Unread::Unset(_) => return,
            Unread::Absent(name) => format!("{what} cannot be read: there is nothing at `{}`", text(name)),
            Unread::NotFound(name) => {
                format!("{what} cannot be read: there is no attribute `{}`", text(name))
            }
            Unread::NotAnInstance(name) => {
                format!("{what} cannot be read: what has `{}` is no instance", text(name))
            }
        };
        self.refuse(&codes::IDENTITY, "ResourceException", span, message, None);
    }

    fn refuse(
        &mut self,
        code: &'static setpoint_diagnostics::CodeInfo,
        class: &'static str,
        span: Span,
        message: String,
        help: Option<String>,
    ) {
        let mut error = Diagnostic::error(code, span, message)
            .of_class(class)
            .help_if(help);
        if span != self.span {
            error = error.because(self.span, "the resource is constructed here");
        }
        self.diagnostics.push(error);
    }
}

/// A value with the contents of files in place of the texts that stand for them.
fn with_contents(executed: &dyn Executed, datum: Datum) -> Result<Datum, TypeMismatch> {
    if let Datum::List(items) = &datum
        && items.iter().any(|item| file_marker(item).is_some())
    {
        let items = items.iter().map(|item| with_contents(executed, item.clone()));
        return Ok(Datum::List(items.collect::<Result<_, _>>()?));
    }
    let Some((marker, marks)) = file_marker(&datum) else {
        return Ok(datum);
    };
    let Some(content) = executed.file(marker) else {
        return Ok(datum);
    };
    match std::str::from_utf8(&content) {
        Ok(text) => Ok(Datum::text(text).with_marks(&marks)),
        Err(_) => Err(TypeMismatch::new(format!("`{marker}` is not UTF-8 text"))),
    }
}

/// Whether something is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flag {
    Known(bool),
    Unknown,
}

/// A value of a meta parameter; the engine's checks tell whether it is right.
fn meta_value(datum: &Datum) -> Option<Value> {
    match datum {
        Datum::Bool(value) => Some(Value::Bool(*value)),
        Datum::Int(number) => Some(Value::Int(*number)),
        Datum::Float(number) => Some(Value::float(*number)),
        Datum::Text(text) => Some(Value::str(&**text)),
        Datum::List(items) => {
            let texts = items.iter().map(|item| match item {
                Datum::Text(text) => Some(Value::str(&**text)),
                _ => None,
            });
            Some(Value::list(
                setpoint_value::Type::Str,
                texts.collect::<Option<Vec<_>>>()?,
            ))
        }
        Datum::Marked(marked) => Some(meta_value(&marked.datum)?.with_marks(&marked.marks)),
        Datum::Unknown(_) => Some(Value::unknown(setpoint_value::Type::Dynamic)),
        Datum::Null | Datum::Dict(_) | Datum::Instance(_) | Datum::Deferred(_) => None,
    }
}

/// What makes a resource not be there: kind, parameter, value.
const ABSENT: &[(&str, &str, &str)] = &[
    ("file", "state", "absent"),
    ("group", "state", "absent"),
    ("pkg", "state", "uninstalled"),
    ("svc", "state", "stopped"),
    ("svc", "startup", "disabled"),
    ("user", "state", "absent"),
];

/// Parameters that say which thing a resource is about, so that they hold also when that shall not be there.
const IDENTITY_PARAMETERS: &[(&str, &str)] = &[("file", "path"), ("file", "dirname"), ("file", "basename")];
