//! What files hold: read, compared and copied, with holes and without; and what is remembered of it.

use crate::place::{Place, is_root};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use setpoint_host::files::{
    AbsolutePath, Committer, Content, Directory, Entry, Fingerprint, OpenFile, Replace, Stamp, Timestamp,
    VerifiedFiles, own_gid, own_uid, same_content,
};
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// So much is compared at a time.
const CHUNK: usize = 64 * 1024;

fn open(place: &Place, name: &str) -> OpenFile {
    Entry::at(&place.path(name)).unwrap().open().unwrap()
}

/// A file with data at these places and holes between; its bytes.
fn with_holes(place: &Place, name: &str, length: usize, data: &[(usize, &[u8])]) -> Vec<u8> {
    let file = fs::File::create(place.std(name)).unwrap();
    file.set_len(length as u64).unwrap();
    let mut bytes = vec![0; length];
    for (at, piece) in data {
        file.write_all_at(piece, *at as u64).unwrap();
        bytes[*at..at + piece.len()].copy_from_slice(piece);
    }
    bytes
}

#[test]
fn two_files_are_the_same_exactly_if_their_bytes_are() {
    let place = Place::new();
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 7] {
        let plain = vec![7; length];
        let mut contents = vec![plain.clone(), vec![0; length]];
        for at in [0, CHUNK - 1, CHUNK, length.saturating_sub(1)] {
            let mut other = plain.clone();
            if let Some(byte) = other.get_mut(at) {
                *byte = 8;
                contents.push(other);
            }
        }
        for content in contents {
            let name = files.len().to_string();
            place.write(&name, &content);
            files.push((name, content));
        }
    }
    let pieces: [&[(usize, &[u8])]; 5] = [
        &[],
        &[(0, b"x")],
        &[(2 * CHUNK + 6, b"x")],
        &[(CHUNK, b"x")],
        &[(CHUNK + 4096, b"y"), (2 * CHUNK, b"x")],
    ];
    for data in pieces {
        let name = files.len().to_string();
        let bytes = with_holes(&place, &name, 2 * CHUNK + 7, data);
        files.push((name, bytes));
    }
    for (left, left_bytes) in &files {
        for (right, right_bytes) in &files {
            let same = same_content(&mut open(&place, left), &mut open(&place, right)).unwrap();
            assert_eq!(same, left_bytes == right_bytes, "{left} {right}");
            let holds = open(&place, left).holds(right_bytes).unwrap();
            assert_eq!(holds, left_bytes == right_bytes, "{left} holds {right}");
        }
        assert_eq!(open(&place, left).read_all().unwrap(), *left_bytes);
    }
}

#[test]
fn a_copy_has_the_bytes_and_the_holes_of_what_it_is_of() {
    let place = Place::new();
    let length = 64 * CHUNK;
    let pieces: [&[(usize, &[u8])]; 5] = [
        &[],
        &[(0, b"first")],
        &[(length - 4, b"last")],
        &[(5 * CHUNK, b"a"), (40 * CHUNK + 3, b"b")],
        &[(0, &[1; 3 * CHUNK])],
    ];
    for data in pieces {
        let bytes = with_holes(&place, "source", length, data);
        let source = open(&place, "source");
        assert!(source.stat().has_holes());
        let copied = Replace::new(place.path("copy"), Content::Copy(source));
        Committer::new().replace(copied).unwrap();
        let copy = open(&place, "copy");
        assert!(copy.stat().has_holes(), "{}", data.len());
        assert!(fs::read(place.std("copy")).unwrap() == bytes);
    }
}

#[test]
fn a_file_with_all_its_blocks_has_no_holes() {
    let place = Place::new();
    for length in [1u64, 4096, 8192] {
        // Bytes that a file system which compresses cannot make less of.
        let random = |n: u64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 29).wrapping_mul(n) >> 7;
        let bytes: Vec<u8> = (1..=length).map(|n| random(n) as u8).collect();
        place.write("f", bytes);
        fs::File::open(place.std("f")).unwrap().sync_all().unwrap();
        let file = open(&place, "f");
        assert!(!file.stat().has_holes(), "{length}");
    }
}

#[test]
fn more_than_a_gibibyte_is_not_read_into_memory() {
    let place = Place::new();
    let file = fs::File::create(place.std("f")).unwrap();
    file.set_len((1 << 30) + 1).unwrap();
    let refused = open(&place, "f").read_all().unwrap_err();
    assert_eq!(
        refused.reason(),
        "it is longer than 1 GiB, which is too much to hold in memory"
    );
    assert_eq!(refused.attempted(), "read");
}

