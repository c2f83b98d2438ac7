//! A file system that does not answer: the real binary beside a frozen one.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use setpoint_testing::Hermetic;

use crate::end_to_end::{Engine, text};

/// A file system of its own in a file, frozen: whoever writes to it waits. It thaws when this is dropped, or when this
/// process is gone, however that comes.
struct Frozen {
    path: PathBuf,
    thaws: Option<Child>,
}

impl Frozen {
    /// None where this machine has no loop devices, as in some containers.
    fn new(place: &Hermetic) -> Option<Frozen> {
        let (image, path) = (place.path("image"), place.path("frozen"));
        std::fs::create_dir(&path).expect("a place of its own");
        let file = std::fs::File::create(&image).expect("a place of its own");
        file.set_len(16 * 1024 * 1024).expect("a sparse file");
        let done = |program: &str, arguments: &[&str]| {
            let output = Command::new(program).args(arguments).output();
            output.is_ok_and(|output| output.status.success())
        };
        let (image, shown) = (image.to_str()?, path.to_str()?);
        if !done("mkfs.ext4", &["-q", image]) || !done("mount", &["-o", "loop", image, shown]) {
            return None;
        }
        let mut frozen = Frozen { path, thaws: None };
        let mut thaws = Command::new("sh");
        thaws.args([
            "-c",
            "read line; fsfreeze --unfreeze \"$0\"; true",
            frozen.path.to_str()?,
        ]);
        frozen.thaws = Some(thaws.stdin(Stdio::piped()).spawn().expect("there is a shell"));
        done("fsfreeze", &["--freeze", frozen.path.to_str()?]).then_some(frozen)
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
