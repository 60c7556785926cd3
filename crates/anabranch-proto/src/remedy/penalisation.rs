//! Penalisation (M2): halve the congestion window of the slow subflow that blocks the shared
//! window. Raiciu et al., NSDI 2012 §4.2; corrected by Paasch et al., CoNEXT 2013.

use anabranch_config::Part;
use anabranch_wire::{Duration, Instant};

use super::{BuildRemedy, Remedy, RemedyActions, RemedyContext};
use crate::congestion::ExternalReduction;
use crate::view::{RecoveryPhase, Slot, SubflowSet, SubflowView, Usability};

/// When a subflow is slower than the one that has room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slower {
    /// Its cwnd / RTT is lower.
    Rate,
    /// Its RTT is higher.
    Rtt,
}

/// Whose round trip must pass before the next penalty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// That of the slow subflow, since it was last penalised.
    Slow,
    /// That of the fast subflow, since it last penalised another one.
    Fast,
}

/// The three parts in which the published forms differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PenalisationForm {
    /// Which subflows are slower.
    pub slower: Slower,
    /// Round-trip time that passes between two penalties.
    pub pause: Pause,
    /// Reduction of its window and threshold.
    pub reduction: ExternalReduction,
}

impl PenalisationForm {
    /// As first published.
    pub const NSDI12: Self = PenalisationForm {
        slower: Slower::Rate,
        pause: Pause::Slow,
        reduction: ExternalReduction::HalveBoth,
    };
    /// As later corrected.
    pub const CONEXT13: Self = PenalisationForm {
        slower: Slower::Rtt,
        pause: Pause::Fast,
        reduction: ExternalReduction::HalveKeepSlowStart,
    };
    /// As in the kernel of Multipath TCP 0.88.
    pub const KERNEL_0_88: Self =
        PenalisationForm { reduction: ExternalReduction::HalveKeepUnset, ..Self::CONEXT13 };
}

/// Penalisation of slow subflows.
#[derive(Clone, Debug)]
pub struct Penalisation {
    form: PenalisationForm,
    last: [Option<Instant>; SubflowSet::CAPACITY],
}

/// Parameters of [`Penalisation`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct PenalisationConfig {
    /// As first published, with one part of the later form, as in MPTCP 0.88, or as later
    /// corrected.
    #[cfg_attr(feature = "serde", schemars(extend("x-origin" = "the later one")))]
    pub form: PenalisationFormName,
}

/// The names of forms of penalisation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "snake_case"),
    schemars(inline)
)]
pub enum PenalisationFormName {
    /// As first published.
    Nsdi12,
    /// The same, with the later reduction.
    Nsdi12Ssthresh,
    /// The same, where the later form says which subflows are slower.
    Nsdi12Rtt,
    /// The same, with the later pause.
    Nsdi12Pause,
    /// As in the kernel of Multipath TCP 0.88.
    #[cfg_attr(feature = "serde", serde(rename = "kernel_0_88"))]
    Kernel088,
    /// As later corrected.
    #[default]
    Conext13,
}

impl From<PenalisationFormName> for PenalisationForm {
    fn from(name: PenalisationFormName) -> Self {
        let (old, new) = (Self::NSDI12, Self::CONEXT13);
        match name {
            PenalisationFormName::Nsdi12 => old,
            PenalisationFormName::Nsdi12Ssthresh => {
                PenalisationForm { reduction: new.reduction, ..old }
            }
            PenalisationFormName::Nsdi12Rtt => PenalisationForm { slower: new.slower, ..old },
            PenalisationFormName::Nsdi12Pause => PenalisationForm { pause: new.pause, ..old },
            PenalisationFormName::Kernel088 => Self::KERNEL_0_88,
            PenalisationFormName::Conext13 => new,
        }
    }
}

impl Part for PenalisationConfig {
    const NAME: &'static str = "penalisation";
    const SUMMARY: &'static str =
        "M2: halves the congestion window of the subflow that blocks the receive window.";
    const SOURCE: &'static str = "Raiciu et al., NSDI 2012, §4.2; Paasch et al., CoNEXT 2013";
}

impl BuildRemedy for PenalisationConfig {
    fn build(&self) -> Box<dyn Remedy> {
        Box::new(Penalisation::new(self.form.into()))
    }
}

impl Penalisation {
    /// Penalisation by the rule of `form`. No subflow is penalised yet.
    pub fn new(form: PenalisationForm) -> Self {
        Penalisation { form, last: [None; SubflowSet::CAPACITY] }
    }

