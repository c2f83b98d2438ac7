//! Hosts on a network of a test's own: a network namespace each, joined by a bridge in one more, so that the machine's own network is not touched.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Hosts that reach each other, until one is cut off. Removed when dropped.
#[derive(Debug)]
pub struct Network {
    /// What the names of its namespaces begin with.
    name: String,
    nodes: usize,
}

impl Network {
    /// So many hosts, numbered from 0. None where this machine lets nobody make namespaces, and then says that a test is skipped.
    ///
    /// # Panics
    /// When a namespace can be made, but not what belongs to it.
    #[must_use]
    #[expect(
        clippy::print_stderr,
        reason = "whoever runs the tests wants to know what was not tested"
    )]
    pub fn of(nodes: usize, test: &str) -> Option<Network> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let network = Network {
            name: format!("setpoint{}-{number}-", std::process::id()),
            nodes,
        };
        let bridge = network.bridge();
        if let Err(why) = ip(&["netns", "add", &bridge]) {
            eprintln!("skipped: {test}: needs network namespaces: {why}");
            return None;
        }
        let done = |arguments: &[&str]| {
            if let Err(why) = ip(arguments) {
                panic!("ip {arguments:?}: {why}");
            }
        };
        for arguments in [
            &["link", "add", "bridge", "type", "bridge"][..],
            &["link", "set", "lo", "up"],
            &["link", "set", "bridge", "up"],
            &["addr", "add", "10.77.0.254/24", "dev", "bridge"],
        ] {
            done(&[&["-n", &bridge], arguments].concat());
        }
        for node in 0..nodes {
            let (namespace, port) = (network.namespace(node), port(node));
            done(&["netns", "add", &namespace]);
            done(&[
                "-n", &bridge, "link", "add", &port, "type", "veth", "peer", "name", "net", "netns",
                &namespace,
            ]);
            done(&["-n", &bridge, "link", "set", &port, "master", "bridge", "up"]);
            let address = format!("{}/24", network.address(node));
            for arguments in [
                &["link", "set", "lo", "up"][..],
                &["addr", "add", &address, "dev", "net"],
                &["link", "set", "net", "up"],
            ] {
                done(&[&["-n", &namespace], arguments].concat());
            }
        }
        Some(network)
    }

    /// The address of a host.
    #[must_use]
    pub fn address(&self, node: usize) -> String {
        format!("10.77.0.{}", node + 1)
    }

    /// The namespace of a host.
    #[must_use]
    pub fn namespace(&self, node: usize) -> String {
        format!("{}{node}", self.name)
    }

    /// The namespace of the bridge, from which all hosts are reached that are not cut off.
    #[must_use]
    pub fn bridge(&self) -> String {
        format!("{}bridge", self.name)
    }

    /// From now on nothing reaches a host, and it reaches nobody: what is sent is lost without a word.
    ///
    /// # Panics
    /// When the link cannot be changed.
    pub fn cut_off(&self, node: usize) {
        self.set(node, "down");
    }

    /// It is reached again.
    ///
    /// # Panics
    /// When the link cannot be changed.
    pub fn join(&self, node: usize) {
        self.set(node, "up");
    }

    /// Parts hosts from all others, and from whoever is at the bridge, but not from each other.
    ///
    /// # Panics
    /// When the links cannot be changed.
    pub fn part(&self, nodes: &[usize]) {
        let bridge = self.bridge();
        ip(&["-n", &bridge, "link", "add", "island", "type", "bridge"]).expect("a bridge can be made");
        ip(&["-n", &bridge, "link", "set", "island", "up"]).expect("it is there");
        for node in nodes {
            ip(&["-n", &bridge, "link", "set", &port(*node), "master", "island"]).expect("it is there");
        }
    }

    /// All reach each other again.
    ///
    /// # Panics
    /// When the links cannot be changed.
    pub fn heal(&self) {
        let bridge = self.bridge();
        for node in 0..self.nodes {
            ip(&[
                "-n",
                &bridge,
                "link",
                "set",
                &port(node),
                "master",
                "bridge",
                "up",
            ])
            .expect("it is there");
        }
        let _ = ip(&["-n", &bridge, "link", "del", "island"]);
    }

    fn set(&self, node: usize, state: &str) {
        ip(&["-n", &self.bridge(), "link", "set", &port(node), state]).expect("it is there");
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for node in 0..self.nodes {
            let _ = ip(&["netns", "del", &self.namespace(node)]);
        }
        let _ = ip(&["netns", "del", &self.bridge()]);
    }
}

/// The end of a host's link at the bridge.
fn port(node: usize) -> String {
    format!("node{node}")
}

/// A program that runs in a namespace; where there is none, as it is.
pub(crate) fn within(namespace: Option<&str>, program: impl AsRef<Path>) -> Command {
    let Some(namespace) = namespace else {
        return Command::new(program.as_ref());
    };
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]).arg(program.as_ref());
    command
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip")
        .args(arguments)
        .output()
        .map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}
