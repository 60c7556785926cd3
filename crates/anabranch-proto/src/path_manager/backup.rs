//! Backup mode: all subflows are open, and one carries the data until it fails. Paasch et al.,
//! "Exploring mobile/WiFi handover with Multipath TCP", CellNet 2012 ("backup mode").

use anabranch_config::{Part, PathRef};
use anabranch_wire::{Instant, SocketAddress};

use super::upkeep::{is_of_family, of_family};
use super::{BuildPathManager, InKernel, LocalAddress, PathAction, PathEvent, PathManager, Upkeep};
use crate::view::SubflowView;

/// Opens a subflow from each address, all but one as backups. Both hosts send on a backup only if
/// no regular subflow is usable. RFC 8684 §3.3.8.
///
/// MP_CAPABLE has no backup bit. A connection that was opened from an address other than the
/// regular one sends from there until the regular subflow is established. The manager then turns
/// the first subflow into a backup with MP_PRIO.
#[derive(Clone, Debug)]
pub struct Backup {
    regular: usize,
    upkeep: Upkeep,
    regular_address_id: Option<u8>,
    demoted: bool,
    initiator: bool,
}

/// Parameters of [`Backup`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct BackupConfig {
    /// The path that is no backup.
    #[cfg_attr(
        feature = "serde",
        schemars(extend("x-origin" = "the path that the connection is opened over"))
    )]
    pub regular: PathRef,
}

impl Default for BackupConfig {
    fn default() -> Self {
        BackupConfig { regular: PathRef::FIRST }
    }
}

impl Part for BackupConfig {
    const NAME: &'static str = "backup";
    const SUMMARY: &'static str = "Opens a subflow over every path, all but one as backups.";
    const SOURCE: &'static str = "Paasch et al., CellNet 2012 (backup mode)";
}

impl BuildPathManager for BackupConfig {
    fn is_in_kernel(&self) -> bool {
        true
    }

    fn endpoint(&self, path: usize) -> Option<InKernel> {
        // Linux sends MP_PRIO on the first subflow if the endpoint of its address is a backup.
        match path == self.regular.index {
            true => (path > 0).then_some(InKernel::Regular),
            false => Some(InKernel::Backup),
        }
    }

    fn build(&self) -> Box<dyn PathManager> {
        Box::new(Backup::new(self.regular.index))
    }
}

impl Backup {
    /// Uses the connection's address at index `regular` for the regular subflow.
    pub fn new(regular: usize) -> Self {
        Backup {
            regular,
            upkeep: Upkeep::default(),
            regular_address_id: None,
            demoted: false,
            initiator: false,
        }
    }

    /// Request a subflow from `local`.
    fn want(&mut self, local: LocalAddress, remote: SocketAddress) {
        // Identifiers follow the order of the connection's addresses.
        let regular = usize::from(local.id) == self.regular;
        if regular {
            self.regular_address_id = Some(local.id);
        }
        self.upkeep.want(local, remote, 1, !regular);
    }

    /// The regular subflow is established: turn the connection's first subflow into a backup.
    fn demote_first(&mut self, subflows: &[SubflowView]) {
        let first = subflows.iter().find(|view| view.local_address_id == 0);
        if let Some(first) = first
            && !std::mem::replace(&mut self.demoted, true)
        {
            self.upkeep.push(PathAction::SetPriority {
                subflow: first.id,
                backup: true,
                signalled: true,
            });
        }
    }
}

impl PathManager for Backup {
    fn handle_event(&mut self, now: Instant, event: &PathEvent<'_>, subflows: &[SubflowView]) {
        match *event {
            PathEvent::Established { initiator: true, local, remote } => {
                self.initiator = true;
                for local in of_family(local, remote) {
                    self.want(*local, remote);
                }
            }
            PathEvent::AddressAdded { local, remote: [first, ..] }
                if self.initiator && is_of_family(&local, first.end) =>
            {
                self.want(local, first.end);
            }
            PathEvent::SubflowEstablished(id) => {
                let regular = subflows.iter().find(|view| view.id == id);
                let is_regular = regular.map(|view| view.local_address_id)
                    == self.regular_address_id.filter(|regular| *regular != 0);
                if regular.is_some() && is_regular {
                    self.demote_first(subflows);
                }
            }
            _ => {}
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
    use crate::path_manager::tests::{actions, added, established, id, local, opened};
    use crate::view::tests::view;

    const ADDRESSES: [u8; 3] = [0, 1, 2];

    #[test]
    fn all_but_the_regular_one_are_opened_as_backups() {
        for (regular, expected) in [(0, [(1, true), (2, true)]), (1, [(1, false), (2, true)])] {
            let mut backup = Backup::new(regular);
            let all = established(&mut backup, true, &ADDRESSES.map(local));
            assert_eq!(opened(&all), expected);
        }
    }

    #[test]
    fn an_added_address_is_a_backup_unless_it_is_the_regular_one() {
        for (regular, expected) in [(0, [(1, true)]), (1, [(1, false)])] {
            let mut backup = Backup::new(regular);
            established(&mut backup, true, &[local(0)]);
            assert_eq!(opened(&added(&mut backup, local(1))), expected);
        }
    }

    #[test]
    fn the_first_subflow_becomes_a_backup_once_the_regular_one_is_there() {
        let mut backup = Backup::new(1);
        established(&mut backup, true, &ADDRESSES.map(local));
        let views = [view(0, 20), view(1, 20), view(2, 20)];
        let event = |slot| PathEvent::SubflowEstablished(id(slot));
        backup.handle_event(Instant::ZERO, &event(2), &views);
        assert!(actions(&mut backup).is_empty());
        backup.handle_event(Instant::ZERO, &event(1), &views);
        let demoted = PathAction::SetPriority { subflow: id(0), backup: true, signalled: true };
        assert_eq!(actions(&mut backup), [demoted]);
    }

    #[test]
    fn a_first_subflow_that_is_the_regular_one_stays_so() {
        let mut backup = Backup::new(0);
        established(&mut backup, true, &ADDRESSES.map(local));
        let views = [view(0, 20), view(1, 20), view(2, 20)];
        backup.handle_event(Instant::ZERO, &PathEvent::SubflowEstablished(id(1)), &views);
        assert!(actions(&mut backup).is_empty());
    }
}
