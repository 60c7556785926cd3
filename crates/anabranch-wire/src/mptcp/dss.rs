//! DSS (subtype 2): the data sequence signal. RFC 8684 §3.3.

use super::{Subtype, check_length, open, opening};
use crate::reader::Reader;
use crate::{DataSeq, Lengths, ParseError, SeqNumber};

/// A 64-bit number that is sent as 8 bytes or as its low 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WideOrNarrow {
    /// All 64 bits.
    Wide(DataSeq),
    /// The low 32 bits; [`DataSeq::expand`] restores the rest.
    Narrow(u32),
}

/// Data Sequence Signal: a DATA_ACK, a mapping or both, and the DATA_FIN flag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dss {
    /// DATA_ACK: the next data sequence number that the sender expects.
    pub data_ack: Option<WideOrNarrow>,
    /// Maps the payload of this segment or of a later one to data sequence numbers.
    pub mapping: Option<Mapping>,
    /// F: the last byte of the mapping is the DATA_FIN. RFC 8684 §3.3.3.
    pub data_fin: bool,
}

/// A data sequence mapping. RFC 8684 §3.3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Data sequence number of the first byte.
    pub data_seq: WideOrNarrow,
    /// Subflow sequence number of the first byte, relative to the subflow's ISN: the first byte
    /// after the SYN is 1. A DATA_FIN without payload has 0.
    pub subflow_seq: SeqNumber,
    /// Bytes mapped, including the DATA_FIN. 0 is the infinite mapping of a fallback.
    pub len: u16,
    /// Checksum over payload and pseudo-header, if negotiated.
    pub checksum: Option<u16>,
}

impl WideOrNarrow {
    /// The full number, given a number close to it.
    pub fn resolve(self, near: DataSeq) -> DataSeq {
        match self {
            WideOrNarrow::Wide(number) => number,
            WideOrNarrow::Narrow(low) => near.expand(low),
        }
    }

    /// Bytes on the wire: 8 or 4.
    pub const fn bytes_len(self) -> usize {
        match self {
            WideOrNarrow::Wide(_) => 8,
            WideOrNarrow::Narrow(_) => 4,
        }
    }

    fn parse(wide: bool, reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        Ok(match wide {
            true => WideOrNarrow::Wide(DataSeq(reader.u64()?)),
            false => WideOrNarrow::Narrow(reader.u32()?),
        })
    }

    fn emit(self, out: &mut Vec<u8>) {
        match self {
            WideOrNarrow::Wide(number) => out.extend_from_slice(&number.0.to_be_bytes()),
            WideOrNarrow::Narrow(low) => out.extend_from_slice(&low.to_be_bytes()),
        }
    }
}

impl Dss {
    /// Parse one whole option, including kind and length. The length determines whether there is a
    /// checksum. The caller must check whether there should be one.
    ///
    /// # Errors
    /// If kind or subtype is not valid for DSS, or if the length does not match the flags. A
    /// checksum adds two bytes to the length that the flags imply.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let (_, mut reader) = open(bytes, Subtype::Dss, LENGTHS)?;
        let flags = reader.u8()?;
        check_length(bytes, Subtype::Dss, lengths(flags))?;
        let data_ack = (flags & DATA_ACK != 0)
            .then(|| WideOrNarrow::parse(flags & DATA_ACK_WIDE != 0, &mut reader))
            .transpose()?;
        let mapping = (flags & MAPPING != 0)
            .then(|| Mapping::parse(flags & DATA_SEQ_WIDE != 0, &mut reader))
            .transpose()?;
        Ok(Dss { data_ack, mapping, data_fin: flags & DATA_FIN != 0 })
    }

    /// Length of the option in bytes, including kind and length.
    #[inline]
    pub const fn bytes_len(&self) -> usize {
        let data_ack = match self.data_ack {
            Some(data_ack) => data_ack.bytes_len(),
            None => 0,
        };
        let mapping = match self.mapping {
            Some(mapping) => mapping.bytes_len(),
            None => 0,
        };
        FIXED + data_ack + mapping
    }

    /// Append the option, including kind and length.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let [kind, length, subtype] = opening(Subtype::Dss, self.bytes_len(), 0);
        out.extend_from_slice(&[kind, length, subtype, self.flags()]);
        if let Some(data_ack) = self.data_ack {
            data_ack.emit(out);
        }
        if let Some(mapping) = self.mapping {
            mapping.emit(out);
        }
    }

    fn flags(&self) -> u8 {
        let data_ack = match self.data_ack {
            Some(WideOrNarrow::Wide(_)) => DATA_ACK | DATA_ACK_WIDE,
            Some(WideOrNarrow::Narrow(_)) => DATA_ACK,
            None => 0,
        };
        let mapping = match self.mapping.map(|mapping| mapping.data_seq) {
            Some(WideOrNarrow::Wide(_)) => MAPPING | DATA_SEQ_WIDE,
            Some(WideOrNarrow::Narrow(_)) => MAPPING,
            None => 0,
        };
        data_ack | mapping | if self.data_fin { DATA_FIN } else { 0 }
    }
}

