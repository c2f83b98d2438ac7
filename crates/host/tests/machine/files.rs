//! Reading, replacing and changing single entries.

use crate::place::{Place, is_root};
use setpoint_host::files::{
    AbsolutePath, Committer, Content, Directory, Entry, FileError, FileType, Fingerprint, InPlaceReason,
    Lead, Method, Party, Replace, TEMPORARY_PREFIX, Timestamp, VerifiedFiles, same_content,
};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::{fs, thread};

const USER: u32 = 1000;

fn seven() -> Fingerprint {
    Fingerprint::of_digest(&[7; 16])
}

fn replace(path: AbsolutePath, content: &str) -> Replace {
    Replace::bytes(path, content.as_bytes().to_vec())
}

#[test]
fn a_path_keeps_its_text_and_knows_its_parts() {
    let path = AbsolutePath::new("/srv//www/./a/../site/").unwrap();
    assert!(path.names_directory());
    assert!(!AbsolutePath::new("/srv/www").unwrap().names_directory());
    assert_eq!(path.cleaned(), AbsolutePath::new("/srv/www/site/").unwrap());
    assert_eq!(
        path.cleaned().parent(),
        Some(AbsolutePath::new("/srv/www").unwrap())
    );
    assert_ne!(
        AbsolutePath::new("/a").unwrap(),
        AbsolutePath::new("/a/").unwrap()
    );
    assert_eq!(
        AbsolutePath::new("/a").unwrap().parent(),
        Some(AbsolutePath::new("/").unwrap())
    );
    assert_eq!(AbsolutePath::new("/").unwrap().parent(), None);
    assert_eq!(
        AbsolutePath::new("/..").unwrap().cleaned(),
        AbsolutePath::new("/").unwrap()
    );
    assert!(path.is_at_or_under(&AbsolutePath::new("/srv/").unwrap()));
    assert!(
        !AbsolutePath::new("/srvx")
            .unwrap()
            .is_at_or_under(&AbsolutePath::new("/srv").unwrap())
    );
    assert!(AbsolutePath::new("srv").is_err());
    assert!(AbsolutePath::new("").is_err());
    assert!(AbsolutePath::new("/a\0b").is_err());
}

#[test]
fn a_new_file_gets_the_mode_asked_for_and_leaves_no_temporary() {
    let place = Place::new();
    let done = Committer::new()
        .replace(replace(place.path("motd"), "hello\n").mode(0o4751))
        .unwrap();
    assert_eq!(done.method, Method::Atomically);
    assert_eq!(done.stat.mode, 0o4751);
    assert_eq!(place.read("motd"), "hello\n");
    assert_eq!(place.names(""), ["motd"]);
}

#[test]
fn a_new_file_without_a_mode_obeys_the_umask() {
    let place = Place::new();
    place.write("by-hand", "");
    Committer::new()
        .replace(replace(place.path("ours"), "x"))
        .unwrap();
    assert_eq!(place.mode("ours"), place.mode("by-hand"));
}

#[test]
fn replacing_keeps_mode_owner_attributes_and_access_list() {
    let place = Place::new();
    let path = place.write("conf", "old");
    place.chmod("conf", 0o640);
    let entry = Entry::at(&place.path("conf")).unwrap();
    entry.set_attribute("user.note", b"mine").unwrap();
    // A list with a named user (uid 1000 may read), in the kernel's form: version 2, then tag, permissions, id.
    let mut acl = 2u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in [
        (1u16, 6u16, u32::MAX),
        (2, 4, USER),
        (4, 4, u32::MAX),
        (16, 4, u32::MAX),
        (32, 0, u32::MAX),
    ] {
        acl.extend(tag.to_le_bytes());
        acl.extend(permissions.to_le_bytes());
        acl.extend(id.to_le_bytes());
    }
    entry.set_attribute("system.posix_acl_access", &acl).unwrap();
    if is_root() {
        place.chown("conf", USER);
    }
    let before = fs::metadata(&path).unwrap();

    let done = Committer::new()
        .replace(replace(place.path("conf"), "new"))
        .unwrap();

    let after = fs::metadata(&path).unwrap();
    assert_eq!(done.method, Method::Atomically);
    assert_ne!(after.ino(), before.ino());
    assert_eq!(
        (after.mode(), after.uid(), after.gid()),
        (before.mode(), before.uid(), before.gid())
    );
    assert_eq!(
        entry.attribute("user.note").unwrap().as_deref(),
        Some(&b"mine"[..])
    );
    assert_eq!(entry.attribute("system.posix_acl_access").unwrap(), Some(acl));
    assert_eq!(place.read("conf"), "new");
}

