//! `setpoint deploy`: publishes a program to all hosts of a cluster.

use std::process::Command;
use std::time::Duration;

use clap::Args;
use setpoint_diagnostics::visible;
use setpoint_world::Watch;

use super::graph::errors_first;
use crate::arguments::{ModuleArguments, ProgramArguments, parse_seconds, parse_whole};
use crate::capabilities::ProgramFiles;
use crate::compilation::{Compilation, ProgramSource};
use crate::deploys::{Commits, Deployed, DeployedFile, Deploys, Frontend, NotAdded, Record};
use crate::failure::{Failure, exit_code};
use crate::imposed::Imposed;
use crate::membership::{MemberOfCluster, all_members};
use crate::model::ModelSettings;
use crate::modules::ModulePolicy;
use crate::output::Importance;
use crate::prefix::PrefixArguments;
use crate::process::warn_of_foreign_text;
use crate::session::Session;
use crate::store_arguments::StoreArguments;

/// Publish a program to all hosts of a cluster
///
/// Compiles the program and writes it, with its modules and `files/`, into the store that hosts share; those that run with `--seeds` take it at
/// once. Instead of a program: `empty` for one that describes nothing, `list` for the deploys that there are, `rollback ID` to publish an earlier one again.
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

    /// With --wait: for so many seconds at most
    #[arg(long, value_name = "S", requires = "wait", value_parser = parse_seconds, default_value = "300")]
    wait_timeout: Duration,

    /// On all hosts, repair nothing, only say what would be repaired
    #[arg(long)]
    noop: bool,

    /// On each host, let at most N resources run at the same time
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_whole::<i64>)]
    sema: Option<i64>,

    /// Make no automatic edges
    #[arg(long)]
    no_autoedges: bool,

    /// Group nothing
    #[arg(long)]
    no_autogroup: bool,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Result<u8, Failure> {
    let Some(store) = arguments.store.open()? else {
        let failure = Failure::usage("a deploy needs a store that hosts share");
        return Err(failure.hint("name its members: `--seeds https://host:2379`"));
    };
    let deploys = Deploys::new(store);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| Failure::io("start", &error))?;
    let words: Vec<&str> = arguments.program.words().iter().map(String::as_str).collect();
    let patience = arguments.wait.then_some(arguments.wait_timeout);
    match words.as_slice() {
        ["list"] => runtime.block_on(list(session, &deploys)),
        ["rollback"] => Err(Failure::usage(
            "`rollback` needs the number of a deploy; `list` shows them",
        )),
        ["rollback", id] => runtime.block_on(rollback(session, &deploys, id, patience)),
        _ => publish(session, arguments, &deploys, &runtime),
    }
}

fn publish(
    session: &Session,
    arguments: &Arguments,
    deploys: &Deploys,
    runtime: &tokio::runtime::Runtime,
) -> Result<u8, Failure> {
    let output = &session.output;
    let commits = match arguments.no_git {
        true => Commits::default(),
        false => commits(arguments.force)?,
    };
    let imposed = arguments.imposed();
    let compilation = match arguments.program.words() == ["empty"] {
        true => None,
        false => {
            if session.model(&arguments.program)?.is_some() {
                return Err(Failure::usage("models cannot be deployed yet"));
            }
            let prefix = arguments.prefix.given();
            let policy = arguments.modules.policy(output);
            let compilation = session
                .program(&arguments.program, policy, prefix, false)?
                .fetch_and_compile(output)?;
            let found = errors_first(&compilation.diagnostics);
            output.diagnostics(&found, &compilation.shown_sources());
            if found.has_errors() {
                return Ok(exit_code::WRONG);
            }
            warn_of_foreign_text(&compilation.files().unwrap_or_default(), output);
            Some(compilation)
        }
    };
    runtime.block_on(async {
        let newest = deploys
            .newest()
            .await
            .map_err(|error| cannot("read the deploys", error))?;
        if let Some(hash) = &commits.hash {
            output.say(Importance::Info, format!("commit {hash}"));
        }
        let id = newest + 1;
        let before = deploys
            .hash(newest)
            .await
            .map_err(|error| cannot("read the deploys", error))?;
        if before.is_some() && before == commits.hash && !arguments.force {
            let why = format!("deploy {newest} is of this commit already");
            let failure = cannot("deploy", format!("there is nothing new to deploy: {why}"));
            return Err(failure.hint("`--force` deploys it all the same"));
        }
        let record = match &compilation {
            Some(compilation) => record_of(deploys, compilation, imposed).await?,
            None => Record::of(Frontend::Empty).with(imposed),
        };
        match deploys.add(id, &record, &commits).await {
            Ok(()) => {
                output.say(Importance::Notice, format!("success, id: {id}"));
                wait_for_members(
                    session,
                    deploys,
                    id,
                    arguments.wait.then_some(arguments.wait_timeout),
                )
                .await
            }
            Err(why @ NotAdded::Raced(_)) => Err(cannot("deploy", why).hint("try again")),
            Err(why @ NotAdded::Chain(_)) => {
                Err(cannot("deploy", why)
                    .hint("`--force` deploys it all the same, `--no-git` without commits"))
            }
            Err(why) => Err(cannot("deploy", why)),
        }
    })
}

