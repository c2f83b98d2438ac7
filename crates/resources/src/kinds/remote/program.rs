//! The program on the other host: it is made to be ours and to run, with what it needs to join, and it is stopped.

use std::time::Duration;

use setpoint_engine::{Apply, Cancellation, Failure, Level};
use setpoint_host::files::Entry;
use setpoint_host::own_program;

use super::there::{Found, There};
use crate::{Endpoints, StoreAccess};

/// How long a program that was started has to stay to count as started, and how often that is looked at.
const STAYS: Duration = Duration::from_secs(3);
const LOOK_EACH: Duration = Duration::from_millis(300);

/// How often it is looked at whether a program that we wait for has ended.
const WAIT_EACH: Duration = Duration::from_secs(1);

/// How long a program may take to say which process it is, and one that has ended to have its status written down.
const SAYS_WITHIN: Duration = Duration::from_secs(5);

/// How long a program may take to end after it was told to, and to be gone when it was killed.
pub(super) const ENDS_WITHIN: Duration = Duration::from_secs(30);
pub(super) const ENDS_AT_LAST_WITHIN: Duration = Duration::from_secs(60);
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// The hash of the program that this process is.
pub(super) async fn own_hash() -> Result<&'static str, Failure> {
    let read = tokio::task::spawn_blocking(own_program::sha256).await;
    let failed = || Failure::new("read the program that runs here");
    match read {
        Ok(Ok(hash)) => Ok(hash),
        Ok(Err(error)) => Err(failed().because(error)),
        Err(error) => Err(failed().because(error)),
    }
}

impl There {
    /// Makes the program there the one that runs here, and one that can run.
    pub(super) async fn provide(&self, found: &Found, hash: &str, install: bool) -> Result<(), Failure> {
        if found.hash.as_deref() != Some(hash) {
            let opened = tokio::task::spawn_blocking(own_program::open).await;
            let failed = || Failure::new("open the program that runs here");
            let program = opened.map_err(|error| failed().because(error))?;
            self.put_program(program.map_err(|error| failed().because(error))?, hash)
                .await?;
        }
        let Err(failure) = self.try_program().await else {
            return Ok(());
        };
        if !install {
            return Err(failure);
        }
        self.install_dependencies().await?;
        self.try_program().await
    }

    /// The arguments by which that host is let in at the store. No secret of this host is in them, nor goes there: what that host shows must be its own.
    pub(super) async fn access_arguments(
        &self,
        found: &Found,
        endpoints: &dyn Endpoints,
        access_directory: &str,
    ) -> Result<Vec<String>, Failure> {
        let StoreAccess {
            namespace,
            authority,
            shows_certificate,
            is_user,
        } = endpoints.access();
        let mut arguments = Vec::new();
        let mut add = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
        if let Some(namespace) = namespace {
            add("--etcd-namespace", namespace);
        }
        if let Some(authority) = authority {
            let read = tokio::task::spawn_blocking(move || Entry::at(&authority)?.follow()?.read());
            let read = read
                .await
                .map_err(|error| Failure::new("read certificates").because(error))?;
            self.put("ca.pem", read?).await?;
            add("--etcd-ca", format!("{}/ca.pem", found.directory));
        }
        if !shows_certificate && !is_user {
            return Ok(arguments);
        }
        let (has, user) = self.access().await?;
        let needs = [
            (shows_certificate, "cert.pem", "a certificate"),
            (shows_certificate, "key.pem", "the key of its certificate"),
            (is_user, "user", "the name of its user"),
            (is_user, "password", "the password of its user"),
        ];
        let missing = needs
            .iter()
            .filter(|(needed, file, _)| *needed && !has.iter().any(|has| has == file))
            .map(|(_, file, what)| format!("{what} in {access_directory}/{file}"));
        let missing: Vec<String> = missing.collect();
        if !missing.is_empty() {
            return Err(Failure::new("let that host in at the store").because(format!(
                "the store lets in who shows who it is, and what this host shows is not given away: that host needs {}, which its user can read",
                missing.join(", ")
            )));
        }
        if shows_certificate {
            add("--etcd-cert", format!("{access_directory}/cert.pem"));
            add("--etcd-key", format!("{access_directory}/key.pem"));
        }
        if let Some(user) = user.filter(|_| is_user) {
            add("--etcd-user", user.trim().to_owned());
            add("--etcd-password-file", format!("{access_directory}/password"));
        }
        Ok(arguments)
    }

    /// Makes sure that what was started stays.
    pub(super) async fn expect_to_stay(&self, apply: &Apply<'_>) -> Result<(), Failure> {
        let begun = tokio::time::Instant::now();
        loop {
            let found = self.state().await?;
            if !found.runs && (found.exit.is_some() || begun.elapsed() > SAYS_WITHIN) {
                return Err(self.has_ended(&found, apply).await);
            }
            if found.runs && begun.elapsed() > STAYS {
                return Ok(());
            }
            tokio::time::sleep(LOOK_EACH).await;
        }
    }

    /// Waits for the end of the program.
    pub(super) async fn wait_for_end(&self, apply: &Apply<'_>) -> Result<(), Failure> {
        let mut ran = tokio::time::Instant::now();
        loop {
            let found = self.state().await?;
            if found.runs {
                ran = tokio::time::Instant::now();
            } else {
                match found.exit.as_deref() {
                    Some("0") => return Ok(()),
                    None if ran.elapsed() < SAYS_WITHIN => {}
                    _ => return Err(self.has_ended(&found, apply).await),
                }
            }
            tokio::time::sleep(WAIT_EACH).await;
        }
    }

    /// The failure of a program that has ended, whose last lines are said.
    async fn has_ended(&self, found: &Found, apply: &Apply<'_>) -> Failure {
        let log = format!("{}/log", found.directory);
        match self.log_tail().await {
            Ok(lines) if !lines.is_empty() => {
                let lines = lines.join("\n");
                apply.log(Level::Error, format!("the last lines of {log} there:\n{lines}"));
            }
            Ok(_) => apply.log(Level::Error, format!("there is nothing in {log} there")),
            Err(failure) => apply.log(Level::Error, failure.chain()),
        }
        let why = match &found.exit {
            Some(status) => format!("it has ended with status {status}"),
            None => "it has ended, and nobody has seen how".to_owned(),
        };
        Failure::new("run the program there").because(why)
    }

    /// Ends the program: asks it to, and kills it when it does not within the time, or when somebody is in a hurry.
    pub(super) async fn end(
        &self,
        within: Duration,
        cancellation: Option<&Cancellation>,
    ) -> Result<(), Failure> {
        self.signal("INT").await?;
        let hurry = async {
            match cancellation {
                Some(cancellation) => cancellation.interrupted().await,
                None => std::future::pending().await,
            }
        };
        let asked = tokio::select! {
            asked = tokio::time::timeout(within, self.gone()) => asked,
            () = hurry => {
                self.signal("KILL").await?;
                tokio::time::timeout(GONE_WITHIN, self.gone()).await
            }
        };
        if let Ok(gone) = asked {
            return gone;
        }
        self.signal("KILL").await?;
        match tokio::time::timeout(GONE_WITHIN, self.gone()).await {
            Ok(gone) => gone,
            Err(_) => Err(Failure::new("stop the program there").because("it is killed, and does not go")),
        }
    }

    async fn gone(&self) -> Result<(), Failure> {
        while self.state().await?.runs {
            tokio::time::sleep(LOOK_EACH).await;
        }
        Ok(())
    }
}
