//! What the system bus tells: a host name that was set, firmware that waits for a restart.
//!
//! One thread and one connection while somebody listens. A bus that is not there, or goes, is looked for again.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use setpoint_host::sync::{Condvar, Mutex, MutexGuard, wait_timeout};
use setpoint_value::{Timer, Wake};
use tokio::sync::Notify;
use zbus::conn::Builder;
use zbus::message::Type as MessageType;
use zbus::proxy::MethodFlags;
use zbus::{Connection, MatchRule, Message, MessageStream, OwnedVariant, Proxy, Variant};

use super::listeners::{Listeners, Stop};

/// How long to wait for a bus that is not there. Nothing tells when one is started.
const AGAIN: Duration = Duration::from_secs(5);
/// How long the first question about firmware may take before the answer is «no».
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a service has to answer.
const LIMIT: Duration = Duration::from_secs(25);

const FIRMWARE: &str = "org.freedesktop.fwupd";
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
    /// None: the system's own.
    address: Option<String>,
    listeners: Arc<Listeners<Topic>>,
    firmware: Mutex<Option<bool>>,
    answered: Condvar,
}

impl SystemBus {
    /// The bus at an address; without one the system's, wherever the environment says that it is.
    pub(super) fn new(address: Option<String>) -> SystemBus {
        SystemBus {
            shared: Arc::new(Shared {
                address,
                listeners: Arc::new(Listeners::new()),
                firmware: Mutex::new(None),
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
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            *self.shared.firmware() = None;
            let shared = self.shared.clone();
            let ending = Arc::new(Notify::new());
            let end = ending.clone();
            std::thread::Builder::new()
                .name("system bus".to_owned())
                .spawn(move || {
                    runtime.block_on(async {
                        tokio::select! {
                            () = end.notified() => {}
                            () = shared.serve() => {}
                        }
                    });
                    // Whatever still runs there must not hold up the end.
                    runtime.shutdown_background();
                })?;
            let stop: Stop = Box::new(move || ending.notify_one());
            Ok(stop)
        })
    }

    /// Whether some device waits for a restart, as far as is known. While somebody listens and nothing is known yet, this waits
    /// a moment.
    pub(super) fn firmware_reboot_needed(&self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        let mut firmware = self.shared.firmware();
        while firmware.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            firmware = wait_timeout(&self.shared.answered, firmware, left).0;
        }
        firmware.unwrap_or(false)
    }
}

impl Shared {
    fn firmware(&self) -> MutexGuard<'_, Option<bool>> {
        self.firmware.lock()
    }

    fn set_firmware(&self, needed: bool) {
        let before = self.firmware().replace(needed);
        self.answered.notify_all();
        if before != Some(needed) {
            self.listeners.tell(&Topic::Firmware);
        }
    }

    /// Never ends by itself.
    async fn serve(self: &Arc<Self>) {
        loop {
            // Why there is no bus, or none any more, changes nothing: it is looked for again.
            let _ = self.follow().await;
            self.set_firmware(false);
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Follows one connection to its end.
    async fn follow(self: &Arc<Self>) -> zbus::Result<()> {
        let builder = match &self.address {
            Some(address) => Builder::address(address.as_str()),
            None => Builder::system(),
        };
        let connection = builder.method_timeout(LIMIT).build().await?;
        let mut messages = MessageStream::from(&connection);
        let bus = zbus::fdo::DBusProxy::new(&connection).await?;
        for rule in rules()? {
            bus.add_match_rule(rule).await?;
        }
        self.listeners.tell(&Topic::Hostname);
        // On a task of its own: while it waits for an answer, signals must be taken off the queue.
        let dirty = Arc::new(Notify::new());
        dirty.notify_one();
        let mut asking = tokio::task::JoinSet::new();
        asking.spawn(self.clone().ask_firmware(connection.clone(), dirty.clone()));
        while let Some(message) = messages.next().await {
            match topic(&message?) {
                Some(Topic::Hostname) => self.listeners.tell(&Topic::Hostname),
                Some(Topic::Firmware) => dirty.notify_one(),
                None => {}
            }
        }
        Ok(())
    }

    async fn ask_firmware(self: Arc<Self>, connection: Connection, dirty: Arc<Notify>) {
        loop {
            dirty.notified().await;
            // No daemon, or one that does not answer: nothing is known to wait.
            let needed = reboot_needed(&connection).await.unwrap_or(false);
            self.set_firmware(needed);
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

async fn reboot_needed(connection: &Connection) -> zbus::Result<bool> {
    let proxy = Proxy::new(connection, FIRMWARE, "/", FIRMWARE).await?;
    // Asking must not start the daemon.
    let call = proxy.call_with_flags("GetDevices", MethodFlags::NO_AUTO_START, &());
    let answer: Option<Vec<HashMap<String, OwnedVariant>>> = match tokio::time::timeout(LIMIT, call).await {
        Ok(answer) => answer?,
        Err(_) => None,
    };
    let waits = |device: &HashMap<String, OwnedVariant>| {
        let state = device.get("UpdateState").map(|state| &**state);
        matches!(state, Some(Variant::U32(NEEDS_REBOOT)))
    };
    Ok(answer.unwrap_or_default().iter().any(waits))
}
