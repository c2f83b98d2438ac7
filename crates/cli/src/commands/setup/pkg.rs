//! `setpoint setup pkg`: the packages whose programs Setpoint calls.

use std::process::Command;

use clap::Args;
use setpoint_programs::failure::Failure;
use setpoint_programs::report::Importance;

use super::dependencies::{DEPENDENCIES, Distribution};
use crate::exit_code;
use crate::output::Output;

/// Print the command that installs the packages whose programs are called, or run it
#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// Whose packages
    #[arg(
        long,
        value_enum,
        value_name = "DISTRIBUTION",
        required_unless_present = "list"
    )]
    distro: Option<Distribution>,

    /// Become root with sudo
    #[arg(long)]
    sudo: bool,

    /// Run the command
    #[arg(long, conflicts_with = "list")]
    exec: bool,

    /// Print what is called, and for what, instead of a command
    #[arg(long)]
    list: bool,
}

pub(super) fn run(output: &Output, arguments: &Arguments) -> Result<u8, Failure> {
    let Some(distribution) = arguments.distro.filter(|_| !arguments.list) else {
        output.print(&list(arguments.distro))?;
        return Ok(exit_code::DONE);
    };
    let words = command(distribution, arguments.sudo);
    let line = words.join(" ");
    if !arguments.exec {
        output.print(&format!("{line}\n"))?;
        return Ok(exit_code::DONE);
    }
    output.say(Importance::Notice, &line);
    let (program, rest) = words.split_first().expect("it begins with a program");
    // It talks with the terminal: it may ask for a password, and shows how far it is.
    let ended = Command::new(program).args(rest).status();
    let ended = ended.map_err(|error| {
        Failure::io(format!("start `{program}`"), &error)
            .hint("`--distro` chooses the manager of packages of another distribution")
    })?;
    if ended.success() {
        return Ok(exit_code::DONE);
    }
    let failure = Failure::wrong("the packages could not be installed")
        .because(format!("`{program}` ended with {ended}"));
    let is_root = rustix::process::geteuid().is_root();
    Err(match is_root || arguments.sudo {
        true => failure,
        false => failure.hint("only root installs packages: `--sudo` becomes root"),
    })
}

fn command(distribution: Distribution, sudo: bool) -> Vec<&'static str> {
    let installs: &[&str] = match distribution {
        Distribution::Fedora => &["/usr/bin/dnf", "--assumeyes", "install"],
        Distribution::Debian => &["/usr/bin/apt", "--yes", "install"],
    };
    let mut packages: Vec<&str> = DEPENDENCIES
        .iter()
        .map(|dependency| dependency.package(distribution))
        .collect();
    packages.sort_unstable();
    packages.dedup();
    let become_root = sudo.then_some("/usr/bin/sudo");
    become_root
        .into_iter()
        .chain(installs.iter().copied())
        .chain(packages)
        .collect()
}

/// The table, as people read it.
fn list(distribution: Option<Distribution>) -> String {
    let mut text = String::new();
    for dependency in DEPENDENCIES {
        let mut packages = vec![
            dependency.package(Distribution::Debian),
            dependency.package(Distribution::Fedora),
        ];
        packages.dedup();
        let package = distribution.map_or(packages.join(" or "), |distribution| {
            dependency.package(distribution).to_owned()
        });
        let (called, for_what) = (dependency.called.join(", "), dependency.for_what);
        text.push_str(&format!("{package}\n    {called}: {for_what}\n"));
    }
    text
}
