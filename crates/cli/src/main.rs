//! The `setpoint` command. Everything is in the library, so that other programs can be built from it.

fn main() -> std::process::ExitCode {
    setpoint::main(setpoint::Assembly::standard(), std::env::args_os())
}
