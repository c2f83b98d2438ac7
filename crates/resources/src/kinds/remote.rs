//! The `remote` kind: our own program on another host, as a client of the cluster that this one is in.
//!
//! How the host is reached is in `remote/link.rs`, what lies and happens there in `remote/there.rs` and the scripts beside it, how the program is provided, watched over
//! and ended in `remote/program.rs`, and what the parameters mean in `remote/settings.rs`.
//!
//! Beside what the reference has: a certificate, a user or a name of keys that the store wants. What differs from the reference: that a transient program was run is told as
//! a repair; a program that cannot run there is found before it is started; a host with the name of this one is refused.

mod link;
mod program;
mod settings;
mod there;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use setpoint_engine::{
    Apply, Cancellation, DriftValue, Failure, FailureReason, Handle, Level, Resource, Watch, Watcher, Words,
    async_trait,
};
use setpoint_graph::{Doubt, Invalid, MetaParameters, Parameters};
use setpoint_host::ssh::SshAddress;
use setpoint_value::Value;

use crate::Joining;
use crate::joining::reachable;
use link::Link;
use program::{ENDS_AT_LAST_WITHIN, ENDS_WITHIN, own_hash};
use settings::check_hostname;
use there::{Found, Place, There};

/// How often it is looked at whether the program runs.
const LOOK_EACH: Duration = Duration::from_secs(30);

/// Runs this program on another host, over SSH, as a member of the cluster that this host is in.
///
/// The program is copied there, and runs what is deployed to the cluster, under the name `hostname`. The store must be an etcd. The other host has to be Linux on a processor
/// of the same kind, with a shell and the usual tools; nothing has to be installed there.
///
/// Whether the right host answers is always checked, by `hostkey` or `~/.ssh/known_hosts`; a host that is not known is refused. The program lies in a directory that belongs
/// to the user of the URL and that nobody else can write to, with its log: `/var/lib/setpoint/remote/`, and in it a part that follows from the resource's name.
///
/// One that brings the other host into its state and ends, while this one waits. The store is reached through the SSH connection:
///
/// ```mcl
/// remote "ssh://root@new-1.example.com" {
///     hostname => "new-1",
///     converger_timeout => 5,
/// }
/// ```
///
/// One that stays, and reaches the store by itself at the addresses that its members advertise:
///
/// ```mcl
/// remote "ssh://root@web-1.example.com:2222" {
///     hostname => "web-1",
///     transient => false,
///     tunnelled => false,
///     ssh_id => "~/.ssh/id_ed25519",
/// }
/// ```
///
/// A transient program that has ended with another status than 0 fails the resource, and the last lines of its log are shown. A store that lets in who shows a certificate or a
/// password gets those of the other host, from `/etc/setpoint/remote/` there: `cert.pem` and `key.pem`, `user` and `password`. What this host shows is never copied.
#[derive(Debug, Resource)]
#[resource(kind = "remote", asynchronous)]
pub(crate) struct Remote {
    /// Where the host is: `ssh://user@host:port`. User `root` and port 22 need not be said. Unset: the resource's name.
    remote: String,
    /// Its name in the cluster. Unset: what `hostname` says there.
    hostname: String,
    /// Whether the program runs there.
    #[param(default = State::Running)]
    state: State,
    /// The private key, by its path. Unset: all `~/.ssh/id_*` with their `.pub` beside them, and those of an agent. Empty: none.
    ssh_id: Option<String>,
    /// The key of the host, as `ssh-keyscan` shows it; tried before those in `~/.ssh/known_hosts`.
    hostkey: String,
    /// Whether somebody is asked for a password at the terminal, if no key is taken. One is asked for at a time.
    interactive: bool,
    /// How many seconds an answer may take; 0: without end.
    interactive_timeout: i64,
    /// How often somebody is asked; 0 or less: until the password is right.
    max_password_tries: i64,
    /// Whether `remote` may hold a password: `ssh://user:password@host`. It should be `sensitive`.
    allow_cleartext_password: bool,
    /// Whether program and directory stay there. If not, they are in the home directory, and are removed when a run was good.
    #[param(default = true)]
    caching: bool,
    /// Whether the program is expected to end by itself; then its end is waited for.
    #[param(default = true)]
    transient: bool,
    /// Whether the program reaches the store through the SSH connection, by way of this host. Only while it is waited for.
    #[param(default = true)]
    tunnelled: bool,
    /// Where the other host listens for its program then: `host:port`; with the port 0 at any that is free.
    #[param(default = "127.0.0.1:2379".to_owned())]
    tunnel_addr: String,
    /// Whether the libraries of the system that the program is linked with are installed there, by dnf, yum or apt, if it cannot run.
    install_deps: bool,
    /// After how many seconds without anything to do the program ends. Unset: as this one, if this one ends when nothing is left to do.
    converger_timeout: Option<i64>,
    #[name]
    name: String,
    #[state]
    link: Option<Arc<Link>>,
}

