//! The address of contents: `https://…`, `http://…` or `file:///…`.

use std::fmt;
use std::path::PathBuf;

use reqwest::Url;

/// The address of contents, without a user and a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address(pub(super) Url);

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    /// The reason, as a part of a sentence.
    pub fn parse(text: &str) -> Result<Address, String> {
        let url = Url::parse(text).map_err(|error| format!("it is not an address: {error}"))?;
        match url.scheme() {
            "http" | "https" if url.host().is_none() => return Err("it names no host".to_owned()),
            "http" | "https" => {}
            "file" if url.host().is_some() || url.to_file_path().is_err() => {
                return Err("`file:` is followed by three slashes and a path".to_owned());
            }
            "file" => {}
            other => {
                return Err(format!(
                    "`{other}:` is not supported, only `https:`, `http:` and `file:`"
                ));
            }
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("it holds a user or a password, which would be shown in messages".to_owned());
        }
        Ok(Address(url))
    }

    /// The file of this machine, for `file:`.
    #[must_use]
    pub fn local(&self) -> Option<PathBuf> {
        (self.0.scheme() == "file")
            .then(|| self.0.to_file_path().ok())
            .flatten()
    }

    /// Whether nothing on the way can read or change the contents.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        self.0.scheme() != "http"
    }

    /// The last part of its path.
    #[must_use]
    pub fn file_name(&self) -> &str {
        let parts = self.0.path_segments();
        parts.and_then(|mut parts| parts.next_back()).unwrap_or_default()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_others_are_refused() {
        let address = Address::parse("https://example.org/a/b.tar.gz?x=1").unwrap();
        assert_eq!(address.file_name(), "b.tar.gz");
        assert!(address.is_protected() && address.local().is_none());
        let local = Address::parse("file:///srv/a").unwrap();
        assert_eq!(local.local(), Some(PathBuf::from("/srv/a")));
        for (text, why) in [
            ("/srv/a", "it is not an address: relative URL without a base"),
            (
                "ftp://example.org/",
                "`ftp:` is not supported, only `https:`, `http:` and `file:`",
            ),
            (
                "https://u:p@example.org/",
                "it holds a user or a password, which would be shown in messages",
            ),
            ("file://host/a", "`file:` is followed by three slashes and a path"),
        ] {
            assert_eq!(Address::parse(text), Err(why.to_owned()), "{text}");
        }
    }
}
