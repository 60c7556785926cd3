//! Detection of shared bottlenecks by statistics of one-way delays. RFC 8382.
//!
//! In the RFC, the receiver of the data measures and reports. Here the sender measures the
//! difference of the two timestamps in an acknowledgement (RFC 7323). Its constant part is unknown
//! but does not matter. Delays are in milliseconds, the resolution of the timestamps.

use std::collections::VecDeque;

use anabranch_wire::{Duration, Instant};

use crate::view::{Bottleneck, SubflowId, SubflowSet};

/// T: base interval over which delays are summarised. RFC 8382 §2.2.
const BASE_INTERVAL: Duration = Duration::from_millis(350);
/// N: base intervals over which oscillation and losses are estimated. A verdict requires this much
/// history.
const LONG: usize = 50;
/// M: base intervals over which mean, skewness and variability are estimated.
const SHORT: usize = 30;
/// F: the newest base intervals, which have the full weight in skewness and variability. RFC 8382
/// §4.1.
const NEW: usize = 20;
/// Base intervals for which a subflow must have had the same partners before its verdict counts
/// (this project). As long as they change, it stays coupled with all others.
const STABLE: usize = LONG;
/// c_s: skewness below which a flow passes through a bottleneck.
const SKEWED: f64 = 0.1;
/// c_h: the same limit for a flow that passed through a bottleneck before.
const STILL_SKEWED: f64 = 0.3;
/// p_v: a crossing requires that a mean differs from the long-term mean by this fraction of the
/// variability.
const SIGNIFICANT: f64 = 0.7;
/// p_f, p_mad, p_s, p_d: two flows are alike if they differ by less than this in oscillation,
/// variability (relative to the larger), skewness, and loss (relative to the larger).
const SAME_FREQUENCY: f64 = 0.1;
const SAME_VARIABILITY: f64 = 0.1;
const SAME_SKEW: f64 = 0.15;
const SAME_LOSS: f64 = 0.1;

/// Finds the groups of subflows that share bottlenecks.
#[derive(Debug)]
pub(crate) struct Detector {
    /// p_l: loss rate above which a flow passes through a bottleneck, whatever its delays.
    loss_threshold: f64,
    interval_end: Option<Instant>,
    flows: Vec<FlowStatistics>,
}

/// The measurements of one subflow.
#[derive(Debug)]
struct FlowStatistics {
    id: SubflowId,
    current: Interval,
    /// The last intervals that have samples, newest last.
    past: VecDeque<Interval>,
    /// Mean of the last M intervals' means.
    mean_delay: Option<f64>,
    totals: SegmentTotals,
    congested: bool,
    /// The other subflows of its group, and for how many intervals they have been the same.
    partners: SubflowSet,
    unchanged: usize,
}

/// One base interval.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    delays: f64,
    samples: f64,
    /// Number of samples below the mean delay, minus the number above it.
    skew: f64,
    /// Sum of the samples' distances from the last interval's mean.
    deviation: f64,
    sent: f64,
    lost: f64,
    /// Whether the flow passed through a bottleneck when the interval ended.
    congested: bool,
}

/// Segments that a subflow has sent and lost so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SegmentTotals {
    pub(crate) sent: u64,
    pub(crate) lost: u64,
}

/// The summary statistics of a flow. RFC 8382 §3.2.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Estimates {
    skew: f64,
    variability: f64,
    frequency: f64,
    loss: f64,
}

impl Interval {
    fn mean(&self) -> f64 {
        self.delays / self.samples
    }
}

impl Detector {
    pub(crate) fn new(loss_threshold: f64) -> Self {
        Detector { loss_threshold, interval_end: None, flows: Vec::new() }
    }

    /// A data segment of the subflow took `delay` milliseconds plus an unknown constant.
    pub(crate) fn on_delay(&mut self, now: Instant, id: SubflowId, delay: i32) {
        self.interval_end.get_or_insert(now + BASE_INTERVAL);
        match self.flows.iter_mut().find(|flow| flow.id == id) {
            Some(flow) => flow.add(f64::from(delay)),
            None => {
                let mut flow = FlowStatistics::new(id);
                flow.add(f64::from(delay));
                self.flows.push(flow);
            }
        }
    }

    /// The subflow no longer exists.
    pub(crate) fn forget(&mut self, id: SubflowId) {
        self.flows.retain(|flow| flow.id != id);
    }

