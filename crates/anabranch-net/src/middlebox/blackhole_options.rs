//! Drops SYNs silently.

use anabranch_wire::entry::{Entry, Kind, Parameter, Value};
use anabranch_wire::mptcp::Control;
use anabranch_wire::{Flags, Instant, Packet};

use super::{Filter, Side, lookup, names};

/// Which SYNs and SYN/ACKs are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlackholedSyns {
    /// SYNs with a Multipath TCP option.
    Mptcp,
    /// SYNs with MP_JOIN.
    MpJoin,
    /// All SYNs.
    All,
}

/// A firewall that silently drops options that it does not know.
#[derive(Debug)]
struct BlackholeOptions {
    syns: BlackholedSyns,
}

impl BlackholeOptions {
    fn new(syns: BlackholedSyns) -> Self {
        BlackholeOptions { syns }
    }
}

impl Filter for BlackholeOptions {
    fn pass(&mut self, _now: Instant, _towards: Side, packet: &mut Packet) -> bool {
        let Packet::Tcp(segment) = packet else { return true };
        let control = segment.options.control.as_deref();
        let has = |test: fn(&Control) -> bool| control.is_some_and(test);
        let refused = match self.syns {
            BlackholedSyns::Mptcp => has(|c| c.capable.is_some() || c.join.is_some()),
            BlackholedSyns::MpJoin => has(|c| c.join.is_some()),
            BlackholedSyns::All => true,
        };
        !(refused && segment.header.flags.contains(Flags::SYN))
    }
}

const SYNS: [(&str, BlackholedSyns); 3] = [
    ("mptcp", BlackholedSyns::Mptcp),
    ("mp_join", BlackholedSyns::MpJoin),
    ("all", BlackholedSyns::All),
];

pub(super) const ENTRY: super::MiddleboxEntry = Entry {
    name: "blackhole_options",
    summary: "Drops SYNs silently.",
    source: "firewalls that drop unknown options",
    parameters: &[Parameter {
        name: "syns",
        meaning: "which SYNs and SYN/ACKs are dropped; `mptcp` means those with a Multipath TCP option",
        kind: Kind::Choice(&names(&SYNS)),
        default: Value::Choice("mptcp"),
        origin: "this project",
        only_with: None,
    }],
    make: |values, _| super::filter(BlackholeOptions::new(lookup(&SYNS, values.choice("syns")))),
};

#[cfg(test)]
mod tests {
    use super::super::filter;
    use super::super::testing::{Bench, Talk};
    use super::*;
    use anabranch_wire::mptcp::{CapableFlags, CapableKeys, MpCapable, MpJoin};

    #[test]
    fn only_the_configured_syns_are_dropped() {
        let plain = Talk::v6().syn();
        let flags = CapableFlags::PLAIN;
        let mut capable = plain.clone();
        capable.options.control_mut().capable =
            Some(MpCapable { version: 1, flags, keys: CapableKeys::None });
        let mut join = plain.clone();
        let syn = MpJoin::Syn { backup: false, address_id: 1, token: 2, nonce: 3 };
        join.options.control_mut().join = Some(syn);
        let passes = |syns| {
            let mut bench = Bench::new(filter(BlackholeOptions::new(syns)));
            [&plain, &capable, &join].map(|syn| !bench.put(Side::Server, syn.clone()).is_empty())
        };
        assert_eq!(passes(BlackholedSyns::Mptcp), [true, false, false]);
        assert_eq!(passes(BlackholedSyns::MpJoin), [true, true, false]);
        assert_eq!(passes(BlackholedSyns::All), [false; 3]);
        let mut bench = Bench::new(filter(BlackholeOptions::new(BlackholedSyns::All)));
        bench.cross(Side::Server, Talk::v4().data(Side::Server, 0, 10));
    }
}
