//! `setpoint disk grow`: a partition, its encryption and its file system take all the room of the disk.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use setpoint_testing::Hermetic;

use crate::end_to_end::text;
use setpoint_testing::place::{Place, find, shell};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// Programs that stand in for the real ones: each writes down how it was called, and answers as a test wants it.
struct StandIns {
    place: Hermetic,
}

impl StandIns {
    fn new() -> StandIns {
        let place = Hermetic::new();
        std::fs::create_dir(place.path("bin")).expect("the place is writable");
        let stand_ins = StandIns { place };
        for program in ["growpart", "cryptsetup", "resize2fs", "xfs_growfs"] {
            stand_ins.answer(program, "echo done");
        }
        stand_ins
    }

    fn answer(&self, program: &str, body: &str) {
        let calls = self.place.path("calls").display().to_string();
        let script = format!("#!/bin/sh\necho {program} \"$@\" >> {calls}\n{body}\n");
        let path = self.place.write(&format!("bin/{program}"), script);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
            .expect("the place is writable");
    }

    /// What findmnt(8) finds.
    fn mounted(&self, target: &str, source: &str, file_system: &str) {
        let found = serde_json::json!({"filesystems": [
            {"target": target, "source": source, "fstype": file_system, "options": "rw,relatime"},
        ]});
        self.answer("findmnt", &format!("cat <<'END'\n{found:#}\nEND"));
    }

    /// How programs were called since this was asked last.
    fn calls(&self) -> Vec<String> {
        let path = self.place.path("calls");
        let calls = std::fs::read_to_string(&path).unwrap_or_default();
        let _ = std::fs::remove_file(path);
        calls.lines().map(str::to_owned).collect()
    }

    /// Exit code, standard output, standard error.
    fn grow(&self, arguments: &[&str]) -> (i32, String, String) {
        let mut command = self.place.command(BINARY);
        command.env(
            "PATH",
            format!("{}:/usr/bin:/bin", self.place.path("bin").display()),
        );
        let output = command
            .args(["tools", "grow"])
            .args(arguments)
            .output()
            .expect("it can be started");
        let [printed, said] =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("it is text"));
        (output.status.code().unwrap_or(-1), printed, said)
    }
}

#[test]
fn the_commands_are_printed_and_run_only_when_that_is_said() {
    let stand_ins = StandIns::new();
    for (source, file_system, wanted) in [
        (
            "/dev/nvme9n1p3",
            "ext4",
            "growpart /dev/nvme9n1 3\nresize2fs /dev/nvme9n1p3\n",
        ),
        (
            "/dev/sdzz2",
            "xfs",
            "growpart /dev/sdzz 2\nxfs_growfs '/srv/my data'\n",
        ),
        (
            "/dev/mmcblk9p12",
            "ext4",
            "growpart /dev/mmcblk9 12\nresize2fs /dev/mmcblk9p12\n",
        ),
        // A file system without a partition around it.
        ("/dev/nvme9n1", "ext4", "resize2fs /dev/nvme9n1\n"),
        ("/dev/sdzz", "xfs", "xfs_growfs '/srv/my data'\n"),
    ] {
        stand_ins.mounted("/srv/my data", source, file_system);
        let done = stand_ins.place.path("done").display().to_string();
        let (code, printed, said) = stand_ins.grow(&["--mount", "/srv/my data/", "--done", &done]);
        assert_eq!(
            (code, printed.as_str(), said.as_str()),
            (0, wanted, ""),
            "{source}"
        );
        assert_eq!(
            stand_ins.calls(),
            ["findmnt --json --all --mountpoint /srv/my data"]
        );
        assert!(!Path::new(&done).exists(), "nothing was done");
        let (code, printed, said) = stand_ins.grow(&["--mount", "/srv/my data", "--exec", "--done", &done]);
        assert_eq!((code, printed.as_str()), (0, ""), "{said}");
        assert_eq!(
            stand_ins.calls()[1..].join("\n"),
            wanted.trim_end().replace('\'', "")
        );
        assert!(Path::new(&done).exists());
        // Only once.
        let (code, _, said) = stand_ins.grow(&["--mount", "/srv/my data", "--exec", "--done", &done]);
        assert_eq!(
            (code, said),
            (0, format!("it is done already: {done} is there\n"))
        );
        assert!(stand_ins.calls().is_empty());
        std::fs::remove_file(done).unwrap();
    }
}

