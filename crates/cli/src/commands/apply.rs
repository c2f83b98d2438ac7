//! `setpoint apply`: does what a plan shows, and nothing else.

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use setpoint_agent::agent;
use setpoint_agent::first_program::FirstProgram;
use setpoint_agent::requests::Ended;
use setpoint_agent::signals::Hangup;
use setpoint_plan::{Plan, Saved, changes, permits};
use setpoint_programs::failure::Failure;
use tokio::runtime::Runtime;

use super::plan::making::{self, Request};
use super::plan::{PlanArguments, Printing, header, print, saving};
use super::run::ending;
use crate::exit_code;
use crate::output::{End, Output};
use crate::session::Session;
use crate::view::{Reason, Verbosity, View, ViewOptions};

/// Apply a saved plan, or plan a program and apply it
///
/// Given a file that `setpoint plan --out` has written, compares the machine with the plan first. If the run would do something that the
/// plan does not show, nothing is changed. Given a program, shows the plan and asks. In both cases, a difference that comes up during
/// the run and is not in the plan is not repaired: the resource fails.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    plan: PlanArguments,

    /// Apply the plan of a program without asking
    #[arg(short, long)]
    yes: bool,

    /// Apply a saved plan only if one of these keys has signed it
    ///
    /// Each line of the file has a name and a public SSH key, as for `ssh-keygen -Y verify`. `setpoint plan --sign KEY` signs a plan.
    #[arg(long, value_name = "FILE")]
    signers: Option<PathBuf>,

    #[command(flatten)]
    printing: Printing,
}

/// A plan is applied only so long after it was made.
const EXPIRES: Duration = Duration::from_secs(7 * 24 * 3600);

pub(super) fn run(session: &Session, arguments: &Arguments) -> Result<u8, Failure> {
    let output = &session.output;
    let saved = match arguments.plan.program.words() {
        [argument] => saving::read_if_plan(argument)?,
        _ => None,
    };
    let (plan, mut request) = match saved {
        Some(saved) => match check(session, arguments, saved)? {
            Some(checked) => checked,
            None => return Ok(exit_code::WRONG),
        },
        None if arguments.signers.is_some() => {
            return Err(Failure::usage("`--signers` is for a saved plan"));
        }
        None => match approve(session, arguments)? {
            Approved::Plan(plan, request) => (*plan, *request),
            Approved::Ended(code) => return Ok(code),
        },
    };
    if !plan.summary.has_changes() {
        output.warning("the plan changes nothing");
    }
    let Some(program) = request.compile(session)? else {
        return Ok(exit_code::WRONG);
    };
    let view = View::start(
        &session.assembly,
        output,
        ViewOptions {
            json: false,
            verbosity: Verbosity::Normal,
            forgets: false,
            stays: false,
        },
    );
    let runtime = making::runtime()?;
    let hangup = runtime.block_on(async { Hangup::take() })?;
    let (end, reason, code) = match repair(session, &plan, &request, program, &view, runtime, hangup) {
        Ok(ended) => {
            let end = End {
                said: ending::said(&ended),
                recap: ending::recap(&ended),
            };
            (end, ending::reason(&ended), ending::code(&ended, true, false))
        }
        Err(failure) => {
            output.failure(&failure);
            let end = End {
                said: Vec::new(),
                recap: None,
            };
            (end, Reason::Failed, exit_code::of(&failure))
        }
    };
    view.finish(end, reason, code);
    Ok(code)
}

fn repair(
    session: &Session,
    plan: &Plan,
    request: &Request,
    program: FirstProgram,
    view: &View,
    runtime: Runtime,
    hangup: Hangup,
) -> Result<Ended, Failure> {
    let mut options = making::single_run(session, request, Box::new(view.following()));
    options.engine.permits = Some(Arc::new(permits(&plan.rows)));
    agent::run(options, Some(program), &session.output, runtime, hangup)
}

/// The answer to the question whether to apply a plan.
enum Approved {
    Plan(Box<Plan>, Box<Request>),
    Ended(u8),
}

/// Plans a program, shows the plan and asks whether to apply it.
fn approve(session: &Session, arguments: &Arguments) -> Result<Approved, Failure> {
    let output = &session.output;
    let mut request = arguments.plan.request(session)?;
    let Some(plan) = making::make(session, &mut request)? else {
        return Ok(Approved::Ended(exit_code::WRONG));
    };
    let header = header(&request.input.argument, &plan);
    print(output, plan.clone(), &header, &arguments.printing)?;
    if plan.exit_code == exit_code::DONE {
        return Ok(Approved::Ended(exit_code::DONE));
    }
    if plan.summary.fails() {
        output.error("a resource would fail, so nothing is changed");
        return Ok(Approved::Ended(exit_code::WRONG));
    }
    if !arguments.yes && !asks(output)? {
        output.warning("nothing was changed");
        return Ok(Approved::Ended(exit_code::WRONG));
    }
    Ok(Approved::Plan(Box::new(plan), Box::new(request)))
}

