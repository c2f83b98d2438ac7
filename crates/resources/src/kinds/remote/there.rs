//! The private directory on the other host, and what is done there: shell scripts, each of which first makes sure that nobody else can change what it works on.
//!
//! What a script says begins behind a mark, as the shells of some users print a greeting first. It says it in lines `name=value`.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use setpoint_diagnostics::visible;
use setpoint_engine::Failure;
use setpoint_host::ssh::{RemoteCommand, RemoteInput, RemoteOutput, SshConnection, quoted};
use sha2::{Digest, Sha256};

const PRELUDE: &str = include_str!("scripts/prelude.sh");
const LOOK: &str = include_str!("scripts/look.sh");
const PUT: &str = include_str!("scripts/put.sh");
const VERSION: &str = include_str!("scripts/version.sh");
const DEPENDENCIES: &str = include_str!("scripts/dependencies.sh");
const INSTALL: &str = include_str!("scripts/install.sh");
const HOSTNAME: &str = include_str!("scripts/hostname.sh");
const ACCESS: &str = include_str!("scripts/access.sh");
const START: &str = include_str!("scripts/start.sh");
const WAIT: &str = include_str!("scripts/wait.sh");
const BECOME: &str = include_str!("scripts/become.sh");
const SIGNAL: &str = include_str!("scripts/signal.sh");
const LOG: &str = include_str!("scripts/log.sh");
const REMOVE: &str = include_str!("scripts/remove.sh");

/// What stands before what a script says.
const MARK: &str = "--setpoint--";

/// With this status a script ends that has refused something.
const REFUSED: u32 = 3;

/// How long a script may take, one that copies the program, and one that installs packages.
const SOON: Duration = Duration::from_secs(60);
const COPIED: Duration = Duration::from_secs(30 * 60);
const INSTALLED: Duration = Duration::from_secs(30 * 60);

/// Where on the other host everything is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// `home`, or a path.
    base: &'static str,
    first: String,
    last: String,
    program: String,
}

impl Place {
    /// That of the resource `name`.
    pub(super) fn new(name: &str, program: &str, caching: bool) -> Place {
        let hash = Sha256::digest(format!("remote:{name}"));
        let digits: String = hash.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
        Place {
            base: if caching { "/var/lib" } else { "home" },
            first: if caching {
                program.to_owned()
            } else {
                format!(".{program}")
            },
            last: digits,
            program: program.to_owned(),
        }
    }

    /// Where that host has what lets it in at the store.
    pub(super) fn access(&self) -> String {
        format!("/etc/{}/remote", self.program)
    }
}

/// What is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// The path of the directory, also if it is not there.
    pub(super) directory: String,
    pub(super) there: bool,
    pub(super) runs: bool,
    /// The hash of the program, where it was asked for and there is one.
    pub(super) hash: Option<String>,
    /// With which status it ended last, if that was written down.
    pub(super) exit: Option<String>,
}

/// The other host.
pub(super) struct There {
    connection: Arc<SshConnection>,
    place: Place,
    /// How it is called in messages.
    shown: String,
}

impl There {
    pub(super) fn new(connection: Arc<SshConnection>, place: Place, shown: String) -> There {
        There {
            connection,
            place,
            shown,
        }
    }

    pub(super) fn connection(&self) -> &SshConnection {
        &self.connection
    }

    /// Gives the connection back.
    pub(super) fn into_connection(self) -> Arc<SshConnection> {
        self.connection
    }

    /// Looks at everything, the program included.
    pub(super) async fn look(&self) -> Result<Found, Failure> {
        self.find("hash").await
    }

    /// Looks whether the program runs.
    pub(super) async fn state(&self) -> Result<Found, Failure> {
        self.find("state").await
    }

    async fn find(&self, what: &str) -> Result<Found, Failure> {
        let said = self.script("look at the program on", LOOK, &[what]).await?;
        let value = |name| said.value(name).map(str::to_owned);
        Ok(Found {
            directory: value("directory").unwrap_or_default(),
            there: said.value("there").is_some(),
            runs: said.value("runs").is_some(),
            hash: value("hash").filter(|hash| !hash.is_empty()),
            exit: value("exit"),
        })
    }

    /// Copies the program there.
    pub(super) async fn put_program(&self, program: File, hash: &str) -> Result<(), Failure> {
        let arguments = [&*self.place.program, "0770", hash];
        self.put_as(
            "copy the program to",
            &arguments,
            RemoteInput::File(program),
            COPIED,
        )
        .await
    }

    /// Puts a small file there.
    pub(super) async fn put(&self, name: &str, content: Vec<u8>) -> Result<(), Failure> {
        let hash: String = Sha256::digest(&content)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let arguments = [name, "0600", &hash];
        self.put_as("put a file to", &arguments, RemoteInput::Bytes(content), SOON)
            .await
    }

    /// Puts what is given into a file there; the arguments are its name, mode and hash.
    async fn put_as(
        &self,
        attempted: &'static str,
        arguments: &[&str; 3],
        input: RemoteInput,
        limit: Duration,
    ) -> Result<(), Failure> {
        let ask = self.run(attempted, PUT, arguments, input, limit);
        ask.await.map(drop)
    }

