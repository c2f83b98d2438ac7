//! Who may do what in a cluster, as roles of etcd.
//!
//! ```text
//! setpoint:host:NAME   what is a host's own: its exports, strings, candidacy, key and report; and what is exported to it
//! setpoint:member      what all hosts read: deploys, strings, results of elections, public keys, what is exported to all
//! setpoint:decides     to decide elections
//! setpoint:strings     to set strings for all
//! setpoint:deploys     to publish deploys
//! ```
//!
//! Roles begin with the namespace, so that clusters that share an etcd have their own. A user of etcd is a host, by its name, or somebody who deploys. As an export
//! lies below whom it is for, a host needs a range for each host that it exports to: of those there are as many as pairs of hosts, or none where it
//! may export to all alone. A host that may export to others may export to itself, too, which tells the two apart.

use std::collections::{BTreeMap, BTreeSet};

use setpoint_agent::deploys::{ANSWERS, CLEARED, CLEARING, DEPLOYS, FILES, PROPOSALS, STORAGE};
use setpoint_agent::membership::{LAST_SEEN, MEMBERS, key_of_last_seen};
use setpoint_programs::capabilities::world::elections::{CANDIDATES, DECIDERS, SCHEDULER, SCHEDULES};
use setpoint_programs::capabilities::world::exports::{EVERYONE, EXPORTED, EXPORTING};
use setpoint_programs::capabilities::world::keys::below;
use setpoint_programs::capabilities::world::strings::{HOST_STRINGS, STRINGS};
use setpoint_programs::capabilities::{KEYS, key_of};
use setpoint_world::{Access, Grants, Key, Rights, RightsChange, Selection};

/// What is to be allowed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Granted {
    /// To these hosts: what is their own.
    pub(crate) hosts: BTreeSet<String>,
    /// Whether they may export to all alone, and not to hosts by name.
    pub(crate) exports_to_all_alone: bool,
    /// Whether they may decide elections.
    pub(crate) decides: bool,
    /// Whether they may set strings for all.
    pub(crate) sets_strings: bool,
    /// These users may deploy.
    pub(crate) deployers: BTreeSet<String>,
}

/// What a host may do, beside what each may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HostRights {
    pub(crate) exports_to_all_alone: bool,
    pub(crate) decides: bool,
    pub(crate) sets_strings: bool,
    /// Whether it is all there that belongs to that.
    pub(crate) is_complete: bool,
}

/// The roles of one cluster.
pub(crate) struct Roles {
    begin: String,
}

impl Roles {
    /// Those of the cluster whose keys begin so.
    pub(crate) fn of(namespace: &str) -> Roles {
        Roles {
            begin: format!("{}:", namespace.trim_start_matches('/')),
        }
    }

    /// What the names of all of them begin with.
    pub(crate) fn begin(&self) -> &str {
        &self.begin
    }

    fn named(&self, name: &str) -> String {
        format!("{}{name}", self.begin)
    }

    fn host(&self, host: &str) -> String {
        self.named(&format!("host:{host}"))
    }

    /// The hosts that have rights, with theirs.
    pub(crate) fn hosts(&self, rights: &Rights) -> BTreeMap<String, HostRights> {
        let names = self.known_hosts(rights);
        let all = names.iter().map(|host| {
            let own = rights.roles.get(&self.host(host));
            let has = |role: &str| {
                let roles = rights.users.get(host);
                roles.is_some_and(|roles| roles.contains(&self.named(role)))
            };
            let exports_to_all_alone = self.exports_to_all_alone(rights, host);
            let wanted = own_grants(host, &names, exports_to_all_alone);
            let may = HostRights {
                exports_to_all_alone,
                decides: has("decides"),
                sets_strings: has("strings"),
                is_complete: own == Some(&wanted)
                    && has("member")
                    && has(&format!("host:{host}"))
                    && rights.roles.get(&self.named("member")) == Some(&of_members()),
            };
            (host.clone(), may)
        });
        all.collect()
    }

