//! Types into which something is put, such that equal parts of what comes out are one.
//!
//! A type that is made of two of a kind that are made of two … is small where equal parts are one, and very large where each stands for
//! itself. So what is put into a type is put into each of its parts once, and parts that come out equal are made one.

use std::mem::{Discriminant, discriminant};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_value::Type;
use smallvec::SmallVec;

use super::solver::{Solver, address};
use crate::stack::with_room;

/// Types, of those that are equal one.
#[derive(Debug, Default)]
pub(super) struct Shared(FxHashMap<Form, Type>);

/// What a type is directly made of. Of types whose parts are shared those that are equal have one form.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Form {
    kind: Discriminant<Type>,
    names: SmallVec<[Arc<str>; 4]>,
    parts: SmallVec<[FormPart; 4]>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum FormPart {
    /// One that holds others, by its address.
    Held(usize),
    Plain(Type),
}

impl Shared {
    /// The one type that is equal to this one, whose parts are shared.
    pub(super) fn one(&mut self, ty: Type) -> Type {
        if address(&ty).is_none() {
            return ty;
        }
        self.0.entry(Form::of(&ty)).or_insert(ty).clone()
    }
}

impl Form {
    fn of(ty: &Type) -> Form {
        let names = match ty {
            Type::Struct(of) => of.fields.iter().map(|field| field.name.clone()).collect(),
            Type::Func(of) => of
                .parameters
                .iter()
                .map(|parameter| parameter.name.clone())
                .collect(),
            _ => SmallVec::new(),
        };
        let mut parts = SmallVec::new();
        ty.for_each_part(&mut |part| {
            parts.push(match address(part) {
                Some(address) => FormPart::Held(address),
                None => FormPart::Plain(part.clone()),
            });
        });
        Form {
            kind: discriminant(ty),
            names,
            parts,
        }
    }
}

/// What stands for variables.
#[derive(Debug, Default)]
pub(super) struct Substitution {
    own: FxHashMap<u32, Type>,
    /// Types by their address, with all put in.
    done: FxHashMap<usize, (Type, Type)>,
    shared: Shared,
}

impl Substitution {
    pub(super) fn new(own: impl IntoIterator<Item = (u32, Type)>) -> Substitution {
        Substitution {
            own: own.into_iter().collect(),
            ..Substitution::default()
        }
    }

    /// The type with all put in. Types of one substitution share what is equal.
    pub(super) fn put(&mut self, ty: &Type, solver: &mut Solver) -> Type {
        if let Type::Variable(variable) = ty {
            return self.own.get(variable).unwrap_or(ty).clone();
        }
        if self.own.is_empty() || !solver.is_open(ty) {
            return ty.clone();
        }
        let address = address(ty);
        if let Some((_, found)) = address.and_then(|address| self.done.get(&address)) {
            return found.clone();
        }
        let found = with_room(|| ty.map_parts(&mut |part| self.put(part, solver)));
        let found = self.shared.one(found);
        if let Some(address) = address {
            self.done.insert(address, (ty.clone(), found.clone()));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `?0`, and then pairs of the one before, each part for itself.
    fn pairs(levels: u32) -> Type {
        match levels {
            0 => Type::Variable(0),
            _ => Type::structure([("a", pairs(levels - 1)), ("b", pairs(levels - 1))]),
        }
    }

    #[test]
    fn equal_parts_of_what_comes_out_are_one() {
        let mut solver = Solver::default();
        let variable = solver.fresh();
        let mut substitution = Substitution::new([(0, Type::list(Type::Int))]);
        let mut at = substitution.put(&pairs(8), &mut solver);
        assert_eq!(
            at.to_string(),
            pairs(8).to_string().replace(&variable.to_string(), "[]int")
        );
        while let Type::Struct(of) = &at {
            let [a, b] = &*of.fields else { panic!("a pair") };
            assert_eq!(address(&a.ty), address(&b.ty));
            at = a.ty.clone();
        }
        assert_eq!(at, Type::list(Type::Int));
    }

    #[test]
    fn what_differs_stays_apart() {
        let mut shared = Shared::default();
        let types = [
            Type::list(Type::Int),
            Type::list(Type::Str),
            Type::structure([("a", Type::Int)]),
            Type::structure([("b", Type::Int)]),
            Type::func([("a", Type::Int)], Type::Int),
            Type::func([("b", Type::Int)], Type::Int),
        ];
        let kept = types.clone().map(|ty| shared.one(ty));
        assert_eq!(kept.map(|ty| ty.to_string()), types.map(|ty| ty.to_string()));
    }
}
