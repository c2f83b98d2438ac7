//! `setpoint deploy`: publishes a program to all hosts of a cluster.

mod commits;
mod history;
mod patience;
mod planning;
mod rollout;
mod waiting;

use std::time::Duration;

use clap::Args;
use setpoint_agent::deploys::{Commits, Deploys, Frontend, NotAdded, Record, Rollout, Stored, record_of};
use setpoint_diagnostics::{did_you_mean, visible};
use setpoint_programs::failure::Failure;
use setpoint_programs::imposed::Imposed;
use setpoint_programs::languages::compilation::Compilation;
use setpoint_programs::report::{Importance, errors_first};

use super::plan::Printing;
use crate::arguments::{ModuleArguments, ProgramArguments, parse_seconds, parse_whole};
use crate::exit_code;
use crate::prefix_arguments::PrefixArguments;
use crate::process::warn_of_foreign_text;
use crate::session::Session;
use crate::store_arguments::StoreArguments;
use commits::Repository;
pub(super) use history::existing;
use patience::Patience;
use rollout::Waves;
use waiting::wait_for_members;
pub(super) use waiting::{clock_text, shown};

/// Publish a program to all hosts of a cluster
///
/// Compiles the program and writes it, with its modules and `files/`, into the store that hosts share; those that run with `--etcd-endpoints` take it at
/// once, or a few hosts first (--canary, --max-unavailable). Instead of a program: `empty` for one that describes nothing, `list` for the deploys that
/// there are, `show ID` for what is in one, `diff ID ID` for how two differ, `rollback ID` to publish an earlier one again, `resume ID` and `finish ID`
/// for one that has stopped, `gc` to clear old ones away.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    program: ProgramArguments,

    #[command(flatten)]
    modules: ModuleArguments,

    #[command(flatten)]
    prefix: PrefixArguments,

    #[command(flatten)]
    store: StoreArguments,

    /// Do not hold the deploy against the commits of the git repository of the working directory
    #[arg(long)]
    no_git: bool,

    /// Deploy also what does not follow the commit of the deploy before
    #[arg(long)]
    force: bool,

    /// Wait until all members have it right, or something has failed there, and show how they stand
    #[arg(long)]
    wait: bool,

    /// With --wait: for so many seconds at most. With --canary or --max-unavailable: how long a host may take to have it right
    #[arg(long, value_name = "S", value_parser = parse_seconds, default_value = "300")]
    wait_timeout: Duration,

    /// With --wait, --canary or --max-unavailable: for so many seconds a host may fail and try again before it counts as failed
    #[arg(long, value_name = "S", value_parser = parse_seconds, default_value = "10")]
    grace: Duration,

    /// Let so many hosts, or those of this name (`web-*`), take it first, and the others when it is right there; can be given several times
    #[arg(long, value_name = "N|PATTERN")]
    canary: Vec<String>,

    /// Let hosts take it one after the other: at most N at a time have not got it right yet. Where one fails, the others keep what they have
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_unavailable: Option<u32>,

    /// With `gc`: keep so many of the newest deploys [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,

    /// Change nothing on all hosts; report what would change
    #[arg(long)]
    noop: bool,

    /// On each host, let at most N resources run at the same time
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_whole::<i64>)]
    sema: Option<i64>,

    /// Show what the deploy would change on each host, and do not publish it
    ///
    /// Each member plans the program while its own program keeps running. Hosts with the same plan are shown together. If a plan fails, or a host
    /// does not answer within --wait-timeout, the exit code is 1.
    #[arg(long, conflicts_with_all = ["wait", "canary", "max_unavailable"])]
    plan: bool,

    #[command(flatten)]
    printing: Printing,

    /// With --plan: exit with code 2 if something would change
    #[arg(long, requires = "plan")]
    detailed_exitcode: bool,

    /// Make no automatic edges
    #[arg(long)]
    no_autoedges: bool,

    /// Group nothing
    #[arg(long)]
    no_autogroup: bool,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Result<u8, Failure> {
    let Some(store) = arguments.store.open(&session.output)? else {
        let failure = Failure::usage("a deploy needs a store that hosts share");
        return Err(failure.hint("name its members: `--etcd-endpoints https://host:2379`"));
    };
    let deploys = Deploys::new(store);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| Failure::io("start", &error))?;
    let words: Vec<&str> = arguments.program.words().iter().map(String::as_str).collect();
    let patience = arguments.wait.then(|| arguments.patience());
    let keep = arguments.keep.map(|keep| keep as usize);
    if keep.is_some() && words != ["gc"] {
        return Err(Failure::usage("`--keep` is for `gc`"));
    }
    arguments.refuse_without_effect(&words)?;
    if let Some(switch) = arguments.printing.given().filter(|_| !arguments.plan) {
        return Err(Failure::usage(format!("`{switch}` needs `--plan`")));
    }
    match words.as_slice() {
        ["list"] => runtime.block_on(history::list(session, &deploys)),
        ["show", id] => runtime.block_on(history::show(session, &deploys, id)),
        ["diff", from] => runtime.block_on(history::diff(session, &deploys, from, None)),
        ["diff", from, to] => runtime.block_on(history::diff(session, &deploys, from, Some(to))),
        ["rollback", id] => runtime.block_on(history::rollback(session, &deploys, id, arguments)),
        ["resume", id] => runtime.block_on(rollout::resume(session, &deploys, id, arguments)),
        ["finish", id] => runtime.block_on(rollout::finish(session, &deploys, id, patience)),
        ["gc"] => runtime.block_on(history::clear(session, &deploys, keep)),
        [word @ ("show" | "diff" | "rollback" | "resume" | "finish")] => Err(Failure::usage(format!(
            "`{word}` needs the number of a deploy; `list` shows them"
        ))),
        [word, .., surplus] if !["lang", "yaml"].contains(word) => Err(unknown(word, surplus)),
        [word] if is_mistyped(word) => Err(unknown(word, "")),
        _ => publish(session, arguments, &deploys, &runtime),
    }
}

