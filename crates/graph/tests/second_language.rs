//! A second language, of another sort than the first: it executes its program anew after every change, its errors wrap one another, it
//! has classes of errors and phases of its own, and it names what it builds as it likes. It lives from what this crate and
//! `setpoint_diagnostics` give to everybody.
//!
//! A program is lines. `VARIABLE = TEXT` sets a variable, `NAME : TEXT, AFTER…` is a resource `test` with a text that names a variable,
//! after others.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use setpoint_diagnostics::{
    CodeInfo, Diagnostic, Diagnostics, FileId, RenderStyle, SourceMap, Span, Stage, render,
};
use setpoint_graph::json::diagnostics_json;
use setpoint_graph::{
    Assembler, DesiredGraph, EdgeEndpoint, EdgeItem, EdgeProperty, FieldItem, Language, MetaName, Problem,
    ResourceStatement, StatementOutput, build_resource, diff,
};
use setpoint_value::Value;

use crate::kinds::TEST;

const PARSE: Stage = Stage::new("parse");
const EXECUTE: Stage = Stage::new("execute");
const EXPORT: Stage = Stage::new("export");

setpoint_diagnostics::codes! {
    pub(crate)
    BAD_LINE = "M0501" "" PARSE "a line that is no statement";
    NOT_FOUND = "M0601" "" EXECUTE "a variable that is not there";
    ATTRIBUTE = "M0603" "" EXECUTE "an attribute that cannot be set";
    RESOURCE = "M0644" "" EXPORT "a resource that is not right";
    TWICE = "M0640" "" EXPORT "a resource that is there twice";
    WAITS = "M0641" "" EXPORT "requirements in a circle";
}

#[derive(Debug)]
struct Lines;

static LINES: Lines = Lines;

impl Language for Lines {
    fn code(&self, problem: &Problem) -> &'static CodeInfo {
        match problem {
            Problem::DifferentDuplicate | Problem::IncompatibleDuplicate => &TWICE,
            Problem::Cycle(_) => &WAITS,
            _ => &RESOURCE,
        }
    }

    fn complete(&self, problem: &Problem, found: Diagnostic) -> Diagnostic {
        match problem {
            Problem::Cycle(ids) => found
                .of_class("DependencyCycle")
                .help(format!("take one of these {} out of `requires`", ids.len())),
            Problem::MissingResource(id) => found.of_class("Missing").help(format!("declare `{}`", id.name)),
            _ => found.of_class("Resource"),
        }
    }

    fn meta_parameter(&self, name: MetaName) -> String {
        format!("`{}` of its policy", name.name())
    }
}

/// A program that is executed again and again.
struct Execution {
    assembler: Assembler<usize>,
}

impl Execution {
    fn new() -> Execution {
        Execution {
            assembler: Assembler::new(&LINES),
        }
    }

    fn run(&mut self, text: &str) -> Result<DesiredGraph, Diagnostics> {
        let mut diagnostics = Diagnostics::new();
        let mut variables: BTreeMap<&str, &str> = BTreeMap::new();
        let mut outputs: Vec<(usize, StatementOutput)> = Vec::new();
        let mut start = 0;
        for (number, line) in text.lines().enumerate() {
            let span = Span::new(FileId(0), start, start + line.len() as u32);
            start = span.end + 1;
            if let Some((name, value)) = line.split_once(" = ") {
                variables.insert(name, value);
            } else if let Some((name, rest)) = line.split_once(" : ") {
                let mut words = rest.split(", ");
                let variable = words.next().unwrap_or_default();
                let Some(value) = variables.get(variable) else {
                    diagnostics.push(unset(name, variable, span));
                    continue;
                };
                let statement = statement(name, value, words, span);
                let output = build_resource(&statement, None, &Value::clone, &LINES, &mut diagnostics);
                outputs.push((number, output));
            } else if !line.is_empty() {
                let message = format!("`{line}` is no statement");
                diagnostics.push(Diagnostic::error(&BAD_LINE, span, message).of_class("Parser"));
            }
        }
        match diagnostics.has_errors() {
            true => Err(diagnostics),
            false => self.assembler.replace_all(outputs),
        }
    }
}

/// An error that has wrapped another one on its way out.
fn unset(name: &str, variable: &str, span: Span) -> Diagnostic {
    let at = Span::new(span.file, span.start + name.len() as u32 + 3, span.end);
    let cause = Diagnostic::error(&NOT_FOUND, at, format!("variable `{variable}` not found"))
        .of_class("NotFound")
        .help("set it in a line above");
    Diagnostic::error(
        &ATTRIBUTE,
        span,
        format!("could not set an attribute of `{name}`"),
    )
    .of_class("Attribute")
    .caused_by(cause)
}

