//! The commands: one file each, and the list of them.

mod apply;
mod cf;
mod check;
mod completions;
mod debug;
mod deploy;
mod diff;
mod disk;
mod docs;
mod events;
mod explain;
mod firstboot;
mod fmt;
mod graph;
mod keys;
mod lsp;
mod members;
mod modules;
mod pause;
mod plan;
mod recheck;
mod reload;
mod removed_host;
mod rights;
mod run;
mod setup;
mod show;
mod status;
mod switches;

use std::ffi::OsString;
use std::fmt::Write;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use setpoint_programs::failure::Failure;
use setpoint_programs::report::Importance;

use crate::exit_code;
use crate::output::Output;
use crate::session::Session;

/// Keeps Linux machines in the state that you declare.
#[derive(Debug, Parser)]
#[command(
    name = "setpoint",
    version,
    disable_help_subcommand = false,
    max_term_width = 100
)]
struct Arguments {
    /// Print the licence and exit
    #[arg(long)]
    license: bool,

    #[command(subcommand)]
    command: Option<Command>,
}

/// The commands. Each is also in one of the [`GROUPS`].
#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::Arguments>),
    Plan(Box<plan::Arguments>),
    Apply(Box<apply::Arguments>),
    Show(show::Arguments),
    Diff(Box<diff::Arguments>),
    Deploy(Box<deploy::Arguments>),
    Keys(keys::Arguments),
    Rights(rights::Arguments),
    Members(members::Arguments),
    Status(status::Arguments),
    Events(events::Arguments),
    #[command(alias = "poke")]
    Recheck(recheck::Arguments),
    Pause(pause::PauseArguments),
    Resume(pause::ResumeArguments),
    Reload(reload::Arguments),
    Debug(debug::Arguments),
    Graph(Box<graph::Arguments>),
    Check(check::Arguments),
    Cf(cf::Arguments),
    Fmt(fmt::Arguments),
    Modules(modules::Arguments),
    Docs(docs::Arguments),
    Explain(explain::Arguments),
    Lsp(lsp::Arguments),
    Completions(completions::Arguments),
    Setup(setup::Arguments),
    Firstboot(firstboot::Arguments),
    #[command(alias = "tools")]
    Disk(disk::Arguments),
}

/// Headings of the commands in `setpoint --help`.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Apply programs",
        &["run", "plan", "apply", "show", "diff", "deploy"],
    ),
    (
        "Control the running agent",
        &[
            "status", "events", "recheck", "pause", "resume", "reload", "debug",
        ],
    ),
    (
        "Write programs",
        &["check", "fmt", "graph", "cf", "modules", "docs", "explain", "lsp"],
    ),
    ("Manage a cluster", &["members", "keys", "rights"]),
    ("Prepare machines", &["setup", "firstboot", "disk", "completions"]),
];

/// The command line's grammar, for completions and the reference.
fn grammar() -> clap::Command {
    let command = Arguments::command();
    let template = help_template(&command);
    command.help_template(template)
}

/// The help of `setpoint`, with the commands in groups. Clap has headings for options only.
fn help_template(command: &clap::Command) -> String {
    let heading = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    let mut groups = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(groups, "{heading}{title}:{heading:#}");
        for command in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(
                groups,
                "  {literal}{:<11}{literal:#}  {about}",
                command.get_name()
            );
        }
        groups.push('\n');
    }
    let options = "Options:";
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{heading}{options}{heading:#}\n{{options}}"
    )
}

/// All commands that are shown, each with those below it behind it, as `setpoint run`.
fn all_commands() -> Vec<clap::Command> {
    fn add(command: &clap::Command, all: &mut Vec<clap::Command>) {
        all.push(command.clone());
        let below = command.get_subcommands();
        for command in below.filter(|command| !command.is_hide_set() && command.get_name() != "help") {
            add(command, all);
        }
    }
    let mut grammar = grammar().term_width(100);
    grammar.build();
    let mut all = Vec::new();
    add(&grammar, &mut all);
    all
}

/// Runs the command line and answers the exit code.
pub(crate) fn run(session: &Session, arguments: Vec<OsString>) -> u8 {
    match dispatch(session, arguments) {
        Ok(code) => code,
        Err(failure) => {
            session.output.failure(&failure);
            exit_code::of(&failure)
        }
    }
}

