//! Our own state on disk.

use crate::place::{Place, is_root};
use setpoint_host::files::Committer;
use setpoint_host::state::{
    LockError, PrefixLock, StateDirectory, StateError, Versioned, identity_directory,
};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

#[test]
fn directories_and_files_are_private() {
    let place = Place::new();
    let prefix = StateDirectory::open(&place.path("var/lib/setpoint")).unwrap();
    assert_eq!(place.mode("var/lib/setpoint"), 0o700);
    place.directory("by-hand");
    assert_eq!(place.mode("var/lib"), place.mode("by-hand"));

    place.directory("var/lib/setpoint/loose");
    place.chmod("var/lib/setpoint/loose", 0o775);
    assert_eq!(
        prefix.find("tight").unwrap().map(|found| found.path().clone()),
        None
    );
    for name in ["tight", "loose"] {
        let inner = prefix.subdirectory(name).unwrap();
        inner.write(&Committer::new(), "secret", "x").unwrap();
        assert_eq!(place.mode(&format!("var/lib/setpoint/{name}")), 0o700);
        assert_eq!(place.mode(&format!("var/lib/setpoint/{name}/secret")), 0o600);
        assert_eq!(
            prefix.find(name).unwrap().unwrap().read("secret").unwrap(),
            Some(b"x".to_vec())
        );
    }
    assert_eq!(prefix.subdirectories().unwrap(), ["loose", "tight"]);
    assert_eq!(prefix.files().unwrap(), [""; 0]);
    prefix.remove("loose").unwrap();
    prefix.remove("loose").unwrap();
    assert_eq!(prefix.subdirectories().unwrap(), ["tight"]);
}

#[test]
fn versioned_files_come_back_with_their_version() {
    let place = Place::new();
    let state = StateDirectory::open(&place.path("s")).unwrap();
    let committer = Committer::new();
    assert_eq!(state.read_versioned("f").unwrap(), None);
    for (version, payload) in [(3, &b"a\nb\0\xff"[..]), (4, b"")] {
        state.write_versioned(&committer, "f", version, payload).unwrap();
        let payload = payload.to_vec();
        assert_eq!(
            state.read_versioned("f").unwrap(),
            Some(Versioned { version, payload })
        );
    }
    // A crash can cut the first write.
    for cut in ["", "setpoint-state", "setpoint-state 1"] {
        place.write("s/f", cut);
        assert_eq!(state.read_versioned("f").unwrap(), None, "{cut}");
        state.append_versioned("f", 7, b"x\n").unwrap();
        let payload = b"x\n".to_vec();
        assert_eq!(
            state.read_versioned("f").unwrap(),
            Some(Versioned { version: 7, payload })
        );
    }
    for broken in ["setpoint-state \nx", "something else\n"] {
        place.write("s/f", broken);
        let error = state.read_versioned("f").unwrap_err();
        assert!(error.to_string().contains("not a state file"), "{error}");
    }
}

#[test]
fn identities_have_directories_of_their_own() {
    assert_eq!(identity_directory("file", "/etc/motd"), "file-L2V0Yy9tb3Rk");
    let long = "x".repeat(5000);
    let names = [
        identity_directory("file", ""),
        identity_directory("file", "a"),
        identity_directory("http:server", "a"),
        identity_directory("file", &long),
        identity_directory("file", &long[1..]),
        identity_directory("exec", &long),
    ];
    for name in &names {
        assert!(name.len() <= 200 && !name.contains('/'), "{name}");
    }
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}

#[test]
fn a_second_process_is_told_who_holds_the_prefix() {
    if let Some(prefix) = std::env::var_os("SETPOINT_TEST_PREFIX") {
        let path = setpoint_host::files::AbsolutePath::new(prefix).unwrap();
        let _lock = PrefixLock::acquire(&StateDirectory::open(&path).unwrap()).unwrap();
        println!("locked");
        // Killed by the other half of this test.
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).unwrap();
        return;
    }
    let place = Place::new();
    let prefix = StateDirectory::open(&place.path("p")).unwrap();
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "state::a_second_process_is_told_who_holds_the_prefix",
            "--nocapture",
        ])
        .env("SETPOINT_TEST_PREFIX", place.std("p"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("locked")));

    let error = PrefixLock::acquire(&prefix).unwrap_err();
    assert!(
        matches!(&error, LockError::Held { holder, .. } if *holder == Some(other.id())),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .ends_with(&format!("in use by process {}", other.id())),
        "{error}"
    );

    other.kill().unwrap();
    other.wait().unwrap();
    let lock = PrefixLock::acquire(&prefix).unwrap();
    assert!(matches!(
        PrefixLock::acquire(&prefix),
        Err(LockError::Held { holder, .. }) if holder == Some(std::process::id())
    ));
    drop(lock);
    let _again = PrefixLock::acquire(&prefix).unwrap();
}

#[test]
fn a_directory_that_others_could_have_prepared_is_not_used() {
    let place = Place::new();
    place.directory("open");
    for mode in [0o777, 0o702] {
        place.chmod("open", mode);
        let error = StateDirectory::open(&place.path("open")).unwrap_err();
        assert!(matches!(error, StateError::Writable { .. }), "{mode:o}: {error}");
        // Nor is one below it, there or not.
        let error = StateDirectory::open(&place.path("open/inner/prefix")).unwrap_err();
        assert!(
            matches!(error, StateError::Replaceable { .. }),
            "{mode:o}: {error}"
        );
        assert_eq!(place.names("open"), [""; 0]);
    }
    // In a sticky directory nobody can replace what is ours.
    place.chmod("open", 0o1777);
    StateDirectory::open(&place.path("open/prefix")).unwrap();
    place.chmod("open", 0o755);
    StateDirectory::open(&place.path("open")).unwrap();

    // A link to one is judged where it leads to.
    place.directory("shared/prefix");
    place.chmod("shared", 0o777);
    place.link("link", "shared/prefix");
    let error = StateDirectory::open(&place.path("link")).unwrap_err();
    assert!(matches!(error, StateError::Replaceable { .. }), "{error}");

    if is_root() {
        place.directory("theirs");
        place.chown("theirs", 65534);
        let error = StateDirectory::open(&place.path("theirs")).unwrap_err();
        assert!(
            matches!(error, StateError::Foreign { owner: 65534, .. }),
            "{error}"
        );
        let error = StateDirectory::open(&place.path("theirs/prefix")).unwrap_err();
        assert!(matches!(error, StateError::Replaceable { .. }), "{error}");
    }
}
