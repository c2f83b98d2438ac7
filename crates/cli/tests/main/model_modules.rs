//! Modules of models: where they are found, and what their Python imports of each other and of `inmanta`.

mod published;

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::{Value as Json, json};
use setpoint_testing::Hermetic;

use crate::plugins::with_environment;

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// A project in a directory that only we can change, as root runs Python from no other.
fn project(main: &str) -> Hermetic {
    let place = Hermetic::new();
    place.write("project.yml", "name: p\nmodulepath: libs\n");
    place.write("main.cf", main);
    place
}

/// Adds a module under development: in `libs`, with a model and Python.
fn add_module(place: &Hermetic, name: &str, model: &str, python: &str) {
    add_package(place, &format!("libs/{name}"), name, model);
    place.write(&format!("libs/{name}/inmanta_plugins/{name}/__init__.py"), python);
}

fn add_package(place: &Hermetic, directory: &str, name: &str, model: &str) {
    let configuration = format!("[metadata]\nname = inmanta-module-{name}\nversion = 1.0.0\nlicense = MIT\n");
    place.write(&format!("{directory}/setup.cfg"), configuration);
    place.write(&format!("{directory}/model/_init.cf"), model);
}

/// The output of a model, which must be right.
fn printed(place: &Hermetic) -> String {
    let finished = place.run(BINARY, &["cf", "compile", "--json"]);
    let object: Json = serde_json::from_str(&finished.stdout).expect("it is one object");
    assert_eq!(object["outcome"], "ok", "{object:#}");
    object["stdout"].as_str().expect("it is a text").to_owned()
}

#[test]
fn python_imports_modules_that_the_model_does_not() {
    let place = project("import web\nstd::print(web::shout(\"a\"))\nstd::print(web::part())\n");
    let web = "from inmanta.plugins import plugin\nfrom inmanta_plugins.words import upper\nimport inmanta_plugins.older\n\
        import inmanta_plugins.words.endings\n\n@plugin\ndef shout(text: str) -> str:\n    return upper(text) + \
        inmanta_plugins.words.endings.END\n\n@plugin\ndef part() -> str:\n    return inmanta_plugins.older.NAME\n";
    add_module(&place, "web", "", web);
    add_module(&place, "words", "", "def upper(text):\n    return text.upper()\n");
    place.write("libs/words/inmanta_plugins/words/endings.py", "END = \"!\"\n");
    place.write("libs/older/plugins/__init__.py", "NAME = \"older\"\n");
    assert_eq!(printed(&place), "A!\nolder\n");
}

#[test]
fn python_reads_files_of_modules_through_that_of_std() {
    let place = project(
        "import web\nstd::print(web::of(\"web/a\"))\nstd::print(web::of(\"/b\"))\nstd::print(web::of(\"./a\"))\n",
    );
    let web = "from inmanta.plugins import plugin, Context\nfrom inmanta_plugins.std import get_file_content\nimport \
        inmanta_plugins.std\n\n@plugin\ndef of(ctx: Context, path: str) -> str:\n    return get_file_content(ctx, \"files\", \
        path)\n\n@plugin\ndef same(value: object) -> object:\n    return inmanta_plugins.std.JinjaDynamicProxy.return_value(value)\n";
    add_module(&place, "web", "", web);
    place.write("libs/web/files/a", "of web");
    place.write("files/b", "of the project");
    assert_eq!(printed(&place), "of web\nof the project\nof web\n");
    for (path, expected) in [
        ("web/none", "there is no file"),
        (
            "nowhere/a",
            "is in module `nowhere`, which the model does not import",
        ),
        ("a", "`a` does not say which module it is in"),
    ] {
        place.write("main.cf", format!("import web\nx = web::of(\"{path}\")\n"));
        let finished = place.run(BINARY, &["cf", "compile"]);
        assert_eq!(finished.code, 1);
        assert!(finished.stderr.contains(expected), "{}", finished.stderr);
    }
}

