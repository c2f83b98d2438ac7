//! `file` beside other users: what they made beforehand, what they still hold, and what they may read.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, chown};

use setpoint_host::files::{AbsolutePath, Entry};
use setpoint_value::{Type, Value};

use crate::harness::{Bench, is_root, refused, text, texts, yes};

/// The number of the user nobody, who stands for somebody else.
const OTHER: u32 = 65534;
const ACCESS: &str = "system.posix_acl_access";
const DEFAULT: &str = "system.posix_acl_default";

fn content(bytes: &str) -> (&'static str, Value) {
    ("content", text(bytes))
}

fn secret(bytes: &str) -> (&'static str, Value) {
    ("content", text(bytes).sensitive())
}

fn give_away(bench: &Bench, relative: &str) {
    chown(bench.path(relative), Some(OTHER), Some(OTHER)).unwrap();
}

fn stat(bench: &Bench, relative: &str) -> std::fs::Metadata {
    std::fs::symlink_metadata(bench.path(relative)).unwrap()
}

fn entry(bench: &Bench, relative: &str) -> Entry {
    Entry::at(&AbsolutePath::new(bench.path(relative)).unwrap()).unwrap()
}

/// A list that lets the user `OTHER` read and write.
fn list() -> Vec<u8> {
    let mut list = vec![2, 0, 0, 0];
    for (tag, permissions, number) in [
        (0x01u16, 7u16, u32::MAX),
        (0x02, 7, OTHER),
        (0x04, 0, u32::MAX),
        (0x10, 7, u32::MAX),
        (0x20, 0, u32::MAX),
    ] {
        list.extend_from_slice(&tag.to_le_bytes());
        list.extend_from_slice(&permissions.to_le_bytes());
        list.extend_from_slice(&number.to_le_bytes());
    }
    list
}

#[test]
fn rights_to_run_as_the_owner_do_not_come_with_a_source() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    bench.write("source/program", "evil");
    bench.make_directory("source/inner");
    for (name, mode) in [
        ("source", 0o755),
        ("source/program", 0o6777),
        ("source/inner", 0o3777),
    ] {
        give_away(&bench, name);
        bench.set_mode(name, mode);
    }
    let source = format!("{}/", bench.path("source"));
    let target = format!("{}/", bench.path("target"));
    let all = [
        ("state", text("exists")),
        ("source", text(&source)),
        ("recurse", yes()),
    ];
    bench.resource("file", &target, &all).apply().result.unwrap();
    assert_eq!(
        (stat(&bench, "target/program").uid(), bench.mode("target/program")),
        (0, 0o755)
    );
    assert_eq!(bench.mode("target/inner"), 0o755);

    let one = bench.path("source/program");
    let all = [("state", text("exists")), ("source", text(&one))];
    let mut copy = bench.resource("file", &bench.path("copy"), &all);
    copy.apply().result.unwrap();
    assert_eq!(bench.mode("copy"), 0o755);

    // Nor do they stay when the contents change; an explicit mode gives them.
    bench.write("program", "old");
    bench.set_mode("program", 0o4755);
    bench
        .resource("file", &bench.path("program"), &[content("new")])
        .apply()
        .drifted(&["content"]);
    assert_eq!(bench.mode("program"), 0o755);
    let mut wanted = bench.resource("file", &bench.path("program"), &[("mode", text("4755"))]);
    wanted.apply().drifted(&["mode"]);
    assert_eq!(bench.mode("program"), 0o4755);
}

#[test]
fn a_symbolic_mode_gives_no_rights_that_the_last_owner_chose() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    bench.write("program", "evil");
    give_away(&bench, "program");
    bench.set_mode("program", 0o6777);
    let all = [("owner", text("root")), ("mode", text("o=rx"))];
    let mut file = bench.resource("file", &bench.path("program"), &all);
    let planned = file.check().report();
    assert_eq!(file.apply().report(), planned);
    assert_eq!((stat(&bench, "program").uid(), bench.mode("program")), (0, 0o775));
    file.apply().is_ok();
}

#[test]
fn a_file_is_taken_from_another_user_by_making_it_anew() {
    if !is_root() {
        return;
    }
    for (what, contents) in [
        ("nothing but the owner", None),
        ("contents that are right already", Some(content("right"))),
    ] {
        let bench = Bench::new();
        bench.write("a", "right");
        give_away(&bench, "a");
        bench.set_mode("a", 0o666);
        let held: File = OpenOptions::new().write(true).open(bench.path("a")).unwrap();
        let all: Vec<_> = contents
            .into_iter()
            .chain([("owner", text("root")), ("mode", text("0644"))])
            .collect();
        let mut file = bench.resource("file", &bench.path("a"), &all);
        let planned = file.check().report();
        let run = file.apply();
        run.drifted(&["owner", "group", "mode"]);
        assert_eq!(run.report(), planned);
        held.write_at(b"wrong", 0).unwrap();
        assert_eq!(bench.read("a"), "right", "{what}");
        let now = stat(&bench, "a");
        assert_eq!((now.uid(), now.gid(), bench.mode("a")), (0, 0, 0o644), "{what}");
        file.apply().is_ok();
    }
}