    /// Returns `true` if a base interval has ended.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.interval_end.is_some_and(|end| end <= now)
    }

    /// End a base interval. `totals` returns the segments that a subflow has sent and lost so far.
    /// Returns the verdict on each subflow.
    pub(crate) fn close_interval(
        &mut self,
        now: Instant,
        totals: impl Fn(SubflowId) -> SegmentTotals,
    ) -> Vec<(SubflowId, Bottleneck)> {
        self.interval_end = Some(now + BASE_INTERVAL);
        let mut congested = Vec::new();
        for flow in &mut self.flows {
            flow.close_interval(totals(flow.id), self.loss_threshold);
            congested.extend(flow.estimates().filter(|_| flow.congested).map(|e| (flow.id, e)));
        }
        let groups: Vec<SubflowSet> =
            group(congested, self.loss_threshold).iter().map(|members| slots(members)).collect();
        let verdict = |flow: &mut FlowStatistics| {
            let found = groups.iter().find(|group| group.contains(flow.id.slot));
            (flow.id, flow.settle(found.copied().unwrap_or(SubflowSet::EMPTY)))
        };
        self.flows.iter_mut().map(verdict).collect()
    }
}

impl FlowStatistics {
    fn new(id: SubflowId) -> Self {
        FlowStatistics {
            id,
            current: Interval::default(),
            past: VecDeque::with_capacity(LONG),
            mean_delay: None,
            totals: SegmentTotals::default(),
            congested: false,
            partners: SubflowSet::EMPTY,
            unchanged: 0,
        }
    }

    fn add(&mut self, delay: f64) {
        let current = &mut self.current;
        current.delays += delay;
        current.samples += 1.0;
        if let Some(mean) = self.mean_delay {
            current.skew += f64::from(i8::from(delay < mean) - i8::from(delay > mean));
        }
        if let Some(last) = self.past.back() {
            current.deviation += (delay - last.mean()).abs();
        }
    }

    fn close_interval(&mut self, totals: SegmentTotals, loss_threshold: f64) {
        self.current.sent += totals.sent.saturating_sub(self.totals.sent) as f64;
        self.current.lost += totals.lost.saturating_sub(self.totals.lost) as f64;
        self.totals = totals;
        if self.current.samples == 0.0 {
            return;
        }
        if self.past.len() == LONG {
            self.past.pop_front();
        }
        self.past.push_back(std::mem::take(&mut self.current));
        let means = self.past.iter().rev().take(SHORT).map(Interval::mean);
        self.mean_delay = Some(means.sum::<f64>() / self.past.len().min(SHORT) as f64);
        self.congested = is_congested(self.skew(), self.loss(), self.congested, loss_threshold);
        if let Some(last) = self.past.back_mut() {
            last.congested = self.congested;
        }
    }

    /// Take over the group that this interval shows; empty without a bottleneck. Return the verdict.
    fn settle(&mut self, group: SubflowSet) -> Bottleneck {
        let mut partners = group;
        partners.remove(self.id.slot);
        self.unchanged = match self.past.len() == LONG && partners == self.partners {
            true => self.unchanged + 1,
            false => 0,
        };
        self.partners = partners;
        match group.slots().next() {
            _ if self.unchanged < STABLE => Bottleneck::Unknown,
            None => Bottleneck::None,
            Some(first) => Bottleneck::Shared(first.0),
        }
    }

    /// Per sample, the weighted sum of `value` over the last M intervals. The weight falls linearly
    /// after the newest F of them. RFC 8382 §4.1.
    fn per_sample(&self, value: impl Fn(&Interval) -> f64) -> f64 {
        let mut sums = (0.0, 0.0);
        for (age, interval) in self.past.iter().rev().take(SHORT).enumerate() {
            let weight = (SHORT - age.max(NEW - 1)) as f64;
            sums.0 += weight * value(interval);
            sums.1 += weight * interval.samples;
        }
        sums.0 / sums.1
    }

    fn skew(&self) -> f64 {
        self.per_sample(|interval| interval.skew)
    }

    /// Loss over the last N intervals.
    fn loss(&self) -> f64 {
        let sent: f64 = self.past.iter().map(|interval| interval.sent).sum();
        let lost: f64 = self.past.iter().map(|interval| interval.lost).sum();
        if sent > 0.0 { lost / sent } else { 0.0 }
    }