/// Whether the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Stopped,
}

impl Words for State {
    const ONE: &'static str = "a state of a remote program";

    fn words() -> impl Iterator<Item = (&'static str, State)> {
        [("running", State::Running), ("stopped", State::Stopped)].into_iter()
    }
}

#[async_trait]
impl Resource for Remote {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        self.check(invalid);
    }

    fn doubt(name: &str, parameters: &Parameters, invalid: &mut Vec<Invalid>) {
        // Without leave it is refused anyway.
        let is_allowed = parameters
            .get("allow_cleartext_password")
            .and_then(Value::as_bool);
        let has_password = |url: &Value| address_of(url).is_some_and(|address| address.password.is_some());
        if is_allowed != Some(true) {
            return;
        }
        let (parameter, message) = match parameters.get("remote") {
            Some(url) if url.is_sensitive() || !has_password(url) => return,
            Some(_) => (
                "remote",
                "the password in the URL is shown wherever the parameter is",
            ),
            None if !has_password(&Value::str(name)) => return,
            None => (
                "allow_cleartext_password",
                "the password in the name is shown wherever the resource is",
            ),
        };
        let help = "write `remote => sensitive(\"…\"),`, and let the program read it from a file";
        invalid.push(Invalid::doubt(Doubt::ReadableSecret, parameter, message).help(help));
    }

    fn same(name: &str, a: &Parameters, b: &Parameters) -> bool {
        let name = Value::str(name);
        let split = |parameters: &Parameters| {
            let url = parameters.get("remote").unwrap_or(&name).clone();
            let rest = parameters.iter().filter(|(parameter, _)| *parameter != "remote");
            let rest: Vec<(&'static str, Value)> = rest.map(|(name, value)| (name, value.clone())).collect();
            (url, rest)
        };
        let ((url_a, rest_a), (url_b, rest_b)) = (split(a), split(b));
        let leads_to_same = url_a == url_b
            || url_a.is_sensitive() == url_b.is_sensitive()
                && address_of(&url_a).is_some_and(|address| address_of(&url_b) == Some(address));
        leads_to_same && rest_a == rest_b
    }

    fn init(&mut self, handle: &Handle) -> Result<(), Failure> {
        handle.extension::<Joining>()?;
        let options = self.options();
        let (options, passwords) =
            options.map_err(|invalid| Failure::new("use the parameters").because(invalid.message))?;
        let place = Place::new(&self.name, handle.program(), self.caching);
        self.link = Some(Arc::new(Link::new(options, passwords, place)));
        Ok(())
    }

    fn watches(&self) -> Vec<Watch> {
        let is_followed = self.state == State::Running && !self.transient;
        let link = self.link.clone().filter(|_| is_followed);
        let watch = link.map(|link| Watch::own(move |watcher| follow(link, watcher)));
        watch.into_iter().collect()
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let link = self.link.clone();
        let link = link.ok_or_else(|| Failure::new("connect").reasoned(FailureReason::Bug))?;
        if self.state == State::Running {
            // Without a cluster there is no need to ask anybody for a password.
            self.needs_of_cluster(apply.handle())?;
        }
        let cancellation = apply.cancellation().clone();
        let connection = unless_cancelled(&cancellation, link.connect()).await?;
        let there = There::new(connection, link.place().clone(), self.shown());
        let done = match self.state {
            State::Stopped => unless_cancelled(&cancellation, self.stop(&there, &link, apply)).await,
            State::Running => self.run(&there, &link, &cancellation, apply).await,
        };
        Link::release(there.into_connection()).await;
        done
    }
}

