//! Executes models of the model language, and exports the resources that result.
//!
//! [`execute`] runs a resolved model as a dataflow of cells, with the functions that it calls; [`export`] makes a desired graph of the
//! instances whose entities are bound to a kind.

#![forbid(unsafe_code)]

pub mod execute;
pub mod export;
