//! The `fwupd:remote` kind: a source of firmware. What fwupd is asked and told stands in `firmware_updates.rs`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use setpoint_engine::{
    Apply, Failure, Identity, IfSet, Parameter, Resource, Wanted, WantedOrder, WantedReach, Watch, Watcher,
    async_trait,
};
use setpoint_graph::{Invalid, MetaParameters, ParameterType, TypeMismatch};
use setpoint_value::Value;

use crate::firmware_updates::{Daemon, Device, Remote, follow};
use crate::sorts::{FILE, FWUPD_REMOTE, SERVICE, of_service_manager};

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
    refresh_age: IfSet<Age>,
    #[name]
    name: String,
}

/// A length of time in Go's form: numbers with units, `1h30m`.
#[derive(Debug, Clone, PartialEq)]
struct Age {
    written: String,
    length: Duration,
}

impl Parameter for Age {
    const TYPE: ParameterType = ParameterType::Str;
    const FORM: Option<fn() -> String> = Some(|| "a length of time, like `24h` or `1h30m`".to_owned());

    fn decode(value: &Value) -> Result<Age, TypeMismatch> {
        let written = String::decode(value)?;
        match length(&written) {
            Some(length) if !length.is_zero() => Ok(Age { written, length }),
            Some(_) => Err(TypeMismatch::new("it must be longer than nothing")),
            None => {
                let message = format!("`{written}` is not a length of time");
                Err(TypeMismatch::new(message).help("write a number with a unit: `24h`, `90m`, `1h30m`"))
            }
        }
    }

    fn encode(&self) -> Value {
        Value::str(self.written.as_str())
    }
}

/// Reads a length of time. Parts of a number count as well: `1.5h`.
fn length(text: &str) -> Option<Duration> {
    const UNITS: [(&str, f64); 8] = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("μs", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
    ];
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|sign: char| !sign.is_ascii_digit() && sign != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let end = rest.find(|sign: char| sign.is_ascii_digit() || sign == '.');
        let (unit, after) = rest.split_at(end.unwrap_or(rest.len()));
        let (_, of_unit) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
        seconds += number * of_unit;
        rest = after;
    }
    (!text.is_empty())
        .then(|| Duration::try_from_secs_f64(seconds).ok())
        .flatten()
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
            let half = age.length / 2;
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
        if is.is_some_and(|is| is <= age.length) {
            return Ok(());
        }
        let shown = is.map_or("never fetched".to_owned(), |is| format!("{} s", is.as_secs()));
        if apply.drift("age", shown, format!("at most {}", age.written)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read() {
        let seconds = |text: &str| length(text).map(|length| length.as_secs_f64());
        assert_eq!(seconds("24h"), Some(86400.0));
        assert_eq!(seconds("1h30m"), Some(5400.0));
        assert_eq!(seconds("1.5h"), Some(5400.0));
        assert_eq!(seconds("250ms"), Some(0.25));
        assert_eq!(seconds("0"), Some(0.0));
        for wrong in [
            "",
            "24",
            "h",
            "1d",
            "-1h",
            "1h30",
            "1 h",
            "1..2h",
            "99999999999999999999999h",
        ] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