#[test]
fn owner_and_mode_are_set_together_even_with_set_user_id() {
    let Some(place) = Place::of_root() else {
        return;
    };
    let done = Committer::new()
        .replace(
            replace(place.path("tool"), "#!")
                .owner(USER, USER + 1)
                .mode(0o6755),
        )
        .unwrap();
    assert_eq!(
        (done.stat.uid, done.stat.gid, done.stat.mode),
        (USER, USER + 1, 0o6755)
    );
}

#[test]
fn a_reader_of_the_old_file_keeps_the_old_bytes() {
    let place = Place::new();
    place.write("f", "old");
    let mut reader = Entry::at(&place.path("f")).unwrap().open().unwrap();
    Committer::new()
        .replace(replace(place.path("f"), "new and longer"))
        .unwrap();
    assert_eq!(reader.read_all().unwrap(), b"old");
}

#[test]
fn a_link_at_the_path_stays_and_its_target_is_replaced() {
    let place = Place::new();
    place.directory("real");
    place.write("real/f", "old");
    place.link("f", "real/f");
    let done = Committer::new().replace(replace(place.path("f"), "new")).unwrap();
    assert_eq!(done.method, Method::Atomically);
    assert_eq!(place.read("real/f"), "new");
    assert_eq!(fs::read_link(place.std("f")).unwrap().to_str(), Some("real/f"));

    place.link("dangling", "real/made");
    Committer::new()
        .replace(replace(place.path("dangling"), "x"))
        .unwrap();
    assert_eq!(place.read("real/made"), "x");
}

#[test]
fn a_file_with_several_names_is_written_in_place_and_says_so() {
    let place = Place::new();
    place.write("a", "something rather long");
    fs::hard_link(place.std("a"), place.std("b")).unwrap();
    let done = Committer::new()
        .replace(replace(place.path("a"), "short").mode(0o600))
        .unwrap();
    assert_eq!(done.method, Method::InPlace(InPlaceReason::SeveralNames));
    assert_eq!(place.read("b"), "short");
    assert_eq!(place.mode("b"), 0o600);
    assert_eq!(place.names(""), ["a", "b"]);
}

#[test]
fn a_mount_point_is_written_in_place_and_says_so() {
    const INSIDE: &str = "SETPOINT_TEST_MOUNTED";
    if let Some(directory) = std::env::var_os(INSIDE) {
        let path = AbsolutePath::new(std::path::Path::new(&directory).join("hosts")).unwrap();
        let done = Committer::new()
            .replace(replace(path, "new").mode(0o604))
            .unwrap();
        assert_eq!(done.method, Method::InPlace(InPlaceReason::MountPoint));
        assert_eq!(done.stat.mode, 0o604);
        return;
    }
    let place = Place::new();
    place.write("hosts", "covered");
    place.write("mounted", "something longer");
    let script = "mount --bind mounted hosts && exec \"$@\"";
    let output = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "files::a_mount_point_is_written_in_place_and_says_so",
            "--nocapture",
        ])
        .env(INSIDE, place.std(""))
        .current_dir(place.std(""))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    assert_eq!(
        (place.read("hosts"), place.read("mounted")),
        ("covered".to_owned(), "new".to_owned())
    );
    assert_eq!(place.mode("mounted"), 0o604);
    assert_eq!(place.names(""), ["hosts", "mounted"]);
}

#[test]
fn an_unprivileged_writer_keeps_a_foreign_owner_by_writing_in_place() {
    const INSIDE: &str = "SETPOINT_TEST_FOREIGN";
    if let Some(directory) = std::env::var_os(INSIDE) {
        let path = AbsolutePath::new(std::path::Path::new(&directory).join("shared/f")).unwrap();
        let done = Committer::new().replace(replace(path, "new")).unwrap();
        assert_eq!(done.method, Method::InPlace(InPlaceReason::NotOurs));
        return;
    }
    let Some(place) = Place::of_root() else {
        return;
    };
    place.directory("shared");
    place.chmod("shared", 0o777);
    place.write("shared/f", "old and longer");
    place.chmod("shared/f", 0o666);
    // The copy lies where everybody may run it.
    let program = place.std("test-program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let output = std::process::Command::new("setpriv")
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--inh-caps=-all",
        ])
        .arg(program)
        .args([
            "--exact",
            "files::an_unprivileged_writer_keeps_a_foreign_owner_by_writing_in_place",
        ])
        .env(INSIDE, place.std(""))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    assert_eq!(place.read("shared/f"), "new");
    assert_eq!(fs::metadata(place.std("shared/f")).unwrap().uid(), 0);
    assert_eq!(place.names("shared"), ["f"]);
}

