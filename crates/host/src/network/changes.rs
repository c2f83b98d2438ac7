//! What changes about interfaces, for all who follow one, from one socket.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rtnetlink::packet_core::{NetlinkBuffer, Parseable};
use rtnetlink::packet_route::link::{LinkAttribute, LinkMessage};
use rtnetlink::packet_route::route::{RouteAttribute, RouteMessage};
use rtnetlink::sys::protocols::NETLINK_ROUTE;
use rtnetlink::sys::{AsyncSocket, AsyncSocketExt, SocketAddr, TokioSocket};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::sync::Mutex;

/// Groups of news: links; IPv4 addresses and routes; IPv6 addresses and routes; forwarding of both.
const GROUPS: [u32; 7] = [1, 5, 7, 9, 11, 24, 25];
/// Room for news that wait to be read, in bytes, if we may have so much. When it is full, everything counts as changed.
const WAITING: usize = 8 << 20;
/// The largest message, with room to spare: links tell much of themselves.
const MESSAGE: usize = 64 << 10;

const NEW_LINK: u16 = 16;
const DEL_LINK: u16 = 17;
const NEW_ADDRESS: u16 = 20;
const DEL_ADDRESS: u16 = 21;
const NEW_ROUTE: u16 = 24;
const DEL_ROUTE: u16 = 25;
/// No room was left for news.
const NO_BUFFER_SPACE: i32 = 105;

/// Tells those who follow interfaces that something about them changed. The socket is there as long as somebody follows.
#[derive(Debug, Clone, Default)]
pub struct Network(Arc<Mutex<Followers>>);

#[derive(Debug, Default)]
struct Followers {
    by_number: BTreeMap<u64, Arc<Follower>>,
    next: u64,
    /// What reads for all of them.
    reader: Option<AbortHandle>,
    /// Names of interfaces by the kernel's number, as far as anybody has told them: one that is renamed concerns its former name, too.
    names: BTreeMap<u32, String>,
}

#[derive(Debug)]
struct Follower {
    interface: String,
    changed: Notify,
    has_ended: AtomicBool,
}

/// What changes about one interface: whether it is there, its state, addresses and routes. Changes that nobody has waited for yet count as one.
#[derive(Debug)]
pub struct InterfaceChanges {
    network: Network,
    number: u64,
    follower: Arc<Follower>,
}

impl Network {
    /// Follows the interface of this name, which need not be there. What happens from now on is told.
    ///
    /// # Errors
    /// When the system gives no socket.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn follow(&self, interface: &str) -> io::Result<InterfaceChanges> {
        let mut followers = self.0.lock();
        if followers.reader.is_none() {
            let socket = open()?;
            let reader = tokio::spawn(read(self.clone(), socket));
            followers.reader = Some(reader.abort_handle());
        }
        if let Some(index) = index_of(interface) {
            followers.names.insert(index, interface.to_owned());
        }
        let number = followers.next;
        followers.next += 1;
        let follower = Arc::new(Follower {
            interface: interface.to_owned(),
            changed: Notify::new(),
            has_ended: AtomicBool::new(false),
        });
        followers.by_number.insert(number, follower.clone());
        drop(followers);
        Ok(InterfaceChanges {
            network: self.clone(),
            number,
            follower,
        })
    }
}

impl InterfaceChanges {
    /// Waits for the next change, or answers at once if there was one since the last call.
    ///
    /// # Errors
    /// When nothing is heard any more: it has to be followed anew.
    pub async fn changed(&mut self) -> io::Result<()> {
        self.follower.changed.notified().await;
        if self.follower.has_ended.load(Ordering::Acquire) {
            return Err(io::Error::other("the kernel does not tell any more"));
        }
        Ok(())
    }
}

impl Drop for InterfaceChanges {
    fn drop(&mut self) {
        let mut followers = self.network.0.lock();
        followers.by_number.remove(&self.number);
        if followers.by_number.is_empty() {
            followers.names.clear();
            if let Some(reader) = followers.reader.take() {
                reader.abort();
            }
        }
    }
}

fn open() -> io::Result<TokioSocket> {
    let mut socket = TokioSocket::new(NETLINK_ROUTE)?;
    let plain = socket.socket_mut();
    plain.bind(&SocketAddr::new(0, 0))?;
    // Less room only means that everything counts as changed more often.
    let _ = plain.set_rx_buf_sz(WAITING);
    for group in GROUPS {
        plain.add_membership(group)?;
    }
    Ok(socket)
}

