//! The control socket of a running process, as other programs use it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value as Json, json};
use setpoint_testing::{Hermetic, repository};

use crate::control::{ask, failing, started, status};
use crate::end_to_end::text;
use crate::events::validate;

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// A client of the socket that does what it likes.
struct Raw(BufReader<UnixStream>);

impl Raw {
    fn connect(place: &Hermetic) -> Raw {
        let stream = UnixStream::connect(place.path("prefix/control.sock")).expect("a process listens");
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .expect("the socket works");
        Raw(BufReader::new(stream))
    }

    fn say(&mut self, line: &str) {
        self.0
            .get_mut()
            .write_all(format!("{line}\n").as_bytes())
            .expect("the socket works");
    }

    fn line(&mut self) -> Json {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("the socket works");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The code of the next error, whatever comes before it.
    fn error(&mut self) -> Json {
        loop {
            let line = self.line();
            if line["answer"] == "error" {
                return line["code"].clone();
            }
        }
    }

    /// The lines of an answer up to the last.
    fn answer(&mut self, id: u64) -> Vec<Json> {
        let mut lines = Vec::new();
        loop {
            let line = self.line();
            let is_last = ["status", "graph", "events", "recheck", "error"]
                .iter()
                .any(|last| line["answer"] == *last && line["id"] == id);
            lines.push(line);
            if is_last {
                return lines;
            }
        }
    }
}

/// A line of the socket against the schema in the reference.
fn validate_line(schema: &Json, side: &str, line: &Json) {
    let name = line[side].as_str().unwrap_or_default();
    let sorts = schema["$defs"][side]["oneOf"].as_array().expect("sorts of lines");
    let sort = sorts.iter().find(|sort| sort["title"] == name);
    let sort = sort.unwrap_or_else(|| panic!("no {side} `{name}` in the schema"));
    if let Err(error) = validate(sort, line) {
        panic!("{line}: {error}");
    }
}

#[test]
fn every_line_of_the_socket_is_as_the_schema_says() {
    let schema: Json =
        serde_json::from_str(&text(&repository().join("docs/reference/control.schema.json"))).unwrap();
    let place = Hermetic::new();
    let program = failing(&place);
    let engine = started(&place, &program);
    let mut client = Raw::connect(&place);
    let hello = client.line();
    assert_eq!(
        (&hello["answer"], &hello["protocol"]),
        (&json!("hello"), &json!(1))
    );
    validate_line(&schema, "answer", &hello);
    let motd = format!("file[{}]", place.path("machine/etc/motd").display());
    let requests = [
        json!({"request": "status"}),
        json!({"request": "status", "standings": []}),
        json!({"request": "status", "resources": [motd], "standings": ["right"]}),
        json!({"request": "graph"}),
        json!({"request": "events", "since": 0, "events": ["repaired", "backing off"]}),
        json!({"request": "events", "follow": true}),
        json!({"request": "cancel", "of": 5}),
        json!({"request": "recheck", "resources": [motd]}),
        json!({"request": "recheck", "resources": ["file[nothing]"]}),
        json!({"request": "pause"}),
        json!({"request": "resume"}),
        json!({"request": "debug", "on": ["exec", "file[nothing]"], "off": ["exec"]}),
        json!({"request": "reload"}),
        json!({"request": "nothing"}),
    ];
    let count = requests.len();
    for (id, mut request) in requests.into_iter().enumerate() {
        request["id"] = id.into();
        if request["request"] != "nothing" {
            validate_line(&schema, "request", &request);
        }
        client.say(&request.to_string());
    }
    // All are under way at a time, and each answer says whose it is.
    let mut ended = std::collections::BTreeSet::new();
    let mut seen = std::collections::BTreeSet::new();
    while ended.len() < count {
        let line = client.line();
        validate_line(&schema, "answer", &line);
        let sort = line["answer"].as_str().unwrap().to_owned();
        if !["resources", "graph-resources", "graph-edges", "event"].contains(&&*sort) {
            ended.insert(line["id"].as_u64().unwrap());
        }
        seen.insert(sort);
    }
    let wanted = [
        "cancel",
        "debug",
        "error",
        "event",
        "events",
        "graph",
        "graph-edges",
        "graph-resources",
        "pause",
        "recheck",
        "reload",
        "resources",
        "resume",
        "status",
    ];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), wanted);
    engine.stop();
}

