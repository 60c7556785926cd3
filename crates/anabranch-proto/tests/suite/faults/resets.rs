//! What resets of subflows say. RFC 8684 §3.6, §3.7.

use anabranch_wire::mptcp::{Control, Dss, MpFail, MpTcprst, ResetReason, WideOrNarrow};
use anabranch_wire::{Flags, Segment};

use super::support::{both, give, initial_data_seq, keys, switch};
use crate::pair::{Fate, Pair, depends_on_the_platform, is_on, is_syn, on_any_platform, to_server};

/// Two subflows have data under way, 40 000 bytes in all, that never arrives.
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

/// An answer of the server's on path `n`, that acknowledges all that was sent there.
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
fn what_a_subflow_acknowledged_goes_out_again_at_once_if_it_was_reset_for_what_it_delivered() {
    depends_on_the_platform("how much is under way");
    // RFC 8684 §3.7: then its acknowledgements say nothing. Otherwise DATA_ACK is waited for.
    let fail = Some(MpFail { data_seq: anabranch_wire::DataSeq(1) });
    for (control, distrusted) in [
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
        assert_eq!(sent_again(&pair) > 0, distrusted, "{control:?}");
        let counts = pair.client.counters();
        assert_eq!((counts.mp_rst_rx, counts.mp_fail_rx), counted, "{control:?}");
    }
}

#[test]
fn a_data_ack_on_a_reset_counts() {
    depends_on_the_platform("how much is under way");
    // RFC 8684 §3.3.2: the subflow ends, and what it says about the data is right.
    let mut pair = under_way();
    let mut reset = reset(&pair, 1, because(ResetReason::UNACCEPTABLE_PERFORMANCE));
    let data_ack = WideOrNarrow::Wide(initial_data_seq(keys(&pair).0) + 340_001);
    reset.options.dss = Some(Dss { data_ack: Some(data_ack), ..Dss::default() });
    give(&mut pair, reset);
    let stats = pair.client.connection_stats(pair.now, pair.connection).expect("open");
    assert_eq!(stats.bytes_acknowledged, 340_000);
}

#[test]
fn what_a_reset_says_that_is_not_believed_counts_for_nothing() {
    // RFC 5961 §3.2: only at the very next byte is it believed.
    let mut pair = under_way();
    let mut reset = reset(&pair, 1, because(ResetReason::MIDDLEBOX_INTERFERENCE));
    reset.header.seq = reset.header.seq + 1;
    give(&mut pair, reset);
    assert_eq!((pair.client.counters().mp_rst_rx, sent_again(&pair)), (0, 0));
}

#[test]
fn a_subflow_that_is_reset_again_and_again_is_back_soon_if_it_carried_data_or_is_to_start_again() {
    // RFC 8684 §3.6: too much outstanding data is meant to start again.
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
