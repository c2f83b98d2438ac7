//! How a row reads: its sign, its label, and what the run would do in a few words.

use anstyle::{AnsiColor, Style};
use setpoint_diagnostics::{visible, visible_lines};
use setpoint_engine::{Effect, ResourceName};

use crate::model::{Action, Field, Row, Summary};

/// The sign and colour of an action.
pub(crate) fn sign(action: Action) -> (char, Style) {
    let colour = |colour: AnsiColor| colour.on_default();
    match action {
        Action::Create => ('+', colour(AnsiColor::Green)),
        Action::Change => ('~', colour(AnsiColor::Yellow)),
        Action::Remove => ('-', colour(AnsiColor::Red)),
        Action::Run | Action::Reload | Action::Restart => ('>', colour(AnsiColor::Cyan)),
        Action::Undo => ('<', colour(AnsiColor::Blue)),
        Action::LetGo | Action::Off => ('.', Style::new().dimmed()),
        Action::Unknown => ('?', colour(AnsiColor::Magenta)),
        Action::Fail | Action::Blocked => ('!', colour(AnsiColor::Red).bold()),
        Action::Unchanged => (' ', Style::new().dimmed()),
    }
}

/// `file[/etc/motd]`, safe to print.
pub(crate) fn label(row: &Row) -> String {
    visible(&row.label()).into_owned()
}

/// The field of an edge, in a comparison of programs.
pub(crate) const EDGE: &str = "edge";

