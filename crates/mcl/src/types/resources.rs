//! Equations of resources and edges, and what is checked about their kinds before solving.

use rustc_hash::FxHashMap;
use setpoint_diagnostics::{Diagnostic, Span, did_you_mean};
use setpoint_graph::{KindSchema, MetaName, ParameterType};
use setpoint_value::Type;

use super::InstanceId;
use super::codes;
use super::conflicts::Reason;
use super::infer::Inference;
use super::program::TypedProgram;
use crate::hir::{Edge, Endpoint, ExprId, ExprKind, Item, ItemKind, Part, Resource};
use crate::syntax::foreign;
use crate::writable_parameters;

impl<'a> Inference<'a> {
    pub(super) fn resource(&mut self, instance: InstanceId, resource: &'a Resource) {
        let schema = self.library.kinds.get(&*resource.kind).copied();
        let name = self.infer(instance, resource.name);
        let mut unknown_kind = false;
        for item in &resource.items {
            match &item.kind {
                ItemKind::Field {
                    name,
                    name_span,
                    value,
                } => {
                    let ty = self.infer(instance, *value);
                    self.condition(instance, item.condition, item.span);
                    let Some(schema) = schema else {
                        if !unknown_kind {
                            unknown_kind = true;
                            self.unknown_kind(&resource.kind, resource.span, resource.kind_span);
                        }
                        continue;
                    };
                    match writable_parameters(schema).find(|p| *p.name == **name) {
                        Some(parameter) => {
                            let wanted = self.native_type(parameter.parameter_type);
                            let first_line = parameter.doc.lines().next().unwrap_or_default();
                            let reason = Reason::Parameter(resource.kind.clone(), name.clone(), first_line);
                            self.equate_value(&wanted, &ty, item.span, &reason, (instance, *value));
                        }
                        None => self.unknown_parameter(schema, name, item.span, *name_span),
                    }
                }
                ItemKind::EdgeProperty { endpoint, .. } => {
                    self.endpoint(instance, endpoint);
                    self.condition(instance, item.condition, item.span);
                }
                ItemKind::Meta { name, value } => {
                    let ty = self.infer(instance, *value);
                    self.condition(instance, item.condition, item.span);
                    let reason = Reason::Meta(name.name());
                    self.equate_value(&name.ty(), &ty, item.span, &reason, (instance, *value));
                }
                ItemKind::MetaStruct { value } => {
                    let ty = self.infer(instance, *value);
                    let mut evident = self.syntactic_type(instance, *value);
                    if evident.is_none() && self.is_struct_literal(instance, *value) {
                        evident = Some(self.solver.shallow(&ty));
                    }
                    self.condition(instance, item.condition, item.span);
                    self.meta_struct(evident.as_ref(), &ty, item.span);
                }
            }
        }
        let is_struct = |item: &Item| matches!(item.kind, ItemKind::MetaStruct { .. });
        if resource.items.iter().any(is_struct) {
            let place = self.places.next();
            self.meta_structs.push((place, instance, resource));
        }
        if schema.is_none() && !unknown_kind && !resource.collect {
            let unknown = (resource.kind.clone(), resource.span, resource.kind_span);
            self.bare_unknown_kinds.push(unknown);
        }
        if resource.collect {
            if schema.is_none() && !unknown_kind {
                self.unknown_kind(&resource.kind, resource.span, resource.kind_span);
            }
            self.collect_name(instance, resource.name, &name, resource.span);
        } else {
            self.name(instance, resource.name, &name, resource.span);
        }
    }

    /// A name is a str where that is evident, and otherwise whatever of str and list of str solving finds.
    fn name(&mut self, instance: InstanceId, id: ExprId, ty: &Type, span: Span) {
        match self.syntactic_type(instance, id) {
            Some(Type::Str) => {
                // A lone variable in a string is itself.
                let (reason, shown) = match &self.hir.expr(id).kind {
                    ExprKind::Interpolation(parts) => match parts.as_slice() {
                        [Part::Variable(variable)] => {
                            (Reason::Interpolation(self.hir.place(*variable)), *variable)
                        }
                        _ => (Reason::Interpolation(self.hir.place(id)), id),
                    },
                    _ => (Reason::Name, id),
                };
                self.equate_value(&Type::Str, ty, span, &reason, (instance, shown));
            }
            Some(_) => {
                let names = Type::list(Type::Str);
                self.equate_value(&names, ty, span, &Reason::Name, (instance, id));
            }
            None => {
                let place = self.places.next();
                self.names.push((place, ty.clone(), span));
            }
        }
    }

