//! What our own process is like before it does anything as root: its memory, its mask for new files, where commands are looked for, and
//! whose text it obeys.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::fs::Mode;
use rustix::process::{DumpableBehavior, geteuid, set_dumpable_behavior, umask};
use rustix::thread::disable_transparent_huge_pages;
use setpoint_diagnostics::visible;
use setpoint_programs::command_path::{WRITABLE_BY_OTHERS, open_to_others};

use crate::output::{Output, write_error_stream};

/// Keeps secrets out of memory dumps and away from debuggers of other users, and sets the mask for new files to 022, for commands too, however the
/// process was started. Root only: without its rights a process that is not dumpable cannot open its own descriptors.
pub(crate) fn harden() {
    if !geteuid().is_root() {
        return;
    }
    // A kernel that refuses leaves us as we are.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    umask(Mode::from_raw_mode(WRITABLE_BY_OTHERS));
}

/// Whether memory is taken in huge pages from here on. Memory comes several times as fast with them, which suits what ends soon; but of
/// each a process that stays holds two megabytes where it needs a few kilobytes.
pub(crate) fn use_huge_pages(wanted: bool) {
    // A kernel without them refuses, and all is well.
    let _ = disable_transparent_huge_pages(!wanted);
}

/// Says when others than root, or than who became root with `sudo`, can change a program that root obeys.
pub(crate) fn warn_of_foreign_text(files: &[PathBuf], output: &Output) {
    if !geteuid().is_root() {
        return;
    }
    let caller = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
    let mut judged: HashMap<PathBuf, Option<String>> = HashMap::new();
    let mut reason = |file: &PathBuf| {
        let found = std::fs::metadata(file).ok()?;
        if found.uid() != 0 && Some(found.uid()) != caller {
            return Some(format!("it belongs to the user with the number {}", found.uid()));
        }
        if found.mode() & WRITABLE_BY_OTHERS != 0 {
            return Some(format!("its mode is {:04o}", found.mode() & 0o7777));
        }
        // A link is judged where it lies, and what it leads to as well.
        let places = [std::path::absolute(file), std::fs::canonicalize(file)];
        let directories = places.iter().flatten().filter_map(|place| place.parent());
        let mut reasons = directories.map(|directory| {
            let judge = || match open_to_others(directory, caller) {
                Ok(open) => open.map(|open| {
                    let open = open.display().to_string();
                    format!(
                        "they can put another file or directory in its place in `{}`",
                        visible(&open)
                    )
                }),
                Err(error) => Some(error.to_string()),
            };
            judged
                .entry(directory.to_path_buf())
                .or_insert_with(judge)
                .clone()
        });
        reasons.find_map(|reason| reason)
    };
    let mut foreign = files.iter().filter_map(|file| Some((file, reason(file)?)));
    let Some((file, reason)) = foreign.next() else {
        return;
    };
    let more = match foreign.count() {
        0 => String::new(),
        1 => "; so it is with 1 more file".to_owned(),
        more => format!("; so it is with {more} more files"),
    };
    let file = file.display().to_string();
    output.warning(format!(
        "others than root can change `{}`, which root obeys: {reason}{more}",
        visible(&file)
    ));
}

/// Makes a panic print that it is a bug in Setpoint, and what to send with a report.
pub(crate) fn report_panics() {
    std::panic::set_hook(Box::new(|info| {
        let message = info.payload_as_str().unwrap_or("no message");
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let text = format!(
            "error: a bug in setpoint: {}\n  at {place}, version {}, {} on {}\n  \
             please report it with these lines and the program that led to it; RUST_BACKTRACE=1 adds where it came from\n",
            visible(message),
            env!("CARGO_PKG_VERSION"),
            std::env::consts::ARCH,
            std::env::consts::OS,
        );
        let _ = write_error_stream(&text);
        let backtrace = std::backtrace::Backtrace::capture();
        if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
            let _ = write_error_stream(&format!("{backtrace}\n"));
        }
    }));
}
