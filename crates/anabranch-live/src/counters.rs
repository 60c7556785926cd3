//! Counters of kernel hosts and engine hosts, by the names that `nstat` shows.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use anabranch_proto::Counters;

use crate::namespace::Namespace;

/// Counters of a host by name.
pub type HostCounters = BTreeMap<String, u64>;

/// Files of counters in `/proc`.
const FILES: [&str; 2] = ["netstat", "snmp"];

/// The kernel's counters of each host; none for a host without a namespace.
pub(crate) fn of(hosts: &[Option<&Namespace>; 2]) -> io::Result<[HostCounters; 2]> {
    let read = |host: Option<&Namespace>| host.map_or(Ok(BTreeMap::new()), |host| host.within(now));
    Ok([read(hosts[0])?, read(hosts[1])?])
}

/// The increase of each counter.
pub(crate) fn differences(
    before: &[HostCounters; 2],
    after: [HostCounters; 2],
) -> [HostCounters; 2] {
    let mut after = after;
    for (before, after) in before.iter().zip(&mut after) {
        for (name, count) in after {
            *count = count.saturating_sub(before.get(name).copied().unwrap_or(0));
        }
    }
    after
}

/// The counters of this thread's network namespace.
fn now() -> io::Result<HostCounters> {
    let mut all = HostCounters::new();
    for file in FILES {
        all.extend(parse(&fs::read_to_string(format!("/proc/thread-self/net/{file}"))?));
    }
    all.retain(|name, _| name.starts_with("MPTcpExt") || is_counted_by_engine(name));
    Ok(all)
}

fn is_counted_by_engine(name: &str) -> bool {
    Counters::NAMES.iter().any(|(each, _)| *each == name)
}

/// Parse lines in pairs with a common prefix: a line of names, and a line of their values.
fn parse(text: &str) -> HostCounters {
    let lines: Vec<_> = text.lines().filter_map(|line| line.split_once(": ")).collect();
    let pairs = lines.chunks_exact(2).flat_map(|pair| {
        let (prefix, names) = pair[0];
        let values = pair[1].1.split(' ').map(|value| value.parse().unwrap_or(0));
        names.split(' ').map(move |name| format!("{prefix}{name}")).zip(values)
    });
    pairs.collect()
}

/// The engine's counters.
pub(crate) fn of_engine(counters: &Counters) -> HostCounters {
    counters.named().into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_their_full_names() {
        let text = "TcpExt: A B\nTcpExt: 1 2\nMPTcpExt: JoinSynRx\nMPTcpExt: 3\n";
        let expected = [("TcpExtA", 1), ("TcpExtB", 2), ("MPTcpExtJoinSynRx", 3)];
        let expected = expected.map(|(name, count)| (name.to_owned(), count));
        assert_eq!(parse(text), HostCounters::from(expected));
    }

    #[test]
    fn this_kernel_has_the_names_that_the_engine_takes_for_its() {
        let kernel: HostCounters = FILES
            .iter()
            .flat_map(|file| parse(&fs::read_to_string(format!("/proc/net/{file}")).unwrap()))
            .collect();
        // Linux added the counters of Multipath TCP over time. Those of TCP are older.
        let is_old = |name: &&str| name.starts_with("Tcp");
        for name in Counters::NAMES.iter().map(|(name, _)| *name).filter(is_old) {
            assert!(kernel.contains_key(name), "{name}");
        }
    }
}
