//! DSS (subtype 2): the data sequence signal. RFC 8684 §3.3.

use crate::{DataSeq, SeqNumber};

/// A number that is sent in 8 octets, or as its low 4 octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WideOrNarrow {
    /// All 64 bits.
    Wide(DataSeq),
    /// The low 32 bits; [`DataSeq::expand`] restores the rest.
    Narrow(u32),
}

/// Data Sequence Signal: a DATA_ACK, a mapping, or both, and the DATA_FIN flag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dss {
    /// DATA_ACK: the next data sequence number expected.
    pub data_ack: Option<WideOrNarrow>,
    /// Which data this segment's payload (or a later one's) is.
    pub mapping: Option<Mapping>,
    /// F: the mapping's last octet is the DATA_FIN. RFC 8684 §3.3.3.
    pub data_fin: bool,
}

/// A data sequence mapping. RFC 8684 §3.3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Data sequence number of the first octet.
    pub data_seq: WideOrNarrow,
    /// Subflow sequence number of the first octet, relative to the subflow's ISN (the first
    /// octet after the SYN is 1); 0 for a DATA_FIN without payload.
    pub subflow_seq: SeqNumber,
    /// Octets mapped, the DATA_FIN's included; 0 is the infinite mapping of a fallback.
    pub len: u16,
    /// Checksum over payload and pseudo-header, when negotiated.
    pub checksum: Option<u16>,
}

impl WideOrNarrow {
    /// The full number, given a nearby one.
    pub fn resolve(self, near: DataSeq) -> DataSeq {
        match self {
            WideOrNarrow::Wide(number) => number,
            WideOrNarrow::Narrow(low) => near.expand(low),
        }
    }
}
