//! The `value` kind: a place for one value.

use setpoint_engine::{Apply, Failure, Level, Resource, Sends, async_trait};
use setpoint_value::Value;

use crate::LocalValues;

/// A value under a name, set here or received, and read by `value.get`.
///
/// It is kept on this host and outlives the program, unless it is sensitive.
#[derive(Debug, Resource)]
#[resource(kind = "value", receives, action, sends = Sent)]
pub(crate) struct ValueResource {
    /// The value. Unset removes it.
    any: Option<Value>,
    #[name]
    name: String,
}

/// What it sends, in each run.
#[derive(Sends)]
struct Sent {
    /// The value, unset if there is none.
    any: Option<Value>,
}

#[async_trait]
impl Resource for ValueResource {
    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let values = apply.handle().extension::<LocalValues>()?;
        let stored = values.stored(&self.name);
        for report in values.take_reports() {
            apply.log(Level::Warning, report);
        }
        if stored != self.any {
            if apply.existence("any", stored.as_ref(), self.any.as_ref()) {
                match &self.any {
                    Some(value) => values.set(&self.name, value)?,
                    None => values.delete(&self.name)?,
                }
            }
        } else if let Some(from) = apply.received_changed("any") {
            let from = from.to_string();
            // There is nothing to repair; receivers of notifications hear of what came.
            let _ = apply.drift("any", self.any.as_ref(), format!("as received from {from}"));
        }
        if apply.would_repair() {
            values.foresee(&self.name, self.any.as_ref())?;
        }
        // The same whether or not the store may be changed.
        apply.send_final(Sent {
            any: self.any.clone(),
        });
        Ok(())
    }
}
