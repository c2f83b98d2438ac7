//! Reading back: a run had a tool of the system repair something, and the engine looks whether the machine is as the run reports.
//!
//! A tool can end without an error and have changed nothing. The look makes the same comparison as the run, without repairs.

use crate::apply::{Observer, RunInput};
use crate::resource::Instance;
use crate::{Apply, Drift, DriftValue, Failure};

/// Looks once more, and fails if something is still wrong that the run has repaired.
///
/// # Errors
/// Names the field that is still wrong, or why the machine cannot be compared.
pub(super) async fn read_back(
    instance: &mut Instance,
    input: RunInput<'_>,
    repaired: &[Drift],
) -> Result<(), Failure> {
    let mut apply = Apply::new(RunInput {
        repair: false,
        refresh: &[],
        observer: &Silent,
        ..input
    });
    instance.check_apply(&mut apply).await?;
    let found = apply.finish().drifts;
    let is_same = |a: &Drift, b: &Drift| (&a.member, &a.field, &a.want) == (&b.member, &b.field, &b.want);
    let was_repaired = |drift: &&Drift| {
        repaired
            .iter()
            .any(|before| before.repaired && is_same(before, drift))
    };
    match found.iter().find(was_repaired) {
        None => Ok(()),
        Some(drift) => {
            let failure = Failure::new(format!("repair {}", drift.field));
            let is = match &drift.is {
                DriftValue::Text(text) => format!("`{text}`"),
                other => other.to_string(),
            };
            let why = format!("it is still {is}, although no error was reported");
            let failure = failure.because(why);
            Err(match &drift.member {
                Some(member) => failure.of_member(member),
                None => failure,
            })
        }
    }
}

/// Reports nothing: the failure has all that the look finds.
struct Silent;

impl Observer for Silent {}
