//! `setpoint disk grow`: a file system takes all the room that its disk has.

use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;
use setpoint_diagnostics::visible;
use setpoint_host::files::{AbsolutePath, Entry};
use setpoint_host::processes::{Command, Exit, Finished, Processes, RunError, Stop};
use setpoint_programs::command_path::command_path;
use setpoint_programs::failure::Failure;
use setpoint_programs::report::Importance;

use super::block_device::{BlockDevice, Partition};
use crate::commands::setup::packages_of;
use crate::exit_code;
use crate::output::Output;

/// Let the partition, the encryption and the file system of a mount take all room of the disk
///
/// Prints the commands that do it; with --exec it runs them. The file system is ext4 or XFS, and stays mounted. The partition has to be the last one
/// of its disk.
#[derive(Debug, Args)]
pub(in crate::commands) struct Arguments {
    /// Where the file system is mounted
    #[arg(long, value_name = "DIR")]
    mount: String,

    /// Run the commands
    #[arg(long)]
    exec: bool,

    /// A file by which it is done only once: nothing is done if it is there, and it is made when everything has succeeded
    #[arg(long, value_name = "FILE")]
    done: Option<String>,
}

/// A command of the plan.
struct Step {
    program: &'static str,
    arguments: Vec<Argument>,
}

/// An argument of one.
enum Argument {
    Text(String),
    /// The path of an empty file behind this text. The null device is none to cryptsetup, which has to read a key.
    EmptyFile(&'static str),
}

impl From<String> for Argument {
    fn from(text: String) -> Argument {
        Argument::Text(text)
    }
}

impl From<&str> for Argument {
    fn from(text: &str) -> Argument {
        Argument::Text(text.to_owned())
    }
}

pub(super) fn run(output: &Output, arguments: &Arguments) -> Result<u8, Failure> {
    let mount = absolute("--mount", &arguments.mount)?;
    let done = arguments
        .done
        .as_ref()
        .map(|done| absolute("--done", done))
        .transpose()?;
    if let Some(done) = &done
        && is_there(done)?
    {
        output.say(Importance::Notice, format!("it is done already: {done} is there"));
        return Ok(exit_code::DONE);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("start", &error))?;
    runtime.block_on(async {
        let processes = Processes::new(command_path(output));
        let mounted = Mounted::find(&mount, &processes).await?;
        let steps = mounted.steps(&mount)?;
        if !arguments.exec {
            let lines: String = steps.iter().map(|step| format!("{step}\n")).collect();
            output.print(&lines)?;
            return Ok(exit_code::DONE);
        }
        for step in &steps {
            output.say(Importance::Notice, step.to_string());
            step.run(&processes, output).await?;
        }
        if let Some(done) = &done {
            let made = Entry::at(done).and_then(|entry| entry.append_durably(b"", 0o644));
            made.map_err(|error| {
                Failure::wrong("everything has grown, but that cannot be remembered").because(error)
            })?;
        }
        Ok(exit_code::DONE)
    })
}

fn absolute(option: &str, given: &str) -> Result<AbsolutePath, Failure> {
    let usage = |error| Failure::usage(format!("`{option}`: {error}: `{given}`"));
    let path = AbsolutePath::new(given).map_err(usage)?.cleaned();
    // As findmnt(8) names directories: without a slash at the end.
    let bare: PathBuf = path.as_path().components().collect();
    AbsolutePath::new(bare).map_err(usage)
}

/// Whether the file is there that says that it is done. A directory of it that is not there is found out before anything is done.
fn is_there(done: &AbsolutePath) -> Result<bool, Failure> {
    let stat = Entry::at(done).and_then(|entry| entry.stat());
    let stat = stat.map_err(|error| Failure::wrong("`--done` cannot be used").because(error))?;
    Ok(stat.is_some())
}

/// What is mounted.
#[derive(Debug, Deserialize)]
struct Mounted {
    target: String,
    source: String,
    fstype: String,
}

/// What findmnt(8) answers.
#[derive(Deserialize)]
struct Found {
    filesystems: Vec<Mounted>,
}

impl Mounted {
    async fn find(mount: &AbsolutePath, processes: &Processes) -> Result<Mounted, Failure> {
        let shown = mount.to_string();
        let step = Step {
            program: "findmnt",
            arguments: vec![
                "--json".into(),
                "--all".into(),
                "--mountpoint".into(),
                shown.clone().into(),
            ],
        };
        let finished = step.finish(processes).await?;
        let failed = || Failure::wrong(format!("failed to find what is mounted at {}", visible(&shown)));
        let text = finished.output.stdout();
        // It ends with 1, and says nothing, when it finds nothing.
        if text.iter().all(u8::is_ascii_whitespace) {
            let said = finished.output.stderr();
            let said = String::from_utf8_lossy(&said);
            return Err(match said.trim() {
                "" => failed()
                    .because("nothing is")
                    .hint("`findmnt` shows all mounts; one is named by its own directory"),
                said => failed().because(visible(said)),
            });
        }
        let found: Found = serde_json::from_slice(&text)
            .map_err(|error| failed().because(format!("the answer of `findmnt` cannot be read: {error}")))?;
        let count = found.filesystems.len();
        let mut found = found.filesystems.into_iter().filter(|one| one.target == shown);
        match (found.next(), count) {
            (Some(only), 1) => Ok(only),
            (Some(_), count) => Err(failed().because(format!(
                "{count} file systems are mounted there, one over the other"
            ))),
            (None, _) => Err(failed().because("the answer of `findmnt` is about something else")),
        }
    }

