//! The commands as a user calls them: what they print where, and their exit codes.

use setpoint_testing::{Finished, Hermetic};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

fn setpoint(place: &Hermetic, arguments: &[&str]) -> Finished {
    place.run(BINARY, arguments)
}

#[test]
fn a_graph_is_one_json_object_on_standard_output_and_nothing_else() {
    let place = Hermetic::new();
    place.write(
        "app/main.mcl",
        "test \"a\" {\n\tint64 => 42,\n\tBefore => Test[\"b\"],\n}\n\ntest \"b\" {}\n",
    );
    let finished = setpoint(&place, &["graph", "--format", "json", "app/"]);
    assert_eq!((finished.code, &*finished.stderr), (0, ""));
    let object: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    let a = serde_json::json!({
        "kind": "test", "name": "a", "params": {"int64": 42}, "meta": {},
        "span": {"file": "main.mcl", "line": 1, "col": 1}
    });
    assert_eq!(object["resources"][0], a);
    let edge = serde_json::json!({
        "from": {"kind": "test", "name": "a"}, "to": {"kind": "test", "name": "b"}, "notify": false, "send": []
    });
    assert_eq!(object["edges"], serde_json::json!([edge]));
    assert_eq!(object["diagnostics"], serde_json::json!([]));
}

#[test]
fn an_error_leaves_the_graph_empty_and_names_its_place() {
    let place = Hermetic::new();
    place.write("app/metadata.yaml", "main: sub/start.mcl\n");
    place.write("app/sub/start.mcl", "import \"x.mcl\"\n");
    place.write("app/sub/x.mcl", "$y = 1\n$z = (\n");
    let finished = setpoint(&place, &["graph", "--format=json", "app"]);
    assert_eq!(finished.code, 1);
    let object: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(
        (&object["resources"], &object["edges"]),
        (&serde_json::json!([]), &serde_json::json!([]))
    );
    let first = &object["diagnostics"][0];
    let place_of = |row: &serde_json::Value| (row["file"].clone(), row["line"].clone());
    assert_eq!(
        (&first["stage"], &first["severity"]),
        (&"scope".into(), &"error".into())
    );
    assert_eq!(place_of(first), ("sub/x.mcl".into(), 2.into()));
    assert_eq!(place_of(&first["related"][0]), ("sub/start.mcl".into(), 1.into()));
    // People see the path that they can open.
    let finished = setpoint(&place, &["graph", "app"]);
    assert_eq!((finished.code, &*finished.stdout), (1, ""));
    assert!(
        finished.stderr.contains("--> app/sub/x.mcl:2:"),
        "{}",
        finished.stderr
    );
}

#[test]
fn every_form_of_input_reaches_the_program() {
    let place = Hermetic::new();
    place.write("m/metadata.yaml", "");
    place.write("m/main.mcl", "test \"m\" {}\n");
    place.write("one.mcl", "test \"one\" {}\n");
    for (argument, name) in [
        ("m/metadata.yaml", "m"),
        ("m/", "m"),
        ("m", "m"),
        ("one.mcl", "one"),
        ("test \"code\" {}", "code"),
    ] {
        let finished = setpoint(&place, &["graph", argument]);
        assert_eq!(finished.code, 0, "{argument}: {}", finished.stderr);
        assert!(
            finished.stdout.starts_with(&format!("test \"{name}\"")),
            "{}",
            finished.stdout
        );
    }
    let mut command = place.command(BINARY);
    command
        .args(["graph", "-"])
        .stdin(std::fs::File::open(place.path("one.mcl")).unwrap());
    assert!(String::from_utf8_lossy(&command.output().unwrap().stdout).starts_with("test \"one\""));
    for wrong in ["", "metadata.yaml", "no/such/path", "none.mcl", "none/"] {
        let finished = setpoint(&place, &["graph", "--format", "json", wrong]);
        let object: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
        assert_eq!(
            (finished.code, &object["diagnostics"][0]["code"]),
            (1, &"E0117".into()),
            "{wrong}"
        );
    }
}

