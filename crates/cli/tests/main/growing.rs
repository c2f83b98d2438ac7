//! The real binary on programs whose values or work grow without end.

use setpoint_testing::Hermetic;

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// Definitions that double what there was, so many times.
fn doubling(first: &str, times: usize, next: impl Fn(&str) -> String) -> String {
    let mut text = format!("$x0 = {first}\n");
    for i in 1..=times {
        let before = format!("$x{}", i - 1);
        text.push_str(&format!("$x{i} = {}\n", next(&before)));
    }
    text
}

const COMPARED: &str = "import \"fmt\"\nprint \"a\" {\n\tmsg => fmt.printf(\"%t\", $x40 == $x40),\n}\n";
const PRINTED: &str = "import \"fmt\"\nprint \"a\" {\n\tmsg => fmt.printf(\"%v\", $x40),\n}\n";

/// `check` may find this problem, if it has the time and needs no source; `graph` finds it.
fn is_refused(values: &str, statement: &str, problem: &str) {
    let place = Hermetic::new();
    place.write("main.mcl", format!("{values}{statement}"));
    let checked = place.run(BINARY, &["check", "--skip-fmt", "main.mcl"]);
    let is_found = checked.code == 1 && checked.stderr.contains(problem);
    assert!(checked.code == 0 || is_found, "{}", checked.stderr);
    let finished = place.run(BINARY, &["graph", "--timeout", "300", "main.mcl"]);
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    assert!(finished.stderr.contains(problem), "{}", finished.stderr);
}

fn lists() -> String {
    doubling("1", 40, |x| format!("[{x}, {x},]"))
}

#[test]
fn lists_that_double_are_refused_where_they_are_compared() {
    is_refused(&lists(), COMPARED, "more than 16777216 parts");
}

#[test]
fn lists_that_double_are_refused_where_they_are_printed() {
    is_refused(&lists(), PRINTED, "more than 16777216 parts");
}

#[test]
fn texts_that_double_are_refused_by_the_compiler() {
    let texts = doubling("\"0123456789abcdef\"", 40, |x| format!("{x} + {x}"));
    is_refused(&texts, PRINTED, "longer than 64 MiB");
}

#[test]
fn texts_that_double_are_refused_when_a_source_has_spoken() {
    let first = "value.get_str(\"key\")->value + \"0123456789abcdef\"";
    let late = "import \"value\"\n".to_owned() + &doubling(first, 40, |x| format!("{x} + {x}"));
    is_refused(&late, PRINTED, "longer than 64 MiB");
}

#[test]
fn a_time_limit_ends_an_evaluation_that_computes() {
    let place = Hermetic::new();
    place.write(
        "main.mcl",
        "import \"iter\"\nimport \"value\"\n\
         $start = value.get_int(\"start\")->value\n\
         $rows = iter.map(iter.range(100000), func($i) {\n\
         \tlen(iter.map(iter.range(100000), func($j) {\n\t\t$i + $j + $start\n\t}))\n})\n\
         test \"a\" {\n\tint64 => len($rows),\n}\n",
    );
    let finished = place.run(BINARY, &["graph", "--timeout", "1", "main.mcl"]);
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    assert!(finished.stderr.contains("within 1 second"), "{}", finished.stderr);
}
