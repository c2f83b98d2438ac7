//! Settings from environment variables.

/// Settings that the reference has under another name: ours and its.
const OTHER_NAMES: [(&str, &str); 2] = [("STATE_DIR", "PREFIX"), ("ETCD_ENDPOINTS", "SEEDS")];

/// The value of `SETPOINT_NAME`, or of the variable `MGMT_…` that scripts for the reference set. An empty value counts as unset.
pub fn variable(name: &str) -> Option<String> {
    let read = |name: String| std::env::var(name).ok().filter(|value| !value.is_empty());
    let other = OTHER_NAMES.iter().find(|(ours, _)| *ours == name);
    let of_reference = other.map_or(name, |(_, theirs)| theirs);
    read(format!("SETPOINT_{name}")).or_else(|| read(format!("MGMT_{of_reference}")))
}
