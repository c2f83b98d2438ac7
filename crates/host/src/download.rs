//! Downloads over HTTP and HTTPS, into files without a name that are gone when nobody has them open any more.
//!
//! Proxies are those of the environment (`HTTPS_PROXY`, `NO_PROXY`, …), and certificates are checked against those that the system believes. One client is shared by all.

use std::fs::File;
use std::io::{Seek, Write};
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::{Client, StatusCode};

/// How long it may take until there is a connection.
const CONNECTING: Duration = Duration::from_secs(30);
/// How long nothing may come.
const SILENCE: Duration = Duration::from_secs(60);
/// Where the files are: what is downloaded may be too large for memory.
const DIRECTORY: &str = "/var/tmp";

/// Why something could not be downloaded.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// The client could not be made.
    #[error("HTTP cannot be used here: {0}")]
    Client(String),
    /// There is no answer, or it ended before its end.
    #[error("{0}")]
    Failed(String),
    /// The server refused.
    #[error("the server answers {0}")]
    Refused(StatusCode),
    /// It is larger than it may be.
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    /// The file could not be written.
    #[error("cannot be written below {DIRECTORY}: {0}")]
    File(#[from] std::io::Error),
}

/// Downloads what is at an address, up to so many bytes. The file is read from its beginning. Dropping this ends it.
///
/// # Errors
/// When it cannot be had wholly.
pub async fn download(url: &str, limit: u64) -> Result<File, DownloadError> {
    let mut answer = client()?.get(url).send().await.map_err(|error| failed(&error))?;
    if answer.status() != StatusCode::OK {
        return Err(DownloadError::Refused(answer.status()));
    }
    let mut file = tempfile::tempfile_in(DIRECTORY)?;
    let mut length: u64 = 0;
    while let Some(part) = answer.chunk().await.map_err(|error| failed(&error))? {
        length += part.len() as u64;
        if length > limit {
            return Err(DownloadError::TooLarge(limit));
        }
        tokio::task::block_in_place(|| file.write_all(&part))?;
    }
    file.rewind()?;
    Ok(file)
}

fn client() -> Result<&'static Client, DownloadError> {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    if let Some(client) = CLIENT.get() {
        return Ok(client);
    }
    // Somebody else may have chosen already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .user_agent(concat!("setpoint/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECTING)
        .read_timeout(SILENCE)
        .build()
        .map_err(|error| DownloadError::Client(told(&error)))?;
    Ok(CLIENT.get_or_init(|| client))
}

fn failed(error: &reqwest::Error) -> DownloadError {
    DownloadError::Failed(told(error))
}

/// What went wrong at the bottom of it, which says most.
fn told(error: &reqwest::Error) -> String {
    let mut bottom: &dyn std::error::Error = error;
    while let Some(below) = bottom.source() {
        bottom = below;
    }
    if error.is_timeout() {
        format!("nothing came for a long time: {bottom}")
    } else {
        bottom.to_string()
    }
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
