//! Models in an editor: the same questions in the other language, and documents of both side by side.

use lsp_types::request::{
    CodeActionRequest, Completion, DocumentHighlightRequest, DocumentSymbolRequest, FoldingRangeRequest,
    Formatting, GotoDefinition, HoverRequest, References, Rename, SelectionRangeRequest,
    SemanticTokensFullRequest, SignatureHelpRequest, WorkspaceSymbolRequest,
};
use lsp_types::{
    CodeActionOrCommand, CompletionResponse, CompletionTextEdit, Diagnostic, DocumentSymbolResponse,
    GotoDefinitionResponse, HoverContents, NumberOrString, Position, SemanticTokensResult,
    WorkspaceSymbolResponse,
};
use serde_json::json;

use crate::client::{Client, Disk, at, edited, modern, unmarked};

const MAIN: &str = "file:///srv/main.cf";

const MODEL: &str = r#"import setpoint
import net

entity Host extends net::Node:
    """
    A machine.
    """
    string name
    int di¦sks = 1
end

index Host(name)

Host.files [0:] -- File.host [1]
"""
The files of a host.
"""

entity File:
    string path
end

implementation files for Host:
    for file in self.fi¦les:
        setpoint::File(name=file.path, path=file.pa¦th, content="{{ na¦me }}")
    end
end

implement Ho¦st using files
implement File using std::none
web = Host(name="web")
one = File(host=we¦b, path="/a")
low = std::lo¦wer("A")
root = net::ro¦ot
"#;

const MODULE: &str = "entity Node:\nend\n\nimplement Node using std::none\nroot = Node()\n";

/// A project on disk, of which the main file is open.
fn project() -> (Client, Vec<Position>) {
    let disk = Disk::default();
    disk.set("/srv/project.yml", "name: test\nmodulepath: libs\n");
    disk.set(
        "/srv/libs/net/setup.cfg",
        "[metadata]\nname = inmanta-module-net\nversion = 1.0.0\nlicense = MIT\n",
    );
    disk.set("/srv/libs/net/model/_init.cf", MODULE);
    let mut client = Client::with(disk, modern());
    let marks = client.open(MAIN, MODEL);
    (client, marks)
}

fn hover(client: &mut Client, position: Position) -> String {
    let hover = client
        .request::<HoverRequest>(at(MAIN, position))
        .expect("something is known");
    match hover.contents {
        HoverContents::Markup(markup) => markup.value,
        other => panic!("{other:?}"),
    }
}

fn codes(found: &[Diagnostic]) -> Vec<String> {
    let code = |found: &'_ Diagnostic| match &found.code {
        Some(NumberOrString::String(code)) => Some(code.clone()),
        _ => None,
    };
    found.iter().filter_map(code).collect()
}

#[test]
fn hovering_tells_what_a_name_is() {
    let (mut client, marks) = project();
    assert_eq!(client.diagnostics(MAIN), []);
    let told = |client: &mut Client, mark: usize| hover(client, marks[mark]);
    assert_eq!(told(&mut client, 0), "```cf\nint disks = 1\n```");
    let relation = "```cf\nHost.files [0:] -- File.host [1]\n```\n\nThe files of a host.";
    assert_eq!(told(&mut client, 1), relation);
    assert_eq!(told(&mut client, 2), "```cf\nstring path\n```");
    assert_eq!(told(&mut client, 3), "```cf\nstring name\n```");
    let entity = told(&mut client, 4);
    for part in [
        "```cf\nentity Host extends net::Node\n```\n\nA machine.\n",
        "Attributes:\n\n- `string name`\n- `int disks = 1`\n",
        "Relations:\n\n- `Host.files [0:] -- File.host [1]`: The files of a host.\n",
        "- `index Host(name)`",
        "- `using files`",
    ] {
        assert!(entity.contains(part), "{part}\n{entity}");
    }
    assert_eq!(told(&mut client, 5), "```cf\nweb: Host\n```");
    assert!(told(&mut client, 6).starts_with("```cf\nstd::lower(string: string) -> string\n```\n"));
    assert_eq!(told(&mut client, 7), "```cf\nroot: net::Node\n```");
}

