//! The clock on the wall is set while a process runs: what it keeps right, and when it tries again, goes by another clock.
//!
//! Only the process is told another time: a library that is loaded before the others adds to the time of day what stands in a file. The
//! files of the machine keep the time of the kernel.

use std::path::PathBuf;
use std::process::Command;

use setpoint_testing::{Hermetic, Running};

use crate::control::ask;
use crate::end_to_end::{Engine, run_command, text};

const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *out) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, out);
    const char *path = getenv("TEST_CLOCK_OFFSET");
    if (result != 0 || id != CLOCK_REALTIME || !path) return result;
    char text[32] = {0};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return result;
    if (read(file, text, sizeof text - 1) > 0) out->tv_sec += atol(text);
    close(file);
    return result;
}
"#;

/// The library, if this machine can make one and the program heeds it.
fn library(place: &Hermetic) -> Option<PathBuf> {
    let (source, made) = (place.write("clock.c", LIBRARY), place.path("clock.so"));
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&made)
        .arg(&source)
        .arg("-ldl");
    compiler
        .status()
        .is_ok_and(|status| status.success())
        .then_some(made)
}

#[test]
fn a_clock_that_is_set_forth_and_back_changes_nothing_of_what_is_kept_right() {
    let place = Hermetic::new();
    let Some(library) = library(&place) else {
        eprintln!("skipped: there is no compiler for C");
        return;
    };
    let (kept, missing) = (place.path("kept"), place.path("missing/file"));
    let now = place.path("now");
    let program = format!(
        "import \"datetime\"\nimport \"fmt\"\n\
         file \"{}\" {{\n\tcontent => \"right\\n\",\n}}\n\
         file \"{}\" {{\n\tcontent => \"x\",\n\tMeta:retry => -1,\n\tMeta:delay => 200,\n}}\n\
         file \"{}\" {{\n\tcontent => fmt.printf(\"%d\", datetime.now()),\n}}\n",
        kept.display(),
        missing.display(),
        now.display()
    );
    let program = place.write("p.mcl", program).display().to_string();
    place.write("offset", "0");
    let mut command = run_command(&place, &[&program]);
    command
        .env("LD_PRELOAD", &library)
        .env("TEST_CLOCK_OFFSET", place.path("offset"));
    let mut engine = Engine::of(Running::start(command));
    engine.repaired("file", kept.to_str().unwrap());
    let seconds = || text(&now).parse::<i64>().unwrap_or_default();
    engine.repaired_until("file", now.to_str().unwrap(), || seconds() > 0);
    let began = seconds();
    let mut last = 0.0;
    const YEAR: i64 = 365 * 86_400;
    for offset in [YEAR, -YEAR, 0] {
        // Replaced as a whole.
        let beside = place.write("beside", offset.to_string());
        std::fs::rename(beside, place.path("offset")).unwrap();
        // The program sees the new time.
        let is_seen = || (seconds() - began - offset).abs() < 3600;
        engine.repaired_until("file", now.to_str().unwrap(), is_seen);
        // What is kept right is repaired, and what failed is tried again as often as before: each is waited for.
        std::fs::write(&kept, "wrong").unwrap();
        engine.repaired_until("file", kept.to_str().unwrap(), || text(&kept) == "right\n");
        for _ in 0..2 {
            let failed = engine.event("another try", |event| {
                event["event"] == "backing off" && event["name"] == missing.to_str().unwrap()
            });
            let (time, next) = (
                failed["time"].as_f64().unwrap(),
                failed["next_try"].as_f64().unwrap(),
            );
            assert!(time > last && next - time < 300.0, "{failed}");
            // The times of events go on as they began.
            assert!((time - began as f64).abs() < 3600.0, "{failed}");
            last = time;
        }
        status_shows_no_long_time(&place);
    }
    engine.stop();
}

fn status_shows_no_long_time(place: &Hermetic) {
    let told = ask(place, &["status"]);
    assert_eq!(told.code, 1, "{}", told.stderr);
    for wrong in [" d ", " h "] {
        assert!(!told.stdout.contains(wrong), "{}", told.stdout);
    }
}
