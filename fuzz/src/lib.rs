//! Fuzz targets. Each function takes arbitrary input and panics if it finds a fault.
//!
//! `make fuzz` runs the targets under libFuzzer. `tests/corpus.rs` replays the committed corpus as
//! part of `make test`.

mod hosts;

use anabranch_proxy::convert::{Client, Message, Relay, RelayStep};
use anabranch_wire::{Packet, TcpOptions};
pub use hosts::{Operation, endpoint, peers};

/// Arbitrary bytes as TCP options. Options that parse can be emitted and parsed again.
pub fn options(bytes: &[u8]) {
    let Ok(options) = TcpOptions::parse(bytes) else { return };
    let mut written = Vec::new();
    if options.emit(&mut written).is_ok() {
        assert_eq!(TcpOptions::parse(&written).as_ref(), Ok(&options));
        assert_eq!(written.len(), options.bytes_len());
    }
}

/// Arbitrary bytes as an IP packet.
pub fn packet(bytes: &[u8]) {
    let Ok(packet) = Packet::parse(bytes) else { return };
    let mut written = Vec::new();
    if packet.emit(&mut written).is_ok() {
        let again = Packet::parse(&written).expect("an emitted packet can be parsed");
        let mut twice = Vec::new();
        again.emit(&mut twice).expect("a parsed packet can be emitted");
        assert_eq!(written, twice);
    }
}

/// Arbitrary bytes as the start of a connection to a relay, and as a relay's answer. A message that
/// parses can be emitted and parsed again.
pub fn convert(bytes: &[u8]) {
    if let Ok(message) = Message::parse(bytes) {
        assert_eq!(Message::parse(&message.to_bytes()), Ok(message));
    }
    let _ = Client::default().handle_data(bytes);
    let whole = Relay::default().handle_data(bytes);
    let mut relay = Relay::default();
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    if relay.handle_data(first) == RelayStep::Wait {
        assert_eq!(relay.handle_data(rest), whole);
    }
}
