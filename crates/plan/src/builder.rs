//! Rows from the events of a run without repairs.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_engine::{Effect, Event, EventKind, Forecast, ResourceName, RunSummary};
use setpoint_graph::ResourceId;

use crate::model::{Action, Field, Place, Row, Summary};

/// Collects what the events of a run without repairs say of each resource.
#[derive(Debug, Default)]
pub struct Builder {
    resources: FxHashMap<ResourceId, Resource>,
    /// The members of groups.
    members: FxHashMap<ResourceId, Vec<ResourceId>>,
    /// The number of runs that have ended.
    runs: usize,
    is_stopping: bool,
}

/// A resource in the program.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// Its statement.
    pub place: Option<Place>,
    /// Whether its repair is forbidden (`Meta:noop`).
    pub is_off: bool,
    /// Whether it is a hidden resource, which has no row.
    pub is_hidden: bool,
}

#[derive(Debug, Default)]
struct Resource {
    is_reversal: bool,
    group: Option<ResourceName>,
    order: usize,
    fields: Vec<Field>,
    attributes: BTreeMap<Arc<str>, Arc<str>>,
    end: End,
    foreseen: Forecast,
}

/// The end of the last run of a resource.
#[derive(Debug, Default)]
enum End {
    /// It has not run.
    #[default]
    Open,
    Done,
    Unsure,
    Failed(Arc<str>),
    Blocked(String),
}

impl Builder {
    /// Takes note of an event.
    pub fn take(&mut self, event: &Event) {
        self.is_stopping |= matches!(event.what, EventKind::Stopping { .. });
        // Resources that end with the engine have not left the program.
        let Some(id) = event.identity().filter(|_| !self.is_stopping) else {
            return;
        };
        match &event.what {
            EventKind::Added { reversal, members } => self.added(&id, *reversal, members),
            EventKind::Removed { .. } => {
                for id in self.all_of(&id) {
                    self.resources.remove(&id);
                }
                self.members.remove(&id);
            }
            EventKind::StartedRun { .. } => {
                for id in self.all_of(&id) {
                    self.note(&id, |resource| {
                        resource.fields.clear();
                        resource.attributes.clear();
                        resource.end = End::Open;
                    });
                }
            }
            EventKind::Drift {
                field,
                effect,
                is,
                want,
                unknown,
                diff,
                attributes,
                ..
            } => self.note(&id, |resource| {
                resource.attributes.extend(attributes.clone());
                resource.fields.push(Field {
                    field: field.clone(),
                    effect: *effect,
                    is: is.clone(),
                    want: want.clone(),
                    unknown: *unknown,
                    diff: diff.clone(),
                });
            }),
            EventKind::MemberFailed { error } => {
                self.note(&id, |resource| resource.end = End::Failed(error.clone()));
            }
            EventKind::RunEnded {
                result,
                error,
                foreseen,
                ..
            } => self.run_ended(&id, *result, error.as_ref(), foreseen.as_deref()),
            EventKind::GaveUp { error } => self.failed(&id, error),
            EventKind::BlockedBy { by } => {
                for id in self.all_of(&id) {
                    self.note(&id, |resource| resource.end = End::Blocked(by.clone()));
                }
            }
            EventKind::Unresponsive { waited, at } => {
                let at = at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
                let error = format!("give an answer{at} within {} s", waited.as_secs());
                self.failed(&id, &error.into());
            }
            _ => {}
        }
    }

    fn added(&mut self, id: &ResourceId, is_reversal: bool, members: &[ResourceName]) {
        let all = std::iter::once((id.clone(), None));
        let of_group = members
            .iter()
            .map(|member| (member.id(), Some(ResourceName::from(id))));
        for (id, group) in all.chain(of_group) {
            self.resources.insert(
                id,
                Resource {
                    is_reversal,
                    group,
                    ..Resource::default()
                },
            );
        }
        if !members.is_empty() {
            let members = members.iter().map(ResourceName::id).collect();
            self.members.insert(id.clone(), members);
        }
    }

    fn run_ended(
        &mut self,
        id: &ResourceId,
        result: RunSummary,
        error: Option<&Arc<str>>,
        foreseen: Option<&Forecast>,
    ) {
        self.runs += 1;
        let order = self.runs;
        for id in self.all_of(id) {
            self.note(&id, |resource| {
                resource.order = order;
                resource.foreseen = foreseen.cloned().unwrap_or_default();
                match result {
                    RunSummary::Ok | RunSummary::Drift => resource.end = End::Done,
                    RunSummary::Unsure => resource.end = End::Unsure,
                    RunSummary::Failed | RunSummary::Waiting => {}
                }
            });
        }
        if let Some(error) = error {
            self.failed(id, error);
        }
    }

