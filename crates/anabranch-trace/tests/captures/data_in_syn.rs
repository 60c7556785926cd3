//! Data in the SYN: a capture without it, rewritten. RFC 8684, appendix B.

use anabranch_wire::{Flags, Payload, Piece};

use super::support::{Captured, analysis, numbers, pcap, run, segments, table, violations};

const SCENARIO: &str = "name = \"t\"\nduration = \"20s\"\n\
    [[path]]\nname = \"a\"\nrate = \"8Mbit/s\"\ndelay = \"10ms\"\nlimit = \"60packets\"\n\
    [[connection]]\ndirection = \"upload\"\nworkload = { kind = \"bulk\", size = \"100kB\" }\n";
/// Bytes in the SYN.
const IN_SYN: u32 = 50;

/// An upload as the client sees it, whose SYN carries bytes that the server takes, or not.
fn upload(taken: bool) -> Vec<Captured> {
    let mut all = segments(&run(SCENARIO, 1).capture);
    all.retain(|each| each.interface % 2 == 0);
    let moved = if taken { IN_SYN } else { 0 };
    for each in &mut all {
        let segment = &mut each.segment;
        let is_client = segment.source.port > segment.destination.port;
        let is_syn = segment.header.flags.contains(Flags::SYN);
        if !is_client {
            segment.header.ack = segment.header.ack + moved;
        } else if is_syn {
            segment.payload = Payload::from(Piece::pattern(0, IN_SYN));
        } else {
            segment.header.seq = segment.header.seq + moved;
            if let Some(mapping) = segment.options.dss.as_mut().and_then(|dss| dss.mapping.as_mut())
                && mapping.subflow_seq.0 != 0
            {
                mapping.subflow_seq = mapping.subflow_seq + moved;
            }
        }
    }
    all
}

#[test]
fn bytes_of_the_syn_have_no_mapping_and_move_the_others() {
    let outcome = analysis(&pcap(&upload(true)));
    assert_eq!(violations(&outcome), [] as [String; 0]);
    assert_eq!(numbers(table(&outcome, "connections"), "bytes_out"), [100_000]);
}

#[test]
fn bytes_of_the_syn_that_the_peer_leaves_are_sent_again_with_a_mapping() {
    let outcome = analysis(&pcap(&upload(false)));
    assert_eq!(violations(&outcome), [] as [String; 0]);
    assert_eq!(numbers(table(&outcome, "connections"), "bytes_out"), [100_000]);
}
