//! What a person sees: the real binary's lines, on pipes, in the system's log and on a terminal.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};

use serde_json::Value as Json;
use setpoint_testing::{Finished, Hermetic};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

const COMMON: [&str; 5] = [
    "run",
    "--no-raise-limits",
    "--hostname",
    "host.example",
    "--prefix",
];

fn run(place: &Hermetic, arguments: &[&str]) -> Finished {
    let prefix = place.path("prefix").display().to_string();
    let all: Vec<&str> = COMMON
        .iter()
        .copied()
        .chain([&*prefix])
        .chain(arguments.iter().copied())
        .collect();
    place.run(BINARY, &all)
}

/// What `setpoint` writes to a terminal of 100 columns, with `script` in the place of a person's terminal.
fn on_terminal(place: &Hermetic, arguments: &[&str]) -> String {
    let prefix = place.path("prefix").display().to_string();
    let words = [BINARY]
        .into_iter()
        .chain(COMMON)
        .chain([&*prefix])
        .chain(arguments.iter().copied());
    let words: Vec<String> = words.map(|word| format!("'{word}'")).collect();
    let mut script = place.command("script");
    script.args(["--quiet", "--flush", "--echo", "never", "--command"]);
    script
        .arg(format!("stty cols 100; {}", words.join(" ")))
        .arg("/dev/null");
    script.env("TERM", "xterm-256color").env_remove("NO_COLOR");
    let output = script.stdin(Stdio::null()).output().expect("there is a `script`");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_run_that_ends_ends_with_a_recap() {
    let place = Hermetic::new();
    let file = place.path("file").display().to_string();
    let program = format!(
        "file \"{file}\" {{\n\tcontent => \"x\",\n}}\nexec \"no\" {{\n\tcmd => \"/bin/false\",\n}}\ntest \"right\" {{}}\n"
    );
    let finished = run(&place, &["--once", &program]);
    let last = finished.stderr.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("1 repaired, 1 failed, 1 right in "),
        "{}",
        finished.stderr
    );
    assert!(last.ends_with("; failed: exec[no]"), "{}", finished.stderr);
    let again = run(&place, &["--once", "--noop", &program.replace("\"x\"", "\"y\"")]);
    let last = again.stderr.lines().last().unwrap_or_default();
    assert!(last.contains("2 would be repaired, 1 right"), "{}", again.stderr);
    assert!(
        again.stderr.contains("exec[no]: would run /bin/false"),
        "{}",
        again.stderr
    );
    let quiet = run(&place, &["--once", "-q", "test \"right\" {}"]);
    assert_eq!((quiet.code, &*quiet.stderr), (0, ""));
}

#[test]
fn contents_that_differ_are_shown_as_a_difference_unless_they_are_secret() {
    let place = Hermetic::new();
    let file = place.path("file");
    let shown = file.display().to_string();
    std::fs::write(&file, "one\ntwo\nthree\n").unwrap();
    let program =
        |content: &str| format!("file \"{shown}\" {{\n\tcontent => {content},\n\tmode => \"0644\",\n}}\n");
    let changed = run(&place, &["--once", &program("\"one\\n2\\nthree\\n\"")]);
    assert!(
        changed.stderr.contains("\n    -two\n    +2\n"),
        "{}",
        changed.stderr
    );
    std::fs::write(&file, "one\ntwo\nthree\n").unwrap();
    let secret = run(
        &place,
        &["--once", "--json", &program("sensitive(\"one\\n2\\nthree\\n\")")],
    );
    assert!(secret.stdout.contains("(sensitive)"), "{}", secret.stdout);
    assert!(!secret.stdout.contains("two"), "{}", secret.stdout);
    let events = run(&place, &["--once", "--json", &program("\"x\\n\"")]);
    let drift = events
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Json>(line).unwrap());
    let drift = drift
        .into_iter()
        .find(|event| event["event"] == "drift")
        .expect("it differs");
    assert_eq!(drift["diff"], "@@ -1,3 +1 @@\n-one\n-2\n-three\n+x");
    // What is no text is told by size and hash.
    std::fs::write(&file, b"\0\x01").unwrap();
    let binary = run(&place, &["--once", &program("\"x\\n\"")]);
    assert!(binary.stderr.contains("2 bytes (sha256 "), "{}", binary.stderr);
}

