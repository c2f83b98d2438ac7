//! Any text, with a change at any place: every question about any place is answered or refused in words, and none meets a bug.
#![no_main]

use std::sync::LazyLock;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use lsp_server::{Message, Notification, Request, RequestId};
use serde_json::{Value as Json, json};
use setpoint_diagnostics::{Loader, MemoryLoader};
use setpoint_graph::Library;
use setpoint_lsp::{ClientConnection, Connection, Files, Setup, serve};

static LIBRARY: LazyLock<Library> = LazyLock::new(|| Library::new(setpoint_functions::registry(), []));

const URI: &str = "file:///fuzz.mcl";

const QUESTIONS: [&str; 15] = [
    "textDocument/hover",
    "textDocument/completion",
    "textDocument/signatureHelp",
    "textDocument/definition",
    "textDocument/documentHighlight",
    "textDocument/references",
    "textDocument/prepareRename",
    "textDocument/rename",
    "textDocument/documentSymbol",
    "textDocument/foldingRange",
    "textDocument/semanticTokens/full",
    "textDocument/inlayHint",
    "textDocument/codeAction",
    "textDocument/selectionRange",
    "textDocument/formatting",
];

struct NoFiles;

impl Files for NoFiles {
    fn open(&self, _: &str, _: Option<&str>) -> Box<dyn Loader> {
        Box::new(MemoryLoader::new())
    }

    fn is_file(&self, _: &str) -> bool {
        false
    }

    fn names(&self, _: &str) -> Vec<String> {
        Vec::new()
    }
}

fuzz_target!(|input: (u8, u8, u8, u8, &str)| {
    let (line, character, end_line, end_character, text) = input;
    let (client, server) = Connection::memory();
    let setup = Setup {
        library: LIBRARY.clone(),
        files: Box::new(NoFiles),
        modules_directory: None,
        page: |_| None,
        version: "fuzz",
    };
    let server = std::thread::spawn(move || serve(&server, setup).unwrap());
    let mut client = Client { client, next: 0 };
    client.ask("initialize", json!({ "capabilities": {} }));
    let document = json!({ "uri": URI, "languageId": "mcl", "version": 1, "text": text });
    client.tell("textDocument/didOpen", json!({ "textDocument": document }));
    let start = json!({ "line": line, "character": character });
    let end = json!({ "line": end_line, "character": end_character });
    client.ask_everything(&start, &end);
    let changes = json!([{ "range": { "start": start, "end": end }, "text": "x" }]);
    client.tell(
        "textDocument/didChange",
        json!({ "textDocument": { "uri": URI, "version": 2 }, "contentChanges": changes }),
    );
    client.ask_everything(&end, &start);
    client.ask("shutdown", Json::Null);
    client.tell("exit", Json::Null);
    server.join().unwrap();
});

struct Client {
    client: ClientConnection,
    next: i32,
}

impl Client {
    fn tell(&self, method: &str, params: Json) {
        self.client.sender.send(Notification::new(method.to_owned(), params).into()).unwrap();
    }

    fn ask_everything(&mut self, start: &Json, end: &Json) {
        let params = json!({
            "textDocument": { "uri": URI },
            "position": start,
            "positions": [start, end],
            "range": { "start": start, "end": end },
            "context": { "includeDeclaration": true, "diagnostics": [] },
            "options": { "tabSize": 4, "insertSpaces": false },
            "newName": "other_name",
        });
        for question in QUESTIONS {
            self.ask(question, params.clone());
        }
    }

    fn ask(&mut self, method: &str, params: Json) {
        self.next += 1;
        let id = RequestId::from(self.next);
        self.client.sender.send(Request::new(id.clone(), method.to_owned(), params).into()).unwrap();
        loop {
            match self.client.receiver.recv_timeout(Duration::from_secs(10)).expect("an answer in time").into_message() {
                Message::Response(response) if response.id == id => {
                    if let Err(error) = response.response_result {
                        assert_ne!(error.code, -32603, "{method}: {}", error.message);
                    }
                    return;
                }
                Message::Notification(told) => {
                    assert_ne!(told.method, "window/showMessage", "{}", told.params);
                }
                Message::Response(_) | Message::Request(_) => {}
            }
        }
    }
}
