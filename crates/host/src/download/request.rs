//! A request to a server, and its answer.

use std::io::Read;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, ClientBuilder, Identity, Response, StatusCode};

use super::{Address, DownloadError};

/// How long it may take until there is a connection.
const CONNECTING: Duration = Duration::from_secs(30);
/// How long nothing may come, unless the request says otherwise.
const SILENCE: Duration = Duration::from_secs(60);
/// The redirects that are followed.
const REDIRECTS: usize = 10;

/// A request for the contents at an address.
#[derive(Debug, Clone)]
pub struct Request {
    /// The address.
    pub address: Address,
    /// Further header fields. They are sent to the server of the address, and not to others to which it redirects.
    pub headers: Vec<(String, String)>,
    /// User and password for Basic authentication. They are sent as the header fields are.
    pub login: Option<(String, String)>,
    /// Certificates.
    pub trust: Trust,
    /// How long the server may send nothing.
    pub silence: Duration,
}

/// Certificates of a request, in addition to those of the system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    /// A PEM file with certificates of authorities.
    pub authorities: Option<PathBuf>,
    /// PEM files with the certificate and the private key of the client.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Values by which a server recognises contents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validators {
    /// The field `ETag`.
    pub etag: Option<String>,
    /// The field `Last-Modified`.
    pub modified: Option<String>,
}

impl Validators {
    /// The value with which the rest of the same contents can be asked for.
    #[must_use]
    pub fn of_rest(&self) -> Option<&str> {
        let strong = self.etag.as_deref().filter(|etag| !etag.starts_with("W/"));
        strong.or(self.modified.as_deref())
    }
}

/// The contents to ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// All contents.
    None,
    /// All contents, if they are others than these.
    Changed(Validators),
    /// The contents from an offset, if they are still the same; otherwise all of them.
    Rest {
        /// The bytes that are known.
        from: u64,
        /// From [`Validators::of_rest`].
        validator: String,
    },
}

/// An answer.
#[derive(Debug)]
pub enum Answer {
    /// The contents are those that are known.
    Unchanged,
    /// Contents.
    Contents(Box<Contents>),
}

/// Contents that arrive.
#[derive(Debug)]
pub struct Contents {
    /// The offset of the first byte: 0, or the offset that was asked for.
    pub from: u64,
    /// The length of all contents, if the server says it.
    pub length: Option<u64>,
    /// Values by which the server recognises them.
    pub validators: Validators,
    response: Response,
}

impl Request {
    /// A request without options.
    #[must_use]
    pub fn new(address: Address) -> Request {
        Request {
            address,
            headers: Vec::new(),
            login: None,
            trust: Trust::default(),
            silence: SILENCE,
        }
    }

    /// Sends it, and follows redirects.
    ///
    /// # Errors
    /// When there is no answer with contents.
    pub async fn send(&self, condition: &Condition) -> Result<Answer, DownloadError> {
        let client = self.client()?;
        let mut url = self.address.0.clone();
        for _ in 0..=REDIRECTS {
            let mut request = client
                .get(url.clone())
                .header(header::ACCEPT_ENCODING, "identity");
            request = request.headers(self.fields(condition)?);
            if url.origin() == self.address.0.origin() {
                request = request.headers(self.own_fields()?);
                if let Some((user, password)) = &self.login {
                    request = request.basic_auth(user, Some(password));
                }
            }
            let response = request.send().await.map_err(|error| failed(&error))?;
            if !response.status().is_redirection() || response.status() == StatusCode::NOT_MODIFIED {
                return answer(response, condition);
            }
            let target = response.headers().get(header::LOCATION);
            let target = target.and_then(|target| target.to_str().ok());
            let target = target.and_then(|target| url.join(target).ok());
            let Some(target) = target.filter(|target| ["http", "https"].contains(&target.scheme())) else {
                return Err(DownloadError::Failed(
                    "the server redirects to no valid address".to_owned(),
                ));
            };
            if url.scheme() == "https" && target.scheme() == "http" {
                let why = format!("the server redirects from https to {target}, which is not protected");
                return Err(DownloadError::Address(why));
            }
            url = target;
        }
        Err(DownloadError::Address(format!(
            "the server redirects more than {REDIRECTS} times"
        )))
    }

    /// All contents, of at most so many bytes.
    ///
    /// # Errors
    /// When not everything arrives.
    pub async fn read(&self, limit: u64) -> Result<Vec<u8>, DownloadError> {
        if let Some(path) = self.address.local() {
            let read = tokio::task::block_in_place(|| {
                let mut bytes = Vec::new();
                std::fs::File::open(&path)?
                    .take(limit + 1)
                    .read_to_end(&mut bytes)?;
                Ok(bytes)
            });
            let bytes = read.map_err(DownloadError::file(path.display()))?;
            return match bytes.len() as u64 > limit {
                true => Err(DownloadError::TooLarge(limit)),
                false => Ok(bytes),
            };
        }
        let mut bytes = Vec::new();
        if let Answer::Contents(mut contents) = self.send(&Condition::None).await? {
            while let Some(part) = contents.next().await? {
                if (bytes.len() + part.len()) as u64 > limit {
                    return Err(DownloadError::TooLarge(limit));
                }
                bytes.extend_from_slice(&part);
            }
        }
        Ok(bytes)
    }