#[test]
fn nothing_that_others_name_or_say_acts_on_the_terminal_or_forges_a_line() {
    let place = Hermetic::new();
    let evil = "a\\x1b[31m\\nerror: forged\\u{9b}1m";
    let name = place.path("evil").display().to_string();
    let program = format!(
        "file \"{name}{evil}\" {{\n\tcontent => \"x\",\n}}\nprint \"p\" {{\n\tmsg => \"one\\x1b[2J\\ntwo\",\n}}\n\
         exec \"e\" {{\n\tcmd => \"printf 'x\\\\033[31my\\\\nz'; exit 1\",\n\tshell => \"/bin/sh\",\n}}\n"
    );
    let program = place.write(
        "p.mcl",
        program.replace("\\x1b", "\u{1b}").replace("\\u{9b}", "\u{9b}"),
    );
    let finished = run(&place, &["--once", &program.display().to_string()]);
    let acts = |char: char| char.is_control() && char != '\n';
    assert!(!finished.stderr.contains(acts), "{:?}", finished.stderr);
    assert!(
        !finished
            .stderr
            .lines()
            .any(|line| line.starts_with("error: forged")),
        "{}",
        finished.stderr
    );
    assert!(
        finished.stderr.contains("a\\u{1b}[31m\\nerror: forged\\u{9b}1m"),
        "{}",
        finished.stderr
    );
    for line in ["print[p]: one\\u{1b}[2J", "print[p]: two", "exec[e]: z"] {
        assert!(
            finished.stderr.lines().any(|found| found == line),
            "{line}:\n{}",
            finished.stderr
        );
    }
}

#[test]
fn the_systems_log_is_told_what_matters_how_much() {
    let place = Hermetic::new();
    let log = place.write("log", "");
    let found = std::fs::metadata(&log).unwrap();
    let mut command = place.command(BINARY);
    command.args(COMMON).arg(place.path("prefix"));
    command.args([
        "--once",
        "exec \"no\" {\n\tcmd => \"/bin/false\",\n}\nprint \"p\" {\n\tmsg => \"hello\",\n}\n",
    ]);
    command.env("JOURNAL_STREAM", format!("{}:{}", found.dev(), found.ino()));
    let stderr = std::fs::OpenOptions::new().append(true).open(&log).unwrap();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    assert_eq!(command.status().unwrap().code(), Some(1));
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.lines().any(|line| line == "<5>print[p]: hello"), "{log}");
    assert!(
        log.lines()
            .any(|line| line.starts_with("<3>error: exec[no]: failed to ")),
        "{log}"
    );
}

#[test]
fn a_terminal_has_colours_and_a_bar_only_for_who_waits() {
    let place = Hermetic::new();
    let quick = on_terminal(&place, &["--once", "print \"p\" {\n\tmsg => \"hello\",\n}\n"]);
    assert!(quick.contains("\u{1b}[1mprint[p]\u{1b}[0m: hello"), "{quick:?}");
    assert!(!quick.contains(" of 1 resources"), "a bar flashes: {quick:?}");
    assert!(
        quick.contains("1 repaired in ") || quick.contains("1 right in "),
        "{quick:?}"
    );
    let release = place.path("release").display().to_string();
    let slow =
        format!("exec \"slow\" {{\n\tcmd => \"sleep 2; touch {release}\",\n\tshell => \"/bin/sh\",\n}}\n");
    let slow = on_terminal(&place, &["--once", &slow]);
    assert!(
        slow.contains("0 of 1 resources  waiting for exec[slow]"),
        "{slow:?}"
    );
}

