//! Addresses of documents, and paths.

use std::str::FromStr;

use lsp_types::Uri;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What stays as it is in the path of an address.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Texts of modules that are part of the program `setpoint` have addresses that begin so.
pub(crate) const EMBEDDED: &str = "setpoint:/";

/// The absolute path of a `file:` address; of any other address, itself.
pub(crate) fn path(uri: &Uri) -> String {
    let text = uri.as_str();
    let Some(rest) = text.strip_prefix("file://") else {
        return text.to_owned();
    };
    let path = &rest[rest.find('/').unwrap_or(0)..];
    match percent_decode_str(path).decode_utf8() {
        Ok(path) => normalized(&path),
        Err(_) => text.to_owned(),
    }
}

/// The address of what [`path`] gave.
pub(crate) fn uri(path: &str) -> Option<Uri> {
    let text = match path.starts_with('/') {
        true => format!("file://{}", utf8_percent_encode(path, ENCODED)),
        false => path.to_owned(),
    };
    Uri::from_str(&text).ok()
}

/// Whether it is the path of a file.
pub(crate) fn is_file(path: &str) -> bool {
    path.starts_with('/')
}

/// The directory that holds a file, ending in `/`.
pub(crate) fn directory(path: &str) -> &str {
    &path[..path.rfind('/').map_or(0, |at| at + 1)]
}

/// Without `.`, `..` and empty parts.
pub(crate) fn normalized(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_unusual_letters_survive() {
        for there in ["/a b/ä#?.mcl", "/plain/main.mcl", "/100%/x:y.mcl"] {
            let address = uri(there).unwrap();
            assert!(address.as_str().starts_with("file:///"), "{}", address.as_str());
            assert_eq!(path(&address), there);
        }
        let other = Uri::from_str("untitled:Untitled-1").unwrap();
        assert_eq!(path(&other), "untitled:Untitled-1");
        assert_eq!(uri("untitled:Untitled-1"), Some(other));
        assert_eq!(
            path(&Uri::from_str("file://localhost/a/../b//c").unwrap()),
            "/b/c"
        );
    }
}
