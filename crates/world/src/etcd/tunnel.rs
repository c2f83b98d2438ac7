//! The way to an etcd through an SSH server.
//!
//! Each connection to a member goes through an SSH connection of its own, which is closed with it. So whatever breaks either is mended in one way:
//! by beginning anew.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::rt::TokioIo;
use setpoint_host::ssh::{SshConnection, SshError, SshOptions, SshTunnel};
use tonic::codegen::Service;
use tonic::transport::Uri;

use crate::StoreError;

/// The port of etcd, where an endpoint names none.
pub(super) const PORT: u16 = 2379;

/// What connects through an SSH server.
pub(super) struct ThroughSsh(pub(super) SshOptions);

impl Service<Uri> for ThroughSsh {
    type Response = TokioIo<SshTunnel>;
    type Error = SshError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, SshError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), SshError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, endpoint: Uri) -> Self::Future {
        let options = self.0.clone();
        Box::pin(async move {
            let (host, port) = place(&endpoint);
            let connection = SshConnection::open(&options).await?;
            connection.into_tunnel(&host, port).await.map(TokioIo::new)
        })
    }
}

/// Where an endpoint is, as the SSH server sees it.
fn place(endpoint: &Uri) -> (String, u16) {
    let host = endpoint.host().unwrap_or_default();
    let number = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
    let host = number.unwrap_or(host).to_ascii_lowercase();
    (host, endpoint.port_u16().unwrap_or(PORT))
}

/// The first endpoint that another one names, too: through a tunnel, that is the same place.
pub(super) fn named_twice(endpoints: &[String]) -> Option<&str> {
    let places: Vec<_> = endpoints
        .iter()
        .map(|one| one.parse().map(|uri| place(&uri)).ok())
        .collect();
    let again = (0..places.len()).find(|&at| places[at].is_some() && places[..at].contains(&places[at]));
    again.map(|at| endpoints[at].as_str())
}

/// What went wrong with SSH, if that is below an error.
pub(super) fn below<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a SshError> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// The same for a store: what another try may not meet again, and what somebody has to mend.
pub(super) fn told(error: &SshError) -> StoreError {
    let reason = error.to_string().into();
    match error {
        SshError::Away { .. }
        | SshError::Beyond { .. }
        | SshError::Command { .. }
        | SshError::Listening { .. }
        | SshError::Ended { .. } => StoreError::Away {
            reason,
            is_ambiguous: false,
        },
        SshError::NotTrusted(_) | SshError::Unusable(_) | SshError::NotLetIn { .. } => {
            StoreError::Misconfigured { reason }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_place_is_known_however_it_is_written() {
        let twice = |endpoints: &[&str]| {
            let endpoints: Vec<String> = endpoints.iter().map(|one| (*one).to_owned()).collect();
            named_twice(&endpoints).map(str::to_owned)
        };
        assert_eq!(twice(&["http://a:2379", "http://b:2379", "http://a:2380"]), None);
        assert_eq!(
            twice(&["http://a", "https://A:2379/"]),
            Some("https://A:2379/".to_owned())
        );
        assert_eq!(
            twice(&["http://[::1]:2379", "http://[::1]"]),
            Some("http://[::1]".to_owned())
        );
    }
}
