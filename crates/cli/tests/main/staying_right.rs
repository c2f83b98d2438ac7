//! What is tried again, and what is not: the real binary on directories and file systems that come, go and fill up.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use setpoint_testing::{Hermetic, Running};

use crate::end_to_end::{Engine, run, run_command, text};

/// A directory that is unmounted at the end, also of a test that fails.
pub(crate) struct Mounted(std::path::PathBuf);

impl Mounted {
    pub(crate) fn small(place: &Hermetic, name: &str) -> Mounted {
        let path = place.path(name);
        std::fs::create_dir(&path).expect("a place of its own");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "none"])
            .arg(&path)
            .status();
        assert!(
            mounted.expect("mount is there").success(),
            "tests are run by root"
        );
        Mounted(path)
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        &self.0
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_directory_that_was_moved_away_and_back_is_looked_after_again() {
    let place = Hermetic::new();
    let (directory, away) = (place.path("directory"), place.path("away"));
    std::fs::create_dir(&directory).unwrap();
    let file = directory.join("file");
    let name = file.display().to_string();
    let program = format!("file \"{name}\" {{\n\tcontent => \"right\",\n}}\n");
    let program = place.write("p.mcl", program).display().to_string();
    let mut engine = Engine::start(&place, &["--converger-timeout", "0", &program]);
    engine.repaired("file", &name);
    for _ in 0..3 {
        std::fs::rename(&directory, &away).unwrap();
        engine.event("the failure", |event| event["event"] == "backing off");
        std::fs::write(away.join("file"), "wrong").unwrap();
        std::fs::rename(&away, &directory).unwrap();
        engine.repaired_until("file", &name, || text(&file) == "right");
    }
    engine.stop();
}

#[test]
fn what_must_not_be_written_is_told_and_tried_until_it_may() {
    let place = Hermetic::new();
    let directory = place.path("directory");
    std::fs::create_dir(&directory).unwrap();
    let file = directory.join("file");
    let name = file.display().to_string();
    let program = format!("file \"{name}\" {{\n\tcontent => \"right\",\n}}\n");
    let program = place.write("p.mcl", program).display().to_string();
    let mode = |mode| std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o555);
    // Root may write anywhere: without that, it is like everybody else.
    let run = run_command(&place, &["--converger-timeout", "0", &program]);
    let mut limited = place.command("setpriv");
    let rights = "-dac_override,-dac_read_search,-fowner";
    limited.args(["--bounding-set", rights, "--inh-caps", rights, "--"]);
    limited.arg(run.get_program()).args(run.get_args());
    let mut engine = Engine::of(Running::start(limited));
    let failed = engine.event("the failure", |event| event["event"] == "backing off");
    let error = failed["error"].as_str().unwrap();
    assert!(error.to_lowercase().contains("permission denied"), "{error}");
    assert!(error.contains(directory.to_str().unwrap()), "{error}");
    assert!(!file.exists());
    mode(0o755);
    engine.repaired("file", &name);
    assert_eq!(text(&file), "right");
    engine.stop();
}

#[test]
fn a_full_file_system_is_tried_until_there_is_space() {
    let place = Hermetic::new();
    let mounted = Mounted::small(&place, "small");
    let (file, ballast) = (mounted.0.join("file"), mounted.0.join("ballast"));
    let name = file.display().to_string();
    let content = "right ".repeat(4_000);
    let program = format!("file \"{name}\" {{\n\tcontent => \"{content}\",\n}}\n");
    let program = place.write("p.mcl", program).display().to_string();
    std::fs::write(&ballast, vec![b'x'; 60_000]).unwrap();
    let mut engine = Engine::start(&place, &["--converger-timeout", "0", &program]);
    let failed = engine.event("the failure", |event| event["event"] == "not repaired");
    assert_eq!(failed["name"], name.as_str());
    engine.event("a further failure", |event| event["event"] == "backing off");
    // What waits for a further try does not keep the host from being quiet.
    engine.event("quiet", |event| event["event"] == "converged");
    std::fs::remove_file(&ballast).unwrap();
    engine.repaired("file", &name);
    assert!(text(&file) == content);
    engine.stop();
}