#[test]
fn what_is_no_program_is_told_as_such() {
    let place = Hermetic::new();
    let told = |arguments: &[&str]| {
        let finished = place.run(BINARY, arguments);
        assert_ne!(finished.code, 0, "{arguments:?}");
        finished.stderr
    };
    let nope = told(&["run", "--once", "--tmp-prefix", "nope"]);
    assert!(
        nope.contains("there is no file or directory `nope`, and as code"),
        "{nope}"
    );
    place.write("nope.mcl", "");
    assert!(told(&["check", "nope"]).contains("did you mean `nope.mcl`?"));
    assert!(told(&["check", "main.cf"]).contains("`main.cf` cannot be read: No such file"));
    let plan = told(&["plan", "x.mcl"]);
    assert!(plan.contains("`setpoint plan` is not there yet"), "{plan}");
    assert!(plan.contains("--noop"), "{plan}");
}

#[test]
fn an_empty_program_is_warned_of() {
    let place = Hermetic::new();
    place.write("empty.mcl", "# nothing\n");
    place.write("class.mcl", "class unused {\n\tprint \"x\" {}\n}\n");
    for arguments in [
        &["graph", "empty.mcl"][..],
        &["check", "empty.mcl"],
        &["run", "--once", "--tmp-prefix", "class.mcl"],
        &["run", "--once", "--tmp-prefix", "empty.mcl"],
    ] {
        let finished = place.run(BINARY, arguments);
        assert_eq!(finished.code, 0);
        assert!(
            finished
                .stderr
                .contains("warning: the program describes no resources"),
            "{}",
            finished.stderr
        );
    }
    // Others may import it.
    let module = place.run(BINARY, &["check", "class.mcl"]);
    assert_eq!(module.code, 0, "{}", module.stderr);
    assert!(!module.stderr.contains("no resources"), "{}", module.stderr);
    let loops = "class used {\n\tfor $i, $x in [\"x\",] {\n\t\tif true {\n\t\t\tprint $x {}\n\t\t}\n\t}\n}\ninclude used\n";
    place.write("used.mcl", loops);
    let finished = place.run(BINARY, &["check", "used.mcl"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert!(!finished.stderr.contains("no resources"), "{}", finished.stderr);
}

#[test]
fn a_test_resource_shows_the_parameters_that_it_names() {
    let place = Hermetic::new();
    place.write(
        "main.mcl",
        "test \"t1\" {\n\tanotherstr => \"hello\",\n\tonlyshow => [\"AnotherStr\",],\n}\n",
    );
    let finished = place.run(BINARY, &["run", "--once", "--tmp-prefix", "main.mcl"]);
    assert_eq!(finished.code, 0);
    assert!(
        finished.stderr.contains("anotherstr: \"hello\""),
        "{}",
        finished.stderr
    );
    assert!(!finished.stderr.contains("sendvalue"), "{}", finished.stderr);
}

#[test]
fn what_the_system_says_is_told_without_its_number() {
    let place = Hermetic::new();
    place.write(
        "main.mcl",
        "import \"os\"\n\nprint \"a\" {\n\tmsg => os.readfile(\"/nope/x\"),\n}\n",
    );
    let finished = place.run(BINARY, &["run", "--once", "--tmp-prefix", "main.mcl"]);
    assert_eq!(finished.code, 1);
    assert!(
        finished.stderr.contains("`/nope/x`: No such file or directory\n"),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_graph_shows_the_edges_that_run_adds() {
    let place = Hermetic::new();
    let program =
        "file \"/tmp/d/\" {\n\tstate => \"exists\",\n}\nfile \"/tmp/d/f\" {\n\tcontent => \"x\",\n}\n";
    let shown = |format: &str, more: &[&str]| {
        let mut arguments = vec!["graph", "--format", format];
        arguments.extend(more);
        arguments.push(program);
        let finished = place.run(BINARY, &arguments);
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        finished.stdout
    };
    let json: Json = serde_json::from_str(&shown("json", &[])).unwrap();
    let edges = json["edges"].as_array().unwrap();
    assert_eq!(edges.len(), 1, "{json}");
    assert_eq!(
        (&edges[0]["auto"], &edges[0]["from"]["name"]),
        (&true.into(), &"/tmp/d/".into()),
        "{json}"
    );
    assert!(shown("dot", &[]).contains("\"file[/tmp/d/]\" -> \"file[/tmp/d/f]\" [style=dotted];"));
    assert!(shown("text", &[]).ends_with("file \"/tmp/d/\" -> file \"/tmp/d/f\"  (automatic)\n"));
    let without: Json = serde_json::from_str(&shown("json", &["--no-autoedges"])).unwrap();
    assert_eq!(without["edges"], Json::Array(Vec::new()));
}

#[test]
fn whoever_a_file_belongs_to_comes_before_it() {
    let place = Hermetic::new();
    let edges = |program: &str| {
        let finished = place.run(BINARY, &["graph", program]);
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        let edges = finished.stdout.lines().filter(|line| line.contains(" -> "));
        let mut edges: Vec<String> = edges.map(str::to_owned).collect();
        edges.sort();
        edges
    };
    let accounts = "user \"ada\" {\n\tstate => \"exists\",\n\tuid => 2000,\n}\ngroup \"team\" {\n\tstate => \"exists\",\n}\n";
    let program = format!(
        "{accounts}file \"/srv/f\" {{\n\tcontent => \"x\",\n\towner => \"ada\",\n\tgroup => \"team\",\n}}\nfile \"/srv/n\" {{\n\tcontent => \"x\",\n\towner => \"2000\",\n}}\n"
    );
    assert_eq!(
        edges(&program),
        [
            "group \"team\" -> file \"/srv/f\"  (automatic)",
            "user \"ada\" -> file \"/srv/f\"  (automatic)",
            "user \"ada\" -> file \"/srv/n\"  (automatic)",
        ]
    );
    // What shall not be there belongs to nobody, and an order that is written stays the only one.
    let absent = format!("{accounts}file \"/srv/f\" {{\n\tstate => \"absent\",\n\towner => \"ada\",\n}}\n");
    assert_eq!(edges(&absent), [""; 0]);
    let written = format!("{program}User[\"ada\"] -> File[\"/srv/f\"]\n");
    assert_eq!(edges(&written).len(), 3);
    // Whoever edits lines of a file comes after it, or after the user whose home it is in.
    let lines = format!(
        "{accounts}file \"/srv/f\" {{\n\tcontent => \"x\",\n}}\nline \"a\" {{\n\tfile => \"/srv/f\",\n\tstate => \"exists\",\n\tcontent => \"x\",\n}}\nblock \"b\" {{\n\tfile => \"~ada/.profile\",\n\tstate => \"exists\",\n\tcontent => \"x\",\n}}\n"
    );
    assert_eq!(
        edges(&lines),
        [
            "file \"/srv/f\" -> line \"a\"  (automatic)",
            "user \"ada\" -> block \"b\"  (automatic)",
        ]
    );
}

#[test]
fn graph_shows_on_demand_how_each_resource_comes_about() {
    let place = Hermetic::new();
    let program = "class web($port) {\n\tnoop \"${port}\" {}\n}\nforkv $k, $v in {\"a\" => \"80\",} {\n\tinclude web($v)\n}\n";
    let shown = place.run(BINARY, &["graph", "--chains", program]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let lines: Vec<&str> = shown.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", shown.stdout);
    assert!(
        lines[1].starts_with("    # in the class `web`, included here: "),
        "{}",
        lines[1]
    );
    assert!(
        lines[2].starts_with("    # for the key `\"a\"`: "),
        "{}",
        lines[2]
    );
    let without = place.run(BINARY, &["graph", program]);
    assert_eq!(without.stdout.lines().count(), 1, "{}", without.stdout);
}

#[test]
fn functions_are_found_by_part_of_their_names() {
    let place = Hermetic::new();
    let page = place.run(BINARY, &["docs", "functions", "printf"]);
    assert_eq!(page.code, 0, "{}", page.stderr);
    assert!(page.stdout.contains("import \"fmt\""), "{}", page.stdout);
    assert!(page.stdout.contains("fmt.printf("), "{}", page.stdout);
    let list = place.run(BINARY, &["docs", "functions", "readfile"]);
    assert!(
        list.stdout.contains("os.readfile(") && list.stdout.contains("str"),
        "{}",
        list.stdout
    );
    let module = place.run(BINARY, &["docs", "functions", "os"]);
    assert!(module.stdout.contains("os.readfile("), "{}", module.stdout);
    let nothing = place.run(BINARY, &["docs", "functions", "zzzz"]);
    assert_eq!(nothing.code, 1);
}

#[test]
fn whatever_has_a_name_is_found_by_part_of_it() {
    let place = Hermetic::new();
    let found = |name: &str| {
        let finished = place.run(BINARY, &["docs", name]);
        assert_eq!(finished.code, 0, "{name}: {}", finished.stderr);
        finished.stdout
    };
    // A whole name, in any case of letters, is one page.
    for (name, wanted) in [
        ("exec", "Parameters\n"),
        ("file.content", "Parameter of the kind file\n\n    content str"),
        ("Meta:retry", "Meta:retry int, default 0\n"),
        ("meta:NOOP", "Only say what would be done."),
        ("$const.res.file.state.exists", "\"exists\""),
        ("golang/strings", "import \"golang/strings\""),
        ("printf", "    fmt.printf("),
        ("unused-variable", "# W0101: "),
        ("e0101", "# E0101: "),
    ] {
        assert!(found(name).contains(wanted), "{name}:\n{}", found(name));
    }
    // Two things of one name are both shown.
    let noop = found("noop");
    assert!(noop.contains("Parameters") || noop.contains("noop\n"), "{noop}");
    assert!(noop.contains("Meta parameter of every kind"), "{noop}");
    // A part of names is a list, sorted by what they are of.
    let list = found("retry");
    assert!(list.contains("Meta:retry"), "{list}");
    let list = found("state");
    for wanted in [
        "Parameters\n",
        "    file.state ",
        "Constants\n",
        "$const.res.file.state.absent",
    ] {
        assert!(list.contains(wanted), "{wanted}:\n{list}");
    }
    let list = found("unused");
    for wanted in ["Rules of the linter\n", "    unused-import ", "(W0102)"] {
        assert!(list.contains(wanted), "{wanted}:\n{list}");
    }
    // A code is found by what it is about, too.
    let list = found("nothing uses");
    assert!(
        list.contains("Codes\n    W0101  a variable that nothing uses\n"),
        "{list}"
    );
    let nothing = place.run(BINARY, &["docs", "prnitf"]);
    assert_eq!(nothing.code, 1);
    assert!(
        nothing.stderr.contains("nothing is called `prnitf`"),
        "{}",
        nothing.stderr
    );
    assert!(nothing.stderr.contains("did you mean"), "{}", nothing.stderr);
}

#[test]
fn a_module_stays_in_its_directory_and_formatting_does_not_follow_links() {
    let place = Hermetic::new();
    place.write("secret", "root:secret\n");
    for (name, metadata) in [("main", "main: ../secret\n"), ("files", "files: ../\n")] {
        let module = place.write(&format!("{name}/metadata.yaml"), metadata);
        place.write(&format!("{name}/main.mcl"), "test \"a\" {}\n");
        let finished = place.run(BINARY, &["check", &module.display().to_string()]);
        assert_eq!(finished.code, 1, "{name}: {}", finished.stderr);
        assert!(
            finished
                .stderr
                .contains("must not lead out of the module's directory"),
            "{}",
            finished.stderr
        );
        assert!(!finished.stderr.contains("root:secret"), "{}", finished.stderr);
    }
    let main = place.write("linked/main.mcl", "import \"out.mcl\"\n");
    std::os::unix::fs::symlink(place.path("secret"), place.path("linked/out.mcl")).unwrap();
    let finished = place.run(BINARY, &["check", &main.display().to_string()]);
    assert_eq!(finished.code, 1);
    assert!(
        finished.stderr.contains("leads out of the program's directory"),
        "{}",
        finished.stderr
    );
    assert!(!finished.stderr.contains("root:secret"), "{}", finished.stderr);
    // Below a directory that is formatted, a link is somebody else's idea.
    let outside = place.write("outside/x.mcl", "test   \"a\"   {}\n");
    place.write("tree/y.mcl", "test   \"b\"   {}\n");
    std::os::unix::fs::symlink(&outside, place.path("tree/x.mcl")).unwrap();
    let finished = place.run(BINARY, &["fmt", &format!("{}/", place.path("tree").display())]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "test   \"a\"   {}\n");
    assert_eq!(
        std::fs::read_to_string(place.path("tree/y.mcl")).unwrap(),
        "test \"b\" {}\n"
    );
}

#[test]
fn root_is_told_whose_text_and_commands_it_obeys() {
    if !Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|id| id.stdout == b"0\n")
    {
        println!("left out: this needs root");
        return;
    }
    let place = Hermetic::new();
    let program = place.write("p.mcl", "test \"a\" {}\n");
    let shown = program.display().to_string();
    assert!(
        !run(&place, &["--once", &shown])
            .stderr
            .contains("others than root")
    );
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o666)).unwrap();
    let warned = run(&place, &["--once", &shown]).stderr;
    assert!(warned.contains("which root obeys: its mode is 0666"), "{warned}");
    let open = place.path("open");
    std::fs::create_dir_all(open.join("closed/bin")).unwrap();
    let closed = place.write("open/closed/p.mcl", "test \"a\" {}\n");
    let warned = || run(&place, &["--once", &closed.display().to_string()]).stderr;
    assert!(!warned().contains("others than root"), "{}", warned());
    // As `/tmp` is: what is there stays where it is.
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o1777)).unwrap();
    assert!(!warned().contains("others than root"), "{}", warned());
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert!(warned().contains("in its place in `$DIR/open`"), "{}", warned());
    // Nor are commands looked for in it, below it, or where others could make a directory.
    let untrusted = [open.clone(), open.join("closed/bin"), open.join("missing/bin")];
    let mut command = place.command(BINARY);
    command.args(COMMON).arg(place.path("prefix"));
    command.args(["--once", "test \"a\" {}"]).stdin(Stdio::null());
    let trusted = ["/usr/bin", "/bin"].map(std::path::PathBuf::from);
    command.env(
        "PATH",
        std::env::join_paths(untrusted.iter().chain(&trusted)).unwrap(),
    );
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    for directory in untrusted {
        let expected = format!("`{}` of PATH", directory.display());
        assert!(errors.contains(&expected), "{errors}");
    }
    assert!(!errors.contains("/usr/bin"), "{errors}");
}

