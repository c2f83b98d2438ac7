//! What can happen in a script.

use crate::cast::Role;
use crate::program::Program;
use crate::random::Random;

/// One thing that happens.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A new program is wanted.
    Swap(Program),
    /// A new program is refused before it comes to the machine.
    Reject,
    /// Somebody changes these resources; their watches tell, as one event.
    Drift {
        /// Which ones.
        roles: Vec<Role>,
        /// Milliseconds until the watches tell.
        latency: u16,
    },
    /// The watch of a resource breaks.
    WatchBreaks(Role),
    /// Somebody asks that a resource is looked at.
    Recheck(Role),
    /// No runs begin any more.
    Pause,
    /// Runs begin again.
    Resume,
    /// The next repairs of a resource fail, before or after they have changed something.
    Failing {
        /// Which one.
        role: Role,
        /// How many.
        runs: u8,
        /// Whether they have repaired it by then.
        after_repair: bool,
    },
    /// The next tries to bring a resource in fail.
    FailingInit {
        /// Which one.
        role: Role,
        /// How many.
        tries: u8,
    },
    /// The next tries to watch a resource fail.
    FailingWatch {
        /// Which one.
        role: Role,
        /// How many.
        tries: u8,
        /// Milliseconds that watching takes to begin, from now on.
        takes: u16,
    },
    /// Whether a resource waits for something outside the host that is missing; its watch sees it come.
    Missing(Role, bool),
    /// Runs of a resource take so many milliseconds from now on.
    Slow(Role, u16),
    /// Whether runs of a resource go on when they are told to stop.
    Stubborn(Role, bool),
    /// What a resource sends from now on; none: it withholds it.
    Sends(Role, Option<u8>),
    /// Whether a repair of a resource is seen by its own watch.
    Echoes(Role, bool),
    /// Runs of a resource no longer end: its disk hangs.
    Freeze(Role),
    /// They end again.
    Thaw(Role),
    /// Whether the disk is full, so that nothing can be repaired.
    DiskFull(bool),
    /// The store to which resources are exported fails so many times from now on.
    StoreFailing(u8),
    /// It takes so many milliseconds from now on.
    StoreSlow(u16),
    /// The process dies, and is started again.
    Crash {
        /// Whether the repairs that were under way are found made.
        repaired: bool,
    },
    /// The process is asked to stop, and is started again when it has.
    Restart,
    /// So many milliseconds pass.
    Pass(u32),
    /// So many answers of the host arrive, and no time passes.
    Answers(u8),
}

impl Step {
    /// A step that follows from a source of chance.
    pub(crate) fn random(random: &mut Random) -> Step {
        let role = Role(random.below(crate::CAST.len() as u64) as u8);
        match random.below(206) {
            0..=54 => {
                let mut roles = vec![role];
                while random.chance(15) {
                    let other = Role(random.below(crate::CAST.len() as u64) as u8);
                    if !roles.contains(&other) {
                        roles.push(other);
                    }
                }
                let latency = random.of(&[0, 0, 1, 30]);
                Step::Drift { roles, latency }
            }
            55..=62 => Step::WatchBreaks(role),
            63..=68 => Step::Recheck(role),
            69..=71 => Step::Pause,
            72..=76 => Step::Resume,
            77..=86 => Step::Swap(Program::random(random)),
            87 => Step::Reject,
            88..=97 => Step::Failing {
                role,
                runs: 1 + random.below(4) as u8,
                after_repair: random.chance(50),
            },
            98..=101 => Step::FailingInit {
                role,
                tries: 1 + random.below(3) as u8,
            },
            102..=106 => Step::FailingWatch {
                role,
                tries: random.below(3) as u8,
                takes: random.of(&[0, 0, 20, 400]),
            },
            107..=118 => Step::Slow(role, random.of(&[0, 1, 20, 40, 80, 3000])),
            119..=122 => Step::Stubborn(role, random.chance(60)),
            123..=132 => Step::Sends(role, random.chance(85).then(|| 1 + random.below(6) as u8)),
            133..=136 => Step::Echoes(role, random.chance(50)),
            137..=139 => Step::Freeze(role),
            140..=144 => Step::Thaw(role),
            145..=146 => Step::DiskFull(true),
            147..=149 => Step::DiskFull(false),
            150..=152 => Step::Crash {
                repaired: random.chance(50),
            },
            153 => Step::Restart,
            154..=157 => Step::Missing(role, true),
            158..=163 => Step::Missing(role, false),
            164..=181 => Step::Pass(random.of(&[1, 10, 40, 100, 1000, 15_000])),
            182..=184 => Step::StoreFailing(random.below(4) as u8),
            185..=187 => Step::StoreSlow(random.of(&[0, 0, 5, 50, 2000])),
            _ => Step::Answers(1 + random.below(12) as u8),
        }
    }
}