    /// The estimates of RFC 8382 §3.2; `None` until there is enough history. Intervals in which the
    /// flow passed through no bottleneck count neither in the variability nor in the frequency: their
    /// variations are noise (§4.2).
    fn estimates(&self) -> Option<Estimates> {
        let mean_delay = self.mean_delay.filter(|_| self.past.len() == LONG)?;
        let variability =
            self.per_sample(|interval| if interval.congested { interval.deviation } else { 0.0 });
        let means = self.past.iter().map(|interval| (interval.mean(), interval.congested));
        let crossings = crossings(means, mean_delay, SIGNIFICANT * variability);
        Some(Estimates {
            skew: self.skew(),
            variability,
            frequency: crossings as f64 / LONG as f64,
            loss: self.loss(),
        })
    }
}

/// Number of times that `means` cross from more than `margin` on one side of `centre` to more than
/// `margin` on the other, in intervals that count. RFC 8382 §3.2.4.
fn crossings(means: impl Iterator<Item = (f64, bool)>, centre: f64, margin: f64) -> usize {
    let far = means.filter(|(mean, _)| (mean - centre).abs() > margin);
    let mut last = None;
    far.filter(|(mean, counts)| {
        let side = *mean > centre;
        last.replace(side).is_some_and(|before| before != side) && *counts
    })
    .count()
}

/// Returns `true` if the flow passes through a bottleneck. Queueing makes most delays longer than
/// the mean. RFC 8382 §3.3.1.
fn is_congested(skew: f64, loss: f64, before: bool, loss_threshold: f64) -> bool {
    skew < SKEWED || (before && skew < STILL_SKEWED) || loss > loss_threshold
}

type Member = (SubflowId, Estimates);

fn slots(members: &[Member]) -> SubflowSet {
    let mut slots = SubflowSet::EMPTY;
    members.iter().for_each(|(id, _)| slots.insert(id.slot));
    slots
}

/// Group the flows that pass through bottlenecks by similar estimates. RFC 8382 §3.3.2.
fn group(flows: Vec<Member>, loss_threshold: f64) -> Vec<Vec<Member>> {
    let relative = |part: f64| move |larger: f64, smaller: f64| larger - smaller < part * larger;
    let absolute = |most: f64| move |larger: f64, smaller: f64| larger - smaller < most;
    let groups = split(flows, |e| e.frequency, absolute(SAME_FREQUENCY));
    let groups = groups.into_iter().flat_map(|group| {
        // Two flows without variability are alike.
        split(group, |e| e.variability, |a, b| a == b || relative(SAME_VARIABILITY)(a, b))
    });
    let groups = groups.flat_map(|group| split(group, |e| e.skew, absolute(SAME_SKEW)));
    let by_loss = |group: Vec<Member>| {
        let is_lossy = group.iter().any(|(_, estimates)| estimates.loss > loss_threshold);
        if is_lossy { split(group, |e| e.loss, relative(SAME_LOSS)) } else { vec![group] }
    };
    groups.flat_map(by_loss).collect()
}

