//! `setpoint members`: the hosts of a cluster, and how each stands.

use clap::Args;
use jiff::Timestamp;
use setpoint_agent::membership::{
    LastSeen, MemberOfCluster, all_last_seen, all_members, key_of_last_seen, key_of_member,
};
use setpoint_diagnostics::{did_you_mean, visible};
use setpoint_programs::capabilities::remove_host;
use setpoint_programs::failure::Failure;
use setpoint_programs::report::Importance;
use setpoint_world::{Operation, Store, Transaction};

use super::deploy::{clock_text, shown};
use super::removed_host::removed_host;
use crate::exit_code;
use crate::session::Session;
use crate::store_arguments::StoreArguments;

/// Show the hosts of a cluster and their deploys
///
/// For a host that runs its own program, the deploy is `own`. A host that exits disappears at once, and a host that is silent
/// disappears after about 15 seconds. For hosts that are gone, the list shows when they were last seen. `remove HOST` removes
/// everything that a host left behind: its key, its exports, its strings and its part in elections.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    store: StoreArguments,

    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,

    /// `remove HOST`; nothing to show all
    #[arg(value_name = "ACTION", num_args = 0..=2)]
    words: Vec<String>,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Result<u8, Failure> {
    let hint = "`remove HOST` removes what a host has left behind";
    let removed = removed_host(&arguments.words, "members", hint)?;
    let Some(store) = arguments.store.open(&session.output)? else {
        let failure = Failure::usage("members share a store, and none is named");
        return Err(failure.hint("name its endpoints: `--etcd-endpoints https://host:2379`"));
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::io("start", &error))?;
    let found = runtime.block_on(store.read(&[all_members(), all_last_seen()]));
    let found = found.map_err(|error| Failure::wrong("failed to read the members").because(error))?;
    let mut members: Vec<MemberOfCluster> = found.all().filter_map(MemberOfCluster::of).collect();
    if let Some(host) = removed {
        let seen = found.all().filter_map(LastSeen::of).map(|(host, _)| host);
        let known: Vec<String> = seen.collect();
        return runtime.block_on(remove(session, &*store, host, &known));
    }
    for (host, seen) in found.all().filter_map(LastSeen::of) {
        let ahead = seen.clock_is_ahead_by(Timestamp::now());
        let member = members.iter_mut().find(|member| member.host == host);
        if let (Some(ahead), Some(Ok(report))) = (ahead, member.map(|member| &mut member.report)) {
            report.line = format!("{}; {}", clock_text(ahead), report.line);
        }
    }
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
        session.output.warning("no host is there");
    }
    Ok(exit_code::DONE)
}

/// Removes what a host has left behind.
async fn remove(session: &Session, store: &dyn Store, host: &str, known: &[String]) -> Result<u8, Failure> {
    let shown = visible(host);
    let failed = |error| Failure::wrong(format!("failed to remove {shown}")).because(error);
    let Some(remains) = remove_host(store, host, &key_of_member(host))
        .await
        .map_err(failed)?
    else {
        let failure = Failure::wrong(format!("{shown} stays")).because("the host is a member now");
        return Err(
            failure.hint("end it there first; a host that was cut off counts for a quarter of a minute")
        );
    };
    let last_seen = Transaction::of([Operation::Delete(key_of_last_seen(host).into())]);
    store.transact(last_seen).await.map_err(failed)?;
    if remains.is_nothing() && !known.iter().any(|known| known == host) {
        let failure = Failure::wrong(format!("{shown} has left nothing behind"));
        return Err(match did_you_mean(host, known.iter().map(String::as_str)) {
            Some(meant) => failure.hint(meant),
            None => failure.hint("`setpoint members` shows the hosts that are gone"),
        });
    }
    let counted = |count: usize, one: &str, more: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {more}"),
    };
    let text = format!(
        "{shown} is removed: {}, {}, {}, {}",
        if remains.has_key { "its key" } else { "no key" },
        counted(remains.exported, "exported resource", "exported resources"),
        counted(remains.strings, "string", "strings"),
        counted(remains.candidacies, "candidacy", "candidacies"),
    );
    session.output.say(Importance::Notice, text);
    Ok(exit_code::DONE)
}

fn json(member: &MemberOfCluster) -> String {
    let mut object = serde_json::json!({ "host": member.host });
    match &member.report {
        Ok(report) => {
            object["program"] = report.program.as_str().into();
            object["taken"] = report.taken.into();
            object["running"] = report.running.into();
            object["own_program"] = report.has_own_program.into();
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
