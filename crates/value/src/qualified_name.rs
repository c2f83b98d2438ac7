//! What a function is called.

use std::fmt;

/// The module of a function and its name there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QualifiedName<'a> {
    /// Import name of the module, `golang/strings`; empty for functions that need no import.
    pub module: &'a str,
    /// The name in the module.
    pub name: &'a str,
}

impl QualifiedName<'_> {
    /// The name as a program has it when the module is imported under its own name: `strings.title` of `golang/strings`.
    #[must_use]
    pub fn called(self) -> String {
        match self.module.rsplit('/').next() {
            Some(alias) if !alias.is_empty() => format!("{alias}.{}", self.name),
            _ => self.name.to_owned(),
        }
    }
}

impl fmt::Display for QualifiedName<'_> {
    /// The name as it is written after `import "module"`, with the module's whole path: `golang/strings.title`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.module.is_empty() {
            f.write_str(self.name)
        } else {
            write!(f, "{}.{}", self.module, self.name)
        }
    }
}
