//! Instances: what each include and each call of a named function has for itself.

use rustc_hash::FxHashMap;
use setpoint_value::Type;

use crate::hir::{BodyId, DefinitionId, ExprId, IncludeId, Owner};

/// An instance of an [`Owner`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId(pub u32);

/// The top of a file, one include of a class, or one call of a named function.
#[derive(Debug)]
pub struct Instance {
    /// What it is an instance of.
    pub owner: Owner,
    /// The instance that the owner is defined in; none for the top of a file.
    pub parent: Option<InstanceId>,
    /// Instances of the includes in it.
    pub includes: FxHashMap<IncludeId, InstanceId>,
    /// Instances of the calls in it.
    pub calls: FxHashMap<ExprId, InstanceId>,
    /// Types of its definitions, as far as they are used.
    pub definitions: FxHashMap<DefinitionId, Type>,
    /// For an include: the instance that the statement is in, and the statement.
    pub site: Option<(InstanceId, IncludeId)>,
    /// Whether the statements of an included class have been typed.
    pub(super) entered: bool,
    /// For an include: types of its arguments.
    pub(super) arguments: Vec<Option<Type>>,
}

/// What inference gives: types for everything that is used.
#[derive(Debug, Default)]
pub struct Typed {
    /// All instances; the entry's top is the first.
    pub instances: Vec<Instance>,
    /// The instances of the tops of files.
    pub tops: FxHashMap<BodyId, InstanceId>,
    /// Types of expressions, but for literals and variables.
    pub types: FxHashMap<(InstanceId, ExprId), Type>,
    /// Whether nothing was wrong, so that nothing is missing.
    pub(super) is_complete: bool,
}

impl Typed {
    /// An instance.
    #[must_use]
    pub fn instance(&self, id: InstanceId) -> &Instance {
        &self.instances[id.0 as usize]
    }

    /// The nearest instance outward from `from` that is one of `owner`. The tops of files are found from everywhere.
    #[must_use]
    pub fn outward(&self, from: InstanceId, owner: Owner) -> Option<InstanceId> {
        let mut at = Some(from);
        while let Some(id) = at {
            if self.instance(id).owner == owner {
                return Some(id);
            }
            at = self.instance(id).parent;
        }
        match owner {
            Owner::Top(body) => self.tops.get(&body).copied(),
            Owner::Class(_) | Owner::Function(_) => None,
        }
    }
}