#[test]
fn what_is_no_regular_file_is_not_replaced_nor_opened() {
    let place = Place::new();
    place.directory("d");
    let fifo = place.path("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        fifo.as_path(),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    for (name, found) in [("d", FileType::Directory), ("fifo", FileType::Fifo)] {
        let error = Committer::new()
            .replace(replace(place.path(name), "x"))
            .unwrap_err();
        assert!(
            matches!(error, FileError::WrongType { found: is, .. } if is == found),
            "{error}"
        );
        let error = Entry::at(&place.path(name)).unwrap().open().unwrap_err();
        assert!(
            matches!(error, FileError::WrongType { found: is, .. } if is == found),
            "{error}"
        );
    }
}

#[test]
fn contents_can_be_copied_from_a_file_or_written_by_a_function() {
    let place = Place::new();
    let big = vec![7u8; 300_000];
    place.write("source", &big);
    let source = Entry::at(&place.path("source")).unwrap().open().unwrap();
    let committer = Committer::new();
    committer
        .replace(Replace::new(place.path("copy"), Content::Copy(source)))
        .unwrap();
    assert_eq!(fs::read(place.std("copy")).unwrap(), big);

    let written = Content::Written(Box::new(|file| write!(file, "line {}", 1)));
    committer
        .replace(Replace::new(place.path("copy"), written))
        .unwrap();
    assert_eq!(place.read("copy"), "line 1");

    let failing = Content::Written(Box::new(|file| {
        file.write_all(b"half")?;
        Err(std::io::Error::other("no more"))
    }));
    committer
        .replace(Replace::new(place.path("copy"), failing))
        .unwrap_err();
    assert_eq!(place.read("copy"), "line 1");
    assert_eq!(place.names(""), ["copy", "source"]);
}

#[test]
fn links_are_replaced_atomically_but_not_directories() {
    let place = Place::new();
    let committer = Committer::new();
    committer
        .replace(Replace::link(place.path("current"), "releases/1"))
        .unwrap();
    committer
        .replace(Replace::link(place.path("current"), "releases/2"))
        .unwrap();
    let entry = Entry::at(&place.path("current")).unwrap();
    assert_eq!(entry.read_link().unwrap().unwrap().to_str(), Some("releases/2"));
    assert_eq!(entry.stat_following().unwrap(), None);

    place.write("file", "x");
    committer
        .replace(Replace::link(place.path("file"), "/t"))
        .unwrap();
    assert!(
        Entry::at(&place.path("file"))
            .unwrap()
            .stat()
            .unwrap()
            .unwrap()
            .is_link()
    );

    place.directory("d");
    committer
        .replace(Replace::link(place.path("d"), "/t"))
        .unwrap_err();
    assert_eq!(place.names(""), ["current", "d", "file"]);
}

#[test]
fn a_batch_answers_each_request_in_order() {
    let place = Place::new();
    let requests = (0..300)
        .map(|number| match number {
            7 => replace(place.path("missing/f"), "x"),
            _ => {
                place.directory(&format!("d{}", number % 9));
                replace(
                    place.path(&format!("d{}/f{number}", number % 9)),
                    &number.to_string(),
                )
            }
        })
        .collect();
    let results = Committer::new().replace_many(requests);
    assert_eq!(results.len(), 300);
    for (number, result) in results.iter().enumerate() {
        if number == 7 {
            assert!(result.as_ref().unwrap_err().is_not_found());
        } else {
            assert_eq!(result.as_ref().unwrap().method, Method::Atomically);
            assert_eq!(
                place.read(&format!("d{}/f{number}", number % 9)),
                number.to_string()
            );
        }
    }
}

