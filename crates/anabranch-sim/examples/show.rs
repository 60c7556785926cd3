//! Run a scenario file and print its tables' totals.
use anabranch_sim::{Column, Options, scenario::Scenario};
fn main() {
    let file = std::env::args().nth(1).expect("a file");
    let text = std::fs::read_to_string(&file).expect("readable");
    let scenario = Scenario::from_toml(&text, &file).unwrap_or_else(|e| { eprintln!("{e}"); std::process::exit(2) });
    let out = anabranch_sim::run(&scenario, 1, Options::default()).expect("runs");
    println!("digest {:016x} segments {} delivered {}", out.digest, out.segments, out.data_segments_delivered);
    for t in &out.tables {
        if t.name.ends_with("samples") { continue; }
        if t.name == "blocks" {
            let (Column::U64(a), Column::U64(d)) = (&t.columns[2].1, &t.columns[3].1) else { panic!() };
            let mut v: Vec<u64> = a.iter().zip(d).filter(|(a, _)| **a > 5_000_000_000).map(|(a, d)| (d - a) / 1000).collect();
            v.sort();
            if !v.is_empty() { println!("blocks {} mean {} p50 {} p95 {} p99 {} us", v.len(), v.iter().sum::<u64>() / v.len() as u64, v[v.len()/2], v[v.len()*95/100], v[v.len()*99/100]); }
            continue;
        }
        println!("{}", t.name);
        for (n, c) in &t.columns { println!("  {n}: {c:?}"); }
    }
}
