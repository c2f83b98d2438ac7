//! The machine, stepped by hand on a simulated clock.

mod convergence;
mod cost;
mod exchange;
mod failures;
mod order;
mod refresh;
mod simulation;
mod status;
mod stopping;
mod swaps;
mod timing;
