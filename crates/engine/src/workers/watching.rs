//! Arming and ending the watches of a vertex: paths at the hub, what other hubs watch, loops of a kind's own as tasks, intervals by the machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use setpoint_host::files::AbsolutePath;
use setpoint_host::watch::{Depth, Follow, WatchHandle, WatchToken};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::execute::{Cell, Job};
use super::inbox::{Message, WatchId};
use super::pool::Lane;
use crate::machine::Armed;
use crate::panics::{guarded, guarded_future};
use crate::{
    Failure, Handle, HubGuard, HubWatch, HubWatcher, Instance, Level, LogLine, OwnWatch, Watch, Watcher,
};

/// The watches of one vertex.
#[derive(Default)]
pub(super) struct Watches {
    /// The arming that is wanted; what an earlier one brings is dropped.
    pub(super) arming: u32,
    armed: ArmedWatches,
    /// What the paths of these watch, unless there is something beside paths.
    declared: Option<Vec<DeclaredPath>>,
    loops: Vec<Loop>,
    /// Loops that were told to end.
    ending: Vec<JoinHandle<()>>,
}

/// What ends watches when it is dropped.
#[derive(Default)]
pub(super) struct ArmedWatches {
    paths: Vec<WatchHandle>,
    hubs: Vec<HubGuard>,
}

impl ArmedWatches {
    pub(super) fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.hubs.is_empty()
    }
}

type DeclaredPath = (AbsolutePath, Depth, Follow);

struct Loop {
    cancellation: CancellationToken,
    task: JoinHandle<()>,
}

impl Watches {
    /// Ends them. The answer is for somebody who has the time to drop it.
    pub(super) fn end(&mut self) -> ArmedWatches {
        for ended in self.loops.drain(..) {
            ended.cancellation.cancel();
            self.ending.push(ended.task);
        }
        self.declared = None;
        std::mem::take(&mut self.armed)
    }

    /// The first path that is watched, if nothing else is.
    pub(super) fn first_path(&self) -> Option<&AbsolutePath> {
        self.declared.as_ref()?.first().map(|(path, ..)| path)
    }

    /// Loops that were told to end, to be waited for.
    pub(super) fn take_ending(&mut self) -> Vec<JoinHandle<()>> {
        self.ending.retain(|task| !task.is_finished());
        std::mem::take(&mut self.ending)
    }
}

/// What is told when all parts of a watch are armed.
struct Arming {
    watch: WatchId,
    /// Loops and hubs whose first event has not come.
    left: AtomicUsize,
    armed: Armed,
    /// Only the first arming is an answer to the machine.
    answers: bool,
}

impl Arming {
    /// Counts one more part. The answer to the machine, if that was the last.
    fn one_armed(&self) -> Option<Message> {
        let is_last = self.left.fetch_sub(1, Ordering::AcqRel) == 1;
        (is_last && self.answers).then_some(Message::Armed(self.watch, Ok(self.armed)))
    }
}

/// Arms everything that an instance declares, and answers.
pub(super) fn arm(shared: &Arc<Shared>, cell: &Cell, watch: WatchId, instance: &Instance, lane: &Lane<Job>) {
    if !shared.watches {
        return lane.answer(Message::Armed(watch, Ok(Armed::default())));
    }
    let declared = guarded("say what to watch", || instance.resource().watches());
    let armed = declared.and_then(|declared| build(shared, cell, watch, instance, declared, Some(lane)));
    match armed {
        Ok(armed) => armed.into_iter().for_each(|message| lane.answer(message)),
        Err(failure) => lane.answer(Message::Armed(watch, Err(failure))),
    }
}

/// Arms what an instance declares now in place of what it declared before; it stays armed. What changed before the new
/// watches were there is found by one more run. Where nothing else is declared, nothing happens, and no further run is needed.
pub(super) fn rearm(shared: &Arc<Shared>, cell: &Cell, watch: WatchId, instance: &Instance) {
    if !shared.watches {
        return;
    }
    let declared = guarded("say what to watch", || instance.resource().watches());
    if let Ok(declared) = &declared
        && let Some(paths) = only_paths(declared)
        && cell.watches().declared.as_ref() == Some(&paths)
    {
        return;
    }
    match declared.and_then(|declared| build(shared, cell, watch, instance, declared, None)) {
        Ok(_) => shared.inbox.push(Message::Rearmed(watch)),
        Err(failure) => shared.inbox.push(Message::WatchFailed(watch, failure)),
    }
}

/// What is watched, if it is paths and nothing else.
fn only_paths(declared: &[Watch]) -> Option<Vec<DeclaredPath>> {
    let path = |watch: &Watch| match watch {
        Watch::Path { path, depth, follow } => Some((path.clone(), *depth, *follow)),
        Watch::Tick(_) | Watch::Own(_) | Watch::Hub(_) => None,
    };
    declared.iter().map(path).collect()
}