fn cannot(what: &str, why: impl std::fmt::Display) -> Failure {
    Failure::wrong(format!("failed to {what}")).because(why)
}

impl Arguments {
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

/// The record of a program, whose files are stored before.
pub(super) async fn record_of(
    deploys: &Deploys,
    compilation: &Compilation,
    imposed: Imposed,
) -> Result<Record, Failure> {
    let Some(compiled) = &compilation.compiled else {
        return Err(Failure::wrong("there is no program"));
    };
    let is_yaml = compilation.input.as_ref().is_some_and(|input| input.is_yaml);
    let files = ProgramFiles::new(
        compiled,
        &compilation.loader,
        compilation.modules_directory.as_deref(),
        String::new(),
    );
    let mut all = Vec::new();
    for (path, mode, content) in files.all(&compilation.sources) {
        let content = content.map_err(|why| cannot(&format!("read `{path}`"), why))?;
        let path = match is_yaml {
            // Its name says nothing any more, but that it is one.
            true if path != "/metadata.yaml" => YAML.to_owned(),
            _ => path,
        };
        all.push(DeployedFile { path, mode, content });
    }
    let stored = deploys.store_files(&all).await;
    let key = stored.map_err(|error| cannot("store the program's files", error))?;
    let frontend = if is_yaml { Frontend::Yaml } else { Frontend::Lang };
    let mut record = Record::of(frontend).with(imposed);
    record.files = Some(key);
    Ok(record)
}

/// Where a graph in YAML is in its deploy.
const YAML: &str = "/graph.yaml";

impl Deployed {
    /// The program that it is.
    pub(crate) fn source(&self, session: &Session, hostname: &str) -> ProgramSource {
        let directory = format!("{}/", self.directory.display());
        let (argument, is_yaml) = match self.record.frontend {
            Frontend::Lang => (directory.clone(), false),
            Frontend::Yaml => (format!("{directory}{}", &YAML[1..]), true),
            // It is code, which describes nothing.
            Frontend::Empty => ("# an empty deploy".to_owned(), false),
        };
        ProgramSource {
            argument,
            is_yaml,
            options: setpoint_mcl::CompileOptions {
                modules_directory: Some(format!("{directory}modules/")),
                skip_types: false,
            },
            library: session.assembly.library(hostname),
            lint: false,
            modules: ModulePolicy::default(),
            model_settings: ModelSettings::default(),
            imposed: self.record.imposed.clone(),
            deploy: Some(self.id),
            output: session.output.clone(),
        }
    }
}

async fn list(session: &Session, deploys: &Deploys) -> Result<u8, Failure> {
    let all = deploys
        .all()
        .await
        .map_err(|error| cannot("read the deploys", error))?;
    let mut text = String::new();
    for stored in all {
        let hash = stored.hash.as_deref().unwrap_or("-");
        let what = match &stored.record {
            Ok(record) => described(record),
            Err(why) => format!("damaged: {why}"),
        };
        text.push_str(&format!("{:>5}  {hash:40}  {what}\n", stored.id));
    }
    session.output.print(&text)?;
    Ok(exit_code::DONE)
}

fn described(record: &Record) -> String {
    let mut words = vec![match record.frontend {
        Frontend::Lang => "lang".to_owned(),
        Frontend::Yaml => "yaml".to_owned(),
        Frontend::Empty => "empty".to_owned(),
    }];
    let flags = [
        (record.imposed.noop, "noop"),
        (record.imposed.no_autoedges, "no automatic edges"),
        (record.imposed.no_autogroup, "no groups"),
    ];
    words.extend(
        flags
            .iter()
            .filter(|(is_set, _)| *is_set)
            .map(|(_, word)| (*word).to_owned()),
    );
    words.extend(record.imposed.sema.map(|sema| format!("{sema} at a time")));
    words.extend(record.copy_of.map(|id| format!("as {id}")));
    words.join(", ")
}

async fn rollback(
    session: &Session,
    deploys: &Deploys,
    id: &str,
    patience: Option<Duration>,
) -> Result<u8, Failure> {
    let number: u64 = id
        .parse()
        .map_err(|_| Failure::usage(format!("`{id}` is not the number of a deploy")))?;
    let found = deploys
        .get(number)
        .await
        .map_err(|error| cannot("read the deploys", error))?;
    let mut record = match found {
        Some(Ok(record)) => record,
        Some(Err(why)) => return Err(cannot(&format!("go back to deploy {number}"), why)),
        None => {
            let failure = Failure::wrong(format!("there is no deploy {number}"));
            return Err(failure.hint("`setpoint deploy list` shows those that there are"));
        }
    };
    record.copy_of = Some(record.copy_of.unwrap_or(number));
    let id = deploys
        .add_next(&record)
        .await
        .map_err(|error| cannot("deploy", error))?;
    session
        .output
        .say(Importance::Notice, format!("success, id: {id}"));
    wait_for_members(session, deploys, id, patience).await
}

/// Waits until every member has a deploy right, or does not get it right, and shows how they stand.
async fn wait_for_members(
    session: &Session,
    deploys: &Deploys,
    id: u64,
    patience: Option<Duration>,
) -> Result<u8, Failure> {
    let Some(patience) = patience else {
        return Ok(exit_code::DONE);
    };
    let store = deploys.store();
    let deadline = tokio::time::Instant::now() + patience;
    let mut watch: Option<Watch> = None;
    let (members, is_over) = loop {
        let members = match store.read(&[all_members()]).await {
            Ok(found) => {
                watch.get_or_insert_with(|| store.watch(all_members(), found.revision));
                found.all().filter_map(MemberOfCluster::of).collect()
            }
            Err(error) if error.is_passing() && tokio::time::Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(500)).await;
                continue;
            }
            Err(error) => return Err(cannot("see how the members stand", error)),
        };
        let members: Vec<MemberOfCluster> = members;
        if members.iter().all(|member| member.verdict(id).is_some()) {
            break (members, true);
        }
        let changed = async {
            match &mut watch {
                Some(watch) => drop(watch.next().await),
                None => std::future::pending().await,
            }
        };
        if tokio::time::timeout_at(deadline, changed).await.is_err() {
            break (members, false);
        }
    };
    session.output.print(&shown(&members))?;
    if members.is_empty() {
        session.output.warning("no host is there that runs deploys");
    }
    let is_right = members.iter().all(|member| member.verdict(id) == Some(true));
    Ok(match (is_over, is_right) {
        (_, true) => exit_code::DONE,
        (true, false) => exit_code::WRONG,
        (false, false) => exit_code::UNDER_WAY,
    })
}

