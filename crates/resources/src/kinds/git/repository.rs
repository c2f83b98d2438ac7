//! A repository, and the commands of git for it. All run as the user whose tree it is, without hooks, questions and settings of the repository that run
//! programs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use setpoint_engine::{Apply, Failure};
use setpoint_host::files::AbsolutePath;
use setpoint_host::processes::{Command, Environment, Finished, Stop};
use tokio::time::timeout;

use crate::command_rights::CommandRights;

/// How long a command may take. A large clone takes minutes.
const WITHIN: Duration = Duration::from_secs(3600);

/// Where programs are found.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Settings that hold for all commands.
const SETTINGS: [&str; 7] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "protocol.ext.allow=never",
    "advice.detachedHead=false",
    "gc.auto=0",
    "credential.helper=",
    "core.askPass=",
];

/// The access to the server of a repository.
#[derive(Debug, Clone, Default)]
pub(super) struct Access {
    pub(super) rights: CommandRights,
    pub(super) home: Option<OsString>,
    /// The command for SSH; none for git's own.
    pub(super) ssh: Option<String>,
    /// User and token for HTTPS.
    pub(super) login: Option<(String, String)>,
}

/// A repository in a directory.
pub(super) struct Repository<'a, 'b> {
    pub(super) path: AbsolutePath,
    pub(super) access: &'a Access,
    pub(super) apply: &'a Apply<'b>,
}

/// The object of a name on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    /// The commit.
    pub(super) commit: String,
    /// The object of the name itself: of a tag with a message, the tag.
    pub(super) object: String,
}

impl Repository<'_, '_> {
    /// Runs git in the repository. Answers its output without the last line feed.
    ///
    /// # Errors
    /// When it fails, with the reason that it gives.
    pub(super) async fn git(&self, attempted: &'static str, arguments: &[&str]) -> Result<String, Failure> {
        let finished = self.run(attempted, arguments).await?;
        match finished.exit.is_success() {
            true => Ok(text(&finished)),
            false => Err(failure(attempted, &self.path.to_string(), &finished)),
        }
    }

    /// The same for a question, whose answer may be that there is none.
    ///
    /// # Errors
    /// When git cannot be started.
    pub(super) async fn ask(&self, arguments: &[&str]) -> Result<Option<String>, Failure> {
        let finished = self.run("look at", arguments).await?;
        Ok(finished.exit.is_success().then(|| text(&finished)))
    }

