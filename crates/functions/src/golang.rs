//! `golang/*`: functions of Go's standard library, and what of it other modules are made of.

pub(crate) mod exec;
pub(crate) mod filepath;
pub(crate) mod html;
pub(crate) mod math;
pub(crate) mod numbers;
pub(crate) mod os;
pub(crate) mod path;
pub(crate) mod quoting;
pub(crate) mod rand;
pub(crate) mod runtime;
pub(crate) mod strconv;
pub(crate) mod strings;
pub(crate) mod template;
pub(crate) mod text;
