//! Resources that are applied as one, as users see them: in the graph, the status, the events and what is printed.

use serde_json::{Value as Json, json};
use setpoint_testing::Hermetic;

use crate::control::ask;
use crate::end_to_end::{Engine, run};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// Three that are one, and two of which nothing may be shown.
const PRINTS: &str = "\
print \"a\" { msg => \"one\", }
print \"b\" { msg => \"two\", }
print \"c\" { msg => \"three\", }
print \"d\" { msg => \"four\", Meta:noop => true, }
print \"e\" { msg => \"five\", Meta:noop => true, }
";

fn started(place: &Hermetic, program: &str, further: &[&str]) -> Engine {
    let program = place.write("p.mcl", program).display().to_string();
    let words: Vec<&str> = ["--converger-timeout", "0"]
        .iter()
        .chain(further)
        .copied()
        .collect();
    let mut engine = Engine::start(place, &[&words[..], &[&program]].concat());
    engine.event("the end of the work", |event| event["event"] == "converged");
    engine
}

#[test]
fn the_graph_says_who_is_applied_with_whom() {
    let place = Hermetic::new();
    let program = place.write("p.mcl", PRINTS).display().to_string();
    let graph = |further: &[&str]| {
        let words: Vec<&str> = ["graph"]
            .iter()
            .chain(further)
            .chain(&[&*program])
            .copied()
            .collect();
        let finished = place.run(BINARY, &words);
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        finished.stdout
    };
    let told = graph(&[]);
    let wanted = "\nprint \"c\" is applied together with print \"a\" and print \"b\"\n\
         print \"e\" is applied together with print \"d\"\n";
    assert!(told.ends_with(wanted), "{told}");
    assert!(!graph(&["--no-autogroup"]).contains("applied together"));
    let data: Json = serde_json::from_str(&graph(&["--format", "json"])).expect("it is JSON");
    let print = |name: &str| json!({"kind": "print", "name": name});
    let group = json!({"kind": "print", "name": "c", "members": [print("a"), print("b")]});
    assert_eq!(data["groups"][0], group);
}

#[test]
fn each_member_does_its_work_and_is_counted() {
    for further in [&["--once"][..], &["--once", "--no-autogroup"]] {
        let place = Hermetic::new();
        let program = place.write("p.mcl", PRINTS).display().to_string();
        let finished = run(&place, &[further, &[&program]].concat());
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        for line in [
            "print[a]: one\n",
            "print[b]: two\n",
            "print[c]: three\n",
            "print[d]: would print four\n",
            "print[e]: would print five\n",
            "3 ran, 2 to run in ",
        ] {
            assert_eq!(
                finished.stderr.matches(line).count(),
                1,
                "{line}: {}",
                finished.stderr
            );
        }
    }
}

#[test]
fn status_tells_a_member_by_its_own_name() {
    let place = Hermetic::new();
    let engine = started(&place, PRINTS, &[]);
    let told = ask(&place, &["status", "print[b]"]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert!(
        told.stdout
            .starts_with("right: 1 resource\n\nright\n  print[b]\n"),
        "{}",
        told.stdout
    );
    assert!(
        told.stdout.contains("; applied together with print[c]; "),
        "{}",
        told.stdout
    );
    let held = ask(&place, &["status", "print[d]"]);
    assert_eq!(held.code, 2, "{}", held.stdout);
    assert!(
        held.stdout
            .contains("repairs nothing (`noop`); applied together with print[e]"),
        "{}",
        held.stdout
    );
    assert_eq!(ask(&place, &["status", "--kind", "print"]).code, 2);
    assert_eq!(
        ask(&place, &["recheck", "print[b]"]).stderr,
        "print[b] is checked again\n"
    );
    let missing = ask(&place, &["status", "print[bb]"]);
    assert!(
        missing.stderr.contains("did you mean `print[b]`?"),
        "{}",
        missing.stderr
    );
    engine.stop();

    let engine = started(&place, PRINTS, &["--no-autogroup"]);
    assert!(
        !ask(&place, &["status", "--all"])
            .stdout
            .contains("applied together")
    );
    engine.stop();
}

#[test]
fn events_of_a_member_are_its_own_and_those_of_the_whole() {
    let place = Hermetic::new();
    let mut engine = started(&place, PRINTS, &[]);
    let told = ask(&place, &["events", "print[a]"]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    for line in [
        " print[c]: came into the program, and as parts of it print[a], print[b]\n",
        " print[c]: is checked\n",
        " print[a]: one\n",
    ] {
        assert!(told.stdout.contains(line), "{line}: {}", told.stdout);
    }
    for other in ["print[b]: ", "print[d]", "print[e]"] {
        assert!(!told.stdout.contains(other), "{}", told.stdout);
    }
    // The group is another one now, and its past is still known.
    place.write("p.mcl", PRINTS.replace("print \"c\" { msg => \"three\", }\n", ""));
    assert_eq!(ask(&place, &["reload", "-q"]).code, 0);
    engine.event("its end", |event| {
        event["event"] == "removed" && event["name"] == "c"
    });
    let told = ask(&place, &["events", "print[a]"]).stdout;
    for line in [
        " print[c]: came into the program, and as parts of it print[a], print[b]\n",
        " print[b]: came into the program, and as parts of it print[a]\n",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    engine.stop();
}

#[test]
fn what_fails_of_a_group_is_told_of_the_member_and_what_blocks_it_of_all() {
    let place = Hermetic::new();
    let unfit = format!("{PRINTS}value \"v\" {{ any => [5,], }}\nValue[\"v\"].any -> Print[\"b\"].msg\n");
    let engine = started(&place, &unfit, &[]);
    let told = ask(&place, &["status", "print[b]"]);
    assert_eq!(told.code, 1, "{}", told.stdout);
    let why = "failed to receive value[v].any into print[b].msg: []int does not convert to str";
    assert!(told.stdout.contains(why), "{}", told.stdout);
    let told = ask(&place, &["events", "print[b]"]).stdout;
    assert!(told.contains(why), "{told}");
    engine.stop();

    let place = Hermetic::new();
    let behind = format!("{PRINTS}exec \"x\" {{ cmd => \"/bin/false\", Before => Print[\"b\"], }}\n");
    let engine = started(&place, &behind, &[]);
    for member in ["print[a]", "print[b]", "print[c]"] {
        let told = ask(&place, &["status", member]);
        assert_eq!(told.code, 1, "{}", told.stdout);
        let why = format!("{member}: waits for exec[x], which has failed\n");
        assert!(told.stdout.contains(&why), "{}", told.stdout);
        let told = ask(&place, &["events", member]).stdout;
        assert!(
            told.contains("print[c]: could not run, because exec[x] failed"),
            "{told}"
        );
    }
    engine.stop();
}