#[test]
fn a_full_disk_below_the_prefix_keeps_no_process_from_its_work() {
    let place = Hermetic::new();
    let mounted = Mounted::small(&place, "prefix");
    std::fs::set_permissions(mounted.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let ballast = std::fs::write(mounted.path().join("ballast"), vec![b'x'; 1 << 20]);
    assert!(ballast.is_err(), "it is full");
    let file = place.path("file");
    let name = file.display().to_string();
    let program = format!("file \"{name}\" {{\n\tcontent => \"right\",\n}}\n");
    let program = place.write("p.mcl", program).display().to_string();
    let mut engine = Engine::start(&place, &[&program]);
    engine.repaired("file", &name);
    assert_eq!(text(&file), "right");
    engine.stop();
}

#[test]
fn a_run_that_ends_when_converged_ends_with_1_while_something_fails() {
    let place = Hermetic::new();
    let program = "file \"/proc/no/such/place\" {\n\tcontent => \"x\",\n}\n";
    let program = place.write("p.mcl", program).display().to_string();
    let ways: [&[&str]; 2] = [&["--converger-timeout", "1", "--converged-exit"], &["--once"]];
    for arguments in ways {
        let mut arguments = arguments.to_vec();
        arguments.push(&program);
        let finished = run(&place, &arguments);
        assert_eq!(finished.code, 1, "{}", finished.stderr);
        assert!(
            finished.stderr.contains("/proc/no/such/place"),
            "{}",
            finished.stderr
        );
    }
}

#[test]
fn a_repair_that_fails_never_says_that_it_was_made() {
    let place = Hermetic::new();
    let program = "exec \"no\" {\n\tcmd => \"/bin/false\",\n}\n";
    let program = place.write("p.mcl", program).display().to_string();
    let finished = run(&place, &["--json", "--once", &program]);
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    let events: Vec<serde_json::Value> = finished
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let told: Vec<&str> = events
        .iter()
        .filter_map(|event| event["event"].as_str())
        .filter(|event| event.contains("repair") || ["drift", "run ended"].contains(event))
        .collect();
    assert_eq!(told, ["drift", "repairing", "not repaired", "run ended"]);
}

#[test]
fn what_depends_on_a_file_never_sees_it_wrong() {
    let place = Hermetic::new();
    let (file, seen) = (place.path("file"), place.path("seen"));
    let name = file.display().to_string();
    let program = format!(
        "file \"{name}\" {{\n\tcontent => \"right\",\n}}\nexec \"look\" {{\n\tcmd => \"cat {name} >> {}; echo >> {}\",\n\tshell => \"/bin/sh\",\n\twatchfiles => [\"{name}\",],\n\tDepend => File[\"{name}\"],\n}}\n",
        seen.display(),
        seen.display()
    );
    let program = place.write("p.mcl", program).display().to_string();
    let mut engine = Engine::start(&place, &[&program]);
    // A change while a look is under way would be seen by it, and rightly so. More than ten would be a fight.
    let is_quiet = |event: &serde_json::Value| event["event"] == "converged";
    engine.event("the first quiet moment", is_quiet);
    for _ in 0..9 {
        std::fs::write(place.path("other"), "wrong").unwrap();
        std::fs::rename(place.path("other"), &file).unwrap();
        engine.event("the next quiet moment", is_quiet);
    }
    engine.stop();
    let seen = text(&seen);
    assert!(seen.lines().count() >= 10, "{seen}");
    assert!(seen.lines().all(|line| line == "right"), "{seen}");
}

#[test]
fn a_timer_makes_a_periodic_job() {
    let place = Hermetic::new();
    let program = "timer \"often\" {\n\tinterval => 1,\n\tNotify => Test[\"job\"],\n}\ntest \"job\" {}\n";
    let program = place.write("p.mcl", program).display().to_string();
    let mut engine = Engine::start(&place, &[&program]);
    for _ in 0..2 {
        engine.event("a tick", |event| {
            event["event"] == "tick" && event["name"] == "often"
        });
        engine.event("a notification", |event| {
            event["event"] == "refresh pending" && event["name"] == "job" && event["by"] == "timer[often]"
        });
    }
    engine.stop();
}

#[test]
fn two_files_with_one_path_are_named_and_do_not_go_on_for_ever() {
    let place = Hermetic::new();
    let name = place.path("file").display().to_string();
    let source = place.write("source", "two").display().to_string();
    // The same path, also in another spelling.
    for spelling in [
        name.clone(),
        name.replacen('/', "//", 1),
        name.replace("/file", "/./file"),
    ] {
        let program = |contents: &str| {
            let text = format!(
                "file \"{name}\" {{\n\tcontent => \"one\",\n}}\nfile \"other\" {{\n\tpath => \"{spelling}\",\n\t{contents},\n}}\n"
            );
            place.write("p.mcl", text).display().to_string()
        };
        let refused = run(&place, &["--once", &program("content => \"two\"")]);
        assert!(
            refused.stderr.contains("wants something else of the content of"),
            "{}",
            refused.stderr
        );
        assert_eq!((refused.code, place.path("file").exists()), (1, false));
        // The contents of a source are not known before the run.
        let finished = run(
            &place,
            &[
                "--once",
                &program(&format!("source => \"{source}\",\n\tstate => \"exists\"")),
            ],
        );
        let names = "`file[$DIR/file]` and `file[other]` manage the same path";
        assert!(finished.stderr.contains(names), "{}", finished.stderr);
        assert!(
            finished.stderr.contains("2 undone by something else"),
            "{}",
            finished.stderr
        );
        assert_eq!(finished.code, 1, "{}", finished.stderr);
        std::fs::remove_file(place.path("file")).expect("it was made");
    }
}
