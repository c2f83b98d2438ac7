//! The end of a run while its program is in the midst of something: computing, following a command, reading.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use setpoint_testing::{Hermetic, Running};

use crate::end_to_end::{run_command, text};

/// Programs that compute for minutes: in calls that each take long, and in many that are short.
const COMPUTATIONS: [&str; 2] = [
    r#"
import "datetime"
import "fmt"
import "golang"
import "iter"
$now = datetime.now()
$numbers = iter.range(4000)
$loop = "{{range $x := .Numbers}}{{range $y := $.Numbers}}{{end}}{{end}}"
$texts = iter.map($numbers, func($x) { golang.template($loop, struct{numbers => $numbers, now => $now + $x,}) })
print "never" {
	msg => fmt.printf("%d", len($texts)),
}
"#,
    r#"
import "datetime"
import "fmt"
import "iter"
$numbers = iter.range(100000)
$now = datetime.now()
$sums = iter.map($numbers, func($x) { iter.reduce($now, $numbers, func($sum, $y) { $sum + $x + $y }) })
print "never" {
	msg => fmt.printf("%d", len($sums)),
}
"#,
];

/// Polls what only the kernel knows, until it holds.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the thread that evaluates has computed for a while, which none does that waits.
fn wait_until_it_computes(running: &Running) {
    let tasks = format!("/proc/{}/task", running.id());
    let ticks_of = |task: &Path| -> Option<u64> {
        let statistics = text(&task.join("stat"));
        // What stands before the parenthesis is the name; user and system time are the 12th and 13th after it.
        let mut fields = statistics.rsplit_once(") ")?.1.split(' ').skip(11);
        Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
    };
    wait_until("a computation", || {
        let entries = std::fs::read_dir(&tasks).expect("it runs").flatten();
        entries
            .map(|entry| entry.path())
            .filter(|task| text(&task.join("comm")) == "program\n")
            .any(|task| ticks_of(&task).is_some_and(|ticks| ticks > 10))
    });
}

#[test]
fn a_signal_ends_a_long_computation() {
    let [long_calls, many_calls] = COMPUTATIONS;
    for (computation, signal, once, code) in [
        (long_calls, "INT", true, 130),
        (many_calls, "TERM", true, 143),
        (long_calls, "TERM", false, 0),
    ] {
        let place = Hermetic::new();
        let program = place.write("main.mcl", computation).display().to_string();
        let mut arguments = vec![&*program];
        arguments.extend(once.then_some("--once"));
        let running = Running::start(run_command(&place, &arguments));
        wait_until_it_computes(&running);
        running.signal(signal);
        let (status, errors) = running.finish();
        assert_eq!(status.code(), Some(code), "{signal}: {errors}");
    }
}

#[test]
fn the_longest_time_that_a_run_may_take_is_that_of_computations_too() {
    for computation in COMPUTATIONS {
        let place = Hermetic::new();
        let program = place.write("main.mcl", computation).display().to_string();
        let running = Running::start(run_command(&place, &["--max-runtime", "1", &program]));
        let (status, errors) = running.finish();
        assert_eq!(status.code(), Some(1), "{errors}");
        assert!(errors.contains("as long as `--max-runtime` allows"), "{errors}");
    }
}

#[test]
fn a_command_that_a_program_follows_ends_with_the_run() {
    for (end, code) in [(Some("INT"), 0), (Some("TERM"), 0), (Some("KILL"), -1), (None, 1)] {
        let place = Hermetic::new();
        let started = place.path("started");
        let command = format!(
            "sleep 1000 & echo $$ $! >{0}.new; mv {0}.new {0}; wait",
            started.display()
        );
        let program = format!("import \"os\"\nprint \"never\" {{\n\tmsg => os.system(\"{command}\"),\n}}\n");
        let program = place.write("main.mcl", program).display().to_string();
        let limit = if end.is_none() { "2" } else { "0" };
        let running = Running::start(run_command(&place, &["--max-runtime", limit, &program]));
        wait_until("the command runs", || started.exists());
        if let Some(signal) = end {
            running.signal(signal);
        }
        let (status, errors) = running.finish();
        assert_eq!(status.code().unwrap_or(-1), code, "{end:?}: {errors}");
        for process in text(&started).split_whitespace() {
            wait_until("the end of the command", || {
                !Path::new("/proc").join(process).exists()
            });
        }
    }
}

