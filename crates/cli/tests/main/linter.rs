//! `setpoint check` as a linter: what it prints, what `--fix` changes, and exit codes.

use setpoint_mcl::lint::{RULES, Rule};
use setpoint_testing::{Finished, Hermetic, repository};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

fn setpoint(place: &Hermetic, arguments: &[&str]) -> Finished {
    place.run(BINARY, arguments)
}

/// A program with something to mend in both of its files, in a layout of its own.
fn program(place: &Hermetic) {
    place.write(
        "app/main.mcl",
        "import   \"fmt\"\nimport \"part.mcl\" as part # who makes the parts\nimport \"os\"\n\nif os.is_family_debian() == true {\n  noop   \"a\" {}\n}\ninclude part.main\n",
    );
    place.write(
        "app/part.mcl",
        "import \"os\"\n\nclass main() {\n\tnoop \"b\" {\n\t\tMeta:noop => os.is_family_debian() != false,\n\t}\n}\n",
    );
}

#[test]
fn warnings_are_shown_and_change_nothing_but_the_exit_code_that_was_asked_for() {
    let place = Hermetic::new();
    program(&place);
    let finished = setpoint(&place, &["check", "--skip-fmt", "app/"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    for said in [
        "warning[W0102]",
        "app/main.mcl:1:1",
        "warning[W0111]",
        "app/part.mcl:5:16",
    ] {
        assert!(finished.stderr.contains(said), "{said}:\n{}", finished.stderr);
    }
    let denied = setpoint(&place, &["check", "--skip-fmt", "--deny", "warnings", "app/"]);
    assert_eq!(denied.code, 1);
    assert!(!denied.stderr.contains("checked"), "{}", denied.stderr);
    let silent = setpoint(
        &place,
        &["check", "--skip-fmt", "--skip-lint", "--deny", "warnings", "app/"],
    );
    assert_eq!(silent.code, 0, "{}", silent.stderr);
    let json = setpoint(&place, &["check", "--skip-fmt", "--json", "app/"]);
    let object: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    let codes: Vec<&str> = object["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row| row["code"].as_str())
        .collect();
    assert_eq!(codes, ["W0102", "W0111", "W0111"]);
    // What only runs the program says nothing of it.
    let graph = setpoint(&place, &["graph", "app/"]);
    assert!(!graph.stderr.contains("W0102"), "{}", graph.stderr);
}

#[test]
fn fixes_are_made_until_there_are_none_and_leave_the_rest_as_it_was() {
    let place = Hermetic::new();
    program(&place);
    let finished = setpoint(
        &place,
        &["check", "--fix", "--skip-fmt", "--deny", "warnings", "app/"],
    );
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    for said in [
        "app/main.mcl: 2 changes\n",
        "app/part.mcl: 1 change\n",
        "checked 2 files",
    ] {
        assert!(finished.stderr.contains(said), "{said}:\n{}", finished.stderr);
    }
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    assert_eq!(
        read("app/main.mcl"),
        "import \"part.mcl\" as part # who makes the parts\nimport \"os\"\n\nif os.is_family_debian() {\n  noop   \"a\" {}\n}\ninclude part.main\n"
    );
    // A file that was formatted is still.
    assert_eq!(
        read("app/part.mcl"),
        "import \"os\"\n\nclass main() {\n\tnoop \"b\" {\n\t\tMeta:noop => os.is_family_debian(),\n\t}\n}\n"
    );
    let again = setpoint(&place, &["check", "--fix", "--skip-fmt", "app/"]);
    assert!(!again.stderr.contains("change"), "{}", again.stderr);
    assert_eq!(setpoint(&place, &["check", "--fix", "noop \"a\" {}"]).code, 64);
}

#[test]
fn modules_from_elsewhere_are_not_judged() {
    let place = Hermetic::new();
    place.write(
        "app/main.mcl",
        "import \"git://h/web/\" as web\n\ninclude web.main\n",
    );
    place.write("modules/h/web/metadata.yaml", "");
    let theirs = place.write(
        "modules/h/web/main.mcl",
        "class main() {\n\timport \"fmt\"\n\tnoop \"a\" {}\n}\n",
    );
    let before = std::fs::read(&theirs).unwrap();
    let check = [
        "check",
        "--fix",
        "--skip-fmt",
        "--deny",
        "warnings",
        "--module-path",
        "modules/",
        "app/",
    ];
    let finished = setpoint(&place, &check);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_eq!(std::fs::read(&theirs).unwrap(), before);
}

/// The table of the guide.
#[test]
fn the_book_lists_all_rules() {
    let path = repository().join("docs/guide/linter.md");
    let book = std::fs::read_to_string(path).expect("the guide is part of the book");
    let table = |rules: &[Rule]| -> String {
        let row = |rule: &Rule| {
            let (name, code, summary) = (rule.name, rule.code.code, rule.code.summary);
            format!("| `{name}` | [{code}](../errors/{code}.md) | {summary} |\n")
        };
        rules.iter().map(row).collect()
    };
    let own = table(RULES);
    assert!(book.ends_with(&own), "the page should end with\n{own}");
    let models = format!("|---|---|---|\n{}\n", table(setpoint_cf::lint::RULES));
    assert!(book.contains(&models), "the page should have\n{models}");
}

#[test]
fn models_are_linted_and_mended_as_programs_are() {
    let place = Hermetic::new();
    place.write("net/project.yml", "name: net\nmodulepath: libs\n");
    let main = "import std\nimport web\n\nentity Host:\n    string name\nend\n\nindex Host(name)\nimplement Host using none\nhost = Host(\"a\")\na-b = host.name\nweb = web::Server(\"b\")\n";
    place.write("net/main.cf", main);
    place.write(
        "net/libs/web/module.yml",
        "name: web\nversion: 1.0.0\nlicense: MIT\n",
    );
    let module = "entity Server:\n    string name\nend\n\nindex Server(name)\nimplement Server using std::none\nown = Server(\"c\")\n";
    place.write("net/libs/web/model/_init.cf", module);
    let finished = setpoint(&place, &["check", "--json", "net/"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let codes = |text: &str| -> Vec<String> {
        let object: serde_json::Value = serde_json::from_str(text).unwrap();
        let rows = object["diagnostics"].as_array().unwrap().iter();
        rows.filter_map(|row| Some(row["code"].as_str()?.to_owned()))
            .collect()
    };
    // The module's older layout is told at its import.
    let wanted = ["W0515", "W0603", "W0512", "W0511", "W0512", "W0512"];
    assert_eq!(codes(&finished.stdout), wanted);
    let denied = setpoint(&place, &["check", "--deny", "warnings", "net/"]);
    assert_eq!(denied.code, 1);
    assert!(
        denied.stderr.contains("net/libs/web/model/_init.cf:7:14"),
        "{}",
        denied.stderr
    );
    let silent = setpoint(&place, &["check", "--json", "--skip-lint", "net/"]);
    assert_eq!(codes(&silent.stdout), ["W0603"]);
    let fixed = setpoint(&place, &["check", "--fix", "--json", "net/"]);
    assert_eq!(codes(&fixed.stdout), ["W0603", "W0511"], "{}", fixed.stderr);
    assert!(
        fixed.stderr.contains("net/main.cf: 3 changes"),
        "{}",
        fixed.stderr
    );
    let main = std::fs::read_to_string(place.directory().join("net/main.cf")).unwrap();
    assert!(
        main.starts_with("import web\n") && main.contains("Host(name=\"a\")"),
        "{main}"
    );
    let module = std::fs::read_to_string(place.directory().join("net/libs/web/model/_init.cf")).unwrap();
    assert!(module.ends_with("own = Server(name=\"c\")\n"), "{module}");
    // What is not formatted is a warning, and comments allow what is meant.
    place.write(
        "net/main.cf",
        main.replace(
            "a-b = host.name",
            "a-b   = host.name # setpoint: allow(hyphen-in-name)",
        ),
    );
    let left = setpoint(&place, &["check", "--json", "net/"]);
    assert_eq!(codes(&left.stdout), ["W0603", "W0010"], "{}", left.stderr);
}

#[test]
fn a_doubt_about_a_resource_is_reported_once_and_a_comment_allows_it() {
    let place = Hermetic::new();
    let doubtful = |comment: &str| format!("exec \"piped\" {{{comment}\n\tcmd => \"echo a | tr a b\",\n}}\n");
    for (comment, reports) in [("", 1), (" # setpoint: allow(doubtful-resource)", 0)] {
        place.write("main.mcl", doubtful(comment));
        let checked = place.run(BINARY, &["check", "main.mcl"]);
        assert_eq!(checked.code, 0, "{}", checked.stderr);
        assert_eq!(
            checked.stderr.matches("W0411").count(),
            reports,
            "{}",
            checked.stderr
        );
    }
}
