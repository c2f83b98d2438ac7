//! `Meta:reverse` with the real binary: what left the program is undone, once, whatever happens to the process meanwhile.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use setpoint_testing::{Hermetic, Running};

use crate::end_to_end::{Engine, run, run_command, text};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");
const NOTHING: &str = "noop \"nothing\" {}\n";

fn reversed(path: &Path, parameters: &str) -> String {
    format!(
        "file \"{}\" {{\n{parameters}\tMeta:reverse => true,\n}}\n",
        path.display()
    )
}

fn once(place: &Hermetic, program: &str) -> String {
    let program = place.write("p.mcl", program).display().to_string();
    let finished = run(place, &["--once", &program]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    finished.stderr
}

fn records(place: &Hermetic) -> Vec<PathBuf> {
    let Ok(listed) = std::fs::read_dir(place.path("prefix/engine/reversals")) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = listed.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

#[test]
fn a_file_returns_to_its_old_bytes_mode_and_owner_also_after_a_restart() {
    let place = Hermetic::new();
    let file = place.write("file", [0xff, b'\n', 0, b'x']);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o4640)).unwrap();
    std::os::unix::fs::chown(&file, Some(1234), Some(4321)).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o4640)).unwrap();
    let program = reversed(
        &file,
        "\tcontent => \"new\",\n\tmode => \"0600\",\n\towner => \"0\",\n\tgroup => \"0\",\n",
    );
    once(&place, &program);
    assert_eq!(text(&file), "new");
    let record = &records(&place)[0];
    assert_eq!(std::fs::metadata(record).unwrap().mode() & 0o7777, 0o600);
    let directory = std::fs::metadata(record.parent().unwrap()).unwrap();
    assert_eq!(directory.mode() & 0o7777, 0o700);
    // Changed while it is in the program, and once more applied.
    once(&place, &program.replace("new", "newer"));
    let said = once(&place, NOTHING);
    assert!(said.contains("undone content"), "{said}");
    assert!(said.contains("1 undone"), "{said}");
    assert_eq!(std::fs::read(&file).unwrap(), [0xff, b'\n', 0, b'x']);
    let found = std::fs::metadata(&file).unwrap();
    assert_eq!(
        (found.uid(), found.gid(), found.mode() & 0o7777),
        (1234, 4321, 0o4640)
    );
    assert_eq!(records(&place), Vec::<PathBuf>::new());
    // From here on it is the administrator's own.
    std::fs::write(&file, "by hand").unwrap();
    once(&place, NOTHING);
    assert_eq!(text(&file), "by hand");
}

#[test]
fn a_file_that_was_not_there_is_removed() {
    let place = Hermetic::new();
    let (made, stated) = (place.path("made"), place.path("stated"));
    let program = reversed(&made, "\tcontent => \"x\",\n")
        + &reversed(&stated, "\tstate => \"exists\",\n\tmode => \"0600\",\n");
    once(&place, &program);
    assert!(made.exists() && stated.exists());
    once(&place, NOTHING);
    assert!(!made.exists() && !stated.exists());
}

#[test]
fn a_file_that_was_removed_comes_back() {
    let place = Hermetic::new();
    let file = place.write("file", "precious");
    once(&place, &reversed(&file, "\tstate => \"absent\",\n"));
    assert!(!file.exists());
    once(&place, NOTHING);
    assert_eq!(text(&file), "precious");
}

#[test]
fn what_leaves_while_we_run_is_undone_and_what_comes_back_is_recorded_anew() {
    let place = Hermetic::new();
    let file = place.write("file", "old");
    let name = file.display().to_string();
    let program = reversed(&file, "\tcontent => \"new\",\n");
    let path = place.write("p.mcl", &program);
    let mut engine = Engine::start(&place, &["--watch", &path.display().to_string()]);
    engine.repaired("file", &name);
    for _ in 0..3 {
        place.write("p.mcl", NOTHING);
        engine.event("the undoing", |event| event["event"] == "undone");
        assert_eq!(text(&file), "old");
        engine.event("the end", |event| {
            event["event"] == "removed" && event["name"] == name.as_str()
        });
        place.write("p.mcl", &program);
        engine.repaired_until("file", &name, || text(&file) == "new");
    }
    engine.stop();
    assert_eq!(text(&file), "new", "stopping undoes nothing");
}

