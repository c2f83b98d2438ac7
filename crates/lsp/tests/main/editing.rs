//! What changes texts: rename, quick fixes, formatting; and programs of several files.

use lsp_types::request::{Formatting, HoverRequest, PrepareRenameRequest, RangeFormatting, Rename};
use lsp_types::{CodeAction, Position, PrepareRenameResponse, Range, TextEdit};
use serde_json::{Value as Json, json};

use crate::client::{Client, Disk, applied, at, edited, modern, unmarked};

const MAIN: &str = "file:///srv/main.mcl";

fn rename(client: &mut Client, position: Position, name: &str) -> Result<Json, String> {
    let mut params = at(MAIN, position);
    params["newName"] = json!(name);
    client
        .ask("textDocument/rename", params)
        .map_err(|error| error.message)
}

fn format(client: &mut Client, text: &str) -> (String, Vec<TextEdit>) {
    let options = json!({ "tabSize": 4, "insertSpaces": false });
    let params = json!({ "textDocument": { "uri": MAIN }, "options": options });
    let edits = client.request::<Formatting>(params).unwrap_or_default();
    (edited(text, &edits), edits)
}

fn actions(client: &mut Client, range: Range) -> Vec<CodeAction> {
    client.code_actions(MAIN, range, &json!({ "diagnostics": [] }))
}

#[test]
fn a_new_name_reaches_every_place_strings_and_other_files_included() {
    let disk = Disk::default();
    disk.set("/srv/lib.mcl", "$shared = 1\n$double = $shared + $shared\n");
    let mut client = Client::with(disk, modern());
    let source = "import \"lib.mcl\"\n$na¦me = \"a\"\nfile \"/${name}\" {\n\tcontent => $name,\n}\npanic($lib.sha¦red == $lib.double)\n";
    let marks = client.open(MAIN, source);
    let (text, _) = unmarked(source);
    let mut params = at(MAIN, marks[0]);
    let Some(PrepareRenameResponse::RangeWithPlaceholder { placeholder, .. }) =
        client.request::<PrepareRenameRequest>(params.clone())
    else {
        panic!("it can be renamed")
    };
    assert_eq!(placeholder, "name");
    params["newName"] = json!("$title");
    let edit = client.request::<Rename>(params).unwrap().changes.unwrap();
    let edits: Vec<TextEdit> = edit.values().flatten().cloned().collect();
    let renamed = edited(&text, &edits);
    assert!(
        renamed.contains("$title = \"a\"\nfile \"/${title}\" {\n\tcontent => $title,"),
        "{renamed}"
    );
    let mut params = at(MAIN, marks[1]);
    params["newName"] = json!("common");
    let edit = client.request::<Rename>(params).unwrap().changes.unwrap();
    let files: Vec<(&str, usize)> = edit
        .iter()
        .map(|(uri, edits)| (uri.as_str(), edits.len()))
        .collect();
    assert_eq!(
        files.iter().map(|(_, edits)| edits).sum::<usize>(),
        4,
        "{files:?}"
    );
    assert!(
        files
            .iter()
            .any(|(uri, edits)| *uri == "file:///srv/lib.mcl" && *edits == 3),
        "{files:?}"
    );
}

#[test]
fn a_rename_that_would_break_something_is_refused_with_its_reason() {
    let mut client = Client::new();
    let text = "import \"f¦mt\"\n$na¦me = \"a\"\n$other = 1\nfi¦le fmt.print¦f(\"%s%d\", $name, $other) {\n\tsta¦te => $const.res.file.state.exi¦sts,\n\tMeta:no¦op => true,\n}\n";
    let marks = client.open(MAIN, text);
    let mut refused = |mark: usize, name: &str| rename(&mut client, marks[mark], name).unwrap_err();
    assert!(refused(0, "x").contains("`as`"));
    assert!(refused(1, "other").contains("already means something"));
    assert!(refused(1, "Name").contains("is no name"));
    assert!(refused(1, "if").contains("is no name"));
    assert!(refused(1, "a__b").contains("no two in a row"));
    assert!(refused(2, "x").contains("kinds keep"));
    assert!(refused(3, "x").contains("library"));
    assert!(refused(4, "x").contains("parameters"));
    assert!(refused(5, "x").contains("library"));
    assert!(refused(6, "x").contains("parameters"));
}

#[test]
fn a_variable_may_have_the_name_of_an_alias() {
    let mut client = Client::new();
    let marks = client.open(
        MAIN,
        "import \"fmt\" as z\n$a¦ = 1\n$b = 2\npanic(z.printf(\"%d\", $a + $b) == \"4\")\n",
    );
    assert!(rename(&mut client, marks[0], "z").is_ok());
    assert!(rename(&mut client, marks[0], "b").is_err());
}

#[test]
fn quick_fixes_do_what_the_diagnostic_says() {
    let mut client = Client::new();
    let whole = Range::new(Position::new(0, 0), Position::new(9, 0));
    let text = "$port = 1\npanic($prot == 1)\n";
    client.open(MAIN, text);
    let found = actions(&mut client, whole);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].title, "did you mean `$port`");
    assert_eq!(applied(text, &found[0]), "$port = 1\npanic($port == 1)\n");
    let text = "file \"/a\" {\n\tcontnet => \"x\",\n}\n";
    client.replace(MAIN, text);
    let found = actions(&mut client, whole);
    assert_eq!(
        applied(text, &found[0]),
        "file \"/a\" {\n\tcontent => \"x\",\n}\n",
        "{found:#?}"
    );
    let text = "$x = \"a\\q\"\n";
    client.replace(MAIN, text);
    let found = actions(&mut client, whole);
    assert_eq!(applied(text, &found[0]), "$x = \"a\\\\q\"\n", "{found:#?}");
    let text = "panic(true && false)\n";
    client.replace(MAIN, text);
    let found = actions(&mut client, whole);
    assert_eq!(applied(text, &found[0]), "panic(true and false)\n", "{found:#?}");
}

