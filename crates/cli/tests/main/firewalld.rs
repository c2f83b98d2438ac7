//! The kind `firewalld` with the real firewalld, and where that one cannot be had in the version or the mood that is wanted, with one that only answers.

use setpoint_testing::{Finished, Hermetic};

use crate::end_to_end::Engine;
use crate::kind::{shown, shows_error};
use setpoint_testing::place::{Place, shell};

#[test]
fn what_firewalld_refuses_is_told_and_a_service_starts_it_before() {
    let test = "firewalld::what_firewalld_refuses_is_told_and_a_service_starts_it_before";
    Place::machine(test).needing(&["firewall-cmd"]).run(|| {
        let open = |parameters: &str| format!("firewalld \"web\" {{ {parameters} }}\n");
        let service = "svc \"firewalld\" {\n\tstate => \"running\",\n}\n";
        shows_error(
            &open("ports => [\"80/tcp\"],"),
            "failed to ask firewalld for the default zone: firewalld is not running; `svc \"firewalld\"` with the state `running` starts it",
        );
        let Finished { code, stderr: said, .. } = shown(&format!("{}{service}", open("ports => [\"80/tcp\"],")));
        assert_eq!(code, 0, "{said}");
        assert_eq!(shell("firewall-cmd --list-ports"), "80/tcp");
        shows_error(
            &open("zone => \"dmzz\", ports => [\"80/tcp\"],"),
            "failed to ask firewalld for the ports of the zone dmzz: firewalld has no zone `dmzz`; did you mean `dmz`?",
        );
        shows_error(
            &open("services => [\"htpp\"],"),
            "failed to open the service htpp: firewalld has no such service; did you mean `http`?",
        );
        shows_error(
            &open("services => [\"nothing-like-it\"],"),
            "firewalld has no such service; `firewall-cmd --get-services` lists them",
        );
        let said = shown(&open("services => [sensitive(\"htpp\")],")).stderr;
        assert!(
            said.contains("failed to open the service (sensitive)") && !said.contains("htpp"),
            "{said}"
        );
        // What is open already in a range is not opened again, and all that is wrong is told at once.
        shell("firewall-cmd -q --add-port=9000-9005/tcp");
        let Finished { code, stderr: said, .. } = shown(&open("ports => [\"9003/tcp\"],"));
        assert_eq!(code, 0, "{said}");
        assert!(said.contains("1 unchanged"), "{said}");
        shell("firewall-cmd -q --panic-on");
        shows_error(
            &open("ports => [\"81/tcp\"],"),
            "failed to open the port 81/tcp: firewalld drops everything now; `firewall-cmd --panic-off` ends that",
        );
        shell("firewall-cmd -q --panic-off");
        // Whom polkit does not let.
        let place = Hermetic::new();
        let main = place.write("main.mcl", open("ports => [\"82/tcp\"],"));
        let said = shell(&format!(
            "chown -R games {0}; chmod 755 {0}; setpriv --reuid games --clear-groups --regid games {1} run --once --tmp-state-dir {2} 2>&1 || true",
            place.path("").display(),
            env!("CARGO_BIN_EXE_setpoint"),
            main.display()
        ));
        assert!(
            said.contains("only root may do that, or whom polkit lets: Not Authorized(polkit)"),
            "{said}"
        );
    });
}

#[test]
fn what_comes_and_goes_is_heard() {
    let test = "firewalld::what_comes_and_goes_is_heard";
    Place::machine(test).needing(&["firewall-cmd"]).run(|| {
        let place = Hermetic::new();
        let program = "firewalld \"web\" {\n\tservices => [\"http\"],\n\tports => [\"8080/tcp\"],\n}\n";
        let mut engine = Engine::of_program(&place, program);
        let right = || {
            shell("firewall-cmd --list-services; firewall-cmd --list-ports")
                == "dhcpv6-client http ssh\n8080/tcp"
        };
        engine.event("that it is not running", |event| {
            event["error"]
                .as_str()
                .is_some_and(|error| error.contains("firewalld is not running"))
        });
        shell("systemctl start firewalld");
        engine.repaired_until("firewalld", "web", right);
        shell("firewall-cmd -q --reload");
        engine.repaired_until("firewalld", "web", right);
        shell("systemctl restart firewalld");
        engine.repaired_until("firewalld", "web", right);
        // The default zone is another one from now on.
        shell("firewall-cmd -q --set-default-zone=home");
        let home = || shell("firewall-cmd --zone=home --list-ports") == "8080/tcp";
        engine.repaired_until("firewalld", "web", home);
        engine.stop();
    });
}

