//! Sketches of the packets that a place saw, to tell copies from other packets.

/// A sample of the packets of one direction: the smallest hashes of blocks of data, of
/// acknowledgements and of flags. Two samples of the same packets are equal, also if one place saw
/// the segments before they were cut or after they were merged. (Bottom-k sketch: A. Broder, On the
/// resemblance and containment of documents, 1997.)
#[derive(Debug, Default)]
pub(crate) struct Sketch {
    /// In ascending order.
    hashes: Vec<u32>,
}

impl Sketch {
    /// Add the data at `seq..seq + len`.
    pub(crate) fn data(&mut self, seq: u32, len: u32) {
        let first = seq.div_ceil(BLOCK);
        // The start of each block, and of a segment within a block.
        let count = (u64::from(seq) + u64::from(len)).div_ceil(u64::from(BLOCK));
        let blocks = count.saturating_sub(u64::from(first)).min(MOST_BLOCKS);
        if blocks == 0 {
            self.insert(u64::from(seq) | DATA);
        }
        for block in 0..blocks {
            self.insert(((u64::from(first) + block) % u64::from(BLOCKS)) | BLOCKS_OF_DATA);
        }
    }

    /// Add an acknowledgement with its window and its options, because equal numbers repeat.
    pub(crate) fn acknowledgement(&mut self, ack: u32, window: u16, options: &[u8]) {
        let numbers = u64::from(ack) | ACKNOWLEDGEMENT | u64::from(window) << 40;
        // FNV-1a.
        let mixed = options
            .iter()
            .fold(numbers, |all, byte| (all ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        self.insert(mixed);
    }

    /// Add a SYN, FIN or RST.
    pub(crate) fn flags(&mut self, seq: u32, flags: u8) {
        self.insert(u64::from(seq) | FLAGS | u64::from(flags) << 40);
    }

    fn insert(&mut self, value: u64) {
        let hash = hash(value);
        if self.hashes.len() == MOST_HASHES && self.hashes.last().is_some_and(|last| *last <= hash)
        {
            return;
        }
        if let Err(at) = self.hashes.binary_search(&hash) {
            self.hashes.insert(at, hash);
            self.hashes.truncate(MOST_HASHES);
        }
    }

    /// Size of the sample.
    pub(crate) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// An estimate of the part of the packets that the `others` contain, from 0 to 1. 0 if the
    /// samples cannot be compared.
    pub(crate) fn part_in<'s>(&self, others: impl Iterator<Item = &'s Sketch> + Clone) -> f64 {
        let limit = others.clone().map(Sketch::limit).min().unwrap_or(0).min(self.limit());
        let own: Vec<_> = self.hashes.iter().filter(|hash| **hash <= limit).collect();
        if own.is_empty() {
            return 0.0;
        }
        let known =
            |hash: &&&u32| others.clone().any(|each| each.hashes.binary_search(hash).is_ok());
        own.iter().filter(known).count() as f64 / own.len() as f64
    }

    /// The greatest hash below which the sample is complete.
    fn limit(&self) -> u32 {
        let full = self.hashes.len() == MOST_HASHES;
        self.hashes.last().filter(|_| full).map_or(u32::MAX, |last| *last)
    }
}

/// The finaliser of SplitMix64, whose upper half is used.
fn hash(value: u64) -> u32 {
    let mut hash = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (hash >> 32) as u32
}

/// Bytes of a block of sequence numbers, and how many blocks there are.
const BLOCK: u32 = 1 << 10;
const BLOCKS: u32 = 1 << 22;

/// Largest number of blocks of one segment.
const MOST_BLOCKS: u64 = 256;

/// Tags of hashed numbers: the fields that the numbers come from.
const DATA: u64 = 1 << 32;
const BLOCKS_OF_DATA: u64 = 2 << 32;
const ACKNOWLEDGEMENT: u64 = 3 << 32;
const FLAGS: u64 = 4 << 32;

/// Size of the sample. The standard error of an estimate is at most 1 / (2 √64), so 6 %.
const MOST_HASHES: usize = 64;

#[cfg(test)]
mod tests {
    use super::Sketch;

    fn of(from: u32, segments: u32, len: u32) -> Sketch {
        let mut sketch = Sketch::default();
        for segment in 0..segments {
            sketch.data(from.wrapping_add(segment * len), len);
        }
        sketch
    }

    #[test]
    fn segments_that_were_merged_are_the_same_data() {
        // 1.4 MB across the wrap, in 1000 segments or in 20.
        let start = u32::MAX - 700_000;
        let (cut, merged) = (of(start, 1_000, 1_400), of(start, 20, 70_000));
        assert!(cut.part_in([&merged].into_iter()) > 0.95);
        assert!(merged.part_in([&cut].into_iter()) > 0.95);
    }

    #[test]
    fn an_estimate_is_near_the_part() {
        let whole = of(0, 1_000, 1_400);
        let (half, other) = (of(700_000, 1_000, 1_400), of(2_000_000, 1_000, 1_400));
        assert!((half.part_in([&whole].into_iter()) - 0.5).abs() < 0.2);
        assert!(other.part_in([&whole].into_iter()) < 0.05);
        assert!(
            (other.part_in([&whole, &of(2_000_000, 900, 1_400)].into_iter()) - 0.9).abs() < 0.2
        );
        assert_eq!(Sketch::default().part_in([&whole].into_iter()), 0.0);
    }
}
