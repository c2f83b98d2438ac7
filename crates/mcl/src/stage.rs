//! The stages of this language, in the order in which a program goes through them.

use setpoint_diagnostics::Stage;

/// Characters into tokens.
pub const LEX: Stage = Stage::new("lex");
/// Tokens into a tree.
pub const PARSE: Stage = Stage::new("parse");
/// Structural rules of single statements.
pub const INIT: Stage = Stage::new("init");
/// Strings are expanded, colon classes nested.
pub const INTERPOLATE: Stage = Stage::new("interpolate");
/// Imports are followed and names resolved.
pub const SCOPE: Stage = Stage::new("scope");
/// Types are inferred.
pub const TYPE: Stage = Stage::new("type");
/// The dataflow program is built.
pub const LOWER: Stage = Stage::new("lower");
/// Values flow.
pub const EVAL: Stage = Stage::new("eval");
/// Values become a resource graph.
pub const INTERPRET: Stage = Stage::new("interpret");
/// The layout of the text.
pub const FORMAT: Stage = Stage::new("format");
