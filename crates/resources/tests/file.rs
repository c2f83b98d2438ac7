//! `file`: state, contents, metadata, links, fragments.

use std::os::unix::fs::MetadataExt;

use setpoint_engine::{DriftValue, Identity, Watch};
use setpoint_graph::MetaParameters;
use setpoint_host::watch::{Depth, Follow};
use setpoint_resources::sorts::FILE;
use setpoint_value::Value;

use crate::harness::{Bench, given, is_root, refused, spec, text, texts, yes};

fn exists() -> (&'static str, Value) {
    ("state", text("exists"))
}

fn absent() -> (&'static str, Value) {
    ("state", text("absent"))
}

fn content(bytes: &str) -> (&'static str, Value) {
    ("content", text(bytes))
}

fn flag(name: &str) -> (&str, Value) {
    (name, yes())
}

// State

#[test]
fn an_empty_file_is_made_once() {
    let bench = Bench::new();
    let mut file = bench.resource("file", &bench.path("a"), &[exists()]);
    file.check().drifted(&["state"]);
    assert!(!bench.exists("a"));
    file.apply().drifted(&["state"]);
    assert_eq!(bench.read("a"), "");
    file.apply().is_ok();
}

#[test]
fn existing_is_enough_whatever_it_is() {
    let bench = Bench::new();
    bench.make_directory("d");
    bench
        .resource("file", &bench.path("d"), &[exists()])
        .apply()
        .is_ok();
}

#[test]
fn undefined_state_creates_only_what_has_contents() {
    let bench = Bench::new();
    bench.resource("file", &bench.path("a"), &[]).apply().is_ok();
    assert!(!bench.exists("a"));
    let mut file = bench.resource("file", &bench.path("a"), &[content("")]);
    file.apply().drifted(&["content"]);
    assert_eq!(bench.read("a"), "");
    file.apply().is_ok();
    let source = bench.write("source", "x");
    let mut copy = bench.resource("file", &bench.path("b"), &[("source", text(source))]);
    assert!(
        copy.apply()
            .failure()
            .ends_with("nothing is created from a `source`"),
        "{}",
        copy.apply().failure()
    );
}

#[test]
fn a_missing_parent_is_an_error_only_when_something_is_to_be_made() {
    let bench = Bench::new();
    let mut file = bench.resource("file", &bench.path("no/a"), &[exists(), content("x")]);
    file.check().drifted(&["state", "content"]);
    let failure = file.apply().failure();
    assert!(failure.contains("/no/a: No such file or directory"), "{failure}");
    bench
        .resource("file", &bench.path("no/a"), &[absent()])
        .apply()
        .is_ok();
}

#[test]
fn a_parent_that_is_a_file_is_an_error() {
    let bench = Bench::new();
    bench.write("f", "");
    let failure = bench
        .resource("file", &bench.path("f/a"), &[exists()])
        .check()
        .failure();
    assert!(failure.ends_with("Not a directory"), "{failure}");
}

#[test]
fn absence_removes_files_links_and_empty_directories_but_no_full_ones() {
    let bench = Bench::new();
    bench.write("f", "x");
    std::os::unix::fs::symlink("f", bench.path("l")).unwrap();
    bench.make_directory("d");
    bench.write("full/x", "x");
    for (name, tail) in [("f", ""), ("d", "/")] {
        let mut file = bench.resource("file", &format!("{}{tail}", bench.path(name)), &[absent()]);
        file.check().drifted(&["state"]);
        assert!(bench.exists(name));
        file.apply().drifted(&["state"]);
        assert!(!bench.exists(name));
        file.apply().is_ok();
    }
    // The link dangles by now, which counts as not being there.
    bench
        .resource("file", &bench.path("l"), &[absent()])
        .apply()
        .is_ok();
    let mut full = bench.resource("file", &format!("{}/", bench.path("full")), &[absent()]);
    let failure = full.apply().failure();
    assert!(failure.contains("full: Directory not empty"), "{failure}");
    let mut recursive = bench.resource(
        "file",
        &format!("{}/", bench.path("full")),
        &[absent(), flag("recurse")],
    );
    recursive.apply().drifted(&["state"]);
    assert!(!bench.exists("full"));
}

