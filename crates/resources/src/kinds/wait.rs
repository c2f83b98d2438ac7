//! The `wait` kind: a condition that must hold before the resources that follow run. Not one of mgmt's kinds.

use std::net::SocketAddr;
use std::time::Duration;

use setpoint_engine::{
    Apply, Attempting, Effect, Failure, Identity, IfSet, Level, Resource, Sends, Wanted, async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::download::{Address, DownloadError, Request, Trust};
use setpoint_host::files::{AbsolutePath, Entry};
use setpoint_host::processes::{Command, Stop};
use setpoint_host::systemd::{ActiveState, UnitName};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::block_in_place;
use tokio::time::{Instant, sleep, timeout};

use crate::enclosing;
use crate::pattern::Pattern;
use crate::sorts::{SERVICE, of_service_manager};
use crate::time_span::TimeSpan;
use crate::unit_control::manager;

/// The time that a condition has, if the program does not say it.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The time that one look at a condition may take.
const LOOK: Duration = Duration::from_secs(10);

/// The first pause between two looks, and the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// After this time, a message says what is missing.
const SAY_SO_AFTER: Duration = Duration::from_secs(1);

/// The most bytes of an answer over HTTP.
const ANSWER: u64 = 16 << 20;

/// A condition that must hold before the resources that follow run.
///
/// It waits until all conditions that are set hold, and fails after `timeout`. Once they held, it waits again only when it is notified.
///
/// ```mcl
/// wait "the database answers" {
///     tcp => "127.0.0.1:5432",
/// }
///
/// exec "migrate" {
///     cmd => "/usr/local/bin/migrate",
///
///     Depend => Wait["the database answers"],
/// }
/// ```
///
/// ```mcl
/// wait "the application is healthy" {
///     http => "http://127.0.0.1:8080/health",
///     body => "\"status\": *\"ok\"",
///     timeout => "2m",
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "wait", autoedge, receives, refreshable, asynchronous, sends = Sent)]
pub(crate) struct Wait {
    /// A port that accepts connections: `HOST:PORT`.
    tcp: String,
    /// A socket in the file system that accepts connections.
    socket: IfSet<AbsolutePath>,
    /// A path that exists.
    path: IfSet<AbsolutePath>,
    /// A path that does not exist.
    path_absent: IfSet<AbsolutePath>,
    /// A pattern that matches in the file `path`.
    contains: IfSet<Pattern>,
    /// An address that answers over HTTP.
    http: String,
    /// The status of that answer.
    #[param(default = 200)]
    status: i64,
    /// A pattern that matches in the body of that answer.
    body: IfSet<Pattern>,
    /// A PEM file with certificates of authorities for `http`, in addition to those of the system.
    ca: IfSet<AbsolutePath>,
    /// A unit of systemd that is active.
    unit: String,
    /// A command that succeeds. It is split into words at white space, without a shell.
    command: String,
    /// A port of this machine without connections.
    quiet_tcp: i64,
    /// How long to wait, such as `60s`, which is the default.
    timeout: IfSet<TimeSpan>,
    /// How long the conditions must hold without interruption, such as `5s`. Unset: once is enough.
    stable: IfSet<TimeSpan>,
    /// The pause between two looks. Unset: 50 ms at first, and then longer, up to 1 s.
    interval: IfSet<TimeSpan>,
    /// Whether the conditions held since the start or the last notification.
    #[state]
    has_held: bool,
}

/// Values that it sends.
#[derive(Sends)]
struct Sent {
    /// The seconds that it waited.
    seconds: f64,
}

