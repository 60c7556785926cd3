//! TCP options as one inline value. RFC 9293 §3.2, RFC 7323, RFC 2018, RFC 8684.

use crate::SeqNumber;
use crate::mptcp::{Control, Dss};

/// Most octets that options may take in a TCP header. RFC 9293 §3.1 (data offset of 15 words).
pub const MAX_OPTION_OCTETS: usize = 40;

/// The options of one segment, each at most once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// Maximum segment size in octets (kind 2).
    pub mss: Option<u16>,
    /// Window scale shift (kind 3). RFC 7323 §2.
    pub window_scale: Option<u8>,
    /// SACK permitted (kind 4). RFC 2018 §2.
    pub sack_permitted: bool,
    /// Timestamps (kind 8). RFC 7323 §3.
    pub timestamps: Option<Timestamps>,
    /// SACK blocks (kind 5). RFC 2018 §3.
    pub sack: SackBlocks,
    /// Multipath TCP's data sequence signal (kind 30, subtype 2).
    pub dss: Option<Dss>,
    /// The other Multipath TCP options, when there are any.
    pub control: Option<Box<Control>>,
    /// Options that this crate does not know, or a second copy of one that may stand once only:
    /// up to 40 octets, each option with its kind and length.
    pub unknown: Option<Box<[u8]>>,
}

/// The timestamps option. RFC 7323 §3.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the clock value being echoed; meaningful with ACK.
    pub echo: u32,
}

/// One SACK block: the half-open range `start..end`. RFC 2018 §3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub start: SeqNumber,
    /// Sequence number just after the block.
    pub end: SeqNumber,
}

/// Up to four SACK blocks, in the order sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    len: u8,
    blocks: [SackBlock; SackBlocks::MAX],
}

impl SackBlocks {
    /// Most blocks that fit into 40 octets of options.
    pub const MAX: usize = 4;

    /// Append a block unless there are four already; says whether it was appended.
    pub fn push(&mut self, block: SackBlock) -> bool {
        let room = usize::from(self.len) < Self::MAX;
        if room {
            self.blocks[usize::from(self.len)] = block;
            self.len += 1;
        }
        room
    }

    /// The blocks.
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl TcpOptions {
    /// The rare Multipath TCP options, made on first use.
    pub fn control_mut(&mut self) -> &mut Control {
        self.control.get_or_insert_default()
    }
}
