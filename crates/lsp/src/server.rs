//! The life of a connection: what is said before and after, texts that come and go, and requests, which go to the worker.

use std::sync::Arc;
use std::thread;

use lsp_server::{ErrorCode, Message, Notification, Request, Response};
use lsp_types::{
    ClientCapabilities, DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    InitializeParams, Uri,
};
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use crate::features::{Client, capabilities};
use crate::queue::Queue;
use crate::setup::Setup;
use crate::transport::{Connection, Outgoing};
use crate::uri;
use crate::worker::Worker;

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// As the protocol wants it: «shutdown», then «exit».
    Clean,
    /// The client left without a word.
    Abrupt,
}

#[derive(PartialEq, Eq)]
enum Stage {
    Uninitialized,
    Running,
    ShutDown,
}

/// Answers until the client leaves.
///
/// # Errors
/// When no thread can be started.
pub fn serve(connection: &Connection, setup: Setup) -> std::io::Result<Ending> {
    let queue = Queue::default();
    let setup = Arc::new(setup);
    thread::scope(|scope| {
        let mut server = Server {
            connection,
            setup,
            queue: &queue,
            stage: Stage::Uninitialized,
            client: Client::default(),
            requests: 0,
        };
        let mut worker = None;
        let mut ending = Ending::Abrupt;
        for message in &connection.receiver {
            match message {
                Message::Request(request) if request.method == "initialize" => {
                    if let Some(client) = server.initialize(request) {
                        let work =
                            Worker::new(&queue, server.setup.clone(), client, connection.sender.clone());
                        let builder = thread::Builder::new().name("lsp worker".to_owned());
                        worker = Some(builder.spawn_scoped(scope, move || work.run()));
                        if matches!(worker, Some(Err(_))) {
                            break;
                        }
                    }
                }
                Message::Request(request) => server.request(request),
                Message::Notification(notification) if notification.method == "exit" => {
                    if server.stage == Stage::ShutDown {
                        ending = Ending::Clean;
                    }
                    break;
                }
                Message::Notification(notification) => server.notification(notification),
                // What a client says to our requests changes nothing.
                Message::Response(_) => {}
            }
        }
        queue.close();
        match worker {
            Some(Err(error)) => Err(error),
            // The scope waits for it.
            Some(Ok(_)) | None => Ok(ending),
        }
    })
}

struct Server<'a> {
    connection: &'a Connection,
    setup: Arc<Setup>,
    queue: &'a Queue,
    stage: Stage,
    client: Client,
    requests: i32,
}

