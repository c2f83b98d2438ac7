//! Plans in files: what may be done by the run that applies one, and how the machine differs from it by now.

use rustc_hash::FxHashMap;
use setpoint_engine::{Effect, Permit, Permits, PermittedField};
use setpoint_graph::ResourceId;

use crate::model::{Action, FORMAT, Field, Plan, Row, VERSION};
use crate::words::{label, shown};

/// Reads a plan from the text of its file.
///
/// # Errors
/// Why it is no plan that this version can use, as a sentence.
pub fn read(text: &str) -> Result<Plan, String> {
    let header: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("it is not a complete JSON object: {error}"))?;
    if header["format"] != FORMAT {
        return Err("it is not a plan of Setpoint".to_owned());
    }
    let version = header["version"].as_str().unwrap_or_default();
    let major = |version: &str| version.split('.').next().unwrap_or_default().to_owned();
    if major(version) != major(VERSION) {
        return Err(format!(
            "it has version {} of the format, and this version of Setpoint uses {VERSION}",
            shown(version)
        ));
    }
    serde_json::from_value(header).map_err(|error| format!("it is damaged: {error}"))
}

/// The permits of the run that applies a plan.
#[must_use]
pub fn permits(plan: &Plan) -> Permits {
    let rows = plan.rows.iter().map(|row| {
        let fields = row.fields.iter().map(|field| PermittedField {
            field: field.field.clone(),
            is: field.is.clone(),
            want: (!field.unknown).then(|| field.want.clone()),
            diff: field.diff.clone(),
        });
        let permit = Permit {
            fields: fields.collect(),
            is_open: row.action == Action::Unknown,
            follows_the_unknown: row.until.is_some(),
        };
        (id(row), permit)
    });
    rows.collect()
}

/// The differences between a saved plan and the machine now.
#[derive(Debug, Default)]
pub struct Changes {
    /// Changes that the plan does not show, as sentences.
    pub new: Vec<String>,
    /// How many rows of the plan are done already.
    pub done: usize,
}

/// Compares a plan with one that was made now.
#[must_use]
pub fn changes(plan: &Plan, now: &Plan) -> Changes {
    let known: FxHashMap<ResourceId, &Row> = plan.rows.iter().map(|row| (id(row), row)).collect();
    let mut changes = Changes::default();
    for row in &now.rows {
        let planned = known.get(&id(row)).copied();
        let was_moved = planned.is_some_and(|planned| is_moved(planned.action));
        match row.action {
            Action::Unchanged | Action::Off | Action::LetGo => changes.done += usize::from(was_moved),
            Action::Fail => changes.new.push(format!(
                "{}: {}",
                label(row),
                shown(row.why.as_deref().unwrap_or("would fail"))
            )),
            Action::Blocked => {}
            _ => changes.new.extend(differences(planned, row)),
        }
    }
    changes
}

fn is_moved(action: Action) -> bool {
    !matches!(
        action,
        Action::Unchanged | Action::Off | Action::LetGo | Action::Fail | Action::Blocked
    )
}

/// The changes of a row that the plan does not show.
fn differences(planned: Option<&Row>, now: &Row) -> Vec<String> {
    let name = label(now);
    let Some(planned) = planned else {
        return vec![format!("{name}: the plan does not have it")];
    };
    if planned.action == Action::Unknown {
        return Vec::new();
    }
    if now.action == Action::Unknown {
        return vec![format!("{name}: it cannot be said any more what it would do")];
    }
    let follows_the_unknown = planned.until.is_some();
    let differs = |field: &Field| {
        let brings = matches!(field.effect, Effect::Create | Effect::Change);
        if follows_the_unknown && brings {
            return None;
        }
        let Some(before) = planned.fields.iter().find(|before| before.field == field.field) else {
            return Some(format!(
                "{name}: {} is {} now; the plan shows no change of it",
                shown(&field.field),
                shown(&field.is)
            ));
        };
        let is_done = matches!(field.effect, Effect::Run | Effect::Reload | Effect::Restart);
        if !is_done && before.is != field.is {
            return Some(format!(
                "{name}: {} was {} when it was planned, and is {} now",
                shown(&field.field),
                shown(&before.is),
                shown(&field.is)
            ));
        }
        if !before.unknown && before.want != field.want {
            return Some(format!(
                "{name}: {} would become {}; the plan shows {}",
                shown(&field.field),
                shown(&field.want),
                shown(&before.want)
            ));
        }
        let is_other_text = !before.unknown && before.diff != field.diff;
        is_other_text.then(|| {
            format!(
                "{name}: {} differs in other lines than the plan shows",
                shown(&field.field)
            )
        })
    };
    now.fields.iter().filter_map(differs).collect()
}

fn id(row: &Row) -> ResourceId {
    ResourceId {
        kind: row.kind.clone(),
        name: row.name.clone(),
    }
}
