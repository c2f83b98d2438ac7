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

use super::endpoint::EndpointPlace;
use crate::StoreError;

/// Connector through an SSH server.
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
            let connection = SshConnection::open(&options).await?;
            let place = EndpointPlace::of_uri(&endpoint);
            let (host, port) = place.map_or_else(Default::default, |place| (place.host, place.port));
            connection.into_tunnel(&host, port).await.map(TokioIo::new)
        })
    }
}

/// The SSH error at the bottom of an error, if there is one.
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
