//! Who else may do what: reading and removing access lists on a real file system.

use crate::place::Place;
use setpoint_host::files::Entry;

const OWN: &str = "system.posix_acl_access";
const INHERITED: &str = "system.posix_acl_default";

/// A list in the kernel's form: version 2, then tag, permissions, and the number of the user or group.
fn list(users: &[u32]) -> Vec<u8> {
    let mut bytes = 2u32.to_le_bytes().to_vec();
    let named = users.iter().map(|user| (0x02u16, 4u16, *user));
    let entries = [(0x01, 7, u32::MAX)].into_iter().chain(named).chain([
        (0x04, 5, u32::MAX),
        (0x10, 5, u32::MAX),
        (0x20, 0, u32::MAX),
    ]);
    for (tag, permissions, number) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(number.to_le_bytes());
    }
    bytes
}

#[test]
fn what_a_directory_hands_on_is_told_whole_and_removed() {
    let place = Place::new();
    place.directory("d");
    let entry = Entry::at(&place.path("d")).unwrap();
    assert_eq!(entry.access_lists().unwrap(), None);
    entry.set_attribute(OWN, &list(&[1000])).unwrap();
    entry.set_attribute(INHERITED, &list(&[1001])).unwrap();
    assert_eq!(
        entry.access_lists().unwrap().as_deref(),
        Some(
            "user:1000:r--, default:user::rwx, default:user:1001:r--, default:group::r-x, default:mask::r-x, \
             default:other::---"
        )
    );
    entry.remove_access_lists().unwrap();
    assert_eq!(entry.access_lists().unwrap(), None);
    entry.remove_access_lists().unwrap();
}

#[test]
fn a_file_has_a_list_of_its_own_and_may_have_none() {
    let place = Place::new();
    place.write("f", "");
    let entry = Entry::at(&place.path("f")).unwrap();
    entry.remove_access_lists().unwrap();
    entry.set_attribute(OWN, &list(&[1000])).unwrap();
    assert_eq!(entry.access_lists().unwrap().as_deref(), Some("user:1000:r--"));
    entry.remove_access_lists().unwrap();
    assert_eq!(entry.access_lists().unwrap(), None);
}

#[test]
fn a_list_of_many_users_is_told_whole() {
    let place = Place::new();
    place.write("f", "");
    let entry = Entry::at(&place.path("f")).unwrap();
    let users: Vec<u32> = (2000..2100).collect();
    entry.set_attribute(OWN, &list(&users)).unwrap();
    let told = entry.access_lists().unwrap().expect("there is a list");
    assert_eq!(told.split(", ").count(), 100);
    assert!(told.ends_with("user:2099:r--"), "{told}");
}
