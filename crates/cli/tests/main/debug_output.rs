//! Debug output of those of whom it is asked for.

use setpoint_testing::Hermetic;

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

#[test]
fn debug_output_is_shown_of_those_who_are_named_and_of_nobody_else() {
    let place = Hermetic::new();
    let guarded =
        |name: &str| format!("exec \"{name}\" {{\n\tcmd => \"/bin/true\",\n\tnifcmd => \"/bin/true\",\n}}\n");
    let program = place.write("program.mcl", format!("{}{}", guarded("a"), guarded("b")));
    let program = program.display().to_string();
    let prefix = place.path("prefix").display().to_string();
    let run = |arguments: &[&str]| {
        let mut all = vec!["run", "--once", "--no-raise-limits", "--state-dir", &prefix];
        all.extend(arguments);
        all.push(&program);
        let finished = place.run(BINARY, &all);
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        finished.stderr
    };
    let says = |text: &str, name: &str| {
        let of = |line: &&str| line.contains("does not run") && line.contains(&format!("[{name}]"));
        text.lines().filter(of).count()
    };
    for (arguments, a, b) in [
        (&[][..], 0, 0),
        (&["--debug"], 1, 1),
        (&["-vv"], 1, 1),
        (&["--debug=exec"], 1, 1),
        (&["--debug=exec[b],file"], 0, 1),
        (&["--debug=Exec[a]"], 1, 0),
    ] {
        let text = run(arguments);
        assert_eq!(
            (says(&text, "a"), says(&text, "b")),
            (a, b),
            "{arguments:?}\n{text}"
        );
    }
}

#[test]
fn what_calls_of_a_function_give_is_shown_when_it_is_named_and_nothing_sensitive_of_it() {
    let place = Hermetic::new();
    let (motd, secret) = (place.write("motd", "Hello"), place.write("secret", "hunter2"));
    let program = place.write(
        "program.mcl",
        format!(
            "import \"os\"\nimport \"strings\"\n$there = os.file_exists(\"{0}\")\n$shout = strings.to_upper(os.readfile(\"{0}\"))\n\
             $hidden = len(os.readfile(sensitive(\"{1}\")))\ntest \"${{shout}}\" {{ int64 => $hidden, interface => $there, }}\n",
            motd.display(),
            secret.display()
        ),
    );
    let (program, prefix) = (
        program.display().to_string(),
        place.path("prefix").display().to_string(),
    );
    let lines = [
        "os.readfile(\"$DIR/motd\") is \"Hello\"",
        "os.readfile((sensitive)) is (sensitive)",
        "strings.to_upper(\"Hello\") is \"HELLO\"",
        "os.file_exists(\"$DIR/motd\") is true",
    ];
    for (debug, shown) in [
        (None, [false; 4]),
        (Some("--debug"), [false; 4]),
        (Some("-vv"), [false; 4]),
        (Some("--debug=os.readfile,exec"), [true, true, false, false]),
        (
            Some("--debug=strings.to_upper,os.file_exists,sensitive"),
            [false, false, true, true],
        ),
    ] {
        let mut arguments = vec!["run", "--once", "--no-raise-limits", "--state-dir", &prefix];
        arguments.extend(debug);
        arguments.push(&program);
        let finished = place.run(BINARY, &arguments);
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        let is_shown = lines.iter().map(|line| finished.stderr.contains(line));
        assert!(is_shown.eq(shown), "{debug:?}\n{}", finished.stderr);
        assert!(!finished.stderr.contains("hunter2") && !finished.stderr.contains("secret\""));
    }
}