/// Sort by `key` in descending order, and split where neighbours are not alike.
fn split(
    mut flows: Vec<Member>,
    key: impl Fn(&Estimates) -> f64,
    alike: impl Fn(f64, f64) -> bool,
) -> Vec<Vec<Member>> {
    flows.sort_by(|(_, a), (_, b)| key(b).total_cmp(&key(a)));
    let groups = flows.chunk_by(|(_, a), (_, b)| alike(key(a), key(b)));
    groups.map(<[Member]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Slot;

    fn id(slot: u8) -> SubflowId {
        SubflowId { slot: Slot(slot), generation: 0 }
    }

    const QUIET: Estimates = Estimates { skew: 0.0, variability: 10.0, frequency: 0.2, loss: 0.0 };

    fn groups(estimates: &[Estimates]) -> Vec<Vec<u8>> {
        let flows = estimates.iter().enumerate().map(|(n, e)| (id(n as u8), *e)).collect();
        let mut named: Vec<Vec<u8>> = group(flows, 0.05)
            .into_iter()
            .map(|group| {
                let mut slots: Vec<u8> = group.iter().map(|(id, _)| id.slot.0).collect();
                slots.sort_unstable();
                slots
            })
            .collect();
        named.sort();
        named
    }

    #[test]
    fn flows_that_are_alike_in_everything_are_one_group() {
        assert_eq!(groups(&[QUIET; 3]), [vec![0, 1, 2]]);
    }

    #[test]
    fn each_statistic_divides() {
        let faster = Estimates { frequency: 0.35, ..QUIET };
        let wilder = Estimates { variability: 12.0, ..QUIET };
        let crooked = Estimates { skew: -0.2, ..QUIET };
        for other in [faster, wilder, crooked] {
            assert_eq!(groups(&[QUIET, other, QUIET]), [vec![0, 2], vec![1]]);
        }
        // At high loss rates, the loss divides as well.
        let lossy = Estimates { loss: 0.10, ..QUIET };
        let lossier = Estimates { loss: 0.12, ..QUIET };
        let crooked = Estimates { skew: -0.2, ..lossy };
        assert_eq!(groups(&[lossy, lossier, crooked]), [vec![0], vec![1], vec![2]]);
        let less = Estimates { loss: 0.03, ..QUIET };
        assert_eq!(groups(&[QUIET, less]), [vec![0, 1]]);
    }

    #[test]
    fn a_chain_of_neighbours_is_one_group() {
        let at = |frequency| Estimates { frequency, ..QUIET };
        assert_eq!(groups(&[at(0.1), at(0.26), at(0.18)]), [vec![0, 1, 2]]);
    }

    #[test]
    fn a_flow_stays_congested_up_to_the_higher_skewness() {
        assert!(is_congested(0.05, 0.0, false, 0.05));
        assert!(!is_congested(0.2, 0.0, false, 0.05));
        assert!(is_congested(0.2, 0.0, true, 0.05));
        assert!(!is_congested(0.35, 0.0, true, 0.05));
        assert!(is_congested(0.9, 0.06, false, 0.05));
    }

    #[test]
    fn only_significant_crossings_count() {
        let means = [10.0, 12.0, 9.0, 10.4, 9.6, 12.0, 9.9, 8.0];
        let all = || means.into_iter().map(|mean| (mean, true));
        assert_eq!(crossings(all(), 10.0, 0.7), 3);
        assert_eq!(crossings(all(), 10.0, 5.0), 0);
        // Without a bottleneck in the first half, its crossing does not count.
        let half = means.into_iter().enumerate().map(|(n, mean)| (mean, n >= 4));
        assert_eq!(crossings(half, 10.0, 0.7), 2);
    }

    /// The verdicts on two flows with the given delays in each of the intervals up to a verdict.
    fn verdicts(delays: impl Fn(usize, usize) -> [i32; 2]) -> Vec<Bottleneck> {
        let mut detector = Detector::new(0.05);
        let mut now = Instant::ZERO;
        let mut last = Vec::new();
        for interval in 0..LONG + STABLE {
            for sample in 0..20 {
                for (slot, delay) in delays(interval, sample).into_iter().enumerate() {
                    detector.on_delay(now, id(slot as u8), delay);
                }
            }
            now += BASE_INTERVAL;
            assert!(detector.is_due(now));
            last = detector
                .close_interval(now, |_| SegmentTotals {
                    sent: 20 * (interval as u64 + 1),
                    lost: 0,
                })
                .into_iter()
                .map(|(_, verdict)| verdict)
                .collect();
            if interval + 2 < LONG + STABLE {
                assert_eq!(last, [Bottleneck::Unknown; 2]);
            }
        }
        last
    }

    #[test]
    fn two_flows_whose_queues_rise_and_fall_together_share_a_bottleneck() {
        let queue = |interval: usize| 50 + 10 * (interval % 10) as i32;
        let verdicts = verdicts(|interval, sample| {
            let delay = queue(interval) + (sample % 3) as i32;
            [delay, delay + 500]
        });
        assert_eq!(verdicts, [Bottleneck::Shared(0); 2]);
    }

    #[test]
    fn two_flows_whose_queues_have_nothing_in_common_share_none() {
        let verdicts = verdicts(|interval, sample| {
            let noise = (sample % 3) as i32;
            [50 + 10 * (interval % 10) as i32 + noise, 50 + 8 * (interval % 3) as i32 + noise]
        });
        assert_eq!(verdicts, [Bottleneck::Shared(0), Bottleneck::Shared(1)]);
    }

    #[test]
    fn a_flow_whose_delays_are_short_but_for_rare_peaks_is_not_congested() {
        let verdicts = verdicts(|interval, sample| {
            let peak = if sample == 7 { 40 } else { 0 };
            [20 + peak, 50 + 10 * (interval % 10) as i32 + (sample % 3) as i32]
        });
        assert_eq!(verdicts, [Bottleneck::None, Bottleneck::Shared(1)]);
    }
}
