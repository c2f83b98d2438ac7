//! Whether a machine is right, from how its resources stand: in a word, in a line, and as an exit code.

use setpoint_engine::machine::{Standing, StandingCounts};

/// Whether a machine is right: the first of these that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// Something has failed, or is in the way of something.
    Wrong,
    /// Something must still be looked at.
    UnderWay,
    /// Nothing is under way here, but something waits for what is outside this machine.
    WaitingForHost,
    /// Something is wrong that may not be repaired.
    WouldChange,
    /// Everything is as it should be.
    Right,
}

impl Health {
    /// The health of a machine whose resources stand so.
    #[must_use]
    pub fn of(counts: StandingCounts) -> Health {
        let StandingCounts {
            failed,
            failing,
            blocked,
            waiting_for_host,
            unresponsive,
            conflict,
            would_change,
            finishing,
            running,
            waiting,
            starting,
            right: _,
        } = counts;
        // What is blocked and nothing has failed waits, in the end, for other machines.
        if failed + failing + unresponsive + conflict > 0 || (blocked > 0 && waiting_for_host == 0) {
            Health::Wrong
        } else if finishing + running + waiting + starting > 0 {
            Health::UnderWay
        } else if blocked + waiting_for_host > 0 {
            Health::WaitingForHost
        } else if would_change > 0 {
            Health::WouldChange
        } else {
            Health::Right
        }
    }

    /// In a line, with how many resources stand how.
    pub fn line(self, counts: StandingCounts) -> String {
        let text = counts_text(counts);
        match self {
            Health::Wrong => format!("wrong: {text}"),
            Health::UnderWay => format!("under way: {text}"),
            Health::WaitingForHost => format!("waiting for another machine: {text}"),
            Health::WouldChange => format!("not right, and nothing is repaired: {text}"),
            Health::Right => format!("right: {}", resources(counts.right)),
        }
    }
}

/// What those are that stand so.
pub fn standing_text(standing: Standing) -> &'static str {
    match standing {
        Standing::Failed => "failed",
        Standing::Failing => "failing",
        Standing::Blocked => "blocked",
        Standing::WaitingForHost => "waiting for something outside this machine",
        Standing::Unresponsive => "unresponsive",
        Standing::Conflict => "undone by something else",
        Standing::WouldChange => "would change",
        Standing::Finishing => "finishing",
        Standing::Running => "running",
        Standing::Waiting => "waiting",
        Standing::Starting => "starting",
        Standing::Right => "right",
    }
}

/// `1 failing, 2 blocked, 13 right`; what is none is left out.
pub fn counts_text(counts: StandingCounts) -> String {
    let parts = Standing::ALL.into_iter().filter_map(|standing| {
        let count = counts.of(standing);
        (count > 0).then(|| format!("{count} {}", standing_text(standing)))
    });
    let parts: Vec<String> = parts.collect();
    match parts.as_slice() {
        [] => "no resources".to_owned(),
        parts => parts.join(", "),
    }
}

/// `1 resource`, `16 resources`.
pub fn resources(count: usize) -> String {
    match count {
        0 => "no resources".to_owned(),
        1 => "1 resource".to_owned(),
        count => format!("{count} resources"),
    }
}
