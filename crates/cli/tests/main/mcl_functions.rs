//! Functions that modules of models declare in mcl, as a user meets them.

use serde_json::{Value as Json, json};
use setpoint_testing::Hermetic;

use crate::end_to_end::{Engine, text};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// A project with a module `net` that has these functions, and this as its main file.
fn place(functions: &str, main: &str) -> Hermetic {
    let place = Hermetic::new();
    place.write("project.yml", "name: p\nmodulepath: libs\n");
    place.write("libs/net/module.yml", "name: net\nversion: 1.0\nlicense: MIT\n");
    place.write("libs/net/model/_init.cf", "");
    place.write("libs/net/functions.mcl", functions);
    place.write("main.cf", format!("import net\n{main}"));
    place
}

fn variables(functions: &str, main: &str) -> Json {
    let finished = place(functions, main).run(BINARY, &["cf", "compile", "--json"]);
    let object: Json =
        serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{}", finished.stderr));
    assert_eq!(object["outcome"], "ok", "{object:#}");
    object["vars"].clone()
}

/// What a user reads of a model that is wrong.
fn screen(functions: &str, main: &str) -> String {
    let finished = place(functions, main).run(BINARY, &["cf", "compile"]);
    assert_eq!(finished.code, 1, "{}\n{}", finished.stdout, finished.stderr);
    finished.stderr
}

#[test]
fn a_model_calls_functions_that_its_modules_declare_in_mcl() {
    let functions = r#"
import "strings"
import "iter"

$domain = "example.org"

func host($name) {
	"${name}.${domain}"
}
func double($x) {
	$x + $x
}
func add($a int, $b int) int {
	$a + $b
}
func hosts($names []str) []str {
	iter.map($names, func($name) { host($name) })
}
func entry($name str, $port int) {
	struct{name => $name, port => $port,}
}
func both($map map{str: int}) {
	$map["a"] + $map["b"]
}
func constant() {
	strings.to_lower("ABC")
}
"#;
    let main = r#"
host = net::host("www")
again = net::host("mail")
number = net::double(3)
fraction = net::double(1.5)
word = net::double("ab")
sum = net::add(1, b=2)
hosts = net::hosts(["a", "b"])
entry = net::entry("www", 80)
port = entry["port"]
both = net::both({"a": 1, "b": 2})
constant = net::constant()
unknown = net::host(std::get_env("NOT_THERE"))
in_text = "{{ host }}:{{ port }}"
"#;
    let found = variables(functions, main);
    let expected = json!({
        "host": "www.example.org",
        "again": "mail.example.org",
        "number": 6,
        "fraction": 3.0,
        "word": "abab",
        "sum": 3,
        "hosts": ["a.example.org", "b.example.org"],
        "entry": { "name": "www", "port": 80 },
        "port": 80,
        "both": 3,
        "constant": "abc",
        "unknown": { "$unknown": true },
        "in_text": "www.example.org:80",
    });
    assert_eq!(found, expected);
}

#[test]
fn one_function_answers_many_calls() {
    let main = "all = [net::square(i) for i in std::sequence(20000)]\n";
    let found = variables("func square($x) {\n\t$x * $x\n}\n", main);
    let squares: Vec<u64> = (0..20_000).map(|i| i * i).collect();
    assert_eq!(found["all"], json!(squares));
}

#[test]
fn what_is_wrong_with_a_call_is_told_where_the_model_makes_it() {
    let functions = "func add($a int, $b int) int {\n\t$a + $b\n}\nfunc third($list []str) str {\n\t$list[2]\n}\n\
                     func double($x) {\n\t$x + $x\n}\n";
    for (call, expected) in [
        ("net::add(1, \"x\")", "int"),
        ("net::add(1)", "'b'"),
        ("net::ad(1, 2)", "did you mean `add`?"),
        ("net::third([\"a\"])", "(libs/net/functions.mcl:5)"),
        ("net::double(true)", "bool"),
        ("net::double(null)", "null"),
    ] {
        let screen = screen(functions, &format!("x = {call}\n"));
        assert!(screen.contains("main.cf:2:"), "{call}: {screen}");
        assert!(screen.contains(expected), "{call}: {screen}");
        assert!(
            !screen.contains("setpoint/call") && !screen.contains("argument0"),
            "{screen}"
        );
    }
}

#[test]
fn what_is_wrong_with_the_file_is_told_there() {
    for (functions, expected) in [
        ("func f($x) {\n\t$y\n}\n", "functions.mcl:2:"),
        ("func f($x) {\n\t$x +\n}\n", "functions.mcl:"),
        ("func f($x) {\n\t$x\n}\nnoop \"a\" {}\n", "functions.mcl:4:"),
    ] {
        let screen = screen(functions, "x = 1\n");
        assert!(screen.contains(expected), "{screen}");
        let checked = place(functions, "x = 1\n").run(BINARY, &["check", "."]);
        assert_eq!(checked.code, 1, "{}", checked.stderr);
        assert!(checked.stderr.contains(expected), "{}", checked.stderr);
    }
}

#[test]
fn a_function_that_asks_the_machine_is_refused_when_it_is_called() {
    let functions = "import \"os\"\n\nfunc motd() {\n\tos.readfile(\"/etc/hostname\")\n}\n";
    let screen = screen(functions, "x = net::motd()\n");
    assert!(screen.contains("main.cf:2:"), "{screen}");
    assert!(screen.contains("must follow from its arguments"), "{screen}");
}

#[test]
fn a_run_follows_the_file() {
    let main = "import setpoint\nsetpoint::File(name=\"motd\", path=\"PLACE/motd\", content=net::text(1), state=\"exists\")\n";
    let place = place("func text($x) {\n\t\"one\"\n}\n", "");
    let directory = place.directory().display().to_string();
    place.write(
        "main.cf",
        format!("import net\n{}", main.replace("PLACE", &directory)),
    );
    let mut engine = Engine::start(&place, &["main.cf"]);
    let repaired =
        |event: &Json| event["name"] == "motd" && event["event"] == "run ended" && event["result"] == "drift";
    engine.event("the file", repaired);
    assert_eq!(text(&place.path("motd")), "one");
    place.write("libs/net/functions.mcl", "func text($x) {\n\t\"two\"\n}\n");
    engine.event("the file again", repaired);
    assert_eq!(text(&place.path("motd")), "two");
}
