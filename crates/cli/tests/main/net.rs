//! The kind `net` with real interfaces: pairs of virtual ones in the network of a throw-away machine.

use std::path::Path;

use setpoint_testing::Hermetic;

use crate::end_to_end::{Engine, text};
use crate::kind::{fails, once, repairs, warnings};
use setpoint_testing::place::{Place, shell};

fn net(parameters: &str) -> String {
    format!("net \"one\" {{ {parameters} }}\n")
}

/// Interfaces `one` and `two`, each of which has another end that is up.
fn make_interfaces() {
    shell(
        "for name in one two; do ip link add $name type veth peer name $name-peer; ip link set $name-peer up; done",
    );
}

/// Addresses of an interface in the order of the kernel, without those of the link itself.
fn addresses(of: &str) -> String {
    shell(&format!(
        "ip -o addr show dev {of} | grep -v ' fe80:' | awk '{{print $4}}' | xargs"
    ))
}

fn defaults() -> String {
    shell("(ip -4 route show default; ip -6 route show default) | sed 's/ *$//'")
}

const FILE: &str = "/etc/systemd/network/setpoint-one.network";

#[test]
fn an_interface_is_brought_up_and_down_with_its_file() {
    Place::machine("net::an_interface_is_brought_up_and_down_with_its_file").run(|| {
        make_interfaces();
        shell("mkdir -p /etc/systemd/network; echo former > /etc/systemd/network/mgmt-one.network");
        let up = net("state => \"up\", addrs => [\"192.0.2.7/24\", \"2001:db8::7/64\",], gateway => \"192.0.2.1\", ip_forward => true,");
        repairs(&up, &["file", "file", "state", "addrs", "gateway", "ip_forward"]);
        assert_eq!(
            text(Path::new(FILE)),
            "[Match]\nName=one\n[Network]\nAddress=192.0.2.7/24\nAddress=2001:db8::7/64\nGateway=192.0.2.1\nIPForward=true\n"
        );
        assert!(!Path::new("/etc/systemd/network/mgmt-one.network").exists());
        assert_eq!(addresses("one"), "192.0.2.7/24 2001:db8::7/64");
        assert_eq!(defaults(), "default via 192.0.2.1 dev one proto static");
        assert_eq!(shell("cat /proc/sys/net/ipv[46]/conf/one/forwarding | xargs"), "1 1");
        // Unset parameters are neither in the file nor looked at.
        repairs(&net("state => \"up\","), &["file"]);
        assert_eq!(text(Path::new(FILE)), "[Match]\nName=one\n[Network]\n");
        assert_eq!(addresses("one"), "192.0.2.7/24 2001:db8::7/64");
        // Down: nothing else is looked at.
        repairs(&net("state => \"down\", addrs => [\"192.0.2.9/24\",], gateway => \"198.51.100.1\","), &["file", "state"]);
        assert!(!Path::new(FILE).exists());
        assert_eq!(shell("cat /sys/class/net/one/operstate"), "down");
        // Without a state, neither that nor the file is managed.
        repairs(&net("addrs => [],"), &["addrs"]);
        assert!(!Path::new(FILE).exists());
        assert_eq!(addresses("one"), "");
        fails(
            "net \"on\" { state => \"up\", }\n",
            "find the interface on: there is no such interface; did you mean `one`?",
        );
        let (_, error) = once("net \"nothing-alike\" { state => \"up\", }\n");
        assert!(error.is_some_and(|error| error.contains("there are: lo, ")));
    });
}

