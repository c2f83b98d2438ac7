//! The deploys that there are: which, what is in them, how they differ; back to an earlier one, and away with old ones.

use std::collections::BTreeMap;
use std::time::Duration;

use setpoint_agent::deploys::{Deploys, Frontend, ListedFile, NotAdded, NotCleared, Record, Stored};
use setpoint_diagnostics::{visible, visible_lines};
use setpoint_programs::failure::Failure;
use setpoint_programs::report::Importance;

use super::rollout::Waves;
use super::waiting::{Members, shown};
use super::{Arguments, arrive, cannot, number_of};
use crate::exit_code;
use crate::session::Session;

/// How many deploys stay when nobody says.
const KEPT: usize = 10;

pub(super) async fn list(session: &Session, deploys: &Deploys) -> Result<u8, Failure> {
    let all = deploys.all().await.map_err(unread)?;
    let mut text = String::new();
    for stored in &all {
        let hash = stored.made_from(&all).unwrap_or("-");
        text.push_str(&format!(
            "{:>5}  {:40}  {}\n",
            stored.id,
            visible(hash),
            in_words(stored)
        ));
    }
    session.output.print(&text)?;
    Ok(exit_code::DONE)
}

fn unread(error: setpoint_world::StoreError) -> Failure {
    cannot("read the deploys", error)
}