#[test]
fn definitions_references_and_highlights_lead_through_texts_and_modules() {
    let (mut client, marks) = project();
    let place =
        |client: &mut Client, mark: usize| match client.request::<GotoDefinition>(at(MAIN, marks[mark])) {
            Some(GotoDefinitionResponse::Scalar(place)) => {
                (place.uri.as_str().to_owned(), place.range.start.line)
            }
            other => panic!("{other:?}"),
        };
    assert_eq!(place(&mut client, 1), (MAIN.to_owned(), 13));
    assert_eq!(place(&mut client, 3), (MAIN.to_owned(), 7));
    assert_eq!(
        place(&mut client, 7),
        ("file:///srv/libs/net/model/_init.cf".to_owned(), 4)
    );
    let mut params = at(MAIN, marks[2]);
    params["context"] = json!({ "includeDeclaration": false });
    let found = client.request::<References>(params).unwrap_or_default();
    let lines: Vec<u32> = found.iter().map(|place| place.range.start.line).collect();
    assert_eq!(lines, [24, 24, 31]);
    let found = client
        .request::<DocumentHighlightRequest>(at(MAIN, marks[5]))
        .unwrap_or_default();
    assert_eq!(found.len(), 2);
    // What is built in can be read.
    let built_in = client.ask("setpoint/text", json!({ "uri": "setpoint:/models/std.cf" }));
    assert!(built_in.unwrap().as_str().unwrap().contains("entity Entity:"));
}

#[test]
fn renaming_changes_every_mention_and_refuses_what_others_own() {
    let (mut client, marks) = project();
    let (text, _) = unmarked(MODEL);
    let mut params = at(MAIN, marks[2]);
    params["newName"] = "place".into();
    let change = client.request::<Rename>(params).expect("it can be renamed");
    let edits = change.changes.unwrap().into_values().next().unwrap();
    let renamed = edited(&text, &edits);
    assert!(renamed.contains("string place\n"), "{renamed}");
    assert!(
        renamed.contains("setpoint::File(name=file.place, path=file.place, "),
        "{renamed}"
    );
    assert!(
        renamed.contains("one = File(host=web, place=\"/a\")"),
        "{renamed}"
    );
    for (mark, name, why) in [
        (0, "Disks", "no name"),
        (0, "name", "already means something"),
        (6, "lower2", "functions"),
        (4, "host", "capital letter"),
    ] {
        let mut params = at(MAIN, marks[mark]);
        params["newName"] = name.into();
        let refused = client.ask("textDocument/rename", params).unwrap_err();
        assert!(refused.message.contains(why), "{}", refused.message);
    }
}

#[test]
fn completion_knows_members_arguments_and_names_of_half_written_models() {
    let mut client = Client::new();
    let text = "import setpoint\nentity Host:\n    string name\n    int disks\nend\nindex Host(name)\nimplement Host using std::none\nweb = Host(name=\"a\", disks=1)\nx = web.¦\ny = Host(¦)\nz = std::coun¦\nfor e in ¦\n";
    let marks = client.open(MAIN, text);
    let items = |client: &mut Client, mark: usize| match client.request::<Completion>(at(MAIN, marks[mark])) {
        Some(CompletionResponse::List(list)) => list.items,
        other => panic!("{other:?}"),
    };
    let labels = |client: &mut Client, mark: usize| -> Vec<String> {
        items(client, mark).into_iter().map(|item| item.label).collect()
    };
    assert_eq!(labels(&mut client, 0), ["name", "disks", "requires", "provides"]);
    let arguments = items(&mut client, 1);
    let first = &arguments[0];
    assert_eq!(first.label, "name");
    assert_eq!(first.detail.as_deref(), Some("string name"));
    match &first.text_edit {
        Some(CompletionTextEdit::Edit(edit)) => assert_eq!(edit.new_text, "name=$1"),
        other => panic!("{other:?}"),
    }
    assert!(labels(&mut client, 2).contains(&"count".to_owned()));
    assert!(labels(&mut client, 3).contains(&"web".to_owned()));
    let help = client
        .request::<SignatureHelpRequest>(at(MAIN, marks[1]))
        .expect("a constructor is called");
    assert_eq!(help.signatures[0].label, "Host(string name, int disks)");
}

