//! A processor that stays awake while a run lasts.
//!
//! One that has nothing to do halts until something happens. In a virtual machine it comes back
//! when the host next gives it time, which may be milliseconds later, for a packet that was due.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::sys::{self, Processors};

/// Is there one in this process? Runs side by side would keep all processors busy, or share one.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// Keeps this thread, and the processes that it starts, on the processor that it runs on, and that
/// one busy with a thread that runs when no other of this session's wants to, until dropped. One
/// processor kept awake helps a thread that wakes up elsewhere not at all, and more of them use up
/// what the host gives.
#[derive(Debug)]
pub(crate) struct Wakefulness {
    before: Processors,
    over: Arc<AtomicBool>,
}

impl Wakefulness {
    /// Begin; nothing is done where there is but one processor, or as much time as one has, or
    /// where it has begun for another run.
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
        // It stays on the same processor as the thread that starts it. If it cannot be started,
        // that is all.
        let _ = thread::Builder::new().name("wakefulness".into()).spawn(keep_awake);
        Some(Wakefulness { before, over })
    }
}

impl Drop for Wakefulness {
    /// The thread ends when it next runs, for which nobody waits.
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        sys::stay_on(&self.before);
        BEGUN.store(false, Ordering::Relaxed);
    }
}
