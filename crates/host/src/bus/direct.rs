//! A service that listens at a socket itself, without a bus in between.
//!
//! systemd signs what it says there with its well-known name, which is no name that a sender can have; a strict reader ends the connection. So messages are taken whole
//! off the socket, and the sender of each is made a unique name of the same length. There is only one who can send, and nobody looks at the name.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use async_trait::async_trait;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use zbus::conn::socket::{ReadHalf, Socket, Split, WriteHalf};

/// Bytes before the fields of a message.
const FIXED: usize = 16;
/// The longest message of the specification, in bytes.
const LONGEST: usize = 128 << 20;
/// What the field of the sender begins with: its number, and that it is a text.
const SENDER: [u8; 4] = [7, 1, b's', 0];

/// A socket that leads to a service.
#[derive(Debug)]
pub(super) struct Direct(UnixStream);

impl Direct {
    pub(super) async fn connect(path: &Path) -> io::Result<Direct> {
        UnixStream::connect(path).await.map(Direct)
    }
}

impl Socket for Direct {
    type ReadHalf = Reader;
    type WriteHalf = Writer;

    fn split(self) -> Split<Reader, Writer> {
        let (read, write) = self.0.into_split();
        let reader = Reader {
            socket: read,
            read: Vec::new(),
            ready: 0,
        };
        Split::new(reader, Writer(write))
    }
}

#[derive(Debug)]
pub(super) struct Reader {
    socket: OwnedReadHalf,
    /// What was read and not yet handed on.
    read: Vec<u8>,
    /// How much of it is whole.
    ready: usize,
}

#[async_trait]
impl ReadHalf for Reader {
    async fn recvmsg(&mut self, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
        while self.ready == 0 {
            if let Some(length) = frame(&self.read)? {
                sign(&mut self.read[..length]);
                self.ready = length;
            } else if self.socket.read_buf(&mut self.read).await? == 0 {
                return Ok((0, Vec::new()));
            }
        }
        let length = self.ready.min(buffer.len());
        buffer[..length].copy_from_slice(&self.read[..length]);
        self.read.drain(..length);
        self.ready -= length;
        Ok((length, Vec::new()))
    }
}

/// How long the first line or message is, if all of it is there.
fn frame(read: &[u8]) -> io::Result<Option<usize>> {
    let number = |at: usize| {
        let bytes = read.get(at..at + 4)?.try_into().ok()?;
        let number = match read[0] {
            b'l' => u32::from_le_bytes(bytes),
            _ => u32::from_be_bytes(bytes),
        };
        usize::try_from(number).ok()
    };
    match read.first() {
        None => Ok(None),
        Some(b'l' | b'B') => {
            let (Some(body), Some(fields)) = (number(4), number(12)) else {
                return Ok(None);
            };
            let length = fields
                .checked_next_multiple_of(8)
                .and_then(|fields| fields.checked_add(body)?.checked_add(FIXED))
                .filter(|length| *length <= LONGEST)
                .ok_or(io::ErrorKind::InvalidData)?;
            Ok((read.len() >= length).then_some(length))
        }
        // Before the first message both sides say in lines who they are.
        Some(_) => Ok(read.iter().position(|byte| *byte == b'\n').map(|at| at + 1)),
    }
}

/// Makes the sender of a whole message a unique name.
fn sign(message: &mut [u8]) {
    if !matches!(message.first(), Some(b'l' | b'B')) {
        return;
    }
    // The fields are the first thing after the fixed part, and each begins at a multiple of 8.
    for at in (FIXED..message.len().saturating_sub(9)).step_by(8) {
        if message[at..at + 4] == SENDER {
            message[at + 8] = b':';
            return;
        }
    }
}

#[derive(Debug)]
pub(super) struct Writer(OwnedWriteHalf);

#[async_trait]
impl WriteHalf for Writer {
    async fn sendmsg(&mut self, buffer: &[u8], _: &[BorrowedFd<'_>]) -> io::Result<usize> {
        self.0.write(buffer).await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.0.shutdown().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zbus::Message;

    #[test]
    fn what_is_signed_with_a_well_known_name_can_be_read() {
        let signal = Message::signal("/a", "b.c", "D").sender(":rg.freedesktop.systemd1");
        let signal = signal.build(&("some", 7u32)).unwrap();
        let right = signal.data().to_vec();
        let mut said = right.clone();
        let at = said.iter().position(|byte| *byte == b':').unwrap();
        said[at] = b'o';
        for length in 0..said.len() {
            assert_eq!(frame(&said[..length]).unwrap(), None, "{length}");
        }
        let next = [&said[..], b"l"].concat();
        assert_eq!(frame(&next).unwrap(), Some(said.len()));
        sign(&mut said);
        assert_eq!(said, right);
    }

    #[test]
    fn lines_are_handed_on_and_what_is_too_long_is_refused() {
        assert_eq!(frame(b"OK 1234\r\nAGREE").unwrap(), Some(9));
        assert_eq!(frame(b"AGREE").unwrap(), None);
        let endless = [&b"l\x01\0\x01"[..], &[0xff; 12]].concat();
        assert!(frame(&endless).is_err());
        let mut short = *b"l\x01\0\x01\0\0\0\0\x01\0\0\0\0\0\0\0";
        sign(&mut short);
        assert_eq!(frame(&short).unwrap(), Some(16));
    }
}
