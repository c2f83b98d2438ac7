//! What this process takes of the machine, as proc(5) says it.

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

/// What the process takes. What the system does not say is none.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct ProcessFigures {
    /// Seconds of processor time.
    pub(super) cpu: Option<f64>,
    pub(super) resident: Option<u64>,
    pub(super) address_space: Option<u64>,
    pub(super) threads: Option<u64>,
    /// Seconds since 1970.
    pub(super) started: Option<f64>,
    pub(super) open_descriptors: Option<u64>,
    /// None also where there is no limit.
    pub(super) most_descriptors: Option<u64>,
}

impl ProcessFigures {
    /// As they are now.
    pub(super) fn read() -> ProcessFigures {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let boot = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let descriptors = std::fs::read_dir("/proc/self/fd").ok();
        ProcessFigures {
            // The directory is open while it is counted.
            open_descriptors: descriptors.map(|all| (all.count() as u64).saturating_sub(1)),
            most_descriptors: getrlimit(Resource::Nofile).current,
            ..ProcessFigures::of(&stat, &boot)
        }
    }

    fn of(stat: &str, boot: &str) -> ProcessFigures {
        // The name of the program, in brackets, may hold anything. Behind it comes the third field.
        let fields: Vec<&str> = match stat.rsplit_once(')') {
            Some((_, rest)) => rest.split_whitespace().collect(),
            None => return ProcessFigures::default(),
        };
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let ticks = clock_ticks_per_second() as f64;
        let booted = boot.lines().find_map(|line| line.strip_prefix("btime "));
        let booted: Option<f64> = booted.and_then(|text| text.trim().parse().ok());
        let started = |booted: f64| Some(booted + field(22)? as f64 / ticks);
        ProcessFigures {
            cpu: field(14)
                .zip(field(15))
                .map(|(user, system)| (user + system) as f64 / ticks),
            threads: field(20),
            started: booted.and_then(started),
            address_space: field(23),
            resident: field(24).map(|pages| pages.saturating_mul(page_size() as u64)),
            ..ProcessFigures::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_shifts_no_field() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 9 0 1000 4096000 25 18446744073709551615";
        let figures = ProcessFigures::of(stat, "cpu 1\nbtime 1000000\n");
        let ticks = clock_ticks_per_second() as f64;
        assert_eq!(figures.cpu, Some(300.0 / ticks));
        assert_eq!(figures.threads, Some(9));
        assert_eq!(figures.started, Some(1_000_000.0 + 1000.0 / ticks));
        assert_eq!(figures.address_space, Some(4_096_000));
        assert_eq!(figures.resident, Some(25 * page_size() as u64));
    }

    #[test]
    fn this_process_has_all_figures_and_none_comes_of_nothing() {
        let figures = ProcessFigures::read();
        assert!(
            figures.resident > Some(0) && figures.threads > Some(0) && figures.open_descriptors > Some(0)
        );
        assert!(figures.started > Some(0.0) && figures.cpu >= Some(0.0));
        assert_eq!(ProcessFigures::of("", ""), ProcessFigures::default());
        assert_eq!(ProcessFigures::of("7 (x) S 1", "").cpu, None);
    }
}
