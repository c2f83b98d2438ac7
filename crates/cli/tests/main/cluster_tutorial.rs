//! The tutorial of clusters, done as it is written, on a machine that is thrown away: its commands run one after the other in one shell, and
//! print what the page shows. `…` there stands for anything, and alone on a line for any lines.

use std::path::Path;
use std::process::Command;

use setpoint_testing::repository;

use crate::book::{Snippet, snippets_of};
use setpoint_testing::place::Place;

/// What is printed before the output of a block, with its number behind it.
const BLOCK: &str = "==== block ";

/// What the shell is given: the blocks of the page, each announced.
fn script(snippets: &[Snippet]) -> String {
    let mut script = "set -eu\nexec 2>&1\n".to_owned();
    for (number, snippet) in snippets.iter().enumerate() {
        match snippet.language.split_once(' ') {
            // The program is there already.
            None if snippet.language == "sh" && snippet.text.contains("cargo build") => {}
            None if snippet.language == "sh" => {
                script.push_str(&format!("echo '{BLOCK}{number}'\n{}", snippet.text));
            }
            Some(("mcl", file)) => {
                script.push_str(&format!(
                    "cat > {file} <<'END OF FILE'\n{}END OF FILE\n",
                    snippet.text
                ));
            }
            _ => assert_eq!(snippet.language, "text", "line {}", snippet.line),
        }
    }
    script
}

/// What a block has printed.
fn printed_by(number: usize, output: &str) -> String {
    let mut blocks = output.split(BLOCK);
    let wanted = format!("{number}\n");
    let own = blocks.find_map(|block| block.strip_prefix(&wanted));
    own.unwrap_or_default().to_owned()
}

/// Whether lines are what a page shows.
fn are_as_shown(lines: &[&str], shown: &[&str]) -> bool {
    match (shown.split_first(), lines.split_first()) {
        (None, rest) => rest.is_none(),
        (Some((&"…", shown_after)), _) => {
            (0..=lines.len()).any(|skipped| are_as_shown(&lines[skipped..], shown_after))
        }
        (Some((first, shown_after)), Some((line, after))) => {
            is_as_shown(line, first) && are_as_shown(after, shown_after)
        }
        (Some(_), None) => false,
    }
}

/// Whether one line is.
fn is_as_shown(line: &str, shown: &str) -> bool {
    let mut parts = shown.split('…');
    let Some(mut rest) = parts.next().and_then(|begin| line.strip_prefix(begin)) else {
        return false;
    };
    let mut is_open = false;
    for part in parts {
        is_open = true;
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty() || is_open && shown.ends_with('…')
}

#[test]
fn its_commands_print_what_the_page_shows() {
    let test = "cluster_tutorial::its_commands_print_what_the_page_shows";
    let programs = ["etcd", "etcdctl", "openssl", "git", "ip"];
    Place::machine(test).needing(&programs).run(|| {
        let root = repository();
        let snippets = snippets_of(&root, &root.join("docs/cluster-tutorial.md"));
        let program = Path::new(env!("CARGO_BIN_EXE_setpoint"));
        let directory = program.parent().expect("it lies in a directory");
        let path = format!(
            "{}:{}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            directory.display(),
            root.join("examples/cluster").display()
        );
        let ran = Command::new("bash")
            .args(["-c", &script(&snippets)])
            .env_clear()
            .env("PATH", path)
            .env("HOME", "/root")
            .env("LANG", "C.UTF-8")
            .current_dir("/")
            .output()
            .expect("there is a shell");
        let output = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success(), "{output}");
        let mut count = 0;
        for (number, pair) in snippets.windows(2).enumerate() {
            if pair[0].language == "sh" && pair[1].language == "text" {
                let printed = printed_by(number, &output);
                let lines: Vec<&str> = printed.lines().collect();
                let shown: Vec<&str> = pair[1].text.lines().collect();
                let line = pair[0].line;
                assert!(are_as_shown(&lines, &shown), "line {line} prints:\n{printed}");
                count += 1;
            }
        }
        assert!(count > 8, "the page shows what is printed");
        assert!(!Path::new("/tmp/setpoint-cluster").exists(), "nothing is left");
    });
}

#[test]
fn a_page_may_leave_out_what_differs() {
    assert!(is_as_shown("commit 79ace done", "commit … done"));
    assert!(is_as_shown("commit 79ace", "commit …"));
    assert!(!is_as_shown("commit 79ace", "commit … done"));
    assert!(!is_as_shown("more", "mo"));
    assert!(are_as_shown(&["a", "b", "c"], &["…", "c"]));
    assert!(are_as_shown(&["c"], &["…", "c", "…"]));
    assert!(!are_as_shown(&["a", "b"], &["…", "c"]));
    assert!(!are_as_shown(&["a", "b"], &["a"]));
}
