//! Names in texts, with what they mean: what editors look up by place.

use crate::{FileId, Span};

/// A name in a text. `T` is what names of a language can mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name<T> {
    /// Exactly the name.
    pub span: Span,
    /// Its meaning.
    pub target: T,
    /// Whether this is where that is defined.
    pub is_definition: bool,
}

/// All names of some texts, in the order of the texts.
#[derive(Debug)]
pub struct NameIndex<T>(Vec<Name<T>>);

impl<T> NameIndex<T> {
    /// Sorts names. Names at one place with the same meaning are kept once, a definition first.
    #[must_use]
    pub fn new(mut names: Vec<Name<T>>, is_same: impl Fn(&T, &T) -> bool) -> NameIndex<T> {
        // Names are large compared with what they are sorted by.
        names.sort_by_cached_key(|name| (name.span, !name.is_definition));
        names.dedup_by(|b, a| a.span == b.span && is_same(&a.target, &b.target));
        NameIndex(names)
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[Name<T>] {
        &self.0
    }

    /// The names of one text.
    #[must_use]
    pub fn of_file(&self, file: FileId) -> &[Name<T>] {
        let start = self.0.partition_point(|name| name.span.file < file);
        let end = self.0.partition_point(|name| name.span.file <= file);
        &self.0[start..end]
    }

    /// The names around a place, and those that end there.
    pub fn touching(&self, file: FileId, offset: u32) -> impl Iterator<Item = &Name<T>> {
        /// Names nest, but no deeper than this.
        const DEEPEST: usize = 16;
        let names = self.of_file(file);
        let behind = names.partition_point(|name| name.span.start <= offset);
        let before = names[..behind].iter().rev().take(DEEPEST);
        before.filter(move |name| offset <= name.span.end)
    }
}

impl<T> Default for NameIndex<T> {
    fn default() -> NameIndex<T> {
        NameIndex(Vec::new())
    }
}

/// Defines numbers by which the parts of a resolved text refer to each other.
#[macro_export]
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// As an index into the vector that holds what has such numbers.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}
