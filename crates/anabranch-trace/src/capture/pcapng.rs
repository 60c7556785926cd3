//! The block format. draft-ietf-opsawg-pcapng.

use std::io::Read;

use anabranch_wire::Instant;

use super::{Endian, Frame, Input, MOST_BYTES, ReadError};

/// Type of the block that begins a section, which is the same in both byte orders.
pub(super) const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// The current section.
pub(super) struct Section {
    number: u32,
    endian: Endian,
    interfaces: Vec<Interface>,
    /// The current block without its type and lengths.
    body: Vec<u8>,
    /// Time of the last packet, for packets without a timestamp.
    time: Instant,
}

struct Interface {
    link_type: u16,
    /// Largest size of a captured packet; 0 means unlimited.
    snap_length: u32,
    ticks_per_second: u64,
    /// Seconds to add to timestamps.
    offset: i64,
    name: Option<String>,
}

impl Section {
    /// Continue after the type of a section header block.
    pub(super) fn begin<R: Read>(input: &mut Input<R>) -> Result<Self, ReadError> {
        let mut section = Section {
            number: 0,
            endian: Endian::Little,
            interfaces: Vec::new(),
            body: Vec::new(),
            time: Instant::ZERO,
        };
        section.read_header(input)?;
        Ok(section)
    }

    pub(super) fn name(&self, interface: u32) -> Option<&str> {
        self.interfaces.get(interface as usize)?.name.as_deref()
    }

    pub(super) fn next<R: Read>(
        &mut self,
        input: &mut Input<R>,
        frame: &mut Frame,
    ) -> Result<bool, ReadError> {
        loop {
            let start = input.offset;
            let mut block_type = [0; 4];
            if !input.fill(&mut block_type)? {
                return Ok(false);
            }
            if block_type == SECTION_HEADER {
                self.number += 1;
                self.interfaces.clear();
                self.read_header(input)?;
                continue;
            }
            self.read_body(start, 8, input)?;
            let whole = match self.endian.u32(&block_type, 0) {
                Some(INTERFACE_DESCRIPTION) => self.describe_interface().map(|()| false),
                Some(ENHANCED_PACKET) => self.enhanced(frame),
                Some(OBSOLETE_PACKET) => self.obsolete(frame),
                Some(SIMPLE_PACKET) => self.simple(frame),
                _ => Some(false),
            };
            match whole {
                Some(true) => return Ok(true),
                Some(false) => {}
                None => return Err(ReadError::wrong(start, "a block with inconsistent contents")),
            }
        }
    }

    /// Read a section header whose type has been read.
    fn read_header<R: Read>(&mut self, input: &mut Input<R>) -> Result<(), ReadError> {
        let start = input.offset - 4;
        let mut opening = [0; 8];
        input.rest(start, &mut opening)?;
        let (length, magic) = opening.split_at(4);
        self.endian = match magic {
            [0x4d, 0x3c, 0x2b, 0x1a] => Endian::Little,
            [0x1a, 0x2b, 0x3c, 0x4d] => Endian::Big,
            _ => return Err(ReadError::wrong(start, "a section without a byte-order mark")),
        };
        let length = self.endian.u32(length, 0).unwrap_or(0);
        self.read_rest(start, length, 12, input)
    }

    /// Read the length of a block and its contents, after `read` bytes of the block.
    fn read_body<R: Read>(
        &mut self,
        start: u64,
        read: u32,
        input: &mut Input<R>,
    ) -> Result<(), ReadError> {
        let mut length = [0; 4];
        input.rest(start, &mut length)?;
        let length = self.endian.u32(&length, 0).unwrap_or(0);
        self.read_rest(start, length, read, input)
    }

    /// Read a block to its end, where its length is repeated.
    fn read_rest<R: Read>(
        &mut self,
        start: u64,
        length: u32,
        read: u32,
        input: &mut Input<R>,
    ) -> Result<(), ReadError> {
        let rest = length.checked_sub(read + 4).filter(|_| length <= MOST_BYTES);
        let Some(rest) = rest else {
            return Err(ReadError::wrong(start, format!("a block claims {length} bytes")));
        };
        self.body.resize(rest as usize, 0);
        input.rest(start, &mut self.body)?;
        let mut again = [0; 4];
        input.rest(start, &mut again)?;
        if self.endian.u32(&again, 0) != Some(length) {
            return Err(ReadError::wrong(start, "a block whose two lengths differ"));
        }
        Ok(())
    }

