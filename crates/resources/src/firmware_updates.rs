//! fwupd, the daemon that updates firmware: what devices, releases and remotes it has, and how it is told to install and to fetch anew.
//!
//! The daemon never fetches anything by itself: whoever asks it to install hands it an open file. It checks signatures; what is checked here is that the file
//! is the one that its metadata is about.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use setpoint_engine::{Apply, Attempting, Failure, HubWatcher, Level, Wanted, WantedOrder, WantedReach};
use setpoint_host::bus::{
    Buses, DynamicType, Fd, Following, Link, Message, Method, OwnedVariant, Type, Variant, all_signals,
    owner_changes,
};
use setpoint_host::download::download;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use tokio::task::block_in_place;

use crate::sorts::FWUPD_REMOTE;
use crate::system_bus;

const SERVICE: &str = "org.freedesktop.fwupd";

/// How long installing may take: devices are slow, and some restart.
const INSTALLING: Duration = Duration::from_secs(30 * 60);
/// How long anything else may take: the daemon looks for its devices when it starts.
const ANSWERING: Duration = Duration::from_secs(120);
/// The largest firmware and the largest list of it, in bytes.
const LARGEST_FIRMWARE: u64 = 1 << 30;
const LARGEST_LIST: u64 = 64 << 20;

/// Flags of devices, and of releases.
const UPDATABLE: u64 = 1 << 1;
const UPGRADE: u64 = 1 << 2;
const DOWNGRADE: u64 = 1 << 3;
/// The state of an update that waits for the machine to be started anew.
const NEEDS_REBOOT: u64 = 4;

/// A connection to the daemon.
pub(crate) struct Daemon(Link);

/// A device, as the daemon tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) id: String,
    pub(crate) name: String,
    guids: Vec<String>,
    pub(crate) version: String,
    pub(crate) is_updatable: bool,
    /// What was installed last holds only after the next start of the machine.
    pub(crate) waits_for_reboot: bool,
}

/// A version of a device's firmware that can be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Release {
    pub(crate) version: String,
    remote: String,
    locations: Vec<String>,
    checksums: Vec<String>,
    pub(crate) is_upgrade: bool,
    pub(crate) is_downgrade: bool,
}

/// A source of firmware.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remote {
    pub(crate) id: String,
    pub(crate) is_enabled: bool,
    /// Where its metadata is fetched from; none for one that is on this machine.
    uri: Option<String>,
    firmware_base_uri: Option<String>,
    /// Where its metadata is on this machine.
    cache: Option<String>,
    /// When its metadata was made or fetched, in seconds since the epoch; none if never.
    pub(crate) fetched: Option<u64>,
}

impl Daemon {
    /// The daemon, which the bus starts if it does not run.
    pub(crate) async fn connect(apply: &Apply<'_>) -> Result<Daemon, Failure> {
        let buses = apply.handle().extension::<Buses>()?;
        let link = buses.system.link().await.attempting("ask", "fwupd")?;
        Ok(Daemon(link))
    }

    pub(crate) async fn devices(&self) -> Result<Vec<Device>, Failure> {
        let all: Vec<Told> = self
            .call(ANSWERING, "GetDevices", &())
            .await
            .attempting("ask fwupd for", "its devices")?;
        Ok(all.iter().map(Device::of).collect())
    }

    /// The releases for a device, newest first. The daemon refuses when there are none.
    pub(crate) async fn releases(&self, device: &Device) -> Result<Vec<Release>, Failure> {
        let all: Vec<Told> = self
            .call(ANSWERING, "GetReleases", &(device.id.as_str(),))
            .await
            .attempting("ask fwupd for releases for", &device.name)?;
        Ok(all.iter().map(Release::of).collect())
    }

    pub(crate) async fn remotes(&self) -> Result<Vec<Remote>, Failure> {
        let all: Vec<Told> = self
            .call(ANSWERING, "GetRemotes", &())
            .await
            .attempting("ask fwupd for", "its remotes")?;
        Ok(all.iter().map(Remote::of).collect())
    }

    pub(crate) async fn enable(&self, remote: &str, enabled: bool) -> Result<(), Failure> {
        let value = if enabled { "true" } else { "false" };
        let attempted = if enabled {
            "enable the remote"
        } else {
            "disable the remote"
        };
        let told = self
            .call::<()>(ANSWERING, "ModifyRemote", &(remote, "Enabled", value))
            .await;
        told.attempting(attempted, remote)
    }

