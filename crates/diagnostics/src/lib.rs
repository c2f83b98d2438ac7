//! Texts, places in them, and what is wrong there, as data.
//!
//! Every front end reports through this crate and none prints: a stage pushes [`Diagnostic`]s into a
//! [`Diagnostics`] sink and goes on. [`render()`] turns one into text for people, which the command line prints and tests of every
//! language compare; the language server sends the data. The crate knows no language, no terminal and no disk: text comes in
//! through a [`Loader`].

#![forbid(unsafe_code)]

mod allow;
mod causes;
mod codes;
mod diagnostic;
mod documents;
mod fix;
mod loader;
mod merged;
mod names;
mod render;
mod similar;
mod source;
mod visible;

pub use allow::{Commented, Linter, Rule};
pub use causes::Causes;
pub use codes::{CodeInfo, Stage};
pub use diagnostic::{Diagnostic, Diagnostics, Edit, Help, Label, Severity};
pub use documents::{Document, Documents, Overlay};
pub use fix::{apply, fixes};
pub use loader::{LoadError, Loader, MemoryLoader};
pub use names::{Name, NameIndex};
pub use render::{RenderStyle, render};
pub use similar::{Closest, closest, did_you_mean};
pub use source::{FileId, Places, Position, SourceFile, SourceMap, Span, Utf16Position};
pub use visible::{visible, visible_lines, without_system_numbers};