#[test]
fn the_root_directory_is_never_removed() {
    let bench = Bench::new();
    for flags in [vec![absent()], vec![absent(), flag("recurse")]] {
        let failure = bench.resource("file", "/", &flags).apply().failure();
        assert!(
            failure.starts_with("remove /: it is the root directory"),
            "{failure}"
        );
    }
}

#[test]
fn absence_ignores_owner_and_mode() {
    let bench = Bench::new();
    bench.write("a", "x");
    let odd = [
        absent(),
        ("mode", text("0600")),
        ("owner", text("0")),
        ("group", text("nobody-there")),
    ];
    let mut file = bench.resource("file", &bench.path("a"), &odd);
    file.apply().drifted(&["state"]);
    file.apply().is_ok();
}

// Directories

#[test]
fn directories_are_made_with_their_parents_only_when_told() {
    let bench = Bench::new();
    let path = format!("{}/", bench.path("a/b/c"));
    let failure = bench.resource("file", &path, &[exists()]).apply().failure();
    assert!(failure.contains("No such file or directory"), "{failure}");
    let mut tree = bench.resource(
        "file",
        &path,
        &[exists(), flag("recurse"), ("mode", text("1700"))],
    );
    tree.check().drifted(&["state"]);
    tree.apply().drifted(&["state"]);
    assert_eq!(bench.mode("a/b/c"), 0o1700);
    assert_eq!(bench.mode("a/b"), 0o755);
    tree.apply().is_ok();
}

#[test]
fn an_octal_mode_on_a_directory_converges() {
    let bench = Bench::new();
    bench.make_directory("d");
    let mut directory = bench.resource(
        "file",
        &format!("{}/", bench.path("d")),
        &[exists(), ("mode", text("2750"))],
    );
    directory.apply().drifted(&["mode"]);
    assert_eq!(bench.mode("d"), 0o2750);
    directory.apply().is_ok();
}

#[test]
fn a_file_gives_way_to_a_directory_only_by_force() {
    let bench = Bench::new();
    bench.write("x", "file");
    let path = format!("{}/", bench.path("x"));
    let failure = bench.resource("file", &path, &[exists()]).check().failure();
    assert!(failure.contains("a regular file is in the way"), "{failure}");
    let mut forced = bench.resource("file", &path, &[exists(), flag("force")]);
    assert_eq!(
        forced.check().drifted(&["state"]).report(),
        ["state: regular file → directory"]
    );
    forced.apply().drifted(&["state"]);
    assert_eq!(bench.tree("."), ["x/"]);
    forced.apply().is_ok();
}

#[test]
fn a_directory_gives_way_to_contents_only_by_force() {
    let bench = Bench::new();
    bench.write("x/inner", "file");
    let failure = bench
        .resource("file", &bench.path("x"), &[exists(), content("new")])
        .apply()
        .failure();
    assert!(
        failure.contains("it is a directory, and `force` is not set"),
        "{failure}"
    );
    let mut forced = bench.resource(
        "file",
        &bench.path("x"),
        &[exists(), content("new"), flag("force")],
    );
    forced.check().drifted(&["content"]);
    assert!(bench.exists("x/inner"));
    forced.apply().drifted(&["content"]);
    assert_eq!(bench.read("x"), "new");
    forced.apply().is_ok();
}

#[test]
fn a_link_to_a_directory_counts_as_one() {
    let bench = Bench::new();
    bench.make_directory("real");
    std::os::unix::fs::symlink("real", bench.path("link")).unwrap();
    let mut file = bench.resource(
        "file",
        &format!("{}/", bench.path("link")),
        &[exists(), ("mode", text("0711"))],
    );
    file.apply().drifted(&["mode"]);
    assert_eq!(bench.mode("real"), 0o711);
    file.apply().is_ok();
}

