//! Any text as the address of an SSH server, as a key of a host, or as a file of known hosts: it is one or is refused with a sentence, and what is
//! shown of an address is read as the same one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use setpoint_host::ssh::{HostKey, SshAddress, known_keys};

fuzz_target!(|text: &str| {
    match SshAddress::parse(text) {
        Ok(address) => {
            let has_plain_user = address.user.bytes().all(|letter| letter.is_ascii_alphanumeric());
            if has_plain_user {
                let again = SshAddress::parse(&address.to_string()).expect("it was one");
                assert_eq!((&again.user, &again.host, again.port), (&address.user, &address.host, address.port));
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Err(error) = HostKey::parse(text) {
        assert!(!error.to_string().is_empty());
    }
    for known in known_keys(text, "host", 22) {
        assert!(known.line <= text.lines().count());
    }
});