#[test]
fn a_source_that_was_copied_before_is_copied_again_when_the_owner_changes() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let source = bench.write("source", "right");
    bench.write("a", "right");
    give_away(&bench, "a");
    let held = OpenOptions::new().write(true).open(bench.path("a")).unwrap();
    let all = [
        ("state", text("exists")),
        ("source", text(&source)),
        ("owner", text("root")),
    ];
    bench
        .resource("file", &bench.path("a"), &all)
        .apply()
        .drifted(&["owner", "group"]);
    held.write_at(b"wrong", 0).unwrap();
    assert_eq!(bench.read("a"), "right");
}

#[test]
fn nothing_is_taken_from_a_file_that_is_given_to_somebody_else() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    bench.write("a", "x");
    let inode = stat(&bench, "a").ino();
    bench
        .resource("file", &bench.path("a"), &[("owner", text("nobody"))])
        .apply()
        .drifted(&["owner"]);
    assert_eq!((stat(&bench, "a").uid(), stat(&bench, "a").ino()), (OTHER, inode));
}

#[test]
fn a_hard_link_of_theirs_to_a_file_that_they_may_not_read_is_not_copied_for_them() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    bench.write("secret", "hunter2");
    chown(bench.path("secret"), Some(1), Some(1)).unwrap();
    bench.set_mode("secret", 0o600);
    bench.make_directory("theirs");
    std::fs::hard_link(bench.path("secret"), bench.path("theirs/a")).unwrap();
    give_away(&bench, "theirs");
    let all = [("owner", text("nobody")), ("mode", text("0644"))];
    let failure = bench
        .resource("file", &bench.path("theirs/a"), &all)
        .apply()
        .failure();
    assert!(failure.contains("it has several names"), "{failure}");
    assert_eq!(stat(&bench, "secret").uid(), 1);
    assert_eq!(bench.mode("theirs/a"), 0o600);
}

#[test]
fn a_list_that_another_user_made_beforehand_lets_nobody_in() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    bench.write("a", "old");
    entry(&bench, "a").set_attribute(ACCESS, &list()).unwrap();
    give_away(&bench, "a");
    let all = [
        content("new"),
        ("owner", text("root")),
        ("group", text("root")),
        ("mode", text("0640")),
    ];
    let mut file = bench.resource("file", &bench.path("a"), &all);
    file.apply().result.unwrap();
    assert_eq!(entry(&bench, "a").access_lists().unwrap(), None);
    assert_eq!(bench.mode("a"), 0o640);
    file.apply().is_ok();
}

#[test]
fn a_directory_of_another_user_hands_no_list_on_to_what_is_made_in_it() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    bench.make_directory("theirs");
    entry(&bench, "theirs").set_attribute(DEFAULT, &list()).unwrap();
    give_away(&bench, "theirs");
    let exists = ("state", text("exists"));
    let cases: [(&str, Vec<(&str, Value)>); 5] = [
        ("theirs/content", vec![exists.clone(), content("x")]),
        (
            "theirs/mode",
            vec![exists.clone(), content("x"), ("mode", text("0640"))],
        ),
        ("theirs/empty", vec![exists.clone()]),
        ("theirs/directory/", vec![exists.clone()]),
        ("theirs/closed/", vec![exists, ("mode", text("0750"))]),
    ];
    for (name, all) in cases {
        let mut file = bench.resource("file", &bench.path(name), &all);
        file.apply().result.unwrap();
        let name = name.trim_end_matches('/');
        assert_eq!(entry(&bench, name).access_lists().unwrap(), None, "{name}");
        file.apply().is_ok();
    }
}

