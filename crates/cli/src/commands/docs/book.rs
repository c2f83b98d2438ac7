//! The reference as pages of the book: commands, events, kinds, an index of functions and a page a module.

use std::fmt::Write;
use std::path::Path;

use setpoint_programs::Assembly;
use setpoint_programs::failure::Failure;
use setpoint_value::Module;

use super::super::all_commands;
use super::{all_kinds, module_body, title, visible};

/// What an editor of the pages must know, invisible to readers.
const NOTE: &str =
    "<!-- Written by `setpoint docs book docs/reference` from the descriptions in the source. -->\n\n";

/// Writes all pages, and removes those of modules that there are no more.
pub(super) fn write(assembly: &Assembly, directory: &Path) -> Result<(), Failure> {
    let functions = directory.join("functions");
    let attempted = |path: &Path| format!("write {}", path.display());
    std::fs::create_dir_all(&functions).map_err(|error| Failure::io(attempted(&functions), &error))?;
    let pages = pages(assembly);
    for (name, text) in &pages {
        let path = directory.join(name);
        if std::fs::read_to_string(&path).is_ok_and(|before| before == *text) {
            continue;
        }
        std::fs::write(&path, text).map_err(|error| Failure::io(attempted(&path), &error))?;
    }
    let entries =
        std::fs::read_dir(&functions).map_err(|error| Failure::io(attempted(&functions), &error))?;
    for entry in entries.flatten() {
        let name = format!("functions/{}", entry.file_name().to_string_lossy());
        let is_page = name.ends_with(".md") && pages.iter().any(|(page, _)| *page == name);
        if !is_page && name.ends_with(".md") {
            let path = entry.path();
            std::fs::remove_file(&path).map_err(|error| Failure::io(attempted(&path), &error))?;
        }
    }
    Ok(())
}

/// Every page by its name.
fn pages(assembly: &Assembly) -> Vec<(String, String)> {
    let mut kinds = NOTE.to_owned();
    all_kinds(assembly, &mut kinds);
    let mut events = NOTE.to_owned();
    super::events::page(&mut events);
    let mut pages = vec![
        ("commands.md".to_owned(), ended(commands())),
        ("events.md".to_owned(), ended(events)),
        (
            "plan.schema.json".to_owned(),
            ended(format!("{:#}", setpoint_plan::schema())),
        ),
        (
            "events.schema.json".to_owned(),
            ended(super::events::schema_file()),
        ),
        ("control.md".to_owned(), ended(control())),
        (
            "control.schema.json".to_owned(),
            ended(format!("{:#}", setpoint_agent::control::lines_schema())),
        ),
        ("graph.schema.json".to_owned(), ended(graph_schema(assembly))),
        ("kinds.md".to_owned(), ended(kinds)),
        (
            "models.md".to_owned(),
            ended(format!("{NOTE}{}", super::models::built_in_pages(assembly))),
        ),
        ("functions.md".to_owned(), ended(index(assembly))),
    ];
    for module in assembly.modules() {
        let mut page = format!("{NOTE}# {}\n\n", title(module));
        module_body(module, &visible(module), true, &mut page);
        pages.push((page_name(module), ended(page)));
    }
    pages
}

