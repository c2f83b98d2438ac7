//! The `gate` kind: a resource of another machine that others wait for.

use setpoint_engine::{Apply, Effect, Failure, Handle, Resource, Watch, async_trait};

use crate::{SharedKey, SharedStore};

/// Something that is managed on another machine, and must be settled there before what requires it here.
///
/// The engine of that machine writes the hash of the parameters that it has settled into the store that machines share. While that is
/// another one, or none, the gate is closed.
#[derive(Debug, Resource)]
#[resource(kind = "gate", brings = nothing, action(done = "waited", would = "wait"))]
pub(crate) struct Gate {
    /// The machine.
    machine: String,
    /// What must be settled there: `file[/etc/motd]`.
    resource: String,
    /// The key under which that machine says so, among its own in the store that machines share.
    key: String,
    /// The hash of the parameters that are waited for.
    hash: String,
    #[state]
    store: Option<SharedStore>,
}

#[async_trait]
impl Resource for Gate {
    fn init(&mut self, handle: &Handle) -> Result<(), Failure> {
        self.store = Some(handle.extension::<SharedStore>()?.clone());
        Ok(())
    }

    fn watches(&self) -> Vec<Watch> {
        let watch = |store: &SharedStore| store.watch(SharedKey::OfHost(&self.machine, &self.key));
        self.store.iter().map(watch).collect()
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let Gate {
            machine, resource, ..
        } = &*self;
        let settled = apply
            .handle()
            .extension::<SharedStore>()?
            .get(SharedKey::OfHost(&self.machine, &self.key))
            .await?;
        let missing = match settled.map(|settled| settled.text) {
            Some(hash) if hash.as_ref() == Some(&self.hash) => return Ok(()),
            Some(_) => {
                format!("{resource} is settled on {machine} with other parameters than those wanted here")
            }
            None => format!("{resource} is not settled on {machine} yet"),
        };
        if apply.may_repair() {
            return Err(Failure::waiting(missing));
        }
        // Where nothing is repaired nobody waits either: what comes after it is looked at.
        let _ = apply.act(
            Effect::Run,
            "settled",
            missing,
            format!("until {resource} is settled on {machine}"),
        );
        Ok(())
    }
}
