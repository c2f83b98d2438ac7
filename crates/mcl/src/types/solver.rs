//! Unification: variables in a union-find table, first-order, with an occurs check.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_value::{FormMismatch, Type};

use super::sharing::Shared;
use crate::stack::with_room;

/// Solves equations between types.
#[derive(Debug, Default)]
pub(super) struct Solver {
    variables: Vec<Binding>,
    /// The first of the variables that were decided since [`Solver::begin_reach`].
    reach: Reach,
    /// Types that hold others, by the address of their shared part.
    measured: FxHashMap<usize, Measured>,
    /// What was solved while nothing more becomes known.
    settled: Option<Settled>,
    /// Whether a variable stands for a type with a part that is not even equal to itself.
    has_indefinite: bool,
    /// Whether a type was found to be deeper than types may be.
    is_cut: bool,
}

#[derive(Debug, Default)]
struct Settled {
    /// Types with variables, by their address, with everything put in that is known.
    whole: FxHashMap<usize, (Type, Type)>,
    shared: Shared,
}

/// A type, and how large it is.
#[derive(Debug)]
struct Measured {
    /// Keeps the address from being used again.
    _held: Type,
    size: Size,
}

/// What never changes of a type. A variable is one part, whatever it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    /// How many parts it has.
    parts: usize,
    /// How deep it is.
    depth: u32,
    /// Whether it has variables.
    is_open: bool,
    /// Whether it has a part that is not even equal to itself.
    is_indefinite: bool,
}

/// The number of a variable; none is beyond all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reach(u32);

impl Default for Reach {
    fn default() -> Reach {
        Reach(u32::MAX)
    }
}

#[derive(Debug, Clone)]
enum Binding {
    /// A root without a type.
    Free,
    /// Points at another variable.
    Same(u32),
    /// A root with a type.
    Bound(Known),
}

#[derive(Debug, Clone)]
struct Known {
    ty: Type,
    /// How deep it is, at least: what was open when somebody looked may have become deeper.
    depth: u32,
    /// Whether nothing in it is open.
    is_closed: bool,
    /// Whether everything that is known was put in.
    is_whole: bool,
}

/// Types that are deeper are refused: so deep are only those of programs made to be.
const MAXIMUM_DEPTH: u32 = 1000;

/// Why two types cannot be made equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conflict {
    /// Different kinds of type (U1).
    Kinds,
    /// Functions with different numbers of parameters (U2).
    ParameterCount,
    /// Structs with different numbers of fields (U3).
    FieldCount,
    /// Structs with other names or another order of fields (U4).
    FieldNames,
    /// A variable inside its own type (U5).
    Infinite,
    /// A type inside a type inside a type …, without end in sight.
    TooDeep,
}

impl From<FormMismatch> for Conflict {
    fn from(mismatch: FormMismatch) -> Conflict {
        match mismatch {
            FormMismatch::Kinds => Conflict::Kinds,
            FormMismatch::ParameterCount => Conflict::ParameterCount,
            FormMismatch::FieldCount => Conflict::FieldCount,
            FormMismatch::FieldNames => Conflict::FieldNames,
        }
    }
}

impl Solver {
    /// A variable of its own.
    pub(super) fn fresh(&mut self) -> Type {
        self.variables.push(Binding::Free);
        Type::Variable(self.variables.len() as u32 - 1)
    }

    /// How many variables there are.
    pub(super) fn count(&self) -> u32 {
        self.variables.len() as u32
    }

    /// From now on it is noted how far back the variables are that get a type. Answers what was noted before.
    pub(super) fn begin_reach(&mut self) -> Reach {
        std::mem::take(&mut self.reach)
    }

    /// Whether one of the first `count` variables has got a type, or become the same as another one.
    pub(super) fn reaches_below(&self, count: u32) -> bool {
        self.reach.0 < count
    }

    /// Goes on with what was noted before.
    pub(super) fn end_reach(&mut self, before: Reach) {
        self.reach = self.reach.min(before);
    }

    /// The type, as far as its outermost form is known.
    pub(super) fn shallow(&mut self, ty: &Type) -> Type {
        match ty {
            Type::Variable(variable) => {
                let root = self.root(*variable);
                match &self.variables[root as usize] {
                    Binding::Bound(known) => known.ty.clone(),
                    Binding::Free | Binding::Same(_) => Type::Variable(root),
                }
            }
            known => known.clone(),
        }
    }

