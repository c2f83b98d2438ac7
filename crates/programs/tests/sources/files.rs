//! Files, as they come, change and go.

use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

use crate::machine::{Machine, replace};
use setpoint_testing::place::{Place, shell};

#[test]
fn a_file_is_read_through_all_that_can_happen_to_it() {
    let machine = Machine::new();
    let (directory, path) = (machine.path("a"), machine.path("a/b/file"));
    let mut content = machine.follow(&["os"], &format!("os.readfile(\"{path}\") <|> \"missing\""));
    assert_eq!(content.first().as_deref(), Ok("\"missing\""));
    fs::create_dir_all(machine.path("a/b")).unwrap();
    fs::write(&path, "created").unwrap();
    content.becomes("\"created\"");
    content.changes();
    replace(&path, "replaced");
    content.becomes("\"replaced\"");
    assert_eq!(content.changes(), 1, "a replaced file is never seen half");
    fs::write(&path, "written").unwrap();
    content.becomes("\"written\"");
    fs::remove_file(&path).unwrap();
    content.becomes("\"missing\"");
    fs::write(&path, "again").unwrap();
    content.becomes("\"again\"");
    fs::rename(&directory, machine.path("elsewhere")).unwrap();
    content.becomes("\"missing\"");
    fs::create_dir_all(machine.path("new/b")).unwrap();
    fs::write(machine.path("new/b/file"), "moved here").unwrap();
    fs::rename(machine.path("new"), &directory).unwrap();
    content.becomes("\"moved here\"");
}

#[test]
fn what_is_not_the_content_of_a_file_is_caught_and_never_read() {
    let machine = Machine::new();
    let path = machine.path("f");
    let mut content = machine.follow(&["os"], &format!("os.readfile(\"{path}\") <|> \"not there\""));
    assert_eq!(content.first().as_deref(), Ok("\"not there\""));
    let good = |content: &mut crate::program::Followed| {
        replace(&path, "good");
        content.becomes("\"good\"");
    };
    good(&mut content);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    content.becomes("\"not there\"");
    fs::remove_dir(&path).unwrap();
    good(&mut content);
    // Whoever opened this for reading would wait for a writer, and whoever read it to its end would need 70 TiB.
    fs::remove_file(&path).unwrap();
    shell(&format!("mkfifo {path}"));
    content.becomes("\"not there\"");
    good(&mut content);
    shell(&format!("ln -sf /dev/zero {path}"));
    content.becomes("\"not there\"");
    good(&mut content);
    let large = machine.path("large");
    fs::File::create(&large).unwrap().set_len(70 << 20).unwrap();
    fs::rename(&large, &path).unwrap();
    content.becomes("\"not there\"");
    for path in ["relative", "", "/proc/kmsg", "/dev/zero"] {
        let mut content = machine.follow(&["os"], &format!("os.readfile(\"{path}\") <|> \"refused\""));
        assert_eq!(content.first().as_deref(), Ok("\"refused\""), "{path}");
        let mut content = machine.follow(
            &["golang/os"],
            &format!("golang_os.read_file(\"{path}\") <|> \"refused\""),
        );
        assert_eq!(content.first().as_deref(), Ok("\"refused\""), "{path}");
    }
}

#[test]
fn a_users_link_to_what_is_not_theirs_is_not_followed() {
    let machine = Machine::new();
    let (secret, home) = (machine.path("secret"), machine.path("home"));
    fs::write(&secret, "of root").unwrap();
    fs::create_dir(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(65534), Some(65534)).unwrap();
    shell(&format!("chmod 755 {}", machine.directory().display()));
    for (name, command) in [("link", "ln -s"), ("name", "ln")] {
        let path = format!("{home}/{name}");
        shell(&format!(
            "{command} {secret} {path}; chown -h 65534 {path}; chown 0 {secret}"
        ));
        for call in ["os.readfile", "golang_os.read_file"] {
            let expression = format!("{call}(\"{path}\") <|> \"refused\"");
            let imports = if call == "os.readfile" {
                ["os"]
            } else {
                ["golang/os"]
            };
            let mut content = machine.follow(&imports, &expression);
            assert_eq!(content.first().as_deref(), Ok("\"refused\""), "{expression}");
        }
    }
    // One's own is one's own.
    let own = format!("{home}/own");
    fs::write(&own, "of the user").unwrap();
    std::os::unix::fs::chown(&own, Some(65534), Some(65534)).unwrap();
    let path = format!("{home}/to-own");
    shell(&format!("ln -s {own} {path}; chown -h 65534 {path}"));
    let mut content = machine.follow(&["os"], &format!("os.readfile(\"{path}\")"));
    assert_eq!(content.first().as_deref(), Ok("\"of the user\""));
}

