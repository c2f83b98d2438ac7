//! Permits: the repairs of a run that applies a plan.
//!
//! Between a plan and the run that applies it, the machine can change. So each difference that the run finds is compared with the
//! plan before it is repaired. One that the plan did not show makes the run of its resource fail.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_graph::ResourceId;

use crate::{Drift, Effect, Failure};

/// The repairs that are permitted, by resource.
#[derive(Debug, Default)]
pub struct Permits {
    by_resource: FxHashMap<ResourceId, Permit>,
    /// Kinds with resources whose names the plan did not know. Anything is permitted for them.
    open_kinds: FxHashSet<Arc<str>>,
}

/// The repairs of one resource that are permitted.
#[derive(Debug, Clone, Default)]
pub struct Permit {
    /// The differences that the plan showed.
    pub fields: Vec<PermittedField>,
    /// Whether the plan could not say what the resource would do, and said so: then anything is permitted.
    pub is_open: bool,
    /// Whether something before it may have brought anything: then it may be created or changed whatever is found.
    pub follows_the_unknown: bool,
}

/// A difference that a plan showed, as text.
#[derive(Debug, Clone)]
pub struct PermittedField {
    /// The field.
    pub field: Arc<str>,
    /// The value found.
    pub is: Arc<str>,
    /// The wanted value; none if the plan did not know it.
    pub want: Option<Arc<str>>,
    /// How two texts differ.
    pub diff: Option<Arc<str>>,
}

impl FromIterator<(ResourceId, Permit)> for Permits {
    fn from_iter<T: IntoIterator<Item = (ResourceId, Permit)>>(permits: T) -> Permits {
        Permits {
            by_resource: permits.into_iter().collect(),
            open_kinds: FxHashSet::default(),
        }
    }
}

/// A difference that is compared with a plan, as text.
#[derive(Debug, Clone, Copy)]
pub struct FoundField<'a> {
    /// The field.
    pub field: &'a str,
    /// The effect of a repair.
    pub effect: Effect,
    /// The value found.
    pub is: &'a str,
    /// The wanted value.
    pub want: &'a str,
    /// How two texts differ.
    pub diff: Option<&'a str>,
}

impl Permit {
    /// The reason to refuse a difference, as a part of a sentence; none if the plan shows it.
    #[must_use]
    pub fn refusal(&self, found: FoundField<'_>) -> Option<String> {
        let FoundField { field, is, want, .. } = found;
        let brings = matches!(found.effect, Effect::Create | Effect::Change);
        if self.is_open || self.follows_the_unknown && brings {
            return None;
        }
        let Some(shown) = self.fields.iter().find(|shown| *shown.field == *field) else {
            return Some(format!("{field} is {is} now; the plan shows no change of it"));
        };
        // Where the plan did not know the wanted value, it did not compare the value found.
        let planned = shown.want.as_ref()?;
        // The reason of a command can have other words by now.
        if !found.effect.is_deed() && *shown.is != *is {
            return Some(format!(
                "{field} was {} when it was planned, and is {is} now",
                shown.is
            ));
        }
        if **planned != *want {
            return Some(format!("{field} would become {want}; the plan shows {planned}"));
        }
        (shown.diff.as_deref() != found.diff)
            .then(|| format!("{field} differs in other lines than the plan shows"))
    }
}

impl Permits {
    /// The same, with resources of these kinds whose names the plan did not know.
    #[must_use]
    pub fn with_open_kinds(mut self, kinds: impl IntoIterator<Item = Arc<str>>) -> Permits {
        self.open_kinds.extend(kinds);
        self
    }

    /// Checks a difference of a resource before it is repaired.
    ///
    /// # Errors
    /// When the plan did not show it.
    pub(crate) fn check(&self, id: &ResourceId, drift: &Drift) -> Result<(), Failure> {
        let without_row = Permit {
            is_open: self.open_kinds.contains(&id.kind),
            ..Permit::default()
        };
        let permit = self.by_resource.get(id).unwrap_or(&without_row);
        let (is, want, diff) = (drift.is.to_string(), drift.want.to_string(), drift.difference());
        let refusal = permit.refusal(FoundField {
            field: &drift.field,
            effect: drift.effect,
            is: &is,
            want: &want,
            diff: diff.as_deref(),
        });
        match refusal {
            None => Ok(()),
            Some(why) => Err(Failure::new("repair what the plan does not show").because(why)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drift(effect: Effect, is: &str, want: &str) -> Drift {
        Drift {
            member: None,
            field: "mode".into(),
            effect,
            is: is.into(),
            want: want.into(),
            attributes: Vec::new(),
            repaired: false,
            is_done: false,
        }
    }

    fn permits(permit: Permit) -> Permits {
        [(ResourceId::new("file", "/a"), permit)].into_iter().collect()
    }

    fn shown(want: Option<&str>) -> Permit {
        Permit {
            fields: vec![PermittedField {
                field: "mode".into(),
                is: "0600".into(),
                want: want.map(Into::into),
                diff: None,
            }],
            ..Permit::default()
        }
    }

    #[test]
    fn only_what_was_shown_is_permitted() {
        let (id, other) = (ResourceId::new("file", "/a"), ResourceId::new("file", "/b"));
        let plan = permits(shown(Some("0644")));
        assert!(plan.check(&id, &drift(Effect::Change, "0600", "0644")).is_ok());
        for (id, found) in [
            (&other, drift(Effect::Change, "0600", "0644")),
            (&id, drift(Effect::Change, "0640", "0644")),
            (&id, drift(Effect::Change, "0600", "0666")),
        ] {
            assert!(plan.check(id, &found).is_err(), "{found}");
        }
        let mut owner = drift(Effect::Change, "0600", "0644");
        owner.field = "owner".into();
        assert!(plan.check(&id, &owner).is_err());
    }

    #[test]
    fn what_was_not_known_may_be_anything() {
        let id = ResourceId::new("file", "/a");
        let plan = permits(shown(None));
        assert!(plan.check(&id, &drift(Effect::Change, "0640", "0711")).is_ok());
        let open = permits(Permit {
            is_open: true,
            ..Permit::default()
        });
        assert!(open.check(&id, &drift(Effect::Remove, "x", "y")).is_ok());
        let follows = permits(Permit {
            follows_the_unknown: true,
            ..Permit::default()
        });
        assert!(follows.check(&id, &drift(Effect::Create, "x", "y")).is_ok());
        assert!(follows.check(&id, &drift(Effect::Remove, "x", "y")).is_err());
    }

    #[test]
    fn a_command_runs_whatever_the_reason() {
        let id = ResourceId::new("file", "/a");
        let plan = permits(shown(Some("reload")));
        assert!(
            plan.check(&id, &drift(Effect::Reload, "notified by b", "reload"))
                .is_ok()
        );
    }
}
