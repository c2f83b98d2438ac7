//! Unification: one type that several convert to.

use std::fmt;

use crate::Type;
use crate::conformance::plain;

/// Two of several types that have no type in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disagreement {
    /// Position of the first of them.
    pub first: usize,
    /// Position of the second.
    pub second: usize,
    /// The two types.
    pub types: (Type, Type),
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} and {} have no type in common", self.types.0, self.types.1)
    }
}

impl std::error::Error for Disagreement {}

/// One type that all of these convert to safely: `int` and `float` give `float`, numbers or bools and `str` give `str`,
/// tuples of different lengths a list, structs with different fields a map. `dynamic` among them gives `dynamic`.
///
/// # Errors
/// Two that disagree.
pub fn unify(types: &[Type]) -> Result<Type, Disagreement> {
    let parts: Vec<&Type> = types.iter().collect();
    unify_all(&parts).ok_or_else(|| {
        let pairs = (0..types.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
        let (first, second) = pairs
            .into_iter()
            .find(|(a, b)| unify_all(&[&types[*a], &types[*b]]).is_none())
            .unwrap_or((0, types.len() - 1));
        Disagreement {
            first,
            second,
            types: (types[first].clone(), types[second].clone()),
        }
    })
}

fn unify_all(types: &[&Type]) -> Option<Type> {
    let Some((first, rest)) = types.split_first() else {
        return Some(Type::Dynamic);
    };
    if rest.iter().all(|ty| ty == first) {
        return Some((*first).clone());
    }
    if types.iter().any(|ty| is_hole(ty)) {
        return Some(Type::Dynamic);
    }
    if types.iter().any(|ty| matches!(ty, Type::Optional(_))) {
        let inner: Vec<&Type> = types.iter().map(|ty| plain(ty)).collect();
        return unify_all(&inner).map(Type::optional);
    }
    let all = |test: fn(&Type) -> bool| types.iter().all(|ty| test(ty));
    let any = |test: fn(&Type) -> bool| types.iter().any(|ty| test(ty));
    if all(|ty| {
        matches!(
            ty,
            Type::Bool | Type::Int | Type::Float | Type::Number | Type::Str
        )
    }) {
        return match () {
            () if any(|ty| *ty == Type::Str) => Some(Type::Str),
            () if any(|ty| *ty == Type::Bool) => None,
            () if any(|ty| *ty == Type::Number) => Some(Type::Number),
            () => Some(Type::Float),
        };
    }
    if all(|ty| matches!(ty, Type::List(_) | Type::Set(_) | Type::Tuple(_))) {
        return unify_sequences(types);
    }
    if all(|ty| matches!(ty, Type::Map(_) | Type::Struct(_))) {
        return unify_maps(types);
    }
    None
}

fn unify_sequences(types: &[&Type]) -> Option<Type> {
    let tuples: Option<Vec<&[Type]>> = types
        .iter()
        .map(|ty| match ty {
            Type::Tuple(parts) => Some(&**parts),
            _ => None,
        })
        .collect();
    if let Some(tuples) = tuples
        && tuples.iter().all(|t| t.len() == tuples[0].len())
    {
        let elements: Option<Vec<Type>> = (0..tuples[0].len())
            .map(|i| unify_all(&tuples.iter().map(|t| &t[i]).collect::<Vec<_>>()))
            .collect();
        if let Some(elements) = elements {
            return Some(Type::tuple(elements));
        }
    }
    let mut elements = Vec::new();
    for ty in types {
        match ty {
            Type::Tuple(parts) => elements.extend(parts.iter()),
            other => elements.extend(other.element()),
        }
    }
    let element = unify_all(&elements)?;
    let set = types.iter().any(|ty| matches!(ty, Type::Set(_)));
    Some(if set {
        Type::set(element)
    } else {
        Type::list(element)
    })
}

fn unify_maps(types: &[&Type]) -> Option<Type> {
    let structs: Option<Vec<_>> = types.iter().map(|ty| ty.as_struct()).collect();
    if let Some(structs) = structs {
        let first = structs[0];
        let alike = structs.iter().all(|s| {
            s.fields.len() == first.fields.len() && s.fields.iter().all(|f| first.index(&f.name).is_some())
        });
        if alike {
            let same_order = structs.iter().all(|s| {
                s.fields
                    .iter()
                    .map(|f| &f.name)
                    .eq(first.fields.iter().map(|f| &f.name))
            });
            let mut names: Vec<_> = first.fields.iter().map(|f| f.name.clone()).collect();
            if !same_order {
                // So that the answer does not depend on who comes first.
                names.sort();
            }
            let fields: Option<Vec<_>> = names
                .into_iter()
                .map(|name| {
                    let types: Vec<&Type> = structs.iter().filter_map(|s| s.field(&name)).collect();
                    Some((name, unify_all(&types)?))
                })
                .collect();
            if let Some(fields) = fields {
                return Some(Type::structure(fields));
            }
        }
    }
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    for ty in types {
        match ty {
            Type::Map(kv) => {
                keys.push(&kv.0);
                values.push(&kv.1);
            }
            Type::Struct(s) => {
                keys.push(&Type::Str);
                values.extend(s.fields.iter().map(|f| &f.ty));
            }
            _ => {}
        }
    }
    let key = unify_all(&keys)?;
    // Keys must not become equal on the way.
    if keys.iter().any(|k| **k != key && key != Type::Str) {
        return None;
    }
    Some(Type::map(key, unify_all(&values)?))
}

/// Whether a type may still become any other.
pub(crate) fn is_hole(ty: &Type) -> bool {
    matches!(ty, Type::Dynamic | Type::Variable(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ty(text: &str) -> Type {
        Type::parse(text).unwrap()
    }

    #[test]
    fn unify_prefers_what_loses_nothing() {
        let unified = |texts: &[&str]| {
            let types: Vec<Type> = texts.iter().map(|t| ty(t)).collect();
            unify(&types).map(|t| t.to_string()).map_err(|d| d.to_string())
        };
        assert_eq!(unified(&["int", "float"]), Ok("float".to_owned()));
        assert_eq!(unified(&["int", "bool", "str"]), Ok("str".to_owned()));
        assert_eq!(unified(&["int", "int?"]), Ok("int?".to_owned()));
        assert_eq!(
            unified(&["tuple(int)", "tuple(int, str)"]),
            Ok("[]str".to_owned())
        );
        assert_eq!(
            unified(&["tuple(int, bool)", "tuple(float, bool)"]),
            Ok("tuple(float, bool)".to_owned())
        );
        assert_eq!(unified(&["[]int", "set{float}"]), Ok("set{float}".to_owned()));
        assert_eq!(
            unified(&["struct{a int}", "struct{a str}"]),
            Ok("struct{a str}".to_owned())
        );
        assert_eq!(
            unified(&["struct{a int}", "map{str: str}"]),
            Ok("map{str: str}".to_owned())
        );
        assert_eq!(unified(&["dynamic", "str"]), Ok("dynamic".to_owned()));
        assert_eq!(
            unified(&["int", "int", "bool"]),
            Err("int and bool have no type in common".to_owned())
        );
        assert_eq!(
            unified(&["[]int", "str"]),
            Err("[]int and str have no type in common".to_owned())
        );
        assert!(unified(&["map{int: int}", "map{float: int}"]).is_err());
    }
}
