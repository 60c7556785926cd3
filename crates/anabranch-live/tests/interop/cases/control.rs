//! Control signals: addresses, priorities, and ends of connections.

use super::*;

pub(super) fn all() -> Vec<Case> {
    let of = |roles| {
        let mut cases = announcements(roles);
        cases.extend(checksums(roles));
        cases.extend(refusals(roles));
        cases.extend(priorities(roles));
        cases.extend(removals(roles));
        cases.extend(closings(roles));
        cases.extend(aborts(roles));
        cases.push(keep_alive(roles));
        cases
    };
    ROLES.into_iter().flat_map(of).collect()
}

/// Counters of a host in either role: those of the kernel and those of the engine.
type Counted = [&'static [&'static str]; 2];

/// Set the expected counters of client and server, whichever of them is the kernel host.
fn counted(roles: Roles, [client, server]: Counted, expected: Expected) -> Expected {
    let [kernel, engine] = match side_of(HostStack::Kernel, roles) {
        Side::Client => [client, server],
        Side::Server => [server, client],
    };
    Expected { kernel, engine, ..expected }
}

/// Sends nothing for a while, so a host that closes then has nothing in flight.
const PAUSE: &str = "kind = \"on_off\"\nburst_size = \"50kB\"\ninterval = \"10s\"\ncount = 2\n";
/// Kernel and engine both reset a subflow whose address is removed.
const RESETS: &[&str] = &["MPRstTx", "MPRstRx"];

/// The client learns the server's IPv6 address from ADD_ADDR.
fn announcements(roles: Roles) -> Vec<Case> {
    let mixed = mixed_families();
    let mixed = mixed.each_ref().map(String::as_str);
    let good = Expected { exact: true, ..GOOD };
    let joined: Counted =
        [&["AddAddr", "EchoAddTx", "MPJoinSynAckRx"], &["AddAddrTx", "EchoAdd", "MPJoinAckRx"]];
    let no_join = "allow_join_initial_addr_port = false\n";
    let alone = Expected { carried: Carried::By(0), still: &["MPJoinSynTx"], ..GOOD };
    let case = |name, paths: &[&str], connection: &str, expected| {
        Case::new(name, roles, scenario(paths, connection, BULK), expected)
    };
    vec![
        case("ADD_ADDR", &mixed, DOWN, counted(roles, joined, good)),
        // RFC 8684 §3.1: with the "C" flag, only announced addresses may be joined.
        case("joins denied", &[FAST, SLOW], &format!("{DOWN}{no_join}"), alone),
        case(
            "joins denied but to announced addresses",
            &mixed,
            &format!("{DOWN}{no_join}"),
            counted(roles, joined, good),
        ),
    ]
}

/// Only one of the hosts requires checksums, so both use them: RFC 8684 §3.1.
fn checksums(roles: Roles) -> Vec<Case> {
    let expected = Expected { checksums: true, ..GOOD };
    let case = |name, of_engine: bool, of_kernel| {
        let connection = format!("{DOWN}dss_checksum = {of_engine}\n");
        let scenario = scenario(&[FAST, SLOW], &connection, BULK);
        Case::new(name, roles, scenario, expected).command(0, of_kernel)
    };
    vec![
        case("checksums of the engine's", true, "echo 0 > /proc/sys/net/mptcp/checksum_enabled"),
        case("checksums of the kernel's", false, "echo 1 > /proc/sys/net/mptcp/checksum_enabled"),
    ]
}

