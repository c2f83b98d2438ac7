//! A plan as Markdown, for a comment in a merge request.

use std::fmt::Write as _;

use crate::model::{Action, Plan, Row};
use crate::words::{Sentence, shown, sign, summary};

/// The plan as Markdown of at most so many bytes: differences are left out first, then rows.
#[must_use]
pub fn markdown(plan: &Plan, max_bytes: usize) -> String {
    let rows: Vec<&Row> = plan
        .rows
        .iter()
        .filter(|row| row.action != Action::Unchanged)
        .collect();
    let head = head(plan, &rows);
    let mut table = String::new();
    let mut left_out = 0;
    if !rows.is_empty() {
        table.push_str("\n| | resource | what | |\n|---|---|---|---|\n");
    }
    for row in &rows {
        let line = table_row(row);
        // Room for the line that says how many are missing.
        if head.len() + table.len() + line.len() + 200 > max_bytes {
            left_out += 1;
        } else {
            table.push_str(&line);
        }
    }
    let mut text = format!("{head}{table}");
    if left_out > 0 {
        let _ = writeln!(text, "\n{left_out} more rows are left out.");
    }
    let mut missing = 0;
    for row in rows.iter().take(rows.len() - left_out) {
        for (field, diff) in Sentence::of(row).diffs {
            let details = details(row, &field, &diff);
            if text.len() + details.len() + 100 > max_bytes {
                missing += 1;
            } else {
                text.push_str(&details);
            }
        }
    }
    if missing > 0 {
        let _ = writeln!(text, "\n{missing} differences are left out.");
    }
    text
}

fn head(plan: &Plan, rows: &[&Row]) -> String {
    let mut head = format!(
        "### {}: {}\n",
        escaped(&plan.host.name),
        escaped(&summary(&plan.summary))
    );
    let warnings = [
        (Action::Fail, "Would fail"),
        (Action::Remove, "Removes"),
        (Action::Undo, "Undoes"),
        (Action::Restart, "Restarts"),
    ];
    let mut parts = Vec::new();
    for (action, verb) in warnings {
        let of_action = rows.iter().filter(|row| row.action == action);
        let names: Vec<String> = of_action.map(|row| code(&row.label())).collect();
        if !names.is_empty() {
            parts.push(format!("**{verb}** {}.", names.join(", ")));
        }
    }
    if !parts.is_empty() {
        let _ = writeln!(head, "\n{}", parts.join(" "));
    }
    head
}

fn table_row(row: &Row) -> String {
    let (sign, _) = sign(row.action);
    let sentence = Sentence::of(row);
    let mut what = escaped(&sentence.text);
    for detail in &sentence.details {
        let _ = write!(what, "; {}", escaped(detail));
    }
    let place = row
        .place
        .as_ref()
        .map(|place| format!("{}:{}", place.file, place.line));
    let place = escaped(&place.unwrap_or_default());
    format!("| `{sign}` | {} | {what} | {place} |\n", code(&row.label()))
}

fn details(row: &Row, field: &str, diff: &str) -> String {
    let (sign, _) = sign(row.action);
    // A fence that is longer than each in the text.
    let longest = diff
        .split(|letter| letter != '`')
        .map(str::len)
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let label = html(&shown(&row.label()));
    format!(
        "\n<details><summary>{sign} <code>{label}</code> {}</summary>\n\n{fence}diff\n{}\n{fence}\n\n</details>\n",
        html(field),
        diff.trim_end()
    )
}

/// A text in a code span of a table.
fn code(text: &str) -> String {
    let text = shown(text).replace('|', "\\|");
    match text.contains('`') {
        true => format!("`` {text} ``"),
        false => format!("`{text}`"),
    }
}

/// A text that means nothing to Markdown or HTML. Code spans stay what they are.
fn escaped(text: &str) -> String {
    let mut result = String::new();
    for letter in html(&shown(text)).chars() {
        if matches!(letter, '\\' | '*' | '_' | '[' | ']' | '|' | '#' | '~') {
            result.push('\\');
        }
        result.push(letter);
    }
    result
}

fn html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
