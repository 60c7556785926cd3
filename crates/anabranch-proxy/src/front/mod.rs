//! Protocols of the client's port for programs: SOCKS5 and HTTP CONNECT.

mod http;
mod socks;

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Destination that a program asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// An address.
    Address(SocketAddr),
    /// A host name, which the client's system resolves, and a port.
    Name(String, u16),
}

/// Protocol of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    /// SOCKS version 5. RFC 1928.
    Socks,
    /// HTTP CONNECT. RFC 9110.
    Http,
}

/// Reason why a program gets no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The relay, or this client, does not allow the destination.
    NotAllowed,
    /// There is no way to the relay.
    NoNetwork,
    /// The destination, or its name, cannot be reached.
    Unreachable,
    /// The destination has refused the connection.
    Refused,
    /// The time is up.
    TimedOut,
    /// Anything else.
    Other,
}

/// Read a program's request. `None` means that the program got an answer, and wants nothing that
/// this proxy has.
///
/// # Errors
/// If the connection fails or ends.
pub(crate) async fn accept<S>(stream: &mut S) -> io::Result<Option<(Front, Target)>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    match stream.read_u8().await? {
        socks::VERSION => Ok(socks::accept(stream).await?.map(|target| (Front::Socks, target))),
        first if first.is_ascii_alphabetic() => {
            Ok(http::accept(stream, first).await?.map(|target| (Front::Http, target)))
        }
        other => {
            let message =
                format!("the first byte of a program is {other:#04x}: neither SOCKS5 nor HTTP");
            Err(io::Error::new(io::ErrorKind::InvalidData, message))
        }
    }
}

impl Front {
    /// Tell the program that the connection is open.
    ///
    /// # Errors
    /// If the connection fails.
    pub(crate) async fn succeed<S: AsyncWrite + Unpin>(self, stream: &mut S) -> io::Result<()> {
        match self {
            Front::Socks => stream.write_all(&socks::reply(socks::SUCCEEDED)).await,
            Front::Http => stream.write_all(http::SUCCEEDED).await,
        }
    }

    /// Tell the program that there is no connection.
    ///
    /// # Errors
    /// If the connection fails.
    pub(crate) async fn fail<S: AsyncWrite + Unpin>(
        self,
        stream: &mut S,
        problem: Problem,
    ) -> io::Result<()> {
        match self {
            Front::Socks => stream.write_all(&socks::reply(socks::code(problem))).await?,
            Front::Http => stream.write_all(http::status(problem).as_bytes()).await?,
        }
        stream.shutdown().await
    }
}
