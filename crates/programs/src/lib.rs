//! Programs in every language: how they are found, loaded, fetched, compiled, included in one another and evaluated, and what this machine
//! gives them.
//!
//! - [`program_input`] is what a user names; [`languages`] compile and evaluate it, in whichever language it is.
//! - [`Assembly`] is what a program can use: kinds, functions, constants.
//! - [`capabilities`] are the real clock, files, network and facts that sources are given; [`local_machine`] puts them together.
//! - [`failure`] and [`report`] are how everything above says what went wrong. Nothing here prints.

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "this crate is where the environment, the clock and the files are read"
)]

mod asked_files;
mod assembly;
pub mod capabilities;
pub mod codes;
pub mod command_path;
mod directory_loader;
pub mod environment;
pub mod facts;
pub mod failure;
mod host_key;
pub mod imposed;
mod input;
pub mod languages;
pub mod local_machine;
pub mod module_policy;
pub mod modules;
pub mod program_input;
mod python;
pub mod report;
mod yaml;

pub use assembly::Assembly;
pub use capabilities::{
    ProgramFiles, PublishedResponses, RealCapabilities, RealEffects, SharedWorld, SourceAccess,
};
pub use directory_loader::DirectoryLoader;
