//! A processor that stays awake while a run lasts.
//!
//! One that has nothing to do halts until something happens. In a virtual machine it comes back when the
//! host next gives it time, which may be milliseconds later, for a packet that was due.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::sys::{self, Processors};

/// Keeps this thread on the processor that it runs on, and that one busy with a thread that runs when nobody
/// else wants to, until dropped. One processor kept awake helps a thread that wakes up elsewhere not at
/// all, and more of them use up what the host gives.
#[derive(Debug)]
pub(crate) struct Wakefulness {
    before: Processors,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Wakefulness {
    /// Begin; nothing is done where there is but one processor, or as much time as one has.
    pub(crate) fn begin() -> Option<Self> {
        if thread::available_parallelism().map_or(1, usize::from) < 2 {
            return None;
        }
        let before = sys::stay_on_this_processor().ok()?;
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        let keep_awake = move || {
            let gives_way = sys::give_way();
            while gives_way && !seen.load(Ordering::Relaxed) {
                (0..1000).for_each(|_| spin_loop());
            }
        };
        // It stays on the same processor as the thread that starts it.
        let thread = thread::Builder::new().name("wakefulness".into()).spawn(keep_awake).ok();
        Some(Wakefulness { before, over, thread })
    }
}

impl Drop for Wakefulness {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        sys::stay_on(&self.before);
    }
}