#[test]
fn without_reverse_the_record_is_forgotten() {
    let place = Hermetic::new();
    let file = place.write("file", "old");
    let program = reversed(&file, "\tcontent => \"new\",\n");
    once(&place, &program);
    once(&place, &program.replace("\tMeta:reverse => true,\n", ""));
    assert_eq!(records(&place), Vec::<PathBuf>::new());
    once(&place, NOTHING);
    assert_eq!(text(&file), "new");
}

#[test]
fn noop_and_graph_tell_what_would_be_undone_and_leave_it() {
    let place = Hermetic::new();
    let file = place.write("file", "old");
    let program = reversed(&file, "\tcontent => \"new\",\n");
    let path = place.write("p.mcl", &program).display().to_string();
    let noop = run(&place, &["--once", "--noop", &path]);
    assert_eq!(noop.code, 0, "{}", noop.stderr);
    assert_eq!(
        records(&place),
        Vec::<PathBuf>::new(),
        "nothing is applied, nothing is kept"
    );
    once(&place, &program);
    let path = place.write("p.mcl", NOTHING).display().to_string();
    let noop = run(&place, &["--once", "--noop", "--detailed-exitcode", &path]);
    assert_eq!(noop.code, 2, "{}", noop.stderr);
    assert!(noop.stderr.contains("would undo content"), "{}", noop.stderr);
    assert!(noop.stderr.contains("1 to undo, 1 unchanged"), "{}", noop.stderr);
    assert_eq!(text(&file), "new");

    let prefix = place.path("prefix").display().to_string();
    let graph = |format: &str| {
        let binary = env!("CARGO_BIN_EXE_setpoint");
        let finished = place.run(
            binary,
            &["graph", "--state-dir", &prefix, "--format", format, &path],
        );
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        finished.stdout
    };
    let shown = graph("text");
    assert!(
        shown.contains("file \"$DIR/file\" (undone, because it left the program)"),
        "{shown}"
    );
    assert!(shown.contains("content => \"old\""), "{shown}");
    assert!(graph("json").contains("\"reversal\":true"), "{}", graph("json"));
    assert!(
        graph("dot").contains("label=\"undo file[$DIR/file]\""),
        "{}",
        graph("dot")
    );

    once(&place, NOTHING);
    assert_eq!(text(&file), "old");
    assert!(!graph("text").contains("undone"), "{}", graph("text"));
}

#[test]
fn status_says_what_is_being_undone() {
    let place = Hermetic::new();
    let file = place.write("file", "old");
    once(&place, &reversed(&file, "\tcontent => \"new\",\n"));
    let path = place.write("p.mcl", NOTHING).display().to_string();
    let mut engine = Engine::start(&place, &["--noop", "--converger-timeout", "0", &path]);
    engine.event("quiet", |event| event["event"] == "converged");
    let prefix = place.path("prefix").display().to_string();
    let binary = env!("CARGO_BIN_EXE_setpoint");
    let status = place.run(binary, &["status", "--state-dir", &prefix, "--all"]);
    assert!(
        status.stdout.contains("undone, because it left the program"),
        "{} {}",
        status.stdout,
        status.stderr
    );
    engine.stop();
}

#[test]
fn what_is_secret_is_in_the_record_alone() {
    let place = Hermetic::new();
    let file = place.write("file", "old-password");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    // What was recorded openly becomes secret with a later program.
    once(&place, &reversed(&file, "\tcontent => \"public\",\n"));
    let secret = reversed(&file, "\tcontent => sensitive(\"new-password\"),\n");
    once(&place, &secret);
    assert_eq!(text(&file), "new-password");
    let path = place.write("p.mcl", NOTHING).display().to_string();
    let prefix = place.path("prefix").display().to_string();
    let binary = env!("CARGO_BIN_EXE_setpoint");
    for format in ["text", "json", "dot"] {
        let shown = place.run(
            binary,
            &["graph", "--state-dir", &prefix, "--format", format, &path],
        );
        assert!(!shown.stdout.contains("password"), "{}", shown.stdout);
    }
    let noop = run(&place, &["--once", "--noop", "-vv", &path]);
    let done = run(&place, &["--once", "--json", &path]);
    for said in [&noop.stderr, &noop.stdout, &done.stderr, &done.stdout] {
        assert!(!said.contains("password"), "{said}");
    }
    assert!(done.stdout.contains("(sensitive)"), "{}", done.stdout);
    assert_eq!(text(&file), "old-password");
}

