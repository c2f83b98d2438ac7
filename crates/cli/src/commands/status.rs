//! `setpoint status`: how a running process keeps its machine.

use std::fmt::Write;
use std::io;

use anstyle::{AnsiColor, Style};
use clap::Args;
use serde::Serialize;
use setpoint_agent::control::client::Client;
use setpoint_agent::control::protocol::{Answer, Ask, Doing, Hello, HostStatus, ResourceStatus};
use setpoint_agent::health::{Health, counts_text, resources, standing_text};
use setpoint_diagnostics::{visible, visible_lines};
use setpoint_engine::machine::{Standing, StandingCounts};
use setpoint_programs::failure::Failure;

use crate::exit_code;
use crate::output::Output;
use crate::prefix_arguments::ProcessArguments;
use crate::view::span_text;

/// Show the state of the running agent
///
/// Prints whether the machine is in the desired state. If it is not, prints which resources have failed, since when and why,
/// and which resources wait for them. Exit codes: 0, the machine is in the desired state; 1, a resource has failed, is blocked
/// or does not respond, or the newest program is invalid; 2, a resource has drifted and `--noop` prevents the repair; 3, work
/// is in progress, or the agent is paused; 4, no agent runs, or it does not respond.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Only these resources, `file[/etc/motd]`
    #[arg(value_name = "KIND[NAME]")]
    resources: Vec<String>,

    /// Only resources of this kind; can be given several times
    #[arg(long = "kind", value_name = "KIND", conflicts_with = "resources")]
    kinds: Vec<String>,

    /// List all resources, also those that are right
    #[arg(long)]
    all: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    process: ProcessArguments,
}

/// Resources of one standing that are listed without `--all`.
const SHOWN: usize = 10;

/// More than so many that only wait are not even asked for.
const WORTH_A_LIST: usize = 1000;

pub(super) fn run(output: &Output, arguments: &Arguments) -> Result<u8, Failure> {
    let mut client = arguments.process.connect()?;
    let status = Shown::fetch(&mut client, arguments)?;
    let code = status.code();
    let printed = match arguments.json {
        true => output.print_written(|out| status.write_json(out)),
        false => output.print_styled(&status.text()),
    };
    match printed {
        // The code is what a monitor looks at, however little of the text it reads.
        Err(failure) if failure.is_closed_pipe() => Ok(code),
        printed => printed.map(|()| code),
    }
}

/// What is shown.
struct Shown {
    hello: Hello,
    host: HostStatus,
    /// By what needs attention first, and by identity.
    resources: Vec<ResourceStatus>,
    /// How many of those that were asked about stand how.
    counts: StandingCounts,
    /// Whether only some resources were asked about.
    is_part: bool,
    lists_all: bool,
    health: Health,
}

/// The same as JSON.
#[derive(Serialize)]
struct Whole<'a> {
    process: &'a Hello,
    status: &'a HostStatus,
    resources: &'a [ResourceStatus],
    exit_code: u8,
}

