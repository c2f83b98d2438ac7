//! A script, and how it is played.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use setpoint_engine::machine::Options;

use crate::cast::{CAST, Role};
use crate::host::Host;
use crate::process::Process;
use crate::program::Program;
use crate::random::Random;
use crate::rules::{Broken, Rule};
use crate::statistics::Statistics;
use crate::step::Step;

/// What happens, and to which sort of process.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// The seed that it was made from, and of what chance the machine itself has (how long exactly it backs off).
    pub seed: u64,
    /// How many runs may be under way.
    pub jobs: usize,
    /// Whether what writes no `retry` is tried for ever.
    pub keep_trying: bool,
    /// Whether nothing may be repaired.
    pub noop: bool,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

impl Script {
    /// The script of a seed.
    #[must_use]
    pub fn random(seed: u64) -> Script {
        let mut random = Random::new(seed);
        let jobs = random.of(&[1, 2, 4, 4096]);
        let tries_on = random.chance(50);
        let noop = random.chance(5);
        // A process that repairs nothing tries nothing again.
        let keep_trying = tries_on && !noop;
        let length = random.of(&[20, 80, 200]);
        let mut steps = vec![Step::Swap(Program::random(&mut random))];
        steps.extend((0..length).map(|_| Step::random(&mut random)));
        Script {
            seed,
            jobs,
            keep_trying,
            noop,
            steps,
        }
    }

    /// Plays it, and then lets everything become right, after which everything must be.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn play(&self) -> Result<Statistics, Box<Violation>> {
        self.play_telling(&mut None)
    }

    /// What happens when it is played, event by event, up to where a rule is broken.
    #[must_use]
    pub fn history(&self) -> Vec<String> {
        let mut history = Some(Vec::new());
        if let Err(violation) = self.play_telling(&mut history) {
            history
                .get_or_insert_default()
                .push(format!("«{}» is broken: {}", violation.rule, violation.what));
        }
        history.unwrap_or_default()
    }

    fn play_telling(&self, history: &mut Option<Vec<String>>) -> Result<Statistics, Box<Violation>> {
        let mut played = 0;
        let outcome = catch_unwind(AssertUnwindSafe(|| self.perform(&mut played, history)));
        let broken = match outcome {
            Ok(Ok(statistics)) => return Ok(statistics),
            Ok(Err(broken)) => broken,
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                Broken {
                    rule: Rule::Calm,
                    what: text.unwrap_or_else(|| "a panic".to_owned()),
                }
            }
        };
        let mut script = self.clone();
        script.steps.truncate(played);
        Err(Box::new(Violation {
            rule: broken.rule,
            what: broken.what,
            script,
        }))
    }

    /// `played` is kept at the number of steps that have begun.
    fn perform(&self, played: &mut usize, history: &mut Option<Vec<String>>) -> Result<Statistics, Broken> {
        let options = Options {
            seed: self.seed,
            jobs: self.jobs,
            keep_trying: self.keep_trying,
            noop: self.noop,
            answer_within: self.seed.is_multiple_of(3).then_some(Duration::from_secs(20)),
            converge: Some(Duration::from_secs(5)),
            ..Options::default()
        };
        let mut host = Host::new();
        let mut process = Process::start(options, &host, Statistics::default());
        process.history = history.take();
        let result = self.perform_steps(played, &mut host, &mut process);
        *history = process.history.take();
        result.map(|()| process.statistics)
    }

    fn perform_steps(
        &self,
        played: &mut usize,
        host: &mut Host,
        process: &mut Process,
    ) -> Result<(), Broken> {
        for step in &self.steps {
            *played += 1;
            if let Some(history) = &mut process.history {
                history.push(format!("{:>9.3} == {}", host.now.as_secs_f64(), shown(step)));
            }
            perform_step(step, host, process)?;
        }
        // From here on nothing goes wrong any more. What is wrong now is repaired without anybody's help, or told.
        let waited = host.mend();
        process.disturbed(host, waited, Duration::ZERO);
        process.pause(host, false)?;
        for role in Role::all() {
            process.frozen(host, role, false);
        }
        process.pass(host, CALM)?;
        process.look_at_the_end(host, false)?;
        for role in process.failed() {
            process.recheck(host, role)?;
        }
        process.pass(host, CALM)?;
        process.look_at_the_end(host, true)
    }
}

/// Longer than the longest back-off, and then some rounds of polling.
const CALM: Duration = Duration::from_secs(400);

