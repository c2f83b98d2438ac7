//! A client: typed requests of the protocol over a connection in memory, with files that are in memory, too.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use lsp_server::{Message, Notification, Request, RequestId, Response, ResponseError};
use lsp_types::request::{CodeActionRequest, Request as Method};
use lsp_types::{CodeAction, CodeActionOrCommand, Diagnostic, Position, PublishDiagnosticsParams, Range};
use serde_json::{Value as Json, json};
use setpoint_diagnostics::{LoadError, Loader, MemoryLoader};
use setpoint_graph::Library;
use setpoint_lsp::{ClientConnection, Connection, Ending, Files, Setup, serve};
use setpoint_value::{Registry, Value};

/// Marks places in texts of tests.
pub(crate) const MARK: char = '¦';

/// Longer than any answer takes.
const LIMIT: Duration = Duration::from_secs(60);

/// Files of a disk that is made of memory. A file called `panic.mcl` cannot even be looked at.
#[derive(Clone, Default)]
pub(crate) struct Disk(pub(crate) Arc<Mutex<BTreeMap<String, String>>>);

impl Disk {
    pub(crate) fn set(&self, path: &str, text: &str) {
        self.0.lock().unwrap().insert(path.to_owned(), text.to_owned());
    }

    pub(crate) fn remove(&self, path: &str) {
        self.0.lock().unwrap().remove(path);
    }
}

struct Below {
    root: String,
    files: MemoryLoader,
}

impl Loader for Below {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, LoadError> {
        assert!(!path.ends_with("panic.mcl"), "the disk of this test has a bug");
        self.files.read(&format!("{}{path}", self.root))
    }
    fn is_file(&self, path: &str) -> bool {
        self.files.is_file(&format!("{}{path}", self.root))
    }
    fn is_directory(&self, path: &str) -> bool {
        self.files.is_directory(&format!("{}{path}", self.root))
    }
    fn list(&self, directory: &str) -> Result<Vec<String>, LoadError> {
        let found = self.files.list(&format!("{}{directory}", self.root))?;
        Ok(found
            .into_iter()
            .map(|path| path[self.root.len()..].to_owned())
            .collect())
    }
}

impl Files for Disk {
    fn open(&self, root: &str, _: Option<&str>) -> Box<dyn Loader> {
        let mut files = MemoryLoader::new();
        for (path, text) in &*self.0.lock().unwrap() {
            files = files.with(path.clone(), text);
        }
        Box::new(Below {
            root: root.to_owned(),
            files,
        })
    }
    fn is_file(&self, path: &str) -> bool {
        self.0.lock().unwrap().contains_key(path)
    }
    fn names(&self, directory: &str) -> Vec<String> {
        let files = self.0.lock().unwrap();
        let below = files.keys().filter_map(|path| path.strip_prefix(directory));
        let mut names: Vec<String> = below
            .map(|rest| match rest.split_once('/') {
                Some((first, _)) => format!("{first}/"),
                None => rest.to_owned(),
            })
            .collect();
        names.dedup();
        names
    }
}

pub(crate) fn library() -> Library {
    let functions = Registry::new(setpoint_functions::MODULES.iter().copied());
    let kinds = setpoint_resources::KINDS.iter().map(|kind| kind.schema);
    let mut library = Library::new(functions, kinds).with_variable("hostname", Value::str("here"));
    library.modules = Arc::new(MemoryLoader::new().with(
        "greeting/main.mcl",
        "# Greets.\nfunc greet($who) { \"hello ${who}\" }\n",
    ));
    library
}

/// A client with its server.
pub(crate) struct Client {
    pub(crate) connection: ClientConnection,
    pub(crate) disk: Disk,
    /// What was published last, by address.
    pub(crate) diagnostics: BTreeMap<String, PublishDiagnosticsParams>,
    /// Messages to the user.
    pub(crate) shown: Vec<String>,
    /// Answers that nobody has waited for yet.
    answers: Vec<Response>,
    /// Requests of the server.
    pub(crate) asked: Vec<Request>,
    server: Option<JoinHandle<Ending>>,
    next: i32,
    versions: BTreeMap<String, i32>,
    /// What the server can do, as it says itself.
    pub(crate) offered: Json,
}

