//! What holds up what, and what a resource costs while nothing happens: the real binary, its threads and descriptors.

use std::fmt::Write as _;
use std::path::Path;

use setpoint_testing::Hermetic;

use crate::end_to_end::{Engine, text};

/// How many threads and descriptors a process has.
fn held_by(process: u32) -> (usize, usize) {
    let count = |what: &str| {
        let entries = std::fs::read_dir(format!("/proc/{process}/{what}"));
        entries.expect("a process of ours").count()
    };
    (count("task"), count("fd"))
}

/// Files in a few directories, and as many resources of other kinds.
fn program_of(place: &Path, count: usize) -> String {
    let mut program = String::new();
    for index in 0..count {
        let path = place.join(format!("{}/{index}", index % 10));
        let path = path.display();
        let _ = writeln!(program, "file \"{path}\" {{\n\tcontent => \"{index}\",\n}}");
        let _ = writeln!(program, "timer \"{index}\" {{\n\tinterval => 3600,\n}}");
        let _ = writeln!(program, "value \"{index}\" {{\n\tany => {index},\n}}");
    }
    for index in 0..10 {
        let path = place.join(format!("{index}/"));
        let _ = writeln!(
            program,
            "file \"{}\" {{\n\tstate => \"exists\",\n}}",
            path.display()
        );
    }
    program
}

#[test]
fn a_resource_at_rest_has_no_thread_and_no_descriptor() {
    let place = Hermetic::new();
    let files = place.path("files");
    std::fs::create_dir(&files).unwrap();
    let held = [20, 2000].map(|count| {
        let program = place
            .write("p.mcl", program_of(&files, count))
            .display()
            .to_string();
        let mut engine = Engine::start(&place, &["--converger-timeout", "1", &program]);
        engine.event("quiet", |event| event["event"] == "converged");
        let engine = engine.into_running();
        let held = held_by(engine.id());
        engine.signal("TERM");
        assert_eq!(engine.finish().0.code(), Some(0));
        held
    });
    let [few, many] = held;
    // Threads that were needed in the beginning may stay for a while, up to a bound that has nothing to do with resources.
    assert!(many.0 <= 24, "{few:?} {many:?}");
    assert!(many.1 <= few.1 + 8, "{few:?} {many:?}");
}

#[test]
fn a_command_that_takes_long_holds_up_no_change_of_others() {
    let place = Hermetic::new();
    let file = place.path("file");
    let name = file.display().to_string();
    let program = |content: &str, also: &str| {
        format!(
            "exec \"long\" {{\n\tcmd => \"sleep 600\",\n\tshell => \"/bin/sh\",\n}}\nfile \"{name}\" {{\n\tcontent => \"{content}\",\n}}\n{also}"
        )
    };
    let path = place.write("p.mcl", program("one", "noop \"x\" {}\n"));
    let mut engine = Engine::start(&place, &["--watch", &path.display().to_string()]);
    engine.event("the command", |event| {
        event["event"] == "started run" && event["kind"] == "exec"
    });
    // The command goes on: it is the same in both programs.
    std::fs::write(&path, program("two", "")).unwrap();
    let mut ended = false;
    engine.event("the next graph", |event| {
        event["event"] == "graph accepted"
            && event["changed"] == 1
            && event["removed"] == 1
            && event["kept"] == 1
    });
    engine.event("the change", |event| {
        event["event"] == "repaired" && event["name"] == name.as_str()
    });
    engine.event("its end", |event| {
        ended |= event["event"] == "run ended" && event["kind"] == "exec";
        event["event"] == "run ended" && event["name"] == name.as_str()
    });
    assert_eq!(text(&file), "two");
    assert!(!ended, "nobody waited for the command, or stopped it");
    let mut running = engine.into_running();
    // The system merges equal signals that arrive together, so each waits for the stage that the one before began.
    for stage in 1..=2 {
        running.signal("INT");
        running.wait_for("a stage of stopping", |line| {
            line.contains("\"stopping\"") && line.contains(&format!("\"stage\":{stage}"))
        });
    }
    let (status, errors) = running.finish();
    assert_eq!(status.code(), Some(0), "{errors}");
}
