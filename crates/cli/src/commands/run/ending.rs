//! The end of a run: its reason, its exit code, and its last lines.

use setpoint_agent::requests::Ended;
use setpoint_diagnostics::visible;
use setpoint_engine::machine::ExitReason;
use setpoint_programs::report::{Importance, Said, headed};

use crate::exit_code;
use crate::output::Stood;
use crate::view::Reason;

/// Why it ended.
pub(in crate::commands) fn reason(ended: &Ended) -> Reason {
    let report = ended.report.as_ref().map(|report| &report.reason);
    match report {
        _ if ended.program_is_wrong => Reason::ProgramWrong,
        None | Some(ExitReason::BackgroundFailed(_)) => Reason::Failed,
        Some(ExitReason::Stopped) => Reason::Signal,
        Some(ExitReason::Converged) => Reason::Converged,
        Some(ExitReason::MaxRuntime) => Reason::MaxRuntime,
        Some(ExitReason::Requested(_)) => Reason::Requested,
    }
}

/// The exit code.
pub(in crate::commands) fn code(ended: &Ended, once: bool, detailed: bool) -> u8 {
    if ended.program_is_wrong || (once && ended.lacks_collected) {
        return exit_code::WRONG;
    }
    let Some(report) = &ended.report else {
        return exit_code::WRONG;
    };
    match (report.code(detailed), &report.reason, ended.signal) {
        // `--once` did not finish its work.
        (exit_code::DONE, ExitReason::Stopped, Some(signal)) if once => exit_code::SIGNAL + signal.number(),
        (code, ..) => code,
    }
}

/// How the resources stand; none if that says nothing.
pub(in crate::commands) fn recap(ended: &Ended) -> Option<Stood> {
    let report = ended.report.as_ref().filter(|_| !ended.program_is_wrong)?;
    Some(Stood {
        before: match &report.reason {
            ExitReason::Stopped => "stopped: ",
            _ => "",
        },
        failed: report.failed.len(),
        blocked: report.blocked.len(),
    })
}

/// Errors of the run as a whole.
pub(in crate::commands) fn said(ended: &Ended) -> Vec<Said> {
    let Some(report) = &ended.report else {
        return Vec::new();
    };
    let mut said = Vec::new();
    let mut error = |text: &str| {
        let importance = Importance::Error;
        said.push(Said {
            importance,
            text: headed(importance, &visible(text)),
        });
    };
    match &report.reason {
        ExitReason::MaxRuntime => error("it ran for as long as `--max-runtime` allows"),
        ExitReason::BackgroundFailed(why) => error(why),
        ExitReason::Stopped | ExitReason::Converged | ExitReason::Requested(_) => {}
    }
    for (id, at) in &report.hung {
        let place = match at.as_deref().filter(|at| **at != *id.name) {
            Some(at) => format!(", at {at},"),
            None => String::new(),
        };
        error(&format!("{id}{place} did not end in time and was left behind"));
    }
    said
}
