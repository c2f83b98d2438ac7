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
    #[cfg(test)]
    let _level = depth::Level::new();
    stacker::maybe_grow(RED_ZONE, PIECE, step)
}

/// How deep the steps nest, for tests: where an order keeps chains flat, nothing else would show that it is there.
#[cfg(test)]
pub(crate) mod depth {
    use std::cell::Cell;

    thread_local! {
        static NOW: Cell<usize> = const { Cell::new(0) };
        static DEEPEST: Cell<usize> = const { Cell::new(0) };
    }

    /// A step that is under way.
    pub(super) struct Level;

    impl Level {
        pub(super) fn new() -> Level {
            NOW.set(NOW.get() + 1);
            DEEPEST.set(DEEPEST.get().max(NOW.get()));
            Level
        }
    }

    impl Drop for Level {
        fn drop(&mut self) {
            NOW.set(NOW.get() - 1);
        }
    }

    /// How many steps were under way at once, at most, while this thread did the work.
    pub(crate) fn nested_steps(work: impl FnOnce()) -> usize {
        DEEPEST.set(0);
        work();
        DEEPEST.get()
    }
}