#[test]
fn an_error_tells_its_reason_without_what_was_tried_on_what() {
    let place = Place::new();
    let missing = Entry::at(&place.path("missing")).unwrap().read().unwrap_err();
    assert_eq!(missing.reason(), "No such file or directory (os error 2)");
    assert_eq!(missing.path(), place.std("missing"));
    place.directory("d");
    let wrong = Entry::at(&place.path("d")).unwrap().read().unwrap_err();
    let whole = wrong.to_string();
    assert!(whole.ends_with(&wrong.reason()) && wrong.reason().len() < whole.len());
    assert!(!wrong.reason().contains("/d"), "{}", wrong.reason());
}

#[test]
fn a_long_attribute_is_read_whole_and_a_security_context_without_its_end() {
    let place = Place::new();
    place.write("f", "x");
    let entry = Entry::at(&place.path("f")).unwrap();
    for length in [0, 1, 511, 512, 513, 2049, 3000] {
        let value = vec![b'v'; length];
        entry.set_attribute("user.long", &value).unwrap();
        assert_eq!(entry.attribute("user.long").unwrap(), Some(value));
    }
    if !is_root() {
        return;
    }
    match entry.set_attribute("security.selinux", b"system_u:object_r:etc_t:s0\0") {
        Ok(()) => {
            let context = entry.security_context().unwrap();
            assert_eq!(context.as_deref(), Some(&b"system_u:object_r:etc_t:s0"[..]));
        }
        Err(error) => eprintln!("skipped: {error}"),
    }
}

#[test]
fn what_a_process_makes_belongs_to_its_user_and_group() {
    let place = Place::new();
    let made = fs::metadata(place.write("f", "x")).unwrap();
    assert_eq!((own_uid(), own_gid()), (made.uid(), made.gid()));
}

#[test]
fn a_batch_in_many_directories_holds_few_descriptors() {
    let place = Place::new();
    let test = "contents::a_batch_in_many_directories_holds_few_descriptors";
    crate::watch::inside(&["env"], test, &place, |directory| {
        let few = Rlimit {
            current: Some(200),
            maximum: getrlimit(Resource::Nofile).maximum,
        };
        setrlimit(Resource::Nofile, few).unwrap();
        let path = |number: usize| directory.join(format!("{number}/f"));
        let request = |number: usize| {
            fs::create_dir(path(number).parent().unwrap()).unwrap();
            let target = AbsolutePath::new(path(number)).unwrap();
            Replace::bytes(target, number.to_string().into_bytes())
        };
        let results = Committer::new().replace_many((0..300).map(request).collect());
        assert_eq!(results.len(), 300);
        for (number, result) in results.into_iter().enumerate() {
            result.unwrap();
            assert_eq!(fs::read_to_string(path(number)).unwrap(), number.to_string());
        }
    });
}

/// The flags of the descriptors of this process that are open on something below a directory.
fn open_below(directory: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc/self/fd").unwrap() {
        let name = entry.unwrap().file_name();
        // Other tests open and close theirs meanwhile.
        let target = fs::read_link(Path::new("/proc/self/fd").join(&name));
        let info = fs::read_to_string(Path::new("/proc/self/fdinfo").join(&name));
        if let (Ok(target), Ok(info)) = (target, info)
            && target.starts_with(directory)
        {
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
            found.push((target, u32::from_str_radix(flags.trim(), 8).unwrap()));
        }
    }
    found
}

#[test]
fn no_descriptor_is_handed_to_the_commands_that_are_started() {
    let place = Place::new();
    place.directory("d");
    place.write("d/f", "x");
    place.link("link", "d");
    let root = place.std("").canonicalize().unwrap();
    let directory = Directory::open(&place.path("d")).unwrap();
    let through_link = Directory::open(&place.path("link/")).unwrap();
    let entry = Entry::at(&place.path("d")).unwrap();
    let inner = entry.open_directory().unwrap();
    let file = open(&place, "d/f");
    let appended = Entry::at(&place.path("d/f")).unwrap();
    appended.append(b"y", 0o600).unwrap();
    let (send, receive) = std::sync::mpsc::channel();
    let watched = root.clone();
    let written = Content::Written(Box::new(move |_| {
        send.send(open_below(&watched)).map_err(std::io::Error::other)
    }));
    Committer::new()
        .replace(Replace::new(place.path("d/new"), written))
        .unwrap();
    let while_written = receive.recv().unwrap();
    assert!(while_written.len() >= 5, "{while_written:?}");
    for (path, flags) in while_written {
        assert_eq!(flags & 0o2_000_000, 0o2_000_000, "{path:?} would be inherited");
    }
    drop((directory, through_link, inner, file));
}