    /// Fetches the metadata of a remote anew, and its signature.
    pub(crate) async fn refresh(&self, remote: &Remote, apply: &Apply<'_>) -> Result<(), Failure> {
        let Some(uri) = &remote.uri else {
            let why = "its metadata is a file of this machine, which nobody fetches";
            return Err(Failure::new("fetch the metadata of").on(&remote.id).because(why));
        };
        let metadata = fetch(uri, LARGEST_LIST, apply).await?;
        let signature = fetch(&format!("{uri}.jcat"), LARGEST_LIST, apply).await?;
        let arguments = (remote.id.as_str(), Fd::from(&metadata), Fd::from(&signature));
        let told = self.call::<()>(ANSWERING, "UpdateMetadata", &arguments).await;
        told.attempting("use the metadata of", &remote.id)
    }

    /// Installs a release on a device. What has begun is brought to its end: a device with half a firmware is none any more.
    pub(crate) async fn install(
        &self,
        device: &Device,
        release: &Release,
        allow_older: bool,
        apply: &Apply<'_>,
    ) -> Result<(), Failure> {
        let attempted = "find the firmware for";
        let remotes = self.remotes().await?;
        let remote = remotes.iter().find(|remote| remote.id == release.remote);
        let Some(location) = release.location(remote) else {
            let why = format!("nobody says where the version {} is", release.version);
            return Err(Failure::new(attempted).on(&device.name).because(why));
        };
        let mut archive = fetch(&location, LARGEST_FIRMWARE, apply).await?;
        let checked =
            block_in_place(|| release.check(&mut archive)).attempting("check the firmware", &location)?;
        if checked == Checked::Weakly {
            let message = format!("nothing better than SHA-1 tells whether {location} is what it shall be");
            apply.log(Level::Warning, message);
        }
        let mut options: HashMap<&str, Variant<'_>> = HashMap::new();
        if allow_older {
            options.insert("allow-older", Variant::Bool(true));
        }
        let arguments = (device.id.as_str(), Fd::from(&archive), options);
        let told = self.call::<()>(INSTALLING, "Install", &arguments).await;
        told.attempting("install firmware on", &device.name)
    }

    async fn call<A: DeserializeOwned + Type>(
        &self,
        limit: Duration,
        name: &str,
        arguments: &(impl Serialize + DynamicType + Sync),
    ) -> Result<A, setpoint_host::bus::BusError> {
        let method = Method {
            service: SERVICE,
            path: "/",
            interface: SERVICE,
            name,
        };
        self.0.call_within(limit, method, arguments).await
    }
}

/// Devices and systems come after all remotes of a program: any of them may have their firmware.
pub(crate) fn after_remotes() -> Vec<Wanted> {
    vec![Wanted {
        order: WantedOrder::FoundFirst,
        identities: vec![FWUPD_REMOTE.identity(Vec::new())],
        reach: WantedReach::All,
    }]
}

/// Hears what the daemon tells that concerns somebody: `concerns` is asked with the device that a signal is about, if it is about one.
pub(crate) fn follow(
    watcher: HubWatcher,
    concerns: impl Fn(Option<&Device>) -> bool + Send + Sync + 'static,
) -> Result<Following, Failure> {
    let rules = vec![all_signals(SERVICE, SERVICE), owner_changes(SERVICE)];
    system_bus::follow(watcher, "fwupd", rules, move |message| {
        // One that is started anew may find other devices than before. One that has ended, since nobody asked, is not started again by a look.
        match is_of_bus(message) {
            true => has_started(message).then_some("fwupd was started"),
            false => concerns(device_in(message).as_ref()).then_some("fwupd tells of a change"),
        }
    })
}

/// Whether the bus itself tells something.
fn is_of_bus(message: &Message) -> bool {
    let header = message.header();
    header.member().is_some_and(|member| member == "NameOwnerChanged")
}

/// Whether the bus tells that the daemon is there. The owners of other names are told, too, if somebody else asks for them.
fn has_started(message: &Message) -> bool {
    let body = message.body();
    let told = body.deserialize::<(&str, &str, &str)>();
    told.is_ok_and(|(name, _, new)| name == SERVICE && !new.is_empty())
}

/// The device that a signal is about, if it is about one.
fn device_in(message: &Message) -> Option<Device> {
    let told: Told = message.body().deserialize().ok()?;
    Some(Device::of(&told)).filter(|device| !device.id.is_empty())
}