    /// Who may deploy.
    pub(crate) fn deployers<'a>(&self, rights: &'a Rights) -> Vec<&'a str> {
        let role = self.named("deploys");
        let users = rights.users.iter().filter(|(_, roles)| roles.contains(&role));
        users.map(|(user, _)| user.as_str()).collect()
    }

    /// The steps until this is allowed, too: what allows before what forbids.
    pub(crate) fn grant(&self, rights: &Rights, granted: &Granted) -> Vec<RightsChange> {
        let known = self.known_hosts(rights);
        let all: BTreeSet<String> = known.union(&granted.hosts).cloned().collect();
        let mut steps = Steps::towards(rights);
        if !granted.hosts.is_empty() || !granted.deployers.is_empty() {
            steps.role(self.named("member"), of_members());
        }
        if granted.decides {
            steps.role(self.named("decides"), of_deciders());
        }
        if granted.sets_strings {
            steps.role(self.named("strings"), all_of([format!("{STRINGS}/")]));
        }
        if !granted.deployers.is_empty() {
            steps.role(self.named("deploys"), of_deployers());
        }
        for host in &all {
            let exports_to_all_alone = match granted.hosts.contains(host) {
                true => granted.exports_to_all_alone,
                false => self.exports_to_all_alone(rights, host),
            };
            steps.role(self.host(host), own_grants(host, &all, exports_to_all_alone));
        }
        for host in &granted.hosts {
            steps.user(host, self.named("member"));
            steps.user(host, self.host(host));
            if granted.decides {
                steps.user(host, self.named("decides"));
            }
            if granted.sets_strings {
                steps.user(host, self.named("strings"));
            }
        }
        for user in &granted.deployers {
            steps.user(user, self.named("member"));
            steps.user(user, self.named("deploys"));
        }
        steps.done()
    }

    /// The steps until a host or a user may do nothing any more; none for one that has no rights.
    pub(crate) fn revoke(&self, rights: &Rights, name: &str) -> Vec<RightsChange> {
        let mut steps = Vec::new();
        let own = self.host(name);
        if rights.roles.contains_key(&own) {
            steps.push(RightsChange::RemoveRole(own.clone()));
        }
        for role in rights.users.get(name).into_iter().flatten() {
            if *role != own {
                steps.push(RightsChange::TakeRole(name.to_owned(), role.clone()));
            }
        }
        // Nobody needs to export to a host that is not there.
        for (role, grants) in &rights.roles {
            let to_it = below(EXPORTED, &[name]);
            let surplus = grants.keys().filter(|selection| match selection {
                Selection::Prefix(prefix) => *role != own && prefix.starts_with(&to_it),
                Selection::Key(_) => false,
            });
            steps.extend(surplus.map(|selection| RightsChange::Forbid(role.clone(), selection.clone())));
        }
        steps
    }

    fn known_hosts(&self, rights: &Rights) -> BTreeSet<String> {
        let begin = self.host("");
        let hosts = rights.roles.keys().filter_map(|role| role.strip_prefix(&begin));
        hosts.map(str::to_owned).collect()
    }

    fn exports_to_all_alone(&self, rights: &Rights, host: &str) -> bool {
        let own = rights.roles.get(&self.host(host));
        !own.is_some_and(|own| own.contains_key(&Selection::prefix(below(EXPORTED, &[host, host]))))
    }
}

/// Steps from the rights that there are.
struct Steps<'a> {
    from: &'a Rights,
    allowing: Vec<RightsChange>,
    forbidding: Vec<RightsChange>,
    new_users: BTreeSet<String>,
}

