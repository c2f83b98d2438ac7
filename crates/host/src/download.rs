//! Downloads over HTTP and HTTPS.
//!
//! Proxies are those of the environment (`HTTPS_PROXY`, `NO_PROXY`, …), and certificates are checked against those that the system believes.
//!
//! - [`Request`] asks a server, follows redirects, and answers the contents as they arrive.
//! - [`Part`] keeps the contents that arrived in a file, so that the next try continues it.
//! - [`download`] is the short form: contents into a file without a name.

mod address;
mod part;
mod request;

use std::fs::File;
use std::io::{Seek, Write};

pub use address::Address;
pub use part::{Fetched, Part};
pub use request::{Answer, Condition, Contents, Request, Trust, Validators};

/// Where files without a name are: what is downloaded may be too large for memory.
const DIRECTORY: &str = "/var/tmp";

/// Why something could not be downloaded.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// The address is invalid.
    #[error("{0}")]
    Address(String),
    /// The client could not be made.
    #[error("HTTP cannot be used here: {0}")]
    Client(String),
    /// There is no answer, or it ended before its end.
    #[error("{0}")]
    Failed(String),
    /// The server refused.
    #[error("the server answers {status}")]
    Refused {
        /// Its answer, such as `404 Not Found`.
        status: String,
        /// Whether a later try may succeed.
        is_passing: bool,
        /// The seconds after which the server wants to be asked again.
        retry_after: Option<u64>,
    },
    /// It is larger than it may be.
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    /// A file could not be read or written.
    #[error("{path}: {error}")]
    File {
        /// The file or directory.
        path: String,
        /// The error of the system.
        error: std::io::Error,
    },
}

impl DownloadError {
    /// Whether a later try may succeed.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            DownloadError::Failed(_) => true,
            DownloadError::Refused { is_passing, .. } => *is_passing,
            _ => false,
        }
    }

    fn file(path: impl std::fmt::Display) -> impl FnOnce(std::io::Error) -> DownloadError {
        let path = path.to_string();
        |error| DownloadError::File { path, error }
    }
}

/// Downloads what is at an address, up to so many bytes. The file is read from its beginning. Dropping this ends it.
///
/// # Errors
/// When it cannot be had wholly.
pub async fn download(url: &str, limit: u64) -> Result<File, DownloadError> {
    let address = Address::parse(url).map_err(DownloadError::Address)?;
    let Answer::Contents(mut contents) = Request::new(address).send(&Condition::None).await? else {
        return Err(DownloadError::Failed("the server sends nothing".to_owned()));
    };
    let failed = || DownloadError::file(DIRECTORY);
    let mut file = tempfile::tempfile_in(DIRECTORY).map_err(failed())?;
    let mut length: u64 = 0;
    while let Some(part) = contents.next().await? {
        length += part.len() as u64;
        if length > limit {
            return Err(DownloadError::TooLarge(limit));
        }
        tokio::task::block_in_place(|| file.write_all(&part)).map_err(failed())?;
    }
    file.rewind().map_err(failed())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    /// A server that answers one request with these bytes, and its address.
    fn server(answer: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("it has an address");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("somebody comes");
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(answer);
        });
        format!("http://{address}/file")
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_there_is_downloaded_wholly_or_not_at_all() {
        let url = server(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        let mut text = String::new();
        let mut file = download(&url, 5).await.expect("it is there");
        file.read_to_string(&mut text).expect("it can be read");
        assert_eq!(text, "hello");
        let said = |result: Result<File, DownloadError>| result.expect_err("it cannot be had").to_string();
        let url = server(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        assert_eq!(said(download(&url, 4).await), "it is larger than 4 bytes");
        let url = server(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(said(download(&url, 4).await), "the server answers 404 Not Found");
        let url = server(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello");
        assert!(!said(download(&url, 50).await).is_empty(), "it was cut off");
        // Nobody listens there any more.
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let url = format!("http://{}/file", free.expect("there is a free port"));
        assert!(said(download(&url, 50).await).to_lowercase().contains("refused"));
        assert!(!said(download("nonsense", 50).await).is_empty());
    }
}
