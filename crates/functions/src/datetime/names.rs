//! English names of months and days of the week.

use jiff::civil::Weekday;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The name of a month, 1 to 12.
pub(crate) fn month(month: i8) -> &'static str {
    MONTHS[usize::from(month.unsigned_abs() - 1) % 12]
}

/// The name of a day of the week.
pub(crate) fn weekday(day: Weekday) -> &'static str {
    match day {
        Weekday::Monday => "Monday",
        Weekday::Tuesday => "Tuesday",
        Weekday::Wednesday => "Wednesday",
        Weekday::Thursday => "Thursday",
        Weekday::Friday => "Friday",
        Weekday::Saturday => "Saturday",
        Weekday::Sunday => "Sunday",
    }
}
