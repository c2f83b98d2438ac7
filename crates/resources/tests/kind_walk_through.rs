//! What CONTRIBUTING.md says to write for a kind, and nothing else: what is written there is compiled here (`hello.rs`), and stands
//! the tests of every kind.

use setpoint_engine::KindSpec;

use crate::hello;

/// The table of kinds, as somebody adds to it.
#[rustfmt::skip]
pub(crate) static KINDS: &[&KindSpec] = &[
    &hello::Hello::SPEC,
];

/// The blocks of Rust in the section about kinds.
fn blocks() -> Vec<&'static str> {
    let guide = include_str!("../../../CONTRIBUTING.md");
    let section = guide
        .split("\n## ")
        .find(|section| section.starts_with("Add a kind"));
    let section = section.expect("the guide says how to add a kind");
    let blocks = section.split("```rust\n").skip(1);
    blocks.filter_map(|block| block.split("```").next()).collect()
}

#[test]
fn what_the_guide_says_to_write_is_all_that_there_is_to_write() {
    let written = [
        include_str!("hello.rs"),
        include_str!("main.rs"),
        include_str!("kind_walk_through.rs"),
        include_str!("conforms.rs"),
    ];
    let blocks = blocks();
    assert_eq!(blocks.len(), written.len(), "the file, two lines, and an example");
    assert_eq!(written[0], blocks[0], "`hello.rs` is the file of the guide");
    for (file, block) in written.into_iter().zip(blocks) {
        assert!(file.contains(block), "nobody wrote:\n{block}");
    }
}