fn build(
    shared: &Arc<Shared>,
    cell: &Cell,
    watch: WatchId,
    instance: &Instance,
    declared: Vec<Watch>,
    // Of whom the machine waits for an answer.
    lane: Option<&Lane<Job>>,
) -> Result<Option<Message>, Failure> {
    let declared_paths = only_paths(&declared);
    let mut made = ArmedWatches::default();
    let mut own: Vec<OwnWatch> = Vec::new();
    let mut hubs: Vec<HubWatch> = Vec::new();
    let mut tick: Option<Duration> = None;
    for declared in declared {
        match declared {
            Watch::Path { path, depth, follow } => {
                let handle = shared
                    .subscriber
                    .watch(&path, depth, follow, WatchToken(watch.token()))
                    .map_err(|error| Failure::new("watch").on(&path).because(error))?;
                made.paths.push(handle);
            }
            Watch::Tick(period) => tick = Some(tick.map_or(period, |other| other.min(period))),
            Watch::Own(watch) => own.push(watch),
            Watch::Hub(watch) => hubs.push(watch),
        }
    }
    let arming = Arc::new(Arming {
        watch,
        // One for ourselves, given back when all of them are known.
        left: AtomicUsize::new(own.len() + hubs.len() + 1),
        armed: Armed {
            interval: tick,
            ticks: tick.is_some(),
        },
        answers: lane.is_some(),
    });
    if let Some(lane) = lane.filter(|_| !own.is_empty() || !hubs.is_empty()) {
        // What a loop or a hub says must not overtake what was answered before it began.
        lane.hand_over();
    }
    for hub in hubs {
        let begun = guarded("begin to watch", || begin_hub(shared, cell, hub, &arming));
        made.hubs.push(begun.and_then(|begun| begun)?);
    }
    let mut watches = cell.watches();
    if watches.arming != watch.arming {
        // It was ended meanwhile.
        return Ok(None);
    }
    let replaced = watches.end();
    watches.armed = made;
    watches.declared = declared_paths;
    let secret = instance.has_sensitive();
    let loops = own
        .into_iter()
        .map(|own| start_loop(shared, cell, own, &arming, secret));
    watches.loops = loops.collect();
    drop(watches);
    drop(replaced);
    Ok(arming.one_armed())
}

fn start_loop(
    shared: &Arc<Shared>,
    cell: &Cell,
    own: OwnWatch,
    arming: &Arc<Arming>,
    has_sensitive: bool,
) -> Loop {
    let cancellation = CancellationToken::new();
    let watch = arming.watch;
    let handle = shared.handle(&cell.resource.id);
    let watcher = Watcher {
        has_sensitive,
        cancellation: cancellation.clone(),
        event: event(shared, arming),
        log: log(shared, watch, &handle),
        handle,
    };
    let (shared, token) = (shared.clone(), cancellation.clone());
    let task = shared.runtime.clone().spawn(async move {
        let ended = guarded_future("watch", async move { own.start(watcher).await }).await;
        if token.is_cancelled() {
            return;
        }
        let failure = match ended.and_then(|ended| ended) {
            Ok(()) => Failure::new("go on watching: the watch ended"),
            Err(failure) => failure,
        };
        shared.inbox.push(Message::WatchFailed(watch, failure));
    });
    Loop { cancellation, task }
}

fn begin_hub(
    shared: &Arc<Shared>,
    cell: &Cell,
    hub: HubWatch,
    arming: &Arc<Arming>,
) -> Result<HubGuard, Failure> {
    let watch = arming.watch;
    let handle = shared.handle(&cell.resource.id);
    let failing = shared.clone();
    hub.begin(HubWatcher {
        event: event(shared, arming),
        failed: Box::new(move |failure| failing.inbox.push(Message::WatchFailed(watch, failure))),
        log: log(shared, watch, &handle),
        handle,
    })
}

/// What tells events; the first is the arming.
fn event(shared: &Arc<Shared>, arming: &Arc<Arming>) -> Box<dyn Fn(&str) + Send + Sync> {
    let first = AtomicBool::new(true);
    let (shared, arming) = (shared.clone(), arming.clone());
    Box::new(move |what| {
        if first.swap(false, Ordering::AcqRel) && arming.answers {
            shared.inbox.push_all(arming.one_armed());
        } else {
            shared
                .inbox
                .push(Message::WatchEvent(arming.watch, Some(what.into())));
        }
    })
}

/// What logs lines of a watch.
fn log(shared: &Arc<Shared>, watch: WatchId, handle: &Handle) -> LogLine {
    let (shared, handle) = (shared.clone(), handle.clone());
    Box::new(move |level, message| {
        if level == Level::Debug && !handle.debug() {
            return;
        }
        shared
            .inbox
            .push(Message::WatchLog(watch, level, message.to_owned()));
    })
}
