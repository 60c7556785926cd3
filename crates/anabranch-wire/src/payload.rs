//! Segment payload as at most two shared slices. The network never copies it.
//!
//! Nearly all payloads have one piece. Only those with two take memory of their own.

use bytes::Bytes;

use crate::pattern;

/// A run of bytes: a slice of the test pattern, described by two numbers, or shared memory.
#[derive(Clone, Debug)]
pub enum Piece {
    /// `len` bytes of the [`pattern`] from `phase` (below [`pattern::PERIOD`]).
    Pattern {
        /// Phase of the first byte in the pattern.
        phase: u32,
        /// Bytes in the run.
        len: u32,
    },
    /// Reference-counted memory.
    Shared(Bytes),
}

/// The payload of a segment: the concatenation of two pieces, either of which may be empty.
#[derive(Clone, Debug, Default)]
pub struct Payload {
    /// Bytes in the pieces. Every step of a segment's way asks for it.
    len: usize,
    pieces: Pieces,
}

#[derive(Clone, Debug)]
enum Pieces {
    One(Piece),
    /// Neither of them is empty.
    Two(Box<[Piece; 2]>),
}

impl Piece {
    /// No bytes.
    pub const EMPTY: Piece = Piece::Pattern { phase: 0, len: 0 };

    /// `len` bytes of the test pattern from stream offset `offset`.
    pub fn pattern(offset: u64, len: u32) -> Self {
        Piece::Pattern { phase: pattern::phase_of(offset), len }
    }

    /// Bytes in the piece.
    pub fn len(&self) -> usize {
        match self {
            Piece::Pattern { len, .. } => *len as usize,
            Piece::Shared(bytes) => bytes.len(),
        }
    }

    /// Returns `true` if the piece is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes `from..to` of this piece, sharing its memory.
    ///
    /// # Panics
    /// If `from` > `to` or `to` > `self.len()`.
    pub fn slice(&self, from: usize, to: usize) -> Piece {
        assert!(from <= to && to <= self.len(), "slice of a piece out of bounds");
        match self {
            Piece::Pattern { phase, .. } => {
                Piece::pattern(u64::from(*phase) + from as u64, (to - from) as u32)
            }
            Piece::Shared(bytes) => Piece::Shared(bytes.slice(from..to)),
        }
    }

    /// Append `next` if both form one run of the test pattern. Otherwise return it.
    pub fn try_join(&mut self, next: Piece) -> Result<(), Piece> {
        if self.is_empty() {
            *self = next;
            return Ok(());
        }
        match (&mut *self, &next) {
            (
                Piece::Pattern { phase, len },
                Piece::Pattern { phase: next_phase, len: next_len },
            ) if pattern::phase_of(u64::from(*phase) + u64::from(*len)) == *next_phase
                && len.checked_add(*next_len).is_some() =>
            {
                *len += next_len;
                Ok(())
            }
            _ => Err(next),
        }
    }

    /// Append a copy of `next` if both are bytes in memory, and have at most `most` bytes together.
    /// Otherwise return it.
    pub fn join_short(&mut self, next: Piece, most: usize) -> Result<(), Piece> {
        match (&*self, &next) {
            (Piece::Shared(first), Piece::Shared(second)) if first.len() + second.len() <= most => {
                *self = Piece::Shared([&first[..], &second[..]].concat().into());
                Ok(())
            }
            _ => Err(next),
        }
    }

    /// Call `f` with all bytes in order, in one or more slices.
    pub fn for_each_slice(&self, mut f: impl FnMut(&[u8])) {
        match self {
            Piece::Shared(bytes) => f(bytes),
            Piece::Pattern { phase, len } => {
                let (mut phase, mut left) = (u64::from(*phase), *len as usize);
                while left > 0 {
                    let n = left.min(pattern::MAX_SLICE);
                    f(pattern::slice(pattern::phase_of(phase), n));
                    phase += n as u64;
                    left -= n;
                }
            }
        }
    }