#[test]
fn a_received_secret_is_not_shown_when_it_is_undone() {
    let place = Hermetic::new();
    let file = place.write("file", "before");
    let program = "value \"v\" {\n\tany => sensitive(\"pass-word\"),\n}\n".to_owned()
        + &reversed(&file, "")
        + &format!("Value[\"v\"].any -> File[\"{}\"].content\n", file.display());
    once(&place, &program);
    assert_eq!(text(&file), "pass-word");
    let said = once(&place, NOTHING);
    assert!(said.contains("undone content"), "{said}");
    assert!(!said.contains("pass-word"), "{said}");
    assert_eq!(text(&file), "before");
}

#[test]
fn a_record_that_cannot_be_used_is_told_and_set_aside() {
    for damage in ["rubbish", "setpoint-state 99\n{}", "setpoint-state 1\n{\"kind\":"] {
        let place = Hermetic::new();
        let file = place.write("file", "old");
        once(&place, &reversed(&file, "\tcontent => \"new\",\n"));
        let record = records(&place).remove(0);
        std::fs::write(&record, damage).unwrap();
        let noop = run(
            &place,
            &[
                "--once",
                "--noop",
                &place.write("p.mcl", NOTHING).display().to_string(),
            ],
        );
        assert!(noop.stderr.contains("is not used"), "{}", noop.stderr);
        assert!(record.exists(), "under noop nothing is moved");
        let said = once(&place, NOTHING);
        assert!(said.contains("set-aside"), "{said}");
        assert_eq!(text(&file), "new");
        let aside = format!("{}.set-aside", record.display());
        assert_eq!(text(Path::new(&aside)), damage);
        assert!(!once(&place, NOTHING).contains("set-aside"), "it is told once");
        // What is applied from now on is recorded again.
        once(&place, &reversed(&file, "\tcontent => \"newer\",\n"));
        once(&place, NOTHING);
        assert_eq!(text(&file), "new");
    }
}

