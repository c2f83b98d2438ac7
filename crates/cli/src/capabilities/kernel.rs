//! What the kernel tells without being asked: network changes, the host name, processors that come and go.
//!
//! One thread for all of it, started when somebody first listens.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
use setpoint_value::{Timer, Wake};

/// `RTMGRP_LINK`, `RTMGRP_IPV4_IFADDR` and `RTMGRP_IPV6_IFADDR` of rtnetlink(7).
const LINKS_AND_ADDRESSES: u32 = 1 | 0x10 | 0x100;
/// The one group of the kernel's own device events.
const DEVICE_EVENTS: u32 = 1;

/// What can be listened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Topic {
    /// Links and addresses.
    Network,
    /// The host name.
    Hostname,
    /// Which processors are online.
    Processors,
}

/// Everyone who listens.
pub(super) struct KernelEvents {
    listeners: Arc<Mutex<Listeners>>,
}

#[derive(Default)]
struct Listeners {
    by_number: BTreeMap<u64, (Topic, Wake)>,
    next: u64,
    started: bool,
}

impl KernelEvents {
    /// Nobody listens yet.
    pub(super) fn new() -> KernelEvents {
        KernelEvents {
            listeners: Arc::default(),
        }
    }

    /// Wakes on events of a topic until the answer is dropped.
    ///
    /// # Errors
    /// When the kernel gives no sockets, or no thread.
    pub(super) fn listen(&self, topic: Topic, wake: Wake) -> io::Result<Timer> {
        let mut listeners = lock(&self.listeners);
        if !listeners.started {
            let sources = Sources::open()?;
            let told = self.listeners.clone();
            std::thread::Builder::new()
                .name("kernel events".to_owned())
                .spawn(move || sources.serve(&told))?;
            listeners.started = true;
        }
        let number = listeners.next;
        listeners.next += 1;
        listeners.by_number.insert(number, (topic, wake));
        Ok(Box::new(Listening {
            listeners: self.listeners.clone(),
            number,
        }))
    }
}

fn lock(listeners: &Mutex<Listeners>) -> MutexGuard<'_, Listeners> {
    listeners.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Listening {
    listeners: Arc<Mutex<Listeners>>,
    number: u64,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let removed = lock(&self.listeners).by_number.remove(&self.number);
        drop(removed);
    }
}

/// Whatever is missing here (a container without device events) is not followed.
struct Sources {
    network: Option<OwnedFd>,
    devices: Option<OwnedFd>,
    hostname: Option<File>,
}

impl Sources {
    fn open() -> io::Result<Sources> {
        let netlink = |protocol, groups| -> io::Result<OwnedFd> {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, protocol)?;
            bind(&socket, &SocketAddrNetlink::new(0, groups))?;
            Ok(socket)
        };
        Ok(Sources {
            // The routing protocol is the one without a number.
            network: netlink(None, LINKS_AND_ADDRESSES).ok(),
            devices: netlink(Some(netlink::KOBJECT_UEVENT), DEVICE_EVENTS).ok(),
            // proc(5) of this file answers a poll when the name is set.
            hostname: File::open("/proc/sys/kernel/hostname").ok(),
        })
    }

    fn serve(&self, listeners: &Mutex<Listeners>) {
        loop {
            let mut polled = Vec::new();
            let mut topics = Vec::new();
            if let Some(socket) = &self.network {
                polled.push(PollFd::new(socket, PollFlags::IN));
                topics.push(Topic::Network);
            }
            if let Some(socket) = &self.devices {
                polled.push(PollFd::new(socket, PollFlags::IN));
                topics.push(Topic::Processors);
            }
            if let Some(file) = &self.hostname {
                polled.push(PollFd::new(file, PollFlags::PRI));
                topics.push(Topic::Hostname);
            }
            match poll(&mut polled, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
            let ready: Vec<Topic> = polled
                .iter()
                .zip(topics)
                .filter(|(polled, _)| !polled.revents().is_empty())
                .map(|(_, topic)| topic)
                .collect();
            for topic in ready {
                if self.take(topic) {
                    tell(listeners, topic);
                }
            }
        }
    }

    /// Takes what is there; whether it concerns the topic.
    fn take(&self, topic: Topic) -> bool {
        let drain = |socket: &Option<OwnedFd>, concerns: &dyn Fn(&[u8]) -> bool| {
            let mut any = false;
            let mut buffer = vec![0; 64 * 1024];
            while let Some(socket) = socket {
                match recv(socket, &mut *buffer, RecvFlags::DONTWAIT) {
                    Ok((count, _)) => any |= concerns(&buffer[..count.min(64 * 1024)]),
                    // Messages were lost, so anything may have happened.
                    Err(rustix::io::Errno::NOBUFS) => any = true,
                    Err(rustix::io::Errno::INTR) => {}
                    Err(_) => break,
                }
            }
            any
        };
        match topic {
            Topic::Network => drain(&self.network, &|_| true),
            Topic::Processors => drain(&self.devices, &|message| {
                message
                    .split(|byte| *byte == 0)
                    .any(|line| line == b"SUBSYSTEM=cpu")
            }),
            Topic::Hostname => true,
        }
    }
}

fn tell(listeners: &Mutex<Listeners>, topic: Topic) {
    let wakes: Vec<Wake> = {
        let listeners = lock(listeners);
        let wanted = listeners.by_number.values().filter(|(other, _)| *other == topic);
        wanted.map(|(_, wake)| wake.clone()).collect()
    };
    for wake in wakes {
        wake.wake();
    }
}
