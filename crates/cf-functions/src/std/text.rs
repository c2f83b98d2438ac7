//! Functions over texts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};
use setpoint_cf_names::datum::Datum;
use setpoint_value::LONGEST_TEXT;

use super::{Call, python_format};
use crate::context::Failure;

type Answer = Result<Datum, Failure>;

pub(super) fn split(call: &mut Call<'_>) -> Answer {
    let (text, delimiter) = (call.text(0)?, call.text(1)?);
    if delimiter.is_empty() {
        return Err(Failure::Other("empty separator".to_owned()));
    }
    Ok(Datum::List(text.split(&*delimiter).map(Datum::text).collect()))
}

pub(super) fn replace(call: &mut Call<'_>) -> Answer {
    let (text, old, new) = (call.text(0)?, call.text(1)?, call.text(2)?);
    let longest = text
        .matches(&*old)
        .count()
        .saturating_mul(new.len())
        .saturating_add(text.len());
    if longest > LONGEST_TEXT {
        return Err(too_long());
    }
    Ok(Datum::text(text.replace(&*old, &new)))
}

fn too_long() -> Failure {
    Failure::Other(format!(
        "the text would be longer than {} MiB",
        LONGEST_TEXT >> 20
    ))
}

pub(super) fn capitalize(call: &mut Call<'_>) -> Answer {
    let text = call.text(0)?;
    let mut chars = text.chars();
    let mut capitalized = String::with_capacity(text.len());
    if let Some(first) = chars.next() {
        // A few letters become two: only the first of them is a capital.
        let mut upper = first.to_uppercase();
        capitalized.extend(upper.next());
        capitalized.extend(upper.flat_map(char::to_lowercase));
        capitalized.push_str(&chars.as_str().to_lowercase());
    }
    Ok(Datum::text(capitalized))
}

pub(super) fn upper(call: &mut Call<'_>) -> Answer {
    Ok(Datum::text(call.text(0)?.to_uppercase()))
}

pub(super) fn lower(call: &mut Call<'_>) -> Answer {
    Ok(Datum::text(call.text(0)?.to_lowercase()))
}

pub(super) fn limit(call: &mut Call<'_>) -> Answer {
    let (text, length) = (call.text(0)?, call.int(1)?);
    let count = match usize::try_from(length) {
        Ok(length) => length,
        Err(_) => {
            let dropped = usize::try_from(length.unsigned_abs()).unwrap_or(usize::MAX);
            text.chars().count().saturating_sub(dropped)
        }
    };
    Ok(Datum::text(text.chars().take(count).collect::<String>()))
}

pub(super) fn length(call: &mut Call<'_>) -> Answer {
    let length = call.text(0)?.chars().count();
    Ok(Datum::Int(i64::try_from(length).unwrap_or(i64::MAX)))
}

pub(super) fn format(call: &mut Call<'_>) -> Answer {
    let template = call.text(0)?;
    let (positional, keywords) = (call.list(1)?, call.dict(2)?);
    python_format::format(&template, &positional, &keywords, call).map(Datum::text)
}

pub(super) fn unique_file(call: &mut Call<'_>) -> Answer {
    let (prefix, seed, suffix) = (call.text(0)?, call.text(1)?, call.text(2)?);
    let mut name = prefix.to_string();
    for byte in Md5::digest(seed.as_bytes()) {
        name.push_str(&format!("{byte:02x}"));
    }
    name.push_str(&suffix);
    Ok(Datum::text(name))
}

/// Whether a text is strict base64.
pub(super) fn is_base64(text: &str) -> bool {
    STANDARD.decode(text).is_ok()
}

pub(super) fn is_base64_encoded(call: &mut Call<'_>) -> Answer {
    Ok(Datum::Bool(is_base64(&call.text(0)?)))
}

pub(super) fn hostname(call: &mut Call<'_>) -> Answer {
    let name = call.text(0)?;
    Ok(Datum::text(name.split('.').next().unwrap_or("")))
}
