//! Why a run could not be completed.

use std::io;

use anabranch_wire::{EmitError, ParseError};
use thiserror::Error;

use crate::own_policies::OwnPoliciesError;

/// Why a run could not be completed.
#[derive(Debug, Error)]
pub enum RunError {
    /// The capture could not be written.
    #[error("cannot write the capture: {0}")]
    Capture(#[from] io::Error),
    /// A packet could not be turned into bytes.
    #[error("a packet cannot be sent: {0}")]
    Emit(#[from] EmitError),
    /// A packet's bytes could not be read back.
    #[error("a packet's bytes cannot be read back: {0}")]
    Parse(#[from] ParseError),
    /// The scenario and the policies of the user's own do not belong together.
    #[error(transparent)]
    OwnPolicies(#[from] OwnPoliciesError),
    /// [`Options::stop`](crate::Options::stop) asked for it.
    #[error("the run was stopped")]
    Stopped,
}
