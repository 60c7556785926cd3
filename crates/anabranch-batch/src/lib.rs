//! Many runs: made on all cores, recorded in a journal, and collected to tables of results.
//!
//! A [`Batch`] makes the runs of a list in threads. A run shares nothing with the others except the
//! number of the next run and the file of the [`Journal`], which receives its [`RunRecord`] as soon as
//! it is finished. The [`Collector`] turns records into the tables of all runs, whether the runs are
//! new, were found in the journal, or were made elsewhere.

mod batch;
mod clock;
mod codec;
mod journal;
mod record;
mod rows;
mod tables;

use std::io;

use anabranch_sim::RunError;

pub use batch::{Batch, Cell, Job, Progress};
pub use journal::{Damage, Journal, RunKey};
pub use record::{CountersByName, Finished, Kept, RunRecord, Summary, require_integrity};
pub use rows::{NO_WORD, Rows, Values};
pub use tables::{Collector, Results};

/// Reason for which a run of a batch is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// The run failed.
    #[error("{file}: {error}")]
    Run {
        /// File of the scenario.
        file: String,
        /// The error of the run.
        error: RunError,
    },
    /// The application received other bytes than those that were sent.
    #[error("{run}: {bytes} delivered bytes are wrong")]
    Corrupt {
        /// Cell and seed.
        run: String,
        /// Number of wrong bytes.
        bytes: u64,
    },
    /// A connection failed that must not fail.
    #[error("{run}: {connection} failed")]
    ConnectionFailed {
        /// Cell and seed.
        run: String,
        /// Name of the flow.
        connection: String,
    },
    /// The journal cannot be written.
    #[error(transparent)]
    Journal(io::Error),
    /// The batch was stopped.
    #[error("stopped")]
    Stopped,
}
