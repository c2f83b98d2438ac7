//! From syntax to a resolved program: structural checks, strings, modules, names.
//!
//! The stages of one file run in order (`init`, `interpolate`, `scope`) and each stops at its own errors, which it reports
//! all of. An imported file goes through the same stages while the import is followed; what is wrong in it is an error
//! of stage *scope* at its place in that file, with the imports on the way as related places.

mod blocks;
mod classes;
mod codes;
mod cycles;
mod expressions;
mod imports;
mod init;
mod mentions;
mod modules;
mod names;
mod nesting;
mod parsed;
mod ranking;
mod recursion;
mod resolve;
mod sharing;

pub(crate) use codes::CODES;
pub use mentions::{AliasDefinition, AliasId, Mention, Mentions, Target};
pub use modules::{Metadata, RemoteImport};
pub use names::Space;
pub use parsed::{ParseCache, ParsedFile};
pub(crate) use recursion::depends_on_itself;
pub use resolve::Entry;
pub(crate) use resolve::{Alias, Extent, Frame, FrameId, ResolveInput, resolve};

#[cfg(test)]
mod tests;
