//! Calls of a kind's code. A panic in it is a failure of its resource, and the engine goes on.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;

use crate::{Failure, FailureReason};

/// Calls a kind's code; a panic is a failure.
pub(crate) fn guarded<T>(attempted: &'static str, call: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| panicked(attempted, &*panic))
}

/// The same for code that waits.
pub(crate) async fn guarded_future<T>(
    attempted: &'static str,
    future: impl Future<Output = T>,
) -> Result<T, Failure> {
    let mut future = pin!(future);
    std::future::poll_fn(move |context| {
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => std::task::Poll::Ready(Err(panicked(attempted, &*panic))),
        }
    })
    .await
}

fn panicked(attempted: &'static str, panic: &(dyn Any + Send)) -> Failure {
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned());
    Failure::new(attempted)
        .because(format!("this is a bug of the kind, which panicked: {message}"))
        .reasoned(FailureReason::Bug)
}