#[test]
fn what_fails_ends_it_and_is_not_done() {
    let stand_ins = StandIns::new();
    stand_ins.mounted("/", "/dev/sdzz1", "ext4");
    let done = stand_ins.place.path("done").display().to_string();
    let arguments = ["--mount=/", "--exec", "--done", &done];
    stand_ins.answer("growpart", "echo FAILED: disk is busy >&2; exit 2");
    let (code, _, said) = stand_ins.grow(&arguments);
    assert_eq!(code, 1);
    assert!(
        said.contains("error: failed to run `growpart /dev/sdzz 1`: exit status 2: FAILED: disk is busy"),
        "{said}"
    );
    assert_eq!(stand_ins.calls().len(), 2, "nothing behind it was run");
    assert!(!Path::new(&done).exists());
    // That the partition has all room is no failure: the file system may not have it yet.
    stand_ins.answer(
        "growpart",
        "echo NOCHANGE: partition 1 is size 2. it cannot be grown; exit 1",
    );
    let (code, _, said) = stand_ins.grow(&arguments);
    assert_eq!(code, 0, "{said}");
    assert!(stand_ins.calls().contains(&"resize2fs /dev/sdzz1".to_owned()));
    assert!(Path::new(&done).exists());
    std::fs::remove_file(&done).unwrap();
    // A program that is not there, and where it is to be had.
    std::fs::remove_file(stand_ins.place.path("bin/growpart")).unwrap();
    if find("growpart").is_none() {
        let (code, _, said) = stand_ins.grow(&arguments);
        assert_eq!(code, 1);
        assert!(
            said.contains(
                "help: it is in the package `cloud-guest-utils` of Debian, `cloud-utils-growpart` of Fedora"
            ),
            "{said}"
        );
    }
    // A directory of the file that is not there is found before anything is done.
    stand_ins.calls();
    let (code, _, said) = stand_ins.grow(&["--mount=/", "--exec", "--done=/no/such/directory/done"]);
    assert_eq!(code, 1);
    assert!(said.contains("error: `--done` cannot be used: "), "{said}");
    assert!(stand_ins.calls().is_empty());
}

#[test]
fn what_cannot_be_grown_is_said() {
    let stand_ins = StandIns::new();
    let refused = |code: i32, arguments: &[&str], wanted: &str| {
        let (is, printed, said) = stand_ins.grow(arguments);
        assert_eq!((is, printed.as_str()), (code, ""), "{said}");
        assert!(said.contains(wanted), "{said}");
    };
    refused(64, &[], "--mount");
    refused(
        64,
        &["--mount", "srv"],
        "`--mount`: the path is not absolute: `srv`",
    );
    refused(
        64,
        &["--mount=/", "--done=x"],
        "`--done`: the path is not absolute: `x`",
    );
    stand_ins.mounted("/", "/dev/sdzz1", "btrfs");
    refused(
        1,
        &["--mount=/"],
        "/ cannot be grown: its file system is btrfs\n  help: ext4 and XFS can be",
    );
    stand_ins.mounted("/", "/dev/sdzz1[/srv]", "ext4");
    refused(1, &["--mount=/"], "only /srv of /dev/sdzz1 is mounted there");
    stand_ins.answer("findmnt", "exit 1");
    refused(
        1,
        &["--mount=/srv"],
        "failed to find what is mounted at /srv: nothing is",
    );
    stand_ins.mounted("/elsewhere", "/dev/sdzz1", "ext4");
    refused(
        1,
        &["--mount=/"],
        "the answer of `findmnt` is about something else",
    );
    let one = r#"{"target":"/","source":"/dev/sdzz1","fstype":"ext4"}"#;
    stand_ins.answer("findmnt", &format!("echo '{{\"filesystems\":[{one},{one}]}}'"));
    refused(
        1,
        &["--mount=/"],
        "2 file systems are mounted there, one over the other",
    );
    stand_ins.answer("findmnt", "echo nonsense");
    refused(1, &["--mount=/"], "the answer of `findmnt` cannot be read");
}