/// A server that joins from another address, refuses joins, or announces another port.
fn refusals(roles: Roles) -> Vec<Case> {
    if side_of(HostStack::Kernel, roles) == Side::Client {
        return Vec::new();
    }
    let case = |name, expected, at, command| {
        Case::new(name, roles, scenario(&[FAST, SLOW], DOWN, BULK), expected).command(at, command)
    };
    let refused = Expected {
        carried: Carried::By(0),
        kernel: &["MPJoinRejected"],
        tolerated: &["MPJoinRejected"],
        engine: &["MPRstRx"],
        resets: &["administratively prohibited"],
        ..GOOD
    };
    let by_server = Expected {
        kernel: &["MPJoinSynTx", "MPJoinSynAckRx"],
        engine: &["MPJoinSynRx", "MPJoinAckRx"],
        ..GOOD
    };
    let port = Expected {
        kernel: &["AddAddrTx", "EchoAdd", "MPJoinPortSynRx", "MPJoinPortAckRx"],
        tolerated: &["MPJoinPortAckRx"],
        engine: &["AddAddr", "EchoAddTx", "MPJoinSynAckRx"],
        ..GOOD
    };
    vec![
        case("joins refused", refused, 0, "ip mptcp limits set subflow 0"),
        case("join by the server", by_server, 100, JOIN_BY_SERVER),
        case("ADD_ADDR with a port", port, 0, ANNOUNCE_PORT),
    ]
}

const JOIN_BY_SERVER: &str = "ip addr add 10.0.0.2/32 dev path0 && \
     ip rule add from 10.0.0.2 table 100 && \
     ip mptcp endpoint add 10.0.0.2 dev path0 id 7 subflow";
const ANNOUNCE_PORT: &str = "ip mptcp endpoint add 10.0.0.1 dev path0 id 7 signal port 5999";

/// Backup subflows, from the start or by MP_PRIO. Linux sends MP_PRIO only on open subflows. The
/// second subflow is open 80 ms after the start: two round trips of 10 ms for the connection and
/// its first data, and two of 30 ms for the join.
fn priorities(roles: Roles) -> Vec<Case> {
    let case = |name, manager: &str, counts, path| {
        let connection = format!("{DOWN}path_manager = {manager}\n");
        let expected = Expected { carried: Carried::By(path), ..GOOD };
        // Data that was assigned to a subflow before it becomes a backup stays there.
        let scenario = scenario(&[FAST, SLOW], &connection, MORE);
        Case::new(name, roles, scenario, counted(roles, counts, expected))
    };
    let prio: Counted = [&["MPPrioTx"], &["MPPrioRx"]];
    let mut all = vec![
        case("backup", "\"backup\"", [&[], &["MPJoinSynRx"]], 0),
        case("MP_PRIO", "{ kind = \"backup\", regular = \"p1\" }", prio, 1),
    ];
    if side_of(HostStack::Kernel, roles) == Side::Client {
        let change = "ip mptcp endpoint change id 1";
        let later = case("MP_PRIO later", "\"full_mesh\"", prio, 0);
        all.push(later.command(300, &format!("{change} backup")));
        let mut back = case("MP_PRIO back", "\"backup\"", prio, 0);
        back.expected.carried = Carried::ByAll;
        all.push(back.command(300, &format!("{change} nobackup")));
    }
    all
}

/// Addresses that are removed, and added again. On a busy machine, the join may take some hundred
/// milliseconds, so the first removal comes late, and the workload is long.
fn removals(roles: Roles) -> Vec<Case> {
    let good = Expected { tolerated: RESETS, ..GOOD };
    let removed: Counted = [&["RmAddrTx"], &["RmAddr"]];
    // A second join in addition to the first.
    let again: Counted = [
        &["RmAddrTx", "MPJoinSynAckRx", "MPJoinSynAckRx"],
        &["RmAddr", "MPJoinAckRx", "MPJoinAckRx"],
    ];
    let change = |at, state| {
        format!("[[path.change]]\nat = \"{at}\"\nstate = \"{state}\"\nnoticed = true\n")
    };
    let gone = format!("{SLOW}{}", change("500ms", "down"));
    let back = format!("{gone}{}", change("800ms", "up"));
    let case = |name, paths: &[&str], counts, expected| {
        Case::new(name, roles, scenario(paths, DOWN, MOST), counted(roles, counts, expected))
    };
    let (remove, add) =
        ("ip mptcp endpoint delete id 1", "ip mptcp endpoint add 10.1.0.1 dev path1 id 1 subflow");
    if side_of(HostStack::Kernel, roles) == Side::Client {
        // The kernel ends the subflow in order. It resets it if the engine has learnt of the removal
        // before the FIN, which waits behind data, and asks whether the path still works.
        let ended = Expected { ends: Some("unspecified error, permanent"), ..good };
        let case = |name, counts| case(name, &[FAST, SLOW], counts, ended).command(500, remove);
        return vec![
            case("REMOVE_ADDR", removed),
            case("REMOVE_ADDR and back", again).command(800, add),
        ];
    }
    let mixed = mixed_families();
    let mixed = mixed.each_ref().map(String::as_str);
    let by_server: Counted = [&["AddAddr", "RmAddr"], &["AddAddrTx", "RmAddrTx"]];
    vec![
        case("REMOVE_ADDR", &[FAST, &gone], removed, good),
        case("REMOVE_ADDR and back", &[FAST, &back], again, good),
        case("REMOVE_ADDR by the server", &mixed, by_server, good).command(500, remove),
    ]
}

