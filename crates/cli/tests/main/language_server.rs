//! `setpoint lsp` as an editor starts it: over its standard input and output, with files on disk, and with clients that do what they
//! should not.

use std::io::{BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use lsp_server::{Message, Notification, Request, RequestId, ResponseError};
use serde_json::{Value as Json, json};
use setpoint_testing::Hermetic;

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// Longer than anything takes.
const LIMIT: Duration = Duration::from_secs(60);

/// A server with its client. Killed when dropped.
struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    heard: Receiver<Message>,
    requests: i32,
}

impl Editor {
    fn start(mut command: Command) -> Editor {
        let mut child = command
            .arg("lsp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it can be started");
        let output = child.stdout.take().expect("it was piped");
        let (sender, heard) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            // Whatever is no message ends it, and the test misses what it waits for.
            while let Ok(Some(message)) = Message::read(&mut output) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Editor {
            input: child.stdin.take(),
            child,
            heard,
            requests: 0,
        }
    }

    fn initialized(place: &Hermetic) -> Editor {
        let mut editor = Editor::start(place.command(BINARY));
        let answer = editor
            .ask("initialize", json!({ "capabilities": {} }))
            .expect("it begins");
        assert_eq!(answer["serverInfo"]["name"], "setpoint");
        editor.notify("initialized", json!({}));
        editor
    }

    fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("it is not closed");
        input.write_all(bytes).expect("the server reads");
        input.flush().expect("the server reads");
    }

    fn say(&mut self, message: &Message) {
        let mut bytes = Vec::new();
        message
            .write(&mut bytes)
            .expect("a message can be written to memory");
        self.write(&bytes);
    }

    fn notify(&mut self, method: &str, params: Json) {
        self.say(&Notification::new(method.to_owned(), params).into());
    }

    fn ask(&mut self, method: &str, params: Json) -> Result<Json, ResponseError> {
        self.requests += 1;
        let id = RequestId::from(self.requests);
        self.say(&Request::new(id.clone(), method.to_owned(), params).into());
        loop {
            if let Message::Response(response) = self.hear()
                && response.id == id
            {
                return response.response_result;
            }
        }
    }

    fn hear(&mut self) -> Message {
        self.heard
            .recv_timeout(LIMIT)
            .expect("the server says something in time")
    }

    /// The diagnostics of a document, once they are told.
    fn diagnostics(&mut self, uri: &str) -> Vec<Json> {
        loop {
            if let Message::Notification(Notification { method, params }) = self.hear()
                && method == "textDocument/publishDiagnostics"
                && params["uri"] == uri
            {
                return params["diagnostics"].as_array().cloned().unwrap_or_default();
            }
        }
    }

    /// Waits for its end; its exit code, and what it wrote on standard error.
    fn ended(&mut self) -> (Option<i32>, String) {
        let deadline = Instant::now() + LIMIT;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("the child is ours") {
                break status;
            }
            assert!(Instant::now() < deadline, "it does not end");
            // Nothing tells of the end of a process that also may have lost its streams.
            #[expect(clippy::disallowed_methods, reason = "see above")]
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut text = String::new();
        if let Some(mut errors) = self.child.stderr.take() {
            let _ = errors.read_to_string(&mut text);
        }
        (status.code(), text)
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn open(editor: &mut Editor, uri: &str, text: &str) {
    let document = json!({ "uri": uri, "languageId": "mcl", "version": 1, "text": text });
    editor.notify("textDocument/didOpen", json!({ "textDocument": document }));
}

fn framed(body: &[u8]) -> Vec<u8> {
    [format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

#[test]
fn a_session_from_the_first_word_to_the_last() {
    let place = Hermetic::new();
    place.write("library.mcl", "$port = 80\n");
    let main = place.write("main.mcl", "");
    let uri = format!("file://{}", main.display());
    let mut editor = Editor::initialized(&place);
    open(
        &mut editor,
        &uri,
        "import \"library.mcl\"\nimport \"fmt\"\nprint fmt.printf(\"%d\", $library.prot) {}\n",
    );
    let found = editor.diagnostics(&uri);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0]["code"], "E0101");
    // The page of the code is the one that `setpoint explain` shows.
    let page = editor.ask(
        "setpoint/text",
        json!({ "uri": found[0]["codeDescription"]["href"] }),
    );
    let explained = place.run(BINARY, &["explain", "E0101"]);
    let page = page.expect("the page is there");
    let heading = page
        .as_str()
        .and_then(|page| page.lines().next())
        .unwrap_or_default();
    assert!(heading.contains("E0101"), "{page}");
    assert!(
        explained.stdout.contains(heading.trim_start_matches("# E0101: ")),
        "{}",
        explained.stdout
    );
    let change = json!([{ "range": { "start": { "line": 2, "character": 32 }, "end": { "line": 2, "character": 36 } }, "text": "port" }]);
    editor.notify(
        "textDocument/didChange",
        json!({ "textDocument": { "uri": uri, "version": 2 }, "contentChanges": change }),
    );
    assert_eq!(editor.diagnostics(&uri), Vec::<Json>::new());
    let at = |character: u32| json!({ "textDocument": { "uri": uri }, "position": { "line": 2, "character": character } });
    let defined = editor.ask("textDocument/definition", at(33)).expect("an answer");
    assert!(
        defined["uri"]
            .as_str()
            .is_some_and(|uri| uri.ends_with("/library.mcl")),
        "{defined}"
    );
    let hover = editor.ask("textDocument/hover", at(12)).expect("an answer");
    assert!(hover.to_string().contains("fmt.printf"), "{hover}");
    assert!(editor.ask("shutdown", Json::Null).is_ok());
    editor.notify("exit", Json::Null);
    assert_eq!(editor.ended(), (Some(0), String::new()));
}

#[test]
fn a_client_that_leaves_without_a_word_ends_the_server() {
    let place = Hermetic::new();
    // It says «exit» without «shutdown».
    let mut editor = Editor::initialized(&place);
    editor.notify("exit", Json::Null);
    assert_eq!(editor.ended(), (Some(1), String::new()));
    // It closes its end, before and after the beginning.
    let mut editor = Editor::initialized(&place);
    editor.input = None;
    assert_eq!(editor.ended(), (Some(1), String::new()));
    let mut editor = Editor::start(place.command(BINARY));
    editor.input = None;
    assert_eq!(editor.ended(), (Some(1), String::new()));
}

#[test]
fn what_is_no_message_ends_the_server_or_is_said_so() {
    let place = Hermetic::new();
    for broken in [
        "Content-Length: many\r\n\r\n{}",
        "Content-Length: 99999999999999999999\r\n\r\n{}",
        "Content-Length: 9999999999\r\n\r\n{}",
        "Content-Length: -5\r\n\r\n{}",
    ] {
        let mut editor = Editor::initialized(&place);
        editor.write(broken.as_bytes());
        assert_eq!(editor.ended(), (Some(1), String::new()), "{broken}");
    }
    // Half a message, and then nothing more.
    for half in [
        "Content-Le",
        "Content-Length: 100\r\n",
        "Content-Length: 100\r\n\r\n{\"jsonrpc\":",
    ] {
        let mut editor = Editor::initialized(&place);
        editor.write(half.as_bytes());
        editor.input = None;
        assert_eq!(editor.ended(), (Some(1), String::new()), "{half}");
    }
    // The stream can be read on, so the server stays.
    let mut editor = Editor::initialized(&place);
    for body in [
        &b"{ nonsense"[..],
        b"[]",
        b"17",
        b"\xff\xfe",
        b"",
        b"{\"jsonrpc\":\"2.0\"}",
    ] {
        editor.write(&framed(body));
        let Message::Response(refusal) = editor.hear() else {
            panic!("a refusal of {body:?}")
        };
        assert_eq!(refusal.response_result.expect_err("it is refused").code, -32700);
    }
    assert_eq!(
        editor
            .ask("textDocument/nonsense", json!({}))
            .expect_err("it is unknown")
            .code,
        -32601
    );
    assert_eq!(
        editor
            .ask("textDocument/hover", json!([]))
            .expect_err("they make no sense")
            .code,
        -32602
    );
    editor.notify("textDocument/nonsense", json!({ "a": 1 }));
    editor.notify("textDocument/didOpen", json!({ "textDocument": 7 }));
    assert!(editor.ask("shutdown", Json::Null).is_ok());
    editor.notify("exit", Json::Null);
    assert_eq!(editor.ended(), (Some(0), String::new()));
}

#[test]
fn large_messages_arrive_in_pieces_and_a_length_alone_takes_no_memory() {
    let place = Hermetic::new();
    let mut editor = Editor::initialized(&place);
    let text = format!("# {}\n$value = 1\npanic($value == 2)\n", "x".repeat(30 << 20));
    open(&mut editor, "untitled:one", &text);
    let params =
        json!({ "textDocument": { "uri": "untitled:one" }, "position": { "line": 1, "character": 2 } });
    let hover = editor.ask("textDocument/hover", params).expect("an answer");
    assert!(hover.to_string().contains("int"), "{hover}");
    let mut editor = Editor::initialized(&place);
    let before = memory(&editor);
    editor.write(b"Content-Length: 200000000\r\n\r\n{\"jsonrpc\"");
    // The next answer of another server shows that time goes on; nothing is to be heard of this one.
    drop(Editor::initialized(&place));
    assert!(
        memory(&editor) < before + (64 << 10),
        "from {before} to {} kB",
        memory(&editor)
    );
}

/// Resident memory, in kB.
fn memory(editor: &Editor) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", editor.child.id())).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or_default()
}

