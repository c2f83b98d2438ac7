//! What `run --json` prints is what the schema of the events says.

use std::collections::BTreeSet;
use std::process::Stdio;

use serde_json::{Value as Json, json};
use setpoint_testing::Hermetic;

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// What is wrong with a value, by the words of JSON Schema that the schema of the events uses. Stricter than the schema: no object has
/// fields that the schema does not name, but where it says that any are allowed.
pub(crate) fn validate(schema: &Json, value: &Json) -> Result<(), String> {
    for (word, asked) in schema.as_object().expect("a schema is an object") {
        let holds = match word.as_str() {
            "$schema" | "title" | "description" | "format" | "default" => true,
            "type" => match asked {
                Json::Array(types) => types.iter().any(|one| is_of_type(value, one)),
                one => is_of_type(value, one),
            },
            "const" => value == asked,
            "minimum" => value
                .as_f64()
                .is_none_or(|value| value >= asked.as_f64().expect("a bound is a number")),
            "maximum" => value
                .as_f64()
                .is_none_or(|value| value <= asked.as_f64().expect("a bound is a number")),
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    validate(asked, item)?;
                }
                true
            }
            "anyOf" => {
                let mut any = asked.as_array().expect("a list of schemas").iter();
                any.any(|one| validate(one, value).is_ok())
            }
            "oneOf" => {
                let fitting = asked.as_array().expect("a list of words or schemas").iter();
                fitting.filter(|one| validate(one, value).is_ok()).count() == 1
            }
            "required" => {
                let mut names = asked
                    .as_array()
                    .expect("a list of words or schemas")
                    .iter()
                    .map(|name| name.as_str().expect("a name is a text"));
                names.all(|name| value.get(name).is_some())
            }
            "properties" => {
                for (name, field) in value.as_object().into_iter().flatten() {
                    let schema = asked.get(name).ok_or_else(|| format!("unknown: {name}"))?;
                    validate(schema, field).map_err(|error| format!("{name}: {error}"))?;
                }
                true
            }
            // Whether fields beside `properties` are allowed; beside them none are anyhow.
            "additionalProperties" => asked.is_boolean(),
            other => panic!("the test does not know `{other}`"),
        };
        if !holds {
            return Err(format!("not `{word}`: {asked}"));
        }
    }
    Ok(())
}

fn is_of_type(value: &Json, name: &Json) -> bool {
    match name.as_str().expect("a name is a text") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("the test does not know the type `{other}`"),
    }
}

/// A line against the schema of its event.
fn validate_line(schema: &Json, line: &Json) -> Result<(), String> {
    let sorts = schema["oneOf"]
        .as_array()
        .expect("the schema has a sort of line for each event");
    let sort = sorts.iter().find(|sort| sort["title"] == line["event"]);
    validate(sort.ok_or("an event that the schema does not have")?, line)
}