// Contents

#[test]
fn contents_are_replaced_whole_and_then_left_alone() {
    let bench = Bench::new();
    bench.write("a", "old");
    bench.set_mode("a", 0o664);
    let mut file = bench.resource("file", &bench.path("a"), &[content("new\n")]);
    let run = file.check();
    let DriftValue::Content { size, digest, text } = &run.drifted(&["content"]).drifts[0].is else {
        panic!("{run:?}");
    };
    assert_eq!((*size, text.as_deref()), (3, Some("old")));
    assert!(digest.as_ref().is_some_and(|digest| digest.len() == 64));
    assert_eq!(bench.read("a"), "old");
    file.apply().drifted(&["content"]);
    assert_eq!((bench.read("a").as_str(), bench.mode("a")), ("new\n", 0o664));
    let inode = std::fs::metadata(bench.path("a")).unwrap().ino();
    file.apply().is_ok();
    assert_eq!(std::fs::metadata(bench.path("a")).unwrap().ino(), inode);
}

#[test]
fn contents_may_be_any_bytes() {
    let bench = Bench::new();
    let bytes = b"\0\xff\xfe binary \x80";
    let mut file = bench.resource(
        "file",
        &bench.path("a"),
        &[("content", Value::str(bytes.as_slice()))],
    );
    file.apply().drifted(&["content"]);
    assert_eq!(std::fs::read(bench.path("a")).unwrap(), bytes);
    file.apply().is_ok();
    let mut empty = bench.resource("file", &bench.path("a"), &[content("")]);
    empty.apply().drifted(&["content"]);
    assert_eq!(bench.read("a"), "");
}

#[test]
fn a_received_content_is_written_and_an_unset_one_left_alone() {
    let bench = Bench::new();
    let mut file = bench.resource("file", &bench.path("a"), &[exists(), content("one")]);
    file.apply().drifted(&["state", "content"]);
    file.receive("content", &text("two"));
    file.apply().drifted(&["content"]);
    assert_eq!(bench.read("a"), "two");
    file.instance.set_parameter("content", None).unwrap();
    file.resource_mut().after_receive();
    bench.write("a", "by hand");
    file.apply().is_ok();
    assert_eq!(bench.read("a"), "by hand");
}

#[test]
fn a_change_that_keeps_size_and_times_is_found() {
    let bench = Bench::new();
    let mut file = bench.resource("file", &bench.path("a"), &[content("right")]);
    file.apply();
    // Let the stamp settle, so that the memory of verified files is used.
    std::thread::sleep(std::time::Duration::from_millis(80));
    file.apply().is_ok();
    let times = std::fs::metadata(bench.path("a")).unwrap();
    bench.write("a", "wrong");
    let open = std::fs::OpenOptions::new()
        .write(true)
        .open(bench.path("a"))
        .unwrap();
    open.set_modified(times.modified().unwrap()).unwrap();
    file.apply().drifted(&["content"]);
    assert_eq!(bench.read("a"), "right");
}

#[test]
fn a_link_on_the_path_stays_and_its_target_is_replaced() {
    let bench = Bench::new();
    bench.write("target", "old");
    std::os::unix::fs::symlink("target", bench.path("link")).unwrap();
    bench
        .resource("file", &bench.path("link"), &[content("new")])
        .apply()
        .drifted(&["content"]);
    assert_eq!(bench.tree("."), ["link -> target", "target=new"]);
}

#[test]
fn links_in_a_circle_are_an_error() {
    let bench = Bench::new();
    std::os::unix::fs::symlink("b", bench.path("a")).unwrap();
    std::os::unix::fs::symlink("a", bench.path("b")).unwrap();
    let failure = bench
        .resource("file", &bench.path("a"), &[content("x")])
        .apply()
        .failure();
    assert!(failure.contains("Too many levels of symbolic links"), "{failure}");
}

