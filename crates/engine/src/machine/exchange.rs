//! Send and receive: which values a run takes into parameters, and who must run because of what was published.

use std::sync::Arc;

use setpoint_value::{Value, convert};

use super::vertex::Holding;
use super::{EventKind, Machine};
use crate::{Attempting, Cause, Failure, FailureReason, Received, Sent};

/// What a run is to set before anything else.
pub(super) type Transfer = Vec<(&'static str, Option<Value>)>;

impl Machine {
    /// What a vertex that is about to run receives. What changes is noted, and is what it holds once the run has set it.
    pub(super) fn prepare_transfer(&mut self, slot: u32) -> Result<Transfer, Failure> {
        let vertex = self.vertex(slot);
        let receives = vertex.incoming.iter().any(|edge| self.edges.get(*edge).sends());
        let extras = vertex.extras();
        let holds = extras.is_some_and(|extras| !extras.held.is_empty() || !extras.received.is_empty());
        if !receives && !holds {
            return Ok(Transfer::new());
        }
        let resource = self.live(slot).clone();
        let held = extras.map_or(&[][..], |extras| &extras.held);
        let mut transfer = Transfer::new();
        let mut holding: Vec<Holding> = Vec::new();
        let mut received: Vec<Received> = Vec::new();
        let flags = extras.map_or(&[][..], |extras| &extras.received);
        let was_changed = |parameter: &str| flags.iter().any(|f| f.parameter == parameter && f.changed);
        let mut news: Vec<usize> = Vec::new();
        for edge in &vertex.incoming {
            let edge = self.edges.get(*edge);
            for (key, parameter) in &edge.desired.send {
                let Some(schema) = resource.schema.parameter(parameter) else {
                    continue;
                };
                let before = held.iter().find(|held| held.parameter == schema.name);
                let sender = &edge.desired.from;
                received.push(Received {
                    parameter: schema.name,
                    from: sender.clone(),
                    key: key.clone(),
                    changed: was_changed(schema.name),
                });
                let Some(value) = self.published_value(edge.from, key)? else {
                    // Withheld: the parameter keeps what it holds.
                    holding.extend(before.cloned());
                    continue;
                };
                let value = fit(&value, schema.parameter_type)
                    .attempting(
                        "receive",
                        format_args!("{sender}.{key} into {}.{parameter}", resource.id),
                    )
                    .map_err(|failure| failure.reasoned(FailureReason::Unfit))?;
                let now = before
                    .map(|held| &held.value)
                    .or_else(|| resource.parameters.get(schema.name));
                if now != Some(&value) {
                    transfer.push((schema.name, Some(value.clone())));
                    let last = received.len() - 1;
                    received[last].changed = true;
                    news.push(last);
                }
                holding.push(Holding {
                    parameter: schema.name,
                    value,
                });
            }
        }
        for held in held {
            if !holding.iter().any(|other| other.parameter == held.parameter) {
                transfer.push((held.parameter, resource.parameters.get(held.parameter).cloned()));
            }
        }
        for change in news.iter().map(|index| &received[*index]) {
            let what = EventKind::Received {
                parameter: change.parameter.to_owned(),
                from: change.from.to_string(),
                key: change.key.clone(),
            };
            self.emit(Some(slot), what);
        }
        let extras = self.extras_mut(slot);
        extras.received = received;
        extras.transferring = Some(holding);
        Ok(transfer)
    }

    /// What a sender published under a key; none when it withholds it.
    fn published_value(&self, sender: u32, key: &str) -> Result<Option<Value>, Failure> {
        let vertex = self.vertex(sender);
        let nothing = || {
            let failure = Failure::new(format!("run: received nothing from {}", self.show(sender)));
            failure.reasoned(FailureReason::Unfit)
        };
        let Some(life) = &vertex.life else {
            return Err(nothing());
        };
        match &vertex.published {
            Some(sent) if life.has_published => match sent.get(key) {
                Some(value) => Ok(value.cloned()),
                None => Err(nothing()),
            },
            _ if self.is_noop(&life.resource) => Ok(None),
            _ => Err(nothing()),
        }
    }

    /// Keeps what a run published, and makes those dirty for whom it differs from what was there before.
    pub(super) fn publish(&mut self, slot: u32, sent: Sent) {
        self.life_mut(slot).has_published = true;
        let vertex = self.vertex_mut(slot);
        let sent = Arc::new(sent);
        let before = vertex.published.replace(sent.clone());
        let edges = vertex.outgoing.clone();
        let keys = sent.keys.iter().map(|(key, _)| (*key).to_owned()).collect();
        self.emit(Some(slot), EventKind::Sent { keys });
        for edge in edges {
            let edge = self.edges.get(edge);
            let differs = edge
                .desired
                .send
                .iter()
                .any(|(key, _)| before.as_ref().and_then(|before| before.get(key)) != sent.get(key));
            if differs {
                let to = edge.to;
                let cause = Cause::ReceivedFrom(self.show(slot));
                self.make_due(to, cause);
            }
        }
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