fn schema(place: &Hermetic) -> Json {
    let book = place.path("book");
    let finished = place.run(BINARY, &["docs", "book", &book.to_string_lossy()]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let text = std::fs::read_to_string(book.join("events.schema.json")).expect("the schema is written");
    serde_json::from_str(&text).expect("the schema is JSON")
}

/// The lines of three runs in which most happens that can happen.
fn lines_of_runs(place: &Hermetic, schema: &Json) -> Vec<Json> {
    let file = place.path("file").display().to_string();
    let text = format!(
        r#"
file "{file}" {{ content => "hello\nworld\n", state => "exists", mode => "0640", Notify => Exec["told"], }}
exec "told" {{ cmd => "/bin/true", ifcmd => "/bin/false", }}
exec "fails" {{ cmd => "/bin/false", Meta:retry => 1, Meta:delay => 1, Before => Print["after"], }}
print "after" {{ msg => "never", }}
test "sender" {{ sendvalue => "sent", }}
test "receiver" {{ anotherstr => "", }}
Test["sender"].hello -> Test["receiver"].anotherstr
print "limited" {{ msg => "x", Meta:sema => ["one:1",], }}
print "limited too" {{ msg => "y", Meta:sema => ["one:1",], Meta:autogroup => false, }}
"#
    );
    place.write("main.mcl", text);
    place.write("wrong.mcl", "print \"a\" { msg => $nothing, }\n");
    place.write("file", "hello\n");
    let mut lines = Vec::new();
    for arguments in [&["--noop", "main.mcl"][..], &["main.mcl"], &["wrong.mcl"]] {
        let arguments = [&["run", "--json", "--once", "--tmp-state-dir"], arguments].concat();
        let finished = place.run(BINARY, &arguments);
        for line in finished.stdout.lines() {
            let line: Json = serde_json::from_str(line).unwrap();
            if let Err(error) = validate_line(schema, &line) {
                panic!("{line}: {error}");
            }
            lines.push(line);
        }
    }
    lines
}

#[test]
fn every_line_of_a_run_follows_the_schema() {
    let place = Hermetic::new();
    let lines = lines_of_runs(&place, &schema(&place));
    let seen: BTreeSet<&str> = lines.iter().filter_map(|line| line["event"].as_str()).collect();
    let wanted = [
        "added",
        "backing off",
        "blocked by",
        "diagnostic",
        "dirty",
        "drift",
        "ended",
        "gave up",
        "graph accepted",
        "graph swapped",
        "log",
        "received",
        "refresh pending",
        "removed",
        "repaired",
        "repairing",
        "run ended",
        "sent",
        "started",
        "started run",
        "stopping",
        "watching",
    ];
    let missing: Vec<&str> = wanted.into_iter().filter(|event| !seen.contains(event)).collect();
    assert!(missing.is_empty(), "not seen: {missing:?}, but {seen:?}");
}

#[test]
fn the_schema_refuses_lines_with_other_fields_and_of_another_version() {
    let place = Hermetic::new();
    let schema = schema(&place);
    let lines = lines_of_runs(&place, &schema);
    for line in &lines {
        let mut more = line.clone();
        more["surplus"] = json!(1);
        assert!(validate_line(&schema, &more).is_err(), "{more}");
        let mut less = line.clone();
        less.as_object_mut().unwrap().remove("seq");
        assert!(validate_line(&schema, &less).is_err(), "{less}");
    }
    let first = lines.iter().find(|line| line["event"] == "started").unwrap();
    let mut other_version = first.clone();
    other_version["schema"] = json!(first["schema"].as_u64().unwrap() + 1);
    assert!(validate_line(&schema, &other_version).is_err());
}

#[test]
fn a_reader_that_goes_away_is_reported_and_counts_in_the_exit_code() {
    let place = Hermetic::new();
    place.write(
        "kept.mcl",
        "file \"$DIR/kept\" {\n\tcontent => \"right\",\n\tstate => \"exists\",\n}\n"
            .replace("$DIR", &place.path("").display().to_string()),
    );
    for (closed, words) in [("stdout", &["--json", "kept.mcl"][..]), ("stderr", &["kept.mcl"])] {
        let _ = std::fs::remove_file(place.path("kept"));
        let prefix = place.path(closed).display().to_string();
        let mut command = place.command(BINARY);
        command
            .args(["run", "--once", "--no-raise-limits", "--state-dir", &prefix])
            .args(words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program is there");
        match closed {
            "stdout" => drop(child.stdout.take()),
            _ => drop(child.stderr.take()),
        }
        let output = child.wait_with_output().expect("it was started here");
        assert_eq!(output.status.code(), Some(1), "{closed}");
        let warning =
            "warning: the reader of standard output is gone, so further events are lost; the run continues";
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(errors.contains(warning), closed == "stdout", "{errors}");
        assert_eq!(
            std::fs::read_to_string(place.path("kept")).unwrap_or_default(),
            "right",
            "the machine is kept right all the same"
        );
    }
}
