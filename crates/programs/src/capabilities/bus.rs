//! What the system bus tells: a host name that was set, firmware that waits for a restart.
//!
//! It is heard over the connection that resources use too, while somebody listens. A bus that is not there, or goes, is looked for again.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use setpoint_host::bus::{Bus, BusError, Heard, Link, Method};
use setpoint_host::sync::{Condvar, Mutex, MutexGuard, wait_timeout};
use setpoint_value::{Timer, Wake};
use zbus::message::Type as MessageType;
use zbus::{MatchRule, Message, OwnedVariant, Variant};

use super::listeners::{Listeners, Stop};

/// How long the first question about firmware may take before the answer is «no».
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a service has to answer.
const LIMIT: Duration = Duration::from_secs(25);

const FIRMWARE: &str = "org.freedesktop.fwupd";
const BUS: &str = "org.freedesktop.DBus";
const HOSTNAME_PATH: &str = "/org/freedesktop/hostname1";
/// `FWUPD_UPDATE_STATE_NEEDS_REBOOT`.
const NEEDS_REBOOT: u32 = 4;

/// What can be listened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topic {
    /// Properties of `org.freedesktop.hostname1`.
    Hostname,
    /// Whether firmware waits for a restart.
    Firmware,
}

/// The system bus.
pub(super) struct SystemBus {
    shared: Arc<Shared>,
}

struct Shared {
    bus: Bus,
    listeners: Arc<Listeners<Topic>>,
    firmware: Mutex<Firmware>,
    answered: Condvar,
}

#[derive(Default)]
struct Firmware {
    /// Whether some device waits for a restart, if that is known.
    needed: Option<bool>,
    /// Whether that is being asked.
    is_asked: bool,
    /// Something has changed since it was asked last.
    ask_again: bool,
}

impl SystemBus {
    /// What this bus tells.
    pub(super) fn new(bus: Bus) -> SystemBus {
        SystemBus {
            shared: Arc::new(Shared {
                bus,
                listeners: Arc::new(Listeners::new()),
                firmware: Mutex::default(),
                answered: Condvar::new(),
            }),
        }
    }

    /// Wakes on events of a topic until the answer is dropped. Also when the connection comes or goes, since events may have
    /// been missed.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(super) fn listen(&self, topic: Topic, wake: Wake) -> io::Result<Timer> {
        self.shared.listeners.listen(topic, wake, || {
            self.shared.firmware().needed = None;
            let shared = Arc::downgrade(&self.shared);
            let rules = rules().map_err(io::Error::other)?;
            let following = self.shared.bus.follow(rules.into(), move |heard| {
                if let Some(shared) = shared.upgrade() {
                    shared.hear(heard);
                }
            });
            let following = following.map_err(io::Error::other)?;
            let stop: Stop = Box::new(move || drop(following));
            Ok(stop)
        })
    }

    /// Whether some device waits for a restart, as far as is known. While somebody listens and nothing is known yet, this waits
    /// a moment.
    pub(super) fn firmware_reboot_needed(&self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        let mut firmware = self.shared.firmware();
        while firmware.needed.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            firmware = wait_timeout(&self.shared.answered, firmware, left).0;
        }
        firmware.needed.unwrap_or(false)
    }
}

