//! What holds for every kind, on examples of each.

use std::sync::{Arc, Mutex};

use setpoint_engine::{Drift, DriftValue, Instance, KindSpec, Watch};
use setpoint_graph::{ConstantValue, ParameterType};
use setpoint_host::files::AbsolutePath;
use setpoint_host::watch::{WatchEvent, WatchHub, WatchToken};
use setpoint_resources::{ProgramFile, ProgramFileContent};
use setpoint_value::{Func, Map, Type, Value};

use crate::harness::{Bench, Subject, kinds, map, refused, text, texts, yes};

type Parameters = Vec<(&'static str, Value)>;

/// A resource on a machine that is not as it wants.
struct Example {
    kind: &'static str,
    /// Sets the machine up; answers name and parameters.
    make: fn(&Bench) -> (String, Parameters),
    /// Whether a second run finds nothing.
    converges: bool,
    /// Whether its repair changes a path that it watches.
    touches: bool,
}

const fn example(kind: &'static str, make: fn(&Bench) -> (String, Parameters)) -> Example {
    Example {
        kind,
        make,
        converges: true,
        touches: true,
    }
}

const EXAMPLES: &[Example] = &[
    example("file", |bench| {
        bench.write("a", "old");
        bench.set_mode("a", 0o644);
        (
            bench.path("a"),
            vec![("content", text("new")), ("mode", text("0600"))],
        )
    }),
    example("file", |bench| {
        (
            bench.path("new"),
            vec![
                ("state", text("exists")),
                ("content", text("x")),
                ("mode", text("u=rw,go=")),
            ],
        )
    }),
    example("file", |bench| {
        (
            format!("{}/", bench.path("d/e")),
            vec![
                ("state", text("exists")),
                ("recurse", yes()),
                ("mode", text("0750")),
            ],
        )
    }),
    example("file", |bench| {
        bench.write("gone/x", "x");
        (
            format!("{}/", bench.path("gone")),
            vec![("state", text("absent")), ("recurse", yes())],
        )
    }),
    example("file", |bench| {
        bench.write("s/a", "1");
        bench.write("s/b/c", "2");
        bench.write("t/a", "0");
        bench.write("t/extra", "0");
        let source = format!("{}/", bench.path("s"));
        let parameters = vec![
            ("state", text("exists")),
            ("source", text(source)),
            ("recurse", yes()),
            ("purge", yes()),
        ];
        (format!("{}/", bench.path("t")), parameters)
    }),
    example("file", |bench| {
        bench.write("l", "in the way");
        let parameters = vec![
            ("state", text("exists")),
            ("symlink", yes()),
            ("force", yes()),
            ("source", text("target")),
        ];
        (bench.path("l"), parameters)
    }),
    example("file", |bench| {
        let part = bench.write("part", "part");
        (bench.path("whole"), vec![("fragments", texts(&[&part, &part]))])
    }),
    example("exec", |bench| {
        let made = bench.path("made");
        (format!("/usr/bin/touch {made}"), vec![("creates", text(made))])
    }),
    Example {
        kind: "exec",
        make: |bench| {
            let input = bench.write("input", "");
            (
                "/bin/true".to_owned(),
                vec![("mtimes", texts(&[&input])), ("ifcmd", text("/bin/false"))],
            )
        },
        converges: true,
        touches: false,
    },
    example("line", |bench| {
        let path = bench.path("lines");
        std::fs::write(&path, "one\ntwo").unwrap();
        let (file, state, content) = (text(&path), text("exists"), text("three"));
        (
            "l".to_owned(),
            vec![("file", file), ("state", state), ("content", content)],
        )
    }),
    example("json:edit", |bench| {
        let path = bench.path("document.json");
        std::fs::write(&path, "{\"a\": 1}").unwrap();
        (path, vec![("edits", texts(&[".b.c = [2]", "del(.a)"]))])
    }),
    example("block", |bench| {
        let file = bench.write("lines", "one\ntwo");
        let (state, content) = (text("exists"), text("three\n"));
        (
            "b".to_owned(),
            vec![("file", text(file)), ("state", state), ("content", content)],
        )
    }),
    example("line", |bench| {
        let file = bench.write("lines", "#Port 1\nPort 2\n");
        (
            "l".to_owned(),
            vec![
                ("file", text(file)),
                ("state", text("exists")),
                ("match", text("^#?Port ")),
                ("content", text("Port 22")),
            ],
        )
    }),
    example("substitute", |bench| {
        let file = bench.write("lines", "port = 1\n");
        (
            "s".to_owned(),
            vec![
                ("file", text(file)),
                ("pattern", text("= 1$")),
                ("with", text("= 2")),
            ],
        )
    }),
    example("ini", |bench| {
        let file = bench.write("settings.ini", "[a]\n;b = 1\n");
        let settings = map(&[("b", "2"), ("c", "3")]);
        (file, vec![("section", text("a")), ("settings", settings)])
    }),
    example("download", |bench| {
        let source = bench.write("source", "new");
        let path = bench.write("fetched", "old");
        let checksum = "sha256:11507a0e2f5e69d5dfa40a62a1bd7b6ee57e6bcd85c67c9b8431b36fff21c437";
        (
            path,
            vec![
                ("url", texts(&[&format!("file://{source}")])),
                ("checksum", text(checksum)),
                ("mode", text("0600")),
            ],
        )
    }),
    example("archive", |bench| {
        bench.write("pack/a/b", "text");
        let source = bench.path("packed.tar");
        let packed = std::process::Command::new("tar")
            .args(["-C", &bench.path("pack"), "-cf", &source, "."])
            .status();
        assert!(packed.unwrap().success());
        (format!("{}/", bench.path("opt")), vec![("source", text(source))])
    }),
    example("hosts", |bench| {
        let file = bench.write("hosts", "127.0.0.1 localhost\n192.0.2.7 old\n");
        (
            "192.0.2.7".to_owned(),
            vec![("file", text(file)), ("names", texts(&["db"]))],
        )
    }),
    Example {
        kind: "wait",
        make: |bench| {
            let path = bench.write("there", "ready");
            let pattern = ("contains", text("^ready$"));
            ("w".to_owned(), vec![("path", text(path)), pattern])
        },
        converges: true,
        touches: false,
    },
    example("ssh:authorized_key", |bench| {
        let file = bench.path(".ssh/authorized_keys");
        let key = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
        let parameters = vec![
            ("file", text(file)),
            ("state", text("exists")),
            ("type", text("ssh-ed25519")),
            ("key", text(key)),
        ];
        ("k".to_owned(), parameters)
    }),
    example("gzip", |bench| {
        let input = bench.write("input", "to be compressed");
        (bench.path("output.gz"), vec![("input", text(input))])
    }),
    example("tar", |bench| {
        bench.write("packed/a", "1");
        bench.write("packed/b/c", "2");
        let inputs = texts(&[&bench.path("packed")]);
        (bench.path("output.tar"), vec![("inputs", inputs)])
    }),
    example("deploy:tar", |bench| {
        let at = |path: String| ProgramFileContent::At(AbsolutePath::new(path).unwrap());
        let main = at(bench.write("program/main.mcl", "noop \"a\" {}\n"));
        let made_up = ProgramFileContent::Bytes(b"main: \"main.mcl\"\n"[..].into());
        let files = [("/main.mcl", main), ("/metadata.yaml", made_up)];
        let files = files.map(|(path, content)| ProgramFile {
            path: path.to_owned(),
            content,
        });
        bench.program_files().replace(Some(files.into()));
        (bench.path("deploy.tar"), vec![("format", Value::Int(8))])
    }),
    example("password", |_| ("p".to_owned(), vec![("saved", yes())])),
    Example {
        touches: false,
        ..example("kv", |_| ("k".to_owned(), vec![("value", text("v"))]))
    },
    example("msg", |_| {
        (
            "m".to_owned(),
            vec![("body", text("hello")), ("priority", text("Info"))],
        )
    }),
    example("print", |_| ("p".to_owned(), vec![("msg", text("hello"))])),
    example("noop", |_| ("n".to_owned(), vec![])),
    example("timer", |_| ("t".to_owned(), vec![("interval", Value::Int(60))])),
    example("value", |_| ("v".to_owned(), vec![("any", texts(&["a", "b"]))])),
    example("test", |_| {
        (
            "t".to_owned(),
            vec![("int8", Value::Int(1)), ("onlyshow", texts(&["int8"]))],
        )
    }),
    Example {
        kind: "exit",
        make: |_| ("e".to_owned(), vec![("code", Value::Int(1))]),
        converges: false,
        touches: false,
    },
    example("hello", |bench| {
        (bench.path("greeting"), vec![("whom", text("you"))])
    }),
    example("_panic", |_| ("_panic".to_owned(), vec![])),
];

impl Example {
    fn on(&self, bench: &Bench) -> Subject {
        let (name, parameters) = (self.make)(bench);
        bench.resource(self.kind, &name, &parameters)
    }
}

/// Kinds that need a machine of their own: `host_kinds` among the tests of the program has their examples, and `cluster` that of `remote`.
const ON_A_MACHINE: &[&str] = &[
    "svc",
    "hostname",
    "net",
    "user",
    "group",
    "sysctl",
    "schedule",
    "augeas",
    "pkg",
    "pkg:repository",
    "cron",
    "mount",
    "nspawn",
    "firewalld",
    "gsettings",
    "fwattr",
    "fwupd:device",
    "fwupd:remote",
    "fwupd:system",
    "remote",
    "git",
    "sudoers",
    "timezone",
];

#[test]
fn every_kind_has_an_example() {
    for spec in kinds() {
        let kind = spec.schema.kind;
        let has_example = EXAMPLES.iter().any(|example| example.kind == kind);
        assert_ne!(has_example, ON_A_MACHINE.contains(&kind), "{kind}");
    }
}

#[test]
fn a_run_without_repair_changes_nothing_and_reports_what_a_run_with_it_repairs() {
    for (index, example) in EXAMPLES.iter().enumerate() {
        let bench = Bench::new();
        let mut subject = example.on(&bench);
        let before = bench.tree(".");
        let planned = subject.check();
        assert!(
            planned.result.is_ok(),
            "{index} {}: {}",
            example.kind,
            planned.failure()
        );
        assert_eq!(bench.tree("."), before, "{index} {}", example.kind);
        assert!(
            planned.drifts.iter().all(|drift| !drift.repaired),
            "{index} {}",
            example.kind
        );
        let applied = subject.apply();
        assert!(
            applied.result.is_ok(),
            "{index} {}: {}",
            example.kind,
            applied.failure()
        );
        assert_eq!(applied.report(), planned.report(), "{index} {}", example.kind);
        assert!(
            applied.drifts.iter().all(|drift| drift.repaired),
            "{index} {}",
            example.kind
        );
    }
}

#[test]
fn a_second_run_finds_nothing_and_so_does_another_process() {
    for (index, example) in EXAMPLES
        .iter()
        .enumerate()
        .filter(|(_, example)| example.converges)
    {
        let bench = Bench::new();
        let mut subject = example.on(&bench);
        subject.apply();
        let after = bench.tree(".");
        let again = subject.apply();
        assert!(
            again.result.is_ok(),
            "{index} {}: {}",
            example.kind,
            again.failure()
        );
        assert_eq!(again.report(), Vec::<String>::new(), "{index} {}", example.kind);
        assert_eq!(bench.tree("."), after, "{index} {}", example.kind);
    }
}

#[test]
fn a_watch_that_is_declared_fires_on_a_real_change() {
    let hub = WatchHub::new().unwrap();
    for (index, example) in EXAMPLES.iter().enumerate() {
        let bench = Bench::new();
        let mut subject = example.on(&bench);
        let fired = Arc::new(Mutex::new(0usize));
        let counter = fired.clone();
        let subscriber = hub.subscribe(Arc::new(move |events: &[WatchEvent]| {
            *counter.lock().unwrap() += events.len();
        }));
        let mut handles = Vec::new();
        for watch in subject.resource().watches() {
            if let Watch::Path { path, depth, follow } = watch {
                handles.push(subscriber.watch(&path, depth, follow, WatchToken(0)).unwrap());
            }
        }
        if handles.is_empty() || !example.touches {
            continue;
        }
        hub.catch_up().unwrap();
        *fired.lock().unwrap() = 0;
        subject.apply();
        hub.catch_up().unwrap();
        assert!(*fired.lock().unwrap() > 0, "{index} {}", example.kind);
    }
}

#[test]
fn sensitive_parameters_are_in_no_report() {
    for (index, example) in EXAMPLES.iter().enumerate() {
        let bench = Bench::new();
        let (name, parameters) = (example.make)(&bench);
        let marked: Parameters = parameters
            .into_iter()
            .map(|(name, value)| (name, value.sensitive()))
            .collect();
        let run = bench.resource(example.kind, &name, &marked).apply();
        let hidden = |value: &DriftValue| matches!(value, DriftValue::Sensitive | DriftValue::Absent);
        let open: Vec<&Drift> = run
            .drifts
            .iter()
            .filter(|drift| !hidden(&drift.is) || !hidden(&drift.want))
            .collect();
        // What is not named like a sensitive parameter may be shown; all parameters are sensitive here.
        assert!(
            marked.is_empty() || open.is_empty(),
            "{index} {}: {open:?}",
            example.kind
        );
    }
}

/// Parameters that programs are written with, and their types: what any implementation of mcl has of the kinds of a machine. Ours may have more.
const PARAMETERS: &str = include_str!("parameters.tsv");

#[test]
fn each_kind_has_the_parameters_that_programs_are_written_with() {
    for row in PARAMETERS.lines().skip(1) {
        let columns: Vec<&str> = row.split('\t').collect();
        let [kind, name, wanted] = columns[..] else {
            panic!("{row}: a row is a kind, a parameter and its type");
        };
        let schema = kinds().map(|spec| spec.schema).find(|schema| schema.kind == kind);
        let schema = schema.unwrap_or_else(|| panic!("there is no kind {kind}"));
        let parameter = schema.parameter(name);
        let parameter = parameter.unwrap_or_else(|| panic!("{kind} has no parameter {name}"));
        let ty = parameter.parameter_type.ty().to_string();
        assert_eq!(ty, wanted, "{kind} {name}");
    }
}

#[test]
fn what_holds_for_an_unset_parameter_is_told_as_it_is_written() {
    for spec in kinds() {
        for parameter in spec.schema.parameters {
            let (kind, name, default) = (spec.schema.kind, parameter.name, parameter.default);
            assert!(
                !default.contains("::") && !default.contains('('),
                "{kind} {name}: {default}"
            );
            let words = parameter.form.map(|form| form()).unwrap_or_default();
            if words.contains("` or `") && !default.is_empty() {
                assert!(
                    words.contains(&format!("`{default}`")),
                    "{kind} {name}: {default}"
                );
            }
        }
    }
}

#[test]
fn everything_is_documented() {
    for spec in kinds() {
        let schema = spec.schema;
        let mut docs = vec![(schema.kind, schema.doc)];
        docs.extend(
            schema
                .parameters
                .iter()
                .map(|parameter| (parameter.name, parameter.doc)),
        );
        docs.extend(schema.sends.iter().map(|key| (key.name, key.doc)));
        for (name, doc) in docs {
            let first = doc.lines().next().unwrap_or_default();
            assert!(!first.is_empty(), "{} {name}", schema.kind);
            assert!(!first.contains("This "), "{} {name}: {first}", schema.kind);
        }
    }
}

#[test]
fn each_parameter_refuses_a_wrong_type_and_takes_a_right_one() {
    for spec in kinds() {
        for parameter in spec.schema.parameters {
            let (kind, name) = (spec.schema.kind, parameter.name);
            if let Some(wrong) = wrong_for(parameter.parameter_type) {
                let refused = refused(kind, "/n", &[(name, wrong)]);
                assert!(
                    refused.iter().any(|line| line.starts_with(&format!("{name}: "))),
                    "{kind} {name}: {refused:?}"
                );
            }
            let form = parameter.form.map(|form| form());
            let form = form.as_ref();
            let example = form.and_then(|form| form.split('`').nth(1)).unwrap_or("/x");
            assert_decodes(spec, name, right_for(parameter.parameter_type, example));
        }
        for constant in spec.schema.constants {
            let ConstantValue::Str(word) = constant.value else {
                continue;
            };
            assert_decodes(spec, constant.parameter, text(word));
        }
    }
}

fn assert_decodes(spec: &KindSpec, name: &'static str, value: Value) {
    let parameters = setpoint_graph::Parameters::new([(name, value.clone())]);
    let decoded = Instance::new(spec, "/n", &parameters);
    let mut resource = decoded.unwrap_or_else(|invalid| panic!("{} {name}: {invalid:?}", spec.schema.kind));
    resource.set_parameter(name, Some(&value)).unwrap();
    resource.set_parameter(name, None).unwrap();
    assert!(resource.set_parameter("no such parameter", None).is_err());
}

fn wrong_for(parameter_type: &ParameterType) -> Option<Value> {
    match parameter_type {
        ParameterType::Any => None,
        ParameterType::Optional(inner) => wrong_for(inner),
        ParameterType::Str => Some(Value::Int(1)),
        ParameterType::Bool
        | ParameterType::Int { .. }
        | ParameterType::Float { .. }
        | ParameterType::List(_)
        | ParameterType::Array(..)
        | ParameterType::Map(..)
        | ParameterType::Struct(_)
        | ParameterType::Func(_) => Some(text("wrong")),
    }
}

/// A value of this type, in which each text is `example`.
fn right_for(parameter_type: &ParameterType, example: &str) -> Value {
    let right_for = |parameter_type| right_for(parameter_type, example);
    match parameter_type {
        ParameterType::Any => Value::Int(1),
        ParameterType::Optional(inner) => right_for(inner),
        ParameterType::Str => text(example),
        ParameterType::Bool => yes(),
        ParameterType::Int { .. } => Value::Int(7),
        ParameterType::Float { .. } => Value::float(0.5),
        ParameterType::List(element) | ParameterType::Array(element, _) => {
            Value::list(element.ty(), [right_for(element)])
        }
        ParameterType::Map(key, value) => Value::Map(Map::new(
            key.ty(),
            value.ty(),
            [(right_for(key), right_for(value))],
        )),
        ParameterType::Struct(fields) => {
            let values: Vec<Value> = fields
                .iter()
                .map(|(_, parameter_type)| right_for(parameter_type))
                .collect();
            Value::structure(parameter_type.ty(), values)
        }
        ParameterType::Func(_) => Value::Func(Func::new(parameter_type.ty(), Constant)),
    }
}

struct Constant;

impl setpoint_value::Callable for Constant {
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn call(&self, _: &[Value]) -> Result<Value, setpoint_value::CallError> {
        Ok(text("called"))
    }
}

#[test]
fn types_are_those_of_the_languages() {
    let ty = |kind: &str, parameter: &str| -> Type {
        crate::harness::spec(kind)
            .schema
            .parameter(parameter)
            .unwrap()
            .parameter_type
            .ty()
    };
    for (kind, parameter, wanted) in [
        ("exec", "env", "map{str: str}"),
        ("exec", "args", "[]str"),
        ("exec", "ifequals", "str"),
        ("file", "content", "str"),
        ("file", "fragments", "[]str"),
        ("test", "func1", "func(int) str"),
        ("test", "interface", "dynamic"),
        ("test", "mapintfloat", "map{int: float}"),
        ("timer", "interval", "int"),
        ("value", "any", "dynamic"),
    ] {
        assert_eq!(ty(kind, parameter).to_string(), wanted, "{kind} {parameter}");
    }
}