/// The lines of the control socket.
fn control() -> String {
    let mut page = format!(
        "{NOTE}# Control socket\n\nA `setpoint run` listens on the socket `control.sock` in its state directory (`--state-dir`), which only its user and root can \
         use. `setpoint status`, `events`, `recheck`, `pause`, `resume`, `reload` and `debug` speak with it, and so can other programs: each line is one JSON \
         object. The process begins with `hello`, which says the version of the protocol; this is version {}. It rises when something that a \
         client may rely on changes its meaning or goes away; answers may get further fields, and there may be further requests, without it. \
         [`control.schema.json`](control.schema.json) is the same as JSON Schema.\n\n\
         A client sends requests, each with an `id` of its own, a whole number. Every line that answers carries that `id`. The last one is called as the request, \
         or `error`; before it others may come. Several requests can be under way, and their lines then come mixed.\n\n\
         ```sh\nsudo socat - UNIX-CONNECT:/var/lib/setpoint/control.sock <<< '{{\"id\":1,\"request\":\"status\",\"standings\":[\"failed\",\"failing\"]}}'\n```\n\n\
         Everything has its bounds. A line of a client has at most 64 KiB; there are at most 64 clients, and 32 requests of one under way. The newest 4096 events \
         are kept (fewer if they are large). A client that reads too slowly finds a `gap` in the events, and one that takes nothing for two minutes is \
         given up. No client holds up the process, whatever it does. Blank lines are nothing. Who closes its side for writing ends what it follows, as by `cancel`, and still gets all other answers.\n\n\
         Sensitive values are `(sensitive)` or `{{\"$sensitive\": true}}` in all lines. Fields that may be absent are marked with `?`.\n",
        setpoint_agent::control::protocol::PROTOCOL,
    );
    let mut schema = setpoint_agent::control::lines_schema();
    for (side, heading) in [("request", "request "), ("answer", "answer ")] {
        for sort in schema["$defs"][side]["oneOf"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            sort["title"] = format!("{heading}`{}`", sort["title"].as_str().unwrap_or_default()).into();
            super::events::one(sort, &mut page);
        }
    }
    page
}

/// The description of graphs in YAML, for editors.
fn graph_schema(assembly: &Assembly) -> String {
    let library = assembly.library("localhost");
    serde_json::to_string_pretty(&setpoint_yaml::schema(&library)).unwrap_or_default()
}

/// The help of every command, at a width that does not depend on the terminal.
fn commands() -> String {
    let mut page = format!("{NOTE}# Commands\n");
    for mut command in all_commands() {
        let help = command.render_long_help().to_string();
        let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
        let name = command.get_bin_name().unwrap_or(command.get_name());
        let _ = write!(
            page,
            "\n## {name}\n\n```text\n{}\n```\n",
            lines.join("\n").trim_end()
        );
    }
    page
}

fn index(assembly: &Assembly) -> String {
    let mut page = format!("{NOTE}# Functions\n\n");
    page.push_str(
        "A function of a module is called by the last part of the module's name, `strings.to_lower(\"A\")` after \
         `import \"strings\"`. `setpoint docs functions NAME` shows the same in a terminal. Every example was \
         run.\n\nIn the types `?1` stands for any type, the same one wherever it stands in a signature; `number` for an \
         `int` or a `float`; `dynamic` for a type that follows from the arguments; `T?` for a `T` or nothing; `T…` for any \
         number of further arguments, and `…` alone for arguments of any types. mcl has no tuples and no sets, so that a `tuple(…)` or `set{T}` is a list there. \
         `opaque(bytes)` is raw bytes, of which programs can only ask the functions that take them.\n\n| module | functions |\n|---|---|\n",
    );
    for module in assembly.modules() {
        let names: Vec<String> = visible(module)
            .iter()
            .map(|spec| {
                format!(
                    "[`{}`]({}#{})",
                    spec.name,
                    page_name(module),
                    anchor(&spec.to_string())
                )
            })
            .collect();
        let title = match module.name {
            "" => "(no import)",
            name => name,
        };
        let doc = module.doc.trim().lines().next().unwrap_or_default();
        let _ = writeln!(
            page,
            "| [{title}]({}): {doc} | {} |",
            page_name(module),
            names.join(" ")
        );
    }
    page
}

/// The file of a module's page, from the directory of the index.
fn page_name(module: &Module) -> String {
    let name = match module.name {
        "" => "without_import".to_owned(),
        name => name.replace('/', "_"),
    };
    format!("functions/{name}.md")
}

/// How mdbook names the place of a heading: letters, digits, `_` and `-` stay, blanks become `-`, all else goes.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().map(|c| if c == ' ' { '-' } else { c });
    let kept = kept.filter(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    kept.collect::<String>().to_lowercase()
}

/// With one line break at the end.
fn ended(text: String) -> String {
    format!("{}\n", text.trim_end())
}
