//! Switches with a value, as scripts for older programs write them: `--noop=false`.
//!
//! A switch is there or it is not, and the help shows no value. So `=true` is taken away, and a switch that is `=false` is, too, with those of the same name
//! before it: the last one counts.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::{ArgAction, Command};

/// The same command line without such values.
pub(super) fn without_values(grammar: &Command, arguments: Vec<OsString>) -> Vec<OsString> {
    let has_value = |argument: &OsString| {
        let bytes = argument.as_encoded_bytes();
        bytes.starts_with(b"--") && (bytes.ends_with(b"=true") || bytes.ends_with(b"=false"))
    };
    // Nearly always nobody does.
    if !arguments.iter().any(has_value) {
        return arguments;
    }
    let mut command = grammar;
    let mut switches = switches_of(command);
    let mut kept: Vec<OsString> = Vec::with_capacity(arguments.len());
    let mut arguments = arguments.into_iter();
    kept.extend(arguments.next());
    while let Some(argument) = arguments.next() {
        let Some(text) = argument.to_str() else {
            kept.push(argument);
            continue;
        };
        if text == "--" {
            kept.push(argument);
            kept.extend(arguments);
            return kept;
        }
        let parts = text.strip_prefix("--").and_then(|text| text.split_once('='));
        match parts.filter(|(name, _)| switches.contains(*name)) {
            Some((name, "true")) => kept.push(format!("--{name}").into()),
            Some((name, "false")) => {
                let switch = OsString::from(format!("--{name}"));
                kept.retain(|before| *before != switch);
            }
            _ => {
                if let Some(found) = command.find_subcommand(text) {
                    command = found;
                    switches.extend(switches_of(command));
                }
                kept.push(argument);
            }
        }
    }
    kept
}

/// The long names of a command's switches, with their other names.
fn switches_of(command: &Command) -> BTreeSet<String> {
    let switches = command
        .get_arguments()
        .filter(|argument| matches!(argument.get_action(), ArgAction::SetTrue));
    let names = switches.flat_map(|argument| argument.get_long_and_visible_aliases().unwrap_or_default());
    let hidden = command
        .get_arguments()
        .filter(|argument| matches!(argument.get_action(), ArgAction::SetTrue))
        .flat_map(|argument| argument.get_all_aliases().unwrap_or_default());
    names.chain(hidden).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(line: &str) -> String {
        let grammar = super::super::grammar();
        let arguments = line.split(' ').map(OsString::from).collect();
        let left = without_values(&grammar, arguments);
        let left: Vec<String> = left
            .into_iter()
            .map(|one| one.to_string_lossy().into_owned())
            .collect();
        left.join(" ")
    }

    #[test]
    fn the_last_value_of_a_switch_counts_and_nothing_else_is_touched() {
        for (line, left) in [
            ("setpoint run --noop=true lang x", "setpoint run --noop lang x"),
            ("setpoint run --noop=false x", "setpoint run x"),
            (
                "setpoint run --noop --noop=false --once=true x",
                "setpoint run --once x",
            ),
            ("setpoint run --noop=false --noop x", "setpoint run --noop x"),
            ("setpoint run --no-watch=true x", "setpoint run --no-watch x"),
            // What is no switch, of another command, or no value of one.
            ("setpoint run --hostname=true x", "setpoint run --hostname=true x"),
            ("setpoint --noop=true run x", "setpoint --noop=true run x"),
            ("setpoint run --noop=maybe x", "setpoint run --noop=maybe x"),
            (
                "setpoint run --once=true -- --noop=true",
                "setpoint run --once -- --noop=true",
            ),
            ("setpoint fmt --check=true d/", "setpoint fmt --check d/"),
        ] {
            assert_eq!(without(line), left, "{line}");
        }
    }
}
