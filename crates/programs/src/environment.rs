//! Settings from environment variables.

/// The value of `SETPOINT_NAME`, or of `MGMT_NAME`, which scripts for the reference set. An empty value counts as unset.
pub fn variable(name: &str) -> Option<String> {
    let read = |name: String| std::env::var(name).ok().filter(|value| !value.is_empty());
    read(format!("SETPOINT_{name}")).or_else(|| read(format!("MGMT_{name}")))
}
