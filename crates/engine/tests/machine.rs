//! The machine, stepped by hand on a simulated clock.

mod convergence;
mod exchange;
mod failures;
mod order;
mod random;
mod refresh;
mod simulation;
mod status;
mod stopping;
mod swaps;
mod timing;
