//! What a client may do that it should not, texts that are half there, and large ones.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};

use lsp_server::{Message, Notification, Request, RequestId, Response};
use lsp_types::Position;
use lsp_types::request::{Completion, HoverRequest};
use serde_json::{Value as Json, json};
use setpoint_lsp::{Ending, Transport};

use crate::client::{Client, Disk, at, modern};

const MAIN: &str = "file:///srv/main.mcl";

/// Every question about a place or a document.
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

fn ask_everything(client: &mut Client, position: Position) {
    let all = json!({
        "textDocument": { "uri": MAIN },
        "position": position,
        "positions": [position],
        "range": { "start": position, "end": position },
        "context": { "includeDeclaration": true, "diagnostics": [] },
        "options": { "tabSize": 4, "insertSpaces": false },
        "newName": "other_name",
    });
    for question in QUESTIONS {
        if let Err(error) = client.ask(question, all.clone()) {
            // A refusal in words is an answer, a bug is none.
            assert_ne!(error.code, -32603, "{question}: {error:?}");
        }
    }
    assert_eq!(client.shown, Vec::<String>::new());
}

fn code(answer: Result<Json, lsp_server::ResponseError>) -> i32 {
    answer.expect_err("it is refused").code
}

#[test]
fn the_connection_begins_and_ends_as_the_protocol_says() {
    let mut client = Client::raw(Disk::default());
    assert_eq!(code(client.ask("textDocument/hover", json!({}))), -32002);
    let answer = client
        .ask("initialize", json!({ "capabilities": modern() }))
        .unwrap();
    assert_eq!(answer["capabilities"]["positionEncoding"], "utf-16");
    assert_eq!(answer["serverInfo"]["name"], "setpoint");
    assert_eq!(
        code(client.ask("initialize", json!({ "capabilities": {} }))),
        -32600
    );
    assert_eq!(code(client.ask("no/such/method", json!({}))), -32601);
    assert_eq!(
        code(client.ask("textDocument/hover", json!({ "textDocument": 1 }))),
        -32602
    );
    client.notify("$/no/such/notification", json!({ "a": 1 }));
    client.notify("textDocument/didOpen", json!("nonsense"));
    assert_eq!(client.ask("shutdown", Json::Null).unwrap(), Json::Null);
    assert_eq!(code(client.ask("textDocument/hover", json!({}))), -32600);
    client.notify("exit", Json::Null);
    assert_eq!(client.vanish(), Ending::Clean);
    assert_eq!(Client::new().leave(), Ending::Clean);
    assert_eq!(Client::new().vanish(), Ending::Abrupt);
    let client = Client::new();
    client.notify("exit", Json::Null);
    assert_eq!(client.vanish(), Ending::Abrupt);
}

#[test]
fn both_encodings_of_positions_are_understood() {
    let utf8 = json!({ "general": { "positionEncodings": ["utf-8", "utf-16"] } });
    for (capabilities, character) in [(utf8, 14), (json!({}), 12)] {
        let mut client = Client::with(Disk::default(), capabilities);
        client.open(MAIN, "$a = 1\n$b = \"😀\" + $x\n");
        let found = client.diagnostics(MAIN);
        let at = found
            .iter()
            .find(|found| found.message.contains("$x"))
            .expect("unknown");
        assert_eq!(at.range.start, Position::new(1, character), "{found:#?}");
        // The edit goes behind the letter that is two units, or four bytes.
        let end = Position::new(1, character);
        client.change(
            MAIN,
            json!([{ "range": { "start": end, "end": { "line": 1, "character": 99 } }, "text": "\"\"" }]),
        );
        assert_eq!(client.diagnostics(MAIN), []);
    }
}

#[test]
fn every_prefix_of_a_text_is_answered() {
    let text = "import \"fmt\"\nclass c($a) {\n\tfile \"/${a}\" {\n\t\tmode => if true { \"x\" } else { fmt.printf(\"%d\", 1) },\n\t\tNotify => Exec[\"b\"],\n\t\tMeta:noop => true,\n\t}\n}\ninclude c(\"é\") as d\nfor $i, $v in [1, 2] { print \"x\" {} }\nFile[\"/a\"] -> Exec[\"b\"]\n$s = struct{a => 1}->a <|> func($x) { $x }(2)\n";
    let mut client = Client::new();
    client.open(MAIN, "");
    for end in (0..text.len())
        .step_by(7)
        .filter(|end| text.is_char_boundary(*end))
    {
        client.replace(MAIN, &text[..end]);
        let before = &text[..end];
        let line = before.matches('\n').count() as u32;
        let character = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .encode_utf16()
            .count() as u32;
        ask_everything(&mut client, Position::new(line, character));
    }
}

