//! Times one scenario in this process and prints the results as one line of JSON.
//!
//! `anabranch-bench SCENARIO.toml`. CPU time and memory are totals of the process, as reported by
//! the kernel (Linux only).

use std::fs;
use std::process::ExitCode;

use anabranch_sim::scenario::Scenario;
use anabranch_sim::{Options, RunOutcome};

fn main() -> ExitCode {
    match std::env::args()
        .nth(1)
        .ok_or("usage: anabranch-bench SCENARIO.toml".into())
        .and_then(bench)
    {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("anabranch-bench: {message}");
            ExitCode::from(2)
        }
    }
}

fn bench(file: String) -> Result<String, String> {
    let text = fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
    let scenario = Scenario::from_toml(&text, &file).map_err(|error| error.to_string())?;
    let outcome =
        anabranch_sim::run(&scenario, 1, Options::default()).map_err(|error| error.to_string())?;
    let cpu = cpu_seconds()?;
    let report = serde_json::json!({
        "scenario": scenario.name,
        "segments": outcome.data_segments_delivered,
        "acks": outcome.segments - column(&outcome, "segments_sent"),
        "cpu_s": cpu,
        "segments_per_cpu_s": outcome.data_segments_delivered as f64 / cpu,
        "simulated_s_per_cpu_s": scenario.duration.as_secs_f64() / cpu,
        "peak_rss_bytes": peak_rss_bytes()?,
        "goodput_bps": goodput(&outcome),
        "digest": format!("{:016x}", outcome.digest),
    });
    Ok(report.to_string())
}

/// Sum over all subflows of this column and of the retransmitted segments. Subtracted from all
/// segments, it leaves the acknowledgements and a few handshake segments.
fn column(outcome: &RunOutcome, name: &str) -> u64 {
    let subflows = outcome.tables.iter().filter(|table| table.name == "subflows");
    let columns =
        subflows.flat_map(|table| [name, "segments_retransmitted"].map(|of| table.column(of)));
    columns.flatten().flat_map(|column| column.numbers()).sum()
}

fn goodput(outcome: &RunOutcome) -> f64 {
    let columns = outcome.tables.iter().filter_map(|table| table.column("bytes_arrived_measured"));
    let delivered: u64 = columns.flat_map(|column| column.numbers()).sum();
    delivered as f64 * 8.0 / outcome.end.as_secs_f64()
}

/// User and system time of this process so far, in seconds.
fn cpu_seconds() -> Result<f64, String> {
    let path = "/proc/self/schedstat";
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let nanos: u64 = text
        .split_whitespace()
        .next()
        .and_then(|field| field.parse().ok())
        .ok_or_else(|| format!("{path}: cannot read the first field of {text:?}"))?;
    Ok(nanos as f64 / 1e9)
}

/// Maximum resident set size of this process so far.
fn peak_rss_bytes() -> Result<u64, String> {
    let path = "/proc/self/status";
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok())
        .map(|kibibytes: u64| kibibytes * 1024)
        .ok_or_else(|| format!("{path}: no VmHWM line"))
}
