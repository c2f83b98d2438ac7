//! The kinds that make something: `gzip`, `tar`, `password`, and those that hand something over: `msg`, `kv`.

use std::process::Command;

use setpoint_engine::Level;
use setpoint_value::Value;

use crate::harness::{Bench, Subject, refused, text, texts, yes};

/// What a program prints.
fn output_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn what_gzip_makes_is_read_by_others_and_follows_its_input() {
    let bench = Bench::new();
    let input = bench.write("in", "one");
    let output = bench.path("out.gz");
    let mut gzip = bench.resource("gzip", &output, &[("input", text(&input))]);
    gzip.apply().drifted(&["output"]);
    assert_eq!(output_of("gzip", &["-dc", &output]), "one");
    gzip.apply().is_ok();
    bench.write("in", "two");
    gzip.apply().drifted(&["output"]);
    assert_eq!(output_of("gzip", &["-dc", &output]), "two");
    // Neither a part nor more than all is right.
    let whole = std::fs::read(&output).unwrap();
    for wrong in [&whole[..whole.len() - 1], &[&whole[..], b"x"].concat(), b""] {
        std::fs::write(&output, wrong).unwrap();
        gzip.apply().drifted(&["output"]);
        assert_eq!(std::fs::read(&output).unwrap(), whole);
    }
}

#[test]
fn a_file_without_its_input_stays() {
    let bench = Bench::new();
    let output = bench.write("out.gz", "good and old");
    let mut gzip = bench.resource("gzip", &output, &[("input", text(bench.path("nothing")))]);
    let failure = gzip.apply().failure();
    assert!(failure.contains("read what is compressed"), "{failure}");
    assert_eq!(bench.read("out.gz"), "good and old");
}

#[test]
fn gzip_of_a_text_in_each_level() {
    let bench = Bench::new();
    let content = "the same again and again, ".repeat(400);
    let mut sizes = Vec::new();
    for level in [0, 1, 9, -1, -2] {
        let output = bench.path("level.gz");
        let parameters = [("content", text(&content)), ("level", Value::Int(level))];
        bench.resource("gzip", &output, &parameters).apply();
        assert_eq!(output_of("gzip", &["-dc", &output]), content);
        sizes.push(std::fs::metadata(&output).unwrap().len());
    }
    let length = content.len() as u64;
    assert!(
        sizes[0] > length && sizes[1..4].iter().all(|size| *size < 400),
        "{sizes:?}"
    );
    // By the frequency of its letters alone it is about half as long, whatever is repeated.
    assert!((length / 3..length * 2 / 3).contains(&sizes[4]), "{sizes:?}");
    // The empty text is compressed, too.
    let empty = bench.path("empty.gz");
    bench.resource("gzip", &empty, &[]).apply().drifted(&["output"]);
    assert_eq!(output_of("gzip", &["-dc", &empty]), "");
}

#[test]
fn a_secret_that_is_compressed_is_for_its_owner_alone() {
    let bench = Bench::new();
    let output = bench.path("secret.gz");
    let mut gzip = bench.resource("gzip", &output, &[("content", text("hush").sensitive())]);
    gzip.apply();
    assert_eq!(bench.mode("secret.gz"), 0o600);
    gzip.apply().is_ok();
}

fn listing(archive: &str) -> Vec<String> {
    let listing = output_of("tar", &["-tf", archive]);
    listing.lines().map(ToOwned::to_owned).collect()
}

/// A resource `tar` of these inputs.
fn tar(bench: &Bench, inputs: &[&str], format: i64) -> (String, Subject) {
    let output = bench.path("out.tar");
    let inputs: Vec<String> = inputs.iter().map(|input| bench.path(input)).collect();
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    let parameters = [("inputs", texts(&inputs)), ("format", Value::Int(format))];
    let subject = bench.resource("tar", &output, &parameters);
    (output, subject)
}

#[test]
fn an_archive_holds_its_inputs_in_order_and_notices_each_change() {
    let bench = Bench::new();
    bench.write("tree/b", "b");
    bench.write("tree/a/x", "x");
    bench.make_directory("tree/empty");
    std::os::unix::fs::symlink("nowhere", bench.path("tree/link")).unwrap();
    bench.write("single", "alone");
    let (output, mut tar) = tar(&bench, &["tree/", "single", "tree"], 0);
    tar.apply().drifted(&["output"]);
    let below = ["a/", "a/x", "b", "empty/", "link"];
    let mut expected: Vec<String> = below.iter().map(|name| (*name).to_owned()).collect();
    expected.push("single".to_owned());
    expected.extend(below.iter().map(|name| format!("tree/{name}")));
    assert_eq!(listing(&output), expected);
    tar.apply().is_ok();
    // The same time and size, other contents; then a mode, a name, something that goes.
    bench.write("tree/b", "B");
    let run = tar.apply();
    run.drifted(&["output"]);
    assert_eq!(output_of("tar", &["-xOf", &output, "b"]), "B");
    bench.set_mode("single", 0o600);
    let run = tar.apply();
    let report = run.report();
    assert!(report[0].ends_with("(changed: single)"), "{report:?}");
    std::fs::rename(bench.path("tree/a/x"), bench.path("tree/a/y")).unwrap();
    let report = tar.apply().report();
    assert!(
        report[0].contains("new: a/y") && report[0].contains("gone: a/x"),
        "{report:?}"
    );
    tar.apply().is_ok();
    // Nothing but ours is right.
    std::fs::write(&output, "no archive").unwrap();
    tar.apply().drifted(&["output"]);
    assert_eq!(listing(&output).len(), expected.len());
}

