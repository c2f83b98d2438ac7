//! What a run has found and done, as lines.

use std::sync::Arc;

use anstyle::{AnsiColor, Style};
use setpoint_diagnostics::visible;
use setpoint_engine::{ActionWords, Effect, RunSummary, Unsure};
use setpoint_plan::diff_lines;
use setpoint_programs::report::{Importance, Said};

use super::{DIM, one_line};

const DONE: Style = AnsiColor::Green.on_default();
const WOULD: Style = AnsiColor::Cyan.on_default();

/// What a run has found so far.
#[derive(Default)]
pub(super) struct Run {
    pub(super) found: Vec<Found>,
    /// Whether it has shown what the program wanted shown; then what it did need not be told.
    pub(super) has_displayed: bool,
}

impl Run {
    pub(super) fn of(found: Found) -> Run {
        Run {
            found: vec![found],
            has_displayed: false,
        }
    }

    pub(super) fn said(&self, words: Words, result: RunSummary) -> Vec<Said> {
        let failed = matches!(result, RunSummary::Failed | RunSummary::Waiting);
        let mut said: Vec<Said> = Vec::new();
        let mut created: Option<&str> = None;
        for found in &self.found {
            match words.action {
                // What went wrong is told by the failure.
                _ if failed => continue,
                Some(_) if found.may_repair && self.has_displayed => continue,
                _ => {}
            }
            let is_part_of_new = created == Some(&found.who) && found.is_new_value();
            let mut text = match is_part_of_new {
                true => String::new(),
                false => format!("{}: {}", found.who, found.sentence(words)),
            };
            match &found.diff {
                Some(diff) => {
                    text.push('\n');
                    text.push_str(&difference(diff));
                }
                None if is_part_of_new => {
                    let (field, want) = (one_line(&found.field), one_line(&found.want));
                    text.push_str(&format!("\n    {DIM}{field}: {want}{DIM:#}"));
                }
                None => {}
            }
            match said.last_mut() {
                Some(last) if is_part_of_new => last.text.push_str(&text),
                _ => said.push(Said {
                    importance: Importance::Notice,
                    text,
                }),
            }
            if found.is_new_resource() {
                created = Some(&found.who);
            }
        }
        said
    }
}

/// The line of a resource whose run cannot be planned yet.
pub(super) fn unsure(who: &str, unsure: &Unsure) -> String {
    let after: Vec<String> = unsure.after.iter().map(|after| after.id().to_string()).collect();
    let after = visible(&after.join(", ")).into_owned();
    let why = one_line(&unsure.why);
    format!("{who}: {WOULD}not known yet{WOULD:#}, because it comes after {after}: {why}")
}

/// How what a run does is told.
#[derive(Clone, Copy)]
pub(super) struct Words {
    pub(super) action: Option<ActionWords>,
    pub(super) is_reversal: bool,
}

/// One difference.
pub(super) struct Found {
    /// What it is of: the resource that runs, or a member of it.
    pub(super) who: String,
    pub(super) field: Arc<str>,
    pub(super) effect: Effect,
    pub(super) later: bool,
    pub(super) is: Arc<str>,
    pub(super) want: Arc<str>,
    pub(super) diff: Option<Arc<str>>,
    /// Properties of something new.
    pub(super) attributes: String,
    pub(super) may_repair: bool,
}

/// How a value that is absent is shown.
const ABSENT: &str = "(absent)";

impl Found {
    /// Whether the resource did not exist.
    fn is_new_resource(&self) -> bool {
        self.effect == Effect::Create && (&*self.field == "state" || !self.attributes.is_empty())
    }

    /// Whether it is a value where there was none.
    fn is_new_value(&self) -> bool {
        self.effect == Effect::Change && &*self.is == ABSENT
    }

