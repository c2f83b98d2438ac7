//! `file`: whole trees copied and purged.

use setpoint_value::Value;

use crate::harness::{Bench, Subject, text, yes};

fn directory(bench: &Bench, flags: &[&'static str], source: bool) -> Subject {
    let mut parameters: Vec<(&str, Value)> = vec![("state", text("exists")), ("recurse", yes())];
    parameters.extend(flags.iter().map(|flag| (*flag, yes())));
    if source {
        parameters.push(("source", text(format!("{}/", bench.path("source")))));
    }
    bench.resource("file", &format!("{}/", bench.path("copy")), &parameters)
}

#[test]
fn a_tree_is_copied_and_keeps_what_is_its_own() {
    let bench = Bench::new();
    bench.write("source/a", "A");
    bench.write("source/sub/deep/b", "B");
    bench.set_mode("source/a", 0o710);
    std::os::unix::fs::symlink("a", bench.path("source/l")).unwrap();
    bench.make_directory("copy");
    bench.write("copy/mine", "mine");
    let mut copy = directory(&bench, &[], true);
    let planned = copy.check();
    planned.drifted(&["source a", "source l", "source sub"]);
    assert_eq!(bench.tree("copy"), ["mine=mine"]);
    let run = copy.apply();
    assert_eq!(run.report(), planned.report());
    assert_eq!(
        bench.tree("copy"),
        ["a=A", "l=A", "mine=mine", "sub/", "sub/deep/", "sub/deep/b=B"]
    );
    assert_eq!(bench.mode("copy/a"), 0o710);
    copy.apply().is_ok();

    bench.write("source/sub/deep/b", "changed");
    copy.apply().drifted(&["source sub/deep/b"]);
    bench.write("copy/a", "drifted");
    copy.apply().drifted(&["source a"]);
    assert_eq!(bench.read("copy/a"), "A");
    copy.apply().is_ok();
}

#[test]
fn a_tree_that_is_not_there_at_all_comes_with_its_directory() {
    let bench = Bench::new();
    bench.write("source/a", "A");
    let mut copy = directory(&bench, &[], true);
    copy.check().drifted(&["state"]);
    copy.apply().drifted(&["state"]);
    assert_eq!(bench.tree("copy"), ["a=A"]);
    copy.apply().is_ok();
}

#[test]
fn a_missing_source_is_an_error_and_removes_nothing() {
    let bench = Bench::new();
    bench.write("copy/a", "A");
    let failure = directory(&bench, &["purge"], true).apply().failure();
    assert!(failure.contains("source"), "{failure}");
    assert_eq!(bench.tree("copy"), ["a=A"]);
}

#[test]
fn what_cannot_be_copied_keeps_nothing_else_from_being_copied() {
    let bench = Bench::new();
    for name in ["a", "below/c", "z"] {
        bench.write(&format!("source/{name}"), name);
    }
    for name in ["b", "below/d"] {
        std::os::unix::fs::symlink("nowhere", bench.path(&format!("source/{name}"))).unwrap();
    }
    bench.make_directory("copy");
    bench.write("copy/extra", "it stays while the source cannot be read whole");
    let mut copy = directory(&bench, &["purge"], true);
    let failure = copy.apply().failure();
    assert!(
        failure.contains("copy 2 entries of the source")
            && failure.contains("source/b")
            && failure.contains("source/below/d"),
        "{failure}"
    );
    let tree = bench.tree("copy");
    assert_eq!(tree[..3], ["a=a", "below/", "below/c=below/c"]);
    assert_eq!(tree.last().map(String::as_str), Some("z=z"));
    assert!(tree.iter().any(|entry| entry.starts_with("extra=")), "{tree:?}");
}

#[test]
fn purge_removes_what_nobody_manages() {
    let bench = Bench::new();
    bench.write("source/a", "A");
    bench.write("copy/a", "A");
    bench.write("copy/extra/b", "B");
    bench.write("copy/managed/deep/here/c", "C");
    bench.write("copy/managed/deep/other", "D");
    bench.write("copy/managed/sibling", "E");
    bench.write("copy/whole/inner", "F");
    for path in [
        bench.path("copy/managed/deep/here/c"),
        format!("{}/", bench.path("copy/whole")),
    ] {
        bench.manages(&path);
    }
    let mut copy = directory(&bench, &["purge"], true);
    let planned = copy.check();
    let gone = [
        ("extra", "directory with 1 entry"),
        ("managed/deep/other", "regular file"),
        ("managed/sibling", "regular file"),
    ];
    let gone = gone.map(|(path, what)| format!("purge {}/{path}: {what} → (absent)", bench.path("copy")));
    assert_eq!(planned.report(), gone);
    assert_eq!(bench.tree("copy").len(), 11);
    assert_eq!(copy.apply().report(), planned.report());
    assert_eq!(
        bench.tree("copy"),
        [
            "a=A",
            "managed/",
            "managed/deep/",
            "managed/deep/here/",
            "managed/deep/here/c=C",
            "whole/",
            "whole/inner=F"
        ]
    );
    copy.apply().is_ok();
    copy.check().is_ok();
}

#[test]
fn purge_without_a_source_empties_the_directory() {
    let bench = Bench::new();
    bench.write("copy/a", "A");
    bench.write("copy/sub/b", "B");
    std::os::unix::fs::symlink("/", bench.path("copy/root")).unwrap();
    let mut purged = directory(&bench, &["purge"], false);
    let fields = ["a", "root", "sub"].map(|name| format!("purge {}/{name}", bench.path("copy")));
    assert_eq!(purged.check().fields(), fields);
    purged.apply();
    assert_eq!(bench.tree("."), ["copy/"]);
    purged.apply().is_ok();
}

#[test]
fn types_change_places_only_by_force() {
    let bench = Bench::new();
    bench.write("source/x/inner", "I");
    bench.write("source/y", "Y");
    bench.write("copy/x", "file");
    bench.write("copy/y/inner", "in the way");
    let failure = directory(&bench, &[], true).apply().failure();
    assert!(failure.contains("is in the way"), "{failure}");
    let mut forced = directory(&bench, &["force", "purge"], true);
    let planned = forced.check();
    planned.drifted(&["source x", "source y"]);
    assert_eq!(planned.report()[1], "source y: directory with 1 entry → \"Y\"");
    assert_eq!(forced.apply().report(), planned.report());
    assert_eq!(bench.tree("copy"), ["x/", "x/inner=I", "y=Y"]);
    forced.apply().is_ok();
}

#[test]
fn what_is_neither_file_nor_directory_cannot_be_copied() {
    let bench = Bench::new();
    bench.make_directory("source/d");
    std::os::unix::fs::symlink("d", bench.path("source/l")).unwrap();
    bench.make_directory("copy");
    let failure = directory(&bench, &[], true).apply().failure();
    assert!(failure.ends_with("it is a directory"), "{failure}");
}

#[test]
fn many_files_are_copied_in_batches() {
    let bench = Bench::new();
    for index in 0..300 {
        bench.write(&format!("source/{index:03}"), index.to_string());
    }
    bench.make_directory("copy");
    let mut copy = directory(&bench, &[], true);
    assert_eq!(copy.apply().drifts.len(), 300);
    assert_eq!(bench.tree("copy").len(), 300);
    copy.apply().is_ok();
}

#[test]
fn a_tree_is_not_copied_into_itself() {
    let bench = Bench::new();
    bench.write("source/a", "A");
    let [source, inner] = ["source", "source/in"].map(|path| format!("{}/", bench.path(path)));
    for (path, source) in [(&inner, &source), (&source, &inner), (&source, &source)] {
        let parameters = [
            ("state", text("exists")),
            ("recurse", yes()),
            ("source", text(source)),
        ];
        let refused = crate::harness::refused("file", path, &parameters);
        let wanted =
            "source: the source and the path lie in each other: a directory cannot be copied into itself";
        assert_eq!(refused, [wanted], "{path} {source}");
    }
    // By a link, which no path shows.
    bench.make_directory("source/in");
    std::os::unix::fs::symlink(bench.path("source"), bench.path("link")).unwrap();
    let parameters = [
        ("state", text("exists")),
        ("recurse", yes()),
        ("source", text(format!("{}/", bench.path("link")))),
    ];
    let mut copy = bench.resource("file", &inner, &parameters);
    let failure = copy.apply().failure();
    assert!(failure.ends_with(": it would be copied into itself"), "{failure}");
    assert!(!bench.exists("source/in/in"));
}