#[async_trait]
impl Resource for Wait {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        let conditions = [
            !self.tcp.is_empty(),
            self.socket.is_some(),
            self.path.is_some(),
            self.path_absent.is_some(),
            !self.http.is_empty(),
            !self.unit.is_empty(),
            !self.command.is_empty(),
            self.quiet_tcp != 0,
        ];
        if !conditions.contains(&true) {
            let help = "set one of `tcp`, `socket`, `path`, `path_absent`, `http`, `unit`, `command` and `quiet_tcp`";
            invalid.push(Invalid::new("there is no condition to wait for").help(help));
        }
        if !self.tcp.is_empty() && port_of(&self.tcp).is_none() {
            let message = format!("`{}` is not a host and a port", self.tcp);
            invalid.push(Invalid::parameter("tcp", message).help("write it as `127.0.0.1:5432`"));
        }
        if !(0..=65_535).contains(&self.quiet_tcp) {
            invalid.push(Invalid::parameter("quiet_tcp", "must be a port, from 1 to 65535"));
        }
        if let Err(why) = Address::parse(&self.http)
            .map(|_| ())
            .or_else(|why| match self.http.is_empty() {
                true => Ok(()),
                false => Err(why),
            })
        {
            invalid.push(Invalid::parameter("http", format!("`{}`: {why}", self.http)));
        }
        if !(100..=599).contains(&self.status) {
            invalid.push(Invalid::parameter("status", "must be from 100 to 599"));
        }
        let needs = [
            (self.contains.is_some() && self.path.is_none(), "contains", "path"),
            (self.body.is_some() && self.http.is_empty(), "body", "http"),
            (self.ca.is_some() && self.http.is_empty(), "ca", "http"),
        ];
        for (is_wrong, parameter, other) in needs {
            if is_wrong {
                invalid.push(Invalid::parameter(parameter, format!("`{other}` is not set")));
            }
        }
        if !self.unit.is_empty() && UnitName::new(self.unit.clone()).is_err() {
            let message = format!("`{}` is not the name of a unit", self.unit);
            invalid
                .push(Invalid::parameter("unit", message).help("write it with its suffix: `nginx.service`"));
        }
    }

    fn wanted(&self) -> Vec<Wanted> {
        let paths = [&self.path, &self.socket, &self.ca]
            .into_iter()
            .filter_map(|path| path.0.as_ref());
        let paths: Vec<Identity> = paths.map(enclosing::file).collect();
        let service = self.unit.strip_suffix(".service");
        let service = service.map(|name| of_service_manager(&SERVICE, false, name));
        vec![Wanted::first_of_each(
            paths.into_iter().chain(service).collect::<Vec<_>>(),
        )]
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let begun = Instant::now();
        if apply.refresh_pending() {
            self.has_held = false;
        }
        if self.has_held {
            return Ok(());
        }
        if !apply.may_repair() {
            if let Some(missing) = self.missing(apply).await? {
                apply.uncertain(|| format!("waits until {missing}"));
                let _ = apply.act(Effect::Run, "wait", "not yet", missing);
            }
            return Ok(());
        }
        self.until_it_holds(begun, apply).await?;
        self.has_held = true;
        if apply.refresh_pending() {
            // So that it notifies those who wait for it.
            let _ = apply.act(Effect::Run, "wait", "notified", "holds");
        }
        apply.send(Sent {
            seconds: begun.elapsed().as_secs_f64(),
        });
        Ok(())
    }
}

