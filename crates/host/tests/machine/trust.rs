//! Directories that others can write in, and what they may have put there.

use crate::place::{Place, is_root};
use setpoint_host::files::{
    AbsolutePath, Committer, Entry, FileError, Method, Replace, directory_open_to_others,
};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::Command;

const USER: u32 = 65534;

#[test]
fn root_follows_no_link_of_its_own_where_others_could_have_moved_it() {
    let Some(place) = Place::of_root() else {
        return;
    };
    place.directory("system");
    place.directory("shared");
    place.link("shared/by-root", place.std("system"));
    for mode in [0o775, 0o1777] {
        place.chmod("shared", mode);
        let error = Entry::at(&place.path("shared/by-root/f")).unwrap_err();
        assert!(
            matches!(error, FileError::MovableLink { .. }),
            "{mode:o}: {error}"
        );
        let replace = Replace::bytes(place.path("shared/by-root"), "evil");
        let error = Committer::new().replace(replace).unwrap_err();
        assert!(
            matches!(error, FileError::MovableLink { .. }),
            "{mode:o}: {error}"
        );
    }
    place.chmod("shared", 0o755);
    Entry::at(&place.path("shared/by-root/f")).unwrap();
}

#[test]
fn root_follows_no_link_that_a_user_could_aim_elsewhere() {
    let Some(place) = Place::of_root() else {
        return;
    };
    place.directory("home/theirs");
    place.directory("system");
    place.write("system/shadow", "secret");
    place.link("home/to-system", place.std("system"));
    place.link("home/to-shadow", place.std("system/shadow"));
    place.link("home/to-nothing", place.std("system/new"));
    place.link("home/to-theirs", "theirs");
    for name in [
        "home",
        "home/theirs",
        "home/to-system",
        "home/to-shadow",
        "home/to-nothing",
        "home/to-theirs",
    ] {
        place.chown(name, USER);
    }

    let committer = Committer::new();
    for name in ["home/to-system/shadow", "home/to-shadow", "home/to-nothing"] {
        let error = committer
            .replace(Replace::bytes(place.path(name), "evil"))
            .unwrap_err();
        assert!(
            matches!(
                error,
                FileError::UnsafeLink {
                    link_owner: USER,
                    target_owner: 0,
                    ..
                }
            ),
            "{name}: {error}"
        );
    }
    assert_eq!(place.read("system/shadow"), "secret");
    assert_eq!(place.names("system"), ["shadow"]);

    // What leads to their own is harmless; so is a link that root made in a directory of its own.
    committer
        .replace(Replace::bytes(place.path("home/to-theirs/f"), "fine"))
        .unwrap();
    place.link("by-root", "home/theirs");
    committer
        .replace(Replace::bytes(place.path("by-root/g"), "fine"))
        .unwrap();
    assert_eq!(place.names("home/theirs"), ["f", "g"]);

    // A link that root made in their directory could have been moved about by them.
    place.link("home/by-root", place.std("system"));
    let error = Entry::at(&place.path("home/by-root/shadow")).unwrap_err();
    assert!(matches!(error, FileError::UnsafeLink { .. }), "{error}");
}

