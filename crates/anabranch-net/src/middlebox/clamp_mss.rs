//! A middlebox that reduces the segment size which the hosts agree upon, as tunnels and home routers
//! do (Linux: `TCPMSS`).

use anabranch_config::Part;
#[cfg(feature = "serde")]
use anabranch_config::written::Bytes;
use anabranch_wire::{Flags, Instant, Packet};

use super::{BuildMiddlebox, Filter, Middlebox, Side, Site};
use crate::units::ByteCount;

/// Limits the maximum segment size option of SYNs.
#[derive(Debug)]
struct ClampMss {
    /// Largest MTU for which SYNs ask, in bytes of an IP packet.
    mtu: u64,
}

impl Filter for ClampMss {
    fn pass(&mut self, _now: Instant, _towards: Side, packet: &mut Packet) -> bool {
        if let Packet::Tcp(segment) = packet
            && segment.header.flags.contains(Flags::SYN)
            && let Some(mss) = segment.options.mss
        {
            // RFC 9293 §3.7.1: the option counts payload, without IP and TCP headers.
            let headers = if segment.source.address.is_ipv4() { 40 } else { 60 };
            segment.options.mss =
                Some(mss.min(self.mtu.saturating_sub(headers).min(u16::MAX.into()) as u16));
        }
        true
    }
}

/// Parameters of the middlebox that reduces the maximum segment size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct ClampMssConfig {
    /// The MTU that full-sized segments must fit.
    #[cfg_attr(feature = "serde", serde(with = "Bytes::<576, 65_535>"), schemars(extend("x-origin" = "this project")))]
    pub mtu: ByteCount,
}

impl Default for ClampMssConfig {
    fn default() -> Self {
        ClampMssConfig { mtu: ByteCount::new(1400) }
    }
}

impl Part for ClampMssConfig {
    const NAME: &'static str = "clamp_mss";
    const SUMMARY: &'static str =
        "Reduces the maximum segment size in SYNs to that of a smaller MTU.";
    const SOURCE: &'static str = "Linux: TCPMSS";
}

impl BuildMiddlebox for ClampMssConfig {
    fn build(&self, _: Site) -> Box<dyn Middlebox> {
        super::filter(ClampMss { mtu: self.mtu.as_u64() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::filter;
    use super::super::testing::{Bench, Talk};
    use super::*;

    #[test]
    fn syns_in_both_directions_ask_for_less_and_never_for_more() {
        for (talk, headers) in [(Talk::v4(), 40), (Talk::v6(), 60)] {
            for (asked, mtu, expected) in [(1460, 1400, 1400 - headers), (536, 1400, 536)] {
                let mut bench = Bench::new(filter(ClampMss { mtu }));
                for (towards, mut syn) in
                    [(Side::Server, talk.syn()), (Side::Client, talk.syn_ack())]
                {
                    syn.options.mss = Some(asked);
                    let out = bench.put(towards, syn);
                    assert_eq!(out[0].1.options.mss.map(u64::from), Some(expected));
                }
            }
        }
    }

    #[test]
    fn other_segments_pass_unchanged() {
        let talk = Talk::v4();
        let mut bench = Bench::new(filter(ClampMss { mtu: 576 }));
        let data = talk.data(Side::Server, 0, 1000);
        assert_eq!(bench.put(Side::Server, data.clone()), [(Side::Server, data)]);
    }
}
