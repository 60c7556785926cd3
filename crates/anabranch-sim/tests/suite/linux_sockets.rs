//! Hosts that count buffers as Linux's sockets do, compared with Linux 6.12 in virtual time.

use anabranch_sim::RunOutcome;

use crate::common::{column, goodput, run};

/// Two paths, each with a rate in Mbit/s, a delay in ms and a queue in packets, and one connection.
fn two_paths(paths: [(&str, &str, u32); 2], duration: u32, connection: &str) -> String {
    let path = |(name, (rate, delay, limit)): (&str, (&str, &str, u32))| {
        format!(
            "[[path]]\nname = \"{name}\"\nrate = \"{rate}Mbit/s\"\ndelay = \"{delay}ms\"\n\
             limit = \"{limit}packets\"\n"
        )
    };
    let paths: String = ["a", "b"].into_iter().zip(paths).map(path).collect();
    format!(
        "name = \"sockets\"\nduration = \"{duration}s\"\n{paths}[[connection]]\n\
         host = {{ kind = \"linux\", buffers = \"socket\" }}\ncongestion_control = \"cubic_linux\"\n\
         scheduler = \"linux\"\n{connection}\n"
    )
}

const BLOCKS: &str = "workload = { kind = \"blocks\", block_size = \"8KiB\" }";

fn transfer_time(outcome: &RunOutcome) -> f64 {
    let delivered = column(outcome, "blocks", "delivered_ns");
    *delivered.last().expect("the transfer is complete") as f64 / 1e9
}

#[test]
fn buffers_of_no_stated_size_grow_with_the_windows() {
    // The kernel's own test `simult_flows` allows 7.91 s and 11.92 s for 16 MiB, and Linux takes
    // 7.2 s and 11.1 s.
    let cases = [
        ([("10", "1", 30), ("10", "25", 30)], 7.20, 7.91),
        ([("10", "25", 30), ("3", "1", 30)], 11.1, 11.92),
    ];
    for (paths, linux, limit) in cases {
        let workload = "direction = \"download\"\n\
                        workload = { kind = \"blocks\", block_size = \"16MiB\", count = 1 }";
        let outcome = run(&two_paths(paths, 20, workload), 1);
        let time = transfer_time(&outcome);
        println!("{time:.2} s, Linux {linux} s");
        assert!((time / linux - 1.0).abs() < 0.05 && time < limit, "{time}, not {linux}");
        // Both begin with less than 100 kB.
        let receive = column(&outcome, "connections", "receive_buffer")[0];
        let send = column(&outcome, "connections", "send_buffer")[0];
        assert!(receive > 500_000 && send > 200_000, "{receive} {send}");
    }
}

#[test]
fn stated_sizes_stay() {
    let sizes = "send_buffer = \"200kB\"\nreceive_buffer = \"300kB\"";
    let toml = two_paths([("8", "10", 54), ("2", "75", 50)], 5, &format!("{sizes}\n{BLOCKS}"));
    let outcome = run(&toml, 1);
    assert_eq!(column(&outcome, "connections", "send_buffer"), [400_000]);
    // 1424 of 2304 bytes are payload.
    assert_eq!(column(&outcome, "connections", "receive_buffer"), [370_313]);
}

#[test]
fn each_write_is_sent_at_once_so_that_bursts_are_short() {
    // A burst of Linux's scheduler ends with the data that was written. If the engine scheduled
    // several blocks together, the slow path would hold up the fast one: 13.1 Mbit/s.
    let sizes = "send_buffer = \"120kB\"\nreceive_buffer = \"456kB\"";
    let paths = [("14.01", "16.9", 200), ("3.25", "10.7", 16)];
    let goodput = goodput(&run(&two_paths(paths, 20, &format!("{sizes}\n{BLOCKS}")), 1)) / 1e6;
    println!("{goodput:.2} Mbit/s, Linux 16.10 Mbit/s");
    assert!((goodput / 16.10 - 1.0).abs() < 0.05, "{goodput}");
}

#[test]
fn a_stalled_connection_retransmits_as_soon_as_timers_of_subflows_would() {
    // Data that the peer drops beyond its window is retransmitted by the data level alone. If that
    // waited for the timeout of the slowest subflow, goodput would be 6 Mbit/s. Linux stalls every
    // 1 to 3 s, depending on which segments are lost: 24.3 Mbit/s with 6.12, and 21.7 with 6.18. The bound
    // is wide because in virtual time, a delay that differs by 1 % also changes which are lost: 19.7 to
    // 24.5 Mbit/s with 9.8 to 10 ms.
    let sizes = "send_buffer = \"171kB\"\nreceive_buffer = \"716kB\"";
    let paths = [("27.33", "9.9", 16), ("1.04", "50", 16)];
    let goodput = goodput(&run(&two_paths(paths, 20, &format!("{sizes}\n{BLOCKS}")), 1)) / 1e6;
    println!("{goodput:.2} Mbit/s, Linux 21.7 to 24.3 Mbit/s");
    assert!((goodput / 23.0 - 1.0).abs() < 0.15, "{goodput}");
}

/// A tuned send buffer is the sum of what each subflow's congestion window once wanted.
#[test]
fn blocks_wait_in_a_tuned_send_buffer_as_long_as_with_linux() {
    // Linux: a median delay of 624 ms.
    let paths = [("3.46", "4.6", 56), ("1.28", "1.33", 29)];
    let outcome = run(&two_paths(paths, 20, BLOCKS), 1);
    let [begun, delivered] =
        ["accepted_ns", "delivered_ns"].map(|name| column(&outcome, "blocks", name));
    let mut delays: Vec<u64> = begun.iter().zip(&delivered).map(|(from, to)| to - from).collect();
    delays.sort_unstable();
    let median = delays[delays.len() / 2] / 1_000_000;
    assert!((593..=655).contains(&median), "{median} ms");
}

#[test]
fn the_original_kernels_send_buffer_grows_until_the_link_is_full() {
    // With the 20 segments of the first buffer, TCP would have 11 Mbit/s.
    let toml = "name = \"tuned\"\nduration = \"20s\"\n\
                [[path]]\nname = \"a\"\nrate = \"14.4Mbit/s\"\ndelay = \"10ms\"\nlimit = \"24packets\"\n\
                [[connection]]\nstack = \"mptcp.org-0.89\"\nprotocol = \"tcp\"\n\
                workload = { kind = \"bulk\" }\n";
    let mbit = goodput(&run(toml, 1)) / 1e6;
    assert!(mbit > 13.5, "{mbit} Mbit/s");
}
