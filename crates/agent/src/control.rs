//! The control socket: how a running process is asked how things are, and told what to do.
//!
//! ```text
//!  setpoint status ── line JSON over control.sock ──▶ server: one thread ─┬─▶ owner of the machine: parts of the status, the summary
//!        ▲                                               │                ├─▶ ProgramState: graph, places, reload
//!        └────────────── lines ◀── queue of a client ────┘                └─▶ History: the newest events
//! ```
//!
//! The owner of the machine only copies what is asked for, a few resources at a time; text is made on the server's thread. Everything is bounded:
//! lines, clients, requests of a client, what waits to be written to it. Events are not queued for clients: each has a place in the one
//! history, and finds a gap when the history has moved on.

pub mod client;
mod events;
mod history;
mod names;
pub mod protocol;
mod reading;
mod refusal;
mod requests;
mod row;
mod schema;
mod server;
mod socket;

pub use reading::refuse_request;
pub use schema::lines_schema;
pub(crate) use server::{ControlSocket, listen};
