//! What is there after a loss of power: a file system's image is copied while it is mounted, and the copy, which has only what was
//! made durable, is mounted in its place. And what is told of a disk that breaks.

use crate::place::{Place, is_root};
use setpoint_host::files::{Committer, FileError, Lead, Party, Replace, Replaced};
use std::cell::Cell;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// An ext4 file system in an image, mounted until the end of the test. It writes nothing down by itself for ten minutes.
struct Disk {
    place: Place,
    losses: Cell<usize>,
}

impl Disk {
    /// None, which is said, where file systems cannot be mounted.
    fn new() -> Option<Disk> {
        if !is_root() {
            return None;
        }
        let disk = Disk {
            place: Place::new(),
            losses: Cell::new(0),
        };
        let image = disk.place.write("image", "");
        std::fs::File::options()
            .write(true)
            .open(&image)
            .and_then(|file| file.set_len(24 << 20))
            .unwrap();
        disk.place.directory("mounted");
        let is_there =
            done(Command::new("mkfs.ext4").arg("-q").arg(&image)) && disk.mount("image", "mounted");
        if !is_there {
            eprintln!("skipped: needs mkfs.ext4 and loop devices");
            return None;
        }
        Some(disk)
    }

    fn mount(&self, image: &str, at: &str) -> bool {
        let mut mount = Command::new("mount");
        mount.args(["-o", "loop,commit=600"]);
        done(mount.arg(self.place.std(image)).arg(self.place.std(at)))
    }

    /// Fails every read and write from now on, as a disk that breaks does.
    fn break_down(&self) {
        // The request of ext4 to shut down, without writing anything more.
        let script = r#"open(D, "<", $ARGV[0]) or die; $f = pack("L", 2); ioctl(D, 0x8004587d, $f) or die"#;
        let mut shut_down = Command::new("perl");
        assert!(done(
            shut_down.args(["-e", script]).arg(self.place.std("mounted"))
        ));
    }

    /// Loses power: `look` sees what was durable.
    fn after_power_loss(&self, look: impl FnOnce(&Path)) {
        let loss = self.losses.replace(self.losses.get() + 1);
        let (copy, found) = (format!("copy{loss}"), format!("found{loss}"));
        std::fs::copy(self.place.std("image"), self.place.std(&copy)).unwrap();
        let root = self.place.directory(&found);
        assert!(self.mount(&copy, &found));
        look(&root);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: a test that fails may have left a file open, and what another test is just starting has all our descriptors until it
        // becomes another program.
        let found = (0..self.losses.get()).map(|loss| format!("found{loss}"));
        for name in found.chain(["mounted".to_owned()]) {
            done(Command::new("umount").arg("--lazy").arg(self.place.std(&name)));
        }
    }
}

fn done(command: &mut Command) -> bool {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn name(number: usize) -> String {
    format!("directory{}/file{number}", number % 3)
}

/// Replaces so many files in three directories, and looks whether all are there after a loss of power.
fn survives(count: usize) {
    let Some(disk) = Disk::new() else { return };
    for number in 0..3 {
        disk.place.directory(&format!("mounted/directory{number}"));
    }
    assert!(done(&mut Command::new("sync")));
    let committer = Committer::new();
    for round in ["old", "new"] {
        let requests = (0..count).map(|number| {
            let path = disk.place.path(&format!("mounted/{}", name(number)));
            Replace::bytes(path, format!("{round} {number}").into_bytes())
        });
        for done in committer.replace_many(requests.collect()) {
            done.unwrap();
        }
        disk.after_power_loss(|root| {
            for number in 0..count {
                let found = std::fs::read_to_string(root.join(name(number)));
                assert_eq!(found.unwrap(), format!("{round} {number}"));
            }
        });
    }
}

#[test]
fn a_file_that_was_replaced_is_there_after_a_loss_of_power() {
    survives(1);
}

#[test]
fn few_files_that_were_replaced_together_are_there_after_a_loss_of_power() {
    survives(7);
}

#[test]
fn many_files_that_were_replaced_together_are_there_after_a_loss_of_power() {
    survives(60);
}

/// Keeps what became of each ticket.
#[derive(Default)]
struct Kept(Mutex<Vec<(u64, Result<Replaced, FileError>)>>);

impl Party for Kept {
    fn before(&self, _: &mut Vec<u64>) {}

    fn ended(&self, results: Vec<(u64, Result<Replaced, FileError>)>) {
        self.0.lock().unwrap().extend(results);
    }
}

#[test]
fn a_disk_that_breaks_fails_every_file_with_its_cause() {
    for count in [1, 40] {
        let Some(disk) = Disk::new() else { return };
        let committer = Committer::new();
        let kept = Arc::new(Kept::default());
        let party: Arc<dyn Party> = kept.clone();
        let paths: Vec<_> = (0..count)
            .map(|number| disk.place.path(&format!("mounted/{number}")))
            .collect();
        let mut leads: Vec<Lead> = Vec::new();
        for (ticket, path) in (0..).zip(&paths) {
            let prepared = committer
                .prepare(Replace::bytes(path.clone(), b"new".to_vec()))
                .unwrap();
            leads.extend(committer.submit(prepared, &party, ticket));
        }
        disk.break_down();
        leads.into_iter().for_each(Lead::run);
        let told = std::mem::take(&mut *kept.0.lock().unwrap());
        assert_eq!(told.len(), count);
        for (_, result) in told {
            let error = result.unwrap_err();
            let text = error.to_string();
            assert!(error.path().starts_with(disk.place.std("mounted")), "{text}");
            assert!(error.path() != disk.place.std("mounted"), "{text}");
            assert_eq!(text.matches("Input/output error").count(), 1, "{text}");
            assert_eq!(text.matches("sync").count(), 1, "{text}");
        }
    }
}