/// Either host closes before the workload ends, or both close at the same time.
fn closings(roles: Roles) -> Vec<Case> {
    let case = |name, way, workload, expected, sides: &[Side]| {
        let case = Case::new(name, roles, scenario(&[FAST, SLOW], way, workload), expected);
        sides.iter().fold(case, |case, side| case.at(300, *side, Action::Close))
    };
    // 300 ms at 30 Mbit/s, and the content of the buffers.
    let cut = |first| Expected { most_bytes: Some(2_000_000), first_data_fin: Some(first), ..GOOD };
    let half_open = |first| Expected { first_data_fin: Some(first), ..GOOD };
    let either = Expected { most_bytes: Some(2_000_000), ..GOOD };
    let silent = Expected { most_bytes: Some(50_000), carried: Carried::ByAny, ..GOOD };
    let both = [Side::Client, Side::Server];
    vec![
        case("sender closes early", DOWN, ENDLESS, cut(Side::Server), &[Side::Server]),
        case("sending client closes early", UP, ENDLESS, cut(Side::Client), &[Side::Client]),
        case("both close during the transfer", DOWN, ENDLESS, either, &both),
        case("both close at once", DOWN, PAUSE, silent, &both),
        case("receiver closes first", DOWN, MORE, half_open(Side::Client), &[Side::Client]),
        case("receiving server closes first", UP, MORE, half_open(Side::Server), &[Side::Server]),
    ]
}

/// Both hosts send keep-alive probes while no data is sent, and both are answered.
fn keep_alive(roles: Roles) -> Case {
    let counts = &["TcpExtTCPKeepAlive"];
    let expected = Expected { kernel: counts, engine: counts, carried: Carried::ByAny, ..GOOD };
    let connection = format!("{DOWN}keep_alive = \"1s\"\n");
    let pause = "kind = \"on_off\"\nburst_size = \"50kB\"\ninterval = \"2500ms\"\ncount = 2\n";
    Case::new("keep-alive", roles, scenario(&[FAST, SLOW], &connection, pause), expected)
}

/// Data without end.
const ENDLESS: &str = "kind = \"bulk\"\n";

/// Either host aborts the connection.
fn aborts(roles: Roles) -> Vec<Case> {
    let scenario = scenario(&[FAST, SLOW], DOWN, ENDLESS);
    let expected = Expected {
        completes: false,
        // MP_FASTCLOSE is sent on a reset, and later segments are answered with resets.
        tolerated: &["MPFastcloseTx", "MPFastcloseRx", "MPRstTx", "MPRstRx"],
        ..GOOD
    };
    let case = |(side, counts): (Side, Counted)| {
        let name = format!("FASTCLOSE by the {side}");
        Case::new(&name, roles, scenario.clone(), counted(roles, counts, expected)).at(
            400,
            side,
            Action::Abort,
        )
    };
    let (sent, received): (&[_], &[_]) = (&["MPFastcloseTx"], &["MPFastcloseRx"]);
    [(Side::Client, [sent, received]), (Side::Server, [received, sent])].map(case).into()
}