    /// The type with everything put in that is known. Where it would be deeper than types may be, a variable is left.
    pub(super) fn zonk(&mut self, ty: &Type) -> Type {
        if let Type::Variable(variable) = ty {
            return self.zonk_variable(*variable);
        }
        if !self.size(ty).is_open {
            return ty.clone();
        }
        let known = self.settled.as_ref().zip(address(ty));
        if let Some((_, found)) = known.and_then(|(settled, address)| settled.whole.get(&address)) {
            return found.clone();
        }
        // The type itself is taken apart; what is in it may be known by now.
        let found = with_room(|| ty.map_parts(&mut |part| self.zonk(part)));
        let (Some(settled), Some(address)) = (&mut self.settled, address(ty)) else {
            return found;
        };
        let found = settled.shared.one(found);
        settled.whole.insert(address, (ty.clone(), found.clone()));
        found
    }

    fn zonk_variable(&mut self, variable: u32) -> Type {
        let root = self.root(variable);
        let Binding::Bound(known) = &self.variables[root as usize] else {
            return Type::Variable(root);
        };
        let (ty, is_whole) = (known.ty.clone(), known.is_whole);
        if is_whole {
            return ty;
        }
        let found = self.zonk(&ty);
        let size = self.size(&found);
        if size.depth > MAXIMUM_DEPTH {
            self.is_cut = true;
            return Type::Variable(root);
        }
        if !size.is_open {
            self.variables[root as usize] = Binding::Bound(Known {
                ty: found.clone(),
                depth: size.depth,
                is_closed: true,
                is_whole: true,
            });
        }
        found
    }

    /// For now nothing more becomes known.
    pub(super) fn settle(&mut self) {
        self.settled = Some(Settled::default());
    }

    /// More becomes known.
    pub(super) fn unsettle(&mut self) {
        self.settled = None;
    }

    /// Whether a type was deeper than types may be since this was asked last.
    pub(super) fn take_cut(&mut self) -> bool {
        std::mem::take(&mut self.is_cut)
    }

    /// Whether a type has variables.
    pub(super) fn is_open(&mut self, ty: &Type) -> bool {
        self.size(ty).is_open
    }

    /// The size of a type. What definitions share is looked at once.
    fn size(&mut self, ty: &Type) -> Size {
        let address = address(ty);
        if let Some(known) = address.and_then(|address| self.measured.get(&address)) {
            return known.size;
        }
        let mut size = Size {
            parts: 1,
            depth: 0,
            is_open: matches!(ty, Type::Variable(_)),
            is_indefinite: matches!(ty, Type::Dynamic | Type::Number),
        };
        let Some(address) = address else { return size };
        let mut holds_others = false;
        with_room(|| {
            ty.for_each_part(&mut |part| {
                holds_others |= self::address(part).is_some();
                let inner = self.size(part);
                size.parts = size.parts.saturating_add(inner.parts);
                size.depth = size.depth.max(inner.depth + 1);
                size.is_open |= inner.is_open;
                size.is_indefinite |= inner.is_indefinite;
            });
        });
        if holds_others {
            let _held = ty.clone();
            self.measured.insert(address, Measured { _held, size });
        }
        size
    }

    /// How deep a type is at least, with what is known of its variables, and whether nothing in it is open.
    fn depth(&mut self, ty: &Type) -> (u32, bool) {
        /// So many parts are looked at. Deep types are made of what was looked at before.
        const LOOKED_AT: usize = 64;
        let size = self.size(ty);
        if !size.is_open {
            return (size.depth, true);
        }
        let (mut deepest, mut is_closed) = (size.depth, true);
        let mut looked_at = 0;
        let mut open = vec![(ty.clone(), 0)];
        while let Some((ty, above)) = open.pop() {
            looked_at += 1;
            if looked_at > LOOKED_AT {
                return (deepest, false);
            }
            if let Type::Variable(variable) = ty {
                let root = self.root(variable);
                match &self.variables[root as usize] {
                    Binding::Bound(known) => {
                        deepest = deepest.max(above + known.depth);
                        is_closed &= known.is_closed;
                    }
                    Binding::Free | Binding::Same(_) => is_closed = false,
                }
                continue;
            }
            ty.for_each_part(&mut |part| {
                if self.size(part).is_open {
                    open.push((part.clone(), above + 1));
                }
            });
        }
        (deepest, is_closed)
    }

