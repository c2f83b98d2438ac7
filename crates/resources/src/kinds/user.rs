//! The `user` kind: accounts of the local files.
//!
//! All differences are found first, and one run of `usermod` (or `useradd`) repairs them. Passwords go by the environment of a shell to
//! `chpasswd`, because arguments can be read by everybody.

use jiff::civil::Date;
use setpoint_engine::{
    Apply, DriftValue, Failure, Identity, IfSet, Resource, Text, Wanted, WantedOrder, WantedReach, Watch,
    async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::files::{AbsolutePath, Entry};
use setpoint_host::users::{LocalAccounts, LocalShadow, LocalUser};
use setpoint_host::watch::{Depth, Follow};

use crate::account_tools::{Tool, invalid_name, local};
use crate::enclosing;
use crate::presence::{Presence, state_missing};
use crate::sorts::{Account, FILE, GROUP, USER};

/// An account of this machine.
///
/// What is not set is left alone. The home directory is neither made nor moved, unless `create_home` says so, and stays when the account goes.
///
/// Accounts are those of the local files; one of another database is found, and refused, because it cannot be changed here. Groups come before the users that are in
/// them, and after users that go, by themselves.
///
/// ```mcl
/// group "deploy" {
///     state => "exists",
/// }
///
/// user "ada" {
///     state => "exists",
///     group => "deploy",
///     groups => ["adm"],
///     shell => "/bin/bash",
///     homedir => "/home/ada/",
///     create_home => true,
/// }
/// ```
///
/// Nobody logs in as a service, and its password is locked:
///
/// ```mcl
/// user "reports" {
///     state => "exists",
///     system => true,
///     shell => "/usr/sbin/nologin",
///     locked => true,
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "user", autoedge, asynchronous, reads_back)]
pub(crate) struct User {
    /// Whether it exists.
    #[param(default = IfSet(Some(Presence::Exists)))]
    state: IfSet<Presence>,
    /// The number of the user. Unset: the next free one, and not managed.
    uid: Option<u32>,
    /// The number of its first group; not together with `group`.
    gid: Option<u32>,
    /// The name of its first group.
    group: Option<String>,
    /// Its supplementary groups, and no others. Unset: not managed; empty: none.
    #[param(independent)]
    groups: Option<Vec<String>>,
    /// Its home directory; ends in a slash.
    homedir: Option<String>,
    /// The program that runs when it logs in.
    #[param(independent)]
    shell: Option<String>,
    /// Whether `uid` may belong to others as well.
    allowduplicateuid: bool,
    /// The comment, often the full name. An extension.
    #[param(independent)]
    comment: Option<String>,
    /// The hash of its password, as `mkpasswd` or `openssl passwd -6` makes it. It should be sensitive. An extension.
    #[param(independent)]
    password: Option<Text>,
    /// Whether its password is locked; it can still log in by a key. Unset: not managed. An extension.
    #[param(independent)]
    locked: Option<bool>,
    /// When the account expires. Unset: not managed. An extension.
    #[param(independent)]
    expires: IfSet<Expiry>,
    /// Whether an account that is made gets a number of the range for the system. An extension.
    system: bool,
    /// Whether its home directory is made with the account, with what is in `/etc/skel`. An extension.
    create_home: bool,
    /// Who may do what with a home directory that is made, in octal: `0700`. Unset: as the machine has it for all. An extension.
    home_mode: IfSet<HomeMode>,
    #[name]
    name: String,
}

/// Permission bits of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HomeMode(u32);

impl setpoint_engine::Parameter for HomeMode {
    const TYPE: setpoint_graph::ParameterType = setpoint_graph::ParameterType::Str;
    const FORM: Option<fn() -> String> = Some(|| "octal, like `0700`".to_owned());

