//! `setpoint plan`, `apply` and `show` on real machines. The page on plans in the book shows what they print.

use serde_json::Value as Json;
use setpoint_testing::place::{Place, shell};
use setpoint_testing::{Finished, Hermetic};

use crate::book::{snippets, the_page_shows};
use crate::end_to_end::{Engine, is_unchanged, text};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");
const PAGE: &str = "docs/guide/plan.md";

/// Runs a command with a state directory of its own.
fn setpoint(place: &Hermetic, arguments: &[&str]) -> Finished {
    let state = place.path("state").display().to_string();
    place.run(BINARY, &[arguments, &["--state-dir", &state]].concat())
}

fn plan(place: &Hermetic, arguments: &[&str]) -> Finished {
    setpoint(place, &[&["plan", "--hostname", "web-1"], arguments].concat())
}

fn json(finished: &Finished) -> Json {
    serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", finished.stdout, finished.stderr))
}

/// The rows of a plan: label and action.
fn rows(plan: &Json) -> Vec<String> {
    let rows = plan["rows"].as_array().into_iter().flatten();
    rows.map(|row| {
        let text = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
        format!("{}[{}] {}", text("kind"), text("name"), text("action"))
    })
    .collect()
}

/// The program that the page shows with these words in it.
fn program_of_the_page(words: &str) -> String {
    let all = snippets()
        .into_iter()
        .filter(|snippet| snippet.page.ends_with("guide/plan.md"));
    let mut found = all.filter(|snippet| snippet.language == "mcl" && snippet.text.contains(words));
    found.next().expect("the page has the program").text
}

#[test]
fn the_page_shows_what_the_commands_print() {
    let test = "plan::the_page_shows_what_the_commands_print";
    Place::machine(test).needing(&["useradd"]).run(|| {
        accounts();
        unknown_values();
        values_of_the_program();
        many_files();
        upgrade();
        failures();
        stale();
    });
}

