//! The table of kinds.

mod exec;
mod exit;
mod file;
mod noop;
mod panic;
mod print;
mod test;
mod timer;
mod value;

use setpoint_engine::KindSpec;

/// Every kind, in the order of the reference documentation.
pub static KINDS: &[&KindSpec] = &[
    &file::File::SPEC,
    &exec::Exec::SPEC,
    &print::Print::SPEC,
    &noop::Noop::SPEC,
    &timer::Timer::SPEC,
    &value::ValueResource::SPEC,
    &test::Test::SPEC,
    &exit::Exit::SPEC,
    &panic::Panic::SPEC,
];