#[test]
fn the_last_of_two_requests_for_one_path_wins() {
    let place = Place::new();
    let requests = (0..8)
        .map(|number| replace(place.path("f"), &number.to_string()))
        .collect();
    assert!(Committer::new().replace_many(requests).iter().all(Result::is_ok));
    assert_eq!(place.read("f"), "7");
}

#[test]
fn many_threads_share_one_committer() {
    let place = Place::new();
    let committer = Committer::new();
    thread::scope(|scope| {
        for writer in 0..16 {
            let (place, committer) = (&place, &committer);
            scope.spawn(move || {
                for round in 0..10 {
                    let request = replace(place.path(&format!("f{writer}")), &round.to_string());
                    assert_eq!(committer.replace(request).unwrap().method, Method::Atomically);
                    assert_eq!(place.read(&format!("f{writer}")), round.to_string());
                }
            });
        }
    });
    assert_eq!(place.names("").len(), 16);
}

/// Writes down what it is told; panics when it is asked beforehand, or keeps what it is asked about, if so wanted.
struct Listener {
    panics: bool,
    refuses: bool,
    told: std::sync::mpsc::Sender<(u64, bool)>,
}

impl Party for Listener {
    fn before(&self, tickets: &mut Vec<u64>) {
        assert!(!self.panics, "a bug");
        if self.refuses {
            tickets.clear();
        }
    }

    fn ended(&self, results: Vec<(u64, Result<setpoint_host::files::Replaced, FileError>)>) {
        for (ticket, result) in results {
            self.told.send((ticket, result.is_ok())).unwrap();
        }
    }
}

#[test]
fn a_party_is_told_of_each_ticket_and_one_that_panics_holds_nobody_up() {
    let place = Place::new();
    let committer = Committer::new();
    let (told, tickets) = std::sync::mpsc::channel();
    let party = |panics, refuses| -> Arc<dyn Party> {
        let told = told.clone();
        Arc::new(Listener {
            panics,
            refuses,
            told,
        })
    };
    let (good, panicking, refusing) = (party(false, false), party(true, false), party(false, true));
    let mut leads = Vec::new();
    for number in 0..60 {
        let (party, name) = match number % 3 {
            0 => (&good, "good"),
            1 => (&panicking, "panicking"),
            _ => (&refusing, "refusing"),
        };
        let request = replace(place.path(&format!("{name}{number}")), name);
        let prepared = committer.prepare(request).unwrap();
        leads.extend(committer.submit(prepared, party, number));
    }
    assert_eq!(leads.len(), 1, "one commits for all");
    leads.into_iter().for_each(Lead::run);
    drop((good, panicking, refusing, told));
    let mut told: Vec<(u64, bool)> = tickets.iter().collect();
    told.sort_unstable();
    let expected = (0..60).filter(|number| number % 3 != 2);
    assert_eq!(
        told,
        expected
            .map(|number| (number, number % 3 == 0))
            .collect::<Vec<_>>()
    );
    let names = place.names("");
    assert_eq!(names.len(), 20, "no temporary file is left: {names:?}");
    assert!(names.iter().all(|name| name.starts_with("good")));
    committer.replace(replace(place.path("later"), "x")).unwrap();
}

#[test]
fn a_lead_that_goes_away_is_succeeded() {
    let place = Place::new();
    let committer = Committer::new();
    let (told, tickets) = std::sync::mpsc::channel();
    let party: Arc<dyn Party> = Arc::new(Listener {
        panics: false,
        refuses: false,
        told,
    });
    let prepared = committer.prepare(replace(place.path("f"), "x")).unwrap();
    drop(committer.submit(prepared, &party, 5));
    assert_eq!(
        tickets.recv_timeout(std::time::Duration::from_secs(60)),
        Ok((5, true))
    );
    assert_eq!(place.read("f"), "x");
}

#[test]
fn what_was_just_written_is_known_by_its_stamp_and_a_write_in_the_same_tick_shows() {
    let place = Place::new();
    let verified = VerifiedFiles::new();
    let path = place.path("f");
    for round in 0..20u8 {
        let replaced = Committer::new()
            .replace(replace(path.clone(), "as wanted").mode(0o644))
            .unwrap();
        verified.record_written(path.as_path(), &replaced, seven(), false);
        assert!(
            verified.holds(path.as_path(), replaced.stat.stamp(), seven()),
            "{round}"
        );
        // As long as what is there, and at once.
        fs::write(place.std("f"), "tampered!").unwrap();
        let stamp = Entry::at(&path).unwrap().stat().unwrap().unwrap().stamp();
        assert!(!verified.holds(path.as_path(), stamp, seven()), "{round}");
    }
    // Others could have written to it before it was in place: it is read once more.
    let replaced = Committer::new()
        .replace(replace(path.clone(), "as wanted").mode(0o666))
        .unwrap();
    verified.record_written(path.as_path(), &replaced, seven(), false);
    assert!(!verified.holds(path.as_path(), replaced.stat.stamp(), seven()));
}

