//! Kinds for tests, and a short way to write statements: the values of a statement stand in it directly.

use std::sync::Arc;

use setpoint_diagnostics::{Diagnostics, FileId, Span};
use setpoint_graph::{
    DesiredGraph, EdgeEndpoint, EdgeItem, EdgeProperty, EdgeStatement, FieldItem, Invalid, KindSchema,
    MetaItem, MetaName, MetaParameters, ParameterSchema, ParameterType, Parameters, ResourceStatement,
    Secrecy, SendKey, StatementOutput, build_edge, build_resource,
};
use setpoint_value::{Type, Value};

pub(crate) use crate::plain::PLAIN;

macro_rules! parameters {
    ($($name:literal $native:expr;)*) => {
        &[$(ParameterSchema {
            name: $name,
            yaml_name: $name,
            parameter_type: &$native,
            form: None,
            doc: "",
            default: "",
        }),*]
    };
}

const INT64: ParameterType = ParameterType::Int {
    bits: 64,
    signed: true,
};

/// Most types, sends, receives, and fails validation on demand.
pub(crate) static TEST: KindSchema = KindSchema {
    kind: "test",
    doc: "",
    parameters: parameters! {
        "int8" ParameterType::Int { bits: 8, signed: true };
        "uint64" ParameterType::Int { bits: 64, signed: false };
        "int64" INT64;
        "float32" ParameterType::Float { bits: 32 };
        "anotherstr" ParameterType::Str;
        "stringptr" ParameterType::Optional(&ParameterType::Str);
        "interface" ParameterType::Any;
        "slicestring" ParameterType::List(&ParameterType::Str);
        "pair" ParameterType::Array(&INT64, 2);
        "validateerror" ParameterType::Str;
    },
    sends: &[
        SendKey {
            name: "hello",
            parameter_type: &ParameterType::Optional(&ParameterType::Str),
            doc: "",
            secrecy: Secrecy::WithParameters,
        },
        SendKey {
            name: "answer",
            parameter_type: &INT64,
            doc: "",
            secrecy: Secrecy::WithParameters,
        },
    ],
    receives: true,
    refreshable: true,
    autogroup: true,
    check: check_test,
    ..KindSchema::plain("", "", &[])
};

fn check_test(_: &str, parameters: &Parameters, _: &MetaParameters) -> Vec<Invalid> {
    match parameters.get("validateerror").and_then(Value::as_str) {
        Some(text) if !text.is_empty() => {
            vec![Invalid::parameter("validateerror", text.to_lossy().into_owned()).help("leave it empty")]
        }
        _ => Vec::new(),
    }
}

/// Merges `installed` and `newest`; needs a state.
pub(crate) static PACKAGE: KindSchema = KindSchema {
    kind: "pkg",
    parameters: parameters! { "state" ParameterType::Str; },
    sends: &[],
    receives: false,
    check: check_package,
    has_doubts: |_, _| false,
    merge: Some(merge_packages),
    ..bare("pkg")
};

fn check_package(_: &str, parameters: &Parameters, _: &MetaParameters) -> Vec<Invalid> {
    match parameters.get("state") {
        None => vec![Invalid::new("`state` is needed")],
        Some(_) => Vec::new(),
    }
}

fn merge_packages(a: &Parameters, b: &Parameters) -> Option<Parameters> {
    let state = |p: &Parameters| p.get("state").and_then(Value::as_str).cloned();
    match (state(a)?.as_str()?, state(b)?.as_str()?) {
        ("installed", "newest") | ("newest", "installed") => {
            Some(Parameters::new([("state", Value::str("newest"))]))
        }
        (a, b) if a == b => Some(Parameters::new([("state", Value::str(a))])),
        _ => None,
    }
}

/// Neither sends nor receives.
pub(crate) static NOOP: KindSchema = bare("noop");

const fn bare(kind: &'static str) -> KindSchema {
    KindSchema::plain(kind, "", parameters! { "comment" ParameterType::Str; })
}

/// A resource statement under construction. Its span is `start..start + 10`; items have spans of one byte in it.
#[derive(Debug)]
pub(crate) struct Resource(pub(crate) ResourceStatement<Value>);

pub(crate) fn at(start: u32) -> Span {
    Span::new(FileId(0), start, start + 10)
}

pub(crate) fn resource(schema: &'static KindSchema, name: impl Into<Name>) -> Resource {
    Resource(ResourceStatement {
        kind: schema.kind.into(),
        schema: Some(schema),
        name: name.into().0,
        fields: Vec::new(),
        meta: Vec::new(),
        edges: Vec::new(),
        head: at(0),
        span: at(0),
    })
}

pub(crate) fn test(name: impl Into<Name>) -> Resource {
    resource(&TEST, name)
}

/// A name: a text, a list of texts or any value.
pub(crate) struct Name(Value);

impl From<&str> for Name {
    fn from(name: &str) -> Name {
        Name(Value::str(name))
    }
}

impl<const N: usize> From<[&str; N]> for Name {
    fn from(names: [&str; N]) -> Name {
        Name(Value::strings(names))
    }
}