/// Rewrites a file in place, piece by piece; the longest pause between two pieces.
fn rewrite(path: &str, letter: u8) -> Duration {
    let mut longest = Duration::ZERO;
    let mut file = fs::File::create(path).unwrap();
    let mut before = Instant::now();
    for _ in 0..400 {
        file.write_all(&[letter; 256]).unwrap();
        let now = Instant::now();
        longest = longest.max(now - before);
        before = now;
        std::thread::yield_now();
    }
    longest
}

#[test]
fn a_file_that_is_being_rewritten_is_never_seen_half() {
    const PIECES: usize = 400 * 256;
    // A busy machine may keep the writer from writing for so long that the file counts as finished: such a try says nothing.
    let told = (b'a'..=b'z').any(|letter| {
        let machine = Machine::new();
        let path = machine.path("f");
        rewrite(&path, b'.');
        let mut length = machine.follow(&["os"], &format!("len(os.readfile(\"{path}\"))"));
        assert_eq!(length.first(), Ok(PIECES.to_string()));
        let mut content = machine.follow(&["os"], &format!("os.readfile(\"{path}\")"));
        content.first().unwrap();
        let longest = rewrite(&path, letter);
        let last = String::from_utf8(vec![letter; PIECES]).unwrap();
        content.becomes(&format!("\"{last}\""));
        length.now().unwrap();
        longest < Duration::from_millis(40) && {
            assert_eq!(length.history, [Ok(PIECES.to_string())], "as long as always");
            true
        }
    });
    assert!(told, "no try in which the writer was not interrupted");
}

#[test]
fn a_writer_that_keeps_the_file_open_is_waited_for_only_a_moment() {
    let machine = Machine::new();
    let path = machine.path("log");
    let mut file = fs::File::create(&path).unwrap();
    let mut content = machine.follow(&["os"], &format!("os.readfile(\"{path}\")"));
    assert_eq!(content.first().as_deref(), Ok("\"\""));
    file.write_all(b"one").unwrap();
    content.becomes("\"one\"");
    file.write_all(b", two").unwrap();
    content.becomes("\"one, two\"");
}

#[test]
fn another_name_moves_the_watch() {
    let machine = Machine::new();
    let (one, two) = (machine.path("one"), machine.path("two"));
    fs::write(&one, "1").unwrap();
    fs::write(&two, "2").unwrap();
    machine.set_text("path", &one);
    let mut content = machine.follow(&["os", "value"], "os.readfile(value.get_str(\"path\")->value)");
    assert_eq!(content.first().as_deref(), Ok("\"1\""));
    machine.set_text("path", &two);
    content.becomes("\"2\"");
    content.changes();
    fs::write(&one, "not looked at").unwrap();
    replace(&two, "3");
    content.becomes("\"3\"");
    assert_eq!(content.changes(), 1);
}

#[test]
fn existence_is_followed_through_links() {
    let machine = Machine::new();
    let (link, target) = (machine.path("link"), machine.path("d/target"));
    let mut exists = machine.follow(&["os"], &format!("os.file_exists(\"{link}\")"));
    assert_eq!(exists.first().as_deref(), Ok("false"));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    fs::create_dir(machine.path("d")).unwrap();
    fs::create_dir(&target).unwrap();
    exists.becomes("true");
    fs::remove_dir(&target).unwrap();
    exists.becomes("false");
    fs::write(&target, "").unwrap();
    exists.becomes("true");
    fs::remove_file(&link).unwrap();
    exists.becomes("false");
}

#[test]
fn users_come_and_go() {
    let place = Place::namespaces(
        "files::users_come_and_go",
        &["--mount", "--propagation", "private"],
    );
    place.needing(&["useradd", "userdel"]).run(|| {
        // Accounts of the test only: an overlay over `/etc` that goes with the namespace.
        let machine = Machine::new();
        let directory = machine.directory().display();
        shell(&format!(
            "mount -t tmpfs tmpfs {directory}; mkdir {directory}/up {directory}/work
             mount -t overlay overlay -o lowerdir=/etc,upperdir={directory}/up,workdir={directory}/work /etc"
        ));
        let mut exists = machine.follow(&["os"], "os.user_exists(\"setpoint-guest\")");
        assert_eq!(exists.first().as_deref(), Ok("false"));
        shell("useradd --no-create-home setpoint-guest");
        exists.becomes("true");
        shell("userdel setpoint-guest");
        exists.becomes("false");
        shell(&format!("umount /etc; umount {directory}"));
    });
}
