//! The kind `download`, with a real server.

use setpoint_value::Value;

use crate::harness::{Bench, Subject, map, refused, text, texts};
use crate::server::{Misbehaviour, Server};

/// `sha256sum` of `hello`.
const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

fn download(bench: &Bench, url: &[&str], further: &[(&str, Value)]) -> Subject {
    let mut parameters = vec![("url", texts(url))];
    parameters.extend(further.iter().cloned());
    bench.resource("download", &bench.path("file"), &parameters)
}

#[test]
fn a_file_with_a_checksum_is_fetched_once_and_repaired() {
    let (bench, server) = (Bench::new(), Server::start());
    let url = server.file("hello", "hello");
    let sum = ("checksum", text(format!("sha256:{HELLO}")));
    let mut file = download(&bench, &[&url], &[sum, ("mode", text("0640"))]);
    assert_eq!(file.check().report().len(), 1);
    assert!(!bench.exists("file"), "a look changes nothing");
    let run = file.apply();
    run.drifted(&["state"]);
    assert_eq!(
        (bench.read("file"), bench.mode("file")),
        ("hello".to_owned(), 0o640)
    );
    assert_eq!(run.sent("version"), Some(text(format!("sha256:{HELLO}"))));
    assert_eq!(server.requests(), ["/hello"]);
    file.apply().is_ok();
    assert!(server.requests().is_empty(), "there is nothing to ask");
    bench.write("file", "changed");
    bench.set_mode("file", 0o644);
    file.apply().drifted(&["content", "mode"]);
    assert_eq!(
        (bench.read("file"), bench.mode("file")),
        ("hello".to_owned(), 0o640)
    );
    assert!(
        !bench.exists(&bench.own("var/contents")),
        "what was put in place is not kept"
    );
}

#[test]
fn contents_that_the_program_does_not_want_leave_the_old_file() {
    let (bench, server) = (Bench::new(), Server::start());
    let wrong = server.file("wrong", "something else");
    let right = server.file("right", "hello");
    bench.write("file", "old");
    let sum = ("checksum", text(format!("sha256:{HELLO}")));
    let failure = download(&bench, &[&wrong], std::slice::from_ref(&sum))
        .apply()
        .failure();
    assert!(
        failure.contains("something else than the program wants"),
        "{failure}"
    );
    assert_eq!(bench.read("file"), "old");
    // The next mirror has it.
    let run = download(&bench, &[&wrong, &server.url("missing"), &right], &[sum]).apply();
    run.drifted(&["content"]);
    assert_eq!(run.log.len(), 2, "{:?}", run.log);
    assert_eq!(bench.read("file"), "hello");
    std::fs::remove_file(bench.path("file")).unwrap();
    let failure = download(&bench, &[&server.url("missing")], &[]).apply().failure();
    assert!(failure.contains("404 Not Found"), "{failure}");
    let failure = download(&bench, &[&right], &[("limit", Value::Int(3))])
        .apply()
        .failure();
    assert!(failure.contains("larger than 3 bytes"), "{failure}");
}

#[test]
fn an_interrupted_download_goes_on() {
    let (bench, server) = (Bench::new(), Server::start());
    let contents: Vec<u8> = (0..300_000_u32).map(|number| (number % 251) as u8).collect();
    let url = server.file("large", contents.clone());
    server.misbehaves(
        "large",
        &[Misbehaviour::CutAfter(100_000), Misbehaviour::CutAfter(50_000)],
    );
    download(&bench, &[&url], &[]).apply().drifted(&["state"]);
    assert_eq!(std::fs::read(bench.path("file")).unwrap(), contents);
    let requests = server.requests();
    assert_eq!(requests.len(), 3, "{requests:?}");
    assert!(requests[1].starts_with("/large range=bytes="), "{requests:?}");
}

#[test]
fn a_server_is_asked_again_whether_it_has_something_new() {
    let (bench, server) = (Bench::new(), Server::start());
    let url = server.file("list", "one");
    let mut once = download(&bench, &[&url], &[]);
    once.apply().drifted(&["state"]);
    server.file("list", "second");
    once.apply().is_ok();
    assert_eq!(server.requests().len(), 1, "a file that is there stays");
    once.refresh = true;
    let run = once.apply();
    assert_eq!(run.report().len(), 1, "{:?}", run.report());
    assert_eq!(bench.read("file"), "second");
    assert_eq!(server.requests(), ["/list if-none-match=\"3\""]);
    once.apply().is_ok();
    assert_eq!(server.requests(), ["/list if-none-match=\"6\""]);
    once.refresh = false;
    bench.write("file", "by hand");
    let run = once.apply();
    assert_eq!(run.fields(), ["content"]);
    assert!(run.report()[0].contains("changed by hand"), "{:?}", run.report());
    assert_eq!(bench.read("file"), "second");
}

