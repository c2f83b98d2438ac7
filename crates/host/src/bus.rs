//! Message buses (D-Bus): one connection for each, which all share.
//!
//! A connection is made when somebody needs it, and made anew when it is lost while somebody follows what is said there. One task
//! takes everything that a bus says and hands it to those whom it concerns: who follows costs neither a task nor a connection.
//! A bus whose last follower has gone is left.

mod direct;
mod error;
mod serve;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;
use tokio::sync::{Notify, Semaphore};
use zbus::OwnedMatchRule;
pub use zbus::OwnedObjectPath;
use zbus::conn::Builder;
pub use zbus::message::Message;
pub use zbus::{DynamicType, Fd, MatchRule, OwnedVariant, Type, Variant};

pub use error::BusError;

use crate::sync::Mutex;

/// How long making a connection may take.
const CONNECTING: Duration = Duration::from_secs(25);
/// How long an answer may take, if nothing else is said.
pub const ANSWERING: Duration = Duration::from_secs(60);

/// How many calls to one service may wait for their answers at a time. A bus lets a connection have 128 of them, of all services together; one service that does
/// not answer must leave room for the others.
const MOST_CALLS: usize = 60;

/// Where a bus is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BusAddress {
    /// The system's, wherever the environment says that it is.
    System,
    /// That of our own user, wherever the environment says that it is.
    Session,
    /// In the form of the D-Bus specification: `unix:path=/run/bus`.
    At(String),
    /// No bus, but a service itself, which listens at a socket.
    Direct(PathBuf),
}

/// The buses of this machine.
#[derive(Debug, Clone)]
pub struct Buses {
    /// The system's.
    pub system: Bus,
    /// That of our own user.
    pub session: Bus,
}

impl Default for Buses {
    fn default() -> Buses {
        Buses {
            system: Bus::new(BusAddress::System),
            session: Bus::new(BusAddress::Session),
        }
    }
}

/// A message bus. Clones are one and the same.
#[derive(Clone)]
pub struct Bus(Arc<Shared>);

struct Shared {
    address: BusAddress,
    /// What drives the connection; made when it is needed.
    runtime: Mutex<Option<Runtime>>,
    /// The connection, if there is one.
    link: Mutex<Option<Link>>,
    /// Held by who makes a connection.
    connecting: tokio::sync::Mutex<()>,
    followers: Mutex<Followers>,
    /// There are other followers than before.
    changed: Notify,
}

#[derive(Default)]
struct Followers {
    by_number: BTreeMap<u64, Arc<Follower>>,
    next: u64,
    /// Whether the task that serves them runs.
    is_served: bool,
}

struct Follower {
    rules: Vec<OwnedMatchRule>,
    hears: Box<dyn Fn(Heard<'_>) + Send + Sync>,
}

/// What a follower hears.
#[derive(Debug)]
pub enum Heard<'a> {
    /// There is a connection, and signals are heard from here on. What was said before was missed.
    Connected(&'a Link),
    /// A signal that one of the rules asks for.
    Signal(&'a Message),
    /// There is no connection now; it is tried again.
    Unreachable(&'a BusError),
    /// The connection has ended; another one is made.
    Lost,
}

/// Follows as long as it lives. Something that is on its way may be heard for a moment longer.
#[must_use = "it follows as long as it lives"]
pub struct Following {
    shared: Arc<Shared>,
    number: u64,
}

/// A connection to a bus. Clones are one and the same.
#[derive(Debug, Clone)]
pub struct Link {
    connection: zbus::Connection,
    /// The room for calls to each service.
    calls: Arc<Mutex<HashMap<Box<str>, Arc<Semaphore>>>>,
    /// What it leads to, in words. One for each connection.
    bus: Arc<str>,
}

/// A method of an object that a service has on a bus.
#[derive(Debug, Clone, Copy)]
pub struct Method<'a> {
    /// The name of the service.
    pub service: &'a str,
    /// The path of the object.
    pub path: &'a str,
    /// The interface that the method is of.
    pub interface: &'a str,
    /// Its name.
    pub name: &'a str,
}

/// The rule for a signal of an object that a service has.
///
/// # Panics
/// When one of these is not of the form that the bus demands: they are constants of the program.
#[must_use]
pub fn signals(
    service: &'static str,
    path: &'static str,
    interface: &'static str,
    member: &'static str,
) -> MatchRule<'static> {
    let rule = MatchRule::builder()
        .msg_type(zbus::message::Type::Signal)
        .sender(service)
        .path(path)
        .interface(interface)
        .member(member);
    rule.build()
        .expect("the constants of the program are names and paths of the bus")
}

/// The rule for what a bus says when a service comes or goes: the signal `NameOwnerChanged`, whose body is its name, the former and the new owner.
///
/// # Panics
/// When the name is not of the form that the bus demands: it is a constant of the program.
#[must_use]
pub fn owner_changes(service: &'static str) -> MatchRule<'static> {
    let bus = "org.freedesktop.DBus";
    let rule = MatchRule::builder()
        .msg_type(zbus::message::Type::Signal)
        .sender(bus)
        .interface(bus)
        .member("NameOwnerChanged")
        .arg(0, service);
    rule.build()
        .expect("the constants of the program are names of the bus")
}

/// The rule for all signals of an interface, of all objects that a service has.
///
/// # Panics
/// When one of these is not of the form that the bus demands: they are constants of the program.
#[must_use]
pub fn all_signals(service: &'static str, interface: &'static str) -> MatchRule<'static> {
    let rule = MatchRule::builder()
        .msg_type(zbus::message::Type::Signal)
        .sender(service)
        .interface(interface);
    rule.build()
        .expect("the constants of the program are names of the bus")
}

impl Bus {
    /// The bus at an address. Nothing is connected yet.
    #[must_use]
    pub fn new(address: BusAddress) -> Bus {
        Bus(Arc::new(Shared {
            address,
            runtime: Mutex::default(),
            link: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
            followers: Mutex::default(),
            changed: Notify::new(),
        }))
    }