#[test]
fn addresses_are_those_that_are_wanted_and_those_that_others_keep() {
    Place::machine("net::addresses_are_those_that_are_wanted_and_those_that_others_keep").run(|| {
        make_interfaces();
        shell("ip link set one up; ip addr add 192.0.2.6/24 dev one; ip addr add 192.0.2.7/24 dev one; ip addr add 192.0.2.8/25 dev one");
        shell("ip addr add 192.0.2.99/24 dev one valid_lft 1000 preferred_lft 1000; ip addr add 2001:db8::9/64 dev one valid_lft 1000 preferred_lft 1000");
        // The first of a network takes those with it that are beside it; another length of the prefix is another address.
        let three = net("addrs => [\"192.0.2.8/24\", \"192.0.2.7/24\", \"2001:DB8::1/64\", \"192.0.2.7/24\",],");
        repairs(&three, &["addrs"]);
        let is = addresses("one");
        let mut is: Vec<&str> = is.split(' ').collect();
        is.sort_unstable();
        assert!(is.contains(&"2001:db8::9/64"), "what a client keeps alive stays: {is:?}");
        is.retain(|address| !address.ends_with("::9/64") && !address.contains(".99/"));
        assert_eq!(is, ["192.0.2.7/24", "192.0.2.8/24", "2001:db8::1/64"]);
        // Without the route that the kernel made with it, an address is of no use.
        shell("ip route del 192.0.2.0/24 dev one");
        repairs(&three, &["addrs"]);
        assert!(shell("ip route show 192.0.2.0/24 dev one").contains("proto kernel"));
        shell("ip -6 route del 2001:db8::/64 dev one proto kernel");
        repairs(&three, &["addrs"]);
        // One address alone has none of its own, and neither has one that was made without.
        repairs(&net("addrs => [\"203.0.113.1/32\",],"), &["addrs"]);
        shell("ip addr add 198.51.100.1/24 dev one noprefixroute");
        repairs(&net("addrs => [\"203.0.113.1/32\", \"198.51.100.1/24\",],"), &[]);
        // With somebody at the other end.
        shell("ip addr add 198.51.100.5 peer 198.51.100.6 dev one");
        repairs(&net("addrs => [\"203.0.113.1/32\",],"), &["addrs"]);
        assert!(!addresses("one").contains("198.51"));
        // One of the link itself goes only with others that nobody wants, and is there when it is wanted.
        repairs(&net("addrs => [\"fe80::1234/64\",],"), &["addrs"]);
        assert_eq!(shell("ip -o -6 addr show dev one scope link | grep -c fe80"), "2");
        shell("echo 1 > /proc/sys/net/ipv6/conf/one/disable_ipv6");
        fails(
            &net("addrs => [\"2001:db8::1/64\",],"),
            "add the address 2001:db8::1/64: IPv6 is switched off for this interface (net.ipv6.conf.NAME.disable_ipv6)",
        );
    });
}

#[test]
fn the_loopback_interface_has_addresses_without_routes_of_its_own() {
    let test = "net::the_loopback_interface_has_addresses_without_routes_of_its_own";
    Place::machine(test).needing(&["ip"]).run(|| {
        let program = "net \"lo\" { addrs => [\"127.0.0.1/8\", \"::1/128\", \"198.51.100.9/24\"], }\n";
        repairs(program, &["addrs"]);
        assert_eq!(
            shell("ip -o addr show dev lo | awk '{print $4}'"),
            "127.0.0.1/8\n198.51.100.9/24\n::1/128"
        );
    });
}

