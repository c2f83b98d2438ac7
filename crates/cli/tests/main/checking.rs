//! `check` and `fmt` as scripts call them: exit codes, places, and what is looked at.

use setpoint_testing::{Finished, Hermetic};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

fn setpoint(place: &Hermetic, arguments: &[&str]) -> Finished {
    place.run(BINARY, arguments)
}

#[test]
fn check_says_where_a_type_is_wrong_and_beside_it_what_is_not_formatted() {
    let place = Hermetic::new();
    place.write("good.mcl", "test \"a\" {\n\tint64 => 1,\n}\n");
    let good = setpoint(&place, &["check", "lang", "good.mcl"]);
    assert_eq!((good.code, &*good.stdout), (0, ""), "{}", good.stderr);
    place.write("wrong.mcl", "$x=1\ntest \"a\" {\n\tint64 => \"b\",\n}\n");
    let wrong = setpoint(&place, &["check", "lang", "wrong.mcl"]);
    assert_eq!(wrong.code, 1);
    assert!(wrong.stderr.contains("wrong.mcl:3:11"), "{}", wrong.stderr);
    let told = |arguments: &[&str]| -> (i32, Vec<String>) {
        let mut all = vec!["check", "lang", "--json", "wrong.mcl"];
        all.extend(arguments);
        let ran = setpoint(&place, &all);
        let object: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let stages = object["diagnostics"].as_array().unwrap().iter();
        let mut stages: Vec<String> = stages
            .map(|row| row["stage"].as_str().unwrap_or_default().to_owned())
            .collect();
        stages.sort();
        stages.dedup();
        (ran.code, stages)
    };
    let of = |stages: &[&str]| stages.iter().map(|stage| (*stage).to_owned()).collect::<Vec<_>>();
    let (code, both) = told(&[]);
    assert_eq!(code, 1);
    assert!(both.contains(&"format".to_owned()) && both.len() == 2, "{both:?}");
    let types: Vec<String> = both.iter().filter(|stage| *stage != "format").cloned().collect();
    assert_eq!(told(&["--skip-fmt"]), (1, types));
    assert_eq!(told(&["--skip-unify"]), (0, of(&["format"])));
    assert_eq!(told(&["--skip-unify", "--skip-fmt"]), (0, Vec::new()));
    // What another solver would be told is taken, with a warning.
    let ran = setpoint(
        &place,
        &[
            "check",
            "lang",
            "--unify-name",
            "x",
            "--unify-optimizations",
            "y",
            "--depth",
            "-1",
            "--retry",
            "3",
            "good.mcl",
        ],
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for flag in ["--unify-name", "--unify-optimizations", "--depth", "--retry"] {
        assert!(
            ran.stderr.contains(&format!("`{flag}` has no effect")),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn fmt_of_a_directory_formats_models_and_fails_when_it_finds_nothing() {
    let place = Hermetic::new();
    place.write("postfix/main.cf", "myhostname=x\n");
    let nothing = setpoint(&place, &["fmt", "postfix"]);
    assert_eq!(nothing.code, 1);
    let told = "there is no program to format below postfix";
    assert!(nothing.stderr.contains(told), "{}", nothing.stderr);
    place.write("model/project.yml", "name: x\nmodulepath: libs\n");
    place.write("model/main.cf", "x=1\n");
    place.write("module/module.yml", "name: y\nversion: 0.1\n");
    place.write("module/model/_init.cf", "y=1\n");
    let check = setpoint(&place, &["fmt", "--check", "."]);
    assert_eq!(check.code, 1);
    assert_eq!(
        check.stdout,
        "model/main.cf is not formatted\nmodule/model/_init.cf is not formatted\n"
    );
    assert_eq!(setpoint(&place, &["fmt", "model", "module/model"]).code, 0);
    assert_eq!(setpoint(&place, &["fmt", "--check", "."]).code, 0);
    let text = |path: &str| std::fs::read_to_string(place.path(path)).unwrap();
    assert_eq!(text("model/main.cf"), "x = 1\n");
    assert_eq!(text("postfix/main.cf"), "myhostname=x\n");
}

#[test]
fn fmt_goes_through_directories_and_says_by_its_code_whether_all_is_formatted() {
    let place = Hermetic::new();
    for file in ["a.mcl", "d/b.mcl", "d/e/c.mcl", "d/other.txt"] {
        place.write(file, "$x=1\n");
    }
    let read = |file: &str| std::fs::read_to_string(place.path(file)).unwrap();
    let formatted = "$x = 1\n";
    for flag in ["-t", "--test", "--check"] {
        let ran = setpoint(&place, &["fmt", flag, "a.mcl"]);
        assert_eq!((ran.code, &*read("a.mcl")), (1, "$x=1\n"), "{}", ran.stderr);
    }
    // One file, a directory with all below it, and by itself the working directory.
    assert_eq!(setpoint(&place, &["fmt", "d/b.mcl"]).code, 0);
    assert_eq!((&*read("d/b.mcl"), &*read("d/e/c.mcl")), (formatted, "$x=1\n"));
    assert_eq!(setpoint(&place, &["fmt", "d/"]).code, 0);
    assert_eq!(
        (&*read("d/e/c.mcl"), &*read("d/other.txt"), &*read("a.mcl")),
        (formatted, "$x=1\n", "$x=1\n")
    );
    let mut command = place.command(BINARY);
    let ran = command
        .arg("fmt")
        .current_dir(place.directory())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    assert_eq!(read("a.mcl"), formatted);
    let verbose = setpoint(&place, &["fmt", "-t", "-v", "./"]);
    assert_eq!(
        (verbose.code, verbose.stdout.lines().count()),
        (0, 3),
        "{}",
        verbose.stdout
    );
}

#[test]
fn a_module_path_ends_in_a_slash_and_may_be_relative() {
    let place = Hermetic::new();
    place.write("modules/example.com/greet/main.mcl", "$text = \"hello\"\n");
    place.write("modules/example.com/greet/metadata.yaml", "");
    place.write(
        "main.mcl",
        "import \"https://example.com/greet/\" as greet\ntest [$greet.text] {}\n",
    );
    let ran = setpoint(&place, &["graph", "--module-path", "modules", "main.mcl"]);
    assert_eq!(ran.code, 64, "{}", ran.stderr);
    assert!(ran.stderr.contains("must end in `/`"), "{}", ran.stderr);
    for path in [
        "modules/",
        "./modules/",
        &place.path("modules/").display().to_string(),
    ] {
        let path = format!("{}/", path.trim_end_matches('/'));
        let ran = setpoint(&place, &["graph", "--module-path", &path, "main.mcl"]);
        assert_eq!(ran.code, 0, "{path}: {}", ran.stderr);
        assert!(ran.stdout.contains("hello"), "{path}: {}", ran.stdout);
    }
}

#[test]
fn only_following_imports_starts_nothing() {
    let place = Hermetic::new();
    let file = place.path("file").display().to_string();
    place.write(
        "main.mcl",
        format!("file \"{file}\" {{\n\tstate => \"exists\",\n}}\n"),
    );
    let prefix = place.path("prefix").display().to_string();
    let ran = setpoint(
        &place,
        &[
            "run",
            "--state-dir",
            &prefix,
            "--only-download",
            "lang",
            "main.mcl",
        ],
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!place.path("file").exists() && !place.path("prefix").exists());
}