    /// The object of a name on the server.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub(super) async fn on_server(&self, url: &str, reference: &str) -> Result<Option<Reference>, Failure> {
        let peeled = format!("{reference}^{{}}");
        let attempted = "ask the server for the commit of";
        let arguments = ["ls-remote", "--exit-code", "--", url, reference, &peeled];
        let finished = self.run(attempted, &arguments).await?;
        // With `--exit-code`, 2 says that there is no such name.
        if finished.exit == setpoint_host::processes::Exit::Code(2) {
            return Ok(None);
        }
        if !finished.exit.is_success() {
            return Err(failure(attempted, url, &finished));
        }
        let printed = text(&finished);
        let lines: BTreeMap<&str, &str> = printed
            .lines()
            .filter_map(|line| line.split_once('\t').map(|(hash, name)| (name, hash)))
            .collect();
        let object = lines.get(reference).map(|hash| (*hash).to_owned());
        Ok(object.map(|object| Reference {
            commit: lines
                .get(peeled.as_str())
                .map_or_else(|| object.clone(), |hash| (*hash).to_owned()),
            object,
        }))
    }

    async fn run(&self, attempted: &'static str, arguments: &[&str]) -> Result<Finished, Failure> {
        // Git compares the text, and knows the directory without a slash at its end.
        let safe = format!("safe.directory={}", self.path.to_string().trim_end_matches('/'));
        let settings = SETTINGS.into_iter().chain([safe.as_str()]);
        let settings = settings.flat_map(|setting| ["-c", setting]);
        let words = settings.chain(arguments.iter().copied()).map(OsString::from);
        let mut variables = BTreeMap::new();
        let mut set = |name: &str, value: &str| variables.insert(OsString::from(name), OsString::from(value));
        set("PATH", PATH);
        set("LC_ALL", "C");
        set("GIT_TERMINAL_PROMPT", "0");
        set("GIT_OPTIONAL_LOCKS", "0");
        set("SSH_ASKPASS_REQUIRE", "never");
        for name in [
            "https_proxy",
            "http_proxy",
            "no_proxy",
            "HTTPS_PROXY",
            "HTTP_PROXY",
            "NO_PROXY",
        ] {
            if let Some(value) = self.apply.handle().processes().variable(name) {
                variables.insert(name.into(), value);
            }
        }
        let mut set = |name: &str, value: &str| variables.insert(OsString::from(name), OsString::from(value));
        set(
            "GIT_SSH_COMMAND",
            self.access.ssh.as_deref().unwrap_or("ssh -o BatchMode=yes"),
        );
        if let Some((user, token)) = &self.access.login {
            // Only this process and root can read the environment of a process; arguments can be read by all.
            set("SETPOINT_GIT_USERNAME", user);
            set("SETPOINT_GIT_TOKEN", token);
            set("GIT_CONFIG_COUNT", "1");
            set("GIT_CONFIG_KEY_0", "credential.helper");
            set(
                "GIT_CONFIG_VALUE_0",
                "!f() { test \"$1\" = get && printf 'username=%s\\npassword=%s\\n' \"$SETPOINT_GIT_USERNAME\" \"$SETPOINT_GIT_TOKEN\"; }; f",
            );
        }
        if let Some(home) = &self.access.home {
            variables.insert("HOME".into(), home.clone());
        }
        let command = Command::new("git", words)
            .environment(Environment::Exactly(variables))
            .directory(self.path.as_path().to_path_buf());
        let command = self.access.rights.give(command);
        let cancellation = self.apply.cancellation();
        let stop = Stop {
            cancel: cancellation.token().clone(),
            interrupt: cancellation.interrupt_token().child_token(),
            ..Stop::default()
        };
        let failed = || Failure::new(attempted).on(&self.path);
        match timeout(WITHIN, self.apply.handle().processes().run(&command, &stop)).await {
            Ok(Ok(finished)) => Ok(finished),
            Ok(Err(error)) => {
                cancellation.check(attempted)?;
                Err(failed().because(error))
            }
            Err(_) => Err(failed().because(format!(
                "git did not end within {} minutes",
                WITHIN.as_secs() / 60
            ))),
        }
    }
}

/// The failure of a command: its cause, or the line in which git says it.
fn failure(attempted: &'static str, on: &str, finished: &Finished) -> Failure {
    let said = String::from_utf8_lossy(&finished.output.stderr()).into_owned();
    let causes = [
        (
            "Host key verification failed",
            "the key of the host is not known; set `host_key`",
        ),
        (
            "Permission denied (publickey",
            "the server does not accept the key; set `key`",
        ),
        (
            "could not read Username",
            "the server wants a login; set `username` and `token`",
        ),
        ("Authentication failed", "the server does not accept the login"),
    ];
    if let Some((_, cause)) = causes.iter().find(|(text, _)| said.contains(text)) {
        return Failure::new(attempted).on(on).because(*cause);
    }
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let tells =
        |line: &&&str| line.starts_with("fatal:") || line.starts_with("error:") || line.contains("ERROR:");
    let line = lines
        .iter()
        .find(tells)
        .or(lines.last())
        .copied()
        .unwrap_or_default();
    let line = line.trim_start_matches("fatal: ").trim_start_matches("error: ");
    let why = match line {
        "" => finished.exit.to_string(),
        line => line.to_owned(),
    };
    Failure::new(attempted).on(on).because(why)
}

fn text(finished: &Finished) -> String {
    let text = String::from_utf8_lossy(&finished.output.stdout()).into_owned();
    text.strip_suffix('\n').unwrap_or(&text).to_owned()
}