impl Shared {
    fn firmware(&self) -> MutexGuard<'_, Firmware> {
        self.firmware.lock()
    }

    fn set_firmware(&self, needed: bool) {
        let before = self.firmware().needed.replace(needed);
        self.answered.notify_all();
        if before != Some(needed) {
            self.listeners.tell(&Topic::Firmware);
        }
    }

    fn hear(self: &Arc<Self>, heard: Heard<'_>) {
        match heard {
            Heard::Connected(_) => {
                self.listeners.tell(&Topic::Hostname);
                self.ask_firmware();
            }
            Heard::Signal(message) => match topic(message) {
                Some(Topic::Hostname) => self.listeners.tell(&Topic::Hostname),
                Some(Topic::Firmware) => self.ask_firmware(),
                None => {}
            },
            Heard::Unreachable(_) | Heard::Lost => self.set_firmware(false),
        }
    }

    /// Asks about firmware, now or when the answer that is waited for has come.
    fn ask_firmware(self: &Arc<Self>) {
        let mut firmware = self.firmware();
        firmware.ask_again = true;
        if std::mem::replace(&mut firmware.is_asked, true) {
            return;
        }
        drop(firmware);
        let asking = Shared::ask_while_it_changes(Arc::downgrade(self), self.bus.clone());
        if self.bus.spawn(asking).is_err() {
            self.firmware().is_asked = false;
        }
    }

    async fn ask_while_it_changes(shared: Weak<Shared>, bus: Bus) {
        loop {
            {
                let Some(shared) = shared.upgrade() else { return };
                let mut firmware = shared.firmware();
                if !std::mem::take(&mut firmware.ask_again) {
                    firmware.is_asked = false;
                    return;
                }
            }
            // No daemon, or one that does not answer: nothing is known to wait.
            let needed = match bus.link().await {
                Ok(link) => reboot_needed(&link).await.unwrap_or(false),
                Err(_) => false,
            };
            if let Some(shared) = shared.upgrade() {
                shared.set_firmware(needed);
            }
        }
    }
}

fn rules() -> zbus::Result<[MatchRule<'static>; 3]> {
    let signals = || MatchRule::builder().msg_type(MessageType::Signal);
    Ok([
        signals()
            .interface("org.freedesktop.DBus.Properties")
            .member("PropertiesChanged")
            .path(HOSTNAME_PATH)
            .build()?,
        signals().sender(FIRMWARE).build()?,
        signals()
            .sender("org.freedesktop.DBus")
            .interface("org.freedesktop.DBus")
            .member("NameOwnerChanged")
            .arg(0, FIRMWARE)
            .build()?,
    ])
}

fn topic(message: &Message) -> Option<Topic> {
    let header = message.header();
    if header.message_type() != MessageType::Signal {
        return None;
    }
    let is = |what: Option<&str>, wanted: &str| what == Some(wanted);
    let path = header.path().map(zbus::ObjectPath::as_str);
    let interface = header.interface().map(zbus::names::InterfaceName::as_str);
    let member = header.member().map(zbus::names::MemberName::as_str);
    if is(path, HOSTNAME_PATH) && is(member, "PropertiesChanged") {
        return Some(Topic::Hostname);
    }
    // Other names' owners, our own for one, are told of without having been asked for.
    let named = || {
        message
            .body()
            .deserialize::<(&str, &str, &str)>()
            .is_ok_and(|(name, _, _)| name == FIRMWARE)
    };
    let of_firmware = match interface {
        Some("org.freedesktop.DBus") => is(member, "NameOwnerChanged") && named(),
        Some(interface) => interface == FIRMWARE || is(member, "PropertiesChanged"),
        None => false,
    };
    of_firmware.then_some(Topic::Firmware)
}

async fn reboot_needed(link: &Link) -> Result<bool, BusError> {
    // Asking must not start the daemon.
    let owned = Method {
        service: BUS,
        path: "/org/freedesktop/DBus",
        interface: BUS,
        name: "NameHasOwner",
    };
    if !link.call(owned, &FIRMWARE).await? {
        return Ok(false);
    }
    let devices = Method {
        service: FIRMWARE,
        path: "/",
        interface: FIRMWARE,
        name: "GetDevices",
    };
    let answer: Vec<HashMap<String, OwnedVariant>> = link.call_within(LIMIT, devices, &()).await?;
    let waits = |device: &HashMap<String, OwnedVariant>| {
        let state = device.get("UpdateState").map(|state| &**state);
        matches!(state, Some(Variant::U32(NEEDS_REBOOT)))
    };
    Ok(answer.iter().any(waits))
}
