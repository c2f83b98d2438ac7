//! The modules of a crate form no cycle, so each can be read and understood after the modules that it imports.
//!
//! The test takes the top-level modules of each crate. A module imports another if one of its files names it after `crate::`, directly
//! or by a name that `lib.rs` exports from it. The failure lists the imports behind each cycle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use setpoint_testing::repository;

use crate::{crates, fail_if_any, files, tokens};

/// Largest cycle that is allowed, in modules.
const LARGEST: usize = 2;

/// The imports between the modules of a crate, each with the files that need it.
type Imports = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

#[test]
fn modules_of_a_crate_form_no_cycle() {
    let mut found = Vec::new();
    for name in crates() {
        let imports = imports(&name);
        let large = cycles(&imports).into_iter().filter(|cycle| cycle.len() > LARGEST);
        found.extend(large.map(|cycle| describe(&name, &cycle, &imports)));
    }
    fail_if_any(&found);
}

fn describe(name: &str, cycle: &BTreeSet<String>, imports: &Imports) -> String {
    let mut text = format!("{name}: a cycle of {} modules\n", cycle.len());
    for from in cycle {
        let inside = imports[from].iter().filter(|(to, _)| cycle.contains(*to));
        for (to, files) in inside {
            let files: Vec<&str> = files.iter().map(String::as_str).collect();
            text.push_str(&format!("  {from} -> {to}: {}\n", files.join(", ")));
        }
    }
    text
}

fn imports(name: &str) -> Imports {
    let source = format!("crates/{name}/src");
    let root = repository().join(&source);
    let modules: BTreeSet<String> = std::fs::read_dir(&root)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| module(Path::new(&entry.file_name())))
        .filter(|module| !matches!(&**module, "lib" | "main" | "bin"))
        .collect();
    let exported = exported(&root.join("lib.rs"), &modules);
    let mut imports: Imports = modules
        .iter()
        .map(|module| (module.clone(), BTreeMap::new()))
        .collect();
    for file in files(&source, "rs") {
        let Ok(inside) = file.strip_prefix(&source) else {
            continue;
        };
        let from = module(inside);
        let is_test = inside
            .components()
            .any(|part| module(Path::new(&part)) == "tests");
        let Some(targets) = imports.get_mut(&from).filter(|_| !is_test) else {
            continue;
        };
        for named in named_of_crate(tokens(&repository().join(&file))) {
            let to = if modules.contains(&named) {
                Some(&named)
            } else {
                exported.get(&named)
            };
            if let Some(to) = to.filter(|to| **to != from) {
                let needed_by = targets.entry(to.clone()).or_default();
                needed_by.insert(inside.display().to_string());
            }
        }
    }
    imports
}

/// The top-level module of a file below `src`.
fn module(inside: &Path) -> String {
    let first = inside
        .components()
        .next()
        .map(|part| part.as_os_str().to_string_lossy());
    first.map_or_else(String::new, |name| name.trim_end_matches(".rs").to_owned())
}

/// The names that `lib.rs` exports, each with its module.
fn exported(library: &Path, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut exported = BTreeMap::new();
    if !library.exists() {
        return exported;
    }
    let trees: Vec<TokenTree> = tokens(library).into_iter().collect();
    let statements = trees.split(|tree| matches!(tree, TokenTree::Punct(sign) if sign.as_char() == ';'));
    for statement in statements {
        let used = statement.iter().position(|tree| is_word(tree, "use"));
        let Some(TokenTree::Ident(first)) = used.and_then(|at| statement.get(at + 1)) else {
            continue;
        };
        let from = first.to_string();
        if modules.contains(&from) {
            let mut names = BTreeSet::new();
            words(statement.iter().cloned(), &mut names);
            exported.extend(names.into_iter().map(|name| (name, from.clone())));
        }
    }
    exported
}

fn words(trees: impl IntoIterator<Item = TokenTree>, names: &mut BTreeSet<String>) {
    for tree in trees {
        match tree {
            TokenTree::Ident(name) => drop(names.insert(name.to_string())),
            TokenTree::Group(group) => words(group.stream(), names),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// The names that follow `crate::`, directly or in braces, outside test modules.
fn named_of_crate(stream: TokenStream) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let mut is_for_tests = false;
    for (at, tree) in trees.iter().enumerate() {
        if let TokenTree::Group(group) = tree {
            if group.delimiter() == Delimiter::Bracket && group.stream().to_string() == "cfg (test)" {
                is_for_tests = true;
            } else if group.delimiter() == Delimiter::Brace && is_for_tests {
                is_for_tests = false;
            } else {
                names.extend(named_of_crate(group.stream()));
            }
        } else if is_word(tree, "crate") && trees.get(at + 1).is_some_and(|next| is_sign(next, ':')) {
            match trees.get(at + 3) {
                Some(TokenTree::Ident(name)) => drop(names.insert(name.to_string())),
                Some(TokenTree::Group(group)) => names.extend(first_of_each(group.stream())),
                _ => {}
            }
        }
    }
    names
}

/// The first name of each part of a list in braces.
fn first_of_each(list: TokenStream) -> BTreeSet<String> {
    let trees: Vec<TokenTree> = list.into_iter().collect();
    let parts = trees.split(|tree| is_sign(tree, ','));
    let first = parts.filter_map(|part| part.first());
    first.map(ToString::to_string).collect()
}

fn is_word(tree: &TokenTree, word: &str) -> bool {
    matches!(tree, TokenTree::Ident(name) if name == word)
}

fn is_sign(tree: &TokenTree, sign: char) -> bool {
    matches!(tree, TokenTree::Punct(found) if found.as_char() == sign)
}

/// The sets of modules that import each other, directly or through others.
fn cycles(imports: &Imports) -> BTreeSet<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> = imports
        .keys()
        .map(|from| (from, reached(from, imports)))
        .collect();
    let cycle = |from: &String| {
        let back = reached[from].iter().filter(|to| reached[**to].contains(from));
        back.map(|to| (*to).clone()).collect::<BTreeSet<String>>()
    };
    imports
        .keys()
        .map(cycle)
        .filter(|cycle| cycle.len() > 1)
        .collect()
}

fn reached<'a>(from: &String, imports: &'a Imports) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![from];
    while let Some(next) = waiting.pop() {
        let targets = imports.get(next).into_iter().flat_map(BTreeMap::keys);
        for to in targets {
            if reached.insert(to) {
                waiting.push(to);
            }
        }
    }
    reached
}