#[test]
fn the_gateway_is_the_only_one_of_its_interface() {
    Place::machine("net::the_gateway_is_the_only_one_of_its_interface").run(|| {
        make_interfaces();
        shell("for name in one two; do ip link set $name up; done; ip addr add 192.0.2.7/24 dev one; ip addr add 198.51.100.7/24 dev two");
        shell("ip addr add 2001:db8::7/64 dev one nodad; ip addr add 2001:db8:1::7/64 dev two nodad");
        shell("ip route add default via 198.51.100.1; ip -6 route add default via 2001:db8:1::1");
        let both = "ip route show default | sort; ip -6 route show default | grep -o 'via [^ ]* dev [^ ]*' | sort";
        let v4 = net("gateway => \"192.0.2.1\",");
        repairs(&v4, &["gateway"]);
        // That of another interface stays.
        let is = shell(both);
        assert!(is.contains("default via 192.0.2.1 dev one proto static"), "{is}");
        assert!(is.contains("default via 198.51.100.1 dev two"), "{is}");
        // Two resources for two interfaces leave each other alone.
        let of_both = format!("{v4}net \"two\" {{ gateway => \"198.51.100.1\", }}\n");
        repairs(&of_both, &[]);
        // Others of the same interface go, of whatever metric.
        shell("ip route add default via 192.0.2.2 dev one metric 50; ip route append default via 192.0.2.3 dev one; ip route del default via 192.0.2.1 dev one");
        repairs(&v4, &["gateway"]);
        assert_eq!(shell("ip route show default dev one"), "default via 192.0.2.1 proto static");
        let v6 = net("gateway => \"2001:db8::1\",");
        repairs(&v6, &["gateway"]);
        let is = shell(both);
        assert!(is.contains("via 2001:db8::1 dev one") && is.contains("via 2001:db8:1::1 dev two"), "{is}");
        shell("ip -6 route append default via 2001:db8::2 dev one; ip -6 route add default via 2001:db8::3 dev one metric 5");
        repairs(&v6, &["gateway"]);
        let is = shell(both);
        assert!(!is.contains("2001:db8::2") && !is.contains("2001:db8::3"), "{is}");
        assert!(is.contains("via 2001:db8::1 dev one") && is.contains("via 2001:db8:1::1 dev two"), "{is}");
        repairs(&net("gateway => \"fe80::1\","), &["gateway"]);
        fails(
            &net("gateway => \"203.0.113.1\","),
            "use the gateway 203.0.113.1: it is in no network of one, which has 192.0.2.7/24; `onlink => true` says that it is reached all the same",
        );
        assert_eq!(shell("ip route show default dev one"), "default via 192.0.2.1 proto static");
        // Unless it is said that it is reached directly.
        let alone = net("state => \"up\", addrs => [\"198.51.100.9/32\",], gateway => \"203.0.113.1\", onlink => true,");
        repairs(&alone, &["file", "addrs", "gateway"]);
        assert_eq!(shell("ip route show default dev one"), "default via 203.0.113.1 proto static onlink");
        assert_eq!(
            text(Path::new(FILE)),
            "[Match]\nName=one\n[Network]\nAddress=198.51.100.9/32\n[Route]\nGateway=203.0.113.1\nGatewayOnLink=true\n"
        );
        repairs(&net("gateway => \"2001:db8:ff::1\", onlink => true,"), &["gateway"]);
        let is = shell("ip -6 route show default");
        let there = is.lines().find(|line| line.contains("via 2001:db8:ff::1 dev one"));
        assert!(there.is_some_and(|line| line.contains("onlink")), "{is}");
    });
}

