//! What assembling costs: everything at once, and one change among many.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use setpoint_diagnostics::{CodeInfo, FileId, Span, Stage};
use setpoint_graph::{
    Assembler, DesiredEdge, DesiredResource, KindSchema, Language, Meta, MetaName, ParameterSchema,
    ParameterType, Parameters, Problem, ResourceId, StatementOutput, diff,
};
use setpoint_value::Value;

static KIND: KindSchema = KindSchema::plain(
    "file",
    "",
    &[ParameterSchema {
        name: "content",
        yaml_name: "content",
        parameter_type: &ParameterType::Str,
        form: None,
        doc: "",
        default: "",
    }],
);

/// A language in which nothing is wrong.
#[derive(Debug)]
struct Faultless;

impl Language for Faultless {
    fn code(&self, _: &Problem) -> &'static CodeInfo {
        static CODE: CodeInfo = CodeInfo {
            code: "E",
            rule: "",
            stage: Stage::new("build"),
            summary: "",
        };
        &CODE
    }

    fn meta_parameter(&self, name: MetaName) -> String {
        name.name().to_owned()
    }
}

fn id(number: u32) -> ResourceId {
    ResourceId::new("file", format!("/srv/some/directory/file-{number}"))
}

/// Resource `number`, after the one before it if `edges`.
fn output(number: u32, content: &str, edges: bool) -> Option<Arc<StatementOutput>> {
    let span = Span::new(FileId(0), number * 40, number * 40 + 39);
    let resource = DesiredResource {
        id: id(number),
        schema: &KIND,
        parameters: Parameters::new([("content", Value::str(content))]),
        meta: Meta::default(),
        span,
        parameter_spans: Arc::new([("content", span)]),
        chain: None,
        members: setpoint_graph::DesiredMembers::default(),
    };
    let edge = |before| DesiredEdge {
        from: id(before),
        to: id(number),
        notify: false,
        send: Vec::new(),
        span,
        parts: None,
    };
    Some(Arc::new(StatementOutput {
        resources: vec![Arc::new(resource)],
        edges: number
            .checked_sub(1)
            .filter(|_| edges)
            .map(edge)
            .into_iter()
            .collect(),
        span: Some(span),
        ..StatementOutput::default()
    }))
}

fn assembling(criterion: &mut Criterion) {
    for (name, count, edges) in [
        ("10k", 10_000, false),
        ("10k_edges", 10_000, true),
        ("100k", 100_000, false),
    ] {
        let all: Vec<_> = (0..count)
            .map(|number| (number, output(number, "x", edges)))
            .collect();
        let mut group = criterion.benchmark_group(name);
        group.sample_size(20);
        group.bench_function("cold", |bencher| {
            bencher.iter_batched(
                || all.clone(),
                |all| black_box(Assembler::new(&Faultless).apply(all)),
                BatchSize::LargeInput,
            );
        });
        let mut assembler = Assembler::new(&Faultless);
        let mut before = assembler.apply(all).expect("it is right");
        let mut flip = false;
        group.bench_function("one_change", |bencher| {
            bencher.iter_batched(
                || {
                    flip = !flip;
                    output(count / 2, if flip { "y" } else { "z" }, edges)
                },
                |changed| {
                    let after = assembler.apply(vec![(count / 2, changed)]).expect("it is right");
                    let change = diff(&before, &after);
                    assert_eq!(change.changed.len(), 1);
                    before = after;
                },
                BatchSize::SmallInput,
            );
        });
    }
}

criterion_group!(benches, assembling);
criterion_main!(benches);
