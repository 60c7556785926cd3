//! The path MTU of a subflow. Routers report it (RFC 1191, RFC 8201), or the subflow searches for it
//! with its own data (RFC 4821, RFC 8899), as Linux does.

use anabranch_wire::{Duration, Instant, SeqNumber};

use super::{Carries, Subflow, SubflowTimer, TIMESTAMPS};
use crate::config::MtuProbing;
use crate::congestion::CongestionEvent;
use crate::view::{RecoveryPhase, SubflowView};

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

/// Silence after the first retransmission that suggests a black hole for large packets: four
/// retransmissions with back-off from 200 ms. Linux: `tcp_retries1` of 3, `TCP_RTO_MIN`.
const BLACK_HOLE_SILENCE: Duration = Duration::from_secs(3);
/// Smallest congestion window, in segments, in which the loss of a probe is found quickly. Linux:
/// `tcp_mtu_probe`.
const LEAST_PROBING_CWND: u64 = 11;
/// The size of the packets that a subflow may send. All sizes are bytes of IP packets.
#[derive(Clone, Debug)]
pub(super) struct PathMtu {
    /// The interface's MTU, or that reported by a router.
    limit: u16,
    probing: MtuProbing,
    /// Bytes of the options of full data segments.
    option_bytes: u8,
    search: Option<Box<Search>>,
}

/// A search for the path MTU. RFC 8899 §5.2.
#[derive(Clone, Copy, Debug)]
struct Search {
    /// Largest size that has passed, and smallest that is assumed not to.
    low: u16,
    high: u16,
    probe: Option<MtuProbe>,
}

/// A segment larger than the known path MTU.
#[derive(Clone, Copy, Debug)]
struct MtuProbe {
    /// Subflow offsets of its payload.
    start: u64,
    end: u64,
    size: u16,
}

impl PathMtu {
    /// The path MTU of a new subflow, whose interface takes packets of `interface` bytes. Its
    /// headers take `overhead` bytes of each packet.
    pub(super) fn new(interface: u16, probing: MtuProbing, overhead: u16) -> Self {
        let mut path_mtu = PathMtu { limit: interface, probing, option_bytes: 0, search: None };
        if probing == MtuProbing::Always {
            path_mtu.begin_search(overhead);
        }
        path_mtu
    }

    fn begin_search(&mut self, overhead: u16) {
        let low = self.limit.min(BASE_MSS + overhead);
        self.search = Some(Box::new(Search { low, high: self.limit, probe: None }));
    }

    /// The size of full-sized packets.
    pub(super) fn value(&self) -> u16 {
        self.search.as_ref().map_or(self.limit, |search| search.low)
    }

    /// The options of full data segments take this many bytes from now on, at most 40.
    pub(super) fn set_option_bytes(&mut self, bytes: u32) {
        self.option_bytes = bytes as u8;
    }

    /// A router reports that packets of more than `mtu` bytes do not pass. Returns `true` if segments
    /// in flight are too large.
    pub(super) fn on_too_big(&mut self, mtu: u16, is_ipv4: bool) -> bool {
        let mtu = mtu.max(if is_ipv4 { LEAST_REPORTED_V4 } else { LEAST_REPORTED_V6 });
        if mtu >= self.limit {
            return false;
        }
        let before = self.value();
        self.limit = mtu;
        let mut is_probe = false;
        if let Some(search) = &mut self.search {
            (search.high, search.low) = (search.high.min(mtu), search.low.min(mtu));
            is_probe = search.probe.take_if(|probe| probe.size > mtu).is_some();
        }
        is_probe || self.value() < before
    }

    /// Retransmissions were not answered for long: packets may vanish because of their size. Returns
    /// `true` if the size has changed. Linux: `tcp_mtu_probing`.
    pub(super) fn on_silence(&mut self, overhead: u16) -> bool {
        let before = self.value();
        match (&mut self.search, self.probing) {
            (_, MtuProbing::Off) => {}
            (None, _) => self.begin_search(overhead),
            (Some(search), _) => {
                let mss = (search.low.saturating_sub(overhead) / 2).clamp(FLOOR_MSS, BASE_MSS);
                search.low = search.low.min(mss + overhead);
                search.probe = None;
            }
        }
        self.value() < before
    }

    /// Returns `true` if some segment may be larger than the known path MTU.
    #[inline]
    pub(super) fn is_searching(&self) -> bool {
        self.search.is_some()
    }

    /// The size to try next; `None` if no search is under way.
    pub(super) fn next_probe(&self) -> Option<u16> {
        let Search { low, high, probe } = **self.search.as_ref()?;
        (probe.is_none() && high - low >= THRESHOLD).then_some(low + (high - low).div_ceil(2))
    }

    /// A packet of `size` bytes was sent that carries the payload from `start` to `end`. It is larger
    /// than the size that is known to pass: a probe, or payload that was cut before segments became
    /// smaller.
    pub(super) fn on_probe_sent(&mut self, start: u64, end: u64, size: u16) {
        if let Some(search) = &mut self.search {
            search.probe = Some(MtuProbe { start, end, size });
        }
    }

