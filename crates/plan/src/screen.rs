//! A plan as a person reads it in a terminal.

use std::fmt::Write as _;

use anstyle::Style;
use rustc_hash::FxHashMap;
use unicode_width::UnicodeWidthStr;

use crate::model::{Action, Place, Plan, Row};
use crate::words::{Sentence, diff_lines, difference, label, shown, sign, summary};

/// How much of differences is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Diffs {
    /// Nothing.
    None,
    /// A few lines of each.
    Short,
    /// All of it.
    Full,
}

/// The form of a screen.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    /// Columns.
    pub width: usize,
    /// How much of differences is shown.
    pub diffs: Diffs,
    /// Whether rows are never folded, and unchanged resources are shown.
    pub all_rows: bool,
    /// Only the last lines.
    pub summary_only: bool,
    /// Whether the rows are those of two programs, and not of a machine.
    pub compares_programs: bool,
}

/// Lines of a diff that are shown at most, unless all are wanted.
const SHORT: usize = 30;
/// From so many on, rows that are alike are shown as one.
const ALIKE: usize = 4;
/// Columns of a label at most that others are aligned to.
const LONGEST_LABEL: usize = 44;
/// From so many rows on, the dangerous ones are named again at the end.
const MANY: usize = 20;
/// How many of these are named.
const NAMED: usize = 8;

const DIM: Style = Style::new().dimmed();

/// The text of a plan, with escapes for colours. `header` is the first line.
#[must_use]
pub fn screen(plan: &Plan, header: &str, how: &Screen) -> String {
    let mut text = format!("{}\n\n", shown(header));
    let lines = if how.summary_only {
        Vec::new()
    } else {
        blocks(&plan.rows, how)
    };
    let longest = lines
        .iter()
        .map(|block| block.label.width())
        .filter(|width| *width <= LONGEST_LABEL);
    let column = longest.max().unwrap_or(0);
    for block in &lines {
        block.write(&mut text, column, how);
    }
    if !lines.is_empty() {
        text.push('\n');
    }
    text.push_str(&match how.compares_programs {
        true => difference(&plan.summary),
        false => summary(&plan.summary),
    });
    text.push('\n');
    text.push_str(&dangers(plan, lines.len()));
    text.push_str(&until(plan));
    text
}

/// A row, or several that are alike.
struct Block<'p> {
    action: Action,
    label: String,
    sentence: Sentence,
    place: Option<&'p Place>,
}

fn blocks<'p>(rows: &'p [Row], how: &Screen) -> Vec<Block<'p>> {
    let shown = rows
        .iter()
        .filter(|row| how.all_rows || row.action != Action::Unchanged);
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    let mut known: FxHashMap<_, usize> = FxHashMap::default();
    for row in shown {
        let is_alone =
            how.all_rows || matches!(row.action, Action::Fail | Action::Blocked) || row.place.is_none();
        let fields: Vec<&str> = row.fields.iter().map(|field| &*field.field).collect();
        let key = (row.action, &row.kind, &row.place, fields);
        match known.get(&key).filter(|_| !is_alone) {
            Some(group) => groups[*group].push(row),
            None => {
                known.insert(key, groups.len());
                groups.push(vec![row]);
            }
        }
    }
    let blocks = groups.into_iter().flat_map(|group| match group.len() {
        ..ALIKE => group.into_iter().map(Block::of).collect(),
        _ => vec![Block::of_alike(&group)],
    });
    blocks.collect()
}

