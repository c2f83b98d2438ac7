//! The real machine, as sources see it.

mod clock;
mod deploy;
mod effects;
mod facts;
mod files;
mod kernel;
mod network;
mod random;

use std::io;
use std::sync::Arc;

use setpoint_host::Host;
use setpoint_value::{Capabilities, Clock, Deploy, Effects, Files, HostFacts, Network, Random, Values};

use clock::RealClock;
pub(crate) use deploy::ProgramFiles;
pub(crate) use effects::RealEffects;
use facts::RealFacts;
pub(crate) use facts::system_hostname;
use files::RealFiles;
use kernel::KernelEvents;
use network::RealNetwork;
pub(crate) use random::SystemRandom;

/// What sources are given. One a process: the watch hub in it is the engine's.
pub(crate) struct RealCapabilities {
    clock: RealClock,
    files: RealFiles,
    facts: RealFacts,
    network: RealNetwork,
    deploy: ProgramFiles,
    effects: Option<RealEffects>,
    values: Option<Arc<dyn Values>>,
}

impl RealCapabilities {
    /// Everything but what changes the machine.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub(crate) fn new(
        host: &Arc<Host>,
        hostname: &str,
        deploy: ProgramFiles,
    ) -> io::Result<RealCapabilities> {
        let kernel = Arc::new(KernelEvents::new());
        Ok(RealCapabilities {
            clock: RealClock::new()?,
            files: RealFiles::new(host),
            facts: RealFacts::new(hostname, kernel.clone()),
            network: RealNetwork::new(kernel),
            deploy,
            effects: None,
            values: None,
        })
    }

    /// With leave to change the machine.
    pub(crate) fn with_effects(mut self, effects: RealEffects) -> RealCapabilities {
        self.effects = Some(effects);
        self
    }

    /// With the values that resources set.
    pub(crate) fn with_values(mut self, values: Arc<dyn Values>) -> RealCapabilities {
        self.values = Some(values);
        self
    }
}

impl Capabilities for RealCapabilities {
    fn clock(&self) -> &dyn Clock {
        &self.clock
    }

    fn files(&self) -> &dyn Files {
        &self.files
    }

    fn host(&self) -> &dyn HostFacts {
        &self.facts
    }

    fn random(&self) -> &dyn Random {
        &SystemRandom
    }

    fn deploy(&self) -> &dyn Deploy {
        &self.deploy
    }

    fn effects(&self) -> Option<&dyn Effects> {
        self.effects.as_ref().map(|effects| effects as &dyn Effects)
    }

    fn network(&self) -> Option<&dyn Network> {
        Some(&self.network)
    }

    fn values(&self) -> Option<&dyn Values> {
        self.values.as_deref()
    }
}
