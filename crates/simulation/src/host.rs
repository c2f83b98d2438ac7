//! The simulated host: what is there, what goes wrong, and what is on its disk. It outlives the processes that look after it.

use std::collections::BTreeMap;
use std::time::Duration;

use setpoint_engine::ExportKey;

use crate::cast::{Role, Roles};

/// A host.
pub(crate) struct Host {
    pub(crate) now: Duration,
    /// What is in each resource; zero: nothing.
    pub(crate) content: [u8; 16],
    /// Stored notifications: for whom, from whom, and by which run of the present process; zero: of one before.
    pub(crate) marks: BTreeMap<(Role, Role), u64>,
    /// For each resource from whom it must still hear. Known to nobody but the rules.
    pub(crate) owed: [Roles; 16],
    /// Records of what was in resources before a program had them.
    pub(crate) records: [Option<u8>; 16],
    pub(crate) disk_full: bool,
    /// What is exported: the contents of resources.
    pub(crate) store: BTreeMap<ExportKey, String>,
    /// So many times the store fails, having done a part.
    pub(crate) store_fails: u8,
    pub(crate) store_takes: Duration,
    pub(crate) faults: [Fault; 16],
    /// How often somebody changed something.
    pub(crate) changes: u64,
}

/// What is wrong with a resource, or unusual.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    /// So many repairs fail before they change anything.
    pub(crate) before_repair: u8,
    /// So many repairs fail after they have changed something.
    pub(crate) after_repair: u8,
    /// It waits for something outside the host, which is missing.
    pub(crate) missing: bool,
    pub(crate) init: u8,
    pub(crate) watch: u8,
    pub(crate) watch_takes: Duration,
    pub(crate) takes: Duration,
    pub(crate) stubborn: bool,
    pub(crate) frozen: bool,
    pub(crate) echoes: bool,
    /// What it sends; none: it withholds it.
    pub(crate) sends: Option<u8>,
}

const NOTHING_WRONG: Fault = Fault {
    before_repair: 0,
    after_repair: 0,
    missing: false,
    init: 0,
    watch: 0,
    watch_takes: Duration::ZERO,
    takes: Duration::ZERO,
    stubborn: false,
    frozen: false,
    echoes: false,
    sends: Some(1),
};

impl Host {
    pub(crate) fn new() -> Host {
        Host {
            now: Duration::ZERO,
            content: [0; 16],
            marks: BTreeMap::new(),
            owed: [0; 16],
            records: [None; 16],
            disk_full: false,
            store: BTreeMap::new(),
            store_fails: 0,
            store_takes: Duration::ZERO,
            faults: [NOTHING_WRONG; 16],
            changes: 0,
        }
    }

    pub(crate) fn fault(&mut self, role: Role) -> &mut Fault {
        &mut self.faults[role.place()]
    }

    /// Somebody changes a resource to what no program wants.
    pub(crate) fn disturb(&mut self, role: Role) {
        self.changes += 1;
        self.content[role.place()] = 100 + (self.changes % 100) as u8;
    }

    /// From here on nothing goes wrong any more. Answers who waited for something that is there now.
    pub(crate) fn mend(&mut self) -> Vec<Role> {
        let waited = Role::all()
            .filter(|role| self.faults[role.place()].missing)
            .collect();
        self.disk_full = false;
        self.store_fails = 0;
        self.store_takes = Duration::ZERO;
        for fault in &mut self.faults {
            *fault = Fault {
                sends: fault.sends,
                ..NOTHING_WRONG
            };
        }
        waited
    }

    /// Run numbers of a process that is gone say nothing in the next.
    pub(crate) fn forget_runs(&mut self) {
        for run in self.marks.values_mut() {
            *run = 0;
        }
    }
}