#[test]
fn the_graph_is_that_of_setpoint_graph() {
    let place = Hermetic::new();
    let program = failing(&place);
    let engine = started(&place, &program);
    let mut client = Raw::connect(&place);
    client.say(r#"{"id":1,"request":"graph"}"#);
    let lines = client.answer(1);
    let all = |sort: &str, field: &str| -> Vec<Json> {
        let of = lines.iter().filter(|line| line["answer"] == sort);
        of.flat_map(|line| line[field].as_array().cloned().unwrap_or_default())
            .collect()
    };
    let printed = place.run(BINARY, &["graph", "--format", "json", &program]);
    // Names of files are those of the machine here, and there as the program names them.
    let mut printed: Json = serde_json::from_str(
        &printed
            .stdout
            .replace("$DIR", &place.directory().display().to_string()),
    )
    .unwrap();
    for row in printed["resources"].as_array_mut().unwrap() {
        row["span"]["file"] = program.clone().into();
    }
    assert_eq!(json!(all("graph-resources", "resources")), printed["resources"]);
    assert_eq!(json!(all("graph-edges", "edges")), printed["edges"]);
    engine.stop();
}

#[test]
fn garbage_is_answered_and_harms_nobody() {
    let place = Hermetic::new();
    let program = failing(&place);
    let engine = started(&place, &program);
    let mut client = Raw::connect(&place);
    client.line();
    for (line, code) in [
        ("garbage", "not-a-request"),
        ("\u{0}\u{1b}[31m", "not-a-request"),
        (&"[".repeat(10_000), "not-a-request"),
        (r#"{"id":1,"request":"halt"}"#, "unknown-request"),
        (r#"{"id":1,"request":"recheck","resources":"x"}"#, "invalid"),
    ] {
        client.say(line);
        assert_eq!(client.line()["code"], code, "{line:.40}");
    }
    // Blank lines are nothing.
    client.say("\n  \r\n");
    // A request goes on in spite of it, and an id is used once at a time.
    client.say(r#"{"id":2,"request":"events","follow":true}"#);
    client.say(r#"{"id":2,"request":"status"}"#);
    assert_eq!(client.error(), "id-in-use");
    for id in 3..40 {
        client.say(&format!(r#"{{"id":{id},"request":"events","follow":true}}"#));
    }
    assert_eq!(client.error(), "too-many-requests");
    let mut long = Raw::connect(&place);
    long.line();
    let _ = long.0.get_mut().write_all(&vec![b'x'; 70_000]);
    assert_eq!(long.line()["code"], "too-long");
    let crowd: Vec<Raw> = (0..70).map(|_| Raw::connect(&place)).collect();
    let said: Vec<Json> = crowd.into_iter().map(|mut one| one.line()).collect();
    assert!(said.iter().any(|line| line["code"] == "too-many-clients"));
    engine.stop();
}

#[test]
fn what_is_cancelled_has_a_last_line_that_says_how_far_it_came() {
    let place = Hermetic::new();
    let program = failing(&place);
    std::fs::create_dir_all(place.path("machine/srv/app")).unwrap();
    let engine = started(&place, &program);
    let mut client = Raw::connect(&place);
    client.line();
    client.say(r#"{"id":1,"request":"events","follow":true,"since":0}"#);
    let mut told = 0;
    while told < 5 {
        told = client.line()["event"]["seq"].as_u64().unwrap();
    }
    client.say(r#"{"id":2,"request":"cancel","of":1}"#);
    let last = loop {
        let line = client.line();
        match line["answer"].as_str() {
            Some("event") => told = line["event"]["seq"].as_u64().unwrap(),
            _ => break line,
        }
    };
    assert_eq!(last, json!({"answer": "events", "id": 1, "newest": told}));
    assert_eq!(
        client.line(),
        json!({"answer": "cancel", "id": 2, "was_under_way": true})
    );
    client.say(r#"{"id":3,"request":"cancel","of":1}"#);
    assert_eq!(
        client.line(),
        json!({"answer": "cancel", "id": 3, "was_under_way": false})
    );
    // What is no `events` is told that it was cancelled: here nothing has run yet.
    client.say("{\"id\":4,\"request\":\"status\"}\n{\"id\":5,\"request\":\"cancel\",\"of\":4}");
    let lines = [client.line(), client.line()];
    if lines[1]["was_under_way"] == true {
        assert_eq!(
            (&lines[0]["answer"], &lines[0]["code"]),
            (&json!("error"), &json!("cancelled"))
        );
    }
    engine.stop();

    // The same when the client closes its side.
    let engine = started(&place, &program);
    let mut client = Raw::connect(&place);
    client.line();
    client.say(r#"{"id":1,"request":"events","follow":true}"#);
    client.say(r#"{"id":2,"request":"status","standings":[]}"#);
    client.0.get_ref().shutdown(std::net::Shutdown::Write).unwrap();
    let mut ended = [false; 2];
    while !ended.iter().all(|ended| *ended) {
        let line = client.line();
        ended[0] |= line["answer"] == "events" && line["id"] == 1;
        ended[1] |= line["answer"] == "status" && line["id"] == 2;
    }
    engine.stop();
}

#[test]
fn a_client_that_never_reads_holds_nobody_and_finds_a_gap() {
    let place = Hermetic::new();
    let resources: String = (0..1500).map(|n| format!("test \"t{n}\" {{}}\n")).collect();
    let program = place.write("many.mcl", resources).display().to_string();
    let engine = started(&place, &program);
    let mut lazy = Raw::connect(&place);
    lazy.say(r#"{"id":1,"request":"events","since":0,"follow":true}"#);
    lazy.say(r#"{"id":2,"request":"status"}"#);
    // Others are served, and so is the engine, whatever it has in its queue.
    let names: Vec<String> = (0..1500).map(|n| format!("\"test[t{n}]\"")).collect();
    let mut busy = Raw::connect(&place);
    for round in 0..4 {
        let id = round + 1;
        busy.say(&format!(
            r#"{{"id":{id},"request":"recheck","resources":[{}]}}"#,
            names.join(",")
        ));
        assert_eq!(busy.answer(id).last().unwrap()["answer"], "recheck");
    }
    let (code, json) = status(&place, &[]);
    assert!([0, 3].contains(&code), "{json}");
    let mut next = 1;
    let mut gaps = 0;
    let newest = json["status"]["newest_event"].as_u64().unwrap();
    while next <= newest {
        let line = lazy.line();
        if line["answer"] != "event" {
            continue;
        }
        let (event, seq) = (&line["event"], line["event"]["seq"].as_u64().unwrap());
        let lost = event["lost"]
            .as_u64()
            .filter(|_| event["event"] == "gap")
            .unwrap_or(1);
        gaps += u64::from(event["event"] == "gap");
        assert_eq!(seq, next + lost - 1, "nothing is missing in silence: {event}");
        next = seq + 1;
    }
    assert!(gaps > 0, "{newest} events");
    engine.stop();
}

#[test]
fn nothing_sensitive_goes_over_the_socket() {
    let place = Hermetic::new();
    let file = place.path("secret").display().to_string();
    let program = format!(
        "$s = sensitive(\"hunter2\")\nfile \"{file}\" {{\n\tcontent => $s,\n\tmode => \"0600\",\n}}\n\
         exec \"fails\" {{\n\tcmd => \"/bin/false\",\n\tenv => {{\"A\" => $s,}},\n}}\nprint \"shown\" {{\n\tmsg => $s,\n}}\n\
         exec \"says\" {{\n\tcmd => \"echo $A >&2; exit 3\",\n\tshell => \"/bin/sh\",\n\tenv => {{\"A\" => $s,}},\n}}\n"
    );
    let program = place.write("p.mcl", program).display().to_string();
    let engine = started(&place, &program);
    assert_eq!(ask(&place, &["debug", "on", "all"]).stdout, "all\n");
    let mut client = Raw::connect(&place);
    let mut said = String::new();
    for request in [r#""status""#, r#""graph""#, r#""events","since":0"#] {
        client.say(&format!(r#"{{"id":1,"request":{request}}}"#));
        for line in client.answer(1) {
            said.push_str(&line.to_string());
        }
    }
    for words in [&["status", "--all"][..], &["events"]] {
        said.push_str(&ask(&place, words).stdout);
    }
    assert!(
        said.contains("$sensitive") && said.contains("(sensitive)"),
        "{said}"
    );
    assert!(!said.contains("hunter2"), "{said}");
    engine.stop();
}
