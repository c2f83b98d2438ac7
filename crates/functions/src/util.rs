//! `util`: small things.

use setpoint_value::{CallContext, CallError, Map, Module, function};

use crate::net::{interfaces, mac_text};

pub(crate) static MODULE: Module = Module::new("util", "Small things.", &[&HOSTNAME_MAPPER]);

/// The name that a map from MAC addresses to names gives this machine; empty if it gives none.
#[function(
    environment,
    signature = "func(names map{str: str}) str",
    example(
        call = r#"util.hostname_mapper({"ff:ff:ff:ff:ff:ff" => "nobody"})"#,
        result = r#""""#
    )
)]
fn hostname_mapper(
    context: &CallContext<'_>,
    /// Names by MAC addresses, which are in lower case with colons.
    names: &Map,
) -> Result<Vec<u8>, CallError> {
    let mut found: Option<Vec<u8>> = None;
    for interface in interfaces(context)? {
        let Some(mac) = interface.mac.filter(|_| !interface.loopback) else {
            continue;
        };
        let name = names.get(&setpoint_value::Value::str(mac_text(&mac)));
        let Some(name) = name.and_then(|n| n.as_str()).filter(|n| !n.is_empty()) else {
            continue;
        };
        match &found {
            Some(before) if before != name.as_bytes() => {
                return Err(CallError::fatal("two interfaces have different names in the map"));
            }
            _ => found = Some(name.as_bytes().to_vec()),
        }
    }
    Ok(found.unwrap_or_default())
}
