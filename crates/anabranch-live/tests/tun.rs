//! The engine and this kernel at the two ends of a TUN device, for a short time in each direction.
//! Every byte is compared. A host that does not support this skips the test and reports the reason.

#[cfg(target_os = "linux")]
fn main() {
    use std::process::exit;
    use std::time::Duration;

    use anabranch_live::tun_throughput::{Case, Role, measure};

    let arguments: Vec<String> = std::env::args().collect();
    if !anabranch_live::is_inside() {
        match anabranch_live::enter(&arguments) {
            Ok(status) => exit(status.code().unwrap_or(1)),
            Err(error) => return println!("tun skipped: no network namespaces: {error}"),
        }
    }
    let needed = |name: &str| ["namespaces", "iproute2", "Multipath TCP", "TUN"].contains(&name);
    let missing: Vec<_> = anabranch_live::probe()
        .into_iter()
        .filter_map(|each| Some((each.name, each.problem?)))
        .filter(|(name, _)| needed(name))
        .collect();
    if !missing.is_empty() {
        return println!("tun skipped: {missing:?}");
    }
    anabranch_live::stop_preferring();
    let mut failed = 0;
    for role in [Role::Copy, Role::EngineReceives, Role::EngineSends] {
        for (mptcp, offload) in [(false, false), (false, true), (true, false), (true, true)] {
            let case = Case { role, mptcp, offload };
            let figure = measure(case, Duration::from_millis(100));
            // Headers have at least 40 bytes, which leaves 1460 bytes of an MTU of 1500. Even a
            // busy machine sends some megabytes in this time.
            let ok = figure.as_ref().is_ok_and(|figure| {
                let mean = figure.bytes / figure.frames.max(1);
                figure.bytes > 100_000 && (mean > 1460) == offload
            });
            println!("{case:?} ... {}", if ok { "ok".to_owned() } else { format!("{figure:?}") });
            failed += i32::from(!ok);
        }
    }
    exit(failed.min(1));
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("tun skipped: it needs Linux");
}
