//! What is there after a loss of power: a file system's image is copied while it is mounted, and the copy, which has only what was
//! made durable, is mounted in its place.

use crate::place::{Place, is_root};
use setpoint_host::files::{Committer, Replace};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An ext4 file system in an image, mounted until the end of the test. It writes nothing down by itself for ten minutes.
struct Disk {
    place: Place,
}

impl Disk {
    /// None, which is said, where file systems cannot be mounted.
    fn new() -> Option<Disk> {
        if !is_root() {
            return None;
        }
        let disk = Disk { place: Place::new() };
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

    /// Loses power: `look` sees what was durable.
    fn after_power_loss(&self, look: impl FnOnce(&Path)) {
        std::fs::copy(self.place.std("image"), self.place.std("copy")).unwrap();
        let found = self.place.directory("found");
        assert!(self.mount("copy", "found"));
        look(&found);
        assert!(unmount(&found));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        for name in ["found", "mounted"] {
            unmount(&self.place.std(name));
        }
    }
}

fn unmount(path: &PathBuf) -> bool {
    done(Command::new("umount").arg(path))
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
