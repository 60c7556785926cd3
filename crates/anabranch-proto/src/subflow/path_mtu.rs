//! The path MTU of a subflow. Routers report it (RFC 1191, RFC 8201), or the subflow searches for it
//! with its own data (RFC 4821, RFC 8899), as Linux does.

use crate::config::MtuProbing;

/// Segment size with which a search begins, in payload bytes. Linux: `TCP_BASE_MSS`.
const BASE_MSS: u16 = 1024;
/// Smallest segment size of a search. Linux: `TCP_MIN_SND_MSS`.
const FLOOR_MSS: u16 = 48;
/// A search ends when the remaining range is smaller than this, in bytes. Linux:
/// `TCP_PROBE_THRESHOLD`.
const THRESHOLD: u16 = 8;
/// Smallest path MTU that a router's report can set. Linux: `ip_rt_min_pmtu`; RFC 8200 §5 for IPv6.
const LEAST_REPORTED_V4: u16 = 552;
const LEAST_REPORTED_V6: u16 = 1280;

/// The size of the packets that a subflow may send. All sizes are bytes of IP packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathMtu {
    /// The interface's MTU, or what a router has reported.
    limit: u16,
    probing: MtuProbing,
    search: Option<Search>,
}

/// A search for the path MTU. RFC 8899 §5.2.
#[derive(Clone, Copy, Debug)]
struct Search {
    /// Largest size that has passed, and smallest that is assumed not to.
    low: u16,
    high: u16,
    probe: Option<Probe>,
}

/// A segment larger than what is known to pass.
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// Subflow offsets of its payload.
    start: u64,
    end: u64,
    size: u16,
}

impl PathMtu {
    /// The path MTU of a new subflow, whose interface takes packets of `interface` bytes. Its
    /// headers take `overhead` bytes of each packet.
    pub(super) fn new(interface: u16, probing: MtuProbing, overhead: u16) -> Self {
        let mut path_mtu = PathMtu { limit: interface, probing, search: None };
        if probing == MtuProbing::Always {
            path_mtu.begin_search(overhead);
        }
        path_mtu
    }

    fn begin_search(&mut self, overhead: u16) {
        let low = self.limit.min(BASE_MSS + overhead);
        self.search = Some(Search { low, high: self.limit, probe: None });
    }

    /// The size of full-sized packets.
    pub(super) fn value(&self) -> u16 {
        self.search.map_or(self.limit, |search| search.low)
    }

    /// A router reports that packets of more than `mtu` bytes do not pass. Returns `true` if the
    /// size has changed.
    pub(super) fn on_too_big(&mut self, mtu: u16, is_ipv4: bool) -> bool {
        let mtu = mtu.max(if is_ipv4 { LEAST_REPORTED_V4 } else { LEAST_REPORTED_V6 });
        if mtu >= self.limit {
            return false;
        }
        let before = self.value();
        self.limit = mtu;
        if let Some(search) = &mut self.search {
            (search.high, search.low) = (mtu, search.low.min(mtu));
        }
        self.value() < before
    }

    /// Retransmissions were not answered for long: packets may vanish because of their size. Returns
    /// `true` if the size has changed. Linux: `tcp_mtu_probing`.
    pub(super) fn on_silence(&mut self, overhead: u16) -> bool {
        let before = self.value();
        match (&mut self.search, self.probing) {
            (_, MtuProbing::Off) => {}
            (None, _) => self.begin_search(overhead),
            (Some(search), _) => {
                let mss = (search.low.saturating_sub(overhead) / 2).min(BASE_MSS).max(FLOOR_MSS);
                search.low = search.low.min(mss + overhead);
                search.probe = None;
            }
        }
        self.value() < before
    }

    /// The size to try next; `None` if no search is under way.
    pub(super) fn next_probe(&self) -> Option<u16> {
        let Search { low, high, probe } = self.search?;
        (probe.is_none() && high - low >= THRESHOLD).then_some(low + (high - low).div_ceil(2))
    }

    /// A packet of `size` bytes was sent that carries the payload from `start` to `end`.
    pub(super) fn on_probe_sent(&mut self, start: u64, end: u64, size: u16) {
        if let Some(search) = &mut self.search {
            search.probe = Some(Probe { start, end, size });
        }
    }

    /// Everything below `una` has arrived. Returns `true` if the size has grown.
    #[inline]
    pub(super) fn on_acknowledged(&mut self, una: u64) -> bool {
        let Some(search) = &mut self.search else { return false };
        let Some(probe) = search.probe.take_if(|probe| probe.end <= una) else { return false };
        search.low = search.low.max(probe.size);
        true
    }

    /// The oldest outstanding data, at `una`, is lost. If it is the probe, it was too large. Returns
    /// `true` in this case.
    #[inline]
    pub(super) fn on_lost(&mut self, una: u64) -> bool {
        let Some(search) = &mut self.search else { return false };
        let Some(probe) = search.probe.take_if(|probe| probe.start == una) else { return false };
        search.high = search.high.min(probe.size - 1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OVERHEAD: u16 = 52;

    #[test]
    fn a_report_limits_the_size_and_is_believed_down_to_a_minimum() {
        let mut path_mtu = PathMtu::new(1500, MtuProbing::Off, OVERHEAD);
        assert!(path_mtu.on_too_big(1400, true) && path_mtu.value() == 1400);
        assert!(!path_mtu.on_too_big(1450, true), "a report never raises the size");
        assert!(path_mtu.on_too_big(68, true) && path_mtu.value() == 552);
        let mut path_mtu = PathMtu::new(1500, MtuProbing::Off, OVERHEAD);
        assert!(path_mtu.on_too_big(68, false) && path_mtu.value() == 1280);
    }

    #[test]
    fn silence_begins_a_search_and_then_halves_the_segments() {
        // 1024 payload bytes and 52 of headers; then 512, 256, 128, 64, and at least 48.
        let mut path_mtu = PathMtu::new(1500, MtuProbing::OnBlackHole, OVERHEAD);
        let mut sizes = Vec::new();
        while path_mtu.on_silence(OVERHEAD) {
            sizes.push(path_mtu.value() - OVERHEAD);
        }
        assert_eq!(sizes, [1024, 512, 256, 128, 64, 48]);
        let mut off = PathMtu::new(1500, MtuProbing::Off, OVERHEAD);
        assert!(!off.on_silence(OVERHEAD) && off.value() == 1500);
    }

    #[test]
    fn probes_find_the_path_mtu_to_within_the_threshold() {
        for actual in [1080, 1280, 1400, 1492, 1500] {
            let mut path_mtu = PathMtu::new(1500, MtuProbing::Always, OVERHEAD);
            let mut una = 1;
            while let Some(size) = path_mtu.next_probe() {
                path_mtu.on_probe_sent(una, una + 1000, size);
                assert!(path_mtu.next_probe().is_none(), "one probe at a time");
                match size <= actual {
                    true => {
                        una += 1000;
                        assert!(path_mtu.on_acknowledged(una));
                    }
                    false => assert!(path_mtu.on_lost(una)),
                }
            }
            let found = path_mtu.value();
            assert!(found <= actual && actual - found < THRESHOLD, "{found} of {actual}");
        }
    }
}
