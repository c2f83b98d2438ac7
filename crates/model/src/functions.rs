//! What calls, casts, operators and templates do with values: everything that needs no waiting.
//!
//! Nothing here knows how a model is executed. What a function or template wants to know of the running model it asks its
//! [`context::Context`], and where the answer is not there yet, the call stops with the cell that it needs and is made again later.

pub mod casts;
pub mod codes;
pub mod context;
pub mod equality;
#[cfg(test)]
mod generate;
pub mod operators;
#[cfg(test)]
mod testing;
pub mod text;
