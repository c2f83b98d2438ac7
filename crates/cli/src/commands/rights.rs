//! `setpoint rights`: who may do what in a cluster.

use std::collections::BTreeSet;

use clap::Args;
use setpoint_diagnostics::{did_you_mean, visible};
use setpoint_programs::failure::Failure;
use setpoint_programs::report::Importance;
use setpoint_world::{Access, EtcdStore, Rights, RightsChange, Selection, StoreError};

use crate::exit_code;
use crate::rights::{Granted, HostRights, Roles, role_in_words};
use crate::session::Session;
use crate::store_arguments::StoreArguments;

/// Show or change the etcd users and roles of a cluster
///
/// `grant HOST…` allows hosts to run deploys, and to write their own exports, strings, candidacies and reports. A host cannot
/// write the data of another host, and cannot read exports for other hosts. The etcd user of a host has the host's name, from
/// its certificate. If the user does not exist, it is created without a password. `grant --deploys USER…` allows users to
/// deploy. `revoke NAME…` removes all rights. You need an etcd user that can change rights, such as `root`. Etcd checks users
/// only after `etcdctl auth enable`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    store: StoreArguments,

    /// With `grant`: the names are users who may deploy, and not hosts
    #[arg(long, conflicts_with_all = ["decides", "strings", "exports_to_all_alone"])]
    deploys: bool,

    /// With `grant`: the hosts may decide elections. As many as one is sure of, and at least one of those that stand
    #[arg(long)]
    decides: bool,

    /// With `grant`: the hosts may set strings for all, which a host without that only reads
    #[arg(long)]
    strings: bool,

    /// With `grant`: the hosts may export to all (`*`) and not to hosts by name, for which etcd needs a range for each pair
    #[arg(long)]
    exports_to_all_alone: bool,

    /// Say what would be changed, and change nothing
    #[arg(long)]
    noop: bool,

    /// `grant NAME…` or `revoke NAME…`; nothing to show all
    #[arg(value_name = "ACTION", num_args = 0..)]
    words: Vec<String>,
}

/// What is to be done.
enum Action {
    Show,
    Grant(Granted),
    Revoke(Vec<String>),
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Result<u8, Failure> {
    let action = arguments.action()?;
    let Some(store) = arguments.store.open_etcd(&session.output)? else {
        let failure = Failure::usage("rights are given in the etcd that hosts share, and none is named");
        return Err(failure.hint("name its endpoints: `--etcd-endpoints https://host:2379`"));
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::io("start", &error))?;
    let roles = Roles::of(arguments.store.namespace());
    let rights = runtime.block_on(store.rights(roles.begin()));
    let rights = rights.map_err(|error| refused("failed to read who may do what", error))?;
    let revokes = matches!(action, Action::Revoke(_));
    let changes = match action {
        Action::Show => {
            session.output.print(&shown(&roles, &rights))?;
            return Ok(exit_code::DONE);
        }
        Action::Grant(granted) => roles.grant(&rights, &granted),
        Action::Revoke(names) => revoked(&roles, &rights, &names)?,
    };
    let tell = |change: &RightsChange| session.output.say(Importance::Notice, in_words(change));
    if arguments.noop {
        changes.iter().for_each(tell);
        session
            .output
            .say(Importance::Notice, counted(changes.len(), "would be changed"));
        return Ok(exit_code::DONE);
    }
    for change in &changes {
        runtime.block_on(apply(&store, change))?;
        tell(change);
    }
    session
        .output
        .say(Importance::Notice, counted(changes.len(), "changed"));
    if revokes && !changes.is_empty() {
        session.output.warning(
            "etcd checks rights only when a client begins to follow keys: open connections end when each member is restarted",
        );
    }
    Ok(exit_code::DONE)
}

impl Arguments {
    fn action(&self) -> Result<Action, Failure> {
        let names = |words: &[String]| -> Result<BTreeSet<String>, Failure> {
            for name in words {
                if name.is_empty() || name == "*" || name.contains(['/', ',', '\0', ' ', '\n']) {
                    let why = format!("`{}` is no name of a host or a user", visible(name));
                    return Err(Failure::usage(why));
                }
            }
            Ok(words.iter().cloned().collect())
        };
        let options = [
            ("--deploys", self.deploys),
            ("--decides", self.decides),
            ("--strings", self.strings),
            ("--exports-to-all-alone", self.exports_to_all_alone),
        ];
        let only_with_grant = || match options.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(Failure::usage(format!(
                "`{option}` means nothing without `grant`"
            ))),
            None => Ok(()),
        };
        match self.words.split_first() {
            None => {
                only_with_grant()?;
                match self.noop {
                    true => Err(Failure::usage(
                        "`--noop` means nothing where nothing is to be changed",
                    )),
                    false => Ok(Action::Show),
                }
            }
            Some((action, rest)) if action == "grant" || action == "revoke" => {
                let names = names(rest)?;
                if names.is_empty() {
                    return Err(Failure::usage(format!("`{action}` needs a name")));
                }
                if action == "revoke" {
                    only_with_grant()?;
                    return Ok(Action::Revoke(names.into_iter().collect()));
                }
                let (hosts, deployers) = match self.deploys {
                    true => (BTreeSet::new(), names),
                    false => (names, BTreeSet::new()),
                };
                Ok(Action::Grant(Granted {
                    hosts,
                    deployers,
                    exports_to_all_alone: self.exports_to_all_alone,
                    decides: self.decides,
                    sets_strings: self.strings,
                }))
            }
            Some((other, _)) => {
                let failure = Failure::usage(format!(
                    "`{}` is nothing that can be done with rights",
                    visible(other)
                ));
                Err(match did_you_mean(other, ["grant", "revoke"]) {
                    Some(meant) => failure.hint(meant),
                    None => failure.hint("`grant NAME…` gives rights, `revoke NAME…` takes them away"),
                })
            }
        }
    }
}

