//! Errors of an analysis.

use std::io;

use crate::capture::Damage;

/// Error of a failed analysis.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalyseError {
    /// A file cannot be opened.
    #[error("{file}: {error}")]
    Unreadable {
        /// The file's name.
        file: String,
        /// The system's reason.
        error: io::Error,
    },
    /// A file is not a capture.
    #[error("{file}: {damage}")]
    NoCapture {
        /// The file's name.
        file: String,
        /// Damage found in the file.
        damage: Damage,
    },
    /// The caller's `progress` stopped the analysis.
    #[error("interrupted")]
    Interrupted,
}