#[test]
fn a_source_without_a_first_value_is_an_error_at_its_call() {
    let place = Hermetic::new();
    place.write("p.mcl", "import \"test\"\n\ntest [test.slow_string()] {}\n");
    let finished = setpoint(
        &place,
        &["graph", "--format", "json", "--timeout", "0.2", "p.mcl"],
    );
    let object: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    let row = &object["diagnostics"][0];
    assert_eq!(
        (finished.code, &row["code"], &row["stage"]),
        (1, &"E0304".into(), &"eval".into())
    );
    assert_eq!((&row["line"], &row["col"]), (&3.into(), &7.into()));
}

#[test]
fn check_warns_of_layout_and_fails_only_for_errors() {
    let place = Hermetic::new();
    place.write("p.mcl", "$x=1\n");
    let finished = setpoint(&place, &["check", "--json", "p.mcl"]);
    let object: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(
        (finished.code, &object["diagnostics"][0]["stage"]),
        (0, &"format".into())
    );
    let finished = setpoint(&place, &["check", "lang", "--json", "--skip-fmt", "p.mcl"]);
    assert_eq!((finished.code, &*finished.stdout), (0, "{\"diagnostics\":[]}\n"));
    place.write("p.mcl", "test \"a\" { int64 => \"b\", }\n");
    assert_eq!(setpoint(&place, &["check", "--skip-fmt", "p.mcl"]).code, 1);
    assert_eq!(
        setpoint(&place, &["check", "--skip-fmt", "--skip-unify", "p.mcl"]).code,
        0
    );
}

#[test]
fn a_model_is_formatted_by_name_and_left_alone_where_it_does_not_parse() {
    let place = Hermetic::new();
    let main = place.write("d/main.cf", "x   =  1 # one\nif x==1 :\nstd::print( x )\nend\n");
    let broken = place.write("d/broken.cf", "if x = 1:\nend\n");
    // Without a `project.yml`, files of this name need not be models.
    assert_eq!(setpoint(&place, &["fmt", "--check", "d/"]).code, 1);
    assert_eq!(setpoint(&place, &["fmt", "--check", "d/main.cf"]).code, 1);
    assert_eq!(setpoint(&place, &["fmt", "d/main.cf"]).code, 0);
    assert_eq!(
        std::fs::read_to_string(&main).unwrap(),
        "x = 1  # one\nif x == 1:\n    std::print(x)\nend\n"
    );
    let finished = setpoint(&place, &["fmt", "d/broken.cf"]);
    assert_eq!(finished.code, 1);
    assert!(
        finished.stderr.contains("compared with `==`"),
        "{}",
        finished.stderr
    );
    assert_eq!(std::fs::read_to_string(&broken).unwrap(), "if x = 1:\nend\n");
}

#[test]
fn fmt_rewrites_in_place_keeps_the_mode_and_leaves_broken_files_alone() {
    use std::os::unix::fs::PermissionsExt;
    let place = Hermetic::new();
    let good = place.write("d/good.mcl", "$x=42 # c\n");
    place.write("d/deeper/fine.mcl", "$x = 42\n");
    let broken = place.write("d/broken.mcl", "$x=\n");
    place.write("d/not.txt", "$x=42");
    std::fs::set_permissions(&good, std::fs::Permissions::from_mode(0o640)).unwrap();
    let finished = setpoint(&place, &["fmt", "--check", "d/good.mcl", "d/deeper/"]);
    assert_eq!(
        (finished.code, &*finished.stdout),
        (1, "d/good.mcl is not formatted\n")
    );
    assert_eq!(std::fs::read_to_string(&good).unwrap(), "$x=42 # c\n");
    let finished = setpoint(&place, &["fmt", "d/"]);
    assert_eq!((finished.code, &*finished.stdout), (1, "d/good.mcl\n"));
    assert!(finished.stderr.contains("d/broken.mcl:1:"), "{}", finished.stderr);
    assert_eq!(std::fs::read_to_string(&good).unwrap(), "$x = 42 # c\n");
    assert_eq!(
        std::fs::metadata(&good).unwrap().permissions().mode() & 0o7777,
        0o640
    );
    assert_eq!(std::fs::read_to_string(&broken).unwrap(), "$x=\n");
    assert_eq!(setpoint(&place, &["fmt", "-t", "d/good.mcl"]).code, 0);
}

