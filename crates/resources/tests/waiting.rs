//! The kind `wait`.

use std::net::TcpListener;
use std::time::Duration;

use setpoint_value::Value;

use crate::harness::{Bench, Subject, refused, text};
use crate::server::Server;

fn wait(bench: &Bench, parameters: &[(&str, Value)]) -> Subject {
    bench.resource("wait", "w", parameters)
}

#[test]
fn a_port_is_waited_for_until_it_is_there() {
    let bench = Bench::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let port = [("tcp", text(free.to_string()))];
    let looked = wait(&bench, &port).check();
    assert_eq!(
        looked.report(),
        [format!("wait: not yet → {free} accepts connections")]
    );
    let opened = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        TcpListener::bind(free).unwrap()
    });
    let mut waits = wait(&bench, &port);
    let run = waits.apply();
    run.is_ok();
    assert!(matches!(run.sent("seconds"), Some(Value::Float(seconds)) if seconds.0 >= 0.2));
    drop(opened.join().unwrap());
    waits.apply().is_ok();
    // After a notification it waits again, and notifies others.
    waits.refresh = true;
    let listener = TcpListener::bind(free).unwrap();
    waits.apply().drifted(&["wait"]);
    drop(listener);
}

#[test]
fn what_does_not_come_is_named() {
    let bench = Bench::new();
    let soon = ("timeout", text("200ms"));
    let failure = |parameters: &[(&str, Value)]| {
        let all: Vec<_> = parameters.iter().cloned().chain([soon.clone()]).collect();
        wait(&bench, &all).apply().failure()
    };
    let path = bench.path("there");
    assert_eq!(
        failure(&[("path", text(&path))]),
        format!("wait: after 0.2 s it is not so that {path} exists")
    );
    bench.write("there", "starting\n");
    let ready = [("path", text(&path)), ("contains", text("^ready$"))];
    assert!(
        failure(&ready).ends_with(&format!("{path} has a match of `^ready$`")),
        "{}",
        failure(&ready)
    );
    bench.write("there", "starting\nready\n");
    assert_eq!(failure(&ready), "(succeeded)");
    assert!(failure(&[("path_absent", text(&path))]).ends_with(&format!("{path} is gone")));
    assert!(failure(&[("command", text("/bin/false"))]).ends_with("`/bin/false` succeeds"));
    assert_eq!(failure(&[("command", text("/bin/true"))]), "(succeeded)");
    let stable = [("path", text(&path)), ("stable", text("10s"))];
    assert!(
        failure(&stable).ends_with("it holds for 10 s"),
        "{}",
        failure(&stable)
    );
}

#[test]
fn an_answer_over_http_has_a_status_and_a_body() {
    let (bench, server) = (Bench::new(), Server::start());
    let url = server.file("health", "{\"status\": \"ok\"}");
    let healthy = [("http", text(&url)), ("body", text("\"status\": *\"ok\""))];
    wait(&bench, &healthy).apply().is_ok();
    let gone = server.url("gone");
    wait(&bench, &[("http", text(&gone)), ("status", Value::Int(404))])
        .apply()
        .is_ok();
    let soon = ("timeout", text("100ms"));
    let failure = wait(&bench, &[("http", text(&gone)), soon]).apply().failure();
    assert!(
        failure.ends_with(&format!("{gone} answers with the status 200")),
        "{failure}"
    );
}

#[test]
fn a_condition_is_needed() {
    assert_eq!(refused("wait", "w", &[]), [": there is no condition to wait for"]);
    assert_eq!(
        refused("wait", "w", &[("tcp", text("db"))]),
        ["tcp: `db` is not a host and a port"]
    );
    assert_eq!(
        refused("wait", "w", &[("tcp", text("db:1")), ("contains", text("a"))]),
        ["contains: `path` is not set"]
    );
}