type Told = HashMap<String, OwnedVariant>;

fn text(told: &Told, key: &str) -> Option<String> {
    match told.get(key).map(|value| &**value) {
        Some(Variant::Str(text)) => Some(text.as_str().to_owned()).filter(|text| !text.is_empty()),
        _ => None,
    }
}

/// A list of texts; some versions of the daemon have one text with commas instead.
fn texts(told: &Told, key: &str) -> Vec<String> {
    match told.get(key).map(|value| &**value) {
        Some(Variant::Str(all)) => all.as_str().split(',').map(str::to_owned).collect(),
        Some(Variant::Array(all)) => {
            let texts = all.iter().filter_map(|one| match one {
                Variant::Str(text) => Some(text.as_str().to_owned()),
                _ => None,
            });
            texts.collect()
        }
        _ => Vec::new(),
    }
}

fn number(told: &Told, key: &str) -> Option<u64> {
    match told.get(key).map(|value| &**value) {
        Some(Variant::U32(number)) => Some(u64::from(*number)),
        Some(Variant::U64(number)) => Some(*number),
        _ => None,
    }
}

impl Device {
    fn of(told: &Told) -> Device {
        let id = text(told, "DeviceId").unwrap_or_default();
        Device {
            name: text(told, "Name").unwrap_or_else(|| id.clone()),
            id,
            guids: texts(told, "Guid"),
            version: text(told, "Version").unwrap_or_default(),
            is_updatable: number(told, "Flags").unwrap_or_default() & UPDATABLE != 0,
            waits_for_reboot: number(told, "UpdateState") == Some(NEEDS_REBOOT),
        }
    }

    /// Whether a text names it: its id, or one of its GUIDs.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        let mut names = std::iter::once(&self.id).chain(&self.guids);
        names.any(|own| own.eq_ignore_ascii_case(name))
    }
}

impl Release {
    fn of(told: &Told) -> Release {
        let mut locations = texts(told, "Locations");
        locations.extend(text(told, "Uri"));
        let flags = number(told, "Flags").or_else(|| number(told, "TrustFlags"));
        let flags = flags.unwrap_or_default();
        Release {
            version: text(told, "Version").unwrap_or_default(),
            remote: text(told, "RemoteId").unwrap_or_default(),
            locations,
            checksums: texts(told, "Checksum"),
            is_upgrade: flags & UPGRADE != 0,
            is_downgrade: flags & DOWNGRADE != 0,
        }
    }

    /// Where its archive is: an absolute path, or an address.
    fn location(&self, remote: Option<&Remote>) -> Option<String> {
        let first = self.locations.first()?;
        let name = first.rsplit('/').next().unwrap_or(first);
        if let Some(base) = remote.and_then(|remote| remote.firmware_base_uri.as_deref()) {
            return Some(format!("{}/{name}", base.trim_end_matches('/')));
        }
        if first.contains("://") || first.starts_with('/') {
            return Some(first.clone());
        }
        let remote = remote?;
        let metadata = remote.uri.as_deref().or(remote.cache.as_deref())?;
        let directory = metadata.rsplit_once('/').map_or("", |(directory, _)| directory);
        Some(format!("{directory}/{}", first.trim_start_matches("./")))
    }

    /// Whether an archive is the one that is meant. Only the best sort of checksums counts.
    fn check(&self, archive: &mut File) -> Result<Checked, String> {
        if self.checksums.is_empty() {
            return Ok(Checked::ByTheDaemon);
        }
        let of_length = |length: usize| -> Vec<&String> {
            let all = self.checksums.iter();
            all.filter(|sum| sum.len() == length && sum.bytes().all(|digit| digit.is_ascii_hexdigit()))
                .collect()
        };
        let (strong, weak) = (of_length(64), of_length(40));
        let (wanted, is, checked) = if !strong.is_empty() {
            (strong, digest::<Sha256>(archive), Checked::Well)
        } else if !weak.is_empty() {
            (weak, digest::<Sha1>(archive), Checked::Weakly)
        } else {
            return Err("its metadata has no checksum of a sort that is known".to_owned());
        };
        let is = is.map_err(|error| error.to_string())?;
        match wanted.iter().any(|wanted| wanted.eq_ignore_ascii_case(&is)) {
            true => Ok(checked),
            false => Err(format!("its checksum is {is}, which is not that of its metadata")),
        }
    }
}

