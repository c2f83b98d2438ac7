//! The running graph as a drawing: a file in the language of Graphviz, and a picture that one of its programs makes of it.
//!
//! Both are written anew after each new graph, whole or not at all. Whatever goes wrong with them is told and changes nothing else. The program
//! that draws works in a directory of our own, so that it is led nowhere by what others put beside the file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use setpoint_diagnostics::visible;
use setpoint_engine::{Engine, Event, EventKind, EventStream};
use setpoint_graph::{DesiredGraph, PrintedGraph, ResourceId, dot};
use setpoint_host::Host;
use setpoint_host::files::{AbsolutePath, Entry, FileError, Replace};
use setpoint_host::processes::{Command, Stop};
use setpoint_programs::failure::{Failure, system_text};
use setpoint_programs::report::Reporter;
use tokio::time::timeout;

use crate::attachment::{AgentHandle, Attached, Attachment};
use crate::program_state::ProgramState;

/// The programs of Graphviz that lay a graph out.
const FILTERS: [&str; 8] = [
    "dot",
    "neato",
    "twopi",
    "circo",
    "fdp",
    "sfdp",
    "patchwork",
    "osage",
];

/// How long drawing may take; large graphs take very long.
const DRAWN_WITHIN: Duration = Duration::from_secs(60);

/// Bytes that a picture may have.
const LARGEST_PICTURE: u64 = 256 << 20;

/// Where each new graph of a run is drawn, and with what.
pub struct Drawing {
    file: AbsolutePath,
    picture: AbsolutePath,
    /// None where what was named is no such program.
    filter: Option<&'static str>,
}

impl Drawing {
    /// Draws to `FILE@HOSTNAME` and `FILE@HOSTNAME.png`, with a program of Graphviz; none is the usual one.
    ///
    /// # Errors
    /// When there can be no such file.
    pub fn new(
        file: &Path,
        filter: Option<&str>,
        hostname: &str,
        reporter: &Reporter,
    ) -> Result<Drawing, Failure> {
        let beginning = file.as_os_str();
        if beginning.is_empty() || beginning.as_encoded_bytes().ends_with(b"/") {
            let why = format!("`--graphviz` names a file, and `{}` is none", file.display());
            return Err(Failure::usage(why));
        }
        // The system takes any name for a machine.
        let hostname = hostname.replace('/', "_");
        let named = |end: &str| {
            let mut name = beginning.to_os_string();
            name.push(format!("@{hostname}{end}"));
            let path = std::path::absolute(&name)
                .map_err(|error| Failure::io(format_args!("find `{}`", file.display()), &error))?;
            AbsolutePath::new(path).map_err(|error| Failure::usage(format!("{error}: `{}`", file.display())))
        };
        let wanted = filter.unwrap_or(FILTERS[0]);
        let filter = FILTERS.into_iter().find(|filter| *filter == wanted);
        if filter.is_none() {
            let all = FILTERS.join(", ");
            reporter.warning(format!(
                "no pictures are made: `{}` is no program of Graphviz that draws graphs; these are: {all}",
                visible(wanted)
            ));
        }
        Ok(Drawing {
            file: named("")?,
            picture: named(".png")?,
            filter,
        })
    }
}

impl Attachment for Drawing {
    /// Draws each graph that comes, until the engine has ended. Of graphs that come while one is drawn only the newest is.
    fn start(self: Box<Self>, agent: &AgentHandle) -> Result<Attached, Failure> {
        let drawer = Drawer {
            drawing: *self,
            workshop: agent.machine.prefix.as_path().to_path_buf(),
            host: agent.machine.host.clone(),
            reporter: agent.reporter.clone(),
            said: None,
        };
        // From now on, and not from when the task is first run.
        let events = agent.engine.events();
        let drawing = drawer.draw_all(agent.engine.clone(), agent.state.clone(), events);
        // It draws what there was last, and then ends with the engine.
        Ok(Attached::Finishes(agent.runtime.spawn(drawing)))
    }
}

/// Draws the graphs of a run.
struct Drawer {
    drawing: Drawing,
    /// Where the program that draws works; below it directories are made and removed.
    workshop: PathBuf,
    host: Arc<Host>,
    reporter: Reporter,
    /// The last warning, which is not repeated.
    said: Option<String>,
}

impl Drawer {
    async fn draw_all(mut self, engine: Engine, program: ProgramState, mut events: EventStream) {
        // What was missed may have been a new graph.
        let is_news =
            |event: &Event| matches!(event.what, EventKind::GraphSwapped { .. } | EventKind::Gap { .. });
        while let Some(event) = events.next().await {
            let mut has_changed = is_news(&event);
            while let Some(event) = events.try_next() {
                has_changed |= is_news(&event);
            }
            if !has_changed {
                continue;
            }
            let graph = match engine.graph().await {
                Some(graph) => graph,
                // The engine has ended already, and what it had is what the program gave.
                None => program.get().accepted.map(|accepted| accepted.graph),
            };
            match graph {
                None => {}
                Some(graph) => match self.draw(&graph).await {
                    Ok(()) => self.said = None,
                    Err(why) => self.say(why),
                },
            }
        }
    }

