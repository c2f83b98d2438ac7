//! Figures for Prometheus: which there are, that they move with what happens, and that nobody who asks for them can do harm.

mod exposition;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use setpoint_testing::etcd::{EtcdCluster, has_etcd};
use setpoint_testing::{Hermetic, repository};

use crate::end_to_end::{Engine, run, text};
use exposition::{Exposed, Form, read};

/// Generous: machines of CI are slow.
const LIMIT: Duration = Duration::from_secs(60);

const OPEN_METRICS: &str = "Accept: application/openmetrics-text; version=1.0.0\r\n";

/// A run with figures.
struct Measured {
    engine: Engine,
    address: String,
}

impl Measured {
    fn start(place: &Hermetic, further: &[&str]) -> Measured {
        let address = free_address();
        let mut arguments = vec!["--prometheus", "--prometheus-listen", &address];
        arguments.extend(further);
        let engine = Engine::start(place, &arguments);
        let deadline = Instant::now() + LIMIT;
        while TcpStream::connect(&address).is_err() {
            assert!(Instant::now() < deadline, "it listens in time");
            std::thread::sleep(Duration::from_millis(10));
        }
        Measured { engine, address }
    }

    /// What it answers to a request: the head, and the body.
    fn ask(&self, request: &str) -> (String, String) {
        let mut stream = connect(&self.address);
        stream.write_all(request.as_bytes()).expect("it listens");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers with text");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
        (head.to_ascii_lowercase(), body.to_owned())
    }

