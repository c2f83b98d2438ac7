//! Asking a running process, and telling it what to do: the commands.

use std::io::{Read, Write};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value as Json, json};
use setpoint_testing::{Finished, Hermetic, Running};

use crate::book::the_page_shows;
use crate::end_to_end::{Engine, text};

const PAGE: &str = "docs/guide/monitoring.md";
const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// A command that speaks with the process of a place.
pub(crate) fn ask(place: &Hermetic, words: &[&str]) -> Finished {
    let prefix = place.path("prefix").display().to_string();
    let words: Vec<&str> = words.iter().copied().chain(["--state-dir", &prefix]).collect();
    place.run(BINARY, &words)
}

pub(crate) fn status(place: &Hermetic, words: &[&str]) -> (i32, Json) {
    let words: Vec<&str> = ["status", "--json"].iter().chain(words).copied().collect();
    let finished = ask(place, &words);
    let json = serde_json::from_str(&finished.stdout);
    (
        finished.code,
        json.unwrap_or_else(|_| panic!("{}", finished.stderr)),
    )
}

/// A program of which one file fails for as long as there is no directory for it.
pub(crate) fn failing(place: &Hermetic) -> String {
    let at = |name: &str| place.path(name).display().to_string();
    let (motd, app) = (at("machine/etc/motd"), at("machine/srv/app/config"));
    std::fs::create_dir_all(place.path("machine/etc")).expect("the socket works");
    let program = format!(
        "file \"{motd}\" {{\n\tcontent => \"welcome\\n\",\n}}\n\nfile \"{app}\" {{\n\tcontent => \"port = 80\\n\",\n\tBefore => Exec[\"start\"],\n}}\n\n\
         exec \"start\" {{\n\tcmd => \"/bin/true\",\n}}\n"
    );
    place.write("setpoint/main.mcl", program).display().to_string()
}

/// Waits until the resource has failed.
pub(crate) fn started(place: &Hermetic, program: &str) -> Engine {
    let mut engine = Engine::start(place, &["--converger-timeout", "0", program]);
    engine.event("the end of the work", |event| event["event"] == "converged");
    engine
}

#[test]
fn status_shows_each_failure_with_its_reason_and_what_waits_for_it() {
    let place = Hermetic::new();
    let program = failing(&place);
    let engine = started(&place, &program);
    let mut finished = ask(&place, &["status"]);
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    // It may be amid a try.
    while !finished.stdout.contains("next try in") {
        finished = ask(&place, &["status"]);
    }
    the_page_shows(PAGE, "status", "setpoint status", &made_equal(&finished.stdout));
    let (mut code, mut json) = status(&place, &[]);
    while json["resources"][0]["does"] != "backing-off" {
        (code, json) = status(&place, &[]);
    }
    assert_eq!((code, &json["exit_code"]), (1, &json!(1)));
    let counts = &json["status"]["counts"];
    assert_eq!(
        (&counts["failing"], &counts["blocked"], &counts["right"]),
        (&json!(1), &json!(1), &json!(1))
    );
    let rows = json["resources"].as_array().unwrap();
    let told: Vec<&str> = rows.iter().filter_map(|row| row["standing"].as_str()).collect();
    assert_eq!(told, ["failing", "blocked"]);
    assert_eq!(rows[0]["place"]["line"], 5);
    assert!(rows[0]["until"].as_f64() > rows[0]["since"].as_f64());
    assert_eq!(rows[1]["behind"], "file[$DIR/machine/srv/app/config]");
    engine.stop();
}

#[test]
fn status_of_named_resources_shows_them_in_any_state_and_answers_for_them_alone() {
    let place = Hermetic::new();
    let program = failing(&place);
    let engine = started(&place, &program);
    let motd = format!("file[{}]", place.path("machine/etc/motd").display());
    let one = ask(&place, &["status", &motd]);
    assert_eq!(one.code, 0, "{}", one.stderr);
    assert!(
        one.stdout.starts_with("right: 1 resource\n\nright\n"),
        "{}",
        one.stdout
    );
    assert_eq!(ask(&place, &["status", "--kind", "exec"]).code, 1);
    let all = ask(&place, &["status", "--all"]);
    assert!(
        all.stdout.contains("file[$DIR/machine/etc/motd]"),
        "{}",
        all.stdout
    );
    engine.stop();
}

