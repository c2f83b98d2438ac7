//! What a person sees: the real binary's lines, on pipes, in the system's log and on a terminal.
//!
//! Whole screens are in `screens/`, one file for each test; `UPDATE=1` rewrites them, as it does the expectations of cases.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};

use serde_json::Value as Json;
use setpoint_testing::cases::{self, Sections};
use setpoint_testing::{Finished, Hermetic, repository};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

const COMMON: [&str; 5] = [
    "run",
    "--no-raise-limits",
    "--hostname",
    "host.example",
    "--state-dir",
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

/// Adds what a command printed to a screen.
fn show(screen: &mut Sections, command: &str, finished: &Finished) {
    let Finished { code, stdout, stderr } = finished;
    screen.add(
        &format!("{command}: exit code {code}"),
        &timeless(&format!("{stdout}{stderr}")),
    );
}

/// Replaces durations, which differ from run to run.
fn timeless(text: &str) -> String {
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    for at in (1..words.len()).rev() {
        let rest = words[at].trim_start_matches('m').strip_prefix('s');
        let is_duration = words[at - 1].parse::<f64>().is_ok();
        if let Some(rest) = rest.filter(|rest| is_duration && !rest.starts_with(char::is_alphabetic)) {
            words[at - 1] = format!("$TIME{rest}");
            words.remove(at);
        }
    }
    words.join(" ")
}

/// Compares a screen with the one that is kept below the name of the test.
#[track_caller]
fn assert_screen(test: &str, screen: Sections) {
    let kept = repository().join(format!("crates/cli/tests/main/screens/{test}.expect"));
    if let Err(error) = cases::compare(&kept, &screen.finish()) {
        panic!("{test}: {error}");
    }
}

#[test]
fn every_screen_has_its_test() {
    let entries = std::fs::read_dir(repository().join("crates/cli/tests/main/screens")).unwrap();
    for entry in entries {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let test = name.strip_suffix(".expect").unwrap_or(&name);
        assert!(
            include_str!("screens.rs").contains(&format!("\"{test}\"")),
            "no test shows {name}"
        );
    }
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
        "file \"{file}\" {{\n\tcontent => \"x\",\n}}\nexec \"no\" {{\n\tcmd => \"/bin/false\",\n}}\ntest \"right\" {{}}\nFile[\"{file}\"] -> Exec[\"no\"]\n"
    );
    let mut screen = Sections::new();
    show(&mut screen, "run", &run(&place, &["--once", &program]));
    let other = program.replace("\"x\"", "\"y\"");
    show(
        &mut screen,
        "run --noop",
        &run(&place, &["--once", "--noop", &other]),
    );
    assert_screen("a_run_that_ends_ends_with_a_recap", screen);
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
    let mut screen = Sections::new();
    let changed = run(&place, &["--once", &program("\"one\\n2\\nthree\\n\"")]);
    show(&mut screen, "a line that differs", &changed);
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
    show(&mut screen, "no text", &binary);
    std::fs::write(&file, "one\ntwo\nthree\n").unwrap();
    let secret = run(&place, &["--once", &program("sensitive(\"one\\n2\\nthree\\n\")")]);
    show(&mut screen, "a secret", &secret);
    assert_screen(
        "contents_that_differ_are_shown_as_a_difference_unless_they_are_secret",
        screen,
    );
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
        "exec \"no\" {\n\tcmd => \"/bin/false\",\n}\nprint \"p\" {\n\tmsg => \"hello\",\n}\nPrint[\"p\"] -> Exec[\"no\"]\n",
    ]);
    command.env("JOURNAL_STREAM", format!("{}:{}", found.dev(), found.ino()));
    let stderr = std::fs::OpenOptions::new().append(true).open(&log).unwrap();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    assert_eq!(command.status().unwrap().code(), Some(1));
    let log = std::fs::read_to_string(&log).unwrap();
    let mut screen = Sections::new();
    screen.add("log", &timeless(&log));
    assert_screen("the_systems_log_is_told_what_matters_how_much", screen);
}