    fn scrape(&self) -> Exposed {
        let (head, body) = self.ask("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(head.starts_with("http/1.1 200 "), "{head}");
        read(&body, Form::Plain)
    }

    /// Asks until something holds.
    fn scrape_until(&self, what: &str, holds: impl Fn(&Exposed) -> bool) -> Exposed {
        let deadline = Instant::now() + LIMIT;
        loop {
            let exposed = self.scrape();
            if holds(&exposed) {
                return exposed;
            }
            assert!(Instant::now() < deadline, "not in time: {what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).expect("it listens");
    stream
        .set_read_timeout(Some(LIMIT))
        .expect("the limit is not zero");
    stream
}

/// An address at which nobody listens.
fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a loopback interface");
    listener.local_addr().expect("it is bound").to_string()
}

#[test]
fn metrics_change_with_graphs_repairs_and_failures() {
    let place = Hermetic::new();
    let (good, bad) = (place.path("hunter2"), place.path("nowhere/hunter2"));
    let program = format!(
        "import \"os\"\nfile \"{}\" {{\n\tcontent => \"right\",\n}}\nfile \"{}\" {{\n\tcontent => os.readfile(\"{}\"),\n\tMeta:retry => 1,\n\tMeta:delay => 10,\n}}\n",
        good.display(),
        bad.display(),
        place.write("input", "hunter2").display(),
    );
    let program = place.write("p.mcl", program).display().to_string();
    let before = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs_f64();
    let mut measured = Measured::start(&place, &[&program]);
    let name = good.display().to_string();
    measured
        .engine
        .event("convergence", |event| event["event"] == "converged");
    let first = measured.scrape_until("convergence", |exposed| {
        exposed.value("setpoint_converged") == 1.0
    });
    first_values_are_those_of_the_graph_and_the_process(&first, before);
    // A repair moves what counts repairs, and nothing that counts failures.
    std::fs::write(&good, "wrong").unwrap();
    measured
        .engine
        .repaired_until("file", &name, || text(&good) == "right");
    let repairs = "setpoint_repairs_total{kind=\"file\"}";
    let second = measured.scrape_until("the repair", |exposed| {
        exposed.value(repairs) > first.value(repairs)
    });
    assert!(second.value(&runs(true, false)) > first.value(&runs(true, false)));
    assert!(
        second.value("setpoint_drifts_total{kind=\"file\"}")
            > first.value("setpoint_drifts_total{kind=\"file\"}")
    );
    assert_eq!(
        second.sum("setpoint_failures_total"),
        first.sum("setpoint_failures_total")
    );

    failures_and_wrong_programs_are_counted(&mut measured, &place, &first);
    measured.engine.stop();
}

fn failures_and_wrong_programs_are_counted(measured: &mut Measured, place: &Hermetic, first: &Exposed) {
    std::fs::write(place.path("input"), "hunter3").unwrap();
    let failures = "setpoint_failures_total{failure=\"hard\",kind=\"file\"}";
    let taken = "setpoint_graphs_total{result=\"taken\"}";
    let since = "setpoint_graph_start_time_seconds";
    measured.scrape_until("the failure", |exposed| {
        exposed.value(failures) > 1.0
            && exposed.value(taken) == 2.0
            && exposed.value(since) > first.value(since)
    });

    // And a program that has become wrong is told, too.
    std::fs::remove_file(place.path("input")).unwrap();
    let wrong = measured.scrape_until("the rejection", |exposed| {
        exposed.value("setpoint_program_wrong") == 1.0
    });
    assert_eq!(wrong.value("setpoint_graphs_total{result=\"rejected\"}"), 1.0);
}

/// The series that counts runs of files.
fn runs(eventful: bool, errorful: bool) -> String {
    format!(
        "setpoint_checkapply_total{{apply=\"true\",errorful=\"{errorful}\",eventful=\"{eventful}\",kind=\"file\"}}"
    )
}

fn first_values_are_those_of_the_graph_and_the_process(first: &Exposed, before: f64) {
    for (series, value) in [
        ("setpoint_resources{kind=\"file\"}", 2.0),
        ("setpoint_resources{kind=\"exec\"}", 0.0),
        ("setpoint_resources_standing{standing=\"failed\"}", 1.0),
        ("setpoint_resources_standing{standing=\"right\"}", 1.0),
        ("setpoint_failing{failure=\"hard\",kind=\"file\"}", 1.0),
        ("setpoint_failing{failure=\"soft\",kind=\"file\"}", 0.0),
        ("setpoint_failures_total{failure=\"soft\",kind=\"file\"}", 1.0),
        ("setpoint_failures_total{failure=\"hard\",kind=\"file\"}", 1.0),
        ("setpoint_graphs_total{result=\"taken\"}", 1.0),
        ("setpoint_graphs_total{result=\"rejected\"}", 0.0),
        ("setpoint_repairs_total{kind=\"file\"}", 1.0),
        ("setpoint_right", 0.0),
        ("setpoint_noop", 0.0),
        ("setpoint_paused", 0.0),
        ("setpoint_program_wrong", 0.0),
        (&runs(false, true), 2.0),
    ] {
        assert_eq!(first.value(series), value, "{series}");
    }
    let graph = first.value("setpoint_graph_start_time_seconds");
    assert!((before - 1.0..before + 60.0).contains(&graph), "{graph}");
    let started = first.value("process_start_time_seconds");
    assert!(
        (before - 5.0..before + 60.0).contains(&started),
        "{started} {before}"
    );
    for series in [
        "process_resident_memory_bytes",
        "process_virtual_memory_bytes",
        "process_open_fds",
        "process_max_fds",
        "process_threads",
    ] {
        assert!(first.value(series) > 0.0, "{series}");
    }
    let count = |exposed: &Exposed| exposed.value("setpoint_run_duration_seconds_count{kind=\"file\"}");
    let file_runs = |exposed: &Exposed| -> f64 {
        let all = [(false, false), (true, false), (false, true)];
        all.iter()
            .map(|(eventful, errorful)| exposed.value(&runs(*eventful, *errorful)))
            .sum()
    };
    assert_eq!(count(first), file_runs(first));
}

#[test]
fn without_repairs_runs_are_counted_as_such() {
    let place = Hermetic::new();
    let program = format!(
        "file \"{}\" {{\n\tcontent => \"right\",\n}}\n",
        place.path("file").display()
    );
    let program = place.write("p.mcl", program).display().to_string();
    let mut measured = Measured::start(&place, &["--noop", &program]);
    measured
        .engine
        .event("convergence", |event| event["event"] == "converged");
    let exposed = measured.scrape_until("convergence", |exposed| {
        exposed.value("setpoint_converged") == 1.0
    });
    let of = |apply: bool| {
        format!(
            "setpoint_checkapply_total{{apply=\"{apply}\",errorful=\"false\",eventful=\"true\",kind=\"file\"}}"
        )
    };
    assert_eq!((exposed.value(&of(false)), exposed.value(&of(true))), (1.0, 0.0));
    assert_eq!(exposed.value("setpoint_noop"), 1.0);
    assert_eq!(
        exposed.value("setpoint_resources_standing{standing=\"would_change\"}"),
        1.0
    );
    assert_eq!(exposed.sum("setpoint_repairs_total"), 0.0);
    measured.engine.stop();
}

#[test]
fn every_kind_is_there_from_the_start_and_no_name_or_value_ever() {
    let place = Hermetic::new();
    let secret = place.path("hunter2");
    let program = format!(
        "file \"{}\" {{\n\tcontent => \"hunter3\",\n}}\n",
        secret.display()
    );
    let program = place.write("p.mcl", program).display().to_string();
    let mut measured = Measured::start(&place, &[&program]);
    measured.engine.repaired("file", &secret.display().to_string());
    let (_, plain) = measured.ask("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(
        !plain.contains("hunter") && !plain.contains("host.example"),
        "{plain}"
    );
    let exposed = read(&plain, Form::Plain);
    let listed = place
        .run(env!("CARGO_BIN_EXE_setpoint"), &["docs", "kinds"])
        .stdout;
    let listed: BTreeSet<&str> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    for (name, family) in &exposed.0 {
        if family.labels.contains("kind") {
            let kinds = exposed.values_of(name, "kind");
            let missing: Vec<&&str> = listed.iter().filter(|kind| !kinds.contains(**kind)).collect();
            assert!(missing.is_empty(), "{name} lacks {missing:?}");
            let combinations = match &**name {
                "setpoint_checkapply_total" => 8,
                "setpoint_failures_total" | "setpoint_failing" => 2,
                "setpoint_run_duration_seconds" => 12,
                _ => 1,
            };
            assert_eq!(family.samples.len(), kinds.len() * combinations, "{name}");
        }
    }
    // The same in the other form, but for what moves by itself.
    let (_, open) = measured.ask(&format!("GET /metrics HTTP/1.1\r\nHost: a\r\n{OPEN_METRICS}\r\n"));
    let open = read(&open, Form::OpenMetrics);
    let series = |exposed: &Exposed| -> Vec<String> {
        exposed
            .0
            .values()
            .flat_map(|family| family.samples.keys().cloned())
            .collect()
    };
    assert_eq!(series(&exposed), series(&open));
    measured.engine.stop();
}

#[test]
fn requests_get_what_they_ask_for_or_the_status_that_says_why_not() {
    let place = Hermetic::new();
    let mut measured = Measured::start(&place, &["test \"a\" {}"]);
    measured
        .engine
        .event("convergence", |event| event["event"] == "converged");
    for (request, status, contains) in [
        (
            line("GET", "/metrics", ""),
            200,
            "content-type: text/plain; version=0.0.4; charset=utf-8",
        ),
        (
            line("GET", "/metrics?x=y", "Accept: */*\r\n"),
            200,
            "content-type: text/plain; version=0.0.4",
        ),
        (
            line("GET", "/metrics", OPEN_METRICS),
            200,
            "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8",
        ),
        (line("GET", "/", ""), 404, "content-length: "),
        (line("GET", "/metrics/", ""), 404, ""),
        (line("GET", "/%6detrics", ""), 404, ""),
        (line("POST", "/other", "Content-Length: 0\r\n"), 404, ""),
        (
            line("POST", "/metrics", "Content-Length: 3\r\n"),
            405,
            "allow: get, head",
        ),
        (line("DELETE", "/metrics", ""), 405, "allow: get, head"),
        ("GET /metrics HTTP/1.0\r\n\r\n".to_owned(), 200, ""),
        ("nonsense\r\n\r\n".to_owned(), 400, ""),
        (
            line("GET", "/metrics", &format!("X: {}\r\n", "x".repeat(20_000))),
            431,
            "",
        ),
        (line("GET", "/metrics", &"X: y\r\n".repeat(200)), 431, ""),
    ] {
        let (head, body) = measured.ask(&request);
        let first = head.lines().next().unwrap_or_default();
        let begin = &request[..request.len().min(60)];
        assert!(first.contains(&format!(" {status} ")), "{begin}: {head}");
        assert!(head.contains(contains), "{begin}: {head}");
        assert_eq!(status == 200, body.contains("setpoint_build_info"), "{begin}");
    }
    a_head_request_gets_only_the_length(&mut measured);
    measured.engine.stop();
}

fn line(method: &str, path: &str, headers: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{headers}\r\n")
}

fn a_head_request_gets_only_the_length(measured: &mut Measured) {
    let (head, body) = measured.ask(&line("HEAD", "/metrics", ""));
    assert!(head.starts_with("http/1.1 200 ") && body.is_empty(), "{head}");
    let length: usize = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .and_then(|length| length.parse().ok())
        .expect("it says how much it would be");
    assert!(length > 1000, "{length}");
}

#[test]
fn clients_that_are_slow_silent_or_many_hold_up_nobody() {
    let place = Hermetic::new();
    let file = place.path("file");
    let program = format!("file \"{}\" {{\n\tcontent => \"right\",\n}}\n", file.display());
    let program = place.write("p.mcl", program).display().to_string();
    let mut measured = Measured::start(&place, &[&program]);
    let name = file.display().to_string();
    measured.engine.repaired("file", &name);
    let descriptors = measured.scrape().value("process_open_fds");
    let address = measured.address.clone();
    let half = |begin: &str| {
        let mut stream = connect(&address);
        stream.write_all(begin.as_bytes()).unwrap();
        stream
    };
    let mut held: Vec<TcpStream> = (0..100).map(|_| half("")).collect();
    held.extend((0..100).map(|_| half("GET /metr")));
    held.extend((0..100).map(|_| half("GET /metrics HTTP/1.1\r\nHost: a\r\nX-A: ")));
    // Those who ask and do not take the answer.
    held.extend((0..100).map(|_| half("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")));
    let exposed = measured.scrape();
    let now = exposed.value("process_open_fds");
    assert!(now < descriptors + 40.0, "{descriptors} descriptors became {now}");
    // What the program is for goes on.
    std::fs::write(&file, "wrong").unwrap();
    measured
        .engine
        .repaired_until("file", &name, || text(&file) == "right");
    // Who is silent is left in the end, also where nobody needs its place.
    let mut silent = half("GET /");
    let mut rest = String::new();
    let ended = silent.read_to_string(&mut rest);
    assert!(ended.is_ok() && !rest.contains("200"), "{ended:?} {rest}");
    drop(held);
    measured.engine.stop();
}

#[test]
fn an_address_that_cannot_be_had_ends_the_start() {
    let place = Hermetic::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let file = place.path("file");
    let program = format!("file \"{}\" {{}}", file.display());
    let listen = |address: &str| {
        run(
            &place,
            &["--once", "--prometheus", "--prometheus-listen", address, &program],
        )
    };
    let finished = listen(&address);
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    for part in [
        format!("listen at `{address}` for Prometheus: Address already in use"),
        "`--prometheus-listen` chooses another address".to_owned(),
    ] {
        assert!(finished.stderr.contains(&part), "{}", finished.stderr);
    }
    for (address, why) in [
        ("127.0.0.1", "there is no port"),
        ("127.0.0.1:http", "the port is no number from 0 to 65535"),
        ("127.0.0.1:99999", "the port is no number from 0 to 65535"),
        (":9233", "there is no address"),
        ("::1:9233", "an address of IPv6 stands in brackets"),
        ("http://127.0.0.1:9233", "a URL is no address"),
        ("", "there is no port"),
    ] {
        let finished = listen(address);
        assert_eq!(finished.code, 64, "{address}: {}", finished.stderr);
        assert!(finished.stderr.contains(why), "{address}: {}", finished.stderr);
    }
    let finished = listen("192.0.2.1:9233");
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    let finished = run(&place, &["--once", "--prometheus-listen", &address, &program]);
    assert_eq!(finished.code, 64, "{}", finished.stderr);
    assert!(finished.stderr.contains("--prometheus"), "{}", finished.stderr);
    assert!(
        !file.exists() && !place.path("prefix").exists(),
        "nothing was begun"
    );
    // With port 0 it is said where it listens.
    let finished = listen("localhost:0");
    assert_eq!(finished.code, 0, "{}", finished.stderr);
}

#[test]
fn a_store_that_is_away_is_seen_and_its_answers_are_measured() {
    if !has_etcd("a_store_that_is_away_is_seen_and_its_answers_are_measured") {
        return;
    }
    let place = Hermetic::new();
    let mut etcd = EtcdCluster::start(1);
    let seeds = etcd.endpoints().join(",");
    let program = "kv \"motto\" {\n\tvalue => \"one\",\n}\n";
    let measured = Measured::start(&place, &["--etcd-endpoints", &seeds, "--no-deploy", program]);
    let up = "setpoint_store_up";
    let is = |exposed: &Exposed, value: f64| exposed.0[up].samples.get(up) == Some(&value);
    let written = "setpoint_store_requests_total{operation=\"write\",result=\"answered\"}";
    let first = measured.scrape_until("the store", |exposed| {
        is(exposed, 1.0) && exposed.value(written) > 0.0
    });
    assert!(first.value("setpoint_store_request_duration_seconds_count{operation=\"write\"}") > 0.0);
    etcd.kill_member(0);
    measured.scrape_until("its end", |exposed| {
        // Which request is the first after its end is chance.
        let unanswered = ["read", "write", "lease"].map(|operation| {
            let name = format!("setpoint_store_requests_total{{operation=\"{operation}\",result=\"away\"}}");
            exposed.value(&name)
        });
        is(exposed, 0.0) && unanswered.iter().sum::<f64>() > 0.0
    });
    etcd.start_member(0);
    measured.scrape_until("its return", |exposed| is(exposed, 1.0));
    measured.engine.stop();
}

/// Where the table of figures begins and ends.
const TABLE: (&str, &str) = (
    "<!-- figures: checked by a test -->\n",
    "<!-- end of figures -->\n",
);

#[test]
fn the_page_on_monitoring_has_every_figure() {
    let place = Hermetic::new();
    let mut measured = Measured::start(&place, &["test \"a\" {}"]);
    measured
        .engine
        .event("convergence", |event| event["event"] == "converged");
    let exposed = measured.scrape();
    measured.engine.stop();
    let mut table = String::from("| metric | type | labels | meaning |\n|---|---|---|---|\n");
    for (name, family) in &exposed.0 {
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let help = family.help.trim_end_matches('.').replace('|', "\\|");
        let _ = writeln!(
            table,
            "| `{name}` | {} | {} | {help} |",
            family.sort,
            labels.join(", ")
        );
    }
    let path = repository().join("docs/guide/monitoring.md");
    let page = text(&path);
    let (before, rest) = page.split_once(TABLE.0).expect("the page has the table");
    let (found, after) = rest.split_once(TABLE.1).expect("the table ends");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, format!("{before}{}{table}{}{after}", TABLE.0, TABLE.1)).unwrap();
        return;
    }
    assert_eq!(found, table, "UPDATE=1 writes it anew");
    // And what the page asks for is there.
    let words = page.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let unknown: BTreeSet<&str> = words
        .filter(|word| word.starts_with("setpoint_") || word.starts_with("process_"))
        .filter(|word| {
            let base = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|end| word.strip_suffix(end));
            !exposed.0.contains_key(*word) && !base.is_some_and(|base| exposed.0.contains_key(base))
        })
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
