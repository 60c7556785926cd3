//! Reading captures: pcapng and pcap, packet by packet.

mod compressed;
mod datagram;
mod decoder;
mod fragments;
mod header;
mod layer;
mod link;
mod pcap;
mod pcapng;
mod unread;
mod wireless;

use std::fmt;
use std::io::{self, ErrorKind, Read};

use anabranch_wire::Instant;

use crate::words::counted;

pub(crate) use compressed::decompressed;
pub(crate) use decoder::Decoder;
pub(crate) use unread::Unread;

/// A packet of a capture.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    /// Number of the packet in the file, starting at 1 as in Wireshark.
    pub(crate) number: u64,
    /// Section of a pcapng file, starting at 0.
    pub(crate) section: u32,
    /// Interface within the section.
    pub(crate) interface: u32,
    pub(crate) time: Instant,
    /// Type of the link-layer header: a LINKTYPE_ number.
    pub(crate) link_type: u16,
    /// The captured bytes.
    pub(crate) bytes: Vec<u8>,
    /// Length of the packet before the capture cut it.
    pub(crate) whole: u32,
    /// Number of times that the clock went far back before this packet. Packets before and after such a
    /// step cannot be ordered by their times.
    pub(crate) stretch: u32,
}

/// Damage at which reading a file stops.
#[derive(Debug, PartialEq, Eq)]
pub struct Damage {
    /// Offset of the damage in the file.
    pub offset: u64,
    /// Description of the damage.
    pub what: String,
    /// Number of packets before the damage.
    pub packets: u64,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.offset == 0 && self.packets == 0 {
            return f.write_str(&self.what);
        }
        let packets = counted(self.packets, "packet precedes", "packets precede");
        write!(f, "at byte {}: {}; {packets} it", self.offset, self.what)
    }
}

/// Reads the packets of one file in their order in the file.
pub(crate) struct CaptureReader<R> {
    input: Input<R>,
    format: Format,
    packets: u64,
}

enum Format {
    Pcap(pcap::Header),
    Pcapng(pcapng::Section),
}

impl<R: Read> CaptureReader<R> {
    /// Detect the format from the first bytes.
    pub(crate) fn new(input: R) -> Result<Self, Damage> {
        let mut input = Input { inner: input, offset: 0 };
        let format = open(&mut input).map_err(|error| error.damage(0, 0))?;
        Ok(CaptureReader { input, format, packets: 0 })
    }

    /// Read the next packet into `frame`, and return whether there was one.
    pub(crate) fn next(&mut self, frame: &mut Frame) -> Result<bool, Damage> {
        let read = match &mut self.format {
            Format::Pcap(header) => header.next(&mut self.input, frame),
            Format::Pcapng(section) => section.next(&mut self.input, frame),
        };
        if let Ok(true) = read {
            self.packets += 1;
            frame.number = self.packets;
        }
        read.map_err(|error| error.damage(self.input.offset, self.packets))
    }

    /// Name of an interface of the current section.
    pub(crate) fn interface_name(&self, interface: u32) -> Option<&str> {
        match &self.format {
            Format::Pcap(_) => None,
            Format::Pcapng(section) => section.name(interface),
        }
    }
}

/// Reason why reading stopped.
enum ReadError {
    /// The contents are invalid. `at` is the offset at which reading of the packet or block began.
    Wrong {
        at: u64,
        what: String,
    },
    Io(io::Error),
}

impl ReadError {
    fn wrong(at: u64, what: impl Into<String>) -> Self {
        ReadError::Wrong { at, what: what.into() }
    }

    fn damage(self, offset: u64, packets: u64) -> Damage {
        match self {
            ReadError::Wrong { at, what } => Damage { offset: at, what, packets },
            ReadError::Io(error) => Damage { offset, what: error.to_string(), packets },
        }
    }
}

/// Counts bytes.
struct Input<R> {
    inner: R,
    offset: u64,
}

impl<R: Read> Input<R> {
    /// Fill `bytes`. Returns `false` at the end of the file, and an error if the file ends earlier.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<bool, ReadError> {
        let start = self.offset;
        let mut filled = 0;
        while filled < bytes.len() {
            match self.inner.read(&mut bytes[filled..]) {
                Ok(0) if filled == 0 => return Ok(false),
                Ok(0) => {
                    return Err(ReadError::wrong(start, "the file ends in the middle of a packet"));
                }
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(ReadError::Io(error)),
            }
            self.offset = start + filled as u64;
        }
        Ok(true)
    }

    /// Fill `bytes`, which belong to the packet or block that began at `start`.
    fn rest(&mut self, start: u64, bytes: &mut [u8]) -> Result<(), ReadError> {
        if bytes.is_empty() {
            return Ok(());
        }
        match self.fill(bytes) {
            Ok(true) => Ok(()),
            Ok(false) | Err(ReadError::Wrong { .. }) => {
                Err(ReadError::wrong(start, "the file ends in the middle of a packet"))
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns `true` if a file that begins with these bytes is a capture, perhaps a compressed one. At
/// least 4 bytes are needed. The contents of a compressed file remain unknown.
pub fn begins_capture(bytes: &[u8]) -> bool {
    bytes.first_chunk().is_some_and(|magic| {
        *magic == pcapng::SECTION_HEADER
            || pcap::form(*magic).is_some()
            || is_foreign(*magic)
            || compressed::is_compressed(magic)
    })
}

/// Returns `true` if a file is compressed in a way that is not read: xz, bzip2 or lz4.
fn is_foreign(magic: [u8; 4]) -> bool {
    matches!(
        magic,
        [0xfd, b'7', b'z', b'X'] | [0x42, 0x5a, 0x68, b'1'..=b'9'] | [0x04, 0x22, 0x4d, 0x18]
    )
}

fn open<R: Read>(input: &mut Input<R>) -> Result<Format, ReadError> {
    let mut magic = [0; 4];
    let what = match input.fill(&mut magic) {
        Ok(true) => match magic {
            pcapng::SECTION_HEADER => {
                return Ok(Format::Pcapng(pcapng::Section::begin(input)?));
            }
            magic if is_foreign(magic) => {
                "compressed with xz, bzip2 or lz4: unpack it first (gzip and Zstandard are read as \
                 they are)"
            }
            magic => {
                if let Some(header) = pcap::Header::read(magic, input)? {
                    return Ok(Format::Pcap(header));
                }
                "not a capture: neither pcapng nor pcap"
            }
        },
        Ok(false) => "empty",
        Err(ReadError::Wrong { .. }) => "not a capture: neither pcapng nor pcap",
        Err(error) => return Err(error),
    };
    Err(ReadError::wrong(0, what))
}

/// Largest size of a packet or block. A file that claims more is damaged.
const MOST_BYTES: u32 = 1 << 24;

/// Byte order of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endian {
    Little,
    Big,
}

impl Endian {
    fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let bytes = bytes.get(at..at + 2)?.try_into().ok()?;
        Some(match self {
            Endian::Little => u16::from_le_bytes(bytes),
            Endian::Big => u16::from_be_bytes(bytes),
        })
    }

    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(match self {
            Endian::Little => u32::from_le_bytes(bytes),
            Endian::Big => u32::from_be_bytes(bytes),
        })
    }
}