#[test]
fn temporaries_of_dead_processes_are_swept_and_others_left() {
    let place = Place::new();
    let own = format!("{:x}", std::process::id());
    let parent = std::os::unix::process::parent_id();
    let started = |process: u32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        let field = stat[stat.rfind(')').unwrap() + 1..]
            .split_whitespace()
            .nth(19)
            .unwrap()
            .to_owned();
        format!("{:x}", field.parse::<u64>().unwrap())
    };
    let dead = format!("{TEMPORARY_PREFIX}{own}-1-0123456789abcdef");
    let living = format!(
        "{TEMPORARY_PREFIX}{parent:x}-{}-0123456789abcdef",
        started(parent)
    );
    let foreign = format!("{TEMPORARY_PREFIX}notes.txt");
    for name in [&dead, &living, &foreign] {
        place.write(name, "x");
    }
    Committer::new().replace(replace(place.path("f"), "x")).unwrap();
    let mut expected = vec![living, foreign, "f".to_owned()];
    expected.sort();
    assert_eq!(place.names(""), expected);
}

#[test]
fn comparing_stops_at_lengths_and_differences() {
    let place = Place::new();
    let content = vec![1u8; 200_000];
    place.write("f", &content);
    let entry = Entry::at(&place.path("f")).unwrap();
    let holds = |wanted: &[u8]| entry.open().unwrap().holds(wanted).unwrap();
    assert!(holds(&content));
    assert!(!holds(&content[..199_999]));
    let mut other = content.clone();
    other[199_999] = 2;
    assert!(!holds(&other));
    place.write("empty", "");
    assert!(
        Entry::at(&place.path("empty"))
            .unwrap()
            .open()
            .unwrap()
            .holds(b"")
            .unwrap()
    );
    assert!(
        !Entry::at(&place.path("empty"))
            .unwrap()
            .open()
            .unwrap()
            .holds(b"x")
            .unwrap()
    );

    place.write("g", &other);
    let same = |left: &str, right: &str| {
        let open = |name: &str| Entry::at(&place.path(name)).unwrap().open().unwrap();
        same_content(&mut open(left), &mut open(right)).unwrap()
    };
    assert!(same("f", "f"));
    assert!(!same("f", "g"));
    place.write("h", &other);
    assert!(same("g", "h"));
    assert!(!same("g", "empty"));
}

#[test]
fn files_of_proc_are_compared_although_their_length_is_said_to_be_nothing() {
    let path = AbsolutePath::new("/proc/sys/kernel/ostype").unwrap();
    assert!(
        Entry::at(&path)
            .unwrap()
            .open()
            .unwrap()
            .holds(b"Linux\n")
            .unwrap()
    );
    assert!(!Entry::at(&path).unwrap().open().unwrap().holds(b"Linux").unwrap());
    assert_eq!(Entry::at(&path).unwrap().read().unwrap(), b"Linux\n");
}

#[test]
fn mode_and_owner_are_those_of_the_entry_and_never_of_a_links_target() {
    let place = Place::new();
    place.write("f", "x");
    place.chmod("f", 0o600);
    place.link("l", "f");
    let link = Entry::at(&place.path("l")).unwrap();
    link.set_mode(0o777).unwrap_err();
    assert_eq!(place.mode("f"), 0o600);
    if is_root() {
        link.set_owner(Some(USER), None).unwrap();
        assert_eq!(fs::symlink_metadata(place.std("l")).unwrap().uid(), USER);
        assert_eq!(fs::metadata(place.std("f")).unwrap().uid(), 0);
    }
    Entry::at(&place.path("f")).unwrap().set_mode(0o1644).unwrap();
    assert_eq!(place.mode("f"), 0o1644);
}