    fn collect_name(&mut self, instance: InstanceId, id: ExprId, ty: &Type, span: Span) {
        let pair = Type::list(Type::structure([("name", Type::Str), ("host", Type::Str)]));
        let wanted = match self.syntactic_type(instance, id) {
            Some(Type::Str) => Type::Str,
            Some(found) if found == Type::list(Type::Str) => found,
            _ => pair,
        };
        self.equate(&wanted, ty, span, &Reason::Collected);
    }

    fn endpoint(&mut self, instance: InstanceId, endpoint: &Endpoint) {
        let ty = self.infer(instance, endpoint.name);
        self.name(instance, endpoint.name, &ty, endpoint.span);
    }

    fn condition(&mut self, instance: InstanceId, condition: Option<ExprId>, span: Span) {
        if let Some(condition) = condition {
            let ty = self.infer(instance, condition);
            self.equate_value(&Type::Bool, &ty, span, &Reason::Condition, (instance, condition));
        }
    }

    /// The type of a parameter, with a type of its own wherever anything goes.
    fn native_type(&mut self, parameter_type: &ParameterType) -> Type {
        let solver = &mut self.solver;
        parameter_type
            .ty()
            .replace(&mut |part| matches!(part, Type::Dynamic).then(|| solver.fresh()))
    }

    fn meta_struct(&mut self, evident: Option<&Type>, ty: &Type, span: Span) {
        if let Some(Type::Struct(fields)) = evident {
            for field in &fields.fields {
                match MetaName::parse(&field.name) {
                    Some(name) => self.equate(&name.ty(), &field.ty, span, &Reason::Meta(name.name())),
                    None => {
                        let message = format!("there is no meta parameter `{}`", field.name);
                        let help = did_you_mean(&field.name, MetaName::ALL.map(MetaName::name));
                        let error = Diagnostic::error(&codes::FIELD_NAMES, span, message);
                        self.unsolved(error.help_if(help));
                    }
                }
            }
            return;
        }
        let full = Type::structure(MetaName::ALL.map(|name| (name.name(), name.ty())));
        self.equate(&full, ty, span, &Reason::MetaStruct);
    }

    pub(super) fn unknown_kind(&mut self, kind: &str, span: Span, kind_span: Span) {
        let message = format!("there is no kind of resource `{kind}`");
        let known = |meant: &&&str| self.library.kinds.contains_key(**meant);
        let help = foreign::kind(kind)
            .iter()
            .find(known)
            .map(|meant| format!("that is the kind `{meant}`"))
            .or_else(|| foreign::statement(kind).map(|instead| instead.help.to_owned()))
            .or_else(|| did_you_mean(kind, self.library.kinds.keys().copied()))
            .unwrap_or_else(|| "`setpoint docs kinds` lists the kinds that there are".to_owned());
        let error = Diagnostic::error(&codes::UNKNOWN_KIND, span, message).shown_at(kind_span);
        self.refuse(error.label("not known").help(help));
    }

    fn unknown_parameter(&mut self, schema: &KindSchema, name: &str, span: Span, name_span: Span) {
        let names: Vec<&str> = writable_parameters(schema).map(|p| p.name).collect();
        let message = format!("`{}` has no parameter `{name}`", schema.kind);
        let meant = foreign::parameter(name).filter(|meant| names.contains(meant));
        let close = meant.map(|meant| format!("that is the parameter `{meant}`"));
        let close = close.or_else(|| did_you_mean(name, names.iter().copied()));
        let help = close.unwrap_or_else(|| {
            if MetaName::parse(name).is_some() {
                return format!("the meta parameter is written `Meta:{name}`");
            }
            if let Some(edge) = foreign::edge(name) {
                return format!("an edge is written `{edge} => File[\"/etc/motd\"],`");
            }
            match names.as_slice() {
                [] => "it has no parameters".to_owned(),
                names => format!("its parameters are {}", names.join(", ")),
            }
        });
        let error = Diagnostic::error(&codes::UNKNOWN_PARAMETER, span, message).shown_at(name_span);
        self.refuse(error.label("not known").help(help));
    }

    pub(super) fn edge(&mut self, instance: InstanceId, edge: &Edge) {
        if let [lonely] = edge.endpoints.as_slice() {
            let error = Diagnostic::error(&codes::LONELY_EDGE, edge.span, "an edge needs a second end");
            let help = format!("write `{} -> Other[\"name\"]`", capitalised(&lonely.kind) + "[…]");
            self.refuse(error.help(help));
        }
        if let [from, to] = edge.endpoints.as_slice()
            && let (Some(key), Some(parameter)) = (&from.field, &to.field)
        {
            self.send(from, key, to, parameter, edge.span);
        }
        for endpoint in &edge.endpoints {
            self.endpoint(instance, endpoint);
        }
    }

