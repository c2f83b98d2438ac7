//! Messages over a pair of streams. What is no message ends the connection only where the stream cannot be read on.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::thread::{Builder, JoinHandle};

use crossbeam_channel::{Receiver, Sender, bounded};
use lsp_server::{ErrorCode, Message, Notification, RequestId, Response};
use serde_json::value::RawValue;

/// Messages of more bytes end the connection: no text is so large.
pub const LARGEST_MESSAGE: usize = 256 << 20;

/// How many messages wait to be looked at, or to be written, before whoever brings more waits.
const WAITING: usize = 256;

/// Headers of more bytes are none.
const LONGEST_HEADER: u64 = 4096;

/// What a server hears and says.
pub struct Connection {
    /// Takes what is said.
    pub sender: Sender<Outgoing>,
    /// What a client says.
    pub receiver: Receiver<Message>,
}

/// The other end of a [`Connection`].
pub struct ClientConnection {
    /// Takes what the client says.
    pub sender: Sender<Message>,
    /// What the server says.
    pub receiver: Receiver<Outgoing>,
}

impl Connection {
    /// A connection within a process, with its other end.
    #[must_use]
    pub fn memory() -> (ClientConnection, Connection) {
        let (to_server, heard) = bounded(WAITING);
        let (to_client, told) = bounded(WAITING);
        let client = ClientConnection {
            sender: to_server,
            receiver: told,
        };
        let server = Connection {
            sender: to_client,
            receiver: heard,
        };
        (client, server)
    }
}

/// What a server says.
#[derive(Debug)]
pub enum Outgoing {
    /// A message as data.
    Message(Message),
    /// An answer whose result is JSON in writing: as data a large one takes many times the room and time.
    Written {
        /// The request.
        id: RequestId,
        /// The result.
        result: Box<RawValue>,
    },
}

impl<T: Into<Message>> From<T> for Outgoing {
    fn from(message: T) -> Outgoing {
        Outgoing::Message(message.into())
    }
}

impl Outgoing {
    /// The message as data.
    #[must_use]
    pub fn into_message(self) -> Message {
        match self {
            Outgoing::Message(message) => message,
            Outgoing::Written { id, result } => Message::Response(Response {
                id,
                // What was written as JSON can be read as such.
                response_result: Ok(serde_json::from_str(result.get()).unwrap_or_default()),
            }),
        }
    }

    fn write(&self, output: &mut impl Write) -> io::Result<()> {
        match self {
            Outgoing::Message(message) => message.write(output),
            Outgoing::Written { id, result } => {
                let id = serde_json::to_string(id).map_err(io::Error::other)?;
                let (head, result) = (
                    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":"),
                    result.get(),
                );
                write!(
                    output,
                    "Content-Length: {}\r\n\r\n{head}",
                    head.len() + result.len() + 1
                )?;
                output.write_all(result.as_bytes())?;
                output.write_all(b"}")?;
                output.flush()
            }
        }
    }
}

/// The threads that read and write.
pub struct Transport {
    /// What the server speaks through.
    pub connection: Connection,
    writer: JoinHandle<io::Result<()>>,
}

impl Transport {
    /// Speaks over these streams, usually those of the process.
    ///
    /// # Errors
    /// When threads cannot be started.
    pub fn new(
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
    ) -> io::Result<Transport> {
        let (sender, heard) = bounded(WAITING);
        let (answers, receiver) = bounded(WAITING);
        let connection = Connection {
            sender: answers.clone(),
            receiver: heard,
        };
        // It is not waited for: a client may leave its end open, and what it still says is no matter then.
        Builder::new().name("lsp reader".to_owned()).spawn(move || {
            let mut input = BufReader::new(input);
            loop {
                match read(&mut input) {
                    Ok(Some(Ok(message))) => {
                        let is_last = is_exit(&message);
                        if sender.send(message).is_err() || is_last {
                            return;
                        }
                    }
                    Ok(Some(Err(refusal))) => {
                        if answers.send(refusal.into()).is_err() {
                            return;
                        }
                    }
                    Ok(None) | Err(_) => return,
                }
            }
        })?;
        let writer = Builder::new().name("lsp writer".to_owned()).spawn(move || {
            let mut output = output;
            receiver
                .into_iter()
                .take_while(|message| !matches!(message, Outgoing::Message(message) if is_exit(message)))
                .try_for_each(|message: Outgoing| message.write(&mut output))
        })?;
        Ok(Transport { connection, writer })
    }

    /// Waits until everything that was said is written.
    ///
    /// # Errors
    /// When it could not be written.
    pub fn finish(self) -> io::Result<()> {
        // The thread that reads can send, too, and nobody knows when it ends. A server itself never says «exit».
        let last = Notification::new("exit".to_owned(), ());
        let _ = self.connection.sender.send(last.into());
        match self.writer.join() {
            Ok(written) => written,
            Err(_) => Err(io::Error::other("the thread that writes ended")),
        }
    }
}

fn is_exit(message: &Message) -> bool {
    matches!(message, Message::Notification(notification) if notification.method == "exit")
}

/// The next message; or, for text that is none, the answer to it; nothing at the end.
fn read(input: &mut impl BufRead) -> io::Result<Option<Result<Message, Response>>> {
    let mut size: Option<usize> = None;
    loop {
        let mut header = Vec::new();
        if input.take(LONGEST_HEADER).read_until(b'\n', &mut header)? == 0 {
            return Ok(None);
        }
        let header = String::from_utf8_lossy(&header);
        let header = header.trim_end_matches(['\r', '\n']);
        if header.is_empty() {
            if size.is_some() {
                break;
            }
            // Blank lines between messages do no harm.
            continue;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.trim().eq_ignore_ascii_case("content-length")
        {
            size = Some(value.trim().parse().map_err(io::Error::other)?);
        }
    }
    let size = size.unwrap_or_default();
    if size > LARGEST_MESSAGE {
        return Err(io::Error::other("the message is too large"));
    }
    // It grows as bytes come, so that a length alone takes no memory.
    let mut text = Vec::new();
    if input.take(size as u64).read_to_end(&mut text)? < size {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&text).map_err(|error| {
        let nobody = RequestId::from(String::new());
        Response::new_err(
            nobody,
            ErrorCode::ParseError as i32,
            format!("this is no message: {error}"),
        )
    })))
}
