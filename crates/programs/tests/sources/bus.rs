//! The message bus: a private one, with services of the test's own; and the real one with the real host name service.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use setpoint_value::{HostFact, Wake};
use zbus::Variant;
use zbus::object_server::SignalEmitter;

use crate::machine::Machine;
use crate::program::compile_code;
use setpoint_testing::place::{Place, find, shell};

/// A bus of its own. Ends when it is dropped.
struct Bus {
    daemon: Child,
    address: String,
}

impl Bus {
    fn start(socket: &str) -> Option<Bus> {
        let program = find("dbus-daemon")?;
        let address = format!("unix:path={socket}");
        let mut daemon = Command::new(program)
            .args(["--session", "--nofork", "--print-address"])
            .arg(format!("--address={address}"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        // It says where it is when it can be reached.
        BufReader::new(daemon.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        Some(Bus { daemon, address })
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// The part of fwupd's interface that counts.
struct Firmware {
    state: Arc<Mutex<u32>>,
}

#[zbus::interface(name = "org.freedesktop.fwupd")]
impl Firmware {
    fn get_devices(&self) -> Vec<HashMap<String, Variant<'static>>> {
        let state = *self.state.lock().unwrap();
        let device = |state: u32| {
            HashMap::from([
                ("DeviceId".to_owned(), Variant::from("0123")),
                ("UpdateState".to_owned(), Variant::from(state)),
            ])
        };
        vec![device(0), device(state)]
    }

    #[zbus(signal)]
    async fn changed(emitter: &SignalEmitter<'_>) -> zbus::Result<()>;
}

struct Service {
    runtime: tokio::runtime::Runtime,
    state: Arc<Mutex<u32>>,
    connection: zbus::Connection,
}

impl Service {
    fn start(bus: &Bus, state: u32) -> Service {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let state = Arc::new(Mutex::new(state));
        let served = Firmware { state: state.clone() };
        let connection = runtime.block_on(async {
            zbus::conn::Builder::address(bus.address.as_str())
                .serve_at("/", served)
                .name("org.freedesktop.fwupd")
                .build()
                .await
                .unwrap()
        });
        Service {
            runtime,
            state,
            connection,
        }
    }

    fn set(&self, state: u32) {
        *self.state.lock().unwrap() = state;
        self.runtime.block_on(async {
            let emitter = SignalEmitter::new(&self.connection, "/").unwrap();
            Firmware::changed(&emitter).await.unwrap();
        });
    }
}

#[test]
fn firmware_that_waits_for_a_restart_is_followed() {
    let machine = Machine::new();
    let Some(bus) = Bus::start(&machine.path("bus")) else {
        eprintln!("skipped: needs the program `dbus-daemon`");
        return;
    };
    let machine = machine.with_bus(&bus.address);
    let mut needed = machine.follow(&["sys/fwupd"], "fwupd.reboot_needed()");
    assert_eq!(needed.first().as_deref(), Ok("false"), "there is no daemon");
    let service = Service::start(&bus, 4);
    needed.becomes("true");
    service.set(2);
    needed.becomes("false");
    service.set(4);
    needed.becomes("true");
    drop(service);
    needed.becomes("false");
    let service = Service::start(&bus, 4);
    needed.becomes("true");
    drop(bus);
    needed.becomes("false");
    drop(service);
}

#[test]
fn the_first_answer_waits_for_the_service() {
    let machine = Machine::new();
    let Some(bus) = Bus::start(&machine.path("bus")) else {
        eprintln!("skipped: needs the program `dbus-daemon`");
        return;
    };
    let _service = Service::start(&bus, 4);
    let machine = machine.with_bus(&bus.address);
    let mut needed = machine.follow(&["sys/fwupd"], "fwupd.reboot_needed()");
    assert_eq!(needed.first().as_deref(), Ok("true"));
    assert_eq!(needed.changes(), 1, "there was no other answer before");
}

#[test]
fn properties_of_the_host_name_service_are_listened_to() {
    let machine = Machine::new();
    let Some(bus) = Bus::start(&machine.path("bus")) else {
        eprintln!("skipped: needs the program `dbus-daemon`");
        return;
    };
    let machine = machine.with_bus(&bus.address);
    let text = compile_code("");
    let capabilities = machine.capabilities(&text, &setpoint_programs::DirectoryLoader::new("/nonexistent"));
    let (sender, woken) = channel();
    let wake = Wake::new(move || {
        let _ = sender.send(());
    });
    let _watch = capabilities.host().watch(HostFact::Hostname, wake);
    let limit = Duration::from_secs(20);
    assert_eq!(woken.recv_timeout(limit), Ok(()), "connected");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let connection = zbus::conn::Builder::address(bus.address.as_str())
            .build()
            .await
            .unwrap();
        let changed = HashMap::from([("Hostname", Variant::from("other"))]);
        let body = ("org.freedesktop.hostname1", changed, Vec::<String>::new());
        connection
            .emit_signal(
                None::<zbus::names::BusName<'_>>,
                "/org/freedesktop/hostname1",
                "org.freedesktop.DBus.Properties",
                "PropertiesChanged",
                &body,
            )
            .await
            .unwrap();
    });
    assert_eq!(woken.recv_timeout(limit), Ok(()));
}

#[test]
fn the_real_host_name_service_is_followed() {
    let test = "bus::the_real_host_name_service_is_followed";
    Place::machine(test).needing(&["hostnamectl"]).run(|| {
        let machine = Machine::new();
        shell("hostnamectl set-hostname before");
        let mut name = machine.follow(&["sys"], "sys.hostname()");
        assert_eq!(name.first().as_deref(), Ok("\"before\""));
        shell("hostnamectl set-hostname after");
        name.becomes("\"after\"");
        assert_eq!(shell("cat /etc/hostname"), "after");
    });
}
