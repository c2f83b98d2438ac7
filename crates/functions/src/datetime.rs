//! `datetime`: the time of day, in the host's time zone. Times are seconds since 1970 UTC.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Unit, Zoned};
use setpoint_value::{CallContext, CallError, Clock, Module, Timer, Value, function};

use crate::sys::every_second;

mod layout;
pub(crate) mod names;

pub(crate) static MODULE: Module = Module::new(
    "datetime",
    "The time.",
    &[&FORMAT, &HOUR, &NOW, &PRINT, &STR_NOW, &WEEKDAY, &WEEKDAY_FAST],
);

/// The time in the host's zone, in the form that a Go layout shows by its example.
///
/// The layout writes the reference time, `Mon Jan 2 15:04:05 MST 2006`, as the time shall be written.
#[function(
    environment,
    example(call = r#"datetime.format(1000000000, "2006")"#, result = r#""2001""#)
)]
fn format(
    context: &CallContext<'_>,
    /// Seconds since 1970 UTC, not negative.
    a: i64,
    /// The reference time in the format of the result.
    b: &[u8],
) -> Result<Vec<u8>, CallError> {
    Ok(layout::format(&local(context, a)?, b))
}

/// The hour in the host's zone, 0 to 23.
#[function(environment, example(call = "datetime.hour(1000000000)", result = ""))]
fn hour(
    context: &CallContext<'_>,
    /// Seconds since 1970 UTC, not negative.
    a: i64,
) -> Result<i64, CallError> {
    Ok(i64::from(local(context, a)?.zoned.hour()))
}

/// The current time in seconds since 1970 UTC, each second.
#[function(watch = every_second, example(call = "datetime.now()", result = ""))]
fn now(context: &CallContext<'_>) -> i64 {
    seconds(context.capabilities.clock())
}

/// The time in the host's zone, like `2006-01-02 15:04:05 -0700 MST`.
#[function(environment, example(call = "datetime.print(1000000000)", result = ""))]
fn print(
    context: &CallContext<'_>,
    /// Seconds since 1970 UTC, not negative.
    a: i64,
) -> Result<Vec<u8>, CallError> {
    Ok(layout::format(
        &local(context, a)?,
        b"2006-01-02 15:04:05 -0700 MST",
    ))
}

/// The current time in seconds since 1970 UTC, as text, each second.
#[function(watch = every_second, example(call = "datetime.str_now()", result = ""))]
fn str_now(context: &CallContext<'_>) -> String {
    now(context).to_string()
}

/// The day of the week in the host's zone, in English and lower case.
#[function(environment, example(call = "datetime.weekday(1000000000)", result = ""))]
fn weekday(
    context: &CallContext<'_>,
    /// Seconds since 1970 UTC, not negative.
    a: i64,
) -> Result<String, CallError> {
    Ok(names::weekday(local(context, a)?.zoned.weekday()).to_lowercase())
}

/// Today's day of the week, in English and lower case.
#[function(watch = at_midnight, rearmed, example(call = "datetime.weekday_fast()", result = ""))]
fn weekday_fast(context: &CallContext<'_>) -> Result<String, CallError> {
    weekday(context, now(context))
}

fn at_midnight(context: &CallContext<'_>, _: &[Value]) -> Result<Vec<Timer>, CallError> {
    let clock = context.capabilities.clock();
    Ok(vec![clock.after(until_midnight(clock)?, context.wake.clone())])
}

fn seconds(clock: &dyn Clock) -> i64 {
    i64::try_from(clock.now().as_secs()).unwrap_or(i64::MAX)
}

/// The time between now and the next day's beginning in the clock's zone, never nothing.
fn until_midnight(clock: &dyn Clock) -> Result<Duration, CallError> {
    let since_epoch = clock.now();
    let now = zoned(clock, seconds(clock))?.zoned;
    let tomorrow = now
        .tomorrow()
        .and_then(|day| day.start_of_day())
        .map_err(|error| CallError::fatal(format!("the next day can't be found: {error}")))?;
    let left = now
        .until((Unit::Second, &tomorrow))
        .map(|span| span.get_seconds());
    let left = u64::try_from(left.unwrap_or(1)).unwrap_or(1).max(1);
    Ok(Duration::from_secs(left).saturating_sub(Duration::from_nanos(u64::from(since_epoch.subsec_nanos()))))
}

/// A time that a program names, in the host's zone.
fn local(context: &CallContext<'_>, seconds: i64) -> Result<LocalTime, CallError> {
    if seconds < 0 {
        return Err(CallError::fatal("epoch delta must be positive"));
    }
    zoned(context.capabilities.clock(), seconds)
}

/// A time in a zone, of any year.
struct LocalTime {
    /// The time, but for the years that `eras` add.
    zoned: Zoned,
    /// How often 400 years are to be added: after so many the calendar begins anew, weekdays included.
    eras: i64,
}

impl LocalTime {
    fn year(&self) -> i64 {
        i64::from(self.zoned.year()) + YEARS_OF_AN_ERA * self.eras
    }
}

const YEARS_OF_AN_ERA: i64 = 400;
const SECONDS_OF_AN_ERA: i64 = 146_097 * 24 * 60 * 60;

fn zoned(clock: &dyn Clock, seconds: i64) -> Result<LocalTime, CallError> {
    let zone = match clock.zone().as_deref() {
        Some("UTC") => TimeZone::UTC,
        // A zone without a name may be written as a rule, see tzset(3).
        Some(name) => TimeZone::get(name)
            .or_else(|_| TimeZone::posix(name))
            .unwrap_or(TimeZone::UTC),
        None => TimeZone::try_system().unwrap_or(TimeZone::UTC),
    };
    // The library ends with the year 9999. Beyond, rules of zones stay what they are, so that an earlier era shows the same.
    let greatest = Timestamp::MAX.as_second();
    let eras = if seconds > greatest {
        (seconds - greatest).div_euclid(SECONDS_OF_AN_ERA) + 1
    } else {
        0
    };
    let time = Timestamp::from_second(seconds - eras * SECONDS_OF_AN_ERA)
        .map_err(|error| CallError::fatal(format!("the time {seconds} cannot be shown: {error}")))?;
    Ok(LocalTime {
        zoned: time.to_zoned(zone),
        eras,
    })
}