#[test]
fn a_terminal_has_colours_and_a_bar_only_for_who_waits() {
    let place = Hermetic::new();
    let quick = on_terminal(&place, &["--once", "print \"p\" {\n\tmsg => \"hello\",\n}\n"]);
    assert!(quick.contains("\u{1b}[1mprint[p]\u{1b}[0m: hello"), "{quick:?}");
    assert!(!quick.contains(" of 1 resources"), "a bar flashes: {quick:?}");
    assert!(
        quick.contains("1 ran in ") || quick.contains("1 unchanged in "),
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
    place.write("nope.mcl", "");
    let mut screen = Sections::new();
    for words in [
        "run --once --tmp-state-dir other",
        "check nope",
        "check main.cf",
        "plan x.mcl",
    ] {
        let arguments: Vec<&str> = words.split(' ').collect();
        let finished = place.run(BINARY, &arguments);
        assert_ne!(finished.code, 0, "{words}");
        show(&mut screen, words, &finished);
    }
    assert_screen("what_is_no_program_is_told_as_such", screen);
}

#[test]
fn an_empty_program_is_warned_of() {
    let place = Hermetic::new();
    place.write("empty.mcl", "# nothing\n");
    place.write("class.mcl", "class unused {\n\tprint \"x\" {}\n}\n");
    let loops = "class used {\n\tfor $i, $x in [\"x\",] {\n\t\tif true {\n\t\t\tprint $x {}\n\t\t}\n\t}\n}\ninclude used\n";
    place.write("used.mcl", loops);
    let mut screen = Sections::new();
    for words in [
        "graph empty.mcl",
        "check empty.mcl",
        "run --once --tmp-state-dir class.mcl",
        "run --once --tmp-state-dir empty.mcl",
        // Others may import it.
        "check class.mcl",
        "check used.mcl",
    ] {
        let arguments: Vec<&str> = words.split(' ').collect();
        let finished = place.run(BINARY, &arguments);
        assert_eq!(finished.code, 0, "{words}: {}", finished.stderr);
        show(&mut screen, words, &finished);
    }
    assert_screen("an_empty_program_is_warned_of", screen);
}

#[test]
fn a_test_resource_shows_the_parameters_that_it_names() {
    let place = Hermetic::new();
    place.write(
        "main.mcl",
        "test \"t1\" {\n\tanotherstr => \"hello\",\n\tonlyshow => [\"AnotherStr\",],\n}\n",
    );
    let finished = place.run(BINARY, &["run", "--once", "--tmp-state-dir", "main.mcl"]);
    let mut screen = Sections::new();
    show(&mut screen, "run", &finished);
    assert_screen("a_test_resource_shows_the_parameters_that_it_names", screen);
}

#[test]
fn what_the_system_says_is_told_without_its_number() {
    let place = Hermetic::new();
    place.write(
        "main.mcl",
        "import \"os\"\n\nprint \"a\" {\n\tmsg => os.readfile(\"/nope/x\"),\n}\n",
    );
    let finished = place.run(BINARY, &["run", "--once", "--tmp-state-dir", "main.mcl"]);
    let mut screen = Sections::new();
    show(&mut screen, "run", &finished);
    assert_screen("what_the_system_says_is_told_without_its_number", screen);
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
    let mut screen = Sections::new();
    screen.add("dot", &shown("dot", &[]));
    screen.add("text", &shown("text", &[]));
    assert_screen("a_graph_shows_the_edges_that_run_adds", screen);
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
        "{accounts}file \"/srv/f\" {{\n\tstate => \"exists\",\n}}\nline \"a\" {{\n\tfile => \"/srv/f\",\n\tstate => \"exists\",\n\tcontent => \"x\",\n}}\nblock \"b\" {{\n\tfile => \"~ada/.profile\",\n\tstate => \"exists\",\n\tcontent => \"x\",\n}}\n"
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
    let mut screen = Sections::new();
    show(&mut screen, "graph --chains", &shown);
    show(&mut screen, "graph", &place.run(BINARY, &["graph", program]));
    assert_screen("graph_shows_on_demand_how_each_resource_comes_about", screen);
}

#[test]
fn functions_are_found_by_part_of_their_names() {
    let place = Hermetic::new();
    let page = place.run(BINARY, &["docs", "functions", "printf"]);
    assert_eq!(page.code, 0, "{}", page.stderr);
    let list = place.run(BINARY, &["docs", "functions", "readfile"]);
    let module = place.run(BINARY, &["docs", "functions", "os"]);
    assert!(module.stdout.contains("os.readfile("), "{}", module.stdout);
    let nothing = place.run(BINARY, &["docs", "functions", "zzzz"]);
    let mut screen = Sections::new();
    show(&mut screen, "docs functions printf", &page);
    show(&mut screen, "docs functions readfile", &list);
    show(&mut screen, "docs functions zzzz", &nothing);
    assert_screen("functions_are_found_by_part_of_their_names", screen);
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
        ("Meta:retry", "Meta:retry int, default no limit\n"),
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
    let mut screen = Sections::new();
    screen.add("docs noop", &found("noop"));
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
    screen.add("docs unused", &found("unused"));
    // A code is found by what it is about, too.
    let list = found("nothing uses");
    assert!(
        list.contains("Codes\n    W0101  a variable that nothing uses\n"),
        "{list}"
    );
    show(
        &mut screen,
        "docs prnitf",
        &place.run(BINARY, &["docs", "prnitf"]),
    );
    assert_screen("whatever_has_a_name_is_found_by_part_of_it", screen);
}

#[test]
fn a_module_stays_in_its_directory_and_formatting_does_not_follow_links() {
    let place = Hermetic::new();
    place.write("secret", "root:secret\n");
    let mut screen = Sections::new();
    for (name, metadata) in [("main", "main: ../secret\n"), ("files", "files: ../\n")] {
        let module = place.write(&format!("{name}/metadata.yaml"), metadata);
        place.write(&format!("{name}/main.mcl"), "test \"a\" {}\n");
        let finished = place.run(BINARY, &["check", &module.display().to_string()]);
        assert_eq!(finished.code, 1, "{name}: {}", finished.stderr);
        show(&mut screen, name, &finished);
        assert!(!finished.stderr.contains("root:secret"), "{}", finished.stderr);
    }
    let main = place.write("linked/main.mcl", "import \"out.mcl\"\n");
    std::os::unix::fs::symlink(place.path("secret"), place.path("linked/out.mcl")).unwrap();
    let finished = place.run(BINARY, &["check", &main.display().to_string()]);
    assert_eq!(finished.code, 1);
    show(&mut screen, "linked", &finished);
    assert_screen(
        "a_module_stays_in_its_directory_and_formatting_does_not_follow_links",
        screen,
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
    let finished = place.run(BINARY, &["run", "--once", "-vv", "--tmp-state-dir", &program]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    for step in [
        "came into the program",
        "is watched",
        "is checked",
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
    let mut screen = Sections::new();
    for (flag, value) in [
        ("--max-runtime", "soon"),
        ("--max-runtime", "1.5"),
        ("--jobs", "0"),
        ("--meta-retry", "40000"),
    ] {
        let finished = place.run(BINARY, &["run", flag, value, "noop \"a\" {}"]);
        assert_eq!(finished.code, 64, "{flag}: {}", finished.stderr);
        show(&mut screen, &format!("run {flag} {value}"), &finished);
    }
    show(
        &mut screen,
        "explain E01",
        &place.run(BINARY, &["explain", "E01"]),
    );
    assert_screen("a_flag_says_what_it_takes", screen);
}

#[test]
fn what_a_failed_command_has_said_is_shown_as_it_is() {
    let place = Hermetic::new();
    let program = "exec \"e\" {\n\tcmd => \"echo one; echo two >&2; exit 3\",\n\tshell => \"/bin/sh\",\n}\n";
    let finished = place.run(BINARY, &["run", "--once", "--tmp-state-dir", program]);
    let mut screen = Sections::new();
    show(&mut screen, "run", &finished);
    assert_screen("what_a_failed_command_has_said_is_shown_as_it_is", screen);
}