    /// A run failed: because of some of those that are applied as one, or as a whole.
    fn failed(&mut self, id: &ResourceId, error: &Arc<str>) {
        let all = self.all_of(id);
        let is_blamed = |id: &ResourceId| {
            let resource = self.resources.get(id);
            resource.is_some_and(|resource| matches!(resource.end, End::Failed(_)))
        };
        let is_partly_blamed = all.len() > 1 && all.iter().any(is_blamed);
        for id in all {
            self.note(&id, |resource| match (&resource.end, is_partly_blamed) {
                (End::Failed(_), true) => {}
                (_, true) => resource.end = End::Done,
                (_, false) => resource.end = End::Failed(error.clone()),
            });
        }
    }

    /// A resource and what is applied as part of it.
    fn all_of(&self, id: &ResourceId) -> Vec<ResourceId> {
        let members = self.members.get(id).into_iter().flatten();
        std::iter::once(id).chain(members).cloned().collect()
    }

    fn note(&mut self, id: &ResourceId, change: impl FnOnce(&mut Resource)) {
        if let Some(resource) = self.resources.get_mut(id) {
            change(resource);
        }
    }

    /// The rows, unchanged resources included, by place and then by name; what left the program comes last. `known` looks a
    /// resource up in the program.
    #[must_use]
    pub fn rows(self, known: impl Fn(&ResourceId) -> Known) -> (Vec<Row>, Summary) {
        let mut summary = Summary::default();
        let mut rows: Vec<Row> = Vec::with_capacity(self.resources.len());
        rows.extend(self.resources.into_iter().filter_map(|(id, resource)| {
            let known = known(&id);
            (!known.is_hidden).then(|| resource.row(id, known.place, known.is_off))
        }));
        rows.sort_by(compare);
        for row in &rows {
            *summary.count_mut(row.action) += 1;
        }
        (rows, summary)
    }
}

/// By place; a resource without one, because it left the program, comes last.
#[must_use]
pub fn compare(a: &Row, b: &Row) -> Ordering {
    let has_left = |row: &Row| matches!(row.action, Action::Undo | Action::LetGo);
    let place = |row: &Row| {
        let place = row.place.as_ref();
        place.map(|place| (place.file.clone(), place.line, place.column))
    };
    (has_left(a), a.place.is_none())
        .cmp(&(has_left(b), b.place.is_none()))
        .then_with(|| place(a).cmp(&place(b)))
        .then_with(|| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)))
}

impl Resource {
    fn row(self, id: ResourceId, place: Option<Place>, is_off: bool) -> Row {
        let Forecast {
            unsure,
            needs,
            notified_by,
            until,
        } = self.foreseen;
        let action = match &self.end {
            End::Failed(_) => Action::Fail,
            End::Blocked(_) => Action::Blocked,
            End::Open => Action::Blocked,
            End::Unsure => Action::Unknown,
            End::Done if self.fields.is_empty() => Action::Unchanged,
            End::Done if is_off => Action::Off,
            End::Done if self.is_reversal => Action::Undo,
            End::Done => action_of(&self.fields),
        };
        let why = match &self.end {
            End::Failed(error) => Some(format!("failed to {error}")),
            End::Blocked(by) => Some(format!("not checked, because {by} fails")),
            End::Open => Some("not checked: the plan ended before".to_owned()),
            End::Unsure => unsure.as_ref().map(|unsure| unsure.why.to_string()),
            End::Done => None,
        };
        let is_moved = !matches!(action, Action::Unchanged | Action::Fail | Action::Blocked);
        Row {
            kind: id.kind,
            name: id.name,
            action,
            order: self.order,
            group: self.group,
            place,
            fields: if matches!(action, Action::Fail | Action::Blocked) {
                Vec::new()
            } else {
                self.fields
            },
            attributes: self.attributes,
            needs,
            notified_by: if is_moved { notified_by } else { Vec::new() },
            after: unsure.map(|unsure| unsure.after).unwrap_or_default(),
            why,
            until: until.filter(|_| is_moved || action == Action::Unchanged),
        }
    }
}

/// The action of a run with these differences.
fn action_of(fields: &[Field]) -> Action {
    let has = |effect: Effect| fields.iter().any(|field| field.effect == effect);
    match () {
        () if has(Effect::Create) => Action::Create,
        () if has(Effect::Remove) => Action::Remove,
        () if has(Effect::Change) => Action::Change,
        () if has(Effect::Restart) => Action::Restart,
        () if has(Effect::Reload) => Action::Reload,
        () => Action::Run,
    }
}
