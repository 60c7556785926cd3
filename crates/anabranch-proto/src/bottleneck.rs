//! Detection of shared bottlenecks by statistics of one-way delays. RFC 8382.
//!
//! In the RFC, the receiver of the data measures and reports. Here the sender measures the
//! difference of the two timestamps in an acknowledgement (RFC 7323). Its constant part is unknown
//! but does not matter. Delays are in milliseconds, the resolution of the timestamps.

use std::collections::VecDeque;

use anabranch_wire::{Duration, Instant};

use crate::view::{Bottleneck, SubflowId};

/// T: base interval over which delays are summarised. RFC 8382 §2.2.
const BASE_INTERVAL: Duration = Duration::from_millis(350);
/// N: base intervals over which oscillation and losses are estimated. A verdict requires this much
/// history.
const LONG: usize = 50;
/// M: base intervals over which mean, skewness and variability are estimated.
const SHORT: usize = 30;
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
    flows: Vec<Flow>,
}

/// The measurements of one subflow.
#[derive(Debug)]
struct Flow {
    id: SubflowId,
    current: Interval,
    /// The last intervals that have samples, newest last.
    past: VecDeque<Interval>,
    /// Mean of the last M intervals' means.
    mean_delay: Option<f64>,
    totals: Totals,
    congested: bool,
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
}

/// Segments that a subflow has sent and lost so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
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
                let mut flow = Flow::new(id);
                flow.add(f64::from(delay));
                self.flows.push(flow);
            }
        }
    }

    /// The subflow no longer exists.
    pub(crate) fn forget(&mut self, id: SubflowId) {
        self.flows.retain(|flow| flow.id != id);
    }

    /// Has a base interval ended?
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.interval_end.is_some_and(|end| end <= now)
    }

    /// End a base interval. `totals` returns the segments that a subflow has sent and lost so far.
    /// Returns the verdict on each subflow.
    pub(crate) fn close_interval(
        &mut self,
        now: Instant,
        totals: impl Fn(SubflowId) -> Totals,
    ) -> Vec<(SubflowId, Bottleneck)> {
        self.interval_end = Some(now + BASE_INTERVAL);
        for flow in &mut self.flows {
            flow.close_interval(totals(flow.id));
        }
        let mut verdicts: Vec<_> =
            self.flows.iter().map(|flow| (flow.id, Bottleneck::Unknown)).collect();
        let mut congested = Vec::new();
        for (flow, (_, verdict)) in self.flows.iter_mut().zip(&mut verdicts) {
            let Some(estimates) = flow.estimates() else { continue };
            flow.congested = is_congested(&estimates, flow.congested, self.loss_threshold);
            *verdict = Bottleneck::None;
            if flow.congested {
                congested.push((flow.id, estimates));
            }
        }
        for group in group(congested, self.loss_threshold) {
            let name = group.iter().map(|(id, _)| id.slot).min().unwrap_or(0);
            for (id, verdict) in &mut verdicts {
                if group.iter().any(|(member, _)| member == id) {
                    *verdict = Bottleneck::Shared(name);
                }
            }
        }
        verdicts
    }
}