fn accounts() {
    let place = Hermetic::new();
    let main = place.write("main.mcl", program_of_the_page("user \"ada\""));
    let main = main.display().to_string();
    let first = plan(&place, &[&main]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert_eq!(
        shell("ls -d /srv/notes /home/ada 2> /dev/null || true; grep ada: /etc/passwd || true"),
        "",
        "a plan changes nothing"
    );
    assert!(!place.path("state").exists());
    let shown = first.stdout.replace("$DIR/main.mcl", "main.mcl");
    the_page_shows(PAGE, "accounts", "setpoint plan main.mcl", &shown);
    let applied = setpoint(&place, &["apply", "--yes", "--hostname", "web-1", &main]);
    assert_eq!(applied.code, 0, "{}", applied.stderr);
    assert_eq!(
        shell("stat -c '%U %a' /srv/notes /srv/notes/readme"),
        "ada 750\nada 644"
    );
    let again = plan(&place, &["--detailed-exitcode", "--json", &main]);
    assert_eq!((again.code, rows(&json(&again))), (0, Vec::new()));
}

fn unknown_values() {
    let place = Hermetic::new();
    let main = place
        .write("main.mcl", program_of_the_page("exec \"token\""))
        .display()
        .to_string();
    let first = plan(&place, &[&main]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert_eq!(shell("ls /srv/token 2> /dev/null || true"), "");
    let shown = first.stdout.replace("$DIR/main.mcl", "main.mcl");
    the_page_shows(PAGE, "unknown", "setpoint plan main.mcl", &shown);
    let applied = setpoint(&place, &["apply", "--yes", "--hostname", "web-1", &main]);
    assert_eq!(applied.code, 0, "{}", applied.stderr);
    assert_eq!(shell("wc -c < /srv/token"), "37");
}

fn values_of_the_program() {
    let place = Hermetic::new();
    let main = place
        .write("main.mcl", program_of_the_page("$zone == "))
        .display()
        .to_string();
    let first = plan(&place, &[&main]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert_eq!(shell("ls -d /srv/shard* /srv/zone 2> /dev/null || true"), "");
    let shown = first.stdout.replace("$DIR/main.mcl", "main.mcl");
    the_page_shows(PAGE, "values", "setpoint plan main.mcl", &shown);
    let with_commands = plan(&place, &["--commands", &main]).stdout;
    assert!(with_commands.contains("+zone = eu"), "{with_commands}");
    let saved = place.path("values.plan").display().to_string();
    assert_eq!(plan(&place, &["--out", &saved, &main]).code, 0);
    let applied = place.run(BINARY, &["apply", &saved]);
    assert_eq!(applied.code, 0, "{}", applied.stderr);
    assert_eq!(
        shell("cat /srv/zone /srv/eu; ls -d /srv/shard*"),
        "zone = eu\nof the EU\n/srv/shard-a\n/srv/shard-b"
    );
}

fn many_files() {
    let place = Hermetic::new();
    let main = place
        .write("main.mcl", program_of_the_page("iter.range(10000)"))
        .display()
        .to_string();
    let first = plan(&place, &[&main]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let shown = first.stdout.replace("$DIR/main.mcl", "main.mcl");
    the_page_shows(PAGE, "many", "setpoint plan main.mcl", &shown);
}

fn upgrade() {
    let place = Hermetic::new();
    let new = program_of_the_page("reload app");
    let old = new
        .replace("hullo", "hello")
        .replace("threads = 8", "threads = 4")
        .replace("purge => true", "purge => false");
    let old = format!(
        "{old}file \"/srv/issue\" {{\n\tcontent => \"new\\n\",\n\tMeta:reverse => true,\n}}\nfile \"/srv/gone\" {{ content => \"\", }}\n"
    );
    shell("mkdir -p /srv/app.d/vendor; echo old > /srv/issue; touch /srv/app.d/old.conf /srv/app.d/vendor/a");
    let old = place.write("old.mcl", old).display().to_string();
    let mut engine = Engine::start(&place, &[&old]);
    engine.repaired("file", "/srv/issue");
    engine.event("convergence", |event| event["event"] == "converged");
    let new = place.write("main.mcl", new).display().to_string();
    let state = place.path("prefix").display().to_string();
    let planned = place.run(
        BINARY,
        &["plan", "--hostname", "web-1", "--state-dir", &state, &new],
    );
    assert_eq!(planned.code, 0, "{}", planned.stderr);
    let (head, rest) = planned.stdout.split_once("process ").expect("it names the agent");
    let (_, rest) = rest.split_once(' ').expect("a number");
    let shown = format!("{head}process 156 {rest}");
    let shown = shown
        .replace("$DIR/old.mcl", "/etc/setpoint/main.mcl")
        .replace("$DIR/main.mcl", "main.mcl");
    the_page_shows(PAGE, "upgrade", "setpoint plan main.mcl", &shown);
    assert_eq!(shell("cat /srv/motd /srv/issue"), "hello\nnew");
    engine.stop();
}

fn failures() {
    let place = Hermetic::new();
    let main = place
        .write("main.mcl", program_of_the_page("/srv/missing/"))
        .display()
        .to_string();
    let first = plan(&place, &[&main]);
    assert_eq!(first.code, 1, "{}", first.stderr);
    let shown = first.stdout.replace("$DIR/main.mcl", "main.mcl");
    the_page_shows(PAGE, "failures", "setpoint plan main.mcl", &shown);
    let refused = setpoint(&place, &["apply", "--yes", "--hostname", "web-1", &main]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("so nothing is changed"),
        "{}",
        refused.stderr
    );
    let run = setpoint(&place, &["run", "--once", "--hostname", "web-1", &main]);
    assert_eq!(run.code, 1, "the run fails as planned: {}", run.stderr);
}

fn stale() {
    let place = Hermetic::new();
    let file = "/srv/stale";
    let main = place.write(
        "main.mcl",
        format!("file \"{file}\" {{\n\tcontent => \"hullo\\n\",\n}}\n"),
    );
    let main = main.display().to_string();
    let saved = place.path("upgrade.plan").display().to_string();
    shell(&format!("echo hello > {file}"));
    let first = plan(&place, &["--out", &saved, &main]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert_eq!(shell(&format!("stat -c %a {saved}")), "600");
    let show = place.run(BINARY, &["show", &saved]);
    assert!(
        show.stdout.contains("-hello") && show.stdout.contains("+hullo"),
        "{}",
        show.stdout
    );
    shell(&format!("echo hallo > {file}"));
    let refused = place.run(BINARY, &["apply", &saved]);
    assert_eq!(
        (refused.code, shell(&format!("cat {file}")).as_str()),
        (1, "hallo")
    );
    the_page_shows(PAGE, "stale", "setpoint apply upgrade.plan", &refused.stderr);
    // As it was: now it fits, and once more it is done already.
    shell(&format!("echo hello > {file}"));
    for words in ["changed content", "1 change of the plan is done already"] {
        let applied = place.run(BINARY, &["apply", &saved]);
        assert_eq!(
            (applied.code, shell(&format!("cat {file}")).as_str()),
            (0, "hullo")
        );
        assert!(applied.stderr.contains(words), "{}", applied.stderr);
    }
    // Another text.
    let edited = text(std::path::Path::new(&main)).replace("hullo", "hey");
    std::fs::write(&main, edited).unwrap();
    let refused = place.run(BINARY, &["apply", &saved]);
    assert!(
        refused.code == 1 && refused.stderr.contains("main.mcl: the file has changed"),
        "{}",
        refused.stderr
    );
}

/// Programs with resources that depend on each other in every way that a plan follows, and whether the machine has something of them
/// already.
const PROGRAMS: &[&str] = &[
    "file \"DIR/a/\" { state => \"exists\", }\nfile \"DIR/a/b\" { content => \"x\\n\", Notify => Exec[\"r\"], }\n\
     exec \"r\" { cmd => \"/usr/bin/touch DIR/ran\", refresh_only => true, Notify => Exec[\"r2\"], }\n\
     exec \"r2\" { cmd => \"/usr/bin/touch DIR/ran2\", refresh_only => true, }\n",
    "file \"DIR/tree/\" { state => \"exists\", recurse => true, purge => true, }\n\
     file \"DIR/tree/kept\" { content => \"kept\\n\", }\n",
    "file \"DIR/gone\" { state => \"absent\", }\nfile \"DIR/mode\" { state => \"exists\", mode => \"0600\", }\n\
     line \"one\" { file => \"DIR/lines\", state => \"exists\", content => \"one\", }\n",
    "exec \"echo made\" { shell => \"/bin/sh\", creates => \"DIR/made\", }\nfile \"DIR/out\" { state => \"exists\", }\n\
     Exec[\"echo made\"].stdout -> File[\"DIR/out\"].content\n",
    "file \"DIR/no/such/file\" { content => \"x\", Before => File[\"DIR/after\"], }\nfile \"DIR/after\" { content => \"y\", }\n",
    "file \"DIR/off/\" { state => \"exists\", Meta:noop => true, Notify => Exec[\"never\"], }\n\
     exec \"never\" { cmd => \"/bin/true\", refresh_only => true, }\n",
    "value \"v\" { any => \"w\", }\nfile \"DIR/link\" { state => \"exists\", source => \"DIR/mode\", symlink => true, }\n",
];

/// The run after a plan makes exactly the changes that the plan shows.
#[test]
fn the_run_does_what_the_plan_says() {
    let starts = [
        "",
        "mkdir -p a tree; echo x > a/b; echo stranger > tree/stranger; touch gone mode; chmod 644 mode; touch made",
        "mkdir -p tree/sub; echo other > tree/kept; echo one > lines; touch out; ln -s elsewhere link",
    ];
    for (number, program) in PROGRAMS.iter().enumerate() {
        for start in starts {
            let place = Hermetic::new();
            let directory = place.path("machine");
            std::fs::create_dir(&directory).unwrap();
            shell(&format!("cd {}; {start}", directory.display()));
            let program = program.replace("DIR", &directory.display().to_string());
            let main_text = program.clone();
            let main = place.write("main.mcl", program).display().to_string();
            let planned = plan(&place, &["--json", &main]);
            let planned = json(&planned);
            let run = setpoint(&place, &["run", "--once", "--json", "--hostname", "web-1", &main]);
            assert_same(&planned, &run, &format!("program {number}, start {start:?}"));
            if run.code == 0 && !main_text.contains("Meta:noop") {
                let again = setpoint(&place, &["run", "--once", "--hostname", "web-1", &main]);
                let commands = again.stderr.contains(": ran ");
                assert!(
                    commands || again.stderr.lines().last().is_some_and(is_unchanged),
                    "{}",
                    again.stderr
                );
            }
        }
    }
}

/// Copies of `deploy.directory` are made by the run only, so a plan reads the originals.
#[test]
fn a_plan_reads_files_of_the_program_that_the_run_copies() {
    let place = Hermetic::new();
    let target = place.path("target").display().to_string();
    std::fs::create_dir(&target).unwrap();
    place.write("program/files/one", "one\n");
    place.write("program/files/below/two", "two\n");
    place.write("program/metadata.yaml", "main: main.mcl\nfiles: files/\n");
    let program = format!(
        "import \"deploy\"\n$d = deploy.directory(\"/files/\")\n\
         file \"{target}/one\" {{ state => \"exists\", source => $d + \"one\", }}\n\
         file \"{target}/tree/\" {{ state => \"exists\", source => $d, recurse => true, }}\n\
         file \"{target}/both\" {{ state => \"exists\", fragments => [$d + \"one\", $d + \"below/two\",], }}\n"
    );
    place.write("program/main.mcl", program);
    let directory = format!("{}/", place.path("program").display());
    for start in [
        "true",
        "echo three >> program/files/one",
        "echo four >> program/files/below/two",
    ] {
        shell(&format!("cd {}; {start}", place.path("").display()));
        let planned = json(&plan(&place, &["--json", &directory]));
        let run = setpoint(
            &place,
            &["run", "--once", "--json", "--hostname", "web-1", &directory],
        );
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_same(&planned, &run, start);
    }
}

/// Compares the fields of a plan with the drift that a run found.
#[track_caller]
fn assert_same(planned: &Json, run: &Finished, what: &str) {
    let events: Vec<Json> = run
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let field = |row: &Json, field: &Json| {
        let is_unknown = field["unknown"] == true;
        let want = if is_unknown {
            "unknown".into()
        } else {
            field["want"].clone()
        };
        (
            row["kind"].clone().to_string(),
            row["name"].clone().to_string(),
            field["field"].to_string(),
            want.to_string(),
        )
    };
    let mut said: Vec<_> = Vec::new();
    for row in planned["rows"].as_array().into_iter().flatten() {
        if !["fail", "blocked", "off"]
            .iter()
            .any(|action| row["action"] == *action)
        {
            said.extend(
                row["fields"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|of| field(row, of)),
            );
        }
    }
    let drifts = events.iter().filter(|event| event["event"] == "repaired");
    let mut did: Vec<_> = drifts.map(|event| field(event, event)).collect();
    for (kind, name, field, want) in &mut did {
        let is_unknown = said
            .iter()
            .any(|(k, n, f, w)| k == kind && n == name && f == field && w.contains("unknown"));
        if is_unknown {
            "\"unknown\"".clone_into(want);
        }
    }
    said.sort();
    did.sort();
    assert_eq!(said, did, "{what}: {planned}\n{}", run.stderr);
    assert_eq!(
        planned["exit_code"] == 1,
        run.code == 1,
        "{what}: {planned}\n{}",
        run.stderr
    );
}

#[test]
fn a_plan_is_made_beside_a_running_agent() {
    let place = Hermetic::new();
    let file = place.path("file").display().to_string();
    let main = place.write(
        "main.mcl",
        format!(
            "file \"{file}\" {{\n\tcontent => \"a\\n\",\n\tMeta:reverse => true,\n}}\nnoop \"gone\" {{}}\n"
        ),
    );
    let main = main.display().to_string();
    let state = place.path("prefix").display().to_string();
    let mut engine = Engine::start(&place, &[&main]);
    engine.repaired("file", &file);
    let before = shell(&format!(
        "cd {state}; find . -type f -printf '%p %s %T@\\n' | sort"
    ));
    let empty = place.write("empty.mcl", "noop \"n\" {}\n").display().to_string();
    let planned = place.run(BINARY, &["plan", "--json", "--state-dir", &state, &empty]);
    assert_eq!(planned.code, 0, "{}", planned.stderr);
    assert_eq!(
        rows(&json(&planned)),
        ["file[$DIR/file] undo", "noop[gone] let-go"],
        "{}",
        planned.stderr
    );
    let after = shell(&format!(
        "cd {state}; find . -type f -printf '%p %s %T@\\n' | sort"
    ));
    assert_eq!(before, after, "a plan writes nothing in the state directory");
    assert_eq!(text(std::path::Path::new(&file)), "a\n");
    engine.stop();
}

#[test]
fn a_plan_keeps_secrets() {
    let place = Hermetic::new();
    let file = place.path("file").display().to_string();
    let program = format!(
        "file \"{file}\" {{\n\tcontent => sensitive(\"hunter-two\\n\"),\n\tmode => \"0600\",\n}}\n\
         exec \"e\" {{\n\tcmd => sensitive(\"/bin/echo hunter-two\"),\n}}\n"
    );
    let main = place.write("main.mcl", program).display().to_string();
    let saved = place.path("p.plan").display().to_string();
    let mut printed = String::new();
    for arguments in [
        &["--full"][..],
        &["--json", "--full"],
        &["--format", "markdown"],
        &["--out", &saved],
    ] {
        let finished = plan(&place, &[arguments, &[&main]].concat());
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        printed.push_str(&finished.stdout);
        printed.push_str(&finished.stderr);
    }
    printed.push_str(&text(std::path::Path::new(&saved)));
    assert!(
        printed.contains("(sensitive)") && !printed.contains("hunter"),
        "{printed}"
    );
}

#[test]
fn what_is_damaged_or_of_others_is_refused() {
    let place = Hermetic::new();
    let file = place.path("file").display().to_string();
    let main = place
        .write(
            "main.mcl",
            format!("file \"{file}\" {{\n\tcontent => \"a\\n\",\n}}\n"),
        )
        .display()
        .to_string();
    let saved = place.path("p.plan").display().to_string();
    assert_eq!(plan(&place, &["--out", &saved, &main]).code, 0);
    let whole = text(std::path::Path::new(&saved));
    let machine = json(&plan(&place, &["--json", &main]))["host"]["machine"].to_string();
    for (changed, words) in [
        (
            whole[..whole.len() / 2].to_owned(),
            "it is not a complete JSON object",
        ),
        (
            whole.replace("\"version\":\"1.0\"", "\"version\":\"2.0\""),
            "it has version 2.0 of the format",
        ),
        (
            whole.replace(&format!("\"machine\":{machine}"), "\"machine\":\"0000\""),
            "(machine 0000)",
        ),
        (
            whole.replace("\"user\":\"root\"", "\"user\":\"uid 5\""),
            "uid 5 made it",
        ),
        (
            whole.replace("\"made\":1", "\"made\":0,\"was\":1"),
            "more than seven days old",
        ),
        (whole.replace("\"rows\":[", "\"rows\":[7,"), "it is damaged"),
    ] {
        std::fs::write(&saved, changed).unwrap();
        let refused = place.run(BINARY, &["apply", &saved]);
        assert!(
            refused.code == 1 && refused.stderr.contains(words),
            "{words}: {}",
            refused.stderr
        );
        assert!(!std::path::Path::new(&file).exists());
    }
}

/// A value that a resource would set is one for the program, if the run would set it; one that depends on itself never settles.
#[test]
fn a_plan_follows_values_as_far_as_a_run_sets_them() {
    let place = Hermetic::new();
    let read = "import \"value\"\n$v = value.get_bool(\"v\")\n";
    let off = format!(
        "{read}value \"v\" {{\n\tany => true,\n\tMeta:noop => true,\n}}\nif $v->ready {{\n\tnoop \"read\" {{}}\n}}\n"
    );
    let off = place.write("off.mcl", off).display().to_string();
    let planned = plan(&place, &["--json", &off]);
    assert_eq!(rows(&json(&planned)), ["value[v] off"], "{}", planned.stderr);
    let flips = format!("{read}value \"v\" {{\n\tany => not $v->value,\n}}\n");
    let flips = place.write("flips.mcl", flips).display().to_string();
    let planned = plan(&place, &[&flips]);
    assert_eq!(planned.code, 1, "{}", planned.stdout);
    assert!(
        planned
            .stdout
            .contains("it depends on itself, and changes each time"),
        "{}",
        planned.stdout
    );
}

#[test]
fn a_signed_plan_is_checked() {
    let place = Hermetic::new();
    let file = place.path("file").display().to_string();
    let program = format!("file \"{file}\" {{\n\tcontent => \"a\\n\",\n}}\n");
    let main = place.write("main.mcl", program).display().to_string();
    let at = |name: &str| place.path(name).display().to_string();
    let (key, other, locked) = (at("key"), at("other"), at("locked"));
    for (name, passphrase) in [(&key, ""), (&other, ""), (&locked, "words")] {
        shell(&format!(
            "ssh-keygen -q -t ed25519 -N '{passphrase}' -C '' -f {name}"
        ));
    }
    let signers = |name: &str, line: &str, key: &str| {
        let key = text(std::path::Path::new(&format!("{key}.pub")));
        let path = place.write(name, format!("# may change machines\n{line} {key}"));
        path.display().to_string()
    };
    let ada = signers("ada", "ada namespaces=\"setpoint-plan\"", &key);
    let (signed, unsigned) = (at("signed.plan"), at("unsigned.plan"));
    assert_eq!(plan(&place, &["--out", &signed, "--sign", &key, &main]).code, 0);
    assert_eq!(plan(&place, &["--out", &unsigned, &main]).code, 0);
    let refused = plan(&place, &["--out", &at("locked.plan"), "--sign", &locked, &main]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("it has a passphrase"),
        "{}",
        refused.stderr
    );
    // The other implementation of these signatures accepts it.
    let whole = text(std::path::Path::new(&signed));
    let (line, signature) = whole.split_once('\n').unwrap();
    let signature: Json = serde_json::from_str(signature).unwrap();
    place.write("line", format!("{line}\n"));
    place.write("signature", signature["signature"].as_str().unwrap());
    shell(&format!(
        "ssh-keygen -Y verify -f {ada} -I ada -n setpoint-plan -s {} < {}",
        at("signature"),
        at("line")
    ));
    let tampered = place.write(
        "tampered.plan",
        whole.replace("\"mode\":\"0644\"", "\"mode\":\"0666\""),
    );
    let tampered = tampered.display().to_string();
    for (signers, plan, words) in [
        (ada.clone(), &unsigned, "it is not signed"),
        (
            ada.clone(),
            &tampered,
            "its contents differ from those that were signed",
        ),
        (
            signers("bob", "bob", &other),
            &signed,
            "it is signed with another key",
        ),
        (
            signers("git", "ada namespaces=\"git\"", &key),
            &signed,
            "it is signed with another key",
        ),
        (
            signers("limited", "ada valid-before=\"20200101\"", &key),
            &signed,
            "the only option",
        ),
        (at("missing"), &signed, "there is no file"),
    ] {
        let refused = place.run(BINARY, &["apply", "--signers", &signers, plan]);
        assert_eq!(refused.code, 1);
        assert!(refused.stderr.contains(words), "{words}: {}", refused.stderr);
        assert!(!std::path::Path::new(&file).exists());
    }
    let show = place.run(BINARY, &["show", &signed]);
    assert!(show.stdout.contains(", with a signature"), "{}", show.stdout);
    let applied = place.run(BINARY, &["apply", "--signers", &ada, &signed]);
    assert_eq!(applied.code, 0, "{}", applied.stderr);
    assert!(std::path::Path::new(&file).exists());
}

#[test]
fn many_rows_that_are_alike_are_one_and_markdown_has_a_limit() {
    let place = Hermetic::new();
    let directory = place.path("many").display().to_string();
    let program = format!(
        "import \"fmt\"\nimport \"iter\"\nfile \"{directory}/\" {{ state => \"exists\", }}\n\
         for $i, $n in iter.range(2000) {{ file fmt.printf(\"{directory}/f%d\", $n) {{ content => fmt.printf(\"%d\\n\", $n), }} }}\n"
    );
    let main = place.write("main.mcl", program).display().to_string();
    let short = plan(&place, &[&main]);
    assert!(
        short.stdout.contains("2000 alike: 0644"),
        "{}{}",
        short.stdout,
        short.stderr
    );
    assert!(
        short.stdout.lines().count() < 15 && short.stdout.contains("2001 to create"),
        "{}",
        short.stdout
    );
    assert!(plan(&place, &["--full", &main]).stdout.lines().count() > 4000);
    let markdown = plan(&place, &["--format", "markdown", "--max-bytes", "5000", &main]).stdout;
    assert!(
        markdown.len() <= 5000 && markdown.contains("more rows are left out."),
        "{markdown}"
    );
}

#[test]
fn two_versions_of_a_program_are_compared_without_a_machine() {
    let place = Hermetic::new();
    let old = "file \"/no/a\" {\n\tcontent => \"one\\ntwo\\n\",\n\tmode => \"0600\",\n}\nnoop \"gone\" {}\nnoop \"kept\" {}\n";
    let new = "file \"/no/a\" {\n\tcontent => \"one\\n2\\n\",\n\tmode => \"0644\",\n\n\tNotify => Noop[\"kept\"],\n}\nnoop \"kept\" {}\nnoop \"new\" {}\n";
    let old_path = place.write("old/main.mcl", old).display().to_string();
    let new_path = place.write("new/main.mcl", new).display().to_string();
    let compare =
        |arguments: &[&str]| place.run(BINARY, &[&["diff", "--detailed-exitcode"], arguments].concat());
    let found = compare(&[&old_path, &new_path]);
    assert_eq!(found.code, 2, "{}", found.stderr);
    for line in [
        "~ file[/no/a]  content; mode 0600 -> 0644; now notifies noop[kept]",
        "      -two\n      +2\n",
        "+ noop[new]    new",
        ". noop[gone]   left the program; stays",
        "\n1 added, 1 changed, 1 removed; 1 unchanged\n",
    ] {
        assert!(found.stdout.contains(line), "{line}: {}", found.stdout);
    }
    let same = compare(&[&old_path, &old_path]);
    assert!(
        same.code == 0 && same.stdout.contains("the programs are equal"),
        "{}",
        same.stdout
    );
    // Of a git repository.
    let repository = place.path("repository").display().to_string();
    shell(&format!(
        "git init -q {repository}; cd {repository}; cp {old_path} main.mcl; git add main.mcl; \
         git -c user.name=t -c user.email=t@example.org commit -qm one; cp {new_path} main.mcl"
    ));
    let mut command = place.command(BINARY);
    command
        .current_dir(&repository)
        .args(["diff", "HEAD:main.mcl", "main.mcl"]);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 added, 1 changed, 1 removed"),
        "{text}"
    );
    assert_eq!(compare(&["nothing:main.mcl", &new_path]).code, 1);
}

#[test]
fn a_source_that_gives_no_value_ends_the_plan_with_an_error() {
    let place = Hermetic::new();
    let program = "import \"os\"\nfile \"/no/x\" {\n\tcontent => os.system(\"sleep 100\"),\n}\n";
    let main = place.write("main.mcl", program).display().to_string();
    let late = plan(&place, &["--commands", "--timeout", "1", &main]);
    assert_eq!((late.code, late.stdout.as_str()), (1, ""));
    assert!(
        late.stderr.contains("error[E0304]") && late.stderr.contains("gives no value within 1 second"),
        "{}",
        late.stderr
    );
}