#[test]
fn wrong_usage_is_64_and_help_is_0() {
    let place = Hermetic::new();
    for arguments in [
        &["graph"][..],
        &["run"],
        &["deploy"],
        &["nonsense"],
        &["run", "--nonsense", "empty"],
        &["graph", "--nonsense", "x"],
        &["graph", "lang"],
    ] {
        let finished = setpoint(&place, arguments);
        assert_eq!((finished.code, &*finished.stdout), (64, ""), "{arguments:?}");
        assert!(!finished.stderr.is_empty());
    }
    for arguments in [
        &["--help"][..],
        &["graph", "--help"],
        &["--version"],
        &["--license"],
    ] {
        let finished = setpoint(&place, arguments);
        assert_eq!((finished.code, &*finished.stderr), (0, ""), "{arguments:?}");
        assert!(!finished.stdout.is_empty());
    }
}

#[test]
fn options_that_mean_nothing_here_are_told() {
    let place = Hermetic::new();
    let finished = setpoint(
        &place,
        &["check", "--unify-name", "x", "--skip-fmt", "test \"a\" {}\n"],
    );
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert!(
        finished.stderr.contains("`--unify-name` has no effect"),
        "{}",
        finished.stderr
    );
}

#[test]
fn explain_prints_pages_and_suggests_codes() {
    let place = Hermetic::new();
    assert!(
        setpoint(&place, &["explain", "e0101"])
            .stdout
            .starts_with("# E0101: ")
    );
    assert!(setpoint(&place, &["explain"]).stdout.contains("E0001  lex"));
    let finished = setpoint(&place, &["explain", "E1010"]);
    assert_eq!(finished.code, 1);
    assert!(finished.stderr.contains("did you mean"), "{}", finished.stderr);
}

#[test]
fn docs_and_completions_print() {
    let place = Hermetic::new();
    assert!(setpoint(&place, &["docs", "kinds"]).stdout.contains("print"));
    assert!(
        setpoint(&place, &["docs", "kinds", "test"])
            .stdout
            .contains("int64")
    );
    assert!(
        setpoint(&place, &["docs", "functions", "fmt.printf"])
            .stdout
            .contains("format str")
    );
    assert!(
        setpoint(&place, &["docs", "kinds", "--markdown"])
            .stdout
            .starts_with("# Kinds")
    );
    assert_eq!(setpoint(&place, &["docs", "kinds", "tset"]).code, 1);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(
            setpoint(&place, &["completions", shell])
                .stdout
                .contains("setpoint"),
            "{shell}"
        );
    }
}

#[test]
fn a_graph_reads_a_directory_that_only_a_run_copies() {
    let place = Hermetic::new();
    let text = r#"
        import "deploy"
        import "fmt"
        import "os"

        $directory = deploy.directory("/files/")
        file "/motd" { content => os.readfile($directory + "motd"), }
        file "/deep" { content => os.readfile($directory + "./etc//deep"), }
        test [fmt.printf("%t", os.file_exists($directory + "motd")), fmt.printf("%t", os.file_exists($directory + "other"))] {}
    "#;
    place.write("app/metadata.yaml", "");
    place.write("app/main.mcl", text);
    place.write("app/files/motd", "hello");
    place.write("app/files/etc/deep", "deeper");
    let graph = |expected: &[&str]| {
        let finished = setpoint(&place, &["graph", "--state-dir", "prefix", "app/"]);
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        for expected in expected {
            assert!(
                finished.stdout.contains(expected),
                "{expected}: {}",
                finished.stdout
            );
        }
    };
    graph(&["\"hello\"", "\"deeper\"", "test \"true\"", "test \"false\""]);
    assert!(!place.path("prefix").join("local").exists());
    // What an earlier run has left is not what the next one makes of it.
    place.write("prefix/local/vardir/directory/files/motd", "old");
    graph(&["\"hello\""]);
    // What the program did not come with is missing here as it would be there.
    place.write("app/main.mcl", text.replace("\"motd\")", "\"no such\")"));
    let finished = setpoint(&place, &["graph", "--state-dir", "prefix", "app/"]);
    assert_eq!(finished.code, 1, "{}", finished.stdout);
    assert!(finished.stderr.contains("no such"), "{}", finished.stderr);
}

