//! The machine, stepped by hand on a simulated clock.

mod convergence;
mod cost;
mod exchange;
mod exports;
mod failures;
mod groups;
mod order;
mod programs;
mod refresh;
mod reversals;
mod simulation;
mod status;
mod stopping;
mod swaps;
mod timing;
