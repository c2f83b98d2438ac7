//! `setpoint events`: what a running process does, and has done lately.

use anstyle::Style;
use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::value::RawValue;
use setpoint_agent::control::client::missing;
use setpoint_agent::control::protocol::{Answer, Ask};
use setpoint_engine::Event;
use setpoint_programs::failure::Failure;
use setpoint_programs::report::Importance;

use crate::exit_code;
use crate::prefix_arguments::ProcessArguments;
use crate::session::Session;
use crate::view::{Narrator, Verbosity};

/// Show the events of the running agent
///
/// Prints the events that the agent still has, the oldest first. With `--follow`, prints new events as well. A gap in the list
/// means that older events were dropped.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Only events of these resources, `file[/etc/motd]`
    #[arg(value_name = "KIND[NAME]")]
    resources: Vec<String>,

    /// Only events of resources of this kind; can be given several times
    #[arg(long = "kind", value_name = "KIND")]
    kinds: Vec<String>,

    /// Only events of this name, `repaired`; can be given several times
    #[arg(long = "event", value_name = "EVENT")]
    events: Vec<String>,

    /// Go on with what comes, until Ctrl-C
    #[arg(short, long)]
    follow: bool,

    /// Only events after the one of this number; 0: from the oldest that is kept [default: all that are kept; with --follow those that come]
    #[arg(long, value_name = "SEQ", allow_negative_numbers = true, value_parser = event_number)]
    since: Option<u64>,

    /// Print them as JSON, one object a line, as `setpoint run --json` does
    #[arg(long)]
    json: bool,

    /// Say only what was changed and what went wrong
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,

    #[command(flatten)]
    process: ProcessArguments,
}

/// A line with an event, which is printed as it is.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    event: Option<&'a RawValue>,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Result<u8, Failure> {
    let output = &session.output;
    let mut client = arguments.process.connect()?;
    // Who follows may wait for a resource that comes with a later graph, and may have misspelt it.
    for resource in arguments.resources.iter().filter(|_| arguments.follow) {
        if let Err(unknown) = client.look_for(resource)? {
            output.warning(missing(&unknown, "its events are shown when it comes"));
        }
    }
    client.ask(Ask::Events {
        since: arguments.since,
        follow: arguments.follow,
        resources: arguments.resources.clone(),
        kinds: arguments.kinds.iter().map(|kind| kind.to_lowercase()).collect(),
        events: arguments.events.clone(),
    })?;
    if arguments.follow {
        client.set_patience(None)?;
    }
    let verbosity = match arguments.quiet {
        true => Verbosity::Normal,
        false => Verbosity::Debug,
    };
    let kinds = session.assembly.all_kinds();
    let mut narrator = match arguments.events.is_empty() {
        true => Narrator::new(kinds, verbosity),
        false => Narrator::of_some(kinds, verbosity),
    };
    while let Some(line) = client.line()? {
        let event = serde_json::from_str::<Line<'_>>(&line)
            .ok()
            .and_then(|line| line.event);
        let Some(event) = event else {
            match client.read(&line)? {
                Answer::Events { .. } if !arguments.follow => return Ok(exit_code::DONE),
                Answer::Events { .. } => break,
                _ => return Err(client.strange()),
            }
        };
        if arguments.json {
            output.print(&format!("{event}\n"))?;
            continue;
        }
        // One that a newer process knows is shown as it is.
        match serde_json::from_str::<Event>(event.get()) {
            Ok(event) => output.print_styled(&told(&mut narrator, &event))?,
            Err(_) => output.print(&format!("{event}\n"))?,
        }
    }
    output.say(Importance::Notice, "the process has ended");
    Ok(exit_code::DONE)
}

fn event_number(text: &str) -> Result<u64, String> {
    let wrong = |_| "the number of an event is a whole number, and 0 stands before the first".to_owned();
    text.parse().map_err(wrong)
}

/// The lines of an event, with its time and number.
fn told(narrator: &mut Narrator, event: &Event) -> String {
    let dim = Style::new().dimmed();
    let moment = i64::try_from(event.time.as_micros()).unwrap_or(i64::MAX);
    let time = Timestamp::from_microsecond(moment)
        .map(|time| {
            time.to_zoned(TimeZone::system())
                .strftime("%H:%M:%S%.3f")
                .to_string()
        })
        .unwrap_or_default();
    let mut text = String::new();
    for said in narrator.take(event) {
        for line in said.text.split('\n') {
            text.push_str(&format!("{dim}{time} {:>6}{dim:#} {line}\n", event.seq));
        }
    }
    text
}
