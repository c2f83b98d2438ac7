//! The stages of this language, in the order in which a model goes through them.

use setpoint_diagnostics::Stage;

/// Characters into a tree.
pub const PARSE: Stage = Stage::new("parse");
/// Modules are found, definitions collected.
pub const SCOPE: Stage = Stage::new("scope");
/// Bodies are resolved: names, attributes, functions.
pub const TYPE: Stage = Stage::new("type");
/// Statements are executed, and what is left incomplete is found.
pub const EVAL: Stage = Stage::new("eval");
/// Instances become a resource graph.
pub const INTERPRET: Stage = Stage::new("interpret");
