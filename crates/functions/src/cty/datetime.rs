//! Points in time as RFC 3339 writes them: `2026-08-01T12:30:00+02:00`.

use jiff::SignedDuration;
use jiff::civil::DateTime;
use setpoint_value::{CallError, function};

use super::{MODULE, not_null, refuse};
use crate::datetime::names;

/// A point in time, written as a format says.
///
/// Runs of letters stand for its parts: `YYYY YY` the year, `MMMM MMM MM M` the month, `DD D` the day, `EEEE EEE` the day
/// of the week, `hh h` the hour of the day, `HH H` that of half a day, `AA aa` which half, `mm m` the minute, `ss s` the
/// second, `ZZZZZ ZZZZ ZZZ Z` the distance from UTC. Text between single quotes stands for itself, two of them for one.
#[function(
    refine = not_null,
    example(call = r#"cty.format_date("D MMM YYYY 'at' hh:mm", "2026-08-01T12:30:00Z")"#, result = r#""1 Aug 2026 at 12:30""#),
    example(call = r#"cty.format_date("EEE, h AA ZZZZZ", "2026-08-01T09:30:00+02:00")"#, result = r#""Sat, 9 AM +02:00""#)
)]
pub fn format_date(
    /// The format of the result.
    format: &str,
    /// A point in time as RFC 3339 writes it: `2026-08-01T12:30:00Z`.
    time: &str,
) -> Result<String, CallError> {
    let time =
        Time::parse(time).map_or_else(|| refuse(1, "is not a point in time as RFC 3339 writes it"), Ok)?;
    let mut out = String::new();
    let mut rest = format;
    while let Some(first) = rest.chars().next() {
        if first == '\'' {
            rest = quoted(&rest[1..], &mut out).map_or_else(|| refuse(0, "a quote is not closed"), Ok)?;
        } else if first.is_ascii_alphabetic() {
            let length = rest.bytes().take_while(|b| *b == first as u8).count();
            match time.part(&rest[..length]) {
                Some(part) => out.push_str(&part),
                None => {
                    return refuse(
                        0,
                        format!("`{}` is not a part of a point in time", &rest[..length]),
                    );
                }
            }
            rest = &rest[length..];
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    Ok(out)
}

/// Takes text up to the closing quote; two quotes are one. None if it does not close.
fn quoted<'a>(mut rest: &'a str, out: &mut String) -> Option<&'a str> {
    if let Some(after) = rest.strip_prefix('\'') {
        out.push('\'');
        return Some(after);
    }
    loop {
        let end = rest.find('\'')?;
        out.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('\'') {
            Some(after) => {
                out.push('\'');
                rest = after;
            }
            None => return Some(rest),
        }
    }
}

/// A point in time later, or with a negative duration earlier, by `1h30m` or the like, in whole seconds.
///
/// Units are `ns us ms s m h`; numbers may have fractions.
#[function(
    refine = not_null,
    example(call = r#"cty.time_add("2026-08-01T23:30:00Z", "1h30m")"#, result = r#""2026-08-02T01:00:00Z""#)
)]
pub fn time_add(
    /// A point in time as RFC 3339 writes it: `2026-08-01T12:30:00Z`.
    time: &str,
    /// The duration to add: `1h30m`, `-90s`.
    duration: &str,
) -> Result<String, CallError> {
    let time =
        Time::parse(time).map_or_else(|| refuse(0, "is not a point in time as RFC 3339 writes it"), Ok)?;
    let duration = parse_duration(duration).map_or_else(|| refuse(1, "is not a duration like 1h30m"), Ok)?;
    let later = time
        .local
        .checked_add(duration)
        .ok()
        .filter(|later| (0..=9999).contains(&later.year()));
    match later {
        Some(local) => Ok(Time { local, ..time }.to_string()),
        None => refuse(1, "leads out of the years 0 to 9999"),
    }
}

/// A point in time in its own offset from UTC.
struct Time {
    local: DateTime,
    /// Seconds east of UTC.
    offset: i32,
}