impl Shown {
    fn fetch(client: &mut Client, arguments: &Arguments) -> Result<Shown, Failure> {
        let is_part = !arguments.resources.is_empty() || !arguments.kinds.is_empty();
        let lists_all = arguments.all || !arguments.resources.is_empty();
        let (mut host, mut resources) = ask(
            client,
            Ask::Status {
                resources: Vec::new(),
                kinds: Vec::new(),
                standings: Some(Vec::new()),
            },
        )?;
        // Of a kind all are asked for, because only then they can be counted.
        let standings = match lists_all || is_part {
            true => None,
            false => Some(worth_listing(host.counts, arguments.json)),
        };
        if standings.as_ref().is_none_or(|standings| !standings.is_empty()) {
            (host, resources) = ask(
                client,
                Ask::Status {
                    resources: arguments.resources.clone(),
                    kinds: arguments.kinds.iter().map(|kind| kind.to_lowercase()).collect(),
                    standings,
                },
            )?;
        }
        let rank = |standing: Standing| Standing::ALL.iter().position(|other| *other == standing);
        resources.sort_by(|a, b| {
            let key = |row: &ResourceStatus| rank(row.standing);
            key(a)
                .cmp(&key(b))
                .then_with(|| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)))
        });
        resources.dedup_by(|a, b| !a.hidden && !b.hidden && (&a.kind, &a.name) == (&b.kind, &b.name));
        let mut counts = host.counts;
        if is_part {
            counts = StandingCounts::default();
            for row in &resources {
                *counts.count_mut(row.standing) += 1;
            }
            if counts.all() == 0 {
                let kinds = arguments.kinds.join("`, `");
                return Err(Failure::wrong(format!(
                    "there is no resource of the kind `{kinds}`"
                )));
            }
        }
        let mut judged = counts;
        if is_part {
            // What blocks them may not be among them: then it says itself what it waits for.
            let awaits = |row: &&ResourceStatus| row.standing == Standing::Blocked && row.behind_awaits;
            let waiting_for_host = resources.iter().filter(awaits).count();
            judged.blocked -= waiting_for_host;
            judged.waiting_for_host += waiting_for_host;
        }
        Ok(Shown {
            hello: client.hello.clone(),
            host,
            resources,
            health: Health::of(judged),
            counts,
            is_part,
            lists_all,
        })
    }

    /// What a monitor is told.
    fn code(&self) -> u8 {
        let host = &self.host;
        let health = self.health;
        if self.is_part || health == Health::Wrong {
            return exit_code::of_health(health);
        }
        if host.program_wrong.is_some() {
            return exit_code::WRONG;
        }
        let has_more = host.new_graph || host.generation.is_none();
        let is_held = host.paused || host.stopping.is_some();
        match has_more || is_held {
            true => exit_code::UNDER_WAY,
            false => exit_code::of_health(health),
        }
    }

    fn write_json(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let whole = Whole {
            process: &self.hello,
            status: &self.host,
            resources: &self.resources,
            exit_code: self.code(),
        };
        serde_json::to_writer(&mut *out, &whole)?;
        writeln!(out)
    }

    fn text(&self) -> String {
        let mut out = String::new();
        self.head(&mut out);
        for standing in Standing::ALL {
            let rows: Vec<&ResourceStatus> = self
                .resources
                .iter()
                .filter(|row| row.standing == standing)
                .collect();
            if standing == Standing::Right && !self.lists_all {
                continue;
            }
            let count = self.counts.of(standing);
            if count == 0 {
                continue;
            }
            let style = style_of(standing);
            let _ = write!(out, "\n{style}{}{style:#}\n", title(standing));
            let shown = if self.lists_all {
                rows.len()
            } else {
                SHOWN.min(rows.len())
            };
            for row in &rows[..shown] {
                self.row(row, &mut out);
            }
            match count.saturating_sub(shown) {
                0 => {}
                more if shown == 0 => {
                    let _ = writeln!(out, "  {}; `--all` lists them", resources(more));
                }
                more => {
                    let _ = writeln!(out, "  and {more} more; `--all` lists them");
                }
            }
        }
        out
    }

    fn head(&self, out: &mut String) {
        let (host, hello) = (&self.host, &self.hello);
        let counts = counts_text(self.counts);
        let (verdict, style) = match self.code() {
            exit_code::WRONG => (format!("wrong: {counts}"), RED),
            exit_code::UNDER_WAY if !self.is_part && host.stopping.is_some() => {
                (format!("stopping: {counts}"), YELLOW)
            }
            exit_code::UNDER_WAY if !self.is_part && host.paused => (format!("paused: {counts}"), YELLOW),
            // The graph that comes is what is under way.
            exit_code::UNDER_WAY if matches!(self.health, Health::Right | Health::WouldChange) => {
                (format!("under way: {counts}"), YELLOW)
            }
            exit_code::DONE => (self.health.line(self.counts), GREEN),
            _ => (self.health.line(self.counts), YELLOW),
        };
        let _ = writeln!(out, "{style}{verdict}{style:#}");
        if self.is_part {
            return;
        }
        let _ = writeln!(
            out,
            "{} {}, process {} on {}, for {}",
            visible(&hello.program),
            visible(&hello.version),
            hello.pid,
            visible(&hello.hostname),
            self.ago(hello.started),
        );
        let mut program = match &host.program {
            Some(program) => visible(program).into_owned(),
            None => "no program".to_owned(),
        };
        if let Some(since) = host.program_since {
            let _ = write!(program, ", in use for {}", self.ago(since));
        }
        if host.generation.is_none() && host.program.is_some() {
            program.push_str(", has no graph yet");
        } else if host.new_graph {
            program.push_str("; a new graph is on its way");
        }
        let _ = writeln!(out, "{program}");
        let mut facts = Vec::new();
        facts.extend(host.converged.map(|converged| match converged {
            true => "nothing under way (converged)".to_owned(),
            false => "not converged".to_owned(),
        }));
        if host.noop {
            facts.push("repairs nothing (`--noop`)".to_owned());
        }
        if host.paused {
            let since = host.paused_since.map(|at| format!(" for {}", self.ago(at)));
            let since = since.unwrap_or_default();
            facts.push(format!("paused{since}: no runs begin until `setpoint resume`"));
        }
        match (host.repairs, host.repaired) {
            (1, Some(at)) => facts.push(format!("1 repair, {} ago", self.ago(at))),
            (repairs, Some(at)) => facts.push(format!("{repairs} repairs, the last {} ago", self.ago(at))),
            _ => {}
        }
        if !facts.is_empty() {
            let _ = writeln!(out, "{}", facts.join("; "));
        }
        if let Some(wrong) = &host.program_wrong {
            let _ = write!(out, "\n{RED}newest program{RED:#}\n");
            for line in visible_lines(wrong) {
                let _ = writeln!(out, "  {line}");
            }
            let _ = writeln!(
                out,
                "  {DIM}it is not in use; the machine is kept as the one before wants it{DIM:#}"
            );
        }
    }

    fn row(&self, row: &ResourceStatus, out: &mut String) {
        let id = format!("{}[{}]", row.kind, row.name);
        let _ = write!(out, "  {BOLD}{}{BOLD:#}", visible(&id));
        if let Some(text) = self.what(row) {
            let mut lines = visible_lines(&text);
            let _ = write!(out, ": {}", lines.next().unwrap_or_default());
            for line in lines {
                let _ = write!(out, "\n    {line}");
            }
        }
        out.push('\n');
        let since = self.ago(row.since);
        let mut details = vec![match row.standing {
            Standing::Right => format!("looked at {since} ago"),
            _ => format!("for {since}"),
        }];
        if let Some(until) = row.until {
            let left = span_text(until - self.host.time);
            let when = match row.does {
                Doing::BackingOff => format!("next try in {left}"),
                _ => format!("looked at again in {left} at the latest"),
            };
            details.push(match self.host.paused {
                true => format!("{when}, but not before `setpoint resume`"),
                false => when,
            });
        }
        if row.does == Doing::Running && row.standing == Standing::Failing {
            details.push("tried again just now".to_owned());
        }
        if row.noop && !self.host.noop {
            details.push("repairs nothing (`noop`)".to_owned());
        }
        if row.refresh_pending {
            details.push("a notification waits for it".to_owned());
        }
        if row.reversal {
            details.push("undone, because it left the program".to_owned());
        }
        if let Some(group) = &row.group {
            details.push(format!("applied together with {}", visible(group)));
        }
        if row.hidden {
            details.push("hidden".to_owned());
        }
        if let Some(place) = &row.place {
            details.push(format!("{}:{}:{}", visible(&place.file), place.line, place.col));
        }
        let _ = writeln!(out, "    {DIM}{}{DIM:#}", details.join("; "));
    }

    /// What is to be said of a resource beside how it stands.
    fn what(&self, row: &ResourceStatus) -> Option<String> {
        let behind = || row.behind.clone().unwrap_or_default();
        let text = match (row.standing, row.does) {
            (Standing::Failed | Standing::Failing | Standing::Conflict, _) => {
                format!("failed to {}", row.error.as_ref()?)
            }
            (Standing::Blocked, _) => {
                let behind = behind();
                match row.behind_awaits {
                    true => format!("waits for {behind}, which waits for something outside this machine"),
                    false => format!("waits for {behind}, which has failed"),
                }
            }
            (Standing::WaitingForHost, _) => row.error.clone()?,
            (Standing::Unresponsive, _) => "gives no answer; the file system may hang".to_owned(),
            (_, Doing::WaitingForAnother) => format!("waits for {}", behind()),
            (_, Doing::WaitingForSemaphore) => match row.semaphores.as_slice() {
                [] => "waits for a semaphore".to_owned(),
                names => format!("waits for the semaphores {}", names.join(", ")),
            },
            (_, Doing::Limited) => "its events come faster than its limit".to_owned(),
            (_, Doing::Ready) if self.host.paused => "waits for `setpoint resume`".to_owned(),
            (_, Doing::Ready) => "waits for its turn".to_owned(),
            (_, Doing::WaitingToBeAdded) => "waits until what it replaces is gone".to_owned(),
            _ => return None,
        };
        Some(text)
    }

    fn ago(&self, moment: f64) -> String {
        span_text(self.host.time - moment)
    }
}

