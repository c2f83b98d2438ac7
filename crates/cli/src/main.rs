//! Setpoint.
fn main() {}
