//! The `sudoers` kind: a file in `/etc/sudoers.d`. Not one of mgmt's kinds.
//!
//! A file with an error would take the rights of all users away, so `visudo` checks each text before it takes its place.

use setpoint_engine::{
    Apply, Attempting, DriftValue, Failure, Identity, IfSet, Resource, Text, Wanted, Watch, async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::files::{AbsolutePath, Entry, Replace, Stat, own_gid, own_uid};
use tokio::task::block_in_place;

use crate::enclosing;
use crate::presence::Presence;
use crate::sorts::{Account, GROUP, PACKAGE_FILE, USER};
use crate::validation::Validation;

/// The directory whose files sudo reads.
const DIRECTORY: &str = "/etc/sudoers.d";

/// The file that includes them.
const MAIN: &str = "/etc/sudoers";

/// The program that checks the files.
const VISUDO: &str = "/usr/sbin/visudo";

/// The mode of the files.
const MODE: u32 = 0o440;

/// Rights of users to run commands as others, in a file of `/etc/sudoers.d`.
///
/// `visudo` checks the file, and all others with it, before it takes its place.
///
/// ```mcl
/// sudoers "deploy" {
///     users => ["deploy"],
///     commands => ["/usr/bin/systemctl reload nginx"],
///     password => false,
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "sudoers", autoedge, receives, asynchronous)]
pub(crate) struct Sudoers {
    /// Whether the file is there.
    #[param(default = Presence::Exists)]
    state: Presence,
    /// The text of the file. Unset: it is made of the following parameters.
    content: Option<Text>,
    /// Users who get the rights.
    users: Vec<String>,
    /// Groups whose members get the rights.
    groups: Vec<String>,
    /// The hosts on which the rights hold. Unset: all.
    hosts: Vec<String>,
    /// The users as whom the commands run. Unset: all.
    r#as: Vec<String>,
    /// The commands: absolute paths with arguments, `sudoedit` with files, or `ALL`.
    commands: Vec<String>,
    /// Whether sudo asks for the password.
    #[param(default = true)]
    password: bool,
    /// Whether the users may set variables of the environment.
    setenv: bool,
    /// Whether the commands can start no others.
    noexec: bool,
    /// Settings for the users, such as `!requiretty`.
    defaults: Vec<String>,
    /// The beginning of the name of the file: files with higher numbers are read later.
    #[param(default = 50)]
    priority: i64,
    #[name]
    name: String,
}

#[async_trait]
impl Resource for Sudoers {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        if self.name.is_empty() || self.name.contains(['/', '\n']) {
            invalid.push(Invalid::new("a file gets its name, so it must be one word"));
        }
        if !(0..=99).contains(&self.priority) {
            invalid.push(Invalid::parameter("priority", "must be from 0 to 99"));
        }
        if self.state == Presence::Absent {
            return;
        }
        let has_rule = !(self.users.is_empty() && self.groups.is_empty() && self.commands.is_empty());
        match (&self.content, has_rule) {
            (Some(_), true) => {
                let message = "`users`, `groups` and `commands` are set, too";
                invalid.push(Invalid::parameter("content", message));
            }
            (None, _) if self.users.is_empty() && self.groups.is_empty() => {
                invalid.push(Invalid::parameter(
                    "users",
                    "set `users` or `groups`, or `content`",
                ));
            }
            (None, _) if self.commands.is_empty() => {
                invalid.push(Invalid::parameter(
                    "commands",
                    "the commands are missing; `ALL` is each of them",
                ));
            }
            _ => {}
        }
        for command in &self.commands {
            let first = command
                .trim_start_matches('!')
                .split_whitespace()
                .next()
                .unwrap_or_default();
            if !(first.starts_with('/') || first == "ALL" || first == "sudoedit") {
                let message = format!("`{command}` does not begin with an absolute path");
                let help = "write it as `/usr/bin/systemctl reload nginx`, or `ALL`";
                invalid.push(Invalid::parameter("commands", message).help(help));
            }
        }
        let words = [
            ("users", &self.users),
            ("groups", &self.groups),
            ("hosts", &self.hosts),
            ("as", &self.r#as),
        ];
        for (parameter, words) in words {
            let is_wrong = |word: &&String| {
                word.is_empty() || word.contains([' ', '\t', '\n', ',', '=', ':', '(', ')', '#'])
            };
            for word in words.iter().filter(is_wrong) {
                invalid.push(Invalid::parameter(
                    parameter,
                    format!("`{word}` must be one name"),
                ));
            }
        }
        let lines = self
            .commands
            .iter()
            .map(|line| ("commands", line))
            .chain(self.defaults.iter().map(|line| ("defaults", line)));
        for (parameter, line) in lines.filter(|(_, line)| line.contains('\n')) {
            invalid.push(Invalid::parameter(
                parameter,
                format!("`{}` must be one line", line.escape_debug()),
            ));
        }
    }

    fn identities(&self) -> Vec<Identity> {
        let path = (self.state == Presence::Exists).then(|| self.path());
        path.iter().map(enclosing::file).collect()
    }

