//! How much was done when a script was played.

/// How much was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Steps of the machine.
    pub steps: u64,
    /// Programs.
    pub swaps: u64,
    /// Runs that were started.
    pub runs: u64,
    /// Runs that repaired something.
    pub repairs: u64,
    /// Runs that served notifications.
    pub refreshes: u64,
    /// Resources that left and were undone.
    pub undone: u64,
    /// Records that were written for other hosts, or taken back.
    pub exported: u64,
    /// Processes that died or ended.
    pub processes: u64,
}

impl Statistics {
    /// What both did.
    pub fn add(&mut self, other: Statistics) {
        self.steps += other.steps;
        self.swaps += other.swaps;
        self.runs += other.runs;
        self.repairs += other.repairs;
        self.refreshes += other.refreshes;
        self.undone += other.undone;
        self.exported += other.exported;
        self.processes += other.processes;
    }
}
