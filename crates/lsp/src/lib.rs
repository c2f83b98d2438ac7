//! The language server: what an editor asks about programs and models, answered from [`setpoint_mcl::analysis`] and
//! [`setpoint_cf::analysis`]. The ending of a file says in which language it is.
//!
//! ```text
//!  client ◀─▶ transport ─▶ server: documents, life of the connection ─ jobs ─▶ worker: one analysis at a time ─▶ answers
//! ```
//!
//! [`serve`] runs the loop on a [`Connection`]. The thread of the loop takes in texts and puts requests in a queue;
//! one further thread analyses and answers. A newer text ends the analysis of an older one, and a request about an older text
//! is answered with «content modified». Nothing is written but answers: the server changes no file.
//!
//! The crate reads files only through [`Files`], which whoever starts the server gives it, and knows functions and kinds only from a
//! [`Library`](setpoint_graph::Library).

#![forbid(unsafe_code)]

mod documents;
mod features;
mod language;
mod library_text;
mod positions;
mod programs;
mod queue;
mod server;
mod setup;
mod transport;
mod uri;
mod worker;

pub use library_text::kind_snippets;
pub use server::{Ending, serve};
pub use setup::{Files, Setup};
pub use transport::{ClientConnection, Connection, LARGEST_MESSAGE, Outgoing, Transport};
