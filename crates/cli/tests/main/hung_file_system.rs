//! A file system that does not answer: the real binary beside a frozen one.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use setpoint_testing::{Hermetic, Running};

use crate::end_to_end::{Engine, run_command, text};
use crate::ending::wait_until;

/// A file system of its own in a file, frozen: whoever writes to it waits. It thaws when this is dropped, or when this
/// process is gone, however that comes.
struct Frozen {
    path: PathBuf,
    thaws: Option<Child>,
}

impl Frozen {
    /// Frozen from the beginning. None where this machine has no loop devices, as in some containers.
    fn new(place: &Hermetic) -> Option<Frozen> {
        let mut frozen = Frozen::mounted(place)?;
        frozen.freeze().then_some(frozen)
    }

    /// The same, but it answers until [`Frozen::freeze`].
    fn mounted(place: &Hermetic) -> Option<Frozen> {
        let (image, path) = (place.path("image"), place.path("frozen"));
        std::fs::create_dir(&path).expect("a place of its own");
        let file = std::fs::File::create(&image).expect("a place of its own");
        file.set_len(16 * 1024 * 1024).expect("a sparse file");
        let done = |program: &str, arguments: &[&str]| {
            let output = Command::new(program).args(arguments).output();
            output.is_ok_and(|output| output.status.success())
        };
        let (image, shown) = (image.to_str()?, path.to_str()?);
        let is_there = done("mkfs.ext4", &["-q", image]) && done("mount", &["-o", "loop", image, shown]);
        is_there.then_some(Frozen { path, thaws: None })
    }

    /// Lets whoever writes wait; answers whether that is possible here.
    fn freeze(&mut self) -> bool {
        let mut thaws = Command::new("sh");
        thaws.args(["-c", "read line; fsfreeze --unfreeze \"$0\"; true"]);
        thaws.arg(&self.path).stdin(Stdio::piped());
        self.thaws = Some(thaws.spawn().expect("there is a shell"));
        let frozen = Command::new("fsfreeze").arg("--freeze").arg(&self.path).status();
        frozen.is_ok_and(|status| status.success())
    }

