//! New contents that a command of the program checks before they take the place of the old ones, with the real binary.

use std::process::Command;

use setpoint_testing::{Finished, Hermetic};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

fn run(place: &Hermetic, program: &str, more: &[&str]) -> Finished {
    let program = place.write("p.mcl", program).display().to_string();
    let prefix = place.path("prefix").display().to_string();
    let mut arguments = vec!["run", "--once", "--no-raise-limits", "--state-dir", &prefix];
    arguments.extend(more);
    arguments.push(&program);
    place.run(BINARY, &arguments)
}

/// Whether this machine lets us make mount namespaces. If not, says that the test is left out.
#[expect(clippy::print_stderr, reason = "it says why a test is left out")]
fn can_mount() -> bool {
    let tried = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "true"])
        .status();
    let can = tried.is_ok_and(|status| status.success());
    if !can {
        eprintln!("left out: no rights to make a mount namespace");
    }
    can
}

/// Programs that keep `conf.d/a.conf` with this content, each by another kind or parameter.
fn programs(place: &Hermetic, content: &str, validate: &str) -> Vec<(&'static str, String)> {
    let directory = place.path("conf.d").display().to_string();
    let source = place
        .write("source", format!("{content}\n"))
        .display()
        .to_string();
    let reload = format!(
        "exec \"reload\" {{\n\tcmd => \"echo ran >> {}\",\n\tshell => \"/bin/sh\",\n\trefresh_only => true,\n}}\n",
        place.path("reloads").display()
    );
    let rest = format!("\tvalidate => \"{validate}\",\n\tNotify => Exec[\"reload\"],\n}}\n{reload}");
    let file = format!("{directory}/a.conf");
    vec![
        (
            "content",
            format!("file \"{file}\" {{\n\tcontent => \"{content}\\n\",\n{rest}"),
        ),
        (
            "source",
            format!("file \"{file}\" {{\n\tstate => \"exists\",\n\tsource => \"{source}\",\n{rest}"),
        ),
        (
            "fragments",
            format!("file \"{file}\" {{\n\tfragments => [\"{source}\",],\n{rest}"),
        ),
        (
            "line",
            format!(
                "line \"l\" {{\n\tfile => \"{file}\",\n\tstate => \"exists\",\n\tcontent => \"{content}\",\n{rest}"
            ),
        ),
        (
            "block",
            format!(
                "block \"b\" {{\n\tfile => \"{file}\",\n\tstate => \"exists\",\n\tcontent => \"{content}\\n\",\n{rest}"
            ),
        ),
    ]
}

#[test]
fn a_mistake_is_found_before_anybody_can_read_it_also_by_a_plan() {
    if !can_mount() {
        return;
    }
    for is_new in [true, false] {
        for kind in 0..5 {
            let place = Hermetic::new();
            let (file, other) = (place.path("conf.d/a.conf"), place.path("conf.d/b.conf"));
            place.write("conf.d/b.conf", "include\n");
            if !is_new {
                place.write("conf.d/a.conf", "old\n");
            }
            // It looks at the whole configuration, as a service does.
            let check = format!(
                "cat {0}/*; grep -q include {0}/b.conf || exit 3; ! grep -q broken {0}/*",
                place.path("conf.d").display()
            );
            let check = place.write("check.sh", check).display().to_string();
            let validate = format!("/bin/sh {check}");
            let was = std::fs::read_to_string(&file).ok();
            let (name, program) = programs(&place, "broken", &validate).swap_remove(kind);
            for more in [&["--noop"][..], &[], &[]] {
                let refused = run(&place, &program, more);
                let told = format!("{name}, new: {is_new}, {more:?}: {}", refused.stderr);
                assert_eq!(refused.code, 1, "{told}");
                for wanted in ["`validate` says: ", "broken", "refuses them: exit status 1"] {
                    assert!(refused.stderr.contains(wanted), "{wanted}: {told}");
                }
                assert_eq!(std::fs::read_to_string(&file).ok(), was, "{told}");
                assert!(!place.path("reloads").exists(), "{told}");
            }
            assert_eq!(std::fs::read_to_string(&other).unwrap(), "include\n");
            let (_, program) = programs(&place, "good", &validate).swap_remove(kind);
            let planned = run(&place, &program, &["--noop"]);
            assert_eq!(
                (planned.code, std::fs::read_to_string(&file).ok()),
                (0, was),
                "{name}"
            );
            for _ in 0..2 {
                let right = run(&place, &program, &[]);
                assert_eq!(right.code, 0, "{name}: {}", right.stderr);
                assert!(
                    std::fs::read_to_string(&file).unwrap().contains("good\n"),
                    "{name}"
                );
                assert_eq!(std::fs::read_to_string(place.path("reloads")).unwrap(), "ran\n");
            }
        }
    }
}

