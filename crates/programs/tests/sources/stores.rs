//! What is kept on this host, and what members share.

use std::collections::BTreeSet;
use std::sync::Arc;

use setpoint_resources::{Candidacy, Elections, SharedKey};
use setpoint_value::{Type, Value};

use crate::machine::Machine;

#[test]
fn values_of_this_host_are_followed_and_outlive_the_process() {
    let machine = Machine::new();
    let get = |machine: &Machine| machine.follow(&["value"], "value.get_str(\"key\")");
    let mut value = get(&machine);
    assert_eq!(value.first().as_deref(), Ok("struct{value: \"\"; ready: false}"));
    machine.set_text("key", "one");
    value.becomes("struct{value: \"one\"; ready: true}");
    machine.set_text("other", "not followed");
    assert_eq!(value.now().as_deref(), Ok("struct{value: \"one\"; ready: true}"));
    machine.set("key", Value::Int(7));
    assert!(value.fails().contains("the value is of type int, not str"));
    machine.set_text("key", "two");
    value.becomes("struct{value: \"two\"; ready: true}");
    let mut after = get(&Machine::at(machine.directory(), "host.example"));
    assert_eq!(
        after.first().as_deref(),
        Ok("struct{value: \"two\"; ready: true}")
    );
    machine.values.delete("key").unwrap();
    value.becomes("struct{value: \"\"; ready: false}");
}

#[test]
fn a_value_has_the_type_of_its_use() {
    let machine = Machine::new();
    machine.set("int", Value::Int(7));
    machine.set("bool", Value::Bool(true));
    machine.set("float", Value::float(1.5));
    machine.set(
        "map",
        Value::Map(setpoint_value::Map::new(
            Type::Str,
            Type::Int,
            [(Value::str("a"), Value::Int(1))],
        )),
    );
    for (expression, expected) in [
        ("value.get_int(\"int\")->value", "7"),
        ("value.get_bool(\"bool\")->value", "true"),
        ("value.get_float(\"float\")->value", "1.5"),
        ("value.get(\"int\")->value + 1", "8"),
        ("value.get(\"map\")->value[\"a\"] + 1", "2"),
    ] {
        let mut value = machine.follow(&["value"], expression);
        assert_eq!(value.first().as_deref(), Ok(expected), "{expression}");
    }
}

#[test]
fn a_key_stays_what_it_was() {
    let machine = Machine::new();
    for (imports, call) in [
        (
            &["value"][..],
            "value.get_str(value.get_str(\"key\")->value)->value",
        ),
        (
            &["value", "world"],
            "world.getval(value.get_str(\"key\")->value)->value",
        ),
        (
            &["value", "world"],
            "len(world.kvlookup(value.get_str(\"key\")->value))",
        ),
        (
            &["value", "world"],
            "len(world.schedule(value.get_str(\"key\")->value))",
        ),
        (
            &["value", "world/collect"],
            "len(collect.res(value.get_str(\"key\")->value))",
        ),
        (
            &["value", "net/http"],
            "http.response(value.get_str(\"key\")->value)->output",
        ),
    ] {
        machine.set_text("key", "file");
        let mut value = machine.follow(imports, call);
        assert!(value.first().is_ok(), "{call}: {:?}", value.first());
        machine.set_text("key", "exec");
        let failure = value.fails();
        assert!(
            failure.contains("can't change key, previously: file"),
            "{call}: {failure}"
        );
    }
    machine.set_text("key", "");
    let mut empty = machine.follow(
        &["value", "world"],
        "world.getval(value.get_str(\"key\")->value)->value",
    );
    assert!(empty.fails().contains("must not be empty"));
}