    /// Append the first `len` bytes to `out`.
    fn append_start(&self, len: usize, out: &mut Vec<u8>) {
        match self {
            Piece::Shared(bytes) => out.extend_from_slice(&bytes[..len]),
            Piece::Pattern { phase, .. } => Piece::Pattern { phase: *phase, len: len as u32 }
                .for_each_slice(|bytes| out.extend_from_slice(bytes)),
        }
    }

    /// Returns `true` if the piece equals the test pattern at stream offset `offset`.
    ///
    /// Pieces of the pattern are compared by phase, shared memory byte by byte.
    pub fn matches_pattern(&self, offset: u64) -> bool {
        match self {
            Piece::Pattern { phase, len } => *len == 0 || *phase == pattern::phase_of(offset),
            Piece::Shared(bytes) => {
                bytes.chunks(pattern::MAX_SLICE).enumerate().all(|(i, chunk)| {
                    let at = offset + (i * pattern::MAX_SLICE) as u64;
                    chunk == pattern::slice(pattern::phase_of(at), chunk.len())
                })
            }
        }
    }
}

impl Default for Piece {
    fn default() -> Self {
        Piece::EMPTY
    }
}

impl PartialEq for Piece {
    fn eq(&self, other: &Piece) -> bool {
        if let (Piece::Pattern { phase, len }, Piece::Pattern { phase: p, len: l }) = (self, other)
            && len == l
            && phase == p
        {
            return true;
        }
        let (mut a, mut b) = (Vec::new(), Vec::new());
        self.for_each_slice(|bytes| a.extend_from_slice(bytes));
        other.for_each_slice(|bytes| b.extend_from_slice(bytes));
        a == b
    }
}

impl Eq for Piece {}

impl From<Bytes> for Piece {
    fn from(bytes: Bytes) -> Self {
        Piece::Shared(bytes)
    }
}

impl Default for Pieces {
    fn default() -> Self {
        Pieces::One(Piece::EMPTY)
    }
}

impl Payload {
    /// No bytes.
    pub const EMPTY: Payload = Payload { len: 0, pieces: Pieces::One(Piece::EMPTY) };

    /// `first` followed by `second`, merged into one piece if they form one run of the pattern.
    pub fn new(mut first: Piece, second: Piece) -> Self {
        match first.try_join(second) {
            Ok(()) => first.into(),
            Err(second) if second.is_empty() => first.into(),
            Err(second) => Payload {
                len: first.len() + second.len(),
                pieces: Pieces::Two(Box::new([first, second])),
            },
        }
    }

    /// Bytes in the payload.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if the payload is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes `from..to` of this payload, sharing its memory.
    ///
    /// # Panics
    /// If `from` > `to` or `to` > `self.len()`.
    pub fn slice(&self, from: usize, to: usize) -> Payload {
        let [first, second] = match &self.pieces {
            Pieces::One(piece) => return piece.slice(from, to).into(),
            Pieces::Two(pieces) => &**pieces,
        };
        let split = first.len();
        Payload::new(
            first.slice(from.min(split), to.min(split)),
            second.slice(from.max(split) - split, to.max(split) - split),
        )
    }

    /// `first` followed by `second`. The memory is shared if two pieces suffice, and copied
    /// otherwise.
    pub fn concat(first: &Payload, second: &Payload) -> Payload {
        let mut joined = [Piece::EMPTY, Piece::EMPTY];
        let mut at = 0;
        let pieces = first.pieces().into_iter().chain(second.pieces());
        for piece in pieces.filter(|piece| !piece.is_empty()).cloned() {
            if let Err(piece) = joined[at].try_join(piece) {
                if at == 1 {
                    return Payload::from([first.to_vec(), second.to_vec()].concat());
                }
                at = 1;
                joined[at] = piece;
            }
        }
        let [first, second] = joined;
        Payload::new(first, second)
    }

    /// The two pieces, in order.
    pub fn into_pieces(self) -> [Piece; 2] {
        match self.pieces {
            Pieces::One(piece) => [piece, Piece::EMPTY],
            Pieces::Two(pieces) => *pieces,
        }
    }

