//! What is asked about a place: each answer as a person would want it.

use lsp_types::request::{
    Completion, DocumentHighlightRequest, DocumentSymbolRequest, FoldingRangeRequest, GotoDefinition,
    HoverRequest, InlayHintRequest, References, SelectionRangeRequest, SemanticTokensFullRequest,
    SemanticTokensRangeRequest, SignatureHelpRequest, WorkspaceSymbolRequest,
};
use lsp_types::{
    CompletionItem, CompletionResponse, CompletionTextEdit, DiagnosticSeverity, DiagnosticTag,
    DocumentSymbolResponse, GotoDefinitionResponse, HoverContents, InlayHintLabel, NumberOrString, Position,
    SemanticTokensRangeResult, SemanticTokensResult, WorkspaceSymbolResponse,
};
use serde_json::json;

use crate::client::{Client, Disk, at, modern};

const MAIN: &str = "file:///srv/main.mcl";

fn hover(client: &mut Client, uri: &str, position: Position) -> String {
    let hover = client
        .request::<HoverRequest>(at(uri, position))
        .expect("something is known");
    match hover.contents {
        HoverContents::Markup(markup) => markup.value,
        other => panic!("{other:?}"),
    }
}

fn completions(text: &str) -> Vec<CompletionItem> {
    let mut client = Client::new();
    let marks = client.open(MAIN, text);
    match client.request::<Completion>(at(MAIN, marks[0])) {
        Some(CompletionResponse::List(list)) => list.items,
        other => panic!("{other:?}"),
    }
}

fn labels(items: &[CompletionItem]) -> Vec<&str> {
    items.iter().map(|item| &*item.label).collect()
}

