//! Losses of a trace, as a scenario states them.

use core::num::NonZeroU64;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use anabranch_config::written::Problem;

/// Losses at given places, such as those that a capture shows. The trace repeats. Packets count
/// from 1 in the order in which they enter the link. Acknowledgements and lost packets count too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LossTrace {
    /// Length of the trace in packets.
    pub packets: NonZeroU64,
    /// Numbers of the lost packets, in increasing order.
    pub lost: Vec<u64>,
}

impl LossTrace {
    /// Check that the numbers increase, from 1 to the length of the trace.
    pub(super) fn check(&self) -> Result<(), Problem> {
        let problem = |text| Err(Problem::new("loss_trace.lost", text));
        if let Some(pair) = self.lost.windows(2).find(|pair| pair[0] >= pair[1]) {
            return problem(format!("{} follows {}; the numbers increase", pair[1], pair[0]));
        }
        let outside = |number: &&u64| !(1..=self.packets.get()).contains(*number);
        match self.lost.iter().find(outside) {
            Some(number) => {
                problem(format!("{number}: must be between 1 and packets = {}", self.packets))
            }
            None => Ok(()),
        }
    }
}

impl From<LossTrace> for anabranch_net::LossTrace {
    fn from(LossTrace { packets, lost }: LossTrace) -> Self {
        anabranch_net::LossTrace { packets, lost }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use super::super::{Scenario, ScenarioError};

    fn scenario(trace: &str, reverse: &str) -> Result<Scenario, ScenarioError> {
        let toml = format!(
            "name = \"lossy\"\nduration = \"1s\"\n\
             [[path]]\nname = \"lte\"\nrate = \"1Mbit/s\"\ndelay = \"10ms\"\nlimit = \"100ms\"\n\
             loss_trace = {trace}\nreverse.loss_trace = {reverse}\n\
             [[connection]]\nworkload = {{ kind = \"bulk\" }}\n"
        );
        Scenario::from_toml(&toml, "lossy.toml")
    }

    #[test]
    fn each_direction_has_a_trace_of_its_own() {
        let found =
            scenario("{ packets = 9, lost = [2, 7] }", "{ packets = 5, lost = [] }").unwrap();
        let trace = |lost: Option<anabranch_net::LossTrace>| {
            lost.map(|trace| (trace.packets.get(), trace.lost))
        };
        assert_eq!(trace(found.paths[0].forward_link().loss_trace), Some((9, vec![2, 7])));
        assert_eq!(trace(found.paths[0].reverse_link().loss_trace), Some((5, vec![])));
        assert_eq!(read(&found.to_toml()), found);
    }

    #[test]
    fn numbers_increase_within_the_trace() {
        let good = "{ packets = 5, lost = [] }";
        let error = |forward, reverse| scenario(forward, reverse).unwrap_err().to_string();
        assert_eq!(
            error("{ packets = 9, lost = [2, 7, 7] }", good),
            "lossy.toml: path[0].loss_trace.lost: 7 follows 7; the numbers increase"
        );
        assert_eq!(
            error(good, "{ packets = 9, lost = [2, 10] }"),
            "lossy.toml: path[0].reverse.loss_trace.lost: 10: must be between 1 and packets = 9"
        );
        assert_eq!(
            error("{ packets = 9, lost = [0] }", good),
            "lossy.toml: path[0].loss_trace.lost: 0: must be between 1 and packets = 9"
        );
    }
}
