//! The kinds that edit text files of others: `block`, `ssh:authorized_key`.

use setpoint_engine::Level;
use setpoint_value::Value;

use crate::harness::{Bench, Subject, text, texts};

fn block(bench: &Bench, further: &[(&str, Value)]) -> Subject {
    let mut parameters = vec![("file", text(bench.path("file"))), ("state", text("exists"))];
    parameters.extend(further.iter().cloned());
    bench.resource("block", "b", &parameters)
}

#[test]
fn a_block_is_put_in_changed_in_its_place_and_taken_out() {
    let bench = Bench::new();
    bench.write("file", "one\ntwo");
    block(&bench, &[("content", text("x\ny"))])
        .apply()
        .drifted(&["content"]);
    let begin = "# setpoint begin: b\n";
    let end = "# setpoint end: b\n";
    assert_eq!(bench.read("file"), format!("one\ntwo\n{begin}x\ny\n{end}"));
    bench.write("file", format!("one\n{begin}by hand\n{end}three\n"));
    let mut changed = block(&bench, &[("content", text("z\n"))]);
    changed.apply().drifted(&["content"]);
    assert_eq!(bench.read("file"), format!("one\n{begin}z\n{end}three\n"));
    changed.apply().is_ok();
    block(&bench, &[("state", text("absent"))])
        .apply()
        .drifted(&["content"]);
    assert_eq!(bench.read("file"), "one\nthree\n");
    block(&bench, &[("state", text("absent"))]).apply().is_ok();
}

#[test]
fn a_block_has_the_ends_of_lines_and_the_comments_of_its_file() {
    let bench = Bench::new();
    bench.write("file", "<a>\r\n<b>\r\n</a>\r\n");
    let parameters = [
        ("content", text("x\n")),
        ("comment", text("<!--")),
        ("comment_end", text("-->")),
        ("before", text("</a>")),
    ];
    block(&bench, &parameters).apply().drifted(&["content"]);
    let expected = "<a>\r\n<b>\r\n<!-- setpoint begin: b -->\r\nx\r\n<!-- setpoint end: b -->\r\n</a>\r\n";
    assert_eq!(bench.read("file"), expected);
    block(&bench, &parameters).apply().is_ok();
    bench.write("file", "[one]\n[two]\n[one]\n");
    block(&bench, &[("content", text("x\n")), ("after", text("[one]"))]).apply();
    assert_eq!(
        bench.read("file"),
        "[one]\n[two]\n[one]\n# setpoint begin: b\nx\n# setpoint end: b\n"
    );
}

#[test]
fn a_block_that_is_not_whole_is_left_to_people() {
    let bench = Bench::new();
    for (damaged, why) in [
        ("# setpoint begin: b\nx\n", "has no end after it"),
        ("x\n# setpoint end: b\n", "has no beginning before it"),
        (
            "# setpoint begin: b\n# setpoint end: b\n# setpoint begin: b\n# setpoint end: b\n",
            "is there more than once",
        ),
    ] {
        bench.write("file", damaged);
        let failure = block(&bench, &[("content", text("x\n"))]).apply().failure();
        assert!(failure.contains(why), "{failure}");
        assert_eq!(bench.read("file"), damaged);
    }
    bench.write("file", "one\n");
    let failure = block(&bench, &[("after", text("two"))]).apply().failure();
    assert!(failure.contains("there is no line `two`"), "{failure}");
}

const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

#[test]
fn a_key_is_made_with_its_directory_and_doubted_where_others_could_change_it() {
    let bench = Bench::new();
    let parameters = [
        ("file", text(bench.path("home/.ssh/authorized_keys"))),
        ("state", text("exists")),
        ("type", text("ssh-ed25519")),
        ("key", text(KEY)),
        ("options", texts(&["no-pty", "from=\"10.0.0.0/8,10.1.0.0/16\""])),
        ("comment", text("ada")),
    ];
    bench.make_directory("home");
    bench.set_mode("home", 0o755);
    let mut key = bench.resource("ssh:authorized_key", "k", &parameters);
    key.check().drifted(&["dir", "line"]);
    assert_eq!(bench.tree("home"), [""; 0]);
    let run = key.apply();
    run.drifted(&["dir", "line"]);
    assert!(run.log.is_empty(), "{:?}", run.log);
    let expected = format!("no-pty,from=\"10.0.0.0/8,10.1.0.0/16\" ssh-ed25519 {KEY} ada\n");
    assert_eq!(bench.read("home/.ssh/authorized_keys"), expected);
    assert_eq!(
        (bench.mode("home/.ssh"), bench.mode("home/.ssh/authorized_keys")),
        (0o700, 0o600)
    );
    key.apply().is_ok();
    bench.set_mode("home", 0o775);
    let run = key.apply();
    let doubts: Vec<&str> = run
        .log
        .iter()
        .filter(|(level, _)| *level == Level::Warning)
        .map(|(_, text)| text.as_str())
        .collect();
    assert!(
        doubts.len() == 1 && doubts[0].contains("StrictModes"),
        "{doubts:?}"
    );
    let gone = [
        ("file", text(bench.path("home/.ssh/authorized_keys"))),
        ("state", text("absent")),
        ("content", text(format!("ssh-ed25519 {KEY} somebody else"))),
    ];
    bench
        .resource("ssh:authorized_key", "k", &gone)
        .apply()
        .drifted(&["line"]);
    assert_eq!(bench.read("home/.ssh/authorized_keys"), "");
    bench.resource("ssh:authorized_key", "k", &gone).apply().is_ok();
}

#[test]
fn an_edit_of_json_that_is_sensitive_is_in_no_failure() {
    let bench = Bench::new();
    let path = bench.write("document.json", "{\"a\": 1}");
    let edits = [("edits", texts(&[".a.hidden = 1"]).sensitive())];
    let run = bench.resource("json:edit", &path, &edits).apply();
    let said = run.failure();
    assert!(
        said.contains("is not an object") && !said.contains("hidden"),
        "{said}"
    );
}
