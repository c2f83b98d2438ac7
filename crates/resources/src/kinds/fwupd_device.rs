//! The `fwupd:device` kind: one device at one version of its firmware. What fwupd is asked and told stands in `firmware_updates.rs`.
//!
//! The remotes of a program come before it without asking the daemon which ones it has: any may have its firmware.

use setpoint_engine::{Apply, Failure, Identity, Resource, Wanted, Watch, async_trait};
use setpoint_graph::{Invalid, MetaParameters};

use crate::firmware_updates::{Daemon, Device, after_remotes, follow};
use crate::sorts::FWUPD_DEVICE;

/// A device with exactly this version of its firmware, by fwupd.
///
/// The machine is never started anew for it: what is installed and waits for that counts as right. `fwupdmgr get-devices` shows devices and their ids.
///
/// ```mcl
/// fwupd:device "08d460be0f1f9f128413f816022a6439e0078018" {
///     version => "1.2.4",
/// }
/// ```
///
/// By the GUID of what is in it, under a name of its own; it may go back to a lower version:
///
/// ```mcl
/// fwupd:device "webcam" {
///     device => "b585990a-003e-5270-89d5-3705a17f9a43",
///     version => "1.2.3",
///     allow_downgrade => true,
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "fwupd:device", autoedge, asynchronous)]
pub(crate) struct FwupdDevice {
    /// Its id, or one of its GUIDs, in capitals or not. Unset or empty: the name.
    device: String,
    /// The version, as the device writes it. It must be set.
    version: String,
    /// Whether a version that is lower may take the place of a higher one.
    allow_downgrade: bool,
    #[name]
    name: String,
}

#[async_trait]
impl Resource for FwupdDevice {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        if self.effective().is_empty() {
            invalid.push(Invalid::new("no device is named"));
        }
        if self.version.is_empty() {
            let message = "`version` must be set: exactly this version is installed";
            let help = "`fwupd:system` brings all devices to their newest versions";
            invalid.push(Invalid::parameter("version", message).help(help));
        }
    }

    fn identities(&self) -> Vec<Identity> {
        vec![FWUPD_DEVICE.identity(self.effective().to_ascii_lowercase().into_bytes())]
    }

    fn wanted(&self) -> Vec<Wanted> {
        after_remotes()
    }

    fn watches(&self) -> Vec<Watch> {
        let own = self.effective().to_owned();
        let concerns = move |device: Option<&Device>| device.is_none_or(|device| device.is_named(&own));
        vec![Watch::hub(|watcher| follow(watcher, concerns))]
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let daemon = Daemon::connect(apply).await?;
        let device = self.find(&daemon).await?;
        if device.version == self.version || device.waits_for_reboot {
            return Ok(());
        }
        if !apply.drift("version", device.version.as_str(), self.version.as_str()) {
            return Ok(());
        }
        let failed = |why: String| {
            let target = format!("{} ({})", device.name, self.effective());
            Err(Failure::new("update the firmware of").on(target).because(why))
        };
        let releases = match daemon.releases(&device).await {
            Ok(releases) if !releases.is_empty() => releases,
            Ok(_) => {
                return failed(
                    "no remote has firmware for it; is the one enabled that has, and fetched?".to_owned(),
                );
            }
            Err(failure) => {
                let why = failure.chain();
                return failed(format!(
                    "{why}; is the remote enabled that has its firmware, and fetched?"
                ));
            }
        };
        let Some(release) = releases.iter().find(|release| release.version == self.version) else {
            let mut there: Vec<&str> = releases.iter().map(|release| release.version.as_str()).collect();
            there.dedup();
            return failed(format!(
                "there is no version {} of it; there are: {}",
                self.version,
                there.join(", ")
            ));
        };
        if release.is_downgrade && !self.allow_downgrade {
            return failed(format!(
                "{} is lower than what it has; `allow_downgrade => true` allows to go back",
                self.version
            ));
        }
        daemon
            .install(&device, release, self.allow_downgrade, apply)
            .await?;
        // A device that starts anew is not there for a while.
        let after = daemon
            .devices()
            .await?
            .into_iter()
            .find(|after| after.is_named(self.effective()));
        match after {
            Some(after) if after.version != self.version && !after.waits_for_reboot => failed(format!(
                "fwupd says that it is done, and it has {} all the same",
                after.version
            )),
            _ => Ok(()),
        }
    }
}

impl FwupdDevice {
    fn effective(&self) -> &str {
        if self.device.is_empty() {
            &self.name
        } else {
            &self.device
        }
    }

    async fn find(&self, daemon: &Daemon) -> Result<Device, Failure> {
        let all = daemon.devices().await?;
        if let Some(device) = all.iter().find(|device| device.is_named(self.effective())) {
            return Ok(device.clone());
        }
        let updatable = all.iter().filter(|device| device.is_updatable);
        let there: Vec<String> = updatable
            .map(|device| format!("{} ({})", device.name, device.id))
            .collect();
        let why = match there.as_slice() {
            [] => "fwupd has no such device, and no other one that can be updated".to_owned(),
            there => format!("fwupd has no such device; there are: {}", there.join(", ")),
        };
        Err(Failure::new("find the device").on(self.effective()).because(why))
    }
}
