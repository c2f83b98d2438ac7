//! A program that includes a model, as a user meets it: `check`, `graph`, and a run that follows both.

use serde_json::{Value as Json, json};
use setpoint_testing::{Finished, Hermetic};

use crate::end_to_end::{Engine, run, text};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

const PROJECT: &str = "\
name: network
setpoint:
  inputs:
    domain: string
    names: string[]
  outputs:
    urls: string[]
    count: int
";

const MODEL: &str = "\
import setpoint

domain = setpoint::input(\"domain\")
urls = [\"https://{{ name }}.{{ domain }}/\" for name in setpoint::input(\"names\")]
count = std::count(urls)
motd = setpoint::File(name=\"{{ domain }}\", path=\"PLACE/{{ domain }}\", content=std::template(\"/motd.j2\"), state=\"exists\")
setpoint::Noop(name=\"after {{ domain }}\", requires=motd)
setpoint::Noop(name=\"elsewhere\", machine=\"other.example\")
";

const PROGRAM: &str = "\
import \"network/\"
import \"fmt\"

include network.model(\"example.org\", [\"www\", \"mail\",]) as net

noop \"first\" {}
print \"urls\" {
	msg => fmt.printf(\"%s, %d of them\", $net.urls[1], $net.count),
}
Noop[\"first\"] -> File[\"example.org\"] -> Print[\"urls\"]
";

fn place() -> Hermetic {
    let place = Hermetic::new();
    place.write("network/project.yml", PROJECT);
    let directory = place.directory().display().to_string();
    place.write("network/main.cf", MODEL.replace("PLACE", &directory));
    place.write("network/templates/motd.j2", "welcome to {{ domain }}");
    place.write("main.mcl", PROGRAM);
    place
}

fn graph(place: &Hermetic) -> (Json, Finished) {
    graph_of(place, "main.mcl")
}

/// The graph of a program or model, and how that went.
pub(crate) fn graph_of(place: &Hermetic, entry: &str) -> (Json, Finished) {
    let arguments = [
        "graph",
        "--format",
        "json",
        "--no-autoedges",
        "--hostname",
        "host.example",
        entry,
    ];
    let finished = place.run(BINARY, &arguments);
    let object = serde_json::from_str(&finished.stdout).expect("it is JSON");
    (object, finished)
}

/// Kinds and names of the resources, with the directory of the test left out.
pub(crate) fn names(object: &Json) -> Vec<String> {
    let text = |value: &Json| value.as_str().unwrap_or_default().replace("$DIR/", "");
    let resources = object["resources"].as_array().into_iter().flatten();
    resources
        .map(|resource| format!("{}[{}]", text(&resource["kind"]), text(&resource["name"])))
        .collect()
}

#[test]
fn a_program_includes_a_model_as_a_class_of_inputs_and_outputs() {
    let place = place();
    let (object, finished) = graph(&place);
    assert_eq!(finished.code, 0, "{}{}", finished.stdout, finished.stderr);
    let expected = [
        "file[example.org]",
        "noop[after example.org]",
        "noop[first]",
        "print[urls]",
    ];
    assert_eq!(names(&object), expected);
    let print = &object["resources"][3]["params"]["msg"];
    assert_eq!(print, "https://mail.example.org/, 2 of them");
    let edges = object["edges"].as_array().expect("there are edges");
    assert_eq!(edges.len(), 3, "{edges:?}");
    // The place is one in the model.
    assert_eq!(
        object["resources"][0]["span"]["file"], "network/main.cf",
        "{}",
        object["resources"][0]
    );
}

#[test]
fn each_include_is_an_execution_of_its_own() {
    let place = place();
    let program = "\
import \"network/\"

for $i, $domain in [\"a.example\", \"b.example\",] {
	include network.model($domain, []) as net
	print \"${domain}\" {
		msg => if $net.count == 0 { \"no names\" } else { \"names\" },
	}
}
";
    place.write("main.mcl", program);
    let (object, finished) = graph(&place);
    assert_eq!(finished.code, 0, "{}{}", finished.stdout, finished.stderr);
    let expected = [
        "file[a.example]",
        "file[b.example]",
        "noop[after a.example]",
        "noop[after b.example]",
        "print[a.example]",
        "print[b.example]",
    ];
    assert_eq!(names(&object), expected);
}

#[test]
fn what_both_languages_describe_must_be_the_same() {
    let place = place();
    let same = "noop \"after example.org\" {}\n";
    place.write("main.mcl", format!("{PROGRAM}{same}"));
    let (_, finished) = graph(&place);
    assert_eq!(finished.code, 0, "{}{}", finished.stdout, finished.stderr);
    place.write(
        "main.mcl",
        format!("{PROGRAM}file \"example.org\" {{\n\tpath => \"/tmp/x\",\n}}\n"),
    );
    let finished = place.run(BINARY, &["graph", "main.mcl"]);
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    for part in ["file[example.org]", "network/main.cf", "main.mcl"] {
        assert!(finished.stderr.contains(part), "{part}: {}", finished.stderr);
    }
}

#[test]
fn what_is_wrong_with_a_model_is_told_with_its_own_code_and_place() {
    let place = place();
    let model = text(&place.path("network/main.cf"));
    place.write("network/main.cf", format!("{model}x = \n"));
    for command in ["check", "graph"] {
        let finished = place.run(BINARY, &[command, "main.mcl"]);
        assert_eq!(finished.code, 1, "{}", finished.stderr);
        for part in ["E0501", "network/main.cf"] {
            assert!(finished.stderr.contains(part), "{command}: {}", finished.stderr);
        }
    }
    // Found while executing: the include stands below.
    place.write("network/main.cf", format!("{model}domain = \"other\"\n"));
    let finished = place.run(BINARY, &["graph", "main.mcl"]);
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    for part in ["network/main.cf:3", "main.mcl:4"] {
        assert!(finished.stderr.contains(part), "{}", finished.stderr);
    }
    place.write("network/main.cf", model.replace("\"names\"", "\"nanes\""));
    let finished = place.run(BINARY, &["graph", "main.mcl"]);
    assert!(
        finished.stderr.contains("no input `nanes`") && finished.stderr.contains("did you mean `names`"),
        "{}",
        finished.stderr
    );
}

#[test]
fn inputs_and_outputs_are_typed() {
    let place = place();
    place.write(
        "main.mcl",
        PROGRAM.replace("\"example.org\", [\"www\", \"mail\",]", "42, []"),
    );
    let finished = place.run(BINARY, &["check", "main.mcl"]);
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    assert!(finished.stderr.contains("main.mcl:4"), "{}", finished.stderr);
    place.write("main.mcl", PROGRAM);
    place.write(
        "network/project.yml",
        PROJECT.replace("count: int", "count: string"),
    );
    place.write("main.mcl", PROGRAM.replace("%d", "%s"));
    let finished = place.run(BINARY, &["graph", "main.mcl"]);
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    assert!(
        finished
            .stderr
            .contains("the output `count` is declared as `string`: an int is no `string`"),
        "{}",
        finished.stderr
    );
    place.write(
        "network/project.yml",
        PROJECT.replace("urls: string[]", "links: string[]"),
    );
    let finished = place.run(BINARY, &["cf", "compile", "network"]);
    assert!(
        finished.stderr.contains("there is no variable `links`"),
        "{}",
        finished.stderr
    );
    place.write(
        "network/project.yml",
        PROJECT.replace("count: int", "Count: number"),
    );
    let finished = place.run(BINARY, &["check", "main.mcl"]);
    assert!(
        finished.stderr.contains("`Count` cannot be a name"),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_model_alone_is_given_its_inputs_on_the_command_line() {
    let place = place();
    let base = ["cf", "compile", "--json", "network"];
    let given = ["--input", "domain=example.org", "--input", "names=[\"www\"]"];
    let compiled = |arguments: &[&str]| place.run(BINARY, &[base.as_slice(), arguments].concat());
    let object = |finished: &Finished| serde_json::from_str::<Json>(&finished.stdout).expect("it is JSON");
    let finished = compiled(&given);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_eq!(
        object(&finished)["vars"]["urls"],
        json!(["https://www.example.org/"])
    );
    assert_eq!(
        object(&compiled(&[]))["vars"]["domain"],
        json!({ "$unknown": true })
    );
    let finished = place.run(BINARY, &["cf", "unknowns", "network", "--input", "domain=a"]);
    assert!(
        finished.stdout.starts_with("input:names\n"),
        "{}",
        finished.stdout
    );
    for (wrong, message) in [
        ("domian=a", "the model has no input `domian`"),
        ("names=www", "`www` is no `string[]`"),
    ] {
        let finished = compiled(&["--input", wrong]);
        assert_eq!(finished.code, 64, "{}", finished.stderr);
        assert!(finished.stderr.contains(message), "{}", finished.stderr);
    }
    let finished = place.run(BINARY, &["graph", "main.mcl", "--input", "a=b"]);
    assert_eq!(finished.code, 64, "{}", finished.stderr);
}

#[test]
fn a_run_applies_what_the_model_describes() {
    let place = place();
    let finished = run(&place, &["--once", "main.mcl"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_eq!(text(&place.path("example.org")), "welcome to example.org");
}

#[test]
fn a_run_follows_arguments_texts_and_templates_of_the_model() {
    let place = place();
    let read = "$domain = os.readfile(\"PLACE/domain\")";
    let read = read.replace("PLACE", &place.directory().display().to_string());
    let program =
        format!("import \"network/\"\nimport \"os\"\n\n{read}\ninclude network.model($domain, []) as net\n");
    place.write("main.mcl", program);
    place.write("domain", "a");
    let mut engine = Engine::start(&place, &["--watch", "main.mcl"]);
    engine.repaired_until("file", "a", || text(&place.path("a")) == "welcome to a");
    place.write("domain", "b");
    engine.repaired_until("file", "b", || text(&place.path("b")) == "welcome to b");
    place.write("network/templates/motd.j2", "good bye, {{ domain }}");
    engine.repaired_until("file", "b", || text(&place.path("b")) == "good bye, b");
    let model = text(&place.path("network/main.cf"));
    // What is wrong changes nothing until it is right again.
    place.write("network/main.cf", format!("{model}x = y\n"));
    engine.event("what is wrong", |event| event.to_string().contains("E0601"));
    assert_eq!(text(&place.path("b")), "good bye, b");
    place.write(
        "network/main.cf",
        model.replace("name=\"{{ domain }}\"", "name=\"new\""),
    );
    place.write("network/templates/motd.j2", "hello again");
    engine.repaired_until("file", "new", || text(&place.path("b")) == "hello again");
}
