//! Who listens: one thread, with a task for each client, and one for each request of it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::os::unix::net::UnixListener as StdListener;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel as plain_channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use setpoint_diagnostics::visible;
use setpoint_engine::{DebugOutput, Engine, EventStream};
use setpoint_programs::Assembly;
use setpoint_programs::failure::{Failure, system_text};
use setpoint_programs::report::Reporter;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::{Notify, oneshot};
use tokio::task::{AbortHandle, JoinHandle, JoinSet, LocalSet, spawn_local};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::history::History;
use super::names::Names;
use super::protocol::{Answer, Ask, ErrorCode, Hello, LONGEST_REQUEST, PROTOCOL, Request, seconds};
use super::reading::parse;
use super::refusal::{Refusal, Stop};
use super::requests::answer;
use super::socket::{NAME, SocketFile, bind};
use crate::attachment::{AgentHandle, Attached, Attachment};
use crate::program_state::ProgramState;

/// Clients that may be connected at a time.
const MOST_CLIENTS: usize = 64;

/// Requests of one client that may be under way at a time.
const MOST_REQUESTS: usize = 32;

/// Lines that may wait to be written to a client. Who makes more of them waits.
const QUEUE: usize = 4;

/// A client that takes nothing for so long is given up.
const PATIENCE: Duration = Duration::from_secs(120);

/// Events are taken so long after the last ones: whoever follows is woken once for many.
const BREATH: Duration = Duration::from_millis(20);

/// How long the end waits for clients to be told of it.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// How long the end waits for the thread.
const LONGEST_END: Duration = Duration::from_secs(2);

/// The socket at which other processes ask.
pub(crate) struct ControlSocket {
    listener: StdListener,
    names: Names,
    debug: Arc<DebugOutput>,
    /// In seconds since 1970 UTC.
    started: f64,
}

impl ControlSocket {
    /// `started` is when the process began.
    pub(crate) fn new(
        listener: StdListener,
        assembly: &Assembly,
        debug: Arc<DebugOutput>,
        started: SystemTime,
    ) -> ControlSocket {
        ControlSocket {
            listener,
            names: Names::of(assembly),
            debug,
            started: seconds(started.duration_since(UNIX_EPOCH).unwrap_or_default()),
        }
    }
}

impl Attachment for ControlSocket {
    fn start(self: Box<Self>, agent: &AgentHandle) -> Result<Attached, Failure> {
        let served = Served {
            engine: agent.engine.clone(),
            program: agent.state.clone(),
            debug: self.debug,
            hello: Hello {
                protocol: PROTOCOL,
                program: "setpoint".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                pid: std::process::id(),
                hostname: agent.machine.hostname.clone(),
                started: self.started,
            },
            names: self.names,
        };
        let server = Server::start(self.listener, served)?;
        Ok(Attached::Guard(Box::new(server)))
    }
}

/// What is served.
pub(super) struct Served {
    pub engine: Engine,
    pub program: ProgramState,
    pub debug: Arc<DebugOutput>,
    /// Who answers.
    pub hello: Hello,
    /// Of whom debug output can be wanted.
    pub names: Names,
}

/// What all clients share.
pub(super) struct Shared {
    pub(super) served: Served,
    pub(super) history: RefCell<History>,
    /// There is more history, or it has come to its end.
    pub(super) news: Notify,
    pub(super) has_ended: Cell<bool>,
    /// The process ends: nobody rests any more.
    ending: CancellationToken,
    clients: Cell<usize>,
}

/// Makes the socket in a prefix whose lock is ours. When that is not possible it is said, and everything else goes on.
pub(crate) fn listen(prefix: &Path, reporter: &Reporter) -> Option<(StdListener, SocketFile)> {
    match bind(prefix) {
        Ok(bound) => Some(bound),
        Err(error) => {
            let why = system_text(&error);
            let path = prefix.join(NAME).display().to_string();
            let path = visible(&path);
            reporter.warning(format!(
                "the control socket {path} cannot be made, so `setpoint status` will not find this process: {why}"
            ));
            None
        }
    }
}

/// Serves the control socket of a process until it is dropped.
pub(super) struct Server {
    end: Option<oneshot::Sender<()>>,
    ended: Receiver<()>,
}

