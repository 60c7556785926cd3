//! Clocks that stand still, jump and wrap. Drivers that call the engine too late, too early or too
//! often.

use std::collections::VecDeque;

use anabranch_proto::config::{ConnectionConfig, Protocol};
use anabranch_proto::{ConnectionId, Endpoint, Event};
use anabranch_wire::{Duration, Instant, Segment, SocketAddress};

use super::support::{Draws, both, buffers, error_of};
use crate::pair::{PORT, client_address, ms, on_any_platform, server_address};

const BYTES: u64 = 300_000;

/// Two hosts with a clock each, and a careless driver.
struct Careless {
    hosts: [Endpoint; 2],
    now: [Instant; 2],
    ids: [Option<ConnectionId>; 2],
    flying: VecDeque<(usize, Segment)>,
    written: [u64; 2],
    received: [u64; 2],
    events: [Vec<Event>; 2],
}

impl Careless {
    fn new(config: &ConnectionConfig, skew: Duration) -> Self {
        let locals = vec![client_address(0), client_address(1)];
        let mut client = Endpoint::new(locals, [1; 32]);
        let mut server = Endpoint::new(vec![server_address()], [2; 32]);
        server.listen(PORT, config.clone());
        let to = SocketAddress::new(server_address(), PORT);
        let id = client.connect(Instant::ZERO, client_address(0), to, config.clone());
        Careless {
            hosts: [client, server],
            now: [Instant::ZERO, Instant::ZERO + skew],
            ids: [id.ok(), None],
            flying: VecDeque::new(),
            written: [0; 2],
            received: [0; 2],
            events: [Vec::new(), Vec::new()],
        }
    }

    fn pull(&mut self, side: usize) {
        while let Some(segment) = self.hosts[side].poll_transmit(self.now[side]) {
            self.flying.push_back((1 - side, segment.into_inner()));
            assert!(self.flying.len() < 100_000, "a storm of segments");
        }
        while let Some((id, event)) = self.hosts[side].poll_event() {
            self.ids[side] = Some(id);
            self.events[side].push(event);
        }
        let Some(id) = self.ids[side] else { return };
        while let Some(payload) = self.hosts[side].recv(id) {
            assert!(payload.matches_pattern(self.received[side]), "corrupt data");
            self.received[side] += payload.len() as u64;
        }
        let left = BYTES - self.written[side];
        if left > 0
            && let Ok(bytes) = self.hosts[side].send_pattern(id, self.written[side], left as u32)
        {
            self.written[side] += bytes as u64;
        }
    }

    fn deliver(&mut self) {
        if let Some((to, segment)) = self.flying.pop_front() {
            self.hosts[to].handle_segment(self.now[to], segment);
        }
    }

    fn is_over(&self) -> bool {
        let failed = self.events.iter().any(|events| error_of(events).is_some());
        failed || self.received == [BYTES; 2]
    }

    /// One step of the careless driver. If `jumps` is set, clocks may jump by hours.
    fn misbehave(&mut self, draws: &mut Draws, jumps: bool) {
        let side = draws.below(2) as usize;
        match draws.below(8) {
            0 => {
                let step = match draws.below(100) {
                    0..60 => Duration::ZERO,
                    60..80 => Duration::from_nanos(1 + draws.below(1_000)),
                    80..98 => ms(draws.below(50)),
                    98 if jumps && draws.below(10) == 0 => Duration::from_secs(3 * 3_600),
                    _ => ms(draws.below(1_000)),
                };
                self.now[side] += step;
            }
            // At the right time or not.
            1 => self.hosts[side].handle_timeout(self.now[side]),
            2 => {
                self.hosts[side].handle_timeout(self.now[side]);
                self.hosts[side].handle_timeout(self.now[side]);
            }
            3 => {
                self.hosts[side].poll_timeout();
                self.hosts[side].poll_transmit(self.now[side]).into_iter().for_each(|segment| {
                    self.flying.push_back((1 - side, segment.into_inner()));
                });
            }
            4 if draws.below(50) == 0 => drop(self.flying.pop_front()),
            4 | 5 => self.pull(side),
            _ => self.deliver(),
        }
    }

    /// Drive the hosts correctly from now on.
    fn behave(&mut self, limit: Duration) {
        let begun = self.now;
        while !self.is_over() {
            for side in [0, 1] {
                self.pull(side);
            }
            if !self.flying.is_empty() {
                while !self.flying.is_empty() {
                    self.deliver();
                }
                continue;
            }
            let wait = |side: usize| {
                self.hosts[side].poll_timeout().map(|at| at.saturating_since(self.now[side]))
            };
            let wait = [wait(0), wait(1)].into_iter().flatten().min().unwrap_or(ms(1_000));
            for side in [0, 1] {
                self.now[side] += wait;
                self.hosts[side].handle_timeout(self.now[side]);
            }
            let took = self.now[0].saturating_since(begun[0]);
            assert!(took < limit, "{:?} after {took:?}", self.received);
        }
    }
}

