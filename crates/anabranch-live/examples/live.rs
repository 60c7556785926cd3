//! Run a scenario in real time: `live FILE.toml engine|kernel engine|kernel [PCAP]`.

use anabranch_live::{Options, Stack, enter, is_inside, run};
use anabranch_sim::scenario::Scenario;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if !is_inside() {
        let command: Vec<String> = [std::env::current_exe().unwrap().display().to_string()]
            .into_iter()
            .chain(args[1..].to_vec())
            .collect();
        std::process::exit(enter(&command).unwrap().code().unwrap_or(1));
    }
    let stack = |name: &str| if name == "kernel" { Stack::Kernel } else { Stack::Engine };
    let scenario =
        Scenario::from_toml(&std::fs::read_to_string(&args[1]).unwrap(), &args[1]).unwrap();
    let mut capture =
        args.get(4).map(|file| std::io::BufWriter::new(std::fs::File::create(file).unwrap()));
    let options = Options {
        client: stack(&args[2]),
        server: stack(&args[3]),
        capture: capture.as_mut().map(|file| file as _),
        linger: None,
        abort: None,
    };
    let outcome = run(&scenario, 1, options).unwrap();
    for each in anabranch_live::probe() {
        println!("{each:?}");
    }
    for table in &outcome.tables[..3] {
        println!("{}", table.name);
        for (name, column) in &table.columns {
            println!("  {name:26} {column:?}");
        }
    }
    let late = &outcome.lateness;
    println!(
        "packets {} foreign {} valid {} p50 {:?} p99 {:?} p99.9 {:?} >1ms {:.4}",
        outcome.packets,
        outcome.foreign,
        late.is_valid(),
        late.quantile(0.5),
        late.quantile(0.99),
        late.quantile(0.999),
        late.late_share()
    );
    for counters in &outcome.kernel_counters {
        let moved: Vec<_> = counters.iter().filter(|(_, count)| **count > 0).collect();
        println!("{moved:?}");
    }
    println!("{:?}", outcome.engine_counters);
    println!("{:?}", outcome.notices);
}
