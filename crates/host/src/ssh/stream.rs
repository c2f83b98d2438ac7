//! What goes through an SSH connection, and the wire below, which can be cut: whoever waits for a peer that takes nothing more is freed.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use russh::ChannelStream;
use russh::client::Msg;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::SshConnection;

/// A socket whose reads and writes fail from when it is cut.
pub(super) struct CutStream {
    socket: TcpStream,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl CutStream {
    pub(super) fn new(socket: TcpStream, cut: &CancellationToken) -> CutStream {
        CutStream {
            socket,
            cut: Box::pin(cut.clone().cancelled_owned()),
        }
    }

    fn is_cut(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.cut.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "it was given up",
            )),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for CutStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.is_cut(context)?;
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl AsyncWrite for CutStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.is_cut(context)?;
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_cut(context)?;
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

/// A connection of the server's to somewhere, with the SSH connection that it goes through and that is closed with it.
pub struct SshTunnel {
    stream: ChannelStream<Msg>,
    connection: Option<SshConnection>,
}

impl SshTunnel {
    pub(super) fn new(stream: ChannelStream<Msg>, connection: SshConnection) -> SshTunnel {
        SshTunnel {
            stream,
            connection: Some(connection),
        }
    }
}

impl AsyncRead for SshTunnel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        // That nothing more comes is not the end of what lies behind, but of the way there.
        if let Poll::Ready(Ok(())) = read
            && buffer.filled().len() == before
            && buffer.remaining() > 0
            && let Some(end) = self.connection.as_ref().and_then(SshConnection::end)
        {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, end)));
        }
        read
    }
}

impl AsyncWrite for SshTunnel {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Drop for SshTunnel {
    fn drop(&mut self) {
        // Where nothing runs any more, dropping the connection cuts it.
        if let (Some(connection), Ok(runtime)) =
            (self.connection.take(), tokio::runtime::Handle::try_current())
        {
            runtime.spawn(connection.close());
        }
    }
}