#[test]
fn another_address_is_another_file() {
    let (bench, server) = (Bench::new(), Server::start());
    let (one, two) = (server.file("one", "one"), server.file("two", "two"));
    download(&bench, &[&one], &[]).apply().drifted(&["state"]);
    let mut other = download(&bench, &[&two], &[]);
    other.apply().drifted(&["content"]);
    assert_eq!(bench.read("file"), "two");
    other.apply().is_ok();
    // A file that was there before is left alone.
    bench.write("mine", "mine");
    let mine = bench.path("mine");
    bench
        .resource("download", &mine, &[("url", texts(&[&one]))])
        .apply()
        .is_ok();
}

#[test]
fn a_checksum_comes_from_a_list() {
    let (bench, server) = (Bench::new(), Server::start());
    let url = server.file("dir/hello.bin", "hello");
    let list = server.file("SHA256SUMS", format!("{HELLO}  hello.bin\n"));
    let mut file = download(&bench, &[&url], &[("checksum_url", text(&list))]);
    file.apply().drifted(&["state"]);
    server.requests();
    file.apply().is_ok();
    assert!(server.requests().is_empty(), "the list is known");
    let other = server.file("other", format!("{HELLO}  another.bin\nffff  x\n"));
    let failure = download(&bench, &[&url], &[("checksum_url", text(&other))])
        .apply()
        .failure();
    assert!(
        failure.contains("there is no checksum of `hello.bin` in it"),
        "{failure}"
    );
}

#[test]
fn secrets_go_to_the_first_server_alone() {
    let (bench, server, other) = (Bench::new(), Server::start(), Server::start());
    let target = other.file("there", "hello");
    let url = server.file("here", "");
    server.misbehaves("here", &[Misbehaviour::Redirect(target)]);
    let parameters = [
        ("headers", map(&[("X-Token", "secret")]).sensitive()),
        ("username", text("u")),
        ("password", text("p").sensitive()),
    ];
    download(&bench, &[&url], &parameters).apply();
    assert_eq!(
        server.requests(),
        ["/here authorization=Basic dTpw x-token=secret"]
    );
    assert_eq!(other.requests(), ["/there"]);
    assert_eq!(
        (bench.read("file"), bench.mode("file")),
        ("hello".to_owned(), 0o600)
    );
}

#[test]
fn a_server_that_is_busy_is_asked_again() {
    let (bench, server) = (Bench::new(), Server::start());
    let url = server.file("hello", "hello");
    server.misbehaves("hello", &[Misbehaviour::Status("503 Service Unavailable")]);
    download(&bench, &[&url], &[]).apply().drifted(&["state"]);
    assert_eq!(server.requests().len(), 2);
    let gone = server.url("gone");
    assert!(
        download(
            &bench,
            &[&gone],
            &[("checksum", text(format!("sha256:{}", "0".repeat(64))))]
        )
        .apply()
        .failure()
        .contains("404 Not Found")
    );
    assert_eq!(
        server.requests().len(),
        1,
        "what is not there is not asked for again"
    );
}

#[test]
fn a_signature_of_minisign_is_checked() {
    // Made by `minisign -S` with the key of the documentation of the crate.
    let key = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
    let signature = "untrusted comment: signature from minisign secret key\n\
        RWQf6LRCGA9i59SLOFxz6NxvASXDJeRtuZykwQepbDEGt87ig1BNpWaVWuNrm73YiIiJbq71Wi+dP9eKL8OC351vwIasSSbXxwA=\n\
        trusted comment: timestamp:1555779966\tfile:test\n\
        QtKMXWyYcwdpZAlPF7tE2ENJkRd1ujvKjlj1m9RtHTBnZPa5WKU5uWRs5GoP5M/VqE81QFuMKI5k/SfNQUaOAA==\n";
    let (bench, server) = (Bench::new(), Server::start());
    let (right, wrong) = (server.file("test", "test"), server.file("wrong", "toast"));
    let signature = server.file("test.minisig", signature);
    let signed = [("signature_url", text(&signature)), ("signer", text(key))];
    let failure = download(&bench, &[&wrong], &signed).apply().failure();
    assert!(failure.contains("check the signature"), "{failure}");
    assert!(!bench.exists("file"));
    download(&bench, &[&right], &signed).apply().drifted(&["state"]);
    assert_eq!(bench.read("file"), "test");
}

#[test]
fn parameters_that_contradict_each_other_are_refused() {
    let refused = |parameters: &[(&str, Value)]| refused("download", "/srv/file", parameters);
    assert_eq!(refused(&[]), ["url: the address is missing"]);
    let url = ("url", texts(&["https://u:p@example.org/a"]));
    assert_eq!(
        refused(&[url]),
        ["url: `https://…@example.org/a`: it holds a user or a password, which would be shown in messages"]
    );
    let url = ("url", texts(&["https://example.org/a"]));
    let sum = ("checksum", text(format!("sha256:{HELLO}")));
    assert_eq!(
        refused(&[url.clone(), sum, ("every", text("1h"))]),
        ["every: contents with a `checksum` never change"]
    );
    assert_eq!(
        refused(&[url, ("signer", text("/ring.gpg"))]),
        ["signer: `signature_url` and `signer` are set together"]
    );
}