fn cases() -> impl Iterator<Item = (u64, ConnectionConfig)> {
    (0..150).map(|seed| {
        let protocol = if seed % 4 == 0 { Protocol::Tcp } else { Protocol::Mptcp };
        (seed, buffers(30_000).protocol(protocol))
    })
}

#[test]
fn clocks_that_differ_and_careless_timers_lose_no_byte() {
    for (seed, config) in cases() {
        let mut draws = Draws::new(seed);
        let skew = Duration::from_nanos(draws.below(1 << 52));
        let mut hosts = Careless::new(&config, skew);
        for _ in 0..20_000 {
            hosts.misbehave(&mut draws, false);
        }
        hosts.behave(Duration::from_secs(600));
        assert_eq!(hosts.received, [BYTES; 2], "seed {seed} {:?}", hosts.events);
    }
}

#[test]
fn clocks_that_jump_by_hours_lead_to_the_whole_stream_or_an_error() {
    for (seed, config) in cases() {
        let mut draws = Draws::new(1_000 + seed);
        let mut hosts = Careless::new(&config, Duration::ZERO);
        for _ in 0..20_000 {
            hosts.misbehave(&mut draws, true);
        }
        // The longest possible time: half an hour without an acknowledgement, or two hours of
        // back-off.
        hosts.behave(Duration::from_secs(3 * 3_600));
    }
}

#[test]
fn while_time_stands_still_no_timer_runs_twice_and_the_connection_continues_afterwards() {
    for (seed, config) in cases().take(8) {
        let mut hosts = Careless::new(&config, Duration::from_secs(seed));
        for _ in 0..10_000 {
            for side in [0, 1] {
                hosts.pull(side);
                hosts.hosts[side].handle_timeout(hosts.now[side]);
            }
            hosts.deliver();
        }
        assert!(hosts.received[1] > 10_000, "{:?}", hosts.received);
        hosts.behave(Duration::from_secs(60));
        assert_eq!(hosts.received, [BYTES; 2]);
    }
}

/// The first timestamps of client and server. They follow from the hosts' secrets.
fn first_timestamps(config: &ConnectionConfig) -> [u32; 2] {
    let mut pair = both(config.clone(), 1);
    pair.run_ms(100);
    let stamp = |n: usize| pair.log[n].options.timestamps.expect("timestamps").value;
    // The server sends the SYN/ACK 10 ms after the SYN was sent.
    [stamp(0), stamp(1).wrapping_sub(10)]
}

#[test]
fn timestamps_that_wrap_after_49_days_do_no_harm() {
    // RFC 7323 §5.4, §5.5
    for protocol in [Protocol::Tcp, Protocol::Mptcp] {
        let config = on_any_platform().protocol(protocol);
        for (side, stamp) in first_timestamps(&config).into_iter().enumerate() {
            let mut pair = both(config.clone(), 1);
            pair.now += ms(u64::from(stamp.wrapping_neg()).saturating_sub(1_500));
            for _ in 0..30 {
                pair.upload(20_000, 1_000);
                pair.download(20_000, 1_000);
                pair.run_ms(50);
            }
            let stamps = pair
                .log
                .iter()
                .filter(|s| usize::from(s.source.address == server_address()) == side);
            let stamps: Vec<u32> =
                stamps.filter_map(|s| Some(s.options.timestamps?.value)).collect();
            assert!(stamps.windows(2).any(|two| two[1] < two[0]), "the timestamps have wrapped");
            assert_eq!(pair.received, [600_000; 2], "{protocol:?}, host {side}");
            let again =
                pair.client.subflow_stats(pair.connection).map(|s| s.timeouts + s.recoveries);
            assert_eq!(again.sum::<u64>(), 0);
        }
    }
}

#[test]
fn after_a_month_of_silence_old_timestamps_are_forgotten() {
    // RFC 7323 §5.5: after half of the number space, new timestamps look old.
    for (days, protocol) in [24, 25, 30, 45, 60]
        .into_iter()
        .flat_map(|days| [(days, Protocol::Tcp), (days, Protocol::Mptcp)])
    {
        let mut pair = both(on_any_platform().protocol(protocol), 1);
        pair.upload(20_000, 1_000);
        pair.download(20_000, 1_000);
        pair.run_ms(days * 24 * 3_600 * 1_000);
        pair.upload(20_000, 10_000);
        pair.download(20_000, 10_000);
        assert_eq!(pair.received, [40_000; 2], "{days} days, {protocol:?}");
    }
}
