//! Collect statements follow what the world has.

use std::sync::Arc;

use setpoint_diagnostics::{FileId, Span};
use setpoint_flow::{EXPORTS, Operation};
use setpoint_graph::{
    DesiredMembers, DesiredResource, Meta, Parameters, ResourceId, ResourceStatement, encode_exported,
};
use setpoint_value::{Exported, Type, Value};

use crate::library;
use crate::program_builder::{Built, ProgramBuilder};
use crate::world::World;

/// `collect test [outside("names")] {}`
fn program() -> Built {
    let builder = ProgramBuilder::new();
    let mut entry = builder.template("the entry", 0);
    let name = entry.outside("names", Type::list(Type::Str));
    let kind = entry.str("test");
    let exports = entry.call(&EXPORTS, &[kind], EXPORTS.alternatives()[0].result.clone());
    let statement = Arc::new(ResourceStatement {
        kind: "test".into(),
        schema: Some(&library::TEST),
        name,
        fields: Vec::new(),
        meta: Vec::new(),
        edges: Vec::new(),
        head: Span::new(FileId(0), 0, 1),
        span: Span::new(FileId(0), 0, 1),
    });
    entry.node(Operation::Collect { statement, exports }, Type::Dynamic);
    builder.finish(entry)
}

fn export(name: &str, host: &str, value: i64) -> Exported {
    let resource = DesiredResource {
        id: ResourceId::new("test", name),
        schema: &library::TEST,
        parameters: Parameters::new([(library::TEST.parameters[0].name, Value::Int(value))]),
        meta: Meta::default(),
        span: Span::new(FileId(0), 0, 1),
        parameter_spans: Arc::default(),
        chain: None,
        members: DesiredMembers::default(),
    };
    Exported {
        name: name.to_owned(),
        host: host.to_owned(),
        data: encode_exported(&resource).unwrap().text.into(),
    }
}

#[test]
fn what_is_collected_comes_and_goes_with_the_exports_and_the_names() {
    let mut world = World::started(program(), &[("names", Value::strings(["a"]))]);
    assert!(world.resources().is_empty());
    world
        .machine
        .set_exports("test", vec![export("a", "h1", 1), export("b", "h1", 2)]);
    world.step();
    assert_eq!(world.resources(), ["a=1"]);
    world.set("names", Value::strings(["a", "b"]));
    assert_eq!(world.resources(), ["a=1", "b=2"]);
    world.machine.set_exports("test", vec![export("b", "h1", 2)]);
    world.step();
    assert_eq!(world.resources(), ["b=2"]);
}
