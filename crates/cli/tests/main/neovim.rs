//! The language server in a real editor: Neovim without a screen, which does what somebody does (`neovim/session.lua`).

use std::path::Path;

use serde_json::{Value as Json, json};
use setpoint_testing::{Hermetic, repository};

const LIBRARY: &str = "# Greets.\nfunc greet($who) {\n\t\"hello ${who}\"\n}\n";

const MAIN: &str = "import \"library.mcl\" as library\n$port = \"80\"\nfile \"/tmp/port\" {\n\tcontent => library.greet($prot),\n}\nprint library.greet(\"${port}\") {}\n";

#[test]
fn neovim_shows_completes_follows_renames_and_formats() {
    if !Path::new("/usr/bin/nvim").exists() {
        eprintln!("skipped: needs the editor `nvim`");
        return;
    }
    let place = Hermetic::new();
    place.write("main.mcl", MAIN);
    place.write("library.mcl", LIBRARY);
    let result = result_of_session(&place);
    assert_eq!(result["failed"], Json::Null, "{result:#}");
    assert_eq!(result["filetype"], "mcl");
    assert_eq!(result["syntax"], "mclImport");
    let texts = |name: &str| -> Vec<&str> {
        let list = result[name]
            .as_array()
            .unwrap_or_else(|| panic!("{name}: {result:#}"));
        list.iter().filter_map(Json::as_str).collect()
    };

    let wrong = &result["diagnostics"];
    assert_eq!(wrong.as_array().map(Vec::len), Some(1), "{wrong:#}");
    assert_eq!(wrong[0]["code"], "E0101");
    assert_eq!(wrong[0]["line"], 4);
    assert!(
        wrong[0]["message"]
            .as_str()
            .is_some_and(|text| text.contains("did you mean `$port`?")),
        "{wrong:#}"
    );
    assert_eq!(texts("hover")[0], "$port str");
    assert!(texts("hover").contains(&"Value: `\"80\"`"));
    assert_eq!(result["definition"], json!(["library.mcl", 2]));
    assert!(texts("completion").contains(&"content") && texts("completion").contains(&"Meta:noop"));
    assert_eq!(texts("completed"), ["file \"/tmp/other\" {", "\tcontent", "}"]);
    assert_eq!(result["warnings"][0]["code"], "W0112", "{result:#}");
    assert!(
        texts("actions").contains(&"allow `empty-body` here"),
        "{result:#}"
    );
    let renamed = MAIN
        .replace("port =", "number =")
        .replace("$prot", "$number")
        .replace("${port}", "${number}");
    assert_eq!(texts("renamed"), renamed.lines().collect::<Vec<_>>());
    let saved = format!("{renamed}print \"last\" {{}}\n");
    assert_eq!(texts("saved"), saved.lines().collect::<Vec<_>>());
    assert_eq!(
        std::fs::read_to_string(place.path("main.mcl")).unwrap_or_default(),
        saved
    );
    assert_eq!(result["exit"], 0);
}

/// Runs the editor with the session, and returns what that has found.
fn result_of_session(place: &Hermetic) -> Json {
    let session = repository().join("crates/cli/tests/main/neovim/session.lua");
    let editor = place
        .command("/usr/bin/nvim")
        .args(["--headless", "--clean", "-n"])
        .args(["--cmd", "let &runtimepath .= ',' .. $EDITOR_FILES", "-c"])
        .arg(format!("luafile {}", session.display()))
        .env("EDITOR_FILES", repository().join("editors/vim"))
        .env("SETPOINT", env!("CARGO_BIN_EXE_setpoint"))
        .env("RESULT", place.path("result"))
        .output()
        .expect("the editor can be started");
    let said = String::from_utf8_lossy(&editor.stderr);
    let result = std::fs::read_to_string(place.path("result")).unwrap_or_else(|_| panic!("{said}"));
    serde_json::from_str(&result).expect("it is JSON")
}
