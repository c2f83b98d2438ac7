//! What the kernel tells.

use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, sendto, socket_with};
use setpoint_value::{HostFact, Wake};

use crate::machine::Machine;
use crate::program::compile_code;
use setpoint_testing::place::{Place, shell};

#[test]
fn a_host_name_that_is_set_is_seen_at_once() {
    let test = "kernel::a_host_name_that_is_set_is_seen_at_once";
    Place::namespaces(test, &["--uts"]).run(|| {
        // No bus: the kernel is the one that tells.
        let machine = Machine::new().with_bus("unix:path=/nonexistent");
        shell("echo before > /proc/sys/kernel/hostname");
        let mut name = machine.follow(&["sys"], "sys.hostname()");
        assert_eq!(name.first().as_deref(), Ok("\"before\""));
        shell("echo after > /proc/sys/kernel/hostname");
        name.becomes("\"after\"");
    });
}

#[test]
fn processors_are_counted_again_when_one_comes_or_goes() {
    let test = "kernel::processors_are_counted_again_when_one_comes_or_goes";
    let place = Place::namespaces(test, &["--mount", "--propagation", "private"]);
    place.run(|| {
        let machine = Machine::new();
        let online = machine.path("online");
        // The machine keeps its processors: the list is another one in this namespace, and the kernel is made to tell
        // its event about one of them.
        std::fs::write(&online, "0-3,6\n").unwrap();
        shell(&format!("mount --bind {online} /sys/devices/system/cpu/online"));
        let mut count = machine.follow(&["sys"], "sys.cpu_count()");
        assert_eq!(count.first().as_deref(), Ok("5"));
        std::fs::write(&online, "0-2\n").unwrap();
        let told = std::fs::write("/sys/devices/system/cpu/cpu0/uevent", "offline");
        if let Err(error) = told {
            eprintln!("skipped: {test}: the kernel makes no events here: {error}");
            return;
        }
        count.becomes("3");
    });
}

#[test]
fn a_module_that_is_loaded_is_heard_of() {
    let test = "kernel::a_module_that_is_loaded_is_heard_of";
    // No module is loaded: the kernel passes on an event for this namespace that has the form of its own.
    Place::namespaces(test, &["--net"]).run(|| {
        let machine = Machine::new();
        let text = compile_code("");
        let capabilities =
            machine.capabilities(&text, &setpoint_programs::DirectoryLoader::new("/nonexistent"));
        let (sender, woken) = channel();
        let wake = Wake::new(move || {
            let _ = sender.send(());
        });
        let watch = capabilities.host().watch(HostFact::Modules, wake);
        assert!(watch.is_some());
        if let Err(error) =
            send_event(b"add@/module/loop\0ACTION=add\0DEVPATH=/module/loop\0SUBSYSTEM=module\0")
        {
            eprintln!("skipped: {test}: the kernel passes no events on: {error}");
            return;
        }
        assert_eq!(woken.recv_timeout(Duration::from_secs(20)), Ok(()));
    });
}

/// Has the kernel send a device event within this network namespace.
fn send_event(event: &[u8]) -> rustix::io::Result<()> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::KOBJECT_UEVENT),
    )?;
    // The header of netlink(7): length, type (the first that is no control message), `NLM_F_REQUEST`, number, sender.
    let length = u32::try_from(16 + event.len()).unwrap();
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(0x10u16.to_ne_bytes());
    message.extend(1u16.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(event);
    sendto(
        &socket,
        &message,
        SendFlags::empty(),
        &SocketAddrNetlink::new(0, 0),
    )
    .map(drop)
}

#[test]
fn loaded_modules_are_those_that_the_kernel_lists() {
    let test = "kernel::loaded_modules_are_those_that_the_kernel_lists";
    let place = Place::namespaces(test, &["--mount", "--propagation", "private"]);
    place.run(|| {
        let machine = Machine::new();
        let listed = machine.path("modules");
        std::fs::write(&listed, "loop 40960 0 - Live 0x0000000000000000\n").unwrap();
        if std::path::Path::new("/proc/modules").exists() {
            shell(&format!("mount --bind {listed} /proc/modules"));
        } else {
            // A kernel without modules has no such file; this namespace gets a `/proc` with nothing else in it.
            shell(&format!("mount -t tmpfs tmpfs /proc; cp {listed} /proc/modules"));
        }
        let mut loaded = machine.follow(&["os"], "os.modinfo_loaded(\"dm_mod\")");
        assert_eq!(loaded.first().as_deref(), Ok("false"));
        shell("echo 'dm_mod 155648 0 - Live 0x0000000000000000' >> /proc/modules");
        loaded.becomes("true");
    });
}
