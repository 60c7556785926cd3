//! Frames of IEEE 802.11, and the headers that capture tools put before them.

use super::unread::Unread;

/// Remove the header of radiotap. Returns the frame, and whether padding follows its header.
/// <https://www.radiotap.org>
pub(super) fn radiotap(bytes: &[u8]) -> Option<(&[u8], bool)> {
    let length = usize::from(u16::from_le_bytes(bytes.get(2..4)?.try_into().ok()?));
    Some((bytes.get(length.max(8)..)?, has_padding(bytes)))
}

/// Returns `true` if the flags of radiotap say that the 802.11 header is padded to whole words.
fn has_padding(bytes: &[u8]) -> bool {
    let word = |at: usize| bytes.get(at..at + 4).map(|word| [word[0], word[1], word[2], word[3]]);
    let Some(present) = word(4).map(u32::from_le_bytes) else { return false };
    if present & FLAGS == 0 {
        return false;
    }
    // Further words of the bit map precede the fields.
    let (mut at, mut last) = (8, present);
    while last & MORE != 0 {
        let Some(next) = word(at).map(u32::from_le_bytes) else { return false };
        (last, at) = (next, at + 4);
    }
    if present & TSFT != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    bytes.get(at).is_some_and(|flags| flags & DATA_PAD != 0)
}

/// The LLC frame within a data frame. IEEE 802.11-2020 §9.3.2.1.
pub(super) fn data_frame(bytes: &[u8], is_padded: bool) -> Result<Option<&[u8]>, Unread> {
    let [control, flags, ..] = *bytes else { return Ok(None) };
    contents([control, flags], bytes, is_padded)
}

/// The same of a frame with the two bytes of frame control swapped.
pub(super) fn swapped_data_frame(bytes: &[u8]) -> Result<Option<&[u8]>, Unread> {
    let [flags, control, ..] = *bytes else { return Ok(None) };
    contents([control, flags], bytes, false)
}

fn contents(
    [control, flags]: [u8; 2],
    bytes: &[u8],
    is_padded: bool,
) -> Result<Option<&[u8]>, Unread> {
    let (kind, subtype) = (control >> 2 & 0b11, control >> 4);
    // Subtypes with this bit carry no data.
    if kind != DATA || subtype & NO_DATA != 0 {
        return Err(Unread::NotTcp);
    }
    if flags & PROTECTED != 0 {
        return Err(Unread::Encrypted);
    }
    let mut header = 24;
    if flags & (TO_DS | FROM_DS) == TO_DS | FROM_DS {
        header += 6;
    }
    if subtype & QOS != 0 {
        if bytes.get(header).is_some_and(|qos| qos & A_MSDU != 0) {
            return Err(Unread::Aggregated);
        }
        header += 2;
        if flags & ORDER != 0 {
            header += 4;
        }
    }
    if is_padded {
        header = header.next_multiple_of(4);
    }
    Ok(bytes.get(header..))
}

/// Bits of radiotap's map of fields, and of its field "flags".
const TSFT: u32 = 1;
const FLAGS: u32 = 1 << 1;
const MORE: u32 = 1 << 31;
const DATA_PAD: u8 = 0x20;

/// The type of data frames, and bits of their subtype.
const DATA: u8 = 2;
const NO_DATA: u8 = 0x4;
const QOS: u8 = 0x8;

/// Bits of the second byte of frame control.
const TO_DS: u8 = 0x01;
const FROM_DS: u8 = 0x02;
const PROTECTED: u8 = 0x40;
const ORDER: u8 = 0x80;

/// The bit of QoS control.
const A_MSDU: u8 = 0x80;
