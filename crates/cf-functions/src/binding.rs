//! Which argument goes to which parameter. The wording of what does not fit is that of the host language of plugins.

use std::sync::Arc;

use setpoint_cf_names::datum::Datum;

use crate::context::Arguments;

/// A parameter, as far as binding cares.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// What it takes.
    pub(crate) takes: Takes,
}

/// What a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// One argument, which must be given.
    Required,
    /// One argument, which can be left out.
    Optional,
    /// One argument, which must be given by name.
    RequiredKeyword,
    /// One argument, which can be given by name.
    OptionalKeyword,
    /// All that are given by position and left.
    Variadic,
    /// All that are given by name and left.
    Keywords,
}

impl Takes {
    /// Whether it is one argument.
    fn is_single(self) -> bool {
        self.is_by_position() || matches!(self, Takes::RequiredKeyword | Takes::OptionalKeyword)
    }

    /// Whether it is one argument, which can be given by position.
    fn is_by_position(self) -> bool {
        matches!(self, Takes::Required | Takes::Optional)
    }
}

/// Arguments at their parameters.
#[derive(Debug, Default)]
pub(crate) struct Bound {
    /// One for each parameter that takes one. None: it was left out.
    pub(crate) values: Vec<Option<Datum>>,
    /// Of the variadic parameter.
    pub(crate) variadic: Vec<Datum>,
    /// Of the parameter for keywords.
    pub(crate) keywords: Vec<(Arc<str>, Datum)>,
}

/// Binds arguments. Where some keywords are not known, none is missing.
pub(crate) fn bind(
    function: &str,
    shapes: &[Shape<'_>],
    arguments: Arguments,
    unknown_keywords: bool,
) -> Result<Bound, String> {
    let single: Vec<&Shape<'_>> = shapes.iter().filter(|shape| shape.takes.is_single()).collect();
    let has = |takes: Takes| shapes.iter().any(|shape| shape.takes == takes);
    let given = arguments.positional.len();
    // Those that are only given by name stand behind them.
    let by_position = single.iter().filter(|shape| shape.takes.is_by_position());
    let by_position: Vec<&Shape<'_>> = by_position.copied().collect();
    if given > by_position.len() && !has(Takes::Variadic) {
        return Err(too_many(function, &by_position, given));
    }
    let mut bound = Bound {
        values: vec![None; single.len()],
        ..Bound::default()
    };
    for (index, value) in arguments.positional.into_iter().enumerate() {
        match bound.values.get_mut(index) {
            Some(slot) if index < by_position.len() => *slot = Some(value),
            _ => bound.variadic.push(value),
        }
    }
    // What is missing is told before what is too much.
    let mut unexpected = None;
    let mut twice = None;
    for (name, value) in arguments.keywords {
        match single.iter().position(|shape| *shape.name == *name) {
            Some(index) if bound.values[index].is_some() => {
                twice.get_or_insert(name);
            }
            Some(index) => bound.values[index] = Some(value),
            None if has(Takes::Keywords) => bound.keywords.push((name, value)),
            None => {
                unexpected.get_or_insert(name);
            }
        }
    }
    for (takes, sort) in [
        (Takes::Required, "positional"),
        (Takes::RequiredKeyword, "keyword-only"),
    ] {
        let missing: Vec<&str> = single
            .iter()
            .zip(&bound.values)
            .filter(|(shape, value)| shape.takes == takes && value.is_none())
            .map(|(shape, _)| shape.name)
            .collect();
        if !missing.is_empty() && !unknown_keywords {
            let plural = if missing.len() == 1 { "" } else { "s" };
            return Err(format!(
                "{function}() missing {} required {sort} argument{plural}: {}",
                missing.len(),
                enumerated(&missing)
            ));
        }
    }
    if let Some(name) = unexpected {
        let names = single.iter().map(|shape| shape.name);
        let advice = match setpoint_diagnostics::closest(&name, names) {
            Some(near) => format!(" (did you mean '{near}'?)"),
            None => String::new(),
        };
        return Err(format!(
            "{function}() got an unexpected keyword argument '{name}'{advice}"
        ));
    }
    if let Some(name) = twice {
        return Err(format!("{function}() got multiple values for argument '{name}'"));
    }
    Ok(bound)
}

fn too_many(function: &str, single: &[&Shape<'_>], given: usize) -> String {
    let most = single.len();
    let least = single
        .iter()
        .filter(|shape| shape.takes == Takes::Required)
        .count();
    let takes = if least == most {
        format!("{most}")
    } else {
        format!("from {least} to {most}")
    };
    let plural = if most == 1 { "" } else { "s" };
    let were = if given == 1 { "was" } else { "were" };
    format!("{function}() takes {takes} positional argument{plural} but {given} {were} given")
}

/// `'a'`, `'a' and 'b'`, `'a', 'b', and 'c'`.
fn enumerated(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first, second] => format!("{first} and {second}"),
        [others @ .., last] => format!("{}, and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(positional: usize, keywords: &[&str]) -> String {
        let shapes = [
            ("string", Takes::Required),
            ("old", Takes::Required),
            ("new", Takes::Required),
            ("count", Takes::Optional),
        ];
        refused_by(&shapes, positional, keywords)
    }

    fn refused_by(shapes: &[(&'static str, Takes)], positional: usize, keywords: &[&str]) -> String {
        let shapes: Vec<Shape<'_>> = shapes
            .iter()
            .map(|(name, takes)| Shape { name, takes: *takes })
            .collect();
        let arguments = Arguments {
            positional: vec![Datum::Null; positional],
            keywords: keywords
                .iter()
                .map(|name| (Arc::from(*name), Datum::Null))
                .collect(),
            dicts: Vec::new(),
        };
        bind("std::replace", &shapes, arguments, false).map_or_else(|message| message, |_| "bound".to_owned())
    }

    #[test]
    fn what_is_only_given_by_name_takes_no_place() {
        let shapes = [
            ("a", Takes::Required),
            ("b", Takes::RequiredKeyword),
            ("c", Takes::OptionalKeyword),
        ];
        for (positional, keywords, expected) in [
            (1, &["b"][..], "bound"),
            (1, &["c", "b"], "bound"),
            (
                1,
                &[],
                "std::replace() missing 1 required keyword-only argument: 'b'",
            ),
            (
                2,
                &[],
                "std::replace() takes 1 positional argument but 2 were given",
            ),
        ] {
            assert_eq!(refused_by(&shapes, positional, keywords), expected);
        }
    }

    #[test]
    fn what_does_not_fit_is_told_in_order() {
        for (positional, keywords, expected) in [
            (3, &[][..], "bound"),
            (1, &["new", "old"], "bound"),
            (
                5,
                &[],
                "std::replace() takes from 3 to 4 positional arguments but 5 were given",
            ),
            (
                0,
                &[],
                "std::replace() missing 3 required positional arguments: 'string', 'old', and 'new'",
            ),
            (
                1,
                &[],
                "std::replace() missing 2 required positional arguments: 'old' and 'new'",
            ),
            (
                2,
                &["extra"],
                "std::replace() missing 1 required positional argument: 'new'",
            ),
            (
                3,
                &["cuont"],
                "std::replace() got an unexpected keyword argument 'cuont' (did you mean 'count'?)",
            ),
            (
                3,
                &["old"],
                "std::replace() got multiple values for argument 'old'",
            ),
        ] {
            assert_eq!(refused(positional, keywords), expected);
        }
    }
}
