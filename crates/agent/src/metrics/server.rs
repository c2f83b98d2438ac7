//! The server at which the figures are asked for: one small page, over HTTP/1.
//!
//! Who asks need not be well-meaning. There are few connections at a time, and the oldest gives way to a new one; each serves one request, within a
//! limited time and with a small head. So nobody who is slow, silent or many holds up others, or takes memory.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use setpoint_programs::failure::{Failure, system_text};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::exposition::{Exposition, Format};

/// Connections at a time.
const CONNECTIONS: usize = 16;

/// How long the head of a request may take, and a connection in all.
const HEAD_WITHIN: Duration = Duration::from_secs(5);
const CONNECTION_WITHIN: Duration = Duration::from_secs(15);

/// Bytes and lines that the head of a request may have.
const LONGEST_HEAD: usize = 8 * 1024;
const MOST_HEADERS: usize = 64;

/// How long to wait when the system gives no connection: it lacks descriptors.
const BREATH: Duration = Duration::from_secs(1);

/// A socket at which the figures are asked for.
pub(super) struct Listener {
    socket: std::net::TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Listens at `ADDRESS:PORT`.
    pub(super) fn bind(address: &str) -> Result<Listener, Failure> {
        let attempted = format!("listen at `{address}` for Prometheus");
        let wrong = |why: String| {
            Failure::usage(format!("cannot {attempted}: {why}")).hint(
                "an address of this machine and a port are needed, as in `127.0.0.1:9233` or `[::]:9233`",
            )
        };
        if address.contains("://") {
            return Err(wrong("a URL is no address".to_owned()));
        }
        let port = address.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        match port {
            None => return Err(wrong("there is no port".to_owned())),
            Some(Err(_)) => return Err(wrong("the port is no number from 0 to 65535".to_owned())),
            Some(Ok(_)) if host.is_empty() => return Err(wrong("there is no address".to_owned())),
            Some(Ok(_)) if host.contains(':') && !host.starts_with('[') => {
                return Err(wrong("an address of IPv6 stands in brackets".to_owned()));
            }
            Some(Ok(_)) => {}
        }
        let found = address.to_socket_addrs();
        let found: Vec<SocketAddr> = match found {
            Ok(found) => found.collect(),
            Err(error) => return Err(wrong(system_text(&error))),
        };
        let failed = |error: std::io::Error| {
            let failure = Failure::io(&attempted, &error);
            match error.kind() {
                std::io::ErrorKind::AddrInUse => failure
                    .hint("another program listens there; `--prometheus-listen` chooses another address"),
                _ => failure.hint("`--prometheus-listen` chooses another address"),
            }
        };
        let socket = std::net::TcpListener::bind(&*found).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Listener { socket, address })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers who asks, until it is dropped.
    pub(super) async fn serve(self, exposition: Arc<Exposition>) {
        let Ok(listener) = TcpListener::from_std(self.socket) else {
            return;
        };
        let mut connections = JoinSet::new();
        let mut order = VecDeque::new();
        loop {
            while connections.try_join_next().is_some() {}
            let Ok((stream, _)) = listener.accept().await else {
                sleep(BREATH).await;
                continue;
            };
            order.retain(|one: &tokio::task::AbortHandle| !one.is_finished());
            if order.len() >= CONNECTIONS
                && let Some(oldest) = order.pop_front()
            {
                oldest.abort();
                // Its descriptor is free before there is another one.
                while !oldest.is_finished() && connections.join_next().await.is_some() {}
            }
            order.push_back(connections.spawn(connection(stream, exposition.clone())));
        }
    }
}

/// Serves one request.
async fn connection(stream: TcpStream, exposition: Arc<Exposition>) {
    let answers = service_fn(move |request| {
        let exposition = exposition.clone();
        async move { Ok::<_, Infallible>(answer(&request, &exposition).await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(LONGEST_HEAD)
        .max_headers(MOST_HEADERS)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answers);
    // What goes wrong with a connection is its client's own matter.
    let _ = timeout(CONNECTION_WITHIN, serving).await;
}

/// The body is left out of answers to HEAD by the library.
async fn answer(request: &Request<Incoming>, exposition: &Exposition) -> Response<Full<Bytes>> {
    if request.uri().path() != "/metrics" {
        return said(StatusCode::NOT_FOUND, "there is only /metrics\n");
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut refused = said(
            StatusCode::METHOD_NOT_ALLOWED,
            "it can only be read: GET or HEAD\n",
        );
        refused
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    let accepts = request.headers().get_all(ACCEPT).iter();
    let accepts: Vec<&str> = accepts.filter_map(|value| value.to_str().ok()).collect();
    let format = Format::accepted(&accepts.join(","));
    match exposition.text(format).await {
        Some(text) => of(StatusCode::OK, format.content_type(), text),
        None => said(
            StatusCode::SERVICE_UNAVAILABLE,
            "setpoint ends, or gives no answer\n",
        ),
    }
}

fn said(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    of(status, "text/plain; charset=utf-8", text)
}

fn of(status: StatusCode, sort: &'static str, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(sort));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
