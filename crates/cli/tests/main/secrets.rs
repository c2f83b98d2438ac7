//! Sensitive values through everything that leaves the program: lines, JSON, drift, logs, and what it writes below its prefix.

use setpoint_testing::{Finished, Hermetic};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

const SECRET: &str = "hunter7-is-secret";

fn run(place: &Hermetic, arguments: &[&str], program: &str) -> Finished {
    let program = place.write("program.mcl", program).display().to_string();
    let prefix = place.path("prefix").display().to_string();
    let mut all = vec!["run", "--once", "--no-raise-limits", "--state-dir", &prefix];
    all.extend(arguments);
    all.push(&program);
    place.run(BINARY, &all)
}

/// Files below a directory that hold the secret.
fn files_with_secret(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                directories.push(entry.path());
            } else {
                let bytes = std::fs::read(entry.path()).unwrap_or_default();
                if bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()) {
                    found.push(entry.path());
                }
            }
        }
    }
    found
}

#[test]
fn a_sensitive_value_leaves_in_no_way_whoever_sent_it() {
    let sent = format!(
        "test \"s\" {{\n\tsendvalue => sensitive(\"{SECRET}\"),\n}}\nprint \"p\" {{}}\nvalue \"v\" {{}}\n\
         Test[\"s\"].hello -> Print[\"p\"].msg\nTest[\"s\"].hello -> Value[\"v\"].any\n"
    );
    let written = format!(
        "print \"p\" {{\n\tmsg => sensitive(\"{SECRET}\"),\n}}\nvalue \"v\" {{\n\tany => sensitive(\"{SECRET}\"),\n}}\n"
    );
    let command = format!(
        "exec \"e\" {{\n\tcmd => sensitive(\"/bin/echo {SECRET}\"),\n}}\nprint \"p\" {{}}\nvalue \"v\" {{}}\n\
         Exec[\"e\"].output -> Print[\"p\"].msg\nExec[\"e\"].stdout -> Value[\"v\"].any\n"
    );
    for program in [&sent, &written, &command] {
        for arguments in [&["--json"][..], &[], &["--noop"]] {
            let place = Hermetic::new();
            let finished = run(&place, arguments, program);
            assert_eq!(finished.code, 0, "{program}\n{}", finished.stderr);
            for text in [&finished.stdout, &finished.stderr] {
                assert!(!text.contains(SECRET), "{arguments:?} {program}\n{text}");
            }
            if arguments != ["--noop"] {
                let all = format!("{}{}", finished.stdout, finished.stderr);
                assert!(all.contains("(sensitive)"), "{arguments:?} {program}\n{all}");
            }
            let prefix = place.path("prefix");
            assert_eq!(files_with_secret(&prefix), Vec::<std::path::PathBuf>::new());
        }
    }
}

#[test]
fn a_key_that_cannot_reveal_a_sensitive_parameter_is_sent_openly() {
    let place = Hermetic::new();
    let program = format!(
        "test \"s\" {{\n\tsendvalue => sensitive(\"{SECRET}\"),\n}}\nvalue \"v\" {{}}\nTest[\"s\"].answer -> Value[\"v\"].any\n"
    );
    let finished = run(&place, &["--json"], &program);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert!(finished.stdout.contains("\"want\":\"42\""), "{}", finished.stdout);
}

#[test]
fn a_refusal_does_not_quote_a_sensitive_value() {
    let place = Hermetic::new();
    let program = format!(
        "$x = sensitive(\"{SECRET}\")\nfile \"{}\" {{\n\tcontent => \"x\",\n\tmode => $x,\n}}\n",
        place.path("f").display()
    );
    for arguments in [&["--json"][..], &[]] {
        let finished = run(&place, arguments, &program);
        assert_eq!(finished.code, 1, "{}", finished.stderr);
        for text in [&finished.stdout, &finished.stderr] {
            assert!(!text.contains(SECRET), "{text}");
        }
    }
}
