//! Two hosts that exchange segments without delay.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use std::net::{IpAddr, Ipv4Addr};

use anabranch_proto::Endpoint;
use anabranch_wire::{Duration, Instant};

pub fn address(n: u32) -> IpAddr {
    Ipv4Addr::from_bits(0x0a00_0001 + n).into()
}

pub fn exchange(now: Instant, a: &mut Endpoint, b: &mut Endpoint) {
    loop {
        let mut idle = true;
        while let Some(segment) = a.poll_transmit(now) {
            b.handle_segment(now, segment);
            idle = false;
        }
        while let Some(segment) = b.poll_transmit(now) {
            a.handle_segment(now, segment);
            idle = false;
        }
        while let Some((id, _)) = a.poll_event() {
            while a.recv(id).is_some() {}
        }
        while let Some((id, _)) = b.poll_event() {
            while b.recv(id).is_some() {}
        }
        if idle {
            return;
        }
    }
}

/// Advance the time of both hosts, timer by timer.
pub fn pass(now: &mut Instant, time: Duration, a: &mut Endpoint, b: &mut Endpoint) {
    let end = *now + time;
    loop {
        exchange(*now, a, b);
        let next = [a.poll_timeout(), b.poll_timeout()].into_iter().flatten().min();
        let Some(next) = next.filter(|next| *next <= end) else { break };
        *now = next.max(*now);
        a.handle_timeout(*now);
        b.handle_timeout(*now);
    }
    *now = end;
}
