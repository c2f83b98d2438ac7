//! What the book and the README show: programs that mean something, and commands that exist.

use std::path::Path;

use setpoint_testing::{Hermetic, repository};

use crate::error_pages::{raised, raised_by_model};

const BINARY: &str = env!("CARGO_BIN_EXE_setpoint");

/// A block between lines of three backticks.
pub(crate) struct Snippet {
    pub(crate) page: String,
    pub(crate) line: usize,
    /// What stands behind the backticks: the language, and in some pages the name of a file behind it.
    pub(crate) language: String,
    pub(crate) text: String,
}

/// The snippets of the README and of each page that a person wrote; pages of errors have a test of their own, and the
/// generated reference is compared with what the program says.
pub(crate) fn snippets() -> Vec<Snippet> {
    let root = repository();
    let mut pages = Vec::new();
    for directory in ["docs", "docs/guide", "docs/operate", "docs/reference/language"] {
        let entries = std::fs::read_dir(root.join(directory)).expect("the book is there");
        let paths = entries.flatten().map(|entry| entry.path());
        pages.extend(paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    pages.push(root.join("README.md"));
    pages.sort();
    pages.iter().flat_map(|page| snippets_of(&root, page)).collect()
}

/// Compares what a command prints with what a page of the book says that it does. `UPDATE=1` rewrites the page.
#[track_caller]
pub(crate) fn the_page_shows(page: &str, name: &str, command: &str, printed: &str) {
    let shown = format!("```text\n$ {command}\n{}\n```\n", printed.trim_end());
    let path = repository().join(page);
    let text = std::fs::read_to_string(&path).expect("the page is there");
    let mark = format!("<!-- printed by a test: {name} -->\n");
    let begin = text.find(&mark).expect("the page has a place for it") + mark.len();
    let end = match text[begin..].starts_with("```") {
        true => text[begin..]
            .find("\n```\n")
            .map_or(begin, |at| begin + at + "\n```\n".len()),
        false => begin,
    };
    if text[begin..end] == shown {
        return;
    }
    assert!(
        std::env::var_os("UPDATE").is_some(),
        "UPDATE=1 rewrites {page} with:\n{shown}"
    );
    std::fs::write(&path, format!("{}{shown}{}", &text[..begin], &text[end..]))
        .expect("the book can be written");
}

/// The examples of kinds in the reference.
pub(crate) fn examples_of_kinds() -> Vec<Snippet> {
    let root = repository();
    snippets_of(&root, &root.join("docs/reference/kinds.md"))
}

/// The snippets of a page.
pub(crate) fn snippets_of(root: &Path, page: &Path) -> Vec<Snippet> {
    let text = std::fs::read_to_string(page).expect("a page is text");
    let page = page.strip_prefix(root).unwrap_or(page).display().to_string();
    let mut found = Vec::new();
    let mut open: Option<Snippet> = None;
    for (number, line) in text.lines().enumerate() {
        match (open.take(), line.strip_prefix("```")) {
            (None, Some(language)) => {
                open = Some(Snippet {
                    page: page.clone(),
                    line: number + 1,
                    language: language.to_owned(),
                    text: String::new(),
                });
            }
            (Some(snippet), Some("")) => found.push(snippet),
            (Some(mut snippet), _) => {
                snippet.text.push_str(line);
                snippet.text.push('\n');
                open = Some(snippet);
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{page}: a block of code that nothing ends");
    found
}

#[test]
fn every_program_in_the_book_is_right() {
    let mut wrong = String::new();
    let mut count = 0;
    for snippet in snippets().into_iter().chain(examples_of_kinds()) {
        if snippet.language != "mcl" {
            continue;
        }
        count += 1;
        let codes = raised(&snippet.text, &[]);
        if !codes.is_empty() {
            wrong.push_str(&format!("{}:{}: {codes:?}\n", snippet.page, snippet.line));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(count > 20, "only {count} programs were found");
}

/// Those of a page that name files make one model together; a test of its own has that.
#[test]
fn every_model_in_the_book_is_right() {
    let mut wrong = String::new();
    let mut count = 0;
    for snippet in snippets().iter().filter(|snippet| snippet.language == "cf") {
        count += 1;
        let codes = raised_by_model(&snippet.text, &[]);
        if !codes.is_empty() {
            wrong.push_str(&format!("{}:{}: {codes:?}\n", snippet.page, snippet.line));
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(count > 5, "only {count} models were found");
}

/// They stay below a directory of the demonstration, so that each can be let loose on a machine of its own.
#[test]
fn every_program_of_the_guides_makes_its_machine_right() {
    let mut wrong = String::new();
    let mut count = 0;
    for snippet in snippets() {
        // What would change this machine, and not a directory of the demonstration, is tried on one that is thrown away.
        let tested_elsewhere = ["/every-day.md", "/plan.md"];
        let is_elsewhere = tested_elsewhere.iter().any(|page| snippet.page.ends_with(page));
        let is_of_a_machine = is_elsewhere || snippet.text.contains("svc \"");
        // Another host is needed, and a test of the cluster has one.
        let is_of_another = snippet.text.contains("remote \"");
        if snippet.language != "mcl"
            || !snippet.page.starts_with("docs/guide/")
            || is_of_a_machine
            || is_of_another
        {
            continue;
        }
        count += 1;
        let place = Hermetic::new();
        let demo = place.path("demo");
        let program = snippet.text.replace(
            "/tmp/setpoint-demo",
            demo.to_str().expect("a path of ours is text"),
        );
        std::fs::write(place.path("main.mcl"), program).expect("the program can be written");
        let program = place.path("main.mcl");
        let program = program.to_str().expect("a path of ours is text");
        for attempt in ["first", "second"] {
            let flags = ["run", "--once", "--tmp-state-dir", "--max-runtime", "60", program];
            let finished = place.run(BINARY, &flags);
            if finished.code != 0 {
                let (page, line, code) = (&snippet.page, snippet.line, finished.code);
                wrong.push_str(&format!(
                    "{page}:{line}: the {attempt} run ends with {code}\n{}\n",
                    finished.stderr
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(count > 8, "only {count} programs were found");
}

#[test]
fn every_command_in_the_book_exists_with_its_flags() {
    let place = Hermetic::new();
    let mut wrong = String::new();
    let mut count = 0;
    for snippet in snippets().iter().filter(|snippet| snippet.language == "sh") {
        let commands = snippet
            .text
            .lines()
            .filter_map(|line| line.strip_prefix("setpoint "));
        for command in commands {
            count += 1;
            let command = command.split(" #").next().unwrap_or_default();
            // Whoever asks for help gets it if everything before that was understood.
            let mut words: Vec<&str> = command
                .split_whitespace()
                .take_while(|word| !matches!(*word, "|" | ">" | ">>" | "2>" | "&&" | ";"))
                .collect();
            words.push("--help");
            let finished = place.run(BINARY, &words);
            if finished.code != 0 {
                let (page, line) = (&snippet.page, snippet.line);
                wrong.push_str(&format!(
                    "{page}:{line}: setpoint {command}\n{}\n",
                    finished.stderr
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(count > 5, "only {count} commands were found");
}

#[test]
fn every_line_of_json_in_the_book_is_json() {
    let mut wrong = String::new();
    for snippet in snippets().iter().filter(|snippet| snippet.language == "json") {
        let documents = serde_json::Deserializer::from_str(&snippet.text).into_iter::<serde_json::Value>();
        for document in documents {
            if let Err(error) = document {
                wrong.push_str(&format!("{}:{}: {error}\n", snippet.page, snippet.line));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
