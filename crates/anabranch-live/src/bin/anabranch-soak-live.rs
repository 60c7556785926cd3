//! Long live runs between the engine and this kernel. They compare every byte and watch the memory.
//!
//! `anabranch-soak-live PHASE AMOUNT FOLDER`: the phases are `transfer` (AMOUNT in GB),
//! `connections` (AMOUNT concurrent connections) and `flaps` (AMOUNT in minutes). Each phase runs in
//! both roles, and writes the process's resident memory for each second to FOLDER.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    println!("soak-live skipped: it needs Linux");
    ExitCode::SUCCESS
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fmt::Write as _;
    use std::io;
    use std::path::Path;
    use std::process::ExitCode;
    use std::sync::mpsc::{self, RecvTimeoutError};
    use std::thread;
    use std::time::Duration;

    use anabranch_live::{HostStack, LiveOutcome, Options};
    use anabranch_sim::scenario::Scenario;

    const USAGE: &str = "usage: anabranch-soak-live transfer|connections|flaps AMOUNT FOLDER";
    /// Rate of each of two paths in Mbit/s. An emulator on half a processor keeps up with it.
    const RATE: f64 = 200.0;
    /// Rate of each path in the phase `flaps`.
    const FLAPPING_RATE: f64 = 50.0;
    /// Size of each transfer in the phase `connections`.
    const SHARE: &str = "5MB";
    const ROLES: [(&str, [HostStack; 2]); 2] = [
        ("engine-to-kernel", [HostStack::Engine, HostStack::Kernel]),
        ("kernel-to-engine", [HostStack::Kernel, HostStack::Engine]),
    ];

    /// A scenario and its expected results.
    struct Phase {
        name: &'static str,
        scenario: String,
        /// Number of bytes that must arrive on all connections together.
        bytes: f64,
        /// Whether the connections must end.
        ends: bool,
    }

    pub(super) fn main() -> ExitCode {
        let arguments: Vec<String> = std::env::args().collect();
        let [_, name, amount, folder] = arguments.as_slice() else { return misused() };
        let amount = amount.parse().ok().filter(|amount| (0.01..=1000.0).contains(amount));
        let Some(phase) = amount.and_then(|amount| Phase::new(name, amount)) else {
            return misused();
        };
        if !anabranch_live::is_inside() {
            return match anabranch_live::enter(&arguments) {
                Ok(status) => ExitCode::from(status.code().unwrap_or(1) as u8),
                Err(error) => {
                    println!("soak-live skipped: no network namespaces: {error}");
                    ExitCode::SUCCESS
                }
            };
        }
        let mut problems = 0;
        for (role, stacks) in ROLES {
            let file = Path::new(folder).join(format!("{}-{role}.csv", phase.name));
            match phase.run(stacks, &file) {
                Ok(said) => println!("{} {role}: {said}", phase.name),
                Err(error) => {
                    println!("{} {role}: FAILED: {error}", phase.name);
                    problems += 1;
                }
            }
        }
        ExitCode::from(u8::from(problems > 0))
    }

    fn misused() -> ExitCode {
        eprintln!("{USAGE}");
        ExitCode::from(2)
    }

    impl Phase {
        fn new(name: &str, amount: f64) -> Option<Self> {
            match name {
                "transfer" => Some(Phase::transfer(amount * 1e9)),
                "connections" => Some(Phase::connections(amount as usize)),
                "flaps" => Some(Phase::flaps(amount * 60.0)),
                _ => None,
            }
        }

        fn transfer(bytes: f64) -> Self {
            let bulk = format!("size = \"{bytes:.0}B\"");
            let scenario = scenario(seconds_for(bytes), RATE, "", &[bulk]);
            Phase { name: "transfer", scenario, bytes, ends: true }
        }

        fn connections(count: usize) -> Self {
            let bytes = count as f64 * 5e6;
            let all = vec![format!("size = \"{SHARE}\""); count];
            let scenario = scenario(seconds_for(bytes), RATE, "", &all);
            Phase { name: "connections", scenario, bytes, ends: true }
        }

        /// A phase in which one path is down every other second. The other path alone could carry
        /// twice the required bytes.
        fn flaps(seconds: f64) -> Self {
            let mut changes = String::new();
            for second in 1..seconds as u32 {
                let state = if second.is_multiple_of(2) { "up" } else { "down" };
                let _ = writeln!(
                    changes,
                    "[[path.change]]\nat = \"{second}s\"\nstate = \"{state}\"\nnoticed = false"
                );
            }
            let scenario = scenario(seconds, FLAPPING_RATE, &changes, &[String::new()]);
            let bytes = seconds * FLAPPING_RATE * 1e6 / 8.0 / 2.0;
            Phase { name: "flaps", scenario, bytes, ends: false }
        }

        /// Run and judge the phase. Returns a summary of a successful run.
        fn run(&self, [client, server]: [HostStack; 2], file: &Path) -> Result<String, String> {
            let scenario = Scenario::from_toml(&self.scenario, self.name)
                .map_err(|error| error.to_string())?;
            let linger = anabranch_wire::Duration::from_millis(500);
            let options = Options::new(client, server).linger(linger);
            let (stop, stopped) = mpsc::channel::<()>();
            let watcher = thread::spawn(move || watch(&stopped));
            let outcome = anabranch_live::run(&scenario, 1, options);
            drop(stop);
            let memory = watcher.join().map_err(|_| "the watcher panicked".to_owned())?;
            write(file, &memory).map_err(|error| format!("{}: {error}", file.display()))?;
            let outcome = outcome.map_err(|error| error.to_string())?;
            self.judge(&outcome, &memory)
        }

        fn judge(&self, outcome: &LiveOutcome, memory: &[(u32, u64)]) -> Result<String, String> {
            let sum = |name| column(outcome, name).iter().sum::<u64>();
            let (bytes, wrong) = (sum("bytes_delivered"), sum("corrupt_bytes"));
            let (count, completed) = (column(outcome, "completed").len(), sum("completed"));
            let [early, late] = [2, 4].map(|fifth| of_fifth(memory, fifth));
            let said = format!(
                "{bytes} bytes in {:.0} s on {count} connections, {wrong} wrong, {completed} ended; \
                 {:.1} MB of memory in the middle, {:.1} MB at the end, lateness p99.9 {:.1} ms",
                outcome.end.as_secs_f64(),
                early as f64 / 1e6,
                late as f64 / 1e6,
                outcome.lateness.quantile(0.999).as_nanos() as f64 / 1e6,
            );
            let arrived = bytes as f64 >= self.bytes && wrong == 0;
            let ended = !self.ends || completed == count as u64;
            // The samples, one for each ten seconds, stay in memory to the end.
            let flat = late <= early + early / 10 + (1 << 20);
            if arrived && ended && flat { Ok(said) } else { Err(said) }
        }
    }

    /// Time limit of a transfer: enough for a fifth of the paths' rates.
    fn seconds_for(bytes: f64) -> f64 {
        60.0 + 5.0 * bytes * 8.0 / (2.0 * RATE * 1e6)
    }

    /// A scenario with two paths, `changes` of the second path, and a connection for each of `bulks`.
    fn scenario(seconds: f64, rate: f64, changes: &str, bulks: &[String]) -> String {
        let mut text = format!(
            "name = \"soak-live\"\nduration = \"{seconds:.0}s\"\nsample_interval = \"10s\"\n"
        );
        for (name, delay, changes) in [("steady", 5, ""), ("other", 10, changes)] {
            let _ = writeln!(
                text,
                "[[path]]\nname = \"{name}\"\nrate = \"{rate}Mbit/s\"\ndelay = \"{delay}ms\"\n\
                 limit = \"40ms\"\n{changes}"
            );
        }
        for (number, bulk) in bulks.iter().enumerate() {
            let direction = if number.is_multiple_of(2) { "upload" } else { "download" };
            let _ = writeln!(
                text,
                "[[connection]]\nname = \"c{number}\"\ndirection = \"{direction}\"\n\
                 congestion_control = \"cubic\"\n[connection.workload]\nkind = \"bulk\"\n{bulk}"
            );
        }
        text
    }

    /// Resident memory in bytes for each second, until the other end of the channel is closed.
    fn watch(stopped: &mpsc::Receiver<()>) -> Vec<(u32, u64)> {
        let mut memory = Vec::new();
        for second in 0.. {
            memory.extend(resident().map(|bytes| (second, bytes)));
            if stopped.recv_timeout(Duration::from_secs(1)) != Err(RecvTimeoutError::Timeout) {
                break;
            }
        }
        memory
    }

    fn resident() -> Option<u64> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
    }

    /// Largest memory in one fifth of the run; `fifth` counts from 0.
    fn of_fifth(memory: &[(u32, u64)], fifth: usize) -> u64 {
        let part = &memory[memory.len() * fifth / 5..memory.len() * (fifth + 1) / 5];
        part.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0)
    }

    fn write(file: &Path, memory: &[(u32, u64)]) -> io::Result<()> {
        let mut text = "seconds,resident_bytes\n".to_owned();
        for (seconds, bytes) in memory {
            let _ = writeln!(text, "{seconds},{bytes}");
        }
        std::fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
        std::fs::write(file, text)
    }

    /// A column of the table of connections.
    fn column(outcome: &LiveOutcome, name: &str) -> Vec<u64> {
        outcome.tables[0].column(name).expect("a column's name").numbers()
    }
}
