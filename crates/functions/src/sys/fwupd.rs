//! `sys/fwupd`: firmware updates.

use setpoint_value::{CallContext, CallError, HostFact, Module, Timer, Value, function};

pub(crate) static MODULE: Module = Module::new("sys/fwupd", "Firmware updates.", &[&REBOOT_NEEDED]);

/// Whether a device waits for a restart to finish its firmware update.
///
/// False where there is no fwupd.
#[function(watch = watch_firmware, example(call = "fwupd.reboot_needed()", result = ""))]
fn reboot_needed(context: &CallContext<'_>) -> bool {
    context.capabilities.host().firmware_reboot_needed()
}

fn watch_firmware(context: &CallContext<'_>, _: &[Value]) -> Result<Vec<Timer>, CallError> {
    Ok(super::watch_fact(context, HostFact::FirmwareReboot))
}