fn stamp(seconds: i64) -> Stamp {
    let changed = Timestamp {
        seconds,
        nanoseconds: 5,
    };
    Stamp {
        device: 1,
        inode: 2,
        size: 3,
        modified: changed,
        changed,
    }
}

#[test]
fn of_released_files_a_thousand_are_remembered_or_as_many_as_of_others() {
    let wanted = Fingerprint::of_digest(&[7; 16]);
    let later = Timestamp {
        seconds: 200,
        nanoseconds: 0,
    };
    let path = |number: usize| PathBuf::from(format!("/{number}"));
    for (others, released, remembered) in [
        (0, 1000, true),
        (0, 1001, false),
        (1100, 1101, true),
        (1100, 1103, false),
    ] {
        let files = VerifiedFiles::new();
        for number in 0..others + released {
            files.record(&path(number), stamp(100), wanted, later);
        }
        for number in others..others + released {
            files.release(&path(number));
            // Twice is once.
            files.release(&path(number));
        }
        // With the next that is recorded it shows.
        files.record(Path::new("/next"), stamp(100), wanted, later);
        let last = path(others + released - 1);
        assert_eq!(
            files.holds(&last, stamp(100), wanted),
            remembered,
            "{others} {released}"
        );
        assert!(others == 0 || files.holds(&path(0), stamp(100), wanted));
    }
}

#[test]
fn a_released_file_that_somebody_asks_about_again_counts_no_longer() {
    let wanted = Fingerprint::of_digest(&[7; 16]);
    let later = Timestamp {
        seconds: 200,
        nanoseconds: 0,
    };
    let path = |number: usize| PathBuf::from(format!("/{number}"));
    let files = VerifiedFiles::new();
    for number in 0..1001 {
        files.record(&path(number), stamp(100), wanted, later);
        files.release(&path(number));
    }
    assert!(files.holds(&path(1), stamp(100), wanted));
    files.record(&path(2), stamp(100), wanted, later);
    files.record(Path::new("/next"), stamp(100), wanted, later);
    assert!(files.holds(&path(3), stamp(100), wanted), "999 are not too many");
}

#[test]
fn a_file_without_an_access_list_is_known_as_long_as_its_stamp_is_the_same() {
    let wanted = Fingerprint::of_digest(&[7; 16]);
    let later = Timestamp {
        seconds: 200,
        nanoseconds: 0,
    };
    let path = Path::new("/a");
    let files = VerifiedFiles::new();
    files.record(path, stamp(100), wanted, later);
    assert!(!files.has_no_access_list(path, stamp(100)));
    files.record_no_access_list(path, stamp(101));
    assert!(
        !files.has_no_access_list(path, stamp(100)),
        "that was another file"
    );
    files.record_no_access_list(path, stamp(100));
    assert!(files.has_no_access_list(path, stamp(100)));
    assert!(!files.has_no_access_list(path, stamp(101)));
    assert!(!files.has_no_access_list(Path::new("/b"), stamp(100)));
    files.record(path, stamp(100), wanted, later);
    assert!(
        !files.has_no_access_list(path, stamp(100)),
        "it is looked at anew"
    );
}

#[test]
fn a_file_that_is_forgotten_is_looked_at_again_and_not_told_to_the_next_process() {
    let wanted = Fingerprint::of_digest(&[7; 16]);
    let later = Timestamp {
        seconds: 200,
        nanoseconds: 0,
    };
    let files = VerifiedFiles::new();
    for path in ["/a", "/b"] {
        files.record(Path::new(path), stamp(100), wanted, later);
    }
    files.forget(Path::new("/a"));
    assert!(!files.holds(Path::new("/a"), stamp(100), wanted));
    let next = VerifiedFiles::new();
    next.take_in(&files.to_bytes("today").unwrap(), "today");
    assert!(!next.holds(Path::new("/a"), stamp(100), wanted));
    assert!(next.holds(Path::new("/b"), stamp(100), wanted));
}

#[test]
fn what_cannot_be_taken_in_is_written_anew() {
    let wanted = Fingerprint::of_digest(&[7; 16]);
    let later = Timestamp {
        seconds: 200,
        nanoseconds: 0,
    };
    let files = VerifiedFiles::new();
    files.record(Path::new("/a"), stamp(100), wanted, later);
    let bytes = files.to_bytes("today").unwrap();
    for (bytes, start) in [(&bytes[..bytes.len() - 1], "today"), (&bytes[..], "tomorrow")] {
        let next = VerifiedFiles::new();
        next.take_in(bytes, start);
        assert!(!next.holds(Path::new("/a"), stamp(100), wanted));
        let written = next
            .to_bytes(start)
            .expect("what is on disk is not what is known");
        assert!(!written.windows(2).any(|two| two == b"/a"));
    }
}
