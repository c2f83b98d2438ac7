//! Shorter scripts that break the same rule.

use crate::program::Program;
use crate::rules::Rule;
use crate::script::{Script, Violation};
use crate::step::Step;

/// So many scripts are tried at most.
const TRIES: usize = 3000;

impl Script {
    /// A script that is as short as could be found and still breaks this rule: without steps, resources and edges that do not matter.
    #[must_use]
    pub fn shorten(&self, rule: Rule) -> Script {
        let mut best = self.clone();
        let mut tries = TRIES;
        loop {
            let before = best.clone();
            drop_steps(&mut best, rule, &mut tries);
            drop_parts(&mut best, rule, &mut tries);
            if best == before || tries == 0 {
                return best;
            }
        }
    }
}

fn breaks(script: &Script, rule: Rule, tries: &mut usize) -> Option<Script> {
    *tries = tries.checked_sub(1)?;
    match script.play() {
        Err(violation) if violation.rule == rule => Some(Violation::clone(&violation).script),
        _ => None,
    }
}

/// Takes out runs of steps, long ones first.
fn drop_steps(best: &mut Script, rule: Rule, tries: &mut usize) {
    let mut length = best.steps.len().div_ceil(2);
    while length > 0 {
        let mut at = 0;
        while at < best.steps.len() {
            let mut shorter = best.clone();
            shorter.steps.drain(at..(at + length).min(best.steps.len()));
            match breaks(&shorter, rule, tries) {
                Some(shorter) => *best = shorter,
                None => at += length,
            }
        }
        length /= 2;
    }
}

/// Takes out of each program what does not matter.
fn drop_parts(best: &mut Script, rule: Rule, tries: &mut usize) {
    for at in 0..best.steps.len() {
        let Some(Step::Swap(program)) = best.steps.get(at).cloned() else {
            continue;
        };
        let mut program = program;
        for index in (0..program.arrows.len()).rev() {
            let mut smaller = program.clone();
            smaller.arrows.remove(index);
            try_program(best, at, &mut program, smaller, rule, tries);
        }
        for index in (0..program.resources.len()).rev() {
            let mut smaller = program.clone();
            let gone = smaller.resources.remove(index).role;
            smaller.group = smaller
                .group
                .filter(|group| group.parent != gone && !group.members.contains(&gone));
            smaller
                .arrows
                .retain(|arrow| arrow.from != gone && arrow.to != gone);
            try_program(best, at, &mut program, smaller, rule, tries);
        }
        let ungrouped = Program {
            group: None,
            ..program.clone()
        };
        try_program(best, at, &mut program, ungrouped, rule, tries);
        for index in 0..program.resources.len() {
            let mut plainer = program.clone();
            plainer.resources[index].meta = setpoint_graph::MetaParameters::default();
            try_program(best, at, &mut program, plainer, rule, tries);
        }
    }
}

fn try_program(
    best: &mut Script,
    at: usize,
    program: &mut Program,
    other: Program,
    rule: Rule,
    tries: &mut usize,
) {
    let mut script = best.clone();
    if other == *program || at >= script.steps.len() {
        return;
    }
    script.steps[at] = Step::Swap(other.clone());
    if let Some(found) = breaks(&script, rule, tries)
        && found.steps.len() > at
    {
        *best = found;
        *program = other;
    }
}
