//! The `mcl` language: text to program.

#![forbid(unsafe_code)]

pub mod format;
pub mod syntax;
