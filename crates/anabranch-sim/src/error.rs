//! Errors of runs.

use std::io;

use anabranch_wire::{EmitError, Instant, ParseError};
use thiserror::Error;

use crate::custom_policies::CustomPoliciesError;

/// Error of a run that could not be completed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The capture could not be written.
    #[error("cannot write the capture: {0}")]
    Capture(#[from] io::Error),
    /// A packet could not be serialised.
    #[error("cannot serialise a packet: {0}")]
    Emit(#[from] EmitError),
    /// A serialised packet could not be parsed.
    #[error("cannot parse a serialised packet: {0}")]
    Parse(#[from] ParseError),
    /// The scenario and the user-defined policies passed with the run do not match.
    #[error(transparent)]
    CustomPolicies(#[from] CustomPoliciesError),
    /// [`Options::stop`](crate::Options::stop) ended the run.
    #[error("the run was stopped")]
    Stopped,
    /// The scenario has no path with this index.
    #[error("the scenario has no path with index {0}")]
    UnknownPath(usize),
    /// A change was scheduled for a time that has passed.
    #[error("the change is scheduled for {0:?}, which has passed")]
    PastChange(Instant),
}
