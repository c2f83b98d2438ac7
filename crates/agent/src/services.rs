//! What kinds are given of this machine, and debug output of functions.

use std::sync::Arc;

use setpoint_engine::machine::ExitReason;
use setpoint_engine::{Busy, Control, DebugOutput, Engine, Extensions, Services};
use setpoint_programs::local_machine::LocalMachine;
use setpoint_resources::{Joining, ProgramExit};
use setpoint_value::{FunctionLog, QualifiedName};

/// Debug output of those functions of whom it is wanted, among the engine's events.
pub(crate) struct FunctionDebug {
    pub(crate) engine: Engine,
    pub(crate) output: Arc<DebugOutput>,
}

impl FunctionLog for FunctionDebug {
    fn wants(&self, function: QualifiedName<'_>) -> bool {
        // Nearly always nobody is asked for.
        self.output
            .is_on_for_function(|| [function.to_string(), function.called()])
    }

    fn debug(&self, line: String) {
        self.engine.debug(line);
    }
}

/// What kinds are given.
pub(crate) fn services(
    machine: &LocalMachine,
    control: Control,
    debug: Arc<DebugOutput>,
    joining: Joining,
    writable: bool,
) -> Services {
    let host = &machine.host;
    let exit = ProgramExit::new(move |code| control.exit(ExitReason::Requested(code)));
    Services {
        program: "setpoint".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        hostname: machine.hostname.clone(),
        debug,
        writable,
        committer: host.committer.clone(),
        verified: host.verified.clone(),
        processes: host.processes.clone(),
        users: host.users.clone(),
        graph: Arc::default(),
        extensions: Extensions::default()
            .with(machine.values.clone())
            .with(Arc::new(machine.shared_store()))
            .with(Arc::new(machine.elections()))
            .with(Arc::new(joining))
            .with(Arc::new(machine.running_files.clone()))
            .with(host.buses.clone())
            .with(host.service_managers.clone())
            .with(host.network.clone())
            .with(Arc::new(exit)),
        busy: Busy::default(),
    }
}