#[test]
fn missing_attributes_are_nothing_and_can_be_removed_again() {
    let place = Place::new();
    place.write("f", "x");
    let entry = Entry::at(&place.path("f")).unwrap();
    assert_eq!(entry.attribute("user.a").unwrap(), None);
    entry.set_attribute("user.a", &[9; 3000]).unwrap();
    assert_eq!(entry.attribute("user.a").unwrap(), Some(vec![9; 3000]));
    entry.remove_attribute("user.a").unwrap();
    entry.remove_attribute("user.a").unwrap();
    assert_eq!(entry.attribute("user.a").unwrap(), None);
    assert_eq!(entry.security_context().unwrap(), None);
}

#[test]
fn parents_are_made_with_ordinary_modes() {
    let place = Place::new();
    Entry::create_directories(&place.path("a/b/c/"), 0o700, 0o777).unwrap();
    assert_eq!(place.mode("a/b/c"), 0o700);
    place.directory("by-hand");
    assert_eq!(place.mode("a/b"), place.mode("by-hand"));
    Entry::create_directories(&place.path("a/b/c/"), 0o755, 0o777).unwrap();
    assert_eq!(place.mode("a/b/c"), 0o700);

    place.write("file", "");
    let error = Entry::create_directories(&place.path("file/x/y"), 0o755, 0o777).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotADirectory);
    let error = Entry::create_directories(&place.path("file"), 0o755, 0o777).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
}

#[test]
fn exclusive_creation_refuses_whatever_is_there() {
    let place = Place::new();
    let entry = Entry::at(&place.path("f")).unwrap();
    entry.create_file(0o600).unwrap();
    assert_eq!(
        entry.create_file(0o600).unwrap_err().kind(),
        ErrorKind::AlreadyExists
    );
    place.link("dangling", "nowhere");
    let dangling = Entry::at(&place.path("dangling")).unwrap();
    assert_eq!(
        dangling.create_file(0o600).unwrap_err().kind(),
        ErrorKind::AlreadyExists
    );
}

#[test]
fn missing_and_obstructed_paths_are_told_apart() {
    let place = Place::new();
    place.write("file", "");
    assert!(Entry::at(&place.path("no/where")).unwrap_err().is_not_found());
    let obstructed = Entry::at(&place.path("file/x")).unwrap_err();
    assert_eq!(obstructed.kind(), ErrorKind::NotADirectory);
    assert_eq!(
        Entry::at(&place.path("file/"))
            .unwrap()
            .stat()
            .unwrap()
            .unwrap()
            .file_type,
        FileType::Regular
    );
    let long = "n".repeat(256);
    Entry::at(&place.path(&long)).unwrap().stat().unwrap_err();
    let root = Entry::at(&AbsolutePath::new("/").unwrap()).unwrap();
    assert!(root.stat().unwrap().unwrap().is_directory());
    root.remove_tree().unwrap_err();
}

#[test]
fn links_on_the_way_are_followed_and_loops_end() {
    let place = Place::new();
    place.directory("real/deep");
    place.write("real/deep/f", "x");
    place.link("short", "real/./deep/../deep");
    place.link("absolute", place.std("short"));
    place.link("loop", "loop");
    assert_eq!(Entry::at(&place.path("short/f")).unwrap().read().unwrap(), b"x");
    assert_eq!(
        Entry::at(&place.path("absolute/f")).unwrap().read().unwrap(),
        b"x"
    );
    assert_eq!(
        Entry::at(&place.path("short/../deep/f")).unwrap().read().unwrap(),
        b"x"
    );
    let error = Entry::at(&place.path("loop/f")).unwrap_err();
    assert!(error.to_string().contains("symbolic link"), "{error}");
    let end = Entry::at(&place.path("absolute")).unwrap().follow().unwrap();
    assert!(end.stat().unwrap().unwrap().is_directory());
    let listed = Directory::open(&place.path("absolute")).unwrap().list().unwrap();
    assert_eq!(listed.len(), 1);
    // As far as the kernel itself goes, and no further.
    place.link("0", "real/deep");
    for number in 1..42 {
        let path = format!(
            "{}/f",
            place
                .link(&number.to_string(), (number - 1).to_string())
                .display()
        );
        let followed = Entry::at(&AbsolutePath::new(path.as_str()).unwrap()).is_ok();
        assert_eq!(followed, fs::metadata(path).is_ok(), "{} links", number + 1);
    }
}