    fn decide(&mut self, context: &RemedyContext<'_>) -> RemedyActions {
        let fast = &context.subflows[context.blocked];
        let mut blocking = SubflowSet::EMPTY;
        for slow in context.subflows {
            let candidate = slow.id.slot != fast.id.slot
                && slow.usability == Usability::Usable
                && slow.phase == RecoveryPhase::Open
                && context.head_carried_by.contains(slow.id.slot);
            if candidate && self.is_slower(slow, fast) && self.is_due(slow, fast, context.now) {
                blocking.insert(slow.id.slot);
            }
        }
        if blocking.is_empty() {
            return RemedyActions::default();
        }
        self.remember(blocking, fast, context.now);
        RemedyActions { reinject: false, penalise: Some((blocking, self.form.reduction)) }
    }

    fn is_slower(&self, slow: &SubflowView, fast: &SubflowView) -> bool {
        match self.form.slower {
            Slower::Rtt => fast.srtt_or_max() < slow.srtt_or_max(),
            // cwnd_slow / srtt_slow < cwnd_fast / srtt_fast, without dividing
            Slower::Rate => match (slow.srtt, fast.srtt) {
                (Some(slow_rtt), Some(fast_rtt)) => {
                    u128::from(slow.cwnd) * u128::from(fast_rtt.as_nanos())
                        < u128::from(fast.cwnd) * u128::from(slow_rtt.as_nanos())
                }
                _ => false,
            },
        }
    }

    fn is_due(&self, slow: &SubflowView, fast: &SubflowView, now: Instant) -> bool {
        let (keeper, pause) = match self.form.pause {
            Pause::Slow => (slow.id.slot, slow.srtt),
            Pause::Fast => (fast.id.slot, fast.srtt),
        };
        let pause = pause.unwrap_or(Duration::ZERO);
        self.last[keeper].is_none_or(|last| now.saturating_since(last) >= pause)
    }

    fn remember(&mut self, blocking: SubflowSet, fast: &SubflowView, now: Instant) {
        match self.form.pause {
            Pause::Fast => self.last[fast.id.slot] = Some(now),
            Pause::Slow => {
                for (slot, last) in self.last.iter_mut().enumerate() {
                    if blocking.contains(Slot(slot as u8)) {
                        *last = Some(now);
                    }
                }
            }
        }
    }
}

impl Remedy for Penalisation {
    fn on_window_limited(&mut self, context: &RemedyContext<'_>) -> RemedyActions {
        self.decide(context)
    }

    fn on_send_buffer_full(&mut self, context: &RemedyContext<'_>) -> RemedyActions {
        if context.send_buffer_full { self.decide(context) } else { RemedyActions::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::view;

    fn ask(remedy: &mut Penalisation, subflows: &[SubflowView], now_ms: u64) -> bool {
        let context = RemedyContext {
            now: Instant::ZERO + Duration::from_millis(now_ms),
            subflows,
            blocked: Slot(0),
            head_carried_by: SubflowSet::of(Slot(1)),
            send_buffer_full: true,
        };
        remedy.on_window_limited(&context).penalise.is_some()
    }

    #[test]
    fn conext13_penalises_once_per_round_trip_of_the_fast_subflow() {
        let mut remedy = Penalisation::new(PenalisationForm::CONEXT13);
        let subflows = [view(0, 20), view(1, 150)];
        assert!(ask(&mut remedy, &subflows, 100));
        assert!(!ask(&mut remedy, &subflows, 119));
        assert!(ask(&mut remedy, &subflows, 120));
    }

    #[test]
    fn nsdi12_penalises_once_per_round_trip_of_the_slow_subflow_and_compares_rates() {
        let mut remedy = Penalisation::new(PenalisationForm::NSDI12);
        let subflows = [view(0, 20), view(1, 150)];
        assert!(ask(&mut remedy, &subflows, 100));
        assert!(!ask(&mut remedy, &subflows, 249));
        assert!(ask(&mut remedy, &subflows, 250));
        // A longer delay with a proportionally larger window is not slow by this rule.
        let wide = SubflowView { cwnd: 200_000, ..view(1, 150) };
        assert!(!ask(&mut Penalisation::new(PenalisationForm::NSDI12), &[view(0, 20), wide], 0));
    }

    #[test]
    fn a_subflow_in_recovery_or_that_did_not_carry_the_head_is_left_alone() {
        let recovering = SubflowView { phase: RecoveryPhase::Recovery, ..view(1, 150) };
        let mut remedy = Penalisation::new(PenalisationForm::CONEXT13);
        assert!(!ask(&mut remedy, &[view(0, 20), recovering], 0));
        assert!(!ask(&mut remedy, &[view(0, 20), view(2, 150)], 0));
    }
}
