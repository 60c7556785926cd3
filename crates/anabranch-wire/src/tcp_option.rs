//! TCP options as one inline value. RFC 9293 §3.2, RFC 7323, RFC 2018, RFC 8684, RFC 7413.

use std::ops::Deref;

use crate::fast_open::{self, FastOpenCookie};
use crate::mptcp::{
    self, AddAddr, Control, Dss, MpCapable, MpFail, MpFastclose, MpJoin, MpPrio, MpTcprst,
    RemoveAddr, Subtype,
};
use crate::reader::Reader;
use crate::{EmitError, Lengths, ParseError, SeqNumber};

/// Maximum length of the options in a TCP header. RFC 9293 §3.1 (data offset of 15 words).
pub const MAX_OPTION_BYTES: usize = 40;

/// The options of one segment. Each kind occurs at most once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// Maximum segment size in bytes (kind 2).
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
    /// The other Multipath TCP options, if there are any.
    pub control: Option<Box<Control>>,
    /// TCP Fast Open (kind 34), which only SYNs have. RFC 7413 §4.1.1.
    pub fast_open: Option<Box<FastOpenCookie>>,
    /// Options that this crate does not know, and repeated copies of options that may occur only
    /// once. At most 40 bytes, including the kind and length of each option.
    pub unknown: Option<RawOptions>,
    /// Whether each option fills whole words of 4 bytes, as Linux writes options. RFC 7323 appendix
    /// A recommends it for timestamps. The parser sets this if it explains the options' length.
    pub word_aligned: bool,
}

/// Raw bytes of options behind a thin pointer. Few segments have any, and all segments are moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawOptions(Box<Box<[u8]>>);

/// The timestamps option. RFC 7323 §3.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the echoed clock value. Valid only with ACK.
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

/// Up to four SACK blocks, in the order in which they were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    len: u8,
    blocks: [SackBlock; SackBlocks::MAX],
}

impl SackBlocks {
    /// Maximum number of blocks in 40 bytes of options.
    pub const MAX: usize = 4;

    /// Append a block unless there are four already. Returns whether it was appended.
    pub fn push(&mut self, block: SackBlock) -> bool {
        let room = usize::from(self.len) < Self::MAX;
        if room {
            self.blocks[usize::from(self.len)] = block;
            self.len += 1;
        }
        room
    }

    /// The blocks, in order.
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Returns `true` if there are no blocks.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T: Into<Box<[u8]>>> From<T> for RawOptions {
    fn from(bytes: T) -> Self {
        RawOptions(Box::new(bytes.into()))
    }
}

impl Deref for RawOptions {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl TcpOptions {
    /// The Multipath TCP options other than DSS, created on first use.
    pub fn control_mut(&mut self) -> &mut Control {
        self.control.get_or_insert_default()
    }

    /// Parse the options of one TCP header: all bytes from the end of the fixed header to the data
    /// offset.
    ///
    /// `unknown` keeps, in the order found, every option of an unknown kind or subtype, every
    /// option with an invalid length, and every repeated option.
    ///
    /// # Errors
    /// If the options cannot be separated, because a length is below 2 or exceeds `bytes`.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let mut options = TcpOptions::default();
        let mut unknown = Vec::new();
        let mut rest = bytes;
        while let Some(option) = next_option(&mut rest)? {
            if !options.apply(option) {
                unknown.extend_from_slice(option);
            }
        }
        if !unknown.is_empty() {
            options.unknown = Some(unknown.into());
        }
        if options.bytes_len() < bytes.len() {
            options.word_aligned = true;
            options.word_aligned = options.bytes_len() == bytes.len();
        }
        Ok(options)
    }

    /// Remove the options of a released segment, which owns no memory.
    #[inline]
    pub(crate) fn clear(&mut self) {
        let TcpOptions {
            mss,
            window_scale,
            sack_permitted,
            timestamps,
            sack,
            dss,
            control,
            fast_open,
            unknown,
            word_aligned,
        } = self;
        debug_assert!(control.is_none() && fast_open.is_none() && unknown.is_none(), "released");
        (*mss, *window_scale, *sack_permitted, *timestamps) = (None, None, false, None);
        (*sack, *dss, *word_aligned) = (SackBlocks::default(), None, false);
    }

    /// Length in bytes of the options in a header, including padding: a multiple of 4. A segment
    /// can be emitted if this is at most [`MAX_OPTION_BYTES`].
    #[inline]
    pub fn bytes_len(&self) -> usize {
        let handshake = usize::from(self.timestamps.is_some()) * TIMESTAMPS
            + usize::from(self.mss.is_some()) * MSS
            + usize::from(self.sack_permitted) * SACK_PERMITTED
            + usize::from(self.window_scale.is_some()) * WINDOW_SCALE;
        let mut len = self.fill(handshake);
        if let Some(dss) = &self.dss {
            len += self.fill(dss.bytes_len());
        }
        if !self.sack.is_empty() {
            len += SACK_FIXED + self.sack.as_slice().len() * SACK_BLOCK;
        }
        if self.control.is_some() || self.fast_open.is_some() || self.unknown.is_some() {
            len += self.boxed_bytes_len();
        }
        whole_words(len)
    }

