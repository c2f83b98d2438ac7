//! The `settled` kind: that a resource of this machine is settled, for gates of other machines.

use setpoint_engine::{Apply, Effect, Failure, Handle, KindSpec, Resource, Watch, async_trait};

use crate::{Secrecy, SharedKey, SharedStore};

/// That something here is settled, told to the machines that wait for it.
///
/// It comes after what it tells of, so it says the hash of parameters that were right when it was looked at. It is not taken back when
/// that drifts: whoever waits has a gate that is open until other parameters are wanted.
#[derive(Debug, Resource)]
#[resource(kind = "settled", brings = nothing)]
pub(crate) struct Settled {
    /// What is settled: `file[/etc/motd]`.
    resource: String,
    /// The key under which that is said, among those of this machine in the store that machines share.
    key: String,
    /// The hash of its parameters.
    hash: String,
    #[state]
    store: Option<SharedStore>,
}

/// It is told in these words although it is no action: when two machines of one name contradict each other, that is a fight.
pub(super) static TOLD: KindSpec = Settled::SPEC.with_action("told", "tell");

#[async_trait]
impl Resource for Settled {
    fn init(&mut self, handle: &Handle) -> Result<(), Failure> {
        self.store = Some(handle.extension::<SharedStore>()?.clone());
        Ok(())
    }

    fn watches(&self) -> Vec<Watch> {
        let watch = |store: &SharedStore| store.watch(SharedKey::OfThisHost(&self.key));
        self.store.iter().map(watch).collect()
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let store = apply.handle().extension::<SharedStore>()?;
        let said = store.get(SharedKey::OfThisHost(&self.key)).await?;
        let said = said.and_then(|said| said.text);
        if said.as_ref() == Some(&self.hash) {
            return Ok(());
        }
        let want = format!("other machines that {} is settled", self.resource);
        if apply.act(Effect::Run, "settled", said, want) {
            let key = SharedKey::OfThisHost(&self.key);
            store.set(key, Some(&self.hash), Secrecy::Open).await?;
        }
        Ok(())
    }
}
