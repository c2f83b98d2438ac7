//! Processes that are killed at any moment, with and without space for their state: no notification is lost, and what was recorded as
//! done is not done again.

use std::path::Path;
use std::time::Duration;

use setpoint_testing::{Hermetic, Running};

use crate::end_to_end::{run, run_command, text};
use crate::several_hosts::eventually;
use crate::staying_right::Mounted;

/// So often the process is killed. `SETPOINT_KILLS` says how often instead.
const KILLS: u64 = 40;

/// A file that notifies a command, which notifies another one. Each command notes the content of the file when it ran.
fn program(place: &Hermetic, content: u64) -> String {
    let root = place.directory().display().to_string();
    let command = |name: &str, rest: &str| {
        format!(
            "exec \"{name}\" {{\n\tcmd => \"/bin/sh\",\n\targs => [\"-c\", \"echo {name} $(cat {root}/a) >> {root}/log\",],\n\
             \trefresh_only => true,\n{rest}}}\n"
        )
    };
    format!(
        "file \"{root}/a\" {{\n\tcontent => \"{content}\",\n\n\tNotify => Exec[\"first\"],\n}}\n{}{}",
        command("first", "\n\tNotify => Exec[\"second\"],\n"),
        command("second", "")
    )
}

/// Starts the program, and kills it after so many lines or, where the disk is full, after so many milliseconds. Answers whether it had
/// converged.
fn killed(place: &Hermetic, main: &str, moment: u64, is_full: bool) -> bool {
    let mut running = Running::start(run_command(place, &["--converger-timeout", "0", main]));
    let mut converged = false;
    if is_full {
        std::thread::sleep(Duration::from_millis(moment * 10));
    } else {
        let mut lines = 0;
        running.wait_for("so many events", |line| {
            lines += 1;
            converged = line.contains("\"converged\"");
            converged || lines > moment
        });
        std::thread::sleep(Duration::from_micros(moment * 37 % 1_000));
    }
    running.signal("KILL");
    let _ = running.finish();
    commands_end(place);
    converged
}

/// Waits for the commands that a killed process has left: they still write to the log.
fn commands_end(place: &Hermetic) {
    let log = format!("{}/log", place.directory().display());
    let is_of_place = |entry: std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&log)
    };
    eventually("the commands end", || {
        let processes = std::fs::read_dir("/proc").expect("there is a /proc").flatten();
        !processes.into_iter().any(is_of_place)
    });
}

fn lines_of(place: &Hermetic, line: &str) -> usize {
    let log = text(&place.path("log"));
    log.lines().filter(|found| *found == line).count()
}

/// Whether something below a directory was set aside as damaged.
fn set_aside(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            found.extend(set_aside(&path));
        } else if path.to_string_lossy().contains("set-aside") {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn however_often_the_process_is_killed_no_notification_is_lost() {
    let place = Hermetic::new();
    let prefix = Mounted::small(&place, "prefix");
    let set = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(prefix.path(), set).expect("it is ours");
    let ballast = prefix.path().join("ballast");
    let kills = std::env::var("SETPOINT_KILLS")
        .ok()
        .and_then(|kills| kills.parse().ok());
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |bound: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let mut content = 0;
    let mut killed_with_it = 0;
    let mut done: Option<String> = None;
    for round in 0..kills.unwrap_or(KILLS) {
        // A command that was recorded as done does not run again.
        let repeats = done.is_some() && below(2) == 0;
        if !repeats {
            content += 1;
            killed_with_it = 0;
        }
        let main = place
            .write("p.mcl", program(&place, content))
            .display()
            .to_string();
        let is_full = below(4) == 0;
        if is_full {
            // Until nothing fits any more.
            let _ = std::fs::write(&ballast, vec![b'x'; 1 << 20]);
        }
        let is_converged = killed(&place, &main, below(45), is_full);
        let _ = std::fs::remove_file(&ballast);
        killed_with_it += 1;
        if let Some(log) = done.take().filter(|_| repeats) {
            assert_eq!(text(&place.path("log")), log, "round {round}");
        }
        // A process converges a moment before it records that. A run with `--once` ends only after it has recorded everything.
        let is_checked = is_converged || below(6) == 0;
        if is_checked {
            let finished = run(&place, &["--once", &main]);
            assert_eq!(finished.code, 0, "round {round}: {}", finished.stderr);
            done = Some(text(&place.path("log")));
            assert_eq!(text(&place.path("a")), content.to_string());
            for command in ["first", "second"] {
                let runs = lines_of(&place, &format!("{command} {content}"));
                assert!(
                    (1..=killed_with_it + 1).contains(&runs),
                    "round {round}: {command} ran {runs} times"
                );
            }
        }
        assert_eq!(set_aside(prefix.path()), [] as [String; 0], "round {round}");
    }
}
