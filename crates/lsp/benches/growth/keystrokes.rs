//! Keystrokes in a large program, through the server and its streams: from writing the change until the answer is there. What an editor
//! then makes of it is not the server's.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, pipe};
use std::time::{Duration, Instant};

use lsp_server::{Message, Notification, Request, RequestId};
use serde_json::{Value as Json, json};
use setpoint_diagnostics::{Loader, MemoryLoader};
use setpoint_lsp::{Files, Setup, Transport, serve};

use crate::{library, milliseconds, processor_time};

const URI: &str = "file:///srv/main.mcl";

/// Stands for the number of the last answer with tokens.
const LAST: &str = "last";

/// A moment, by the processor's time of server and client together, and by the clock.
struct Watch {
    processor: Duration,
    start: Instant,
}

impl Watch {
    fn now() -> Watch {
        Watch {
            processor: processor_time(),
            start: Instant::now(),
        }
    }

    /// Until an answer was there.
    fn note(&self, until: &Watch, times: &mut Times) {
        times.processor = times.processor.min(until.processor - self.processor);
        times.waited = times.waited.min(until.start - self.start);
        times.longest = times.longest.max(until.start - self.start);
    }
}

/// Of all rounds: the shortest, and how long somebody waited at most.
struct Times {
    processor: Duration,
    waited: Duration,
    longest: Duration,
}

impl Default for Times {
    fn default() -> Times {
        Times {
            processor: Duration::MAX,
            waited: Duration::MAX,
            longest: Duration::ZERO,
        }
    }
}

/// No files but what is open.
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

struct Editor {
    input: PipeWriter,
    output: BufReader<PipeReader>,
    version: i32,
    /// The version that diagnostics were told of.
    told: i32,
    requests: i32,
    /// The number of the last answer with tokens.
    tokens: Json,
    /// When the last message was there.
    heard: Watch,
}

/// Prints how long each answer takes after a keystroke in the middle of the text.
pub(crate) fn measure(text: &str, rounds: usize) {
    let (their_input, input) = pipe().unwrap();
    let (output, their_output) = pipe().unwrap();
    let server = std::thread::spawn(move || {
        let transport = Transport::new(their_input, their_output).unwrap();
        let setup = Setup {
            library: library(),
            model_library: library(),
            files: Box::new(NoFiles),
            modules_directory: None,
            page: |_| None,
            version: "bench",
        };
        serve(&transport.connection, setup).unwrap();
        transport.finish().unwrap();
    });
    let mut editor = Editor {
        input,
        output: BufReader::new(output),
        version: 1,
        told: 0,
        requests: 0,
        tokens: Json::Null,
        heard: Watch::now(),
    };
    let capabilities = json!({
        "textDocument": { "semanticTokens": {
            "requests": { "full": { "delta": true } },
            "tokenTypes": [],
            "tokenModifiers": [],
            "formats": ["relative"],
        } },
    });
    editor.ask("initialize", json!({ "capabilities": capabilities }));
    editor.notify("initialized", json!({}));
    let document = json!({ "uri": URI, "languageId": "mcl", "version": 1, "text": text });
    editor.notify("textDocument/didOpen", json!({ "textDocument": document }));
    editor.published();
    let lines: Vec<&str> = text.lines().collect();
    let middle = lines.len() / 2;
    let line = (middle..).find(|at| lines[*at].starts_with("$name_")).unwrap();
    let place = json!({ "line": line, "character": 3 });
    let everything =
        json!({ "start": { "line": 0, "character": 0 }, "end": { "line": lines.len(), "character": 0 } });
    let screen =
        json!({ "start": { "line": line, "character": 0 }, "end": { "line": line + 50, "character": 0 } });
    let about = json!({ "uri": URI });
    let at = json!({ "textDocument": about, "position": place });
    let questions: [(&str, Json); 11] = [
        ("textDocument/hover", at.clone()),
        ("textDocument/completion", at.clone()),
        ("textDocument/definition", at.clone()),
        ("textDocument/references", at),
        (
            "textDocument/semanticTokens/full",
            json!({ "textDocument": about }),
        ),
        (
            "textDocument/semanticTokens/full/delta",
            json!({ "textDocument": about, "previousResultId": LAST }),
        ),
        (
            "textDocument/semanticTokens/range",
            json!({ "textDocument": about, "range": screen }),
        ),
        (
            "textDocument/inlayHint",
            json!({ "textDocument": about, "range": everything }),
        ),
        (
            "textDocument/codeAction",
            json!({ "textDocument": about, "range": screen, "context": { "diagnostics": [] } }),
        ),
        ("textDocument/documentSymbol", json!({ "textDocument": about })),
        (
            "textDocument/formatting",
            json!({ "textDocument": about, "options": { "tabSize": 4, "insertSpaces": false } }),
        ),
    ];
    editor.rounds("right", line, &lines, &questions, rounds);
    // A name that is not there, as while somebody writes one.
    let use_of_name = json!({ "line": line, "character": 1 });
    editor.insert(&use_of_name, "y");
    editor.published();
    editor.rounds("wrong", line, &lines, &questions, rounds);
    editor.ask("shutdown", Json::Null);
    editor.notify("exit", Json::Null);
    drop(editor);
    server.join().unwrap();
}