#[test]
fn strange_texts_and_places_are_answered() {
    let mut client = Client::new();
    client.open(MAIN, "");
    for text in [
        "",
        "\r\n\r\n",
        "$x = 1\r\nfile \"/a\" {\r\n\tmode => $x,\r\n}\r\n",
        "\u{feff}$x = 1\n",
        "\0\u{1}",
        "$größe = \"日本\"\n",
        "\"never closed",
        "}}}})))]]]",
        "{{{{((([[[",
        "import \"main.mcl\"\n",
        "import \"/etc/passwd\"\nimport \"../../x.mcl\"\nimport \"https://example.com/x\"\n",
        "class c { include c }\ninclude c\n",
        "$a = $b\n$b = $a\n",
    ] {
        client.replace(MAIN, text);
        for position in [(0, 0), (0, 3), (1, 0), (99, 99), (u32::MAX, u32::MAX)] {
            ask_everything(&mut client, Position::new(position.0, position.1));
        }
    }
    let deep = format!("$x = {}1{}\n", "(".repeat(300), ")".repeat(300));
    client.replace(MAIN, &deep);
    ask_everything(&mut client, Position::new(0, 310));
}

#[test]
fn edits_that_make_no_sense_change_something_or_nothing_but_break_nothing() {
    let mut client = Client::new();
    client.open(MAIN, "$x = 1\n");
    let range = |a: (u32, u32), b: (u32, u32)| json!({ "start": { "line": a.0, "character": a.1 }, "end": { "line": b.0, "character": b.1 } });
    client.change(
        MAIN,
        json!([{ "range": range((9, 9), (0, 0)), "text": "\n$y = 2\n" }]),
    );
    client.change(
        MAIN,
        json!([{ "range": range((0, 0), (u32::MAX, 0)), "text": "$z = 3\n" }, { "text": "$z = 4\n" }]),
    );
    ask_everything(&mut client, Position::new(0, 1));
    let missing = "file:///srv/nobody.mcl";
    let document = json!({ "uri": missing, "version": 1 });
    client.notify(
        "textDocument/didChange",
        json!({ "textDocument": document, "contentChanges": [{ "text": "x" }] }),
    );
    client.close(missing);
    assert!(
        client
            .request::<HoverRequest>(at(missing, Position::new(0, 0)))
            .is_none()
    );
    client.close(MAIN);
    while client
        .diagnostics
        .get(MAIN)
        .is_none_or(|told| told.version.is_some())
    {
        client.hear();
    }
}

#[test]
fn documents_that_are_no_files_are_programs_too() {
    let mut client = Client::new();
    let uri = "untitled:Untitled-1";
    client.open(uri, "$x = $y\n");
    assert_eq!(client.diagnostics(uri).len(), 1);
}

#[test]
fn a_question_about_a_text_that_was_changed_meanwhile_is_given_up() {
    let mut client = Client::new();
    client.open(MAIN, &large(3000));
    let first = client.send("textDocument/hover", at(MAIN, Position::new(1, 1)));
    let second = client.send("textDocument/hover", at(MAIN, Position::new(1, 1)));
    client.change(MAIN, json!([{ "text": "$abc = 1\n" }]));
    let third = client.send("textDocument/hover", at(MAIN, Position::new(0, 1)));
    let mut codes = Vec::new();
    for id in [first, second] {
        codes.push(client.answer(&id).map_err(|error| error.code));
    }
    assert!(codes.iter().any(|code| *code == Err(-32801)), "{codes:?}");
    assert!(client.answer(&third).unwrap().to_string().contains("$abc int"));
    client.change(MAIN, json!([{ "text": large(3000) }]));
    client.send(
        "textDocument/semanticTokens/full",
        json!({ "textDocument": { "uri": MAIN } }),
    );
    let unwanted = client.send("textDocument/hover", at(MAIN, Position::new(1, 1)));
    client.notify("$/cancelRequest", json!({ "id": unwanted }));
    assert_eq!(code(client.answer(&unwanted)), -32800);
}

#[test]
fn a_bug_is_told_once_and_the_server_lives() {
    let disk = Disk::default();
    disk.set("/srv/panic.mcl", "");
    let mut client = Client::with(disk, modern());
    client.open(MAIN, "import \"panic.mcl\"\n");
    assert_eq!(
        code(client.ask("textDocument/hover", at(MAIN, Position::new(0, 1)))),
        -32603
    );
    assert_eq!(
        code(client.ask("textDocument/hover", at(MAIN, Position::new(0, 1)))),
        -32603
    );
    let marks = client.replace(MAIN, "$va¦lue = 1\n");
    assert!(client.request::<HoverRequest>(at(MAIN, marks[0])).is_some());
    assert_eq!(client.shown.len(), 1, "{:?}", client.shown);
}