    fn decode(value: &setpoint_value::Value) -> Result<HomeMode, setpoint_graph::TypeMismatch> {
        let text = Text::decode(value)?;
        let text = String::from_utf8_lossy(text.as_bytes()).into_owned();
        let is_octal =
            (3..=4).contains(&text.len()) && text.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
        match u32::from_str_radix(&text, 8) {
            Ok(bits) if is_octal && bits <= 0o777 => Ok(HomeMode(bits)),
            _ => {
                let message = format!("`{text}` is not a mode of a home directory");
                Err(setpoint_graph::TypeMismatch::new(message).help("write it in octal: `0700`"))
            }
        }
    }

    fn encode(&self) -> setpoint_value::Value {
        setpoint_value::Value::str(format!("{:04o}", self.0))
    }
}

/// The day on which an account expires; none for never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Expiry(Option<Date>);

impl setpoint_engine::Parameter for Expiry {
    const TYPE: setpoint_graph::ParameterType = setpoint_graph::ParameterType::Str;
    const FORM: Option<fn() -> String> = Some(|| "a day, `2030-12-31`, or `never`".to_owned());

    fn decode(value: &setpoint_value::Value) -> Result<Expiry, setpoint_graph::TypeMismatch> {
        let text = Text::decode(value)?;
        let text = String::from_utf8_lossy(text.as_bytes()).into_owned();
        if text == "never" {
            return Ok(Expiry(None));
        }
        let day: Result<Date, _> = text.parse();
        day.map(|day| Expiry(Some(day))).map_err(|_| {
            setpoint_graph::TypeMismatch::new(format!("`{text}` is not a day"))
                .help("a day is written `2030-12-31`; or `never`")
        })
    }

    fn encode(&self) -> setpoint_value::Value {
        setpoint_value::Value::str(self.to_string())
    }
}

impl std::fmt::Display for Expiry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(day) => write!(f, "{day}"),
            None => f.write_str("never"),
        }
    }
}

impl Expiry {
    /// From days since 1970.
    fn of_days(days: Option<i64>) -> Expiry {
        let day = days.and_then(|days| {
            let span = jiff::Span::new().try_days(days).ok()?;
            jiff::civil::date(1970, 1, 1).checked_add(span).ok()
        });
        Expiry(day)
    }
}

/// How a file of accounts is watched.
pub(super) fn watch(path: &'static str) -> Watch {
    Watch::Path {
        path: AbsolutePath::new(path).expect("the constant begins with a slash"),
        depth: Depth::Entry,
        follow: Follow::Target,
    }
}