#[test]
fn beside_a_mode_there_is_no_list_and_without_one_it_stays() {
    let bench = Bench::new();
    bench.write("a", "x");
    entry(&bench, "a").set_attribute(ACCESS, &list()).unwrap();
    let mut kept = bench.resource("file", &bench.path("a"), &[content("y")]);
    kept.apply().drifted(&["content"]);
    assert!(entry(&bench, "a").access_lists().unwrap().is_some());

    let mut file = bench.resource("file", &bench.path("a"), &[content("y"), ("mode", text("0670"))]);
    let planned = file.check();
    planned.drifted(&["mode", "access list"]);
    assert_eq!(planned.report()[1], "access list: user:65534:rwx → (absent)");
    assert_eq!(file.apply().report(), planned.report());
    assert_eq!(entry(&bench, "a").access_lists().unwrap(), None);
    file.apply().is_ok();
}

#[test]
fn a_directory_is_taken_over_with_what_it_hands_on() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    bench.make_directory("theirs");
    give_away(&bench, "theirs");
    bench.set_mode("theirs", 0o777);
    entry(&bench, "theirs").set_attribute(DEFAULT, &list()).unwrap();
    let all = [("state", text("exists")), ("owner", text("root"))];
    let mut file = bench.resource("file", &format!("{}/", bench.path("theirs")), &all);
    let planned = file.check().report();
    assert_eq!(file.apply().report(), planned);
    let now = stat(&bench, "theirs");
    assert_eq!((now.uid(), now.gid(), bench.mode("theirs")), (0, 0, 0o755));
    assert_eq!(entry(&bench, "theirs").access_lists().unwrap(), None);
    file.apply().is_ok();
}

#[test]
fn a_secret_without_a_mode_is_for_its_owner_alone() {
    let bench = Bench::new();
    let mut file = bench.resource("file", &bench.path("a"), &[secret("hunter2")]);
    let run = file.apply();
    run.drifted(&["content"]);
    assert_eq!(bench.mode("a"), 0o600);
    assert_eq!(run.log, []);
    file.apply().is_ok();
}

#[test]
fn a_mode_that_lets_everybody_read_a_secret_is_doubted_before_anything_runs() {
    let unknown = Value::unknown(Type::Str).sensitive();
    let doubt = "mode: everybody on this machine can read the sensitive contents";
    for (content, mode, doubts) in [
        (text("hunter2").sensitive(), "0644", vec![doubt]),
        (text("hunter2").sensitive(), "ug=rw,o=r", vec![doubt]),
        (unknown.clone(), "a=r", vec![doubt]),
        (unknown, "0640", vec![]),
        (text("hunter2").sensitive(), "u=rw,go=", vec![]),
        (text("hunter2"), "0644", vec![]),
    ] {
        let parameters = [("content", content), ("mode", text(mode))];
        assert_eq!(refused("file", "/a", &parameters), doubts, "{mode}");
    }
}

#[test]
fn what_only_a_run_can_know_of_the_readers_of_a_secret_is_remarked_on_once() {
    let bench = Bench::new();
    let all = [("content", text("x")), ("mode", text("0644"))];
    let mut open = bench.resource("file", &bench.path("a"), &all);
    assert_eq!(open.apply().log, []);
    open.receive("content", &secret("hunter2").1);
    let log = open.apply().log;
    assert!(
        log.len() == 1 && log[0].1.contains("`mode` lets others read"),
        "{log:?}"
    );
    assert_eq!(open.apply().log, []);
    let written = [secret("hunter2"), ("mode", text("0644"))];
    assert_eq!(bench.resource("file", &bench.path("a"), &written).apply().log, []);
    let group = [secret("hunter2"), ("mode", text("0640"))];
    assert_eq!(bench.resource("file", &bench.path("b"), &group).apply().log, []);
    bench.write("c", "old");
    bench.set_mode("c", 0o644);
    let log = bench
        .resource("file", &bench.path("c"), &[secret("hunter2")])
        .apply()
        .log;
    assert!(
        log.len() == 1 && log[0].1.contains("`mode` is not set"),
        "{log:?}"
    );
}

#[test]
fn a_secret_does_not_stay_with_a_user_whom_nobody_named() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    bench.write("a", "waiting");
    give_away(&bench, "a");
    bench.set_mode("a", 0o600);
    let held = File::open(bench.path("a")).unwrap();
    let mut file = bench.resource("file", &bench.path("a"), &[secret("hunter2")]);
    let planned = file.check().report();
    assert_eq!(file.apply().report(), planned);
    let now = stat(&bench, "a");
    assert_eq!((now.uid(), now.gid(), bench.mode("a")), (0, 0, 0o600));
    let mut seen = [0; 7];
    held.read_exact_at(&mut seen, 0).unwrap();
    assert_eq!(&seen, b"waiting");
    file.apply().is_ok();

    // What is no secret stays with whom it belongs to.
    let mut open = std::fs::File::create(bench.path("b")).unwrap();
    open.write_all(b"old").unwrap();
    give_away(&bench, "b");
    bench
        .resource("file", &bench.path("b"), &[content("new")])
        .apply()
        .drifted(&["content"]);
    assert_eq!(stat(&bench, "b").uid(), OTHER);
}

