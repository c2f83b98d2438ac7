//! What undoes a `file`: the parameters of its reverse, from the state of the machine now.

use setpoint_engine::{Failure, Parameter, Text};
use setpoint_graph::Parameters;
use setpoint_host::files::{Entry, Stat};
use setpoint_value::Value;

use super::File;
use super::run::Occupant;
use crate::presence::Presence;

/// What was in a larger file is not kept: it would be kept in memory, too, while it is put back.
const LARGEST: u64 = 64 << 20;

pub(super) fn reverse(file: &File, received: &[&str]) -> Result<Option<Parameters>, Failure> {
    let path = file.effective_path()?;
    let will = |name: &str| received.contains(&name);
    let refused = |why: String| Err(Failure::new("reverse").on(&path).because(why));
    if file.is_directory() {
        return refused("a directory cannot be reversed".to_owned());
    }
    if !file.source.is_empty() || will("source") {
        return refused("what has a `source` cannot be reversed".to_owned());
    }
    let occupant = Occupant::look(Entry::at(&path), true)?;
    let there = occupant.found.filter(Stat::is_regular);
    let writes = file.content.is_some() || !file.fragments.is_empty() || will("content") || will("fragments");
    let state = match *file.state {
        Some(Presence::Exists) => "absent",
        // Where nothing was, there is nothing to bring back.
        Some(Presence::Absent) if there.is_none() => "",
        Some(Presence::Absent) => "exists",
        // Contents make a file where none was, and with it gone, everything is as before.
        None if writes && occupant.own.is_none() => "absent",
        None => "",
    };
    let mut parameters = vec![("path", file.effective())];
    if !state.is_empty() {
        parameters.push(("state", state.into()));
    }
    let mut selinux = None;
    let restores = state != "absent";
    if restores
        && (writes || file.is_absent())
        && let (Some(end), Some(there)) = (&occupant.end, there)
    {
        if there.size > LARGEST {
            let why = format!("what is in it is larger than {} MiB", LARGEST >> 20);
            return refused(why);
        }
        parameters.push(("content", end.read()?));
    }
    if restores && let Some(there) = there {
        if !file.owner.is_empty() || will("owner") {
            parameters.push(("owner", there.uid.to_string().into()));
        }
        if !file.group.is_empty() || will("group") {
            parameters.push(("group", there.gid.to_string().into()));
        }
        if file.mode.is_some() || will("mode") {
            parameters.push(("mode", format!("{:04o}", there.mode).into()));
        }
        if let (true, Some(entry)) = (file.selinux.is_some() || will("selinux"), &occupant.entry) {
            selinux = Some(entry.security_context()?.unwrap_or_default());
        }
    }
    parameters.extend(selinux.map(|context| ("selinux", context)));
    let texts = parameters
        .into_iter()
        .map(|(name, bytes)| (name, Text::new(bytes).encode()));
    // Not `recurse`: what is undone is one file, and a tree that somebody has put in its place is not.
    let force = file.force.then_some(("force", Value::Bool(true)));
    Ok(Some(Parameters::new(texts.chain(force))))
}