/// The address that a known text is.
fn address_of(url: &Value) -> Option<SshAddress> {
    SshAddress::parse(url.as_str()?.as_str()?).ok()
}

/// Waits for something unless the run is told to stop.
async fn unless_cancelled<T>(
    cancellation: &Cancellation,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        () = cancellation.cancelled() => Err(Failure::cancelled("run the program there")),
        done = work => done,
    }
}

/// What is there of a program that was found.
fn hash_shown(hash: Option<&str>) -> DriftValue {
    match hash {
        None => DriftValue::Absent,
        Some(hash) => format!("sha256:{hash}").into(),
    }
}

impl Remote {
    /// How the host is called in messages.
    fn shown(&self) -> String {
        self.address()
            .map_or_else(|_| self.name.clone(), |address| address.to_string())
    }

    /// Makes sure that there is a cluster to join.
    fn needs_of_cluster(&self, handle: &Handle) -> Result<(), Failure> {
        let endpoints = handle.extension::<Joining>()?.endpoints()?;
        match self.tunnelled {
            true => endpoints.local().map(drop),
            false => Ok(()),
        }
    }

    async fn stop(&self, there: &There, link: &Link, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let found = there.state().await?;
        if found.runs {
            if !apply.drift("state", "running", "stopped") {
                return Ok(());
            }
            there.end(ENDS_WITHIN, Some(apply.cancellation())).await?;
            link.note(false);
        }
        if found.there && !self.caching && apply.drift("directory", found.directory, DriftValue::Absent) {
            there.remove().await?;
        }
        Ok(())
    }

    async fn run(
        &self,
        there: &There,
        link: &Link,
        cancellation: &Cancellation,
        apply: &mut Apply<'_>,
    ) -> Result<(), Failure> {
        let begun = unless_cancelled(cancellation, self.begin(there, link, apply)).await;
        let waits = match begun {
            Ok(begun) => begun == Begun::ToBeWaitedFor,
            // It may have been started just now.
            Err(failure)
                if failure.reason() == FailureReason::Cancelled && self.transient && apply.may_repair() =>
            {
                return Err(self.give_up(there, cancellation, apply, failure).await);
            }
            Err(failure) => return Err(failure),
        };
        if !waits {
            return Ok(());
        }
        let ended = unless_cancelled(cancellation, self.wait(there, apply)).await;
        match ended {
            Err(failure) if failure.reason() == FailureReason::Cancelled => {
                Err(self.give_up(there, cancellation, apply, failure).await)
            }
            ended => ended,
        }
    }