#[test]
fn status_shows_what_was_repaired_from_outside() {
    let place = Hermetic::new();
    let program = failing(&place);
    let mut engine = started(&place, &program);
    let config = format!("file[{}]", place.path("machine/srv/app/config").display());
    std::fs::create_dir_all(place.path("machine/srv/app")).unwrap();
    assert_eq!(ask(&place, &["recheck", &config]).code, 0);
    let (name, is_there) = (place.path("machine/srv/app/config"), || {
        text(&place.path("machine/srv/app/config")) == "port = 80\n"
    });
    engine.repaired_until("file", name.to_str().unwrap(), is_there);
    engine.event("the end", |event| event["event"] == "converged");
    let finished = ask(&place, &["status"]);
    assert_eq!(finished.code, 0, "{}", finished.stdout);
    assert!(
        finished.stdout.starts_with("right: 3 resources\n"),
        "{}",
        finished.stdout
    );
    engine.stop();
}

/// What a command prints, with what differs each time made equal.
fn made_equal(text: &str) -> String {
    let text = text
        .replace("$DIR/machine", "")
        .replace("$DIR/setpoint", "/etc/setpoint");
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        // An event: other resources' events come between in any order.
        if let Some((_, rest)) = line.get(13..).and_then(|rest| rest.trim_start().split_once(' '))
            && line.as_bytes()[8] == b'.'
        {
            lines.push(format!("06:12:01.250 {:>6} {rest}", number + 1));
            continue;
        }
        let words: Vec<&str> = line.split(' ').collect();
        let mut out: Vec<String> = Vec::new();
        for (at, word) in words.iter().enumerate() {
            let is_unit = |word: &&&str| ["s", "ms"].contains(&word.trim_end_matches([';', ',']));
            let is_number = word.parse::<f64>().is_ok();
            if is_number && words.get(at + 1).as_ref().is_some_and(is_unit) {
                out.push("2.0".to_owned());
            } else if is_unit(&word) && at > 0 && words[at - 1].parse::<f64>().is_ok() {
                out.push(word.replace("ms", "s"));
            } else if is_number && at > 0 && words[at - 1] == "process" {
                out.push("811".to_owned());
            } else {
                out.push((*word).to_owned());
            }
        }
        lines.push(out.join(" "));
    }
    lines.join("\n")
}

#[test]
fn time_passes_while_nothing_happens() {
    let place = Hermetic::new();
    let content = place.path("right").display().to_string();
    let program = place.write(
        "p.mcl",
        format!("file \"{content}\" {{\n\tcontent => \"x\",\n}}\n"),
    );
    let engine = started(&place, &program.display().to_string());
    let mut before = status(&place, &[]).1;
    loop {
        let after = status(&place, &[]).1;
        let (time, event) = ("/status/time", "/status/newest_event");
        assert!(after.pointer(time).unwrap().as_f64() > before.pointer(time).unwrap().as_f64());
        // What its own file's creation still tells has been looked at.
        if after.pointer(event) == before.pointer(event) {
            break;
        }
        before = after;
    }
    engine.stop();
}

/// Words with a mistake, what is answered, and the exit code. `MOTD` is the path of the file.
const MISTAKES: &[(&[&str], &str, i32)] = &[
    (&["status", "file[MOTDx]"], "did you mean `file[MOTD]`?", 1),
    (&["recheck", "fil[MOTD]"], "did you mean `file[MOTD]`?", 1),
    (&["status", "MOTD"], "did you mean `file[MOTD]`?", 64),
    (
        &["recheck", "exec"],
        "`exec` is a kind: one of its resources is `exec[NAME]`",
        64,
    ),
    (
        &["events", "--kind", "fil"],
        "there is no kind `fil`\n  help: did you mean `file`?",
        64,
    ),
    (
        &["status", "--kind", "timer"],
        "no resource of the kind `timer`",
        1,
    ),
    (&["events", "--event", "repared"], "did you mean `repaired`?", 64),
    (&["debug", "on", "fille"], "did you mean `file`?", 64),
    (
        &["events", "exec[strat]"],
        "there is no resource exec[strat]\n  help: did you mean `exec[start]`?",
        1,
    ),
    (
        &["events", "--since=-1"],
        "the number of an event is a whole number, and 0 stands before the first",
        64,
    ),
    (
        &["events", "--since", "-1"],
        "the number of an event is a whole number, and 0 stands before the first",
        64,
    ),
    (
        &["debug", "off", "exce"],
        "there is neither a kind nor a function `exce`\n  help: did you mean `exec`?",
        64,
    ),
    (
        &["status", "--kind", "exce"],
        "there is no kind `exce`\n  help: did you mean `exec`?",
        64,
    ),
];