#[test]
fn an_empty_file_for_somebody_is_never_open_to_others() {
    const INSIDE: &str = "SETPOINT_TEST_EMPTY_FILE";
    let all = [
        ("state", text("exists")),
        ("owner", text("nobody")),
        ("mode", text("0600")),
    ];
    if let Some(path) = std::env::var_os(INSIDE) {
        let bench = Bench::new();
        let failure = bench
            .resource("file", path.to_str().unwrap(), &all)
            .apply()
            .failure();
        assert!(failure.contains("change the owner of"), "{failure}");
        return;
    }
    if !is_root() {
        return;
    }
    // Root without the right to give files away: the run ends between making the file and giving it its mode.
    let bench = Bench::new();
    let output = std::process::Command::new("setpriv")
        .args(["--bounding-set=-chown", "--inh-caps=-chown"])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "file_ownership::an_empty_file_for_somebody_is_never_open_to_others",
        ])
        .env(INSIDE, bench.path("a"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(bench.mode("a"), 0o600);

    // Without a mode it ends with the usual one.
    let owned = [("state", text("exists")), ("owner", text("nobody"))];
    bench
        .resource("file", &bench.path("b"), &owned)
        .apply()
        .drifted(&["state"]);
    assert_eq!((stat(&bench, "b").uid(), bench.mode("b")), (OTHER, 0o644));
}

#[test]
fn reports_do_not_publish_what_only_another_user_could_read() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    bench.write("source/a", "new");
    bench.write("target/a", "hunter2");
    give_away(&bench, "target/a");
    let source = format!("{}/", bench.path("source"));
    let tree = [
        ("state", text("exists")),
        ("source", text(&source)),
        ("recurse", yes()),
    ];
    let shown = |mode: u32, owner: Option<&str>| {
        bench.set_mode("target/a", mode);
        let owner = owner.map(|owner| ("owner", text(owner)));
        let all: Vec<_> = [content("new")].into_iter().chain(owner).collect();
        let one = bench.resource("file", &bench.path("target/a"), &all).check();
        let target = format!("{}/", bench.path("target"));
        let tree = bench.resource("file", &target, &tree).check();
        (one.report()[0].clone(), tree.report()[0].clone())
    };
    let hidden = shown(0o660, None);
    let new = format!(
        "3 bytes (sha256 {})",
        "11507a0e2f5e69d5dfa40a62a1bd7b6ee57e6bcd85c67c9b8431b36fff21c437"
    );
    assert_eq!(hidden.0, format!("content: 7 bytes → {new}"));
    assert_eq!(hidden.1, format!("source a: 7 bytes → {new}"));
    assert_eq!(shown(0o644, None).0, "content: \"hunter2\" → \"new\"");
    let own = shown(0o600, Some("nobody")).0;
    assert!(
        own.starts_with("content: 7 bytes (sha256 ") && own.ends_with(&format!(" → {new}")),
        "{own}"
    );
    assert_eq!(shown(0o600, Some("root")).0, format!("content: 7 bytes → {new}"));
}

#[test]
fn files_that_are_longer_than_any_disk_take_no_time() {
    const LENGTH: u64 = 15 << 40;
    let bench = Bench::new();
    let file = File::create(bench.path("target")).unwrap();
    file.set_len(LENGTH).unwrap();
    let mut small = bench.resource("file", &bench.path("target"), &[content("x")]);
    assert_eq!(
        small.check().report(),
        [format!("content: {LENGTH} bytes → \"x\"")]
    );

    // As sources they are copied with their holes.
    let source = File::create(bench.path("source")).unwrap();
    source.set_len(LENGTH).unwrap();
    source.write_all_at(b"far", 3 << 40).unwrap();
    let all = [("state", text("exists")), ("source", text(bench.path("source")))];
    let mut copy = bench.resource("file", &bench.path("target"), &all);
    copy.apply().drifted(&["source"]);
    let copied = File::open(bench.path("target")).unwrap();
    let mut found = [0; 4];
    copied.read_exact_at(&mut found, 3 << 40).unwrap();
    assert_eq!((&found, copied.metadata().unwrap().len()), (b"far\0", LENGTH));
    assert!(copied.metadata().unwrap().blocks() < 1000);
    copy.apply().is_ok();
    source.write_all_at(b"near", 1 << 20).unwrap();
    copy.apply().drifted(&["source"]);
    copy.apply().is_ok();

    // What is to be held in memory is refused.
    let fragments = [("fragments", Value::strings([bench.path("source").as_str()]))];
    let failure = bench
        .resource("file", &bench.path("all"), &fragments)
        .apply()
        .failure();
    assert!(failure.contains("longer than 1 GiB"), "{failure}");
}

