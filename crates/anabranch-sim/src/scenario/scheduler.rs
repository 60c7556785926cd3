//! The scheduler of a connection: by name, or as a table with parameters.

use core::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::{Choice, KindTable, refuse_foreign};
use super::error::Problem;
use super::factor::Factor;
use super::names::{BlestRuleName, SchedulerKind};

/// A scheduler and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// The usable subflow with the lowest smoothed RTT.
    MinRtt,
    /// The subflows take turns.
    RoundRobin {
        /// Segments in a row on one subflow.
        num_segments: NonZeroU32,
        /// Is a subflow with a full congestion window passed over, rather than waited for?
        cwnd_limited: bool,
    },
    /// Everything on every subflow.
    Redundant,
    /// BLEST.
    Blest(BlestRule),
    /// ECF.
    Ecf {
        /// Hysteresis: a waiting scheduler goes on waiting within this part of the slow RTT.
        beta: Factor,
    },
}

/// How BLEST estimates what the fast subflow would send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlestRule {
    /// As the authors' implementation for Linux.
    Linux,
    /// As the paper.
    Paper {
        /// Step of the correction delta.
        step: Factor,
    },
}

/// A table with the keys of all kinds; those of other kinds are refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Scheduler")]
pub(super) struct SchedulerTable {
    /// Kind of scheduler.
    pub(super) kind: SchedulerKind,
    /// `round_robin` only: segments in a row on one subflow, by default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NonZeroU32")]
    pub(super) num_segments: Option<NonZeroU32>,
    /// `round_robin` only: pass over subflows with a full congestion window, rather than wait for
    /// them; by default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub(super) cwnd_limited: Option<bool>,
    /// `blest` only: how it estimates, by default `linux`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BlestRuleName")]
    pub(super) rule: Option<BlestRuleName>,
    /// `blest` with the paper's rule only: step of the correction delta, by default 0.01.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Factor")]
    pub(super) step: Option<Factor>,
    /// `ecf` only: hysteresis, by default 0.25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Factor")]
    pub(super) beta: Option<Factor>,
}

/// What the file holds: a name or a table.
pub(super) type SchedulerValue = Choice<SchedulerTable>;

impl KindTable for SchedulerTable {
    type Kind = SchedulerKind;
    const EXAMPLE: &'static str = "\"min_rtt\"";

    fn of_kind(kind: SchedulerKind) -> Self {
        SchedulerTable { kind, ..SchedulerTable::default() }
    }

    fn kind(&self) -> SchedulerKind {
        self.kind
    }
}

/// Step of delta: the middle of what Ferlin et al., 2016, try.
const BLEST_STEP: Factor = Factor::from_thousandths(10);
/// Lim et al., CoNEXT 2017.
const ECF_BETA: Factor = Factor::from_thousandths(250);

impl SchedulerTable {
    /// The scheduler that the table at `key` describes.
    pub(super) fn resolve(self, key: &str) -> Result<Scheduler, Problem> {
        self.refuse_foreign_keys(key)?;
        Ok(match self.kind {
            SchedulerKind::MinRtt => Scheduler::MinRtt,
            SchedulerKind::RoundRobin => Scheduler::RoundRobin {
                num_segments: self.num_segments.unwrap_or(NonZeroU32::MIN),
                cwnd_limited: self.cwnd_limited.unwrap_or(true),
            },
            SchedulerKind::Redundant => Scheduler::Redundant,
            SchedulerKind::Blest => Scheduler::Blest(match self.rule.unwrap_or_default() {
                BlestRuleName::Linux => BlestRule::Linux,
                BlestRuleName::Paper => BlestRule::Paper { step: self.step.unwrap_or(BLEST_STEP) },
            }),
            SchedulerKind::Ecf => Scheduler::Ecf { beta: self.beta.unwrap_or(ECF_BETA) },
        })
    }

    fn refuse_foreign_keys(&self, key: &str) -> Result<(), Problem> {
        let is = |kind| self.kind == kind;
        let paper = is(SchedulerKind::Blest) && self.rule == Some(BlestRuleName::Paper);
        let checks = [
            (
                "num_segments",
                self.num_segments.is_some(),
                is(SchedulerKind::RoundRobin),
                "kind = \"round_robin\"",
            ),
            (
                "cwnd_limited",
                self.cwnd_limited.is_some(),
                is(SchedulerKind::RoundRobin),
                "kind = \"round_robin\"",
            ),
            ("rule", self.rule.is_some(), is(SchedulerKind::Blest), "kind = \"blest\""),
            ("step", self.step.is_some(), paper, "kind = \"blest\" and rule = \"paper\""),
            ("beta", self.beta.is_some(), is(SchedulerKind::Ecf), "kind = \"ecf\""),
        ];
        refuse_foreign(key, checks)
    }
}

impl From<Scheduler> for SchedulerValue {
    /// With every default spelled out.
    fn from(scheduler: Scheduler) -> Self {
        let kind = SchedulerTable::of_kind;
        Choice(match scheduler {
            Scheduler::MinRtt => kind(SchedulerKind::MinRtt),
            Scheduler::RoundRobin { num_segments, cwnd_limited } => SchedulerTable {
                num_segments: Some(num_segments),
                cwnd_limited: Some(cwnd_limited),
                ..kind(SchedulerKind::RoundRobin)
            },
            Scheduler::Redundant => kind(SchedulerKind::Redundant),
            Scheduler::Blest(BlestRule::Linux) => {
                SchedulerTable { rule: Some(BlestRuleName::Linux), ..kind(SchedulerKind::Blest) }
            }
            Scheduler::Blest(BlestRule::Paper { step }) => SchedulerTable {
                rule: Some(BlestRuleName::Paper),
                step: Some(step),
                ..kind(SchedulerKind::Blest)
            },
            Scheduler::Ecf { beta } => {
                SchedulerTable { beta: Some(beta), ..kind(SchedulerKind::Ecf) }
            }
        })
    }
}
