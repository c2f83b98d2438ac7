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
        let mut all = vec!["run", "--once", "--no-raise-limits", "--prefix", &prefix];
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
