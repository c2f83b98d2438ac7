//! Makes the table of the pages of `docs/errors`, so that a page is one file and no line anywhere.
#![allow(
    clippy::disallowed_methods,
    reason = "a build script reads files and its environment"
)]

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let directory = Path::new(&manifest).join("../../docs/errors");
    println_directive(&format!("rerun-if-changed={}", directory.display()));
    let mut pages: Vec<PathBuf> = match std::fs::read_dir(&directory) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(_) => Vec::new(),
    };
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    let mut table = String::from(
        "/// Code and text of every page, sorted by code.\npub static PAGES: &[(&str, &str)] = &[\n",
    );
    for page in pages {
        let Some(code) = page.file_stem().and_then(|stem| stem.to_str()) else {
            continue;
        };
        let Ok(path) = page.canonicalize() else { continue };
        println_directive(&format!("rerun-if-changed={}", path.display()));
        let _ = writeln!(
            table,
            "    ({code:?}, include_str!({:?})),",
            path.display().to_string()
        );
    }
    table.push_str("];\n");
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    std::fs::write(Path::new(&out).join("pages.rs"), table).expect("the output directory can be written");
}

#[allow(clippy::print_stdout, reason = "this is how a build script talks to cargo")]
fn println_directive(directive: &str) {
    println!("cargo:{directive}");
}
