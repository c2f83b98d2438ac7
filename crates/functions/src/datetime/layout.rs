//! Go's layouts: a time is written the way the layout writes `Mon Jan 2 15:04:05 MST 2006`.

use jiff::Zoned;

use super::LocalTime;
use super::names::{month, weekday};

/// An element of a layout that stands for a part of the time.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Element {
    LongYear,
    Year,
    LongMonth,
    Month,
    ZeroMonth,
    NumberMonth,
    Day,
    ZeroDay,
    UnderDay,
    ZeroYearDay,
    UnderYearDay,
    LongWeekday,
    Weekday,
    Hour,
    ZeroHour12,
    Hour12,
    ZeroMinute,
    Minute,
    ZeroSecond,
    Second,
    UpperHalf,
    LowerHalf,
    Zone,
    /// `-0700`, `-07:00`, …: whether UTC is `Z`, whether with colons, and how many of hours, minutes, seconds.
    Offset {
        z: bool,
        colon: bool,
        parts: u8,
    },
    /// `.000` or `,999`: the digits after the mark, and whether trailing zeros are dropped.
    Fraction {
        digits: usize,
        dropped: bool,
    },
}

/// The elements that are words of their own, longest first where one begins another.
const FIXED: &[(&str, Element)] = &[
    ("January", Element::LongMonth),
    ("Jan", Element::Month),
    ("Monday", Element::LongWeekday),
    ("Mon", Element::Weekday),
    ("MST", Element::Zone),
    ("2006", Element::LongYear),
    ("__2", Element::UnderYearDay),
    ("002", Element::ZeroYearDay),
    ("01", Element::ZeroMonth),
    ("02", Element::ZeroDay),
    ("03", Element::ZeroHour12),
    ("04", Element::ZeroMinute),
    ("05", Element::ZeroSecond),
    ("06", Element::Year),
    ("15", Element::Hour),
    (
        "-07:00:00",
        Element::Offset {
            z: false,
            colon: true,
            parts: 3,
        },
    ),
    (
        "-070000",
        Element::Offset {
            z: false,
            colon: false,
            parts: 3,
        },
    ),
    (
        "-07:00",
        Element::Offset {
            z: false,
            colon: true,
            parts: 2,
        },
    ),
    (
        "-0700",
        Element::Offset {
            z: false,
            colon: false,
            parts: 2,
        },
    ),
    (
        "-07",
        Element::Offset {
            z: false,
            colon: false,
            parts: 1,
        },
    ),
    (
        "Z07:00:00",
        Element::Offset {
            z: true,
            colon: true,
            parts: 3,
        },
    ),
    (
        "Z070000",
        Element::Offset {
            z: true,
            colon: false,
            parts: 3,
        },
    ),
    (
        "Z07:00",
        Element::Offset {
            z: true,
            colon: true,
            parts: 2,
        },
    ),
    (
        "Z0700",
        Element::Offset {
            z: true,
            colon: false,
            parts: 2,
        },
    ),
    (
        "Z07",
        Element::Offset {
            z: true,
            colon: false,
            parts: 1,
        },
    ),
    ("PM", Element::UpperHalf),
    ("pm", Element::LowerHalf),
    ("_2", Element::UnderDay),
    ("1", Element::NumberMonth),
    ("2", Element::Day),
    ("3", Element::Hour12),
    ("4", Element::Minute),
    ("5", Element::Second),
];

/// Writes a time.
pub(super) fn format(time: &LocalTime, layout: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(layout.len() + 16);
    let mut rest = layout;
    while !rest.is_empty() {
        match element(rest) {
            Some((element, length)) => {
                if let Element::Fraction { .. } = element {
                    write_fraction(&time.zoned, element, rest[0], &mut out);
                } else {
                    out.extend_from_slice(write(time, element).as_bytes());
                }
                rest = &rest[length..];
            }
            None => {
                out.push(rest[0]);
                rest = &rest[1..];
            }
        }
    }
    out
}

/// The element that the text begins with, and its length.
fn element(text: &[u8]) -> Option<(Element, usize)> {
    // `_2006` is an underscore and a year, not a padded day.
    if text.starts_with(b"_2006") {
        return None;
    }
    if let Some(found) = fraction(text) {
        return Some(found);
    }
    for (word, element) in FIXED {
        if !text.starts_with(word.as_bytes()) {
            continue;
        }
        // `Jan` and `Mon` do not begin another word in lower case, as in `Month`.
        let follows = text.get(word.len());
        if matches!(element, Element::Month | Element::Weekday) && follows.is_some_and(u8::is_ascii_lowercase)
        {
            continue;
        }
        return Some((*element, word.len()));
    }
    None
}

/// `.000`, `,000`, `.999`, `,999`: a mark and only zeros or only nines, which no other digit follows.
fn fraction(text: &[u8]) -> Option<(Element, usize)> {
    let [b'.' | b',', digit @ (b'0' | b'9'), ..] = text else {
        return None;
    };
    let digits = text[1..].iter().take_while(|b| *b == digit).count();
    if text.get(1 + digits).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let dropped = *digit == b'9';
    Some((Element::Fraction { digits, dropped }, 1 + digits))
}

