//! Full mesh: a subflow for each pair of a local and a remote address. This is the default of the
//! Linux implementation that most papers use ("fullmesh"). RFC 8684 §3.9.1.

use anabranch_config::part_without_parameters;
use anabranch_wire::Instant;

use super::upkeep::{is_of_family, of_family};
use super::{
    BuildPathManager, InKernel, LocalAddress, PathAction, PathEvent, PathManager, RemoteAddress,
    Upkeep,
};
use crate::view::SubflowView;

/// The initiator opens a subflow for each pair. When a subflow ends, it reopens the pair after a
/// pause, which doubles with each consecutive failure from 1 s to 60 s. The listener announces its
/// further addresses, so that the initiator can open subflows to them as well.
#[derive(Clone, Debug, Default)]
pub struct FullMesh {
    upkeep: Upkeep,
    local: Vec<LocalAddress>,
    initiator: bool,
}

part_without_parameters! {
    /// Selects [`FullMesh`].
    pub struct FullMeshConfig;
    NAME = "full_mesh";
    SUMMARY = "Opens a subflow over every path.";
    SOURCE = "the fullmesh of Multipath TCP for Linux";
}

impl BuildPathManager for FullMeshConfig {
    fn heeds_announcements(&self) -> bool {
        true
    }

    fn is_in_kernel(&self) -> bool {
        true
    }

    fn endpoint(&self, path: usize) -> Option<InKernel> {
        (path > 0).then_some(InKernel::Regular)
    }

    fn build(&self) -> Box<dyn PathManager> {
        Box::new(FullMesh::default())
    }
}

impl FullMesh {
    /// Announce this host's addresses that are not down.
    fn announce(&mut self, which: impl Fn(&LocalAddress) -> bool) {
        for local in self.local.iter().filter(|own| which(own)) {
            if !self.upkeep.is_down(local.id) {
                self.upkeep.push(PathAction::Announce { local: *local });
            }
        }
    }
}