async fn read(network: Network, socket: TokioSocket) {
    let mut buffer = Vec::with_capacity(MESSAGE);
    loop {
        buffer.clear();
        match socket.recv_from(&mut buffer).await {
            // Only the kernel is believed.
            Ok(from) if from.port_number() == 0 => network.0.lock().hear(&buffer),
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(NO_BUFFER_SPACE) => network.0.lock().tell_all(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    let mut followers = network.0.lock();
    followers.reader = None;
    for follower in followers.by_number.values() {
        follower.has_ended.store(true, Ordering::Release);
        follower.changed.notify_one();
    }
}

impl Followers {
    /// Tells those whom the messages in here concern.
    fn hear(&mut self, mut messages: &[u8]) {
        while let Ok(message) = NetlinkBuffer::new_checked(messages) {
            self.hear_one(message.message_type(), message.payload());
            // Messages begin at multiples of four bytes.
            let length = (message.length() as usize).next_multiple_of(4);
            match messages.get(length..) {
                Some(rest) if length > 0 => messages = rest,
                _ => break,
            }
        }
    }

    fn hear_one(&mut self, kind: u16, payload: &[u8]) {
        match kind {
            NEW_LINK | DEL_LINK => self.hear_link(kind, payload),
            NEW_ADDRESS | DEL_ADDRESS => self.tell(index_in(payload)),
            NEW_ROUTE | DEL_ROUTE => self.tell(
                RouteMessage::parse(payload)
                    .ok()
                    .and_then(|route| way_out(&route)),
            ),
            _ => self.tell_all(),
        }
    }

    fn hear_link(&mut self, kind: u16, payload: &[u8]) {
        let Some(index) = index_in(payload) else {
            return self.tell_all();
        };
        let name = LinkMessage::parse(payload).ok().and_then(|link| {
            link.attributes.into_iter().find_map(|attribute| match attribute {
                LinkAttribute::IfName(name) => Some(name),
                _ => None,
            })
        });
        let Some(name) = name else {
            return self.tell_all();
        };
        let former = if kind == NEW_LINK {
            self.names.insert(index, name.clone())
        } else {
            self.names.remove(&index)
        };
        let concerned = |follower: &&Arc<Follower>| {
            follower.interface == name
                || former
                    .as_ref()
                    .is_some_and(|former| follower.interface == *former)
        };
        for follower in self.by_number.values().filter(concerned) {
            follower.changed.notify_one();
        }
    }

    /// Tells those who follow the interface of a number; all, if it is not known which one that is.
    fn tell(&self, index: Option<u32>) {
        let Some(name) = index.and_then(|index| self.names.get(&index)) else {
            return self.tell_all();
        };
        for follower in self
            .by_number
            .values()
            .filter(|follower| follower.interface == *name)
        {
            follower.changed.notify_one();
        }
    }

    fn tell_all(&self) {
        for follower in self.by_number.values() {
            follower.changed.notify_one();
        }
    }
}

/// The number of the interface, which stands at the same place in news of links and of addresses.
fn index_in(payload: &[u8]) -> Option<u32> {
    let bytes = payload.get(4..8)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

/// The number of the interface that a route leads out of, if it is one.
fn way_out(route: &RouteMessage) -> Option<u32> {
    route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Oif(index) => Some(*index),
        _ => None,
    })
}

fn index_of(interface: &str) -> Option<u32> {
    use rustix::net::{AddressFamily, SocketType, netdevice, socket};
    let any = socket(AddressFamily::UNIX, SocketType::DGRAM, None).ok()?;
    netdevice::name_to_index(any, interface).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follower(followers: &mut Followers, interface: &str) -> Arc<Follower> {
        let follower = Arc::new(Follower {
            interface: interface.to_owned(),
            changed: Notify::new(),
            has_ended: AtomicBool::new(false),
        });
        let number = followers.next;
        followers.next += 1;
        followers.by_number.insert(number, follower.clone());
        follower
    }

    /// Whether a change waits to be heard, which it then does not any more.
    fn was_told(follower: &Follower) -> bool {
        use std::future::Future;
        use std::task::{Context, Poll, Waker};
        let waiting = std::pin::pin!(follower.changed.notified());
        waiting.poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    /// A message of the kernel: header and payload.
    fn message(kind: u16, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(16 + payload.len()).expect("messages are short");
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn link(kind: u16, index: u32, name: &str) -> Vec<u8> {
        let mut payload = vec![0; 4];
        payload.extend(index.to_ne_bytes());
        payload.extend([0; 8]);
        let length = u16::try_from(4 + name.len() + 1).expect("names are short");
        payload.extend(length.to_ne_bytes());
        payload.extend(3u16.to_ne_bytes());
        payload.extend(name.as_bytes());
        payload.push(0);
        message(kind, &payload)
    }

    fn address(index: u32) -> Vec<u8> {
        let mut payload = vec![2, 24, 0, 0];
        payload.extend(index.to_ne_bytes());
        message(NEW_ADDRESS, &payload)
    }

    #[test]
    fn news_reach_those_whom_they_concern() {
        let mut followers = Followers::default();
        let (first, second) = (follower(&mut followers, "one"), follower(&mut followers, "two"));
        let told = || (was_told(&first), was_told(&second));
        followers.hear(&link(NEW_LINK, 5, "one"));
        assert_eq!(told(), (true, false));
        followers.hear(&[link(NEW_LINK, 6, "two"), address(5)].concat());
        assert_eq!(told(), (true, true));
        followers.hear(&address(6));
        assert_eq!(told(), (false, true));
        // Of which interface is not known: of any.
        followers.hear(&address(7));
        assert_eq!(told(), (true, true));
        // A new name concerns who follows the former one, and an interface that goes concerns its followers.
        followers.hear(&link(NEW_LINK, 5, "other"));
        assert_eq!(told(), (true, false));
        followers.hear(&address(5));
        assert_eq!(told(), (false, false));
        followers.hear(&link(DEL_LINK, 6, "two"));
        assert_eq!(told(), (false, true));
        // Of another sort: of any.
        followers.hear(&message(80, &[0; 4]));
        assert_eq!(told(), (true, true));
    }

    #[test]
    fn what_is_cut_off_or_no_message_is_taken() {
        let mut followers = Followers::default();
        let one = follower(&mut followers, "one");
        let whole = [
            link(NEW_LINK, 5, "one"),
            address(5),
            message(NEW_ROUTE, &[2, 0, 0]),
        ]
        .concat();
        for end in 0..whole.len() {
            followers.hear(&whole[..end]);
            followers.hear(&whole[end..]);
        }
        followers.hear(&[0; 64]);
        followers.hear(&[255; 64]);
        assert!(was_told(&one));
    }
}