#[test]
fn an_encrypted_partition_grows_before_what_is_in_it() {
    let test = "grow::an_encrypted_partition_grows_before_what_is_in_it";
    Place::namespaces(test, &["--mount", "--propagation", "private"]).run(|| {
        // A kernel with other devices than this machine has.
        shell(
            "mount -t tmpfs tmpfs /sys/class/block; cd /sys/class/block; \
             mkdir -p disks/vdz/vdz5 dm-7/slaves dm-7/dm dm-8/slaves dm-8/dm dm-9/slaves; echo 5 > disks/vdz/vdz5/partition; \
             ln -s disks/vdz vdz; ln -s disks/vdz/vdz5 vdz5; ln -s ../../vdz5 dm-7/slaves/vdz5; \
             echo CRYPT-LUKS2-00-root > dm-7/dm/uuid; echo LVM-00 > dm-8/dm/uuid; mkdir dm-9/slaves/a dm-9/slaves/b",
        );
        let stand_ins = StandIns::new();
        stand_ins.mounted("/", "/dev/dm-7", "ext4");
        let (code, printed, said) = stand_ins.grow(&["--mount=/"]);
        assert_eq!((code, said.as_str()), (0, ""));
        assert_eq!(
            printed,
            "growpart /dev/vdz 5\ncryptsetup resize --key-file=$(mktemp) /dev/dm-7\nresize2fs /dev/dm-7\n"
        );
        // The key is an empty file, not the null device.
        stand_ins.answer("cryptsetup", "file=${2#--key-file=}; [ -f \"$file\" ] && [ ! -s \"$file\" ]");
        let (code, _, said) = stand_ins.grow(&["--mount=/", "--exec"]);
        assert_eq!(code, 0, "{said}");
        let calls = stand_ins.calls();
        assert!(calls.iter().any(|call| call.starts_with("cryptsetup resize --key-file=/") && call.ends_with(" /dev/dm-7")), "{calls:?}");
        stand_ins.mounted("/", "/dev/dm-8", "ext4");
        let (code, _, said) = stand_ins.grow(&["--mount=/"]);
        assert_eq!(code, 1);
        assert!(said.contains("/dev/dm-8 is a logical volume, and not an encrypted partition"), "{said}");
        stand_ins.mounted("/", "/dev/dm-9", "ext4");
        let (code, _, said) = stand_ins.grow(&["--mount=/"]);
        assert_eq!(code, 1);
        assert!(said.contains("/dev/dm-9 lies on several devices: a, b"), "{said}");
    });
}

#[test]
fn real_file_systems_grow_while_they_are_mounted() {
    let test = "grow::real_file_systems_grow_while_they_are_mounted";
    let place = Place::namespaces(test, &["--mount", "--propagation", "private"]);
    place
        .needing(&["losetup", "mkfs.ext4", "resize2fs", "findmnt"])
        .run(|| {
            for (file_system, from, to) in [("ext4", "40M", "120M"), ("xfs", "320M", "900M")] {
                if let Err(why) = grows(file_system, from, to) {
                    eprintln!("skipped: {test}: {file_system}: {why}");
                }
            }
        });
}

/// Lets a file system grow with the disk under it; why that cannot be tried here.
fn grows(file_system: &str, from: &str, to: &str) -> Result<(), String> {
    let make = format!("mkfs.{file_system}");
    find(&make).ok_or(format!("needs the program `{make}`"))?;
    let tries = |program: &str, arguments: &[&str]| -> Result<String, String> {
        let output = std::process::Command::new(program)
            .args(arguments)
            .output()
            .expect("it can be started");
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout)
                .expect("it is text")
                .trim()
                .to_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        }
    };
    let place = Hermetic::new();
    let image = place.path("image").display().to_string();
    shell(&format!("truncate -s {from} {image}; {make} -q {image}"));
    let device = tries("losetup", &["--find", "--show", &image])?;
    let mount = place.path("mounted").display().to_string();
    std::fs::create_dir(&mount).expect("the place is writable");
    let mounted = tries("mount", &[&device, &mount]);
    // It goes by itself when nothing uses it any more.
    shell(&format!("losetup -d {device}"));
    mounted?;
    let room = || {
        let said = shell(&format!("df -m --output=size {mount} | tail -1"));
        said.trim().parse::<u32>().expect("it is a number")
    };
    let before = room();
    shell(&format!("truncate -s {to} {image}; losetup -c {device}"));
    let done = place.path("done").display().to_string();
    let grow = |arguments: &[&str]| {
        let mut command = place.command(BINARY);
        command.args(["tools", "grow", "--mount", &mount, "--done", &done]);
        let output = command.args(arguments).output().expect("it can be started");
        let [printed, said] =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("it is text"));
        (output.status.code(), printed, said)
    };
    let wanted = match file_system {
        "ext4" => format!("resize2fs {device}\n"),
        _ => format!("xfs_growfs {mount}\n"),
    };
    assert_eq!(grow(&[]), (Some(0), wanted, String::new()));
    assert_eq!(room(), before);
    let (code, _, said) = grow(&["--exec"]);
    // A right that a container may not have.
    let is_forbidden = said.contains("Permission denied to resize filesystem");
    if !is_forbidden {
        assert_eq!(code, Some(0), "{said}");
        assert!(room() > 2 * before, "{said}");
        assert_eq!(text(Path::new(&done)), "");
    } else {
        assert_eq!(code, Some(1), "{said}");
    }
    assert_eq!(Path::new(&done).exists(), !is_forbidden);
    shell(&format!("umount {mount}"));
    match is_forbidden {
        true => Err("the kernel does not let us resize it".to_owned()),
        false => Ok(()),
    }
}
