//! Drops SYNs silently.

use anabranch_config::Part;
use anabranch_wire::mptcp::Control;
use anabranch_wire::{Flags, Instant, Packet};

use super::{BuildMiddlebox, Filter, Middlebox, Side, Site};

/// Which SYNs and SYN/ACKs are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "snake_case"),
    schemars(inline)
)]
pub enum BlackholedSyns {
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

/// Parameters of the firewall that drops SYNs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default, deny_unknown_fields)
)]
pub struct BlackholeOptionsConfig {
    /// Which SYNs and SYN/ACKs are dropped. `mptcp` means those with a Multipath TCP option.
    #[cfg_attr(feature = "serde", schemars(extend("x-origin" = "this project")))]
    pub syns: BlackholedSyns,
}

impl Default for BlackholeOptionsConfig {
    fn default() -> Self {
        BlackholeOptionsConfig { syns: BlackholedSyns::Mptcp }
    }
}

impl Part for BlackholeOptionsConfig {
    const NAME: &'static str = "blackhole_options";
    const SUMMARY: &'static str = "Drops SYNs silently.";
    const SOURCE: &'static str = "firewalls that drop unknown options";
}

impl BuildMiddlebox for BlackholeOptionsConfig {
    fn build(&self, _: Site) -> Box<dyn Middlebox> {
        super::filter(BlackholeOptions::new(self.syns))
    }
}

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