/// What a client of these days can do.
pub(crate) fn modern() -> Json {
    json!({
        "general": { "positionEncodings": ["utf-16"] },
        "textDocument": {
            "completion": { "completionItem": { "snippetSupport": true } },
            "documentSymbol": { "hierarchicalDocumentSymbolSupport": true },
            "publishDiagnostics": { "relatedInformation": true },
        },
        "workspace": { "didChangeWatchedFiles": { "dynamicRegistration": true } },
    })
}

impl Client {
    /// Not initialized yet.
    pub(crate) fn raw(disk: Disk) -> Client {
        let (ours, theirs) = Connection::memory();
        let setup = Setup {
            library: library(),
            model_library: library(),
            files: Box::new(disk.clone()),
            modules_directory: None,
            page: |code| (code == "E0101").then_some("# E0101: a page\n"),
            version: "test",
        };
        let server = std::thread::spawn(move || serve(&theirs, setup).unwrap());
        Client {
            connection: ours,
            disk,
            diagnostics: BTreeMap::new(),
            shown: Vec::new(),
            answers: Vec::new(),
            asked: Vec::new(),
            server: Some(server),
            next: 0,
            versions: BTreeMap::new(),
            offered: Json::Null,
        }
    }

    pub(crate) fn new() -> Client {
        Client::with(Disk::default(), modern())
    }

    pub(crate) fn with(disk: Disk, capabilities: Json) -> Client {
        let mut client = Client::raw(disk);
        let answer = client
            .ask("initialize", json!({ "capabilities": capabilities }))
            .unwrap();
        client.offered = answer["capabilities"].clone();
        client.notify("initialized", json!({}));
        client
    }

    pub(crate) fn notify(&self, method: &str, params: Json) {
        let notification = Notification::new(method.to_owned(), params);
        self.connection.sender.send(notification.into()).unwrap();
    }

    /// Sends a request, whose answer is waited for later.
    pub(crate) fn send(&mut self, method: &str, params: Json) -> RequestId {
        self.next += 1;
        let id = RequestId::from(self.next);
        let request = Request::new(id.clone(), method.to_owned(), params);
        self.connection.sender.send(request.into()).unwrap();
        id
    }

    /// The answer to a request.
    pub(crate) fn answer(&mut self, id: &RequestId) -> Result<Json, ResponseError> {
        loop {
            if let Some(at) = self.answers.iter().position(|answer| answer.id == *id) {
                return self.answers.swap_remove(at).response_result;
            }
            let answer = self.hear();
            self.answers.extend(answer);
        }
    }

    /// Takes in one message; answers it if it is an answer.
    pub(crate) fn hear(&mut self) -> Option<Response> {
        let message = self
            .connection
            .receiver
            .recv_timeout(LIMIT)
            .expect("the server says something in time");
        match message.into_message() {
            Message::Response(response) => return Some(response),
            Message::Request(request) => self.asked.push(request),
            Message::Notification(Notification { method, params }) => match &*method {
                "textDocument/publishDiagnostics" => {
                    let published: PublishDiagnosticsParams = serde_json::from_value(params).unwrap();
                    self.diagnostics
                        .insert(published.uri.as_str().to_owned(), published);
                }
                "window/showMessage" => self.shown.push(params["message"].as_str().unwrap().to_owned()),
                other => panic!("an unexpected notification {other}"),
            },
        }
        None
    }

    pub(crate) fn ask(&mut self, method: &str, params: Json) -> Result<Json, ResponseError> {
        let id = self.send(method, params);
        self.answer(&id)
    }

    /// The code actions that are offered for a range, in this context.
    pub(crate) fn code_actions(&mut self, uri: &str, range: Range, context: &Json) -> Vec<CodeAction> {
        let params = json!({ "textDocument": { "uri": uri }, "range": range, "context": context });
        let actions = self.request::<CodeActionRequest>(params).unwrap_or_default();
        actions
            .into_iter()
            .map(|action| match action {
                CodeActionOrCommand::CodeAction(action) => action,
                CodeActionOrCommand::Command(command) => panic!("{command:?}"),
            })
            .collect()
    }

    /// Asks in the types of the protocol.
    pub(crate) fn request<M: Method>(&mut self, params: Json) -> M::Result {
        let params: M::Params = serde_json::from_value(params).expect("parameters of the protocol");
        let answer = self.ask(M::METHOD, serde_json::to_value(params).unwrap());
        let answer = answer.unwrap_or_else(|error| panic!("{}: {error:?}", M::METHOD));
        serde_json::from_value(answer).expect("an answer of the protocol")
    }

