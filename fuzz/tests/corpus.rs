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