    /// Whether a type is nested no deeper than can be handled, as far as it is known.
    pub(super) fn is_shallow(&mut self, ty: &Type) -> bool {
        self.depth(ty).0 <= MAXIMUM_DEPTH
    }

    /// Whether a type is of a size that can be handled: one that is made of two of a kind that are made of two … is not.
    pub(super) fn is_bounded(&mut self, ty: &Type) -> bool {
        const PARTS: usize = 50_000;
        self.parts(ty, &mut FxHashMap::default()) <= PARTS
    }

    /// How many parts a type has with what is known of its variables. What is shared is looked at once, and counts wherever it is.
    fn parts(&mut self, ty: &Type, counted: &mut FxHashMap<usize, usize>) -> usize {
        let size = self.size(ty);
        if !size.is_open {
            return size.parts;
        }
        let Some(address) = address(ty) else {
            return match self.shallow(ty) {
                Type::Variable(_) => 1,
                known => self.parts(&known, counted).saturating_add(1),
            };
        };
        if let Some(count) = counted.get(&address) {
            return *count;
        }
        let mut count: usize = 1;
        with_room(|| {
            ty.for_each_part(&mut |part| {
                count = count.saturating_add(self.parts(part, counted));
            });
        });
        counted.insert(address, count);
        count
    }

    fn root(&mut self, variable: u32) -> u32 {
        let mut root = variable;
        while let Binding::Same(next) = self.variables[root as usize] {
            root = next;
        }
        let mut at = variable;
        while at != root {
            let Binding::Same(next) = self.variables[at as usize] else {
                break;
            };
            self.variables[at as usize] = Binding::Same(root);
            at = next;
        }
        root
    }

    /// Makes two types equal. On a conflict some parts may have been made equal already.
    pub(super) fn unify(&mut self, a: &Type, b: &Type) -> Result<(), Conflict> {
        let (a, b) = (self.shallow(a), self.shallow(b));
        match (&a, &b) {
            (Type::Variable(a), Type::Variable(b)) => {
                self.union(*a, *b);
                Ok(())
            }
            (Type::Variable(variable), known) | (known, Type::Variable(variable)) => {
                self.bind(*variable, known)
            }
            (a, b) if self.is_equal_to_itself(a, b) => Ok(()),
            (a, b) => with_room(|| self.unify_parts(a, b)),
        }
    }

    /// Gives a root without a type one.
    fn bind(&mut self, variable: u32, known: &Type) -> Result<(), Conflict> {
        if self.occurs(variable, known) {
            return Err(Conflict::Infinite);
        }
        let (depth, is_closed) = self.depth(known);
        if depth > MAXIMUM_DEPTH {
            return Err(Conflict::TooDeep);
        }
        self.has_indefinite |= self.size(known).is_indefinite;
        self.reach = self.reach.min(Reach(variable));
        self.variables[variable as usize] = Binding::Bound(Known {
            ty: known.clone(),
            depth,
            is_closed,
            is_whole: false,
        });
        Ok(())
    }

    /// Whether two types are one, and so equal without looking into it.
    fn is_equal_to_itself(&mut self, a: &Type, b: &Type) -> bool {
        let place = address(a);
        if place.is_none() || place != address(b) {
            return false;
        }
        let size = self.size(a);
        !(size.is_indefinite || size.is_open && self.has_indefinite)
    }

    fn unify_parts(&mut self, a: &Type, b: &Type) -> Result<(), Conflict> {
        match (a, b) {
            (Type::Dynamic | Type::Number, _) | (_, Type::Dynamic | Type::Number) => Err(Conflict::Kinds),
            (a, b) => a.zip(b, &mut |a, b| self.unify(a, b)),
        }
    }

