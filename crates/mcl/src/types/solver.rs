//! Unification: variables in a union-find table, first-order, with an occurs check.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_value::{FuncType, StructType, Type};

/// Solves equations between types.
#[derive(Debug, Default)]
pub(super) struct Solver {
    variables: Vec<Binding>,
    /// The first of the variables that were decided since [`Solver::begin_reach`].
    reach: Reach,
    /// Types that hold others, by the address of their shared part.
    measured: FxHashMap<usize, Measured>,
    /// Types with variables, by that address, with everything put in that is known; once nothing more becomes known.
    solved: Option<FxHashMap<usize, (Type, Type)>>,
}

/// A type, and how large it is; none while it has variables.
#[derive(Debug)]
struct Measured {
    /// Keeps the address from being used again.
    _held: Type,
    size: Option<Size>,
}

/// How many parts a type has, and how deep it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    parts: usize,
    depth: u32,
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
    /// A root without a type; its rank.
    Free(u32),
    /// Points at another variable.
    Same(u32),
    /// A root with a type.
    Bound(Known),
}

#[derive(Debug, Clone)]
struct Known {
    ty: Type,
    /// How deep it is; none while something in it is open.
    depth: Option<u32>,
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

impl Solver {
    /// A variable of its own.
    pub(super) fn fresh(&mut self) -> Type {
        self.variables.push(Binding::Free(0));
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
                    Binding::Free(_) | Binding::Same(_) => Type::Variable(root),
                }
            }
            known => known.clone(),
        }
    }

    /// The type with everything put in that is known.
    pub(super) fn zonk(&mut self, ty: &Type) -> Type {
        if self.closed(ty).is_some() {
            return ty.clone();
        }
        let known = self.solved.as_ref().zip(address(ty));
        if let Some((_, found)) = known.and_then(|(solved, address)| solved.get(&address)) {
            return found.clone();
        }
        let mut is_whole = true;
        let found = ty.replace(&mut |part| match part {
            Type::Variable(variable) => Some(self.zonk_variable(*variable)),
            // The type itself is taken apart; what is in it may be known by now.
            _ if std::mem::take(&mut is_whole) => None,
            part => Some(self.zonk(part)),
        });
        if let (Some(solved), Some(address)) = (&mut self.solved, address(ty)) {
            solved.insert(address, (ty.clone(), found.clone()));
        }
        found
    }

    /// Nothing more becomes known.
    pub(super) fn settle(&mut self) {
        self.solved = Some(FxHashMap::default());
    }

    /// The size of a type without variables; none of one with some. What definitions share is looked at once.
    fn closed(&mut self, ty: &Type) -> Option<Size> {
        let address = match ty {
            Type::Variable(_) => return None,
            ty => address(ty),
        };
        if let Some(known) = address.and_then(|address| self.measured.get(&address)) {
            return known.size;
        }
        let mut holds_others = false;
        let size = self.measure(ty, &mut holds_others);
        if let Some(address) = address.filter(|_| holds_others) {
            let _held = ty.clone();
            self.measured.insert(address, Measured { _held, size });
        }
        size
    }

    fn measure(&mut self, ty: &Type, holds_others: &mut bool) -> Option<Size> {
        let mut size = Size { parts: 1, depth: 0 };
        let mut take = |part: &Type| {
            *holds_others |= address(part).is_some();
            let inner = self.closed(part)?;
            size.parts = size.parts.saturating_add(inner.parts);
            size.depth = size.depth.max(inner.depth + 1);
            Some(())
        };
        match ty {
            Type::List(part) | Type::Set(part) | Type::Optional(part) => take(part)?,
            Type::Map(parts) => {
                take(&parts.0)?;
                take(&parts.1)?;
            }
            Type::Tuple(parts) => parts.iter().try_for_each(take)?,
            Type::Struct(of) => of.fields.iter().try_for_each(|field| take(&field.ty))?,
            Type::Func(of) => {
                of.parameters
                    .iter()
                    .try_for_each(|parameter| take(&parameter.ty))?;
                take(&of.result)?;
            }
            Type::Variable(_) => return None,
            Type::Bool
            | Type::Str
            | Type::Int
            | Type::Float
            | Type::Dynamic
            | Type::Number
            | Type::Opaque(_) => {}
        }
        Some(size)
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
        if let Some(depth) = self.depth_of(root) {
            self.variables[root as usize] = Binding::Bound(Known {
                ty: found.clone(),
                depth: Some(depth),
                is_whole: true,
            });
        }
        found
    }

    /// How deep the type of a root is; none while something in it is open.
    fn depth_of(&mut self, root: u32) -> Option<u32> {
        let Binding::Bound(known) = &self.variables[root as usize] else {
            return None;
        };
        if known.depth.is_some() {
            return known.depth;
        }
        let ty = known.ty.clone();
        let found = self.depth(&ty)?;
        if let Binding::Bound(known) = &mut self.variables[root as usize] {
            known.depth = Some(found);
        }
        Some(found)
    }

    fn depth(&mut self, ty: &Type) -> Option<u32> {
        if let Some(size) = self.closed(ty) {
            return Some(size.depth);
        }
        let mut deepest = 0;
        match ty {
            Type::Variable(variable) => {
                let root = self.root(*variable);
                return self.depth_of(root);
            }
            Type::List(t) | Type::Set(t) | Type::Optional(t) => deepest = self.depth(t)?,
            Type::Map(kv) => deepest = self.depth(&kv.0)?.max(self.depth(&kv.1)?),
            Type::Tuple(types) => {
                for ty in types.iter() {
                    deepest = deepest.max(self.depth(ty)?);
                }
            }
            Type::Struct(s) => {
                for field in &s.fields {
                    deepest = deepest.max(self.depth(&field.ty)?);
                }
            }
            Type::Func(f) => {
                for parameter in &f.parameters {
                    deepest = deepest.max(self.depth(&parameter.ty)?);
                }
                deepest = deepest.max(self.depth(&f.result)?);
            }
            Type::Bool
            | Type::Str
            | Type::Int
            | Type::Float
            | Type::Dynamic
            | Type::Number
            | Type::Opaque(_) => return Some(0),
        }
        Some(deepest + 1)
    }

    /// Whether a type is nested no deeper than can be handled, as far as it is known.
    pub(super) fn is_shallow(&mut self, ty: &Type) -> bool {
        self.closed(ty).is_none_or(|size| size.depth <= MAXIMUM_DEPTH)
    }

    /// Whether a type is of a size that can be handled: one that is made of two of a kind that are made of two … is not.
    pub(super) fn is_bounded(&mut self, ty: &Type) -> bool {
        const PARTS: usize = 50_000;
        if let Some(size) = self.closed(ty) {
            return size.parts <= PARTS;
        }
        let mut open = vec![ty.clone()];
        let mut seen = 0;
        while let Some(ty) = open.pop() {
            seen += 1;
            if seen > PARTS {
                return false;
            }
            if let Some(size) = self.closed(&ty) {
                seen = seen.saturating_add(size.parts);
                continue;
            }
            match &ty {
                Type::Variable(_) => {
                    let known = self.shallow(&ty);
                    if !matches!(known, Type::Variable(_)) {
                        open.push(known);
                    }
                }
                Type::List(t) | Type::Set(t) | Type::Optional(t) => open.push((**t).clone()),
                Type::Map(kv) => open.extend([kv.0.clone(), kv.1.clone()]),
                Type::Tuple(types) => open.extend(types.iter().cloned()),
                Type::Struct(s) => open.extend(s.fields.iter().map(|f| f.ty.clone())),
                Type::Func(f) => {
                    open.extend(f.parameters.iter().map(|p| p.ty.clone()));
                    open.push(f.result.clone());
                }
                _ => {}
            }
        }
        seen <= PARTS
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
                if self.occurs(*variable, known) {
                    return Err(Conflict::Infinite);
                }
                let depth = self.depth(known);
                if depth.is_some_and(|depth| depth > MAXIMUM_DEPTH) {
                    return Err(Conflict::TooDeep);
                }
                self.reach = self.reach.min(Reach(*variable));
                self.variables[*variable as usize] = Binding::Bound(Known {
                    ty: known.clone(),
                    depth,
                    is_whole: false,
                });
                Ok(())
            }
            (Type::List(a), Type::List(b))
            | (Type::Set(a), Type::Set(b))
            | (Type::Optional(a), Type::Optional(b)) => self.unify(a, b),
            (Type::Map(a), Type::Map(b)) => {
                self.unify(&a.0, &b.0)?;
                self.unify(&a.1, &b.1)
            }
            (Type::Tuple(a), Type::Tuple(b)) if a.len() == b.len() => {
                a.iter().zip(b.iter()).try_for_each(|(a, b)| self.unify(a, b))
            }
            (Type::Struct(a), Type::Struct(b)) => self.unify_structs(a, b),
            (Type::Func(a), Type::Func(b)) => self.unify_funcs(a, b),
            (Type::Dynamic | Type::Number, _) | (_, Type::Dynamic | Type::Number) => Err(Conflict::Kinds),
            (a, b) if a == b => Ok(()),
            _ => Err(Conflict::Kinds),
        }
    }

    fn unify_structs(&mut self, a: &StructType, b: &StructType) -> Result<(), Conflict> {
        if a.fields.len() != b.fields.len() {
            return Err(Conflict::FieldCount);
        }
        for (a, b) in a.fields.iter().zip(&b.fields) {
            if a.name != b.name {
                return Err(Conflict::FieldNames);
            }
            self.unify(&a.ty, &b.ty)?;
        }
        Ok(())
    }

    fn unify_funcs(&mut self, a: &FuncType, b: &FuncType) -> Result<(), Conflict> {
        if a.parameters.len() != b.parameters.len() {
            return Err(Conflict::ParameterCount);
        }
        for (a, b) in a.parameters.iter().zip(&b.parameters) {
            self.unify(&a.ty, &b.ty)?;
        }
        self.unify(&a.result, &b.result)
    }

    /// Whether two types could still be the same: a variable fits anything. Changes nothing.
    pub(super) fn compatible(&mut self, a: &Type, b: &Type) -> bool {
        let (a, b) = (self.shallow(a), self.shallow(b));
        match (&a, &b) {
            (Type::Variable(_), _) | (_, Type::Variable(_)) => true,
            (Type::List(a), Type::List(b)) | (Type::Set(a), Type::Set(b)) => self.compatible(a, b),
            (Type::Map(a), Type::Map(b)) => self.compatible(&a.0, &b.0) && self.compatible(&a.1, &b.1),
            (Type::Struct(a), Type::Struct(b)) => {
                a.fields.len() == b.fields.len()
                    && a.fields
                        .iter()
                        .zip(&b.fields)
                        .all(|(a, b)| a.name == b.name && self.compatible(&a.ty, &b.ty))
            }
            (Type::Func(a), Type::Func(b)) => {
                a.parameters.len() == b.parameters.len()
                    && a.parameters
                        .iter()
                        .zip(&b.parameters)
                        .all(|(a, b)| self.compatible(&a.ty, &b.ty))
                    && self.compatible(&a.result, &b.result)
            }
            (a, b) => a == b,
        }
    }

    fn union(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return;
        }
        self.reach = self.reach.min(Reach(a)).min(Reach(b));
        let rank = |binding: &Binding| {
            if let Binding::Free(rank) = binding {
                *rank
            } else {
                0
            }
        };
        let (rank_a, rank_b) = (
            rank(&self.variables[a as usize]),
            rank(&self.variables[b as usize]),
        );
        let (low, high) = if rank_a < rank_b { (a, b) } else { (b, a) };
        self.variables[low as usize] = Binding::Same(high);
        if rank_a == rank_b {
            self.variables[high as usize] = Binding::Free(rank_a + 1);
        }
    }

    fn occurs(&mut self, variable: u32, ty: &Type) -> bool {
        match ty {
            Type::Variable(inner) => {
                let root = self.root(*inner);
                let Binding::Bound(known) = &self.variables[root as usize] else {
                    return root == variable;
                };
                // What is closed holds no variable at all.
                let (is_closed, known) = (known.depth.is_some(), known.ty.clone());
                !is_closed && self.occurs(variable, &known)
            }
            Type::List(t) | Type::Set(t) | Type::Optional(t) => self.occurs(variable, t),
            Type::Map(kv) => self.occurs(variable, &kv.0) || self.occurs(variable, &kv.1),
            Type::Tuple(types) => types.iter().any(|t| self.occurs(variable, t)),
            Type::Struct(s) => s.fields.iter().any(|f| self.occurs(variable, &f.ty)),
            Type::Func(f) => {
                f.parameters.iter().any(|p| self.occurs(variable, &p.ty)) || self.occurs(variable, &f.result)
            }
            Type::Bool
            | Type::Str
            | Type::Int
            | Type::Float
            | Type::Dynamic
            | Type::Number
            | Type::Opaque(_) => false,
        }
    }
}

/// Where the shared part of a type is.
fn address(ty: &Type) -> Option<usize> {
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
