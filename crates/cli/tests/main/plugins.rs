//! Functions that modules of models have in Python, run by a real one.

use std::path::Path;

use serde_json::{Value as Json, json};
use setpoint_testing::{Finished, Hermetic};

use crate::end_to_end::{Engine, run, text};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// A project with a module of each layout, whose functions, templates and typedefs are used.
fn shop() -> Hermetic {
    let place = Hermetic::new();
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/main/plugins/project");
    copy(&project, &place.directory());
    let main = text(&place.path("main.cf"));
    place.write(
        "main.cf",
        main.replace("PLACE", &place.directory().display().to_string()),
    );
    place
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("directories can be made in an empty place");
    for entry in std::fs::read_dir(from).expect("the project is there").flatten() {
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => std::fs::write(&target, std::fs::read(entry.path()).expect("it is a file"))
                .expect("files can be written there"),
        }
    }
}

/// A project with one module `m` whose Python is this, and this as its main file.
fn module(python: &str, main: &str) -> Hermetic {
    let place = Hermetic::new();
    place.write("project.yml", "name: p\nmodulepath: libs\n");
    place.write("libs/m/module.yml", "name: m\nversion: 1.0\nlicense: MIT\n");
    place.write(
        "libs/m/model/_init.cf",
        "entity Host:\n    string name\n    int? cores = null\nend\nHost.peers [0:] -- Host\nHost.boss [0:1] -- Host\n\
         implement Host using std::none\n",
    );
    let imports = "from inmanta.plugins import plugin, Context, PluginException, deprecated\n";
    place.write("libs/m/plugins/__init__.py", format!("{imports}{python}"));
    place.write("main.cf", format!("import m\n{main}"));
    place
}

fn compiled(place: &Hermetic) -> Json {
    let finished = place.run(BINARY, &["cf", "compile", "--json"]);
    serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{}", finished.stderr))
}

/// The variables that a model has, as far as nothing is wrong.
fn variables(python: &str, main: &str) -> Json {
    let object = compiled(&module(python, main));
    assert_eq!(object["outcome"], "ok", "{object:#}");
    object["vars"].clone()
}

/// What a user reads of a model that is wrong.
fn screen(python: &str, main: &str) -> String {
    screen_with(python, main, &[])
}

fn screen_with(python: &str, main: &str, environment: &[(&str, &str)]) -> String {
    let place = module(python, main);
    let finished = with_environment(&place, &["cf", "compile"], environment);
    assert_eq!(finished.code, 1, "{}\n{}", finished.stdout, finished.stderr);
    finished.stderr
}

