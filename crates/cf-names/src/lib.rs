//! Names of the model language: from the files of a project to one [`hir::Model`] in which every name is resolved.
//!
//! [`project`] finds the files and has them parsed; [`resolve`] turns the definitions and bodies of all into the model. Below both lie the
//! [`types`] of the language, its values ([`datum`]), the entities that are made from [`kinds`] of resources, and the functions that modules have
//! in Python ([`plugins`]).

#![forbid(unsafe_code)]

pub mod advice;
pub mod datum;
pub mod hir;
pub mod ids;
pub mod kinds;
pub mod plugins;
pub mod project;
pub mod resolve;
pub mod types;