    /// Whether the program can run there.
    pub(super) async fn try_program(&self) -> Result<(), Failure> {
        let said = self.script("run the program on", VERSION, &[]).await;
        said.map(drop)
    }

    /// Installs what the program needs.
    pub(super) async fn install_dependencies(&self) -> Result<(), Failure> {
        self.put("deps.sh", DEPENDENCIES.as_bytes().to_vec()).await?;
        let attempted = "install what the program needs on";
        let ask = self.run(attempted, INSTALL, &[], RemoteInput::Nothing, INSTALLED);
        ask.await.map(drop)
    }

    /// The name of that host.
    pub(super) async fn hostname(&self) -> Result<String, Failure> {
        let said = self.script("ask for the host name of", HOSTNAME, &[]).await?;
        Ok(said.value("name").unwrap_or_default().to_owned())
    }

    /// Which files that host has to be let in at the store, and its user there.
    pub(super) async fn access(&self) -> Result<(Vec<String>, Option<String>), Failure> {
        let directory = self.place.access();
        let said = self
            .script("look for the certificates on", ACCESS, &[&directory])
            .await?;
        let has = said.values("has").map(str::to_owned).collect();
        Ok((has, said.value("user").map(str::to_owned)))
    }

    /// Starts the program with these arguments.
    pub(super) async fn start(&self, arguments: &[String]) -> Result<(), Failure> {
        let mut all = vec![WAIT, BECOME];
        all.extend(arguments.iter().map(String::as_str));
        self.script("start the program on", START, &all).await.map(drop)
    }

    /// Sends the program a signal, by its name without `SIG`.
    pub(super) async fn signal(&self, signal: &str) -> Result<(), Failure> {
        self.script("stop the program on", SIGNAL, &[signal])
            .await
            .map(drop)
    }

    /// The last lines that the program has printed.
    pub(super) async fn log_tail(&self) -> Result<Vec<String>, Failure> {
        let said = self.script("read the log of the program on", LOG, &[]).await?;
        Ok(said.lines)
    }

    /// Removes everything.
    pub(super) async fn remove(&self) -> Result<(), Failure> {
        self.script("remove the program from", REMOVE, &[])
            .await
            .map(drop)
    }

    async fn script(
        &self,
        attempted: &'static str,
        script: &str,
        arguments: &[&str],
    ) -> Result<Said, Failure> {
        self.run(attempted, script, arguments, RemoteInput::Nothing, SOON)
            .await
    }

    async fn run(
        &self,
        attempted: &'static str,
        script: &str,
        arguments: &[&str],
        input: RemoteInput,
        limit: Duration,
    ) -> Result<Said, Failure> {
        let failed = |why: String| Failure::new(attempted).on(&self.shown).because(why);
        let command = RemoteCommand {
            line: line(&self.place, script, arguments),
            input,
            limit,
        };
        let ran = self.connection.run(command).await;
        let ran = ran.map_err(|error| failed(error.to_string()))?;
        let said = Said::of(&ran);
        match said {
            Some(said) if ran.exit.is_success() => Ok(said),
            Some(said) if ran.exit == setpoint_host::ssh::RemoteExit::Code(REFUSED) => {
                let why = said.value("refused").unwrap_or("it was refused").to_owned();
                Err(failed(why))
            }
            Some(_) => Err(failed(format!("it {}{}", ran.exit, last_words(&ran)))),
            None => Err(failed(format!(
                "no shell like `sh` has answered: what was run {}{}",
                ran.exit,
                last_words(&ran)
            ))),
        }
    }
}

/// What the user's shell on the other host is given.
fn line(place: &Place, script: &str, arguments: &[&str]) -> String {
    let script = format!("{PRELUDE}\n{script}");
    let own = [place.base, &place.first, &place.last, &place.program];
    let words = ["exec", "sh", "-c", &script, "sh"];
    let words = words.iter().chain(&own).chain(arguments);
    words.map(|word| quoted(word)).collect::<Vec<String>>().join(" ")
}

/// What a script has said.
struct Said {
    lines: Vec<String>,
}

impl Said {
    fn of(ran: &RemoteOutput) -> Option<Said> {
        let text = String::from_utf8_lossy(&ran.output);
        let mut lines = text.lines();
        lines.by_ref().find(|line| *line == MARK)?;
        Some(Said {
            lines: lines.map(|line| visible(line).into_owned()).collect(),
        })
    }

    fn values<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s str> {
        let with_name = move |line: &'s String| line.split_once('=').filter(|(found, _)| *found == name);
        self.lines.iter().filter_map(with_name).map(|(_, value)| value)
    }

    fn value<'s>(&'s self, name: &'s str) -> Option<&'s str> {
        self.values(name).next()
    }
}

/// The last lines that a command printed as errors, or else at all.
fn last_words(ran: &RemoteOutput) -> String {
    let text = match ran.errors.iter().all(u8::is_ascii_whitespace) {
        true => &ran.output,
        false => &ran.errors,
    };
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && *line != MARK)
        .collect();
    let last = &lines[lines.len().saturating_sub(3)..];
    match last.is_empty() {
        true => String::new(),
        false => format!(", and said: {}", visible(&last.join("; "))),
    }
}