impl Server {
    /// Serves those who connect, on a thread of its own.
    ///
    /// # Errors
    /// When there can be no further thread.
    pub(super) fn start(listener: StdListener, served: Served) -> Result<Server, Failure> {
        let failed = |error: std::io::Error| Failure::io("serve the control socket", &error);
        let (end, ending) = oneshot::channel();
        let (alive, ended) = plain_channel::<()>();
        let events = served.engine.events();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(failed)?;
        let work = move || {
            let _alive = alive;
            let shared = Rc::new(Shared {
                served,
                history: RefCell::default(),
                news: Notify::new(),
                has_ended: Cell::new(false),
                ending: CancellationToken::new(),
                clients: Cell::new(0),
            });
            LocalSet::new().block_on(&runtime, async {
                // Within the runtime.
                if let Ok(listener) = UnixListener::from_std(listener) {
                    serve(listener, shared, events, ending).await;
                }
            });
        };
        let thread = std::thread::Builder::new().name("control".to_owned()).spawn(work);
        thread.map_err(failed)?;
        Ok(Server {
            end: Some(end),
            ended,
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            let _ = end.send(());
        }
        // Disconnected when the thread has ended.
        let _ = self.ended.recv_timeout(LONGEST_END);
    }
}

async fn serve(
    listener: UnixListener,
    shared: Rc<Shared>,
    events: EventStream,
    ending: oneshot::Receiver<()>,
) {
    let history = spawn_local(remember(shared.clone(), events));
    let mut clients: JoinSet<()> = JoinSet::new();
    tokio::pin!(ending);
    loop {
        while clients.try_join_next().is_some() {}
        tokio::select! {
            _ = &mut ending => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(clients.spawn_local(attend(shared.clone(), stream))),
                // Out of descriptors, say: others end, and then it goes on.
                Err(_) => sleep(Duration::from_millis(100)).await,
            },
        }
    }
    // The engine has ended; whoever follows it hears the last of it.
    shared.ending.cancel();
    let _ = timeout(LAST_WORDS, history).await;
    let _ = timeout(LAST_WORDS, async { while clients.join_next().await.is_some() {} }).await;
}

/// Keeps the newest events.
async fn remember(shared: Rc<Shared>, mut events: EventStream) {
    while let Some(event) = events.next().await {
        {
            let mut history = shared.history.borrow_mut();
            history.push(event);
            while let Some(event) = events.try_next() {
                history.push(event);
            }
        }
        shared.news.notify_waiters();
        // An end does not wait for the rest of the pause.
        let _ = timeout(BREATH, shared.ending.cancelled()).await;
    }
    shared.has_ended.set(true);
    shared.news.notify_waiters();
}

/// Counts a client as long as it lives.
struct Counted(Rc<Shared>);

impl Counted {
    fn new(shared: Rc<Shared>) -> Counted {
        shared.clients.set(shared.clients.get() + 1);
        Counted(shared)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.clients.set(self.0.clients.get() - 1);
    }
}

/// Serves a client from its first line to its end.
async fn attend(shared: Rc<Shared>, stream: UnixStream) {
    let counted = Counted::new(shared.clone());
    let own = rustix::process::geteuid().as_raw();
    let is_ours = stream
        .peer_cred()
        .is_ok_and(|peer| [own, 0].contains(&peer.uid()));
    let (from, to) = stream.into_split();
    let (lines, waiting) = channel(QUEUE);
    let writer = spawn_local(write(to, waiting));
    let refusal = if !is_ours {
        let message = "this process belongs to another user";
        Some(Refusal::new(ErrorCode::NotPermitted, message))
    } else if shared.clients.get() > MOST_CLIENTS {
        let message = format!("{MOST_CLIENTS} clients are connected already");
        Some(Refusal::new(ErrorCode::TooManyClients, message))
    } else {
        None
    };
    match refusal {
        Some(refusal) => drop(send(&lines, &refusal.answer()).await),
        None => converse(&shared, from, lines.clone(), &writer).await,
    }
    drop(lines);
    let _ = writer.await;
    drop(counted);
}

/// Takes the requests of a client until it sends no more, and answers those that are under way then.
async fn converse(shared: &Rc<Shared>, from: OwnedReadHalf, lines: Sender<String>, writer: &JoinHandle<()>) {
    let hello = Answer::Hello(shared.served.hello.clone());
    if send(&lines, &hello).await.is_err() {
        return;
    }
    let mut reader = BufReader::new(from);
    let mut requests = Requests::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = tokio::select! {
            read = read_line(&mut reader, &mut line) => read,
            // It can no longer be told anything.
            () = lines.closed() => break,
        };
        requests.tidy();
        match read {
            Read::Line => {}
            Read::End => break,
            Read::TooLong => {
                let message = format!("a line may have {LONGEST_REQUEST} bytes, and this has more");
                let _ = send(&lines, &Refusal::new(ErrorCode::TooLong, message).answer()).await;
                break;
            }
        }
        let said = match parse(&line) {
            Ok(Some(request)) => requests.take(shared, request, &lines),
            Ok(None) => Vec::new(),
            Err(refusal) => vec![refusal.answer()],
        };
        if send_all(&lines, &said).await.is_err() {
            break;
        }
    }
    // What only goes on until it is cancelled goes with the client; the rest is answered, if there is still somebody to hear it.
    let ended = requests.end_following();
    let _ = send_all(&lines, &ended).await;
    requests.finish(writer).await;
}

/// The requests of a client that are under way.
#[derive(Default)]
struct Requests {
    tasks: JoinSet<()>,
    by_id: BTreeMap<u64, UnderWay>,
}