    fn fields(&self, condition: &Condition) -> Result<HeaderMap, DownloadError> {
        let mut fields = HeaderMap::new();
        let mut add = |name: HeaderName, value: &str| -> Result<(), DownloadError> {
            fields.insert(name, field_value(value)?);
            Ok(())
        };
        match condition {
            Condition::None => {}
            Condition::Changed(Validators { etag: Some(etag), .. }) => add(header::IF_NONE_MATCH, etag)?,
            Condition::Changed(Validators {
                modified: Some(date), ..
            }) => {
                add(header::IF_MODIFIED_SINCE, date)?;
            }
            Condition::Changed(_) => {}
            Condition::Rest { from, validator } => {
                add(header::RANGE, &format!("bytes={from}-"))?;
                add(header::IF_RANGE, validator)?;
            }
        }
        Ok(fields)
    }

    fn own_fields(&self) -> Result<HeaderMap, DownloadError> {
        let mut fields = HeaderMap::new();
        for (name, value) in &self.headers {
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| DownloadError::Address(format!("`{name}` is not the name of a header field")))?;
            let mut value = field_value(value)?;
            value.set_sensitive(true);
            fields.append(name, value);
        }
        Ok(fields)
    }

    /// The client of all requests, or one with further certificates.
    fn client(&self) -> Result<Client, DownloadError> {
        static CLIENT: OnceLock<Client> = OnceLock::new();
        let is_usual = self.trust == Trust::default() && self.silence == SILENCE;
        if let Some(client) = CLIENT.get().filter(|_| is_usual) {
            return Ok(client.clone());
        }
        // Another part of the process may have chosen already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder()
            .user_agent(concat!("setpoint/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECTING)
            .read_timeout(self.silence)
            .redirect(Policy::none());
        let built = self.trust.apply(builder)?.build();
        let client = built.map_err(|error| DownloadError::Client(bottom(&error)))?;
        Ok(match is_usual {
            true => CLIENT.get_or_init(|| client).clone(),
            false => client,
        })
    }
}

impl Trust {
    fn apply(&self, mut builder: ClientBuilder) -> Result<ClientBuilder, DownloadError> {
        let read = |path: &PathBuf| std::fs::read(path).map_err(DownloadError::file(path.display()));
        let invalid = |path: &PathBuf, error: &reqwest::Error| {
            DownloadError::Client(format!("{}: {}", path.display(), bottom(error)))
        };
        if let Some(path) = &self.authorities {
            let certificates =
                Certificate::from_pem_bundle(&read(path)?).map_err(|error| invalid(path, &error))?;
            if certificates.is_empty() {
                let why = format!("{}: there is no certificate in it", path.display());
                return Err(DownloadError::Client(why));
            }
            builder = builder.tls_certs_merge(certificates);
        }
        if let Some((certificate, key)) = &self.identity {
            let pem = [read(certificate)?, read(key)?].concat();
            let identity = Identity::from_pem(&pem).map_err(|error| invalid(key, &error))?;
            builder = builder.identity(identity);
        }
        Ok(builder)
    }
}

impl Contents {
    /// The next bytes; none at the end.
    ///
    /// # Errors
    /// When the connection ends before the contents.
    pub async fn next(
        &mut self,
    ) -> Result<Option<impl std::ops::Deref<Target = [u8]> + use<>>, DownloadError> {
        self.response.chunk().await.map_err(|error| failed(&error))
    }
}

fn answer(response: Response, condition: &Condition) -> Result<Answer, DownloadError> {
    let status = response.status();
    let field = |name: HeaderName| {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.map(str::to_owned)
    };
    let validators = Validators {
        etag: field(header::ETAG),
        modified: field(header::LAST_MODIFIED),
    };
    match (status, condition) {
        (StatusCode::OK, _) => Ok(Answer::Contents(Box::new(Contents {
            from: 0,
            length: response.content_length(),
            validators,
            response,
        }))),
        (StatusCode::NOT_MODIFIED, Condition::Changed(_)) => Ok(Answer::Unchanged),
        (StatusCode::PARTIAL_CONTENT, Condition::Rest { from, .. }) => {
            let range = field(header::CONTENT_RANGE).unwrap_or_default();
            // `bytes 100-199/200`
            let begins = range.strip_prefix(&format!("bytes {from}-"));
            let Some(length) = begins.and_then(|rest| rest.split_once('/')) else {
                let why = format!("the server sends another part than the one it was asked for: `{range}`");
                return Err(DownloadError::Failed(why));
            };
            Ok(Answer::Contents(Box::new(Contents {
                from: *from,
                length: length.1.parse().ok(),
                validators,
                response,
            })))
        }
        _ => {
            let is_passing = status.is_server_error() || [408, 425, 429].contains(&status.as_u16());
            Err(DownloadError::Refused {
                status: status.to_string(),
                is_passing,
                retry_after: field(header::RETRY_AFTER).and_then(|seconds| seconds.parse().ok()),
            })
        }
    }
}

fn field_value(text: &str) -> Result<HeaderValue, DownloadError> {
    HeaderValue::from_str(text).map_err(|_| {
        DownloadError::Address("a header field has a value with signs that none can have".to_owned())
    })
}

fn failed(error: &reqwest::Error) -> DownloadError {
    DownloadError::Failed(match error.is_timeout() {
        true => format!("nothing came for a long time: {}", bottom(error)),
        false => bottom(error),
    })
}

/// The innermost cause, which says most.
fn bottom(error: &reqwest::Error) -> String {
    let mut bottom: &dyn std::error::Error = error;
    while let Some(below) = bottom.source() {
        bottom = below;
    }
    bottom.to_string()
}
