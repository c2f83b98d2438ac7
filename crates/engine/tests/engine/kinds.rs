//! Small kinds.

#![allow(
    clippy::disallowed_methods,
    reason = "the machine here is a temporary directory"
)]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use setpoint_engine::{
    Apply, CancelCause, Failure, Handle, Identity, KindSpec, KindTask, Relations, Resource, Sends, Sort,
    Wanted, WantedOrder, WantedReach, Watch, async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::files::{AbsolutePath, Replace};
use setpoint_value::Value;

/// Files by path.
static FILE: Sort = Sort::exact("file").managed_by_one(setpoint_engine::Managed {
    noun: "path",
    aliases: |path| {
        vec![
            path.strip_suffix(b"/").unwrap_or(path).to_vec(),
            [path, b"/"].concat(),
        ]
    },
});

/// Something of which many may have the same.
static OWNER: Sort = Sort::partial("owner", |wanted, other| wanted == other);

/// A file with contents, the name being its path.
#[derive(Debug, Resource)]
#[resource(kind = "keep", receives, refreshable, autoedge, sends = Kept)]
pub(crate) struct Keep {
    /// Its contents; `panic`, `panic init` and the like do what they say, and `held by PIPE` is looked at for as long as somebody
    /// has that pipe open.
    content: String,
    /// Its path, if that is not the name.
    path: String,
    #[name]
    name: String,
}

/// What is sent.
#[derive(Sends)]
pub(crate) struct Kept {
    /// The contents.
    content: Option<Value>,
}

impl Keep {
    fn path(&self) -> &str {
        if self.path.is_empty() {
            &self.name
        } else {
            &self.path
        }
    }
}

#[async_trait]
impl Resource for Keep {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        if self.content == "invalid" {
            invalid.push(Invalid::parameter("content", "is said to be invalid"));
        }
        if let Some(pipe) = self.content.strip_prefix("held by ") {
            std::fs::read(pipe).unwrap();
        }
    }

    fn identities(&self) -> Vec<Identity> {
        vec![
            FILE.identity(self.name.as_bytes()),
            OWNER.identity(self.name.as_bytes()),
        ]
    }

    fn wanted(&self) -> Vec<Wanted> {
        let parents = self.name.match_indices('/').map(|(at, _)| &self.name[..at]).rev();
        vec![Wanted {
            order: WantedOrder::FoundFirst,
            identities: parents.map(|parent| FILE.identity(parent.as_bytes())).collect(),
            reach: WantedReach::First,
        }]
    }

    fn watches(&self) -> Vec<Watch> {
        assert_ne!(self.content, "panic watch");
        AbsolutePath::new(self.path())
            .map(Watch::path)
            .into_iter()
            .collect()
    }

    fn init(&mut self, _: &Handle) -> Result<(), Failure> {
        assert_ne!(self.content, "panic init");
        Ok(())
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        assert_ne!(self.content, "panic");
        if self.content == "fail" {
            return Err(Failure::new("do it").on(&self.name));
        }
        if apply.refresh_pending() && apply.drift("refresh", "pending", "done") {
            apply.log(setpoint_engine::Level::Info, "refreshed");
        }
        let is = std::fs::read_to_string(self.path()).ok();
        if is.as_deref() != Some(&self.content)
            && apply.drift_for_replacement("content", is.clone(), self.content.as_str())
        {
            let path =
                AbsolutePath::new(self.path()).map_err(|error| Failure::new("write").because(error))?;
            let request = Replace::bytes(path, self.content.clone()).mode(0o644);
            apply.replace(request, |_| None)?;
        }
        apply.send(Kept {
            content: Some(Value::str(self.content.as_str()).sensitive()),
        });
        Ok(())
    }
}

/// Takes its time, in milliseconds, without a thread.
#[derive(Debug, Resource)]
#[resource(kind = "wait", asynchronous)]
pub(crate) struct Wait {
    /// How long.
    milliseconds: u64,
    /// Does not listen when told to stop.
    stubborn: bool,
}

#[async_trait]
impl Resource for Wait {
    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let cancellation = apply.cancellation();
        let time = tokio::time::sleep(Duration::from_millis(self.milliseconds));
        let told = async {
            if self.stubborn {
                cancellation.interrupted().await;
            } else {
                cancellation.cancelled().await;
            }
        };
        tokio::select! {
            () = time => Ok(()),
            () = told => match cancellation.cause() {
                Some(CancelCause::Timeout(_)) => Err(Failure::cancelled("wait for so long")),
                _ => Err(Failure::cancelled("wait")),
            },
        }
    }
}

