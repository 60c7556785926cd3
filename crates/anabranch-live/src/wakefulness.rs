//! Processors that stay awake while a run lasts.
//!
//! One that has nothing to do halts until something happens, and comes back at once, or, in a virtual
//! machine, when the host next gives it time: that may be milliseconds later, for a packet that was due.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::sys;

/// Most processors that are kept awake.
const MOST: usize = 8;

/// Keeps the processors busy until it is dropped, with threads that run only where nobody else wants to.
#[derive(Debug)]
pub(crate) struct Wakefulness {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Wakefulness {
    /// Begin; where the process has but a share of the processors, which being awake would use up, not
    /// at all.
    pub(crate) fn begin() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ours = thread::available_parallelism().map_or(1, usize::from);
        let count = if ours < sys::processors() { 0 } else { ours.min(MOST) };
        let start = |_| {
            let over = over.clone();
            let keep_awake = move || {
                let gives_way = sys::give_way();
                while gives_way && !over.load(Ordering::Relaxed) {
                    (0..1000).for_each(|_| spin_loop());
                }
            };
            thread::Builder::new().name("wakefulness".into()).spawn(keep_awake).ok()
        };
        Wakefulness { threads: (0..count).filter_map(start).collect(), over }
    }
}

impl Drop for Wakefulness {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