fn in_words(stored: &Stored) -> String {
    let what = match &stored.record {
        Ok(record) => described(record),
        Err(why) => format!("damaged: {why}"),
    };
    let rollout = match &stored.rollout {
        None => String::new(),
        Some(Ok(rollout)) => format!("; {}", rollout.in_words(stored.is_steered)),
        Some(Err(why)) => format!("; nobody may take it: {why}"),
    };
    visible(&(what + &rollout)).into_owned()
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

/// The deploy with this number, or the newest one, which must be there.
pub(in crate::commands) async fn existing(deploys: &Deploys, id: &str) -> Result<Stored, Failure> {
    let number = match id {
        "newest" => deploys.newest().await.map_err(unread)?.max(1),
        id => number_of(id)?,
    };
    match deploys.get(number).await.map_err(unread)? {
        Some(stored) => Ok(stored),
        None => {
            let failure = Failure::wrong(format!("there is no deploy {number}"));
            Err(failure.hint("`setpoint deploy list` shows those that there are"))
        }
    }
}

async fn listed(deploys: &Deploys, stored: &Stored) -> Result<Vec<ListedFile>, Failure> {
    let id = stored.id;
    let failed = |why: &dyn std::fmt::Display| cannot(&format!("read deploy {id}"), why);
    let record = stored.record.as_ref().map_err(|why| failed(why))?;
    let Some(files) = &record.files else {
        return Ok(Vec::new());
    };
    deploys.listed_files(files).await.map_err(|why| failed(&why))
}

pub(super) async fn show(session: &Session, deploys: &Deploys, id: &str) -> Result<u8, Failure> {
    let stored = existing(deploys, id).await?;
    let id = stored.id;
    let mut text = format!("deploy {id}: {}\n", in_words(&stored));
    let hash = match stored.copy_of() {
        Some(original) => deploys.hash(original).await.map_err(unread)?,
        None => stored.hash.clone(),
    };
    if let Some(hash) = hash {
        text.push_str(&format!("commit {}\n", visible(&hash)));
    }
    let files = listed(deploys, &stored).await?;
    if !files.is_empty() {
        text.push_str("\nmode       bytes  file\n");
    }
    for file in files {
        let line = format!(
            "{:04o}  {:>10}  {}\n",
            file.mode,
            file.size(),
            visible(&file.path)
        );
        text.push_str(&line);
    }
    let members = Members::of(deploys).now(tokio::time::Instant::now()).await?;
    let (has, others): (Vec<_>, Vec<_>) = members.into_iter().partition(|member| {
        let report = member.report.as_ref().ok();
        report.is_some_and(|report| report.running == Some(id) || report.taken == Some(id))
    });
    if has.is_empty() {
        text.push_str(&format!("\non none of {} hosts\n", others.len()));
    } else {
        text.push_str(&format!(
            "\non {} of {} hosts\n",
            has.len(),
            has.len() + others.len()
        ));
        text.push_str(&shown(&has, &[]));
    }
    session.output.print(&text)?;
    Ok(exit_code::DONE)
}

/// Shows what another deploy would change, file by file.
pub(super) async fn diff(
    session: &Session,
    deploys: &Deploys,
    from: &str,
    to: Option<&str>,
) -> Result<u8, Failure> {
    let from = existing(deploys, from).await?;
    let to = match to {
        Some(to) => existing(deploys, to).await?,
        None => existing(deploys, &deploys.newest().await.map_err(unread)?.to_string()).await?,
    };
    let mut text = String::new();
    let (is, was) = (in_words(&to), in_words(&from));
    if is != was {
        text.push_str(&format!("-deploy {}: {was}\n+deploy {}: {is}\n", from.id, to.id));
    }
    let by_path = |files: Vec<ListedFile>| -> BTreeMap<String, ListedFile> {
        files.into_iter().map(|file| (file.path.clone(), file)).collect()
    };
    let mut was = by_path(listed(deploys, &from).await?);
    let is = by_path(listed(deploys, &to).await?);
    let mut both: Vec<(Option<ListedFile>, Option<ListedFile>)> = Vec::new();
    for (path, file) in is {
        both.push((was.remove(&path), Some(file)));
    }
    both.extend(was.into_values().map(|file| (Some(file), None)));
    both.sort_by(|a, b| path_of(a).cmp(path_of(b)));
    for pair in &both {
        text.push_str(&difference(deploys, pair).await?);
    }
    session.output.print(&text)?;
    Ok(exit_code::DONE)
}

fn path_of((was, is): &(Option<ListedFile>, Option<ListedFile>)) -> &str {
    let file = is.as_ref().or(was.as_ref());
    file.map_or("", |file| &file.path)
}

/// How a file differs in two deploys, in the form of `diff -u`; nothing where it does not.
async fn difference(
    deploys: &Deploys,
    pair: &(Option<ListedFile>, Option<ListedFile>),
) -> Result<String, Failure> {
    let path = visible(path_of(pair)).into_owned();
    let mut text = String::new();
    if let (Some(was), Some(is)) = pair {
        if was.mode != is.mode {
            text.push_str(&format!("mode of {path}: {:04o} → {:04o}\n", was.mode, is.mode));
        }
        if was.is_same(is) {
            return Ok(text);
        }
    }
    let mut contents = Vec::new();
    for file in [&pair.0, &pair.1] {
        contents.push(match file {
            None => Vec::new(),
            Some(file) => {
                let content = deploys.file_content(file).await;
                content.map_err(|why| cannot(&format!("read `{path}`"), why))?
            }
        });
    }
    let names = [(&pair.0, "a"), (&pair.1, "b")].map(|(file, side)| match file {
        Some(_) => format!("{side}{path}"),
        None => "/dev/null".to_owned(),
    });
    let [Ok(was), Ok(is)] = [0, 1].map(|at| std::str::from_utf8(&contents[at])) else {
        text.push_str(&format!(
            "{} and {} differ, and are no texts\n",
            names[0], names[1]
        ));
        return Ok(text);
    };
    let difference = similar::TextDiff::configure()
        .timeout(Duration::from_secs(5))
        .diff_lines(was, is);
    let lines = difference.unified_diff().header(&names[0], &names[1]).to_string();
    for line in visible_lines(&lines) {
        text.push_str(&line);
        text.push('\n');
    }
    Ok(text)
}

/// Publishes an earlier one again, for all hosts at once or in waves.
pub(super) async fn rollback(
    session: &Session,
    deploys: &Deploys,
    id: &str,
    arguments: &Arguments,
) -> Result<u8, Failure> {
    let waves = Waves::of(arguments)?;
    // From here on its files must not be cleared away.
    let upload = deploys.begin_upload().await.map_err(unread)?;
    let stored = existing(deploys, id).await?;
    let number = stored.id;
    let mut record = stored
        .record
        .map_err(|why| cannot(&format!("go back to deploy {number}"), why))?;
    record.copy_of = Some(record.copy_of.unwrap_or(number));
    let (id, first) = loop {
        let id = deploys.newest().await.map_err(unread)? + 1;
        let first = match &waves {
            Some(waves) => Some(waves.first(deploys, id).await?),
            None => None,
        };
        match deploys.add_unchained(id, &record, first.as_ref(), &upload).await {
            Ok(()) => break (id, first),
            Err(NotAdded::Raced(_)) => {}
            Err(why) => return Err(cannot("deploy", why)),
        }
    };
    session
        .output
        .say(Importance::Notice, format!("success, id: {id}"));
    arrive(session, deploys, id, first, arguments).await
}

/// Clears away all but the newest.
pub(super) async fn clear(session: &Session, deploys: &Deploys, keep: Option<usize>) -> Result<u8, Failure> {
    let keep = keep.unwrap_or(KEPT);
    let cleared = deploys.clear(keep).await.map_err(|why| {
        let is_busy = matches!(why, NotCleared::Busy | NotCleared::Lost);
        let failure = cannot("clear old deploys away", why);
        if is_busy {
            failure.hint("try again in a quarter of a minute")
        } else {
            failure
        }
    })?;
    let text = format!(
        "{} and {} of files that no other one has",
        counted(cleared.deploys, "deploy"),
        counted(cleared.values, "value")
    );
    session
        .output
        .say(Importance::Notice, format!("cleared away: {text}"));
    Ok(exit_code::DONE)
}

fn counted(count: usize, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}
