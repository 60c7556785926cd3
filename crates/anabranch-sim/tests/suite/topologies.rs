//! Paths over several links, each in either direction.

use anabranch_sim::{Options, RunOutcome};

use crate::common::{column, names, run, run_with};

/// Three hosts at one switch. Each cable has 10 Mbit/s and 1 ms, and its client's end is the host.
fn star(flows: &[(usize, usize)]) -> String {
    let mut toml = "name = \"star\"\nduration = \"20s\"\nwarm_up = \"5s\"\n".to_owned();
    for host in 0..3 {
        toml += &format!(
            "[[path]]\nname = \"h{host}\"\nrate = \"10Mbit/s\"\ndelay = \"1ms\"\n\
             limit = \"30packets\"\n"
        );
    }
    for (from, to) in flows {
        toml += &format!(
            "[[path]]\nname = \"{from}{to}\"\nrate = \"1Gbit/s\"\ndelay = \"1ms\"\njitter = \"1ms\"\n\
             limit = \"infinite\"\nvia = [\"h{from}\", \"-h{to}\"]\n"
        );
    }
    for (from, to) in flows {
        toml += &format!(
            "[[connection]]\nname = \"{from}{to}\"\npaths = [\"{from}{to}\"]\n\
             protocol = \"tcp\"\ndirection = \"upload\"\nworkload = {{ kind = \"bulk\" }}\n"
        );
    }
    toml
}

/// Goodput of each connection in Mbit/s.
fn goodputs(outcome: &RunOutcome) -> Vec<f64> {
    let bytes = column(outcome, "connections", "bytes_arrived_measured");
    bytes.iter().map(|bytes| *bytes as f64 * 8e-6 / 15.0).collect()
}

#[test]
fn flows_to_one_host_share_its_cable() {
    // 10 Mbit/s less headers are 9.65 Mbit/s. Flows of different hosts to different hosts share
    // their cables with acknowledgements only. These wait behind data, and arrive in bursts.
    let found = goodputs(&run(&star(&[(0, 1), (1, 2), (2, 0)]), 1));
    assert!(found.iter().all(|mbps| (8.5..=9.66).contains(mbps)), "{found:?}");
    let found = goodputs(&run(&star(&[(0, 2), (1, 2)]), 1));
    assert!((found[0] + found[1] - 9.6).abs() < 0.1, "{found:?}");
    assert!(found.iter().all(|mbps| *mbps > 2.0), "{found:?}");
}

#[test]
fn the_links_of_a_cable_carry_opposite_directions() {
    let outcome = run(&star(&[(0, 1)]), 1);
    let delivered = column(&outcome, "links", "bytes_delivered");
    // Data leaves h0 towards the server and reaches h1 towards the client. Acknowledgements cross
    // the other two links.
    let [h0, h1] = [0, 1].map(|path| [delivered[2 * path], delivered[2 * path + 1]]);
    assert!(h0[1] > 20_000_000 && h1[0] > 20_000_000, "{h0:?} {h1:?}");
    assert!(
        (100_000..2_000_000).contains(&h0[0]) && h1[1].abs_diff(h0[0]) < 1_000,
        "{h0:?} {h1:?}"
    );
}

#[test]
fn the_ledger_accounts_for_links_that_are_crossed_in_reverse() {
    const HEADERS: &str = "headers";
    const LOST: &str = "lost";
    const OTHER_TRAFFIC: &str = "other_traffic";
    // The flow from 0 to 1 descends cable 1, as the acknowledgements of the flow from 1 to 2 do.
    let options = Options::default().ledger(true);
    let outcome = run_with(&star(&[(0, 1), (1, 2)]), 1, options);
    let [connection, path, bytes] =
        ["connection", "path", "bytes"].map(|name| column(&outcome, "capacity", name));
    let cause = names(&outcome, "capacity", "cause");
    let of = |wanted: &dyn Fn(&str) -> bool| -> u64 {
        let rows = (0..bytes.len()).filter(|row| connection[*row] == 0 && path[*row] == 1);
        rows.filter(|row| wanted(cause[*row])).map(|row| bytes[row]).sum()
    };
    assert_eq!(of(&|_| true), 18_750_000, "10 Mbit/s for the 15 s after the warm-up");
    let [headers, lost, other] = [HEADERS, LOST, OTHER_TRAFFIC].map(|each| of(&|it| it == each));
    assert!(headers > 500_000 && (200_000..1_000_000).contains(&other), "{headers} {other}");
    assert!(lost < 50_000, "{lost}");
}
