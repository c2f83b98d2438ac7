//! The test behind `kill.sh`. It has no dependencies, so that `rustc` alone builds it.

#[allow(dead_code, reason = "other benchmarks use the rest")]
mod support;

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use support::{Arguments, Files, Place, Random, Running, milliseconds};

fn main() {
    let arguments = Arguments::read();
    let rounds = arguments.number("--rounds", 100);
    let seed = arguments.number("--seed", 1) as u64;
    let place = Place::new(&arguments);
    let files = Files {
        root: place.path("files"),
        count: arguments.number("--count", 1000),
    };
    let prefix = place.path("prefix");
    let programs = [program(&place, &files, 0), program(&place, &files, 1)];

    files.clear();
    let mut whole = place.run_well(&["run", "--once", "--state-dir", text(&prefix), text(&programs[0])]);
    println!(
        "{} files, a cold run takes {:.0} ms; seed {seed}",
        files.count,
        milliseconds(whole)
    );

    let mut random = Random(seed);
    let (mut killed, mut half_done, mut leftovers) = (0, 0, 0);
    for round in 0..rounds {
        let fresh = round % 2 == 0;
        let (before, version) = if fresh { (None, 0) } else { (Some(0), 1) };
        if fresh {
            files.clear();
            let _ = fs::remove_dir_all(&prefix);
        }
        let arguments = [
            "run",
            "--once",
            "--state-dir",
            text(&prefix),
            text(&programs[version]),
        ];
        let mut running = Running(place.command(&arguments).spawn().expect("start the program"));
        let patience = whole.mul_f64(random.below(1000) as f64 / 1000.0);
        std::thread::sleep(patience);
        if running.0.try_wait().expect("look at the program").is_none() {
            killed += 1;
        } else {
            // The machine is faster than it was at first.
            whole = patience;
        }
        drop(running);

        let done = (0..files.count)
            .filter(|index| state(&files, *index, before, version, round))
            .count();
        half_done += usize::from(done > 0 && done < files.count);
        leftovers += temporaries(&files);

        place.run_well(&arguments);
        for index in 0..files.count {
            assert!(
                state(&files, index, Some(version), version, round),
                "round {round}: file {index} is missing"
            );
        }
        assert_eq!(
            temporaries(&files),
            0,
            "round {round}: temporary files stay behind"
        );
    }
    println!(
        "{rounds} rounds, {killed} killed before their end, {half_done} of them with some files done and others not"
    );
    println!("{leftovers} temporary files were left by those and removed by the next run");
    println!("no file was ever half-written, and every next run converged");
}

/// Several sizes, up to many pages, so that a half-written file would be found.
fn content(index: usize, version: usize) -> String {
    let line = format!("file {index}, version {version}, a line of it\n");
    line.repeat(1 + (index * 37) % 400)
}

fn program(place: &Place, files: &Files, version: usize) -> PathBuf {
    let mut program = String::new();
    for index in 0..files.count {
        let content = content(index, version).replace('\n', "\\n");
        let path = files.path(index);
        let _ = writeln!(
            program,
            "file \"{}\" {{\n\tcontent => \"{content}\",\n\tmode => \"0640\",\n}}",
            path.display()
        );
    }
    let path = place.path(&format!("version{version}.mcl"));
    fs::write(&path, program).expect("write the program");
    path
}

/// Whether a file is of the new version. It may be missing only where there was none before, and must be whole in any case.
fn state(files: &Files, index: usize, before: Option<usize>, version: usize, round: usize) -> bool {
    let path = files.path(index);
    let Ok(found) = fs::read_to_string(&path) else {
        assert!(
            before.is_none() && !path.exists(),
            "round {round}: {} is gone",
            path.display()
        );
        return false;
    };
    let mode = fs::metadata(&path).expect("look at a file").permissions().mode() & 0o7777;
    assert_eq!(
        mode,
        0o640,
        "round {round}: {} is visible with another mode",
        path.display()
    );
    if found == content(index, version) {
        return true;
    }
    let is_old = before.is_some_and(|before| found == content(index, before));
    assert!(
        is_old,
        "round {round}: {} is half-written: {} bytes",
        path.display(),
        found.len()
    );
    false
}

fn temporaries(files: &Files) -> usize {
    let names = files
        .directories()
        .flat_map(|directory| fs::read_dir(directory).into_iter().flatten().flatten());
    names
        .filter(|entry| entry.file_name().to_string_lossy().starts_with('.'))
        .count()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a readable path")
}
