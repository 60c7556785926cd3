//! Multipath TCP options (TCP option kind 30). RFC 8684 §3.

use core::fmt;

use crate::reader::Reader;
use crate::{Lengths, ParseError};

mod address;
mod capable;
mod dss;
mod fail;
mod fastclose;
mod join;
mod prio;
mod reset;

pub use address::{AddAddr, RemoveAddr};
pub use capable::{CapableFlags, CapableKeys, MpCapable};
pub use dss::{Dss, Mapping, WideOrNarrow};
pub use fail::MpFail;
pub use fastclose::MpFastclose;
pub use join::MpJoin;
pub use prio::MpPrio;
pub use reset::{MpTcprst, ResetReason};

pub use crate::subtype::Subtype;

/// TCP option kind of Multipath TCP. RFC 8684 §7.1.
pub const KIND: u8 = 30;

/// The protocol version that this crate speaks. RFC 8684 §3.1.
pub const VERSION: u8 = 1;

/// The options other than DSS. They are rare, so a segment that carries any of them owns one
/// `Control` on the heap. This keeps ordinary data segments small.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// MP_CAPABLE, RFC 8684 §3.1.
    pub capable: Option<MpCapable>,
    /// MP_JOIN, RFC 8684 §3.2.
    pub join: Option<MpJoin>,
    /// ADD_ADDR, RFC 8684 §3.4.1.
    pub add_addr: Option<AddAddr>,
    /// REMOVE_ADDR, RFC 8684 §3.4.2.
    pub remove_addr: Option<RemoveAddr>,
    /// MP_PRIO, RFC 8684 §3.3.8.
    pub prio: Option<MpPrio>,
    /// MP_FAIL, RFC 8684 §3.7.
    pub fail: Option<MpFail>,
    /// MP_FASTCLOSE, RFC 8684 §3.5.
    pub fastclose: Option<MpFastclose>,
    /// MP_TCPRST, RFC 8684 §3.6.
    pub reset: Option<MpTcprst>,
}

impl fmt::Display for Subtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Control {
    /// Length in bytes of all options, without padding.
    pub fn bytes_len(&self) -> usize {
        self.capable.map_or(0, |option| option.bytes_len())
            + self.join.map_or(0, |option| option.bytes_len())
            + self.add_addr.map_or(0, |option| option.bytes_len())
            + self.remove_addr.map_or(0, |option| option.bytes_len())
            + self.prio.map_or(0, |option| option.bytes_len())
            + self.fail.map_or(0, |option| option.bytes_len())
            + self.fastclose.map_or(0, |option| option.bytes_len())
            + self.reset.map_or(0, |option| option.bytes_len())
    }

    /// Append all options in the order of the fields, without padding.
    pub fn emit(&self, out: &mut Vec<u8>) {
        self.capable.inspect(|option| option.emit(out));
        self.join.inspect(|option| option.emit(out));
        self.add_addr.inspect(|option| option.emit(out));
        self.remove_addr.inspect(|option| option.emit(out));
        self.prio.inspect(|option| option.emit(out));
        self.fail.inspect(|option| option.emit(out));
        self.fastclose.inspect(|option| option.emit(out));
        self.reset.inspect(|option| option.emit(out));
    }
}

/// Check that `bytes` is one whole option of this subtype, with one of the expected lengths.
/// Returns the low half of the subtype byte, and a reader for the bytes after it.
fn open<'a>(
    bytes: &'a [u8],
    subtype: Subtype,
    expected: Lengths,
) -> Result<(u8, Reader<'a>), ParseError> {
    let mut reader = Reader::new(subtype.name(), bytes);
    let [kind, length, subtype_byte] = reader.array()?;
    if kind != KIND {
        return Err(ParseError::OptionKind { found: kind, expected: KIND });
    }
    if subtype_byte >> 4 != subtype as u8 {
        return Err(ParseError::MptcpSubtype { found: subtype_byte >> 4, expected: subtype });
    }
    if usize::from(length) != bytes.len() {
        return Err(ParseError::OptionOverrun { kind, found: length, available: bytes.len() });
    }
    check_length(bytes, subtype, expected)?;
    Ok((subtype_byte & 0x0f, reader))
}

fn check_length(bytes: &[u8], subtype: Subtype, expected: Lengths) -> Result<(), ParseError> {
    if expected.0.contains(&bytes.len()) {
        return Ok(());
    }
    Err(ParseError::MptcpLength { subtype, found: bytes.len(), expected })
}

/// The first three bytes of an option. The third byte combines the subtype and `low_half`.
const fn opening(subtype: Subtype, bytes_len: usize, low_half: u8) -> [u8; 3] {
    [KIND, bytes_len as u8, (subtype as u8) << 4 | low_half & 0x0f]
}

#[cfg(test)]
mod tests;