#[test]
fn each_format_is_read_by_others_with_names_that_are_too_long_for_a_header() {
    let bench = Bench::new();
    let long = format!("tree/{}/{}", "d".repeat(200), "f".repeat(200));
    let fitting = format!("tree/{}/{}", "p".repeat(90), "n".repeat(90));
    bench.write(&long, "long");
    bench.write(&fitting, "fitting");
    bench.write("tree/ä", "umlaut");
    std::os::unix::fs::symlink("t".repeat(150), bench.path("tree/link")).unwrap();
    for format in [0, 4, 8] {
        let (output, mut tar) = tar(&bench, &["tree"], format);
        assert!(tar.apply().result.is_ok(), "{format}");
        let unpacked = bench.make_directory(&format!("unpacked{format}"));
        output_of("tar", &["-xf", &output, "-C", &unpacked]);
        assert_eq!(
            bench.tree(&format!("unpacked{format}/tree")),
            bench.tree("tree"),
            "{format}"
        );
        tar.apply().is_ok();
        std::fs::remove_file(&output).unwrap();
    }
    let (_, mut tar) = tar(&bench, &["tree"], 2);
    let failure = tar.apply().failure();
    assert!(
        failure.contains("ustar has no room for path of the member tree/dddd"),
        "{failure}"
    );
    assert!(!bench.exists("out.tar"), "nothing half-written stays");
}

#[test]
fn no_archive_holds_itself_or_a_pipe_or_nothing() {
    let bench = Bench::new();
    bench.make_directory("tree");
    output_of("mkfifo", &[&bench.path("tree/pipe")]);
    let (_, mut archive) = tar(&bench, &["tree"], 0);
    let failure = archive.apply().failure();
    assert!(failure.contains("tree/pipe: it is a named pipe"), "{failure}");
    let (_, mut archive) = tar(&bench, &["missing"], 0);
    assert!(archive.apply().failure().contains("missing"));
    let (output, mut archive) = tar(&bench, &[], 0);
    archive.apply().drifted(&["output"]);
    assert_eq!(listing(&output), Vec::<String>::new());
    let inside = refused("tar", "/srv/a/out.tar", &[("inputs", texts(&["/srv/a/"]))]);
    assert_eq!(
        inside,
        ["inputs: the archive would be in itself: it lies in `/srv/a/`"]
    );
}

/// What a run of a `password` sent.
fn sent(run: &crate::harness::Run) -> Option<Value> {
    run.sent.as_ref().unwrap().get("password").unwrap().cloned()
}

#[test]
fn a_password_that_is_saved_is_the_same_for_the_next_process() {
    let bench = Bench::new();
    let parameters = [("saved", yes()), ("length", Value::Int(20))];
    let first = bench.resource("password", "p", &parameters).apply();
    let password = sent(&first).unwrap();
    assert!(password.is_sensitive(), "although no parameter is");
    let text = password.unmarked().as_str().unwrap().as_str().unwrap().to_owned();
    assert_eq!(text.len(), 20);
    let own = bench.own("var/password");
    assert_eq!((bench.read(&own), bench.mode(&own)), (format!("{text}\n"), 0o600));
    let mut next = bench.resource("password", "p", &parameters);
    let run = next.apply();
    run.is_ok();
    assert_eq!(sent(&run).unwrap(), password);
    next.refresh = true;
    let run = next.apply();
    run.drifted(&["password"]);
    assert_ne!(sent(&run).unwrap(), password);
    assert!(!run.report().concat().contains(&text));
}

#[test]
fn a_password_that_is_not_saved_is_withheld_after_a_restart() {
    let bench = Bench::new();
    let mut first = bench.resource("password", "p", &[]);
    let password = sent(&first.apply()).unwrap();
    assert_eq!(
        sent(&first.apply()).unwrap(),
        password,
        "it does not become empty"
    );
    assert_eq!(bench.read(&bench.own("var/password")), "\n");
    let mut next = bench.resource("password", "p", &[]);
    let run = next.apply();
    run.is_ok();
    assert_eq!(sent(&run), None);
    next.refresh = true;
    assert_ne!(sent(&next.apply()).unwrap(), password);
}