    /// The two pieces, in order.
    pub fn pieces(&self) -> [&Piece; 2] {
        match &self.pieces {
            Pieces::One(piece) => [piece, &Piece::EMPTY],
            Pieces::Two(pieces) => [&pieces[0], &pieces[1]],
        }
    }

    /// Call `f` with all bytes in order, in one or more slices.
    pub fn for_each_slice(&self, mut f: impl FnMut(&[u8])) {
        let [first, second] = self.pieces();
        first.for_each_slice(&mut f);
        second.for_each_slice(f);
    }

    /// Append the first `len` bytes to `out`.
    ///
    /// # Panics
    /// If `len` > `self.len()`.
    pub(crate) fn append_start(&self, len: usize, out: &mut Vec<u8>) {
        assert!(len <= self.len(), "start of a payload out of bounds");
        let [first, second] = self.pieces();
        let of_first = len.min(first.len());
        first.append_start(of_first, out);
        second.append_start(len - of_first, out);
    }

    /// A copy of the bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len());
        self.for_each_slice(|slice| bytes.extend_from_slice(slice));
        bytes
    }

    /// Returns `true` if the payload equals the test pattern at stream offset `offset`.
    pub fn matches_pattern(&self, offset: u64) -> bool {
        let [first, second] = self.pieces();
        first.matches_pattern(offset) && second.matches_pattern(offset + first.len() as u64)
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Payload) -> bool {
        self.len() == other.len()
            && (self.pieces() == other.pieces() || self.to_vec() == other.to_vec())
    }
}

impl Eq for Payload {}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        Piece::Shared(bytes).into()
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<Piece> for Payload {
    #[inline]
    fn from(piece: Piece) -> Self {
        Payload { len: piece.len(), pieces: Pieces::One(piece) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_the_pattern_equal_the_memory_they_describe() {
        let piece = Piece::pattern(pattern::PERIOD - 100, 3_000);
        let memory = {
            let mut bytes = Vec::new();
            piece.for_each_slice(|slice| bytes.extend_from_slice(slice));
            Piece::Shared(bytes.into())
        };
        assert_eq!(piece, memory);
        assert_eq!(piece.slice(50, 2_000), memory.slice(50, 2_000));
        assert!(memory.matches_pattern(pattern::PERIOD - 100));
        assert!(!memory.matches_pattern(pattern::PERIOD - 99));
    }

    #[test]
    fn a_slice_across_both_pieces_keeps_the_order() {
        let payload = Payload::new(
            Piece::Shared(Bytes::from_static(b"abcd")),
            Piece::Shared(Bytes::from_static(b"efgh")),
        );
        assert_eq!(payload.slice(2, 6).to_vec(), b"cdef");
        assert_eq!(payload.slice(5, 6).to_vec(), b"f");
        assert_eq!(payload.slice(0, 0).len(), 0);
    }

    #[test]
    fn concat_copies_only_if_two_pieces_do_not_suffice() {
        let [first, second] = [(0, 10), (10, 5)].map(|(at, len)| Piece::pattern(at, len).into());
        let joined = Payload::concat(&first, &second);
        assert!(matches!(joined.pieces()[0], Piece::Pattern { len: 15, .. }));
        let text = Payload::from(b"text".to_vec());
        let mixed = Payload::concat(&joined, &text);
        assert!(matches!(mixed.pieces()[0], Piece::Pattern { len: 15, .. }));
        let three = Payload::concat(&mixed, &first);
        assert_eq!(three.len(), 29);
        assert!(three.slice(0, 15).matches_pattern(0) && three.slice(19, 29).matches_pattern(0));
        assert_eq!(three.slice(15, 19), text);
        assert!(Payload::concat(&Payload::EMPTY, &Payload::EMPTY).is_empty());
    }

    #[test]
    fn adjacent_runs_of_the_pattern_become_one_piece() {
        let payload = Payload::new(Piece::pattern(100, 50), Piece::pattern(150, 50));
        assert!(payload.pieces()[1].is_empty());
        assert!(payload.matches_pattern(100));
    }
}