impl Wait {
    async fn until_it_holds(&self, begun: Instant, apply: &Apply<'_>) -> Result<(), Failure> {
        let limit = self.timeout.as_ref().map_or(TIMEOUT, TimeSpan::length);
        let stable = self.stable.as_ref().map_or(Duration::ZERO, TimeSpan::length);
        let mut pause = self.interval.as_ref().map_or(FIRST_PAUSE, TimeSpan::length);
        let mut holds_since = None;
        let mut is_told = false;
        loop {
            let missing = self.missing(apply).await?;
            let missing = match missing {
                None => {
                    let since = *holds_since.get_or_insert_with(Instant::now);
                    if since.elapsed() >= stable {
                        return Ok(());
                    }
                    format!("it holds for {} s", stable.as_secs_f64())
                }
                Some(missing) => {
                    holds_since = None;
                    missing
                }
            };
            if begun.elapsed() >= limit {
                let why = format!("after {} s it is not so that {missing}", limit.as_secs_f64());
                return Err(Failure::new("wait").because(why));
            }
            if begun.elapsed() >= SAY_SO_AFTER && !std::mem::replace(&mut is_told, true) {
                apply.log(Level::Info, format!("waits until {missing}"));
            }
            tokio::select! {
                () = sleep(pause.min(limit.saturating_sub(begun.elapsed()))) => {}
                () = apply.cancellation().cancelled() => apply.cancellation().check("wait")?,
            }
            if self.interval.is_none() {
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }

    /// The first condition that does not hold, as a part of a sentence.
    async fn missing(&self, apply: &Apply<'_>) -> Result<Option<String>, Failure> {
        if let Some(path) = &*self.path
            && let Some(missing) = block_in_place(|| self.missing_path(path))?
        {
            return Ok(Some(missing));
        }
        if let Some(path) = &*self.path_absent
            && block_in_place(|| exists(path))?
        {
            return Ok(Some(format!("{path} is gone")));
        }
        if !self.tcp.is_empty() && !matches!(timeout(LOOK, TcpStream::connect(&self.tcp)).await, Ok(Ok(_))) {
            return Ok(Some(format!("{} accepts connections", self.tcp)));
        }
        if let Some(path) = &*self.socket
            && !matches!(
                timeout(LOOK, UnixStream::connect(path.as_path())).await,
                Ok(Ok(_))
            )
        {
            return Ok(Some(format!("{path} accepts connections")));
        }
        if !self.http.is_empty()
            && let Some(missing) = self.missing_answer().await
        {
            return Ok(Some(missing));
        }
        if !self.unit.is_empty() && !self.unit_is_active(apply).await? {
            return Ok(Some(format!("{} is active", self.unit)));
        }
        if !self.command.is_empty() && !self.command_succeeds(apply).await? {
            return Ok(Some(format!("`{}` succeeds", self.command)));
        }
        if let Ok(port) = u16::try_from(self.quiet_tcp)
            && port != 0
        {
            let connections = block_in_place(|| connections_of(port))?;
            if connections > 0 {
                return Ok(Some(format!(
                    "port {port} has no connections; it has {connections}"
                )));
            }
        }
        Ok(None)
    }

    fn missing_path(&self, path: &AbsolutePath) -> Result<Option<String>, Failure> {
        if !exists(path)? {
            return Ok(Some(format!("{path} exists")));
        }
        let Some(pattern) = &*self.contains else {
            return Ok(None);
        };
        let contents = Entry::at(path)
            .and_then(|entry| entry.follow())
            .and_then(|entry| entry.read());
        let contents = contents.attempting("read", path)?;
        let matches = pattern.in_lines().is_match(&contents);
        Ok((!matches).then(|| format!("{path} has a match of `{}`", pattern.written())))
    }

    async fn missing_answer(&self) -> Option<String> {
        let wanted = format!("{} answers with the status {}", self.http, self.status);
        let Ok(address) = Address::parse(&self.http) else {
            return Some(wanted);
        };
        let mut request = Request::new(address);
        request.trust = Trust {
            authorities: self.ca.as_ref().map(|path| path.as_path().to_path_buf()),
            identity: None,
        };
        let Ok(answer) = timeout(LOOK, request.read(ANSWER)).await else {
            return Some(wanted);
        };
        let is_status = |status: &str| status.starts_with(&self.status.to_string());
        match (answer, &*self.body) {
            (Ok(body), Some(pattern)) if self.status == 200 => {
                (!pattern.in_lines().is_match(&body)).then(|| {
                    format!(
                        "the answer of {} has a match of `{}`",
                        self.http,
                        pattern.written()
                    )
                })
            }
            (Ok(_), None) if self.status == 200 => None,
            (Err(DownloadError::Refused { status, .. }), None) if is_status(&status) => None,
            _ => Some(wanted),
        }
    }

    async fn unit_is_active(&self, apply: &Apply<'_>) -> Result<bool, Failure> {
        let name = UnitName::new(self.unit.clone());
        let name = name.map_err(|error| Failure::new("look at the unit").because(error))?;
        let manager = manager(apply.handle(), false)?;
        let unit = manager.unit(&name, false).await.attempting("look at", &name)?;
        Ok(unit.active_state == ActiveState::Active)
    }

    async fn command_succeeds(&self, apply: &Apply<'_>) -> Result<bool, Failure> {
        let Some(command) = Command::words(&self.command) else {
            return Ok(true);
        };
        let cancellation = apply.cancellation();
        let stop = Stop {
            cancel: cancellation.token().clone(),
            interrupt: cancellation.interrupt_token().child_token(),
            ..Stop::default()
        };
        let run = timeout(LOOK, apply.handle().processes().run(&command, &stop)).await;
        cancellation.check("wait")?;
        match run {
            Ok(Ok(finished)) => Ok(finished.exit.is_success()),
            Ok(Err(error)) => Err(Failure::new("run the command").because(error)),
            Err(_) => Ok(false),
        }
    }
}

fn exists(path: &AbsolutePath) -> Result<bool, Failure> {
    match Entry::at(path) {
        Ok(entry) => Ok(entry.stat().attempting("look at", path)?.is_some()),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The port of `HOST:PORT`.
fn port_of(text: &str) -> Option<u16> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some(address.port());
    }
    let (host, port) = text.rsplit_once(':')?;
    let is_host = !host.is_empty() && !host.contains([':', '/', ' ']);
    port.parse().ok().filter(|port| is_host && *port > 0)
}

/// The number of established connections to a local port.
fn connections_of(port: u16) -> Result<usize, Failure> {
    /// As `/proc/net/tcp` writes it.
    const ESTABLISHED: &str = "01";
    let mut count = 0;
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let path = AbsolutePath::new(table).expect("it begins with a slash");
        let read = match Entry::at(&path).and_then(|entry| entry.read()) {
            Err(error) if error.is_not_found() => continue,
            read => read.attempting("read", &path)?,
        };
        let text = String::from_utf8_lossy(&read);
        let own = format!(":{port:04X}");
        let lines = text
            .lines()
            .skip(1)
            .map(|line| line.split_whitespace().collect::<Vec<_>>());
        count += lines
            .filter(|words| {
                words.get(1).is_some_and(|local| local.ends_with(&own)) && words.get(3) == Some(&ESTABLISHED)
            })
            .count();
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_read() {
        for (text, port) in [
            ("127.0.0.1:80", Some(80)),
            ("[::1]:80", Some(80)),
            ("db.example.org:5432", Some(5432)),
            ("db", None),
            (":80", None),
            ("::1:80", None),
            ("db:http", None),
            ("db:0", None),
        ] {
            assert_eq!(port_of(text), port, "{text}");
        }
    }
}
