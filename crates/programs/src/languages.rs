//! Programs and models at work: compiled, evaluated, and included in one another.
//!
//! ```text
//!  mcl, YAML: compilation ──▶ evaluation          .cf: model (compile, execute, export)
//!                 │  a program imports a model          │  a model imports a program
//!                 └──▶ included_models ──▶ model        └──▶ included_programs ──▶ compilation, evaluation
//! ```
//!
//! A program may import a model, and a model a program, to any depth; so these modules know each other.

pub mod compilation;
pub mod evaluation;
pub mod included_models;
pub mod included_programs;
pub mod installed_modules;
pub(crate) mod mcl_functions;
pub mod model;
pub mod model_loader;