    /// Lets those that wait go on.
    fn thaw(&mut self) {
        if let Some(mut thaws) = self.thaws.take() {
            drop(thaws.stdin.take());
            thaws.wait().expect("it is our child");
        }
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.thaw();
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}

#[test]
fn a_file_system_that_hangs_holds_up_nothing_on_the_others() {
    let place = Hermetic::new();
    // Before the file system, so that it ends after that was thawed: nobody can end who waits for it.
    let mut engine;
    let Some(mut frozen) = Frozen::new(&place) else {
        println!("skipped: this machine mounts no file as a file system, or cannot freeze it");
        return;
    };
    let good = place.path("good");
    let mut program = format!("file \"{}\" {{\n\tcontent => \"right\",\n}}\n", good.display());
    let stuck: Vec<PathBuf> = (0..40)
        .map(|number| frozen.path.join(format!("f{number}")))
        .collect();
    for path in &stuck {
        program += &format!("file \"{}\" {{\n\tcontent => \"right\",\n}}\n", path.display());
    }
    let program = place.write("p.mcl", program).display().to_string();
    engine = Engine::start(&place, &[&program]);
    let name = good.display().to_string();
    engine.repaired("file", &name);
    for _ in 0..3 {
        std::fs::write(&good, "wrong").unwrap();
        engine.repaired_until("file", &name, || text(&good) == "right");
    }
    assert!(
        stuck.iter().all(|path| !path.exists()),
        "it was frozen all the time"
    );
    frozen.thaw();
    for path in &stuck {
        while text(path) != "right" {
            engine.event("a repair", |event| event["event"] == "repaired");
        }
    }
    engine.stop();
}

#[test]
fn a_disk_that_hangs_holds_up_nobody_else() {
    let place = Hermetic::new();
    // As above.
    let running;
    let Some(mut frozen) = Frozen::mounted(&place) else {
        println!("skipped: this machine mounts no file as a file system");
        return;
    };
    let (input, hanging, other) = (
        place.write("input", "first"),
        frozen.path.join("file"),
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
    let program = place.write("p.mcl", program);
    running = Running::start(run_command(&place, &[&program.display().to_string()]));
    wait_until("both files", || {
        text(&hanging) == "first" && text(&other) == "right"
    });

    assert!(frozen.freeze(), "a mounted file system can be made to hang");
    let new = place.write("new", "second");
    std::fs::rename(new, &input).unwrap();
    for _ in 0..10 {
        std::fs::write(&other, "wrong").unwrap();
        wait_until("a repair beside the disk that hangs", || text(&other) == "right");
    }
    frozen.thaw();
    wait_until("the file on the disk that goes on", || text(&hanging) == "second");
    Engine::of(running).stop();
}

#[test]
fn what_changed_while_a_file_system_was_frozen_is_caught_up_with_when_it_thaws() {
    let place = Hermetic::new();
    // As above.
    let mut engine;
    let Some(mut frozen) = Frozen::mounted(&place) else {
        println!("skipped: this machine mounts no file as a file system");
        return;
    };
    let wanted = place.write("wanted", "first");
    let good = place.path("good");
    let stuck: Vec<PathBuf> = (0..40)
        .map(|number| frozen.path.join(format!("f{number}")))
        .collect();
    let mut program = format!("import \"os\"\n$wanted = os.readfile(\"{}\")\n", wanted.display());
    for path in stuck.iter().chain([&good]) {
        program += &format!("file \"{}\" {{\n\tcontent => $wanted,\n}}\n", path.display());
    }
    let program = place.write("p.mcl", program).display().to_string();
    engine = Engine::start(&place, &["--converger-timeout", "0", &program]);
    engine.event("all files", |event| event["event"] == "converged");
    if !frozen.freeze() {
        println!("skipped: this machine cannot freeze a file system");
        return;
    }
    let name = good.display().to_string();
    std::fs::write(&wanted, "second").unwrap();
    engine.repaired_until("file", &name, || text(&good) == "second");
    std::fs::write(&good, "wrong").unwrap();
    engine.repaired_until("file", &name, || text(&good) == "second");
    assert!(stuck.iter().all(|path| text(path) == "first"), "it is frozen");
    frozen.thaw();
    let is_caught_up = || stuck.iter().all(|path| text(path) == "second");
    while !is_caught_up() {
        engine.event("a repair", |event| event["event"] == "repaired");
    }
    // Its files are looked after as before.
    std::fs::write(&stuck[7], "wrong").unwrap();
    engine.repaired_until("file", &stuck[7].display().to_string(), is_caught_up);
    engine.stop();
}

#[test]
fn what_hangs_is_reported_and_keeps_no_run_from_its_end() {
    let place = Hermetic::new();
    // As above.
    let mut running;
    let Some(mut frozen) = Frozen::new(&place) else {
        println!("skipped: this machine mounts no file as a file system, or cannot freeze it");
        return;
    };
    let path = frozen.path.join("f").display().to_string();
    let program = format!("file \"stuck\" {{\n\tpath => \"{path}\",\n\tcontent => \"right\",\n}}\n");
    let program = place.write("p.mcl", program).display().to_string();
    let mut engine = Engine::start(&place, &[&program]);
    let silent = engine.event("the report", |event| event["event"] == "unresponsive");
    assert_eq!(
        (&silent["name"], &silent["at"]),
        (&"stuck".into(), &(&*path).into())
    );
    running = engine.into_running();
    for stage in 1..=3 {
        running.signal("INT");
        running.wait_for("the next stage", |line| {
            line.contains("\"stopping\"") && line.contains(&format!("\"stage\":{stage}"))
        });
    }
    running.wait_for("the end", |line| line.contains("\"ended\""));
    // Nothing can take a thread out of a system call that waits for the frozen file system; the process is gone with it.
    frozen.thaw();
    let (status, errors) = running.finish();
    assert_eq!(status.code(), Some(1), "{errors}");
    let left = format!("file[stuck], at {path}, did not end in time and was left behind");
    assert!(errors.contains(&left), "{errors}");
}
