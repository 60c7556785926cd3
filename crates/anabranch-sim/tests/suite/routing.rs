//! Several addresses at the server, hosts without source routing, limits on subflows, and interfaces
//! with different MTUs.

use anabranch_proto::view::SubflowSet;
use anabranch_sim::RunOutcome;
use anabranch_sim::scenario::Scenario;

use crate::common::{column, run};

/// Two equal paths with these keys, and one connection with these.
fn scenario(paths: [&str; 2], connection: &str) -> String {
    let path = |name: &str, keys: &str| {
        format!(
            "[[path]]\nname = \"{name}\"\nrate = \"10Mbit/s\"\ndelay = \"10ms\"\n\
             limit = \"40packets\"\n{keys}\n"
        )
    };
    format!(
        "name = \"routing\"\nduration = \"20s\"\n{}{}[[connection]]\n{connection}\n\
         workload = {{ kind = \"bulk\", size = \"10MB\" }}\n",
        path("a", paths[0]),
        path("b", paths[1]),
    )
}

/// The paths of the subflows that carried data, in the order in which they were opened.
fn paths_of_subflows(outcome: &RunOutcome) -> Vec<u64> {
    assert_eq!(column(outcome, "connections", "bytes_delivered"), [10_000_000]);
    let carried = column(outcome, "subflows", "bytes_received");
    let paths = column(outcome, "subflows", "path").into_iter().zip(carried);
    paths.filter(|(_, bytes)| *bytes > 100_000).map(|(path, _)| path).collect()
}

/// Bytes that the links delivered: of each path, to the client and to the server.
fn bytes_of_links(outcome: &RunOutcome) -> Vec<u64> {
    column(outcome, "links", "bytes_delivered")
}

fn error_of(toml: &str) -> String {
    Scenario::from_toml(toml, "routing.toml").unwrap_err().to_string()
}

#[test]
fn subflows_join_every_address_of_the_server_that_a_path_leads_to() {
    let both = "routing.server_addresses = [1, 2]";
    let second = "routing.server_addresses = [2]";
    for (paths, expected) in [
        (["", ""], vec![0, 1]),
        ([both, both], vec![0, 0, 1, 1]),
        (["", second], vec![0, 1]),
        ([second, ""], vec![0, 1]),
        (["", both], vec![0, 1, 1]),
    ] {
        let toml = scenario(paths, "");
        let mut found = paths_of_subflows(&run(&toml, 1));
        found.sort_unstable();
        assert_eq!(found, expected, "{paths:?}");
        let scenario = Scenario::from_toml(&toml, "routing.toml").unwrap();
        assert_eq!(Scenario::from_toml(&scenario.to_toml(), "again.toml").unwrap(), scenario);
    }
}

#[test]
fn invalid_addresses_and_paths_are_named() {
    let key = "routing.toml: path[1].routing.";
    for (routing, text) in [
        ("server_addresses = []", "server_addresses: []: write different numbers from 1 to 8"),
        ("server_addresses = [3, 3]", "server_addresses: [3, 3]: write different"),
        ("server_addresses = [9]", "server_addresses: [9]: write different"),
        ("client_egress = \"c\"", "client_egress: unknown path \"c\""),
    ] {
        let error = error_of(&scenario(["", &format!("routing.{routing}")], ""));
        assert!(error.starts_with(&format!("{key}{text}")), "{error}");
    }
    let second = "routing.server_addresses = [2]";
    let error = error_of(&scenario(["", second], "path_manager = \"backup\""));
    let expected =
        "connection[0].path_manager: \"backup\": cannot use paths to different addresses";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn packets_of_a_host_without_source_routing_leave_by_another_path() {
    // Acknowledgements of both subflows leave by path a, and the data of an upload as well.
    let keys = ["", "routing.client_egress = \"a\""];
    let outcome = run(&scenario(keys, ""), 1);
    assert_eq!(paths_of_subflows(&outcome), [0, 1]);
    let [a_down, _, b_down, b_up] = bytes_of_links(&outcome)[..] else { panic!("two paths") };
    assert!(a_down > 2_000_000 && b_down > 2_000_000 && b_up == 0, "{outcome:?}");
    let outcome = run(&scenario(keys, "direction = \"upload\""), 1);
    assert_eq!(paths_of_subflows(&outcome), [0, 1]);
    let [_, a_up, _, b_up] = bytes_of_links(&outcome)[..] else { panic!("two paths") };
    assert!(a_up > 10_000_000 && b_up == 0, "{a_up} {b_up}");
    // So does the server's data for the other address of the client.
    let outcome = run(&scenario(["", "routing.server_egress = \"a\""], ""), 1);
    let [a_down, _, b_down, b_up] = bytes_of_links(&outcome)[..] else { panic!("two paths") };
    assert!(a_down > 10_000_000 && b_down == 0 && b_up > 10_000);
}

#[test]
fn a_provider_that_filters_by_source_keeps_a_misrouted_subflow_from_opening() {
    let filtered = "[[path.middlebox]]\nkind = \"ingress_filter\"";
    let misrouted = "routing.client_egress = \"a\"";
    assert_eq!(paths_of_subflows(&run(&scenario([filtered, filtered], ""), 1)), [0, 1]);
    assert_eq!(paths_of_subflows(&run(&scenario([filtered, misrouted], ""), 1)), [0]);
}

#[test]
fn hosts_keep_to_the_limits_on_subflows_and_announced_addresses() {
    let both = "routing.server_addresses = [1, 2]";
    for (limits, expected) in [
        ("{ subflows = 0 }", vec![0]),
        ("{ subflows = 2 }", vec![0, 0, 1]),
        ("{ add_addr_accepted = 0 }", vec![0, 1]),
        ("{ subflows = 1, add_addr_accepted = 1 }", vec![0, 1]),
    ] {
        let outcome = run(&scenario([both, both], &format!("limits = {limits}")), 1);
        let mut found = paths_of_subflows(&outcome);
        found.sort_unstable();
        assert_eq!(found, expected, "{limits}");
    }
}

#[test]
fn each_subflow_fills_the_packets_of_its_own_interface() {
    for direction in ["download", "upload"] {
        let outcome =
            run(&scenario(["", "mtu = \"1000B\""], &format!("direction = \"{direction}\"")), 1);
        assert_eq!(paths_of_subflows(&outcome), [0, 1]);
        let [bytes, packets] =
            ["bytes_delivered", "packets_delivered"].map(|name| column(&outcome, "links", name));
        let data = if direction == "download" { [0, 2] } else { [1, 3] };
        let sizes = data.map(|link| bytes[link] / packets[link]);
        assert!(sizes[0] > 1450 && (950..=1000).contains(&sizes[1]), "{direction} {sizes:?}");
        assert_eq!(column(&outcome, "links", "dropped_too_big").iter().sum::<u64>(), 0);
    }
}

#[test]
fn a_limit_above_the_capacity_of_the_engine_is_the_capacity() {
    let path = "[[path]]\nrate = \"1Mbit/s\"\ndelay = \"10ms\"\nlimit = \"40packets\"\n";
    let paths = (0..40).map(|number| format!("{path}name = \"p{number}\"\n"));
    let toml = format!(
        "name = \"many\"\nduration = \"5s\"\n{}[[connection]]\nlimits = {{ subflows = 255 }}\n\
         workload = {{ kind = \"bulk\" }}\n",
        paths.collect::<String>()
    );
    assert_eq!(column(&run(&toml, 1), "subflows", "path").len(), SubflowSet::CAPACITY);
}
