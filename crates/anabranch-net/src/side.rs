//! The two ends of the network.

use std::fmt;

/// One of the two hosts. A direction is named by the host that it leads to: a packet goes
/// *towards* the client or *towards* the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The host that opens connections.
    Client,
    /// The host that accepts them.
    Server,
}

impl Side {
    /// The other host.
    #[inline]
    pub const fn opposite(self) -> Self {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Client => "client",
            Side::Server => "server",
        })
    }
}
