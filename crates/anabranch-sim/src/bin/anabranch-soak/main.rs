//! Runs random scenarios, one per seed, until it is stopped, and checks each outcome.
//!
//! `anabranch-soak [--from SEED] [--seeds COUNT] [--minutes MINUTES] [--show SEED]`

mod account;
mod check;
mod draw;

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anabranch_sim::scenario::Scenario;
use anabranch_sim::{Options, run};
use check::Totals;
use serde_json::json;

const USAGE: &str = "usage: anabranch-soak [--from SEED] [--seeds COUNT] [--minutes MINUTES]
       anabranch-soak --digests [--from SEED] [--seeds COUNT]
       anabranch-soak --show SEED

Runs random scenarios, one per seed: COUNT of them, or for MINUTES, or until interrupted. The first
seed is SEED (default 1). A seed fails if a connection's stream did not arrive exactly, if a
connection got stuck, if it ended with an error that the scenario does not explain, or if the run
panicked. For each failed seed, the program prints the command that repeats it. The exit status is 1
if any seed failed. The last line is a digest of all packets of the successful runs.
--digests prints a JSON object for each seed instead: the scenario, and the digest of its run.
--show prints the scenario of a seed, for `anabranch run`.";

/// Interval between progress lines.
const REPORT_EVERY: Duration = Duration::from_secs(10);

struct SoakPlan {
    from: u64,
    count: u64,
    minutes: Option<f64>,
    /// Print scenarios and digests, and check nothing.
    digests: bool,
}

fn main() -> ExitCode {
    match plan(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(Some(plan)) if plan.digests => digests(&plan),
        Ok(Some(plan)) => soak(&plan),
        Ok(None) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("anabranch-soak: {message}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// The plan that the arguments describe; `None` if they asked only for output that was printed.
fn plan(arguments: &[String]) -> Result<Option<SoakPlan>, String> {
    let mut plan = SoakPlan { from: 1, count: u64::MAX, minutes: None, digests: false };
    let mut arguments = arguments.iter();
    while let Some(name) = arguments.next() {
        if name == "--help" {
            println!("{USAGE}");
            return Ok(None);
        }
        if name == "--digests" {
            plan.digests = true;
            continue;
        }
        let value = arguments.next().ok_or(format!("{name} takes a number"))?;
        let wrong = |_| format!("{name} takes a number, not {value:?}");
        match name.as_str() {
            "--from" => plan.from = value.parse().map_err(wrong)?,
            "--seeds" => plan.count = value.parse().map_err(wrong)?,
            "--minutes" => {
                plan.minutes = Some(
                    value
                        .parse()
                        .map_err(|_| format!("--minutes takes a number, not {value:?}"))?,
                );
            }
            "--show" => {
                print!("{}", draw::scenario(value.parse().map_err(wrong)?).toml);
                return Ok(None);
            }
            _ => return Err(format!("unknown option {name}")),
        }
    }
    Ok(Some(plan))
}

/// Print the scenario of each seed, and the digest of its run.
fn digests(plan: &SoakPlan) -> ExitCode {
    for seed in plan.from..plan.from.saturating_add(plan.count) {
        let toml = draw::scenario(seed).toml;
        let digest = Scenario::from_toml(&toml, "soak.toml")
            .map_err(|error| error.to_string())
            .and_then(|scenario| {
                run(&scenario, seed, Options::default()).map_err(|error| error.to_string())
            })
            .map(|outcome| format!("{:016x}", outcome.digest));
        match digest {
            Ok(digest) => {
                println!("{}", json!({ "seed": seed.to_string(), "toml": toml, "digest": digest }));
            }
            Err(error) => {
                eprintln!("anabranch-soak: seed {seed}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

#[expect(clippy::disallowed_methods, reason = "how long the soak has run, not what it does")]
fn soak(plan: &SoakPlan) -> ExitCode {
    let begun = Instant::now();
    let next = AtomicU64::new(plan.from);
    let end = plan.from.saturating_add(plan.count);
    let total = Mutex::new((Totals::default(), 0u64, 0u64, begun));
    // Panics are reported together with their seed, so the default report is suppressed.
    std::panic::set_hook(Box::new(|_| {}));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let late =
                        plan.minutes.is_some_and(|m| begun.elapsed().as_secs_f64() > 60.0 * m);
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if late || seed >= end {
                        return;
                    }
                    let result = check::check(seed);
                    let mut total = total.lock().expect("no thread panics while it holds this");
                    total.1 += 1;
                    match result {
                        Ok(totals) => total.0.add(totals),
                        Err(problem) => {
                            total.2 += 1;
                            println!("seed {seed}: {problem}");
                            println!("    repeat: make soak SOAK='--from {seed} --seeds 1'");
                        }
                    }
                    if total.3.elapsed() > REPORT_EVERY {
                        total.3 = Instant::now();
                        report(&total.0, total.1, total.2, begun.elapsed());
                    }
                }
            });
        }
    });
    let (totals, seeds, wrong, _) = *total.lock().expect("all threads have ended");
    report(&totals, seeds, wrong, begun.elapsed());
    println!("digest {:016x}", totals.digest);
    let too_many = totals.collisions > 2 + seeds / 50_000;
    if too_many {
        println!("modified data passed the checksums {} times: too often", totals.collisions);
    }
    let unlucky = totals.unopened > 2 + seeds / 200_000;
    if unlucky {
        println!("{} connections did not open: too many for chance", totals.unopened);
    }
    ExitCode::from(u8::from(wrong > 0 || too_many || unlucky))
}

fn report(totals: &Totals, seeds: u64, wrong: u64, elapsed: Duration) {
    let seconds = elapsed.as_secs_f64();
    println!(
        "{seeds} seeds in {seconds:.0} s, {:.0} per second, {:.1} million segments; connections: {} \
         completed over Multipath TCP, {} over TCP, {} ended with an error, {} had modified data \
         that matched its checksum; {wrong} seeds failed",
        seeds as f64 / seconds,
        totals.segments as f64 / 1e6,
        totals.completed_mptcp,
        totals.completed_tcp,
        totals.failed,
        totals.collisions,
    );
}