impl Time {
    fn parse(text: &str) -> Option<Time> {
        let bytes = text.as_bytes();
        let number = |from: usize, length: usize| {
            let digits = bytes.get(from..from + length)?;
            digits
                .iter()
                .all(u8::is_ascii_digit)
                .then(|| text[from..from + length].parse::<i32>().ok())?
        };
        let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
        if marks.iter().any(|(at, mark)| bytes.get(*at) != Some(mark)) {
            return None;
        }
        let mut at = 19;
        let mut nanoseconds = 0;
        if bytes.get(at) == Some(&b'.') {
            let digits = bytes[at + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
            if digits == 0 {
                return None;
            }
            nanoseconds = format!("{:0<9}", &text[at + 1..at + 1 + digits.min(9)])
                .parse()
                .ok()?;
            at += 1 + digits;
        }
        let offset = match bytes.get(at..)? {
            b"Z" => 0,
            [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
                let (hours, minutes) = (number(at + 1, 2)?, number(at + 4, 2)?);
                let seconds = (hours * 60 + minutes) * 60;
                if hours > 23 || minutes > 59 {
                    return None;
                }
                if *sign == b'-' { -seconds } else { seconds }
            }
            _ => return None,
        };
        let small = |from: usize| i8::try_from(number(from, 2)?).ok();
        let year = i16::try_from(number(0, 4)?).ok()?;
        let local = DateTime::new(
            year,
            small(5)?,
            small(8)?,
            small(11)?,
            small(14)?,
            small(17)?,
            nanoseconds,
        )
        .ok()?;
        Some(Time { local, offset })
    }

    fn part(&self, letters: &str) -> Option<String> {
        let time = &self.local;
        let month = names::month(time.month());
        let day = names::weekday(time.weekday());
        let half = match time.hour() % 12 {
            0 => 12,
            hour => hour,
        };
        Some(match letters {
            "YYYY" => format!("{:04}", time.year()),
            "YY" => format!("{:02}", time.year() % 100),
            "MMMM" => month.to_owned(),
            "MMM" => month[..3].to_owned(),
            "MM" => format!("{:02}", time.month()),
            "M" => time.month().to_string(),
            "DD" => format!("{:02}", time.day()),
            "D" => time.day().to_string(),
            "EEEE" => day.to_owned(),
            "EEE" => day[..3].to_owned(),
            "hh" => format!("{:02}", time.hour()),
            "h" => time.hour().to_string(),
            "HH" => format!("{half:02}"),
            "H" => half.to_string(),
            "AA" => if time.hour() < 12 { "AM" } else { "PM" }.to_owned(),
            "aa" => if time.hour() < 12 { "am" } else { "pm" }.to_owned(),
            "mm" => format!("{:02}", time.minute()),
            "m" => time.minute().to_string(),
            "ss" => format!("{:02}", time.second()),
            "s" => time.second().to_string(),
            "ZZZZZ" => self.zone(":"),
            "ZZZZ" => self.zone(""),
            "ZZZ" if self.offset == 0 => "UTC".to_owned(),
            "ZZZ" => self.zone(""),
            "Z" if self.offset == 0 => "Z".to_owned(),
            "Z" => self.zone(":"),
            _ => return None,
        })
    }

    fn zone(&self, between: &str) -> String {
        let minutes = self.offset.abs() / 60;
        let sign = if self.offset < 0 { '-' } else { '+' };
        format!("{sign}{:02}{between}{:02}", minutes / 60, minutes % 60)
    }
}

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let t = &self.local;
        let zone = self.part("Z").unwrap_or_default();
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{zone}",
            t.year(),
            t.month(),
            t.day(),
            t.hour(),
            t.minute(),
            t.second()
        )
    }
}

/// A duration as Go writes it.
fn parse_duration(text: &str) -> Option<SignedDuration> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, after) = rest.split_at(digits);
        let fraction = after.strip_prefix('.').map_or("", |after| {
            &after[..after.bytes().take_while(u8::is_ascii_digit).count()]
        });
        let has_point = after.starts_with('.');
        let after = &after[if has_point { 1 + fraction.len() } else { 0 }..];
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let length = after
            .bytes()
            .take_while(|b| !b.is_ascii_digit() && *b != b'.')
            .count();
        let unit: i128 = match &after[..length] {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let whole: i128 = if whole.is_empty() {
            0
        } else {
            whole.parse::<i64>().ok()?.into()
        };
        total += whole * unit;
        let mut place = unit;
        for digit in fraction.bytes() {
            place /= 10;
            total += i128::from(digit - b'0') * place;
        }
        if total > i128::from(i64::MAX) {
            return None;
        }
        rest = &after[length..];
    }
    i64::try_from(if negative { -total } else { total })
        .ok()
        .map(SignedDuration::from_nanos)
}
