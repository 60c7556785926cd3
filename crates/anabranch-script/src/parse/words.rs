//! Words and numbers that segments, options and calls share.

use crate::cursor::{Cursor, Parsed};
use crate::layout::ADDRESSES;

/// The number in `host2`, for the name `host`.
pub(super) fn numbered(word: &str, name: &str) -> Option<u8> {
    let number = word.strip_prefix(name)?.parse().ok()?;
    (number < ADDRESSES).then_some(number)
}

/// A sequence number, which wraps. Negative numbers precede the initial sequence number.
pub(super) fn relative(cursor: &mut Cursor<'_>, what: &str) -> Parsed<u32> {
    let negative = cursor.take("-")?;
    let number = cursor.number(what, u64::from(u32::MAX))? as u32;
    Ok(if negative { number.wrapping_neg() } else { number })
}

/// Consume a word if it is the next.
pub(super) fn keyword(cursor: &mut Cursor<'_>, name: &str) -> Parsed<bool> {
    let found = cursor.peek_word()? == name;
    if found {
        cursor.word()?;
    }
    Ok(found)
}
