//! The functions of the core library that the generated programs call, for the naive interpreter.

use super::datum::{Datum, quoted};
use super::interpreter::{Failure, Interpreter, Outcome, wrong};

const NAMES: &[&str] = &[
    "concat",
    "contains",
    "len",
    "list_lookup",
    "map_lookup",
    "fmt.printf",
    "iter.map",
    "iter.filter",
    "iter.reduce",
    "iter.zip",
    "iter.flatten",
    "iter.range",
    "list.concat",
    "list.lookup",
    "map.keys",
    "map.values",
    "map.lookup",
    "math.minus1",
    "math.mod",
    "strings.contains",
    "strings.has_prefix",
    "strings.join_nonempty",
    "strings.split",
    "strings.substr",
    "strings.to_upper",
    "convert.int_to_str",
    "convert.to_float",
    "convert.str_to_int",
    "convert.format_bool",
];

/// Whether there is such a function.
pub(crate) fn has(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Calls one. Operators that are functions (`in`, lookups) come here too.
pub(crate) fn call(interpreter: &Interpreter, name: &str, arguments: Vec<Datum>) -> Outcome<Datum> {
    use Datum::{Bool, Float, Func, Int, List, Map, Str};
    Ok(match (name, &*arguments) {
        ("concat", [Str(a), Str(b)]) => Str(format!("{a}{b}")),
        ("contains", [needle, List(items)]) => Bool(items.iter().any(|item| item.equals(needle))),
        ("len", [Str(text)]) => Int(text.len() as i64),
        ("len", [List(items)]) => Int(items.len() as i64),
        ("len", [Map(entries)]) => Int(entries.len() as i64),
        ("lookup" | "list_lookup" | "list.lookup", [List(items), Int(index)]) => {
            let found = usize::try_from(*index).ok().and_then(|index| items.get(index));
            found
                .cloned()
                .ok_or_else(|| Failure::catchable("no such index"))?
        }
        ("lookup" | "map_lookup" | "map.lookup", [Map(entries), key]) => {
            let found = entries.iter().find(|(other, _)| other.equals(key));
            found.ok_or_else(|| Failure::catchable("no such key"))?.1.clone()
        }
        ("fmt.printf", [Str(format), values @ ..]) => Str(printf(format, values)?),
        ("iter.map", [List(items), function @ Func(_)]) => {
            let results = items
                .iter()
                .map(|item| interpreter.apply_value(function, vec![item.clone()]));
            List(results.collect::<Outcome<_>>()?)
        }
        ("iter.filter", [List(items), function @ Func(_)]) => {
            let mut kept = Vec::new();
            for item in items {
                match interpreter.apply_value(function, vec![item.clone()])? {
                    Bool(true) => kept.push(item.clone()),
                    Bool(false) => {}
                    other => return Err(wrong("a bool", &other)),
                }
            }
            List(kept)
        }
        ("iter.reduce", [first, List(items), function @ Func(_)]) => {
            fold(interpreter, first.clone(), items, function)?
        }
        ("iter.reduce", [List(items), function @ Func(_)]) => {
            let (first, rest) = items
                .split_first()
                .ok_or_else(|| Failure::fatal("an empty list"))?;
            fold(interpreter, first.clone(), rest, function)?
        }
        ("iter.zip", [List(a), List(b), function @ Func(_)]) => {
            let pairs = a.iter().cloned().zip(b.iter().cloned());
            let results = pairs.map(|(a, b)| interpreter.apply_value(function, vec![a, b]));
            List(results.collect::<Outcome<_>>()?)
        }
        ("iter.flatten", [List(lists)]) => List(joined(lists)?),
        ("iter.range", [Int(stop)]) => range(0, *stop, 1)?,
        ("iter.range", [Int(start), Int(stop)]) => range(*start, *stop, 1)?,
        ("iter.range", [Int(start), Int(stop), Int(step)]) => range(*start, *stop, *step)?,
        ("list.concat", lists) => List(joined(lists)?),
        ("map.keys", [Map(entries)]) => List(entries.iter().map(|(key, _)| key.clone()).collect()),
        ("map.values", [Map(entries)]) => List(entries.iter().map(|(_, value)| value.clone()).collect()),
        ("math.minus1", [Int(x)]) => Int(x.checked_sub(1).ok_or_else(|| Failure::catchable("overflow"))?),
        ("math.mod", [Int(_), Int(0)]) => return Err(Failure::catchable("not a number")),
        ("math.mod", [Int(x), Int(y)]) => Int(x.wrapping_rem(*y)),
        ("strings.contains", [Str(text), Str(part)]) => Bool(text.contains(&**part)),
        ("strings.has_prefix", [Str(text), Str(part)]) => Bool(text.starts_with(&**part)),
        ("strings.join_nonempty", [List(items), Str(separator)]) => {
            let texts = items.iter().map(|item| match item {
                Str(text) => Ok(&**text),
                other => Err(wrong("a str", other)),
            });
            let texts: Vec<&str> = texts.collect::<Outcome<_>>()?;
            Str(texts
                .into_iter()
                .filter(|text| !text.is_empty())
                .collect::<Vec<_>>()
                .join(separator))
        }
        ("strings.split", [Str(text), Str(separator)]) if separator.is_empty() => {
            List(text.chars().map(|character| Str(character.to_string())).collect())
        }
        ("strings.split", [Str(text), Str(separator)]) => List(
            text.split(&**separator)
                .map(|part| Str(part.to_owned()))
                .collect(),
        ),
        ("strings.substr", [Str(text), Int(low), Int(high)]) => {
            let range = usize::try_from(*low).ok().zip(usize::try_from(*high).ok());
            let part = range.and_then(|(low, high)| text.get(low..high));
            Str(part.ok_or_else(|| Failure::catchable("out of range"))?.to_owned())
        }
        ("strings.to_upper", [Str(text)]) => Str(text.to_uppercase()),
        ("convert.int_to_str", [Int(number)]) => Str(number.to_string()),
        ("convert.to_float", [Int(number)]) => Float(*number as f64),
        ("convert.format_bool", [Bool(value)]) => Str(value.to_string()),
        ("convert.str_to_int", [Str(text)]) => {
            Int(text.parse().map_err(|_| Failure::catchable("not a number"))?)
        }
        _ => return Err(Failure::fatal(format!("{name} cannot be called so"))),
    })
}

fn fold(interpreter: &Interpreter, first: Datum, items: &[Datum], function: &Datum) -> Outcome<Datum> {
    let mut result = Ok(first);
    for item in items {
        let Ok(before) = result else {
            // A function that does not look at what came before may go on all the same.
            interpreter.undecided.set(true);
            return result;
        };
        result = interpreter.apply_value(function, vec![before, item.clone()]);
    }
    result
}

fn joined(lists: &[Datum]) -> Outcome<Vec<Datum>> {
    let mut all = Vec::new();
    for list in lists {
        match list {
            Datum::List(items) => all.extend(items.iter().cloned()),
            other => return Err(wrong("a list", other)),
        }
    }
    Ok(all)
}

fn range(start: i64, stop: i64, step: i64) -> Outcome<Datum> {
    if step == 0 {
        return Err(Failure::fatal("a step of 0"));
    }
    let mut numbers = Vec::new();
    let mut next = start;
    while if step > 0 { next < stop } else { next > stop } {
        numbers.push(Datum::Int(next));
        if numbers.len() > 10_000 {
            return Err(Failure::fatal("a long range"));
        }
        next = next.saturating_add(step);
    }
    Ok(Datum::List(numbers))
}

fn printf(format: &str, values: &[Datum]) -> Outcome<String> {
    let mut text = String::new();
    let mut values = values.iter();
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            text.push(character);
            continue;
        }
        let Some(verb) = characters.next() else { break };
        if verb == '%' {
            text.push('%');
            continue;
        }
        let value = values
            .next()
            .ok_or_else(|| Failure::fatal("more verbs than values"))?;
        match (verb, value) {
            ('s' | 'v', Datum::Str(part)) => text.push_str(part),
            ('q', Datum::Str(part)) => text.push_str(&quoted(part)),
            ('v', value)
            | ('t', value @ Datum::Bool(_))
            | ('d', value @ Datum::Int(_))
            | ('f', value @ Datum::Float(_)) => {
                text.push_str(&value.text());
            }
            (_, other) => return Err(wrong("what the verb says", other)),
        }
    }
    Ok(text)
}
