//! What the `setpoint` program is when it is started as a launcher, and nothing else: for the tests of libraries, which have
//! no `setpoint` program at hand.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    setpoint_host::processes::Launcher::main(std::env::args_os()).unwrap_or(std::process::ExitCode::FAILURE)
}