pub(crate) fn with_environment(
    place: &Hermetic,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Finished {
    let mut command = place.command(BINARY);
    command.args(arguments).envs(environment.iter().copied());
    let output = command.output().expect("the program can be started");
    Finished {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn assert_contains(screen: &str, expected: &[&str]) {
    for expected in expected {
        assert!(screen.contains(expected), "no {expected:?} in\n{screen}");
    }
}

#[test]
fn modules_of_both_layouts_run_their_python_in_calls_typedefs_and_templates() {
    let place = shop();
    let object = compiled(&place);
    assert_eq!(object["outcome"], "ok", "{object:#}");
    assert_eq!(object["stdout"], "blog: 3, shop: 4\n");
    let reads = object["reads"].as_array().expect("it has read something");
    for path in [
        "libs/web/plugins/names.py",
        "libs/ports/inmanta_plugins/ports/__init__.py",
    ] {
        assert!(reads.contains(&json!(format!("file:{path}"))), "{reads:?}");
    }
    let finished = place.run(BINARY, &["graph", ".", "--hostname", "host.example"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_contains(
        &finished.stdout,
        &["file \"shop\"", "file \"blog\"", "listen 443"],
    );
    let finished = run(&place, &["--once", "main.cf"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_eq!(
        text(&place.path("shop.conf")),
        "# shop\nlisten 443\nserver www.shop.example\nserver shop.example\n"
    );
    assert_eq!(
        text(&place.path("blog.conf")),
        "# blog\nlisten 80\nserver blog.example\n"
    );
    assert!(!place.path("libs/web/plugins/__pycache__").exists());
    place.write(
        "extra.cf",
        "import web\nx = web::Site(name=\"No Label\", protocol=\"http\", names=[])\n",
    );
    let finished = place.run(BINARY, &["cf", "compile", "-f", "extra.cf"]);
    assert_contains(&finished.stderr, &["does not match constraint of `web::label`"]);
}

#[test]
fn a_run_executes_the_model_again_when_its_python_changes() {
    let place = shop();
    let mut engine = Engine::start(&place, &["main.cf"]);
    engine.repaired("file", "shop");
    let python = text(&place.path("libs/ports/inmanta_plugins/ports/__init__.py"));
    place.write(
        "libs/ports/inmanta_plugins/ports/__init__.py",
        python.replace("443", "8443"),
    );
    let configuration = place.path("shop.conf");
    engine.repaired_until("file", "shop", || text(&configuration).contains("listen 8443"));
    engine.stop();
}

#[test]
fn values_cross_as_they_are() {
    let python = r#"
@plugin
def echo(value: "any") -> "any":
    return value

@plugin
def kind(value: "any") -> "string":
    return type(value).__mro__[-2].__name__

@plugin
def given(a: "int", b: "string" = "b", *more: "int", flag: "bool" = False, **others: "any") -> "any":
    return [a, b, list(more), flag, others]

@plugin
def nothing():
    pass
"#;
    let main = r#"
all = m::echo([1, 2.0, -0.5, true, null, "ä\"€\n", [], {"k": [{"n": null}], "a": 1}])
kinds = [m::kind("x"), m::kind(1), m::kind(1.0), m::kind([1]), m::kind({"a": 1})]
a = m::given(1)
b = m::given(1, "x", 2, 3, flag=true, z=1, y=[2])
c = m::given(flag=true, a=7)
d = m::given(**{"b": "c", "a": 2})
nothing = m::nothing()
h = m::Host(name="h")
same = m::echo(h) == h
"#;
    let vars = variables(python, main);
    assert_eq!(
        vars["all"],
        json!([1, 2.0, -0.5, true, null, "ä\"€\n", {"k": [{"n": null}], "a": 1}])
    );
    assert_eq!(vars["kinds"], json!(["str", "int", "float", "list", "dict"]));
    assert_eq!(vars["a"], json!([1, "b", [], false, {}]));
    assert_eq!(vars["b"], json!([1, "x", [2, 3], true, {"z": 1, "y": [2]}]));
    assert_eq!(vars["c"], json!([7, "b", [], true, {}]));
    assert_eq!(vars["d"], json!([2, "c", [], false, {}]));
    assert_eq!((&vars["nothing"], &vars["same"]), (&Json::Null, &json!(true)));
}

#[test]
fn instances_are_read_when_they_have_values() {
    let python = r#"
@plugin
def peers(host: "m::Host") -> "string":
    names = ",".join(sorted(peer.name for peer in host.peers))
    return "%s %s %s %r" % (host.name, names, host._type(), getattr(host, "nothing", None))

@plugin
def boss(host: "m::Host") -> "any":
    return host.boss

@plugin
def cores(host: "m::Host") -> "int":
    print("counted", host.name)
    return host.cores + 1
"#;
    // `a.peers` is complete only at the end, and `b.cores` is made from what the call gives for `a`.
    let main = r#"
text = m::peers(a)
a = m::Host(name="a", cores=m::cores(b))
b = m::Host(name="b", cores=3)
a.peers += b
a.peers += m::Host(name="c", boss=a)
"#;
    let object = compiled(&module(python, main));
    assert_eq!(object["vars"]["text"], "a b,c m::Host None", "{object:#}");
    assert_eq!(object["stdout"], "counted b\n");
    let screen = screen(python, "y = m::boss(m::Host(name=\"lonely\"))\n");
    assert_contains(
        &screen,
        &[
            "E0622",
            "optional variable accessed that has no value: `boss` of `m::Host`",
        ],
    );
}

#[test]
fn what_is_not_known_makes_the_result_unknown_unless_the_function_allows_it() {
    let python = r#"
from inmanta.execute.util import Unknown

@plugin
def length(values: "list") -> "int":
    return len(values)

@plugin
def joined(values: "list") -> "string":
    return ",".join(values)

@plugin(allow_unknown=True)
def is_known(value: "any") -> "bool":
    return not isinstance(value, Unknown)

@plugin
def unknown() -> "string":
    return Unknown()
"#;
    let main = r#"
u = std::get_env("NOT_THERE")
length = m::length(["a", u])
joined = m::joined(["a", u])
whole = m::joined(u)
is_known = [m::is_known(u), m::is_known(1)]
made = m::unknown()
"#;
    let vars = variables(python, main);
    let unknown = json!({ "$unknown": true });
    assert_eq!(
        vars,
        json!({
            "u": unknown, "length": 2, "joined": unknown, "whole": unknown, "is_known": [false, true], "made": unknown,
        })
    );
}

/// Functions that raise an exception, refuse, and return a wrong type.
const PYTHON: &str = r#"
def deeper(protocol):
    return {"http": 80}[protocol]

@plugin
def port(protocol: "string") -> "int":
    try:
        return deeper(protocol)
    except KeyError as error:
        raise ValueError("no port for " + protocol) from error

@plugin
def told(text: "string") -> "int":
    raise PluginException(text)

@plugin
def wrong(value: "any") -> "int":
    return value
"#;

/// Nothing of how plug-ins are run is shown.
#[track_caller]
fn assert_nothing_internal(screen: &str) {
    for internal in ["setpoint_plugins", "worker", "Traceback", "<string>"] {
        assert!(!screen.contains(internal), "{screen}");
    }
}

#[test]
fn what_goes_wrong_is_told_at_the_call_and_in_the_python_file() {
    let raised = screen(PYTHON, "p = m::port(\"gopher\")\n");
    assert_contains(
        &raised,
        &[
            "E0622",
            "function `m::port` failed: ValueError: no port for gopher",
            "main.cf:2:5",
            "libs/m/plugins/__init__.py:11",
            "raised here",
            "because of KeyError: 'gopher'",
        ],
    );
    assert_nothing_internal(&raised);
    let class = compiled(&module(PYTHON, "p = m::told(\"x\")\n"));
    assert_eq!(class["errors"][0]["class"], "ExplicitPluginException");
}

#[test]
fn the_message_of_a_plugin_exception_is_shown_without_control_characters() {
    let told = screen(
        PYTHON,
        "p = m::told(\"use another one\\nsecond line\\x1b[31m\")\n",
    );
    assert_contains(
        &told,
        &["function `m::told` failed: use another one", "second line"],
    );
    assert!(!told.contains('\u{1b}'), "{told}");
    assert_nothing_internal(&told);
}

#[test]
fn a_result_of_the_wrong_type_is_shown_at_the_call_and_at_the_function() {
    let wrong = screen(PYTHON, "p = m::wrong(\"text\")\n");
    assert_contains(
        &wrong,
        &[
            "E0621",
            "result `'text'` of function `m::wrong` has incompatible type, expected `int`",
            "libs/m/plugins/__init__.py:18",
            "the function is here",
        ],
    );
    assert_nothing_internal(&wrong);
}

#[test]
fn an_argument_of_the_wrong_type_is_shown() {
    let argument = screen(PYTHON, "p = m::told(5)\n");
    assert_contains(
        &argument,
        &["value `5` for argument `text` of function `m::told` has incompatible type, expected `string`"],
    );
    assert_nothing_internal(&argument);
}

#[test]
fn a_missing_argument_is_shown() {
    let arity = screen(PYTHON, "p = m::port()\n");
    assert_contains(
        &arity,
        &[
            "E0620",
            "m::port() missing 1 required positional argument: 'protocol'",
        ],
    );
    assert_nothing_internal(&arity);
}

#[test]
fn a_function_that_is_not_there_is_missed_with_its_reason() {
    let python = "@plugin\ndef upper(text: \"string\") -> \"string\":\n    return text.upper()\n";
    let near = screen(python, "x = m::uper(\"a\")\n");
    assert_contains(
        &near,
        &[
            "E0532",
            "could not find type `uper` in namespace `m`",
            "did you mean `upper`?",
        ],
    );
    let broken = format!("import nothing_of_this_name\n{python}");
    let broken = screen(&broken, "x = m::upper(\"a\")\n");
    assert_contains(
        &broken,
        &[
            "E0532",
            "could not find function `upper` in namespace `m`: Python cannot import \
             libs/m/plugins/__init__.py:2: ModuleNotFoundError: No module named 'nothing_of_this_name'",
            "module `m` has functions in Python, of which some cannot be imported",
        ],
    );
    let syntax = screen("def upper(:\n", "x = m::upper(\"a\")\n");
    assert_contains(&syntax, &["libs/m/plugins/__init__.py:2: SyntaxError"]);
    let place = module(python, "x = m::upper(\"a\")\n");
    let off = with_environment(&place, &["cf", "compile", "--no-python"], &[]);
    let reason = "module `m` has functions in Python, which are turned off, so nothing provides `m::upper`";
    assert_contains(&off.stderr, &["E0532", reason]);
    let off = with_environment(&place, &["cf", "check"], &[("SETPOINT_NO_PYTHON", "1")]);
    assert_contains(&off.stderr, &[reason]);
    let missing = with_environment(&place, &["cf", "check"], &[("PATH", "/nowhere")]);
    assert_contains(
        &missing.stderr,
        &["which cannot be used: there is no `python3` in PATH"],
    );
}

#[test]
fn python_is_not_run_where_nothing_names_a_function_of_it() {
    let python = "open(\"was_here\", \"w\")\n@plugin\ndef upper(text: \"string\") -> \"string\":\n    return text.upper()\n";
    let place = module(python, "h = m::Host(name=\"upper\")\n");
    assert_eq!(compiled(&place)["outcome"], "ok");
    assert!(!place.path("was_here").exists());
    place.write("main.cf", "import m\nx = m::upper(\"a\")\n");
    let checked = place.run(BINARY, &["check", "main.cf"]);
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    assert!(!place.path("was_here").exists());
    assert_eq!(compiled(&place)["vars"]["x"], "A");
    assert!(place.path("was_here").exists());
    place.write("main.cf", "import m\nx = m::uper(\"a\")\n");
    let checked = place.run(BINARY, &["check", "main.cf"]);
    assert_contains(&checked.stderr, &["E0532", "did you mean `upper`?"]);
}

#[test]
fn plugins_that_do_their_worst_end_with_an_error_at_the_call() {
    for (body, expected) in [
        (
            "import os; os._exit(7)",
            "the Python process ended (exit status 7)",
        ),
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
            "the Python process ended (killed by SIGKILL)",
        ),
        (
            "import ctypes; ctypes.string_at(0)",
            "the Python process ended (killed by SIGSEGV)",
        ),
        ("import sys; sys.exit('enough')", "SystemExit: enough"),
        ("return f()", "RecursionError: maximum recursion depth exceeded"),
        ("return 'x' * (1 << 40)", "MemoryError"),
        (
            "return 'x' * (70 << 20)",
            "its result cannot be taken: it is longer than 64 MiB",
        ),
        (
            "a = []; a.append(a); return a",
            "its result nests deeper than 60 lists and dicts, or holds itself",
        ),
        (
            "return {1, 2}",
            "holds a value of Python's type `set`, which the model does not know",
        ),
        (
            "return {1: 2}",
            "holds a dict with a key of Python's type `int`: keys are texts",
        ),
        ("return 1 << 80", "holds a whole number beyond 64 bits"),
        ("return '\\ud800'", "holds a text that is not Unicode"),
        ("return object()", "holds a value of Python's type `object`"),
        (
            "import os\n    for fd in range(3, 50):\n        try: os.write(fd, b'garbage')\n        except OSError: pass",
            "the Python process answered",
        ),
        (
            "import os\n    for fd in range(3, 50):\n        try: os.close(fd)\n        except OSError: pass",
            "the Python process",
        ),
        (
            "class E(Exception):\n        def __str__(self): raise E()\n    raise E()",
            "E: (it has no text)",
        ),
        ("raise KeyboardInterrupt()", "KeyboardInterrupt"),
    ] {
        assert_fails(body, &[("SETPOINT_PYTHON_MEMORY", "1000")], expected);
    }
}

/// A function with this body fails for this reason, and that is told where it is called.
fn assert_fails(body: &str, environment: &[(&str, &str)], expected: &str) {
    let python = format!("@plugin\ndef f() -> \"any\":\n    {body}\n");
    let screen = screen_with(&python, "y = m::f()\n", environment);
    assert_contains(
        &screen,
        &["E0622", "function `m::f` failed: ", expected, "main.cf:2:5"],
    );
}

#[test]
fn plugins_that_never_end_are_stopped() {
    let expected = "did not end within 10 seconds and was stopped";
    let bodies = [
        "while True: pass",
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)",
        "while True: print('x' * 1000)",
    ];
    std::thread::scope(|scope| {
        for body in bodies {
            scope.spawn(move || assert_fails(body, &[("SETPOINT_PYTHON_TIMEOUT", "10")], expected));
        }
    });
}

#[test]
fn output_of_plugins_breaks_nothing_and_lines_are_printed_by_the_model() {
    let python = r#"
import os, subprocess, sys

@plugin
def noisy() -> "int":
    print("a line")
    print("no end", end="")
    os.write(1, b"\x00\x00\x00\x05{}{}{")
    sys.stderr.write("to standard error\n")
    subprocess.run(["echo", "of a program"])
    print(input() if False else "!", flush=True)
    return 1
"#;
    let object = compiled(&module(python, "x = m::noisy()\n"));
    assert_eq!(object["vars"]["x"], 1, "{object:#}");
    assert_eq!(object["stdout"], "a line\nno end!\n");
}

#[test]
fn a_plugin_gets_a_small_environment_and_leaves_no_process_behind() {
    let python = r#"
import os, subprocess

@plugin
def seen() -> "any":
    left = subprocess.Popen(["sleep", "1000"])
    descriptors = []
    for name in os.listdir("/proc/self/fd"):
        try:
            descriptors.append(os.readlink("/proc/self/fd/" + name).split(":")[0])
        except OSError:
            pass
    return {"environment": sorted(os.environ), "process": left.pid, "descriptors": sorted(descriptors)}
"#;
    let place = module(python, "x = m::seen()\n");
    let finished = with_environment(&place, &["cf", "compile", "--json"], &[("SECRET", "x")]);
    let object: Json = serde_json::from_str(&finished.stdout).expect("it is JSON");
    let seen = &object["vars"]["x"];
    assert_eq!(
        seen["environment"],
        json!(["HOME", "LANG", "PATH", "PYTHONHASHSEED", "TMPDIR", "TZ"])
    );
    assert_eq!(
        seen["descriptors"],
        json!(["/dev/null", "pipe", "pipe", "socket"])
    );
    let process = seen["process"].as_u64().expect("it is a number");
    // It was killed, but dies in its own time; what is nobody's child any more may stay as a zombie.
    let is_gone = || {
        let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        state.is_empty() || state.contains(") Z ")
    };
    let begin = std::time::Instant::now();
    while !is_gone() {
        assert!(begin.elapsed().as_secs() < 20, "the process {process} lives on");
        std::thread::yield_now();
    }
}

#[test]
fn signatures_follow_annotations() {
    let python = r#"
from typing import Any, Optional, Sequence, Union

@plugin
def hints(a: int, b: Optional[str], c: list[int], d: dict[str, object], e: Union[int, str], f: Sequence[str], g: Any) -> bool:
    return True

@plugin
def words(a: "int?", b: "string[]", c: "m::Host", d: "dict", e: "list", f: "expression", g: "std::ipv4_address") -> "bool":
    return True

@plugin
def bad(a: "no::Such") -> "bool":
    return True

@deprecated(replaced_by="m::words")
@plugin
def old() -> "int":
    return 1
"#;
    let vars = variables(
        python,
        "a = m::hints(1, null, [1], {\"x\": m::Host(name=\"h\")}, \"e\", [\"f\"], 1.5)\n\
         b = m::words(null, [\"b\"], m::Host(name=\"c\"), {}, [1], 1.5, \"10.0.0.1\")\n",
    );
    assert_eq!((&vars["a"], &vars["b"]), (&json!(true), &json!(true)));
    for (call, expected) in [
        (
            "m::hints(1.5, null, [1], {}, 1, [], 1)",
            "value `1.5` for argument `a` of function `m::hints` has incompatible type, expected `int`",
        ),
        ("m::hints(1, 1, [1], {}, 1, [], 1)", "for argument `b`"),
        ("m::hints(1, null, [\"x\"], {}, 1, [], 1)", "for argument `c`"),
        (
            "m::hints(1, null, [1], {}, 1.5, [], 1)",
            "expected `int | string`",
        ),
        (
            "m::words(1, \"b\", m::Host(name=\"c\"), {}, [1], 1, \"10.0.0.1\")",
            "expected `string[]`",
        ),
        (
            "m::words(1, [], null, {}, [1], 1, \"10.0.0.1\")",
            "expected `m::Host`",
        ),
        (
            "m::words(1, [], m::Host(name=\"c\"), {}, [1], 1, \"10.0\")",
            "expected `std::ipv4_address`",
        ),
        (
            "m::bad(1)",
            "the type of parameter `a` names `no::Such`, which is no type that there is here",
        ),
    ] {
        assert_contains(&screen(python, &format!("x = {call}\n")), &["E0621", expected]);
    }
    let object = compiled(&module(python, "x = m::old()\n"));
    assert_eq!(object["warnings"][1]["code"], "W0602", "{object:#}");
}

/// A plugin cannot make such a reference. The other functions of the file can be called.
#[test]
fn files_that_define_references_can_be_imported() {
    let python = r#"
from typing import Optional, TypeVar
from inmanta.references import Reference, reference

T = TypeVar("T")

@reference("m::Vault")
class Vault(Reference[str]):
    def __init__(self, path: str | Reference[str], other: Reference[int] | None, more: Optional[Reference[str]]) -> None:
        super().__init__()

class Nested(Vault):
    pass

class Generic(Reference[T]):
    pass

@plugin
def upper(text: str | Reference[str]) -> str:
    return text.upper()

@plugin
def vault() -> Reference[str]:
    return Vault("a", None, None)
"#;
    assert_eq!(variables(python, "x = m::upper(\"a\")\n")["x"], json!("A"));
    assert_contains(
        &screen(python, "x = m::vault()\n"),
        &["plugins cannot make references"],
    );
    assert_contains(
        &screen(python, "x = m::upper(1)\n"),
        &["value `1` for argument `text` of function `m::upper` has incompatible type"],
    );
}

/// The blocks of the page about this that have names are a project, and a block of text is what it prints.
#[test]
fn the_project_of_the_guide_prints_what_the_guide_says() {
    let page = setpoint_testing::repository().join("docs/guide/python-in-models.md");
    let page = text(&page);
    let place = Hermetic::new();
    let mut printed = None;
    for block in page.split("```").skip(1).step_by(2) {
        let (head, content) = block.split_once('\n').expect("a block has lines");
        match head.split_once(' ') {
            Some((_, path)) => drop(place.write(path, content)),
            None => printed = Some(content),
        }
    }
    let finished = place.run(BINARY, &["cf", "compile"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_eq!(Some(finished.stdout.as_str()), printed);
}