    /// Bytes that a group of options occupies, with its padding.
    fn fill(&self, bytes: usize) -> usize {
        if self.word_aligned { whole_words(bytes) } else { bytes }
    }

    /// Append the options, padded with NOPs to a multiple of 4 bytes.
    ///
    /// The order is fixed: MSS, SACK permitted, timestamps, window scale, DSS, the other Multipath
    /// TCP options, TCP Fast Open, SACK, and the raw bytes of `unknown`.
    ///
    /// # Errors
    /// If the options exceed [`MAX_OPTION_BYTES`]; `out` is then unchanged.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), EmitError> {
        self.emit_sized(self.bytes_len(), out)
    }

    /// Append the options, whose [length](Self::bytes_len) is `bytes`.
    pub(crate) fn emit_sized(&self, bytes: usize, out: &mut Vec<u8>) -> Result<(), EmitError> {
        if bytes > MAX_OPTION_BYTES {
            return Err(EmitError::OptionsTooLong { bytes });
        }
        let start = out.len();
        let end = start + bytes;
        let align = |out: &mut Vec<u8>| pad(start + self.fill(out.len() - start), out);
        self.emit_handshake(out);
        align(out);
        if let Some(dss) = &self.dss {
            dss.emit(out);
            align(out);
        }
        if let Some(control) = &self.control {
            control.emit(out);
            align(out);
        }
        if let Some(cookie) = &self.fast_open {
            cookie.emit(out);
            align(out);
        }
        self.sack.emit(out);
        if let Some(unknown) = &self.unknown {
            out.extend_from_slice(unknown);
        }
        pad(end, out);
        Ok(())
    }

    /// Append timestamps and the options that only a SYN carries.
    fn emit_handshake(&self, out: &mut Vec<u8>) {
        if let Some(mss) = self.mss {
            out.extend_from_slice(&[kind::MSS, MSS as u8]);
            out.extend_from_slice(&mss.to_be_bytes());
        }
        if self.sack_permitted {
            out.extend_from_slice(&[kind::SACK_PERMITTED, SACK_PERMITTED as u8]);
        }
        if let Some(Timestamps { value, echo }) = self.timestamps {
            out.extend_from_slice(&[kind::TIMESTAMPS, TIMESTAMPS as u8]);
            out.extend_from_slice(&value.to_be_bytes());
            out.extend_from_slice(&echo.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            out.extend_from_slice(&[kind::WINDOW_SCALE, WINDOW_SCALE as u8, shift]);
        }
    }

    /// Bytes of the options on the heap. Not inlined, because data segments have none.
    #[cold]
    fn boxed_bytes_len(&self) -> usize {
        self.fill(self.control.as_deref().map_or(0, Control::bytes_len))
            + self.fill(self.fast_open.as_deref().map_or(0, FastOpenCookie::bytes_len))
            + self.unknown.as_deref().map_or(0, <[u8]>::len)
    }

    /// Store one whole option if it is known, well-formed, and the first of its kind. Returns
    /// `true` if it was stored.
    fn apply(&mut self, option: &[u8]) -> bool {
        match option[0] {
            kind::MSS => store(&mut self.mss, parse_mss(option)),
            kind::WINDOW_SCALE => store(&mut self.window_scale, parse_window_scale(option)),
            kind::TIMESTAMPS => store(&mut self.timestamps, Timestamps::parse(option)),
            kind::SACK_PERMITTED => {
                let first = !self.sack_permitted && option.len() == SACK_PERMITTED;
                self.sack_permitted |= first;
                first
            }
            kind::SACK => match SackBlocks::parse(option) {
                Ok(blocks) if self.sack.is_empty() => {
                    self.sack = blocks;
                    true
                }
                _ => false,
            },
            fast_open::KIND => {
                store(&mut self.fast_open, FastOpenCookie::parse(option).map(Box::new))
            }
            mptcp::KIND => self.apply_mptcp(option),
            _ => false,
        }
    }

    /// Store one whole Multipath TCP option under the same conditions.
    fn apply_mptcp(&mut self, option: &[u8]) -> bool {
        // RFC 9293 §3.1: a receiver ignores an unknown option, but not its segment.
        let Some(subtype) = Subtype::of(option) else { return false };
        match subtype {
            Subtype::Dss => store(&mut self.dss, Dss::parse(option)),
            Subtype::Capable => self.control(MpCapable::parse(option), |c| &mut c.capable),
            Subtype::Join => self.control(MpJoin::parse(option), |c| &mut c.join),
            Subtype::AddAddr => self.control(AddAddr::parse(option), |c| &mut c.add_addr),
            Subtype::RemoveAddr => self.control(RemoveAddr::parse(option), |c| &mut c.remove_addr),
            Subtype::Prio => self.control(MpPrio::parse(option), |c| &mut c.prio),
            Subtype::Fail => self.control(MpFail::parse(option), |c| &mut c.fail),
            Subtype::Fastclose => self.control(MpFastclose::parse(option), |c| &mut c.fastclose),
            Subtype::Tcprst => self.control(MpTcprst::parse(option), |c| &mut c.reset),
        }
    }

    /// Store a parsed option in its slot of [`Control`]. A failed parse does not create a
    /// `Control`.
    fn control<T>(
        &mut self,
        parsed: Result<T, ParseError>,
        slot: fn(&mut Control) -> &mut Option<T>,
    ) -> bool {
        parsed.is_ok() && store(slot(self.control_mut()), parsed)
    }
}

/// `bytes` rounded up to a multiple of 4.
fn whole_words(bytes: usize) -> usize {
    (bytes + 3) & !3
}

/// Append NOPs up to `end`, which is fewer than 4 bytes away.
fn pad(end: usize, out: &mut Vec<u8>) {
    // With a constant length, both calls take a few instructions.
    out.extend_from_slice(&[kind::NOP; 3]);
    out.truncate(end);
}

impl Timestamps {
    fn parse(option: &[u8]) -> Result<Self, ParseError> {
        let mut reader = open(option, Lengths(&[TIMESTAMPS]))?;
        Ok(Timestamps { value: reader.u32()?, echo: reader.u32()? })
    }
}

impl SackBlocks {
    fn parse(option: &[u8]) -> Result<Self, ParseError> {
        let mut reader = open(option, Lengths(&[10, 18, 26, 34]))?;
        let mut blocks = SackBlocks::default();
        while !reader.rest().is_empty() {
            let (start, end) = (SeqNumber(reader.u32()?), SeqNumber(reader.u32()?));
            blocks.push(SackBlock { start, end });
        }
        Ok(blocks)
    }

