//! Laws of the model language, and conversations, that single cases cannot show.

mod execute_laws;
#[path = "execute/model.rs"]
#[allow(dead_code, reason = "shared by both test programs")]
mod model;
mod plugins;
mod replay;
mod rules;