    fn say(&mut self, why: String) {
        if self.said.as_ref() != Some(&why) {
            self.reporter.warning(visible(&why));
            self.said = Some(why);
        }
    }

    async fn draw(&self, graph: &DesiredGraph) -> Result<(), String> {
        let text = text(graph);
        self.write(&self.drawing.file, text.clone().into_bytes())
            .await
            .map_err(|error| format!("the graph cannot be drawn: failed to {error}"))?;
        let Some(filter) = self.drawing.filter else {
            return Ok(());
        };
        let picture = self.picture(filter, &text).await;
        let picture = picture.map_err(|why| format!("there is no picture of the graph: {why}"))?;
        let written = self.write(&self.drawing.picture, picture).await;
        written.map_err(|error| format!("there is no picture of the graph: failed to {error}"))
    }

    /// What the program makes of a text.
    async fn picture(&self, filter: &'static str, text: &str) -> Result<Vec<u8>, String> {
        let failed =
            |error: std::io::Error| format!("failed to work below the prefix: {}", system_text(&error));
        let directory = tempfile::Builder::new()
            .prefix("graphviz-")
            .tempdir_in(&self.workshop)
            .map_err(failed)?;
        let (from, to) = (directory.path().join("graph"), directory.path().join("graph.png"));
        std::fs::write(&from, text).map_err(failed)?;
        let command = Command::new(filter, ["-Tpng", "-ograph.png", "graph"])
            .directory(directory.path().to_path_buf())
            .most_output(4096);
        let stop = Stop::default();
        let run = timeout(DRAWN_WITHIN, self.host.processes.run(&command, &stop)).await;
        let finished = match run {
            Err(_) => {
                return Err(format!(
                    "`{filter}` did not end within {} s",
                    DRAWN_WITHIN.as_secs()
                ));
            }
            Ok(Err(error)) => return Err(format!("failed to {error}")),
            Ok(Ok(finished)) => finished,
        };
        if !finished.exit.is_success() {
            let said = finished.output.text();
            let said = said.lines().next().unwrap_or_default().trim();
            let reason = if said.is_empty() {
                String::new()
            } else {
                format!(": {said}")
            };
            return Err(format!("`{filter}` ended with {}{reason}", finished.exit));
        }
        let size = std::fs::metadata(&to).map_err(failed)?.len();
        if size > LARGEST_PICTURE {
            return Err(format!("it would have {size} bytes"));
        }
        std::fs::read(&to).map_err(failed)
    }

    /// Puts a file in its place, on a thread that may wait.
    async fn write(&self, path: &AbsolutePath, bytes: Vec<u8>) -> Result<(), String> {
        let (path, host) = (path.clone(), self.host.clone());
        let written = tokio::task::spawn_blocking(move || replace(&host, path, bytes)).await;
        match written {
            Ok(written) => written,
            Err(error) => Err(format!("write: {error}")),
        }
    }
}

/// Readable by its owner alone: who called `sudo`, or who we are.
fn replace(host: &Host, path: AbsolutePath, bytes: Vec<u8>) -> Result<(), String> {
    let told = |error: FileError| error.to_string();
    let entry = Entry::at(&path).map_err(told)?;
    let found = entry.stat().map_err(told)?;
    if found.is_some_and(|found| found.is_link()) {
        return Err(format!(
            "write {}: a symbolic link is there",
            path.as_path().display()
        ));
    }
    let (owner, group) = who_called();
    let replace = Replace::bytes(path, bytes)
        .seen(entry, found)
        .mode(0o600)
        .owner(owner, group);
    host.committer.replace(replace).map(drop).map_err(told)
}

/// Whoever called `sudo`, if somebody did.
fn who_called() -> (Option<u32>, Option<u32>) {
    if !rustix::process::geteuid().is_root() {
        return (None, None);
    }
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    (number("SUDO_UID"), number("SUDO_GID"))
}

fn text(graph: &DesiredGraph) -> String {
    let groups = graph.resources.iter().map(|(id, resource)| {
        let members = resource.members.all();
        (
            id.clone(),
            members.iter().map(|member| member.id.clone()).collect(),
        )
    });
    let groups: Vec<(ResourceId, Vec<ResourceId>)> = groups
        .filter(|(_, members): &(_, Vec<_>)| !members.is_empty())
        .collect();
    dot::graph_dot(PrintedGraph {
        graph,
        automatic: &[],
        groups: &groups,
        unknown: &[],
        chains: false,
    })
}
