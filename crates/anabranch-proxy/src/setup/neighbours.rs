//! The other instances on this host. A new one uses other addresses, and leaves their forwarding on.

use std::collections::BTreeMap;

use super::{Family, Setup, SetupStep};

/// Numbers of instances, from which their addresses follow (this project).
const NUMBERS: u8 = 15;

/// Facts about the other instances on this host that a new instance needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Neighbours {
    /// A number that no other instance has.
    number: u8,
    /// Keys of the forwarding that others have switched on, and the switches that keep it on.
    forwarding: BTreeMap<String, Option<String>>,
}

impl Neighbours {
    /// Derive the facts from the networks of the others. `None` if there are too many instances.
    pub(crate) fn new(others: &[Setup]) -> Option<Self> {
        let is_free = |number: &u8| others.iter().all(|other| other.number != *number);
        let number = (0..NUMBERS).find(is_free)?;
        let owned =
            |(key, unless): (&str, Option<&str>)| (key.to_owned(), unless.map(str::to_owned));
        let forwarding = others.iter().flat_map(Setup::forwarding).map(owned).collect();
        Some(Neighbours { number, forwarding })
    }

    /// The number of this instance.
    pub(super) fn number(&self) -> u8 {
        self.number
    }

    /// The interfaces that forward no packets without an instance of this program.
    pub(super) fn closed<'a>(&self, family: Family, interfaces: &'a [String]) -> Vec<&'a str> {
        let by_others = |interface: &str| {
            family.forwarding(interface).is_some_and(|key| self.forwarding.contains_key(&key))
        };
        let is_closed = |name: &&str| !family.forwards(name) || by_others(name);
        interfaces.iter().map(String::as_str).filter(is_closed).collect()
    }

    /// The end of forwarding on a closed interface. `None` if it has no switch.
    pub(super) fn stop_forwarding(&self, family: Family, interface: &str) -> Option<SetupStep> {
        let name = family.forwarding(interface)?;
        let router = || (!family.is_router()).then(|| family.router().to_owned());
        let unless = self.forwarding.get(&name).cloned().unwrap_or_else(router);
        Some(SetupStep::StopForwarding { name, unless })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_instance_has_its_own_number() {
        let other = |number| Setup { number, ..Setup::default() };
        let number = |others: &[Setup]| Neighbours::new(others).map(|it| it.number());
        assert_eq!(number(&[]), Some(0));
        assert_eq!(number(&[other(1), other(0)]), Some(2));
        assert_eq!(number(&(0..NUMBERS).map(other).collect::<Vec<_>>()), None);
    }

    #[test]
    fn an_interface_that_another_instance_has_opened_counts_as_closed() {
        let key = "net/ipv4/conf/lo/forwarding".to_owned();
        // Since then, the host has become a router.
        let stop =
            SetupStep::StopForwarding { name: key, unless: Some("kernel/ostype".to_owned()) };
        let other = Setup { down: vec![stop.clone()], ..Setup::default() };
        let neighbours = Neighbours::new(&[other]).expect("a free number");
        assert_eq!(neighbours.closed(Family::V4, &["lo".to_owned()]), ["lo"]);
        assert_eq!(neighbours.stop_forwarding(Family::V4, "lo"), Some(stop));
    }
}
