//! No further subflows: the connection keeps the one on which it was opened.

use anabranch_config::part_without_parameters;
use anabranch_wire::Instant;

use super::{BuildPathManager, PathAction, PathEvent, PathManager};
use crate::view::SubflowView;

/// Never opens a subflow.
#[derive(Clone, Copy, Debug, Default)]
pub struct InitialOnly;

part_without_parameters! {
    /// Selects [`InitialOnly`].
    pub struct InitialOnlyConfig;
    NAME = "initial_only";
    SUMMARY = "Opens no subflow besides the first.";
    SOURCE = "this project";
}

impl BuildPathManager for InitialOnlyConfig {
    fn heeds_announcements(&self) -> bool {
        true
    }

    fn is_in_kernel(&self) -> bool {
        true
    }

    fn build(&self) -> Box<dyn PathManager> {
        Box::new(InitialOnly)
    }
}

impl PathManager for InitialOnly {
    fn handle_event(&mut self, _now: Instant, _event: &PathEvent<'_>, _subflows: &[SubflowView]) {}

    fn handle_timeout(&mut self, _now: Instant, _subflows: &[SubflowView]) {}

    fn poll_action(&mut self) -> Option<PathAction> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}
