//! Batches: equal to single runs, with any number of workers, after errors and after damage.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anabranch_batch::{
    Batch, BatchError, Cell, Collector, Finished, Job, Journal, Kept, RunKey, RunRecord, Values,
};
use anabranch_sim::scenario::Scenario;
use anabranch_sim::{Options, run};

const SCENARIO: &str = r#"
    name = "two"
    duration = "500ms"
    [[path]]
    name = "wifi"
    rate = "8Mbit/s"
    delay = "10ms"
    limit = "54packets"
    loss = "1%"
    [[path]]
    name = "lte"
    rate = "4Mbit/s"
    delay = "30ms"
    limit = "100packets"
    [[connection]]
    name = "main"
    workload = { kind = "blocks", block_size = "8KiB" }
"#;

fn scenario(changed: &str) -> Arc<Scenario> {
    let text = SCENARIO.replace("500ms", changed);
    Arc::new(Scenario::from_toml(&text, "two.toml").expect("the scenario is right"))
}

fn cell(scenario: &Arc<Scenario>, may_fail: bool) -> Cell {
    let (file, name) = ("two.toml".to_owned(), "cell".to_owned());
    Cell { scenario: Arc::clone(scenario), file, name, may_fail }
}

fn key(seed: u64) -> RunKey {
    let mut key = RunKey::default();
    key[..8].copy_from_slice(&seed.to_be_bytes());
    key
}

fn jobs(seeds: std::ops::Range<u64>) -> Vec<Job> {
    let kept = Kept { blocks: true, samples: true };
    seeds.map(|seed| Job { cell: 0, seed, key: key(seed), kept, cost: 1.0 }).collect()
}

/// The path of a journal that does not exist yet.
fn journal_of(test: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    fs::create_dir_all(&folder).expect("the folder can be made");
    let path = folder.join(format!("{test}.journal"));
    let _ = fs::remove_file(&path);
    path
}

fn made(test: &str, scenario: &Arc<Scenario>, workers: usize) -> Arc<Journal> {
    let journal = Arc::new(Journal::open(&journal_of(test)).expect("it can be opened"));
    let cells = vec![cell(scenario, false)];
    let batch = Batch::start(cells, jobs(1..9), Arc::clone(&journal), workers);
    assert!(batch.wait(Duration::from_secs(60)));
    assert_eq!(batch.progress().runs, 8);
    assert_eq!(batch.progress().virtual_ns, 8 * scenario.duration.as_nanos());
    assert_eq!(batch.progress().cost, 8.0);
    batch.finish().expect("no run fails");
    journal
}

fn record_of(scenario: &Scenario, seed: u64) -> RunRecord {
    let outcome = run(scenario, seed, Options::default()).expect("the run ends");
    let kept = Kept { blocks: true, samples: true };
    RunRecord::of(scenario, &Finished::of(&outcome, 0.0), kept, |_| Ok(())).expect("no check")
}

#[test]
fn a_batch_gives_the_tables_of_single_runs_with_any_number_of_workers() {
    let scenario = scenario("500ms");
    let journals = [made("one", &scenario, 1), made("three", &scenario, 3)];
    let collected = journals.map(|journal| {
        let mut collector = Collector::new([&*scenario]);
        for seed in 1..9 {
            let record = journal.find(&key(seed)).expect("it can be read");
            collector.add(0, &record.expect("the run is finished"));
        }
        collector.finish()
    });
    let mut single = Collector::new([&*scenario]);
    (1..9).for_each(|seed| single.add(0, &record_of(&scenario, seed)));
    let single = single.finish();
    assert_eq!(single.tables[0].heights, [1; 8]);
    for results in collected {
        // Texts, because "none" is NaN, which equals nothing.
        assert_eq!(format!("{:?}", results.tables), format!("{:?}", single.tables));
        let digests = |of: &anabranch_batch::Results| -> Vec<_> {
            of.summaries.iter().map(|each| each.digest).collect()
        };
        assert_eq!(digests(&results), digests(&single));
        assert!(results.summaries.iter().all(|each| each.cpu_s > 0.0));
    }
}

