//! Times as systemd.time(7) writes them: spans, and calendar events. They are only judged; systemd reads them.
//!
//! Whatever systemd takes is right. Of time zones only the form is looked at, for which there are is up to the machine.

/// The longest names come first, so that the first that fits is the one that is meant.
const UNITS: [&str; 30] = [
    "minutes", "seconds", "months", "minute", "second", "hours", "weeks", "years", "month", "msec", "usec",
    "hour", "week", "days", "year", "µs", "μs", "min", "sec", "day", "ms", "us", "hr", "M", "m", "s", "h",
    "d", "w", "y",
];

/// Events that have a name.
const NAMED: [&str; 12] = [
    "minutely",
    "hourly",
    "daily",
    "weekly",
    "monthly",
    "quarterly",
    "semiannually",
    "semi-annually",
    "biannually",
    "bi-annually",
    "annually",
    "yearly",
];

/// What systemd takes as well.
const MISSPELT: [&str; 1] = ["anually"];

const WEEKDAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

/// Why a text is no span of time (`90`, `1h 30min`), if it is none.
pub(super) fn refused_span(text: &str) -> Option<String> {
    let wrong = |why: String| Some(format!("`{text}` is no span of time: {why}"));
    let mut rest = text.trim();
    if rest.is_empty() {
        return wrong("it is empty".to_owned());
    }
    if rest == "infinity" {
        return None;
    }
    while !rest.is_empty() {
        let number = rest.strip_prefix('+').unwrap_or(rest);
        let (whole, after) = digits(number);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return wrong(format!("a number is missing before `{rest}`"));
        }
        if whole.len() > 18 {
            return wrong(format!("`{whole}` is too large"));
        }
        let after = after.trim_start();
        let unit = UNITS.into_iter().find_map(|unit| after.strip_prefix(unit));
        let next = unit.unwrap_or(after).trim_start();
        let is_number =
            next.is_empty() || next.starts_with(|sign: char| sign.is_ascii_digit() || sign == '.');
        if !is_number {
            let unit: String = after.chars().take_while(|sign| sign.is_alphabetic()).collect();
            return wrong(match unit.as_str() {
                "" => format!("`{next}` is no number"),
                unit => format!(
                    "`{unit}` is no unit; those are `us`, `ms`, `s`, `min`, `h`, `d`, `w`, `M` and `y`"
                ),
            });
        }
        rest = next;
    }
    None
}

fn digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|sign: char| !sign.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

/// Why a text is no calendar event (`daily`, `Mon..Fri *-*-* 08:30`), if it is none.
pub(super) fn refused_event(text: &str) -> Option<String> {
    let why = event(text.trim()).err()?;
    Some(format!("`{text}` is no calendar event: {why}"))
}

fn event(text: &str) -> Result<(), String> {
    if let Some(seconds) = text.strip_prefix('@') {
        let (whole, rest) = digits(seconds.split_whitespace().next().unwrap_or_default());
        return match !whole.is_empty() && rest.is_empty() {
            true => Ok(()),
            false => Err("after `@` come the seconds since 1970".to_owned()),
        };
    }
    let mut words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    if words.len() > 1 && words.last().is_some_and(|word| is_zone(word)) {
        words.pop();
    }
    let Some(first) = words.first().copied() else {
        return Err("it is empty".to_owned());
    };
    if words.len() == 1
        && NAMED
            .iter()
            .chain(&MISSPELT)
            .any(|name| name.eq_ignore_ascii_case(first))
    {
        return Ok(());
    }
    let mut rest = words.as_slice();
    if first.starts_with(char::is_alphabetic) {
        weekdays(first)?;
        rest = &rest[1..];
    }
    match rest {
        [] => Ok(()),
        [only] if only.contains(':') => time(only),
        [only] => date(only),
        [of, at] => date(of).and_then(|()| time(at)),
        [_, _, more, ..] => Err(format!("`{more}` is one word too many")),
    }
}

/// Whether a word can be a time zone and nothing else.
fn is_zone(word: &str) -> bool {
    let fits = |sign: char| sign.is_ascii_alphanumeric() || "/_+-".contains(sign);
    word.starts_with(|sign: char| sign.is_ascii_alphabetic())
        && word.chars().all(fits)
        && weekdays(word).is_err()
}

fn weekdays(text: &str) -> Result<(), String> {
    // A comma at the end is let through by systemd.
    let text = text.strip_suffix(',').unwrap_or(text);
    for part in text.split(',') {
        let ends = match part.split_once("..").or_else(|| part.split_once('-')) {
            Some((from, to)) => vec![from, to],
            None => vec![part],
        };
        let numbers = ends
            .iter()
            .map(|day| weekday(day))
            .collect::<Result<Vec<usize>, String>>()?;
        if let [from, to] = numbers[..]
            && from > to
        {
            let (from, to) = (ends[0], ends[1]);
            return Err(format!("`{from}` is after `{to}`, as weeks begin with Monday"));
        }
    }
    Ok(())
}

fn weekday(text: &str) -> Result<usize, String> {
    let fits = |day: &str| day.eq_ignore_ascii_case(text) || day[..3].eq_ignore_ascii_case(text);
    let found = WEEKDAYS.iter().position(|day| fits(day));
    found.ok_or_else(|| {
        format!(
            "`{text}` is neither a day of the week nor one of {}",
            NAMED.join(", ")
        )
    })
}