impl<'p> Block<'p> {
    fn of(row: &'p Row) -> Block<'p> {
        Block {
            action: row.action,
            label: label(row),
            sentence: Sentence::of(row),
            place: row.place.as_ref(),
        }
    }

    fn of_alike(rows: &[&'p Row]) -> Block<'p> {
        let (first, last) = (rows[0], rows[rows.len() - 1]);
        let mut block = Block::of(first);
        block.label = format!("{} … {}", label(first), shown(&last.name));
        block.sentence.text = format!("{} alike: {}", rows.len(), block.sentence.text);
        if !block.sentence.diffs.is_empty() {
            block
                .sentence
                .details
                .push(format!("the first, {}:", label(first)));
        }
        block
    }

    fn write(&self, text: &mut String, column: usize, how: &Screen) {
        let (sign, style) = sign(self.action);
        let padding = column.saturating_sub(self.label.width());
        let start = 4 + self.label.width() + padding + 2;
        let place = self
            .place
            .map(|place| format!("{}:{}", shown(&place.file), place.line));
        let room = how.width.saturating_sub(start);
        // A long sentence goes below the label.
        let is_below = self.sentence.text.width() > room;
        let what = if is_below { "" } else { &self.sentence.text };
        let _ = write!(
            text,
            "  {style}{sign}{style:#} {}{}  {what}",
            self.label,
            " ".repeat(padding)
        );
        if let Some(place) = place {
            let used = start + what.width();
            if let Some(blanks) = how
                .width
                .checked_sub(used + place.width())
                .filter(|blanks| *blanks >= 2)
            {
                let _ = write!(text, "{}{DIM}{place}{DIM:#}", " ".repeat(blanks));
            }
        }
        while text.ends_with(' ') {
            text.pop();
        }
        text.push('\n');
        if is_below {
            wrap(text, &self.sentence.text, how.width);
        }
        for detail in &self.sentence.details {
            wrap(text, detail, how.width);
        }
        if how.diffs != Diffs::None {
            for (field, diff) in &self.sentence.diffs {
                if self.sentence.diffs.len() > 1 {
                    let _ = writeln!(text, "      {field}:");
                }
                write_diff(text, diff, how.diffs);
            }
        }
    }
}

/// Writes a line of detail; what follows the first line is indented more.
fn wrap(text: &mut String, detail: &str, width: usize) {
    let mut indent = "      ";
    let mut line = String::new();
    for word in detail.split(' ') {
        let is_full = indent.len() + line.width() + 1 + word.width() > width;
        if !line.is_empty() && is_full {
            let _ = writeln!(text, "{indent}{line}");
            indent = "        ";
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    let _ = writeln!(text, "{indent}{line}");
}

fn write_diff(text: &mut String, diff: &str, diffs: Diffs) {
    let most = if diffs == Diffs::Full { usize::MAX } else { SHORT };
    let (lines, more) = diff_lines(diff, most);
    for line in lines {
        let _ = writeln!(text, "      {line}");
    }
    match more {
        0 => {}
        1 => text.push_str("      … 1 more line (--full)\n"),
        more => {
            let _ = writeln!(text, "      … {more} more lines (--full)");
        }
    }
}

/// Of a long plan, what removes, undoes, restarts or fails is named again.
fn dangers(plan: &Plan, shown_rows: usize) -> String {
    if shown_rows <= MANY {
        return String::new();
    }
    let verbs = [
        (Action::Remove, "removes"),
        (Action::Undo, "undoes"),
        (Action::Restart, "restarts"),
        (Action::Fail, "would fail:"),
    ];
    let mut parts = Vec::new();
    for (action, verb) in verbs {
        let names: Vec<String> = plan
            .rows
            .iter()
            .filter(|row| row.action == action)
            .map(label)
            .collect();
        if names.is_empty() {
            continue;
        }
        let more = match names.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let named: Vec<String> = names.into_iter().take(NAMED).collect();
        parts.push(format!("{verb} {}{more}", named.join(", ")));
    }
    match parts.is_empty() {
        true => String::new(),
        false => format!("{}\n", parts.join("; ")),
    }
}

/// A line about the rows behind a resource that can bring anything.
fn until(plan: &Plan) -> String {
    let mut counts: Vec<(String, usize)> = Vec::new();
    let moved = plan.rows.iter().filter(|row| row.action != Action::Unchanged);
    for until in moved.filter_map(|row| row.until.as_ref()) {
        let name = shown(&until.id().to_string());
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    let total: usize = counts.iter().map(|(_, count)| count).sum();
    let Some((most, _)) = counts.iter().max_by_key(|(_, count)| *count) else {
        return String::new();
    };
    let others = match counts.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let these = if total == 1 {
        "1 of these comes"
    } else {
        &format!("{total} of these come")
    };
    format!("{these} after {most}{others}, which may change more than is known\n")
}
