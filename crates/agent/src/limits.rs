//! Limits of the system that an agent raises where it may.

/// Raises the limit of open files: thousands of commands at a time need descriptors. Where that fails, they wait for one another.
pub(crate) fn raise_open_file_limit() {
    let _ = setpoint_host::raise_open_file_limit();
}

/// Raises what the kernel lets one user watch, where it is lower and that is allowed. Where not, many files are too many.
pub(crate) fn raise_watch_limits() {
    for (name, wanted) in [("max_user_instances", 512u64), ("max_user_watches", 242_940)] {
        let path = format!("/proc/sys/fs/inotify/{name}");
        let is = std::fs::read_to_string(&path)
            .ok()
            .and_then(|text| text.trim().parse::<u64>().ok());
        if is.is_some_and(|is| is < wanted) {
            let _ = std::fs::write(&path, wanted.to_string());
        }
    }
}