/// A firewalld of before 1.0, which knows only whole ranges, with the default zone `public`. It writes what it is asked to change.
const EARLIER: &str = r#"
import sys
import dbus, dbus.service, dbus.mainloop.glib
from gi.repository import GLib
NAME, ZONE = "org.fedoraproject.FirewallD1", "org.fedoraproject.FirewallD1.zone"
dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
class Refused(dbus.DBusException):
    _dbus_error_name = NAME + ".Exception"
class Daemon(dbus.service.Object):
    ports = [dbus.Array(["8000-8010", "tcp"], "s"), dbus.Array(["ssh", "tcp"], "s")]
    def told(self, *what):
        with open("/asked", "a") as asked: asked.write(" ".join(what) + "\n")
    @dbus.service.method(NAME, in_signature="", out_signature="s")
    def getDefaultZone(self): return DEFAULT
    @dbus.service.method(ZONE, in_signature="s", out_signature="as")
    def getServices(self, zone): return dbus.Array([], "s")
    @dbus.service.method(ZONE, in_signature="ssi", out_signature="s")
    def addService(self, zone, service, timeout): return "elsewhere"
    @dbus.service.method(ZONE, in_signature="s", out_signature="aas")
    def getPorts(self, zone): return dbus.Array(self.ports, "as")
    @dbus.service.method(ZONE, in_signature="sssi", out_signature="s")
    def addPort(self, zone, port, protocol, timeout):
        self.told("open", port)
        self.ports.append(dbus.Array([port, protocol], "s"))
        return zone
    @dbus.service.method(ZONE, in_signature="sss", out_signature="s")
    def removePort(self, zone, port, protocol):
        self.told("close", port)
        found = [one for one in self.ports if one == [port, protocol]]
        if not found: raise Refused("NOT_ENABLED: '%s:%s' not in '%s'" % (port, protocol, zone))
        self.ports.remove(found[0])
        return zone
bus = dbus.SystemBus()
name = dbus.service.BusName(NAME, bus)
daemon = Daemon(bus, "/org/fedoraproject/FirewallD1")
GLib.MainLoop().run()
"#;

/// Has it running, with a default zone.
fn start_earlier(default: &str) {
    let text = EARLIER.replace("DEFAULT", &format!("\"{default}\""));
    std::fs::write("/earlier.py", text).expect("the root of the machine is writable");
    shell(
        "printf '[Service]\\nType=dbus\\nBusName=org.fedoraproject.FirewallD1\\nExecStart=/usr/bin/python3 /earlier.py\\n' \
         > /run/systemd/system/firewalld.service; systemctl daemon-reload; systemctl restart firewalld",
    );
}

#[test]
fn a_firewalld_that_knows_only_whole_ranges_keeps_the_rest_open() {
    let test = "firewalld::a_firewalld_that_knows_only_whole_ranges_keeps_the_rest_open";
    Place::machine(test)
        .needing(&["firewall-cmd", "python3"])
        .run(|| {
            start_earlier("public");
            let Finished { code, stderr: said, .. } = shown(
                "firewalld \"no\" {\n\tstate => \"absent\",\n\tports => [\"8005/tcp\", \"8010/tcp\"],\n}\n",
            );
            assert_eq!(code, 0, "{said}");
            let asked = "close 8005\nopen 8000-8004\nopen 8006-8010\nclose 8000-8010\nclose 8010\nopen 8006-8009\nclose 8006-8010";
            assert_eq!(shell("cat /asked"), asked);
            shows_error(
                "firewalld \"web\" {\n\tservices => [\"http\"],\n}\n",
                "failed to open the service http: it was done in the zone `elsewhere` instead of `public`",
            );
            start_earlier("");
            shows_error(
                "firewalld \"web\" {\n\tservices => [\"http\"],\n}\n",
                "failed to ask firewalld for the default zone: it has none: `firewall-cmd --set-default-zone` sets one",
            );
        });
}
