//! No further subflows: the connection keeps the one on which it was opened.

use anabranch_wire::Instant;

use super::{Factory, PathAction, PathEvent, PathManager};
use crate::policy::Entry;
use crate::view::SubflowView;

/// Never opens a subflow.
#[derive(Clone, Copy, Debug, Default)]
pub struct InitialOnly;

/// Name, description and constructor of this path manager.
pub(super) const ENTRY: super::PathManagerEntry = Entry {
    name: "initial_only",
    summary: "Opens no subflow besides the first.",
    source: "this project",
    parameters: &[],
    make: Factory {
        heeds_announcements: true,
        in_kernel: Some(|_, _| None),
        make: |_| Box::new(InitialOnly),
    },
};

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
