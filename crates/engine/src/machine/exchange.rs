//! Send and receive: which values a run takes into parameters, and who must run because of what was published.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_graph::ResourceId;
use setpoint_value::{Value, convert};

use super::vertex::{Holding, Receiving};
use super::{EventKind, Machine, UnknownParameter};
use crate::{Attempting, Cause, Failure, FailureReason, MemberRequest, Received, Sent};

/// What a run is to set in one resource.
pub(super) type Transfer = Vec<(&'static str, Option<Value>)>;

/// What a run is to set before anything else, in the resource and in members.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    pub(super) own: Transfer,
    pub(super) members: BTreeMap<ResourceId, Transfer>,
    /// Parameters without a value before their sender has run.
    pub(super) unknown: Vec<UnknownParameter>,
}

impl Transfers {
    fn push(&mut self, member: Option<&ResourceId>, parameter: &'static str, value: Option<Value>) {
        let transfer = match member {
            Some(member) => self.members.entry(member.clone()).or_default(),
            None => &mut self.own,
        };
        transfer.push((parameter, value));
    }
}

impl Machine {
    /// What a vertex that is about to run receives. What changes is noted, and is what it holds once the run has set it.
    pub(super) fn prepare_transfer(&mut self, slot: u32) -> Result<Transfers, Failure> {
        let vertex = self.vertex(slot);
        let receives = vertex.incoming.iter().any(|edge| self.edges.get(*edge).sends());
        let extras = vertex.extras();
        let holds = extras.is_some_and(|extras| !extras.held.is_empty() || !extras.received.is_empty());
        if !receives && !holds {
            return Ok(Transfers::default());
        }
        let resource = self.live(slot).clone();
        let held = extras.map_or(&[][..], |extras| &extras.held);
        let held: FxHashMap<Place<'_>, &Value> =
            held.iter().map(|held| (held.place(), &held.value)).collect();
        let flags = extras.map_or(&[][..], |extras| &extras.received);
        let flags = flags.iter().filter(|flag| flag.received.changed);
        let changed: FxHashSet<Place<'_>> = flags.map(Receiving::place).collect();
        let mut transfers = Transfers::default();
        let mut holding: Vec<Holding> = Vec::new();
        let mut received: Vec<Receiving> = Vec::new();
        let mut news: Vec<usize> = Vec::new();
        for edge in &vertex.incoming {
            let edge = self.edges.get(*edge);
            for sending in edge.desired.sendings() {
                let member = (*sending.to != resource.id).then_some(sending.to);
                let of = member.map_or(Some(&resource), |member| resource.members.get(member));
                let Some(of) = of else { continue };
                let Some(schema) = of.schema.parameter(sending.parameter) else {
                    continue;
                };
                let place = (member, schema.name);
                let before = held.get(&place).copied();
                received.push(Receiving {
                    member: member.cloned(),
                    received: Received {
                        parameter: schema.name,
                        from: sending.from.clone(),
                        key: sending.key.clone(),
                        changed: changed.contains(&place),
                    },
                });
                if self.is_not_known_yet(edge.from, sending.from) {
                    transfers
                        .unknown
                        .push(UnknownParameter::of(sending, member, schema.name));
                    continue;
                }
                let Some(value) = self.published_value(edge.from, sending.from, sending.key)? else {
                    // Withheld: the parameter keeps what it holds.
                    holding.extend(before.map(|value| Holding::of(place, value)));
                    continue;
                };
                let value = fit(&value, schema.parameter_type)
                    .attempting(
                        "receive",
                        format_args!(
                            "{}.{} into {}.{}",
                            sending.from, sending.key, of.id, sending.parameter
                        ),
                    )
                    .map_err(|failure| failure.reasoned(FailureReason::Unfit))?;
                let now = before.or_else(|| of.parameters.get(schema.name));
                if now != Some(&value) {
                    transfers.push(member, schema.name, Some(value.clone()));
                    let last = received.len() - 1;
                    received[last].received.changed = true;
                    news.push(last);
                }
                holding.push(Holding::of(place, &value));
            }
        }
        let still_held: FxHashSet<Place<'_>> = holding.iter().map(Holding::place).collect();
        let mut dropped: Vec<Place<'_>> = held.keys().copied().collect();
        dropped.retain(|place| !still_held.contains(place));
        dropped.sort_unstable();
        for (member, parameter) in dropped {
            let of = member.map_or(Some(&resource), |member| resource.members.get(member));
            if let Some(of) = of {
                transfers.push(member, parameter, of.parameters.get(parameter).cloned());
            }
        }
        for Receiving {
            member,
            received: change,
        } in news.iter().map(|index| &received[*index])
        {
            let what = EventKind::Received {
                parameter: change.parameter.to_owned(),
                from: change.from.to_string(),
                key: change.key.clone(),
            };
            self.emit_of(slot, member.as_ref(), what);
        }
        let extras = self.extras_mut(slot);
        extras.received = received;
        extras.transferring = Some(holding);
        Ok(transfers)
    }

    /// What a run is given of what it receives: itself, and each member that receives something.
    pub(super) fn received(&self, slot: u32, transfers: Transfers) -> (Vec<Received>, Vec<MemberRequest>) {
        let mut own = Vec::new();
        let mut members: BTreeMap<&ResourceId, Vec<Received>> = BTreeMap::new();
        let extras = self.vertex(slot).extras();
        for Receiving { member, received } in extras.map_or(&[][..], |extras| &extras.received) {
            match member {
                Some(member) => members.entry(member).or_default().push(received.clone()),
                None => own.push(received.clone()),
            }
        }
        // Of a member that receives nothing any more, a parameter goes back to what the program says.
        for member in transfers.members.keys() {
            members.entry(member).or_default();
        }
        let requests = members.into_iter().map(|(id, received)| MemberRequest {
            id: id.clone(),
            transfer: transfers.members.get(id).cloned().unwrap_or_default(),
            received,
        });
        (own, requests.collect())
    }