#[test]
fn a_document_that_is_edited_is_checked_as_well() {
    if !can_mount() {
        return;
    }
    let place = Hermetic::new();
    let file = place
        .write("a.json", "{\"level\": \"info\"}\n")
        .display()
        .to_string();
    let check = place
        .write("check.sh", "! grep broken \"$1\"")
        .display()
        .to_string();
    let program = |level: &str| {
        format!(
            "json:edit \"{file}\" {{\n\tedits => [\".level = \\\"{level}\\\"\",],\n\tvalidate => \"/bin/sh {check} {{}}\",\n}}\n"
        )
    };
    for more in [&["--noop"][..], &[]] {
        let refused = run(&place, &program("broken"), more);
        assert_eq!(refused.code, 1, "{}", refused.stderr);
        assert!(
            refused.stderr.contains("`validate` says: {"),
            "{}",
            refused.stderr
        );
        assert!(std::fs::read_to_string(&file).unwrap().contains("info"));
    }
    let right = run(&place, &program("warn"), &[]);
    assert_eq!(right.code, 0, "{}", right.stderr);
    assert!(std::fs::read_to_string(&file).unwrap().contains("warn"));
}

#[test]
fn a_command_sees_the_final_path_owner_and_mode_and_the_target_of_a_link() {
    if !can_mount() {
        return;
    }
    let place = Hermetic::new();
    place.write("real/a.conf", "old\n");
    std::os::unix::fs::symlink(place.path("real/a.conf"), place.path("link")).unwrap();
    let link = place.path("link").display().to_string();
    let check = "test \"$(cat \"$1\")\" = new && test \"$(stat -L -c %a \"$1\")\" = 640 && test -L \"$1\"";
    let check = place.write("check.sh", check).display().to_string();
    let program = format!(
        "file \"{link}\" {{\n\tcontent => \"new\\n\",\n\tmode => \"0640\",\n\tvalidate => \"/bin/sh {check} {{}}\",\n}}\n"
    );
    let right = run(&place, &program, &[]);
    assert_eq!(right.code, 0, "{}", right.stderr);
    assert_eq!(
        std::fs::read_to_string(place.path("real/a.conf")).unwrap(),
        "new\n"
    );
}

#[test]
fn a_command_that_does_not_end_or_does_not_exist_leaves_the_old_contents() {
    if !can_mount() {
        return;
    }
    let place = Hermetic::new();
    let file = place.write("a.conf", "old\n").display().to_string();
    let program =
        |validate: &str| format!("file \"{file}\" {{\n\tcontent => \"new\\n\",\n\t{validate}\n}}\n");
    let cases = [
        (
            "validate => \"/bin/sleep 600\",\n\tvalidate_timeout => \"100ms\",",
            1,
            "did not end within 0.1 s",
        ),
        (
            "validate => \"/no/such/program\",",
            1,
            "there is no program /no/such/program",
        ),
        (
            "validate => \"nginx -t\",",
            1,
            "`nginx` is not an absolute path of a program",
        ),
        (
            "validate_timeout => \"10s\",",
            1,
            "there is no `validate` that it could limit",
        ),
    ];
    for (validate, code, wanted) in cases {
        let refused = run(&place, &program(validate), &[]);
        assert_eq!(refused.code, code, "{validate}: {}", refused.stderr);
        assert!(refused.stderr.contains(wanted), "{validate}: {}", refused.stderr);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "old\n", "{validate}");
    }
    // Another resource may install the program first.
    let planned = run(&place, &program("validate => \"/no/such/program\","), &["--noop"]);
    assert_eq!(planned.code, 0, "{}", planned.stderr);
    assert!(
        planned.stderr.contains("the new contents are not validated"),
        "{}",
        planned.stderr
    );
}