#[test]
fn members_of_the_local_world_see_what_others_write() {
    let one = Machine::new();
    let two = Machine::at(one.directory(), "two.example");
    let mut value = one.follow(&["world"], "world.getval(\"a/key\")");
    assert_eq!(value.first().as_deref(), Ok("struct{value: \"\"; exists: false}"));
    two.share(SharedKey::ForAll("a/key"), Some("ä"));
    value.becomes("struct{value: \"ä\"; exists: true}");
    one.share(SharedKey::ForAll("a/key"), Some(""));
    value.becomes("struct{value: \"\"; exists: true}");
    two.share(SharedKey::ForAll("a/key"), None);
    value.becomes("struct{value: \"\"; exists: false}");

    let mut hosts = two.follow(&["world"], "world.kvlookup(\"ns\")");
    assert_eq!(hosts.first().as_deref(), Ok("{}"));
    one.share(SharedKey::OfThisHost("ns"), Some("1"));
    hosts.becomes("{\"host.example\": \"1\"}");
    two.share(SharedKey::OfThisHost("ns"), Some("2"));
    hosts.becomes("{\"host.example\": \"1\", \"two.example\": \"2\"}");
    one.share(SharedKey::OfThisHost("ns"), None);
    hosts.becomes("{\"two.example\": \"2\"}");
    // A key of the same name is another thing.
    one.share(SharedKey::ForAll("ns"), Some("global"));
    assert_eq!(hosts.now().as_deref(), Ok("{\"two.example\": \"2\"}"));

    let mut chosen = two.follow(&["world"], "world.schedule(\"ns\")");
    assert_eq!(chosen.first().as_deref(), Ok("[]"));
    let both = Candidacy {
        max: 2,
        ..Candidacy::default()
    };
    done(two.world.stand("ns", both));
    chosen.becomes("[\"two.example\"]");
    done(one.world.stand("ns", both));
    chosen.becomes("[\"host.example\", \"two.example\"]");
    done(two.world.withdraw("ns"));
    chosen.becomes("[\"host.example\"]");
    done(one.world.withdraw("ns"));
    chosen.becomes("[]");
}

#[test]
fn exports_are_seen_by_whom_they_are_for() {
    let one = Machine::new();
    let two = Machine::at(one.directory(), "two.example");
    let mut exports = two.follow(&["world/collect"], "collect.res(\"file\")");
    assert_eq!(exports.first().as_deref(), Ok("[]"));
    one.export("*", "file", "/etc/motd", Some("data"));
    exports.becomes("[struct{name: \"/etc/motd\"; host: \"host.example\"}]");
    one.export("two.example", "file", "/a", Some("data"));
    exports.becomes(
        "[struct{name: \"/a\"; host: \"host.example\"}, struct{name: \"/etc/motd\"; host: \"host.example\"}]",
    );
    one.export("three.example", "file", "/b", Some("data"));
    one.export("*", "exec", "/c", Some("data"));
    one.export("two.example", "file", "/a", None);
    exports.becomes("[struct{name: \"/etc/motd\"; host: \"host.example\"}]");
    let mut unknown = two.follow(&["world/collect"], "len(collect.res(\"fiel\"))");
    assert!(unknown.fails().contains("there is no kind `fiel`"));
}

#[test]
fn what_the_world_holds_outlives_its_members() {
    let one = Machine::new();
    one.share(SharedKey::ForAll("key"), Some("kept"));
    let again = Machine::at(one.directory(), "host.example");
    let mut value = again.follow(&["world"], "world.getval(\"key\")->value");
    assert_eq!(value.first().as_deref(), Ok("\"kept\""));
}

