//! What is done about the records of what undoes resources: read at the start, written before `init`, erased when they are served.

use std::sync::atomic::Ordering;

use setpoint_graph::{DesiredResource, Parameters, ResourceId};

use super::Shared;
use super::execute::{Job, Run};
use super::inbox::Message;
use super::pool::Lane;
use crate::machine::{Check, Input, RecordWork, RunResult};
use crate::panics::guarded;
use crate::reversals::{Loaded, reversal_of, with_sensitive, without_parameters};
use crate::{Attempting, Failure, Handle, Instance, Level};

/// Tells the machine, before its first graph, of the records that earlier processes left. In a process that may not change anything
/// they stay as they are.
pub(super) fn read_once(shared: &Shared) {
    let Some(state) = &shared.state else { return };
    if shared.records_read.swap(true, Ordering::AcqRel) {
        return;
    }
    match state.reversals.read(&shared.kinds, !shared.noop) {
        Ok(found) => {
            for why in found.unusable {
                let lost = format!("what left the program is not undone: {why}");
                shared.log(Level::Warning, lost);
            }
            if !found.resources.is_empty() {
                let shells = found.resources.iter().map(|found| without_parameters(found));
                shared.inbox.input(Input::Recorded(shells.collect()));
            }
        }
        Err(error) => shared.log(
            Level::Error,
            format!("failed to read what undoes resources of former programs: {error}"),
        ),
    }
}

/// The parameters of a reversal, from its record.
pub(super) fn parameters(
    shared: &Shared,
    resource: &DesiredResource,
    lane: &Lane<Job>,
) -> Result<Parameters, Failure> {
    let id = &resource.id;
    let attempted = "read what undoes";
    let state = shared
        .state
        .as_ref()
        .ok_or_else(|| Failure::new(attempted).on(id))?;
    let why = match state
        .reversals
        .load(id, &shared.kinds)
        .attempting(attempted, id)?
    {
        Loaded::Reversal(found) => return Ok(found.parameters.clone()),
        Loaded::Nothing => "its record is gone".to_owned(),
        Loaded::Unusable(why) => why,
    };
    shared.log(Level::Warning, format!("{id} is not undone: {why}"));
    lane.answer(Message::Input(Input::Forgotten(id.clone())));
    Err(Failure::new(attempted).on(id).because(why))
}

/// What must be safe before anything is made of a resource.
pub(super) fn before_init(
    shared: &Shared,
    resource: &DesiredResource,
    instance: &Instance,
    handle: &Handle,
    work: &RecordWork,
    lane: &Lane<Job>,
) -> Result<(), Failure> {
    let Some(state) = &shared.state else {
        return Ok(());
    };
    let id = &resource.id;
    match work {
        RecordWork::None | RecordWork::Serve => Ok(()),
        RecordWork::Erase => {
            let erased = state.reversals.erase([id]);
            erased.attempting("forget what undoes", id)?;
            lane.answer(Message::Input(Input::Forgotten(id.clone())));
            Ok(())
        }
        RecordWork::Write { receives } => {
            let undoing = guarded("look what undoes it", || {
                instance.resource().reverse(handle, receives)
            })?;
            let Some(parameters) = undoing? else {
                return Ok(());
            };
            let is_sensitive = |name: &str| instance.is_sensitive(name) || receives.contains(&name);
            let reversal = reversal_of(resource, &parameters, is_sensitive);
            lane.waits();
            state.reversals.write(&reversal)?;
            lane.answer(Message::Input(Input::Recorded(vec![without_parameters(
                &reversal,
            )])));
            Ok(())
        }
        RecordWork::Keep { receives } => {
            // What is on the machine now may be secret although what was there before was not, and both are seen when it is undone.
            let is_sensitive = |name: &str| instance.is_sensitive(name) || receives.contains(&name);
            let mut names = resource.schema.parameters.iter().map(|parameter| parameter.name);
            if !names.any(is_sensitive) {
                return Ok(());
            }
            match state
                .reversals
                .load(id, &shared.kinds)
                .attempting("read what undoes", id)?
            {
                Loaded::Reversal(known) => {
                    let marked = with_sensitive(&known, is_sensitive);
                    match marked == *known {
                        true => Ok(()),
                        false => state.reversals.write(&marked),
                    }
                }
                Loaded::Nothing => Ok(()),
                Loaded::Unusable(why) => {
                    shared.log(Level::Warning, format!("{id} will not be undone: {why}"));
                    lane.answer(Message::Input(Input::Forgotten(id.clone())));
                    Ok(())
                }
            }
        }
    }
}

/// Whether a run, which is over, was that of a reversal and has done what was to be done.
pub(super) fn is_served(run: &Run, result: &RunResult) -> bool {
    run.cell.resource.meta.is_reversal
        && result.outcome.is_ok()
        && result.checked
        && !run.request.noop
        && run.request.check == Check::Call
}

/// Whoever manages the same thing as what was undone must look at it, whether or not its watch has seen it yet. Else a host could
/// look quiet although what the program wants is gone.
pub(super) fn tell_others(shared: &Shared, run: &Run, result: &RunResult) {
    if result.drifts.is_empty() {
        return;
    }
    let Ok(identities) = guarded("say what it is", || run.cell.identities()) else {
        return;
    };
    for identity in identities {
        let Some(managed) = identity.sort.managed else {
            continue;
        };
        for key in (managed.aliases)(&identity.key) {
            for id in shared.services.graph.holders(identity.sort, &key) {
                shared.inbox.input(Input::Recheck(id));
            }
        }
    }
}

/// Erases records that were served. The undoing itself is on the disk by then, or is found to be done when it is tried again.
pub(super) fn erase<'a>(
    shared: &Shared,
    ids: impl IntoIterator<Item = &'a ResourceId>,
) -> Result<(), Failure> {
    let Some(state) = &shared.state else {
        return Ok(());
    };
    let erased = state.reversals.erase(ids);
    erased.map_err(|error| Failure::new("forget what was undone").because(error))
}
