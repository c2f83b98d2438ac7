//! Tests of the desired graph, on a handful of kinds made for them.

mod assembling;
mod building;
mod exporting;
mod kinds;
mod laws;
mod plain;
mod printing;
mod second_language;