#[async_trait]
impl Resource for User {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        invalid.extend(invalid_name(&self.name).map(Invalid::new));
        if self.state.is_none() {
            invalid.push(state_missing());
        }
        if self.gid.is_some() && self.group.is_some() {
            invalid.push(Invalid::parameter(
                "gid",
                "only one of `gid` and `group` can be set",
            ));
        }
        if let Some(message) = self.group.as_deref().and_then(invalid_name) {
            invalid.push(Invalid::parameter("group", message));
        }
        for group in self.groups.iter().flatten() {
            if let Some(message) = invalid_name(group) {
                invalid.push(Invalid::parameter("groups", message));
            } else if Some(group) == self.group.as_ref() {
                let message = format!("`{group}` is the first group already, as `group` says");
                invalid.push(Invalid::parameter("groups", message));
            } else if *group == self.name {
                let message =
                    format!("`{group}` is the user's own group; make it the first one with `group`");
                invalid.push(Invalid::parameter("groups", message));
            }
        }
        if self.home_mode.is_some() && !self.create_home {
            let message = "no home directory is made";
            invalid.push(Invalid::parameter("home_mode", message).help("write `create_home => true,`"));
        }
        if let Some(home) = &self.homedir {
            if !home.starts_with('/') {
                invalid.push(Invalid::parameter("homedir", "must be an absolute path"));
            } else if !home.ends_with('/') {
                let help = format!("write `{home}/`");
                invalid.push(Invalid::parameter("homedir", "must end in a slash").help(help));
            }
        }
        if self.uid == Some(u32::MAX) {
            let message = "4294967295 is no user: the system takes it for none";
            invalid.push(Invalid::parameter("uid", message));
        }
        if let Some(shell) = self.shell.as_deref().filter(|shell| !shell.is_empty())
            && !shell.starts_with('/')
        {
            let help = format!("write where it is: `/bin/{shell}`, for example");
            invalid.push(Invalid::parameter("shell", "must be an absolute path").help(help));
        }
        let mut refuse_colon = |parameter: &'static str, text: Option<&str>| {
            if text.is_some_and(|text| text.contains([':', '\n'])) {
                let message =
                    "must have no colon and no line feed, which separate the fields of `/etc/passwd`";
                invalid.push(Invalid::parameter(parameter, message));
            }
        };
        refuse_colon("comment", self.comment.as_deref());
        refuse_colon("homedir", self.homedir.as_deref());
        refuse_colon("shell", self.shell.as_deref());
        let password = self
            .password
            .as_ref()
            .map(|password| String::from_utf8_lossy(password.as_bytes()).into_owned());
        refuse_colon("password", password.as_deref());
        if password.as_deref().is_some_and(is_no_hash) {
            let message = "must be a hash, and is none: nobody could log in with it";
            let help = "`mkpasswd` and `openssl passwd -6` make one of a password";
            invalid.push(Invalid::parameter("password", message).help(help));
        }
        if password.is_some_and(|password| password.starts_with('!')) {
            let message = "begins with `!`, which locks a password";
            invalid.push(
                Invalid::parameter("password", message).help("say `locked => true`, and the hash without it"),
            );
        }
    }

    fn identities(&self) -> Vec<Identity> {
        let account = Account {
            name: Some(self.name.clone()),
            id: self.uid,
        };
        vec![account.identity(&USER)]
    }

    fn wanted(&self) -> Vec<Wanted> {
        let by_name = |name: &String| Account {
            name: Some(name.clone()),
            id: None,
        };
        let by_number = |id| Account {
            name: None,
            id: Some(id),
        };
        let groups = self.groups.iter().flatten().chain(&self.group).map(by_name);
        let groups = groups.chain(self.gid.map(by_number));
        let order = match *self.state {
            Some(Presence::Absent) => WantedOrder::FoundAfter,
            _ => WantedOrder::FoundFirst,
        };
        let groups = Wanted {
            order,
            identities: groups.map(|group| group.identity(&GROUP)).collect(),
            reach: WantedReach::Each,
        };
        let home = self.homedir.as_ref().filter(|_| order == WantedOrder::FoundFirst);
        let home = home.and_then(|home| AbsolutePath::new(cleaned(home)).ok());
        let directory = home.map(|home| enclosing::wanted(&enclosing::file(&home)));
        std::iter::once(groups).chain(directory).collect()
    }

    fn watches(&self) -> Vec<Watch> {
        let mut watches = vec![watch("/etc/passwd"), watch("/etc/group")];
        if self.wants_shadow() {
            watches.push(watch("/etc/shadow"));
        }
        if let (true, Some(home)) = (self.create_home, &self.homedir) {
            watches.extend(AbsolutePath::new(cleaned(home)).ok().map(Watch::path));
        }
        watches
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let accounts = local(apply).await?;
        let found = accounts.user(&self.name);
        if found.is_none() {
            self.refuse_foreign(apply).await?;
        }
        if *self.state == Some(Presence::Absent) {
            if found.is_some() && apply.remove("exists") {
                let tool = Tool::new("userdel").argument(&self.name);
                tool.run("remove the account", apply).await?;
            }
            return Ok(());
        }
        self.check_number(&accounts)?;
        let repairs = match found {
            None => apply.create(self.attributes_of_new()),
            Some(found) => self.compare(found, &accounts, apply),
        };
        if repairs {
            self.account(found.is_some(), &accounts, apply).await?;
        }
        if found.is_none() && self.create_home {
            let home = self
                .homedir
                .clone()
                .unwrap_or_else(|| format!("/home/{}/", self.name));
            apply.would_create(FILE.identity(cleaned(&home).into_bytes()));
        }
        let is_there = found.is_some() || repairs;
        if self.wants_shadow() {
            self.check_shadow(is_there, apply).await?;
        }
        if self.create_home && is_there {
            self.check_home(apply).await?;
        }
        Ok(())
    }
}

