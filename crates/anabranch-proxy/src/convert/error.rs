//! Errors of the Convert Protocol: what a peer reports, and why a message cannot be read.

use thiserror::Error;

/// The codes of Error TLVs. RFC 8803 §6.2.8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ErrorCode {
    /// The relay does not speak this version of the protocol.
    UnsupportedVersion = 0,
    /// The message cannot be parsed, or its destination is invalid.
    MalformedMessage = 1,
    /// The message has a TLV that the relay does not support.
    UnsupportedMessage = 2,
    /// The relay requires a cookie.
    MissingCookie = 3,
    /// The relay refuses this client, or this destination for the client.
    NotAuthorized = 32,
    /// The relay cannot offer a requested TCP option to the destination.
    UnsupportedTcpOption = 33,
    /// The relay has no resources for the connection.
    ResourceExceeded = 64,
    /// The relay's network fails.
    NetworkFailure = 65,
    /// The destination has reset the connection.
    ConnectionReset = 96,
    /// The relay has no route to the destination.
    DestinationUnreachable = 97,
}

impl ErrorCode {
    /// All codes.
    pub const ALL: [ErrorCode; 10] = [
        ErrorCode::UnsupportedVersion,
        ErrorCode::MalformedMessage,
        ErrorCode::UnsupportedMessage,
        ErrorCode::MissingCookie,
        ErrorCode::NotAuthorized,
        ErrorCode::UnsupportedTcpOption,
        ErrorCode::ResourceExceeded,
        ErrorCode::NetworkFailure,
        ErrorCode::ConnectionReset,
        ErrorCode::DestinationUnreachable,
    ];

    /// The code with this number, if it is assigned.
    pub fn from_number(number: u8) -> Option<Self> {
        ErrorCode::ALL.into_iter().find(|code| *code as u8 == number)
    }

    /// The code's name in RFC 8803.
    pub fn name(self) -> &'static str {
        match self {
            ErrorCode::UnsupportedVersion => "unsupported version",
            ErrorCode::MalformedMessage => "malformed message",
            ErrorCode::UnsupportedMessage => "unsupported message",
            ErrorCode::MissingCookie => "missing cookie",
            ErrorCode::NotAuthorized => "not authorized",
            ErrorCode::UnsupportedTcpOption => "unsupported TCP option",
            ErrorCode::ResourceExceeded => "resource exceeded",
            ErrorCode::NetworkFailure => "network failure",
            ErrorCode::ConnectionReset => "connection reset",
            ErrorCode::DestinationUnreachable => "destination unreachable",
        }
    }
}

/// The Error TLV. RFC 8803 §6.2.8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorTlv {
    /// The code, which need not be assigned.
    pub code: u8,
    /// The value, whose meaning depends on the code. Its first byte follows the code; the TLV ends
    /// on a word, so the length is 1 more than a multiple of 4.
    value: Vec<u8>,
}

impl ErrorTlv {
    /// An error with a value, which is padded with zeros.
    pub fn new(code: ErrorCode, value: &[u8]) -> Self {
        ErrorTlv::of_number(code as u8, value)
    }

    /// An error with a code that need not be assigned.
    pub fn of_number(code: u8, value: &[u8]) -> Self {
        let mut value = value.to_vec();
        // Type, length and code fill three bytes of the first word.
        value.resize((3 + value.len().max(1)).next_multiple_of(4) - 3, 0);
        ErrorTlv { code, value }
    }

    /// The value with its padding.
    pub fn value(&self) -> &[u8] {
        &self.value
    }
}

/// Reason why bytes are no Convert message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The header lacks the magic number, so the peer does not speak Convert. RFC 8803 §6.1.
    #[error("the magic number is {0:#06x} instead of 0x2263")]
    NotConvert(u16),
    /// The header has another version.
    #[error("version {0} is not supported")]
    Version(u8),
    /// The header's total length is zero, or shorter than the header. RFC 8803 §6.1 has the
    /// connection reset.
    #[error("the total length is zero")]
    ZeroLength,
    /// The message ends before its total length.
    #[error("the message has {0} bytes, which is not its total length")]
    Length(usize),
    /// A TLV is longer than the rest of the message, or shorter than its fixed part.
    #[error("TLV {kind} has a length of {words} words")]
    TlvLength {
        /// Type of the TLV.
        kind: u8,
        /// The length that it states, in words of 4 bytes.
        words: u8,
    },
    /// The TCP options of a Connect TLV are damaged.
    #[error("the TCP options are damaged")]
    Options,
    /// A TLV occurs twice. RFC 8803 §6.2.1.
    #[error("TLV {0} occurs twice")]
    Duplicate(u8),
    /// A TLV has a type that is reserved or not assigned.
    #[error("TLV {0} is unknown")]
    Unknown(u8),
}
