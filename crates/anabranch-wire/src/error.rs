//! What can be wrong with octets.

/// Why octets are not a well-formed packet. (Filled in with the parser.)
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// Fewer octets than the format needs.
    #[error("{what} needs {needed} octets, only {available} are there")]
    Truncated {
        /// The header or option concerned.
        what: &'static str,
        /// Octets needed.
        needed: usize,
        /// Octets available.
        available: usize,
    },
}