#[test]
fn numbers_of_a_pool_are_kept_and_differ_whoever_asks() {
    let machine = Arc::new(Machine::new());
    let number = |machine: &Machine, name: &str| -> i64 {
        let mut pool = machine.follow(&["local"], &format!("local.pool(\"ns\", \"{name}\")"));
        pool.first().unwrap().parse().unwrap()
    };
    let all: Vec<(String, i64)> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..100)
            .map(|index| {
                let machine = machine.clone();
                scope.spawn(move || {
                    // Two ask for each name.
                    let name = format!("name{}", index / 2);
                    let number = number(&machine, &name);
                    (name, number)
                })
            })
            .collect();
        asked.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let pairs: BTreeSet<&(String, i64)> = all.iter().collect();
    let numbers: BTreeSet<i64> = all.iter().map(|(_, number)| *number).collect();
    assert_eq!((pairs.len(), numbers.len()), (50, 50), "{all:?}");
    assert!(numbers.first() > Some(&0));
    let again = Machine::at(machine.directory(), "host.example");
    for (name, kept) in &all[..4] {
        assert_eq!(number(&again, name), *kept);
    }
    let left: Vec<_> = std::fs::read_dir(machine.path("prefix/local/pool/ns"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.ends_with(".uid"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_directory_for_a_programs_own_files_is_made() {
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::new();
    let mut directory = machine.follow(&["local"], "local.vardir(\"a/b/\")");
    let path = machine.path("prefix/local/vardir/functions/a/b/");
    assert_eq!(directory.first(), Ok(format!("\"{path}\"")));
    let found = std::fs::metadata(path).unwrap();
    assert_eq!(
        (found.is_dir(), found.permissions().mode() & 0o777),
        (true, 0o750)
    );
}

#[test]
fn answers_of_requests_are_followed() {
    let machine = Machine::new();
    let mut answer = machine.follow(&["net/http"], "http.response(\"uid\")");
    assert_eq!(answer.first().as_deref(), Ok("struct{status: 0; output: \"\"}"));
    let body = machine.directory().join("body");
    std::fs::write(&body, "hello").unwrap();
    machine.responses.publish("uid", 200, Some(body.clone()));
    answer.becomes("struct{status: 200; output: \"hello\"}");
    machine.responses.publish("uid", -1, None);
    answer.becomes("struct{status: -1; output: \"\"}");
    std::fs::remove_file(&body).unwrap();
    machine.responses.publish("uid", 204, Some(body));
    assert!(answer.fails().contains("can't read"));
}

#[test]
fn the_files_of_a_program_are_read_from_its_modules() {
    let machine = Machine::new();
    let root = machine.directory().join("program");
    for (path, content) in [
        ("metadata.yaml", "main: main.mcl\nfiles: files/\n"),
        (
            "main.mcl",
            "import \"deploy\"\nimport \"mod/\" as mod\n\
             test \"value\" {\n\tinterface => [deploy.readfile(\"/files/x\"), mod.own(), deploy.directory(\"/files/\"), deploy.abspath(\"/files/x\"),],\n}\n",
        ),
        ("files/x", "of the program"),
        ("files/d/y", "below"),
        ("mod/metadata.yaml", "main: main.mcl\nfiles: files/\n"),
        (
            "mod/main.mcl",
            "import \"deploy\"\nfunc own() {\n\tdeploy.readfile(\"/files/x\")\n}\n",
        ),
        ("mod/files/x", "of the module"),
    ] {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let mut value = machine.run_directory(&root);
    let copied = machine.path("prefix/local/vardir/directory/files/");
    assert_eq!(
        value.first(),
        Ok(format!(
            "[\"of the program\", \"of the module\", \"{copied}\", \"/files/x\"]"
        ))
    );
    assert_eq!(std::fs::read_to_string(format!("{copied}d/y")).unwrap(), "below");
}

#[test]
fn the_environment_is_that_of_the_process() {
    use setpoint_testing::place::Place;
    let place = Place::process("stores::the_environment_is_that_of_the_process");
    place
        .with("SETPOINT_EMPTY", "")
        .with("SETPOINT_SET", "x")
        .run(|| {
            let machine = Machine::new();
            for (expression, expected) in [
                ("sys.getenv(\"SETPOINT_NOPE\") <|> \"default\"", "\"default\""),
                ("sys.getenv(\"SETPOINT_EMPTY\") <|> \"default\"", "\"\""),
                ("sys.getenv(\"SETPOINT_SET\")", "\"x\""),
                ("sys.hasenv(\"SETPOINT_EMPTY\")", "true"),
                ("sys.env()[\"SETPOINT_SET\"]", "\"x\""),
            ] {
                let mut value = machine.follow(&["sys"], expression);
                assert_eq!(value.first().as_deref(), Ok(expected), "{expression}");
            }
        });
}

/// What the engine does on its runtime.
fn done<T, E: std::fmt::Debug>(work: impl Future<Output = Result<T, E>>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(work).unwrap()
}
