//! The thread that analyses and answers, one thing after the other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crossbeam_channel::Sender;
use lsp_server::{ErrorCode, Notification, Request, Response};
use serde_json::json;

use crate::documents::Snapshot;
use crate::features::{Answer, Client, Context, Published, ToldTokens, answer, publish};
use crate::programs::Programs;
use crate::queue::{Queue, Work};
use crate::setup::Setup;
use crate::transport::Outgoing;

pub(crate) struct Worker<'a> {
    queue: &'a Queue,
    setup: Arc<Setup>,
    client: Client,
    sender: Sender<Outgoing>,
    programs: Programs,
    published: Published,
    told_tokens: ToldTokens,
    /// Whether the user knows that something went wrong in here.
    has_apologised: bool,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(
        queue: &'a Queue,
        setup: Arc<Setup>,
        client: Client,
        sender: Sender<Outgoing>,
    ) -> Worker<'a> {
        Worker {
            queue,
            programs: Programs::new(setup.clone()),
            setup,
            client,
            sender,
            published: Published::default(),
            told_tokens: ToldTokens::default(),
            has_apologised: false,
        }
    }

    /// Works until the queue is closed.
    pub(crate) fn run(mut self) {
        loop {
            // Nobody waits for it while somebody waits for something else.
            if self.queue.is_idle() {
                self.programs.drop_outdated();
            }
            let Some(Work {
                request,
                snapshot,
                stop,
            }) = self.queue.next()
            else {
                return;
            };
            let mut context = Context {
                setup: &self.setup,
                client: &self.client,
                programs: &mut self.programs,
                told_tokens: &mut self.told_tokens,
                snapshot: &snapshot,
                stop: &stop,
            };
            match request {
                Some(Request { id, method, params }) => {
                    let work = AssertUnwindSafe(|| answer(&mut context, &method, params));
                    let answered = catch_unwind(work);
                    let refusal = |code: ErrorCode, message: String| {
                        Response::new_err(id.clone(), code as i32, message)
                    };
                    let is_cancelled = self.queue.finish();
                    let response = match answered {
                        Ok(Answer::Written(result)) => {
                            let _ = self.sender.send(Outgoing::Written { id, result });
                            continue;
                        }
                        Ok(Answer::Result(result)) => Response {
                            id,
                            response_result: Ok(result),
                        },
                        Ok(Answer::Refusal(message)) => refusal(ErrorCode::RequestFailed, message),
                        Ok(Answer::Invalid(message)) => refusal(ErrorCode::InvalidParams, message),
                        Ok(Answer::UnknownMethod) => refusal(
                            ErrorCode::MethodNotFound,
                            format!("there is no method `{method}`"),
                        ),
                        Ok(Answer::Stopped) if is_cancelled => {
                            refusal(ErrorCode::RequestCanceled, "taken back".to_owned())
                        }
                        Ok(Answer::Stopped) => refusal(
                            ErrorCode::ContentModified,
                            "the text was changed meanwhile".to_owned(),
                        ),
                        Err(_) => {
                            self.apologise();
                            refusal(ErrorCode::InternalError, format!("a bug in `{method}`"))
                        }
                    };
                    let _ = self.sender.send(response.into());
                }
                None => {
                    let published = &mut self.published;
                    let work = AssertUnwindSafe(|| publish(&mut context, published));
                    let news = catch_unwind(work);
                    self.queue.finish();
                    match news {
                        Ok(news) => self.tell(&snapshot, news),
                        Err(_) => self.apologise(),
                    }
                }
            }
        }
    }

    fn tell(&self, snapshot: &Snapshot, news: Vec<(String, Vec<lsp_types::Diagnostic>)>) {
        for (path, diagnostics) in news {
            let Some(uri) = crate::uri::uri(&path) else {
                continue;
            };
            let version = snapshot.get(&path).map(|document| document.version);
            let params = lsp_types::PublishDiagnosticsParams {
                uri,
                diagnostics,
                version,
            };
            let notification = Notification::new("textDocument/publishDiagnostics".to_owned(), params);
            let _ = self.sender.send(notification.into());
        }
    }

    /// What was known may be half of something: it is forgotten. The user is told once.
    fn apologise(&mut self) {
        self.programs.forget();
        if self.has_apologised {
            return;
        }
        self.has_apologised = true;
        let message = "Setpoint has a bug that this text brought to light. The language server goes on; what it says may be incomplete. \
                       The server's standard error says more; please report it.";
        let params = json!({ "type": 1, "message": message });
        let notification = Notification::new("window/showMessage".to_owned(), params);
        let _ = self.sender.send(notification.into());
    }
}