fn dispatch(session: &Session, arguments: Vec<OsString>) -> Result<u8, Failure> {
    let output = &session.output;
    let command_line = grammar();
    let arguments = switches::without_values(&command_line, arguments);
    let parsed = command_line
        .try_get_matches_from(arguments)
        .and_then(|matches| Arguments::from_arg_matches(&matches));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error, output),
    };
    if arguments.license {
        output.print(LICENCE)?;
        return Ok(exit_code::DONE);
    }
    let Some(command) = arguments.command else {
        output.print_styled(&grammar().render_help().ansi().to_string())?;
        return Ok(exit_code::DONE);
    };
    match command {
        Command::Run(arguments) => run::run(session, &arguments),
        Command::Deploy(arguments) => deploy::run(session, &arguments),
        Command::Keys(arguments) => keys::run(session, &arguments),
        Command::Rights(arguments) => rights::run(session, &arguments),
        Command::Members(arguments) => members::run(session, &arguments),
        Command::Status(arguments) => status::run(output, &arguments),
        Command::Events(arguments) => events::run(session, &arguments),
        Command::Recheck(arguments) => recheck::run(output, &arguments),
        Command::Pause(arguments) => pause::pause(output, &arguments),
        Command::Resume(arguments) => pause::resume(output, &arguments),
        Command::Reload(arguments) => reload::run(output, &arguments),
        Command::Debug(arguments) => debug::run(output, &arguments),
        Command::Graph(arguments) => graph::run(session, &arguments),
        Command::Check(arguments) => check::run(session, &arguments),
        Command::Cf(arguments) => cf::run(session, &arguments),
        Command::Fmt(arguments) => fmt::run(output, &arguments),
        Command::Modules(arguments) => modules::run(session, &arguments),
        Command::Plan(arguments) => plan::run(session, &arguments),
        Command::Apply(arguments) => apply::run(session, &arguments),
        Command::Diff(arguments) => diff::run(session, &arguments),
        Command::Show(arguments) => show::run(session, &arguments),
        Command::Docs(arguments) => docs::run(session, &arguments),
        Command::Lsp(arguments) => lsp::run(session, &arguments),
        Command::Explain(arguments) => explain::run(output, &arguments),
        Command::Completions(arguments) => completions::run(output, &arguments),
        Command::Setup(arguments) => setup::run(session, &arguments),
        Command::Firstboot(arguments) => firstboot::run(session, &arguments),
        Command::Disk(arguments) => disk::run(session, &arguments),
    }
}

/// Help and version were asked for; everything else is a mistake on the command line.
fn usage(error: &clap::Error, output: &Output) -> Result<u8, Failure> {
    let given = match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(given))) => Some(given.as_str()),
        _ => None,
    };
    if let Some((name, hint)) = NOT_YET.iter().find(|(name, _)| Some(*name) == given) {
        let failure = Failure::usage(format!("`setpoint {name}` is not there yet"));
        return Err(match *hint {
            "" => failure,
            hint => failure.hint(hint),
        });
    }
    if error.use_stderr() {
        let text = error.render().ansi().to_string();
        output.say(Importance::Error, text.trim_end());
        if let Some(hint) = hint_for_other_tools(error) {
            output.say(Importance::Error, format!("  help: {hint}"));
        }
        return Ok(exit_code::USAGE);
    }
    if error.kind() == ErrorKind::DisplayVersion {
        output.print(concat!(env!("CARGO_PKG_VERSION"), "\n"))?;
        return Ok(exit_code::DONE);
    }
    debug_assert_eq!(error.kind(), ErrorKind::DisplayHelp);
    output.print(&error.render().to_string())?;
    Ok(exit_code::DONE)
}

/// A hint for an option of another tool.
fn hint_for_other_tools(error: &clap::Error) -> Option<&'static str> {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    match given.as_str() {
        "--dry-run" | "--check" | "--diff" => Some("`setpoint plan` shows what would change"),
        "--tags" | "-target" | "--target" | "--limit" => Some("Setpoint has no partial runs"),
        _ => None,
    }
}

/// Commands that are planned or that older programs have, with what does part of it today.
const NOT_YET: &[(&str, &str)] = &[
    ("why", "`setpoint run -v` says why each resource is looked at"),
    ("top", ""),
    ("simulate", ""),
    ("etcd", ""),
    ("provisioner", ""),
];

const LICENCE: &str = "\
Setpoint is licensed under either of the Apache License, Version 2.0
(https://www.apache.org/licenses/LICENSE-2.0) or the MIT licence
(https://opensource.org/license/mit), at your option.
";