#[test]
fn what_is_wrong_is_told_while_it_is_typed_and_mended_by_a_fix() {
    let mut client = Client::new();
    let text = "entity Host:\n    string name\nend\n\nindex Host(name)\nimplement Host using none\nhost = Host(\"a\")\n";
    client.open(MAIN, text);
    let found = client.diagnostics(MAIN);
    assert_eq!(codes(&found), ["W0512"]);
    let range = json!({ "start": { "line": 6, "character": 12 }, "end": { "line": 6, "character": 12 } });
    let context = json!({ "diagnostics": [] });
    let params = json!({ "textDocument": { "uri": MAIN }, "range": range, "context": context });
    let actions = client.request::<CodeActionRequest>(params).unwrap_or_default();
    let actions: Vec<_> = actions
        .into_iter()
        .map(|action| match action {
            CodeActionOrCommand::CodeAction(action) => action,
            CodeActionOrCommand::Command(command) => panic!("{command:?}"),
        })
        .collect();
    let titles: Vec<&str> = actions.iter().map(|action| &*action.title).collect();
    assert_eq!(
        titles,
        ["write `name=` before it", "allow `positional-constructor` here"]
    );
    let apply = |at: usize| {
        let changes = actions[at].edit.clone().unwrap().changes.unwrap();
        edited(text, &changes.into_values().flatten().collect::<Vec<_>>())
    };
    client.replace(MAIN, &apply(0));
    assert_eq!(client.diagnostics(MAIN), []);
    client.replace(MAIN, &apply(1));
    assert_eq!(client.diagnostics(MAIN), []);
    client.replace(MAIN, "host = Host(nam");
    assert_eq!(codes(&client.diagnostics(MAIN)), ["E0501"]);
    client.replace(MAIN, "host = Hots()\n");
    assert_eq!(codes(&client.diagnostics(MAIN)), ["E0532"]);
    client.replace(MAIN, "port = 80\nx = prot\n");
    assert_eq!(codes(&client.diagnostics(MAIN)), ["W0518"]);
    // A project that is wrong is told where it is wrong.
    client.disk.set("/srv/project.yml", "name: [1]\n");
    client.notify("textDocument/didSave", json!({ "textDocument": { "uri": MAIN } }));
    client.replace(MAIN, "x = 1\n");
    client.diagnostics(MAIN);
    let told = client.diagnostics("file:///srv/project.yml");
    assert_eq!(codes(&told), ["E0521"]);
}

fn main_document() -> serde_json::Value {
    json!({ "textDocument": { "uri": MAIN } })
}

#[test]
fn the_outline_shows_definitions_and_attributes() {
    let (mut client, _) = project();
    let symbols = match client.request::<DocumentSymbolRequest>(main_document()) {
        Some(DocumentSymbolResponse::Nested(symbols)) => symbols,
        other => panic!("{other:?}"),
    };
    let names: Vec<&str> = symbols.iter().map(|symbol| &*symbol.name).collect();
    let wanted = [
        "setpoint",
        "net",
        "Host",
        "index Host(name)",
        "Host.files -- File.host",
        "File",
        "files",
        "implement Host",
        "implement File",
        "web",
        "one",
        "low",
        "root",
    ];
    assert_eq!(names, wanted);
    let host = symbols[2].children.as_deref().unwrap_or_default();
    assert_eq!(
        host.iter().map(|symbol| &*symbol.name).collect::<Vec<_>>(),
        ["name", "disks"]
    );
}

#[test]
fn blocks_fold() {
    let (mut client, _) = project();
    let folds = client
        .request::<FoldingRangeRequest>(main_document())
        .unwrap_or_default();
    let folds: Vec<(u32, u32)> = folds
        .iter()
        .map(|fold| (fold.start_line, fold.end_line))
        .collect();
    assert_eq!(
        folds,
        [(0, 1), (3, 8), (4, 5), (14, 15), (18, 19), (22, 25), (23, 24)]
    );
}

#[test]
fn a_selection_grows_to_the_whole_file() {
    let (mut client, _) = project();
    let mut params = main_document();
    params["positions"] = json!([{ "line": 24, "character": 36 }]);
    let selected = client
        .request::<SelectionRangeRequest>(params)
        .unwrap_or_default();
    let mut lengths = Vec::new();
    let mut at = Some(&selected[0]);
    while let Some(selection) = at {
        let range = selection.range;
        lengths.push((range.start.line, range.end.line, range.end.character));
        at = selection.parent.as_deref();
    }
    assert_eq!(lengths.first(), Some(&(24, 24, 37)), "{lengths:?}");
    assert_eq!(lengths.last().map(|last| last.0), Some(0), "{lengths:?}");
    assert!(lengths.len() >= 5, "{lengths:?}");
}

