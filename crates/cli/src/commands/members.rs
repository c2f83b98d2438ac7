//! `setpoint members`: the hosts of a cluster, and how each stands.

use clap::Args;
use setpoint_agent::membership::{LastSeen, MemberOfCluster, all_last_seen, all_members};
use setpoint_programs::failure::Failure;

use super::deploy::shown;
use crate::exit_code;
use crate::session::Session;
use crate::store_arguments::StoreArguments;

/// Show the hosts of a cluster, with the deploy that each runs and how it stands
///
/// A host that ends is gone at once, and one that is silent after a quarter of a minute. Of those that are gone it is shown when they were seen last, until `setpoint
/// keys remove` takes them out.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    store: StoreArguments,

    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Result<u8, Failure> {
    let Some(store) = arguments.store.open(&session.output)? else {
        let failure = Failure::usage("members share a store, and none is named");
        return Err(failure.hint("name its endpoints: `--seeds https://host:2379`"));
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::io("start", &error))?;
    let found = runtime.block_on(store.read(&[all_members(), all_last_seen()]));
    let found = found.map_err(|error| Failure::wrong("failed to read the members").because(error))?;
    let members: Vec<MemberOfCluster> = found.all().filter_map(MemberOfCluster::of).collect();
    let is_there = |host: &str| members.iter().any(|member| member.host == host);
    let seen = found.all().filter_map(LastSeen::of);
    let gone: Vec<(String, LastSeen)> = seen.filter(|(host, _)| !is_there(host)).collect();
    let text = match arguments.json {
        true => members
            .iter()
            .map(json)
            .chain(gone.iter().map(json_of_gone))
            .collect(),
        false => shown(&members, &gone),
    };
    session.output.print(&text)?;
    if members.is_empty() && !arguments.json {
        session.output.warning("no host is there that runs deploys");
    }
    Ok(exit_code::DONE)
}

fn json(member: &MemberOfCluster) -> String {
    let mut object = serde_json::json!({ "host": member.host });
    match &member.report {
        Ok(report) => {
            object["program"] = report.program.as_str().into();
            object["taken"] = report.taken.into();
            object["running"] = report.running.into();
            object["state"] = report.state.text().into();
            object["line"] = report.line.as_str().into();
        }
        Err(why) => object["error"] = why.as_str().into(),
    }
    format!("{object}\n")
}

fn json_of_gone((host, seen): &(String, LastSeen)) -> String {
    let object = serde_json::json!({
        "host": host,
        "program": seen.program,
        "running": seen.running,
        "state": seen.state(),
        "last_seen": seen.at().to_string(),
    });
    format!("{object}\n")
}
