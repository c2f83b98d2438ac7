//! The `schedule` kind: whether this host stands for something that only some hosts do.

use std::time::Duration;

use setpoint_engine::{
    Apply, Claim, DriftValue, Failure, Handle, IfSet, Resource, Stake, Watch, async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};

use crate::SharedElections;
use crate::elections::{Candidacy, Strategy};
use crate::sorts::ELECTION;

/// Has this host stand for something that only some hosts do; `world.schedule` tells which of those that stand are chosen.
///
/// A host stands from when its `schedule` was applied, so after whatever comes before it. It goes on to stand when the resource leaves the program, until
/// `withdraw`.
///
/// ```mcl
/// import "world"
///
/// schedule "backup" {
///     max => 1,
/// }
///
/// $chosen = world.schedule("backup")
///
/// if $hostname in $chosen {
///     file "/etc/cron.d/backup" {
///         state => "exists",
///         content => "0 3 * * * root /usr/local/bin/backup\n",
///     }
/// }
/// ```
///
/// ```mcl
/// schedule "backup" {
///     withdraw => true,
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "schedule")]
pub(crate) struct Schedule {
    /// What it stands for. Unset: the resource's name.
    namespace: String,
    /// How hosts are chosen: with `rr`, which is the default, who was chosen stays, and who comes is put at the end; with `alpha` the first by name are.
    strategy: Option<IfSet<Strategy>>,
    /// How many hosts are chosen; 1 if it is unset or less.
    max: Option<i64>,
    /// Whether it goes on to stand when it is away.
    persist: bool,
    /// How many seconds after it has gone it still counts; 10 if it is less than 1. Unset: none, where it is certain that it has gone.
    ttl: Option<i64>,
    /// Whether it stands no more.
    withdraw: bool,
    #[name]
    name: String,
}

/// What holds for a `ttl` that is no time.
const TTL: Duration = Duration::from_secs(10);

#[async_trait]
impl Resource for Schedule {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        let namespace = self.namespace();
        if namespace.is_empty() || namespace.contains('/') {
            let message = format!("`{namespace}` must not be empty or contain a slash");
            invalid.push(Invalid::parameter("namespace", message));
        }
        if self.persist && self.ttl.is_some_and(|ttl| ttl > 0) {
            let message = "`ttl` cannot be combined with `persist`: a persistent candidacy does not end";
            invalid.push(Invalid::parameter("ttl", message));
        }
        if self.withdraw {
            let set = [
                ("strategy", self.strategy.is_some()),
                ("max", self.max.is_some()),
                ("ttl", self.ttl.is_some()),
                ("persist", self.persist),
            ];
            for (parameter, _) in set.into_iter().filter(|(_, is_set)| *is_set) {
                let message = format!("`{parameter}` has no effect with `withdraw`");
                invalid.push(Invalid::parameter(parameter, message));
            }
        }
    }

    fn claims(&self) -> Vec<Claim> {
        vec![Claim {
            place: ELECTION.identity(self.namespace().as_bytes()),
            stake: Stake::Alone,
        }]
    }

    fn init(&mut self, handle: &Handle) -> Result<(), Failure> {
        handle.extension::<SharedElections>().map(drop)
    }

    fn watches(&self) -> Vec<Watch> {
        let namespace = self.namespace().to_owned();
        vec![Watch::own(|watcher| async move {
            let elections = watcher.handle.extension::<SharedElections>()?.clone();
            elections.follow(&namespace, watcher).await
        })]
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let elections = apply.handle().extension::<SharedElections>()?;
        let namespace = self.namespace();
        let recorded = elections.candidacy(namespace).await?;
        let wanted = (!self.withdraw).then(|| self.candidacy());
        let is_right = match (recorded, wanted) {
            (Some(recorded), Some(wanted)) => recorded.is_current && recorded.candidacy == wanted,
            (recorded, wanted) => recorded.is_none() && wanted.is_none(),
        };
        if is_right {
            // An earlier process may have ended before a host decided.
            if apply.may_repair() {
                elections.elect(namespace, wanted).await;
            }
            return Ok(());
        }
        let is = recorded.map_or(DriftValue::Absent, |recorded| {
            let gone = if recorded.is_current {
                ""
            } else {
                " of a process that has gone"
            };
            format!("{}{gone}", recorded.candidacy).into()
        });
        let want = wanted.map_or(DriftValue::Absent, |wanted| wanted.to_string().into());
        if apply.drift("candidate", is, want) {
            match wanted {
                Some(candidacy) => elections.stand(namespace, candidacy).await?,
                None => elections.withdraw(namespace).await?,
            }
            elections.elect(namespace, wanted).await;
        }
        Ok(())
    }
}

impl Schedule {
    fn namespace(&self) -> &str {
        match self.namespace.is_empty() {
            true => &self.name,
            false => &self.namespace,
        }
    }

    fn candidacy(&self) -> Candidacy {
        let positive = |number: i64| u32::try_from(number).ok().filter(|number| *number > 0);
        let seconds = |ttl: i64| positive(ttl).map_or(TTL, |ttl| Duration::from_secs(ttl.into()));
        Candidacy {
            strategy: self.strategy.and_then(|strategy| strategy.0).unwrap_or_default(),
            max: self.max.and_then(positive).unwrap_or(1),
            persist: self.persist,
            ttl: self.ttl.map(seconds),
        }
    }
}