fn revoked(roles: &Roles, rights: &Rights, names: &[String]) -> Result<Vec<RightsChange>, Failure> {
    let mut changes: Vec<RightsChange> = Vec::new();
    for name in names {
        let of_name = roles.revoke(rights, name);
        if of_name.is_empty() {
            let failure = Failure::wrong(format!(
                "{} has no rights that could be taken away",
                visible(name)
            ));
            let (hosts, deployers) = (roles.hosts(rights), roles.deployers(rights));
            let all = hosts.keys().map(String::as_str).chain(deployers);
            return Err(match did_you_mean(name, all) {
                Some(meant) => failure.hint(meant),
                None => failure.hint("`setpoint rights` shows who has any"),
            });
        }
        changes.extend(of_name);
    }
    // A role that goes needs no changes before.
    let gone: BTreeSet<String> = changes
        .iter()
        .filter_map(|change| match change {
            RightsChange::RemoveRole(role) => Some(role.clone()),
            _ => None,
        })
        .collect();
    changes.retain(|change| !matches!(change, RightsChange::Forbid(role, _) if gone.contains(role)));
    Ok(changes)
}

async fn apply(store: &EtcdStore, change: &RightsChange) -> Result<(), Failure> {
    let done = store.change_rights(change).await;
    done.map_err(|error| refused(&format!("failed to do this: {}", in_words(change)), error))
}

fn refused(what: &str, error: StoreError) -> Failure {
    let failure = Failure::wrong(what);
    match &error {
        StoreError::Denied { .. } => failure.because(error).hint(
            "rights are given by etcd's user `root`: `--etcd-user root`, or a certificate with that name",
        ),
        _ => failure.because(error),
    }
}

fn counted(count: usize, what: &str) -> String {
    match count {
        0 => "all rights are as they shall be".to_owned(),
        1 => format!("1 right {what}"),
        _ => format!("{count} rights {what}"),
    }
}

fn shown(roles: &Roles, rights: &Rights) -> String {
    let hosts = roles.hosts(rights);
    let mut text = String::new();
    let width = hosts.keys().map(|host| visible(host).chars().count());
    let width = width.max().unwrap_or(0).max("HOST".len());
    if !hosts.is_empty() {
        text += &format!("{:width$}  EXPORTS TO   DECIDES  STRINGS FOR ALL\n", "HOST");
    }
    for (host, may) in &hosts {
        text += &format!("{:width$}  {}\n", visible(host), row(*may));
    }
    for user in roles.deployers(rights) {
        text += &format!("{} may deploy\n", visible(user));
    }
    if text.is_empty() {
        text += "nobody was given any rights\n";
    }
    text
}

fn row(may: HostRights) -> String {
    let exports = match may.exports_to_all_alone {
        true => "all alone",
        false => "any host",
    };
    let decides = if may.decides { "yes" } else { "no" };
    let strings = if may.sets_strings { "sets" } else { "reads" };
    let what = format!("{exports:11}  {decides:7}  {strings}");
    match may.is_complete {
        true => what,
        false => format!("{what}  (not all that belongs to it; `setpoint rights grant` mends that)"),
    }
}

/// What is changed, in a sentence.
fn in_words(change: &RightsChange) -> String {
    let whom = |role: &str| visible(&role_in_words(role)).to_string();
    let keys = |selection: &Selection| match selection {
        Selection::Key(key) => visible(key.as_str()).to_string(),
        Selection::Prefix(prefix) => format!("all below {}", visible(prefix)),
    };
    match change {
        RightsChange::AddRole(role) => format!("a role for {}", whom(role)),
        RightsChange::Allow(role, selection, Access::Read) => {
            format!("{} may read {}", whom(role), keys(selection))
        }
        RightsChange::Allow(role, selection, Access::ReadWrite) => {
            format!("{} may read and write {}", whom(role), keys(selection))
        }
        RightsChange::Forbid(role, selection) => {
            format!("{} may not use {}", whom(role), keys(selection))
        }
        RightsChange::RemoveRole(role) => format!("no role for {} any more", whom(role)),
        RightsChange::AddUser(user) => format!("{} is a user of etcd, without a password", visible(user)),
        RightsChange::GiveRole(user, role) => {
            format!("{} has the rights of {}", visible(user), whom(role))
        }
        RightsChange::TakeRole(user, role) => {
            format!("{} has the rights of {} no more", visible(user), whom(role))
        }
    }
}
