//! The 0-RTT TCP Convert Protocol (RFC 8803), without I/O: its messages, and the two ends of an
//! exchange.
//!
//! A [`Client`] asks a relay, which the RFC calls a Transport Converter, for a connection to a
//! destination. The relay's end is [`Relay`]. Both take the first bytes of a connection, and say
//! how many of them belong to Convert.

mod client;
mod error;
mod message;
mod options;
mod relay;
mod tlv;

#[cfg(test)]
mod tests;

pub use client::{Answer, Client, ConvertFailure};
pub use error::{ErrorCode, ErrorTlv, ParseError};
pub use message::{HEADER_BYTES, MAGIC_NUMBER, MOST_BYTES, Message, VERSION, message_bytes};
pub use options::TcpOption;
pub use relay::{Relay, RelayStep, Request};
pub use tlv::{Connect, Tlv};
