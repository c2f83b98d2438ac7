//! Any bytes as the record of what undoes a resource: it is used only if it is that of the identity in the name of its file, and what
//! is not used is told. Nobody who only looks changes a file.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use setpoint_engine::{KindSpec, read_reversals};
use setpoint_host::files::AbsolutePath;
use setpoint_resources::KINDS;

/// A prefix in memory with nothing but a place for one record.
static PREFIX: LazyLock<PathBuf> = LazyLock::new(|| {
    let prefix = PathBuf::from(format!("/dev/shm/setpoint-fuzz-{}", std::process::id()));
    fs::create_dir_all(prefix.join("engine/reversals")).expect("a file system in memory");
    prefix
});

fuzz_target!(|bytes: &[u8]| {
    // The name of `file[x]`.
    let path = PREFIX.join("engine/reversals/file-eA");
    // What looks like the inside of a record is given its first line, so that it is looked into.
    let header: &[u8] = if bytes.starts_with(b"{") { b"setpoint-state 1\n" } else { b"" };
    let bytes = [header, bytes].concat();
    fs::write(&path, &bytes).expect("there is space");
    let prefix = AbsolutePath::new(PREFIX.as_os_str()).expect("it is absolute");
    let kinds: Vec<KindSpec> = KINDS.iter().map(|kind| **kind).collect();
    let found = read_reversals(&prefix, &kinds).expect("the directory can be read");
    assert_eq!(found.resources.len() + found.unusable.len(), 1);
    for resource in &found.resources {
        assert!(resource.meta.is_reversal && *resource.id.name == *"x");
    }
    assert_eq!(fs::read(&path).expect("it is still there"), bytes);
});
