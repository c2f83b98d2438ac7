//! Modules that others have published: each is imported as its own reference compiler imports it, without that compiler.

use std::path::{Path, PathBuf};
use std::process::Command;

use setpoint_testing::Hermetic;

use super::project;
use crate::plugins::with_environment;

/// The modules, with what their Python imports.
const PACKAGES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/main/model_modules/published.txt"
);

/// The Python that they are written for.
const VERSIONS: [&str; 3] = ["3.14", "3.13", "3.12"];

/// A program that calls what can be called without a machine elsewhere.
const PROGRAM: &str = include_str!("published.cf");

/// Its output. The reference compiler prints the same lines.
const PRINTED: [&str; 19] = [
    "@[1, 'b']",
    "80",
    "3",
    "3",
    "/b",
    "'a b' c",
    "sh -c \"ls | wc\"",
    "/a/b/c",
    "a",
    "10.1.2.0",
    "255.255.255.0",
    "a.b.c",
    "'a b' c",
    "a-c",
    "a",
    "hello you!",
    "hello world!",
    "/bin/sops",
    "True",
];

/// Modules that their reference compiler refuses too, and why.
const REFUSED: [(&str, &str); 8] = [
    ("apache", "could not find type `Package` in namespace `std`"),
    ("cron", "could not find type `ConfigFile` in namespace `std`"),
    ("docker", "could not find type `Package` in namespace `std`"),
    ("drupal", "could not find type `Service` in namespace `std`"),
    ("mysql", "could not find type `Service` in namespace `std`"),
    ("php", "could not find type `Package` in namespace `std`"),
    ("postgresql", "module `systemd` cannot be loaded"),
    ("redhat", "invalid value `5`, expected `float`"),
];

#[test]
fn published_modules_are_imported_and_used() {
    let place = project(PROGRAM);
    let Some(environment) = environment(&place) else {
        return;
    };
    let path = std::env::var("PATH").expect("there is a PATH");
    let path = format!("{}/bin:{path}", environment.display());
    let compiled = |main: &str| with_environment(&place, &["cf", "compile", "-f", main], &[("PATH", &path)]);
    let finished = compiled("main.cf");
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let mut printed: Vec<&str> = finished.stdout.lines().collect();
    printed.sort_unstable();
    let mut expected = PRINTED.to_vec();
    expected.sort_unstable();
    assert_eq!(printed, expected);
    let packages = std::fs::read_to_string(PACKAGES).expect("the list is there");
    let modules = packages
        .lines()
        .filter_map(|line| line.strip_prefix("inmanta-module-")?.split_once("=="));
    let mut imported = 0;
    for (module, _) in modules {
        let module = module.replace('-', "_");
        let refused = REFUSED.iter().find(|(refused, _)| *refused == module);
        if refused.is_none() && PROGRAM.contains(&format!("import {module}\n")) {
            continue;
        }
        place.write("one.cf", format!("import {module}\n"));
        let finished = compiled("one.cf");
        match refused {
            None => assert_eq!(finished.code, 0, "{module}: {}", finished.stderr),
            Some((_, why)) => assert!(
                finished.code == 1 && finished.stderr.contains(why),
                "{module}: {}",
                finished.stderr
            ),
        }
        imported += 1;
    }
    assert_eq!(imported, 13, "the list has changed");
}

#[allow(clippy::print_stderr, reason = "people read why a test is skipped")]
fn skipped(why: &str) {
    eprintln!("skipped: published_modules_are_imported_and_used: {why}");
}

/// A virtual environment with the modules, or none, with a word why.
fn environment(place: &Hermetic) -> Option<PathBuf> {
    let Some(python) = python() else {
        skipped(&format!("there is no Python {} here", VERSIONS.join(", ")));
        return None;
    };
    let environment = place.path("env");
    succeeds(
        Command::new(&python)
            .args(["-m", "venv", "--without-pip"])
            .arg(&environment),
    );
    let library = std::fs::read_dir(environment.join("lib")).expect("it was made");
    let library = library.flatten().next().expect("it has the version in its name");
    let installed = Command::new(&python)
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--no-compile",
            "--require-hashes",
            "--only-binary=:all:",
        ])
        .args(["--disable-pip-version-check", "-r", PACKAGES, "--target"])
        .arg(library.path().join("site-packages"))
        .output()
        .expect("Python can be started");
    if !installed.status.success() {
        let why = String::from_utf8_lossy(&installed.stderr);
        skipped(&format!("the modules cannot be installed: {why}"));
        return None;
    }
    Some(environment)
}

fn succeeds(command: &mut Command) {
    let status = command.status().expect("it can be started");
    assert!(status.success(), "{command:?}");
}

/// A Python of one of the versions: a command, or one that `pyenv` has.
fn python() -> Option<PathBuf> {
    let output = |program: &Path, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let runs = |program: &PathBuf| output(program, &["-c", "import venv, pip"]).is_some();
    let commands = VERSIONS
        .iter()
        .map(|version| PathBuf::from(format!("python{version}")));
    let known = output(Path::new("pyenv"), &["versions", "--bare"]).unwrap_or_default();
    let of_pyenv = known
        .lines()
        .filter(|line| VERSIONS.iter().any(|version| line.trim().starts_with(version)));
    let prefixes = of_pyenv.filter_map(|line| output(Path::new("pyenv"), &["prefix", line.trim()]));
    let pythons = prefixes.map(|prefix| Path::new(prefix.trim()).join("bin/python3"));
    commands.chain(pythons).find(runs)
}