#[test]
fn what_cannot_be_undone_is_not_applied() {
    let place = Hermetic::new();
    let directory = place.path("directory");
    let program = format!(
        "file \"{}/\" {{\n\tstate => \"exists\",\n\tMeta:reverse => true,\n}}\n",
        directory.display()
    );
    let program = place.write("p.mcl", program).display().to_string();
    let finished = run(&place, &["--once", &program]);
    assert_eq!(
        (finished.code, directory.exists()),
        (1, false),
        "{}",
        finished.stderr
    );
    assert!(
        finished.stderr.contains("a directory cannot be reversed"),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_directory_that_came_in_the_place_of_a_file_stays_and_what_to_do_is_said() {
    // Contents come back, and a file that was not there is removed.
    for parameters in [
        "\tcontent => \"new\",\n",
        "\tstate => \"exists\",\n\trecurse => true,\n",
    ] {
        let place = Hermetic::new();
        let file = place.write("file", "old");
        let name = file.display().to_string();
        once(&place, &reversed(&file, parameters));
        std::fs::remove_file(&file).unwrap();
        place.write("file/kept", "mine");
        let program = place.write("p.mcl", NOTHING).display().to_string();
        let mut engine = Engine::start(&place, &[&program]);
        let failed = engine.event("the failure", |event| event["event"] == "backing off");
        let why = failed["error"].as_str().unwrap_or_default();
        assert!(
            why.ends_with(": it is a directory now, which is not undone: move it away"),
            "{why}"
        );
        assert_eq!(text(&file.join("kept")), "mine");
        assert_eq!(records(&place).len(), 1);
        std::fs::rename(&file, place.path("aside")).unwrap();
        engine.event("the end", |event| {
            event["event"] == "removed" && event["name"] == name.as_str()
        });
        assert_eq!(records(&place), Vec::<PathBuf>::new());
        assert_eq!(text(&place.path("aside/kept")), "mine");
        assert_eq!(file.exists(), parameters.contains("content"));
        engine.stop();
    }
}

#[test]
fn what_is_undone_is_at_the_path_as_it_leads_now() {
    let place = Hermetic::new();
    let file = place.write("app/config", "old");
    once(&place, &reversed(&file, "\tcontent => \"new\",\n"));
    // Whoever we are has moved the directory, and put a link in its place: as for a program's own file, it is followed.
    let link = |to: &str| std::os::unix::fs::symlink(place.path(to), place.path("app")).unwrap();
    std::fs::rename(place.path("app"), place.path("moved")).unwrap();
    link("moved");
    once(&place, NOTHING);
    assert_eq!(text(&place.path("moved/config")), "old");
    assert!(place.path("app").is_symlink());
    assert_eq!(records(&place), Vec::<PathBuf>::new());

    // The link of somebody else is not.
    if !crate::control::is_root() {
        return;
    }
    once(&place, &reversed(&file, "\tcontent => \"new\",\n"));
    std::fs::remove_file(place.path("app")).unwrap();
    place.write("victim/config", "victim's");
    link("victim");
    std::os::unix::fs::lchown(place.path("app"), Some(65534), None).unwrap();
    let program = place.write("p.mcl", NOTHING).display().to_string();
    let refused = run(&place, &["--once", &program]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    let why = "failed to follow the link $DIR/app/config: uid 65534 controls it";
    assert!(refused.stderr.contains(why), "{}", refused.stderr);
    assert_eq!(text(&place.path("victim/config")), "victim's");
    assert_eq!(records(&place).len(), 1, "it is tried again");
}

#[test]
fn another_name_for_a_path_is_another_resource_with_a_record_of_its_own() {
    let place = Hermetic::new();
    let file = place.write("file", "old");
    let named = |name: &str, content: &str| {
        let path = file.display();
        format!(
            "file \"{name}\" {{\n\tpath => \"{path}\",\n\tcontent => \"{content}\",\n\tMeta:reverse => true,\n}}\n"
        )
    };
    once(&place, &named("one", "first"));
    once(&place, &named("two", "second"));
    assert_eq!(text(&file), "second", "who is in the program has the last word");
    assert_eq!(records(&place).len(), 1, "the first is undone");
    // What the second found may be what the first had written, or what undoing the first brought back.
    once(&place, NOTHING);
    assert!(["first", "old"].contains(&&*text(&file)), "{}", text(&file));
    assert_eq!(records(&place), Vec::<PathBuf>::new());
    // The name is kept, and so is the record.
    place.write("file", "old");
    once(&place, &named("one", "first"));
    once(&place, &named("one", "second"));
    once(&place, NOTHING);
    assert_eq!(text(&file), "old");
}

#[test]
fn a_resource_waits_until_there_is_space_for_its_record() {
    let place = Hermetic::new();
    let mounted = crate::staying_right::Mounted::small(&place, "prefix");
    std::fs::set_permissions(mounted.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let ballast = mounted.path().join("ballast");
    let file = place.write("file", "old ".repeat(5_000));
    let name = file.display().to_string();
    let program = place.write("p.mcl", reversed(&file, "\tcontent => \"new\",\n"));
    let mut engine = Engine::start(&place, &[&program.display().to_string()]);
    engine.repaired("file", &name);
    engine.stop();
    std::fs::write(&file, "old ".repeat(5_000)).unwrap();
    for record in records(&place) {
        std::fs::remove_file(record).unwrap();
    }
    std::fs::write(&ballast, vec![b'x'; 45_000]).unwrap();
    let mut engine = Engine::start(&place, &[&program.display().to_string()]);
    engine.event("the failure", |event| event["event"] == "backing off");
    assert_eq!(text(&file), "old ".repeat(5_000), "it is not applied");
    std::fs::remove_file(&ballast).unwrap();
    engine.repaired("file", &name);
    engine.stop();
    once(&place, NOTHING);
    assert_eq!(text(&file), "old ".repeat(5_000));
}

#[test]
fn what_another_resource_manages_now_is_as_that_one_wants() {
    for _ in 0..5 {
        let place = Hermetic::new();
        let file = place.write("file", "old");
        once(&place, &reversed(&file, "\tcontent => \"new\",\n"));
        let other = format!(
            "file \"other\" {{\n\tpath => \"{}\",\n\tcontent => \"other\",\n}}\n",
            file.display()
        );
        once(&place, &other);
        assert_eq!(text(&file), "other");
        assert_eq!(records(&place), Vec::<PathBuf>::new());
    }
}

fn kill(mut running: Running) {
    let status = Command::new("kill")
        .args(["-9", &running.id().to_string()])
        .status();
    assert!(status.expect("there is a `kill`").success());
    running.drain();
    let _ = running.finish();
}

#[test]
fn however_often_the_process_is_killed_everything_is_undone_to_what_it_was() {
    const FILES: usize = 12;
    let place = Hermetic::new();
    let file = |number: usize| place.path(&format!("files/{number}"));
    let was = |number: usize| (!number.is_multiple_of(3)).then(|| format!("old {number}"));
    let mut programs = ["new", "newer"].map(|content| {
        let files = (0..FILES).map(|number| {
            let content = format!("\tcontent => \"{content} {number}\",\n");
            reversed(&file(number), &content)
        });
        files.collect::<String>()
    });
    programs[1] += NOTHING;
    for number in 0..FILES {
        place.write(&format!("files/{number}"), was(number).unwrap_or_default());
        if was(number).is_none() {
            std::fs::remove_file(file(number)).unwrap();
        }
    }
    let mut state = 0x9e37_79b9_u64;
    let mut below = |bound: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    for _ in 0..40 {
        let program = [NOTHING, &programs[0], &programs[1]][below(3) as usize];
        let path = place.write("p.mcl", program).display().to_string();
        let mut running = Running::start(run_command(&place, &[&path]));
        // Killed after so many lines: anywhere between the first record and long after the last repair.
        let lines = below(120);
        let mut seen = 0;
        running.wait_for("so many events", |line| {
            seen += 1;
            seen > lines || line.contains("\"converged\"")
        });
        kill(running);
        for number in 0..FILES {
            let wanted = [
                was(number).unwrap_or_default(),
                format!("new {number}"),
                format!("newer {number}"),
            ];
            let is = text(&file(number));
            assert!(wanted.contains(&is), "{number}: {is}");
        }
    }
    once(&place, &programs[0]);
    once(&place, NOTHING);
    for number in 0..FILES {
        let is = file(number).exists().then(|| text(&file(number)));
        assert_eq!(is, was(number), "{number}");
    }
    assert_eq!(records(&place), Vec::<PathBuf>::new());
}

/// An ad-hoc program as root must not undo what the machine's own program manages.
#[test]
fn another_program_undoes_nothing_of_the_one_that_owns_the_state_directory() {
    let place = Hermetic::new();
    let state = place.path("state").display().to_string();
    let file = place.path("file").display().to_string();
    let own = format!("file \"{file}\" {{\n\tcontent => \"important\\n\",\n\tMeta:reverse => true,\n}}\n");
    let own = place.write("own.mcl", own).display().to_string();
    let other = place.write("other.mcl", "noop \"n\" {}\n").display().to_string();
    let once = |arguments: &[&str]| {
        place.run(
            BINARY,
            &[&["run", "--once", "--state-dir", &state], arguments].concat(),
        )
    };
    assert_eq!(once(&[&own]).code, 0);
    for program in [&*other, "noop \"code\" {}"] {
        let ran = once(&[program]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(
            ran.stderr
                .contains("own.mcl: the run undoes and withdraws none of its resources"),
            "{}",
            ran.stderr
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "important\n");
    }
    // It is still its own, and still undone when its own program no longer wants it.
    std::fs::write(&own, "noop \"n\" {}\n").unwrap();
    let ran = once(&[&own]);
    assert!(
        ran.code == 0 && !std::path::Path::new(&file).exists(),
        "{}",
        ran.stderr
    );
    // `--replace` undoes them.
    std::fs::write(
        &own,
        format!("file \"{file}\" {{\n\tcontent => \"again\\n\",\n\tMeta:reverse => true,\n}}\n"),
    )
    .unwrap();
    assert_eq!(once(&[&own]).code, 0);
    let ran = once(&["--replace", &other]);
    assert!(
        ran.code == 0 && !std::path::Path::new(&file).exists(),
        "{}",
        ran.stderr
    );
    assert!(!once(&[&other]).stderr.contains("belongs to"));
}

/// Code on the command line leaves the usual state directory alone.
#[test]
fn code_on_the_command_line_has_a_temporary_state_directory() {
    let place = Hermetic::new();
    let standard = place.path("standard");
    let run = |arguments: &[&str]| {
        let mut command = place.command(BINARY);
        command
            .env("STATE_DIRECTORY", &standard)
            .arg("run")
            .arg("--once")
            .args(arguments);
        command.output().unwrap().status.success()
    };
    assert!(run(&["noop \"n\" {}"]) && !standard.exists());
    let program = place.write("p.mcl", "noop \"n\" {}\n").display().to_string();
    assert!(run(&[&program]) && standard.exists());
}
