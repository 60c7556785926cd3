//! Interoperation of the engine with this kernel, in both roles, over emulated links in real time.
//!
//! The result of a case is checked by four means: every byte that an application reads, the
//! kernel's counters, the engine's counters, and tshark. No error counter may move, and tshark must
//! find no malformed packet. A host that does not support live runs skips all cases and reports the
//! reason.
//!
//! Arguments select cases, as for other tests. Without arguments, the cases of [`smoke`] run.
//! `--include-ignored` runs all cases, and `--ignored` runs all except those of [`smoke`]. Words
//! run the cases whose names contain all of them.

#[cfg(target_os = "linux")]
mod cases;
#[cfg(target_os = "linux")]
mod judge;
#[cfg(target_os = "linux")]
mod smoke;

#[cfg(target_os = "linux")]
fn main() {
    use std::process::exit;

    let arguments: Vec<String> = std::env::args().collect();
    if !anabranch_live::is_inside() {
        match anabranch_live::enter(&arguments) {
            Ok(status) => exit(status.code().unwrap_or(1)),
            Err(error) => return println!("interop skipped: no network namespaces: {error}"),
        }
    }
    // The cases run in real time, while other tests use the processors. Without the privilege, they
    // run at normal priority.
    let _ = rustix::process::nice(-10);
    let capabilities = anabranch_live::probe();
    let missing: Vec<_> = capabilities
        .iter()
        .filter(|each| each.required || each.name == "ip mptcp")
        .filter_map(|each| Some(format!("{}: {}", each.name, each.problem.as_ref()?)))
        .collect();
    if !missing.is_empty() {
        return println!("interop skipped: {}", missing.join("; "));
    }
    let cases = selected(&arguments[1..]);
    let nftables = capabilities.iter().find(|each| each.name == "nftables").expect("it is probed");
    let mut results = run_all(cases, nftables.problem.as_deref());
    for problem in results.captures.judge(!results.failures.is_empty()) {
        results.failures.push(problem);
    }
    let Results { ran, skipped, failures, .. } = results;
    // Repeated at the end, where a reader of a long log looks.
    failures.iter().for_each(|failure| println!("failed: {failure}"));
    println!("interop: {ran} ran, {skipped} skipped, {} failed", failures.len());
    exit(i32::from(!failures.is_empty()));
}

/// The cases that the arguments select.
#[cfg(target_os = "linux")]
fn selected(arguments: &[String]) -> Vec<cases::Case> {
    let is_given = |flag: &str| arguments.iter().any(|each| each == flag);
    let words: Vec<_> = arguments.iter().filter(|each| !each.starts_with('-')).collect();
    let mut cases = cases::all();
    smoke::check(&cases);
    cases.retain(|case| words.iter().all(|word| case.name.contains(word.as_str())));
    if is_given("--ignored") {
        cases.retain(|case| !smoke::contains(case));
    } else if words.is_empty() && !is_given("--include-ignored") {
        cases.retain(smoke::contains);
    }
    cases
}

/// Results of the cases.
#[cfg(target_os = "linux")]
#[derive(Default)]
struct Results {
    ran: usize,
    skipped: usize,
    failures: Vec<String>,
    captures: judge::Captures,
}

/// Run cases, two at a time. A run mostly waits.
#[cfg(target_os = "linux")]
fn run_all(cases: Vec<cases::Case>, no_nftables: Option<&str>) -> Results {
    use std::sync::Mutex;

    let cases = Mutex::new(cases.into_iter());
    let results = Mutex::new(Results::default());
    let work = || {
        while let Some(case) = { cases.lock().expect("no panic").next() } {
            let missing = no_nftables.filter(|_| case.needs_nftables);
            let (problems, capture) = match missing {
                Some(_) => Default::default(),
                None => judge::run(&case),
            };
            let mut results = results.lock().expect("no panic");
            match missing {
                Some(why) => {
                    println!("{} ... skipped: {why}", case.name);
                    results.skipped += 1;
                }
                None => results.record(&case.name, &problems, capture),
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    results.into_inner().expect("no panic")
}

#[cfg(target_os = "linux")]
impl Results {
    fn record(&mut self, name: &str, problems: &[String], capture: Vec<u8>) {
        println!("{name} ... {}", if problems.is_empty() { "ok" } else { "FAILED" });
        problems.iter().for_each(|problem| println!("    {problem}"));
        self.ran += 1;
        if !problems.is_empty() {
            self.failures.push(format!("{name}: {}", problems.join("; ")));
        }
        self.captures.add(capture);
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("interop skipped: it needs Linux");
}