    fn wanted(&self) -> Vec<Wanted> {
        let accounts = self
            .users
            .iter()
            .map(|user| Account::written(user).identity(&USER));
        let groups = self
            .groups
            .iter()
            .map(|group| Account::written(group).identity(&GROUP));
        let program = [PACKAGE_FILE.identity(VISUDO.as_bytes())];
        let first = accounts.chain(groups).chain(program).collect::<Vec<_>>();
        vec![
            enclosing::wanted(&enclosing::file(&self.path())),
            Wanted::first_of_each(first),
        ]
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::path(self.path())]
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let path = self.path();
        let found = block_in_place(|| look(&path))?;
        if self.state == Presence::Absent {
            let Some((_, text)) = found else { return Ok(()) };
            if apply.remove(DriftValue::content(&text)) {
                let removed = block_in_place(|| Entry::at(&path).and_then(|entry| entry.remove_file()));
                removed.attempting("remove", &path)?;
            }
            return Ok(());
        }
        let text = self.text();
        let owner = (own_uid(), own_gid());
        let is_right = |found: &(Stat, Vec<u8>)| {
            found.1 == text && (found.0.uid, found.0.gid) == owner && found.0.mode == MODE
        };
        if found.as_ref().is_some_and(is_right) {
            return Ok(());
        }
        if found.as_ref().is_none_or(|(_, is)| *is != text) {
            self.check_text(&path, &text, owner, apply).await?;
        }
        let mut may_repair = true;
        match &found {
            None => {
                may_repair &= apply.create(vec![
                    ("content", DriftValue::content(&text)),
                    ("mode", DriftValue::mode(MODE)),
                ]);
            }
            Some((stat, is)) => {
                if *is != text {
                    may_repair &= apply.drift("content", DriftValue::content(is), DriftValue::content(&text));
                }
                if (stat.uid, stat.gid) != owner {
                    let is = format!("{}:{}", stat.uid, stat.gid);
                    may_repair &= apply.drift("owner", is, format!("{}:{}", owner.0, owner.1));
                }
                if stat.mode != MODE {
                    may_repair &= apply.drift("mode", DriftValue::mode(stat.mode), DriftValue::mode(MODE));
                }
            }
        }
        if may_repair {
            let request = Replace::bytes(path, text).owner(owner.0, owner.1).mode(MODE);
            block_in_place(|| apply.replace_at_once(request))?;
        }
        Ok(())
    }
}

impl Sudoers {
    /// The file. Sudo ignores files with a dot or a tilde in their names.
    fn path(&self) -> AbsolutePath {
        let name = self.name.replace(['.', '~'], "_");
        let path = format!("{DIRECTORY}/{:02}-{name}", self.priority);
        AbsolutePath::new(path).expect("it begins with a slash")
    }

    /// The text of the file.
    fn text(&self) -> Vec<u8> {
        if let Some(content) = &self.content {
            return content.as_bytes().to_vec();
        }
        let groups = self.groups.iter().map(|group| format!("%{group}"));
        let who: Vec<String> = self.users.iter().cloned().chain(groups).collect();
        let or_all = |words: &[String]| match words {
            [] => "ALL".to_owned(),
            words => words.join(", "),
        };
        let mut tags = String::new();
        for (is_set, tag) in [
            (!self.password, "NOPASSWD: "),
            (self.setenv, "SETENV: "),
            (self.noexec, "NOEXEC: "),
        ] {
            tags.push_str(if is_set { tag } else { "" });
        }
        let commands: Vec<String> = self.commands.iter().map(|command| escaped(command)).collect();
        let mut text = "# Setpoint manages this file.\n".to_owned();
        for default in &self.defaults {
            text.push_str(&format!("Defaults:{} {default}\n", who.join(",")));
        }
        text.push_str(&format!(
            "{} {} = ({}) {tags}{}\n",
            who.join(", "),
            or_all(&self.hosts),
            or_all(&self.r#as),
            commands.join(", ")
        ));
        text.into_bytes()
    }

    /// Has `visudo` check the text alone, and then all files with it.
    async fn check_text(
        &self,
        path: &AbsolutePath,
        text: &[u8],
        owner: (u32, u32),
        apply: &mut Apply<'_>,
    ) -> Result<(), Failure> {
        let main = AbsolutePath::new(MAIN).expect("it begins with a slash");
        let read = block_in_place(|| {
            Entry::at(&main)
                .and_then(|entry| entry.follow())
                .and_then(|entry| entry.read())
        });
        if let Ok(read) = &read {
            let read = String::from_utf8_lossy(read);
            let includes = |line: &str| {
                let mut words = line.split_whitespace();
                matches!(words.next(), Some("@includedir" | "#includedir")) && words.next() == Some(DIRECTORY)
            };
            if !read.lines().any(includes) {
                let why =
                    format!("it does not read {DIRECTORY}: the line `@includedir {DIRECTORY}` is missing");
                return Err(Failure::new("use").on(&main).because(why));
            }
        }
        // With `-s`, an alias that is not defined is an error.
        for command in [format!("{VISUDO} -c -s -f {{}}"), format!("{VISUDO} -c")] {
            let check = Validation {
                validate: command,
                validate_timeout: IfSet::default(),
            };
            check.check_with(apply, path, text, owner, MODE).await?;
        }
        Ok(())
    }
}

/// A command in which signs with a meaning in the file have a backslash.
fn escaped(command: &str) -> String {
    let mut text = String::new();
    let mut before = ' ';
    for sign in command.chars() {
        if [',', ':', '='].contains(&sign) && before != '\\' {
            text.push('\\');
        }
        text.push(sign);
        before = sign;
    }
    text
}

fn look(path: &AbsolutePath) -> Result<Option<(Stat, Vec<u8>)>, Failure> {
    let attempted = "read";
    let entry = match Entry::at(path) {
        Err(error) if error.is_not_found() => return Ok(None),
        entry => entry.attempting(attempted, path)?,
    };
    match entry.stat().attempting(attempted, path)? {
        None => Ok(None),
        Some(stat) => Ok(Some((stat, entry.read().attempting(attempted, path)?))),
    }
}
