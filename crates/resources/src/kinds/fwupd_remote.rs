//! The `fwupd:remote` kind: a source of firmware. What fwupd is asked and told stands in `firmware_updates.rs`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use setpoint_engine::{
    Apply, Failure, Identity, IfSet, Resource, Wanted, WantedOrder, WantedReach, Watch, Watcher, async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};

use crate::firmware_updates::{Daemon, Device, Remote, follow};
use crate::sorts::{FILE, FWUPD_REMOTE, SERVICE, of_service_manager};
use crate::time_span::TimeSpan;

/// A source of firmware of fwupd: enabled or not, and with metadata that is fresh.
///
/// The name is the id of the remote. What `fwupd:device` and `fwupd:system` want comes after it.
///
/// ```mcl
/// fwupd:remote "lvfs" {
///     enabled => true,
///     refresh_age => "24h",
/// }
/// ```
///
/// One that shall not be used:
///
/// ```mcl
/// fwupd:remote "lvfs-testing" {
///     enabled => false,
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "fwupd:remote", autoedge, asynchronous)]
pub(crate) struct FwupdRemote {
    /// Whether it is used. Unset: not managed.
    enabled: Option<bool>,
    /// How old its metadata may become, such as `24h` or `1h30m`, until it is fetched anew. Unset or empty: it is never fetched.
    refresh_age: IfSet<TimeSpan>,
    #[name]
    name: String,
}

#[async_trait]
impl Resource for FwupdRemote {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        if self.name.is_empty() {
            invalid.push(Invalid::new("no remote is named"));
        }
        if self.enabled.is_none() && self.refresh_age.is_none() {
            let message = "nothing is wanted of it: `enabled` or `refresh_age` must be set";
            invalid.push(Invalid::new(message));
        }
        if self.enabled == Some(false) && self.refresh_age.is_some() {
            let message = "the metadata of a remote that is not enabled is not used";
            invalid.push(Invalid::parameter("refresh_age", message));
        }
    }

    fn identities(&self) -> Vec<Identity> {
        vec![FWUPD_REMOTE.identity(self.name.as_bytes())]
    }

    fn wanted(&self) -> Vec<Wanted> {
        let file = format!("/etc/fwupd/remotes.d/{}.conf", self.name);
        let wanted = |identity| Wanted {
            order: WantedOrder::FoundFirst,
            identities: vec![identity],
            reach: WantedReach::First,
        };
        vec![
            wanted(FILE.identity(file.into_bytes())),
            wanted(of_service_manager(&SERVICE, false, "fwupd")),
        ]
    }

    fn watches(&self) -> Vec<Watch> {
        let concerns = |device: Option<&Device>| device.is_none();
        let mut watches = vec![Watch::hub(move |watcher| follow(watcher, concerns))];
        if let Some(age) = &*self.refresh_age {
            let half = age.length() / 2;
            watches.push(Watch::own(move |watcher| grow_older(half, watcher)));
        }
        watches
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let daemon = Daemon::connect(apply).await?;
        let mut remote = self.find(&daemon).await?;
        let word = |enabled: bool| if enabled { "enabled" } else { "disabled" };
        if let Some(wanted) = self.enabled
            && wanted != remote.is_enabled
        {
            if !apply.drift("enabled", word(remote.is_enabled), word(wanted)) {
                return Ok(());
            }
            daemon.enable(&self.name, wanted).await?;
            remote = self.find(&daemon).await?;
            if remote.is_enabled != wanted {
                let why = format!("it is {} all the same", word(remote.is_enabled));
                return Err(Failure::new("change the remote").on(&self.name).because(why));
            }
        }
        let Some(age) = self.refresh_age.as_ref().filter(|_| remote.is_enabled) else {
            return Ok(());
        };
        let is = remote.fetched.map(|fetched| {
            #[expect(
                clippy::disallowed_methods,
                reason = "the age of what another program has written is by the clock of the machine"
            )]
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            now.saturating_sub(Duration::from_secs(fetched))
        });
        if is.is_some_and(|is| is <= age.length()) {
            return Ok(());
        }
        let shown = is.map_or("never fetched".to_owned(), |is| format!("{} s", is.as_secs()));
        if apply.drift("age", shown, format!("at most {}", age.written())) {
            daemon.refresh(&remote, apply).await?;
        }
        Ok(())
    }
}

impl FwupdRemote {
    async fn find(&self, daemon: &Daemon) -> Result<Remote, Failure> {
        let all = daemon.remotes().await?;
        if let Some(remote) = all.iter().find(|remote| remote.id == self.name) {
            return Ok(remote.clone());
        }
        let there: Vec<&str> = all.iter().map(|remote| remote.id.as_str()).collect();
        let why = match there.as_slice() {
            [] => "fwupd has no remotes".to_owned(),
            there => format!("fwupd has no such remote; there are: {}", there.join(", ")),
        };
        Err(Failure::new("find the remote").on(&self.name).because(why))
    }
}

/// Looks again when so much time has passed, again and again.
async fn grow_older(period: Duration, watcher: Watcher) -> Result<(), Failure> {
    (watcher.event)("the age of its metadata is followed");
    loop {
        tokio::select! {
            () = watcher.cancellation.cancelled() => return Ok(()),
            () = tokio::time::sleep(period) => (watcher.event)("its metadata has grown older"),
        }
    }
}