/// A program of so many statements, as people write them.
fn large(statements: usize) -> String {
    let mut text = String::from("import \"fmt\"\n");
    for number in 0..statements / 5 {
        text.push_str(&format!(
            "$name_{number} = \"n{number}\"\n$path_{number} = fmt.printf(\"/tmp/%s\", $name_{number})\nclass c_{number}($p) {{\n\tprint \"${{p}}\" {{}}\n}}\ninclude c_{number}($name_{number})\nfile $path_{number} {{\n\tcontent => $name_{number},\n}}\n"
        ));
    }
    text
}

#[test]
fn a_large_program_is_answered() {
    let mut client = Client::new();
    let text = large(2000);
    client.open(MAIN, &text);
    assert_eq!(client.diagnostics(MAIN), []);
    let last = Position::new(text.matches('\n').count() as u32 - 2, 13);
    ask_everything(&mut client, last);
    client.change(
        MAIN,
        json!([{ "range": { "start": last, "end": last }, "text": "x" }]),
    );
    let list = client.request::<Completion>(at(MAIN, last));
    assert!(list.is_some());
}

/// Bytes that a client has written, and what the server says to them.
fn over_streams(input: &[u8]) -> Vec<Message> {
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
    let written = Written::default();
    let input = std::io::Cursor::new(input.to_vec());
    let transport = Transport::new(input, written.clone()).unwrap();
    // A server that says back what it hears.
    for message in &transport.connection.receiver {
        if let Message::Request(Request { id, .. }) = message {
            transport
                .connection
                .sender
                .send(Response::new_ok(id, json!("heard")).into())
                .unwrap();
        }
    }
    transport.finish().unwrap();
    let bytes = written.0.lock().unwrap().clone();
    let mut reader = std::io::BufReader::new(&*bytes);
    let mut messages = Vec::new();
    while let Some(message) = Message::read(&mut reader).unwrap() {
        messages.push(message);
    }
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"", "nothing but messages");
    messages
}

fn framed(body: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

fn request(id: i32) -> String {
    framed(&serde_json::to_string(&json!({ "jsonrpc": "2.0", "id": id, "method": "m" })).unwrap())
}

#[test]
fn the_stream_may_hold_anything() {
    let heard = |input: &str| -> Vec<String> {
        let described = |message: Message| match message {
            Message::Response(response) => match response.response_result {
                Ok(result) => result.to_string(),
                Err(error) => error.code.to_string(),
            },
            other => format!("{other:?}"),
        };
        over_streams(input.as_bytes())
            .into_iter()
            .map(described)
            .collect()
    };
    let good = request(1);
    assert_eq!(heard(&good), ["\"heard\""]);
    // Text that is no message is said so, and the next one is understood.
    assert_eq!(
        heard(&format!("{}{good}", framed("{ nonsense"))),
        ["-32700", "\"heard\""]
    );
    assert_eq!(
        heard(&format!("{}{good}", framed("[1, 2]"))),
        ["-32700", "\"heard\""]
    );
    let other_headers = good.replace("Content-Length", "content-type: x\r\ncontent-length");
    assert_eq!(heard(&other_headers), ["\"heard\""]);
    // Where the stream cannot be read on, the connection ends.
    for broken in [
        "Content-Length: 99999999999999999999999\r\n\r\n{}",
        "Content-Length: 9999999999\r\n\r\n{}",
        "Content-Length: -1\r\n\r\n{}",
        "Content-Length: 100\r\n\r\n{}",
        "Content-Length: ",
    ] {
        assert_eq!(heard(&format!("{broken}{good}")).len(), 0, "{broken}");
    }
    let exit = Message::from(Notification::new("exit".to_owned(), json!(null)));
    assert_eq!(
        heard(&format!(
            "{}{good}",
            framed(&serde_json::to_string(&exit).unwrap())
        ))
        .len(),
        0
    );
}

#[test]
fn a_large_message_arrives_whole() {
    let mut client = Client::new();
    let text = format!("# {}\n$value = 1\n", "x".repeat(20 << 20));
    client.open(MAIN, &text);
    let hover = client.request::<HoverRequest>(at(MAIN, Position::new(1, 2)));
    assert!(hover.is_some());
    let id = RequestId::from("an id may be a text".to_owned());
    let request = Request::new(
        id.clone(),
        "textDocument/hover".to_owned(),
        at(MAIN, Position::new(1, 2)),
    );
    client.connection.sender.send(request.into()).unwrap();
    assert!(client.answer(&id).is_ok());
}