impl Flow {
    fn new(id: SubflowId) -> Self {
        Flow {
            id,
            current: Interval::default(),
            past: VecDeque::with_capacity(LONG),
            mean_delay: None,
            totals: Totals::default(),
            congested: false,
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

    fn close_interval(&mut self, totals: Totals) {
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
        let means = self.short().map(Interval::mean);
        self.mean_delay = Some(means.sum::<f64>() / self.short().count() as f64);
    }

    /// The last M intervals.
    fn short(&self) -> impl Iterator<Item = &Interval> {
        self.past.iter().rev().take(SHORT)
    }

    /// The estimates of RFC 8382 §3.2; `None` until there is enough history.
    fn estimates(&self) -> Option<Estimates> {
        let mean_delay = self.mean_delay.filter(|_| self.past.len() == LONG)?;
        let samples: f64 = self.short().map(|interval| interval.samples).sum();
        let variability = self.short().map(|i| i.deviation).sum::<f64>() / samples;
        let sent: f64 = self.past.iter().map(|interval| interval.sent).sum();
        let lost: f64 = self.past.iter().map(|interval| interval.lost).sum();
        let means = self.past.iter().map(Interval::mean);
        let crossings = crossings(means, mean_delay, SIGNIFICANT * variability);
        Some(Estimates {
            skew: self.short().map(|interval| interval.skew).sum::<f64>() / samples,
            variability,
            frequency: crossings as f64 / LONG as f64,
            loss: if sent > 0.0 { lost / sent } else { 0.0 },
        })
    }
}

/// Number of times that `means` cross from more than `margin` on one side of `centre` to more than
/// `margin` on the other. RFC 8382 §3.2.3.
fn crossings(means: impl Iterator<Item = f64>, centre: f64, margin: f64) -> usize {
    let sides = means.filter_map(|mean| ((mean - centre).abs() > margin).then_some(mean > centre));
    let mut last = None;
    sides.filter(|side| last.replace(*side).is_some_and(|before| before != *side)).count()
}

/// Does the flow pass through a bottleneck? Queueing makes most delays longer than the mean.
/// RFC 8382 §3.3.
fn is_congested(estimates: &Estimates, before: bool, loss_threshold: f64) -> bool {
    estimates.skew < SKEWED
        || (before && estimates.skew < STILL_SKEWED)
        || estimates.loss > loss_threshold
}

type Member = (SubflowId, Estimates);

/// Group the flows that pass through bottlenecks by similar estimates. RFC 8382 §3.3.1.
fn group(flows: Vec<Member>, loss_threshold: f64) -> Vec<Vec<Member>> {
    let relative = |part: f64| move |larger: f64, smaller: f64| larger - smaller < part * larger;
    let absolute = |most: f64| move |larger: f64, smaller: f64| larger - smaller < most;
    let groups = split(flows, |e| e.frequency, absolute(SAME_FREQUENCY));
    let groups = groups.into_iter().flat_map(|group| {
        // Two flows without variability are alike.
        split(group, |e| e.variability, |a, b| a == b || relative(SAME_VARIABILITY)(a, b))
    });
    let last = |group: Vec<Member>| {
        if group.iter().any(|(_, estimates)| estimates.loss > loss_threshold) {
            split(group, |e| e.loss, relative(SAME_LOSS))
        } else {
            split(group, |e| e.skew, absolute(SAME_SKEW))
        }
    };
    groups.flat_map(last).collect()
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

    fn id(slot: u8) -> SubflowId {
        SubflowId { slot, generation: 0 }
    }

    const QUIET: Estimates = Estimates { skew: 0.0, variability: 10.0, frequency: 0.2, loss: 0.0 };

    fn groups(estimates: &[Estimates]) -> Vec<Vec<u8>> {
        let flows = estimates.iter().enumerate().map(|(n, e)| (id(n as u8), *e)).collect();
        let mut named: Vec<Vec<u8>> = group(flows, 0.05)
            .into_iter()
            .map(|group| {
                let mut slots: Vec<u8> = group.iter().map(|(id, _)| id.slot).collect();
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
        // At high loss rates, the loss decides instead of the skewness.
        let lossy = Estimates { loss: 0.10, ..QUIET };
        let lossier = Estimates { loss: 0.12, ..QUIET };
        let crooked = Estimates { skew: -0.2, ..lossy };
        assert_eq!(groups(&[lossy, lossier, crooked]), [vec![0, 2], vec![1]]);
    }

    #[test]
    fn a_chain_of_neighbours_is_one_group() {
        let at = |frequency| Estimates { frequency, ..QUIET };
        assert_eq!(groups(&[at(0.1), at(0.26), at(0.18)]), [vec![0, 1, 2]]);
    }

    #[test]
    fn a_flow_stays_congested_up_to_the_higher_skewness() {
        let at = |skew, loss| Estimates { skew, loss, ..QUIET };
        assert!(is_congested(&at(0.05, 0.0), false, 0.05));
        assert!(!is_congested(&at(0.2, 0.0), false, 0.05));
        assert!(is_congested(&at(0.2, 0.0), true, 0.05));
        assert!(!is_congested(&at(0.35, 0.0), true, 0.05));
        assert!(is_congested(&at(0.9, 0.06), false, 0.05));
    }

    #[test]
    fn only_significant_crossings_count() {
        let means = [10.0, 12.0, 9.0, 10.4, 9.6, 12.0, 9.9, 8.0];
        assert_eq!(crossings(means.into_iter(), 10.0, 0.7), 3);
        assert_eq!(crossings(means.into_iter(), 10.0, 5.0), 0);
    }

    /// The verdicts on two flows with the given delays in each of `LONG` intervals.
    fn verdicts(delays: impl Fn(usize, usize) -> [i32; 2]) -> Vec<Bottleneck> {
        let mut detector = Detector::new(0.05);
        let mut now = Instant::ZERO;
        let mut last = Vec::new();
        for interval in 0..LONG {
            for sample in 0..20 {
                for (slot, delay) in delays(interval, sample).into_iter().enumerate() {
                    detector.on_delay(now, id(slot as u8), delay);
                }
            }
            now += BASE_INTERVAL;
            assert!(detector.is_due(now));
            last = detector
                .close_interval(now, |_| Totals { sent: 20 * (interval as u64 + 1), lost: 0 })
                .into_iter()
                .map(|(_, verdict)| verdict)
                .collect();
            if interval + 1 < LONG {
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