impl Editor {
    /// Prints how long each answer takes after a keystroke, in a program that is right or wrong.
    fn rounds(
        &mut self,
        state: &str,
        line: usize,
        lines: &[&str],
        questions: &[(&str, Json)],
        rounds: usize,
    ) {
        let mut times: BTreeMap<String, Times> = BTreeMap::new();
        for _ in 0..rounds {
            let watch = Watch::now();
            self.keystroke(line, lines);
            self.published();
            watch.note(&self.heard, times.entry("diagnostics".to_owned()).or_default());
            for (method, params) in questions {
                let watch = Watch::now();
                self.keystroke(line, lines);
                self.ask(method, params.clone());
                let name = method.trim_start_matches("textDocument/");
                watch.note(&self.heard, times.entry(name.to_owned()).or_default());
                self.published();
            }
        }
        println!(
            "\n| a keystroke in 10 000 statements that are {state}, until | of the processor | waited | longest |"
        );
        println!("|---|---|---|---|");
        for (name, times) in times {
            let [processor, waited, longest] =
                [times.processor, times.waited, times.longest].map(milliseconds);
            println!("| {name} | {processor:.1} ms | {waited:.1} ms | {longest:.1} ms |");
        }
        println!();
    }

    /// Makes a value one letter longer.
    fn keystroke(&mut self, line: usize, lines: &[&str]) {
        self.insert(&json!({ "line": line, "character": lines[line].len() - 1 }), "x");
    }

    fn insert(&mut self, at: &Json, text: &str) {
        self.version += 1;
        let change = json!({ "range": { "start": at, "end": at }, "text": text });
        let document = json!({ "uri": URI, "version": self.version });
        let params = json!({ "textDocument": document, "contentChanges": [change] });
        self.notify("textDocument/didChange", params);
    }

    fn notify(&mut self, method: &str, params: Json) {
        let message = Message::from(Notification::new(method.to_owned(), params));
        message.write(&mut self.input).unwrap();
    }

    /// Asks, and waits for the answer.
    fn ask(&mut self, method: &str, mut params: Json) {
        self.requests += 1;
        if params["previousResultId"] == LAST {
            params["previousResultId"] = self.tokens.clone();
        }
        let id = RequestId::from(self.requests);
        let message = Message::from(Request::new(id.clone(), method.to_owned(), params));
        message.write(&mut self.input).unwrap();
        loop {
            match self.hear() {
                Message::Response(response) if response.id == id => {
                    assert!(
                        response.response_result.is_ok(),
                        "{method}: {:?}",
                        response.response_result
                    );
                    if let Some(id) = response
                        .response_result
                        .ok()
                        .and_then(|mut result| Some(result.get_mut("resultId")?.take()))
                    {
                        self.tokens = id;
                    }
                    return;
                }
                Message::Response(_) | Message::Request(_) | Message::Notification(_) => {}
            }
        }
    }

    /// Waits until the diagnostics of the newest version are there.
    fn published(&mut self) {
        while self.told < self.version {
            self.hear();
        }
    }

    fn hear(&mut self) -> Message {
        let mut header = String::new();
        self.output.read_line(&mut header).unwrap();
        let length = header.trim().strip_prefix("Content-Length: ");
        let length: usize = length.expect("the server is there").parse().unwrap();
        self.output.read_line(&mut header).unwrap();
        let mut text = vec![0; length];
        self.output.read_exact(&mut text).unwrap();
        self.heard = Watch::now();
        let message: Message = serde_json::from_slice(&text).unwrap();
        if let Message::Notification(told) = &message
            && told.method == "textDocument/publishDiagnostics"
            && let Some(version) = told.params["version"].as_i64()
        {
            self.told = version as i32;
        }
        message
    }
}