fn write_fraction(time: &Zoned, element: Element, mark: u8, out: &mut Vec<u8>) {
    let Element::Fraction { digits, dropped } = element else {
        return;
    };
    let nanoseconds = format!("{:09}", time.subsec_nanosecond());
    let shown = &nanoseconds[..digits.min(9)];
    if dropped {
        let shown = shown.trim_end_matches('0');
        if !shown.is_empty() {
            out.push(mark);
            out.extend_from_slice(shown.as_bytes());
        }
    } else {
        out.push(mark);
        out.extend_from_slice(shown.as_bytes());
        out.extend(std::iter::repeat_n(b'0', digits.saturating_sub(9)));
    }
}

fn write(local: &LocalTime, element: Element) -> String {
    let time = &local.zoned;
    let hour12 = match time.hour() % 12 {
        0 => 12,
        hour => hour,
    };
    match element {
        Element::LongYear => format!("{:04}", local.year()),
        Element::Year => format!("{:02}", local.year().rem_euclid(100)),
        Element::LongMonth => month(time.month()).to_owned(),
        Element::Month => month(time.month())[..3].to_owned(),
        Element::ZeroMonth => format!("{:02}", time.month()),
        Element::NumberMonth => time.month().to_string(),
        Element::Day => time.day().to_string(),
        Element::ZeroDay => format!("{:02}", time.day()),
        Element::UnderDay => format!("{:2}", time.day()),
        Element::ZeroYearDay => format!("{:03}", time.day_of_year()),
        Element::UnderYearDay => format!("{:3}", time.day_of_year()),
        Element::LongWeekday => weekday(time.weekday()).to_owned(),
        Element::Weekday => weekday(time.weekday())[..3].to_owned(),
        Element::Hour => format!("{:02}", time.hour()),
        Element::ZeroHour12 => format!("{hour12:02}"),
        Element::Hour12 => hour12.to_string(),
        Element::ZeroMinute => format!("{:02}", time.minute()),
        Element::Minute => time.minute().to_string(),
        Element::ZeroSecond => format!("{:02}", time.second()),
        Element::Second => time.second().to_string(),
        Element::UpperHalf => if time.hour() < 12 { "AM" } else { "PM" }.to_owned(),
        Element::LowerHalf => if time.hour() < 12 { "am" } else { "pm" }.to_owned(),
        Element::Zone => zone(time),
        Element::Offset { z, colon, parts } => offset(time.offset().seconds(), z, colon, parts),
        Element::Fraction { .. } => String::new(),
    }
}

/// The abbreviation of the zone; its offset where it has none of letters, as Go prints it.
fn zone(time: &Zoned) -> String {
    let info = time.time_zone().to_offset_info(time.timestamp());
    let abbreviation = info.abbreviation();
    if abbreviation.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return abbreviation.to_owned();
    }
    let seconds = time.offset().seconds();
    let parts = if seconds % 3600 == 0 { 1 } else { 2 };
    offset(seconds, false, false, parts)
}

fn offset(seconds: i32, z: bool, colon: bool, parts: u8) -> String {
    if z && seconds == 0 {
        return "Z".to_owned();
    }
    let sign = if seconds < 0 { '-' } else { '+' };
    let seconds = seconds.unsigned_abs();
    let mark = if colon { ":" } else { "" };
    let mut text = format!("{sign}{:02}", seconds / 3600);
    if parts > 1 {
        text.push_str(&format!("{mark}{:02}", seconds / 60 % 60));
    }
    if parts > 2 {
        text.push_str(&format!("{mark}{:02}", seconds % 60));
    }
    text
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::tz::{Offset, TimeZone};

    use super::*;

    fn shown(seconds: i64, offset_hours: i8, layout: &str) -> String {
        let zone = TimeZone::fixed(Offset::constant(offset_hours));
        let time = Timestamp::from_second(seconds).map(|t| t.to_zoned(zone));
        let local = LocalTime {
            zoned: time.expect("in range"),
            eras: 0,
        };
        String::from_utf8(format(&local, layout.as_bytes())).expect("text")
    }

    #[test]
    fn layouts_write_as_their_example_does() {
        // 2001-09-09 01:46:40 UTC, a Sunday, the 252nd day.
        let at = 1_000_000_000;
        for (layout, text) in [
            ("2006-01-02 15:04:05", "2001-09-09 01:46:40"),
            ("Mon Jan _2 3:4:5PM 06", "Sun Sep  9 1:46:40AM 01"),
            ("Monday January 2 002 __2", "Sunday September 9 252 252"),
            ("03pm", "01am"),
            (".000 ,00 .999", ".000 ,00 "),
            ("Z07:00 Z0700 -0700 -07:00 -07", "Z Z +0000 +00:00 +00"),
            ("Month Januaryx Janx", "Month Septemberx Janx"),
            ("_2006", "_2001"),
            ("é 2006 %Y", "é 2001 %Y"),
            ("", ""),
        ] {
            assert_eq!(shown(at, 0, layout), text, "{layout}");
        }
        assert_eq!(
            shown(at, -7, "15 -0700 Z07:00 -07:00:00 MST"),
            "18 -0700 -07:00 -07:00:00 -07"
        );
        assert_eq!(shown(0, 0, "2006-01-02T15:04:05Z07:00"), "1970-01-01T00:00:00Z");
    }
}