/// Asks on the terminal whether to apply the plan.
fn asks(output: &Output) -> Result<bool, Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(
            Failure::usage("without a terminal, `setpoint apply` of a program needs `--yes`")
                .hint("`setpoint plan --out FILE` saves the plan, and `setpoint apply FILE` applies it"),
        );
    }
    output.print("\nApply this plan? [y/N] ")?;
    std::io::stdout()
        .flush()
        .map_err(|error| Failure::io("ask", &error))?;
    let mut answer = String::new();
    stdin
        .lock()
        .read_line(&mut answer)
        .map_err(|error| Failure::io("read the answer", &error))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Whether a saved plan still holds. None if it does not, which was reported.
fn check(session: &Session, arguments: &Arguments, saved: Saved) -> Result<Option<(Plan, Request)>, Failure> {
    let output = &session.output;
    if let Some(signers) = &arguments.signers {
        saving::verify(&saved, signers)?;
    }
    let plan = saved.plan;
    let mut request = Request {
        input: making::input_of(&plan),
        modules: arguments.plan.modules.policy(output),
        state_dir: Some(PathBuf::from(&plan.options.state_dir)).filter(|place| !place.as_os_str().is_empty()),
        store: arguments.plan.store.open_etcd(output)?,
        facts: plan.options.facts.as_ref().map(PathBuf::from),
        timeout: arguments.plan.timeout,
        runs_commands: plan.options.commands,
    };
    let mut reasons = wrong_machine(&plan, &arguments.given_state_dir());
    if reasons.is_empty() {
        let Some(program) = request.compile(session)? else {
            return Ok(None);
        };
        reasons = other_files(&plan, &making::program_of(&request.input, &program)?);
    }
    let mut done = 0;
    if reasons.is_empty() {
        let Some(now) = making::make(session, &mut request)? else {
            return Ok(None);
        };
        let changes = changes(&plan, &now);
        reasons = changes.new;
        done = changes.done;
    }
    if reasons.is_empty() {
        match done {
            0 => {}
            1 => output.warning("1 change of the plan is done already"),
            done => output.warning(format!("{done} changes of the plan are done already")),
        }
        return Ok(Some((plan, request)));
    }
    output.error("the plan does not fit any more, so nothing is changed");
    for reason in reasons {
        output.error(reason);
    }
    output.warning("`setpoint plan --out FILE` makes a new plan");
    Ok(None)
}

impl Arguments {
    fn given_state_dir(&self) -> Option<PathBuf> {
        self.plan
            .state_dir
            .as_ref()
            .and_then(|path| std::path::absolute(path).ok())
    }
}

/// Why a plan is not for this machine, user and moment.
fn wrong_machine(plan: &Plan, state_dir: &Option<PathBuf>) -> Vec<String> {
    let mut reasons = Vec::new();
    let here = making::host(&plan.host.name);
    if plan.host.machine != here.machine {
        reasons.push(format!(
            "it is of {} (machine {}), and this is the machine {}",
            plan.host.name, plan.host.machine, here.machine
        ));
    }
    if plan.host.user != here.user {
        reasons.push(format!("{} made it, and this is {}", plan.host.user, here.user));
    }
    if plan.setpoint != env!("CARGO_PKG_VERSION") {
        let version = env!("CARGO_PKG_VERSION");
        reasons.push(format!(
            "Setpoint {} made it, and this is {version}",
            plan.setpoint
        ));
    }
    if state_dir
        .as_deref()
        .is_some_and(|given| given != Path::new(&plan.options.state_dir))
    {
        reasons.push(format!(
            "it is for the state directory {}",
            plan.options.state_dir
        ));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    if now > Duration::from_secs(plan.made).saturating_add(EXPIRES) {
        reasons.push("it is more than seven days old".to_owned());
    }
    if plan.summary.fails() {
        reasons.push("a resource would fail".to_owned());
    }
    reasons
}

/// Differences between the files of the program and those of the plan.
fn other_files(plan: &Plan, now: &setpoint_plan::Program) -> Vec<String> {
    if plan.program.digest == now.digest {
        return Vec::new();
    }
    let mut reasons = Vec::new();
    for file in &plan.program.files {
        match now.files.iter().find(|other| other.path == file.path) {
            None => reasons.push(format!(
                "{}: the program does not have this file any more",
                file.path
            )),
            Some(other) if other.sha256 != file.sha256 => {
                reasons.push(format!("{}: the file has changed", file.path));
            }
            Some(_) => {}
        }
    }
    let is_new =
        |file: &&setpoint_plan::ProgramFile| !plan.program.files.iter().any(|known| known.path == file.path);
    let new = now.files.iter().filter(is_new);
    reasons.extend(new.map(|file| format!("{}: the file is new", file.path)));
    reasons
}
