//! The core library of mcl: every function that a program can call without defining it.
//!
//! One file a module, each with its own table; [`MODULES`] lists the tables. A function is described once, by
//! `#[function]`, and everything else (inference, checks, documentation, editor
//! help) is derived from that. Nothing here does I/O: what depends on the machine is a source, which is given
//! [`setpoint_value::Capabilities`].

#![forbid(unsafe_code)]

mod convert;
pub mod cty;
mod datetime;
mod deploy;
mod encoding;
mod example;
mod fmt;
mod golang;
mod hash;
mod iter;
mod list;
mod local;
mod map;
mod math;
mod net;
mod os;
mod printf;
mod provisioner;
mod regexp;
mod strings;
mod sys;
mod test;
mod text_builder;
mod top_level;
mod util;
mod value;
mod version;
mod world;

use setpoint_value::{Module, Registry};

/// Every module, in the order of the reference documentation.
pub static MODULES: &[&Module] = &[
    &top_level::MODULE,
    &convert::MODULE,
    &cty::MODULE,
    &datetime::MODULE,
    &deploy::MODULE,
    &provisioner::MODULE,
    &encoding::MODULE,
    &example::MODULE,
    &example::nested::MODULE,
    &fmt::MODULE,
    &golang::template::MODULE,
    &golang::html::MODULE,
    &golang::math::MODULE,
    &golang::rand::MODULE,
    &golang::os::MODULE,
    &golang::exec::MODULE,
    &golang::path::MODULE,
    &golang::filepath::MODULE,
    &golang::runtime::MODULE,
    &golang::strconv::MODULE,
    &golang::strings::MODULE,
    &hash::MODULE,
    &iter::MODULE,
    &list::MODULE,
    &local::MODULE,
    &map::MODULE,
    &math::MODULE,
    &net::MODULE,
    &net::http::MODULE,
    &os::MODULE,
    &regexp::MODULE,
    &strings::MODULE,
    &sys::MODULE,
    &sys::fwupd::MODULE,
    &test::MODULE,
    &util::MODULE,
    &version::MODULE,
    &value::MODULE,
    &world::MODULE,
    &world::collect::MODULE,
];

/// All functions and variables of the library.
#[must_use]
pub fn registry() -> Registry {
    Registry::new(MODULES.iter().copied())
}