struct UnderWay {
    task: AbortHandle,
    what: What,
    /// How far `events` has come.
    reached: Rc<Cell<u64>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Events { follows: bool },
    Other,
}

impl UnderWay {
    /// Ends it, and gives its last line.
    fn end(self, id: u64) -> Answer {
        self.task.abort();
        match self.what {
            What::Events { .. } => Answer::Events {
                id,
                newest: self.reached.get(),
            },
            What::Other => Refusal::new(ErrorCode::Cancelled, "the request was cancelled")
                .of(id)
                .answer(),
        }
    }
}

impl Requests {
    /// Begins with a request. Answers what is to be said at once.
    fn take(&mut self, shared: &Rc<Shared>, request: Request, lines: &Sender<String>) -> Vec<Answer> {
        let id = request.id;
        let refused = |code: ErrorCode, message: String| vec![Refusal::new(code, message).of(id).answer()];
        if let Ask::Cancel { of } = request.ask {
            let ended = self.by_id.remove(&of).map(|under_way| under_way.end(of));
            let was_under_way = ended.is_some();
            let answer = Answer::Cancel { id, was_under_way };
            return ended.into_iter().chain([answer]).collect();
        }
        if self.by_id.contains_key(&id) {
            return refused(
                ErrorCode::IdInUse,
                format!("a request with the id {id} is under way"),
            );
        }
        let (what, reached) = match request.ask {
            Ask::Events { since, follow, .. } => {
                let newest = || shared.history.borrow().newest();
                let begin = since.unwrap_or_else(|| if follow { newest() } else { 0 });
                (What::Events { follows: follow }, begin)
            }
            _ => (What::Other, 0),
        };
        if self.by_id.len() >= MOST_REQUESTS {
            return refused(
                ErrorCode::TooManyRequests,
                format!("{MOST_REQUESTS} requests are under way"),
            );
        }
        let (shared, lines) = (shared.clone(), lines.clone());
        let reached = Rc::new(Cell::new(reached));
        let so_far = reached.clone();
        let task = self.tasks.spawn_local(async move {
            if let Err(Stop::Refused(mut refusal)) = answer(&shared, request, &lines, &so_far).await {
                refusal.id.get_or_insert(id);
                let _ = send(&lines, &refusal.answer()).await;
            }
        });
        self.by_id.insert(id, UnderWay { task, what, reached });
        Vec::new()
    }

    fn tidy(&mut self) {
        while self.tasks.try_join_next().is_some() {}
        self.by_id.retain(|_, under_way| !under_way.task.is_finished());
    }

    /// Ends what would go on for ever, and gives the last lines.
    fn end_following(&mut self) -> Vec<Answer> {
        self.tidy();
        let follows = |under_way: &UnderWay| under_way.what == What::Events { follows: true };
        let ended = self.by_id.extract_if(.., |_, under_way| follows(under_way));
        ended.map(|(id, under_way)| under_way.end(id)).collect()
    }

    async fn finish(mut self, writer: &JoinHandle<()>) {
        while !writer.is_finished() && self.tasks.join_next().await.is_some() {}
    }
}

async fn send(lines: &Sender<String>, answer: &Answer) -> Result<(), ()> {
    let line = serde_json::to_string(answer).unwrap_or_default();
    lines.send(line).await.map_err(|_| ())
}

async fn send_all(lines: &Sender<String>, answers: &[Answer]) -> Result<(), ()> {
    for answer in answers {
        send(lines, answer).await?;
    }
    Ok(())
}

/// Writes lines to a client, until there are no more or it takes none.
async fn write(mut to: OwnedWriteHalf, mut lines: tokio::sync::mpsc::Receiver<String>) {
    let mut text = Vec::new();
    while let Some(line) = lines.recv().await {
        text.clear();
        push(&mut text, &line);
        // What is there already goes out in one write.
        while text.len() < 1 << 16
            && let Ok(line) = lines.try_recv()
        {
            push(&mut text, &line);
        }
        if !matches!(timeout(PATIENCE, to.write_all(&text)).await, Ok(Ok(()))) {
            return;
        }
    }
}

fn push(text: &mut Vec<u8>, line: &str) {
    text.extend_from_slice(line.as_bytes());
    text.push(b'\n');
}

enum Read {
    Line,
    /// The client sends no more.
    End,
    TooLong,
}

async fn read_line(reader: &mut BufReader<OwnedReadHalf>, line: &mut Vec<u8>) -> Read {
    let mut limited = reader.take(LONGEST_REQUEST as u64 + 1);
    match limited.read_until(b'\n', line).await {
        Ok(0) | Err(_) => Read::End,
        Ok(_) if line.ends_with(b"\n") => Read::Line,
        Ok(_) if line.len() > LONGEST_REQUEST => Read::TooLong,
        // The last line needs no end.
        Ok(_) => Read::Line,
    }
}
