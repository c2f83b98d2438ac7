//! Network interfaces, as sources see them.

use std::net::IpAddr;

use super::{Timer, Wake};

/// The network of the machine.
pub trait Network: Send + Sync {
    /// All interfaces, by index.
    ///
    /// # Errors
    /// As the system says.
    fn interfaces(&self) -> std::io::Result<Vec<Interface>>;

    /// Wakes when a link or an address changes, until dropped. Armed when this returns.
    ///
    /// # Errors
    /// As the system says.
    fn watch(&self, wake: Wake) -> std::io::Result<Timer>;
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Whether it is a loopback interface.
    pub loopback: bool,
    /// Whether it is up.
    pub up: bool,
    /// Its hardware address, if that has 48 bits.
    pub mac: Option<[u8; 6]>,
    /// Its addresses with the lengths of their prefixes.
    pub addresses: Vec<(IpAddr, u8)>,
}
