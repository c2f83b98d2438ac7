//! Files, as they come, change and go.

use std::fs;

use crate::machine::{Machine, replace};
use crate::place::{Place, shell};

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
fn a_missing_file_is_caught_and_another_trouble_is_not() {
    let machine = Machine::new();
    let path = machine.path("f");
    let mut content = machine.follow(&["os"], &format!("os.readfile(\"{path}\") <|> \"missing\""));
    assert_eq!(content.first().as_deref(), Ok("\"missing\""));
    fs::create_dir(&path).unwrap();
    assert!(content.fails().contains("error reading file"));
    fs::remove_dir(&path).unwrap();
    content.becomes("\"missing\"");
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
