//! The kinds of resources: one file or folder each, and the table of all.
//!
//! A kind is a struct of parameters with `#[derive(Resource)]`, and an implementation of `setpoint_engine::Resource` with
//! what it watches and how it compares and repairs. To add one: its file, its `mod` line and its line in the table.
//!
//! What only some kinds need is a service that whoever assembles the program registers (`setpoint_engine::Extensions`):
//! [`LocalValues`] for `value`, [`ProgramExit`] for `exit`, [`ProgramFiles`] for `deploy:tar`, [`SharedStore`] for `kv`, `gate` and `settled`, [`SharedElections`] for `schedule`, [`Joining`] for `remote`. The sorts of identities by which kinds find each other are
//! [`sorts`].

#![forbid(unsafe_code)]

mod account_tools;
mod checksum;
mod command_rights;
mod derived_file;
mod edited_file;
mod elections;
mod enclosing;
mod file_mode;
mod firmware_updates;
mod home_file;
mod joining;
mod kinds;
mod local_values;
mod ownership;
mod packages;
mod pattern;
mod presence;
mod program_exit;
mod program_files;
mod remote_contents;
mod replaced_directory;
mod shared_store;
pub mod sorts;
mod system_bus;
mod tar_archive;
mod text_edit;
mod text_lines;
mod text_place;
mod time_span;
mod turns;
mod unit_control;
mod unit_files;
mod validation;
mod value_encoding;
mod written_file;

pub use elections::{Candidacy, Elections, Recorded, SharedElections, Strategy, elected};
pub use joining::{Endpoints, Joining, LocalEndpoint, StoreAccess};
pub use kinds::{INTERNAL_KINDS, KINDS};
pub use local_values::LocalValues;
pub use program_exit::ProgramExit;
pub use program_files::{ProgramFile, ProgramFileContent, ProgramFiles};
pub use shared_store::{Secrecy, SharedKey, SharedStore, SharedString, SharedStrings};