#[test]
fn a_command_that_ends_without_a_line_is_an_error_that_can_be_caught() {
    for (fallback, code, wanted) in [
        (" <|> \"other\"", 0, "print[x]: other"),
        ("", 1, "the command ended without printing a line (exit status 3)"),
    ] {
        let place = Hermetic::new();
        let program =
            format!("import \"os\"\nprint \"x\" {{\n\tmsg => os.system(\"exit 3\"){fallback},\n}}\n");
        let program = place.write("main.mcl", program).display().to_string();
        let flags = [
            "run",
            "--once",
            "--tmp-state-dir",
            "--max-runtime",
            "60",
            &program,
        ];
        let finished = place.run(env!("CARGO_BIN_EXE_setpoint"), &flags);
        let told = format!("{}{}", finished.stdout, finished.stderr);
        assert_eq!(finished.code, code, "{told}");
        assert!(told.contains(wanted), "{told}");
    }
}

#[test]
fn a_pipe_that_nobody_writes_to_holds_up_no_program() {
    let place = Hermetic::new();
    let pipe = place.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("there is a `mkfifo`").success());
    let program = format!(
        "import \"os\"\nprint \"read\" {{\n\tmsg => os.readfile(\"{0}\") <|> \"refused\",\n}}\n\
         print \"followed\" {{\n\tmsg => os.system(\"cat {0}\"),\n}}\n",
        pipe.display()
    );
    let program = place.write("main.mcl", program).display().to_string();
    let running = Running::start(run_command(&place, &["--max-runtime", "1", &program]));
    let (status, errors) = running.finish();
    assert_eq!(status.code(), Some(1), "{errors}");
    assert!(errors.contains("as long as `--max-runtime` allows"), "{errors}");
}

#[test]
fn an_end_under_load_comes_soon_and_leaves_nothing_behind() {
    let place = Hermetic::new();
    let directory = place.path("files");
    std::fs::create_dir(&directory).unwrap();
    let files: Vec<PathBuf> = (0..500)
        .map(|index| directory.join(format!("f{index}")))
        .collect();
    let program: String = files
        .iter()
        .map(|file| format!("file \"{}\" {{\n\tcontent => \"right\",\n}}\n", file.display()))
        .collect();
    let program = place.write("p.mcl", program);
    let running = Running::start(run_command(&place, &[&program.display().to_string()]));
    wait_until("all files", || files.iter().all(|file| text(file) == "right"));

    let enough = Arc::new(AtomicBool::new(false));
    let disturbing = {
        let (enough, files) = (enough.clone(), files.clone());
        std::thread::spawn(move || {
            let mut count = 0_usize;
            while !enough.load(Ordering::SeqCst) {
                let file = &files[count * 7919 % files.len()];
                std::fs::write(file, "wrong").unwrap();
                count += 1;
            }
            count
        })
    };
    // In the middle of the work: when the first of them are right again while others are made wrong.
    wait_until("load", || {
        let right = files.iter().filter(|file| text(file) == "right").count();
        right < files.len()
    });
    running.signal("TERM");
    let (status, errors) = running.finish();
    enough.store(true, Ordering::SeqCst);
    let count = disturbing.join().unwrap();
    assert_eq!(status.code(), Some(0), "{errors}");
    assert!(count > 0);
    let entries = std::fs::read_dir(&directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let strangers: Vec<String> = names.filter(|name| !name.starts_with('f')).collect();
    assert_eq!(strangers, Vec::<String>::new());
    for file in files {
        let content = text(&file);
        assert!(
            matches!(&*content, "right" | "wrong" | ""),
            "{} is {content:?}",
            file.display()
        );
    }
}

#[test]
fn a_process_whose_working_directory_is_removed_ends_and_says_so() {
    let place = Hermetic::new();
    place.write("idle.mcl", "noop \"idle\" {}\n");
    let prefix = place.path("prefix");
    let mut running = Running::start(run_command(&place, &["idle.mcl"]));
    running.wait_for("convergence", |line| line.contains("\"converged\""));
    std::fs::remove_dir_all(&prefix).expect("it is ours");
    let (status, errors) = running.finish();
    assert_eq!(status.code(), Some(1), "{errors}");
    let why = format!(
        "error: the state directory {} was removed or replaced while this process used it, so this process ends",
        prefix.display()
    );
    assert!(errors.contains(&why), "{errors}");
}
