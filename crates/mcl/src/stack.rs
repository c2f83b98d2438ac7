//! Room on the stack for what recurses over a program.
//!
//! How deep a text is nested is bounded, and every walk over it fits the smallest stack of a thread. What follows from many
//! definitions (functions that call functions, classes in classes, types in types) can be deeper; it asks for room on the way down and
//! goes on in a new piece of memory where the stack ends.

/// What may be used from one question for room to the next: a walk over the deepest text, or over the deepest type.
const RED_ZONE: usize = 1 << 20;

/// What a compilation begins with, so that hardly any has to ask for more.
const BEGINNING: usize = 4 << 20;

/// The size of a new piece. Only what is touched of it is taken from the machine.
const PIECE: usize = 16 << 20;

/// Runs all that recurses deeply.
pub(crate) fn with_stack<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(BEGINNING, PIECE, work)
}

/// Runs a step of a recursion whose depth the text does not bound.
pub(crate) fn with_room<T>(step: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(RED_ZONE, PIECE, step)
}