#[test]
fn a_pipe_in_the_way_is_an_error_and_blocks_nobody() {
    let bench = Bench::new();
    let made = std::process::Command::new("mkfifo")
        .arg(bench.path("p"))
        .status()
        .unwrap();
    assert!(made.success());
    let failure = bench
        .resource("file", &bench.path("p"), &[content("x")])
        .apply()
        .failure();
    assert!(failure.ends_with("it is a named pipe"), "{failure}");
}

#[test]
fn several_names_of_one_file_stay_one_file() {
    let bench = Bench::new();
    bench.write("a", "old");
    std::fs::hard_link(bench.path("a"), bench.path("b")).unwrap();
    let run = bench
        .resource("file", &bench.path("a"), &[content("new")])
        .apply();
    assert!(
        run.log.iter().any(|(_, line)| line.contains("written in place")),
        "{run:?}"
    );
    assert_eq!(bench.read("b"), "new");
}

#[test]
fn a_name_that_is_too_long_is_an_error() {
    let bench = Bench::new();
    let failure = bench
        .resource("file", &bench.path(&"x".repeat(256)), &[content("x")])
        .apply()
        .failure();
    assert!(failure.contains("File name too long"), "{failure}");
}

#[test]
fn nobody_sees_a_secret_by_an_open_mode() {
    let bench = Bench::new();
    bench.write("a", "old");
    bench.set_mode("a", 0o644);
    let secret = ("content", text("hunter2").sensitive());
    let mut file = bench.resource("file", &bench.path("a"), &[secret, ("mode", text("0600"))]);
    let planned = file.check();
    let run = file.apply();
    assert_eq!(planned.report(), run.report());
    assert_eq!(
        run.drifted(&["content", "mode"]).report()[0],
        "content: (sensitive) → (sensitive)"
    );
    assert!(!format!("{run:?}").contains("hunter2"));
    assert_eq!((bench.read("a").as_str(), bench.mode("a")), ("hunter2", 0o600));
    file.apply().is_ok();
}

// Source

#[test]
fn a_single_file_is_copied_with_its_mode() {
    let bench = Bench::new();
    let source = bench.write("source", "text");
    bench.set_mode("source", 0o754);
    let mut copy = bench.resource(
        "file",
        &bench.path("copy"),
        &[exists(), ("source", text(&source))],
    );
    copy.check().drifted(&["state", "source"]);
    copy.apply().drifted(&["state", "source"]);
    assert_eq!((bench.read("copy").as_str(), bench.mode("copy")), ("text", 0o754));
    copy.apply().is_ok();
    bench.write("source", "other");
    copy.apply().drifted(&["source"]);
    assert_eq!(bench.read("copy"), "other");
    std::fs::remove_file(&source).unwrap();
    let failure = copy.check().failure();
    assert!(failure.contains("source: No such file"), "{failure}");
}

#[test]
fn a_source_that_is_the_file_itself_is_right() {
    let bench = Bench::new();
    let path = bench.write("a", "text");
    std::os::unix::fs::symlink("a", bench.path("b")).unwrap();
    bench
        .resource("file", &bench.path("b"), &[("source", text(path))])
        .apply()
        .is_ok();
}

// Links

