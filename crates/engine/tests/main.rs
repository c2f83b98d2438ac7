//! Tests of the engine: the machine on a simulated host, and the engine with real workers.

mod machine;
