//! Time, which passes.

use std::time::{Duration, SystemTime};

use crate::machine::Machine;
use setpoint_testing::place::{Place, shell};

fn int(text: &Result<String, String>) -> i64 {
    text.as_ref().unwrap().trim_matches('"').parse().unwrap()
}

fn seconds() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_secs()).unwrap()
}

#[test]
fn the_time_and_the_uptime_go_on_each_second() {
    let machine = Machine::new();
    let sources = [
        (&["datetime"][..], "datetime.now()"),
        (&["datetime"], "datetime.str_now()"),
        (&["sys"], "sys.uptime()"),
    ];
    let mut all = sources.map(|(imports, expression)| machine.follow(imports, expression));
    let start = seconds();
    for source in &mut all {
        let first = int(&source.first());
        source.until("a later time", |now| int(now) >= first + 3);
        // No value comes twice, none goes back; on a busy machine one may be left out.
        let values: Vec<i64> = source.history.iter().map(int).collect();
        assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{values:?}");
    }
    // Nobody has asked the first one meanwhile: its next values catch up.
    all[0].until("the time that it is", |now| (int(now) - seconds()).abs() <= 2);
    assert!((int(&all[0].now()) - start) >= 3);
}

#[test]
fn the_uptime_is_that_of_the_time_namespace() {
    let place = Place::namespaces(
        "clock::the_uptime_is_that_of_the_time_namespace",
        &["--time", "--fork", "--boottime", "1000000000"],
    );
    place.run(|| {
        let mut uptime = Machine::new().follow(&["sys"], "sys.uptime()");
        assert!(int(&uptime.first()) > 1_000_000_000);
    });
}

#[test]
fn the_load_is_looked_at_each_five_seconds() {
    let machine = Machine::new();
    let mut load = machine.follow(&["sys"], "sys.load()->x15");
    let first: f64 = load.first().unwrap().parse().unwrap();
    assert!(first >= 0.0);
    assert!(load.step(Duration::from_secs(20)), "it is looked at again");
    let shown = std::fs::read_to_string("/proc/loadavg").unwrap();
    let real: f64 = shown.split(' ').nth(2).unwrap().parse().unwrap();
    let newest: f64 = load.now().unwrap().parse().unwrap();
    assert!((newest - real).abs() < 1.0, "{newest} {real}");
}

#[test]
fn the_weekday_changes_at_local_midnight() {
    // The machine's clock stays as it is; a time zone is chosen in which midnight is near.
    let test = "clock::the_weekday_changes_at_local_midnight";
    let left = 86_400 - (seconds() + 12) % 86_400;
    let zone = format!("Near-{}:{:02}:{:02}", left / 3600, left / 60 % 60, left % 60);
    Place::process(test).with("TZ", &zone).run(|| {
        let machine = Machine::new();
        let mut day = machine.follow(&["datetime"], "datetime.weekday_fast()");
        let today = shell("LC_ALL=C date +%A").to_lowercase();
        assert_eq!(day.first(), Ok(format!("\"{today}\"")));
        let tomorrow = shell("LC_ALL=C date -d tomorrow +%A").to_lowercase();
        day.becomes(&format!("\"{tomorrow}\""));
        assert_eq!(
            shell("LC_ALL=C date +%A").to_lowercase(),
            tomorrow,
            "not too early"
        );
        assert_eq!(day.changes(), 2);
    });
}

#[test]
fn demonstrations_alternate() {
    let machine = Machine::new();
    let mut flip = machine.follow(&["example"], "example.flipflop()");
    let mut list = machine.follow(&["test"], "test.forloop()");
    let mut map = machine.follow(&["test"], "test.forkvloop()");
    let mut slow = machine.follow(&["test"], "test.slow_string()");
    let mut count = machine.follow(&["test"], "test.fastcount()");
    let mut stream = machine.follow(&["test"], "test.one_stream(3)");
    assert_eq!(flip.first().as_deref(), Ok("true"));
    assert_eq!(list.first().as_deref(), Ok("[\"foo\"]"));
    assert_eq!(map.first().as_deref(), Ok("{\"foo\": \"bar\"}"));
    assert_eq!(stream.first().as_deref(), Ok("\"xxx\""));
    assert!(slow.is_pending());
    count.until("a higher number", |now| int(now) > 20);
    flip.becomes("false");
    list.becomes("[\"bar\"]");
    map.until("another map", |now| now.as_deref() != Ok("{\"foo\": \"bar\"}"));
    slow.becomes("\"five seconds has elapsed\"");
    flip.becomes("true");
}

#[test]
fn history_wakes_when_an_older_value_becomes_another() {
    let machine = Machine::new();
    machine.set_text("key", "one");
    let mut past = machine.follow(&["value"], "history(value.get_str(\"key\")->value, 1500)");
    assert_eq!(past.first().as_deref(), Ok("\"one\""));
    machine.set_text("key", "two");
    let changed = std::time::Instant::now();
    past.becomes("\"two\"");
    let passed = changed.elapsed();
    assert!(passed >= Duration::from_millis(1400), "{passed:?}");
}