impl Server<'_> {
    fn say(&self, message: impl Into<Outgoing>) {
        // A client that is gone is noticed by the loop.
        let _ = self.connection.sender.send(message.into());
    }

    fn refuse(&self, id: lsp_server::RequestId, code: ErrorCode, message: &str) {
        self.say(Response::new_err(id, code as i32, message.to_owned()));
    }

    /// Answers who asks, if this begins the connection.
    fn initialize(&mut self, request: Request) -> Option<Client> {
        if self.stage != Stage::Uninitialized {
            self.refuse(
                request.id,
                ErrorCode::InvalidRequest,
                "this connection has begun already",
            );
            return None;
        }
        let params: InitializeParams = match serde_json::from_value(readable(request.params)) {
            Ok(params) => params,
            Err(error) => {
                let message = format!("the parameters of `initialize` make no sense: {error}");
                self.refuse(request.id, ErrorCode::InvalidParams, &message);
                return None;
            }
        };
        self.client = Client::of(&params);
        let answer = json!({
            "capabilities": capabilities(&self.client),
            "serverInfo": { "name": "setpoint", "version": self.setup.version },
        });
        self.say(Response::new_ok(request.id, answer));
        self.stage = Stage::Running;
        Some(self.client.clone())
    }

    fn request(&mut self, request: Request) {
        match self.stage {
            Stage::Uninitialized => {
                return self.refuse(
                    request.id,
                    ErrorCode::ServerNotInitialized,
                    "`initialize` comes first",
                );
            }
            Stage::ShutDown => {
                return self.refuse(request.id, ErrorCode::InvalidRequest, "the server was shut down");
            }
            Stage::Running => {}
        }
        if request.method == "shutdown" {
            self.stage = Stage::ShutDown;
            return self.say(Response::new_ok(request.id, ()));
        }
        let path = request.params.pointer("/textDocument/uri").and_then(Json::as_str);
        let path = path.and_then(|text| text.parse::<Uri>().ok());
        let path = path.map(|address| uri::path(&address));
        self.queue.ask(request, path);
    }

    fn notification(&mut self, notification: Notification) {
        if self.stage != Stage::Running {
            return;
        }
        let Notification { method, params } = notification;
        match &*method {
            "initialized" => self.watch_files(),
            "textDocument/didOpen" => {
                if let Some(DidOpenTextDocumentParams {
                    text_document: opened,
                }) = read(params)
                {
                    let path = uri::path(&opened.uri);
                    self.change(Some(&path.clone()), |snapshot| {
                        snapshot.open(path, opened.version, opened.text);
                    });
                }
            }
            "textDocument/didChange" => {
                if let Some(changed) = read::<DidChangeTextDocumentParams>(params) {
                    let path = uri::path(&changed.text_document.uri);
                    let encoding = self.client.encoding;
                    self.change(Some(&path), |snapshot| {
                        let version = changed.text_document.version;
                        snapshot.change(&path, version, changed.content_changes, encoding);
                    });
                }
            }
            "textDocument/didClose" => {
                if let Some(closed) = read::<DidCloseTextDocumentParams>(params) {
                    let path = uri::path(&closed.text_document.uri);
                    self.change(None, |snapshot| snapshot.close(&path));
                }
            }
            "textDocument/didSave" | "workspace/didChangeWatchedFiles" => {
                self.change(None, crate::documents::Snapshot::touch);
            }
            "$/cancelRequest" => {
                if let Some(id) = params.get("id").cloned()
                    && let Ok(id) = serde_json::from_value(id)
                    && self.queue.cancel(&id)
                {
                    self.refuse(id, ErrorCode::RequestCanceled, "taken back");
                }
            }
            // Others may be left out.
            _ => {}
        }
    }

    fn change(&self, path: Option<&str>, change: impl FnOnce(&mut crate::documents::Snapshot)) {
        for overtaken in self.queue.change(path, change) {
            self.refuse(
                overtaken,
                ErrorCode::ContentModified,
                "the text was changed meanwhile",
            );
        }
    }

    /// Asks the client to tell of files that change beside it.
    fn watch_files(&mut self) {
        if !self.client.watches_files {
            return;
        }
        self.requests += 1;
        let watchers = json!([
            { "globPattern": "**/*.mcl" },
            { "globPattern": "**/metadata.yaml" },
            { "globPattern": "**/*.cf" },
            { "globPattern": "**/{project,module,setpoint}.yml" },
            { "globPattern": "**/setup.cfg" },
        ]);
        let params = json!({ "registrations": [{
            "id": "files",
            "method": "workspace/didChangeWatchedFiles",
            "registerOptions": { "watchers": watchers },
        }] });
        self.say(Request::new(
            self.requests.into(),
            "client/registerCapability".to_owned(),
            params,
        ));
    }
}

fn read<T: DeserializeOwned>(params: Json) -> Option<T> {
    serde_json::from_value(params).ok()
}
/// The parameters of `initialize` without capabilities of the client that do not have the form of the protocol. A client that gets one of
/// them wrong still has the others.
fn readable(mut params: serde_json::Value) -> serde_json::Value {
    let Some(sections) = params["capabilities"].as_object_mut() else {
        return params;
    };
    for (section, capabilities) in sections {
        let Some(capabilities) = capabilities.as_object_mut() else {
            continue;
        };
        capabilities.retain(|name, value| {
            let alone = json!({ section.as_str(): { name.as_str(): value.clone() } });
            serde_json::from_value::<ClientCapabilities>(alone).is_ok()
        });
    }
    params
}
