//! The types of generated expressions.

use crate::random::Random;

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ty {
    Bool,
    Int,
    Float,
    Str,
    List(Box<Ty>),
    Map(Box<Ty>, Box<Ty>),
    Struct(Vec<(String, Ty)>),
    Func(Vec<Ty>, Box<Ty>),
    /// What the caller of a function, or who includes a class, decides.
    Any(u32),
}

/// What the open types of a signature are.
pub(crate) type Chosen = Vec<(u32, Ty)>;

impl Ty {
    pub(crate) fn list(element: Ty) -> Ty {
        Ty::List(Box::new(element))
    }

    fn parts(&self) -> Vec<&Ty> {
        match self {
            Ty::List(element) => vec![element],
            Ty::Map(key, value) => vec![key, value],
            Ty::Struct(fields) => fields.iter().map(|(_, ty)| ty).collect(),
            Ty::Func(parameters, result) => parameters.iter().chain([&**result]).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether it can be written down.
    pub(crate) fn is_concrete(&self) -> bool {
        !matches!(self, Ty::Any(_)) && self.parts().into_iter().all(Ty::is_concrete)
    }

    /// Whether its values can be compared and printed.
    pub(crate) fn is_data(&self) -> bool {
        !matches!(self, Ty::Func(..)) && self.parts().into_iter().all(Ty::is_data)
    }

    /// As an annotation.
    pub(crate) fn text(&self) -> String {
        match self {
            Ty::Bool => "bool".to_owned(),
            Ty::Int => "int".to_owned(),
            Ty::Float => "float".to_owned(),
            Ty::Str => "str".to_owned(),
            Ty::List(element) => format!("[]{}", element.text()),
            Ty::Map(key, value) => format!("map{{{}: {}}}", key.text(), value.text()),
            Ty::Struct(fields) => {
                let fields = fields.iter().map(|(name, ty)| format!("{name} {}", ty.text()));
                format!("struct{{{}}}", fields.collect::<Vec<_>>().join("; "))
            }
            Ty::Func(parameters, result) => {
                let parameters = parameters.iter().map(Ty::text).collect::<Vec<_>>().join(", ");
                format!("func({parameters}) {}", result.text())
            }
            Ty::Any(_) => "variant".to_owned(),
        }
    }

    /// With what was chosen in the place of what is open.
    pub(crate) fn with(&self, chosen: &Chosen) -> Ty {
        match self {
            Ty::Any(number) => {
                let found = chosen.iter().find(|(other, _)| other == number);
                found.map_or(Ty::Any(*number), |(_, ty)| ty.clone())
            }
            Ty::List(element) => Ty::list(element.with(chosen)),
            Ty::Map(key, value) => Ty::Map(Box::new(key.with(chosen)), Box::new(value.with(chosen))),
            Ty::Struct(fields) => Ty::Struct(
                fields
                    .iter()
                    .map(|(name, ty)| (name.clone(), ty.with(chosen)))
                    .collect(),
            ),
            Ty::Func(parameters, result) => {
                let parameters = parameters.iter().map(|ty| ty.with(chosen)).collect();
                Ty::Func(parameters, Box::new(result.with(chosen)))
            }
            plain => plain.clone(),
        }
    }

    /// Whether a choice of these open types makes it another type; what was chosen is added.
    pub(crate) fn fits(&self, open: &[u32], other: &Ty, chosen: &mut Chosen) -> bool {
        match (self, other) {
            (Ty::Any(number), other) if open.contains(number) => {
                match chosen.iter().find(|(known, _)| known == number) {
                    Some((_, ty)) => ty == other,
                    None if other.is_data() => {
                        chosen.push((*number, other.clone()));
                        true
                    }
                    None => false,
                }
            }
            (Ty::List(a), Ty::List(b)) => a.fits(open, b, chosen),
            (Ty::Map(k, v), Ty::Map(l, w)) => k.fits(open, l, chosen) && v.fits(open, w, chosen),
            (Ty::Struct(a), Ty::Struct(b)) => {
                a.len() == b.len()
                    && a.iter()
                        .zip(b)
                        .all(|(a, b)| a.0 == b.0 && a.1.fits(open, &b.1, chosen))
            }
            (a, b) => a == b,
        }
    }

    /// One for the keys of a map.
    pub(crate) fn key(random: &mut Random) -> Ty {
        match random.below(12) {
            0..7 => Ty::Str,
            7..10 => Ty::Int,
            10 => Ty::Float,
            _ => Ty::Struct(vec![("a".to_owned(), Ty::Int)]),
        }
    }

    /// One that can be written down.
    pub(crate) fn random(random: &mut Random, depth: usize, functions: bool) -> Ty {
        let simple = [Ty::Int, Ty::Str, Ty::Bool, Ty::Float, Ty::Int, Ty::Str];
        let leaf = simple[random.below(simple.len())].clone();
        if depth == 0 || random.chance(55) {
            return leaf;
        }
        let inner = |random: &mut Random| Ty::random(random, depth - 1, functions);
        match random.below(if functions { 5 } else { 3 }) {
            0 => Ty::list(inner(random)),
            1 => {
                let key = Ty::key(random);
                Ty::Map(Box::new(key), Box::new(inner(random)))
            }
            2 => {
                let names = ["a", "b", "c"];
                let count = 1 + random.below(3);
                Ty::Struct(
                    names[..count]
                        .iter()
                        .map(|name| ((*name).to_owned(), inner(random)))
                        .collect(),
                )
            }
            _ => {
                let count = random.below(3);
                let parameters = (0..count).map(|_| inner(random)).collect();
                Ty::Func(parameters, Box::new(inner(random)))
            }
        }
    }
}