#[test]
fn a_directory_that_becomes_a_link_while_it_is_written_to_leads_nowhere_else() {
    let Some(place) = Place::of_root() else {
        return;
    };
    place.directory("home");
    place.directory("home/d");
    place.directory("system");
    place.write("system/shadow", "secret");
    place.link("home/to-system", place.std("system"));
    for name in ["home", "home/d", "home/to-system"] {
        place.chown(name, USER);
    }
    let (directory, link) = (place.std("home/d"), place.std("home/to-system"));
    let done = std::sync::atomic::AtomicBool::new(false);
    let (mut written, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                renameat_with(CWD, &directory, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let committer = Committer::new();
        let mut round = 0;
        while round < 500 || (written == 0 || refused == 0) && round < 100_000 {
            let request = Replace::bytes(place.path("home/d/shadow"), format!("evil {round}"));
            match committer.replace(request) {
                Ok(_) => written += 1,
                Err(_) => refused += 1,
            }
            round += 1;
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(written > 0 && refused > 0, "{written} {refused}");
    assert_eq!(place.read("system/shadow"), "secret");
    assert_eq!(place.names("system"), ["shadow"]);
}

#[test]
fn root_changes_no_hard_link_that_others_could_have_made() {
    let Some(place) = Place::of_root() else {
        return;
    };
    place.write("shadow", "secret");
    place.chmod("shadow", 0o600);
    place.directory("theirs");
    place.chown("theirs", USER);
    place.directory("shared");
    place.chmod("shared", 0o1777);
    for name in ["theirs/f", "shared/f"] {
        fs::hard_link(place.std("shadow"), place.std(name)).unwrap();
        let entry = Entry::at(&place.path(name)).unwrap();
        for changed in [entry.set_mode(0o666), entry.set_owner(Some(USER), None)] {
            let error = changed.unwrap_err();
            assert!(matches!(error, FileError::UnsafeHardLink { .. }), "{error}");
        }
        let done = Committer::new()
            .replace(Replace::bytes(place.path(name), "new"))
            .unwrap();
        assert_eq!(done.method, Method::Atomically);
        assert_eq!(
            (place.read("shadow"), place.mode("shadow")),
            ("secret".to_owned(), 0o600)
        );
        assert_eq!(place.read(name), "new");
    }
}

/// Serves a file system that claims to be root's all over: a directory with one link, `link`, to `target`.
fn serve(mut device: &File, target: &str) {
    const LOOKUP: u32 = 1;
    const FORGET: u32 = 2;
    const GETATTR: u32 = 3;
    const READLINK: u32 = 5;
    const INIT: u32 = 26;
    const BATCH_FORGET: u32 = 42;
    let attributes = |node: u64| {
        let mode: u32 = if node == 1 { 0o040_755 } else { 0o120_777 };
        let mut bytes = Vec::new();
        for word in [node, target.len() as u64, 0, 0, 0, 0] {
            bytes.extend(word.to_ne_bytes());
        }
        for half in [0, 0, 0, mode, 1, 0, 0, 0, 4096, 0] {
            bytes.extend(half.to_ne_bytes());
        }
        bytes
    };
    let mut request = vec![0; 256 * 1024];
    while let Ok(length) = device.read(&mut request) {
        let word = |at: usize| u64::from_ne_bytes(request[at..at + 8].try_into().unwrap());
        let (operation, unique, node) = (word(0) >> 32, word(8), word(16));
        let mut error = 0;
        let mut answer: Vec<u8> = Vec::new();
        match u32::try_from(operation).unwrap() {
            INIT => {
                answer.extend([7u32, 31, 0, 0].iter().flat_map(|half| half.to_ne_bytes()));
                answer.extend([12u16, 9].iter().flat_map(|quarter| quarter.to_ne_bytes()));
                answer.extend([4096u32, 1].iter().flat_map(|half| half.to_ne_bytes()));
                answer.resize(64, 0);
            }
            LOOKUP if &request[40..length] == b"link\0" => {
                answer.extend(
                    [2u64, 1, 3600, 3600, 0]
                        .iter()
                        .flat_map(|word| word.to_ne_bytes()),
                );
                answer.extend(attributes(2));
            }
            LOOKUP => error = -2,
            GETATTR => {
                answer.extend([3600u64, 0].iter().flat_map(|word| word.to_ne_bytes()));
                answer.extend(attributes(node));
            }
            READLINK => answer.extend(target.as_bytes()),
            FORGET | BATCH_FORGET => continue,
            _ => error = -38i32,
        }
        let mut reply = u32::try_from(16 + answer.len()).unwrap().to_ne_bytes().to_vec();
        reply.extend(error.to_ne_bytes());
        reply.extend(unique.to_ne_bytes());
        reply.extend(answer);
        device.write_all(&reply).unwrap();
    }
}

#[test]
fn what_a_user_serves_is_not_believed_to_be_roots() {
    if !is_root() || !std::path::Path::new("/dev/fuse").exists() {
        return;
    }
    let place = Place::new();
    place.chmod("", 0o755);
    place.directory("system");
    place.directory("served");
    crate::watch::inside(
        &["unshare", "--mount"],
        "trust::what_a_user_serves_is_not_believed_to_be_roots",
        &place,
        |directory| {
            let device = File::options().read(true).write(true).open("/dev/fuse").unwrap();
            let served = device.try_clone().unwrap();
            let target = directory.join("system").display().to_string();
            let mounted = Command::new("mount")
                .args(["-i", "-t", "fuse.test", "-o"])
                .arg("fd=0,rootmode=40000,user_id=65534,group_id=65534,allow_other")
                .arg("none")
                .arg(directory.join("served"))
                .stdin(device)
                .status()
                .unwrap();
            assert!(mounted.success());
            // It ends when the file system is unmounted with the namespace, at the end of this process.
            std::thread::spawn(move || serve(&served, &target));
            let path = |name: &str| setpoint_host::files::AbsolutePath::new(directory.join(name)).unwrap();
            // The system itself is taken in.
            fs::write(directory.join("served/link/f"), "x").unwrap();
            let error = Entry::at(&path("served/link/f")).unwrap_err();
            assert!(
                matches!(
                    error,
                    FileError::UnsafeLink {
                        link_owner: USER,
                        target_owner: 0,
                        ..
                    }
                ),
                "{error}"
            );
            let replace = Replace::bytes(path("served/link"), "evil");
            assert!(Committer::new().replace(replace).is_err());
        },
    );
}

#[test]
fn a_group_of_ones_own_is_nobody_else() {
    use std::os::unix::fs::chown;
    const OTHER: u32 = 100;
    let cases = [
        ("own", 0o775, USER, USER, false),
        ("of-another-group", 0o775, USER, OTHER, true),
        ("of-everybody", 0o777, USER, USER, true),
        ("closed", 0o755, USER, OTHER, false),
        ("of-root", 0o755, 0, 0, false),
        ("of-roots-group", 0o775, 0, USER, true),
        ("sticky", 0o1777, USER, USER, false),
    ];
    let is_inside = rustix::process::geteuid().as_raw() == USER;
    let Some(place) = (if is_inside {
        Some(Place::new())
    } else {
        Place::of_root()
    }) else {
        return;
    };
    if !is_inside {
        for (name, mode, owner, group, _) in cases {
            place.directory(name);
            chown(place.std(name), Some(owner), Some(group)).unwrap();
            place.chmod(name, mode);
        }
    }
    let user = USER.to_string();
    crate::watch::inside(
        &["setpriv", "--reuid", &user, "--regid", &user, "--clear-groups"],
        "trust::a_group_of_ones_own_is_nobody_else",
        &place,
        |directory| {
            for (name, _, _, _, is_open) in cases {
                let path = AbsolutePath::new(directory.join(name)).unwrap();
                let found = directory_open_to_others(&path, None).unwrap();
                assert_eq!(found.as_ref() == Some(&path), is_open, "{name}");
                assert_eq!(found.is_some(), is_open, "{name}");
            }
        },
    );
}

#[test]
fn root_knows_what_others_have_made() {
    let Some(place) = Place::of_root() else { return };
    place.write("own", "");
    place.write("theirs", "");
    place.chown("theirs", USER);
    let stat = |name: &str| Entry::at(&place.path(name)).unwrap().stat().unwrap().unwrap();
    assert!(stat("theirs").is_made_by_others());
    assert!(!stat("own").is_made_by_others());
}
