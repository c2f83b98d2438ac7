//! Ports of the other host that lead here: the server listens there, and each connection that it takes is copied, both ways, to a place that this
//! host reaches.

use std::sync::Arc;

use russh::client::Msg;
use russh::{Channel, ChannelOpenFailure};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::{ANSWERING, CONNECTING, SshConnection, SshError};

/// How many connections may be led here at a time.
const AT_A_TIME: usize = 256;

/// Where connections are led.
pub(super) struct Forwarding {
    target: (String, u16),
    /// Ends all of them.
    cut: CancellationToken,
    room: Arc<Semaphore>,
}

impl SshConnection {
    /// Has the server listen at a port of its own, and leads whoever connects there to a target that this host reaches, as long as this
    /// connection lives. With the port 0 the server chooses one. Answers which it is.
    ///
    /// # Errors
    /// When the server forbids it, or does not get the port.
    pub async fn lead_here(&self, listen: &str, port: u16, target: (String, u16)) -> Result<u16, SshError> {
        let forwarding = Forwarding {
            target,
            cut: self.cut.clone(),
            room: Arc::new(Semaphore::new(AT_A_TIME)),
        };
        *self.forwarding.lock() = Some(Arc::new(forwarding));
        let asked = self.handle.tcpip_forward(listen, port.into());
        let refused = |reason: String| {
            *self.forwarding.lock() = None;
            SshError::Listening {
                place: self.place.clone(),
                listen: format!("{listen}:{port}"),
                reason,
            }
        };
        match tokio::time::timeout(ANSWERING, asked).await {
            Ok(Ok(_)) if port != 0 => Ok(port),
            Ok(Ok(chosen)) => match u16::try_from(chosen) {
                Ok(chosen) if chosen > 0 => Ok(chosen),
                _ => Err(refused("it does not say which port it has taken".to_owned())),
            },
            Ok(Err(russh::Error::RequestDenied)) => Err(refused(
                "it forbids that (`AllowTcpForwarding`, `PermitListen`), or the port is taken".to_owned(),
            )),
            Ok(Err(error)) => Err(self.has_ended(&error)),
            Err(_) => Err(refused(format!(
                "it gives no answer in {} s",
                ANSWERING.as_secs()
            ))),
        }
    }
}

impl Forwarding {
    /// Makes room for one more connection; else why it is not taken.
    pub(super) fn admit(&self) -> Result<OwnedSemaphorePermit, ChannelOpenFailure> {
        let room = self.room.clone().try_acquire_owned();
        room.map_err(|_| ChannelOpenFailure::ResourceShortage)
    }

    /// Leads one connection to the target, until either side or the way ends.
    pub(super) async fn lead(self: Arc<Self>, channel: Channel<Msg>, _room: OwnedSemaphorePermit) {
        let (host, port) = &self.target;
        // Dropping it closes it, so that nobody there waits for a target that is away.
        let mut there = channel.into_stream();
        let led = async {
            let target = (host.as_str(), *port);
            if let Ok(Ok(mut here)) = tokio::time::timeout(CONNECTING, TcpStream::connect(target)).await {
                let _ = here.set_nodelay(true);
                let _ = tokio::io::copy_bidirectional(&mut there, &mut here).await;
            }
        };
        tokio::select! {
            () = self.cut.cancelled() => {}
            () = led => {}
        }
    }
}
