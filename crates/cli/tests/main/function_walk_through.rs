//! What CONTRIBUTING.md says to write for a function, and nothing else: programs, the reference and its examples follow from it.

use setpoint::Assembly;
use setpoint_value::{Module, function};

use crate::function_examples::wrong_examples;

/// The module that gets one more function; programs know it by the last part of its name.
#[rustfmt::skip]
static MODULE: Module = Module::new(
    "walk/strings",
    "Text, as somebody adds to it.",
    &[
        &REVERSED,
    ],
);

/// The letters of `text` in the opposite order.
#[function(extension, example(call = r#"strings.reversed("abc")"#, result = r#""cba""#))]
fn reversed(
    /// Any text.
    text: &str,
) -> String {
    text.chars().rev().collect()
}

/// The blocks of Rust in the section about functions.
fn blocks() -> Vec<&'static str> {
    let guide = include_str!("../../../../CONTRIBUTING.md");
    let section = guide
        .split("\n## ")
        .find(|section| section.starts_with("Add a function"));
    let section = section.expect("the guide says how to add a function");
    let blocks = section.split("```rust\n").skip(1);
    blocks.filter_map(|block| block.split("```").next()).collect()
}

#[test]
fn what_the_guide_says_to_write_is_all_that_there_is_to_write() {
    let here = include_str!("function_walk_through.rs");
    let blocks = blocks();
    assert_eq!(blocks.len(), 2, "the function, and its line in the table");
    for block in blocks {
        assert!(here.contains(block), "this file has not:\n{block}");
    }
}

#[test]
fn the_function_of_the_guide_is_offered_and_its_example_holds() {
    let assembly = Assembly::standard().with_module(&MODULE);
    assert_eq!(wrong_examples(&assembly, MODULE.functions), (1, String::new()));
}
