//! Resets of subflows, and their options. RFC 8684 §3.6, §3.7.

use anabranch_wire::mptcp::{Control, Dss, MpFail, MpTcprst, ResetReason, WideOrNarrow};
use anabranch_wire::{Flags, Segment};

use super::support::{both, give, initial_data_seq, keys, switch};
use crate::pair::{Fate, Pair, depends_on_the_platform, is_on, is_syn, on_any_platform, to_server};

/// Two subflows have 40,000 bytes in flight in all, which never arrive.
pub(crate) fn under_way() -> Pair {
    let (lost, lose) = switch();
    let mut pair = both(on_any_platform(), 2).with_filter(move |_, segment| {
        if lost.get() && to_server(segment) { Fate::Drop } else { Fate::Deliver }
    });
    pair.upload(300_000, 5_000);
    pair.run_ms(500);
    lose.set(true);
    pair.write(0, 340_000);
    pair
}

/// An acknowledgement from the server on path `n` for all data sent there.
pub(crate) fn acknowledging(pair: &Pair, n: u8) -> Segment {
    let sent = pair.last(|s| to_server(s) && is_on(s, n));
    let mut segment = pair.last(|s| !to_server(s) && is_on(s, n));
    segment.header.ack = sent.header.seq + sent.payload.len() as u32;
    segment.options.dss = None;
    segment.options.control = None;
    segment
}

fn reset(pair: &Pair, n: u8, control: Control) -> Segment {
    let mut segment = acknowledging(pair, n);
    segment.header.flags = Flags::RST | Flags::ACK;
    segment.options.control = Some(Box::new(control));
    segment
}

fn because(reason: ResetReason) -> Control {
    let reset = Some(MpTcprst { unassigned: 0, transient: true, reason });
    Control { reset, ..Control::default() }
}

pub(crate) fn sent_again(pair: &Pair) -> u64 {
    pair.client.counters().data_level_retransmits
}

#[test]
fn data_acknowledged_on_a_subflow_is_reinjected_at_once_if_a_reset_calls_it_unreliable() {
    depends_on_the_platform("how much data is in flight");
    // RFC 8684 §3.7: then its acknowledgements are meaningless. Otherwise the sender waits for a
    // DATA_ACK.
    let fail = Some(MpFail { data_seq: anabranch_wire::DataSeq(1) });
    for (control, payload_unreliable) in [
        (because(ResetReason::MIDDLEBOX_INTERFERENCE), true),
        (because(ResetReason::MPTCP_SPECIFIC), true),
        (Control { fail, ..Control::default() }, true),
        (because(ResetReason::UNACCEPTABLE_PERFORMANCE), false),
        (because(ResetReason::TOO_MUCH_OUTSTANDING_DATA), false),
    ] {
        let mut pair = under_way();
        let acknowledgement = acknowledging(&pair, 1);
        give(&mut pair, acknowledgement);
        assert_eq!(sent_again(&pair), 0);
        let counted = (u64::from(control.reset.is_some()), u64::from(control.fail.is_some()));
        let reset = reset(&pair, 1, control.clone());
        give(&mut pair, reset);
        assert_eq!(sent_again(&pair) > 0, payload_unreliable, "{control:?}");
        let counts = pair.client.counters();
        assert_eq!((counts.mp_rst_rx, counts.mp_fail_rx), counted, "{control:?}");
    }
}

#[test]
fn a_data_ack_on_a_reset_counts() {
    depends_on_the_platform("how much data is in flight");
    // RFC 8684 §3.3.2: the subflow ends, but its DATA_ACK is valid.
    let mut pair = under_way();
    let mut reset = reset(&pair, 1, because(ResetReason::UNACCEPTABLE_PERFORMANCE));
    let data_ack = WideOrNarrow::Wide(initial_data_seq(keys(&pair).0) + 340_001);
    reset.options.dss = Some(Dss { data_ack: Some(data_ack), ..Dss::default() });
    give(&mut pair, reset);
    let stats = pair.client.connection_stats(pair.now, pair.connection).expect("open");
    assert_eq!(stats.bytes_acknowledged, 340_000);
}

#[test]
fn the_options_of_a_rejected_reset_are_ignored() {
    // RFC 5961 §3.2: a reset is accepted only at the exact sequence number.
    let mut pair = under_way();
    let mut reset = reset(&pair, 1, because(ResetReason::MIDDLEBOX_INTERFERENCE));
    reset.header.seq = reset.header.seq + 1;
    give(&mut pair, reset);
    assert_eq!((pair.client.counters().mp_rst_rx, sent_again(&pair)), (0, 0));
}

#[test]
fn a_subflow_that_is_reset_repeatedly_returns_soon_if_the_reason_allows_it() {
    depends_on_the_platform("whether a subflow that has ended is replaced");
    // RFC 8684 §3.6: after too much outstanding data, the subflow may be opened again.
    for (reason, soon) in [
        (None, true),
        (Some(ResetReason::TOO_MUCH_OUTSTANDING_DATA), true),
        (Some(ResetReason::LACK_OF_RESOURCES), false),
        (Some(ResetReason::MIDDLEBOX_INTERFERENCE), false),
    ] {
        let mut pair = both(on_any_platform(), 2);
        pair.upload(100_000, 5_000);
        for _ in 0..5 {
            pair.upload(100_000, 5_000);
            pair.run_ms(100);
            let control = reason.map_or_else(Control::default, because);
            let reset = reset(&pair, 1, control);
            give(&mut pair, reset);
            pair.run_ms(1_500);
        }
        let syns = pair.segments(|s| is_syn(s) && to_server(s) && is_on(s, 1));
        assert_eq!(syns >= 6, soon, "{reason:?}: {syns}");
    }
}
