//! The real machine, as sources see it.

mod background;
mod bus;
mod clock;
mod content;
mod copies;
mod deploy;
mod effects;
mod endpoints;
pub mod facts;
mod files;
mod kernel;
mod listeners;
mod network;
mod random;
mod responses;
pub mod world;

use std::io;
use std::sync::Arc;

use setpoint_engine::{ExportStore, async_trait};
use setpoint_host::Host;
use setpoint_host::bus::{Bus, BusAddress};
use setpoint_resources::{Elections, SharedStrings};
use setpoint_value::{
    Background, Capabilities, Clock, Commands, Deploy, Effects, Files, FunctionLog, HostFacts, HttpResponses,
    Network, Random, Values, WorldReader,
};

use background::Threads;
use bus::SystemBus;
use clock::RealClock;
use copies::CopiesToBe;
pub use deploy::ProgramFiles;
pub use effects::{RealEffects, SourceAccess};
pub use endpoints::EtcdEndpoints;
use facts::RealFacts;
pub use facts::system_hostname;
use files::RealFiles;
use kernel::KernelEvents;
use network::RealNetwork;
pub use random::SystemRandom;
pub use responses::PublishedResponses;
pub use world::gone_host::{Remains, remove_host};
pub use world::{KEYS, host_of_key, key_of, store_of_one_machine};
pub use world::{SharedWorld, WhileAway};

/// What hosts share, to all who look at it.
#[async_trait]
pub(crate) trait World: WorldReader + SharedStrings + Elections + ExportStore {
    /// Takes back what others need not wait for, before a clean end.
    async fn leave(&self) {}
}

/// What sources are given. One a process: the watch hub in it is the engine's.
pub struct RealCapabilities {
    background: Arc<Threads>,
    clock: Arc<RealClock>,
    files: CopiesToBe,
    facts: RealFacts,
    network: RealNetwork,
    deploy: Arc<ProgramFiles>,
    access: SourceAccess,
    effects: Option<RealEffects>,
    values: Option<Arc<dyn Values>>,
    world: Option<Arc<dyn WorldReader>>,
    responses: Option<Arc<dyn HttpResponses>>,
    log: Option<Arc<dyn FunctionLog>>,
}

impl RealCapabilities {
    /// Everything but what changes the machine and what is shared with others.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn new(host: &Arc<Host>, hostname: &str, deploy: ProgramFiles) -> io::Result<RealCapabilities> {
        let kernel = Arc::new(KernelEvents::new());
        let background = Arc::new(Threads::new()?);
        let clock = Arc::new(RealClock::new()?);
        let deploy = Arc::new(deploy);
        let files = RealFiles::new(host, &clock, &background);
        Ok(RealCapabilities {
            files: CopiesToBe::new(files, deploy.clone()),
            background,
            clock,
            facts: RealFacts::new(
                hostname,
                kernel.clone(),
                SystemBus::new(host.buses.system.clone()),
            ),
            network: RealNetwork::new(kernel),
            deploy,
            access: SourceAccess::Read,
            effects: None,
            values: None,
            world: None,
            responses: None,
            log: None,
        })
    }

    /// With a way to change the machine, as far as this access goes.
    #[must_use]
    pub fn with_effects(mut self, effects: RealEffects, access: SourceAccess) -> RealCapabilities {
        self.access = access;
        self.effects = Some(effects);
        self
    }

    /// With the values that resources set.
    #[must_use]
    pub fn with_values(mut self, values: Arc<dyn Values>) -> RealCapabilities {
        self.values = Some(values);
        self
    }

    /// With what all members share.
    #[must_use]
    pub fn with_world(mut self, world: Arc<dyn WorldReader>) -> RealCapabilities {
        self.world = Some(world);
        self
    }

    /// With the answers that resources publish.
    #[must_use]
    pub fn with_http_responses(mut self, responses: Arc<dyn HttpResponses>) -> RealCapabilities {
        self.responses = Some(responses);
        self
    }

    /// With somebody who listens to what is said of calls of functions.
    #[must_use]
    pub fn with_log(mut self, log: Option<Arc<dyn FunctionLog>>) -> RealCapabilities {
        self.log = log;
        self
    }

    /// With a message bus at this address in the place of the system's.
    #[must_use]
    pub fn with_system_bus(mut self, address: &str) -> RealCapabilities {
        let bus = Bus::new(BusAddress::At(address.to_owned()));
        self.facts.set_bus(SystemBus::new(bus));
        self
    }
}

impl Capabilities for RealCapabilities {
    fn background(&self) -> &dyn Background {
        &*self.background
    }

    fn log(&self) -> Option<&dyn FunctionLog> {
        self.log.as_deref()
    }

    fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    fn files(&self) -> &dyn Files {
        // Sources that may not change the machine copy nothing to it.
        match self.access {
            SourceAccess::Change => &self.files.files,
            SourceAccess::Read | SourceAccess::RunCommands => &self.files,
        }
    }

    fn host(&self) -> &dyn HostFacts {
        &self.facts
    }

    fn random(&self) -> &dyn Random {
        &SystemRandom
    }

    fn deploy(&self) -> &dyn Deploy {
        &*self.deploy
    }

    fn effects(&self) -> Option<&dyn Effects> {
        let effects = self
            .effects
            .as_ref()
            .filter(|_| self.access == SourceAccess::Change);
        effects.map(|effects| effects as &dyn Effects)
    }

    fn commands(&self) -> Option<&dyn Commands> {
        let effects = self
            .effects
            .as_ref()
            .filter(|_| self.access != SourceAccess::Read);
        effects.map(|effects| effects as &dyn Commands)
    }

    fn network(&self) -> Option<&dyn Network> {
        Some(&self.network)
    }

    fn values(&self) -> Option<&dyn Values> {
        self.values.as_deref()
    }

    fn world(&self) -> Option<&dyn WorldReader> {
        self.world.as_deref()
    }

    fn http_responses(&self) -> Option<&dyn HttpResponses> {
        self.responses.as_deref()
    }
}
