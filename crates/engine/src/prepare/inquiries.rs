//! What only the machine can tell of a resource for automatic edges, such as the files of a package.
//!
//! All that are asked are asked at once, beside the engine, and for no longer than a limit: a graph does not wait for a disk that hangs.
//! An answer holds for as long as the parameters are the same. Who gave none has no such edges, which is told, and is asked again for the
//! next graph.

use std::collections::BTreeSet;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rustc_hash::FxHashMap;
use setpoint_graph::{DesiredGraph, DesiredResource, ResourceId};
use tokio::runtime;
use tokio::sync::watch;

use super::Kinds;
use crate::machine::ExitReport;
use crate::panics::guarded_future;
use crate::{Failure, Handle, Instance, KindSpec, Relations};

/// Asks resources.
pub(crate) struct Inquirer {
    pub(crate) runtime: runtime::Handle,
    /// What a resource is given.
    pub(crate) handle: Box<dyn Fn(&ResourceId) -> Handle + Send + Sync>,
    /// How long an answer may take.
    pub(crate) within: Duration,
    /// Nobody waits for answers any more when the engine has ended.
    pub(crate) exit: watch::Receiver<Option<ExitReport>>,
}

/// What was asked, and answered.
#[derive(Default)]
pub(super) struct Inquiries {
    answers: FxHashMap<ResourceId, (Arc<DesiredResource>, Relations)>,
    /// Who gave no answer for the newest graph.
    unanswered: BTreeSet<ResourceId>,
}

/// What came of asking one resource.
pub(super) type Answer = (ResourceId, Result<Relations, Failure>);

impl Inquiries {
    /// Those who are to be asked again although nothing of them has changed.
    pub(super) fn unanswered<'a>(
        &'a self,
        graph: &'a DesiredGraph,
    ) -> impl Iterator<Item = &'a Arc<DesiredResource>> {
        self.unanswered.iter().filter_map(|id| graph.resources.get(id))
    }

    /// What each of these is and wants, by the answer of before or a new one.
    pub(super) fn ask(
        &mut self,
        inquirer: &Inquirer,
        kinds: &Kinds,
        graph: &DesiredGraph,
        resources: &[Arc<DesiredResource>],
    ) -> Vec<Answer> {
        self.answers.retain(|id, _| graph.resources.contains_key(id));
        self.unanswered.clear();
        let mut found = Vec::with_capacity(resources.len());
        let mut asked = Vec::new();
        for resource in resources {
            match self.answers.get(&resource.id) {
                Some((known, answer)) if known.parameters == resource.parameters => {
                    found.push((resource.id.clone(), Ok(answer.clone())));
                }
                _ => asked.extend(
                    kinds
                        .get(&*resource.id.kind)
                        .map(|spec| (*spec, resource.clone())),
                ),
            }
        }
        let answers = ask_all(inquirer, &asked);
        for ((_, resource), answer) in asked.into_iter().zip(answers) {
            let id = resource.id.clone();
            match &answer {
                Ok(relations) => {
                    self.answers.insert(id.clone(), (resource, relations.clone()));
                }
                Err(_) => {
                    self.answers.remove(&id);
                    self.unanswered.insert(id.clone());
                }
            }
            found.push((id, answer));
        }
        found
    }
}

/// Asks all at once; the answers in the same order.
fn ask_all(
    inquirer: &Inquirer,
    asked: &[(KindSpec, Arc<DesiredResource>)],
) -> Vec<Result<Relations, Failure>> {
    let within = inquirer.within;
    let late = || {
        let seconds = within.as_secs_f64();
        Err(attempt().because(format!("there was no answer within {seconds} seconds")))
    };
    let mut answers: Vec<_> = asked.iter().map(|_| late()).collect();
    let (tell, told) = mpsc::channel();
    for (index, (spec, resource)) in asked.iter().enumerate() {
        let (spec, resource, tell) = (*spec, resource.clone(), tell.clone());
        let handle = (inquirer.handle)(&resource.id);
        let mut exit = inquirer.exit.clone();
        inquirer.runtime.spawn(async move {
            let answer = guarded_future(
                "find out what it has edges with",
                inquire(&spec, &resource, &handle),
            );
            let answer = tokio::select! {
                answer = tokio::time::timeout(within, answer) => answer.ok(),
                _ = exit.wait_for(Option::is_some) => None,
            };
            let _ = tell.send((
                index,
                answer.map(|answer| answer.and_then(std::convert::identity)),
            ));
        });
    }
    drop(tell);
    // Each gives an answer in time, unless it holds up the thread that it is on.
    while let Ok((index, answer)) = told.recv_timeout(within + GRACE) {
        if let Some(answer) = answer {
            answers[index] = answer;
        }
    }
    answers
}

/// What is given beyond the limit to those who keep to it.
const GRACE: Duration = Duration::from_secs(1);

fn attempt() -> Failure {
    Failure::new("find out what it has edges with")
}

async fn inquire(spec: &KindSpec, resource: &DesiredResource, handle: &Handle) -> Result<Relations, Failure> {
    let made = Instance::new(
        spec,
        resource.id.name.clone(),
        &super::known_of(&resource.parameters),
    );
    let Ok(instance) = made else {
        return Err(attempt().because("it was decoded before and now cannot be"));
    };
    let answer = instance.resource().inquire(handle).await;
    answer.map_err(|failure| instance.hide(failure))
}
