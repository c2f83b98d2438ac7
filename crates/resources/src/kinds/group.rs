//! The `group` kind: groups of the local files.

use setpoint_engine::{Apply, DriftValue, Failure, Identity, IfSet, Resource, Watch, async_trait};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::users::LocalAccounts;

use crate::account_tools::{Tool, invalid_name, local};
use crate::kinds::user::watch;
use crate::presence::{Presence, state_missing};
use crate::sorts::{Account, GROUP};

/// A group of users of this machine.
///
/// Whose supplementary group it is, is said by `groups` of the users, or by `members` here; both at once would contradict each other. Files that belong to a
/// former number stay as they are.
///
/// ```mcl
/// group "deploy" {
///     state => "exists",
///     gid => 2000,
///     members => ["ada", "eve"],
/// }
/// ```
///
/// ```mcl
/// group "former" {
///     state => "absent",
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "group", autoedge, asynchronous, reads_back)]
pub(crate) struct Group {
    /// Whether it exists.
    #[param(default = IfSet(Some(Presence::Exists)))]
    state: IfSet<Presence>,
    /// The number of the group. Unset: the next free one, and not managed.
    gid: Option<u32>,
    /// Whether a group that is made gets a number of the range for the system. An extension.
    system: bool,
    /// The users whose supplementary group it is, and no others. Unset: not managed. An extension.
    members: Option<Vec<String>>,
    #[name]
    name: String,
}

#[async_trait]
impl Resource for Group {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        invalid.extend(invalid_name(&self.name).map(Invalid::new));
        if self.state.is_none() {
            invalid.push(state_missing());
        }
        for member in self.members.iter().flatten() {
            invalid.extend(invalid_name(member).map(|message| Invalid::parameter("members", message)));
        }
        if *self.state == Some(Presence::Absent) && self.members.is_some() {
            invalid.push(Invalid::parameter(
                "members",
                "what shall be absent has no members",
            ));
        }
    }

    fn identities(&self) -> Vec<Identity> {
        let account = Account {
            name: Some(self.name.clone()),
            id: self.gid,
        };
        vec![account.identity(&GROUP)]
    }

    fn watches(&self) -> Vec<Watch> {
        vec![watch("/etc/group")]
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let accounts = local(apply).await?;
        let found = accounts.group(&self.name);
        if *self.state == Some(Presence::Absent) {
            let Some(_) = found else { return Ok(()) };
            if apply.remove("exists") {
                let tool = Tool::new("groupdel").argument(&self.name);
                tool.run("remove the group", apply).await?;
            }
            return Ok(());
        }
        self.check_number(&accounts)?;
        match found {
            None => self.make(apply).await?,
            Some(found) => {
                if let Some(gid) = self.gid.filter(|gid| *gid != found.gid)
                    && apply.drift("gid", i64::from(found.gid), i64::from(gid))
                {
                    let tool = Tool::new("groupmod").option("--gid", gid.to_string());
                    tool.argument(&self.name).run("change the group", apply).await?;
                }
            }
        }
        self.check_members(&accounts, apply).await
    }
}

impl Group {
    fn check_number(&self, accounts: &LocalAccounts) -> Result<(), Failure> {
        let Some(other) = self.gid.and_then(|gid| accounts.group_of(gid)) else {
            return Ok(());
        };
        match other.name == self.name {
            true => Ok(()),
            false => Err(Failure::new("use the gid")
                .on(other.gid)
                .because(format!("it belongs to the group `{}`", other.name))),
        }
    }

    async fn make(&self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        if !apply.create(self.gid.map(|gid| ("gid", gid.into())).into_iter().collect()) {
            return Ok(());
        }
        let mut tool = Tool::new("groupadd");
        if self.system {
            tool = tool.argument("--system");
        }
        if let Some(gid) = self.gid {
            tool = tool.option("--gid", gid.to_string());
        }
        tool.argument(&self.name).run("make the group", apply).await
    }

    /// The members of a group that is there, or would be.
    async fn check_members(&self, accounts: &LocalAccounts, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let Some(wanted) = &self.members else {
            return Ok(());
        };
        let sorted = |members: &[String]| {
            let mut members = members.to_vec();
            members.sort();
            members.dedup();
            members
        };
        let found = accounts.group(&self.name).map(|group| sorted(&group.members));
        let wanted = sorted(wanted);
        if found.clone().unwrap_or_default() == wanted {
            return Ok(());
        }
        let is = found.map_or(DriftValue::Absent, |found| DriftValue::from(found.join(",")));
        if apply.drift("members", is, wanted.join(",")) {
            let tool = Tool::new("gpasswd").option("--members", wanted.join(","));
            tool.argument(&self.name)
                .run("set the members of the group", apply)
                .await?;
        }
        Ok(())
    }
}
