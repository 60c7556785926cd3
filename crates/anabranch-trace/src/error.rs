//! Errors of an analysis.

use std::io;

use crate::capture::Damage;

/// Why nothing was found.
#[derive(Debug, thiserror::Error)]
pub enum AnalyseError {
    /// A file cannot be opened.
    #[error("{file}: {error}")]
    Unreadable {
        /// Its name.
        file: String,
        /// The system's reason.
        error: io::Error,
    },
    /// A file is not a capture.
    #[error("{file}: {damage}")]
    NoCapture {
        /// Its name.
        file: String,
        /// What stands there instead.
        damage: Damage,
    },
    /// The caller has had enough.
    #[error("interrupted")]
    Interrupted,
}
