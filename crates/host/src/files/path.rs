//! Absolute paths, kept exactly as written.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// A path that starts with `/` and holds no NUL.
///
/// Compared byte for byte, unlike [`Path`]: `/a` and `/a/` differ, because a trailing slash says «directory» in
/// the resource languages.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AbsolutePath(OsString);

/// Why a text is no [`AbsolutePath`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPath {
    /// There is nothing.
    #[error("the path is empty")]
    Empty,
    /// It does not start with a slash.
    #[error("the path is not absolute")]
    Relative,
    /// No file system has such a name.
    #[error("the path contains a NUL byte")]
    ContainsNul,
}

impl AbsolutePath {
    /// Takes the text as it is; nothing is cleaned.
    pub fn new(text: impl Into<OsString>) -> Result<Self, InvalidPath> {
        let text = text.into();
        match text.as_bytes() {
            [] => Err(InvalidPath::Empty),
            [first, ..] if *first != b'/' => Err(InvalidPath::Relative),
            bytes if bytes.contains(&0) => Err(InvalidPath::ContainsNul),
            _ => Ok(Self(text)),
        }
    }

    /// The same as a [`Path`].
    pub fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }

    /// The bytes as written.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Whether it ends in a slash, which is how the languages say «directory».
    pub fn names_directory(&self) -> bool {
        self.as_bytes().ends_with(b"/")
    }

    /// The components between the slashes, `.` and empty ones left out, `..` kept.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &OsStr> {
        components(self.as_bytes())
    }

    /// The last component, or nothing for `/`.
    pub fn file_name(&self) -> Option<&OsStr> {
        self.components().next_back()
    }

    /// The directory above, by the text alone and without a trailing slash; nothing for `/`.
    pub fn parent(&self) -> Option<Self> {
        let mut kept: Vec<&OsStr> = self.components().collect();
        kept.pop()?;
        Some(Self::from_components(&kept, false))
    }

    /// `name` below this path. The name may itself have several components.
    pub fn join(&self, name: impl AsRef<OsStr>) -> Self {
        let mut text = self.0.clone().into_vec();
        if !text.ends_with(b"/") {
            text.push(b'/');
        }
        text.extend_from_slice(name.as_ref().as_bytes());
        Self(OsString::from_vec(text))
    }

    /// The same path with `.`, `..` and double slashes resolved in the text, keeping a trailing slash.
    ///
    /// That is what the languages mean by cleaning. It differs from what the kernel does where `..` follows a
    /// symbolic link.
    #[must_use]
    pub fn cleaned(&self) -> Self {
        if self.is_clean() {
            return self.clone();
        }
        let mut kept: Vec<&OsStr> = Vec::new();
        for component in self.components() {
            if component == ".." {
                kept.pop();
            } else {
                kept.push(component);
            }
        }
        Self::from_components(&kept, self.names_directory())
    }

    /// Whether cleaning would change nothing.
    fn is_clean(&self) -> bool {
        let inside = self.as_bytes().strip_prefix(b"/").unwrap_or_default();
        let inside = inside.strip_suffix(b"/").unwrap_or(inside);
        let mut names = inside.split(|byte| *byte == b'/');
        self.as_bytes() == b"/" || names.all(|name| !matches!(name, b"" | b"." | b".."))
    }

    /// Whether this path is `other` or lies below it, component by component.
    pub fn is_at_or_under(&self, other: &Self) -> bool {
        let mut own = self.components();
        other.components().all(|component| own.next() == Some(component))
    }

    fn from_components(components: &[&OsStr], directory: bool) -> Self {
        let mut text = Vec::new();
        for component in components {
            text.push(b'/');
            text.extend_from_slice(component.as_bytes());
        }
        if text.is_empty() || directory {
            text.push(b'/');
        }
        Self(OsString::from_vec(text))
    }
}

/// The meaningful components of a path's bytes.
pub(crate) fn components(bytes: &[u8]) -> impl DoubleEndedIterator<Item = &OsStr> {
    bytes
        .split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty() && *part != b".")
        .map(OsStr::from_bytes)
}

impl AsRef<Path> for AbsolutePath {
    fn as_ref(&self) -> &Path {
        self.as_path()
    }
}

impl fmt::Display for AbsolutePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_path().display().fmt(formatter)
    }
}

impl fmt::Debug for AbsolutePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
