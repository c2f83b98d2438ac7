//! Functions over lists and dicts.

use std::cmp::Ordering;

use rustc_hash::FxHashSet;
use setpoint_cf_names::datum::{Datum, Dict};
use setpoint_value::MOST_PARTS;

use super::Call;
use crate::context::Failure;
use crate::equality::{compare_numbers, is_same, write_key};

type Answer = Result<Datum, Failure>;

fn length(items: &[Datum]) -> Datum {
    Datum::Int(i64::try_from(items.len()).unwrap_or(i64::MAX))
}

pub(super) fn count(call: &mut Call<'_>) -> Answer {
    Ok(length(&call.list(0)?))
}

pub(super) fn len(call: &mut Call<'_>) -> Answer {
    let items = call.list(0)?;
    if items
        .iter()
        .any(|item| matches!(item.unmarked(), Datum::Unknown(_)))
    {
        return Err(Failure::Unknown);
    }
    Ok(length(&items))
}

/// The element at a position that may count from the end.
fn element(items: &[Datum], position: i64) -> Result<&Datum, Failure> {
    let index = if position < 0 {
        i64::try_from(items.len())
            .ok()
            .and_then(|length| length.checked_add(position))
    } else {
        Some(position)
    };
    index
        .and_then(|index| items.get(usize::try_from(index).ok()?))
        .ok_or_else(|| {
            Failure::Other(format!(
                "index {position} is out of range: the list has {} elements",
                items.len()
            ))
        })
}

pub(super) fn at(call: &mut Call<'_>) -> Answer {
    element(&call.list(0)?, call.int(1)?).cloned()
}

pub(super) fn item(call: &mut Call<'_>) -> Answer {
    let position = call.int(1)?;
    let lists = call.list(0)?;
    let pick = |list: &Datum| match call.known(list)? {
        Datum::List(items) => element(items, position).cloned(),
        other => Err(Failure::Other(format!("`{}` is not a list", call.shown(other)))),
    };
    Ok(Datum::List(lists.iter().map(pick).collect::<Result<_, _>>()?))
}

pub(super) fn select(call: &mut Call<'_>) -> Answer {
    let name = call.text(1)?;
    let mut selected = Vec::new();
    for item in call.list(0)?.iter() {
        let instance = call.instance(item)?;
        selected.push(call.attribute(instance, &name)?);
    }
    Ok(Datum::List(selected.into()))
}

pub(super) fn filter(call: &mut Call<'_>) -> Answer {
    let unwanted = call.instance(call.argument(1))?;
    let mut kept = Vec::new();
    for item in call.list(0)?.iter() {
        if !is_same(call.known(item)?, &Datum::Instance(unwanted)) {
            kept.push(item.clone());
        }
    }
    Ok(Datum::List(kept.into()))
}

pub(super) fn key_sort(call: &mut Call<'_>) -> Answer {
    let names = match call.argument(1).clone() {
        Datum::Text(name) => vec![name],
        Datum::List(names) => names
            .iter()
            .map(|name| match call.known(name)? {
                Datum::Text(name) => Ok(name.clone()),
                other => Err(Failure::Other(format!(
                    "`{}` is no name of an attribute",
                    call.shown(other)
                ))),
            })
            .collect::<Result<_, _>>()?,
        other => {
            return Err(Failure::Other(format!(
                "`{}` is no name of an attribute",
                call.shown(&other)
            )));
        }
    };
    let mut keyed = Vec::new();
    for item in call.list(0)?.iter() {
        let instance = call.instance(item)?;
        let mut key = Vec::with_capacity(names.len());
        for name in &names {
            let value = call.attribute(instance, name)?;
            key.push(call.known(&value)?.clone());
        }
        keyed.push((key, item.clone()));
    }
    let mut incomparable = None;
    keyed.sort_by(|(left, _), (right, _)| {
        let orders = left.iter().zip(right).map(|(left, right)| match (left, right) {
            (Datum::Text(left), Datum::Text(right)) => left.cmp(right),
            (left, right) => compare_numbers(left, right).unwrap_or_else(|| {
                incomparable.get_or_insert_with(|| (left.clone(), right.clone()));
                Ordering::Equal
            }),
        });
        orders.fold(Ordering::Equal, Ordering::then)
    });
    if let Some((left, right)) = incomparable {
        let (left, right) = (call.shown(&left), call.shown(&right));
        return Err(Failure::Other(format!("`{left}` and `{right}` have no order")));
    }
    Ok(Datum::List(keyed.into_iter().map(|(_, item)| item).collect()))
}

pub(super) fn unique(call: &mut Call<'_>) -> Answer {
    let mut seen = FxHashSet::default();
    for item in call.list(0)?.iter() {
        let mut key = String::new();
        write_key(&with_one_form_of_numbers(call.known(item)?), &mut key);
        if !seen.insert(key) {
            return Ok(Datum::Bool(false));
        }
    }
    Ok(Datum::Bool(true))
}

/// The datum with numbers that are equal in the same form, so that its key tells whether it is equal to another.
fn with_one_form_of_numbers(datum: &Datum) -> Datum {
    match datum.unmarked() {
        Datum::Bool(bool) => Datum::Int(i64::from(*bool)),
        Datum::Float(float) => {
            let whole = Datum::Int(*float as i64);
            if is_same(&whole, datum) {
                whole
            } else {
                datum.unmarked().clone()
            }
        }
        Datum::List(items) => Datum::List(items.iter().map(with_one_form_of_numbers).collect()),
        Datum::Dict(dict) => {
            let entries = dict
                .iter()
                .map(|(key, value)| (key.clone(), with_one_form_of_numbers(value)));
            Datum::Dict(std::sync::Arc::new(entries.collect::<Dict>()))
        }
        other => other.clone(),
    }
}

pub(super) fn flatten(call: &mut Call<'_>) -> Answer {
    let mut flat = Vec::new();
    for item in call.list(0)?.iter() {
        match call.known(item)? {
            Datum::List(items) => flat.extend(items.iter().cloned()),
            other => return Err(Failure::Other(format!("`{}` is not a list", call.shown(other)))),
        }
        if flat.len() > MOST_PARTS {
            return Err(Failure::Other(format!(
                "the list would have more than {MOST_PARTS} elements"
            )));
        }
    }
    Ok(Datum::List(flat.into()))
}

pub(super) fn sequence(call: &mut Call<'_>) -> Answer {
    let (count, start) = (call.int(0)?.max(0), call.int(1)?);
    if usize::try_from(count).is_ok_and(|count| count >= MOST_PARTS) {
        return Err(Failure::Other(format!(
            "the list would have more than {MOST_PARTS} elements"
        )));
    }
    let Some(end) = start.checked_add(count) else {
        return Err(Failure::Other("the numbers would not fit 64 bits".to_owned()));
    };
    Ok(Datum::List((start..end).map(Datum::Int).collect()))
}

pub(super) fn dict_keys(call: &mut Call<'_>) -> Answer {
    let dict = call.dict(0)?;
    Ok(Datum::List(
        dict.iter().map(|(key, _)| Datum::Text(key.clone())).collect(),
    ))
}

pub(super) fn dict_get(call: &mut Call<'_>) -> Answer {
    let (dict, key) = (call.dict(0)?, call.text(1)?);
    match dict.get(&key) {
        Some(value) => Ok(value.clone()),
        None => Err(Failure::Other(format!("there is no key `{key}`"))),
    }
}

pub(super) fn contains(call: &mut Call<'_>) -> Answer {
    Ok(Datum::Bool(call.dict(0)?.get(&call.text(1)?).is_some()))
}
