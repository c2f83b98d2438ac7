//! The kind `archive`, with archives that real programs have made.

use std::process::Command;

use setpoint_value::Value;

use crate::harness::{Bench, Subject, refused, text, texts, yes};

/// Makes an archive of a directory with a program.
fn pack(bench: &Bench, directory: &str, archive: &str) -> String {
    let path = bench.path(archive);
    let script = match archive.rsplit('.').next() {
        Some("zip") => "import sys,shutil; shutil.make_archive(sys.argv[1][:-4], 'zip', sys.argv[2])",
        _ => {
            "import sys,tarfile; t=tarfile.open(sys.argv[1], 'w:'+sys.argv[1].rsplit('.')[-1].replace('tar','')); t.add(sys.argv[2], arcname='top'); t.close()"
        }
    };
    let made = Command::new("python3")
        .args(["-c", script, &path, &bench.path(directory)])
        .status();
    assert!(made.unwrap().success());
    path
}

fn version(bench: &Bench, text: &str, archive: &str) -> String {
    let _ = std::fs::remove_dir_all(bench.path("tree"));
    bench.write("tree/bin/tool", format!("tool {text}"));
    bench.set_mode("tree/bin/tool", 0o755);
    bench.write("tree/etc/tool.conf", format!("default of {text}"));
    bench.write(&format!("tree/only-in-{text}"), "");
    std::os::unix::fs::symlink("bin/tool", bench.path("tree/link")).unwrap();
    pack(bench, "tree", archive)
}

fn archive(bench: &Bench, source: &str, further: &[(&str, Value)]) -> Subject {
    let mut parameters = vec![("source", text(source)), ("strip", Value::Int(1))];
    parameters.extend(further.iter().cloned());
    bench.resource("archive", &format!("{}/", bench.path("opt")), &parameters)
}

#[test]
fn a_directory_is_what_the_archive_holds_and_nothing_else() {
    for form in ["tar", "tar.gz", "tar.xz", "tar.bz2"] {
        let bench = Bench::new();
        let one = version(&bench, "one", &format!("one.{form}"));
        let mut first = archive(&bench, &one, &[]);
        assert_eq!(first.check().fields(), ["version"], "{form}");
        assert!(!bench.exists("opt"), "a look changes nothing");
        first.apply().drifted(&["version"]);
        let expected = [
            "bin/",
            "bin/tool=tool one",
            "etc/",
            "etc/tool.conf=default of one",
            "link -> bin/tool",
            "only-in-one=",
        ];
        assert_eq!(bench.tree("opt"), expected, "{form}");
        assert_eq!(bench.mode("opt/bin/tool"), 0o755);
        first.apply().is_ok();
        bench.write("opt/bin/tool", "changed");
        bench.write("opt/extra", "");
        std::fs::remove_file(bench.path("opt/link")).unwrap();
        let run = first.apply();
        assert_eq!(run.fields(), ["changed bin/tool", "missing link", "extra extra"]);
        assert_eq!(bench.tree("opt"), expected, "{form}");
        first.apply().is_ok();
        let two = version(&bench, "two", &format!("two.{form}"));
        let mut second = archive(&bench, &two, &[]);
        second.apply().drifted(&["version"]);
        assert!(bench.exists("opt/only-in-two") && !bench.exists("opt/only-in-one"));
        second.apply().is_ok();
        let mut gone = archive(&bench, &two, &[("state", text("absent"))]);
        gone.apply().drifted(&["state"]);
        assert!(!bench.exists("opt"), "{form}");
        gone.apply().is_ok();
    }
}

#[test]
fn a_zip_archive_is_unpacked() {
    let bench = Bench::new();
    bench.write("tree/a/b", "text");
    let zip = pack(&bench, "tree", "a.zip");
    let mut unpacked = bench.resource(
        "archive",
        &format!("{}/", bench.path("opt")),
        &[("source", text(zip))],
    );
    unpacked.apply().drifted(&["version"]);
    assert_eq!(bench.tree("opt"), ["a/", "a/b=text"]);
    unpacked.apply().is_ok();
}

#[test]
fn entries_of_others_survive_a_new_version() {
    let bench = Bench::new();
    let kept = [("keep", texts(&["etc/tool.conf", "data"]))];
    let one = version(&bench, "one", "one.tar");
    archive(&bench, &one, &kept).apply().drifted(&["version"]);
    bench.write("opt/etc/tool.conf", "mine");
    bench.write("opt/data/db", "rows");
    archive(&bench, &one, &kept).apply().is_ok();
    let two = version(&bench, "two", "two.tar");
    archive(&bench, &two, &kept).apply().drifted(&["version"]);
    assert_eq!(
        (bench.read("opt/etc/tool.conf"), bench.read("opt/data/db")),
        ("mine".to_owned(), "rows".to_owned())
    );
    assert_eq!(bench.read("opt/bin/tool"), "tool two");
    // The rest of a killed run goes.
    bench.write(".opt.setpoint-new/half", "");
    archive(&bench, &two, &kept).apply().is_ok();
    assert!(!bench.exists(".opt.setpoint-new"));
}

