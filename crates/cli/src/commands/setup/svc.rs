//! `setpoint setup svc`: the unit that keeps this machine, written for it, enabled and started.

use clap::Args;
use setpoint_programs::environment;
use setpoint_programs::failure::Failure;

use super::given_store::GivenStore;
use super::unit::{Actions, Binary, Unit};
use super::unit_words::{argument, program};
use crate::exit_code;
use crate::output::Output;

/// The unit as it is shipped; only the command lines are others.
const SHIPPED: &str = include_str!("../../../../../packaging/setpoint.service");

/// Write the unit that keeps this machine, enable it, start it
///
/// The service runs what is deployed to the hosts of the cluster whose store the options name, or with --program that program. What it shall be given
/// beside goes into the variable OPTS: `systemctl edit setpoint`, with `[Service]` and `Environment="OPTS=--sema 4"`.
#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    binary: Binary,

    /// What is kept: a program or a model as `setpoint run` takes it; its path has to be absolute [default: empty, what is deployed]
    #[arg(
        long,
        value_name = "INPUT",
        default_value = "empty",
        hide_default_value = true
    )]
    program: String,

    #[command(flatten)]
    store: GivenStore,

    #[command(flatten)]
    actions: Actions,
}

pub(super) fn run(output: &Output, arguments: &Arguments) -> Result<u8, Failure> {
    let binary = arguments.binary.path()?;
    let input = arguments.program.as_str();
    if input != "empty" && !input.starts_with('/') {
        let failure = Failure::usage(format!("the path of the program is not absolute: `{input}`"));
        return Err(failure.hint("the service is started in `/`"));
    }
    let mut words = arguments.store.words.clone();
    let starts_only = arguments.actions.is_any() && !arguments.actions.is_about_text();
    if starts_only && (input != "empty" || !words.is_empty()) {
        let failure = Failure::usage("what the service is given stands in its unit, which is not written");
        return Err(failure.hint("`--install` writes it"));
    }
    let names_seeds = words.iter().any(|word| word.starts_with("--etcd-endpoints="));
    match environment::variable("ETCD_ENDPOINTS").filter(|_| !names_seeds) {
        Some(seeds) => words.insert(0, format!("--etcd-endpoints={seeds}")),
        None if !names_seeds && input == "empty" && arguments.actions.is_about_text() => output.warning(
            "neither a store nor a program is named, so the service will have nothing to do: `--etcd-endpoints` or `--program`",
        ),
        None => {}
    }
    check(&arguments.store, output)?;
    let run: Vec<String> = words.iter().map(|word| argument(word)).collect();
    let start = [
        &[program(binary), "run".to_owned()],
        run.as_slice(),
        &[argument(input), "$OPTS".to_owned()],
    ];
    let unit = Unit::of(
        "setpoint",
        "setpoint setup svc",
        SHIPPED,
        &[
            ("ExecStart", start.concat().join(" ")),
            ("ExecReload", format!("{} reload", program(binary))),
        ],
    );
    unit.bring_about(&arguments.actions, &arguments.binary, output)?;
    Ok(exit_code::DONE)
}

/// Refuses options that contradict each other, which the service would end with. What is only not there yet is said.
fn check(given: &GivenStore, output: &Output) -> Result<(), Failure> {
    match given.store.open(output) {
        Ok(_) => {}
        Err(failure) if failure.is_usage() => return Err(failure),
        Err(failure) => output.warning(format!("the service will not start as it is now: {failure}")),
    }
    let variables = ["CACERT", "CERT", "KEY", "USER", "PASSWORD"].map(|name| format!("ETCDCTL_{name}"));
    for name in variables {
        if std::env::var_os(&name).is_some_and(|value| !value.is_empty()) {
            output.warning(format!(
                "the service does not get the variable {name} of this environment; there is an option for it, `--help`"
            ));
        }
    }
    Ok(())
}
