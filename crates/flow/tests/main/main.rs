//! The evaluator, through its public face.
//!
//! Where the checklist of the dataflow specification is tested: 15 `incremental::a_diamond_…`; 16, 18, 26 `scopes`; 17
//! `scopes::a_loop_…` and `incremental::a_loop_…`; 19 `scopes::a_branch_without_…` and `incremental::a_value_that_…`; 20 to
//! 23 `failures`; 24 `incremental::several_events_…`; 25 is one of values; 27 `sharing::equal_calls_…`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod background;
mod collecting;
mod debug_output;
mod failures;
mod incremental;
mod library;
mod oracle;
mod pages;
mod program_builder;
mod random_programs;
mod scopes;
mod shapes;
mod sharing;
mod unknown_and_marked;
mod world;