    fn send(&mut self, from: &Endpoint, key: &str, to: &Endpoint, parameter: &str, span: Span) {
        let kinds = &self.library.kinds;
        let sender = kinds.get(&*from.kind).copied();
        let receiver = kinds.get(&*to.kind).copied();
        let (Some(sender), Some(receiver)) = (sender, receiver) else {
            for (endpoint, schema) in [(from, sender), (to, receiver)] {
                if schema.is_none() {
                    self.unknown_kind(&endpoint.kind, span, endpoint.span);
                }
            }
            return;
        };
        if sender.sends.is_empty() {
            let message = format!("`{}` sends nothing", sender.kind);
            self.refuse(
                Diagnostic::error(&codes::CANNOT_SEND, span, message).because(from.span, "the sender"),
            );
            return;
        }
        if !receiver.receives {
            let message = format!("`{}` cannot receive", receiver.kind);
            let error = Diagnostic::error(&codes::CANNOT_RECEIVE, span, message);
            self.refuse(error.because(to.span, "the receiver"));
            return;
        }
        let Some(send_key) = sender.send_key(key) else {
            let names: Vec<&str> = sender.sends.iter().map(|k| k.name).collect();
            let help = did_you_mean(key, names.iter().copied())
                .unwrap_or_else(|| format!("it sends {}", names.join(", ")));
            let message = format!("`{}` does not send `{key}`", sender.kind);
            self.refuse(Diagnostic::error(&codes::BAD_SEND, span, message).help(help));
            return;
        };
        let Some(schema) = receiver.parameter(parameter) else {
            let names: Vec<&str> = receiver.parameters.iter().map(|p| p.name).collect();
            let message = format!("`{}` has no parameter `{parameter}` to receive", receiver.kind);
            let help = did_you_mean(parameter, names.iter().copied());
            self.refuse(Diagnostic::error(&codes::BAD_SEND, span, message).help_if(help));
            return;
        };
        let loose = |parameter_type: &ParameterType| {
            matches!(parameter_type, ParameterType::Optional(_) | ParameterType::Any)
        };
        if !loose(send_key.parameter_type)
            && !loose(schema.parameter_type)
            && send_key.parameter_type != schema.parameter_type
        {
            let message = format!(
                "`{key}` of `{}` is {}, and `{parameter}` of `{}` is {}",
                sender.kind,
                describe(send_key.parameter_type),
                receiver.kind,
                describe(schema.parameter_type),
            );
            self.refuse(Diagnostic::error(&codes::BAD_SEND, span, message));
        }
    }
}

fn describe(parameter_type: &ParameterType) -> String {
    match parameter_type {
        ParameterType::Int { bits, signed } => format!(
            "an int of {bits} bits{}",
            if *signed { "" } else { " without a sign" }
        ),
        ParameterType::Float { bits } => format!("a float of {bits} bits"),
        other => other.ty().to_string(),
    }
}

fn capitalised(kind: &str) -> String {
    let part = |part: &str| {
        let mut characters = part.chars();
        characters
            .next()
            .map(|c| c.to_uppercase().chain(characters).collect::<String>())
            .unwrap_or_default()
    };
    kind.split(':').map(part).collect::<Vec<_>>().join(":")
}

/// A meta parameter that a struct form sets beside another item (G5). Two plain items were refused before.
pub(super) fn meta_twice(
    program: &TypedProgram<'_>,
    instance: InstanceId,
    resource: &Resource,
) -> Option<Diagnostic> {
    let mut seen: FxHashMap<String, Span> = FxHashMap::default();
    for item in &resource.items {
        let names: Vec<String> = match &item.kind {
            ItemKind::Meta { name, .. } => vec![name.name().to_owned()],
            ItemKind::MetaStruct { value } => {
                let ty = program.type_of(instance, *value);
                let fields = ty.as_struct().map(|s| &*s.fields).unwrap_or_default();
                fields.iter().map(|f| f.name.to_string()).collect()
            }
            ItemKind::Field { .. } | ItemKind::EdgeProperty { .. } => continue,
        };
        for name in names {
            if let Some(first) = seen.insert(name.clone(), item.span) {
                let message = format!("`Meta:{name}` is set twice");
                let error = Diagnostic::error(&codes::META_TWICE, resource.span, message);
                let error = error.because(first, "first here");
                return Some(error.because(item.span, "and again here"));
            }
        }
    }
    None
}