    /// Everything below `una` has arrived. Returns `true` if the size has grown.
    #[inline]
    pub(super) fn on_acknowledged(&mut self, una: u64) -> bool {
        let Some(search) = &mut self.search else { return false };
        let Some(probe) = search.probe.take_if(|probe| probe.end <= una) else { return false };
        search.low = search.low.max(probe.size);
        // An earlier probe of this size was lost for another reason.
        search.high = search.high.max(search.low);
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

impl Subflow {
    /// The path MTU or the options of data segments have changed.
    pub(super) fn settle_mss(&mut self, views: &[SubflowView]) {
        let mss = self.mss_without_options() - u32::from(self.path_mtu.option_bytes);
        self.mss = mss;
        self.notify(&CongestionEvent::MssChanged { mss }, views);
    }

    /// A router reports that the segment with sequence number `seq` was larger than `mtu` bytes with
    /// its IP header. Returns `true` if segments are smaller from now on. RFC 5927 §4.1: only
    /// reports about outstanding data count.
    pub(crate) fn handle_too_big(
        &mut self,
        seq: SeqNumber,
        mtu: u16,
        views: &[SubflowView],
    ) -> bool {
        let offset = self.una as i64 + i64::from(seq.distance_from(self.snd_una()));
        let is_outstanding = (self.una as i64..self.nxt as i64).contains(&offset);
        let is_ipv4 = self.identity.local.address.is_ipv4();
        let changed = is_outstanding && self.path_mtu.on_too_big(mtu, is_ipv4);
        if changed {
            self.fit_segments(views);
        }
        changed
    }

    /// Segments are smaller from now on: cut those that are outstanding, and retransmit the cut ones.
    /// Linux: `tcp_simple_retransmit`.
    pub(super) fn fit_segments(&mut self, views: &[SubflowView]) {
        self.settle_mss(views);
        self.cut_segments();
        if self.board.has_lost() {
            self.recovery.enter_loss_by_size(self.nxt);
            self.timers.stop(SubflowTimer::TailLossProbe);
        }
    }

    fn cut_segments(&mut self) {
        let with_keys = self.segment_bytes(Carries::Keys { checksum: true });
        let mss = u64::from(self.mss);
        self.board.cut(|meta| match meta {
            Some(meta) if meta.with_keys => with_keys,
            _ => mss,
        });
    }

    /// A lost probe is retransmitted in segments of the size that is known to pass. Linux: a
    /// retransmission is never larger than `tcp_current_mss`.
    pub(super) fn cut_lost_probe(&mut self) {
        let lost = self.board.next_lost().and_then(|number| self.board.get(number));
        if lost.is_some_and(|record| record.payload.len() as u32 > self.mss) {
            self.path_mtu.on_lost(self.una);
            self.cut_segments();
        }
    }

    /// Payload bytes of the segment with which to search for the path MTU; `None` if there is nothing
    /// to search, or the congestion window is too small. Linux: `tcp_mtu_probe`.
    pub(crate) fn mtu_probe_bytes(&self) -> Option<u64> {
        let size = self.path_mtu.next_probe()?;
        let mss = u64::from(self.mss);
        let bytes = u64::from(size).saturating_sub(u64::from(self.path_mtu.value())) + mss;
        let calm = self.recovery.phase() == RecoveryPhase::Open && !self.board.has_lost();
        let large = self.congestion.cwnd() >= LEAST_PROBING_CWND * mss;
        (calm && large && bytes <= self.cwnd_for_new_data()).then_some(bytes)
    }

    /// The retransmission timer expired. If retransmissions have remained unanswered for long, packets
    /// of this size may vanish on the path: send smaller ones. RFC 2923 §2.1. Linux:
    /// `retransmits_timed_out` with `tcp_retries1`.
    pub(super) fn look_for_black_hole(&mut self, now: Instant, views: &[SubflowView]) {
        let since = self.board.front_first_resent();
        let silent = since.is_some_and(|at| now.saturating_since(at) >= BLACK_HOLE_SILENCE);
        if silent && self.path_mtu.on_silence(self.overhead_bytes()) {
            self.fit_segments(views);
        }
    }

    /// Bytes of a packet that are no payload, with timestamps if they are used.
    fn overhead_bytes(&self) -> u16 {
        self.header_bytes() as u16 + if self.peer.timestamps { TIMESTAMPS } else { 0 }
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
    fn a_report_about_a_probe_ends_it() {
        let mut path_mtu = PathMtu::new(1500, MtuProbing::Always, OVERHEAD);
        let size = path_mtu.next_probe().expect("a search is under way");
        path_mtu.on_probe_sent(1, 1001, size);
        assert!(path_mtu.on_too_big(1200, true), "the probe is in flight");
        // The probe's data arrives in pieces, which says nothing about the probe's size.
        assert!(!path_mtu.on_acknowledged(1001));
        assert_eq!((path_mtu.value(), path_mtu.next_probe()), (1076, Some(1138)));
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

    #[test]
    fn a_size_passes_although_an_earlier_packet_of_it_was_lost() {
        let mut path_mtu = PathMtu::new(1500, MtuProbing::Always, OVERHEAD);
        path_mtu.on_probe_sent(1, 1449, 1500);
        assert!(path_mtu.on_lost(1));
        path_mtu.on_probe_sent(1, 1449, 1500);
        assert!(path_mtu.on_acknowledged(1449));
        assert_eq!((path_mtu.value(), path_mtu.next_probe()), (1500, None));
    }
}