impl Mapping {
    /// Length in bytes of the mapping within a DSS option.
    pub const fn bytes_len(&self) -> usize {
        let checksum = if self.checksum.is_some() { CHECKSUM } else { 0 };
        self.data_seq.bytes_len() + SUBFLOW_SEQ_AND_LEN + checksum
    }

    fn parse(wide: bool, reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        Ok(Mapping {
            data_seq: WideOrNarrow::parse(wide, reader)?,
            subflow_seq: SeqNumber(reader.u32()?),
            len: reader.u16()?,
            checksum: (!reader.rest().is_empty()).then(|| reader.u16()).transpose()?,
        })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        self.data_seq.emit(out);
        out.extend_from_slice(&self.subflow_seq.0.to_be_bytes());
        out.extend_from_slice(&self.len.to_be_bytes());
        if let Some(checksum) = self.checksum {
            out.extend_from_slice(&checksum.to_be_bytes());
        }
    }
}

/// The lengths that a DSS option with these flags may have.
const fn lengths(flags: u8) -> Lengths {
    // RFC 8684 §3.3: "a" and "m" have no meaning unless "A" and "M" are set.
    let data_ack = match (flags & DATA_ACK != 0, flags & DATA_ACK_WIDE != 0) {
        (false, _) => 0,
        (true, false) => 4,
        (true, true) => 8,
    };
    let data_seq = if flags & DATA_SEQ_WIDE != 0 { 8 } else { 4 };
    Lengths(match (flags & MAPPING != 0, data_ack + data_seq) {
        (false, _) if data_ack == 0 => &[4],
        (false, _) if data_ack == 4 => &[8],
        (false, _) => &[12],
        (true, 4) => &[14, 16],
        (true, 8) => &[18, 20],
        (true, 12) => &[22, 24],
        (true, _) => &[26, 28],
    })
}

/// All lengths that DSS can have with any flags.
const LENGTHS: Lengths = Lengths(&[4, 8, 12, 14, 16, 18, 20, 22, 24, 26, 28]);

/// Bytes before the DATA_ACK: kind, length, subtype and flags. RFC 8684 §3.3, figure 9.
const FIXED: usize = 4;
const SUBFLOW_SEQ_AND_LEN: usize = 6;
const CHECKSUM: usize = 2;

/// A: DATA_ACK present. RFC 8684 §3.3.
const DATA_ACK: u8 = 0x01;
/// a: the DATA_ACK has 8 bytes.
const DATA_ACK_WIDE: u8 = 0x02;
/// M: mapping present.
const MAPPING: u8 = 0x04;
/// m: the data sequence number has 8 bytes.
const DATA_SEQ_WIDE: u8 = 0x08;
/// F: DATA_FIN.
const DATA_FIN: u8 = 0x10;