#[test]
fn runs_of_different_scenarios_share_the_columns_that_both_have() {
    let text = SCENARIO.replace("lte", "dsl");
    let other = Scenario::from_toml(&text, "other.toml").expect("the scenario is right");
    let scenario = scenario("500ms");
    let mut collector = Collector::new([&*scenario, &other]);
    collector.add(0, &record_of(&scenario, 1));
    collector.add(1, &record_of(&other, 1));
    let results = collector.finish();
    let [runs, ..] = &results.tables;
    let share = |name| {
        let found = runs.columns.iter().find(|(each, _)| each == name);
        let Some((_, Values::F64(values))) = found else { panic!("no column {name}") };
        values.clone()
    };
    assert!(share("share_wifi").iter().all(|share| *share > 0.0));
    assert!(share("share_lte")[1].is_nan() && share("share_dsl")[0].is_nan());
    assert!(results.columns[0].contains(&"share_lte".to_owned()));
    assert!(!results.columns[1].contains(&"share_lte".to_owned()));
}

#[test]
fn a_failed_connection_names_cell_and_seed() {
    // Nothing gets through: the SYN times out.
    let text = SCENARIO.replace("loss = \"1%\"", "loss = \"100%\"").replace("500ms", "900s");
    let dead = Arc::new(Scenario::from_toml(&text, "dead.toml").expect("the scenario is right"));
    let journal = Arc::new(Journal::open(&journal_of("dead")).expect("it can be opened"));
    let batch = Batch::start(vec![cell(&dead, false)], jobs(7..8), Arc::clone(&journal), 1);
    let error = batch.finish().expect_err("the connection fails");
    assert_eq!(error.to_string(), "cell, seed 7: main failed");
    assert!(journal.keys().is_empty());
    let batch = Batch::start(vec![cell(&dead, true)], jobs(7..8), Arc::clone(&journal), 1);
    batch.finish().expect("it may fail");
    assert_eq!(journal.keys(), [key(7)]);
}

#[test]
fn a_stopped_batch_ends_at_once_and_keeps_what_is_finished() {
    let endless = scenario("1000000s");
    let journal = Arc::new(Journal::open(&journal_of("endless")).expect("it can be opened"));
    let batch = Batch::start(vec![cell(&endless, false)], jobs(1..100), Arc::clone(&journal), 2);
    assert!(!batch.wait(Duration::from_millis(50)));
    batch.stop();
    assert!(batch.wait(Duration::from_secs(5)));
    assert!(matches!(batch.finish(), Err(BatchError::Stopped)));
    assert!(journal.keys().is_empty());
}

#[test]
fn a_damaged_record_costs_that_run_only() {
    let scenario = scenario("100ms");
    let path = journal_of("damaged");
    let mut ends = Vec::new();
    let journal = Journal::open(&path).expect("it can be opened");
    for seed in 1..4 {
        journal.add(&key(seed), &record_of(&scenario, seed)).expect("it can be written");
        ends.push(fs::metadata(&path).expect("it exists").len() as usize);
    }
    drop(journal);
    let whole = fs::read(&path).expect("it can be read");
    for at in [ends[0] + 2, ends[0] + 12, ends[0] + 30, ends[0] + 300] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        fs::write(&path, bytes).expect("it can be written");
        let journal = Journal::open(&path).expect("damage is no error");
        let damage = journal.damage().expect("there is damage");
        assert_eq!((damage.intact, damage.lost as usize), (2, ends[1] - ends[0]));
        assert_eq!(journal.keys(), [key(1), key(3)]);
        drop(journal);
        let journal = Journal::open(&path).expect("it can be opened");
        assert_eq!(journal.damage(), None, "it was rewritten");
        let third = journal.find(&key(3)).expect("it can be read");
        assert_eq!(third, Some(record_of(&scenario, 3)));
    }
}

#[test]
fn only_used_runs_are_kept() {
    let scenario = scenario("100ms");
    let path = journal_of("used");
    let journal = Journal::open(&path).expect("it can be opened");
    (1..4).for_each(|seed| journal.add(&key(seed), &record_of(&scenario, seed)).expect("room"));
    drop(journal);
    let journal = Journal::open(&path).expect("it can be opened");
    assert!(journal.contains(&key(2)) && !journal.contains(&key(9)));
    journal.keep_only_used().expect("it can be written");
    assert_eq!(journal.find(&key(2)).expect("it can be read"), Some(record_of(&scenario, 2)));
    drop(journal);
    assert_eq!(Journal::open(&path).expect("it can be opened").keys(), [key(2)]);
}
