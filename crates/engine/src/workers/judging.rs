//! Judging a run without repairs: the forecast for a run with repairs.

use setpoint_graph::ResourceId;

use super::Shared;
use super::execute::Run;
use crate::foresight::{Foresight, Judged};
use crate::machine::{RunResult, UnknownParameter};
use crate::{
    Drift, DriftValue, Effect, Failure, FailureReason, Forecast, Identity, Instance, Need, Outcome,
    ResourceName, Unsure,
};

/// The findings of a run that only the judgement uses.
#[derive(Debug, Default)]
pub(super) struct Findings {
    creates: Vec<Identity>,
    needs: Vec<Need>,
    missing: Vec<Identity>,
    doubt: Option<String>,
}

impl Findings {
    /// Takes out of an outcome what only the judgement is about.
    pub(super) fn of(outcome: &mut Outcome) -> Findings {
        Findings {
            creates: std::mem::take(&mut outcome.creates),
            needs: std::mem::take(&mut outcome.needs),
            missing: std::mem::take(&mut outcome.missing),
            doubt: outcome.doubt.take(),
        }
    }
}

/// A run begins.
pub(super) fn begin(shared: &Shared, run: &Run) {
    if let Some(foresight) = &shared.foresight {
        let id = &run.cell.resource.id;
        let spec = shared.kinds.get(&*id.kind);
        foresight.begin(
            id,
            &run.request.before,
            spec.map_or_else(Default::default, |spec| spec.brings),
        );
    }
}

/// Lets parameters that have no value yet be as if they were not set. Fails if the rest of the resource depends on one.
pub(super) fn leave_out(shared: &Shared, run: &Run, instance: &mut Instance) -> Result<(), Box<RunResult>> {
    let spec = shared.kinds.get(&*run.cell.resource.id.kind);
    let independent = spec.map_or(&[][..], |spec| spec.independent);
    let unknown = &run.request.unknown;
    let is_independent =
        |unknown: &&UnknownParameter| unknown.member.is_none() && independent.contains(&unknown.parameter);
    if let Some(dependent) = unknown.iter().find(|unknown| !is_independent(unknown)) {
        let unsure = Unsure {
            why: format!("`{}` is {}", dependent.parameter, known_after(dependent)).into(),
            after: vec![ResourceName::from(&dependent.from)],
        };
        let forecast = Forecast {
            unsure: Some(unsure),
            ..Forecast::default()
        };
        return Err(Box::new(RunResult {
            checked: false,
            forecast: Some(Box::new(forecast)),
            ..RunResult::ok()
        }));
    }
    for unknown in unknown {
        if let Err(invalid) = instance.set_parameter(unknown.parameter, None) {
            let failure = Failure::new("leave out")
                .on(unknown.parameter)
                .because(invalid.message);
            return Err(Box::new(RunResult::failed(
                failure.reasoned(FailureReason::Unfit),
            )));
        }
    }
    Ok(())
}

/// Adds a difference for each parameter that has no value yet.
pub(super) fn add_unknown(run: &Run, result: &mut RunResult) {
    for unknown in &run.request.unknown {
        result.drifts.push(Drift {
            member: None,
            field: unknown.parameter.into(),
            effect: Effect::Change,
            is: DriftValue::Absent,
            want: DriftValue::Unknown(known_after(unknown)),
            attributes: Vec::new(),
            repaired: false,
            is_done: false,
        });
    }
}

fn known_after(unknown: &UnknownParameter) -> String {
    format!("known after {} has run (its {})", unknown.from, unknown.key)
}

/// A run has ended: what it means for the run that would follow, and for those behind it.
pub(super) fn judge(
    shared: &Shared,
    run: &Run,
    instance: &mut Instance,
    findings: Findings,
    result: &mut RunResult,
) {
    let Some(foresight) = &shared.foresight else {
        return;
    };
    let id = &run.cell.resource.id;
    let mut forecast = result.forecast.take().unwrap_or_default();
    forecast.needs = findings.needs.clone();
    forecast.until = foresight.opaque_before(id).as_ref().map(ResourceName::from);
    if forecast.unsure.is_none() {
        forecast.unsure = why_unsure(foresight, id, &findings, result);
    }
    let is_unsure = forecast.unsure.is_some();
    if is_unsure {
        result.outcome = Ok(());
        result.failed_members.clear();
        result.is_partial = false;
    }
    if *forecast != Forecast::default() {
        result.forecast = Some(forecast);
    }
    let judged = match &result.outcome {
        Err(failure) => {
            let helped = explained(foresight, failure, &findings.missing);
            result.outcome = Err(helped);
            Judged::Open
        }
        // A run with repairs leaves such a resource alone, too.
        Ok(()) if run.cell.resource.meta.noop => Judged::Right,
        Ok(()) if is_unsure => Judged::Unsure,
        Ok(()) if result.drifts.is_empty() => Judged::Right,
        Ok(()) => Judged::Moved,
    };
    let mut creates = findings.creates;
    if !matches!(judged, Judged::Moved | Judged::Unsure) {
        return foresight.end(id, judged, Vec::new());
    }
    if judged == Judged::Unsure {
        creates.extend(identities_of(instance, None));
    }
    let created = result
        .drifts
        .iter()
        .filter(|drift| drift.effect == Effect::Create);
    for drift in created {
        creates.extend(identities_of(instance, drift.member.as_ref()));
    }
    foresight.end(id, judged, creates);
}

fn why_unsure(
    foresight: &Foresight,
    id: &ResourceId,
    findings: &Findings,
    result: &RunResult,
) -> Option<Unsure> {
    let after = foresight.moved_before(id)?;
    let why = match (&result.outcome, &findings.doubt) {
        (Err(failure), _) => {
            let is_about_the_machine = matches!(
                failure.reason(),
                FailureReason::Refused | FailureReason::Overtaken | FailureReason::Unfit
            );
            if !is_about_the_machine {
                return None;
            }
            format!("it fails today: {}", failure.chain())
        }
        (Ok(()), Some(doubt)) => doubt.clone(),
        (Ok(()), None) => return None,
    };
    Some(Unsure {
        why: why.into(),
        after: vec![ResourceName::from(&after)],
    })
}

/// A failure that says who would create what is missing, if that only comes too late.
fn explained(foresight: &Foresight, failure: &Failure, missing: &[Identity]) -> Failure {
    let maker = missing.iter().find_map(|identity| foresight.maker(identity));
    match maker {
        Some(maker) => {
            let why = format!(
                "{}; {maker} creates it, but nothing says that it comes first",
                failure.chain()
            );
            Failure::new(why).reasoned(failure.reason())
        }
        None => failure.clone(),
    }
}

fn identities_of(instance: &mut Instance, member: Option<&ResourceId>) -> Vec<Identity> {
    let Some(member) = member else {
        return instance.resource().identities();
    };
    let members = instance.resource_mut().members();
    let member = members.and_then(|members| members.get_mut(member));
    member.map_or_else(Vec::new, |member| member.resource().identities())
}
