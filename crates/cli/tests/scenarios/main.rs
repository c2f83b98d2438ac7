//! The real binary while something about the machine goes badly wrong.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests disturb the machine and say what they leave out"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use setpoint_testing::{Hermetic, Running};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// Generous: machines of CI are slow.
const LIMIT: Duration = Duration::from_secs(60);

/// `setpoint run --json` of a program, with its state below the place.
fn run(place: &Hermetic, program: &str) -> Running {
    let program = place.write("p.mcl", program);
    let mut command = place.command(BINARY);
    command.args(["run", "--json", "--no-raise-limits", "--prefix"]);
    command.arg(place.path("prefix")).arg(program);
    Running::start(command)
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Waits until something holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < deadline, "{what} does not come true");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ends it politely, which is a good end.
fn stop(running: Running) {
    running.signal("TERM");
    let (status, errors) = running.finish();
    assert_eq!(status.code(), Some(0), "{errors}");
}

/// A file system on a disk of its own that can be made to hang. Goes on and is unmounted at the end, also of a test that fails.
struct Disk(PathBuf);

impl Disk {
    /// None where the system has no such disk to give.
    fn mount(place: &Hermetic) -> Option<Disk> {
        let (image, path) = (place.write("image", ""), place.path("disk"));
        std::fs::create_dir(&path).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&image).unwrap();
        file.set_len(16 << 20).unwrap();
        let made = succeeds(Command::new("mkfs.ext4").arg("-q").arg(&image));
        let mounted = made && succeeds(Command::new("mount").args(["-o", "loop"]).args([&image, &path]));
        mounted.then_some(Disk(path))
    }

    fn hang(&self, hangs: bool) -> bool {
        let option = if hangs { "--freeze" } else { "--unfreeze" };
        succeeds(Command::new("fsfreeze").arg(option).arg(&self.0))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.hang(false);
        succeeds(Command::new("umount").arg("--lazy").arg(&self.0));
    }
}

fn succeeds(command: &mut Command) -> bool {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[test]
fn a_disk_that_hangs_holds_up_nobody_else() {
    let place = Hermetic::new();
    let Some(disk) = Disk::mount(&place) else {
        eprintln!("left out: no file system can be made and mounted on a loop device here");
        return;
    };
    let (input, hanging, other) = (
        place.write("input", "first"),
        disk.0.join("file"),
        place.path("other"),
    );
    let file =
        |path: &Path, content: &str| format!("file \"{}\" {{\n\tcontent => {content},\n}}\n", path.display());
    let program = format!(
        "import \"os\"\n$input = os.readfile(\"{}\")\n{}{}",
        input.display(),
        file(&hanging, "$input"),
        file(&other, "\"right\"")
    );
    let running = run(&place, &program);
    until("both files", || {
        text(&hanging) == "first" && text(&other) == "right"
    });

    assert!(disk.hang(true), "a mounted file system can be made to hang");
    let new = place.write("new", "second");
    std::fs::rename(new, &input).unwrap();
    for _ in 0..10 {
        std::fs::write(&other, "wrong").unwrap();
        until("a repair beside the disk that hangs", || text(&other) == "right");
    }
    assert!(disk.hang(false));
    until("the file on the disk that goes on", || text(&hanging) == "second");
    stop(running);
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
    let running = run(&place, &program);
    until("all files", || files.iter().all(|file| text(file) == "right"));

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
    until("load", || {
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
