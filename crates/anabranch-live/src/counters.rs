//! The kernel's own counters of Multipath TCP, as `nstat` shows them.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use crate::namespace::Namespace;

/// What `MPTcpExt…` counters counted, by name without that prefix.
pub type KernelCounters = BTreeMap<String, u64>;

/// Those of each host; of one without a namespace, none.
pub(crate) fn of(hosts: &[Option<&Namespace>; 2]) -> io::Result<[KernelCounters; 2]> {
    let read = |host: Option<&Namespace>| host.map_or(Ok(BTreeMap::new()), |host| host.within(now));
    Ok([read(hosts[0])?, read(hosts[1])?])
}

/// By how much each counter grew.
pub(crate) fn differences(
    before: &[KernelCounters; 2],
    after: [KernelCounters; 2],
) -> [KernelCounters; 2] {
    let mut after = after;
    for (before, after) in before.iter().zip(&mut after) {
        for (name, count) in after {
            *count = count.saturating_sub(before.get(name).copied().unwrap_or(0));
        }
    }
    after
}

/// Those of this thread's network namespace.
fn now() -> io::Result<KernelCounters> {
    Ok(parse(&fs::read_to_string("/proc/thread-self/net/netstat")?))
}

/// Lines come in pairs: names, and their values.
fn parse(text: &str) -> KernelCounters {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("MPTcpExt: "));
    let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let values = values.split(' ').map(|value| value.parse().unwrap_or(0));
    names.split(' ').map(str::to_owned).zip(values).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_name_and_only_those_of_multipath_tcp() {
        let text = "TcpExt: A B\nTcpExt: 1 2\nMPTcpExt: JoinSynRx DataCsumErr\nMPTcpExt: 3 0\n";
        let expected = [("JoinSynRx".to_owned(), 3), ("DataCsumErr".to_owned(), 0)];
        assert_eq!(parse(text), KernelCounters::from(expected));
    }
}
