//! Any bytes from a client: whatever the transport says to them is messages, and it comes to an end.
#![no_main]

use std::io::{BufReader, Cursor, Write};
use std::sync::{Arc, Mutex};

use libfuzzer_sys::fuzz_target;
use lsp_server::{Message, Response};
use setpoint_lsp::Transport;

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fuzz_target!(|bytes: &[u8]| {
    let written = Written::default();
    let transport = Transport::new(Cursor::new(framed(bytes)), written.clone()).unwrap();
    for message in &transport.connection.receiver {
        if let Message::Request(request) = message {
            let answer = Response::new_ok(request.id, request.params);
            transport.connection.sender.send(answer.into()).unwrap();
        }
    }
    transport.finish().unwrap();
    let said = written.0.lock().unwrap().clone();
    let mut reader = BufReader::new(&*said);
    while let Some(message) = Message::read(&mut reader).expect("nothing but messages") {
        assert!(matches!(message, Message::Response(_)));
    }
});

/// What follows a byte 1 is given the length of the bytes up to the next one, so that bodies are reached, too.
fn framed(bytes: &[u8]) -> Vec<u8> {
    let mut parts = bytes.split(|byte| *byte == 1);
    let mut stream = parts.next().unwrap_or_default().to_vec();
    for body in parts {
        stream.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        stream.extend_from_slice(body);
    }
    stream
}