#[test]
fn every_step_is_told_in_words() {
    let place = Hermetic::new();
    let file = place.path("file").display().to_string();
    let program = format!("file \"{file}\" {{\n\tcontent => \"x\",\n}}\n");
    let finished = place.run(BINARY, &["run", "--once", "-vv", "--tmp-prefix", &program]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    for step in [
        "came into the program",
        "is watched",
        "is looked at",
        "repairs content",
    ] {
        let line = format!("file[$DIR/file]: {step}\n");
        assert!(finished.stderr.contains(&line), "{step}: {}", finished.stderr);
    }
    assert!(!finished.stderr.contains("{\"event\""), "{}", finished.stderr);
}

#[test]
fn a_flag_says_what_it_takes() {
    let place = Hermetic::new();
    for (flag, value, why) in [
        ("--max-runtime", "soon", "it must be a whole number"),
        ("--max-runtime", "1.5", "it must be a whole number"),
        ("--jobs", "0", "it must be 1 or more"),
        ("--meta-retry", "40000", "it is too large"),
    ] {
        let finished = place.run(BINARY, &["run", flag, value, "noop \"a\" {}"]);
        assert_eq!(finished.code, 64, "{flag}: {}", finished.stderr);
        assert!(
            finished.stderr.contains(&format!(": {why}\n")),
            "{}",
            finished.stderr
        );
    }
    let unknown = place.run(BINARY, &["explain", "E01"]);
    assert!(
        unknown.stderr.contains("`setpoint explain` lists all codes"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn what_a_failed_command_has_said_is_shown_as_it_is() {
    let place = Hermetic::new();
    let program = "exec \"e\" {\n\tcmd => \"echo one; echo two >&2; exit 3\",\n\tshell => \"/bin/sh\",\n}\n";
    let finished = place.run(BINARY, &["run", "--once", "--tmp-prefix", program]);
    assert_eq!(finished.code, 1);
    let shown = "error: exec[e]: one\nexec[e]: two\nerror: exec[e]: failed to run";
    assert!(finished.stderr.contains(shown), "{}", finished.stderr);
}
