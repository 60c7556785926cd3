//! The classic format: one header, then packets. draft-ietf-opsawg-pcap.

use std::io::Read;

use anabranch_wire::Instant;

use super::{Endian, Frame, Input, MOST_BYTES, ReadError};

/// The settings that apply to all packets of a file.
pub(super) struct Header {
    endian: Endian,
    /// Nanoseconds per unit of a timestamp's fraction.
    unit: u64,
    link_type: u16,
}

/// The byte order, and the nanoseconds per unit of a timestamp's fraction, of a magic number.
pub(super) fn form(magic: [u8; 4]) -> Option<(Endian, u64)> {
    Some(match magic {
        [0xd4, 0xc3, 0xb2, 0xa1] => (Endian::Little, 1_000),
        [0xa1, 0xb2, 0xc3, 0xd4] => (Endian::Big, 1_000),
        [0x4d, 0x3c, 0xb2, 0xa1] => (Endian::Little, 1),
        [0xa1, 0xb2, 0x3c, 0x4d] => (Endian::Big, 1),
        _ => return None,
    })
}

impl Header {
    /// Read the header after its magic number; `None` if the number belongs to another format.
    pub(super) fn read<R: Read>(
        magic: [u8; 4],
        input: &mut Input<R>,
    ) -> Result<Option<Self>, ReadError> {
        let Some((endian, unit)) = form(magic) else { return Ok(None) };
        let mut rest = [0; 20];
        input.rest(0, &mut rest)?;
        // The upper half of the last word describes the trailer of each packet.
        let link_type = endian.u32(&rest, 16).map_or(0, |word| word as u16);
        Ok(Some(Header { endian, unit, link_type }))
    }

    pub(super) fn next<R: Read>(
        &mut self,
        input: &mut Input<R>,
        frame: &mut Frame,
    ) -> Result<bool, ReadError> {
        let start = input.offset;
        let mut header = [0; 16];
        if !input.fill(&mut header)? {
            return Ok(false);
        }
        let word = |at| self.endian.u32(&header, at).unwrap_or(0);
        let (seconds, fraction, captured, whole) = (word(0), word(4), word(8), word(12));
        if captured > MOST_BYTES {
            return Err(ReadError::wrong(start, format!("a packet claims {captured} bytes")));
        }
        frame.section = 0;
        frame.interface = 0;
        frame.link_type = self.link_type;
        let nanos = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * self.unit;
        frame.time = Instant::from_nanos(nanos);
        frame.whole = whole.max(captured);
        frame.bytes.resize(captured as usize, 0);
        input.rest(start, &mut frame.bytes)?;
        Ok(true)
    }
}