#[test]
fn a_client_that_does_not_read_holds_up_nobody_but_itself() {
    let place = Hermetic::new();
    let mut command = place.command(BINARY);
    let mut child = command
        .arg("lsp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it can be started");
    let mut input = child.stdin.take().expect("it was piped");
    // It asks and asks, until the server takes no more because its answers are not taken.
    let asking = std::thread::spawn(move || {
        let request =
            |id: i32| -> Message { Request::new(id.into(), "nonsense".to_owned(), json!({})).into() };
        for id in 0..200_000 {
            let mut bytes = Vec::new();
            request(id).write(&mut bytes).expect("memory");
            if input.write_all(&bytes).is_err() {
                return;
            }
        }
    });
    // Then the client is gone.
    drop(child.stdout.take());
    let mut editor = Editor {
        child,
        input: None,
        heard: channel().1,
        requests: 0,
    };
    let (code, errors) = editor.ended();
    assert_eq!((code, &*errors), (Some(1), ""));
    asking.join().expect("it ends with the server");
}

#[test]
fn programs_on_disk_are_found() {
    let place = Hermetic::new();
    place.write("app/metadata.yaml", "main: start.mcl\n");
    place.write("app/start.mcl", "import \"part.mcl\"\npanic($part.a == 1)\n");
    let part = place.write("app/part.mcl", "$a = 1\n");
    let start = format!("file://{}", place.path("app/start.mcl").display());
    let mut editor = Editor::initialized(&place);
    let uri = format!("file://{}", part.display());
    open(&mut editor, &uri, "$a = \"text\"\n");
    // What is wrong is told where the part is used.
    let found = editor.diagnostics(&start);
    assert!(
        found
            .iter()
            .any(|found| found["code"].as_str().is_some_and(|code| code.starts_with("E02"))),
        "{found:#?}"
    );
    // A file that changes on disk is read again.
    place.write("app/start.mcl", "import \"part.mcl\"\npanic($part.a == \"x\")\n");
    let changes = json!({ "changes": [{ "uri": start, "type": 2 }] });
    editor.notify("workspace/didChangeWatchedFiles", changes);
    assert_eq!(editor.diagnostics(&start), Vec::<Json>::new());
}

#[test]
fn a_model_is_served_with_modules_that_lie_outside_of_its_project() {
    let place = Hermetic::new();
    place.write("project/project.yml", "name: test\nmodulepath: ../modules\n");
    let metadata = "[metadata]\nname = inmanta-module-net\nversion = 1.0.0\nlicense = MIT\n";
    place.write("modules/net/setup.cfg", metadata);
    place.write("modules/net/model/_init.cf", "root = \"/\"\n");
    let main = place.write("project/main.cf", "");
    let uri = format!("file://{}", main.display());
    let mut editor = Editor::initialized(&place);
    open(&mut editor, &uri, "import net\nx = nett::root\n");
    let found = editor.diagnostics(&uri);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0]["code"], "E0545");
    let page = found[0]["codeDescription"]["href"].clone();
    let page = editor
        .ask("setpoint/text", json!({ "uri": page }))
        .expect("the page is there");
    assert!(
        page.as_str().is_some_and(|page| page.starts_with("# E0545: ")),
        "{page}"
    );
    let change = json!([{ "text": "import net\nx = net::root\n" }]);
    let document = json!({ "uri": uri, "version": 2 });
    editor.notify(
        "textDocument/didChange",
        json!({ "textDocument": document, "contentChanges": change }),
    );
    assert_eq!(editor.diagnostics(&uri), Vec::<Json>::new());
    let at = json!({ "textDocument": { "uri": uri }, "position": { "line": 1, "character": 10 } });
    let defined = editor.ask("textDocument/definition", at).expect("an answer");
    let place = defined["uri"].as_str().unwrap_or_default();
    assert!(place.ends_with("/modules/net/model/_init.cf"), "{defined}");
    assert!(editor.ask("shutdown", Json::Null).is_ok());
    editor.notify("exit", Json::Null);
    assert_eq!(editor.ended(), (Some(0), String::new()));
}

#[test]
fn a_model_is_served_with_the_programs_that_it_includes() {
    let place = Hermetic::new();
    place.write("project/project.yml", "name: test\nmodulepath: libs\n");
    let program = "class page($domain str) {\n\t$url = \"https://${domain}/\"\n\tnoop \"${domain}\" {}\n}\n";
    place.write("project/libs/site/main.mcl", program);
    let main = place.write("project/main.cf", "");
    let uri = format!("file://{}", main.display());
    let mut editor = Editor::initialized(&place);
    open(
        &mut editor,
        &uri,
        "import site\nx = site::Pgae(name=\"x\", domain=\"d\")\n",
    );
    let found = editor.diagnostics(&uri);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0]["code"], "E0532");
    let change = json!([{ "text": "import site\nx = site::Page(name=\"x\", domain=\"d\")\ny = x.url\n" }]);
    let document = json!({ "uri": uri, "version": 2 });
    editor.notify(
        "textDocument/didChange",
        json!({ "textDocument": document, "contentChanges": change }),
    );
    assert_eq!(editor.diagnostics(&uri), Vec::<Json>::new());
    assert!(editor.ask("shutdown", Json::Null).is_ok());
    editor.notify("exit", Json::Null);
    assert_eq!(editor.ended(), (Some(0), String::new()));
}