#[test]
fn a_verified_file_is_known_until_it_changes() {
    let place = Place::new();
    place.write("f", "x");
    let entry = Entry::at(&place.path("f")).unwrap();
    let verified = VerifiedFiles::new();
    let path = entry.path();
    let stamp = entry.stat().unwrap().unwrap().stamp();
    let mut later = Timestamp::now();
    later.seconds += 60;
    verified.record(&path, stamp, seven(), later);
    assert!(verified.holds(&path, entry.stat().unwrap().unwrap().stamp(), seven()));
    entry.set_mode(0o600).unwrap();
    assert!(!verified.holds(&path, entry.stat().unwrap().unwrap().stamp(), seven()));
}

#[test]
fn entries_are_listed_by_name() {
    let place = Place::new();
    place.write("b", "");
    place.directory("a");
    place.link("c", "a");
    let directory = Arc::new(Directory::open(&place.path("")).unwrap());
    let listed: Vec<_> = directory
        .list()
        .unwrap()
        .into_iter()
        .map(|entry| (entry.name, entry.file_type))
        .collect();
    assert_eq!(
        listed,
        [
            ("a".into(), FileType::Directory),
            ("b".into(), FileType::Regular),
            ("c".into(), FileType::Link)
        ]
    );
    assert_eq!(directory.entry("a").open_directory().unwrap().list().unwrap(), []);
    directory.entry("c").open_directory().unwrap_err();
}

#[test]
fn an_empty_directory_is_removed_and_one_with_something_in_it_is_not() {
    let place = Place::new();
    place.directory("empty");
    place.directory("full/inner");
    Entry::at(&place.path("empty"))
        .unwrap()
        .remove_directory()
        .unwrap();
    assert!(!place.std("empty").exists());
    let error = Entry::at(&place.path("full"))
        .unwrap()
        .remove_directory()
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DirectoryNotEmpty, "{error}");
    assert!(place.std("full/inner").exists());
}

#[test]
fn only_a_directory_is_opened_as_one() {
    let place = Place::new();
    place.directory("directory");
    place.write("file", "");
    place.link("link", place.std("directory"));
    assert!(
        Entry::at(&place.path("directory"))
            .unwrap()
            .open_directory()
            .is_ok()
    );
    for name in ["file", "link"] {
        let error = Entry::at(&place.path(name))
            .unwrap()
            .open_directory()
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotADirectory, "{name}: {error}");
    }
}

#[test]
fn a_hard_link_is_refused_only_where_somebody_else_may_have_put_it() {
    let Some(place) = Place::of_root() else { return };
    let of_everybody = 0o1777;
    for (directory_of, mode, file_of, links, is_refused) in [
        (0, of_everybody, USER, 1, false),
        (0, of_everybody, USER, 2, true),
        (0, of_everybody, USER, 3, true),
        (0, of_everybody, 0, 2, true),
        (0, 0o755, USER, 2, false),
        (USER, 0o755, USER, 2, false),
        (USER, 0o775, USER, 2, true),
        (USER, 0o755, 0, 2, true),
    ] {
        let what = format!("{directory_of} {mode:o} {file_of} {links}");
        let directory = format!("{directory_of}-{mode:o}-{file_of}-{links}");
        place.directory(&directory);
        let name = format!("{directory}/file");
        let path = place.write(&name, "");
        place.chown(&name, file_of);
        for link in 1..links {
            fs::hard_link(&path, place.std(&format!("{directory}/link{link}"))).unwrap();
        }
        place.chown(&directory, directory_of);
        place.chmod(&directory, mode);
        let changed = Entry::at(&place.path(&name)).unwrap().set_mode(0o600);
        match changed {
            Ok(()) => assert!(!is_refused, "{what}"),
            Err(error) => {
                assert!(is_refused, "{what}: {error}");
                assert!(
                    matches!(error, FileError::UnsafeHardLink { .. }),
                    "{what}: {error}"
                );
                assert_ne!(place.mode(&name), 0o600, "{what}");
            }
        }
    }
}

#[test]
fn an_open_file_is_read_like_any_other() {
    let place = Place::new();
    place.write("f", "some text");
    let mut text = String::new();
    let mut file = Entry::at(&place.path("f")).unwrap().open().unwrap();
    std::io::Read::read_to_string(&mut file, &mut text).unwrap();
    assert_eq!(text, "some text");
}