/// Watches by itself: an event every so many milliseconds, and after some of them the end.
#[derive(Debug, Resource)]
#[resource(kind = "tick")]
pub(crate) struct Tick {
    /// Between events.
    milliseconds: u64,
    /// Events until the loop ends; 0 for never.
    events: u32,
    /// Panics instead of ending.
    panics: bool,
}

#[async_trait]
impl Resource for Tick {
    async fn check_apply(&mut self, _: &mut Apply<'_>) -> Result<(), Failure> {
        Ok(())
    }

    fn watches(&self) -> Vec<Watch> {
        let (period, events, panics) = (Duration::from_millis(self.milliseconds), self.events, self.panics);
        vec![Watch::own(move |watcher| async move {
            (watcher.event)("start");
            let mut count = 0;
            loop {
                tokio::select! {
                    () = tokio::time::sleep(period) => {}
                    () = watcher.cancellation.cancelled() => return Ok(()),
                }
                count += 1;
                if count == events {
                    assert!(!panics, "in the loop");
                    return Ok(());
                }
                (watcher.event)("tick");
            }
        })]
    }
}

/// How many tasks of the kind `daemon` run.
pub(crate) static DAEMONS: AtomicU32 = AtomicU32::new(0);

/// A resource of a kind with a task of its own.
#[derive(Debug, Resource)]
#[resource(kind = "daemon", background = serve)]
pub(crate) struct Daemon {
    /// Nothing.
    nothing: String,
}

#[async_trait]
impl Resource for Daemon {
    async fn check_apply(&mut self, _: &mut Apply<'_>) -> Result<(), Failure> {
        Ok(())
    }

    fn init(&mut self, _: &Handle) -> Result<(), Failure> {
        assert_eq!(
            DAEMONS.load(Ordering::SeqCst),
            1,
            "the task is there before its resources"
        );
        Ok(())
    }

    fn cleanup(&mut self, _: &Handle) {
        assert_eq!(DAEMONS.load(Ordering::SeqCst), 1, "and goes after them");
    }
}

async fn serve(task: KindTask) -> Result<(), Failure> {
    DAEMONS.fetch_add(1, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(20)).await;
    (task.ready)();
    task.cancellation.cancelled().await;
    DAEMONS.fetch_sub(1, Ordering::SeqCst);
    Ok(())
}

/// A kind whose task fails.
#[derive(Debug, Resource)]
#[resource(kind = "crash", background = crash)]
pub(crate) struct Crash {
    /// Nothing.
    nothing: String,
}

#[async_trait]
impl Resource for Crash {
    async fn check_apply(&mut self, _: &mut Apply<'_>) -> Result<(), Failure> {
        Ok(())
    }
}

async fn crash(task: KindTask) -> Result<(), Failure> {
    (task.ready)();
    Err(Failure::new("open the socket"))
}

/// A parcel of files, which comes after those that it contains. What it contains is known to a list on the machine only.
#[derive(Debug, Resource)]
#[resource(kind = "parcel", asynchronous, autoedge, inquires)]
pub(crate) struct Parcel {
    /// The file that lists what it contains, a path a line, or `never`, which never answers, or `panic`. Each look at it adds to a file
    /// beside it, which ends in `.looks`.
    list: String,
    /// What else shall be; the list does not depend on it.
    state: String,
}

#[async_trait]
impl Resource for Parcel {
    async fn inquire(&self, handle: &Handle) -> Result<Relations, Failure> {
        assert_ne!(self.list, "panic");
        if self.list == "never" {
            std::future::pending::<()>().await;
        }
        let looks = format!("{}.looks", self.list);
        let before = std::fs::read_to_string(&looks).unwrap_or_default();
        std::fs::write(&looks, before + handle.program() + "\n").unwrap();
        let list = std::fs::read_to_string(&self.list)
            .map_err(|error| Failure::new("read").on(&self.list).because(error))?;
        Ok(Relations {
            identities: Vec::new(),
            wanted: vec![Wanted {
                order: WantedOrder::FoundAfter,
                identities: list.lines().map(|path| FILE.identity(path.as_bytes())).collect(),
                reach: WantedReach::Each,
            }],
        })
    }

    async fn check_apply(&mut self, _: &mut Apply<'_>) -> Result<(), Failure> {
        Ok(())
    }
}

pub(crate) static KINDS: &[KindSpec] = &[
    Keep::SPEC,
    Wait::SPEC,
    Tick::SPEC,
    Daemon::SPEC,
    Crash::SPEC,
    Parcel::SPEC,
];
