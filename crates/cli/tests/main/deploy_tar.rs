//! The kind `deploy:tar` where nothing is deployed: the files of the program that runs.

use setpoint_testing::Hermetic;

use crate::end_to_end::{Engine, run};

/// What is in an archive: names, one a line.
fn listed(place: &Hermetic, archive: &str) -> String {
    let mut tar = place.command("tar");
    let ran = tar.args(["-tPf", archive]).output().expect("it can be started");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).expect("it is text")
}

/// The text of a member.
fn member(place: &Hermetic, archive: &str, name: &str) -> String {
    let mut tar = place.command("tar");
    let ran = tar
        .args(["-xPOf", archive, name])
        .output()
        .expect("it can be started");
    String::from_utf8(ran.stdout).expect("it is text")
}

#[test]
fn a_program_archives_itself_and_follows_when_it_changes() {
    let place = Hermetic::new();
    let archive = place.path("out.tar").display().to_string();
    let program = format!("import \"part/\"\ndeploy:tar \"{archive}\" {{}}\n");
    place.write("program/main.mcl", &program);
    place.write("program/metadata.yaml", "main: \"main.mcl\"\nfiles: \"files/\"\n");
    place.write("program/files/a", "one\n");
    place.write("program/part/main.mcl", "$x = 1\n");
    place.write("program/part/metadata.yaml", "main: \"main.mcl\"\n");
    // What is beside a program, or outside of it, does not belong to it.
    place.write("program/notes", "mine\n");
    std::os::unix::fs::symlink("/etc/passwd", place.path("program/files/out")).unwrap();
    let directory = place.path("program/").display().to_string();
    let finished = run(&place, &["--once", "--noop", &directory]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert!(!place.path("out.tar").exists());
    let finished = run(&place, &["--once", &directory]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_eq!(
        listed(&place, &archive),
        "/files/\n/files/a\n/main.mcl\n/metadata.yaml\n/part/\n/part/main.mcl\n/part/metadata.yaml\n"
    );
    let before = std::fs::read(&archive).unwrap();
    let finished = run(&place, &["--once", "--detailed-exitcode", &directory]);
    assert_eq!(finished.code, 0, "it is right: {}", finished.stderr);
    assert_eq!(std::fs::read(&archive).unwrap(), before);
    // With `--watch` another text is another program.
    let mut engine = Engine::start(&place, &["--watch", &directory]);
    engine.event("the graph", |event| event["event"] == "graph swapped");
    place.write("program/main.mcl", format!("# new\n{program}"));
    engine.repaired_until("deploy:tar", &archive, || {
        member(&place, &archive, "/main.mcl").starts_with("# new\n")
    });
    engine.stop();
}

#[test]
fn code_of_a_command_line_is_a_file_too_and_wrong_paths_are_refused() {
    let place = Hermetic::new();
    let archive = place.path("out.tar").display().to_string();
    let code = format!("deploy:tar \"{archive}\" {{ format => $const.res.tar.format.ustar, }}");
    let finished = run(&place, &["--once", &code]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert_eq!(listed(&place, &archive), "/main.mcl\n/metadata.yaml\n");
    assert_eq!(member(&place, &archive, "/main.mcl").trim_end(), code);
    assert_eq!(member(&place, &archive, "/metadata.yaml"), "main: \"main.mcl\"\n");
    for (wrong, wanted) in [
        ("deploy:tar \"out.tar\" {}", "the path is not absolute"),
        ("deploy:tar \"/srv/\" {}", "must be a file: it ends in a slash"),
        (
            "deploy:tar \"/x\" { format => 3, }",
            "must be 0, 2 for ustar, 4 for pax or 8 for GNU",
        ),
    ] {
        let finished = run(&place, &["--once", wrong]);
        assert_eq!(finished.code, 1);
        assert!(finished.stderr.contains(wanted), "{}", finished.stderr);
    }
}
