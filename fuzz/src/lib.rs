//! What is fuzzed: each function takes whatever comes, and panics if something is wrong.
//!
//! `make fuzz` runs them under libFuzzer. `tests/corpus.rs` runs what that has found so far, as
//! part of `make test`.

mod hosts;

use anabranch_wire::{Packet, TcpOptions};
pub use hosts::{Operation, endpoint, peers};

/// TCP options, from any bytes: what can be read can be written and read again.
pub fn options(bytes: &[u8]) {
    let Ok(options) = TcpOptions::parse(bytes) else { return };
    let mut written = Vec::new();
    if options.emit(&mut written).is_ok() {
        assert_eq!(TcpOptions::parse(&written).as_ref(), Ok(&options));
        assert_eq!(written.len(), options.bytes_len());
    }
}

/// A whole IP packet, from any bytes.
pub fn packet(bytes: &[u8]) {
    let Ok(packet) = Packet::parse(bytes) else { return };
    let mut written = Vec::new();
    if packet.emit(&mut written).is_ok() {
        let again = Packet::parse(&written).expect("what was written can be read");
        let mut twice = Vec::new();
        again.emit(&mut twice).expect("and written again");
        assert_eq!(written, twice);
    }
}
