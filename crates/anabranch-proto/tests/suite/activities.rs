//! Activity of each subflow: the reason why it sends nothing more.

use anabranch_proto::view::Slot;
use anabranch_proto::{Activity, Reason};

use crate::pair::{Fate, Pair, both, ms, on_any_platform, switch, to_server};

fn activities(pair: &Pair) -> Vec<Reason> {
    pair.client.activities(pair.connection).collect()
}

fn kinds(pair: &Pair) -> Vec<Activity> {
    activities(pair).iter().map(|reason| reason.activity).collect()
}

#[test]
fn a_subflow_is_opening_until_both_hosts_have_it() {
    let mut pair = both(on_any_platform(), 2);
    pair.drain();
    assert_eq!(kinds(&pair), [Activity::Opening]);
    pair.settle(100);
    assert_eq!(kinds(&pair), [Activity::Application; 2], "nothing was written");
}

#[test]
fn a_bulk_transfer_waits_for_its_congestion_windows() {
    let mut pair = both(on_any_platform(), 2);
    pair.settle(100);
    pair.write(0, 1 << 20);
    assert_eq!(kinds(&pair), [Activity::CongestionWindow; 2]);
    assert!(activities(&pair).iter().all(|reason| reason.behind.is_none()));
}

#[test]
fn a_full_window_names_the_subflow_with_the_oldest_data() {
    let config = on_any_platform().receive_buffer(64_000);
    let mut pair = both(config, 2).with_slow_path(1, ms(500));
    pair.settle(3_000);
    let target = 1 << 20;
    // The slow subflow has one-way delays of 510 ms, so its first data blocks the window by then.
    for _ in 0..250 {
        pair.write(0, target);
        pair.run_ms(1);
    }
    let blocked = activities(&pair);
    assert_eq!(blocked[0].activity, Activity::ReceiveWindow, "{blocked:?}");
    assert_eq!(blocked[0].behind, Some(Slot(1)), "{blocked:?}");
}

#[test]
fn a_full_send_buffer_names_the_subflow_with_the_oldest_data() {
    let config = on_any_platform().send_buffer(32_000);
    let mut pair = both(config, 2).with_slow_path(1, ms(500));
    pair.settle(3_000);
    let target = 1 << 20;
    for _ in 0..250 {
        pair.write(0, target);
        pair.run_ms(1);
    }
    let blocked = activities(&pair);
    assert_eq!(blocked[0].activity, Activity::SendBuffer, "{blocked:?}");
    assert_eq!(blocked[0].behind, Some(Slot(1)), "{blocked:?}");
}

#[test]
fn a_reader_that_does_not_read_blocks_all_subflows() {
    let config = on_any_platform().receive_buffer(64_000);
    let mut pair = both(config, 2);
    pair.settle(100);
    pair.paused = true;
    for _ in 0..200 {
        pair.write(0, 1 << 20);
        pair.run_ms(1);
    }
    assert_eq!(kinds(&pair), [Activity::Reader; 2]);
}

#[test]
fn a_subflow_is_silent_from_its_timeout_until_the_peer_answers() {
    let (cut, is_cut) = switch();
    let mut pair = both(on_any_platform(), 1).with_filter(move |_, segment| {
        if is_cut.get() && to_server(segment) { Fate::Drop } else { Fate::Deliver }
    });
    pair.settle(100);
    cut.set(true);
    pair.write(0, 20_000);
    pair.run_ms(3_000);
    assert_eq!(kinds(&pair), [Activity::Silent]);
    cut.set(false);
    pair.run_ms(10_000);
    assert_eq!(kinds(&pair), [Activity::Application]);
}