impl PathManager for FullMesh {
    fn handle_event(&mut self, now: Instant, event: &PathEvent<'_>, subflows: &[SubflowView]) {
        match *event {
            PathEvent::Established { initiator, local, remote } => {
                self.local = local.to_vec();
                self.initiator = initiator;
                if initiator {
                    for local in of_family(local, remote) {
                        self.upkeep.want(*local, remote, 1, false);
                    }
                } else {
                    self.announce(|own| own.id != 0);
                }
            }
            PathEvent::AddressChanged { local_address_id, usable: true } if !self.initiator => {
                self.upkeep.handle_event(now, event, subflows);
                return self.announce(|own| own.id == local_address_id);
            }
            PathEvent::AddressAnnounced { remote, remote_address_id } if self.initiator => {
                let remote = RemoteAddress { id: remote_address_id, end: remote };
                for local in of_family(&self.local, remote.end) {
                    self.upkeep.want_announced(*local, remote, subflows);
                }
            }
            PathEvent::AddressAdded { local, remote } => {
                self.local.push(local);
                if !self.initiator {
                    return self.announce(|own| own.id == local.id);
                }
                for remote in remote.iter().filter(|remote| is_of_family(&local, remote.end)) {
                    self.upkeep.want_announced(local, *remote, subflows);
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
    use crate::path_manager::Retry;
    use crate::path_manager::tests::{
        actions, added, address, closed, closed_for, established, id, local, opened, remote,
    };
    use crate::view::tests::view;
    use anabranch_wire::Duration;

    #[test]
    fn the_initiator_opens_every_other_address_and_the_listener_announces_its_own() {
        let addresses = [local(0), local(1), local(2)];
        let mut mesh = FullMesh::default();
        let all = established(&mut mesh, true, &addresses);
        assert_eq!(opened(&all), [(1, false), (2, false)]);
        let announced = established(&mut FullMesh::default(), false, &addresses);
        let expected = [1, 2].map(|id| PathAction::Announce { local: local(id) });
        assert_eq!(announced, expected);
    }

    #[test]
    fn an_address_that_is_added_joins_the_mesh() {
        let mut mesh = FullMesh::default();
        established(&mut mesh, true, &[local(0)]);
        assert_eq!(opened(&added(&mut mesh, local(1))), [(1, false), (1, false)]);
        let mut mesh = FullMesh::default();
        established(&mut mesh, false, &[local(0)]);
        assert_eq!(added(&mut mesh, local(1)), [PathAction::Announce { local: local(1) }]);
    }

    #[test]
    fn a_closed_subflow_is_opened_again_after_a_pause_that_doubles_up_to_a_minute() {
        let mut mesh = FullMesh::default();
        established(&mut mesh, true, &[local(0), local(1)]);
        let mut now = Instant::ZERO;
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
            mesh.handle_event(now, &closed(1), &[]);
            let at = mesh.poll_timeout().expect("a retry is planned");
            assert_eq!(at, now + Duration::from_secs(pause));
            now = at;
            mesh.handle_timeout(now, &[]);
            assert_eq!(opened(&actions(&mut mesh)), [(1, false)]);
        }
        // A subflow that opens and closes again at once also counts as a failure.
        let open = PathEvent::SubflowEstablished(id(1));
        mesh.handle_event(now, &open, &[view(0, 1), view(1, 1)]);
        mesh.handle_event(now, &closed(1), &[]);
        assert_eq!(mesh.poll_timeout(), Some(now + Duration::from_secs(60)));
        // A subflow that carried data, or that lasted, does not.
        for (lasting, retry) in [(0, Retry::Soon), (60, Retry::Later)] {
            now = mesh.poll_timeout().expect("a retry is planned");
            mesh.handle_timeout(now, &[]);
            mesh.handle_event(now, &open, &[view(0, 1), view(1, 1)]);
            now += Duration::from_secs(lasting);
            mesh.handle_event(now, &closed_for(1, retry), &[]);
            assert_eq!(mesh.poll_timeout(), Some(now + Duration::from_secs(1)));
        }
    }

    #[test]
    fn a_subflow_that_was_reset_for_good_is_not_opened_until_its_interface_comes_up_anew() {
        // RFC 8684 §3.6, and a host whose kernel reopens no subflow.
        let mut in_linux = closed_for(1, Retry::Soon);
        if let PathEvent::SubflowClosed { reopens, .. } = &mut in_linux {
            *reopens = false;
        }
        for closed in [closed_for(1, Retry::Never), in_linux] {
            let mut mesh = FullMesh::default();
            established(&mut mesh, true, &[local(0), local(1)]);
            mesh.handle_event(Instant::ZERO, &closed, &[]);
            assert!(actions(&mut mesh).is_empty() && mesh.poll_timeout().is_none());
            mesh.handle_event(Instant::ZERO, &address(1, false), &[]);
            mesh.handle_event(Instant::ZERO, &address(1, true), &[]);
            assert_eq!(opened(&actions(&mut mesh)), [(1, false)]);
        }
    }

    #[test]
    fn an_interface_that_goes_takes_its_subflow_and_brings_it_back() {
        let mut mesh = FullMesh::default();
        established(&mut mesh, true, &[local(0), local(1)]);
        let views = [view(0, 20), view(1, 20)];
        mesh.handle_event(Instant::ZERO, &address(1, false), &views);
        let reset = PathAction::Close { subflow: id(1), reset: true };
        assert_eq!(actions(&mut mesh), [reset, PathAction::Remove { local_address_id: 1 }]);
        mesh.handle_event(Instant::ZERO, &closed(1), &views);
        assert!(actions(&mut mesh).is_empty() && mesh.poll_timeout().is_none());
        mesh.handle_event(Instant::ZERO, &address(1, true), &views);
        let open = PathAction::Open {
            local: local(1),
            remote: remote(),
            remote_address_id: 0,
            backup: false,
        };
        assert_eq!(actions(&mut mesh), [open]);
    }
}
