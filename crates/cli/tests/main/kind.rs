//! Runs of programs that use one kind: `setpoint run --once` as root, and what it reports.

use std::process::Command;

use serde_json::Value as Json;
use setpoint_testing::{Finished, Hermetic};

use crate::end_to_end;

/// A run that finds drift in these fields and repairs it; a second run finds none.
#[track_caller]
pub(crate) fn repairs(program: &str, fields: &[&str]) {
    let fields: Vec<String> = fields.iter().map(ToString::to_string).collect();
    assert_eq!(once(program), (fields, None), "{program}");
    assert_eq!(once(program), (Vec::new(), None), "{program}");
}

/// A run that fails with exactly this error.
#[track_caller]
pub(crate) fn fails(program: &str, error: &str) {
    let (_, found) = once(program);
    assert_eq!(found.as_deref(), Some(error), "{program}");
}

/// The fields in which one run finds drift, and its first error.
pub(crate) fn once(program: &str) -> (Vec<String>, Option<String>) {
    let finished = run(program, &[]);
    (fields(&finished), error(&finished))
}

/// Runs a program once and returns its events as its standard output.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Finished {
    run_in(&Hermetic::new(), program, arguments)
}

/// The same with the state directory of this place.
pub(crate) fn run_in(place: &Hermetic, program: &str, arguments: &[&str]) -> Finished {
    let all = [&["--once"], arguments].concat();
    let output = command(place, program, &all)
        .output()
        .expect("the program can be started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Finished {
        code: output.status.code().unwrap_or(-1),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    }
}

/// The command that runs a program. Its home directory is the one that the user manager of root uses, too.
pub(crate) fn command(place: &Hermetic, program: &str, arguments: &[&str]) -> Command {
    let main = place.write("main.mcl", program);
    let main = main.to_str().expect("the place has a plain name");
    let mut command = end_to_end::run_command(place, &[arguments, &[main]].concat());
    command.env("HOME", "/root");
    command
}

/// The events of a run.
pub(crate) fn events(finished: &Finished) -> Vec<Json> {
    let lines = finished.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("every line is one JSON object"))
        .collect()
}

/// The fields in which a run found drift.
pub(crate) fn fields(finished: &Finished) -> Vec<String> {
    drifts(finished)
        .iter()
        .map(|drift| part(drift, "field"))
        .collect()
}

/// The same with the values: `mode: 0600 -> 0644`.
pub(crate) fn changes(finished: &Finished) -> Vec<String> {
    drifts(finished).iter().map(change).collect()
}

/// One drift as text: `mode: 0600 -> 0644`.
pub(crate) fn change(drift: &Json) -> String {
    let [field, is, want] = ["field", "is", "want"].map(|key| part(drift, key));
    format!("{field}: {is} -> {want}")
}

/// The events that report drift.
pub(crate) fn drifts(finished: &Finished) -> Vec<Json> {
    let mut events = events(finished);
    events.retain(|event| event["event"] == "drift");
    events
}

/// A text in an event; empty if the event has none.
pub(crate) fn part(event: &Json, key: &str) -> String {
    event[key].as_str().unwrap_or_default().to_owned()
}

/// The first error that a run reports of a resource.
pub(crate) fn error(finished: &Finished) -> Option<String> {
    let events = events(finished);
    let mut events = events
        .iter()
        .filter(|event| event["kind"].is_string() && event["event"] != "drift");
    events.find_map(|event| event["error"].as_str().map(str::to_owned))
}

/// The messages of a run with the level `warning`.
pub(crate) fn warnings(program: &str) -> Vec<String> {
    let events = events(&run(program, &[]));
    let warnings = events
        .iter()
        .filter(|event| event["kind"].is_string() && event["level"] == "warning");
    warnings.map(|event| part(event, "message")).collect()
}

/// Runs a program that must fail, and returns all its output.
#[track_caller]
pub(crate) fn failure(program: &str) -> String {
    let finished = run(program, &[]);
    assert_eq!(finished.code, 1, "{}", finished.stdout);
    finished.stdout + &finished.stderr
}

/// Runs a program once and returns the messages that a person reads.
pub(crate) fn shown(program: &str) -> Finished {
    let place = Hermetic::new();
    let main = place.write("main.mcl", program);
    let main = main.to_str().expect("the place has a plain name");
    end_to_end::run(&place, &["--once", main])
}

/// A run whose messages to a person contain an error.
#[track_caller]
pub(crate) fn shows_error(program: &str, error: &str) {
    let finished = shown(program);
    assert_eq!(finished.code, 1, "{program}: {}", finished.stderr);
    assert!(
        finished.stderr.contains(error),
        "{error:?} is not in: {}",
        finished.stderr
    );
}
