//! Lines for the log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much a line of the log matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// For who searches for a mistake.
    Debug,
    /// For who wants to know what happens.
    Info,
    /// Probably not as it was meant.
    Warning,
    /// Something went wrong.
    Error,
    /// What the program wants shown.
    Display,
}

/// Takes a line for the log.
pub type LogLine = Box<dyn Fn(Level, &str) + Send + Sync>;