/// `2 added, 1 changed, 3 removed; 31 unchanged`, for a comparison of programs.
pub(crate) fn difference(summary: &Summary) -> String {
    let parts = [
        (summary.created, "added"),
        (summary.changed, "changed"),
        (summary.let_go, "removed"),
        (summary.undone, "removed and undone"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    match parts.is_empty() {
        true => "the programs are equal".to_owned(),
        false => format!("{}; {} unchanged", parts.join(", "), summary.unchanged),
    }
}

/// `4 to create, 1 to run; 31 unchanged`.
pub(crate) fn summary(summary: &Summary) -> String {
    let parts = [
        (summary.created, "to create"),
        (summary.changed, "to change"),
        (summary.removed, "to remove"),
        (summary.run, "to run"),
        (summary.reloaded, "to reload"),
        (summary.restarted, "to restart"),
        (summary.undone, "to undo"),
        (summary.let_go, "left as they are"),
        (summary.off, "not repaired (`Meta:noop`)"),
        (summary.unknown, "not known yet"),
        (summary.failed, "would fail"),
        (summary.blocked, "not checked"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    match (parts.is_empty(), summary.unchanged) {
        (true, 0) => "no resources".to_owned(),
        (true, 1) => "nothing to do: 1 resource is unchanged".to_owned(),
        (true, unchanged) => format!("nothing to do: {unchanged} resources are unchanged"),
        (false, 0) => parts.join(", "),
        (false, unchanged) => format!("{}; {unchanged} unchanged", parts.join(", ")),
    }
}

/// The planned action in a few words, with lines of detail below.
pub(crate) struct Sentence {
    pub(crate) text: String,
    /// Lines below it that are no diffs.
    pub(crate) details: Vec<String>,
    /// Diffs, each below the name of its field if there are several.
    pub(crate) diffs: Vec<(String, String)>,
}

impl Sentence {
    /// Of a row.
    pub(crate) fn of(row: &Row) -> Sentence {
        let mut sentence = Sentence {
            text: String::new(),
            details: Vec::new(),
            diffs: Vec::new(),
        };
        sentence.text = match row.action {
            Action::Create => sentence.created(row),
            Action::Change => sentence.changed(row),
            Action::Off => {
                let changes = sentence.changed(row);
                format!("not repaired (`Meta:noop`): {changes}")
            }
            Action::Remove => sentence.removed(row),
            Action::Run => sentence.runs(row),
            Action::Reload | Action::Restart => sentence.restarts(row),
            Action::Undo => {
                let changes = sentence.changed(row);
                format!("left the program; undo: {changes}")
            }
            Action::LetGo => "left the program; stays".to_owned(),
            Action::Unknown => {
                sentence.collect_diffs(row);
                let after = names(&row.after);
                let why = row.why.as_deref().unwrap_or_default();
                match after.as_str() {
                    "" => shown(why),
                    after => format!("after {after}: {}", shown(why)),
                }
            }
            Action::Fail | Action::Blocked => shown(row.why.as_deref().unwrap_or_default()),
            Action::Unchanged => "unchanged".to_owned(),
        };
        // A certain need is no news.
        let needs = row.needs.iter().filter(|need| !need.is_certain);
        let needs = needs.map(|need| format!("needs {}, which {} may bring", need.what, need.by.id()));
        sentence.details.extend(needs.map(|need| shown(&need)));
        sentence
    }

    fn created(&mut self, row: &Row) -> String {
        let mut text = attributes(row);
        let existence = row.fields.iter().find(|field| field.effect == Effect::Create);
        if let Some(field) = existence
            && &*field.want != "exists"
        {
            match &field.diff {
                Some(diff) => self.diffs.push((shown(&field.field), diff.to_string())),
                None if text.is_empty() => text = shown(&field.want),
                None => text = format!("{}, {text}", shown(&field.want)),
            }
        }
        let others = row.fields.iter().filter(|field| field.effect != Effect::Create);
        let others: Vec<&Field> = others.collect();
        self.take_diffs(&others);
        for field in others.iter().filter(|field| field.diff.is_none()) {
            self.details
                .push(format!("{}: {}", shown(&field.field), shown(&field.want)));
        }
        if text.is_empty() { "new".to_owned() } else { text }
    }

    fn changed(&mut self, row: &Row) -> String {
        let fields: Vec<&Field> = row.fields.iter().collect();
        self.take_diffs(&fields);
        let parts: Vec<String> = fields.iter().map(|field| change(field)).collect();
        parts.join("; ")
    }

    fn removed(&mut self, row: &Row) -> String {
        let (removed, others): (Vec<&Field>, Vec<&Field>) = row
            .fields
            .iter()
            .partition(|field| field.effect == Effect::Remove);
        self.take_diffs(&others);
        let mut parts = Vec::new();
        for field in removed {
            match (&*field.field, field.field.strip_prefix("purge ")) {
                ("state", _) if &*field.is == "exists" => parts.push("removed".to_owned()),
                ("state", _) if &*field.want != "(absent)" => {
                    parts.push(format!("{} -> {}", shown(&field.is), shown(&field.want)));
                }
                ("state", _) => parts.push(format!("removed ({})", shown(&field.is))),
                (_, Some(path)) => self
                    .details
                    .push(format!("-{} ({})", shown(path), shown(&field.is))),
                (name, None) => parts.push(format!("{}: {} is removed", shown(name), shown(&field.is))),
            }
        }
        match self.details.len() {
            0 => {}
            purged => parts.push(format!("purges {purged}")),
        }
        parts.extend(others.iter().map(|field| change(field)));
        parts.join("; ")
    }

    fn runs(&mut self, row: &Row) -> String {
        let mut reasons = Vec::new();
        for field in &row.fields {
            let reason = if row.notified_by.is_empty() {
                shown(&field.is)
            } else {
                format!("notified by {}", names(&row.notified_by))
            };
            match &*field.is {
                "(absent)" => reasons.push(shown(&field.want)),
                _ => {
                    reasons.push(format!("runs: {reason}"));
                    self.details.push(shown(&field.want));
                }
            }
        }
        reasons.join("; ")
    }

    fn restarts(&mut self, row: &Row) -> String {
        let verb = match row.action {
            Action::Restart => "restarts",
            _ => "reloads",
        };
        match row.notified_by.as_slice() {
            [] => verb.to_owned(),
            senders => format!("{verb}, because {} would change", names(senders)),
        }
    }

    fn collect_diffs(&mut self, row: &Row) {
        let fields: Vec<&Field> = row.fields.iter().collect();
        self.take_diffs(&fields);
    }

    fn take_diffs(&mut self, fields: &[&Field]) {
        for field in fields {
            if let Some(diff) = &field.diff {
                self.diffs.push((shown(&field.field), diff.to_string()));
            }
        }
    }
}

/// `shell /bin/sh -> /bin/bash`.
fn change(field: &Field) -> String {
    let name = shown(&field.field);
    match (&field.diff, &*field.is) {
        (None, "(absent)") if name == EDGE => format!("now {}", shown(&field.want)),
        (None, is) if name == EDGE => format!("no longer {}", shown(is)),
        (Some(_), _) => name,
        (None, "(sensitive)") => format!("{name} (sensitive) changes"),
        (None, "(absent)") => format!("{name}: {}", shown(&field.want)),
        (None, is) => format!("{name} {} -> {}", shown(is), shown(&field.want)),
    }
}

/// The properties of something new: `0644 root:root` for a file, else by name.
fn attributes(row: &Row) -> String {
    let mut left = row.attributes.clone();
    let mut parts = Vec::new();
    if let Some(mode) = left.remove("mode") {
        let owner = left.remove("owner");
        let group = left.remove("group");
        parts.push(match (owner, group) {
            (Some(owner), Some(group)) => format!("{} {}:{}", shown(&mode), shown(&owner), shown(&group)),
            (Some(owner), None) => format!("{} {}", shown(&mode), shown(&owner)),
            (None, Some(group)) => format!("{} :{}", shown(&mode), shown(&group)),
            (None, None) => shown(&mode),
        });
    }
    parts.extend(
        left.iter()
            .map(|(name, value)| format!("{name} {}", shown(value))),
    );
    parts.join(", ")
}

/// The first few names of a list: `a, b and 4 more`.
pub(crate) fn names(resources: &[ResourceName]) -> String {
    const SHOWN: usize = 3;
    let all: Vec<String> = resources
        .iter()
        .map(|name| visible(&name.id().to_string()).into_owned())
        .collect();
    match all.len().checked_sub(SHOWN) {
        Some(more @ 1..) => format!("{} and {more} more", all[..SHOWN].join(", ")),
        _ => all.join(", "),
    }
}

/// A text on one line, safe to print, with short hashes.
pub(crate) fn shown(text: &str) -> String {
    shortened_hashes(&visible(text))
}

/// Shortens each hash to its first digits, which tell two contents apart. The data have all of them.
#[must_use]
pub fn shortened_hashes(text: &str) -> String {
    const BEFORE: &str = "(sha256 ";
    const SHOWN: usize = 12;
    let mut parts = text.split(BEFORE);
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_hexdigit).count();
        shown.push_str(BEFORE);
        if digits == 64 {
            shown.push_str(&part[..SHOWN]);
            shown.push('…');
            shown.push_str(&part[digits..]);
        } else {
            shown.push_str(part);
        }
    }
    shown
}

/// The first lines of a diff, each safe to print and coloured, and how many more there are.
#[must_use]
pub fn diff_lines(diff: &str, most: usize) -> (Vec<String>, usize) {
    let lines: Vec<_> = visible_lines(diff).collect();
    let shown = lines.iter().take(most).map(|line| {
        let style = match line.as_bytes().first() {
            Some(b'+') => AnsiColor::Green.on_default(),
            Some(b'-') => AnsiColor::Red.on_default(),
            Some(b'@') => AnsiColor::Cyan.on_default(),
            _ => Style::new().dimmed(),
        };
        format!("{style}{line}{style:#}")
    });
    (shown.collect(), lines.len().saturating_sub(most))
}