/// How sure it is that an archive is the one that is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Checked {
    Well,
    /// By SHA-1, for which two files can be made that have the same.
    Weakly,
    /// There is no checksum; the daemon looks at the signature.
    ByTheDaemon,
}

fn digest<D: Digest>(file: &mut File) -> std::io::Result<String> {
    file.rewind()?;
    let mut digest = D::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            length => digest.update(&buffer[..length]),
        }
    }
    file.rewind()?;
    Ok(digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

impl Remote {
    fn of(told: &Told) -> Remote {
        let is_enabled = match told.get("Enabled").map(|value| &**value) {
            Some(Variant::Bool(enabled)) => *enabled,
            _ => false,
        };
        Remote {
            id: text(told, "RemoteId").unwrap_or_default(),
            is_enabled,
            uri: text(told, "Uri"),
            firmware_base_uri: text(told, "FirmwareBaseUri"),
            cache: text(told, "FilenameCache"),
            // Never is 0, or -1 as it looks without a sign.
            fetched: number(told, "ModificationTime").filter(|seconds| *seconds != 0 && *seconds != u64::MAX),
        }
    }
}

/// Opens what is at a path or an address.
async fn fetch(location: &str, limit: u64, apply: &Apply<'_>) -> Result<File, Failure> {
    let path = location.strip_prefix("file://").unwrap_or(location);
    if path.starts_with('/') {
        #[expect(clippy::disallowed_methods, reason = "whoever runs the daemon names the file")]
        return block_in_place(|| File::open(path)).attempting("open", path);
    }
    let cancellation = apply.cancellation();
    let downloaded = tokio::select! {
        downloaded = download(location, limit) => downloaded,
        () = cancellation.cancelled() => {
            cancellation.check("download")?;
            return Err(Failure::new("download").on(location).because("it was cancelled"));
        }
    };
    downloaded.attempting("download", location)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn release(location: &str, checksums: &[&str]) -> Release {
        Release {
            version: "1".to_owned(),
            remote: "r".to_owned(),
            locations: vec![location.to_owned()],
            checksums: checksums.iter().map(ToString::to_string).collect(),
            is_upgrade: true,
            is_downgrade: false,
        }
    }

    fn remote(uri: Option<&str>, base: Option<&str>) -> Remote {
        Remote {
            id: "r".to_owned(),
            is_enabled: true,
            uri: uri.map(str::to_owned),
            firmware_base_uri: base.map(str::to_owned),
            cache: Some("/var/lib/x/metadata.xml".to_owned()),
            fetched: None,
        }
    }

    #[test]
    fn where_firmware_is_follows_from_its_remote() {
        let of = |location: &str, remote: &Remote| {
            release(location, &[]).location(Some(remote)).unwrap_or_default()
        };
        let there = remote(Some("https://a.example/x/list.xml"), None);
        assert_eq!(of("./f.cab", &there), "https://a.example/x/f.cab");
        assert_eq!(of("/srv/f.cab", &there), "/srv/f.cab");
        assert_eq!(of("https://b.example/f.cab", &there), "https://b.example/f.cab");
        let based = remote(Some("https://a.example/x/list.xml"), Some("https://c.example/y/"));
        assert_eq!(
            of("https://b.example/z/f.cab", &based),
            "https://c.example/y/f.cab"
        );
        assert_eq!(of("f.cab", &remote(None, None)), "/var/lib/x/f.cab");
        assert_eq!(release("f.cab", &[]).location(None), None);
    }

    #[test]
    fn the_best_checksums_count() {
        let mut file = tempfile::tempfile().expect("there is room");
        file.write_all(b"abc").expect("there is room");
        let sha1 = "A9993E364706816ABA3E25717850C26C9CD0D89D";
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let mut of = |checksums: &[&str]| release("f", checksums).check(&mut file);
        assert_eq!(of(&[sha1, sha256]), Ok(Checked::Well));
        assert_eq!(of(&[sha1]), Ok(Checked::Weakly));
        assert_eq!(of(&[]), Ok(Checked::ByTheDaemon));
        let other = sha256.replace('b', "c");
        assert!(of(&[sha1, &other]).is_err_and(|why| why.contains("not that of its metadata")));
        assert!(of(&["abc"]).is_err_and(|why| why.contains("no checksum")));
    }
}