fn statement<'a>(
    name: &str,
    value: &str,
    after: impl Iterator<Item = &'a str>,
    span: Span,
) -> ResourceStatement<Value> {
    let parameter = TEST.parameter("anotherstr").expect("the kind has it");
    ResourceStatement {
        kind: "test".into(),
        schema: Some(&TEST),
        name: Value::str(name),
        fields: vec![FieldItem {
            parameter,
            value: Value::str(value),
            condition: None,
            span,
        }],
        meta: Vec::new(),
        edges: after
            .map(|other| EdgeItem {
                property: EdgeProperty::Depend,
                endpoint: EdgeEndpoint {
                    kind: "test".into(),
                    name: Value::str(other),
                    span,
                },
                condition: None,
                span,
            })
            .collect(),
        head: span,
        span,
    }
}

fn wrong(text: &str) -> (Diagnostics, SourceMap) {
    let mut sources = SourceMap::new();
    sources.add("lines.txt", text);
    let found = Execution::new().run(text).expect_err("it is wrong");
    (found, sources)
}

#[test]
fn a_second_execution_shares_what_did_not_change() {
    let mut execution = Execution::new();
    let old = execution
        .run("v = 1\nw = 2\na : v\nb : w, a\n")
        .expect("it is right");
    let new = execution
        .run("v = 1\nw = 3\na : v\nb : w, a\n")
        .expect("it is right");
    let change = diff(&old, &new);
    let changed: Vec<&str> = change.changed.iter().map(|(old, _)| &*old.id.name).collect();
    assert_eq!(changed, ["b"]);
    let a = |graph: &DesiredGraph| {
        let mut all = graph.resources.values();
        all.find(|resource| &*resource.id.name == "a").cloned()
    };
    let (Some(before), Some(after)) = (a(&old), a(&new)) else {
        panic!("`a` is in both");
    };
    assert!(Arc::ptr_eq(&before, &after));
    let same = execution
        .run("v = 1\nw = 3\na : v\nb : w, a\n")
        .expect("it is right");
    assert_eq!(same.generation, new.generation);
    let fewer = execution.run("v = 1\nw = 3\na : v\n").expect("it is right");
    assert_eq!((fewer.resources.len(), fewer.edges.len()), (1, 0));
}

#[test]
fn causes_are_told_to_people() {
    let (found, sources) = wrong("v = 1\na : w\n");
    let texts: Vec<String> = found
        .iter()
        .map(|found| render(found, &sources, RenderStyle::PLAIN))
        .collect();
    assert_eq!(
        texts,
        ["error[M0603]: could not set an attribute of `a`
 --> lines.txt:2:1
  |
2 | a : w
  | ^^^^^
caused by:
  error[M0601]: variable `w` not found
   --> lines.txt:2:5
    |
  2 | a : w
    |     ^
    |
    = help: set it in a line above"]
    );
}

#[test]
fn causes_are_told_to_programs() {
    let (found, sources) = wrong("a : w\n");
    assert_eq!(
        diagnostics_json(&found, &sources),
        json!([{
            "severity": "error", "stage": "execute", "code": "M0603", "class": "Attribute",
            "message": "could not set an attribute of `a`",
            "file": "lines.txt", "line": 1, "col": 1, "end_line": 1, "end_col": 6, "help": null,
            "causes": [{
                "severity": "error", "stage": "execute", "code": "M0601", "class": "NotFound",
                "message": "variable `w` not found",
                "file": "lines.txt", "line": 1, "col": 5, "end_line": 1, "end_col": 6,
                "help": "set it in a line above",
            }],
        }])
    );
}

#[test]
fn what_is_wrong_with_a_graph_is_told_in_its_own_codes_classes_and_stages() {
    let told = |text: &str| {
        let (found, _) = wrong(text);
        let rows = found.iter().map(|found| {
            let help: Vec<&str> = found.help.iter().map(|help| &*help.text).collect();
            (found.stage.name(), found.code.code, found.class, help.join(", "))
        });
        rows.collect::<Vec<_>>()
    };
    let own = |code, class, help: &str| vec![("export", code, class, help.to_owned())];
    let circle = "v = 1\na : v, b\nb : v, a\n";
    assert_eq!(
        told(circle),
        own(
            "M0641",
            "DependencyCycle",
            "take one of these 2 out of `requires`"
        )
    );
    assert_eq!(told("v = 1\na : v, b\n"), own("M0644", "Missing", "declare `b`"));
    assert_eq!(told("v = 1\nw = 2\na : v\na : w\n"), own("M0640", "Resource", ""));
    // A rule of another language is none of this one.
    assert!(Execution::new().run("v = 1\n$a : v\n").is_ok());
}