#[test]
fn each_module_reads_its_own_files() {
    let place = Hermetic::new();
    let read = |name: &str| format!("import \"deploy\"\n$x = deploy.readfile(\"/files/{name}\")\n");
    place.write("app/metadata.yaml", "");
    place.write(
        "app/main.mcl",
        format!("{}import \"lib/\"\ntest [$x, $lib.x] {{}}\n", read("a")),
    );
    place.write("app/files/a", "ours");
    place.write("app/lib/metadata.yaml", "files: shipped/\n");
    place.write("app/lib/main.mcl", read("b").replace("/files/", "/shipped/"));
    place.write("app/lib/shipped/b", "theirs");
    let finished = setpoint(&place, &["graph", "app/"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert!(
        finished.stdout.contains("\"ours\"") && finished.stdout.contains("\"theirs\""),
        "{}",
        finished.stdout
    );
    // A single file comes without the files beside it.
    place.write("app/plain.mcl", format!("{}test [$x] {{}}\n", read("a")));
    let finished = setpoint(&place, &["graph", "app/plain.mcl"]);
    assert_eq!(finished.code, 1);
    assert!(finished.stderr.contains("metadata.yaml"), "{}", finished.stderr);
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let place = Hermetic::new();
    let mut command = place.command("/bin/sh");
    command.args(["-c", &format!("{BINARY} docs functions --markdown | head -n 1")]);
    let output = command.output().unwrap();
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn graph_looks_at_what_run_has_kept_and_keeps_nothing() {
    let place = Hermetic::new();
    place.write("keep.mcl", "value \"key\" {\n\tany => \"kept\",\n}\n");
    place.write(
        "look.mcl",
        "import \"local\"\nimport \"value\"\nprint \"look\" {\n\tmsg => value.get_str(\"key\")->value,\n}\n\
         print \"${dir}\" {}\n$dir = local.vardir(\"mine/\")\n",
    );
    let prefix = place.path("prefix");
    let prefix = prefix.to_str().unwrap();
    let finished = setpoint(&place, &["run", "--once", "--state-dir", prefix, "keep.mcl"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let finished = setpoint(&place, &["graph", "--state-dir", prefix, "look.mcl"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert!(finished.stdout.contains("kept"), "{}", finished.stdout);
    let directory = "$DIR/prefix/local/vardir/functions/mine/";
    assert!(finished.stdout.contains(directory), "{}", finished.stdout);
    assert!(!place.path("prefix/local/vardir").exists());
}

#[test]
fn a_pure_graph_asks_the_machine_for_nothing_and_says_what_it_lacks() {
    let place = Hermetic::new();
    let secret = place.write("secret", "hunter2").display().to_string();
    place.write(
        "main.mcl",
        format!(
            "import \"datetime\"\nimport \"fmt\"\nimport \"os\"\n\
             print \"read\" {{\n\tmsg => os.readfile(\"{secret}\"),\n\tMeta:noop => os.file_exists(\"{secret}\"),\n}}\n\
             print \"now\" {{\n\tmsg => fmt.printf(\"%d\", datetime.now()),\n}}\n\
             print \"on ${{hostname}}\" {{}}\n\
             if os.file_exists(\"{secret}\") {{\n\tprint \"there\" {{}}\n}}\n\
             print \"plain\" {{\n\tmsg => \"text\",\n}}\n"
        ),
    );
    let finished = setpoint(&place, &["graph", "--pure", "main.mcl"]);
    assert_eq!((finished.code, &*finished.stderr), (0, ""));
    let expected = "print \"now\"  # main.mcl:8:1\n    msg => (unknown str)\n\n\
                    print \"plain\"  # main.mcl:15:1\n    msg => \"text\"\n\n\
                    print \"read\"  # main.mcl:4:1\n    msg => (unknown str)\n\n\
                    unknown: `Meta:noop`, whose default is assumed  # main.mcl:6:2\n\
                    unknown: names, and so resources, of the kind `print`  # main.mcl:11:1\n\
                    unknown: what this block describes, if anything  # main.mcl:12:1\n";
    assert_eq!(finished.stdout, expected);
    let named = [
        "graph",
        "--pure",
        "--format",
        "json",
        "--hostname",
        "h.example",
        "main.mcl",
    ];
    let object: serde_json::Value = serde_json::from_str(&setpoint(&place, &named).stdout).unwrap();
    assert_eq!(object["resources"][1]["name"], "on h.example");
    assert_eq!(
        object["unknown"][1],
        serde_json::json!({
            "what": "what this block describes, if anything",
            "span": {"file": "main.mcl", "line": 12, "col": 1}
        })
    );
}

#[test]
fn the_same_mistake_a_hundred_times_is_shown_in_full_a_few_times() {
    let place = Hermetic::new();
    let files: String = (0..200)
        .map(|number| format!("file \"/{number}\" {{\n\tcontent => \"a\"\n}}\n"))
        .collect();
    place.write("commas.mcl", files);
    let names: String = (0..8)
        .map(|number| format!("$x{number} = $nope{number}\n"))
        .collect();
    place.write("names.mcl", names);
    for (command, file) in [("check", "commas.mcl"), ("graph", "commas.mcl")] {
        let stderr = setpoint(&place, &[command, file]).stderr;
        assert_eq!(stderr.matches("add the comma").count(), 5, "{stderr}");
        let rest = "\nerror[E0011]: 95 more like it: every item in the body of a resource ends in a comma \
                    (commas.mcl:17, 20, 23, 26, 29, 32, 35, 38, 41, 44, 47, 50 and 83 more)\n";
        assert!(stderr.contains(rest), "{stderr}");
    }
    // What is said differs, so all of it is said.
    let stderr = setpoint(&place, &["check", "--skip-fmt", "names.mcl"]).stderr;
    assert_eq!(stderr.matches("not defined\n").count(), 5, "{stderr}");
    let rest = "\nerror[E0101]: `$nope5` is not defined here (names.mcl:6)\n\
                error[E0101]: `$nope6` is not defined here (names.mcl:7)\n\
                error[E0101]: `$nope7` is not defined here (names.mcl:8)\n8 errors; ";
    assert!(stderr.contains(rest), "{stderr}");
    let json: serde_json::Value =
        serde_json::from_str(&setpoint(&place, &["check", "--json", "commas.mcl"]).stdout).unwrap();
    assert_eq!(json["diagnostics"].as_array().map(Vec::len), Some(100));
}

#[test]
fn an_empty_argument_is_no_program() {
    let place = Hermetic::new();
    for (command, code) in [("check", 1), ("graph", 1), ("run", 1), ("fmt", 64)] {
        let finished = setpoint(&place, &[command, ""]);
        assert_eq!(finished.code, code, "{command}: {}", finished.stderr);
        assert!(
            finished.stderr.contains("the argument is empty"),
            "{}",
            finished.stderr
        );
        assert!(!finished.stderr.contains("-->"), "{}", finished.stderr);
    }
}