#[test]
fn a_file_that_networkd_takes_instead_is_warned_of() {
    Place::machine("net::a_file_that_networkd_takes_instead_is_warned_of").run(|| {
        make_interfaces();
        let up = net("state => \"up\", addrs => [\"192.0.2.7/24\",],");
        assert_eq!(warnings(&up), [""; 0], "those of the system are for other interfaces");
        let other = |path: &str, text: &str| {
            shell(&format!("mkdir -p $(dirname {path}); printf '{text}' > {path}"));
        };
        let said = |takes: &str, path: &str| {
            format!("systemd-networkd {takes} {path} for one instead of setpoint-one.network, which comes later by its name")
        };
        other("/etc/systemd/network/zz.network", "[Match]\\nName=one\\n");
        other("/run/systemd/network/20-wired.network", "[Match]\\nDriver=veth\\n");
        assert_eq!(warnings(&up), [said("may take", "/run/systemd/network/20-wired.network")]);
        other("/run/systemd/network/10-all.network", "[Match]\\nType=ether\\nName=!lo\\n");
        assert_eq!(warnings(&up), [said("takes", "/run/systemd/network/10-all.network")]);
        // Networkd says so, too.
        shell("systemctl start systemd-networkd");
        let taken = || shell("networkctl status one --no-pager | sed -n 's/.*Network File: //p'");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while taken() != "/run/systemd/network/10-all.network" {
            assert!(std::time::Instant::now() < deadline, "{}", taken());
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        shell("systemctl stop systemd-networkd.socket systemd-networkd");
        // One that is switched off, and one for others.
        shell("ln -s /dev/null /etc/systemd/network/10-all.network");
        other("/run/systemd/network/20-wired.network", "[Match]\\nName=two lo\\n");
        assert_eq!(warnings(&up), [""; 0]);

        // It is said once, and when it comes while we run.
        let place = Hermetic::new();
        let mut engine = Engine::of_program(&place, &up);
        engine.event("convergence", |event| event["event"] == "converged");
        other("/etc/systemd/network/05-mine.network", "[Match]\\nName=o*\\n");
        engine.event("the warning", |event| {
            event["level"] == "warning" && event["message"] == said("takes", "/etc/systemd/network/05-mine.network")
        });
        shell("ip addr add 192.0.2.9/24 dev one");
        engine.repaired_until("net", "one", || addresses("one") == "192.0.2.7/24");
        let mut running = engine.into_running();
        running.drain();
        let told = running.seen().iter().filter(|line| line.contains("05-mine")).count();
        assert_eq!(told, 1);
        running.signal("TERM");
        let (status, errors) = running.finish();
        assert_eq!(status.code(), Some(0), "{errors}");
    });
}

#[test]
fn what_is_changed_by_hand_is_repaired_when_the_kernel_tells_of_it() {
    Place::machine("net::what_is_changed_by_hand_is_repaired_when_the_kernel_tells_of_it").run(|| {
        make_interfaces();
        let place = Hermetic::new();
        let main = place.write(
            "main.mcl",
            net("state => \"up\", addrs => [\"192.0.2.7/24\",], gateway => \"192.0.2.1\", ip_forward => true,")
                + "net \"later\" { state => \"up\", addrs => [\"203.0.113.7/24\",], }\n",
        );
        let mut engine = Engine::start(&place, &[main.to_str().expect("the place has a plain name")]);
        engine.event("one is right", |event| {
            event["event"] == "run ended" && event["name"] == "one" && event["kind"] == "net"
        });
        for (drift, looked, right) in [
            ("ip addr del 192.0.2.7/24 dev one", "ip -o -4 addr show dev one | grep -c 192.0.2.7/24 || true", "1"),
            ("ip addr add 192.0.2.9/24 dev one", "ip -o -4 addr show dev one | grep -c 192.0.2.9/24 || true", "0"),
            ("ip link set one down", "ip route show default | grep -c 192.0.2.1 || true", "1"),
            ("ip route del default", "ip route show default | grep -c 192.0.2.1 || true", "1"),
            ("echo 0 > /proc/sys/net/ipv4/conf/one/forwarding", "cat /proc/sys/net/ipv4/conf/one/forwarding", "1"),
            (&format!("rm {FILE}"), &format!("ls {FILE} 2>/dev/null | wc -l"), "1"),
        ] {
            shell(drift);
            engine.repaired_until("net", "one", || shell(looked) == right);
        }
        // Renamed, and back.
        shell("ip link set one down; ip link set one name was-one");
        engine.event("it is missed", |event| {
            event["name"] == "one" && event["error"].as_str().is_some_and(|error| error.starts_with("find the interface one"))
        });
        shell("ip addr add 192.0.2.9/24 dev was-one; ip link set was-one name one");
        engine.repaired_until("net", "one", || addresses("one") == "192.0.2.7/24");
        assert!(defaults().contains("via 192.0.2.1"));
        // One that comes later.
        shell("ip link add later type veth peer name later-peer");
        engine.repaired_until("net", "later", || addresses("later") == "203.0.113.7/24");
        engine.stop();
    });
}

#[test]
fn networkd_that_runs_is_told() {
    Place::machine("net::networkd_that_runs_is_told").run(|| {
        make_interfaces();
        shell("systemctl start systemd-networkd");
        let both = net("state => \"up\", addrs => [\"192.0.2.7/24\",], gateway => \"192.0.2.1\",");
        let place = Hermetic::new();
        let main = place.write("main.mcl", &both);
        let engine = Engine::start(&place, &[main.to_str().expect("the place has a plain name")]);
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        let configured = || shell("networkctl --no-legend list one | awk '{print $5}'") == "configured";
        while !configured() || !defaults().contains("via 192.0.2.1") {
            assert!(std::time::Instant::now() < deadline, "networkd has it as its own");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        engine.stop();
        repairs(&both, &[]);
    });
}
