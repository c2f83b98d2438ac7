//! A server of files over HTTP, which also fails in many ways.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A server on a free port of loopback.
pub(crate) struct Server {
    address: String,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    files: HashMap<String, Vec<u8>>,
    /// Answers that come before the file, by path.
    answers: HashMap<String, Vec<Misbehaviour>>,
    /// The first line of each request, and fields that matter.
    requests: Vec<String>,
}

/// Something else than the file.
#[derive(Clone)]
pub(crate) enum Misbehaviour {
    /// This status, such as `503 Service Unavailable`, and further fields.
    Status(&'static str),
    /// The connection ends after so many bytes of the contents.
    CutAfter(usize),
    /// A redirect.
    Redirect(String),
}

impl Server {
    pub(crate) fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::<Mutex<Shared>>::default();
        let served = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = served.clone();
                std::thread::spawn(move || answer(stream, &shared));
            }
        });
        Server { address, shared }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    pub(crate) fn file(&self, path: &str, contents: impl Into<Vec<u8>>) -> String {
        let mut shared = self.shared.lock().unwrap();
        shared.files.insert(format!("/{path}"), contents.into());
        self.url(path)
    }

    /// The next requests for a path are answered so.
    pub(crate) fn misbehaves(&self, path: &str, how: &[Misbehaviour]) {
        let mut shared = self.shared.lock().unwrap();
        shared.answers.insert(format!("/{path}"), how.to_vec());
    }

    /// The requests since the last call.
    pub(crate) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.lock().unwrap().requests)
    }
}

fn answer(mut stream: TcpStream, shared: &Mutex<Shared>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap())
        .lines()
        .map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    let fields: HashMap<String, String> = lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| {
            line.split_once(": ")
                .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        })
        .collect();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let (file, misbehaviour) = {
        let mut shared = shared.lock().unwrap();
        let told = ["range", "if-none-match", "authorization", "x-token"].iter();
        let told = told.filter_map(|name| fields.get(*name).map(|value| format!(" {name}={value}")));
        let told: String = told.collect();
        shared.requests.push(format!("{path}{told}"));
        let next = shared.answers.get_mut(&path).filter(|next| !next.is_empty());
        let next = next.map(|next| next.remove(0));
        (shared.files.get(&path).cloned(), next)
    };
    let head =
        |status: &str, further: &str| format!("HTTP/1.1 {status}\r\nConnection: close\r\n{further}\r\n");
    let cut = match misbehaviour {
        Some(Misbehaviour::Status(status)) => {
            let _ = stream.write_all(head(status, "Content-Length: 0\r\n").as_bytes());
            return;
        }
        Some(Misbehaviour::Redirect(to)) => {
            let further = format!("Location: {to}\r\nContent-Length: 0\r\n");
            let _ = stream.write_all(head("302 Found", &further).as_bytes());
            return;
        }
        Some(Misbehaviour::CutAfter(bytes)) => Some(bytes),
        None => None,
    };
    let Some(file) = file else {
        let _ = stream.write_all(head("404 Not Found", "Content-Length: 0\r\n").as_bytes());
        return;
    };
    // The length is enough to recognise it.
    let tag = format!("\"{}\"", file.len());
    if fields.get("if-none-match") == Some(&tag) {
        let _ = stream.write_all(head("304 Not Modified", "").as_bytes());
        return;
    }
    let range = fields
        .get("range")
        .filter(|_| fields.get("if-range") == Some(&tag));
    let from = range.and_then(|range| {
        range
            .strip_prefix("bytes=")?
            .strip_suffix('-')?
            .parse::<usize>()
            .ok()
    });
    let (status, body, further) = match from {
        Some(from) if from >= file.len() => ("416 Range Not Satisfiable", &file[..0], String::new()),
        Some(from) => {
            let range = format!(
                "Content-Range: bytes {from}-{}/{}\r\n",
                file.len() - 1,
                file.len()
            );
            ("206 Partial Content", &file[from..], range)
        }
        None => ("200 OK", &file[..], String::new()),
    };
    let further = format!("ETag: {tag}\r\nContent-Length: {}\r\n{further}", body.len());
    let sent = cut.map_or(body.len(), |cut| cut.min(body.len()));
    let _ = stream.write_all(head(status, &further).as_bytes());
    let _ = stream.write_all(&body[..sent]);
}