pub(super) fn ask(client: &mut Client, ask: Ask) -> Result<(HostStatus, Vec<ResourceStatus>), Failure> {
    client.ask(ask)?;
    let mut all = Vec::new();
    loop {
        match client.answer()? {
            Answer::Resources { resources, .. } => all.extend(resources),
            Answer::Status { status, .. } => return Ok((*status, all)),
            _ => return Err(client.strange()),
        }
    }
}

/// What is listed when nobody asks for all: everything that is not right, but of what only waits no more than somebody reads.
fn worth_listing(counts: StandingCounts, everything: bool) -> Vec<Standing> {
    let is_wait = |standing| {
        matches!(
            standing,
            Standing::Waiting | Standing::Starting | Standing::Running
        )
    };
    let all = Standing::ALL.into_iter().filter(|standing| {
        let count = counts.of(*standing);
        *standing != Standing::Right
            && count > 0
            && (everything || !is_wait(*standing) || count <= WORTH_A_LIST)
    });
    all.collect()
}

fn title(standing: Standing) -> &'static str {
    match standing {
        Standing::Failed => "failed, and not tried again",
        Standing::Failing => "failing, and tried again",
        other => standing_text(other),
    }
}

const RED: Style = AnsiColor::BrightRed.on_default().bold();
const YELLOW: Style = AnsiColor::BrightYellow.on_default().bold();
const GREEN: Style = AnsiColor::Green.on_default().bold();
const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

fn style_of(standing: Standing) -> Style {
    match standing {
        Standing::Failed | Standing::Failing | Standing::Unresponsive => RED,
        Standing::Blocked | Standing::WaitingForHost | Standing::Conflict | Standing::WouldChange => YELLOW,
        Standing::Right => GREEN,
        Standing::Finishing | Standing::Running | Standing::Waiting | Standing::Starting => BOLD,
    }
}
