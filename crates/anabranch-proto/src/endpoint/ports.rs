//! Choice of local ports. RFC 6056.

use std::net::IpAddr;

use anabranch_wire::SocketAddress;

use crate::keys::Secrets;

/// First port of the dynamic range, and number of its ports. RFC 6056 §3.2.
const FIRST: u16 = 49_152;
const RANGE: u16 = u16::MAX - FIRST + 1;

/// Order in which a host chooses the local ports of its connections and subflows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortSelection {
    /// At random. RFC 6056 §3.3.1.
    #[default]
    Random,
    /// In ascending order, from a secret offset for each local address and peer. RFC 6056 §3.3.3. A
    /// peer sees a port again after up to 16,384 connections of this host. By then, it has usually left
    /// TIME-WAIT.
    InTurn,
}

/// The ports of a host.
#[derive(Debug, Default)]
pub(super) struct Ports {
    selection: PortSelection,
    /// Number of ports tried in turn.
    tried: u64,
}

impl Ports {
    pub(super) fn new(selection: PortSelection) -> Self {
        Ports { selection, tried: 0 }
    }

    /// A port for which `is_free`.
    pub(super) fn choose(
        &mut self,
        secrets: &mut Secrets,
        local: IpAddr,
        remote: SocketAddress,
        is_free: impl Fn(u16) -> bool,
    ) -> Option<u16> {
        let first = match self.selection {
            PortSelection::Random => secrets.draw("port"),
            PortSelection::InTurn => {
                self.tried += 1;
                let pair = secrets.of_addresses("port", SocketAddress::new(local, 0), remote, &[]);
                pair.wrapping_add(self.tried)
            }
        };
        let first = (first % u64::from(RANGE)) as u16;
        let port = |step: u16| FIRST + (first + step) % RANGE;
        let step = (0..RANGE).find(|step| is_free(port(*step)))?;
        self.tried += u64::from(step);
        Some(port(step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_turn_a_port_comes_again_after_all_others() {
        let mut secrets = Secrets::new([7; 32]);
        let local = [10, 0, 0, 1].into();
        let remote = |port| SocketAddress::new([10, 0, 0, 2].into(), port);
        let mut ports = Ports::new(PortSelection::InTurn);
        let mut next = |to, taken| ports.choose(&mut secrets, local, remote(to), |p| p != taken);
        let first = next(80, 0).expect("a free port");
        for step in 1..RANGE {
            let expected = FIRST + (first - FIRST + step) % RANGE;
            assert_eq!(next(80, 0), Some(expected));
        }
        assert_eq!(next(80, 0), Some(first));
        // A port in use is left out, and another peer has another first port.
        let second = FIRST + (first - FIRST + 1) % RANGE;
        assert_eq!(next(80, second), Some(FIRST + (first - FIRST + 2) % RANGE));
        assert_eq!(next(80, 0), Some(FIRST + (first - FIRST + 3) % RANGE));
        assert_ne!(next(81, 0), Some(FIRST + (first - FIRST + 4) % RANGE));
    }
}
