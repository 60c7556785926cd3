//! Full mesh: a subflow for each pair of a local and a remote address. The default of the Linux
//! implementation behind the papers ("fullmesh").

use std::collections::VecDeque;

use anabranch_wire::{Duration, Endpoint, Instant};

use super::{LocalAddress, PathAction, PathEvent, PathManager};
use crate::view::SubflowView;

/// Opens all pairs from the initiator's side, and opens a pair again when its subflow ended,
/// after a pause that doubles with each failure in a row.
#[derive(Clone, Debug, Default)]
pub struct FullMesh {
    pairs: Vec<Pair>,
    actions: VecDeque<PathAction>,
}

#[derive(Clone, Debug)]
struct Pair {
    local: LocalAddress,
    remote: Endpoint,
    failures: u32,
    retry_at: Option<Instant>,
}

/// Pause before the first attempt to replace a subflow (ours).
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause between attempts (ours).
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

impl FullMesh {
    fn open(&mut self, index: usize) {
        let pair = &mut self.pairs[index];
        pair.retry_at = None;
        self.actions.push_back(PathAction::Open {
            local: pair.local,
            remote: pair.remote,
            remote_address_id: 0,
            backup: false,
        });
    }

    fn pair_of(&mut self, local_address_id: u8, remote: Endpoint) -> Option<&mut Pair> {
        self.pairs
            .iter_mut()
            .find(|pair| pair.local.id == local_address_id && pair.remote == remote)
    }
}

impl PathManager for FullMesh {
    fn handle_event(&mut self, now: Instant, event: &PathEvent<'_>, subflows: &[SubflowView]) {
        match *event {
            PathEvent::Established { initiator: true, local, remote } => {
                let same_family =
                    local.iter().filter(|l| l.address.is_ipv4() == remote.address.is_ipv4());
                for local in same_family {
                    let pair = Pair { local: *local, remote, failures: 0, retry_at: None };
                    self.pairs.push(pair);
                    if local.id != 0 {
                        self.open(self.pairs.len() - 1);
                    }
                }
            }
            PathEvent::Established { initiator: false, .. } => {}
            PathEvent::SubflowEstablished(id) => {
                let Some(view) = subflows.iter().find(|view| view.id == id) else { return };
                for pair in &mut self.pairs {
                    if pair.local.id == view.local_address_id {
                        pair.failures = 0;
                    }
                }
            }
            PathEvent::SubflowClosed { local_address_id, remote, .. } => {
                if let Some(pair) = self.pair_of(local_address_id, remote) {
                    let pause = FIRST_PAUSE * (1 << pair.failures.min(16));
                    pair.failures += 1;
                    pair.retry_at = Some(now + pause.min(LONGEST_PAUSE));
                }
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant, _subflows: &[SubflowView]) {
        for index in 0..self.pairs.len() {
            if self.pairs[index].retry_at.is_some_and(|at| at <= now) {
                self.open(index);
            }
        }
    }

    fn poll_action(&mut self) -> Option<PathAction> {
        self.actions.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.pairs.iter().filter_map(|pair| pair.retry_at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::SubflowId;
    use std::net::Ipv4Addr;

    fn local(id: u8) -> LocalAddress {
        LocalAddress { id, address: Ipv4Addr::new(10, 0, id, 1).into() }
    }

    fn remote() -> Endpoint {
        Endpoint::new(Ipv4Addr::new(10, 9, 0, 1).into(), 80)
    }

    #[test]
    fn the_initiator_opens_every_other_address_and_the_listener_none() {
        let addresses = [local(0), local(1), local(2)];
        for (initiator, opened) in [(true, 2), (false, 0)] {
            let mut mesh = FullMesh::default();
            let event = PathEvent::Established { initiator, local: &addresses, remote: remote() };
            mesh.handle_event(Instant::ZERO, &event, &[]);
            assert_eq!(std::iter::from_fn(|| mesh.poll_action()).count(), opened);
        }
    }

    #[test]
    fn a_closed_subflow_is_opened_again_after_a_doubling_pause() {
        let addresses = [local(0), local(1)];
        let mut mesh = FullMesh::default();
        let established =
            PathEvent::Established { initiator: true, local: &addresses, remote: remote() };
        mesh.handle_event(Instant::ZERO, &established, &[]);
        mesh.poll_action();
        let closed = PathEvent::SubflowClosed {
            id: SubflowId { slot: 1, generation: 0 },
            local_address_id: 1,
            remote: remote(),
        };
        let mut now = Instant::ZERO;
        for pause in [1, 2, 4] {
            mesh.handle_event(now, &closed, &[]);
            let at = mesh.poll_timeout().expect("a retry is planned");
            assert_eq!(at, now + Duration::from_secs(pause));
            now = at;
            mesh.handle_timeout(now, &[]);
            assert!(matches!(mesh.poll_action(), Some(PathAction::Open { .. })));
        }
    }
}