fn date(text: &str) -> Result<(), String> {
    let (before, day) = text
        .rsplit_once('~')
        .or_else(|| text.rsplit_once('-'))
        .ok_or_else(|| format!("`{text}` is neither a date (`*-*-01`) nor a time (`08:30`)"))?;
    let (year, month) = match before.split_once('-') {
        Some((year, month)) => (Some(year), month),
        None => (None, before),
    };
    if let Some(year) = year {
        chain("year", year, 0, 2199)?;
    }
    chain("month", month, 1, 12)?;
    chain("day", day, 1, 31)
}

fn time(text: &str) -> Result<(), String> {
    let parts: Vec<&str> = text.split(':').collect();
    let (hour, minute, second) = match parts[..] {
        [hour, minute] => (hour, minute, None),
        [hour, minute, second] => (hour, minute, Some(second)),
        _ => {
            return Err(format!(
                "`{text}` is no time: it is written `08:30` or `08:30:00`"
            ));
        }
    };
    chain("hour", hour, 0, 23)?;
    chain("minute", minute, 0, 59)?;
    second.map_or(Ok(()), |second| chain("second", second, 0, 59))
}

/// One component: `*`, `1,3`, `1..5`, `0/15`, and these separated by commas.
fn chain(what: &str, text: &str, least: u32, most: u32) -> Result<(), String> {
    if text == "*" {
        return Ok(());
    }
    for part in text.split(',') {
        let (values, step) = match part.split_once('/') {
            Some((values, step)) => (values, Some(step)),
            None => (part, None),
        };
        if let Some(step) = step
            && number(step, what)?.is_none_or(|step| step == 0.0)
        {
            return Err(format!("`{step}` is no number of steps for the {what}"));
        }
        if values == "*" {
            return Err(format!(
                "`*` of the {what} stands alone; steps from the first are `{least}/2`"
            ));
        }
        let ends: Vec<&str> = match values.split_once("..") {
            Some((from, to)) => vec![from, to],
            None => vec![values],
        };
        let mut before = f64::from(least);
        for end in ends {
            let value = number(end, what)?.ok_or_else(|| format!("`{end}` is no {what}"))?;
            if value < f64::from(least) || value >= f64::from(most) + 1.0 {
                return Err(format!(
                    "the {what} is from {least} to {most}, and this one {end}"
                ));
            }
            if value < before {
                return Err(format!("`{values}` of the {what} goes backwards"));
            }
            before = value;
        }
    }
    Ok(())
}

/// A number; only seconds have fractions.
fn number(text: &str, what: &str) -> Result<Option<f64>, String> {
    let (whole, rest) = digits(text);
    let fraction = rest.strip_prefix('.').filter(|_| what == "second");
    let is_whole =
        rest.is_empty() || fraction.is_some_and(|part| !part.is_empty() && digits(part).1.is_empty());
    match !whole.is_empty() && is_whole {
        true => Ok(text.parse().ok()),
        false => Err(format!("`{text}` is no {what}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_those_of_systemd() {
        for right in [
            "0",
            "90",
            "1h 30min",
            "1h30min",
            "2 h",
            "1.5h",
            "55s500ms",
            "300ms20s 5day",
            "1y 12month",
            "infinity",
            "3µs",
            " 5s ",
            "5M",
            ".5",
        ] {
            assert_eq!(refused_span(right), None, "{right}");
        }
        for wrong in [
            "",
            "h",
            "5x",
            "5 minutse",
            "-1s",
            "1h-2",
            "99999999999999999999",
            "1:30",
            "5mins",
        ] {
            assert!(refused_span(wrong).is_some(), "{wrong}");
        }
    }

    /// Judged by `systemd-analyze calendar` of systemd 252.
    const RIGHT: [&str; 36] = [
        "daily",
        "Daily",
        "WEEKLY",
        "yearly",
        "semi-annually",
        "daily UTC",
        "weekly Europe/Berlin",
        "Mon",
        "monday",
        "Mon..Fri",
        "Mon-Fri",
        "Mon,Wed..Fri",
        "Mon,",
        "Sat,Sun 10:00",
        "12:00",
        "12:00:30",
        "00:00:00.5",
        "*-*-* 08:30",
        "*-*-01",
        "2026-12-24 18:00",
        "12-24",
        "*-*~3",
        "*-02~01..07/1",
        "*:0/15",
        "*:*:*",
        "*-*-1,15 0/6:00",
        "Mon *-*-1..7",
        "*-1/3-1",
        "@1700000000",
        "26-1-1",
        "9..17/2:00",
        "00:00:0/10.5",
        "Sun *-*-* 02:00 Etc/UTC",
        "*~1",
        "anually",
        "Mon  12:00",
    ];
    const WRONG: [&str; 23] = [
        "",
        "dayly",
        "12",
        "25:00",
        "12:60",
        "*-13-01",
        "*-*-32",
        "*-*-0",
        "Fri..Mon",
        "Mon Tue",
        "12:00:61",
        "5..3:00",
        "*-*-* 08:30 09:30",
        "*:0/0",
        "a:b",
        "1:2:3:4",
        "@x",
        "*/2:00",
        "12:00:60",
        "*-*-*T12:00",
        "12:00 *-*-*",
        "*",
        "*,1:0",
    ];

    #[test]
    fn events_are_those_of_systemd() {
        for right in RIGHT {
            assert_eq!(refused_event(right), None, "{right}");
        }
        for wrong in WRONG {
            assert!(refused_event(wrong).is_some(), "{wrong}");
        }
    }
}