/// What `inmanta.util.dict_path` answers for paths into one container.
#[test]
fn dict_paths_lead_into_dicts_and_lists() {
    let python = r#"
from inmanta.plugins import plugin
from inmanta.util import dict_path

DATA = {"a": {"b": [{"n": "x", "v": 3}, {"n": None, "v": 4}]}, "k.l": 1, "l": [{"n": "x", "m": "y"}]}

def attempt(action):
    try:
        return action()
    except (KeyError, dict_path.ContainerStructureException, dict_path.InvalidPathException) as error:
        return type(error).__name__

@plugin
def get(path: str) -> object:
    return attempt(lambda: dict_path.to_path(path).get_element(DATA))

@plugin
def all(path: str) -> list:
    return attempt(lambda: [str(found) for found in dict_path.to_wild_path(path).resolve_wild_cards(DATA)])

@plugin
def written(path: str, value: dict) -> dict:
    made = {}
    dict_path.to_path(path).set_element(made, dict(value))
    return made

@plugin
def removed(path: str) -> dict:
    rest = {"a": {"b": [{"n": "x"}, {"n": "y"}], "c": 1}}
    dict_path.to_path(path).remove(rest)
    return rest

@plugin
def text(path: str) -> str:
    return str(dict_path.to_wild_path(path))
"#;
    let main = "import web\nstd::print(web::get(PATH))\n";
    let place = project(main);
    add_module(&place, "web", "", python);
    let calls = [
        ("get(\"a.b[n=x].v\")", json!(3)),
        ("get(r\"a.b[n=\\0].v\")", json!(4)),
        ("get(r\"k\\.l\")", json!(1)),
        ("get(\"l[n=x][m=y].m\")", json!("y")),
        ("get(\".a.b[v=3].n\")", json!("x")),
        ("get(\"none\")", json!("KeyError")),
        ("get(\"a.b[n=z]\")", json!("KeyError")),
        ("get(\"a.b.c\")", json!("ContainerStructureException")),
        ("get(\"a[n=x]\")", json!("ContainerStructureException")),
        ("get(\"*\")", json!("InvalidPathException")),
        ("get(\"a[n\")", json!("InvalidPathException")),
        ("get(\"\")", json!("InvalidPathException")),
        ("all(\"*\")", json!(["a", "k\\.l", "l"])),
        ("all(\"a.b[n=*].v\")", json!(["a.b[n=x].v", "a.b[n=\\0].v"])),
        ("all(\"a.b[*]\")", json!(["a.b[*]", "a.b[*]"])),
        (
            "written(\"a.b[n=x].c\", {\"d\": 1})",
            json!({"a": {"b": [{"n": "x", "c": {"d": 1}}]}}),
        ),
        (
            "written(\"b[n=x]\", {\"d\": 1})",
            json!({"b": [{"n": "x", "d": 1}]}),
        ),
        ("removed(\"a.b[n=x]\")", json!({"a": {"b": [{"n": "y"}], "c": 1}})),
        ("removed(\"a.c\")", json!({"a": {"b": [{"n": "x"}, {"n": "y"}]}})),
        (
            "removed(\"z.c\")",
            json!({"a": {"b": [{"n": "x"}, {"n": "y"}], "c": 1}}),
        ),
        ("text(\".a.b[c=d].*\")", json!("a.b[c=d].*")),
        ("text(\".\")", json!(".")),
    ];
    let prints = calls
        .iter()
        .map(|(call, _)| format!("std::print(std::json_dumps(web::{call}))\n"));
    place.write("main.cf", format!("import web\n{}", prints.collect::<String>()));
    let printed = printed(&place);
    for ((call, expected), line) in calls.iter().zip(printed.lines()) {
        let found: Json = serde_json::from_str(line).expect("it is JSON");
        assert_eq!(found, *expected, "{call}");
    }
    assert_eq!(printed.lines().count(), calls.len());
}

#[test]
fn dataclasses_that_python_answers_are_instances() {
    let model = "entity Point extends std::Dataclass:\n    int x\n    int y = 7\n    string? label = null\nend\n\
        implement Point using std::none\n";
    let python = "import dataclasses\nfrom inmanta.plugins import plugin\n\n@dataclasses.dataclass(frozen=True)\nclass Point:\n    \
        x: int\n    y: int\n    label: str | None = None\n\n@dataclasses.dataclass\nclass Short:\n    x: int\n\n\
        @dataclasses.dataclass\nclass Other:\n    x: int\n\n@plugin\ndef make(x: object, y: int) -> Point:\n    return Point(x, y)\n\n\
        @plugin\ndef many(count: int) -> list[Point]:\n    return [Point(n, n, str(n)) for n in range(count)]\n\n@plugin\ndef \
        total(point: Point) -> int:\n    return point.x + point.y\n\n@plugin\ndef other() -> object:\n    return Other(1)\n";
    let place = project(
        "import web\np = web::make(1, 2)\nstd::print(p.x)\nstd::print([one.label for one in web::many(3)])\n\
         std::print(web::total(p))\nstd::print(web::make(5, 6) == p)\n",
    );
    add_module(&place, "web", model, python);
    let printed = printed(&place);
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["1", "3", "@['0', '1', '2']", "False"]);
    // What Python makes of a secret is one.
    place.write("data/std/passwordfile.txt", "id=hunter8231\n");
    place.write(
        "secret.cf",
        "import web\np = web::make(std::password(\"id\"), 1)\nstd::print(p.x)\n",
    );
    let finished = place.run(BINARY, &["cf", "compile", "-f", "secret.cf"]);
    let said = finished.stdout + &finished.stderr;
    assert!(
        said.contains("could not set attribute `x`") && !said.contains("hunter"),
        "{said}"
    );
    for (call, expected) in [
        (
            "web::make(\"a\", 1)",
            "could not set attribute `x` on instance `web::Point",
        ),
        (
            "web::other()",
            "the model has no entity `web::Other` below `std::Dataclass`",
        ),
    ] {
        place.write("main.cf", format!("import web\np = {call}\n"));
        let finished = place.run(BINARY, &["cf", "compile"]);
        assert_eq!(finished.code, 1);
        assert!(finished.stderr.contains(expected), "{}", finished.stderr);
    }
    place.write(
        "libs/web/model/_init.cf",
        model.replace("    string? label = null\n", ""),
    );
    place.write("main.cf", "import web\np = web::make(1, 1)\n");
    let finished = place.run(BINARY, &["cf", "compile"]);
    let expected = "with a field `label`, which the entity `web::Point` does not have";
    assert!(finished.stderr.contains(expected), "{}", finished.stderr);
}

