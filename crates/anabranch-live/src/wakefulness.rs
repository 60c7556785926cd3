//! A machine that stays awake while a run lasts.
//!
//! A processor that has nothing to do halts until something happens. In a virtual machine it comes back when
//! the host next gives it time, which may be milliseconds later, for a packet that was due.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::sys;

/// Keeps a processor busy until it is dropped, with a thread that runs only where nobody else wants to.
/// One is enough for the one thread that makes a run, and more would use up what the host gives.
#[derive(Debug)]
pub(crate) struct Wakefulness {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Wakefulness {
    /// Begin; where the process has but a share of the processors, which being awake would use up, not
    /// at all.
    pub(crate) fn begin() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        let keep_awake = move || {
            let gives_way = sys::give_way();
            while gives_way && !seen.load(Ordering::Relaxed) {
                (0..1000).for_each(|_| spin_loop());
            }
        };
        let ours = thread::available_parallelism().map_or(1, usize::from);
        let thread = (ours >= sys::processors())
            .then(|| thread::Builder::new().name("wakefulness".into()).spawn(keep_awake).ok());
        Wakefulness { over, thread: thread.flatten() }
    }
}

impl Drop for Wakefulness {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
