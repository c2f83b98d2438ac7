//! Network interfaces, in a network of the test's own.

use crate::machine::Machine;
use setpoint_testing::place::{Place, shell};

fn network(test: &'static str) -> Place {
    Place::namespaces(test, &["--net"]).needing(&["ip"])
}

#[test]
fn interfaces_come_change_and_go() {
    network("network::interfaces_come_change_and_go").run(|| {
        let machine = Machine::new();
        let mut macs = machine.follow(&["net"], "net.macs()");
        assert_eq!(macs.first().as_deref(), Ok("[]"));
        shell("ip link set lo up");
        shell(
            "ip link add va index 10 address 02:00:00:00:00:01 type veth peer name vb index 11 address 02:00:00:00:00:02",
        );
        macs.becomes(r#"["02:00:00:00:00:01", "02:00:00:00:00:02"]"#);
        shell("ip link set va address 02:00:00:00:00:03");
        macs.becomes(r#"["02:00:00:00:00:03", "02:00:00:00:00:02"]"#);
        shell("ip link del va");
        macs.becomes("[]");
    });
}

#[test]
fn an_address_comes_changes_and_goes() {
    network("network::an_address_comes_changes_and_goes").run(|| {
        let machine = Machine::new();
        let mut cidr = machine.follow(&["net"], "net.interface_cidr(\"va\") <|> \"none\"");
        assert_eq!(cidr.first().as_deref(), Ok("\"none\""));
        shell("ip link add va type veth peer name vb; ip link set va up; ip addr add fd00::1/64 dev va");
        shell("ip addr add 10.1.2.3/20 dev va");
        cidr.becomes("\"10.1.2.3/20\"");
        shell("ip addr del 10.1.2.3/20 dev va; ip addr add 192.168.7.1/24 dev va");
        cidr.becomes("\"192.168.7.1/24\"");
        shell("ip link del va");
        cidr.becomes("\"none\"");
    });
}

#[test]
fn a_wired_interface_that_is_up_is_preferred() {
    network("network::a_wired_interface_that_is_up_is_preferred").run(|| {
        let machine = Machine::new();
        let mut wired = machine.follow(&["net"], "net.wired_interface() <|> \"none\"");
        assert_eq!(wired.first().as_deref(), Ok("\"none\""));
        shell("ip link add va index 10 type veth peer name vb index 11");
        wired.becomes("\"va\"");
        shell("ip link set vb up");
        wired.becomes("\"vb\"");
        shell("ip link set va up");
        wired.becomes("\"va\"");
        shell("ip link del va");
        wired.becomes("\"none\"");
    });
}

#[test]
fn a_name_is_found_by_the_interfaces_address() {
    network("network::a_name_is_found_by_the_interfaces_address").run(|| {
        let machine = Machine::new();
        shell("ip link add va address 02:00:00:00:00:01 type veth peer name vb address 02:00:00:00:00:02");
        let ask = |map: &str| {
            let mut name = machine.follow(&["util"], &format!("util.hostname_mapper({map})"));
            name.first()
        };
        assert_eq!(
            ask(r#"{"02:00:00:00:00:02" => "two", "02:00:00:00:00:01" => ""}"#).as_deref(),
            Ok("\"two\"")
        );
        assert_eq!(ask(r#"{"02:00:00:00:00:09" => "nobody"}"#).as_deref(), Ok("\"\""));
        let both = ask(r#"{"02:00:00:00:00:01" => "one", "02:00:00:00:00:02" => "two"}"#);
        assert!(both.is_err_and(|text| text.contains("different names")));
    });
}