    /// Opens a document; marks in it are left out. Answers where they were.
    pub(crate) fn open(&mut self, uri: &str, text: &str) -> Vec<Position> {
        let (text, marks) = unmarked(text);
        self.versions.insert(uri.to_owned(), 1);
        self.diagnostics.remove(uri);
        self.notify(
            "textDocument/didOpen",
            json!({ "textDocument": { "uri": uri, "languageId": "mcl", "version": 1, "text": text } }),
        );
        marks
    }

    /// Replaces the whole text of a document.
    pub(crate) fn replace(&mut self, uri: &str, text: &str) -> Vec<Position> {
        let (text, marks) = unmarked(text);
        self.change(uri, json!([{ "text": text }]));
        marks
    }

    pub(crate) fn change(&mut self, uri: &str, changes: Json) {
        let version = self.versions.get_mut(uri).expect("it is open");
        *version += 1;
        let document = json!({ "uri": uri, "version": *version });
        self.notify(
            "textDocument/didChange",
            json!({ "textDocument": document, "contentChanges": changes }),
        );
    }

    pub(crate) fn close(&mut self, uri: &str) {
        self.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    }

    /// What is wrong with a document, once that was told of its newest version.
    pub(crate) fn diagnostics(&mut self, uri: &str) -> Vec<Diagnostic> {
        let version = self.versions.get(uri).copied();
        loop {
            if let Some(published) = self.diagnostics.get(uri)
                && published.version >= version
            {
                return published.diagnostics.clone();
            }
            self.hear();
        }
    }

    /// Leaves as the protocol wants it.
    pub(crate) fn leave(mut self) -> Ending {
        self.ask("shutdown", Json::Null).unwrap();
        self.notify("exit", Json::Null);
        self.server.take().unwrap().join().unwrap()
    }

    /// Is gone.
    pub(crate) fn vanish(mut self) -> Ending {
        let server = self.server.take().unwrap();
        drop(self);
        server.join().unwrap()
    }
}

/// A text without its marks, and where these were.
pub(crate) fn unmarked(text: &str) -> (String, Vec<Position>) {
    let mut plain = String::new();
    let mut marks = Vec::new();
    for part in text.split_inclusive(MARK) {
        match part.strip_suffix(MARK) {
            Some(part) => {
                plain.push_str(part);
                let line = plain.matches('\n').count() as u32;
                let last = plain.rsplit('\n').next().unwrap_or_default();
                marks.push(Position::new(line, last.encode_utf16().count() as u32));
            }
            None => plain.push_str(part),
        }
    }
    (plain, marks)
}

/// The parameters of most questions.
pub(crate) fn at(uri: &str, position: Position) -> Json {
    json!({ "textDocument": { "uri": uri }, "position": position })
}

/// A text after a code action that changes only this text.
pub(crate) fn applied(text: &str, action: &CodeAction) -> String {
    let changes = action.edit.as_ref().expect("it edits");
    let changes = changes.changes.as_ref().expect("it changes texts");
    let edits: Vec<lsp_types::TextEdit> = changes.values().flatten().cloned().collect();
    edited(text, &edits)
}

/// A text after edits, which do not touch each other.
pub(crate) fn edited(text: &str, edits: &[lsp_types::TextEdit]) -> String {
    let offset = |position: Position| {
        let line: usize = text
            .split_inclusive('\n')
            .take(position.line as usize)
            .map(str::len)
            .sum();
        let mut units = 0;
        let rest = text[line..].char_indices();
        let within = rest
            .take_while(|(_, c)| {
                units += c.len_utf16() as u32;
                units <= position.character
            })
            .map(|(at, c)| at + c.len_utf8())
            .last();
        line + within.unwrap_or(0)
    };
    let mut edits: Vec<_> = edits
        .iter()
        .map(|edit| (offset(edit.range.start), offset(edit.range.end), &edit.new_text))
        .collect();
    edits.sort();
    let mut out = text.to_owned();
    for (start, end, new) in edits.into_iter().rev() {
        out.replace_range(start..end, new);
    }
    out
}