    /// Whether two types could still be the same: a variable fits anything. Changes nothing.
    pub(super) fn compatible(&mut self, a: &Type, b: &Type) -> bool {
        let (a, b) = (self.shallow(a), self.shallow(b));
        match (&a, &b) {
            (Type::Variable(_), _) | (_, Type::Variable(_)) => true,
            (a, b) if address(a).is_some() && address(a) == address(b) => true,
            (a, b) => with_room(|| {
                let mut check = |a: &Type, b: &Type| match self.compatible(a, b) {
                    true => Ok(()),
                    false => Err(Conflict::Kinds),
                };
                a.zip(b, &mut check).is_ok()
            }),
        }
    }

    fn union(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return;
        }
        self.reach = self.reach.min(Reach(a)).min(Reach(b));
        // `root` shortens the ways, so it does not matter which of the two stands for both.
        self.variables[a as usize] = Binding::Same(b);
    }

    fn occurs(&mut self, variable: u32, ty: &Type) -> bool {
        if !self.size(ty).is_open {
            return false;
        }
        let (mut roots, mut addresses) = (FxHashSet::default(), FxHashSet::default());
        let mut open = vec![ty.clone()];
        while let Some(ty) = open.pop() {
            if let Type::Variable(inner) = ty {
                let root = self.root(inner);
                match &self.variables[root as usize] {
                    Binding::Bound(known) if !known.is_closed && roots.insert(root) => {
                        open.push(known.ty.clone());
                    }
                    Binding::Bound(_) => {}
                    Binding::Free | Binding::Same(_) if root == variable => return true,
                    Binding::Free | Binding::Same(_) => {}
                }
            } else if self.size(&ty).is_open && address(&ty).is_some_and(|address| addresses.insert(address))
            {
                ty.for_each_part(&mut |part| open.push(part.clone()));
            }
        }
        false
    }
}

/// Where the shared part of a type is.
pub(super) fn address(ty: &Type) -> Option<usize> {
    match ty {
        Type::List(part) | Type::Set(part) | Type::Optional(part) => Some(Arc::as_ptr(part).addr()),
        Type::Map(parts) => Some(Arc::as_ptr(parts).addr()),
        Type::Tuple(parts) => Some(Arc::as_ptr(parts).cast::<()>().addr()),
        Type::Struct(of) => Some(Arc::as_ptr(of).addr()),
        Type::Func(of) => Some(Arc::as_ptr(of).addr()),
        Type::Bool
        | Type::Str
        | Type::Int
        | Type::Float
        | Type::Dynamic
        | Type::Number
        | Type::Variable(_)
        | Type::Opaque(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn types() -> impl Strategy<Value = Type> {
        let leaf = prop_oneof![
            Just(Type::Bool),
            Just(Type::Str),
            Just(Type::Int),
            (0u32..4).prop_map(Type::Variable),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                inner.clone().prop_map(Type::list),
                (inner.clone(), inner.clone()).prop_map(|(k, v)| Type::map(k, v)),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| Type::structure([("a", a), ("b", b)])),
                (inner.clone(), inner).prop_map(|(a, r)| Type::func([("a", a)], r)),
            ]
        })
    }

    fn solver() -> Solver {
        let mut solver = Solver::default();
        for _ in 0..4 {
            solver.fresh();
        }
        solver
    }

    #[test]
    fn tuples_are_of_one_type_if_all_their_items_are() {
        let pair = Type::tuple([Type::Int, Type::Str]);
        assert_eq!(
            solver().unify(&pair, &Type::tuple([Type::Int, Type::Variable(0)])),
            Ok(())
        );
        let others = [
            Type::tuple([Type::Int]),
            Type::tuple([Type::Int, Type::Str, Type::Str]),
            Type::tuple([Type::Int, Type::Int]),
        ];
        for other in others {
            assert_eq!(solver().unify(&pair, &other), Err(Conflict::Kinds), "{other}");
        }
    }

    proptest! {
        #[test]
        fn unification_is_symmetric_and_its_result_fits_both(a in types(), b in types()) {
            let (mut one, mut other) = (solver(), solver());
            let (forth, back) = (one.unify(&a, &b), other.unify(&b, &a));
            prop_assert_eq!(forth.is_ok(), back.is_ok());
            if forth.is_ok() {
                prop_assert_eq!(one.zonk(&a), one.zonk(&b));
                prop_assert!(one.unify(&a, &b).is_ok());
            }
        }
    }
}