    /// Has the program run, if that may be done.
    async fn begin(&self, there: &There, link: &Link, apply: &mut Apply<'_>) -> Result<Begun, Failure> {
        let hash = own_hash().await?;
        let found = there.look().await?;
        link.note(found.runs);
        if found.runs {
            let is_other = found.hash.as_deref() != Some(hash);
            let may_restart = if is_other {
                apply.drift(
                    "program",
                    hash_shown(found.hash.as_deref()),
                    hash_shown(Some(hash)),
                )
            } else if self.tunnelled {
                apply.drift("tunnel", DriftValue::Absent, self.tunnel_addr.as_str())
            } else {
                let waits = self.transient && apply.may_repair();
                return Ok(if waits {
                    Begun::ToBeWaitedFor
                } else {
                    Begun::Nothing
                });
            };
            if !may_restart {
                return Ok(Begun::Nothing);
            }
            there.end(ENDS_WITHIN, Some(apply.cancellation())).await?;
        } else if !apply.drift("state", "stopped", "running") {
            return Ok(Begun::Nothing);
        }
        let arguments = self.prepare(there, link, &found, hash, apply).await?;
        there.start(&arguments).await?;
        if self.transient {
            return Ok(Begun::ToBeWaitedFor);
        }
        there.expect_to_stay(apply).await?;
        link.note(true);
        Ok(Begun::Nothing)
    }

    /// Makes everything ready for the program, and answers its arguments.
    async fn prepare(
        &self,
        there: &There,
        link: &Link,
        found: &Found,
        hash: &str,
        apply: &Apply<'_>,
    ) -> Result<Vec<String>, Failure> {
        let joining = apply.handle().extension::<Joining>()?;
        let endpoints = joining.endpoints()?;
        let seeds = match self.tunnelled {
            true => {
                let local = endpoints.local()?;
                let tunnel = self.tunnel();
                let tunnel = tunnel.map_err(|why| Failure::new("use `tunnel_addr`").because(why))?;
                let target = (local.host, local.port);
                let connection = there.connection();
                let port = connection.lead_here(&tunnel.host, tunnel.port, target).await;
                let port = port.map_err(|error| {
                    Failure::new("open the tunnel on")
                        .on(self.shown())
                        .because(error.to_string())
                })?;
                vec![tunnel.url(&local.scheme, port)]
            }
            false => {
                let reachable = reachable(endpoints.advertised().await?);
                if reachable.is_empty() {
                    return Err(Failure::new("find an address at which the store can be reached from there").because(
                        "its members advertise none that leads to them (`--advertise-client-urls` of etcd)",
                    ));
                }
                reachable
            }
        };
        let hostname = match self.hostname.is_empty() {
            false => self.hostname.clone(),
            true => there.hostname().await?,
        };
        let wrong = |why: String| Failure::new("use the host name of").on(self.shown()).because(why);
        check_hostname(&hostname).map_err(wrong)?;
        if hostname == apply.handle().hostname() {
            return Err(wrong(format!(
                "`{hostname}` is the name of this host, too: give it another one with `hostname`"
            )));
        }
        there.provide(found, hash, self.install_deps).await?;
        let access = there
            .access_arguments(found, &**endpoints, &link.place().access())
            .await?;
        let idle = match (self.transient, self.converger_timeout) {
            (true, Some(seconds)) => u64::try_from(seconds).ok(),
            // Whoever ends at once when nothing is left to do says 0.
            (true, None) => joining.ends_when_idle_for().map(|time| time.as_secs()),
            (false, _) => None,
        };
        Ok(arguments(&hostname, &seeds, &found.directory, access, idle))
    }

    async fn wait(&self, there: &There, apply: &Apply<'_>) -> Result<(), Failure> {
        there.wait_for_end(apply).await?;
        match self.caching {
            true => Ok(()),
            false => there.remove().await,
        }
    }

    /// Ends a program that nobody waits for any more.
    async fn give_up(
        &self,
        there: &There,
        cancellation: &Cancellation,
        apply: &Apply<'_>,
        failure: Failure,
    ) -> Failure {
        if let Err(problem) = there.end(ENDS_AT_LAST_WITHIN, Some(cancellation)).await {
            let chain = problem.chain();
            apply.log(
                Level::Warning,
                format!("the program may still run on {}: failed to {chain}", self.shown()),
            );
        }
        failure
    }
}

/// What came of having the program run.
#[derive(Debug, PartialEq, Eq)]
enum Begun {
    /// There is nothing more to do.
    Nothing,
    /// Its end is waited for.
    ToBeWaitedFor,
}

