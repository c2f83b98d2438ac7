//! What the kernel tells without being asked: network changes, the host name, processors and modules that come and go.
//!
//! One thread for all of it, while somebody listens.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
use setpoint_value::{Timer, Wake};

use super::listeners::{Listeners, Stop};

/// `RTMGRP_LINK`, `RTMGRP_IPV4_IFADDR` and `RTMGRP_IPV6_IFADDR` of rtnetlink(7).
const LINKS_AND_ADDRESSES: u32 = 1 | 0x10 | 0x100;
/// The one group of the kernel's own device events.
const DEVICE_EVENTS: u32 = 1;
/// More than the kernel ever puts into one message.
const LONGEST: usize = 64 * 1024;

/// What can be listened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Topic {
    /// Links and addresses.
    Network,
    /// The host name.
    Hostname,
    /// Which processors are online.
    Processors,
    /// Which modules are loaded.
    Modules,
}

/// The kernel's events.
pub(super) struct KernelEvents {
    listeners: Arc<Listeners<Topic>>,
}

impl KernelEvents {
    /// Nobody listens yet.
    pub(super) fn new() -> KernelEvents {
        KernelEvents {
            listeners: Arc::new(Listeners::new()),
        }
    }

    /// Wakes on events of a topic until the answer is dropped. Armed when this returns.
    ///
    /// # Errors
    /// When the kernel gives no descriptors, or no thread.
    pub(super) fn listen(&self, topic: Topic, wake: Wake) -> io::Result<Timer> {
        let told = self.listeners.clone();
        self.listeners.listen(topic, wake, || {
            let sources = Sources::open()?;
            let ending = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
            let end = ending.clone();
            std::thread::Builder::new()
                .name("kernel events".to_owned())
                .spawn(move || sources.serve(&end, &told))?;
            let stop: Stop = Box::new(move || {
                // Its counter cannot be full: nobody else writes.
                let _ = rustix::io::write(&*ending, &1u64.to_ne_bytes());
            });
            Ok(stop)
        })
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

    fn serve(&self, end: &OwnedFd, listeners: &Listeners<Topic>) {
        loop {
            let mut polled = vec![PollFd::new(end, PollFlags::IN)];
            let mut takes: Vec<fn(&Sources, &mut Vec<Topic>)> = vec![|_, _| {}];
            if let Some(socket) = &self.network {
                polled.push(PollFd::new(socket, PollFlags::IN));
                takes.push(Sources::take_network);
            }
            if let Some(socket) = &self.devices {
                polled.push(PollFd::new(socket, PollFlags::IN));
                takes.push(Sources::take_devices);
            }
            if let Some(file) = &self.hostname {
                polled.push(PollFd::new(file, PollFlags::PRI));
                takes.push(|_, topics| topics.push(Topic::Hostname));
            }
            match poll(&mut polled, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
            if !polled[0].revents().is_empty() {
                return;
            }
            let mut topics = Vec::new();
            for (_, take) in polled.iter().zip(takes).filter(|(p, _)| !p.revents().is_empty()) {
                take(self, &mut topics);
            }
            for topic in topics {
                listeners.tell(&topic);
            }
        }
    }

    fn take_network(&self, topics: &mut Vec<Topic>) {
        let mut changed = false;
        drain(self.network.as_ref(), |_| changed = true);
        topics.extend(changed.then_some(Topic::Network));
    }

    fn take_devices(&self, topics: &mut Vec<Topic>) {
        drain(self.devices.as_ref(), |message| {
            let concerned = match message {
                // Messages were lost, so anything may have happened.
                None => &[Topic::Processors, Topic::Modules][..],
                Some(message) => match subsystem(message) {
                    Some(b"cpu") => &[Topic::Processors][..],
                    Some(b"module") => &[Topic::Modules][..],
                    _ => &[][..],
                },
            };
            for topic in concerned {
                if !topics.contains(topic) {
                    topics.push(*topic);
                }
            }
        });
    }
}

/// Takes every message that is there; none stands for messages that were lost.
fn drain(socket: Option<&OwnedFd>, mut take: impl FnMut(Option<&[u8]>)) {
    let mut buffer = vec![0; LONGEST];
    while let Some(socket) = socket {
        match recv(socket, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((count, _)) => take(Some(&buffer[..count.min(LONGEST)])),
            Err(rustix::io::Errno::NOBUFS) => take(None),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
    }
}

/// Which part of the kernel a device event is about: `change@/devices/…`, then variables, each with a zero behind it.
fn subsystem(message: &[u8]) -> Option<&[u8]> {
    let mut lines = message.split(|byte| *byte == 0);
    lines.find_map(|line| line.strip_prefix(b"SUBSYSTEM="))
}

#[cfg(test)]
mod tests {
    use super::subsystem;

    #[test]
    fn a_device_event_names_its_subsystem() {
        let loaded = b"add@/module/loop\0ACTION=add\0DEVPATH=/module/loop\0SUBSYSTEM=module\0SEQNUM=9\0";
        assert_eq!(subsystem(loaded), Some(&b"module"[..]));
        assert_eq!(subsystem(b"libudev\0\xfe\xed\xca\xfe"), None);
    }
}
