//! What the kernel says about a process (`proc(5)`).

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use super::Running;

/// The threads of a process by number.
pub type Threads = BTreeSet<u32>;

/// A number of `/proc/PID/status`.
pub fn memory(id: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}

/// User and system time in ticks, threads that have ended included, of `/proc/PID/stat`.
pub fn processor_ticks(id: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    [11, 12]
        .iter()
        .filter_map(|at| fields.get(*at)?.parse::<u64>().ok())
        .sum()
}

/// The time that the threads of a process have spent on a processor, to the nanosecond.
pub fn processor_time(id: u32) -> Duration {
    let nanoseconds = threads_of(id).into_iter().filter_map(|thread| {
        let text = fs::read_to_string(format!("/proc/{id}/task/{thread}/schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// The threads that there are now.
pub fn threads_of(id: u32) -> Threads {
    let Ok(entries) = fs::read_dir(format!("/proc/{id}/task")) else {
        return Threads::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).collect()
}

/// Waits for the end of a process, and says how many threads it had at most.
pub fn most_threads_of(running: &mut Running) -> u64 {
    let mut most = 0;
    while running.0.try_wait().expect("ask for its end").is_none() {
        most = most.max(memory(running.0.id(), "Threads"));
        std::thread::sleep(Duration::from_micros(500));
    }
    most
}

/// How many inotify instances and watches a process has.
pub fn inotify(id: u32) -> (usize, usize) {
    let (mut instances, mut watches) = (0, 0);
    let Ok(entries) = fs::read_dir(format!("/proc/{id}/fd")) else {
        return (0, 0);
    };
    for entry in entries.flatten() {
        let is_inotify =
            fs::read_link(entry.path()).is_ok_and(|target| target.to_string_lossy().contains("inotify"));
        if is_inotify {
            instances += 1;
            let info = format!("/proc/{id}/fdinfo/{}", entry.file_name().to_string_lossy());
            let info = fs::read_to_string(info).unwrap_or_default();
            watches += info.lines().filter(|line| line.starts_with("inotify ")).count();
        }
    }
    (instances, watches)
}