/// The report of a run must not have the contents, and may have their length.
#[track_caller]
fn keeps_to_itself(bench: &Bench, parameters: &[(&str, Value)]) {
    let mut file = bench.resource("file", &bench.path("target"), parameters);
    for run in [file.check(), file.apply()] {
        assert!(run.result.is_ok(), "{}", run.failure());
        let report = run.report().join("\n");
        assert!(
            !report.contains("hunter") && report.contains("bytes"),
            "{parameters:?}: {report}"
        );
    }
    assert!(bench.read("target").contains("hunter"));
}

#[test]
fn reports_show_contents_only_if_everybody_may_read_them() {
    let bench = Bench::new();
    let private = bench.write("private", "hunter2\n");
    let public = bench.write("public", "hunter3\n");
    bench.set_mode("private", 0o600);
    bench.set_mode("public", 0o644);
    let mode = |mode: &str| ("mode", text(mode));
    let fragments = |paths: &[&String]| {
        let paths: Vec<&str> = paths.iter().map(|path| path.as_str()).collect();
        ("fragments", texts(&paths))
    };
    let exists = || ("state", text("exists"));
    // The source is private, whatever the target is.
    keeps_to_itself(&bench, &[exists(), ("source", text(&private)), mode("0644")]);
    bench.write("target", "hunter1\n");
    keeps_to_itself(&bench, &[exists(), fragments(&[&public, &private]), mode("0644")]);
    // The target becomes private.
    bench.write("target", "hunter1\n");
    keeps_to_itself(&bench, &[exists(), ("source", text(&public)), mode("0600")]);
    keeps_to_itself(
        &bench,
        &[exists(), ("content", text("hunter4\n")), mode("u=rw,go=")],
    );
    // The target is private already.
    bench.set_mode("target", 0o600);
    keeps_to_itself(&bench, &[exists(), ("content", text("hunter5\n"))]);
    bench.set_mode("target", 0o640);
    keeps_to_itself(&bench, &[exists(), ("source", text(&public)), mode("0644")]);
    // All of it is public.
    bench.set_mode("target", 0o644);
    let mut file = bench.resource("file", &bench.path("target"), &[("content", text("plain\n"))]);
    assert_eq!(file.apply().report(), ["content: \"hunter3\\n\" → \"plain\\n\""]);
}

#[test]
fn a_tree_shows_only_the_public_files_of_it() {
    let bench = Bench::new();
    bench.write("source/private", "hunter2\n");
    bench.write("source/public", "plain\n");
    bench.set_mode("source/private", 0o600);
    bench.set_mode("source/public", 0o644);
    bench.make_directory("copy");
    let parameters = [
        ("state", text("exists")),
        ("source", text(format!("{}/", bench.path("source")))),
        ("recurse", yes()),
    ];
    let mut copy = bench.resource("file", &format!("{}/", bench.path("copy")), &parameters);
    let report = copy.apply().report();
    assert_eq!(report[1], "source public: (absent) → \"plain\\n\"");
    assert!(
        report[0].starts_with("source private: (absent) → 8 bytes"),
        "{report:?}"
    );
}

#[test]
fn capabilities_go_with_the_old_contents_and_the_run_says_so() {
    if !is_root() {
        println!("skipped: only root may give capabilities");
        return;
    }
    let bench = Bench::new();
    let path = bench.write("server", "old");
    bench.set_mode("server", 0o755);
    // The capability to bind low ports, as the kernel stores it.
    let stored = [[1, 0, 0, 2], [0, 4, 0, 0], [0; 4], [0; 4], [0; 4]].concat();
    let entry = Entry::at(&AbsolutePath::new(&path).unwrap()).unwrap();
    entry.set_attribute("security.capability", &stored).unwrap();
    let mut server = bench.resource("file", &path, &[("content", text("new"))]);
    let run = server.apply();
    run.drifted(&["content"]);
    let told = run.log.iter().filter(|(_, line)| line.contains("capabilities"));
    assert_eq!(told.count(), 1, "{:?}", run.log);
    assert_eq!(entry.attribute("security.capability").unwrap(), None);
    bench.write("server", "drifted");
    let again = server.apply();
    assert!(
        !again.log.iter().any(|(_, line)| line.contains("capabilities")),
        "{:?}",
        again.log
    );
}