    /// The connection, which is made if there is none.
    ///
    /// # Errors
    /// When there is no way to the bus.
    pub async fn link(&self) -> Result<Link, BusError> {
        if let Some(link) = self.0.known() {
            return Ok(link);
        }
        let shared = self.0.clone();
        let made = self.0.spawn(async move { shared.connect().await })?;
        made.await
            .unwrap_or_else(|_| Err(self.0.unreachable("its connections were ended")))
    }

    /// Hears signals that rules ask for, and how it stands with the connection, until what this answers is dropped. It is called on the thread of the bus,
    /// and must not wait.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn follow(
        &self,
        rules: Vec<MatchRule<'static>>,
        hears: impl Fn(Heard<'_>) + Send + Sync + 'static,
    ) -> Result<Following, BusError> {
        let follower = Follower {
            rules: rules.into_iter().map(OwnedMatchRule::from).collect(),
            hears: Box::new(hears),
        };
        let mut followers = self.0.followers.lock();
        if !followers.is_served {
            self.0.spawn(self.0.clone().serve())?;
            followers.is_served = true;
        }
        let number = followers.next;
        followers.next += 1;
        followers.by_number.insert(number, Arc::new(follower));
        drop(followers);
        self.0.changed.notify_one();
        Ok(Following {
            shared: self.0.clone(),
            number,
        })
    }

    /// Does something on the thread of the bus. It must not make calls that block.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> Result<(), BusError> {
        self.0.spawn(work).map(drop)
    }
}

impl Shared {
    /// The connection, if there is one.
    fn known(&self) -> Option<Link> {
        let link = self.link.lock().clone();
        link.filter(|link| !link.connection.is_closed())
    }

    async fn connect(&self) -> Result<Link, BusError> {
        let _only_one = self.connecting.lock().await;
        if let Some(link) = self.known() {
            return Ok(link);
        }
        let builder = match &self.address {
            BusAddress::System => Builder::system(),
            BusAddress::Session => Builder::session(),
            BusAddress::At(address) => Builder::address(address.as_str()),
            BusAddress::Direct(path) => {
                let socket = direct::Direct::connect(path).await;
                Builder::socket(socket.map_err(|error| self.unreachable(error))?).p2p()
            }
        };
        let connection = match tokio::time::timeout(CONNECTING, builder.build()).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return Err(self.unreachable(error::told(&error))),
            Err(_) => return Err(self.unreachable("it does not answer")),
        };
        let link = Link {
            connection,
            calls: Arc::default(),
            bus: self.address.to_string().into(),
        };
        *self.link.lock() = Some(link.clone());
        Ok(link)
    }

    fn unreachable(&self, reason: impl fmt::Display) -> BusError {
        BusError::Unreachable {
            bus: self.address.to_string().into(),
            reason: reason.to_string().into(),
        }
    }

    fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<tokio::task::JoinHandle<T>, BusError> {
        let mut runtime = self.runtime.lock();
        let runtime = match &mut *runtime {
            Some(runtime) => runtime,
            none => none.insert(
                tokio::runtime::Builder::new_multi_thread()
                    .worker_threads(1)
                    .thread_name("bus")
                    .enable_all()
                    .build()
                    .map_err(|error| self.unreachable(error))?,
            ),
        };
        Ok(runtime.spawn(work))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.lock().take() {
            // Whatever still runs there must not hold up the end.
            runtime.shutdown_background();
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let follower = self.shared.followers.lock().by_number.remove(&self.number);
        // Outside the lock: what hears may own others that follow.
        drop(follower);
        self.shared.changed.notify_one();
    }
}

