//! The properties of plans.

use std::fmt;

use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};
use setpoint_graph::ResourceId;
use setpoint_plan::{Action, Field, Row, permits};

use crate::host::Things;
use crate::play::{Deeds, Played, Stage};
use crate::programs::{Program, programs};

/// The number of programs; `SETPOINT_PLANNED_PROGRAMS` says otherwise.
const PROGRAMS: u32 = 1_000;

#[test]
fn a_plan_says_what_the_run_does() {
    let count = std::env::var("SETPOINT_PLANNED_PROGRAMS").map_or(PROGRAMS, |text| text.parse().unwrap());
    let seed = std::env::var("SETPOINT_PLANNED_SEED").map_or(1, |text| text.parse().unwrap());
    let config = Config {
        cases: count,
        max_shrink_iters: 1_000,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed),
        ..Config::default()
    };
    let stage = Stage::new();
    let tally = std::cell::RefCell::new(Tally::default());
    let result = TestRunner::new(config).run(&programs(), |(program, things)| {
        let mut trial = Trial::new(&stage, &program, &things);
        trial.check();
        tally.borrow_mut().add(&trial);
        match trial.wrong.is_empty() {
            true => Ok(()),
            false => Err(TestCaseError::fail(trial.to_string())),
        }
    });
    let tally = tally.into_inner();
    println!("{tally:?}");
    match result {
        Err(TestError::Fail(why, (program, things))) => {
            let history = stage.history(&program, &things);
            panic!("{why}{}", history.join("\n"));
        }
        Err(error) => panic!("{error}"),
        Ok(()) => {}
    }
    tally.has_seen_enough();
}

/// The number of things that were seen, so that a test that sees nothing fails.
#[derive(Debug, Default)]
struct Tally {
    programs: usize,
    rows: usize,
    exact: usize,
    unknown: usize,
    until: usize,
    failed: usize,
    blocked: usize,
    refused: usize,
}

impl Tally {
    fn add(&mut self, trial: &Trial<'_>) {
        self.programs += 1;
        self.refused += usize::from(trial.is_refused);
        for row in &trial.rows {
            self.rows += 1;
            let place = match (row.action, &row.until) {
                (Action::Unknown, _) => &mut self.unknown,
                (Action::Fail, _) => &mut self.failed,
                (Action::Blocked, _) => &mut self.blocked,
                (_, Some(_)) => &mut self.until,
                (_, None) => &mut self.exact,
            };
            *place += 1;
        }
    }

    fn has_seen_enough(&self) {
        let seen = [self.unknown, self.until, self.failed, self.blocked];
        assert!(seen.iter().all(|count| count * 100 > self.rows), "{self:?}");
        assert!(self.exact * 2 > self.rows, "a plan says something: {self:?}");
    }
}

/// One program on one machine.
struct Trial<'a> {
    stage: &'a Stage,
    program: &'a Program,
    things: &'a Things,
    rows: Vec<Row>,
    /// Whether the run that applied the plan refused a repair.
    is_refused: bool,
    wrong: Vec<String>,
}

impl<'a> Trial<'a> {
    fn new(stage: &'a Stage, program: &'a Program, things: &'a Things) -> Trial<'a> {
        Trial {
            stage,
            program,
            things,
            rows: Vec::new(),
            is_refused: false,
            wrong: Vec::new(),
        }
    }

    fn check(&mut self) {
        self.rows = self.stage.plan(self.program, self.things);
        let again = self.stage.plan(self.program, self.things);
        if self
            .rows
            .iter()
            .map(without_order)
            .ne(again.iter().map(without_order))
        {
            self.wrong.push(format!("a second plan differs: {again:#?}"));
        }
        let kept = self.stage.keep(self.program, self.things, None);
        self.compare(&kept);
        self.apply(&kept);
    }

    /// Each row must come out as the plan says.
    fn compare(&mut self, kept: &Played) {
        let nothing = Deeds::default();
        for row in &self.rows {
            let id = ResourceId::new(&*row.kind, &*row.name);
            let deeds = kept.deeds.get(&id).unwrap_or(&nothing);
            // No plan can say whether a command fails, nor what fails because of it.
            let may_fail =
                |row: &Row| row.action == Action::Unknown || row.until.is_some() || &*row.kind == "command";
            let is_blocked = deeds.blocked_by.as_ref().map(|by| {
                let row = self.rows.iter().find(|row| row.label() == *by);
                row.is_none_or(|row| !may_fail(row))
            });
            if is_blocked == Some(false) {
                continue;
            }
            if let Some(why) = disagreement(row, deeds) {
                self.wrong.push(format!("{id}: {why}: {row:?}\n{deeds:?}"));
            }
        }
    }

    /// A run with the permits of the plan does the same as a run without, or refuses.
    fn apply(&mut self, kept: &Played) {
        let applied = self
            .stage
            .keep(self.program, self.things, Some(permits(&self.rows)));
        let refused = applied.deeds.iter().find_map(|(id, deeds)| {
            let failure = deeds.failure.as_ref()?;
            failure
                .contains("the plan does not show")
                .then_some((id, failure))
        });
        self.is_refused = refused.is_some();
        let is_exact = |row: &Row| row.until.is_none();
        match refused {
            Some((id, failure)) if self.rows.iter().all(is_exact) => {
                self.wrong.push(format!("{id} is refused: {failure}"));
            }
            None if applied.things != kept.things => {
                self.wrong.push(format!(
                    "applied: {:#?}\nkept: {:#?}",
                    applied.things, kept.things
                ));
            }
            _ => {}
        }
    }
}

/// A row without its place in the order, which chance decides.
fn without_order(row: &Row) -> Row {
    Row {
        order: 0,
        ..row.clone()
    }
}

/// Why a run did otherwise than a row says.
fn disagreement(row: &Row, deeds: &Deeds) -> Option<&'static str> {
    let did_nothing = deeds.fields.is_empty();
    match row.action {
        Action::Unknown => None,
        Action::Fail => deeds.failure.is_none().then_some("a false alarm"),
        Action::Blocked => (!did_nothing).then_some("it is not blocked"),
        _ if row.until.is_some() => None,
        _ if deeds.blocked_by.is_some() => Some("it is blocked"),
        _ if deeds.failure.is_some() && &*row.kind != "command" => Some("it fails"),
        Action::Unchanged | Action::Off => (!did_nothing).then_some("it is changed"),
        _ => (!fields_agree(row, deeds)).then_some("other fields"),
    }
}

fn fields_agree(row: &Row, deeds: &Deeds) -> bool {
    let shows = |field: &Field, done: &[std::sync::Arc<str>; 3]| {
        let [name, is, want] = done;
        let is_deed = field.effect.is_deed();
        field.field == *name && (field.unknown || is_deed || field.is == *is && field.want == *want)
    };
    let known = row.fields.iter().filter(|field| !field.unknown);
    let mut done = deeds.fields.iter();
    known
        .into_iter()
        .all(|field| deeds.fields.iter().any(|done| shows(field, done)))
        && done.all(|done| row.fields.iter().any(|field| shows(field, done)))
}

impl fmt::Display for Trial<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for wrong in &self.wrong {
            writeln!(f, "{wrong}")?;
        }
        writeln!(f, "{}{:?}", self.program, self.things)
    }
}
