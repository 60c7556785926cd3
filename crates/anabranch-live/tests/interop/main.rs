//! The engine against this kernel, in both roles, over emulated links in real time.
//!
//! Judges: every octet that an application reads; the kernel's own counters, of which no one that
//! counts errors may move; the engine's; and tshark, which must find no malformed packet. A host
//! that does not allow it skips all, and says why.

#[cfg(target_os = "linux")]
mod cases;
#[cfg(target_os = "linux")]
mod judge;

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
    let missing: Vec<_> = anabranch_live::probe()
        .into_iter()
        .filter(|each| each.required || each.name == "ip mptcp")
        .filter_map(|each| Some(format!("{}: {}", each.name, each.problem?)))
        .collect();
    if !missing.is_empty() {
        return println!("interop skipped: {}", missing.join("; "));
    }
    let wanted: Vec<_> = arguments[1..].iter().filter(|each| !each.starts_with('-')).collect();
    let mut captures = judge::Captures::new();
    let mut failed = 0;
    for case in cases::all() {
        if wanted.iter().any(|wanted| !case.name.contains(wanted.as_str())) {
            continue;
        }
        let problems = judge::run(&case, &mut captures);
        println!("{} ... {}", case.name, if problems.is_empty() { "ok" } else { "FAILED" });
        problems.iter().for_each(|problem| println!("    {problem}"));
        failed += usize::from(!problems.is_empty());
    }
    for problem in captures.judge() {
        println!("{problem}");
        failed += 1;
    }
    println!("interop: {failed} failed");
    exit(i32::from(failed > 0));
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("interop skipped: it needs Linux");
}
