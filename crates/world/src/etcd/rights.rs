//! Who may do what in an etcd: its users and roles, over its API for authentication, as far as they are needed here.
//!
//! A role is a set of ranges of keys, each for reading, writing or both; a user has roles. They can be made before etcd asks for users at all. Only
//! the roles whose names begin with a given text are looked at: others are somebody else's.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;

use super::protocol::Calls;
use super::{EtcdStore, after_all_with};
use crate::{Selection, StoreError};

/// Access to keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// They may be read and followed.
    Read,
    /// They may be read, followed, set and deleted.
    ReadWrite,
}

/// Permissions of a role.
pub type Grants = BTreeMap<Selection, Access>;

/// The users and roles of an etcd, in so far as they concern these roles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rights {
    /// Permissions of each role, without ranges that are not selections of this store.
    pub roles: BTreeMap<String, Grants>,
    /// Roles of each user. Users without roles are included.
    pub users: BTreeMap<String, BTreeSet<String>>,
}

/// A step towards other rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RightsChange {
    /// A role that allows nothing yet.
    AddRole(String),
    /// A role allows more.
    Allow(String, Selection, Access),
    /// A role allows less.
    Forbid(String, Selection),
    /// A role goes, also from all who have it.
    RemoveRole(String),
    /// A user who has no password: who shows a certificate with that name.
    AddUser(String),
    /// A user gets a role.
    GiveRole(String, String),
    /// A user has a role no more.
    TakeRole(String, String),
}

impl EtcdStore {
    /// The roles whose names begin with a text, and who has them.
    ///
    /// # Errors
    /// When etcd cannot be asked, or whoever asks may not know it.
    pub async fn rights(&self, begin: &str) -> Result<Rights, StoreError> {
        let mut rights = Rights::default();
        let roles: Names = self.auth("RoleList", Nothing {}, false).await?;
        for role in roles.names.into_iter().filter(|role| role.starts_with(begin)) {
            let asked = Named { name: role.clone() };
            let found: RoleGetResponse = self.auth("RoleGet", asked, false).await?;
            let grants = found
                .permissions
                .into_iter()
                .filter_map(|one| self.grant_of(&one));
            rights.roles.insert(role, grants.collect());
        }
        let users: Names = self.auth("UserList", Nothing {}, false).await?;
        for user in users.names {
            let asked = Named { name: user.clone() };
            let found: Names = self.auth("UserGet", asked, false).await?;
            let roles = found.names.into_iter().filter(|role| role.starts_with(begin));
            rights.users.insert(user, roles.collect());
        }
        Ok(rights)
    }

    /// Takes a step.
    ///
    /// # Errors
    /// When etcd cannot be asked, or whoever asks may not do that.
    pub async fn change_rights(&self, change: &RightsChange) -> Result<(), StoreError> {
        let named = |name: &String| Named { name: name.clone() };
        match change {
            RightsChange::AddRole(role) => self.do_auth("RoleAdd", named(role)).await,
            RightsChange::RemoveRole(role) => self.do_auth("RoleDelete", named(role)).await,
            RightsChange::AddUser(user) => {
                let request = UserAddRequest {
                    name: user.clone(),
                    options: Some(UserAddOptions { no_password: true }),
                };
                self.do_auth("UserAdd", request).await
            }
            RightsChange::GiveRole(user, role) => {
                let request = UserGrantRoleRequest {
                    user: user.clone(),
                    role: role.clone(),
                };
                self.do_auth("UserGrantRole", request).await
            }
            RightsChange::TakeRole(user, role) => {
                let request = UserRevokeRoleRequest {
                    user: user.clone(),
                    role: role.clone(),
                };
                self.do_auth("UserRevokeRole", request).await
            }
            RightsChange::Allow(role, selection, access) => {
                let (key, range_end) = self.0.range(selection);
                let kind = match access {
                    Access::Read => READ,
                    Access::ReadWrite => READ_WRITE,
                };
                let request = RoleGrantRequest {
                    role: role.clone(),
                    permission: Some(Permission { kind, key, range_end }),
                };
                self.do_auth("RoleGrantPermission", request).await
            }
            RightsChange::Forbid(role, selection) => {
                let (key, range_end) = self.0.range(selection);
                let request = RoleRevokeRequest {
                    role: role.clone(),
                    key,
                    range_end,
                };
                self.do_auth("RoleRevokePermission", request).await
            }
        }
    }

    /// The permission in terms of this store.
    fn grant_of(&self, permission: &Permission) -> Option<(Selection, Access)> {
        let key = self.0.own_key(&permission.key)?;
        let selection = match permission.range_end.is_empty() {
            true => Selection::Key(key),
            false if permission.range_end == after_all_with(&permission.key) => {
                Selection::prefix(key.as_str())
            }
            false => return None,
        };
        let access = match permission.kind {
            READ => Access::Read,
            READ_WRITE => Access::ReadWrite,
            _ => return None,
        };
        Some((selection, access))
    }

    async fn do_auth<Q: Message + Clone + 'static>(
        &self,
        call: &'static str,
        request: Q,
    ) -> Result<(), StoreError> {
        let _: Nothing = self.auth(call, request, true).await?;
        Ok(())
    }

    async fn auth<Q, A>(&self, call: &'static str, request: Q, is_write: bool) -> Result<A, StoreError>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let ask = async || {
            let request = request.clone();
            self.0
                .ask(is_write, async |calls: Calls| calls.auth(call, request).await)
                .await
        };
        match ask().await {
            // After each change a login counts as old, and is made anew.
            Err(StoreError::NotLetIn { .. }) => ask().await,
            answer => answer,
        }
    }
}

/// Range of a permission.
const READ: i32 = 0;
const READ_WRITE: i32 = 2;

#[derive(Clone, PartialEq, Message)]
struct Nothing {}

#[derive(Clone, PartialEq, Message)]
struct Named {
    #[prost(string, tag = "1")]
    name: String,
}

/// Of all users, of all roles, or of the roles of a user.
#[derive(Clone, PartialEq, Message)]
struct Names {
    #[prost(string, repeated, tag = "2")]
    names: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Permission {
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(bytes = "vec", tag = "2")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    range_end: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct RoleGetResponse {
    #[prost(message, repeated, tag = "2")]
    permissions: Vec<Permission>,
}

#[derive(Clone, PartialEq, Message)]
struct RoleGrantRequest {
    #[prost(string, tag = "1")]
    role: String,
    #[prost(message, optional, tag = "2")]
    permission: Option<Permission>,
}

#[derive(Clone, PartialEq, Message)]
struct RoleRevokeRequest {
    #[prost(string, tag = "1")]
    role: String,
    #[prost(bytes = "vec", tag = "2")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    range_end: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct UserAddRequest {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "3")]
    options: Option<UserAddOptions>,
}

#[derive(Clone, PartialEq, Message)]
struct UserAddOptions {
    #[prost(bool, tag = "1")]
    no_password: bool,
}

#[derive(Clone, PartialEq, Message)]
struct UserGrantRoleRequest {
    #[prost(string, tag = "1")]
    user: String,
    #[prost(string, tag = "2")]
    role: String,
}

#[derive(Clone, PartialEq, Message)]
struct UserRevokeRoleRequest {
    #[prost(string, tag = "1")]
    user: String,
    #[prost(string, tag = "2")]
    role: String,
}