/// What the program there is told.
fn arguments(
    hostname: &str,
    seeds: &[String],
    directory: &str,
    access: Vec<String>,
    ends_when_idle_for: Option<u64>,
) -> Vec<String> {
    let mut all = vec!["run".to_owned()];
    let mut add = |name: &str, value: String| all.extend([name.to_owned(), value]);
    add("--hostname", hostname.to_owned());
    add("--etcd-endpoints", seeds.join(","));
    add("--state-dir", format!("{directory}/prefix"));
    all.extend(access);
    if let Some(seconds) = ends_when_idle_for {
        all.extend(["--converger-timeout".to_owned(), seconds.to_string()]);
        all.push("--converged-exit".to_owned());
    }
    all.push("empty".to_owned());
    all
}

/// Holds the connection, and tells when the program has ended or begun, and when the store has moved.
async fn follow(link: Arc<Link>, watcher: Watcher) -> Result<(), Failure> {
    let endpoints = watcher.handle.extension::<Joining>()?.endpoints()?.clone();
    let cancelled = watcher.cancellation.clone();
    let connect = async {
        let connection = link.connect().await?;
        // What is advertised is only known when the store has answered; until then nothing can be news.
        let advertised = endpoints.advertised().await.unwrap_or_default();
        Ok::<_, Failure>((connection, advertised))
    };
    let (connection, mut advertised) = tokio::select! {
        () = cancelled.cancelled() => return Ok(()),
        connected = connect => connected?,
    };
    let there = There::new(
        connection,
        link.place().clone(),
        watcher.handle.id().name.to_string(),
    );
    (watcher.event)("connected");
    let mut look = tokio::time::interval(LOOK_EACH);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    look.tick().await;
    let followed = loop {
        tokio::select! {
            () = cancelled.cancelled() => break Ok(()),
            error = there.connection().ended() => break Err(link.failed("follow the program on", &error)),
            now = endpoints.changed(&advertised) => {
                advertised = now;
                (watcher.event)("the store is reached at other addresses");
            }
            _ = look.tick() => match there.state().await {
                Ok(found) if link.note(found.runs) => {
                    (watcher.event)(if found.runs { "the program runs" } else { "the program has ended" });
                }
                Ok(_) => {}
                Err(failure) => break Err(failure),
            },
        }
    };
    Link::release(there.into_connection()).await;
    followed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_there_is_told_who_it_is_and_where_the_store_is() {
        let seeds = ["http://a:2379".to_owned(), "http://b:2379".to_owned()];
        let told = arguments(
            "far",
            &seeds,
            "/d",
            vec!["--etcd-ca".to_owned(), "/d/ca.pem".to_owned()],
            Some(5),
        );
        assert_eq!(
            told.join(" "),
            "run --hostname far --etcd-endpoints http://a:2379,http://b:2379 --state-dir /d/prefix --etcd-ca /d/ca.pem \
             --converger-timeout 5 --converged-exit empty"
        );
        let told = arguments("far", &seeds[..1], "/d", Vec::new(), None);
        assert_eq!(
            told.join(" "),
            "run --hostname far --etcd-endpoints http://a:2379 --state-dir /d/prefix empty"
        );
    }

    #[test]
    fn urls_that_lead_to_the_same_are_the_same() {
        let parameters = |url: &str| Parameters::new([("remote", Value::str(url))]);
        let none = Parameters::new([]);
        for (name, a, b, same) in [
            ("host", parameters("host"), parameters("ssh://root@host:22"), true),
            ("host", none.clone(), parameters("ssh://host"), true),
            ("host", none, parameters("other"), false),
            ("x", parameters("ssh://a@host"), parameters("ssh://b@host"), false),
            ("x", parameters("host:23"), parameters("host"), false),
        ] {
            assert_eq!(Remote::same(name, &a, &b), same, "{a:?} {b:?}");
        }
    }
}
