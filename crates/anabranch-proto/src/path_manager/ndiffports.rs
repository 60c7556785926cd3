//! Several subflows between the same two addresses with different source ports, for networks that
//! spread flows over paths by hashing ports. Raiciu et al., SIGCOMM 2011; Linux's "ndiffports".

use anabranch_config::Part;
use anabranch_wire::Instant;

use super::{BuildPathManager, PathAction, PathEvent, PathManager, Upkeep};
use crate::view::SubflowView;

/// The initiator keeps `subflows` subflows from the address from which the connection was opened.
/// It replaces subflows that end as [`super::FullMesh`] does.
#[derive(Clone, Debug)]
pub struct NDiffPorts {
    subflows: u32,
    upkeep: Upkeep,
}

/// Parameters of [`NDiffPorts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct NDiffPortsConfig {
    /// Number of subflows, including the first.
    #[cfg_attr(
        feature = "serde",
        schemars(
            range(min = 1, max = crate::view::SubflowSet::CAPACITY as u32),
            extend("x-origin" = "Multipath TCP for Linux")
        )
    )]
    pub subflows: u32,
}

impl Default for NDiffPortsConfig {
    fn default() -> Self {
        NDiffPortsConfig { subflows: 2 }
    }
}

impl Part for NDiffPortsConfig {
    const NAME: &'static str = "ndiffports";
    const SUMMARY: &'static str =
        "Opens several subflows over the first path, with different ports.";
    const SOURCE: &'static str =
        "Raiciu et al., SIGCOMM 2011; the ndiffports of Multipath TCP for Linux";
}

impl BuildPathManager for NDiffPortsConfig {
    fn heeds_announcements(&self) -> bool {
        true
    }

    fn build(&self) -> Box<dyn PathManager> {
        Box::new(NDiffPorts::new(self.subflows))
    }
}

impl NDiffPorts {
    /// Keeps `subflows` subflows, including the first.
    pub fn new(subflows: u32) -> Self {
        NDiffPorts { subflows, upkeep: Upkeep::default() }
    }
}

impl PathManager for NDiffPorts {
    fn handle_event(&mut self, now: Instant, event: &PathEvent<'_>, subflows: &[SubflowView]) {
        if let PathEvent::Established { initiator: true, local, remote } = *event
            && let Some(first) = local.first()
        {
            self.upkeep.want(*first, remote, self.subflows, false);
        }
        self.upkeep.handle_event(now, event, subflows);
    }

    fn handle_timeout(&mut self, now: Instant, _subflows: &[SubflowView]) {
        self.upkeep.handle_timeout(now);
    }

    fn poll_action(&mut self) -> Option<PathAction> {
        self.upkeep.poll_action()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.upkeep.poll_timeout()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path_manager::Retry;
    use crate::path_manager::tests::{actions, established, id, local, opened, remote};

    #[test]
    fn all_subflows_leave_from_the_first_address() {
        let mut ports = NDiffPorts::new(4);
        let all = established(&mut ports, true, &[local(0), local(1)]);
        assert_eq!(opened(&all), [(0, false); 3]);
        assert!(established(&mut NDiffPorts::new(4), false, &[local(0)]).is_empty());
    }

    #[test]
    fn two_that_end_are_both_replaced() {
        let mut ports = NDiffPorts::new(3);
        established(&mut ports, true, &[local(0)]);
        for slot in [2, 0] {
            let closed = PathEvent::SubflowClosed {
                id: Some(id(slot)),
                local_address_id: 0,
                remote: remote(),
                retry: Retry::Later,
                reopens: true,
            };
            ports.handle_event(Instant::ZERO, &closed, &[]);
        }
        let at = ports.poll_timeout().expect("a retry is planned");
        ports.handle_timeout(at, &[]);
        assert_eq!(opened(&actions(&mut ports)), [(0, false); 2]);
    }
}
