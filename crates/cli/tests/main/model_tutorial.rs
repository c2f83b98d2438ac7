//! The tutorial of models, done as it is written: its files are those of the shipped example, and what it promises happens.

use std::path::Path;

use serde_json::Value as Json;
use setpoint_testing::{Hermetic, repository};

use crate::book::snippets_of;
use crate::end_to_end::{Engine, text};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// Snippets of the page that name a file: the name, and the text.
fn files() -> Vec<(String, String)> {
    let root = repository();
    let snippets = snippets_of(&root, &root.join("docs/model-tutorial.md"));
    let named = snippets.into_iter().filter_map(|snippet| {
        let (_, name) = snippet.language.split_once(' ')?;
        Some((name.to_owned(), snippet.text))
    });
    named.collect()
}

/// The page's text for the machine of the test, and for a directory of its own.
fn moved(text: &str, demo: &Path) -> String {
    text.replace("/tmp/setpoint-demo/network", &demo.display().to_string())
        .replace("\"web1\"", "\"host.example\"")
}

#[test]
fn its_files_are_those_of_the_example() {
    let example = repository().join("examples/network");
    let mut count = 0;
    for (name, shown) in files() {
        if !name.ends_with("(appended)") {
            assert_eq!(text(&example.join(&name)).trim_end(), shown.trim_end(), "{name}");
            count += 1;
        }
    }
    assert_eq!(count, 6);
}

#[test]
fn each_host_keeps_what_is_its_own() {
    let place = Hermetic::new();
    let example = repository().join("examples/network").display().to_string();
    for (host, file, other) in [
        ("web1", "proxy.conf", "shop.conf"),
        ("app1", "shop.conf", "proxy.conf"),
    ] {
        let finished = place.run(BINARY, &["graph", "--hostname", host, &example]);
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        assert_eq!(finished.stderr, "", "nothing is wrong with it");
        assert!(
            finished.stdout.contains(file) && !finished.stdout.contains(other),
            "{}",
            finished.stdout
        );
    }
}

#[test]
fn what_it_promises_happens() {
    let place = Hermetic::new();
    let demo = place.path("demo");
    let mut appended = String::new();
    for (name, shown) in files() {
        match name.strip_suffix(" (appended)") {
            None => {
                place.write(&name, moved(&shown, &demo));
            }
            Some(_) => appended = moved(&shown, &demo),
        }
    }
    let model = text(&place.path("main.cf"));
    let (proxy, hosts, reloads) = (demo.join("proxy.conf"), demo.join("hosts"), demo.join("reloads"));
    let name = |path: &Path| path.display().to_string();
    let mut engine = Engine::start(&place, &["."]);
    engine.repaired("exec", "reload proxy");
    assert_eq!(text(&proxy), "listen 80\nupstream 10.0.0.21:8080\n");
    assert_eq!(text(&reloads).lines().count(), 1);

    std::fs::write(&proxy, "nonsense\n").expect("it can be written");
    engine.repaired_until("file", &name(&proxy), || text(&proxy).starts_with("listen 80\n"));
    engine.repaired("exec", "reload proxy");
    std::fs::remove_file(&hosts).expect("it was there");
    engine.repaired("file", &name(&hosts));
    assert_eq!(text(&hosts).lines().count(), 2);
    let reloaded = text(&reloads).lines().count();

    place.write("main.cf", format!("{model}{appended}"));
    engine.repaired("exec", "reload proxy");
    assert_eq!(
        text(&proxy),
        "listen 80\nupstream 10.0.0.21:8080\nupstream 10.0.0.22:8080\n"
    );
    assert_eq!(text(&reloads).lines().count(), reloaded + 1);

    place.write("main.cf", model.replace("port=8080", "port=80800"));
    let wrong = |event: &Json| {
        let event = event.to_string();
        event.contains("E0605") && event.contains("80800") && event.contains("port_number")
    };
    engine.event("what is wrong", wrong);
    std::fs::write(&proxy, "nonsense\n").expect("it can be written");
    engine.repaired_until("file", &name(&proxy), || text(&proxy).contains("10.0.0.22"));
    place.write("main.cf", model);
    engine.repaired_until("file", &name(&proxy), || !text(&proxy).contains("10.0.0.22"));
    engine.stop();
}
