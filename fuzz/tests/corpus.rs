//! Replays the committed corpus of each fuzz target.

use std::path::Path;

use arbitrary::{Arbitrary, Unstructured};

/// Pass each file of a corpus to `target`. Returns the number of files.
fn replay(name: &str, target: impl Fn(&[u8])) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a file of the corpus").path())
        .collect();
    files.sort();
    for file in &files {
        target(&std::fs::read(file).expect("a file of the corpus"));
    }
    assert!(!files.is_empty(), "no corpus in {}", folder.display());
    files.len()
}

#[test]
fn options() {
    replay("options", anabranch_fuzz::options);
}

#[test]
fn packets() {
    replay("packet", anabranch_fuzz::packet);
}

#[test]
fn convert_messages() {
    replay("convert", anabranch_fuzz::convert);
}

#[test]
fn an_endpoint_with_arbitrary_segments() {
    replay("endpoint", anabranch_fuzz::endpoint);
}

#[test]
fn two_peers_one_of_them_hostile() {
    replay("peers", |bytes| {
        let operations = Vec::arbitrary_take_rest(Unstructured::new(bytes));
        anabranch_fuzz::peers(&operations.unwrap_or_default());
    });
}

#[test]
fn undisturbed_peers_end_in_order() {
    use anabranch_fuzz::Operation;
    for seed in 0..4_000_u64 {
        let mut state = seed + 1;
        let mut draw = |n: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let mut operations: Vec<_> = (0..10 + seed % 80)
            .map(|_| match draw(10) {
                0..3 => Operation::Deliver(draw(4) as u8),
                3 => Operation::Overtake(draw(8) as u8),
                4 => Operation::Lose(draw(8) as u8),
                5 => Operation::Repeat(draw(8) as u8),
                6 => Operation::Wait(draw(8) as u8),
                7 | 8 => Operation::Write { server: draw(2) == 1, bytes: draw(20_000) as u16 },
                _ => Operation::Close { server: draw(2) == 1 },
            })
            .collect();
        if seed % 4 == 3 {
            // With data in the SYN.
            let all = || Operation::Use { sack: true, timestamps: true };
            operations.splice(0..0, [all(), all()]);
        }
        anabranch_fuzz::peers(&operations);
    }
}