#[test]
fn a_directory_with_other_entries_is_not_taken_over_by_accident() {
    let bench = Bench::new();
    let one = version(&bench, "one", "one.tar");
    bench.write("opt/mine", "text");
    let failure = archive(&bench, &one, &[]).apply().failure();
    assert!(
        failure.contains("holds an entry, mine, that no archive brought"),
        "{failure}"
    );
    assert_eq!(bench.tree("opt"), ["mine=text"]);
    archive(&bench, &one, &[("adopt", yes())])
        .apply()
        .drifted(&["extra mine", "version"]);
    assert!(!bench.exists("opt/mine"));
}

#[test]
fn members_merge_with_other_files() {
    let bench = Bench::new();
    bench.write("opt/mine", "text");
    bench.write("opt/bin/other", "text");
    let merged = [("layout", text("merge"))];
    let one = version(&bench, "one", "one.tar");
    archive(&bench, &one, &merged).apply().drifted(&["version"]);
    let two = version(&bench, "two", "two.tar");
    archive(&bench, &two, &merged).apply().drifted(&["version"]);
    assert!(bench.exists("opt/mine") && bench.exists("opt/bin/other"));
    assert!(bench.exists("opt/only-in-two") && !bench.exists("opt/only-in-one"));
    archive(&bench, &two, &merged).apply().is_ok();
    let gone = [("layout", text("merge")), ("state", text("absent"))];
    archive(&bench, &two, &gone).apply().drifted(&["state"]);
    assert_eq!(bench.tree("opt"), ["bin/", "bin/other=text", "mine=text"]);
}

/// Archives that must not be unpacked, as Python writes them: members, and what is said of them.
const HOSTILE: &[(&str, &str)] = &[
    ("m('../x', b'')", "is outside of the directory"),
    ("m('/x', b'')", "is outside of the directory"),
    (
        "l('a', '../../etc'); m('a/x', b'')",
        "it is a link to ../../etc, outside of the directory",
    ),
    ("l('a', '/etc')", "it is a link to /etc, outside of the directory"),
    ("h('a', '/etc/passwd')", "outside of the directory"),
    (
        "h('a', 'missing')",
        "it is a link to a file that the archive did not bring before",
    ),
    ("d('a')", "is a device or a pipe"),
    ("m('a', b'x' * 5000)", "more than 4096 bytes come out of it"),
    (
        "l('a', 'b'); m('b/c', b''); m('a/x', b'')",
        "create the directory",
    ),
];

#[test]
fn hostile_archives_leave_nothing() {
    let bench = Bench::new();
    for (members, why) in HOSTILE {
        let path = bench.path("hostile.tar");
        let script = format!(
            "import tarfile, io, sys\nt = tarfile.open(sys.argv[1], 'w')\n\
             def e(n, k, b=b'', l=''):\n i = tarfile.TarInfo(n); i.type = k; i.size = len(b); i.linkname = l; t.addfile(i, io.BytesIO(b))\n\
             m = lambda n, b: e(n, tarfile.REGTYPE, b)\nl = lambda n, x: e(n, tarfile.SYMTYPE, l=x)\n\
             h = lambda n, x: e(n, tarfile.LNKTYPE, l=x)\nd = lambda n: e(n, tarfile.CHRTYPE)\n{members}\nt.close()\n"
        );
        assert!(
            Command::new("python3")
                .args(["-c", &script, &path])
                .status()
                .unwrap()
                .success()
        );
        let limit = if members.contains("5000") { 4096 } else { 1 << 20 };
        let parameters = [("source", text(&path)), ("limit", Value::Int(limit))];
        let run = bench
            .resource("archive", &format!("{}/", bench.path("opt")), &parameters)
            .apply();
        assert!(run.failure().contains(why), "{members}: {}", run.failure());
        assert!(
            !bench.exists("opt") && !bench.exists(".opt.setpoint-new"),
            "{members}"
        );
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |name: &str, parameters: &[(&str, Value)]| refused("archive", name, parameters);
    assert_eq!(refused("/opt/a/", &[]), ["source: set either `source` or `url`"]);
    let source = ("source", text("/a.tar"));
    assert_eq!(
        refused("/opt/a", std::slice::from_ref(&source)),
        ["path: must be a directory: it ends in no slash"]
    );
    assert_eq!(
        refused("/", std::slice::from_ref(&source)),
        ["path: must not be the root directory"]
    );
    assert_eq!(
        refused("/opt/a/", &[source, ("keep", texts(&["a["]))]),
        ["keep: `a[`: unclosed character class; missing ']'"]
    );
}