#[test]
fn what_was_kept_and_does_not_fit_is_replaced_only_if_that_is_wanted() {
    let bench = Bench::new();
    bench.resource("password", "p", &[("saved", yes())]).apply();
    let own = bench.own("var/password");
    let of_length = [("saved", yes()), ("length", Value::Int(10))];
    let failure = bench.resource("password", "p", &of_length).apply().failure();
    assert!(
        failure.contains("what is kept is not 10 characters of a-zA-Z"),
        "{failure}"
    );
    let unsaved = bench.resource("password", "p", &[]).apply().failure();
    assert!(unsaved.contains("one is kept, and `saved` is false"), "{unsaved}");
    let recovering = [
        ("saved", yes()),
        ("length", Value::Int(10)),
        ("check_recovery", yes()),
    ];
    bench
        .resource("password", "p", &recovering)
        .apply()
        .drifted(&["password"]);
    assert_eq!(bench.read(&own).len(), 11);
    let forgetting = [("check_recovery", yes())];
    bench
        .resource("password", "p", &forgetting)
        .apply()
        .drifted(&["password"]);
    assert_eq!(bench.read(&own), "\n");
}

#[test]
fn a_message_is_logged_once_and_again_when_notified() {
    let bench = Bench::new();
    let parameters = [("body", text("beware")), ("priority", text("Warning"))];
    let mut message = bench.resource("msg", "m", &parameters);
    let run = message.apply();
    assert_eq!(
        run.drifted(&["body"]).log,
        [(Level::Warning, "beware".to_owned())]
    );
    let run = message.apply();
    run.is_ok();
    assert!(run.log.is_empty());
    message.refresh = true;
    assert_eq!(message.apply().drifted(&["body"]).log.len(), 1);
    let secret = [("body", text("hush").sensitive()), ("priority", text("Crit"))];
    let run = bench.resource("msg", "s", &secret).apply();
    assert_eq!(run.log, [(Level::Error, "(sensitive)".to_owned())]);
}

#[test]
fn a_shared_string_is_set_kept_and_removed() {
    let bench = Bench::new();
    let set = |value: &str| {
        bench
            .store
            .0
            .lock()
            .unwrap()
            .insert("k".to_owned(), value.to_owned())
    };
    let stored = || bench.store.0.lock().unwrap().get("k").cloned();
    let mut kv = bench.resource("kv", "k", &[("value", text("7"))]);
    kv.apply().drifted(&["value"]);
    assert_eq!(stored().as_deref(), Some("7"));
    kv.apply().is_ok();
    let growing = [("value", text("7")), ("skiplessthan", yes())];
    let mut growing = bench.resource("kv", "k", &growing);
    set("10");
    growing.apply().is_ok();
    set("6");
    growing.apply().drifted(&["value"]);
    set("many");
    growing.apply().drifted(&["value"]);
    set("10");
    growing.refresh = true;
    growing.apply().drifted(&["value"]);
    assert_eq!(stored().as_deref(), Some("7"));
    let as_texts = [
        ("value", text("7")),
        ("skiplessthan", yes()),
        ("skipcmpstyle", Value::Int(1)),
    ];
    set("70");
    bench.resource("kv", "k", &as_texts).apply().is_ok();
    set("10");
    bench.resource("kv", "k", &as_texts).apply().drifted(&["value"]);
    bench
        .resource("kv", "gone", &[("key", text("k"))])
        .apply()
        .drifted(&["value"]);
    assert_eq!(stored(), None);
    let own = [("value", text("mine")), ("mapped", yes())];
    bench.resource("kv", "k", &own).apply().drifted(&["value"]);
    assert_eq!(bench.store.0.lock().unwrap().get("k/here").unwrap(), "mine");
}

#[test]
fn a_document_that_others_change_meanwhile_is_edited_anew() {
    let bench = Bench::new();
    let store = &bench.store;
    store.0.lock().unwrap().insert("d".to_owned(), "{}".to_owned());
    *store.1.lock().unwrap() = Some("{\"other\": 1}".to_owned());
    let edits = texts(&[".own = 2"]);
    let parameters = [("store", text("etcd:///d")), ("edits", edits)];
    let mut edit = bench.resource("json:edit", "e", &parameters);
    edit.apply().drifted(&[".own"]);
    let stored = store.0.lock().unwrap().get("d").cloned().unwrap();
    assert_eq!(stored, "{\"other\": 1, \"own\": 2}");
    // Others have made the same edit.
    store.0.lock().unwrap().insert("d".to_owned(), "{}".to_owned());
    *store.1.lock().unwrap() = Some("{\"own\": 2, \"x\": 3}".to_owned());
    edit.apply().drifted(&[".own"]);
    let stored = store.0.lock().unwrap().get("d").cloned().unwrap();
    assert_eq!(stored, "{\"own\": 2, \"x\": 3}");
}
