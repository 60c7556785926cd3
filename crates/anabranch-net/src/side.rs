//! The two sides of the network.

use std::fmt;

/// One of the two hosts. A direction is named after its destination: a packet travels *towards* the
/// client or *towards* the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The host that opens connections.
    Client,
    /// The host that accepts connections.
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
