//! Hosts that stand for something, by processes that share a store.

use crate::several_hosts::{Host, becomes, place, run};

/// Stands, and says in a file whether this host was chosen.
const STANDS: &str = "\
import \"golang/strings\" as strings
import \"world\"
schedule \"leader\" {
	OPTIONS
}
$chosen = world.schedule(\"leader\")
file \"PLACE/${hostname}.says\" {
	state => \"exists\",
	content => strings.join($chosen, \" \"),
}
";

fn stands(options: &str) -> String {
    STANDS.replace("OPTIONS", options)
}

#[test]
fn one_of_those_that_stand_is_chosen_and_replaced_when_it_is_killed() {
    let place = place();
    let web_says = place.path("web.says");
    let db = Host::start(&place, "db", &stands(""));
    becomes(&place.path("db.says"), "db");
    let web = Host::start(&place, "web", &stands(""));
    becomes(&web_says, "db");
    db.kill();
    becomes(&web_says, "web");
    // Who comes back takes nothing away from who was chosen since.
    let db = Host::start(&place, "db", &stands(""));
    becomes(&place.path("db.says"), "web");
    web.stop();
    becomes(&place.path("db.says"), "db");
    db.stop();
}

#[test]
fn as_many_as_wanted_are_chosen_and_who_withdraws_is_not() {
    let place = place();
    let db = Host::start(&place, "db", &stands("max => 2, strategy => \"alpha\","));
    let web = Host::start(&place, "web", &stands("max => 2, strategy => \"alpha\","));
    for host in ["db", "web"] {
        becomes(&place.path(&format!("{host}.says")), "db web");
    }
    web.stop();
    becomes(&place.path("db.says"), "db");
    let web = Host::start(&place, "web", &stands("withdraw => true,"));
    becomes(&place.path("web.says"), "db");
    web.stop();
    db.stop();
}

#[test]
fn who_persists_or_has_time_left_still_counts() {
    let place = place();
    let db = Host::start(&place, "db", &stands("persist => true,"));
    becomes(&place.path("db.says"), "db");
    db.kill();
    let web = Host::start(&place, "web", &stands("ttl => 3600,"));
    becomes(&place.path("web.says"), "db");
    let withdrawn = run(&place, "db", &["--once"], &stands("withdraw => true,"));
    assert_eq!(withdrawn.code, 0, "{}", withdrawn.stderr);
    becomes(&place.path("web.says"), "web");
    web.kill();
    let mut db = Host::start(&place, "db", &stands(""));
    db.of("schedule", "leader", "run ended");
    becomes(&place.path("db.says"), "web");
    db.stop();
}

#[test]
fn a_single_run_ends_after_hosts_have_decided() {
    let place = place();
    let chosen_after = |options: &str| {
        let finished = run(&place, "db", &["--once"], &stands(options));
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        let reads = stands("").replace("schedule \"leader\" {\n\t\n}\n", "");
        let finished = run(&place, "web", &["--once"], &reads);
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        std::fs::read_to_string(place.path("web.says")).expect("the program wrote it")
    };
    assert_eq!(chosen_after("persist => true,"), "db");
    assert_eq!(chosen_after("persist => true,"), "db", "again");
    assert_eq!(chosen_after("withdraw => true,"), "", "no candidate");
}

#[test]
fn who_may_not_change_anything_does_not_stand() {
    let place = place();
    let finished = run(&place, "db", &["--once", "--noop"], &stands(""));
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert!(finished.stderr.contains("candidate"), "{}", finished.stderr);
    let made = std::fs::read_dir(place.path("world")).expect("the store can be read");
    let made: Vec<_> = made.flatten().map(|entry| entry.path()).collect();
    assert!(made.is_empty(), "{made:?}");
}

#[test]
fn one_resource_of_a_host_stands_for_a_namespace() {
    let place = place();
    let twice = "schedule \"leader\" {}\nschedule \"other\" {\n\tnamespace => \"leader\",\n}\n";
    let finished = run(&place, "db", &["--once"], twice);
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    let wanted =
        "error[E0411]: `schedule[other]` is not valid: `schedule[leader]` has the namespace leader already";
    assert!(finished.stderr.contains(wanted), "{}", finished.stderr);
    assert!(finished.stderr.contains("the other one"), "{}", finished.stderr);
    let shared = crate::several_hosts::Shared::at(place.path("world"));
    assert_eq!(shared.below("/scheduler/"), []);
    // While one runs, the second is refused too, and the program of before goes on.
    let mut db = Host::start(&place, "db", &stands(""));
    becomes(&place.path("db.says"), "db");
    let change = |program: &str| {
        let path = crate::several_hosts::write(&place, "new", program);
        std::fs::rename(path, place.path("db.mcl")).expect("the place is writable");
    };
    change(&format!("{}{twice}", stands("")));
    db.event("a refusal", |event| event["event"] == "graph rejected");
    change(&stands("max => 2,"));
    db.of("schedule", "leader", "repaired");
    db.stop();
}
