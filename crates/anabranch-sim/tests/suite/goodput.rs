//! Goodput: what arrives in the measured time, and never more than the links carry.

use anabranch_sim::{Options, RunOutcome};
use proptest::prelude::*;

use crate::common::{column, goodput, names, run, run_with};

/// Most payload of a packet of 1500 bytes: a header of 20 bytes each for IPv4 and TCP.
const PAYLOAD: f64 = 1460.0 / 1500.0;
/// A packet of each path may straddle the beginning.
const PACKET: f64 = 1500.0;

#[derive(Clone, Debug)]
struct Setting {
    paths: Vec<(u32, u32, u32, u32)>,
    buffer_kib: u32,
    warm_up_ms: u32,
    start_ms: u32,
    scheduler: &'static str,
    control: &'static str,
    host: &'static str,
    workload: &'static str,
    direction: &'static str,
    remedies: bool,
}

const BULK: &str = "{ kind = \"bulk\" }";
const FINITE: &str = "{ kind = \"blocks\", block_size = \"100kB\", count = 30 }";
const BURSTS: &str = "{ kind = \"on_off\", burst_size = \"1MB\", interval = \"700ms\" }";
const REQUESTS: &str = "{ kind = \"request_response\", request_size = \"1kB\", \
                        response_size = \"400kB\", think_time = \"50ms\" }";

fn settings() -> impl Strategy<Value = Setting> {
    // Mbit/s, ms, packets, and parts of 1000 lost.
    let path = (1u32..40, 1u32..120, 5u32..600, 0u32..20);
    let schedulers = ["min_rtt", "round_robin", "redundant", "blest", "ecf", "linux"];
    let workload =
        prop_oneof![3 => Just(BULK), 1 => Just(FINITE), 1 => Just(BURSTS), 1 => Just(REQUESTS)];
    let control = prop::sample::select(vec!["lia", "cubic", "new_reno"]);
    let host = prop::sample::select(vec!["\"rfc\"", "\"linux\""]);
    (
        prop::collection::vec(path, 1..4),
        prop::sample::select(vec![64u32, 400, 4_000, 65_536]),
        0u32..4_000,
        0u32..2_000,
        prop::sample::select(schedulers.to_vec()),
        (control, host, any::<bool>()),
        workload,
        prop::sample::select(vec!["download", "upload"]),
    )
        .prop_map(
            |(paths, buffer_kib, warm_up_ms, start_ms, scheduler, more, workload, direction)| {
                let (control, host, remedies) = more;
                Setting {
                    paths,
                    buffer_kib,
                    warm_up_ms,
                    start_ms,
                    scheduler,
                    control,
                    host,
                    workload,
                    direction,
                    remedies,
                }
            },
        )
}

impl Setting {
    fn toml(&self) -> String {
        let path = |(number, path): (usize, &(u32, u32, u32, u32))| {
            let (mbps, ms, packets, loss) = path;
            format!(
                "[[path]]\nname = \"p{number}\"\nrate = \"{mbps}Mbit/s\"\ndelay = \"{ms}ms\"\n\
                 limit = \"{packets}packets\"\nloss = \"{}%\"\n\
                 reverse = {{ rate = \"{mbps}Mbit/s\" }}\n",
                f64::from(*loss) / 10.0,
            )
        };
        let paths: String = self.paths.iter().enumerate().map(path).collect();
        format!(
            "name = \"goodput\"\nduration = \"6s\"\nwarm_up = \"{}ms\"\n{paths}[[connection]]\n\
             host = {}\nstart = \"{}ms\"\nsend_buffer = \"{buffer}KiB\"\nreceive_buffer = \"{buffer}KiB\"\n\
             scheduler = \"{}\"\ncongestion_control = \"{}\"\ndirection = \"{}\"\n\
             remedies = {{ opportunistic_retransmission = {remedies}, penalisation = {remedies} }}\n\
             workload = {}\n",
            self.warm_up_ms,
            self.host,
            self.start_ms,
            self.scheduler,
            self.control,
            self.direction,
            self.workload,
            buffer = self.buffer_kib,
            remedies = self.remedies,
        )
    }
}

fn watched(toml: &str) -> RunOutcome {
    run_with(toml, 1, Options::default().ledger(true))
}

/// Most payload that the links can carry in the measured time.
fn bound(paths: &[(u32, u32, u32, u32)], measured_ns: u64) -> f64 {
    let carried = |(mbps, ..): &(u32, u32, u32, u32)| {
        f64::from(*mbps) * 1e6 / 8.0 * measured_ns as f64 / 1e9 * PAYLOAD + PACKET
    };
    paths.iter().map(carried).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_more_arrives_than_the_links_carry(setting in settings()) {
        let outcome = watched(&setting.toml());
        let measured_ns = column(&outcome, "connections", "measured_ns")[0];
        let arrived = column(&outcome, "connections", "bytes_arrived_measured")[0];
        let most = bound(&setting.paths, measured_ns);
        prop_assert!(arrived as f64 <= most, "{arrived} bytes, and the links carry {most}");
        // The account of the ledger is of the same bytes. A link has no room for the packet that
        // arrives first if nearly all of it was sent before the beginning.
        let (cause, bytes) =
            (names(&outcome, "capacity", "cause"), column(&outcome, "capacity", "bytes"));
        let useful: u64 = (0..cause.len()).filter(|row| cause[*row] == "useful").map(|row| bytes[row]).sum();
        let packets = PACKET as u64 * setting.paths.len() as u64;
        prop_assert!(useful <= arrived && arrived - useful <= packets, "{useful} of {arrived}");
    }
}

#[test]
fn large_buffers_do_not_raise_goodput_above_the_links() {
    // Data that was out of order when the warm-up ended is delivered after it: up to 139.3 Mbit/s,
    // although 1432 of 1500 bytes leave 133.65 of 140 Mbit/s.
    let toml = |mib: u32| {
        format!(
            "name = \"large\"\nduration = \"10s\"\nwarm_up = \"2s\"\n\
             [[path]]\nname = \"a\"\nrate = \"100Mbit/s\"\ndelay = \"5ms\"\nlimit = \"100ms\"\n\
             [[path]]\nname = \"b\"\nrate = \"40Mbit/s\"\ndelay = \"30ms\"\nlimit = \"100ms\"\n\
             [[connection]]\nscheduler = \"linux\"\ncongestion_control = \"cubic\"\n\
             send_buffer = \"{mib}MiB\"\nreceive_buffer = \"{mib}MiB\"\n\
             workload = {{ kind = \"blocks\" }}\n"
        )
    };
    for mib in [2, 16, 64] {
        for seed in 1..3 {
            let found = goodput(&run(&toml(mib), seed));
            assert!(found <= 140e6 * 1432.0 / 1500.0 + 2.0 * PACKET, "{mib} MiB: {found}");
        }
    }
}
