//! Saved plans: their permits, and their differences to the machine now.

use rustc_hash::FxHashMap;
use serde::Deserialize;
use setpoint_engine::{FoundField, Permit, Permits, PermittedField};
use setpoint_graph::ResourceId;

use crate::model::{Action, FORMAT, Plan, Row, SOME_NAME, VERSION};
use crate::words::{label, shown};

/// A plan in a file, with its signature if it has one.
#[derive(Debug)]
pub struct Saved {
    /// The plan.
    pub plan: Plan,
    /// The line of the plan, which the signature covers.
    pub signed: String,
    /// The signature, in the form of `ssh-keygen -Y sign`.
    pub signature: Option<String>,
}

/// The line after the plan.
#[derive(Debug, Deserialize)]
struct SignatureLine {
    signature: String,
}

/// The second line of a plan file: its signature.
#[must_use]
pub fn signature_line(signature: &str) -> String {
    format!("{}\n", serde_json::json!({ "signature": signature }))
}

/// Reads a plan from the text of its file.
///
/// # Errors
/// Why it is no plan that this version can use, as a sentence.
pub fn read(text: &str) -> Result<Saved, String> {
    let (line, rest) = text.split_at(text.find('\n').map_or(text.len(), |end| end + 1));
    let plan = read_plan(line)?;
    let signature = match rest.trim() {
        "" => None,
        rest => {
            let line: SignatureLine =
                serde_json::from_str(rest).map_err(|error| format!("its signature is damaged: {error}"))?;
            Some(line.signature)
        }
    };
    Ok(Saved {
        plan,
        signed: line.to_owned(),
        signature,
    })
}

fn read_plan(text: &str) -> Result<Plan, String> {
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
pub fn permits(rows: &[Row]) -> Permits {
    let some = rows.iter().filter(|row| *row.name == *SOME_NAME);
    let permits: Permits = rows.iter().map(|row| (row.id(), permit(row))).collect();
    permits.with_open_kinds(some.map(|row| row.kind.clone()))
}

fn permit(row: &Row) -> Permit {
    let fields = row.fields.iter().map(|field| PermittedField {
        field: field.field.clone(),
        is: field.is.clone(),
        want: (!field.unknown).then(|| field.want.clone()),
        diff: field.diff.clone(),
    });
    Permit {
        fields: fields.collect(),
        is_open: row.action == Action::Unknown,
        follows_the_unknown: row.until.is_some(),
    }
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
    let known: FxHashMap<ResourceId, &Row> = plan.rows.iter().map(|row| (row.id(), row)).collect();
    let mut changes = Changes::default();
    for row in &now.rows {
        let planned = known.get(&row.id()).copied();
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
        return vec![format!("{name}: the plan does not have this resource")];
    };
    if now.action == Action::Unknown && planned.action != Action::Unknown {
        return vec![format!("{name}: its result is no longer known before the run")];
    }
    let permit = permit(planned);
    let refused = now.fields.iter().filter_map(|field| {
        permit.refusal(FoundField {
            field: &field.field,
            effect: field.effect,
            is: &field.is,
            want: &field.want,
            diff: field.diff.as_deref(),
        })
    });
    refused.map(|why| format!("{name}: {}", shown(&why))).collect()
}
