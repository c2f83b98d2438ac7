//! Conversations with workers that are made of scripts: what a compilation says, and what it makes of answers that no honest worker gives.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::{Value as Json, json};
use setpoint_diagnostics::{Diagnostics, MemoryLoader, SourceMap};
use setpoint_graph::Library;

use setpoint_cf::compile::compile;
use setpoint_cf::execute::Inputs;
use setpoint_cf::plugins::{Lost, PluginHost, PluginSettings, Worker};
use setpoint_cf::project::Options;

/// Gives one worker that answers with these frames, and keeps what it hears.
#[derive(Debug)]
struct Script {
    answers: Mutex<VecDeque<Vec<u8>>>,
    heard: Arc<Mutex<Vec<Json>>>,
}

struct ScriptedWorker {
    answers: VecDeque<Vec<u8>>,
    heard: Arc<Mutex<Vec<Json>>>,
}

impl PluginHost for Script {
    fn start(&self) -> Result<Box<dyn Worker>, String> {
        let answers = std::mem::take(&mut *self.answers.lock().expect("no test panics with it"));
        Ok(Box::new(ScriptedWorker {
            answers,
            heard: self.heard.clone(),
        }))
    }

    fn path(&self, path: &str) -> String {
        format!("/project/{path}")
    }
}

impl Worker for ScriptedWorker {
    fn begin(&mut self) {}

    fn send(&mut self, frame: &[u8]) -> Result<(), Lost> {
        let message = serde_json::from_slice(frame).expect("what is sent is JSON");
        self.heard.lock().expect("no test panics with it").push(message);
        Ok(())
    }

    fn receive(&mut self) -> Result<Vec<u8>, Lost> {
        self.answers
            .pop_front()
            .ok_or_else(|| Lost::because("the script is over"))
    }
}

/// What came of a model, and what was said to the worker behind the program and the project.
struct Outcome {
    errors: Vec<String>,
    vars: Json,
    printed: Vec<String>,
    heard: Vec<Json>,
}

/// The function `m::f(a, b = …, *, c = …) -> any`.
fn described() -> Json {
    let parameter = |name: &str, takes: &str, ty: Json, optional: bool| json!({"name": name, "takes": takes, "type": ty, "optional": optional});
    json!({
        "functions": [{
            "namespace": "m",
            "name": "f",
            "parameters": [
                parameter("a", "one", json!("any"), false),
                parameter("b", "one", json!({"text": "int?"}), true),
                parameter("c", "keyword", json!({"list": {"text": "string"}}), true),
            ],
            "result": "any",
            "allow_unknown": false,
            "takes_context": false,
            "deprecated": null,
            "file": "/project/libs/m/plugins/__init__.py",
            "line": 1,
        }],
        "failed": [],
    })
}

/// Compiles a model that can call `m::f`, with a worker that knows it and then gives these answers.
fn compiled(main: &str, answers: &[Json]) -> Outcome {
    let frames = answers.iter().map(|answer| answer.to_string().into_bytes());
    compiled_with(
        main,
        std::iter::once(described().to_string().into_bytes()).chain(frames),
    )
}

fn compiled_with(main: &str, frames: impl Iterator<Item = Vec<u8>>) -> Outcome {
    let loader = MemoryLoader::new()
        .with("project.yml", "name: p\nmodulepath: libs\n")
        .with("libs/m/module.yml", "name: m\nversion: 1.0\nlicense: MIT\n")
        .with(
            "libs/m/model/_init.cf",
            "entity Host:\n    string name\n    any_of size = 1\nend\ntypedef any_of as int matching self > 0\nimplement Host using std::none\n",
        )
        .with("libs/m/plugins/__init__.py", "@plugin\ndef f(a, b=1, *, c=()):\n    pass\n")
        .with("main.cf", format!("import m\n{main}"));
    let heard = Arc::new(Mutex::new(Vec::new()));
    let script = Script {
        answers: Mutex::new(frames.collect()),
        heard: heard.clone(),
    };
    let library = Library::new(
        setpoint_functions::registry(),
        setpoint_resources::KINDS.iter().map(|kind| kind.schema),
    );
    let mut options = Options {
        plugins: PluginSettings::By(Arc::new(script)),
        ..Options::default()
    };
    let inputs = Inputs {
        stored: [("data/std/passwordfile.txt".into(), Arc::from("id=secret\n"))].into(),
        ..Inputs::default()
    };
    let (mut sources, mut found) = (SourceMap::new(), Diagnostics::new());
    let compiled = compile(&loader, &library, &mut options, &inputs, &mut sources, &mut found);
    let text = |error: &setpoint_diagnostics::Diagnostic| {
        let notes: String = error.notes.iter().map(|note| format!(" [{note}]")).collect();
        format!("{} {}{notes}", error.code.code, error.message)
    };
    let errors = found
        .iter()
        .filter(|found| found.severity == setpoint_diagnostics::Severity::Error);
    let errors = errors.map(text).collect();
    let object = setpoint_cf::json::compiled(&compiled, &found, &sources);
    let printed = compiled
        .execution
        .map(|execution| execution.printed)
        .unwrap_or_default();
    let heard = heard.lock().expect("no test panics with it").split_off(0);
    Outcome {
        errors,
        vars: object["vars"].clone(),
        printed,
        heard: heard.into_iter().skip(2).collect(),
    }
}