fn perform_step(step: &Step, host: &mut Host, process: &mut Process) -> Result<(), Broken> {
    let milliseconds = |count: u32| Duration::from_millis(u64::from(count));
    match step {
        Step::Swap(program) => return process.swap(host, program.clone()),
        Step::Reject => return process.reject(host),
        Step::Drift { roles, latency } => {
            for role in roles {
                host.disturb(*role);
            }
            process.disturbed(host, roles.clone(), milliseconds(u32::from(*latency)));
        }
        Step::WatchBreaks(role) => return process.watch_breaks(host, *role),
        Step::Recheck(role) => return process.recheck(host, *role),
        Step::Pause => return process.pause(host, true),
        Step::Resume => return process.pause(host, false),
        Step::Failing {
            role,
            runs,
            after_repair: false,
        } => host.fault(*role).before_repair = *runs,
        Step::Failing {
            role,
            runs,
            after_repair: true,
        } => host.fault(*role).after_repair = *runs,
        Step::FailingInit { role, tries } => host.fault(*role).init = *tries,
        Step::FailingWatch { role, tries, takes } => {
            host.fault(*role).watch = *tries;
            host.fault(*role).watch_takes = milliseconds(u32::from(*takes));
        }
        Step::Missing(role, missing) => {
            host.fault(*role).missing = *missing;
            if !missing {
                process.disturbed(host, vec![*role], Duration::ZERO);
            }
        }
        Step::Slow(role, takes) => host.fault(*role).takes = milliseconds(u32::from(*takes)),
        Step::Stubborn(role, stubborn) => host.fault(*role).stubborn = *stubborn,
        Step::Sends(role, value) => host.fault(*role).sends = *value,
        Step::Echoes(role, echoes) => host.fault(*role).echoes = *echoes,
        Step::Freeze(role) => {
            host.fault(*role).frozen = true;
            process.frozen(host, *role, true);
        }
        Step::Thaw(role) => {
            host.fault(*role).frozen = false;
            process.frozen(host, *role, false);
        }
        Step::DiskFull(full) => host.disk_full = *full,
        Step::StoreFailing(times) => host.store_fails = *times,
        Step::StoreSlow(takes) => host.store_takes = milliseconds(u32::from(*takes)),
        Step::Crash { repaired } => return start_again(host, process, *repaired),
        Step::Restart => {
            process.stop(host)?;
            return start_again(host, process, false);
        }
        Step::Pass(time) => return process.pass(host, milliseconds(*time)),
        Step::Answers(count) => return process.answers(host, *count),
    }
    Ok(())
}

/// The process is gone, and another one comes, with the same program.
fn start_again(host: &mut Host, process: &mut Process, repaired: bool) -> Result<(), Broken> {
    let gone = std::mem::replace(
        process,
        Process::start(Options::default(), host, Statistics::default()),
    );
    let (options, program, mut statistics, history) = gone.die(host, repaired);
    statistics.processes += 1;
    *process = Process::start(options, host, statistics);
    process.history = history;
    process.recall(host)?;
    process.swap(host, program)
}

/// A step in one line, or a program in several.
fn shown(step: &Step) -> String {
    let Step::Swap(program) = step else {
        return format!("{step:?}");
    };
    let mut text = "Swap".to_owned();
    for wanted in &program.resources {
        let default = setpoint_graph::MetaParameters::default();
        let meta = wanted.meta.differences(&default);
        let meta: Vec<String> = meta
            .map(|name| format!("{name:?} {:?}", wanted.meta.value(name)))
            .collect();
        text += &format!("\n    {} = {} {}", wanted.role, wanted.content, meta.join(", "));
    }
    for arrow in &program.arrows {
        text += &format!("\n    {} {:?} {}", arrow.from, arrow.bond, arrow.to);
    }
    if let Some(group) = &program.group {
        let members: Vec<String> = group.members.iter().map(ToString::to_string).collect();
        text += &format!("\n    {} with {}", group.parent, members.join(", "));
    }
    text
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}, {} jobs, keep trying: {}, noop: {}; of {} resources:",
            self.seed,
            self.jobs,
            self.keep_trying,
            self.noop,
            CAST.len()
        )?;
        for step in &self.steps {
            writeln!(f, "  {}", shown(step))?;
        }
        Ok(())
    }
}

/// A rule that was broken.
#[derive(Debug, Clone)]
pub struct Violation {
    /// Which one.
    pub rule: Rule,
    /// By whom, in words.
    pub what: String,
    /// What had happened, up to the step in which it was broken.
    pub script: Script,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "«{}» is broken: {}", self.rule, self.what)?;
        write!(f, "{}", self.script)
    }
}
