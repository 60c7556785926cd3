//! The client's end of an exchange.

use thiserror::Error;

use super::error::{ErrorCode, ErrorTlv, ParseError};
use super::message::{HEADER_BYTES, Message, message_bytes};
use super::tlv::Tlv;

/// A client that waits for the relay's answer.
#[derive(Debug, Default)]
pub struct Client {
    received: Vec<u8>,
}

/// Answer of the relay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Kinds of TCP options that the relay supports, if the client sent an Info TLV.
    pub supported: Option<Vec<u8>>,
    /// TCP options of the destination, if the client sent an Extended Connect TLV.
    pub extended_header: Option<Vec<u8>>,
    /// The first data of the destination, which came with the answer.
    pub data: Vec<u8>,
}

/// Reason for the lack of a connection. The client resets its connection to the relay. RFC 8803 §6.2.8.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConvertFailure {
    /// The relay reports an error.
    #[error("the relay reports: {}", name_of(.0))]
    Relay(ErrorTlv),
    /// The answer is not one of Convert.
    #[error("the relay's answer is invalid: {0}")]
    Invalid(#[from] ParseError),
    /// The answer has a TLV that only clients send.
    #[error("the relay's answer has a TLV of a client: {0}")]
    Unexpected(u8),
}

fn name_of(error: &ErrorTlv) -> String {
    let named = ErrorCode::from_number(error.code).map(|code| code.name().to_owned());
    named.unwrap_or_else(|| format!("error {}", error.code))
}

impl Client {
    /// Take bytes from the relay. Returns the answer once it is complete. Bytes after that belong to
    /// the destination.
    ///
    /// # Errors
    /// If the relay refuses the connection, or its answer is invalid.
    pub fn handle_data(&mut self, bytes: &[u8]) -> Result<Option<Answer>, ConvertFailure> {
        self.received.extend(bytes);
        let Some(header) = self.received.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let len = message_bytes(*header)?;
        if self.received.len() < len {
            return Ok(None);
        }
        let mut answer = Answer::default();
        for tlv in Message::parse(&self.received[..len])?.tlvs {
            match tlv {
                Tlv::Error(error) => return Err(ConvertFailure::Relay(error)),
                Tlv::SupportedTcpExtensions(kinds) => answer.supported = Some(kinds),
                Tlv::ExtendedTcpHeader(options) => answer.extended_header = Some(options),
                // It comes with the error that the cookie is missing.
                Tlv::Cookie(_) => {}
                other => return Err(ConvertFailure::Unexpected(other.kind())),
            }
        }
        answer.data = self.received.split_off(len);
        Ok(Some(answer))
    }
}
