//! Whose rights a command has, as `user` and `group` of several kinds say it.

use setpoint_engine::{Failure, Handle};
use setpoint_host::processes::Command;
use setpoint_host::users::{AccountError, Users};

/// Whose rights commands have; nothing means ours.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommandRights {
    pub(crate) user: Option<u32>,
    group: Option<u32>,
    groups: Vec<u32>,
}

impl CommandRights {
    /// Those of a user and a group by name or number, each empty if it is not said: a group alone leaves the user, a user alone comes with its groups.
    ///
    /// # Errors
    /// When there is no such account.
    pub(crate) async fn find(handle: &Handle, user: &str, group: &str) -> Result<CommandRights, Failure> {
        if user.is_empty() && group.is_empty() {
            return Ok(CommandRights::default());
        }
        let (handle, user, group) = (handle.clone(), user.to_owned(), group.to_owned());
        // The name service may take its time.
        let found = tokio::task::spawn_blocking(move || asked(handle.users(), &user, &group)).await;
        found.unwrap_or_else(|error| Err(Failure::new("look at the accounts").because(error)))
    }

    /// The command with these rights.
    pub(crate) fn give(&self, command: Command) -> Command {
        command
            .credentials(self.user, self.group)
            .groups(self.groups.iter().copied())
    }
}

fn asked(users: &Users, user: &str, group: &str) -> Result<CommandRights, Failure> {
    let failed = |attempted: &'static str| move |error| Failure::new(attempted).because(error);
    let no_group = "find the group";
    if !group.is_empty() {
        let user = Some(user).filter(|user| !user.is_empty());
        let user = user.map(|user| users.user(user)).transpose();
        return Ok(CommandRights {
            user: user.map_err(failed("find the user"))?,
            group: Some(users.group(group).map_err(failed(no_group))?),
            groups: Vec::new(),
        });
    }
    match users.with_groups(user) {
        Ok((account, groups)) => Ok(CommandRights {
            user: Some(account.uid),
            group: Some(account.gid),
            groups,
        }),
        // A number needs no account. But then nobody knows its groups, and ours would be too much.
        Err(AccountError::NoUser { .. }) if users.user(user).is_ok() => Err(Failure::new(no_group).because(
            format!("the user `{user}` has no account that says it: set `group` too"),
        )),
        Err(error) => Err(failed("find the user")(error)),
    }
}
