//! Facts about the machine, the process and its users.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use nix::unistd::User;
use setpoint_value::{HostFact, HostFacts, Timer, Wake};

use super::bus::{SystemBus, Topic as BusTopic};
use super::kernel::{KernelEvents, Topic};

/// Facts of this machine.
pub(crate) struct RealFacts {
    hostname: String,
    kernel: Arc<KernelEvents>,
    bus: SystemBus,
}

impl RealFacts {
    /// `hostname` is this member's name.
    pub(super) fn new(hostname: &str, kernel: Arc<KernelEvents>, bus: SystemBus) -> RealFacts {
        RealFacts {
            hostname: hostname.to_owned(),
            kernel,
            bus,
        }
    }

    /// With another message bus.
    pub(super) fn set_bus(&mut self, bus: SystemBus) {
        self.bus = bus;
    }
}

/// The machine's own host name.
pub fn system_hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

impl HostFacts for RealFacts {
    fn hostname(&self) -> String {
        self.hostname.clone()
    }

    fn system_hostname(&self) -> String {
        system_hostname()
    }

    fn environment(&self) -> BTreeMap<String, String> {
        let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        std::env::vars_os()
            .map(|(name, value)| (lossy(name), lossy(value)))
            .collect()
    }

    fn arguments(&self) -> Vec<String> {
        std::env::args_os()
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect()
    }

    fn executable(&self) -> Option<String> {
        std::env::current_exe().ok()?.into_os_string().into_string().ok()
    }

    fn working_directory(&self) -> Option<String> {
        std::env::current_dir().ok()?.into_os_string().into_string().ok()
    }

    fn load(&self) -> Option<[f64; 3]> {
        let text = std::fs::read_to_string("/proc/loadavg").ok()?;
        let mut numbers = text.split(' ').map_while(|word| word.parse().ok());
        Some([numbers.next()?, numbers.next()?, numbers.next()?])
    }

    fn uptime(&self) -> Option<Duration> {
        let text = std::fs::read_to_string("/proc/uptime").ok()?;
        let seconds: f64 = text.split(' ').next()?.parse().ok()?;
        Duration::try_from_secs_f64(seconds).ok()
    }

    fn home(&self, user: &str) -> Option<String> {
        if user.is_empty() {
            // The environment's word first, as shells do.
            if let Ok(home) = std::env::var("HOME")
                && !home.is_empty()
            {
                return Some(home);
            }
            let found = User::from_uid(nix::unistd::getuid()).ok()??;
            return found.dir.into_os_string().into_string().ok();
        }
        User::from_name(user)
            .ok()??
            .dir
            .into_os_string()
            .into_string()
            .ok()
    }

    fn user_id(&self, user: &str) -> Option<u32> {
        Some(User::from_name(user).ok()??.uid.as_raw())
    }

    fn ids(&self) -> [u32; 4] {
        use rustix::process::{getegid, geteuid, getgid, getuid};
        [
            getuid().as_raw(),
            geteuid().as_raw(),
            getgid().as_raw(),
            getegid().as_raw(),
        ]
    }

    fn process_ids(&self) -> [u32; 2] {
        [std::process::id(), std::os::unix::process::parent_id()]
    }

    fn page_size(&self) -> usize {
        rustix::param::page_size()
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn firmware_reboot_needed(&self) -> bool {
        self.bus.firmware_reboot_needed()
    }

    fn watch(&self, fact: HostFact, wake: Wake) -> Option<Timer> {
        // What one way does not tell (a container's kernel, a machine without a bus) the other may.
        match fact {
            HostFact::Hostname => {
                let named = self.bus.listen(BusTopic::Hostname, wake.clone()).ok();
                let set = self.kernel.listen(Topic::Hostname, wake).ok();
                Some(Box::new((named, set)))
            }
            HostFact::Processors => self.kernel.listen(Topic::Processors, wake).ok(),
            HostFact::Modules => self.kernel.listen(Topic::Modules, wake).ok(),
            HostFact::FirmwareReboot => self.bus.listen(BusTopic::Firmware, wake).ok(),
        }
    }
}
