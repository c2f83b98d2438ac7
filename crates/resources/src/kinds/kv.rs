//! The `kv` kind: a string in the store that hosts share.

use std::cmp::Ordering;

use setpoint_engine::{Apply, DriftValue, Failure, Handle, Resource, Watch, async_trait};
use setpoint_graph::{Invalid, MetaParameters};

use crate::{Secrecy, SharedKey, SharedStore};

/// A string in the store that hosts share, which programs read with `world.getval` and `world.kvlookup`.
///
/// One that is sensitive is encrypted in the store of a cluster, so that its hosts can read it and nobody else, and is sensitive where it is read. In the store of one
/// machine it lies as it is, where only root can read it.
///
/// ```mcl
/// kv "release" {
///     value => "1.4.2",
/// }
/// ```
///
/// One string of each host, and one that never becomes less:
///
/// ```mcl
/// kv "role" {
///     value => "web",
///     mapped => true,
/// }
///
/// kv "generation" {
///     value => "7",
///     skiplessthan => true,
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(
    kind = "kv",
    receives,
    refreshable,
    constants(skipcmpstyle(int = 0, string = 1))
)]
pub(crate) struct Kv {
    /// The key. Unset: the resource's name.
    key: String,
    /// The string. Unset: the key must not be there.
    value: Option<String>,
    /// Whether each host has a string of its own under the key, instead of one for all.
    mapped: bool,
    /// Whether a string that is there and is greater stays, until a notification comes.
    skiplessthan: bool,
    /// What greater means: 0 for whole numbers, 1 for texts.
    skipcmpstyle: i64,
    #[name]
    name: String,
    #[state]
    store: Option<SharedStore>,
}

#[async_trait]
impl Resource for Kv {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        if self.key().is_empty() {
            invalid.push(Invalid::parameter("key", "must not be empty"));
        }
        if !matches!(self.skipcmpstyle, 0 | 1) {
            let message = "must be 0, for whole numbers, or 1, for texts";
            invalid.push(Invalid::parameter("skipcmpstyle", message));
        }
        if self.skiplessthan
            && self.skipcmpstyle == 0
            && let Some(value) = &self.value
            && value.parse::<i64>().is_err()
        {
            let message = format!("`{value}` is not a whole number, and such are compared");
            let help = "write `skipcmpstyle => 1,` to compare texts";
            invalid.push(Invalid::parameter("value", message).help(help));
        }
    }

    fn init(&mut self, handle: &Handle) -> Result<(), Failure> {
        self.store = Some(handle.extension::<SharedStore>()?.clone());
        Ok(())
    }

    fn watches(&self) -> Vec<Watch> {
        let watch = |store: &SharedStore| store.watch(self.place());
        self.store.iter().map(watch).collect()
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let store = apply.handle().extension::<SharedStore>()?;
        let stored = store.get(self.place()).await?;
        let secrecy = Secrecy::of(apply.is_sensitive("value"));
        let text = stored.as_ref().and_then(|stored| stored.text.as_deref());
        let is_same = stored.is_some() == self.value.is_some() && text == self.value.as_deref();
        let misses = stored.as_ref().and_then(|stored| stored.misses(secrecy));
        let is_to_be_set = match (&stored, misses) {
            // It is not for those whom it shall be for. That is as secret as the key is.
            (Some(_), Some((is, want))) if is_same => apply.drift_of("key", "readers", is, want),
            _ if is_same || !apply.refresh_pending() && self.may_stay(text) => return Ok(()),
            // What was there may be a secret although what is wanted is none.
            (Some(stored), _) if stored.secrecy == Secrecy::Secret => {
                apply.drift("value", DriftValue::Sensitive, self.value.as_deref())
            }
            _ => apply.existence("value", text, self.value.as_deref()),
        };
        if is_to_be_set {
            store.set(self.place(), self.value.as_deref(), secrecy).await?;
        }
        Ok(())
    }
}

impl Kv {
    fn key(&self) -> &str {
        match self.key.is_empty() {
            true => &self.name,
            false => &self.key,
        }
    }

    fn place(&self) -> SharedKey<'_> {
        match self.mapped {
            true => SharedKey::OfThisHost(self.key()),
            false => SharedKey::ForAll(self.key()),
        }
    }

    /// Whether what is stored is greater than what is wanted, and that is enough.
    fn may_stay(&self, stored: Option<&str>) -> bool {
        let (Some(stored), Some(wanted)) = (stored, &self.value) else {
            return false;
        };
        let order = match self.skipcmpstyle {
            0 => {
                let stored = stored.parse::<i64>().ok();
                // What is no number is overwritten.
                stored
                    .zip(wanted.parse::<i64>().ok())
                    .map(|(stored, wanted)| stored.cmp(&wanted))
            }
            _ => Some(stored.cmp(wanted)),
        };
        self.skiplessthan && order == Some(Ordering::Greater)
    }
}
