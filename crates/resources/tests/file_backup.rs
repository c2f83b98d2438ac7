//! What `file` keeps of what it replaces or removes.

use setpoint_value::Value;

use crate::harness::{Bench, refused, text, yes};

/// What is kept, by its path without the time at its end.
fn kept(bench: &Bench) -> Vec<String> {
    let place = bench.directory.path().display().to_string();
    let below = format!("backup{place}");
    if !bench.exists(&below) {
        return Vec::new();
    }
    let mut all: Vec<String> = bench
        .tree(&below)
        .iter()
        .map(|line| without_times(line))
        .collect();
    all.sort();
    all
}

/// A line without the times that are in it.
fn without_times(line: &str) -> String {
    let length = ".2026-11-23T14:20:01.123456Z".len();
    let mut line = line.to_owned();
    while let Some(begin) = line.find('Z').and_then(|end| (end + 1).checked_sub(length)) {
        line.replace_range(begin..begin + length, "");
    }
    line
}

fn apply(bench: &Bench, path: &str, parameters: &[(&str, Value)]) {
    let backup = bench.path("backup");
    let mut all = vec![("backup", text(backup))];
    all.extend(parameters.iter().cloned());
    let run = bench.resource("file", path, &all).apply();
    assert!(run.result.is_ok(), "{}", run.failure());
}

#[test]
fn what_is_replaced_or_removed_is_kept_with_its_mode() {
    let bench = Bench::new();
    let path = bench.write("a", "old");
    bench.set_mode("a", 0o640);
    apply(&bench, &path, &[("content", text("new"))]);
    assert_eq!(kept(&bench), ["a=old"]);
    let place = format!("backup{}", bench.directory.path().display());
    let copy = std::fs::read_dir(bench.path(&place))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    assert_eq!(
        bench.mode(&format!("{place}/{}", copy.file_name().display())),
        0o640
    );
    assert_eq!(bench.mode("backup"), 0o700);
    // Nothing new is nothing to keep.
    apply(&bench, &path, &[("content", text("new"))]);
    assert_eq!(kept(&bench), ["a=old"]);
    apply(&bench, &path, &[("state", text("absent"))]);
    assert_eq!(kept(&bench), ["a=new", "a=old"]);
}

#[test]
fn whole_trees_are_kept_when_they_go() {
    let bench = Bench::new();
    bench.write("tree/b/c", "1");
    std::os::unix::fs::symlink("nowhere", bench.path("tree/link")).unwrap();
    let path = format!("{}/", bench.path("tree"));
    apply(&bench, &path, &[("state", text("absent")), ("recurse", yes())]);
    assert!(!bench.exists("tree"));
    assert_eq!(
        kept(&bench),
        ["tree/", "tree/b/", "tree/b/c=1", "tree/link -> nowhere"]
    );
}

#[test]
fn what_a_purge_takes_and_a_source_replaces_is_kept() {
    let bench = Bench::new();
    bench.write("source/a", "new");
    bench.write("target/a", "old");
    bench.write("target/extra/x", "x");
    let path = format!("{}/", bench.path("target"));
    let source = text(format!("{}/", bench.path("source")));
    let parameters = [
        ("source", source),
        ("state", text("exists")),
        ("recurse", yes()),
        ("purge", yes()),
    ];
    apply(&bench, &path, &parameters);
    assert_eq!(
        kept(&bench),
        ["target/", "target/a=old", "target/extra/", "target/extra/x=x"]
    );
    // What stands in the way of a file goes, and is kept.
    bench.write("wall/inside", "kept");
    apply(
        &bench,
        &bench.path("wall"),
        &[("content", text("a file")), ("force", yes())],
    );
    assert_eq!(bench.read("wall"), "a file");
    assert!(
        kept(&bench).contains(&"wall/inside=kept".to_owned()),
        "{:?}",
        kept(&bench)
    );
}

#[test]
fn the_newest_ten_stay_and_what_cannot_be_kept_does_not_go() {
    let bench = Bench::new();
    let path = bench.path("a");
    for round in 0..13 {
        bench.write("a", format!("{round}"));
        apply(&bench, &path, &[("content", text("wanted"))]);
    }
    let mut expected: Vec<String> = (3..13).map(|round| format!("a={round}")).collect();
    expected.sort();
    assert_eq!(kept(&bench), expected);
    bench.write("a", "precious");
    let blocked = bench.write("blocked", "no directory");
    let parameters = [("content", text("wanted")), ("backup", text(blocked))];
    let failure = bench.resource("file", &path, &parameters).apply().failure();
    assert!(failure.contains("keep a copy of"), "{failure}");
    assert_eq!(bench.read("a"), "precious");
}

#[test]
fn copies_do_not_lie_in_what_is_managed() {
    let refused = refused(
        "file",
        "/srv/www/",
        &[("backup", text("/srv/www/old")), ("state", text("exists"))],
    );
    assert_eq!(
        refused,
        ["backup: must not lie in what the resource itself manages"]
    );
}
