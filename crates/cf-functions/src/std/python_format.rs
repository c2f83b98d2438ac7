//! Format strings as Python's `str.format` knows them: `{}`, `{0}`, `{name}`, `{a.b}`, `{a[k]}`, `{x!r:>{width}}`.

use std::sync::Arc;

use setpoint_cf_names::datum::{Datum, Dict};
use setpoint_value::LONGEST_TEXT;

use super::Call;
use crate::context::Failure;
use crate::format::{Unformatted, Whole, field};
use crate::text::{Form, NoText};

/// Fills the fields of a format string.
pub(super) fn format(
    template: &str,
    positional: &[Datum],
    keywords: &Dict,
    call: &mut Call<'_>,
) -> Result<String, Failure> {
    let mut formatter = Formatter {
        positional,
        keywords,
        numbering: None,
        call,
    };
    formatter.fill(template, 2)
}

struct Formatter<'f, 'c, 'a> {
    positional: &'f [Datum],
    keywords: &'f Dict,
    /// How fields without names are counted: the next number, or none if they are numbered by hand.
    numbering: Option<Option<usize>>,
    call: &'c mut Call<'a>,
}

fn wrong(message: impl Into<String>) -> Failure {
    Failure::Other(message.into())
}

impl Formatter<'_, '_, '_> {
    /// Fills fields, and those of their specifications, `levels` deep.
    fn fill(&mut self, template: &str, levels: usize) -> Result<String, Failure> {
        let Some(inner) = levels.checked_sub(1) else {
            return Err(wrong("Max string recursion exceeded"));
        };
        let mut out = String::new();
        let mut rest = template;
        while let Some(brace) = rest.find(['{', '}']) {
            out.push_str(&rest[..brace]);
            let (first, behind) = (rest.as_bytes()[brace], &rest[brace + 1..]);
            if behind.as_bytes().first() == Some(&first) {
                out.push(char::from(first));
                rest = &behind[1..];
                continue;
            }
            if first == b'}' {
                return Err(wrong("Single '}' encountered in format string"));
            }
            if behind.is_empty() {
                return Err(wrong("Single '{' encountered in format string"));
            }
            let end = end_of_field(behind)?;
            out.push_str(&self.field(&behind[..end], inner)?);
            if out.len() > LONGEST_TEXT {
                return Err(wrong(format!(
                    "the text would be longer than {} MiB",
                    LONGEST_TEXT >> 20
                )));
            }
            rest = &behind[end + 1..];
        }
        out.push_str(rest);
        Ok(out)
    }

    fn field(&mut self, text: &str, inner: usize) -> Result<String, Failure> {
        // Inside of brackets there is any text.
        let name_end = {
            let mut bracket = false;
            text.find(|c| {
                match c {
                    '[' => bracket = true,
                    ']' => bracket = false,
                    _ => {}
                }
                !bracket && (c == '!' || c == ':')
            })
            .unwrap_or(text.len())
        };
        let (name, rest) = text.split_at(name_end);
        let (conversion, specification) = match rest.strip_prefix('!') {
            Some(rest) => {
                let mut chars = rest.chars();
                let conversion = chars
                    .next()
                    .ok_or_else(|| wrong("end of string while looking for conversion specifier"))?;
                if !"rsa".contains(conversion) {
                    return Err(wrong(format!("Unknown conversion specifier '{conversion}'")));
                }
                match chars.as_str() {
                    "" => (Some(conversion), ""),
                    rest => match rest.strip_prefix(':') {
                        Some(specification) => (Some(conversion), specification),
                        None => return Err(wrong("expected ':' after conversion specifier")),
                    },
                }
            }
            None => (None, rest.strip_prefix(':').unwrap_or("")),
        };
        let value = self.value(name)?;
        let specification = if specification.contains(['{', '}']) {
            self.fill(specification, inner)?
        } else {
            specification.to_owned()
        };
        let value = self.call.known(&value)?;
        match field(
            Whole::Datum(value),
            conversion,
            &specification,
            Form::Printed,
            self.call.naming(),
        ) {
            Ok(text) => Ok(text),
            Err(Unformatted::Specification(reason)) => Err(wrong(reason)),
            Err(Unformatted::NoText(NoText::Unknown)) => Err(Failure::Unknown),
            Err(Unformatted::NoText(refused)) => match refused.into_error(self.call.span) {
                Some(error) => Err(error.into()),
                None => Err(Failure::Unknown),
            },
        }
    }

    /// What `0`, `name`, `a.b` or `a[k]` stands for.
    fn value(&mut self, name: &str) -> Result<Datum, Failure> {
        let first_end = name.find(['.', '[']).unwrap_or(name.len());
        let (first, mut rest) = name.split_at(first_end);
        let mut value = self.first(first)?;
        while !rest.is_empty() {
            if let Some(behind) = rest.strip_prefix('.') {
                let end = behind.find(['.', '[']).unwrap_or(behind.len());
                let (attribute, after) = behind.split_at(end);
                if attribute.is_empty() {
                    return Err(wrong("Empty attribute in format string"));
                }
                let instance = self.call.instance(&value)?;
                value = self.call.attribute(instance, attribute)?;
                rest = after;
            } else if let Some(behind) = rest.strip_prefix('[') {
                let Some((key, after)) = behind.split_once(']') else {
                    return Err(wrong("Missing ']' in format string"));
                };
                value = self.element(&value, key)?;
                rest = after;
            } else {
                return Err(wrong("Only '.' or '[' may follow ']' in format field specifier"));
            }
        }
        Ok(value)
    }

    fn first(&mut self, name: &str) -> Result<Datum, Failure> {
        let index = if name.is_empty() {
            match self.numbering {
                Some(None) => {
                    return Err(wrong(
                        "cannot switch from manual field specification to automatic field numbering",
                    ));
                }
                Some(Some(next)) => {
                    self.numbering = Some(Some(next + 1));
                    next
                }
                None => {
                    self.numbering = Some(Some(1));
                    0
                }
            }
        } else if name.bytes().all(|b| b.is_ascii_digit()) {
            if matches!(self.numbering, Some(Some(_))) {
                return Err(wrong(
                    "cannot switch from automatic field numbering to manual field specification",
                ));
            }
            self.numbering = Some(None);
            name.parse()
                .map_err(|_| wrong("Too many decimal digits in format string"))?
        } else {
            return match self.keywords.get(name) {
                Some(value) => Ok(value.clone()),
                None => Err(wrong(format!("there is no argument `{name}`"))),
            };
        };
        match self.positional.get(index) {
            Some(value) => Ok(value.clone()),
            None => Err(wrong(format!(
                "Replacement index {index} out of range for positional args tuple"
            ))),
        }
    }

    fn element(&self, of: &Datum, key: &str) -> Result<Datum, Failure> {
        let found = match self.call.known(of)? {
            Datum::Dict(dict) => dict.get(key).cloned(),
            Datum::List(items) => key
                .parse::<usize>()
                .ok()
                .and_then(|index| items.get(index).cloned()),
            Datum::Text(text) => {
                let index = key.parse::<usize>().ok();
                index
                    .and_then(|index| text.chars().nth(index))
                    .map(|c| Datum::Text(Arc::from(&*c.to_string())))
            }
            other => {
                return Err(wrong(format!("`{}` has no elements", self.call.shown(other))));
            }
        };
        found.ok_or_else(|| {
            wrong(format!(
                "there is no element `{key}` in `{}`",
                self.call.shown(of)
            ))
        })
    }
}

/// Where the brace is that ends a field, whose specification may have fields of its own.
fn end_of_field(text: &str) -> Result<usize, Failure> {
    let mut open = 0usize;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => open += 1,
            b'}' if open == 0 => return Ok(index),
            b'}' => open -= 1,
            _ => {}
        }
    }
    Err(wrong("expected '}' before end of string"))
}
