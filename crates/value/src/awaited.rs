//! An answer that is worked out elsewhere.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use crate::{Background, Wake};

/// One answer, worked out in the background. Who drops this is not interested any more; the work itself goes on to its end.
pub struct Awaited<T> {
    answer: Receiver<Result<T, Box<dyn Any + Send>>>,
    /// Somebody has asked and was told that there is nothing yet, so he is to be woken.
    asked: Arc<AtomicBool>,
}

impl<T: Send + 'static> Awaited<T> {
    /// Begins the work. `wake` is called when the answer is there, if it was asked for in vain before.
    pub fn begin(
        background: &dyn Background,
        wake: Wake,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Awaited<T> {
        let (sender, answer) = channel();
        let asked = Arc::new(AtomicBool::new(false));
        let is_asked = asked.clone();
        background.run(Box::new(move || {
            let done = catch_unwind(AssertUnwindSafe(work));
            if sender.send(done).is_ok() && is_asked.load(Ordering::SeqCst) {
                wake.wake();
            }
        }));
        Awaited { answer, asked }
    }

    /// The answer, as soon as it is there, once.
    ///
    /// # Panics
    /// With the panic of the work, which is nobody else's to handle.
    pub fn take(&mut self) -> Option<T> {
        let answer = self.answer.try_recv().or_else(|_| {
            // It may have come before this was said, and then nobody is woken.
            self.asked.store(true, Ordering::SeqCst);
            self.answer.try_recv()
        });
        match answer.ok()? {
            Ok(answer) => Some(answer),
            Err(panic) => resume_unwind(panic),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::sync::{Mutex, PoisonError};

    use super::*;
    use crate::AtOnce;

    type Work = Box<dyn FnOnce() + Send>;

    /// Keeps work until the test does it.
    #[derive(Default)]
    struct Kept(Mutex<Vec<Work>>);

    impl Background for Kept {
        fn run(&self, work: Work) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(work);
        }
    }

    #[test]
    fn an_answer_wakes_those_who_asked_in_vain_and_nobody_else() {
        let (woken, wakes) = mpsc::channel();
        let wake = Wake::new(move || woken.send(()).expect("the test listens"));
        let mut at_once = Awaited::begin(&AtOnce, wake.clone(), || 1);
        assert_eq!((at_once.take(), at_once.take()), (Some(1), None));
        let kept = Kept::default();
        let mut later = Awaited::begin(&kept, wake, || 2);
        assert_eq!(later.take(), None);
        assert!(wakes.try_recv().is_err());
        kept.0.lock().unwrap().pop().expect("the work")();
        assert!(wakes.try_recv().is_ok());
        assert_eq!(later.take(), Some(2));
    }

    #[test]
    fn a_panic_of_the_work_is_that_of_who_takes_the_answer() {
        let mut broken = Awaited::<u8>::begin(&AtOnce, Wake::new(|| ()), || panic!("broken"));
        let caught = catch_unwind(AssertUnwindSafe(|| broken.take())).expect_err("a panic");
        assert_eq!(caught.downcast_ref::<&str>(), Some(&"broken"));
    }
}
