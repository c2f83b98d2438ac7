//! What undoes a `file`: the parameters of its reverse, from the state of the machine now.

use setpoint_engine::{Failure, Parameter, Text};
use setpoint_graph::Parameters;
use setpoint_host::files::{Entry, Stat};
use setpoint_value::Value;

use super::run::Occupant;
use super::{File, Presence};

pub(super) fn reverse(file: &File) -> Result<Option<Parameters>, Failure> {
    let path = file.effective_path()?;
    if file.is_directory() || !file.source.is_empty() {
        let what = if file.is_directory() {
            "a directory"
        } else {
            "what has a `source`"
        };
        return Err(Failure::new("reverse")
            .on(&path)
            .because(format!("{what} cannot be reversed")));
    }
    let occupant = Occupant::look(Entry::at(&path), true)?;
    let there = occupant.found.filter(Stat::is_regular);
    let state = match *file.state {
        Some(Presence::Exists) => "absent",
        // Where nothing was, there is nothing to bring back.
        Some(Presence::Absent) if there.is_none() => "",
        Some(Presence::Absent) => "exists",
        None => "",
    };
    let mut parameters = vec![("path", file.effective())];
    if !state.is_empty() {
        parameters.push(("state", state.into()));
    }
    let mut selinux = None;
    let restores = state != "absent";
    if restores
        && (file.content.is_some() || !file.fragments.is_empty() || file.is_absent())
        && let (Some(end), Some(_)) = (&occupant.end, there)
    {
        parameters.push(("content", end.read()?));
    }
    if restores && let Some(there) = there {
        if !file.owner.is_empty() {
            parameters.push(("owner", there.uid.to_string().into()));
        }
        if !file.group.is_empty() {
            parameters.push(("group", there.gid.to_string().into()));
        }
        if file.mode.is_some() {
            parameters.push(("mode", format!("{:04o}", there.mode).into()));
        }
        if let (Some(_), Some(entry)) = (&file.selinux, &occupant.entry) {
            selinux = Some(entry.security_context()?.unwrap_or_default());
        }
    }
    parameters.extend(selinux.map(|context| ("selinux", context)));
    let texts = parameters
        .into_iter()
        .map(|(name, bytes)| (name, Text::new(bytes).encode()));
    let flags = [("recurse", file.recurse), ("force", file.force)];
    let flags = flags
        .into_iter()
        .filter(|(_, set)| *set)
        .map(|(name, _)| (name, Value::Bool(true)));
    Ok(Some(Parameters::new(texts.chain(flags))))
}
