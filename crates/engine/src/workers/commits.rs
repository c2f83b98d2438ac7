//! Runs that end with the replacement of a file: the answer to the machine waits until the committer says what became of it.
//!
//! The committer tells it of many at a time, and they are answered at a time. So a run costs no thread that waits.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_graph::ResourceId;
use setpoint_host::files::{FileError, Party, Replaced};
use setpoint_host::sync::Mutex;

use super::Shared;
use super::execute::{Job, Run};
use super::exporting::Exporting;
use super::inbox::Message;
use super::pool::Lane;
use crate::apply::{AfterReplacement, Replacement};
use crate::machine::RunResult;
use crate::{Failure, Level};

/// Those that wait, by ticket.
#[derive(Default)]
pub(super) struct Commits(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    next: u64,
    runs: FxHashMap<u64, Pending>,
}

/// A run that is over but for its replacement.
struct Pending {
    run: Run,
    result: RunResult,
    exporting: Exporting,
    then: AfterReplacement,
    is_first_repair: bool,
}

/// Hands over the replacement with which a run ends; commits for all who wait if nobody does.
pub(super) fn submit(
    shared: &Arc<Shared>,
    run: Run,
    result: RunResult,
    exporting: Exporting,
    replacement: Replacement,
    lane: &Lane<Job>,
) {
    let Replacement {
        prepared,
        then,
        is_first_repair,
    } = replacement;
    let mut waiting = shared.commits.0.lock();
    let ticket = waiting.next;
    waiting.next += 1;
    waiting.runs.insert(
        ticket,
        Pending {
            run,
            result,
            exporting,
            then,
            is_first_repair,
        },
    );
    drop(waiting);
    let party: Arc<dyn Party> = shared.clone();
    if let Some(lead) = shared.services.committer.submit(prepared, &party, ticket) {
        lane.waits();
        lead.run();
    }
}

impl Party for Shared {
    /// Stores the notifications that these replacements may cause.
    fn before(&self, tickets: &mut Vec<u64>) {
        let Some(state) = &self.state else { return };
        let waiting = self.commits.0.lock();
        let notifying: Vec<_> = tickets
            .iter()
            .filter_map(|ticket| {
                let pending = waiting.runs.get(ticket)?;
                let request = &pending.run.request;
                let notifies = pending.is_first_repair && !request.notifies.is_empty();
                notifies.then(|| {
                    let id = pending.run.cell.resource.id.clone();
                    (*ticket, id, request.notifies.clone(), request.run)
                })
            })
            .collect();
        drop(waiting);
        if notifying.is_empty() {
            return;
        }
        let marks = notifying.iter().flat_map(|(_, sender, receivers, run)| {
            receivers.iter().map(move |receiver| (receiver, sender, *run))
        });
        let Err(failure) = state.mark_all(marks) else {
            return;
        };
        // Which of them were stored is not known: none of them repairs anything.
        let mut answers = Vec::new();
        let mut waiting = self.commits.0.lock();
        for (ticket, ..) in notifying {
            tickets.retain(|other| *other != ticket);
            if let Some(pending) = waiting.runs.remove(&ticket) {
                answers.extend(pending.end(self, Err(failure.clone())));
            }
        }
        drop(waiting);
        self.inbox.push_all(answers);
    }

    fn ended(&self, results: Vec<(u64, Result<Replaced, FileError>)>) {
        let mut waiting = self.commits.0.lock();
        let ended: Vec<_> = results
            .into_iter()
            .filter_map(|(ticket, result)| Some((waiting.runs.remove(&ticket)?, result)))
            .collect();
        drop(waiting);
        let served = ended.iter().filter(|(pending, result)| {
            result.is_ok() && super::records::is_served(&pending.run, &pending.result)
        });
        let served: Vec<ResourceId> = served
            .map(|(pending, _)| pending.run.cell.resource.id.clone())
            .collect();
        // They are undone; with the record still there that would be done once more.
        let erased = match served.is_empty() {
            true => Ok(()),
            false => super::records::erase(self, &served),
        };
        let answers: Vec<Message> = ended
            .into_iter()
            .filter_map(|(mut pending, result)| match result {
                Ok(replaced) => {
                    let then = std::mem::replace(&mut pending.then, Box::new(|_| None));
                    if let Some(message) = then(&replaced) {
                        self.log_of(pending.run.vertex, None, Level::Info, &message);
                    }
                    match super::records::is_served(&pending.run, &pending.result) {
                        true => {
                            super::records::tell_others(self, &pending.run, &pending.result);
                            pending.end(self, erased.clone())
                        }
                        false => pending.end(self, Ok(())),
                    }
                }
                Err(error) => pending.end(self, Err(error.into())),
            })
            .collect();
        self.inbox.serve(answers);
    }
}

impl Pending {
    /// Its answer, unless what it exports is still on the way.
    fn end(mut self, shared: &Shared, committed: Result<(), Failure>) -> Option<Message> {
        if let Err(failure) = committed {
            self.result.outcome = Err(failure);
        }
        shared.end_run(&self.run, self.result, self.exporting)
    }
}
