//! `golang/*`: functions of Go's standard library, and what of it other modules are made of.

pub(crate) mod numbers;
pub(crate) mod text;
