//! The `fwupd:system` kind: all devices at their newest firmware. What fwupd is asked and told stands in `firmware_updates.rs`.

use setpoint_engine::{Apply, Failure, Identity, IfSet, Resource, Wanted, Watch, Words, async_trait};
use setpoint_graph::{Invalid, MetaParameters};

use crate::firmware_updates::{Daemon, Device, after_remotes, follow};
use crate::sorts::FWUPD_SYSTEM;

/// All devices that can be updated, at their newest firmware, by fwupd.
///
/// The machine is never started anew for it: what is installed and waits for that counts as right.
///
/// ```mcl
/// fwupd:system "firmware" {
///     state => "newest",
/// }
/// ```
///
/// All but one, with metadata that is not older than a day:
///
/// ```mcl
/// fwupd:remote "lvfs" {
///     enabled => true,
///     refresh_age => "24h",
/// }
///
/// fwupd:system "firmware" {
///     state => "newest",
///     exclude => ["b585990a-003e-5270-89d5-3705a17f9a43"],
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "fwupd:system", autoedge, asynchronous)]
pub(crate) struct FwupdSystem {
    /// Which firmware they have. It must be set.
    state: IfSet<State>,
    /// Devices that are left alone, each by its id or one of its GUIDs, in capitals or not.
    exclude: Vec<String>,
}

/// The only state that there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Newest,
}

impl Words for State {
    const ONE: &'static str = "a state of the firmware of a machine";

    fn words() -> impl Iterator<Item = (&'static str, State)> {
        [("newest", State::Newest)].into_iter()
    }
}

#[async_trait]
impl Resource for FwupdSystem {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        if self.state.is_none() {
            let message = "`state` must be `newest`";
            invalid.push(Invalid::parameter("state", message).help("write `state => \"newest\",`"));
        }
        if self.exclude.iter().any(String::is_empty) {
            invalid.push(Invalid::parameter("exclude", "no device has an empty name"));
        }
    }

    fn identities(&self) -> Vec<Identity> {
        vec![FWUPD_SYSTEM.identity(Vec::new())]
    }

    fn wanted(&self) -> Vec<Wanted> {
        after_remotes()
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::hub(|watcher| follow(watcher, |_: Option<&Device>| true))]
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let daemon = Daemon::connect(apply).await?;
        for device in daemon.devices().await? {
            let is_excluded = self.exclude.iter().any(|name| device.is_named(name));
            if !device.is_updatable || is_excluded || device.waits_for_reboot {
                continue;
            }
            // One without releases is as new as it gets.
            let Ok(releases) = daemon.releases(&device).await else {
                continue;
            };
            let Some(newest) = releases.iter().find(|release| release.is_upgrade) else {
                continue;
            };
            let field = format!("version of {}", device.name);
            if apply.drift(field, device.version.as_str(), newest.version.as_str()) {
                daemon.install(&device, newest, false, apply).await?;
            }
        }
        Ok(())
    }
}