#[test]
fn a_link_is_made_changed_and_removed() {
    let bench = Bench::new();
    let path = bench.path("l");
    let link = |target: &str, more: &[(&'static str, Value)]| {
        let mut all = vec![exists(), flag("symlink"), ("source", text(target))];
        all.extend_from_slice(more);
        bench.resource("file", &path, &all)
    };
    link("../not/there", &[]).check().drifted(&["target"]);
    assert!(!bench.exists("l"));
    let mut first = link("../not/there", &[]);
    first.apply().drifted(&["target"]);
    first.apply().is_ok();
    assert_eq!(
        link("b", &[]).apply().drifted(&["target"]).report(),
        ["target: ../not/there → b"]
    );
    assert_eq!(bench.tree("."), ["l -> b"]);
    bench
        .resource("file", &path, &[absent(), flag("symlink")])
        .apply()
        .drifted(&["state"]);
    assert!(!bench.exists("l"));

    bench.write("l", "file");
    let failure = link("b", &[]).apply().failure();
    assert!(
        failure.contains("it is a regular file and not a link"),
        "{failure}"
    );
    link("b", &[flag("force")]).apply().drifted(&["target"]);
    assert_eq!(bench.tree("."), ["l -> b"]);
    std::fs::remove_file(&path).unwrap();
    bench.make_directory("l");
    link("b", &[flag("force")]).apply().drifted(&["target"]);
    assert_eq!(bench.tree("."), ["l -> b"]);
}

#[test]
fn a_full_directory_never_gives_way_to_a_link() {
    let bench = Bench::new();
    bench.write("l/x", "");
    let all = [exists(), flag("symlink"), flag("force"), ("source", text("b"))];
    let failure = bench.resource("file", &bench.path("l"), &all).apply().failure();
    assert!(failure.contains("Directory not empty"), "{failure}");
    assert!(bench.exists("l/x"));
}

#[test]
fn owner_and_mode_of_a_link_never_touch_its_target() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    bench.write("target", "");
    bench.set_mode("target", 0o644);
    let all = [
        exists(),
        flag("symlink"),
        ("source", text("target")),
        ("owner", text("1")),
        ("mode", text("0600")),
    ];
    let mut link = bench.resource("file", &bench.path("l"), &all);
    link.apply().drifted(&["target"]);
    link.apply().is_ok();
    assert_eq!(std::fs::symlink_metadata(bench.path("l")).unwrap().uid(), 1);
    assert_eq!(std::fs::metadata(bench.path("target")).unwrap().uid(), 0);
    assert_eq!(bench.mode("target"), 0o644);
}

// Fragments

#[test]
fn fragments_follow_each_other_and_directories_go_by_name() {
    let bench = Bench::new();
    let head = bench.write("head", "head\n");
    bench.write("parts/20", "twenty\n");
    bench.write("parts/10", "ten\n");
    bench.write("parts/deeper/x", "no\n");
    let parts = format!("{}/", bench.path("parts"));
    let mut file = bench.resource(
        "file",
        &bench.path("all"),
        &[("fragments", texts(&[&head, &parts, &head]))],
    );
    file.apply().drifted(&["content"]);
    assert_eq!(bench.read("all"), "head\nten\ntwenty\nhead\n");
    file.apply().is_ok();
    bench.write("parts/15", "fifteen\n");
    file.apply().drifted(&["content"]);
    assert_eq!(bench.read("all"), "head\nten\nfifteen\ntwenty\nhead\n");
    std::fs::remove_file(&head).unwrap();
    let failure = file.check().failure();
    assert!(failure.contains("head: No such file"), "{failure}");
}

// Owner, group, mode

#[test]
fn owner_group_and_special_bits_converge_together() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    bench.write("a", "x");
    bench.set_mode("a", 0o644);
    let all = [
        ("owner", text("nobody")),
        ("group", text("12345")),
        ("mode", text("4755")),
    ];
    let mut file = bench.resource("file", &bench.path("a"), &all);
    let planned = file.check();
    planned.drifted(&["owner", "group", "mode"]);
    let run = file.apply();
    assert_eq!(run.report(), planned.report());
    let metadata = std::fs::metadata(bench.path("a")).unwrap();
    assert_eq!(
        (metadata.uid(), metadata.gid(), bench.mode("a")),
        (65534, 12345, 0o4755)
    );
    file.apply().is_ok();
}

