//! Small kinds.

#![allow(
    clippy::disallowed_methods,
    reason = "the machine here is a temporary directory"
)]

use std::io::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use setpoint_engine::{
    Apply, CancelCause, Failure, Grouping, Handle, Identity, KindSpec, KindTask, Members, Relations,
    Resource, Sends, Sort, Wanted, WantedOrder, WantedReach, Watch, async_trait,
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
        let looks = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(format!("{}.looks", self.list));
        let line = format!("{}\n", handle.program());
        looks.unwrap().write_all(line.as_bytes()).unwrap();
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

/// A file with contents. All that are applied together are written in one transaction, which is noted in a file beside them; what is said
/// to be `unknown` fails it.
#[derive(Debug, Resource)]
#[resource(kind = "bulk", receives, refreshable, autogroup, autoedge, sends = Kept)]
pub(crate) struct Bulk {
    /// Its contents.
    content: String,
    #[name]
    name: String,
    #[state]
    members: Members,
}

impl Bulk {
    fn differs(&self, apply: &mut Apply<'_>) -> bool {
        let is = std::fs::read_to_string(&self.name).ok();
        let content = Some(Value::str(self.content.as_str()));
        apply.send(Kept { content });
        is.as_deref() != Some(&self.content) && apply.drift("content", is, self.content.as_str())
    }
}

#[async_trait]
impl Resource for Bulk {
    fn grouping(&self) -> Grouping {
        Grouping::with_equals("bulk", "")
    }

    fn members(&mut self) -> Option<&mut Members> {
        Some(&mut self.members)
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let mut wrong = Vec::new();
        if self.differs(apply) {
            wrong.push(&*self);
        }
        for member in self.members.iter() {
            let bulk = member.get::<Bulk>().expect("only this kind joins it");
            if bulk.differs(&mut apply.member(member)) {
                wrong.push(bulk);
            }
        }
        let unknown: Vec<_> = self
            .members
            .of::<Bulk>()
            .filter(|(_, bulk)| bulk.content == "unknown")
            .collect();
        for (member, _) in &unknown {
            apply.member_failed(
                member.id(),
                Failure::new("find it").because("there is no such thing"),
            );
        }
        if let Some((member, _)) = unknown.first() {
            let failure = Failure::new("find it").because("there is no such thing");
            return Err(failure.of_member(member.id()));
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let mut names = Vec::new();
        for bulk in &wrong {
            std::fs::write(&bulk.name, &bulk.content).expect("the directory is there");
            let name = std::path::Path::new(&bulk.name).file_name().unwrap_or_default();
            names.push(name.to_string_lossy().into_owned());
        }
        let log = std::path::Path::new(&self.name).with_file_name("transactions");
        let before = std::fs::read_to_string(&log).unwrap_or_default();
        std::fs::write(log, format!("{before}{}\n", names.join(" "))).expect("the directory is there");
        Ok(())
    }
}

/// Takes in books, of which each does by itself what it does.
#[derive(Debug, Resource)]
#[resource(kind = "shelf", autogroup, asynchronous, refreshable)]
pub(crate) struct Shelf {
    /// Nothing.
    nothing: String,
    #[name]
    name: String,
    #[state]
    members: Members,
}

#[async_trait]
impl Resource for Shelf {
    fn grouping(&self) -> Grouping {
        Grouping::none()
            .taking("shelf", "")
            .taking("shelf", self.name.clone())
    }

    fn members(&mut self) -> Option<&mut Members> {
        Some(&mut self.members)
    }

    fn init(&mut self, _: &Handle) -> Result<(), Failure> {
        let open = self.members.of::<Book>().filter(|(_, book)| book.is_open).count();
        assert_eq!(open, self.members.len(), "members are initialised before");
        Ok(())
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        self.members.check_apply(apply).await;
        Ok(())
    }
}

/// A file with contents, in a shelf.
#[derive(Debug, Resource)]
#[resource(kind = "shelf:book", receives, autogroup, asynchronous)]
pub(crate) struct Book {
    /// Its contents; `endless` waits until it is told to stop at once, `fail` fails, and `no init` cannot begin as long as its file is there.
    content: String,
    /// The shelf in which it is to be.
    shelf: String,
    #[name]
    name: String,
    #[state]
    is_open: bool,
}

impl Book {
    fn mark(&self) -> String {
        format!("{}.open", self.name)
    }
}

#[async_trait]
impl Resource for Book {
    fn grouping(&self) -> Grouping {
        Grouping::none()
            .joining("shelf", self.shelf.clone())
            .useless_alone("is read by nobody, because there is no shelf for it")
    }

    fn init(&mut self, handle: &Handle) -> Result<(), Failure> {
        assert_eq!(handle.id().name.as_ref(), self.name);
        if self.content == "no init" && std::path::Path::new(&self.name).exists() {
            return Err(Failure::new("open").on(&self.name));
        }
        assert!(
            !std::path::Path::new(&self.mark()).exists(),
            "it is open only once"
        );
        std::fs::write(self.mark(), "").expect("the directory is there");
        self.is_open = true;
        Ok(())
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        match &*self.content {
            "endless" => {
                apply.cancellation().interrupted().await;
                return Err(Failure::cancelled("wait"));
            }
            "fail" => return Err(Failure::new("bind it")),
            _ => {}
        }
        let is = std::fs::read_to_string(&self.name).ok();
        if is.as_deref() != Some(&self.content) && apply.drift("content", is, self.content.as_str()) {
            std::fs::write(&self.name, &self.content).expect("the directory is there");
            apply.log(setpoint_engine::Level::Info, format!("wrote {}", self.content));
        }
        Ok(())
    }

    fn cleanup(&mut self, _: &Handle) {
        std::fs::remove_file(self.mark()).expect("init made it");
    }
}

pub(crate) static KINDS: &[KindSpec] = &[
    Bulk::SPEC,
    Shelf::SPEC,
    Book::SPEC,
    Keep::SPEC,
    Wait::SPEC,
    Tick::SPEC,
    Daemon::SPEC,
    Crash::SPEC,
    Parcel::SPEC,
];