fn failed(answers: &[Json]) -> String {
    compiled("x = m::f(1)\n", answers).errors.join("\n")
}

#[test]
fn arguments_cross_in_the_order_of_the_parameters() {
    let outcome = compiled(
        "x = m::f({\"k\": [1, 2.0]}, c=[\"c\"])\n",
        &[
            json!({"print": "said"}),
            json!({"result": {"dict": ["k", {"float": "inf"}]}}),
        ],
    );
    assert_eq!(outcome.errors, Vec::<String>::new());
    assert_eq!(outcome.vars, json!({"x": {"k": "inf"}}));
    assert_eq!(outcome.printed, ["said"]);
    assert_eq!(outcome.heard[0], json!({"load": "m"}));
    assert_eq!(
        outcome.heard[1],
        json!({"call": {
            "namespace": "m", "name": "f", "positional": [{"dict": ["k", [1, 2.0]]}], "keywords": [["c", ["c"]]],
            "deployment": "",
        }})
    );
}

#[test]
fn a_value_that_is_not_there_yet_makes_the_call_anew() {
    let read = json!({"read": [0, "name"]});
    let outcome = compiled(
        "h = m::Host()\nx = m::f(h)\nh.name = late\nlate = string(5)\n",
        &[
            json!({"print": "first"}),
            read.clone(),
            json!({"result": "whatever it makes of it"}),
            json!({"print": "second"}),
            read,
            json!({"result": "right"}),
        ],
    );
    assert_eq!(outcome.errors, Vec::<String>::new());
    assert_eq!(outcome.vars["x"], "right");
    assert_eq!(outcome.printed, ["second"]);
    let answers: Vec<&Json> = outcome
        .heard
        .iter()
        .filter(|heard| heard.get("call").is_none())
        .collect();
    assert_eq!(
        answers,
        [
            &json!({"load": "m"}),
            &json!({"unset": true}),
            &json!({"value": "5"})
        ]
    );
}

#[test]
fn a_worker_names_only_what_it_was_given() {
    let nonsense = "E0622 function `m::f` failed: the Python process answered what is no answer";
    for answer in [
        json!({"read": [7, "name"]}),
        json!({"result": {"instance": [0, "m::Host"]}}),
        json!({"result": {"reference": 3}}),
        json!({"result": {"dict": ["odd"]}}),
        json!({"result": {"dict": [1, 2]}}),
        json!({"result": {"float": "many"}}),
        json!({"result": {"nothing": 1}}),
        json!({"results": 1}),
        json!([1]),
        described(),
    ] {
        let told = failed(std::slice::from_ref(&answer));
        assert!(told.contains(nonsense), "{answer}: {told}");
    }
    let frames = [
        described().to_string().into_bytes(),
        b"{\"result\": \xff".to_vec(),
    ];
    let outcome = compiled_with("x = m::f(1)\n", frames.into_iter());
    assert_eq!(outcome.errors, [nonsense]);
    let outcome = compiled_with("x = m::f(1)\n", [b"[".to_vec()].into_iter());
    assert_eq!(outcome.errors.len(), 1);
    assert!(
        outcome.errors[0].contains("which cannot be used: the Python process answered what is no answer"),
        "{:?}",
        outcome.errors
    );
}

#[test]
fn a_worker_that_is_lost_is_not_asked_again() {
    let outcome = compiled("x = m::f(1)\ny = m::f(2)\n", &[]);
    assert!(
        outcome.errors[0].contains("function `m::f` failed: the script is over"),
        "{:?}",
        outcome.errors
    );
    let calls = outcome.heard.iter().filter(|heard| heard.get("call").is_some());
    assert_eq!(calls.count(), 1);
}

#[test]
fn what_was_computed_of_a_secret_is_one_and_is_not_told() {
    let outcome = compiled(
        "x = m::f(std::password(\"id\"))\nstd::assert(x == \"other\", \"shown\")\n",
        &[json!({"result": "made of secret"})],
    );
    let told = outcome.errors.join("\n");
    assert!(
        !told.contains("made of secret") && told.contains("not shown"),
        "{told}"
    );
    let raised = json!({"raised": {
        "sort": "other", "type": "ValueError", "message": "secret", "file": null, "line": 0, "function": null, "cause": "secret",
    }});
    let told = compiled("x = m::f(std::password(\"id\"))\n", &[raised])
        .errors
        .join("\n");
    assert_eq!(
        told,
        "E0622 function `m::f` failed: the reason is not shown because an argument is sensitive"
    );
}

#[test]
fn texts_that_only_look_like_names_start_nothing() {
    let outcome = compiled("x = std::upper(\"f\")\nh = m::Host(name=\"f\")\n", &[]);
    assert_eq!((outcome.errors.len(), outcome.heard.len()), (0, 0));
}
