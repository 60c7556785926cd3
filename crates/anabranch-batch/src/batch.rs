//! Worker threads that make the runs of a batch.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anabranch_sim::scenario::Scenario;
use anabranch_sim::{Options, RunError, run};

use crate::BatchError;
use crate::clock::thread_cpu_s;
use crate::journal::{Journal, RunKey};
use crate::record::{Finished, Kept, RunRecord, require_integrity};

/// Runs of one scenario.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The scenario, read and checked.
    pub scenario: Arc<Scenario>,
    /// The scenario's file in messages.
    pub file: String,
    /// Name of the cell in messages.
    pub name: String,
    /// Whether a connection may fail.
    pub may_fail: bool,
}

/// A run to make.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Number of the cell.
    pub cell: usize,
    /// Seed of the run.
    pub seed: u64,
    /// Key of the run in the journal.
    pub key: RunKey,
    /// Tables to keep.
    pub kept: Kept,
    /// Relative cost of the run.
    pub cost: f64,
}

/// The runs that a batch has finished so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Number of runs.
    pub runs: u64,
    /// Simulated time of all of them.
    pub virtual_ns: u64,
    /// Sum of their costs.
    pub cost: f64,
}

/// Runs in progress in threads of this process. Each finished run is recorded in a journal.
#[derive(Debug)]
pub struct Batch {
    shared: Arc<SharedBatch>,
    threads: Vec<JoinHandle<()>>,
}

/// State that the threads share. A run touches only the number of the next job and the journal.
#[derive(Debug)]
struct SharedBatch {
    cells: Vec<Cell>,
    jobs: Vec<Job>,
    journal: Arc<Journal>,
    next: AtomicUsize,
    stop: AtomicBool,
    totals: Vec<ThreadTotals>,
    state: Mutex<BatchState>,
    ended: Condvar,
}

/// The runs that one thread has finished, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct ThreadTotals {
    runs: AtomicU64,
    virtual_ns: AtomicU64,
    /// Bits of a floating-point number.
    cost: AtomicU64,
}

#[derive(Debug)]
struct BatchState {
    working: usize,
    failure: Option<BatchError>,
}

impl Batch {
    /// Start the runs in `workers` threads, the most expensive ones first.
    ///
    /// # Panics
    /// If no thread can be started.
    pub fn start(
        cells: Vec<Cell>,
        mut jobs: Vec<Job>,
        journal: Arc<Journal>,
        workers: usize,
    ) -> Self {
        jobs.sort_by(|a, b| b.cost.total_cmp(&a.cost));
        let workers = workers.min(jobs.len());
        let shared = Arc::new(SharedBatch {
            cells,
            jobs,
            journal,
            next: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            totals: (0..workers).map(|_| ThreadTotals::default()).collect(),
            state: Mutex::new(BatchState { working: workers, failure: None }),
            ended: Condvar::new(),
        });
        let start = |number| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.work(number))
        };
        let threads = (0..workers).map(start).collect();
        Batch { shared, threads }
    }

    /// The runs that are finished. This takes no lock.
    pub fn progress(&self) -> Progress {
        let mut sum = Progress::default();
        for thread in &self.shared.totals {
            sum.runs += thread.runs.load(Ordering::Relaxed);
            sum.virtual_ns += thread.virtual_ns.load(Ordering::Relaxed);
            sum.cost += f64::from_bits(thread.cost.load(Ordering::Relaxed));
        }
        sum
    }

    /// Wait until all threads have ended, but not longer than `timeout`. Returns whether they have.
    pub fn wait(&self, timeout: Duration) -> bool {
        let working = |state: &mut BatchState| state.working > 0;
        let waited = self.shared.ended.wait_timeout_while(self.shared.state(), timeout, working);
        waited.unwrap_or_else(PoisonError::into_inner).0.working == 0
    }

    /// End the runs in progress at their next event. They are not recorded.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// Wait for the threads.
    ///
    /// # Errors
    /// The first error of a run, after which no other run was started.
    ///
    /// # Panics
    /// If a run panicked.
    pub fn finish(mut self) -> Result<(), BatchError> {
        self.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        self.shared.state().failure.take().map_or(Ok(()), Err)
    }

    fn join(&mut self) -> Result<(), Box<dyn Any + Send>> {
        let ended: Vec<_> = self.threads.drain(..).map(JoinHandle::join).collect();
        ended.into_iter().collect()
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.stop();
        // Only `finish` reports the panic of a run.
        let _ = self.join();
    }
}

impl SharedBatch {
    fn work(&self, number: usize) {
        let _working = Working(self);
        while let Some(job) = self.jobs.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            match self.make(job) {
                Ok(virtual_ns) => self.totals[number].add(virtual_ns, job.cost),
                Err(error) => return self.fail(error),
            }
        }
    }

    /// Make a run and record it. Returns its simulated time in nanoseconds.
    fn make(&self, job: &Job) -> Result<u64, BatchError> {
        let Cell { scenario, file, name, may_fail } = &self.cells[job.cell];
        let before = thread_cpu_s();
        let mut stop = |_| self.stop.load(Ordering::Relaxed);
        let outcome = run(scenario, job.seed, Options::default().stop(&mut stop));
        let outcome = outcome.map_err(|error| match error {
            RunError::Stopped => BatchError::Stopped,
            error => BatchError::Run { file: file.clone(), error },
        })?;
        let finished = Finished::of(&outcome, thread_cpu_s() - before);
        let record = RunRecord::of(scenario, &finished, job.kept, |metrics| {
            let name = || format!("{name}, seed {}", job.seed);
            require_integrity(scenario, metrics, *may_fail, name)
        })?;
        self.journal.add(&job.key, &record).map_err(BatchError::Journal)?;
        Ok(outcome.end.as_nanos())
    }

    fn fail(&self, error: BatchError) {
        self.next.store(self.jobs.len(), Ordering::Relaxed);
        self.state().failure.get_or_insert(error);
    }

    fn state(&self) -> MutexGuard<'_, BatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread at work. Its end wakes those who wait, even if it ends by a panic.
struct Working<'s>(&'s SharedBatch);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.next.store(self.0.jobs.len(), Ordering::Relaxed);
        }
        self.0.state().working -= 1;
        self.0.ended.notify_all();
    }
}

impl ThreadTotals {
    fn add(&self, virtual_ns: u64, cost: f64) {
        // Only one thread writes these numbers.
        let cost = f64::from_bits(self.cost.load(Ordering::Relaxed)) + cost;
        self.cost.store(cost.to_bits(), Ordering::Relaxed);
        self.virtual_ns.fetch_add(virtual_ns, Ordering::Relaxed);
        self.runs.fetch_add(1, Ordering::Relaxed);
    }
}