    /// What makes it grow.
    fn steps(&self, mount: &AbsolutePath) -> Result<Vec<Step>, Failure> {
        let failed = || Failure::wrong(format!("{} cannot be grown", visible(&mount.to_string())));
        let grow: &'static str = match self.fstype.as_str() {
            "ext4" => "resize2fs",
            "xfs" => "xfs_growfs",
            other => {
                let failure = failed().because(format!("its file system is {}", visible(other)));
                return Err(failure.hint("ext4 and XFS can be"));
            }
        };
        if let Some((whole, part)) = self.source.split_once('[') {
            let part = part.trim_end_matches(']');
            let failure = failed().because(format!(
                "only {} of {} is mounted there",
                visible(part),
                visible(whole)
            ));
            return Err(failure.hint("name where the whole file system is mounted"));
        }
        let device = BlockDevice::at(&self.source);
        let encrypted = device.below().map_err(|why| failed().because(why))?;
        let mut steps = Vec::new();
        if let Some(Partition { disk, number }) = encrypted.as_ref().unwrap_or(&device).partition() {
            steps.push(Step {
                program: "growpart",
                arguments: vec![disk.into(), number.into()],
            });
        }
        if encrypted.is_some() {
            steps.push(Step {
                program: "cryptsetup",
                // Nobody is asked for a password: the key is in the kernel, or it is an empty one.
                arguments: vec![
                    "resize".into(),
                    Argument::EmptyFile("--key-file="),
                    device.path().into(),
                ],
            });
        }
        steps.push(Step {
            program: grow,
            arguments: vec![match grow {
                "resize2fs" => device.path().into(),
                _ => mount.to_string().into(),
            }],
        });
        Ok(steps)
    }
}

impl Step {
    async fn finish(&self, processes: &Processes) -> Result<Finished, Failure> {
        let empty = tempfile::NamedTempFile::new();
        let empty = empty.map_err(|error| Failure::io("make a temporary file", &error))?;
        let arguments = self.arguments.iter().map(|argument| match argument {
            Argument::Text(text) => text.clone(),
            Argument::EmptyFile(before) => format!("{before}{}", empty.path().display()),
        });
        let command = Command::new(self.program, arguments);
        let finished = processes.run(&command, &Stop::default()).await;
        finished.map_err(|error| {
            let is_missing = matches!(error, RunError::Program(_));
            let failure = Failure::wrong(format!("failed to run `{self}`")).because(error);
            failure.hint_if(packages_of(self.program).filter(|_| is_missing))
        })
    }

    async fn run(&self, processes: &Processes, output: &Output) -> Result<(), Failure> {
        let finished = self.finish(processes).await?;
        let said = finished.output.text();
        let said = visible(said.trim()).into_owned();
        // growpart(1): so it says that there is no more room than the partition has.
        let is_large_enough =
            self.program == "growpart" && finished.exit == Exit::Code(1) && said.contains("NOCHANGE");
        if finished.exit.is_success() || is_large_enough {
            if !said.is_empty() {
                output.say(Importance::Info, said);
            }
            return Ok(());
        }
        let failure = Failure::wrong(format!("failed to run `{self}`")).because(finished.exit);
        Err(match said.is_empty() {
            true => failure,
            false => failure.because(said),
        })
    }
}

/// As one writes it in a shell.
impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.program)?;
        for argument in &self.arguments {
            let argument = match argument {
                Argument::Text(text) => text,
                Argument::EmptyFile(before) => {
                    write!(f, " {before}$(mktemp)")?;
                    continue;
                }
            };
            let is_plain = |sign: char| sign.is_alphanumeric() || "/._-=:+,@".contains(sign);
            match !argument.is_empty() && argument.chars().all(is_plain) {
                true => write!(f, " {argument}")?,
                false => write!(f, " '{}'", argument.replace('\'', "'\\''"))?,
            }
        }
        Ok(())
    }
}
