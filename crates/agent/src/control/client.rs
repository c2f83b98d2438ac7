//! Asking a running process, as commands do. Nothing here takes longer than its time limit, whatever the process does.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use serde::Deserialize;
use setpoint_diagnostics::visible;
use setpoint_programs::failure::{Failure, system_text};

use super::protocol::{Answer, Ask, ErrorCode, Hello, PROTOCOL, Request, ResourceStatus, Unknown};
use super::socket;
use crate::prefix::OF_ROOT;

/// How long the process may take to begin to answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// How long it may take for its first line: that takes none of its work.
const GREETS_WITHIN: Duration = Duration::from_secs(5);

/// Bytes of a line of the process.
const LONGEST_ANSWER: u64 = 64 << 20;

/// How lines with resources begin as this version writes them.
const ROWS_BEGIN: &str = r#"{"answer":"resources","#;

/// What is in such a line.
#[derive(Deserialize)]
struct Rows {
    id: u64,
    resources: Vec<ResourceStatus>,
}

/// A connection to a running process.
pub struct Client {
    reader: BufReader<UnixStream>,
    /// Who answers.
    pub hello: Hello,
    place: PathBuf,
    next: u64,
}

impl Client {
    /// Connects to the process that works in the directory `place`; `is_named` says whether the user chose the directory.
    ///
    /// # Errors
    /// When no process answers there.
    pub fn connect(place: PathBuf, is_named: bool) -> Result<Client, Failure> {
        let stream = connect(&place).map_err(|error| not_there(&place, is_named, &error))?;
        let mut client = Client {
            reader: BufReader::new(stream),
            hello: Hello {
                protocol: 0,
                program: String::new(),
                version: String::new(),
                pid: 0,
                hostname: String::new(),
                started: 0.0,
            },
            place,
            next: 0,
        };
        client.set_patience(Some(GREETS_WITHIN))?;
        let line = client.line()?.ok_or_else(|| client.went())?;
        client.hello = client.greeted(&line)?;
        client.set_patience(Some(ANSWERS_WITHIN))?;
        Ok(client)
    }

    /// Whether a process listens in the directory `place`, whether it answers or not.
    #[must_use]
    pub fn has_listener(place: &Path) -> bool {
        connect(place).is_ok()
    }

    /// How long the next line may take; none: as long as it likes.
    pub fn set_patience(&self, patience: Option<Duration>) -> Result<(), Failure> {
        let stream = self.reader.get_ref();
        let set = stream
            .set_read_timeout(patience)
            .and_then(|()| stream.set_write_timeout(Some(ANSWERS_WITHIN)));
        set.map_err(|error| Failure::io("set a time limit", &error))
    }

    /// Asks for something; what is answered comes from [`Client::answer`]. An error of the process is told as one.
    pub fn ask(&mut self, ask: Ask) -> Result<(), Failure> {
        self.next += 1;
        let request = Request { id: self.next, ask };
        let mut line = serde_json::to_string(&request).unwrap_or_default();
        line.push('\n');
        let sent = self.reader.get_mut().write_all(line.as_bytes());
        sent.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => self.went(),
            _ => self.broken(&error),
        })
    }

    /// The next line of the answer, as it is; none when the process has closed the connection.
    pub fn line(&mut self) -> Result<Option<String>, Failure> {
        let mut bytes = Vec::new();
        let mut limited = (&mut self.reader).take(LONGEST_ANSWER);
        match limited.read_until(b'\n', &mut bytes) {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
            Err(error) => Err(self.broken(&error)),
        }
    }

    /// The next line of the answer.
    pub fn answer(&mut self) -> Result<Answer, Failure> {
        let line = self.line()?.ok_or_else(|| self.went())?;
        self.read(&line)
    }

    /// Whether a resource, `KIND[NAME]`, is there; if not, what is probably meant.
    pub fn look_for(&mut self, resource: &str) -> Result<Result<(), Unknown>, Failure> {
        self.ask(Ask::Status {
            resources: vec![resource.to_owned()],
            kinds: Vec::new(),
            standings: Some(Vec::new()),
        })?;
        let line = self.line()?.ok_or_else(|| self.went())?;
        if let Ok(Answer::Error {
            code: ErrorCode::UnknownResource,
            help,
            ..
        }) = serde_json::from_str(&line)
        {
            let resource = resource.to_owned();
            return Ok(Err(Unknown { resource, help }));
        }
        match self.read(&line)? {
            Answer::Status { .. } => Ok(Ok(())),
            _ => Err(self.strange()),
        }
    }

    /// What a line says. That the process refuses is a failure.
    pub fn read(&self, line: &str) -> Result<Answer, Failure> {
        // The long lines: serde reads what has its sort in a field twice.
        if line.starts_with(ROWS_BEGIN)
            && let Ok(Rows { id, resources }) = serde_json::from_str(line)
        {
            return Ok(Answer::Resources { id, resources });
        }
        match serde_json::from_str(line) {
            Ok(Answer::Error {
                code, message, help, ..
            }) => Err(self.refused(code, &message).hint_if(help)),
            Ok(answer) => Ok(answer),
            Err(_) => Err(self.strange()),
        }
    }

    /// What a line says that is not one of those that were asked for.
    pub fn strange(&self) -> Failure {
        let failure = Failure::wrong(format!("{} answers in a way that is not understood", self.who()));
        let own = env!("CARGO_PKG_VERSION");
        match self.hello.version.is_empty() || self.hello.version == own {
            true => failure,
            false => failure.hint(format!(
                "it has version {}, and this is {own}: ask it with its own `setpoint`",
                self.hello.version
            )),
        }
    }

    fn refused(&self, code: ErrorCode, message: &str) -> Failure {
        match code {
            ErrorCode::Unresponsive | ErrorCode::Ended | ErrorCode::TooManyClients => {
                Failure::not_running(message.to_owned())
            }
            ErrorCode::UnknownRequest | ErrorCode::NotARequest => self.strange().because(message),
            ErrorCode::Invalid => Failure::usage(message.to_owned()),
            _ => Failure::wrong(message.to_owned()),
        }
    }

    fn greeted(&self, line: &str) -> Result<Hello, Failure> {
        #[derive(Deserialize)]
        struct Version {
            protocol: u32,
            #[serde(default)]
            version: String,
        }
        let strange = || Failure::wrong(format!("{} does not speak our protocol", self.who()));
        let greeting = serde_json::from_str::<Version>(line);
        if let Ok(Version { protocol, version }) = &greeting
            && *protocol != PROTOCOL
        {
            let own = env!("CARGO_PKG_VERSION");
            return Err(Failure::wrong(format!(
                "{} speaks version {protocol} of the protocol, and this program {PROTOCOL}",
                self.who()
            ))
            .hint(format!(
                "it is setpoint {version}, and this is {own}: restart it, or ask it with its own"
            )));
        }
        match self.read(line)? {
            Answer::Hello(hello) => Ok(hello),
            _ => Err(strange()),
        }
    }

    /// The process has ended or given us up.
    fn went(&self) -> Failure {
        Failure::not_running(format!("{} has closed the connection", self.who()))
            .hint("it has ended, or is just ending")
    }

    fn broken(&self, error: &io::Error) -> Failure {
        if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
            return Failure::io(format!("speak with {}", self.who()), error);
        }
        silent(self.pid(), &self.who())
    }

    fn pid(&self) -> Option<u32> {
        let peer = rustix::net::sockopt::socket_peercred(self.reader.get_ref()).ok()?;
        u32::try_from(peer.pid.as_raw_nonzero().get()).ok()
    }

    fn who(&self) -> String {
        match self.pid() {
            Some(pid) => format!("process {pid}"),
            None => format!("the process of {}", self.place.display()),
        }
    }
}