#[test]
fn changing_the_owner_does_not_lose_special_bits_that_are_wanted() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    bench.write("a", "x");
    bench.set_mode("a", 0o4755);
    let all = [("owner", text("nobody")), ("mode", text("4755"))];
    let mut file = bench.resource("file", &bench.path("a"), &all);
    file.apply().drifted(&["owner"]);
    assert_eq!(bench.mode("a"), 0o4755);
    file.apply().is_ok();
}

#[test]
fn metadata_of_a_file_that_is_not_there_yet_waits_for_it() {
    let bench = Bench::new();
    let all = [exists(), content("x"), ("mode", text("u=rw,go="))];
    let mut file = bench.resource("file", &bench.path("a"), &all);
    let planned = file.check();
    planned.drifted(&["state", "content"]);
    assert_eq!(file.apply().report(), planned.report());
    assert_eq!(bench.mode("a"), 0o600);
    file.apply().is_ok();
    let failure = bench
        .resource("file", &bench.path("b"), &[("mode", text("0600"))])
        .apply()
        .failure();
    assert!(failure.ends_with("/b: it does not exist"), "{failure}");
}

#[test]
fn an_unknown_owner_is_an_error_before_anything_is_written() {
    let bench = Bench::new();
    let all = [content("x"), ("owner", text("nobody-of-that-name"))];
    let failure = bench.resource("file", &bench.path("a"), &all).apply().failure();
    assert!(
        failure.contains("there is no user `nobody-of-that-name`"),
        "{failure}"
    );
    assert!(!bench.exists("a"));
}

#[test]
fn no_context_is_wanted_where_there_is_none() {
    let bench = Bench::new();
    bench.write("a", "x");
    if std::fs::read("/sys/fs/selinux/enforce").is_ok() {
        return;
    }
    bench
        .resource("file", &bench.path("a"), &[("selinux", text(""))])
        .apply()
        .is_ok();
}

// Description

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let all = [
        ("path", text("relative")),
        ("state", text("gone")),
        content("x"),
        ("source", text("also/relative")),
        ("mode", text("o+w")),
        flag("purge"),
    ];
    let fields: Vec<_> = refused("file", "n", &all)
        .iter()
        .map(|line| line.split(':').next().unwrap().to_owned())
        .collect();
    assert_eq!(
        fields,
        [
            "state", "mode", "path", "source", "source", "purge", "purge", "purge"
        ]
    );
}

