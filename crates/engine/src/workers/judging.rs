//! Judging a run without repairs: the forecast for a run with repairs.

use setpoint_graph::ResourceId;

use super::Shared;
use super::execute::Run;
use crate::foresight::{Becomes, Foresight, Judged};
use crate::machine::{KnownBy, RunResult, UnknownParameter};
use crate::{
    Drift, DriftValue, Effect, Failure, FailureReason, Forecast, Identity, Instance, Need, Outcome,
    ResourceName, Unsure, WantedOrder,
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
            after: senders(dependent),
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
        // A new resource would not have the default that stands in for it.
        for drift in &mut result.drifts {
            drift.attributes.retain(|(name, _)| *name != unknown.parameter);
        }
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
    match &unknown.known_by {
        KnownBy::Sender { from, key } => format!("known after {from} has run (its {key})"),
        KnownBy::Program { prefix } if prefix.is_empty() => "known when the program runs".to_owned(),
        KnownBy::Program { prefix } => {
            format!("known when the program runs; it begins with `{prefix}`")
        }
    }
}

fn senders(unknown: &UnknownParameter) -> Vec<ResourceName> {
    match &unknown.known_by {
        KnownBy::Sender { from, .. } => vec![ResourceName::from(from)],
        KnownBy::Program { .. } => Vec::new(),
    }
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
        forecast.unsure = why_unsure(foresight, id, &findings, result)
            .or_else(|| needs_what_may_come(&forecast))
            .or_else(|| waits_for_a_doubtful_notification(run, result))
            .or_else(|| loses_what_it_needs(foresight, id, instance, result));
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
    let facts = match judged {
        Judged::Moved | Judged::Unsure => facts(instance, findings.creates, result, is_unsure),
        Judged::Open | Judged::Right => Vec::new(),
    };
    foresight.end(id, judged, facts);
}

/// The fates of the things that a run is about.
fn facts(
    instance: &mut Instance,
    creates: Vec<Identity>,
    result: &RunResult,
    is_unsure: bool,
) -> Vec<(Identity, Becomes)> {
    let mut facts: Vec<(Identity, Becomes)> = creates
        .into_iter()
        .map(|identity| (identity, Becomes::Created))
        .collect();
    if is_unsure {
        let removes = result.drifts.iter().any(|drift| drift.effect == Effect::Remove);
        let own = identities_of(instance, None).into_iter();
        facts.extend(own.map(|identity| (identity, Becomes::Unsure { removes })));
        return facts;
    }
    // Each thing once: what creates or removes it counts, whatever else changes with it.
    let mut members: Vec<(Option<&ResourceId>, Becomes)> = Vec::new();
    for drift in &result.drifts {
        let becomes = match drift.effect {
            Effect::Create => Becomes::Created,
            Effect::Remove => Becomes::Removed,
            Effect::Change => Becomes::Changed,
            Effect::Run | Effect::Reload | Effect::Restart => continue,
        };
        match members
            .iter_mut()
            .find(|(member, _)| *member == drift.member.as_ref())
        {
            None => members.push((drift.member.as_ref(), becomes)),
            Some((_, known)) if *known == Becomes::Changed => *known = becomes,
            Some(_) => {}
        }
    }
    for (member, becomes) in members {
        let identities = identities_of(instance, member).into_iter();
        facts.extend(identities.map(|identity| (identity, becomes)));
    }
    facts
}

fn why_unsure(
    foresight: &Foresight,
    id: &ResourceId,
    findings: &Findings,
    result: &RunResult,
) -> Option<Unsure> {
    // It looked for something that is missing, and nothing before it brings that.
    if result.outcome.is_err() && !findings.missing.is_empty() {
        return None;
    }
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

/// The run needs something that an earlier resource may bring. Behind one that can bring anything, the forecast says so already.
fn needs_what_may_come(forecast: &Forecast) -> Option<Unsure> {
    let need = forecast.needs.iter().find(|need| !need.is_certain)?;
    forecast.until.is_none().then(|| Unsure {
        why: format!("it needs {}, which {} may bring", need.what, need.by.id()).into(),
        after: vec![need.by.clone()],
    })
}

/// Something is done for a notification that may not come.
fn waits_for_a_doubtful_notification(run: &Run, result: &RunResult) -> Option<Unsure> {
    let senders = &run.request.refresh;
    let has_deed = result.drifts.iter().any(|drift| drift.effect.is_deed());
    if senders.is_empty() || !run.request.refresh_is_doubtful || !has_deed {
        return None;
    }
    let names: Vec<String> = senders.iter().map(ToString::to_string).collect();
    Some(Unsure {
        why: format!("only if {} then changes something", names.join(" or ")).into(),
        after: senders.iter().map(ResourceName::from).collect(),
    })
}

/// An earlier resource would remove something that the resource needs.
fn loses_what_it_needs(
    foresight: &Foresight,
    id: &ResourceId,
    instance: &Instance,
    result: &RunResult,
) -> Option<Unsure> {
    let wanted = || {
        let wanted = instance.resource().wanted();
        let before = wanted
            .into_iter()
            .filter(|wanted| wanted.order == WantedOrder::FoundFirst);
        before.flat_map(|wanted| wanted.identities).collect()
    };
    let remover = foresight.remover(id, wanted).filter(|_| result.outcome.is_ok())?;
    Some(Unsure {
        why: format!("it needs something that {remover} removes").into(),
        after: vec![ResourceName::from(&remover)],
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
