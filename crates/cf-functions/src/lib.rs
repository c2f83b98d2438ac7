//! What calls, casts, operators and templates of the model language do with values: everything that needs no waiting.
//!
//! Nothing here knows how a model is executed. What a function or template wants to know of the running model it asks its
//! [`context::Context`], and where the answer is not there yet, the call stops with the cell that it needs and is made again later.

#![forbid(unsafe_code)]

mod binding;
pub mod calls;
pub mod casts;
pub mod codes;
pub mod context;
pub mod declared;
pub mod equality;
pub mod format;
#[cfg(test)]
mod generate;
pub mod operators;
mod plugins;
pub mod std;
mod templates;
#[cfg(test)]
mod testing;
pub mod text;
pub mod types;