#[test]
fn a_name_that_python_has_for_something_else_is_free() {
    let model = "typedef direction as string matching self == \"up\"\nentity A:\n    direction way\nend\nimplement A using go\n\
        implementation go for A:\nend\n";
    let place = project("import web\na = web::A(way=\"up\")\n");
    add_module(
        &place,
        "web",
        model,
        "def go(direction):\n    return {\"direction\": direction}\n",
    );
    for arguments in [&["check", "."][..], &["cf", "compile"]] {
        let finished = place.run(BINARY, arguments);
        assert_eq!(finished.code, 0, "{}", finished.stderr);
    }
}

#[test]
fn python_that_cannot_be_imported_is_one_error() {
    let calls = "import web\na = web::one()\nb = web::two()\nc = web::three()\n";
    let place = project(calls);
    let python = "from inmanta.plugins import plugin\nimport no_such_package.inner\n\n@plugin\ndef one():\n    pass\n\n@plugin\ndef \
        two():\n    pass\n\n@plugin\ndef three():\n    pass\n";
    add_module(&place, "web", "", python);
    let finished = place.run(BINARY, &["cf", "compile"]);
    assert_eq!(finished.code, 1);
    assert_eq!(
        finished.stderr.matches("error[").count(),
        1,
        "{}",
        finished.stderr
    );
    for expected in [
        "libs/web/inmanta_plugins/web/__init__.py:2: ModuleNotFoundError: No module named 'no_such_package'",
        "2 more names are not found for the same reason",
        "install the package of `no_such_package` for the `python3` that is first in PATH",
    ] {
        assert!(finished.stderr.contains(expected), "{}", finished.stderr);
    }
}

#[test]
fn missing_modules_are_told_in_the_order_of_their_imports() {
    let place = project("import zebra\nimport apple\nimport net\nentity A:\n    net::mac_addr mac\nend\n");
    let finished = place.run(BINARY, &["check", "."]);
    assert_eq!(finished.code, 1);
    let at = |text: &str| {
        finished
            .stderr
            .find(text)
            .unwrap_or_else(|| panic!("no {text} in {}", finished.stderr))
    };
    assert!(at("module `zebra` cannot be loaded") < at("module `apple` cannot be loaded"));
    at("if `pip` installed `inmanta-module-zebra`, put the `python3` of its environment first in PATH");
    place.write("main.cf", "import net\nentity A:\n    net::mac_addr mac\nend\n");
    let finished = place.run(BINARY, &["check", "."]);
    let expected = "`net` is the module of functions here: the project has no module of this name";
    assert!(finished.stderr.contains(expected), "{}", finished.stderr);
}

/// An environment as `python3 -m venv` makes it, as far as it matters.
fn environment(place: &Hermetic) -> PathBuf {
    let python = std::env::split_paths(&std::env::var_os("PATH").expect("there is a PATH"))
        .map(|directory| directory.join("python3"))
        .find(|python| python.is_file())
        .expect("the tests need python3");
    place.write(
        "env/lib/python3.99/site-packages/inmanta_plugins/other/setup.cfg",
        "",
    );
    std::fs::create_dir_all(place.path("env/bin")).expect("the place is writable");
    symlink(python, place.path("env/bin/python3")).expect("the place is writable");
    place.path("env")
}

#[test]
fn modules_that_pip_installed_are_found() {
    let place = project("import web\nstd::print(web::name())\n");
    let there = environment(&place);
    let web = "env/lib/python3.99/site-packages/inmanta_plugins/web";
    add_package(&place, web, "web", "");
    let python =
        "from inmanta.plugins import plugin\n\n@plugin\ndef name() -> str:\n    return \"installed\"\n";
    place.write(&format!("{web}/__init__.py"), python);
    let path = format!(
        "{}/bin:{}",
        there.display(),
        std::env::var("PATH").expect("there is a PATH")
    );
    let active = there.display().to_string();
    let without = with_environment(&place, &["cf", "compile"], &[]);
    assert_eq!(without.code, 1, "{}", without.stdout);
    for environment in [[("PATH", path.as_str())], [("VIRTUAL_ENV", active.as_str())]] {
        for arguments in [["cf", "compile"], ["check", "."], ["graph", "."]] {
            let finished = with_environment(&place, &arguments, &environment);
            assert_eq!(finished.code, 0, "{environment:?}: {}", finished.stderr);
        }
    }
    // A module of the project goes first.
    add_module(&place, "web", "", &python.replace("installed", "of the project"));
    let finished = with_environment(&place, &["cf", "compile"], &[("PATH", &path)]);
    assert!(finished.stdout.contains("of the project"), "{}", finished.stdout);
}