impl From<Value> for Name {
    fn from(value: Value) -> Name {
        Name(value)
    }
}

impl Resource {
    pub(crate) fn span(mut self, start: u32) -> Resource {
        self.0.span = at(start);
        self
    }

    fn item_span(&self) -> Span {
        let count = self.0.fields.len() + self.0.meta.len() + self.0.edges.len();
        let start = self.0.span.start + 1 + count as u32;
        Span::new(FileId(0), start, start + 1)
    }

    pub(crate) fn set(self, parameter: &str, value: Value) -> Resource {
        self.set_if(parameter, None, value)
    }

    pub(crate) fn set_if(
        mut self,
        parameter: &str,
        condition: impl Into<Option<Value>>,
        value: Value,
    ) -> Resource {
        let schema = self.0.schema.expect("parameters need a kind");
        let span = self.item_span();
        self.0.fields.push(FieldItem {
            parameter: schema.parameter(parameter).expect("the kind has it"),
            value,
            condition: condition.into(),
            span,
        });
        self
    }

    pub(crate) fn text(self, text: &str) -> Resource {
        self.set("anotherstr", Value::str(text))
    }

    pub(crate) fn meta(mut self, name: MetaName, value: Value) -> Resource {
        let span = self.item_span();
        self.0.meta.push(MetaItem {
            name: Some(name),
            value,
            condition: None,
            span,
        });
        self
    }

    pub(crate) fn meta_struct(mut self, fields: &[(&'static str, Value)]) -> Resource {
        let ty = Type::structure(fields.iter().map(|(name, value)| (*name, value.ty())));
        let values: Vec<Value> = fields.iter().map(|(_, value)| value.clone()).collect();
        let span = self.item_span();
        self.0.meta.push(MetaItem {
            name: None,
            value: Value::structure(ty, values),
            condition: None,
            span,
        });
        self
    }

    pub(crate) fn hidden(self) -> Resource {
        self.meta(MetaName::Hidden, Value::Bool(true))
    }

    pub(crate) fn edge(self, property: EdgeProperty, kind: &str, name: impl Into<Name>) -> Resource {
        self.edge_if(property, kind, name, None)
    }

    pub(crate) fn edge_if(
        mut self,
        property: EdgeProperty,
        kind: &str,
        name: impl Into<Name>,
        condition: Option<Value>,
    ) -> Resource {
        let span = self.item_span();
        self.0.edges.push(EdgeItem {
            property,
            endpoint: EdgeEndpoint {
                kind: kind.into(),
                name: name.into().0,
                span,
            },
            condition,
            span,
        });
        self
    }

    pub(crate) fn build(&self) -> (StatementOutput, Diagnostics) {
        let mut diagnostics = Diagnostics::new();
        let output = build_resource(&self.0, None, &Value::clone, &PLAIN, &mut diagnostics);
        (output, diagnostics)
    }

    /// What it gives, which must be without fault.
    pub(crate) fn output(&self) -> StatementOutput {
        let (output, diagnostics) = self.build();
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        output
    }
}

/// `Kind[name] -> Kind[name] -> …`.
pub(crate) fn chain(endpoints: &[(&str, &str)]) -> StatementOutput {
    edge_statement(endpoints, None, 500)
}

/// `Test[from].key -> Test[to].parameter`.
pub(crate) fn send(from: &str, key: &str, to: &str, parameter: &str) -> StatementOutput {
    edge_statement(&[("test", from), ("test", to)], Some((key, parameter)), 600)
}

pub(crate) fn edge_statement(
    endpoints: &[(&str, &str)],
    send: Option<(&str, &str)>,
    start: u32,
) -> StatementOutput {
    let endpoints = endpoints
        .iter()
        .zip(start..)
        .map(|((kind, name), start)| EdgeEndpoint {
            kind: (*kind).into(),
            name: Value::str(*name),
            span: Span::new(FileId(0), start, start + 1),
        });
    let statement = EdgeStatement {
        endpoints: endpoints.collect(),
        send: send.map(|(key, parameter)| (key.into(), parameter.into())),
        span: at(start),
    };
    let mut diagnostics = Diagnostics::new();
    let output = build_edge(&statement, &Value::clone, &PLAIN, &mut diagnostics);
    assert!(diagnostics.is_empty());
    output
}

/// The graph of these statements.
pub(crate) fn assemble(
    outputs: impl IntoIterator<Item = StatementOutput>,
) -> Result<DesiredGraph, Diagnostics> {
    setpoint_graph::assemble(outputs, &PLAIN)
}

/// Codes in order.
pub(crate) fn codes(diagnostics: &Diagnostics) -> Vec<&'static str> {
    diagnostics.iter().map(|d| d.code.code).collect()
}

pub(crate) fn names(output: &StatementOutput) -> Vec<&str> {
    output.resources.iter().map(|r| &*r.id.name).collect()
}

pub(crate) fn shared(output: StatementOutput) -> Option<Arc<StatementOutput>> {
    Some(Arc::new(output))
}
