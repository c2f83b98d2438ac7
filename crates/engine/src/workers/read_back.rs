//! Reading back: whether the machine is as a run says after it had somebody else's tool repair something.
//!
//! A tool can end without an error and have changed nothing. The look that follows makes the same comparison as the run, without repairs.

use crate::apply::{Observer, RunInput};
use crate::resource::Instance;
use crate::{Apply, Drift, DriftValue, Failure};

/// Looks once more, and fails if something is still wrong that the run has repaired.
///
/// # Errors
/// What is still wrong, or why it cannot be seen.
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

/// What the look finds is told in the failure alone.
struct Silent;

impl Observer for Silent {}