#[test]
fn unknown_names_are_answered_with_similar_ones() {
    let place = Hermetic::new();
    let program = failing(&place);
    let engine = started(&place, &program);
    let motd = place.path("machine/etc/motd").display().to_string();
    for (words, wanted, code) in MISTAKES {
        let words: Vec<String> = words.iter().map(|word| word.replace("MOTD", &motd)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let finished = ask(&place, &words);
        let wanted = wanted.replace("MOTD", "$DIR/machine/etc/motd");
        assert_eq!(finished.code, *code, "{words:?}: {}", finished.stderr);
        assert!(
            finished.stderr.contains(&wanted),
            "{words:?}: {}",
            finished.stderr
        );
    }
    engine.stop();
}

/// The events that `setpoint events` prints as JSON.
fn lines(place: &Hermetic, words: &[&str]) -> Vec<Json> {
    let finished = ask(place, words);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    finished
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn events_are_selected_by_kind_name_and_number() {
    let place = Hermetic::new();
    let program = failing(&place);
    let engine = started(&place, &program);
    let all = lines(&place, &["events", "--json"]);
    assert_eq!(all[0]["seq"], 1);
    assert!(
        all.windows(2)
            .all(|two| two[0]["seq"].as_u64().unwrap() + 1 == two[1]["seq"].as_u64().unwrap())
    );
    let repaired = lines(
        &place,
        &["events", "--json", "--event", "repaired", "--kind", "File"],
    );
    assert_eq!(repaired.len(), 1);
    let after = repaired[0]["seq"].to_string();
    let rest = lines(&place, &["events", "--json", "--since", &after]);
    assert_eq!(
        rest[0]["seq"].as_u64().unwrap(),
        repaired[0]["seq"].as_u64().unwrap() + 1
    );
    let ahead = ask(&place, &["events", "--since", "999999"]);
    assert_eq!(ahead.code, 1);
    assert!(
        ahead.stderr.contains("there is no event 999999 yet"),
        "{}",
        ahead.stderr
    );
    engine.stop();
}

/// Also those that a run otherwise reports only at its end.
#[test]
fn events_for_people_show_each_event_that_is_asked_for() {
    let place = Hermetic::new();
    let program = failing(&place);
    let engine = started(&place, &program);
    let told = |name: &str| {
        let finished = ask(&place, &["events", "--event", name]);
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        finished.stdout
    };
    let repaired_text = told("repaired");
    assert!(
        repaired_text.contains("created content: \"welcome\\n\""),
        "{repaired_text}"
    );
    assert!(told("not repaired").contains("could not repair content"));
    assert!(told("run ended").contains("could not be brought into its state"));
    let motd = format!("file[{}]", place.path("machine/etc/motd").display());
    let shown = ask(&place, &["events", &motd]);
    the_page_shows(
        PAGE,
        "events",
        "setpoint events 'file[/etc/motd]'",
        &made_equal(&shown.stdout),
    );
    engine.stop();
}

#[test]
fn events_are_followed_until_the_process_ends() {
    let place = Hermetic::new();
    let program = failing(&place);
    let engine = started(&place, &program);
    let motd = format!("file[{}]", place.path("machine/etc/motd").display());
    let mut follow = place.command(BINARY);
    follow
        .args(["events", "--follow", "--json", "--state-dir"])
        .arg(place.path("prefix"));
    let mut follow = Running::start(follow);
    // Until it listens, what happens is not for it.
    loop {
        assert_eq!(ask(&place, &["recheck", &motd]).code, 0);
        std::thread::sleep(Duration::from_millis(50));
        if !follow.drain().is_empty() {
            break;
        }
    }
    std::fs::write(place.path("machine/etc/motd"), "wrong").unwrap();
    follow.wait_for("the repair", |line| line.contains(r#""event":"repaired""#));
    engine.stop();
    follow.wait_for("the stop", |line| line.contains(r#""event":"stopping""#));
    let (status, errors) = follow.finish();
    assert_eq!(status.code(), Some(0), "{errors}");
    assert!(errors.contains("the process has ended"), "{errors}");
}

#[test]
fn a_closed_pipe_ends_a_command_quietly() {
    let place = Hermetic::new();
    let program = failing(&place);
    let engine = started(&place, &program);
    for words in [
        &["status", "--all"][..],
        &["events"],
        &["events", "--follow", "--since", "0"],
    ] {
        let mut command = place.command(BINARY);
        command.args(words).arg("--state-dir").arg(place.path("prefix"));
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{words:?}");
        assert_eq!(
            output.status.code(),
            Some(i32::from(words[0] == "status")),
            "{words:?}"
        );
    }
    engine.stop();
}

#[test]
fn a_pause_lets_nothing_begin_until_it_ends() {
    let place = Hermetic::new();
    let program = failing(&place);
    std::fs::create_dir_all(place.path("machine/srv/app")).unwrap();
    let mut engine = started(&place, &program);
    let motd = place.path("machine/etc/motd");
    let id = format!("file[{}]", motd.display());
    let pause = || {
        let finished = ask(&place, &["pause"]);
        assert_eq!((finished.code, &*finished.stdout), (0, ""), "{}", finished.stderr);
        finished.stderr
    };
    assert_eq!(pause(), "paused: no runs begin until `setpoint resume`\n");
    assert_eq!(pause(), "it was paused already\n");
    std::fs::write(&motd, "wrong").unwrap();
    engine.event("it is noticed", |event| {
        event["event"] == "dirty" && event["name"] == *motd.to_str().unwrap()
    });
    let rechecked = ask(&place, &["recheck", &id]);
    assert_eq!(
        rechecked.stderr,
        "file[$DIR/machine/etc/motd] is checked after `setpoint resume`: the agent is paused\n"
    );
    let paused = ask(&place, &["status"]);
    assert_eq!(paused.code, 3, "{}", paused.stdout);
    assert!(
        paused.stdout.starts_with("paused: 1 waiting, 2 right\n"),
        "{}",
        paused.stdout
    );
    for wanted in [
        ": no runs begin until `setpoint resume`; ",
        "; paused for ",
        "file[$DIR/machine/etc/motd]: waits for `setpoint resume`\n",
    ] {
        assert!(paused.stdout.contains(wanted), "{}", paused.stdout);
    }
    assert_eq!(text(&motd), "wrong");
    let resumed = ask(&place, &["resume"]);
    assert_eq!(resumed.code, 0);
    assert!(
        resumed.stderr.starts_with("resumed, after a pause of "),
        "{}",
        resumed.stderr
    );
    engine.repaired_until("file", motd.to_str().unwrap(), || text(&motd) == "welcome\n");
    assert_eq!(ask(&place, &["resume"]).stderr, "it was not paused\n");
    assert_eq!(
        ask(&place, &["recheck", &id]).stderr,
        "file[$DIR/machine/etc/motd] is checked again\n"
    );
    let both = ask(&place, &["recheck", &id, "exec[start]"]);
    assert_eq!(both.stderr, "2 resources are checked again\n");
    for words in [&["pause"][..], &["recheck", &id], &["resume"], &["reload"]] {
        let words: Vec<&str> = words.iter().copied().chain(["--quiet"]).collect();
        let finished = ask(&place, &words);
        assert_eq!((finished.code, &*finished.stderr), (0, ""), "{words:?}");
    }
    engine.stop();
}

#[test]
fn a_pause_holds_back_what_failed_too() {
    let place = Hermetic::new();
    let program = failing(&place);
    let engine = started(&place, &program);
    let mut told = String::new();
    // It may be amid a try when the pause begins.
    while !told.contains("next try in") {
        assert_eq!(ask(&place, &["resume", "-q"]).code, 0);
        assert_eq!(ask(&place, &["pause", "-q"]).code, 0);
        told = ask(&place, &["status"]).stdout;
    }
    let (_, after) = told.split_once("; next try in ").expect("it was found");
    assert!(after.contains(", but not before `setpoint resume`; "), "{told}");
    engine.stop();
}

#[test]
fn who_follows_a_resource_that_is_not_there_is_told_so_and_sees_it_come() {
    let place = Hermetic::new();
    let program = failing(&place);
    std::fs::create_dir_all(place.path("machine/srv/app")).unwrap();
    let engine = started(&place, &program);
    let mut follow = place.command(BINARY);
    follow.args(["events", "--follow", "exec[strat]", "exec[start]", "--state-dir"]);
    follow.arg(place.path("prefix"));
    let mut follow = Running::start(follow);
    // Until it listens, what happens is not for it.
    while follow.drain().is_empty() {
        assert_eq!(ask(&place, &["recheck", "exec[start]"]).code, 0);
        std::thread::sleep(Duration::from_millis(50));
    }
    let right = text(program.as_ref());
    std::fs::write(
        &program,
        right.replace(
            "exec \"start\"",
            "exec \"strat\" { cmd => \"/bin/true\", }\nexec \"start\"",
        ),
    )
    .unwrap();
    assert_eq!(ask(&place, &["reload"]).code, 0);
    follow.wait_for("its coming", |line| {
        line.contains("exec[strat]: came into the program")
    });
    engine.stop();
    let (status, errors) = follow.finish();
    assert_eq!(status.code(), Some(0), "{errors}");
    let wanted = "warning: there is no resource exec[strat]: its events are shown when it comes\n  help: did you mean `exec[start]`?\n";
    assert!(errors.starts_with(wanted), "{errors}");
}

#[test]
fn events_of_what_has_left_are_still_told() {
    let place = Hermetic::new();
    let program = failing(&place);
    let mut engine = started(&place, &program);
    let right = text(program.as_ref());
    std::fs::write(&program, right.split("\n\nfile").next().unwrap()).unwrap();
    assert_eq!(ask(&place, &["reload"]).code, 0);
    engine.event("its leaving", |event| {
        event["event"] == "removed" && event["name"] == "start"
    });
    assert_eq!(ask(&place, &["status", "exec[start]"]).code, 1);
    let told = ask(&place, &["events", "exec[start]"]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert!(
        told.stdout.contains("exec[start]: came into the program"),
        "{}",
        told.stdout
    );
    engine.stop();
}

#[test]
fn a_new_text_that_is_rejected_is_one_event_whatever_is_wrong_with_it() {
    let place = Hermetic::new();
    let program = failing(&place);
    let engine = started(&place, &program);
    let cases = [
        ("file $nothing {}\n", "`$nothing` is not defined here"),
        // What the evaluator finds, and what the engine finds.
        (
            "import \"os\"\nprint \"a\" { msg => os.readfile(\"/no/such/file\"), }\n",
            "/no/such/file",
        ),
        ("file \"relative\" {}\n", "the path is not absolute: `relative`"),
    ];
    for (number, (wrong, _)) in cases.iter().enumerate() {
        std::fs::write(&program, wrong).unwrap();
        assert_eq!(ask(&place, &["reload"]).code, 1, "{number}");
    }
    let told = ask(&place, &["events", "--event", "graph rejected"]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    let lines: Vec<&str> = told.stdout.lines().collect();
    assert_eq!(lines.len(), cases.len(), "{}", told.stdout);
    for (line, (_, why)) in lines.iter().zip(cases) {
        assert!(
            line.contains(" a new graph is rejected: ") && line.contains(why),
            "{line}"
        );
    }
    engine.stop();
}

#[test]
fn a_reload_answers_when_the_new_program_is_in_use_or_says_why_it_is_not() {
    let place = Hermetic::new();
    let program = failing(&place);
    std::fs::create_dir_all(place.path("machine/srv/app")).unwrap();
    let mut engine = started(&place, &program);
    let right = text(program.as_ref());
    std::fs::write(&program, right.replace("welcome", "hello")).unwrap();
    let reloaded = ask(&place, &["reload"]);
    assert_eq!(reloaded.code, 0, "{}", reloaded.stderr);
    let motd = place.path("machine/etc/motd");
    engine.repaired_until("file", motd.to_str().unwrap(), || text(&motd) == "hello\n");
    std::fs::write(&program, "\n\nfile $nothing {}\n").unwrap();
    let refused = ask(&place, &["reload"]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("the new program is not used: "),
        "{}",
        refused.stderr
    );
    let told = ask(&place, &["status"]);
    assert_eq!(told.code, 1, "{}", told.stdout);
    assert!(told.stdout.contains("\nnewest program\n"), "{}", told.stdout);
    // Where a resource stands in the text is that of the text in use.
    std::fs::write(&program, format!("\n\n{right}")).unwrap();
    assert_eq!(ask(&place, &["reload"]).code, 0);
    let (_, json) = status(&place, &[&format!("file[{}]", motd.display())]);
    assert_eq!(json["resources"][0]["place"]["line"], 3, "{json}");
    engine.stop();

    // What was not given as a file cannot be read again.
    let engine = started(&place, "print \"a\" { msg => \"x\", }");
    let refused = ask(&place, &["reload"]);
    assert!(
        refused.code == 1 && refused.stderr.contains("not given as a file"),
        "{}",
        refused.stderr
    );
    let shown = ask(&place, &["status"]).stdout;
    assert!(shown.contains("code given on the command line"), "{shown}");
    engine.stop();
}

#[test]
fn debug_output_is_turned_on_and_off_while_it_runs() {
    let place = Hermetic::new();
    let program = failing(&place);
    let engine = started(&place, &program);
    assert_eq!(ask(&place, &["debug"]).stdout, "debug output of nobody\n");
    assert_eq!(
        ask(&place, &["debug", "on", "file", "exec[start]"]).stdout,
        "file\nexec[start]\n"
    );
    assert_eq!(ask(&place, &["debug", "off", "file"]).stdout, "exec[start]\n");
    assert_eq!(ask(&place, &["debug", "off"]).stdout, "debug output of nobody\n");
    // One that is not there may come with a later graph, or be misspelt.
    let early = ask(&place, &["debug", "on", "exec[strat]"]);
    assert_eq!((early.code, &*early.stdout), (0, "exec[strat]\n"));
    assert_eq!(
        early.stderr,
        "warning: there is no resource exec[strat]: debug output is wanted of it when it comes\n  \
         help: did you mean `exec[start]`?\n"
    );
    let off = ask(&place, &["debug", "off", "exec[strat]"]);
    assert_eq!((&*off.stdout, &*off.stderr), ("debug output of nobody\n", ""));
    // Of one among all nobody can be relieved.
    for (on, off, by) in [("all", "file", "all"), ("exec", "exec[start]", "its kind")] {
        assert_eq!(ask(&place, &["debug", "on", on]).code, 0);
        let off_alone = ask(&place, &["debug", "off", off]);
        assert_eq!((off_alone.code, off_alone.stdout), (1, format!("{on}\n")));
        let wanted = format!(
            "debug output of `{off}` goes on, because it is wanted of {by}\n  help: `setpoint debug off` ends all;"
        );
        assert!(off_alone.stderr.contains(&wanted), "{}", off_alone.stderr);
        assert_eq!(ask(&place, &["debug", "off"]).code, 0);
    }
    engine.stop();
}

#[test]
fn without_a_process_status_says_so() {
    let place = Hermetic::new();
    let nobody = ask(&place, &["status"]);
    assert_eq!(nobody.code, 4);
    assert!(
        nobody
            .stderr
            .contains("no running agent found for the state directory"),
        "{}",
        nobody.stderr
    );
}

#[test]
fn a_stopped_process_is_reported_as_giving_no_answer() {
    let place = Hermetic::new();
    let program = failing(&place);
    let engine = started(&place, &program).into_running();
    engine.signal("STOP");
    let frozen = ask(&place, &["status"]);
    assert_eq!(frozen.code, 4);
    let wanted = format!("process {} gives no answer: it is stopped", engine.id());
    assert!(frozen.stderr.contains(&wanted), "{}", frozen.stderr);
    engine.signal("KILL");
}

#[test]
fn a_killed_process_leaves_its_socket_to_the_next_one() {
    let place = Hermetic::new();
    let program = failing(&place);
    let engine = started(&place, &program).into_running();
    engine.signal("KILL");
    drop(engine);
    assert!(place.path("prefix/control.sock").exists());
    let dead = ask(&place, &["status"]);
    assert_eq!(dead.code, 4);
    assert!(dead.stderr.contains("no running agent found"), "{}", dead.stderr);
    let engine = started(&place, &program);
    assert_eq!(ask(&place, &["status"]).code, 1);
    engine.stop();
    assert!(!place.path("prefix/control.sock").exists(), "it goes at the end");
}

/// As an older version does.
#[test]
fn a_process_without_a_control_socket_is_reported() {
    let place = Hermetic::new();
    let program = failing(&place);
    let engine = started(&place, &program);
    std::fs::rename(place.path("prefix/control.sock"), place.path("aside")).unwrap();
    let deaf = ask(&place, &["status"]);
    assert_eq!(deaf.code, 4);
    assert!(deaf.stderr.contains("has no control socket"), "{}", deaf.stderr);
    std::fs::rename(place.path("aside"), place.path("prefix/control.sock")).unwrap();
    engine.stop();
}

#[test]
fn a_directory_in_the_place_of_the_control_socket_is_reported() {
    let place = Hermetic::new();
    let program = failing(&place);
    let engine = started(&place, &program);
    std::fs::rename(place.path("prefix/control.sock"), place.path("aside")).unwrap();
    std::fs::create_dir(place.path("prefix/control.sock")).unwrap();
    let taken = ask(&place, &["status"]);
    assert_eq!(taken.code, 4);
    let wanted = "has no control socket: something else has the name `control.sock`";
    assert!(taken.stderr.contains(wanted), "{}", taken.stderr);
    std::fs::remove_dir(place.path("prefix/control.sock")).unwrap();
    std::fs::rename(place.path("aside"), place.path("prefix/control.sock")).unwrap();
    engine.stop();
    assert!(!place.path("prefix/control.sock").exists(), "it goes at the end");
}

#[test]
fn a_lock_with_the_number_of_another_process_is_no_setpoint() {
    let place = Hermetic::new();
    std::fs::create_dir(place.path("prefix")).unwrap();
    std::fs::write(place.path("prefix/lock"), format!("{}\n", std::process::id())).unwrap();
    let reused = ask(&place, &["status"]);
    assert_eq!(reused.code, 4);
    assert!(
        reused.stderr.contains("no running agent found"),
        "{}",
        reused.stderr
    );
}

#[test]
fn a_process_that_speaks_another_protocol_is_named_with_its_version() {
    let place = Hermetic::new();
    std::fs::create_dir(place.path("prefix")).unwrap();
    std::fs::write(place.path("prefix/lock"), format!("{}\n", std::process::id())).unwrap();
    let listener = std::os::unix::net::UnixListener::bind(place.path("prefix/control.sock")).unwrap();
    let older = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.write_all(b"{\"answer\":\"hello\",\"protocol\":7,\"version\":\"9.9.9\"}\n");
        let _ = stream.read(&mut [0; 1]);
    });
    let other = ask(&place, &["status"]);
    assert_eq!(other.code, 1);
    assert!(
        other.stderr.contains("speaks version 7 of the protocol"),
        "{}",
        other.stderr
    );
    assert!(other.stderr.contains("it is setpoint 9.9.9"), "{}", other.stderr);
    older.join().unwrap();
}

#[test]
fn nobody_else_may_ask() {
    if !is_root() {
        eprintln!("skipped: only root can ask as another user");
        return;
    }
    let place = Hermetic::new();
    let program = failing(&place);
    let engine = started(&place, &program);
    let prefix = place.path("prefix");
    let mut other = place.command("setpriv");
    other
        .args([
            "--reuid",
            "65534",
            "--clear-groups",
            BINARY,
            "status",
            "--state-dir",
        ])
        .arg(&prefix);
    let output = other.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{errors}");
    assert!(
        errors.contains("you are not allowed to control the agent"),
        "{errors}"
    );
    engine.stop();
}

pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

#[test]
fn a_long_prefix_is_no_hindrance() {
    let place = Hermetic::new();
    let program = failing(&place);
    let prefix = place.path(&"p".repeat(150)).display().to_string();
    let mut command = place.command(BINARY);
    command.args([
        "run",
        "--json",
        "--no-raise-limits",
        "--converger-timeout",
        "0",
        "--state-dir",
        &prefix,
        &program,
    ]);
    let mut engine = Running::start(command);
    engine.wait_for("the end of the work", |line| {
        line.contains(r#""event":"converged""#)
    });
    let finished = place.run(BINARY, &["status", "--state-dir", &prefix]);
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    engine.signal("TERM");
    assert_eq!(engine.finish().0.code(), Some(0));
}
