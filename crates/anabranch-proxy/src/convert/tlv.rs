//! The TLVs of the Convert Protocol. RFC 8803 §6.2.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::error::{ErrorTlv, ParseError};
use super::options::{self, TcpOption};

const INFO: u8 = 1;
const CONNECT: u8 = 10;
const EXTENDED_TCP_HEADER: u8 = 20;
const SUPPORTED_TCP_EXTENSIONS: u8 = 21;
const COOKIE: u8 = 22;
const ERROR: u8 = 30;

/// Bytes of a word, in which lengths count.
pub(super) const WORD: usize = 4;
/// Bytes of a Connect TLV without options: the Base Connect TLV. RFC 8803 §6.2.5.
const BASE_CONNECT: usize = 20;
/// Highest kind of the options that all implementations support. RFC 8803 §6.2.4.
const LAST_BASIC_KIND: u8 = 2;

/// A TLV.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tlv {
    /// A client asks for the options that the relay supports. RFC 8803 §6.2.3.
    Info,
    /// A client asks for a connection. RFC 8803 §6.2.5.
    Connect(Connect),
    /// The options of the destination's SYN/ACK, padded to a multiple of 4 bytes. RFC 8803 §6.2.6.
    ExtendedTcpHeader(Vec<u8>),
    /// The kinds of TCP options that a relay can offer to destinations. RFC 8803 §6.2.4.
    SupportedTcpExtensions(Vec<u8>),
    /// A cookie, padded to a multiple of 4 bytes. RFC 8803 §6.2.7.
    Cookie(Vec<u8>),
    /// A relay could not do what a client asked for. RFC 8803 §6.2.8.
    Error(ErrorTlv),
}

/// The destination of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connect {
    /// Address and port of the destination. IPv4 addresses travel as IPv4-mapped IPv6 addresses.
    pub remote: SocketAddr,
    /// TCP options to offer to the destination; `None` is the Base Connect TLV.
    pub options: Option<Vec<TcpOption>>,
}

impl Tlv {
    /// The type. RFC 8803 §6.2.2.
    pub fn kind(&self) -> u8 {
        match self {
            Tlv::Info => INFO,
            Tlv::Connect(_) => CONNECT,
            Tlv::ExtendedTcpHeader(_) => EXTENDED_TCP_HEADER,
            Tlv::SupportedTcpExtensions(_) => SUPPORTED_TCP_EXTENSIONS,
            Tlv::Cookie(_) => COOKIE,
            Tlv::Error(_) => ERROR,
        }
    }

    /// The length in bytes, a multiple of 4.
    pub fn wire_len(&self) -> usize {
        let len = match self {
            Tlv::Info => WORD,
            Tlv::Connect(connect) => {
                let options = connect.options.iter().flatten();
                BASE_CONNECT + options.map(TcpOption::wire_len).sum::<usize>()
            }
            Tlv::ExtendedTcpHeader(bytes)
            | Tlv::SupportedTcpExtensions(bytes)
            | Tlv::Cookie(bytes) => WORD + bytes.len(),
            Tlv::Error(error) => 3 + error.value().len(),
        };
        len.next_multiple_of(WORD)
    }

    /// Append the TLV to `out`. Reserved fields are zero, and so is the padding.
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        let (start, len) = (out.len(), self.wire_len());
        out.extend([self.kind(), (len / WORD) as u8]);
        match self {
            Tlv::Info => {}
            Tlv::Connect(Connect { remote, options }) => {
                out.extend(remote.port().to_be_bytes());
                let address = match remote.ip() {
                    IpAddr::V4(address) => address.to_ipv6_mapped(),
                    IpAddr::V6(address) => address,
                };
                out.extend(address.octets());
                options.iter().flatten().for_each(|option| option.emit(out));
            }
            Tlv::ExtendedTcpHeader(bytes)
            | Tlv::SupportedTcpExtensions(bytes)
            | Tlv::Cookie(bytes) => {
                out.extend([0, 0]);
                out.extend(bytes);
            }
            Tlv::Error(error) => {
                out.push(error.code);
                out.extend(error.value());
            }
        }
        out.resize(start + len, 0);
    }

    /// Parse the first TLV of `bytes`. Returns the number of its bytes as well. Receivers ignore
    /// reserved fields.
    pub(super) fn parse(bytes: &[u8]) -> Result<(Self, usize), ParseError> {
        let (kind, words) = (bytes[0], bytes[1]);
        let len = usize::from(words) * WORD;
        let damaged = ParseError::TlvLength { kind, words };
        if len == 0 || len > bytes.len() {
            return Err(damaged);
        }
        let value = || bytes[WORD..len].to_vec();
        let tlv = match kind {
            INFO if len == WORD => Tlv::Info,
            CONNECT if len >= BASE_CONNECT => Tlv::Connect(Connect::parse(&bytes[..len])?),
            EXTENDED_TCP_HEADER => Tlv::ExtendedTcpHeader(value()),
            SUPPORTED_TCP_EXTENSIONS => {
                // The rest is padding.
                let kinds = bytes[WORD..len].iter().filter(|kind| **kind > LAST_BASIC_KIND);
                Tlv::SupportedTcpExtensions(kinds.copied().collect())
            }
            COOKIE => Tlv::Cookie(value()),
            ERROR => Tlv::Error(ErrorTlv::of_number(bytes[2], &bytes[3..len])),
            INFO | CONNECT => return Err(damaged),
            unknown => return Err(ParseError::Unknown(unknown)),
        };
        Ok((tlv, len))
    }
}

impl Connect {
    fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let port = u16::from_be_bytes([bytes[2], bytes[3]]);
        let address: [u8; 16] = bytes[WORD..BASE_CONNECT].try_into().expect("sixteen bytes");
        let remote = SocketAddr::new(Ipv6Addr::from(address).to_canonical(), port);
        let extended = (bytes.len() > BASE_CONNECT).then(|| options::parse(&bytes[BASE_CONNECT..]));
        Ok(Connect { remote, options: extended.transpose()? })
    }
}
