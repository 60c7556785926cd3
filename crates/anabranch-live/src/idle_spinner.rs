//! Keeping a processor awake during a run.
//!
//! An idle processor halts until an event occurs. In a virtual machine it resumes only when the host
//! gives it time again. This can be milliseconds after a packet was due.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::sys::{self, Processors};

/// Whether a run in this process keeps a processor awake. Concurrent runs would occupy all
/// processors, or share one.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// Pins this thread and the processes that it starts to their current processor, and keeps that
/// processor busy with a spinning thread of idle priority, until dropped. An awake processor does not
/// help a thread that wakes up on another one, so the thread is pinned. Keeping more processors awake
/// would use up the time that the host grants.
#[derive(Debug)]
pub(crate) struct IdleSpinner {
    before: Processors,
    over: Arc<AtomicBool>,
}

impl IdleSpinner {
    /// Start. Does nothing if there is only one processor, or a CPU quota of one processor, or if
    /// another run of this process has started already.
    pub(crate) fn begin() -> Option<Self> {
        if thread::available_parallelism().map_or(1, usize::from) < 2
            || BEGUN.swap(true, Ordering::Relaxed)
        {
            return None;
        }
        let Ok(before) = sys::stay_on_this_processor() else {
            BEGUN.store(false, Ordering::Relaxed);
            return None;
        };
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        let keep_awake = move || {
            let gives_way = sys::give_way();
            while gives_way && !seen.load(Ordering::Relaxed) {
                (0..1000).for_each(|_| spin_loop());
            }
        };
        // The spinning thread runs on the same processor as the thread that starts it. A failure to
        // start it is ignored.
        let _ = thread::Builder::new().name("idle_spinner".into()).spawn(keep_awake);
        Some(IdleSpinner { before, over })
    }
}

impl Drop for IdleSpinner {
    /// The spinning thread ends when it runs next. Nothing waits for it.
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        sys::stay_on(&self.before);
        BEGUN.store(false, Ordering::Relaxed);
    }
}