    /// The change, or the planned change, as a sentence without its subject.
    fn sentence(&self, words: Words) -> String {
        let field = one_line(&self.field);
        let (is, want) = (one_line(&self.is), one_line(&self.want));
        // Lines that differ say more than two sizes.
        let values = match self.diff {
            Some(_) => String::new(),
            None if is == want => format!(": {want}"),
            None => format!(": {is} -> {want}"),
        };
        let [done, would] = if words.is_reversal {
            [
                ("undone", format!(" {field}"), values.clone()),
                ("would undo", format!(" {field}"), values),
            ]
        } else if let Some(action) = words.action {
            let object = format!(" {want}");
            return match self.may_repair {
                true => format!("{DONE}{}{DONE:#}{object}", action.done),
                false => format!("{WOULD}would {}{WOULD:#}{object}", action.would),
            };
        } else {
            self.effect_words(&field, &is, &want, values)
        };
        let (style, (verb, object, rest)) = match self.may_repair {
            true => (DONE, done),
            false => (WOULD, would),
        };
        format!("{style}{verb}{object}{style:#}{rest}")
    }

    /// Verb, object, and what follows: of what was done, and of what would be.
    fn effect_words(
        &self,
        field: &str,
        is: &str,
        want: &str,
        values: String,
    ) -> [(&'static str, String, String); 2] {
        let both = |done, would, object: String, rest: String| {
            [(done, object.clone(), rest.clone()), (would, object, rest)]
        };
        let nothing = String::new;
        let is_whole = self.is_new_resource() || field == "state";
        match self.effect {
            Effect::Create if self.later && self.is_new_resource() => {
                both("recreated", "would be recreated", nothing(), nothing())
            }
            Effect::Create | Effect::Change if self.later => {
                both("repaired", "would repair", format!(" {field}"), values)
            }
            // The state has words of its own: `installed`.
            Effect::Create | Effect::Remove if field == "state" && want != "exists" && want != ABSENT => {
                let word = want.to_owned();
                [
                    ("", word.clone(), nothing()),
                    ("would be", format!(" {word}"), nothing()),
                ]
            }
            Effect::Create if is_whole => {
                // Lines say more than a size.
                let done = match self.diff {
                    None if want != "exists" => format!(": {want}"),
                    _ => nothing(),
                };
                let shown = match self.attributes.as_str() {
                    "" => done.clone(),
                    attributes => format!(" with {attributes}"),
                };
                [
                    ("created", nothing(), done),
                    ("would be created", nothing(), shown),
                ]
            }
            Effect::Create => {
                let value = match self.diff {
                    Some(_) => nothing(),
                    None => format!(": {want}"),
                };
                both("created", "would create", format!(" {field}"), value)
            }
            Effect::Remove if is_whole => {
                let what = if is == "exists" {
                    nothing()
                } else {
                    format!(" ({is})")
                };
                both("removed", "would be removed", nothing(), what)
            }
            Effect::Remove => match field.strip_prefix("purge ") {
                Some(path) => both("purged", "would purge", format!(" {path}"), format!(" ({is})")),
                None => both("removed", "would remove", format!(" {field}"), format!(": {is}")),
            },
            Effect::Change => both("changed", "would change", format!(" {field}"), values),
            Effect::Reload => both("reloaded", "would reload", nothing(), format!(", {is}")),
            Effect::Restart => both("restarted", "would restart", nothing(), format!(", {is}")),
            Effect::Run => [
                ("", want.to_owned(), nothing()),
                ("would", format!(" {want}"), nothing()),
            ],
        }
    }
}

/// Lines of a diff that are shown at most.
const LONGEST_DIFF: usize = 60;

/// A difference of texts, indented and coloured.
fn difference(diff: &str) -> String {
    let (mut lines, more) = diff_lines(diff, LONGEST_DIFF);
    match more {
        0 => {}
        1 => lines.push(format!("{DIM}… 1 more line{DIM:#}")),
        more => lines.push(format!("{DIM}… {more} more lines{DIM:#}")),
    }
    let indented: Vec<String> = lines.iter().map(|line| format!("    {line}")).collect();
    indented.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_difference_is_cut() {
        let diff: String = (0..200).map(|n| format!("+{n}\n")).collect();
        let shown = difference(&diff);
        assert_eq!(shown.lines().count(), LONGEST_DIFF + 1);
        assert!(shown.contains("140 more lines"), "{shown}");
    }
}