/// Members in a table.
pub(super) fn shown(members: &[MemberOfCluster]) -> String {
    if members.is_empty() {
        return String::new();
    }
    let width = members
        .iter()
        .map(|member| member.host.len())
        .max()
        .unwrap_or(0)
        .max(4);
    let mut text = format!("{:width$}  deploy  state\n", "host");
    for MemberOfCluster { host, report } in members {
        let (deploy, state, line) = match report {
            Ok(report) => {
                let running = report.running.map_or_else(|| "-".to_owned(), |id| id.to_string());
                (running, report.state.text(), report.line.as_str())
            }
            Err(why) => ("?".to_owned(), "?", why.as_str()),
        };
        let row = format!("{host:width$}  {deploy:>6}  {state:12}  {}", visible(line));
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

/// The commit that the working directory shows, and the one before it, which is not compared under `force`.
fn commits(force: bool) -> Result<Commits, Failure> {
    let git = |arguments: &[&str]| -> Result<String, Failure> {
        let ran = Command::new("git").args(arguments).output();
        let ran =
            ran.map_err(|error| Failure::io("run `git`", &error).hint("`--no-git` deploys without commits"))?;
        match ran.status.success() {
            true => Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned()),
            false => {
                let said = String::from_utf8_lossy(&ran.stderr);
                let said = said.trim().trim_start_matches("fatal: ").to_owned();
                let failure =
                    Failure::wrong("the commit that is to be deployed cannot be found").because(said);
                Err(failure.hint("a deploy is made from a git repository; `--no-git` deploys without one"))
            }
        }
    };
    let changed = git(&["status", "--porcelain"])?;
    if let Some(first) = changed.lines().next() {
        let others = changed.lines().count() - 1;
        let more = if others > 0 {
            format!(", and {others} more")
        } else {
            String::new()
        };
        let failure = Failure::wrong("the working directory has changes that are in no commit");
        let failure = failure.because(format!("{}{more}", first.trim()));
        return Err(failure.hint("commit them, or deploy with `--no-git`"));
    }
    let log = git(&["log", "-n", "2", "--format=%H"])?;
    let mut commits = log.lines().map(str::to_owned);
    Ok(Commits {
        hash: commits.next(),
        previous: commits.next().filter(|_| !force),
    })
}