/// Whether a word is nearly one of ours, and no program that there is.
fn is_mistyped(word: &str) -> bool {
    !WORDS.contains(&word)
        && did_you_mean(word, WORDS.iter().copied()).is_some()
        && !std::path::Path::new(word).exists()
}

/// The words before which others can stand.
const WORDS: &[&str] = &[
    "list", "show", "diff", "rollback", "resume", "finish", "gc", "lang", "yaml", "empty",
];

/// Says what is wrong with words that are more than a program.
fn unknown(word: &str, surplus: &str) -> Failure {
    if WORDS.contains(&word) {
        return Failure::usage(format!("unexpected argument `{}`", visible(surplus)));
    }
    let failure = Failure::usage(format!("`{}` is nothing that `deploy` does", visible(word)));
    match did_you_mean(word, WORDS.iter().copied()) {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// The number of a deploy, as somebody has written it.
fn number_of(id: &str) -> Result<u64, Failure> {
    let number = id.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| Failure::usage(format!("`{id}` is not the number of a deploy")))
}

fn publish(
    session: &Session,
    arguments: &Arguments,
    deploys: &Deploys,
    runtime: &tokio::runtime::Runtime,
) -> Result<u8, Failure> {
    let output = &session.output;
    // A plan publishes nothing, so the program need not be committed.
    let repository = match arguments.no_git || arguments.plan {
        true => None,
        false => Some(Repository::of(std::path::Path::new(
            arguments.program.words().last().map_or("", String::as_str),
        ))?),
    };
    let compilation = match arguments.program.words() == ["empty"] {
        true => None,
        false => {
            let input = arguments.program.parse(output)?;
            if input.model(&session.assembly, output)?.is_some() {
                return Err(Failure::usage("models cannot be deployed yet"));
            }
            let prefix = arguments.prefix.given();
            let policy = arguments.modules.policy(output);
            let compilation = session
                .program(&input, policy, prefix, false)?
                .fetch_and_compile(output)?;
            let found = errors_first(&compilation.diagnostics);
            output.diagnostics(&found, &compilation.shown_sources());
            if found.has_errors() {
                return Ok(exit_code::WRONG);
            }
            warn_of_foreign_text(&compilation.files().unwrap_or_default(), output);
            if let Some(repository) = &repository {
                repository.must_have(&compilation.program_files(String::new())?.places())?;
            }
            Some(compilation)
        }
    };
    if arguments.plan {
        return runtime.block_on(planning::plan(session, arguments, deploys, compilation.as_ref()));
    }
    runtime.block_on(publish_compiled(
        session,
        arguments,
        deploys,
        compilation.as_ref(),
        repository.as_ref(),
    ))
}

async fn publish_compiled(
    session: &Session,
    arguments: &Arguments,
    deploys: &Deploys,
    compilation: Option<&Compilation>,
    repository: Option<&Repository>,
) -> Result<u8, Failure> {
    let output = &session.output;
    let unread = |error| cannot("read the deploys", error);
    let newest = deploys.newest().await.map_err(unread)?;
    let id = newest + 1;
    let before = deploys.get(newest).await.map_err(unread)?;
    let commits = match repository {
        Some(repository) => {
            output.say(Importance::Info, format!("commit {}", repository.head));
            commits_after(repository, newest, before.as_ref(), arguments.force)?
        }
        None => Commits::default(),
    };
    let waves = Waves::of(arguments)?;
    let first = match &waves {
        Some(waves) => Some(waves.first(deploys, id).await?),
        None => None,
    };
    let upload = deploys.begin_upload().await.map_err(unread)?;
    let imposed = arguments.imposed();
    let record = match compilation {
        Some(compilation) => record_of(deploys, compilation, imposed).await?,
        None => Record::of(Frontend::Empty).with(imposed),
    };
    let added = deploys.add(id, &record, &commits, first.as_ref(), &upload).await;
    added.map_err(|why| {
        let failure = cannot("deploy", &why);
        match why {
            NotAdded::Raced(_) | NotAdded::Void => failure.hint("try again"),
            NotAdded::Chain(_) => {
                failure.hint("`--force` deploys it all the same, `--no-git` without commits")
            }
            NotAdded::Store(_) => failure,
        }
    })?;
    output.say(Importance::Notice, format!("success, id: {id}"));
    arrive(session, deploys, id, first, arguments).await
}

/// The commits that a deploy is between. Without `force` it must follow the one before.
fn commits_after(
    repository: &Repository,
    newest: u64,
    before: Option<&Stored>,
    force: bool,
) -> Result<Commits, Failure> {
    let commits = |previous| Commits {
        hash: Some(repository.head.clone()),
        previous,
    };
    let Some(before) = before.filter(|_| !force) else {
        return Ok(commits(None));
    };
    let Some(hash) = &before.hash else {
        let why = format!("deploy {newest} is of no commit, so nothing can follow it");
        return Err(
            cannot("deploy", why).hint("`--force` deploys it all the same, `--no-git` without commits")
        );
    };
    // A rollback keeps the commit that was newest, which can be published again.
    if *hash == repository.head && before.copy_of().is_none() {
        let why = format!("deploy {newest} is of this commit already");
        let failure = cannot("deploy", format!("there is nothing new to deploy: {why}"));
        return Err(failure.hint("`--force` deploys it all the same"));
    }
    repository.must_follow(hash, newest)?;
    Ok(commits(Some(hash.clone())))
}

/// Steers a deploy that was published to its hosts, and waits for them, as far as the command line says so.
async fn arrive(
    session: &Session,
    deploys: &Deploys,
    id: u64,
    first: Option<Rollout>,
    arguments: &Arguments,
) -> Result<u8, Failure> {
    match first {
        Some(first) => rollout::roll_out(session, deploys, id, first, arguments.patience()).await,
        None => {
            let patience = arguments.wait.then(|| arguments.patience());
            wait_for_members(session, deploys, id, patience).await
        }
    }
}

fn cannot(what: &str, why: impl std::fmt::Display) -> Failure {
    Failure::wrong(format!("failed to {what}")).because(why)
}

impl Arguments {
    /// Refuses switches that would do nothing with these words: what somebody wanted to be careful with is not done at once.
    fn refuse_without_effect(&self, words: &[&str]) -> Result<(), Failure> {
        let [word, ..] = words else { return Ok(()) };
        let (waits, in_waves) = match *word {
            "list" | "show" | "diff" | "gc" => (false, false),
            "resume" | "finish" => (true, *word == "resume"),
            "rollback" => (true, true),
            _ => return Ok(()),
        };
        let given = [
            (self.noop, "--noop"),
            (self.sema.is_some(), "--sema"),
            (self.no_autoedges, "--no-autoedges"),
            (self.no_autogroup, "--no-autogroup"),
            (self.plan, "--plan"),
            (self.wait && !waits, "--wait"),
            (!self.canary.is_empty() && *word != "rollback", "--canary"),
            (self.max_unavailable.is_some() && !in_waves, "--max-unavailable"),
        ];
        let Some((_, switch)) = given.iter().find(|(is_given, _)| *is_given) else {
            return Ok(());
        };
        Err(Failure::usage(format!("`{switch}` does nothing with `{word}`")))
    }

    fn patience(&self) -> Patience {
        Patience {
            until_right: self.wait_timeout,
            while_failing: self.grace,
        }
    }

    /// What holds for all resources of the deploy.
    fn imposed(&self) -> Imposed {
        Imposed {
            noop: self.noop,
            sema: self.sema.and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0),
            no_autoedges: self.no_autoedges,
            no_autogroup: self.no_autogroup,
        }
    }
}
