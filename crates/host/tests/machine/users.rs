//! Accounts of the machine.

use setpoint_host::users::{AccountError, Users};

#[test]
fn names_and_numbers_lead_to_the_same_account() {
    let users = Users::new();
    for _ in 0..2 {
        assert_eq!(users.user("root").unwrap(), 0);
        assert_eq!(users.user("0").unwrap(), 0);
        assert_eq!(users.group("root").unwrap(), 0);
        assert_eq!(users.group("0").unwrap(), 0);
    }
    let root = users.account("root").unwrap().unwrap();
    assert_eq!((root.name.as_str(), root.uid, root.gid), ("root", 0, 0));
    assert_eq!(Some(root), users.account("0").unwrap());
    assert_eq!(users.user_name(0), "root");
    assert_eq!(users.group_name(0), "root");
}

#[test]
fn a_number_without_an_account_is_used_as_it_is() {
    let users = Users::new();
    assert_eq!(users.user("54321").unwrap(), 54321);
    assert_eq!(users.group("54321").unwrap(), 54321);
    assert_eq!(users.account("54321").unwrap(), None);
    assert_eq!(users.user_name(54321), "54321");
}

#[test]
fn what_is_neither_is_an_error_naming_it() {
    let users = Users::new();
    for text in [
        "no-such-user-here",
        "",
        "-1",
        "+1",
        "4294967295",
        "99999999999",
        "0x1",
    ] {
        assert!(
            matches!(users.user(text), Err(AccountError::NoUser { name }) if name == text),
            "{text}"
        );
        assert!(
            matches!(users.group(text), Err(AccountError::NoGroup { name }) if name == text),
            "{text}"
        );
    }
}