/// Says that a resource is not there, and what that means for what was asked.
pub fn missing(unknown: &Unknown, meaning: &str) -> String {
    let mut text = format!("there is no resource {}: {meaning}", visible(&unknown.resource));
    if let Some(help) = &unknown.help {
        text.push_str(&format!("\n  help: {}", visible(help)));
    }
    text
}

/// Connects. The kernel lets one wait for a process that does not take connections any more, and that is not waited for.
fn connect(place: &Path) -> io::Result<UnixStream> {
    let (tell, told) = channel();
    let to = place.to_owned();
    std::thread::spawn(move || tell.send(socket::connect(&to)));
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    told.recv_timeout(GREETS_WITHIN).map_err(late)?
}

/// Says why there is nobody to ask.
fn not_there(place: &Path, is_given: bool, error: &io::Error) -> Failure {
    let path = place.display().to_string();
    let path = visible(&path);
    let is_root = rustix::process::geteuid().is_root();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            if let Some(pid) = socket::holder(place) {
                let failure = Failure::not_running(format!(
                    "process {pid} uses the state directory {path}, but has no control socket"
                ));
                return match socket::is_taken(place) {
                    true => failure
                        .because(format!("something else has the name `{}`", socket::NAME))
                        .hint("move it away, and restart the process"),
                    false => failure.hint("it is starting or ending, or its version has no control socket"),
                };
            }
            let failure =
                Failure::not_running(format!("no running agent found for the state directory {path}"));
            match (is_given, is_root) {
                (false, false) => failure.hint(format!(
                    "this is your own state directory; the one of a service is {OF_ROOT}: run the command as root"
                )),
                _ => failure.hint("if the agent has another state directory, pass `--state-dir DIR`"),
            }
        }
        io::ErrorKind::PermissionDenied => Failure::not_running(format!(
            "you are not allowed to control the agent with the state directory {path}"
        ))
        .hint("it belongs to another user: ask as that user, or as root"),
        io::ErrorKind::TimedOut => match socket::holder(place) {
            Some(pid) => silent(Some(pid), &format!("process {pid}")),
            None => silent(None, &format!("the agent with the state directory {path}")),
        },
        _ => Failure::not_running(format!(
            "cannot connect to the agent with the state directory {path}"
        ))
        .because(system_text(error)),
    }
}

/// Says that a process gives no answer, and why that may be.
fn silent(pid: Option<u32>, who: &str) -> Failure {
    let failure = Failure::not_running(format!("{who} gives no answer"));
    match pid.and_then(|pid| Some((pid, state_of(pid)?))) {
        Some((pid, 'T' | 't')) => failure
            .because("it is stopped")
            .hint(format!("`kill -CONT {pid}` lets it go on")),
        Some((_, 'D')) => failure.because("it waits for a disk or for the kernel"),
        Some(_) => failure.hint("the machine may be under heavy load, or short of memory"),
        None => failure,
    }
}

/// What the kernel says a process does: the letter of proc_pid_stat(5).
fn state_of(pid: u32) -> Option<char> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(") ")?.1.chars().next()
}
