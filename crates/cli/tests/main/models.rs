//! Models as a user meets them: the commands that look at one, and a run that follows its files.

use serde_json::{Value as Json, json};
use setpoint_testing::Hermetic;

use crate::end_to_end::{Engine, run, text};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

const MODEL: &str = "\
import setpoint

message = std::get_env(\"MESSAGE\", \"hello\")
motd = setpoint::File(name=\"motd\", machine=\"host.example\", path=\"PLACE/motd\", content=\"{{ message }}\\n\", state=\"exists\")
after = setpoint::Noop(name=\"after\", machine=\"host.example\", requires=motd)
there = setpoint::Noop(name=\"there\", machine=\"other.example\")
std::print(\"the message is {{ message }}\")
";

fn place() -> Hermetic {
    let place = Hermetic::new();
    place.write("project.yml", "name: greeting\n");
    let directory = place.directory().display().to_string();
    place.write("main.cf", MODEL.replace("PLACE", &directory));
    place
}

fn json_of(text: &str) -> Json {
    serde_json::from_str(text).expect("it is JSON")
}

#[test]
fn compile_tells_everything_that_a_model_becomes() {
    let place = place();
    let finished = place.run(BINARY, &["cf", "compile", "--json", "--env", "MESSAGE=good day"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let object = json_of(&finished.stdout);
    assert_eq!(object["outcome"], "ok");
    assert_eq!(object["vars"]["message"], "good day");
    assert_eq!(object["stdout"], "the message is good day\n");
    let names = object["resources"]
        .as_array()
        .expect("there are resources")
        .iter();
    let names: Vec<(&Json, &Json)> = names
        .map(|resource| (&resource["machine"], &resource["name"]))
        .collect();
    let (host, other) = (json!("host.example"), json!("other.example"));
    let named = [json!("motd"), json!("after"), json!("there")];
    assert_eq!(
        names,
        [(&host, &named[0]), (&host, &named[1]), (&other, &named[2])]
    );
    let reads = object["reads"].as_array().expect("it has read something");
    for read in ["env:MESSAGE", "file:main.cf", "file:project.yml"] {
        assert!(reads.contains(&json!(read)), "{reads:?}");
    }
    let again = place.run(BINARY, &["cf", "compile", "--json", "--env", "MESSAGE=good day"]);
    assert_eq!(again.stdout, finished.stdout);
}

#[test]
fn what_is_wrong_is_told_with_its_class_and_code() {
    let place = place();
    place.write("main.cf", "x = 1\nx = 2\n");
    let finished = place.run(BINARY, &["cf", "compile", "--json"]);
    assert_eq!(finished.code, 1);
    let error = &json_of(&finished.stdout)["errors"][0];
    assert_eq!(
        (&error["class"], &error["line"]),
        (&json!("DoubleSetException"), &json!(2))
    );
    place.write("main.cf", "x = \n");
    for arguments in [
        ["cf", "parse", "main.cf"].as_slice(),
        &["cf", "check"],
        &["check", "main.cf"],
        &["graph", "."],
        &["run", "--once", "--tmp-state-dir", "main.cf"],
    ] {
        let finished = place.run(BINARY, arguments);
        assert_eq!(finished.code, 1, "{arguments:?}: {}", finished.stderr);
        assert!(
            finished.stderr.contains("E0501"),
            "{arguments:?}: {}",
            finished.stderr
        );
    }
}

#[test]
fn a_graph_is_that_of_one_machine_and_shows_what_is_held() {
    let place = place();
    let finished = place.run(BINARY, &["graph", ".", "--hostname", "other.example"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert!(
        finished.stdout.starts_with("noop \"there\""),
        "{}",
        finished.stdout
    );
    place.write(
        "held.cf",
        "import setpoint\nsetpoint::Exec(name=\"e\", cmd=std::get_env(\"NOT_THERE\"))\n",
    );
    let finished = place.run(BINARY, &["graph", "--lang", "cf", "held.cf", "--format", "json"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let object = json_of(&finished.stdout);
    assert_eq!(
        object["resources"][0]["params"]["cmd"],
        json!({ "$unknown": "str" })
    );
    let held = json!([{ "kind": "exec", "name": "e", "state": "undefined", "reason": "`cmd` is not known" }]);
    assert_eq!(object["held"], held);
    let finished = place.run(BINARY, &["cf", "unknowns", "-f", "held.cf"]);
    assert_eq!(finished.stdout, "env:NOT_THERE\n*/exec[e] is undefined: cmd\n");
}

#[test]
fn a_run_makes_the_machine_what_the_model_says() {
    let place = place();
    let finished = run(&place, &["--once", "main.cf"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_eq!(text(&place.path("motd")), "hello\n");
}

#[test]
fn a_run_follows_the_files_of_the_model_and_keeps_the_last_good_one() {
    let place = place();
    let model = text(&place.path("main.cf"));
    let mut engine = Engine::start(&place, &["main.cf"]);
    let repaired =
        |event: &Json| event["name"] == "motd" && event["event"] == "run ended" && event["result"] == "drift";
    engine.event("the file", repaired);
    assert_eq!(text(&place.path("motd")), "hello\n");
    place.write("main.cf", "x = y\n");
    engine.event("what is wrong", |event| event.to_string().contains("E0601"));
    assert_eq!(text(&place.path("motd")), "hello\n");
    place.write("main.cf", model.replace("\"hello\"", "\"welcome\""));
    engine.event("the file again", repaired);
    assert_eq!(text(&place.path("motd")), "welcome\n");
}

const FACTS: &str = "\
import setpoint

probe = setpoint::Exec(name=\"probe\", machine=\"host.example\", cmd=\"cat PLACE/size\", shell=\"/bin/sh\")
size = std::getfact(probe, \"stdout\")
answer = setpoint::File(name=\"answer\", machine=\"host.example\", path=\"PLACE/answer\", content=\"size {{ size }}\", state=\"exists\")
";

fn place_with_facts() -> Hermetic {
    let place = Hermetic::new();
    place.write("project.yml", "name: sizes\n");
    place.write("size", "42");
    let directory = place.directory().display().to_string();
    place.write("main.cf", FACTS.replace("PLACE", &directory));
    place
}

#[test]
fn what_a_resource_publishes_is_a_fact_that_the_model_is_executed_with() {
    let place = place_with_facts();
    let finished = run(&place, &["--once", "main.cf"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_eq!(text(&place.path("answer")), "size 42");
    assert!(
        finished
            .stderr
            .contains("file[answer] is held (undefined): `content` is not known"),
        "{}",
        finished.stderr
    );
    place.write("size", "43");
    let finished = run(&place, &["--once", "main.cf"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_eq!(text(&place.path("answer")), "size 43");
}

#[test]
fn a_run_follows_the_facts_of_a_file() {
    let place = place_with_facts();
    let main = text(&place.path("main.cf")).replace("\"stdout\"", "\"measured\"");
    place.write("main.cf", main);
    place.write("facts.json", "{}");
    let facts = place.path("facts.json").display().to_string();
    let mut engine = Engine::start(&place, &["--facts", &facts, "main.cf"]);
    engine.repaired("exec", "probe");
    assert!(!place.path("answer").exists(), "what it would hold is not known");
    let said = |size: u32| json!({ "host.example": { "exec[probe]": { "measured": size } } }).to_string();
    place.write("facts.json", said(7));
    engine.repaired_until("file", "answer", || text(&place.path("answer")) == "size 7");
    place.write("facts.json", "what is this?");
    let rejected = engine.event("facts that are none are rejected", |event| {
        event["event"] == "graph rejected"
    });
    let why = rejected["diagnostics"].as_str().unwrap_or_default();
    assert!(why.contains("facts.json` holds no facts"), "{why}");
    place.write("facts.json", said(8));
    engine.repaired_until("file", "answer", || text(&place.path("answer")) == "size 8");
}

#[test]
fn a_run_follows_the_files_that_functions_of_the_model_read() {
    let place = place();
    let model = text(&place.path("main.cf"));
    let read = "message = std::source(\"/text\") + std::template(\"/end.j2\")";
    let (_, rest) = model.split_once("\nmessage").expect("it has a message");
    let (_, rest) = rest.split_once('\n').expect("more follows");
    place.write("main.cf", format!("import setpoint\n{read}\n{rest}"));
    place.write("files/text", "good");
    place.write("templates/end.j2", " day");
    let mut engine = Engine::start(&place, &["main.cf"]);
    engine.repaired_until("file", "motd", || text(&place.path("motd")) == "good day\n");
    place.write("files/text", "bad");
    engine.repaired_until("file", "motd", || text(&place.path("motd")) == "bad day\n");
    place.write("templates/end.j2", " night");
    engine.repaired_until("file", "motd", || text(&place.path("motd")) == "bad night\n");
}

#[test]
fn rounds_of_freezing_are_limited_by_the_environment() {
    let place = place();
    let model = "entity A:\nend\nA.os [0:] -- A\nA.ps [0:] -- A\nimplement A using std::none\na = A()\nx = std::count(a.os)\ny = std::count(a.ps)\n";
    place.write("main.cf", model);
    let limited = |rounds: &str| {
        let rounds = format!("SETPOINT_CF_MAX_ROUNDS={rounds}");
        place.run(BINARY, &["cf", "compile", "--json", "--env", &rounds])
    };
    assert_eq!(limited("100").code, 0);
    let finished = limited("1");
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    let error = &json_of(&finished.stdout)["errors"][0];
    assert_eq!(
        (&error["code"], &error["class"]),
        (&json!("E0633"), &json!("CompilerException"))
    );
    let finished = limited("many");
    assert!(
        finished
            .stderr
            .contains("SETPOINT_CF_MAX_ROUNDS is a whole number"),
        "{}",
        finished.stderr
    );
}

#[test]
fn every_machine_makes_the_same_of_a_model() {
    let place = place();
    let compiled = |hostname: &str| {
        place
            .run(BINARY, &["cf", "compile", "--json", "--hostname", hostname])
            .stdout
    };
    assert_eq!(compiled("host.example"), compiled("other.example"));
}

#[test]
fn a_function_answers_both_languages_the_same() {
    let place = place();
    let model = "import setpoint\nimport cty\nsetpoint::Print(name=\"a\", msg=cty::upper(\"abc\"))\nsetpoint::Print(name=\"b\", msg=cty::upper(str=\"abc\"))\n";
    place.write("main.cf", model);
    place.write(
        "main.mcl",
        "import \"cty\"\nprint \"a\" { msg => cty.upper(\"abc\"), }\n",
    );
    let parameters = |arguments: &[&str], at: usize| {
        let finished = place.run(BINARY, arguments);
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        json_of(&finished.stdout)["resources"][at]["params"].clone()
    };
    let mcl = parameters(&["graph", "main.mcl", "--format", "json"], 0);
    assert_eq!(mcl, json!({ "msg": "ABC" }));
    for at in [0, 1] {
        assert_eq!(parameters(&["graph", "main.cf", "--format", "json"], at), mcl);
    }
}

#[test]
fn a_graph_shows_resource_sets_and_can_be_of_one() {
    let place = Hermetic::new();
    let model = "import setpoint\na = setpoint::Noop(name=\"a\")\nb = setpoint::Noop(name=\"b\", requires=a)\nc = setpoint::Noop(name=\"c\")\nstd::ResourceSet(name=\"web\", resources=[a, b])\n";
    place.write("main.cf", model);
    let graph = |arguments: &[&str]| place.run(BINARY, &[&["graph", "main.cf"], arguments].concat());
    let shown = graph(&[]).stdout;
    assert!(
        shown.ends_with("\n\nnoop \"a\" has set=web\nnoop \"b\" has set=web\n"),
        "{shown}"
    );
    assert!(shown.contains("noop \"c\""), "{shown}");
    let shown = graph(&["--set", "web"]).stdout;
    assert!(
        !shown.contains("noop \"c\"") && shown.contains("noop \"a\" -> noop \"b\""),
        "{shown}"
    );
    let object = json_of(&graph(&["--set", "web", "--format", "json"]).stdout);
    let rows = object["resources"]
        .as_array()
        .expect("there are resources")
        .iter();
    let rows: Vec<(&Json, &Json)> = rows.map(|row| (&row["name"], &row["set"])).collect();
    assert_eq!(rows, [(&json!("a"), &json!("web")), (&json!("b"), &json!("web"))]);
    let refused = graph(&["--set", "wbe"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("there is `web`"), "{}", refused.stderr);
}

#[test]
fn docs_show_what_models_define_and_what_is_built_in() {
    let place = Hermetic::new();
    let docs = |arguments: &[&str]| {
        let all = [&["docs"], arguments].concat();
        let finished = place.run(BINARY, &all);
        assert_eq!(finished.code, 0, "{arguments:?}: {}", finished.stderr);
        finished.stdout
    };
    // By whole and short name, by a part, and beside everything else that has a name.
    let entity = docs(&["models", "std::Host"]);
    for part in [
        "import std\n",
        "entity std::Host",
        "Attributes\n",
        "string name",
        "Indexes\n",
    ] {
        assert!(entity.contains(part), "{part}:\n{entity}");
    }
    assert_eq!(docs(&["models", "Host"]), entity);
    assert_eq!(docs(&["std::Host"]), entity);
    let part = docs(&["models", "ipv4_"]);
    for name in ["std::ipv4_address", "std::ipv4_network"] {
        assert!(part.lines().any(|line| line.trim().starts_with(name)), "{part}");
    }
    let function = docs(&["models", "std::replace"]);
    assert!(
        function.contains("std::replace(string: string, old: string, new: string) -> string"),
        "{function}"
    );
    let of_kind = docs(&["models", "setpoint::File"]);
    assert!(of_kind.contains("string? path"), "{of_kind}");
    let unknown = place.run(BINARY, &["docs", "models", "std::Hots"]);
    assert_eq!(unknown.code, 1);
    assert!(unknown.stderr.contains("std::Host"), "{}", unknown.stderr);
    // The rules of both linters are found.
    assert!(docs(&["hyphen-in-name"]).starts_with("# W0511"));
    // And what a project defines.
    place.write("p/project.yml", "name: p\nmodulepath: libs\n");
    place.write(
        "p/libs/net/setup.cfg",
        "[metadata]\nname = inmanta-module-net\nversion = 1.0.0\nlicense = MIT\n",
    );
    let module = "\"\"\"\nA network.\n\"\"\"\ntypedef size as int matching self > 0\n\"\"\"\nHow large.\n\"\"\"\nentity Node:\n    size size = 1\nend\nimplementation nothing for Node:\nend\nimplement Node using nothing\n";
    place.write("p/libs/net/model/_init.cf", module);
    place.write(
        "p/main.cf",
        "import net\nentity Own extends net::Node:\nend\nimplement Own using parents\n",
    );
    let all = docs(&["models", "--of", "p"]);
    assert!(
        all.starts_with("The main file\n    Own\n\nnet\n    net::Node\n    net::size"),
        "{all}"
    );
    let markdown = docs(&["models", "--of", "p", "net", "--markdown"]);
    let wanted = "## net\n\nA network.\n\n### net::Node\n\n```cf\nentity net::Node\n```\n\nAttributes:\n\n- `net::size size = 1`\n\nImplementations:\n\n- `using net::nothing`\n\n### net::size\n\n```cf\ntypedef size as int matching self > 0\n```\n\nHow large.\n\n### net::nothing\n\n```cf\nimplementation net::nothing for net::Node\n```\n\n";
    assert_eq!(markdown, wanted);
}