#[test]
fn a_missing_import_is_added_where_imports_stand() {
    let used = "panic(strings.to_lower(\"A\") == \"b\")\n";
    let import = "import \"golang/strings\"\n";
    let mut client = Client::new();
    client.open(MAIN, "");
    let whole = Range::new(Position::new(0, 0), Position::new(9, 0));
    for (before, fixed) in [
        ("", format!("{import}\n")),
        (
            "# About the file.\n\n",
            format!("# About the file.\n\n{import}\n"),
        ),
        (
            "# About the statement.\n",
            format!("{import}\n# About the statement.\n"),
        ),
        (
            "#!/usr/bin/setpoint\n",
            format!("#!/usr/bin/setpoint\n{import}\n"),
        ),
        (
            "$a = 1\nimport \"fmt\"\n",
            format!("$a = 1\n{import}import \"fmt\"\n"),
        ),
    ] {
        let text = format!("{before}{used}");
        client.replace(MAIN, &text);
        let found = actions(&mut client, whole);
        assert_eq!(found[0].title, "write `import \"golang/strings\"` in this file");
        assert_eq!(applied(&text, &found[0]), format!("{fixed}{used}"));
    }
}

#[test]
fn formatting_changes_only_the_lines_that_differ() {
    let mut client = Client::new();
    let text = "$a=1\n# é😀\n$b = 2\n\n\n\n$c  =  3\n";
    client.open(MAIN, text);
    let (formatted, edits) = format(&mut client, text);
    assert_eq!(formatted, setpoint_mcl::format::format(text).unwrap());
    assert!(
        edits.iter().all(|edit| !edit.new_text.contains('😀')),
        "{edits:?}"
    );
    let options = json!({ "tabSize": 4, "insertSpaces": false });
    let range = Range::new(Position::new(0, 0), Position::new(0, 1));
    let params = json!({ "textDocument": { "uri": MAIN }, "range": range, "options": options });
    let part = client.request::<RangeFormatting>(params).unwrap();
    assert_eq!(edited(text, &part), "$a = 1\n# é😀\n$b = 2\n\n\n\n$c  =  3\n");
    client.replace(MAIN, &formatted);
    assert_eq!(format(&mut client, &formatted).1, []);
    client.replace(MAIN, "$a = \n");
    assert_eq!(format(&mut client, "$a = \n").1, []);
}

#[test]
fn unsaved_texts_are_what_a_program_imports() {
    let disk = Disk::default();
    disk.set("/srv/main.mcl", "import \"lib.mcl\"\npanic($lib.value == 1)\n");
    disk.set("/srv/lib.mcl", "$value = 1\n");
    let mut client = Client::with(disk, modern());
    client.open("file:///srv/lib.mcl", "$value = \"text\"\n");
    // The program is that of the `main.mcl` beside it, and what is wrong there is told there.
    client.diagnostics("file:///srv/lib.mcl");
    while !client.diagnostics.contains_key(MAIN) {
        client.hear();
    }
    let main = client.diagnostics[MAIN].diagnostics.clone();
    assert_eq!(main.len(), 1, "{main:#?}");
    client.replace("file:///srv/lib.mcl", "$value = 2\n");
    client.diagnostics("file:///srv/lib.mcl");
    while !client.diagnostics[MAIN].diagnostics.is_empty() {
        client.hear();
    }
}

#[test]
fn a_file_that_no_program_reaches_is_a_program_by_itself() {
    let disk = Disk::default();
    disk.set("/srv/main.mcl", "print \"a\" {}\n");
    disk.set("/srv/deep/down/metadata.yaml", "main: start.mcl\n");
    disk.set(
        "/srv/deep/down/start.mcl",
        "import \"part.mcl\"\npanic($part.a == 1)\n",
    );
    let mut client = Client::with(disk, modern());
    let alone = "file:///srv/deep/alone.mcl";
    let marks = client.open(alone, "$a¦b = true\n");
    assert!(client.request::<HoverRequest>(at(alone, marks[0])).is_some());
    let part = "file:///srv/deep/down/part.mcl";
    client.open(part, "$a = \"text\"\n");
    // What is wrong is told where the part is used.
    while !client.diagnostics.contains_key("file:///srv/deep/down/start.mcl") {
        client.hear();
    }
}

#[test]
fn a_file_that_changes_on_disk_is_read_again() {
    let disk = Disk::default();
    disk.set("/srv/lib.mcl", "$value = 1\n");
    let mut client = Client::with(disk, modern());
    client.open(MAIN, "import \"lib.mcl\"\npanic($lib.value == 1)\n");
    assert_eq!(client.diagnostics(MAIN), []);
    assert!(
        client
            .asked
            .iter()
            .any(|request| request.method == "client/registerCapability")
    );
    client.disk.set("/srv/lib.mcl", "$other = 1\n");
    let change = json!({ "changes": [{ "uri": "file:///srv/lib.mcl", "type": 2 }] });
    client.notify("workspace/didChangeWatchedFiles", change);
    while client.diagnostics[MAIN].diagnostics.is_empty() {
        client.hear();
    }
    client.disk.remove("/srv/lib.mcl");
    client.notify("textDocument/didSave", json!({ "textDocument": { "uri": MAIN } }));
    while !client.diagnostics[MAIN]
        .diagnostics
        .iter()
        .any(|found| found.message.contains("lib.mcl"))
    {
        client.hear();
    }
}