    /// Whether a sender would publish something else if it were repaired.
    fn is_not_known_yet(&self, slot: u32, sender: &ResourceId) -> bool {
        let vertex = self.vertex(slot);
        let Some(life) = vertex.life.as_ref().filter(|_| self.options.noop) else {
            return false;
        };
        let published = vertex.published.as_ref();
        let sent = match *sender == life.resource.id {
            true => published.and_then(|all| all.own.as_ref()),
            false => published
                .and_then(|all| all.by_members.get(sender))
                .map(|(_, sent)| sent),
        };
        let is_final = sent.is_some_and(|sent| sent.is_final);
        !is_final && life.would_change && !life.resource.meta.noop
    }

    /// What a sender, or a member of it, published under a key; none when it withholds it.
    fn published_value(&self, slot: u32, sender: &ResourceId, key: &str) -> Result<Option<Value>, Failure> {
        let vertex = self.vertex(slot);
        let nothing = || {
            let failure = Failure::new(format!("run: received nothing from {sender}"));
            failure.reasoned(FailureReason::Unfit)
        };
        let Some(life) = &vertex.life else {
            return Err(nothing());
        };
        let (sent, is_noop) = if *sender == life.resource.id {
            let sent = vertex.published.as_ref().and_then(|all| all.own.as_ref());
            let sent = sent.filter(|_| life.has_published);
            (sent, self.is_noop(&life.resource))
        } else {
            let all = vertex.published.as_ref();
            let sent = all.and_then(|all| all.by_members.get(sender));
            let sent = sent.filter(|(incarnation, _)| *incarnation == vertex.incarnation);
            let member = life.resource.members.get(sender);
            let is_noop = self.is_noop(&life.resource) || member.is_some_and(|member| self.is_noop(member));
            (sent.map(|(_, sent)| sent), is_noop)
        };
        match sent {
            Some(sent) => match sent.get(key) {
                Some(value) => Ok(value.cloned()),
                None => Err(nothing()),
            },
            _ if is_noop => Ok(None),
            _ => Err(nothing()),
        }
    }

    /// Keeps what a run published, and makes those dirty for whom it differs from what was there before.
    pub(super) fn publish(&mut self, slot: u32, sent: Sent) {
        self.life_mut(slot).has_published = true;
        let vertex = self.vertex_mut(slot);
        let sent = Arc::new(sent);
        let published = vertex.published.get_or_insert_default();
        let before = published.own.replace(sent.clone());
        let Some(id) = self.identity(slot) else { return };
        self.tell_receivers(slot, &id, before.as_deref(), &sent);
    }

    /// The same for what a member published.
    pub(super) fn publish_of_member(&mut self, slot: u32, member: &ResourceId, sent: Sent) {
        let vertex = self.vertex_mut(slot);
        let sent = Arc::new(sent);
        let incarnation = vertex.incarnation;
        let published = vertex.published.get_or_insert_default();
        let before = published
            .by_members
            .insert(member.clone(), (incarnation, sent.clone()));
        self.tell_receivers(slot, member, before.as_ref().map(|(_, sent)| &**sent), &sent);
    }

    fn tell_receivers(&mut self, slot: u32, sender: &ResourceId, before: Option<&Sent>, sent: &Sent) {
        let keys = sent.keys.iter().map(|(key, _)| (*key).to_owned()).collect();
        let member = self.vertex(slot).identity().filter(|id| *id != sender);
        let member = member.is_some().then_some(sender);
        self.emit_of(slot, member, EventKind::Sent { keys });
        let edges = self.vertex(slot).outgoing.clone();
        for edge in edges {
            let edge = self.edges.get(edge);
            let differs = edge.desired.sendings().any(|sending| {
                sending.from == sender
                    && before.and_then(|before| before.get(sending.key)) != sent.get(sending.key)
            });
            if differs {
                let to = edge.to;
                let cause = Cause::ReceivedFrom(sender.to_string());
                self.make_due(to, cause);
            }
        }
    }
}

/// A parameter of a vertex, or of a member of it.
type Place<'a> = (Option<&'a ResourceId>, &'static str);

impl Holding {
    fn of((member, parameter): Place<'_>, value: &Value) -> Holding {
        Holding {
            member: member.cloned(),
            parameter,
            value: value.clone(),
        }
    }

    fn place(&self) -> Place<'_> {
        (self.member.as_ref(), self.parameter)
    }
}

impl Receiving {
    fn place(&self) -> Place<'_> {
        (self.member.as_ref(), self.received.parameter)
    }
}

/// A value as its parameter takes it.
fn fit(value: &Value, parameter_type: &'static setpoint_graph::ParameterType) -> Result<Value, String> {
    if parameter_type.check(value).is_ok() {
        return Ok(value.clone());
    }
    if matches!(value.unmarked(), Value::Null(_)) && !parameter_type.is_optional() {
        return Err("the value is absent, and the parameter cannot be".to_owned());
    }
    let converted = convert(value, &parameter_type.ty()).map_err(|error| error.to_string())?;
    parameter_type
        .check(&converted)
        .map_err(|mismatch| mismatch.to_string())?;
    Ok(converted)
}