    fn describe_interface(&mut self) -> Option<()> {
        let mut interface = Interface {
            link_type: self.endian.u16(&self.body, 0)?,
            snap_length: self.endian.u32(&self.body, 4)?,
            ticks_per_second: 1_000_000,
            offset: 0,
            name: None,
        };
        let mut at = 8;
        while let Some((code, value)) = option(self.endian, &self.body, &mut at) {
            match (code, value) {
                (IF_NAME, name) => {
                    interface.name = Some(String::from_utf8_lossy(name).into_owned());
                }
                (IF_TSRESOL, [resolution]) => {
                    let power = u32::from(resolution & 0x7f);
                    let base: u64 = if resolution & 0x80 == 0 { 10 } else { 2 };
                    interface.ticks_per_second = base.checked_pow(power)?;
                }
                (IF_TSOFFSET, bytes) => {
                    let low = i64::from(self.endian.u32(bytes, 0)?);
                    let high = i64::from(self.endian.u32(bytes, 4)?);
                    interface.offset = match self.endian {
                        Endian::Little => high << 32 | low,
                        Endian::Big => low << 32 | high,
                    };
                }
                _ => {}
            }
        }
        if self.interfaces.len() < MOST_INTERFACES {
            self.interfaces.push(interface);
        }
        Some(())
    }

    fn enhanced(&mut self, frame: &mut Frame) -> Option<bool> {
        let word = |at| self.endian.u32(&self.body, at);
        let (interface, high, low) = (word(0)?, word(4)?, word(8)?);
        let ticks = u64::from(high) << 32 | u64::from(low);
        self.packet(interface, Some(ticks), 20, [word(12)?, word(16)?], frame)
    }

    fn obsolete(&mut self, frame: &mut Frame) -> Option<bool> {
        let interface = self.endian.u16(&self.body, 0)?;
        let word = |at| self.endian.u32(&self.body, at);
        let ticks = u64::from(word(4)?) << 32 | u64::from(word(8)?);
        self.packet(u32::from(interface), Some(ticks), 20, [word(12)?, word(16)?], frame)
    }

    fn simple(&mut self, frame: &mut Frame) -> Option<bool> {
        let whole = self.endian.u32(&self.body, 0)?;
        let most = match self.interfaces.first()?.snap_length {
            0 => u32::MAX,
            length => length,
        };
        self.packet(0, None, 4, [whole.min(most), whole], frame)
    }

    /// The packet at `at`: the file has `captured` of its `whole` bytes.
    fn packet(
        &mut self,
        interface: u32,
        ticks: Option<u64>,
        at: usize,
        [captured, whole]: [u32; 2],
        frame: &mut Frame,
    ) -> Option<bool> {
        let about = self.interfaces.get(interface as usize)?;
        let bytes = self.body.get(at..)?.get(..captured as usize)?;
        if let Some(ticks) = ticks {
            self.time = about.time(ticks);
        }
        frame.section = self.number;
        frame.interface = interface;
        frame.link_type = about.link_type;
        frame.time = self.time;
        frame.whole = whole.max(captured);
        frame.bytes.clear();
        frame.bytes.extend_from_slice(bytes);
        Some(true)
    }
}

impl Interface {
    fn time(&self, ticks: u64) -> Instant {
        let ticks = i128::from(ticks);
        // Wide divisions are slow, and most clocks need none.
        let nanos = if NANOS_PER_SECOND.is_multiple_of(self.ticks_per_second) {
            ticks * i128::from(NANOS_PER_SECOND / self.ticks_per_second)
        } else {
            ticks * i128::from(NANOS_PER_SECOND) / i128::from(self.ticks_per_second)
        };
        let shifted = nanos + i128::from(self.offset) * i128::from(NANOS_PER_SECOND);
        Instant::from_nanos(shifted.clamp(0, i128::from(u64::MAX)) as u64)
    }
}

/// Code and value of the option at `at`, which advances; `None` at the end of the list.
fn option<'a>(endian: Endian, body: &'a [u8], at: &mut usize) -> Option<(u16, &'a [u8])> {
    let (code, length) = (endian.u16(body, *at)?, usize::from(endian.u16(body, *at + 2)?));
    if code == END_OF_OPTIONS {
        return None;
    }
    let value = body.get(*at + 4..*at + 4 + length)?;
    *at += 4 + length.next_multiple_of(4);
    Some((code, value))
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Block types.
const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// Option codes.
const END_OF_OPTIONS: u16 = 0;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;

/// Largest number of interfaces of a section; more count as damage.
const MOST_INTERFACES: usize = 65_536;
