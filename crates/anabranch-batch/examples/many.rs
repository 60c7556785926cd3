//! Times a batch without Python: `many SCENARIO.toml RUNS WORKERS`. Prints one line of JSON.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

use anabranch_batch::{Batch, Cell, Collector, Job, Journal, Kept, RunKey};
use anabranch_sim::scenario::Scenario;

#[expect(clippy::disallowed_methods, reason = "it measures wall time")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().collect();
    let [_, file, runs, workers] = &arguments[..] else {
        return Err("usage: many SCENARIO.toml RUNS WORKERS".into());
    };
    let (runs, workers) = (runs.parse()?, workers.parse()?);
    let scenario = Arc::new(Scenario::from_toml(&fs::read_to_string(file)?, file)?);
    let path = env::temp_dir().join(format!("many-{}.journal", std::process::id()));
    let journal = Arc::new(Journal::open(&path)?);
    let (file, name) = (file.clone(), "cell".to_owned());
    let cell = Cell { scenario: Arc::clone(&scenario), file, name, may_fail: true };
    let job = |seed| Job { cell: 0, seed, key: key(seed), kept: Kept::default(), cost: 1.0 };

    let started = std::time::Instant::now();
    let jobs = (0..runs).map(job).collect();
    let batch = Batch::start(vec![cell], jobs, Arc::clone(&journal), workers);
    while !batch.wait(Duration::from_millis(50)) {}
    batch.finish()?;
    let made = started.elapsed().as_secs_f64();

    let mut collector = Collector::new([&*scenario]);
    for seed in 0..runs {
        let record = journal.find(&key(seed))?.ok_or("every run is recorded")?;
        collector.add(0, &record);
    }
    let results = collector.finish();
    let collected = started.elapsed().as_secs_f64() - made;
    fs::remove_file(&path)?;
    let cpu: f64 = results.summaries.iter().map(|run| run.cpu_s).sum();
    println!(
        "{{\"runs\":{runs},\"workers\":{workers},\"runs_per_s\":{:.0},\"cpu_us_of_a_run\":{:.0},\
         \"collect_us_per_run\":{:.1}}}",
        runs as f64 / made,
        cpu / runs as f64 * 1e6,
        collected / runs as f64 * 1e6
    );
    Ok(())
}

fn key(seed: u64) -> RunKey {
    let mut key = RunKey::default();
    key[..8].copy_from_slice(&seed.to_be_bytes());
    key
}
