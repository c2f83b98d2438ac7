//! A model that includes a program, as a user meets it: `check`, `graph`, the commands of `cf`, and a run that follows both.

use serde_json::{Value as Json, json};
use setpoint_testing::{Finished, Hermetic, repository};

use crate::book::snippets_of;
use crate::end_to_end::{Engine, run, text};
use crate::mixed_use::{graph_of, names};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

const PROJECT: &str = "name: whole\nmodulepath: libs\n";

const MODEL: &str = "\
import setpoint
import site

first = setpoint::Noop(name=\"first\")
page = site::Page(name=\"www\", domain=\"example.org\", names=[\"www\", \"mail\"], requires=first)
url = std::at(page.urls, 1)
setpoint::Print(name=\"urls\", msg=\"{{ url }}, {{ page.count }} of them\", requires=page)
";

const PROGRAM: &str = "\
import \"iter\"

class page($domain str, $names []str) {
	$urls = iter.map($names, func($name) { \"https://${name}.${domain}/\" })
	$count = len($names)
	$inner = struct{a => 1}

	file \"PLACE/${domain}\" {
		state => \"exists\",
		content => \"welcome to ${domain}\",
	}
	noop \"before ${domain}\" {}
	noop \"after ${domain}\" {}
	Noop[\"before ${domain}\"] -> File[\"PLACE/${domain}\"] -> Noop[\"after ${domain}\"]
}

class helper($anything) {
	noop \"${anything}\" {}
}
";

fn place() -> Hermetic {
    let place = Hermetic::new();
    place.write("model/project.yml", PROJECT);
    place.write("model/main.cf", MODEL);
    place.write("model/libs/site/main.mcl", moved(&place, PROGRAM));
    place
}

/// A text for the directory of the test.
fn moved(place: &Hermetic, text: &str) -> String {
    text.replace("PLACE", &place.directory().display().to_string())
}

fn graph(place: &Hermetic) -> (Json, Finished) {
    graph_of(place, "model")
}

/// Edges as texts, with the directory of the test left out.
fn edges(object: &Json) -> Vec<String> {
    let end = |end: &Json| {
        let text = |field: &str| end[field].as_str().unwrap_or_default().replace("$DIR/", "");
        format!("{}[{}]", text("kind"), text("name"))
    };
    let edges = object["edges"].as_array().into_iter().flatten();
    let mut found: Vec<String> = edges
        .map(|edge| format!("{} -> {}", end(&edge["from"]), end(&edge["to"])))
        .collect();
    found.sort();
    found
}

/// What a command says about a model that is wrong.
#[track_caller]
fn refused(place: &Hermetic, arguments: &[&str], parts: &[&str]) -> String {
    let finished = place.run(BINARY, arguments);
    assert_eq!(finished.code, 1, "{}{}", finished.stdout, finished.stderr);
    for part in parts {
        assert!(finished.stderr.contains(part), "{part}:\n{}", finished.stderr);
    }
    finished.stderr
}

#[test]
fn a_model_includes_a_program_as_entities_of_inputs_and_outputs() {
    let place = place();
    let (object, finished) = graph(&place);
    assert_eq!(finished.code, 0, "{}{}", finished.stdout, finished.stderr);
    let expected = [
        "file[example.org]",
        "noop[after example.org]",
        "noop[before example.org]",
        "noop[first]",
        "print[urls]",
    ];
    assert_eq!(names(&object), expected);
    let print = &object["resources"][4]["params"]["msg"];
    assert_eq!(print, "https://mail.example.org/, 2 of them");
    // The instance stands for the beginning and the end of its program.
    let expected = [
        "file[example.org] -> noop[after example.org]",
        "noop[after example.org] -> print[urls]",
        "noop[before example.org] -> file[example.org]",
        "noop[first] -> noop[before example.org]",
    ];
    assert_eq!(edges(&object), expected);
    // The place is one in the program.
    assert_eq!(object["resources"][0]["span"]["file"], "libs/site/main.mcl");
    let finished = place.run(BINARY, &["check", "--deny", "warnings", "model"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
}

#[test]
fn the_example_of_the_specification_is_as_it_says() {
    let place = Hermetic::new();
    let root = repository();
    let snippets = snippets_of(&root, &root.join("docs/reference/mixed-use.md"));
    let mut count = 0;
    for snippet in snippets {
        if let Some((_, name)) = snippet.language.split_once(' ') {
            let text = snippet
                .text
                .replace("/tmp/", &format!("{}/", place.directory().display()));
            place.write(&format!("model/{name}"), text);
            count += 1;
        }
    }
    assert_eq!(count, 2);
    place.write("model/project.yml", PROJECT);
    let finished = run(&place, &["--once", "model"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_eq!(text(&place.path("site-example.org")), "2 names of example.org");
    let said = "2 names of example.org: https://example.org/";
    assert!(
        format!("{}{}", finished.stdout, finished.stderr).contains(said),
        "{}",
        finished.stderr
    );
}

#[test]
fn wrong_constructors_are_errors_of_the_model() {
    let place = place();
    let wrong = |old: &str, new: &str, parts: &[&str]| {
        place.write("model/main.cf", MODEL.replace(old, new));
        let errors = refused(&place, &["graph", "model"], parts);
        // The module that stands for the program is no file that anybody could open.
        assert!(!errors.contains("_init.cf"), "{errors}");
    };
    wrong(
        "site::Page",
        "site::Pgae",
        &["type `Pgae` in namespace `site`", "did you mean `Page`"],
    );
    wrong(
        "domain=\"example.org\"",
        "domain=42",
        &["E06", "main.cf:5", "domain"],
    );
    let declared = [
        "E06",
        "main.cf:5",
        "domain",
        "libs/site/main.mcl:3",
        "declared here",
    ];
    wrong("domain=\"example.org\", ", "", &declared);
    let defined = ["E0541", "libs/site/main.mcl:3", "defined here"];
    wrong("domain=\"example.org\"", "domian=\"example.org\"", &defined);
    wrong("page.count", "page.inner", &["inner"]);
    let held = ["E0602", "libs/site/main.mcl:4", "leave it out here"];
    wrong("requires=first", "urls=[]", &held);
    // A class that stays inside says why.
    let parts = [
        "site::Helper",
        "`$anything` has no written type",
        "libs/site/main.mcl:17",
    ];
    wrong(
        "page = site::Page",
        "site::Helper(name=\"x\")\npage = site::Page",
        &parts,
    );
    place.write(
        "model/main.cf",
        format!("{MODEL}setpoint::Program(name=\"x\", module=\"libs/other\", class=\"page\", inputs={{}})\n"),
    );
    refused(
        &place,
        &["graph", "model"],
        &["E0644", "the model imports no program `libs/other`", "main.cf:8"],
    );
}

#[test]
fn what_is_wrong_with_a_program_is_told_with_its_own_code_and_place() {
    let place = place();
    let program = moved(&place, PROGRAM);
    place.write(
        "model/libs/site/main.mcl",
        program.replace("len($names)", "len($nmes)"),
    );
    for command in ["check", "graph"] {
        let errors = refused(
            &place,
            &[command, "model"],
            &["`$nmes`", "did you mean `$names`", "model/libs/site/main.mcl:5"],
        );
        assert!(errors.contains("model/main.cf:2"), "the import is told: {errors}");
        assert!(
            !errors.contains("site::Page"),
            "the model is not judged: {errors}"
        );
    }
    let checked = place.run(BINARY, &["cf", "check", "--json", "model"]);
    let object: Json = serde_json::from_str(&checked.stdout).expect("it is JSON");
    assert_eq!(checked.code, 1, "{object}");
    // Found with values: the constructor stands below.
    let fails = "\tpanic($domain == \"example.org\")\n}\n\nclass helper";
    place.write(
        "model/libs/site/main.mcl",
        program.replacen("}\n\nclass helper", fails, 1),
    );
    assert_eq!(place.run(BINARY, &["check", "model"]).code, 0);
    refused(
        &place,
        &["graph", "model"],
        &["model/libs/site/main.mcl:15", "model/main.cf:5"],
    );
    place.write("model/libs/site/main.mcl", "import \"site/\"\n");
    refused(&place, &["check", "model"], &["model/libs/site/main.mcl:1"]);
}

#[test]
fn a_program_cannot_include_the_model_that_includes_it() {
    let place = Hermetic::new();
    place.write("program/model/project.yml", "name: whole\nmodulepath: ../..\n");
    place.write("program/model/main.cf", "import program\n");
    let program = "import \"model/\"\n\nclass c() {\n\tinclude model.model() as m\n}\n";
    place.write("program/main.mcl", program);
    let parts = ["includes this program", "program/main.mcl:1", "main.cf:1"];
    refused(&place, &["check", "program/model"], &parts);
    refused(&place, &["graph", "program/model"], &parts);
    // The same from the other side.
    place.write("program/main.mcl", format!("{program}include c()\n"));
    place.write("main.mcl", "import \"program/\"\n\ninclude program.c()\n");
    refused(&place, &["check", "main.mcl"], &["includes this program"]);
}

#[test]
fn models_and_programs_can_be_nested() {
    let place = place();
    let project = "name: inner\nsetpoint:\n  inputs:\n    n: int\n  outputs:\n    double: int\n";
    place.write("model/libs/site/inner/project.yml", project);
    let inner = "import setpoint\n\ndouble = 2 * setpoint::input(\"n\")\nsetpoint::Noop(name=\"inner {{ double }}\")\n";
    place.write("model/libs/site/inner/main.cf", inner);
    let program = "\
import \"inner/\"

class page($n int) {
	include inner.model($n) as model
	$result = $model.double + 1
}
";
    place.write("model/libs/site/main.mcl", program);
    let model = "import setpoint\nimport site\n\npage = site::Page(name=\"p\", n=20)\nsetpoint::Noop(name=\"outer {{ page.result }}\", requires=page)\n";
    place.write("model/main.cf", model);
    let (object, finished) = graph(&place);
    assert_eq!(finished.code, 0, "{}{}", finished.stdout, finished.stderr);
    assert_eq!(names(&object), ["noop[inner 40]", "noop[outer 41]"]);
    assert_eq!(edges(&object), ["noop[inner 40] -> noop[outer 41]"]);
    // Nothing is evaluated again for its own sake.
    let finished = run(&place, &["--once", "model"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert!(
        !finished.stderr.contains("was executed again"),
        "{}",
        finished.stderr
    );
}

#[test]
fn what_stands_for_an_instance_is_in_its_resource_set() {
    let place = place();
    place.write(
        "model/main.cf",
        format!("{MODEL}std::ResourceSet(name=\"mine\", resources=[page])\n"),
    );
    let finished = place.run(BINARY, &["graph", "--no-autoedges", "--set", "mine", "model"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert!(
        finished
            .stdout
            .contains("noop \"after example.org\" has set=mine"),
        "{}",
        finished.stdout
    );
    assert!(!finished.stdout.contains("first"), "{}", finished.stdout);
}

#[test]
fn inputs_that_depend_on_whether_outputs_are_known_are_refused() {
    let place = place();
    let wavering = "std::is_unknown(page.count) ? \"example.org\" : \"other\"";
    place.write("model/main.cf", MODEL.replace("\"example.org\"", wavering));
    refused(
        &place,
        &["graph", "model"],
        &["E0644", "does not come to rest", "main.cf:5"],
    );
}

#[test]
fn what_depends_on_something_unknown_is_held() {
    let place = place();
    let unknown = MODEL.replace("domain=\"example.org\"", "domain=std::getfact(first, \"none\")");
    place.write("model/main.cf", unknown);
    let (object, finished) = graph(&place);
    assert_eq!(finished.code, 0, "{}{}", finished.stdout, finished.stderr);
    let held = object["held"].as_array().expect("it is a list");
    let states: Vec<(&Json, &Json)> = held.iter().map(|held| (&held["name"], &held["state"])).collect();
    assert_eq!(
        states,
        [
            (&json!("www"), &json!("undefined")),
            (&json!("urls"), &json!("undefined"))
        ],
        "{held:?}"
    );
    let finished = place.run(BINARY, &["cf", "unknowns", "model"]);
    assert!(
        finished.stdout.contains("fact:*/program[www]/urls"),
        "{}",
        finished.stdout
    );
    // An output that an instance itself depends on is never known.
    place.write(
        "model/main.cf",
        MODEL.replace("domain=\"example.org\"", "domain=std::at(page.urls, 0)"),
    );
    let (object, finished) = graph(&place);
    assert_eq!(finished.code, 0, "{}{}", finished.stdout, finished.stderr);
    assert_eq!(
        object["held"].as_array().map(Vec::len),
        Some(2),
        "{}",
        object["held"]
    );
}

#[test]
fn a_run_goes_on_without_what_waits_for_a_first_value() {
    let place = place();
    let command = "while [ ! -e PLACE/go ]; do sleep 0.05; done; echo gone";
    let program = "\
import \"os\"

class page($domain str, $names []str) {
	$count = len($names)
	$word = os.system(\"COMMAND\")
	$urls = [$domain, $word,]
	noop \"${word}\" {}
}
";
    place.write(
        "model/libs/site/main.mcl",
        moved(&place, &program.replace("COMMAND", command)),
    );
    let last = "setpoint::File(name=\"PLACE/last\", state=\"exists\", content=url)\nsetpoint::Noop(name=\"after\", requires=page)\n";
    place.write("model/main.cf", moved(&place, &format!("{MODEL}{last}")));
    let mut engine = Engine::start(&place, &["model"]);
    let graph = engine.event("a first graph", |event| event["event"] == "graph accepted");
    assert_eq!(graph["added"], 1, "only what waits for nothing");
    assert!(!place.path("last").exists());
    place.write("go", "");
    let last = place.path("last");
    engine.repaired_until("file", &last.display().to_string(), || text(&last) == "gone");
    engine.stop();
}

#[test]
fn equal_instances_share_what_they_describe() {
    let place = place();
    let second = MODEL.replace(
        "page = ",
        "site::Page(name=\"other\", domain=\"example.org\", names=[\"www\", \"mail\"])\npage = ",
    );
    place.write("model/main.cf", &second);
    let (object, finished) = graph(&place);
    assert_eq!(finished.code, 0, "{}{}", finished.stdout, finished.stderr);
    assert_eq!(names(&object).len(), 5);
    // Different ones that describe one resource differently contradict each other.
    let program = moved(&place, PROGRAM).replace("\"welcome to ${domain}\"", "$urls[0]");
    place.write("model/libs/site/main.mcl", program);
    place.write("model/main.cf", second.replacen("\"www\", \"mail\"", "\"a\"", 1));
    refused(
        &place,
        &["graph", "model"],
        &["example.org", "libs/site/main.mcl"],
    );
}

#[test]
fn a_program_without_resources_passes_the_order_on() {
    let place = place();
    place.write(
        "model/libs/site/main.mcl",
        "class page($domain str, $names []str) {\n\t$urls = $names\n\t$count = 2\n}\n",
    );
    let (object, finished) = graph(&place);
    assert_eq!(finished.code, 0, "{}{}", finished.stdout, finished.stderr);
    assert_eq!(edges(&object), ["noop[first] -> print[urls]"]);
}

#[test]
fn a_secret_stays_one_on_its_way_through_a_program() {
    let place = place();
    let program = moved(&place, PROGRAM).replace("\"welcome to ${domain}\"", "$urls[0]");
    place.write("model/libs/site/main.mcl", program);
    let secret = "[std::generate_password(\"token\"), \"b\"]";
    let model = MODEL
        .replace("[\"www\", \"mail\"]", secret)
        .replace("urls, 1", "urls, 0");
    place.write("model/main.cf", model);
    let finished = run(&place, &["--once", "model"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let stored = text(&place.path("model/data/std/passwordfile.txt"));
    let password = stored.trim().strip_prefix("token=").expect("it is there");
    assert_eq!(
        text(&place.path("example.org")),
        format!("https://{password}.example.org/")
    );
    let said = format!("{}{}", finished.stdout, finished.stderr);
    assert!(!said.contains(password), "{said}");
    let (object, finished) = graph(&place);
    assert!(
        !object.to_string().contains(password) && !finished.stderr.contains(password),
        "{object}"
    );
}

#[test]
fn commands_of_cf_see_instances_as_resources_and_outputs_as_facts() {
    let place = place();
    let compile = |arguments: &[&str]| {
        let finished = place.run(
            BINARY,
            &[&["cf", "compile", "--json", "model"], arguments].concat(),
        );
        assert_eq!(finished.code, 0, "{}{}", finished.stdout, finished.stderr);
        serde_json::from_str::<Json>(&finished.stdout).expect("it is JSON")
    };
    let print = |object: &Json| {
        let resources = object["resources"].as_array().into_iter().flatten();
        let mut named = resources.filter(|resource| resource["kind"] == "print");
        named.next().expect("it is there").to_string()
    };
    assert!(!print(&compile(&[])).contains("mail.example.org"));
    place.write(
        "facts.json",
        json!({ "*": { "program[www]": { "urls": ["a", "https://mail.example.org/"], "count": 2 } } })
            .to_string(),
    );
    assert!(print(&compile(&["--facts", "facts.json"])).contains("https://mail.example.org/, 2 of them"));
}

#[test]
fn a_run_follows_sources_and_texts_of_the_program_and_inputs() {
    let place = place();
    let program = "\
import \"os\"

class page($domain str, $names []str) {
	$word = os.readfile(\"PLACE/word\")
	$urls = [$word, \"${word}.${domain}\",]
	$count = len($names)

	file \"PLACE/own\" {
		state => \"exists\",
		content => \"${word} ${domain}\",
	}
}
";
    place.write("model/libs/site/main.mcl", moved(&place, program));
    place.write("word", "a");
    let output = "setpoint::File(name=\"PLACE/output\", state=\"exists\", content=url, requires=page)\n";
    let model = moved(&place, &format!("{MODEL}{output}"));
    place.write("model/main.cf", &model);
    let (own, output) = (place.path("own"), place.path("output"));
    let (own_name, output_name) = (own.display().to_string(), output.display().to_string());
    let mut engine = Engine::start(&place, &["--watch", "model"]);
    engine.repaired_until("file", &output_name, || text(&output) == "a.example.org");
    assert_eq!(text(&own), "a example.org");
    // A value of the program.
    place.write("word", "b");
    engine.repaired_until("file", &output_name, || text(&output) == "b.example.org");
    assert_eq!(text(&own), "b example.org");
    // An input.
    place.write(
        "model/main.cf",
        model.replace("domain=\"example.org\"", "domain=\"other\""),
    );
    engine.repaired_until("file", &output_name, || text(&output) == "b.other");
    assert_eq!(text(&own), "b other");
    // The text of the program.
    place.write(
        "model/libs/site/main.mcl",
        moved(&place, &program.replace("${word} ${domain}", "new ${word}")),
    );
    engine.repaired_until("file", &own_name, || text(&own) == "new b");
    // What is wrong changes nothing until it is right again.
    place.write(
        "model/libs/site/main.mcl",
        moved(
            &place,
            &program.replace("$count = len($names)", "$count = 1 + \"\""),
        ),
    );
    engine.event("what is wrong", |event| event.to_string().contains("E0201"));
    assert_eq!(text(&own), "new b");
    place.write("model/libs/site/main.mcl", moved(&place, program));
    engine.repaired_until("file", &own_name, || text(&own) == "b other");
    engine.stop();
}