    fn emit(&self, out: &mut Vec<u8>) {
        if self.is_empty() {
            return;
        }
        let blocks = self.as_slice();
        out.extend_from_slice(&[kind::SACK, (SACK_FIXED + blocks.len() * SACK_BLOCK) as u8]);
        for SackBlock { start, end } in blocks {
            out.extend_from_slice(&start.0.to_be_bytes());
            out.extend_from_slice(&end.0.to_be_bytes());
        }
    }
}

fn parse_mss(option: &[u8]) -> Result<u16, ParseError> {
    open(option, Lengths(&[MSS]))?.u16()
}

fn parse_window_scale(option: &[u8]) -> Result<u8, ParseError> {
    open(option, Lengths(&[WINDOW_SCALE]))?.u8()
}

/// Check the length of one whole option. Returns a reader for the bytes after kind and length.
fn open(option: &[u8], expected: Lengths) -> Result<Reader<'_>, ParseError> {
    let mut reader = Reader::new("TCP option", option);
    let [kind, _] = reader.array()?;
    if expected.0.contains(&option.len()) {
        return Ok(reader);
    }
    Err(ParseError::OptionLength { kind, found: option.len(), expected })
}

/// Fill an empty slot with a parsed value. Returns whether the slot was filled.
fn store<T>(slot: &mut Option<T>, parsed: Result<T, ParseError>) -> bool {
    match parsed {
        Ok(value) if slot.is_none() => {
            *slot = Some(value);
            true
        }
        _ => false,
    }
}

/// Take the next option from the front of `rest`, skipping NOPs; `None` at the end of the list. The
/// returned slice has at least kind and length byte, and its length equals the length byte.
fn next_option<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, ParseError> {
    let nops = rest.iter().take_while(|byte| **byte == kind::NOP).count();
    let bytes = &rest[nops..];
    let (kind, found) = match bytes {
        [] | [kind::END, ..] => return Ok(None),
        [_] => {
            return Err(ParseError::Truncated { what: "TCP option", needed: 2, available: 1 });
        }
        [kind, found, ..] => (*kind, *found),
    };
    if found < 2 {
        return Err(ParseError::OptionTooShort { kind, found });
    }
    let (option, after) = bytes
        .split_at_checked(usize::from(found))
        .ok_or(ParseError::OptionOverrun { kind, found, available: bytes.len() })?;
    *rest = after;
    Ok(Some(option))
}

/// Option kinds. RFC 9293 §3.2 (END to MSS), RFC 7323 §2.2 and §3.2, RFC 2018 §2 and §3.
mod kind {
    pub(super) const END: u8 = 0;
    pub(super) const NOP: u8 = 1;
    pub(super) const MSS: u8 = 2;
    pub(super) const WINDOW_SCALE: u8 = 3;
    pub(super) const SACK_PERMITTED: u8 = 4;
    pub(super) const SACK: u8 = 5;
    pub(super) const TIMESTAMPS: u8 = 8;
}

// Length in bytes of each option, including kind and length; from the same sections as the kinds.
const MSS: usize = 4;
const WINDOW_SCALE: usize = 3;
const SACK_PERMITTED: usize = 2;
const SACK_FIXED: usize = 2;
const SACK_BLOCK: usize = 8;
const TIMESTAMPS: usize = 10;