#[test]
fn words_have_the_colour_of_their_meaning() {
    let (mut client, _) = project();
    let tokens = match client.request::<SemanticTokensFullRequest>(main_document()) {
        Some(SemanticTokensResult::Tokens(tokens)) => tokens.data,
        other => panic!("{other:?}"),
    };
    let types = client.offered["semanticTokensProvider"]["legend"]["tokenTypes"].clone();
    let (text, _) = unmarked(MODEL);
    let lines: Vec<&str> = text.lines().collect();
    let (mut line, mut character) = (0, 0);
    let mut told = Vec::new();
    for token in tokens {
        character = match token.delta_line {
            0 => character + token.delta_start,
            _ => token.delta_start,
        };
        line += token.delta_line;
        let (from, to) = (character as usize, (character + token.length) as usize);
        let name = types[token.token_type as usize].as_str().unwrap().to_owned();
        told.push((lines[line as usize][from..to].to_owned(), name));
    }
    let of = |word: &str| {
        let found = told.iter().find(|(text, _)| text == word);
        found.map(|(_, sort)| sort.as_str())
    };
    for (word, sort) in [
        ("entity", "keyword"),
        ("net", "namespace"),
        ("Host", "class"),
        ("int", "type"),
        ("disks", "property"),
        ("files", "property"),
        ("web", "variable"),
        ("lower", "function"),
        ("1", "number"),
        ("--", "operator"),
        ("name", "property"),
    ] {
        assert_eq!(of(word), Some(sort), "{word}");
    }
}

#[test]
fn formatting_edits_only_what_is_not_formatted() {
    let (mut client, _) = project();
    let mut params = main_document();
    params["options"] = json!({ "tabSize": 4, "insertSpaces": true });
    assert_eq!(client.request::<Formatting>(params.clone()), Some(Vec::new()));
    client.replace(MAIN, "x   =  1\n");
    let edits = client.request::<Formatting>(params).unwrap_or_default();
    assert_eq!(edited("x   =  1\n", &edits), "x = 1\n");
}

#[test]
fn both_languages_are_served_side_by_side_and_symbols_of_both_are_found() {
    let (mut client, _) = project();
    let program = "file:///srv/main.mcl";
    client.open(program, "$port = $prot\n");
    assert_eq!(
        codes(&client.diagnostics(program)).first(),
        Some(&"E0101".to_owned())
    );
    assert_eq!(client.diagnostics(MAIN), []);
    let found = match client.request::<WorkspaceSymbolRequest>(json!({ "query": "ot" })) {
        Some(WorkspaceSymbolResponse::Flat(found)) => found,
        other => panic!("{other:?}"),
    };
    let names: Vec<&str> = found.iter().map(|symbol| &*symbol.name).collect();
    assert!(names.contains(&"root") && names.contains(&"port"), "{names:?}");
}

#[test]
fn a_file_that_the_project_does_not_import_and_a_module_without_a_project_are_understood() {
    let (mut client, _) = project();
    let other = "file:///srv/other.cf";
    let marks = client.open(other, "import net\nx = net::ro¦ot\n");
    assert_eq!(client.diagnostics(other), []);
    assert!(client.request::<GotoDefinition>(at(other, marks[0])).is_some());
    let alone = "file:///modules/net/model/services.cf";
    client.disk.set(
        "/modules/net/setup.cfg",
        "[metadata]\nname = inmanta-module-net\nversion = 1.0.0\nlicense = MIT\n",
    );
    client.disk.set("/modules/net/model/_init.cf", MODULE);
    let marks = client.open(alone, "import net\ny = net::ro¦ot\n");
    assert_eq!(client.diagnostics(alone), []);
    assert!(client.request::<GotoDefinition>(at(alone, marks[0])).is_some());
    let importing = "file:///srv/third.cf";
    let marks = client.open(importing, "import ne¦\n");
    let found = match client.request::<Completion>(at(importing, marks[0])) {
        Some(CompletionResponse::List(list)) => list.items,
        other => panic!("{other:?}"),
    };
    let labels: Vec<&str> = found.iter().map(|item| &*item.label).collect();
    for name in ["net", "std", "setpoint", "strings"] {
        assert!(labels.contains(&name), "{name}: {labels:?}");
    }
    let untitled = "untitled:Untitled-1.cf";
    client.open(untitled, "z = 1\nz-a = 2\n");
    assert_eq!(codes(&client.diagnostics(untitled)), ["W0511"]);
}
