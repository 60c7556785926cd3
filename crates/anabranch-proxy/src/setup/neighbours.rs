//! Other instances on this host, which keep their addresses and their forwarding.

use std::collections::BTreeSet;

use super::{Family, Setup};

/// Numbers of instances, from which their addresses follow (this project).
const NUMBERS: u8 = 15;

/// What an instance has to know of the others on this host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Neighbours {
    /// A number that no other instance has.
    number: u8,
    /// Keys of forwarding that others have switched on.
    forwarding: BTreeSet<String>,
}

impl Neighbours {
    /// From the networks of the others. `None` if there are too many.
    pub(crate) fn new(others: &[Setup]) -> Option<Self> {
        let is_free = |number: &u8| others.iter().all(|other| other.number != *number);
        let number = (0..NUMBERS).find(is_free)?;
        let forwarding = others.iter().flat_map(Setup::forwarding).map(str::to_owned).collect();
        Some(Neighbours { number, forwarding })
    }

    /// The number of this instance.
    pub(super) fn number(&self) -> u8 {
        self.number
    }

    /// The interfaces that would forward no packets without this program.
    pub(super) fn closed<'a>(&self, family: Family, interfaces: &'a [String]) -> Vec<&'a str> {
        let by_others = |interface: &str| {
            family.forwarding(interface).is_some_and(|key| self.forwarding.contains(&key))
        };
        let is_closed = |name: &&str| !family.forwards(name) || by_others(name);
        interfaces.iter().map(String::as_str).filter(is_closed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Step;
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
        let stop = Step::StopForwarding { name: key, unless: None };
        let other = Setup { down: vec![stop], ..Setup::default() };
        let neighbours = Neighbours::new(&[other]).expect("a free number");
        assert_eq!(neighbours.closed(Family::V4, &["lo".to_owned()]), ["lo"]);
    }
}