/// Whether a text is certainly not the hash of a password: those begin with a sign for how they are made, but for the oldest, of 13 letters. Without any text, and with
/// `*` or `!`, nothing is hashed, which is meant.
fn is_no_hash(text: &str) -> bool {
    let is_of_old = |text: &str| {
        let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"./".contains(&byte);
        text.len() == 13 && text.bytes().all(is_sign)
    };
    !text.is_empty() && !text.starts_with(['$', '_', '*', '!']) && !is_of_old(text)
}

impl User {
    /// The attributes that a plan shows of a new account.
    fn attributes_of_new(&self) -> Vec<(&'static str, DriftValue)> {
        let mut attributes: Vec<(&'static str, DriftValue)> = Vec::new();
        attributes.extend(self.uid.map(|uid| ("uid", uid.into())));
        let group = self.group.clone().or_else(|| self.gid.map(|gid| gid.to_string()));
        attributes.extend(group.map(|group| ("group", group.into())));
        let groups = self.groups.as_ref().filter(|groups| !groups.is_empty());
        attributes.extend(groups.map(|groups| ("groups", groups.join(",").into())));
        attributes.extend(self.homedir.as_ref().map(|home| ("home", home.as_str().into())));
        attributes.extend(self.shell.as_ref().map(|shell| ("shell", shell.as_str().into())));
        attributes
    }

    fn wants_shadow(&self) -> bool {
        self.password.is_some() || self.locked.is_some() || self.expires.is_some()
    }

    /// Accounts of other databases are found by their name, and can be changed by nobody here.
    async fn refuse_foreign(&self, apply: &Apply<'_>) -> Result<(), Failure> {
        let (users, name) = (apply.handle().services().users.clone(), self.name.clone());
        let found = tokio::task::spawn_blocking(move || users.account(&name)).await;
        match found {
            Ok(Ok(Some(account))) if account.name == self.name => Err(Failure::new("manage the account").because(
                "it is not in /etc/passwd but in another database (nsswitch.conf(5)), where it cannot be changed from here",
            )),
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(Failure::new("look for the account").because(error)),
            Err(ended) => Err(Failure::new("look for the account").because(ended)),
        }
    }

    fn check_number(&self, accounts: &LocalAccounts) -> Result<(), Failure> {
        let Some(other) = self
            .uid
            .filter(|_| !self.allowduplicateuid)
            .and_then(|uid| accounts.user_of(uid))
        else {
            return Ok(());
        };
        match other.name == self.name {
            true => Ok(()),
            false => Err(Failure::new("use the uid").on(other.uid).because(format!(
                "it belongs to the user `{}`; `allowduplicateuid` would allow both",
                other.name
            ))),
        }
    }

    /// Tells what differs, and answers whether that is to be repaired.
    fn compare(&self, found: &LocalUser, accounts: &LocalAccounts, apply: &mut Apply<'_>) -> bool {
        let mut repairs = false;
        let mut differs =
            |field: &'static str, is: DriftValue, want: DriftValue| repairs |= apply.drift(field, is, want);
        if let Some(uid) = self.uid.filter(|uid| *uid != found.uid) {
            differs("uid", i64::from(found.uid).into(), i64::from(uid).into());
        }
        if let Some(gid) = self.gid.filter(|gid| *gid != found.gid) {
            differs("gid", i64::from(found.gid).into(), i64::from(gid).into());
        }
        if let Some(group) = &self.group {
            let is = accounts.group_of(found.gid).map(|group| group.name.clone());
            // Of two groups of one number any may be meant.
            let fits = accounts.group(group).is_some_and(|group| group.gid == found.gid);
            if !fits {
                differs(
                    "group",
                    is.unwrap_or_else(|| found.gid.to_string()).into(),
                    group.clone().into(),
                );
            }
        }
        if let Some(wanted) = &self.groups {
            let is = accounts.supplementary_groups(found);
            let is: Vec<&str> = is.iter().map(|group| &*group.name).collect();
            let mut wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
            wanted.sort_unstable();
            wanted.dedup();
            if is != wanted {
                differs("groups", is.join(",").into(), wanted.join(",").into());
            }
        }
        if let Some(home) = &self.homedir
            && cleaned(home) != cleaned(&found.home)
        {
            differs("homedir", found.home.clone().into(), cleaned(home).into());
        }
        if let Some(shell) = self.shell.as_ref().filter(|shell| **shell != found.shell) {
            differs("shell", found.shell.clone().into(), shell.clone().into());
        }
        if let Some(comment) = self.comment.as_ref().filter(|comment| **comment != found.comment) {
            differs("comment", found.comment.clone().into(), comment.clone().into());
        }
        repairs
    }

    /// Makes the account, or changes the one that is there.
    async fn account(
        &self,
        is_there: bool,
        accounts: &LocalAccounts,
        apply: &Apply<'_>,
    ) -> Result<(), Failure> {
        let mut tool = Tool::new(if is_there { "usermod" } else { "useradd" });
        if let Some(uid) = self.uid {
            if self.allowduplicateuid {
                tool = tool.argument("--non-unique");
            }
            tool = tool.option("--uid", uid.to_string());
        }
        let own_group = accounts.group(&self.name).filter(|_| !is_there);
        match (&self.group, self.gid, own_group) {
            (Some(group), ..) => tool = tool.option("--gid", group),
            (None, Some(gid), _) => tool = tool.option("--gid", gid.to_string()),
            // `useradd` refuses to make a group that is there already.
            (None, None, Some(group)) => tool = tool.option("--gid", &group.name),
            (None, None, None) => {}
        }
        if let Some(groups) = &self.groups {
            tool = tool.option("--groups", groups.join(","));
        }
        if let Some(home) = &self.homedir {
            tool = tool.option(if is_there { "--home" } else { "--home-dir" }, cleaned(home));
        }
        if let Some(shell) = &self.shell {
            tool = tool.option("--shell", shell);
        }
        if let Some(comment) = &self.comment {
            tool = tool.option("--comment", comment);
        }
        if !is_there {
            tool = tool.argument(match self.create_home {
                true => "--create-home",
                false => "--no-create-home",
            });
            if let Some(HomeMode(bits)) = *self.home_mode {
                tool = tool.option("--key", format!("HOME_MODE={bits:04o}"));
            }
            if self.system {
                tool = tool.argument("--system");
            }
        }
        let attempted = if is_there {
            "change the account"
        } else {
            "make the account"
        };
        tool.argument(&self.name).run(attempted, apply).await
    }

    /// The home directory of an account that is there: `useradd` may have made the account and then failed, and the directory may have gone since.
    async fn check_home(&self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let accounts = local(apply).await?;
        let Some(found) = accounts.user(&self.name) else {
            return Ok(());
        };
        let attempted = "look for the home directory";
        let path = AbsolutePath::new(&found.home).map_err(|error| Failure::new(attempted).because(error))?;
        let look = tokio::task::spawn_blocking(move || match Entry::at(&path) {
            Ok(entry) => entry.stat_following(),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        });
        let there = look
            .await
            .map_err(|ended| Failure::new(attempted).because(ended))??;
        if there.is_some() || !apply.drift("home", "absent", found.home.clone()) {
            return Ok(());
        }
        let mut tool = Tool::new("mkhomedir_helper").argument(&self.name);
        if let Some(HomeMode(bits)) = *self.home_mode {
            tool = tool.argument(format!("{:04o}", 0o777 & !bits));
        }
        tool.run("make the home directory", apply).await
    }

    /// What only root may read: password, lock and expiry. Of an account that is still to be made nothing is known.
    async fn check_shadow(&self, is_there: bool, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let found = match is_there {
            true => self.shadow(apply).await?,
            // As `useradd` makes it.
            false => LocalShadow {
                password: "!".to_owned(),
                expires: None,
            },
        };
        let (was_locked, hash) = match found.password.strip_prefix('!') {
            Some(hash) => (true, hash),
            None => (false, &*found.password),
        };
        // Of an account that never had a password there is nothing that would stay locked.
        let stays_locked = was_locked && !hash.trim_matches(['!', '*']).is_empty();
        let locked = self.locked.unwrap_or(stays_locked);
        if let Some(password) = &self.password {
            let password = String::from_utf8_lossy(password.as_bytes()).into_owned();
            if hash != password && apply.drift("password", "another one", "as `password` says") {
                let written = if locked { format!("!{password}") } else { password };
                let tool = Tool::new("sh")
                    .option(
                        "-c",
                        "printf '%s:%s\\n' \"$ACCOUNT\" \"$PASSWORD\" | chpasswd --encrypted",
                    )
                    .secret("ACCOUNT", &self.name)
                    .secret("PASSWORD", written);
                tool.run("set the password", apply).await?;
            }
        }
        if self.locked.is_some() && was_locked != locked && apply.drift("locked", was_locked, locked) {
            if !locked && self.password.is_none() && hash.trim_matches('!').is_empty() {
                let why = "it has no password, so everybody could log in; set `password`";
                return Err(Failure::new("unlock the password").because(why));
            }
            let tool = Tool::new("usermod").argument(if locked { "--lock" } else { "--unlock" });
            let attempted = if locked {
                "lock the password"
            } else {
                "unlock the password"
            };
            // A password that was just set is locked or not already.
            if self.password.is_none() || hash == self.password_text() {
                tool.argument(&self.name).run(attempted, apply).await?;
            }
        }
        let expires = Expiry::of_days(found.expires);
        if let Some(wanted) = self.expires.filter(|wanted| *wanted != expires)
            && apply.drift("expires", expires.to_string(), wanted.to_string())
        {
            let day = wanted.0.map_or_else(String::new, |day| day.to_string());
            let tool = Tool::new("usermod").option("--expiredate", day);
            tool.argument(&self.name)
                .run("set when the account expires", apply)
                .await?;
        }
        Ok(())
    }

    fn password_text(&self) -> String {
        let password = self.password.as_ref();
        password.map_or_else(String::new, |password| {
            String::from_utf8_lossy(password.as_bytes()).into_owned()
        })
    }

    async fn shadow(&self, apply: &Apply<'_>) -> Result<LocalShadow, Failure> {
        let attempted = "read /etc/shadow";
        let (users, name) = (apply.handle().services().users.clone(), self.name.clone());
        let read = tokio::task::spawn_blocking(move || users.local_shadow(&name)).await;
        let read = read.map_err(|ended| Failure::new(attempted).because(ended))?;
        let read = read.map_err(|error| Failure::new(attempted).because(error))?;
        // Whoever runs without root sees the account only when the run may not repair anything.
        read.ok_or_else(|| {
            Failure::new(attempted).because("it says nothing of the account; `pwconv` makes its line")
        })
    }
}

/// A path without its last slashes; the root stays.
fn cleaned(path: &str) -> String {
    match path.trim_end_matches('/') {
        "" => "/".to_owned(),
        path => path.to_owned(),
    }
}
