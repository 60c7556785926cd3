//! Extreme networks.

use std::cell::RefCell;
use std::rc::Rc;

use anabranch_proto::config::Protocol;
use anabranch_proto::view::Usability;
use anabranch_wire::{Duration, Instant};

use super::support::{Draws, assert_closed_and_forgotten, both, buffers, error_of};
use crate::pair::{Fate, Pair, depends_on_the_platform, is_on, ms, to_server};

fn upload_and_close(pair: &mut Pair, bytes: u64, limit_ms: u64, case: &str) {
    pair.upload(bytes, limit_ms);
    pair.download(bytes, limit_ms);
    assert_eq!(pair.received, [bytes; 2], "{case}");
    pair.close_both();
    pair.run_ms(limit_ms);
    assert_closed_and_forgotten(pair, case);
}

#[test]
fn delayed_duplicated_and_corrupted_segments_lose_no_byte() {
    for seed in 0..60 {
        let mut draws = Draws::new(seed);
        // Below, at and far above the round-trip time of 20 ms.
        let jitter_ms = [1, 20, 100, 400][draws.below(4) as usize];
        let protocol = if seed % 4 == 0 { Protocol::Tcp } else { Protocol::Mptcp };
        let config = buffers([20_000, 200_000][(seed % 2) as usize])
            .protocol(protocol)
            .dss_checksum(seed % 3 == 0);
        let mut pair = both(config, 1 + (seed % 3) as u8).with_filter(move |_, segment| {
            if draws.below(100) < 5 {
                segment.checksum_ok = false;
            }
            match draws.below(4) {
                0 => Fate::Twice,
                1 => Fate::Deliver,
                _ => Fate::Delay(
                    ms(draws.below(jitter_ms)) + Duration::from_nanos(draws.below(1_000_000)),
                ),
            }
        });
        upload_and_close(&mut pair, 150_000, 120_000, &format!("seed {seed}"));
        let errors =
            pair.client.counters().checksum_errors + pair.server.counters().checksum_errors;
        assert!(errors > 0, "some segments were corrupted");
    }
}

#[test]
fn delays_from_a_microsecond_to_a_minute_lose_no_byte() {
    for seed in 0..30 {
        let mut draws = Draws::new(seed);
        let mut pair = both(buffers(60_000), 1 + (seed % 2) as u8).with_filter(move |n, _| {
            // A tenth of all segments is late, by a microsecond to a minute on a logarithmic scale.
            let late = n > 6 && draws.below(10) == 0;
            let nanos = 1_000_u64 << draws.below(26);
            if late {
                Fate::Delay(Duration::from_nanos(nanos.min(60_000_000_000)))
            } else {
                Fate::Deliver
            }
        });
        upload_and_close(&mut pair, 150_000, 600_000, &format!("seed {seed}"));
    }
}

/// A path that works and fails in turn.
#[derive(Clone, Copy)]
struct Flapping {
    period: Duration,
    /// Whether the path drops segments to the server, and to the client.
    swallows: [bool; 2],
}

#[test]
fn paths_that_flap_every_50_ms_to_5_s_lose_no_byte() {
    depends_on_the_platform("timeouts of whole seconds would keep step with the paths");
    for seed in 0..60 {
        let mut draws = Draws::new(seed);
        let mut path = || Flapping {
            period: ms(50 << draws.below(8)).min(ms(5_000)),
            swallows: [[true, true], [true, false], [false, true]][draws.below(3) as usize],
        };
        let paths = [path(), path()];
        let clock = Rc::new(RefCell::new(Instant::ZERO));
        let seen = Rc::clone(&clock);
        let mut pair = both(buffers(100_000), 2).with_filter(move |_, segment| {
            let path = paths[usize::from(is_on(segment, 1))];
            let turn = seen.borrow().as_nanos() / path.period.as_nanos();
            let swallows = path.swallows[usize::from(!to_server(segment))];
            if turn % 2 == 1 && swallows { Fate::Drop } else { Fate::Deliver }
        });
        for target in (5_000..=200_000).step_by(5_000) {
            pair.write(0, target);
            pair.write(1, if pair.accepted.is_some() { target } else { 0 });
            for _ in 0..50 {
                *clock.borrow_mut() = pair.now;
                pair.run_ms(2);
            }
        }
        let begun = pair.now;
        while pair.received != [200_000; 2] {
            pair.write(0, 200_000);
            pair.write(1, if pair.accepted.is_some() { 200_000 } else { 0 });
            *clock.borrow_mut() = pair.now;
            pair.run_ms(2);
            let took = pair.now.saturating_since(begun);
            let errors = (error_of(&pair.client_events), error_of(&pair.server_events));
            assert_eq!(errors, (None, None), "seed {seed}");
            assert!(took < Duration::from_secs(300), "seed {seed}: {:?}", pair.received);
        }
    }
}

#[test]
fn after_an_outage_of_all_paths_data_flows_again_within_the_same_time() {
    // RFC 6298 §5.5: the back-off may have grown to the length of the outage.
    for down_ms in [100, 1_000, 5_000, 20_000, 50_000] {
        for notice in [false, true] {
            let clock = Rc::new(RefCell::new(false));
            let seen = Rc::clone(&clock);
            let mut pair = both(buffers(100_000), 2)
                .with_filter(move |_, _| if *seen.borrow() { Fate::Drop } else { Fate::Deliver });
            pair.upload(200_000, 5_000);
            pair.write(0, 300_000);
            *clock.borrow_mut() = true;
            let addresses = [0, 1].map(crate::pair::client_address);
            for address in addresses.into_iter().filter(|_| notice) {
                pair.client.handle_address_change(pair.now, address, false);
            }
            pair.drain();
            pair.run_ms(down_ms);
            *clock.borrow_mut() = false;
            for address in addresses.into_iter().filter(|_| notice) {
                pair.client.handle_address_change(pair.now, address, true);
            }
            pair.drain();
            let case = format!("{down_ms} ms, noticed: {notice}");
            pair.upload(300_000 - (pair.written[0] - 200_000), 2 * down_ms + 3_000);
            assert_eq!(pair.received[1], pair.written[0], "{case}");
            pair.run_ms(30_000);
            let subflows = pair.client.subflow_stats(pair.connection);
            let usable = subflows.filter(|s| s.view.usability == Usability::Usable).count();
            assert_eq!(usable, 2, "{case}");
        }
    }
}
