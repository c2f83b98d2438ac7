//! `deploy --plan`: what a deploy would change on each host.

use std::collections::BTreeMap;

use setpoint_agent::deploys::{Answer, Deploys, Frontend, Record, record_of};
use setpoint_diagnostics::visible;
use setpoint_plan::Plan;
use setpoint_programs::failure::Failure;
use setpoint_programs::languages::compilation::Compilation;
use tokio::time::Instant;

use super::super::plan::print;
use super::waiting::Members;
use super::{Arguments, cannot};
use crate::exit_code;
use crate::session::Session;

/// Proposes a deploy, and shows the plans of all members. Hosts with equal plans are shown together.
pub(super) async fn plan(
    session: &Session,
    arguments: &Arguments,
    deploys: &Deploys,
    compilation: Option<&Compilation>,
) -> Result<u8, Failure> {
    let deadline = Instant::now() + arguments.wait_timeout;
    let members = Members::of(deploys).now(deadline).await?;
    if members.is_empty() {
        return Err(Failure::wrong("no host is there that runs deploys"));
    }
    let hosts = members.into_iter().map(|member| member.host.clone());
    let answers = answers(arguments, deploys, compilation, hosts.collect(), deadline).await?;
    let mut groups: BTreeMap<String, (Vec<String>, Plan)> = BTreeMap::new();
    let mut errors: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (host, answer) in answers {
        let plan = match answer {
            Answer::Plan(text) => serde_json::from_str::<Plan>(&text)
                .map_err(|error| format!("the plan of the host cannot be read: {error}")),
            Answer::Error(why) => Err(why),
        };
        match plan {
            Ok(plan) => {
                let rows =
                    serde_json::to_string(&(&plan.rows, &plan.summary)).expect("it was read from JSON");
                groups
                    .entry(rows)
                    .or_insert_with(|| (Vec::new(), plan))
                    .0
                    .push(host);
            }
            Err(why) => errors.entry(why).or_default().push(host),
        }
    }
    let mut groups: Vec<(Vec<String>, Plan)> = groups.into_values().collect();
    groups.sort_by(|a, b| a.0.cmp(&b.0));
    let mut code = exit_code::DONE;
    for (place, (hosts, mut plan)) in groups.into_iter().enumerate() {
        code = worse(code, plan.exit_code);
        let header = visible(&hosts.join(", ")).into_owned();
        plan.host.name = hosts.join(", ");
        if place > 0 && !arguments.printing.is_data() {
            session.output.print("\n")?;
        }
        print(&session.output, plan, &header, &arguments.printing)?;
    }
    for (why, hosts) in errors {
        code = exit_code::WRONG;
        let text = format!("{}: {why}", hosts.join(", "));
        session.output.error(visible(&text));
    }
    Ok(match code {
        exit_code::CHANGED if !arguments.detailed_exitcode => exit_code::DONE,
        code => code,
    })
}

/// Asks these hosts for their plans, until the deadline.
async fn answers(
    arguments: &Arguments,
    deploys: &Deploys,
    compilation: Option<&Compilation>,
    hosts: Vec<String>,
    deadline: Instant,
) -> Result<BTreeMap<String, Answer>, Failure> {
    let failed = |error: &dyn std::fmt::Display| cannot("propose the deploy", error);
    let upload = deploys.begin_upload().await.map_err(|error| failed(&error))?;
    let record = match compilation {
        Some(compilation) => record_of(deploys, compilation, arguments.imposed()).await?,
        None => Record::of(Frontend::Empty),
    };
    let proposal = deploys.propose(&record, &upload).await;
    let proposal = proposal.map_err(|error| failed(&error))?;
    let mut answers = proposal.answers().await.map_err(|error| failed(&error))?;
    let is_answered =
        |by_host: &BTreeMap<String, Answer>| hosts.iter().all(|host| by_host.contains_key(host));
    while !is_answered(&answers.by_host) {
        if tokio::time::timeout_at(deadline, answers.next()).await.is_err() {
            break;
        }
    }
    proposal.withdraw().await;
    let seconds = arguments.wait_timeout.as_secs();
    for host in hosts {
        let silent = || Answer::Error(format!("no answer within {seconds} s"));
        answers.by_host.entry(host).or_insert_with(silent);
    }
    Ok(answers.by_host)
}

fn worse(a: u8, b: u8) -> u8 {
    match (a, b) {
        (exit_code::WRONG, _) | (_, exit_code::WRONG) => exit_code::WRONG,
        (exit_code::CHANGED, _) | (_, exit_code::CHANGED) => exit_code::CHANGED,
        _ => exit_code::DONE,
    }
}