impl Link {
    /// Calls a method, and answers what it answers.
    ///
    /// # Errors
    /// When it is refused, or no answer comes within [`ANSWERING`].
    pub async fn call<A: DeserializeOwned + Type>(
        &self,
        method: Method<'_>,
        arguments: &(impl Serialize + DynamicType + Sync),
    ) -> Result<A, BusError> {
        self.call_within(ANSWERING, method, arguments).await
    }

    /// The same for who needs more time to answer.
    ///
    /// # Errors
    /// When it is refused, or no answer comes in that time.
    pub async fn call_within<A: DeserializeOwned + Type>(
        &self,
        limit: Duration,
        method: Method<'_>,
        arguments: &(impl Serialize + DynamicType + Sync),
    ) -> Result<A, BusError> {
        let Method {
            service,
            path,
            interface,
            name,
        } = method;
        let room = self.room(service);
        let service = (!self.is_direct()).then_some(service);
        let call = async {
            // Never closed.
            let _room = room.acquire().await;
            self.connection
                .call_method(service, path, Some(interface), name, arguments)
                .await
        };
        let answer = match tokio::time::timeout(limit, call).await {
            Ok(answer) => answer.map_err(|error| self.failed(&error))?,
            Err(_) => return Err(BusError::Silent { limit }),
        };
        let answer = answer.body().deserialize();
        answer.map_err(|error| BusError::Malformed {
            reason: error.to_string().into(),
        })
    }

    /// The text of a property, which `property` names where a method's name would stand.
    ///
    /// # Errors
    /// When it is refused, or no answer comes within [`ANSWERING`], or the property is no text.
    pub async fn text_property(&self, property: Method<'_>) -> Result<String, BusError> {
        let get = Method {
            interface: "org.freedesktop.DBus.Properties",
            name: "Get",
            ..property
        };
        let value: OwnedVariant = self.call(get, &(property.interface, property.name)).await?;
        match &*value {
            Variant::Str(text) => Ok(text.as_str().to_owned()),
            _ => Err(BusError::Malformed {
                reason: format!("`{}` is no text", property.name).into(),
            }),
        }
    }

    /// The room for calls to a service.
    fn room(&self, service: &str) -> Arc<Semaphore> {
        let mut calls = self.calls.lock();
        if let Some(room) = calls.get(service) {
            return room.clone();
        }
        let room = Arc::new(Semaphore::new(MOST_CALLS));
        calls.insert(service.into(), room.clone());
        room
    }

    /// Whether it leads to a service itself, without a bus in between.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        !self.connection.is_bus()
    }

    fn failed(&self, error: &zbus::Error) -> BusError {
        let name = error::name(error);
        // Who was asked has left the bus, or the bus itself is going.
        let has_left = ["NoReply", "Disconnected"].into_iter().any(|gone| {
            name.strip_prefix("org.freedesktop.DBus.Error.")
                .is_some_and(|short| short == gone)
        });
        if has_left || self.connection.is_closed() {
            return BusError::Lost {
                bus: self.bus.clone(),
            };
        }
        BusError::Refused {
            name,
            reason: error::told(error).into(),
        }
    }
}

impl fmt::Display for BusAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BusAddress::System => f.write_str("the system bus"),
            BusAddress::Session => f.write_str("the bus of our own user"),
            BusAddress::At(address) => write!(f, "the bus at {address}"),
            BusAddress::Direct(path) => path.display().fmt(f),
        }
    }
}

impl fmt::Debug for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bus({})", self.0.address)
    }
}

impl fmt::Debug for Following {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Following({})", self.shared.address)
    }
}