#[test]
fn contradictions_are_refused() {
    let directory = ("source", text("/a/"));
    let single = ("source", text("/a"));
    for (name, parameters, field) in [
        ("/x", vec![("dirname", text("/d"))], "dirname"),
        ("/x", vec![("basename", text("/d"))], "basename"),
        ("/x", vec![exists(), flag("symlink")], "symlink"),
        ("/x", vec![absent(), content("")], "state"),
        ("/x", vec![absent(), ("selinux", text(""))], "selinux"),
        ("/x", vec![directory.clone()], "source"),
        ("/x/", vec![single.clone()], "source"),
        ("/x/", vec![content("")], "path"),
        ("/x/", vec![flag("symlink"), single.clone()], "path"),
        ("/x/", vec![directory.clone()], "recurse"),
        ("/x/", vec![flag("purge")], "purge"),
        ("/x", vec![flag("recurse"), flag("purge")], "purge"),
        ("/x", vec![single.clone(), flag("recurse")], "recurse"),
        ("/x", vec![("fragments", texts(&["rel"]))], "fragments"),
        ("/x/y", vec![("fragments", texts(&["/x/../x/"]))], "fragments"),
        ("/x", vec![("mode", text("9"))], "mode"),
        (
            "/x",
            vec![flag("symlink"), exists(), single.clone(), flag("recurse")],
            "symlink",
        ),
        ("/x\0", vec![], "path"),
    ] {
        let refused = refused("file", name, &parameters);
        assert!(
            refused.iter().any(|line| line.starts_with(&format!("{field}:"))),
            "{name} {parameters:?} {refused:?}"
        );
    }
    for (name, parameters) in [
        ("/x", vec![absent(), ("mode", text("0600"))]),
        ("/x", vec![flag("symlink"), exists(), ("source", text("rel"))]),
        ("/x/", vec![directory, flag("recurse"), flag("purge")]),
        ("/x", vec![("fragments", texts(&["/xy"]))]),
    ] {
        assert_eq!(refused("file", name, &parameters), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn the_effective_path_is_what_counts() {
    let bench = Bench::new();
    let named = bench.resource("file", "/a/./b", &[("basename", text("c")), content("")]);
    assert_eq!(named.resource().identities(), [FILE.identity(b"/a/c".as_slice())]);
    let spec = spec("file");
    let same = |a: &[(&str, Value)], b: &[(&str, Value)]| (spec.same)("/n", &given(spec, a), &given(spec, b));
    assert!(same(&[], &[("path", text("/n"))]));
    assert!(same(&[("path", text("/b/../n")), ("basename", text("n"))], &[]));
    assert!(!same(&[], &[("path", text("/m"))]));
    assert!(!same(&[content("")], &[]));
    assert!(same(&[("recurse", Value::Bool(false))], &[]));
    assert!(same(&[("mode", text("644"))], &[("mode", text("0644"))]));
    assert!(!same(&[("mode", text("0600"))], &[("mode", text("0644"))]));
}

#[test]
fn it_wants_its_parts_and_its_nearest_directory_first() {
    let bench = Bench::new();
    let file = bench.resource("file", "/a/b/c", &[("fragments", texts(&["/f", "/d/"]))]);
    let wanted = file.resource().wanted();
    let paths = |index: usize| -> Vec<Identity> {
        let files = wanted[index].identities.iter();
        files
            .filter(|identity| identity.sort.name == FILE.name)
            .cloned()
            .collect()
    };
    let file = |path: &str| FILE.identity(path.as_bytes());
    assert_eq!(paths(0), [file("/a/b/"), file("/a/"), file("/")]);
    assert_eq!(paths(1), [file("/f"), file("/d/")]);
}

#[test]
fn what_is_watched_reaches_as_far_as_what_is_managed() {
    let bench = Bench::new();
    let watches = |name: &str, parameters: &[(&str, Value)]| -> Vec<(String, Depth, Follow)> {
        let watches = bench.resource("file", name, parameters).resource().watches();
        let shown = watches.into_iter().map(|watch| match watch {
            Watch::Path { path, depth, follow } => (path.to_string(), depth, follow),
            other => panic!("{other:?}"),
        });
        shown.collect()
    };
    assert_eq!(
        watches("/a", &[content("")]),
        [("/a".to_owned(), Depth::Entry, Follow::Target)]
    );
    let tree = watches("/a/", &[flag("recurse"), ("source", text("/s/"))]);
    assert_eq!(
        tree,
        [
            ("/a/".to_owned(), Depth::Recursive, Follow::Target),
            ("/s/".to_owned(), Depth::Recursive, Follow::Target),
        ]
    );
    let link = watches("/a", &[flag("symlink"), ("source", text("/s"))]);
    assert_eq!(link, [("/a".to_owned(), Depth::Entry, Follow::Link)]);
    let parts = watches("/a", &[("fragments", texts(&["/f", "/d/"]))]);
    assert_eq!(
        parts[1..],
        [
            ("/f".to_owned(), Depth::Entry, Follow::Target),
            ("/d/".to_owned(), Depth::Children, Follow::Target),
        ]
    );
}

#[test]
fn the_reverse_brings_old_bytes_back() {
    let bench = Bench::new();
    let path = bench.write("a", "old");
    bench.set_mode("a", 0o640);
    let reverse = |parameters: &[(&str, Value)]| {
        let subject = bench.resource("file", &path, parameters);
        let reverse = subject.resource().reverse(&subject.handle, &[]);
        reverse.map(|parameters| parameters.unwrap())
    };
    let undone = reverse(&[content("new"), ("mode", text("0600"))]).unwrap();
    assert_eq!(undone.get("content"), Some(&text("old")));
    assert_eq!(undone.get("mode"), Some(&text("0640")));
    assert_eq!(undone.get("state"), None);
    let removed = reverse(&[
        exists(),
        content("new"),
        ("mode", text("0600")),
        ("selinux", text("")),
    ])
    .unwrap();
    assert_eq!(removed.get("state"), Some(&text("absent")));
    // A tree that comes in the place of the file would go with it.
    let alone = reverse(&[exists(), ("recurse", yes()), ("force", yes())]).unwrap();
    assert_eq!((alone.get("recurse"), alone.get("force")), (None, Some(&yes())));
    let check = spec("file").schema.check;
    assert_eq!(check(&path, &removed, &MetaParameters::default()), []);
    let restored = reverse(&[absent()]).unwrap();
    assert_eq!(restored.get("content"), Some(&text("old")));
    assert_eq!(restored.get("state"), Some(&text("exists")));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(reverse(&[absent()]).unwrap().get("state"), None);
    assert!(reverse(&[("source", text("/x"))]).is_err());
}

#[test]
fn files_of_the_kernel_are_refused_in_a_plan_too() {
    let bench = Bench::new();
    for (path, kind) in [
        ("/proc/sys/kernel/domainname", "the kind `sysctl`"),
        ("/proc/setpoint/none", "an `exec` with `ifcmd`"),
        ("/sys/kernel/mm/none", "an `exec` with `ifcmd`"),
    ] {
        let mut file = bench.resource("file", path, &[exists(), ("content", text("wanted\n"))]);
        for run in [file.check(), file.apply()] {
            let failure = run.failure();
            assert!(failure.contains(path) && failure.contains(kind), "{failure}");
            assert!(run.fields().is_empty(), "{:?}", run.fields());
        }
    }
}

#[test]
fn without_privilege_the_failure_names_the_target() {
    let bench = Bench::new();
    if is_root() {
        // Root may do nearly everything; `/proc` refuses it too.
        let mut file = bench.resource("file", "/proc/setpoint-test", &[exists()]);
        let failure = file.apply().failure();
        assert!(failure.starts_with("create /proc/setpoint-test: "), "{failure}");
        return;
    }
    let failure = bench
        .resource("file", "/setpoint-test", &[exists()])
        .apply()
        .failure();
    assert_eq!(failure, "create /setpoint-test: Permission denied");
}

#[test]
fn first_contents_are_left_to_others_and_the_mode_is_not() {
    let bench = Bench::new();
    let parameters = [
        ("content", text("default")),
        ("mode", text("0640")),
        ("replace", Value::Bool(false)),
    ];
    let mut first = bench.resource("file", &bench.path("conf"), &parameters);
    first.apply().drifted(&["content"]);
    bench.write("conf", "mine");
    bench.set_mode("conf", 0o600);
    first.apply().drifted(&["mode"]);
    assert_eq!(
        (bench.read("conf"), bench.mode("conf")),
        ("mine".to_owned(), 0o640)
    );
    bench.write("source/a", "default");
    let tree = [
        ("source", text(format!("{}/", bench.path("source")))),
        ("recurse", yes()),
        ("state", text("exists")),
        ("replace", Value::Bool(false)),
    ];
    let mut tree = bench.resource("file", &format!("{}/", bench.path("tree")), &tree);
    tree.apply();
    assert_eq!(bench.read("tree/a"), "default");
    bench.write("tree/a", "mine");
    tree.apply().is_ok();
    assert_eq!(
        refused("file", "/n", &[("replace", Value::Bool(false))]),
        ["replace: there are no contents: set `content`, `source` or `fragments`"]
    );
}