impl Steps<'_> {
    fn towards(from: &Rights) -> Steps<'_> {
        Steps {
            from,
            allowing: Vec::new(),
            forbidding: Vec::new(),
            new_users: BTreeSet::new(),
        }
    }

    fn role(&mut self, role: String, wanted: Grants) {
        let nothing = Grants::new();
        let is = self.from.roles.get(&role);
        if is.is_none() {
            self.allowing.push(RightsChange::AddRole(role.clone()));
        }
        let is = is.unwrap_or(&nothing);
        for (selection, access) in &wanted {
            if is.get(selection) != Some(access) {
                let allow = RightsChange::Allow(role.clone(), selection.clone(), *access);
                self.allowing.push(allow);
            }
        }
        for selection in is.keys().filter(|selection| !wanted.contains_key(selection)) {
            self.forbidding
                .push(RightsChange::Forbid(role.clone(), selection.clone()));
        }
    }

    fn user(&mut self, user: &str, role: String) {
        let is = self.from.users.get(user);
        if is.is_none() && self.new_users.insert(user.to_owned()) {
            self.allowing.push(RightsChange::AddUser(user.to_owned()));
        }
        if !is.is_some_and(|roles| roles.contains(&role)) {
            self.allowing.push(RightsChange::GiveRole(user.to_owned(), role));
        }
    }

    fn done(mut self) -> Vec<RightsChange> {
        self.allowing.append(&mut self.forbidding);
        self.allowing
    }
}

/// What all hosts read.
fn of_members() -> Grants {
    let read = [
        DEPLOYS.to_owned(),
        PROPOSALS.to_owned(),
        FILES.to_owned(),
        STORAGE.to_owned(),
        format!("{STRINGS}/"),
        format!("{HOST_STRINGS}/"),
        format!("{KEYS}/"),
        format!("{SCHEDULER}/"),
        below(EXPORTED, &[EVERYONE]),
    ];
    read.map(|prefix| (Selection::prefix(prefix), Access::Read))
        .into()
}

fn of_deciders() -> Grants {
    all_of([format!("{DECIDERS}/"), format!("{SCHEDULES}/")])
}

fn of_deployers() -> Grants {
    let mut grants = all_of([DEPLOYS, PROPOSALS, FILES, STORAGE].map(str::to_owned));
    let keys = [CLEARING, CLEARED].map(|key| Selection::from(Key::new(key).expect("it is not empty")));
    grants.extend(keys.map(|key| (key, Access::ReadWrite)));
    for prefix in [MEMBERS, LAST_SEEN, ANSWERS] {
        grants.insert(Selection::prefix(prefix), Access::Read);
    }
    grants
}

/// What is a host's own, and what is exported to it.
fn own_grants(host: &str, all: &BTreeSet<String>, exports_to_all_alone: bool) -> Grants {
    let mut grants = all_of([
        below(EXPORTED, &[EVERYONE, host]),
        below(EXPORTING, &[host]),
        below(HOST_STRINGS, &[host]),
        below(CANDIDATES, &[host]),
        format!("{ANSWERS}{host}/"),
    ]);
    let report = Key::new(format!("{MEMBERS}{host}")).expect("it is not empty");
    grants.insert(report.into(), Access::ReadWrite);
    for key in [key_of(host), key_of_last_seen(host)] {
        grants.insert(key.into(), Access::ReadWrite);
    }
    grants.insert(Selection::prefix(below(EXPORTED, &[host])), Access::Read);
    if !exports_to_all_alone {
        let to = all.iter().map(|to| below(EXPORTED, &[to, host]));
        grants.extend(to.map(|prefix| (Selection::prefix(prefix), Access::ReadWrite)));
    }
    grants
}

fn all_of(prefixes: impl IntoIterator<Item = String>) -> Grants {
    let prefixes = prefixes.into_iter().map(Selection::prefix);
    prefixes.map(|prefix| (prefix, Access::ReadWrite)).collect()
}

/// The host whose own role this is, in the words of an administrator; otherwise what the role is for.
pub(crate) fn role_in_words(role: &str) -> String {
    match role.split_once(':') {
        Some((_, "member")) => "all hosts".to_owned(),
        Some((_, "decides")) => "who decides elections".to_owned(),
        Some((_, "strings")) => "who sets strings for all".to_owned(),
        Some((_, "deploys")) => "who deploys".to_owned(),
        Some((_, own)) => own.strip_prefix("host:").unwrap_or(own).to_owned(),
        None => role.to_owned(),
    }
}