fn inserted<'a>(items: &'a [CompletionItem], label: &str) -> &'a str {
    let item = items.iter().find(|item| item.label == label);
    match &item
        .unwrap_or_else(|| panic!("{label} in {:?}", labels(items)))
        .text_edit
    {
        Some(CompletionTextEdit::Edit(edit)) => &edit.new_text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn diagnostics_say_what_where_and_why() {
    let mut client = Client::new();
    client.open(MAIN, "$port = 1\nfile \"/a${prot}\" {}\n$x = 1\n$x = 2\n");
    let found = client.diagnostics(MAIN);
    let unknown = found
        .iter()
        .find(|diagnostic| diagnostic.message.contains("prot"))
        .unwrap_or_else(|| panic!("{found:#?}"));
    assert_eq!(unknown.severity, Some(DiagnosticSeverity::ERROR));
    assert_eq!(unknown.code, Some(NumberOrString::String("E0101".to_owned())));
    assert!(
        unknown.message.contains("did you mean `$port`?"),
        "{}",
        unknown.message
    );
    let page = &unknown.code_description.as_ref().unwrap().href;
    let text = client.ask("setpoint/text", json!({ "uri": page })).unwrap();
    assert_eq!(text, "# E0101: a page\n");
    let twice = found
        .iter()
        .find(|diagnostic| diagnostic.related_information.is_some());
    let related = twice
        .unwrap_or_else(|| panic!("{found:#?}"))
        .related_information
        .as_ref()
        .unwrap();
    assert_eq!(related[0].location.uri.as_str(), MAIN);
    client.replace(MAIN, "file \"/a\" {\n\tcontent => \"\",\n}\n");
    assert_eq!(client.diagnostics(MAIN), []);
}

#[test]
fn what_nothing_uses_is_faded_and_the_older_spelling_struck_through() {
    let mut client = Client::new();
    client.open(
        MAIN,
        "import \"fmt\"\n$l = [1]\n$x = $l[0] || 2\npanic($x == 1)\n",
    );
    let found = client.diagnostics(MAIN);
    let tagged = |tag: DiagnosticTag| {
        found
            .iter()
            .filter(|diagnostic| diagnostic.tags.as_ref().is_some_and(|tags| tags.contains(&tag)))
            .map(|diagnostic| diagnostic.range.start.line)
            .collect::<Vec<_>>()
    };
    assert_eq!(tagged(DiagnosticTag::UNNECESSARY), [0], "{found:#?}");
    assert_eq!(tagged(DiagnosticTag::DEPRECATED), [2], "{found:#?}");
}

#[test]
fn a_cursor_on_a_dollar_is_on_the_name_behind_it() {
    let mut client = Client::new();
    let marks = client.open(
        MAIN,
        "¦$port = 80\n$text = \"a¦${port}b\" + \"¦$\"\nprint \"c\" {}\n",
    );
    for mark in &marks[..2] {
        assert!(hover(&mut client, MAIN, *mark).contains("$port int"), "{mark:?}");
    }
    assert!(
        client
            .request::<HoverRequest>(at(MAIN, marks[2]))
            .is_none_or(|hover| { !format!("{hover:?}").contains("$port") })
    );
}

#[test]
fn hover_tells_types_values_and_documentation() {
    let mut client = Client::new();
    let text = "import \"strings\"\n# The port of the server.\n$po¦rt = 80\n# Doubles.\nfunc twi¦ce($n) { $n + $n }\n\
                # A server.\nclass se¦rver($name) {\n\tfi¦le \"/${na¦me}\" {\n\t\tsta¦te => $const.res.file.state.exi¦sts,\n\t\t\
                Meta:no¦op => true,\n\t\tBef¦ore => File[\"/b\"],\n\t}\n}\ninclude server(strings.to_lo¦wer(\"A\"))\n\
                $sum = twice($port) ¦* 2\npanic($sum == 1)\n";
    let marks = client.open(MAIN, text);
    let wanted = [
        &["$port int", "Value: `80`", "The port of the server."][..],
        &["func twice($n)", "Doubles.", "func(n int) int"],
        &["class server($name)", "A server."],
        &["kind **file**", "Parameters:"],
        &["$name str", "Parameter of a class."],
        &[
            "state => str",
            "Parameter of `file`",
            "$const.res.file.state.absent",
        ],
        &["Value: `\"exists\"`"],
        &[
            "Meta:noop => bool",
            "Only say what would be done",
            "Default: `false`",
        ],
        &["Before", "This one first"],
        &["strings.to_lower(", "import \"strings\""],
        &["int"],
    ];
    for (mark, wanted) in marks.iter().zip(wanted) {
        let text = hover(&mut client, MAIN, *mark);
        for part in wanted {
            assert!(text.contains(part), "{part} at {mark:?} in\n{text}");
        }
    }
}

#[test]
fn completion_offers_what_can_stand_there() {
    let items = completions("$port = 80\n$other = $po¦\n");
    assert_eq!(inserted(&items, "port"), "port");
    let items = completions("import \"strings\" as s\n$x = s.to_¦\n");
    assert_eq!(inserted(&items, "to_lower"), "to_lower($1)");
    let items = completions("fi¦\n");
    assert_eq!(inserted(&items, "file"), "file \"${1:name}\" {\n\t$0\n}");
    assert!(inserted(&items, "if").starts_with("if ${1:condition} {"));
    let items = completions("file \"/a\" {\n\tstate => \"exists\",\n\t¦\n}\n");
    let names = labels(&items);
    assert!(
        names.contains(&"content") && !names.contains(&"state"),
        "{names:?}"
    );
    assert_eq!(inserted(&items, "content"), "content => \"$1\",");
    assert_eq!(inserted(&items, "Notify"), "Notify => ${1:Kind}[\"$2\"],");
    assert!(inserted(&items, "Meta:noop").starts_with("Meta:noop => ${1|true,false|}"));
    let items = completions("file \"/a\" {\n\tMeta:no¦\n}\n");
    assert!(labels(&items).contains(&"noop"));
    let items = completions("file \"/a\" {\n\tstate => ¦,\n}\n");
    assert!(
        labels(&items).contains(&"$const.res.file.state.exists"),
        "{:?}",
        labels(&items)
    );
    let items = completions("$x = $const.res.file.state.¦\n");
    assert!(labels(&items).contains(&"exists"), "{:?}", labels(&items));
    let items = completions("exec \"a\" {}\nfile \"/a\" {}\nExec[\"a\"].¦ -> File[\"/a\"].content\n");
    assert!(labels(&items).contains(&"stdout"), "{:?}", labels(&items));
    let items = completions("class web($port) {}\ninclude we¦\n");
    assert_eq!(inserted(&items, "web"), "web($1)");
    let items = completions("$s = struct{name => \"a\", port => 1}\n$x = $s->¦\npanic($x == 1)\n");
    assert_eq!(labels(&items), ["name", "port"]);
}

#[test]
fn imports_are_completed_by_modules_files_and_directories() {
    let disk = Disk::default();
    disk.set("/srv/main.mcl", "");
    disk.set("/srv/web.mcl", "");
    disk.set("/srv/parts/one.mcl", "");
    disk.set("/srv/notes.txt", "");
    let mut client = Client::with(disk, modern());
    let marks = client.open(MAIN, "import \"¦\"\n");
    let Some(CompletionResponse::List(list)) = client.request::<Completion>(at(MAIN, marks[0])) else {
        panic!("a list")
    };
    let names = labels(&list.items);
    for name in ["fmt", "golang/strings", "web.mcl", "parts/"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    assert!(
        !names.contains(&"notes.txt") && !names.contains(&"main.mcl"),
        "{names:?}"
    );
}

#[test]
fn a_client_without_snippets_is_given_plain_text() {
    let mut client = Client::with(Disk::default(), json!({}));
    let marks = client.open(MAIN, "fi¦\n");
    let Some(CompletionResponse::List(list)) = client.request::<Completion>(at(MAIN, marks[0])) else {
        panic!("a list")
    };
    assert_eq!(inserted(&list.items, "file"), "file");
}

#[test]
fn signature_help_knows_alternatives_and_the_argument() {
    let mut client = Client::new();
    let text = "import \"fmt\"\nclass web($port, $name) {}\ninclude web(1, ¦\"a\")\n$x = fmt.printf(\"%d %d\", 1, ¦2)\n";
    let marks = client.open(MAIN, text);
    let help = client
        .request::<SignatureHelpRequest>(at(MAIN, marks[0]))
        .unwrap();
    assert!(
        help.signatures[0].label.starts_with("web($port"),
        "{}",
        help.signatures[0].label
    );
    assert_eq!(help.active_parameter, Some(1));
    let help = client
        .request::<SignatureHelpRequest>(at(MAIN, marks[1]))
        .unwrap();
    assert!(help.signatures[0].label.starts_with("fmt.printf("), "{help:?}");
    assert_eq!(help.active_parameter, Some(2));
}

#[test]
fn definitions_are_found_in_other_files_and_in_modules_that_are_part_of_setpoint() {
    let disk = Disk::default();
    disk.set("/srv/web.mcl", "# Web.\nclass server($port) {\n\t$p = $port\n}\n");
    let mut client = Client::with(disk, modern());
    let text = "import \"web.m¦cl\"\nimport \"greeting\"\n$port = 80\ninclude web.ser¦ver($po¦rt)\npanic(greeting.gr¦eet(\"a\") == \"\")\n";
    let marks = client.open(MAIN, text);
    let mut place = |mark: usize| match client.request::<GotoDefinition>(at(MAIN, marks[mark])) {
        Some(GotoDefinitionResponse::Scalar(location)) => {
            (location.uri.as_str().to_owned(), location.range.start)
        }
        other => panic!("{mark}: {other:?}"),
    };
    assert_eq!(place(0), ("file:///srv/web.mcl".to_owned(), Position::new(0, 0)));
    assert_eq!(place(1), ("file:///srv/web.mcl".to_owned(), Position::new(1, 6)));
    assert_eq!(place(2), (MAIN.to_owned(), Position::new(2, 1)));
    let (uri, start) = place(3);
    assert_eq!(
        (&*uri, start),
        ("setpoint:/modules/greeting/main.mcl", Position::new(1, 5))
    );
    let text = client.ask("setpoint/text", json!({ "uri": uri })).unwrap();
    assert!(text.as_str().unwrap().contains("func greet"), "{text}");
}

#[test]
fn references_and_highlights_are_all_places_of_a_name() {
    let mut client = Client::new();
    let marks = client.open(
        MAIN,
        "$na¦me = \"a\"\nfile \"/${name}\" {\n\tcontent => $name,\n}\n",
    );
    let mut params = at(MAIN, marks[0]);
    params["context"] = json!({ "includeDeclaration": true });
    let found = client.request::<References>(params.clone()).unwrap();
    let starts: Vec<Position> = found.iter().map(|location| location.range.start).collect();
    assert_eq!(
        starts,
        [Position::new(0, 1), Position::new(1, 9), Position::new(2, 13)]
    );
    params["context"] = json!({ "includeDeclaration": false });
    assert_eq!(client.request::<References>(params).unwrap().len(), 2);
    let highlights = client
        .request::<DocumentHighlightRequest>(at(MAIN, marks[0]))
        .unwrap();
    assert_eq!(highlights.len(), 3);
}

#[test]
fn outlines_of_documents_and_of_workspaces() {
    let mut client = Client::new();
    client.open(
        MAIN,
        "class web($port) {\n\t$inner = 1\n\tfile \"/a\" {}\n}\nfunc f($x) { $x }\n$top = 1\n",
    );
    let Some(DocumentSymbolResponse::Nested(symbols)) =
        client.request::<DocumentSymbolRequest>(json!({ "textDocument": { "uri": MAIN } }))
    else {
        panic!("nested symbols")
    };
    let names: Vec<&str> = symbols.iter().map(|symbol| &*symbol.name).collect();
    assert_eq!(names, ["web", "f", "$top"]);
    let inner = symbols[0].children.as_ref().unwrap();
    assert_eq!(inner.len(), 2, "{inner:?}");
    let Some(WorkspaceSymbolResponse::Flat(found)) =
        client.request::<WorkspaceSymbolRequest>(json!({ "query": "inn" }))
    else {
        panic!("symbols")
    };
    assert_eq!(found.len(), 1);
    assert_eq!(
        (&*found[0].name, found[0].container_name.as_deref()),
        ("$inner", Some("web"))
    );
}

#[test]
fn folds_are_blocks_comments_and_imports() {
    let mut client = Client::new();
    client.open(
        MAIN,
        "import \"fmt\"\nimport \"os\"\n# a\n# b\nclass c {\n\tfile \"/a\" {\n\t\tmode => \"\",\n\t}\n}\n",
    );
    let folds = client
        .request::<FoldingRangeRequest>(json!({ "textDocument": { "uri": MAIN } }))
        .unwrap();
    let lines: Vec<(u32, u32)> = folds
        .iter()
        .map(|fold| (fold.start_line, fold.end_line))
        .collect();
    assert_eq!(lines, [(0, 1), (2, 3), (4, 7), (5, 6)]);
}

#[test]
fn selections_grow_from_the_word_to_the_text() {
    let mut client = Client::new();
    let text = "file \"/a\" {\n\tcontent => $a.¦b + \"c\",\n}\n";
    let marks = client.open(MAIN, text);
    let params = json!({ "textDocument": { "uri": MAIN }, "positions": marks });
    let ranges = client.request::<SelectionRangeRequest>(params).unwrap();
    let mut lengths = Vec::new();
    let mut at = Some(&ranges[0]);
    while let Some(range) = at {
        lengths.push((range.range.start, range.range.end));
        at = range.parent.as_deref();
    }
    assert!(lengths.len() >= 4, "{lengths:?}");
    for pair in lengths.windows(2) {
        assert!(pair[1].0 <= pair[0].0 && pair[0].1 <= pair[1].1, "{lengths:?}");
    }
}

#[test]
fn inlay_hints_show_types_that_nobody_wrote() {
    let mut client = Client::new();
    client.open(
        MAIN,
        "$a = 1\n$b = $a + 1\n$c int = $a + 2\nfunc f($x) { $x + $b }\n$d = [f($c),]\npanic(len($d) == 0)\n",
    );
    let params = json!({
        "textDocument": { "uri": MAIN },
        "range": { "start": { "line": 0, "character": 0 }, "end": { "line": 9, "character": 0 } },
    });
    let hints = client.request::<InlayHintRequest>(params).unwrap();
    let shown: Vec<(u32, String)> = hints
        .iter()
        .map(|hint| match &hint.label {
            InlayHintLabel::String(label) => (hint.position.line, label.clone()),
            other @ InlayHintLabel::LabelParts(_) => panic!("{other:?}"),
        })
        .collect();
    let wanted = [(1, "int"), (3, "int"), (4, "[]int")].map(|(line, label)| (line, label.to_owned()));
    assert_eq!(shown, wanted);
}

#[test]
fn semantic_tokens_tell_names_apart() {
    let mut client = Client::new();
    let text = "import \"fmt\"\nfunc f($x) { $x }\nfile fmt.printf(\"%d${hostname}\", f(1)) {\n\tmode => \"a\nb\",\n}\n";
    client.open(MAIN, text);
    let params = json!({ "textDocument": { "uri": MAIN } });
    let Some(SemanticTokensResult::Tokens(tokens)) = client.request::<SemanticTokensFullRequest>(params)
    else {
        panic!("tokens")
    };
    let legend = &client.offered["semanticTokensProvider"]["legend"]["tokenTypes"];
    let types: Vec<String> = serde_json::from_value(legend.clone()).expect("names of the types");
    let lines: Vec<&str> = text.lines().collect();
    let (mut line, mut character) = (0, 0);
    let mut seen = Vec::new();
    for token in &tokens.data {
        character = if token.delta_line == 0 {
            character + token.delta_start
        } else {
            token.delta_start
        };
        line += token.delta_line;
        let start = character as usize;
        let text = &lines[line as usize][start..start + token.length as usize];
        seen.push((text, types[token.token_type as usize].as_str()));
    }
    for wanted in [
        ("import", "keyword"),
        ("f", "function"),
        ("x", "parameter"),
        ("file", "type"),
        ("fmt", "namespace"),
        ("printf", "function"),
        ("\"%d${", "string"),
        ("hostname", "variable"),
        ("mode", "property"),
        ("b\"", "string"),
    ] {
        assert!(seen.contains(&wanted), "{wanted:?} in {seen:?}");
    }
    let params = json!({
        "textDocument": { "uri": MAIN },
        "range": { "start": { "line": 1, "character": 0 }, "end": { "line": 1, "character": 5 } },
    });
    let Some(SemanticTokensRangeResult::Tokens(part)) = client.request::<SemanticTokensRangeRequest>(params)
    else {
        panic!("tokens")
    };
    assert!(!part.data.is_empty() && part.data.len() < tokens.data.len());
}

#[test]
fn semantic_tokens_count_in_units_of_utf_16() {
    let mut client = Client::new();
    let text = "# é😀\n$y = \"é😀${hostname}\n\n😀\" # 😀\r\n$z = \"é\" + $y # end\n";
    client.open(MAIN, text);
    let params = json!({ "textDocument": { "uri": MAIN } });
    let Some(SemanticTokensResult::Tokens(tokens)) = client.request::<SemanticTokensFullRequest>(params)
    else {
        panic!("tokens")
    };
    let lines: Vec<Vec<u16>> = text.lines().map(|line| line.encode_utf16().collect()).collect();
    let (mut line, mut character) = (0, 0);
    let mut seen = Vec::new();
    for token in &tokens.data {
        line += token.delta_line as usize;
        character = match token.delta_line {
            0 => character + token.delta_start as usize,
            _ => token.delta_start as usize,
        };
        let units = &lines[line][character..character + token.length as usize];
        seen.push(String::from_utf16(units).expect("whole characters"));
    }
    let wanted = [
        "# é😀",
        "y",
        "=",
        "\"é😀${",
        "hostname",
        "}",
        "😀\"",
        "# 😀",
        "z",
        "=",
        "\"é\"",
        "+",
        "y",
        "# end",
    ];
    assert_eq!(seen, wanted);
}

/// The numbers of an answer after it was asked for what has changed.
fn changed(before: &[u64], answer: &serde_json::Value) -> Vec<u64> {
    let mut numbers = before.to_vec();
    for edit in answer["edits"].as_array().expect("changes") {
        let [start, count] =
            ["start", "deleteCount"].map(|key| edit[key].as_u64().expect("a number") as usize);
        let data: Vec<u64> = serde_json::from_value(edit["data"].clone()).expect("numbers");
        numbers.splice(start..start + count, data);
    }
    numbers
}

#[test]
fn semantic_tokens_are_told_again_as_far_as_they_changed() {
    let capabilities = json!({
        "textDocument": { "semanticTokens": {
            "requests": { "full": { "delta": true } },
            "tokenTypes": [],
            "tokenModifiers": [],
            "formats": ["relative"],
        } },
    });
    let mut client = Client::with(Disk::default(), capabilities);
    let lines: String = (0..50).map(|i| format!("$x{i} = \"a\"\n")).collect();
    client.open(MAIN, &lines);
    let about = json!({ "uri": MAIN });
    let whole = json!({ "textDocument": about });
    let (full, delta) = (
        "textDocument/semanticTokens/full",
        "textDocument/semanticTokens/full/delta",
    );
    let told = client.ask(full, whole.clone()).expect("tokens");
    let (mut id, mut numbers): (_, Vec<u64>) = (
        told["resultId"].clone(),
        serde_json::from_value(told["data"].clone()).expect("numbers"),
    );
    // Tokens become longer, more, fewer, none and all of them again.
    let texts = [
        lines.replace("$x20 = \"a\"", "$x20 = \"longer\""),
        lines.replace("$x20 = \"a\"", "$x20 = [\"a\", 1, 2, 3,]"),
        lines.replace("$x20 = \"a\"\n", ""),
        String::new(),
        lines.clone(),
        lines.clone(),
    ];
    for text in texts {
        client.replace(MAIN, &text);
        let params = json!({ "textDocument": about, "previousResultId": id });
        let answer = client.ask(delta, params).expect("changes");
        numbers = changed(&numbers, &answer);
        let length = answer["edits"].to_string().len();
        id = answer["resultId"].clone();
        let mut other = Client::new();
        other.open(MAIN, &text);
        let wanted = other.ask(full, whole.clone()).expect("tokens");
        assert_eq!(json!(numbers), wanted["data"]);
        assert_eq!(
            wanted["resultId"],
            json!(null),
            "who takes no changes needs no number"
        );
        let is_small = !text.contains("x20") || text == lines;
        assert!(
            is_small || length < 150,
            "one place changed, and all this is told: {answer}"
        );
    }
    // What nobody was told cannot be changed.
    let params = json!({ "textDocument": about, "previousResultId": "1" });
    let answer = client.ask(delta, params).expect("tokens");
    assert_eq!(answer["data"], json!(numbers));
}
