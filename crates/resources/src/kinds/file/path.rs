//! The effective path of a `file`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use setpoint_host::files::{AbsolutePath, InvalidPath};

/// `path`, else the name, with the directory part or the last component replaced.
pub(super) fn effective(name: &[u8], path: &[u8], dirname: &[u8], basename: &[u8]) -> Vec<u8> {
    let start = if path.is_empty() { name } else { path };
    if dirname.is_empty() && basename.is_empty() {
        return start.to_vec();
    }
    let cleaned = cleaned(start);
    let end = cleaned.strip_suffix(b"/").unwrap_or(&cleaned).len();
    let split = cleaned[..end]
        .iter()
        .rposition(|byte| *byte == b'/')
        .map_or(0, |at| at + 1);
    let (directory, last) = cleaned.split_at(split);
    let directory = if dirname.is_empty() { directory } else { dirname };
    let last = if basename.is_empty() { last } else { basename };
    [directory, last].concat()
}

/// Without `.`, `..` and double slashes, by the text alone; a trailing slash stays.
fn cleaned(path: &[u8]) -> Vec<u8> {
    let absolute = path.starts_with(b"/");
    let mut kept: Vec<&[u8]> = Vec::new();
    for component in path.split(|byte| *byte == b'/') {
        match component {
            b"" | b"." => {}
            b".." if kept.last().is_some_and(|last| *last != b"..") => {
                kept.pop();
            }
            b".." if absolute => {}
            component => kept.push(component),
        }
    }
    let mut text = kept.join(&b'/');
    if absolute {
        text.insert(0, b'/');
    }
    if path.ends_with(b"/") && !text.ends_with(b"/") {
        text.push(b'/');
    }
    text
}

/// The bytes as an absolute path.
pub(super) fn absolute(path: impl Into<Vec<u8>>) -> Result<AbsolutePath, InvalidPath> {
    AbsolutePath::new(OsString::from_vec(path.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_part_and_last_component_can_be_replaced() {
        for (path, dirname, basename, wanted) in [
            ("/a//./b/../c", "", "", "/a//./b/../c"),
            ("/a//./b/../c", "/x/", "", "/x/c"),
            ("/a/b/", "/x/", "", "/x/b/"),
            ("/a/b/", "", "c", "/a/c"),
            ("/a/b", "", "c/", "/a/c/"),
            ("name", "/x/", "", "/x/name"),
            ("name", "", "c", "c"),
            ("/a/b", "/x/", "y", "/x/y"),
            ("/", "", "c", "c"),
            ("/../a", "/x/", "", "/x/a"),
        ] {
            let found = effective(
                b"unused",
                path.as_bytes(),
                dirname.as_bytes(),
                basename.as_bytes(),
            );
            assert_eq!(
                String::from_utf8_lossy(&found),
                wanted,
                "{path} {dirname} {basename}"
            );
        }
        assert_eq!(effective(b"/n", b"", b"", b""), b"/n");
    }
}
