//! `setpoint keys`: the public keys of the hosts of a cluster, to which secrets are encrypted.

use clap::Args;
use setpoint_agent::membership::{key_of_last_seen, key_of_member};
use setpoint_diagnostics::{did_you_mean, visible};
use setpoint_programs::capabilities::{KEYS, host_of_key, key_of};
use setpoint_programs::failure::Failure;
use setpoint_programs::report::Importance;
use setpoint_world::{Operation, Outcome, Selection, State, Transaction};

use super::removed_host::removed_host;
use crate::exit_code;
use crate::session::Session;
use crate::store_arguments::StoreArguments;

/// Show the public keys that secrets are encrypted to
///
/// At its first start with `--etcd-endpoints`, each host creates a key pair. It keeps the private key in `keys/host.age` in its state
/// directory, and publishes the public key. `remove HOST` removes the key of a host that is gone for good. Hosts that share
/// secrets then encrypt them again for the remaining hosts. `setpoint members` also forgets when it last saw that host.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    store: StoreArguments,

    /// `remove HOST`; nothing to show all
    #[arg(value_name = "ACTION", num_args = 0..=2)]
    words: Vec<String>,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Result<u8, Failure> {
    let hint = "`remove HOST` takes away the key of a host";
    let removed = removed_host(&arguments.words, "keys", hint)?;
    let Some(store) = arguments.store.open(&session.output)? else {
        let failure = Failure::usage("keys are in the store that hosts share, and none is named");
        return Err(failure.hint("name its endpoints: `--etcd-endpoints https://host:2379`"));
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::io("start", &error))?;
    let all = Selection::prefix(format!("{KEYS}/"));
    let found = runtime.block_on(store.read(&[all]));
    let found = found.map_err(|error| Failure::wrong("failed to read the keys").because(error))?;
    let hosts: Vec<(String, String)> = found
        .all()
        .filter_map(|entry| Some((host_of_key(&entry.key)?, entry.text().unwrap_or("?").to_owned())))
        .collect();
    let Some(host) = removed else {
        let width = hosts.iter().map(|(host, _)| host.len()).max().unwrap_or(0);
        let line = |(host, key): &(String, String)| format!("{:width$}  {}\n", visible(host), visible(key));
        session
            .output
            .print(&hosts.iter().map(line).collect::<String>())?;
        return Ok(exit_code::DONE);
    };
    let member = Selection::from(key_of_member(host));
    let there = runtime.block_on(store.read(&[member]));
    let there = there.map_err(|error| Failure::wrong("failed to read the members").because(error))?;
    if there.all().next().is_some() {
        let failure = Failure::wrong(format!("the key of {} stays", visible(host)));
        let failure = failure.because("the host is a member now, and would get no secrets any more");
        return Err(
            failure.hint("end it there first; a host that was cut off counts for a quarter of a minute")
        );
    }
    let own = [key_of(host), key_of_last_seen(host)].map(|key| Operation::Delete(key.into()));
    let remove = Transaction::of(own).when(key_of(host), State::Present);
    let done = runtime.block_on(store.transact(remove));
    let done =
        done.map_err(|error| Failure::wrong(format!("failed to remove the key of {host}")).because(error))?;
    match done {
        Outcome::Done(_) => {
            let text = format!("the key of {} is removed", visible(host));
            session.output.say(Importance::Notice, text);
            Ok(exit_code::DONE)
        }
        Outcome::Refused(_) => {
            let failure = Failure::wrong(format!("there is no key of {}", visible(host)));
            let hosts = hosts.iter().map(|(host, _)| host.as_str());
            Err(match did_you_mean(host, hosts) {
                Some(meant) => failure.hint(meant),
                None => failure.hint("`setpoint keys` shows those that there are"),
            })
        }
    }
}
