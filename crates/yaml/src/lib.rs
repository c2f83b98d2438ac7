//! YAML with places, and graphs that are written in it.
//!
//! [`tree`] reads YAML so that whoever finds a mistake can show where it is. [`compile`] makes a program of a file that lists resources and
//! edges: for graphs that other programs generate, and for whoever needs no language. There is no computation in one, so its program is
//! nothing but constants; everything behind it (graph, engine, reload) is the same as for the other languages. [`schema()`] describes such
//! files to editors.

#![forbid(unsafe_code)]

pub mod codes;
mod program;
mod schema;
pub mod tree;
mod values;

pub use program::compile;
pub use schema::schema;
