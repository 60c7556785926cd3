//! The relay's end of an exchange.

use std::net::{IpAddr, Ipv4Addr};

use super::error::{ErrorCode, ErrorTlv, ParseError};
use super::message::{HEADER_BYTES, MOST_BYTES, Message, VERSION, message_bytes};
use super::options::TcpOption;
use super::tlv::{Connect, Tlv};

/// Kinds of options that a relay ignores in a Connect TLV: end of options, no operation, MSS (RFC
/// 8803 §7.1), window scale (§7.2) and SACK (§7.3).
const IGNORED_KINDS: [u8; 5] = [0, 1, 2, 3, 5];
/// Bytes of a message that an error echoes at most. The header and the first word of the Error TLV
/// take the rest of the longest message.
const MOST_ECHOED: usize = MOST_BYTES - 2 * HEADER_BYTES;

/// A relay that waits for the request of a client.
#[derive(Debug, Default)]
pub struct Relay {
    received: Vec<u8>,
}

/// Next step of the relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelayStep {
    /// Wait for more bytes.
    Wait,
    /// Decide about a request.
    Decide(Request),
    /// Send these bytes, and close the connection. It must not be reset before the client has read
    /// them. RFC 8803 §6.2.2.
    Refuse(ErrorCode, Vec<u8>),
    /// Reset the connection: the peer does not speak Convert. RFC 8803 §6.1.
    Reset(ParseError),
}

/// Request of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The client wants to know the supported TCP options.
    pub info: bool,
    /// The client wants a connection.
    pub connect: Option<Connect>,
    /// The client's cookie.
    pub cookie: Option<Vec<u8>>,
    /// The client's first data for the destination.
    pub data: Vec<u8>,
}

impl Relay {
    /// Kinds of TCP options that this relay can offer to destinations. A relay that converts
    /// Multipath TCP must list it (RFC 8803 §7.5).
    pub const SUPPORTED: &[u8] = &[TcpOption::MPTCP];

    /// Take bytes from the client.
    pub fn handle_data(&mut self, bytes: &[u8]) -> RelayStep {
        self.received.extend(bytes);
        let Some(header) = self.received.first_chunk::<HEADER_BYTES>() else {
            return RelayStep::Wait;
        };
        let len = match message_bytes(*header) {
            Ok(len) => len,
            Err(ParseError::Version(_)) => {
                return refuse(ErrorCode::UnsupportedVersion, &[VERSION]);
            }
            Err(other) => return RelayStep::Reset(other),
        };
        if self.received.len() < len {
            return RelayStep::Wait;
        }
        match Message::parse(&self.received[..len]) {
            Ok(message) => self.decide(message, len),
            Err(ParseError::Unknown(_)) => self.echo(ErrorCode::UnsupportedMessage, len),
            Err(_) => self.echo(ErrorCode::MalformedMessage, len),
        }
    }

    fn decide(&mut self, message: Message, len: usize) -> RelayStep {
        let mut request = Request::default();
        for tlv in message.tlvs {
            match tlv {
                Tlv::Info => request.info = true,
                Tlv::Connect(connect) => request.connect = Some(connect),
                Tlv::Cookie(cookie) => request.cookie = Some(cookie),
                // These are a relay's.
                Tlv::ExtendedTcpHeader(_) | Tlv::SupportedTcpExtensions(_) | Tlv::Error(_) => {
                    return self.echo(ErrorCode::UnsupportedMessage, len);
                }
            }
        }
        if request.connect.is_none() && !request.info {
            return self.echo(ErrorCode::MalformedMessage, len);
        }
        if let Some(connect) = &request.connect {
            if connect.remote.port() == 0 || is_invalid(connect.remote.ip()) {
                return self.echo(ErrorCode::MalformedMessage, len);
            }
            let unsupported = unsupported(connect.options.as_deref().unwrap_or_default());
            if !unsupported.is_empty() {
                return refuse(ErrorCode::UnsupportedTcpOption, &unsupported);
            }
        }
        request.data = self.received.split_off(len);
        RelayStep::Decide(request)
    }

    /// An error whose value is the received message, shifted by a byte. RFC 8803 §6.2.8.
    fn echo(&self, code: ErrorCode, len: usize) -> RelayStep {
        let message = &self.received[..len.min(MOST_ECHOED)];
        refuse(code, &[&[0], message].concat())
    }
}

impl Request {
    /// The request without its cookie.
    pub fn without_cookie(&self) -> Message {
        let info = self.info.then_some(Tlv::Info);
        let connect = self.connect.clone().map(Tlv::Connect);
        Message { tlvs: connect.into_iter().chain(info).collect() }
    }

    /// The answer once the connection to the destination is open. Its TCP options, as far as the
    /// relay knows them, are `options`.
    pub fn accept(&self, options: &[u8]) -> Vec<u8> {
        let mut tlvs = Vec::new();
        if self.info {
            tlvs.push(Tlv::SupportedTcpExtensions(Relay::SUPPORTED.to_vec()));
        }
        if self.connect.as_ref().is_some_and(|connect| connect.options.is_some()) {
            tlvs.push(Tlv::ExtendedTcpHeader(options.to_vec()));
        }
        Message { tlvs }.to_bytes()
    }

    /// The answer if the relay does not carry the connection. The relay then closes it.
    pub fn refuse(code: ErrorCode, value: &[u8]) -> Vec<u8> {
        Message::new([Tlv::Error(ErrorTlv::new(code, value))]).to_bytes()
    }
}

fn refuse(code: ErrorCode, value: &[u8]) -> RelayStep {
    RelayStep::Refuse(code, Request::refuse(code, value))
}

/// Returns `true` if a Connect TLV must not have this address: multicast, broadcast, the host's loopback
/// (RFC 8803 §6.2.5), and no address at all.
fn is_invalid(address: IpAddr) -> bool {
    let always = address.is_multicast() || address.is_loopback() || address.is_unspecified();
    always || address == IpAddr::V4(Ipv4Addr::BROADCAST)
}

/// The kinds of these options that the relay cannot offer to a destination, without those that it
/// ignores. MP_CAPABLE has no value (RFC 8803 §7.5).
fn unsupported(options: &[TcpOption]) -> Vec<u8> {
    let is_known = |option: &&TcpOption| {
        IGNORED_KINDS.contains(&option.kind)
            || Relay::SUPPORTED.contains(&option.kind) && option.value.is_empty()
    };
    options.iter().filter(|option| !is_known(option)).map(|option| option.kind).collect()
}
