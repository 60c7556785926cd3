//! Compare the engine's throughput over TUN with that of a bare copy between two TUN devices.
//!
//! `anabranch-bench-tun [--rounds ROUNDS] [--seconds SECONDS]`

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    println!("bench-tun skipped: it needs Linux");
    ExitCode::SUCCESS
}

#[cfg(target_os = "linux")]
mod linux {
    use std::process::ExitCode;
    use std::time::Duration;

    use anabranch_live::tun_throughput::{Case, Figure, TunRole, measure};

    const USAGE: &str = "usage: anabranch-bench-tun [--rounds ROUNDS] [--seconds SECONDS]";
    const ROLES: [(TunRole, &str); 3] = [
        (TunRole::Copy, "bare copy"),
        (TunRole::EngineReceives, "engine receives"),
        (TunRole::EngineSends, "engine sends"),
    ];

    pub(super) fn main() -> ExitCode {
        let arguments: Vec<String> = std::env::args().collect();
        let Some((rounds, seconds)) = parse(&arguments[1..]) else {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        };
        if !anabranch_live::is_inside() {
            return match anabranch_live::enter(&arguments) {
                Ok(status) => ExitCode::from(status.code().unwrap_or(1) as u8),
                Err(error) => skip(&format!("no network namespaces: {error}")),
            };
        }
        let tun = anabranch_live::probe().into_iter().find(|each| each.name == "TUN");
        if let Some(problem) = tun.and_then(|tun| tun.problem) {
            return skip(&format!("/dev/net/tun: {problem}"));
        }
        // There may be more busy threads than processors: none must have priority over the others.
        anabranch_live::stop_preferring();
        match bench(rounds, Duration::from_secs_f64(seconds)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("anabranch-bench-tun: {error}");
                ExitCode::FAILURE
            }
        }
    }

    fn skip(why: &str) -> ExitCode {
        println!("bench-tun skipped: {why}");
        ExitCode::SUCCESS
    }

    fn parse(arguments: &[String]) -> Option<(usize, f64)> {
        let (mut rounds, mut seconds) = (5, 1.0);
        for pair in arguments.chunks(2) {
            match pair {
                [name, value] if name == "--rounds" => rounds = value.parse().ok()?,
                [name, value] if name == "--seconds" => seconds = value.parse().ok()?,
                _ => return None,
            }
        }
        (rounds > 0 && (0.1..=600.0).contains(&seconds)).then_some((rounds, seconds))
    }

    /// Run all cases in turn, round by round, so that other load affects all of them equally.
    fn bench(rounds: usize, time: Duration) -> std::io::Result<()> {
        println!(
            "{rounds} rounds of {:.1} s each; medians, and ratios round by round",
            time.as_secs_f64()
        );
        println!(
            "{:<8}{:<10}{:<17}{:>8}{:>14}{:>8}{:>22}{:>15}{:>14}",
            "offload",
            "protocol",
            "",
            "Gbit/s",
            "Gbit/CPU s",
            "ratio",
            "(least to most)",
            "ratio per CPU",
            "bytes/frame"
        );
        for (offload, mptcp) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut figures: [Vec<Figure>; 3] = Default::default();
            for _ in 0..rounds {
                for ((role, _), figures) in ROLES.iter().zip(&mut figures) {
                    figures.push(measure(Case { role: *role, mptcp, offload }, time)?);
                }
            }
            report(offload, mptcp, &figures);
        }
        Ok(())
    }

    fn report(offload: bool, mptcp: bool, figures: &[Vec<Figure>; 3]) {
        let copies = &figures[0];
        for ((_, name), figures) in ROLES.iter().zip(figures) {
            let ratio = |of: fn(&Figure) -> f64| {
                sorted(figures.iter().zip(copies).map(|(each, copy)| of(each) / of(copy)))
            };
            let (wall, cpu) = (ratio(Figure::gbit_per_s), ratio(Figure::gbit_per_cpu_s));
            println!(
                "{:<8}{:<10}{:<17}{:>8.2}{:>14.2}{:>8.2}{:>22}{:>15.2}{:>14.0}",
                if offload { "yes" } else { "no" },
                if mptcp { "MPTCP" } else { "TCP" },
                name,
                median(&sorted(figures.iter().map(Figure::gbit_per_s))),
                median(&sorted(figures.iter().map(Figure::gbit_per_cpu_s))),
                median(&wall),
                format!("({:.2} to {:.2})", wall[0], wall[wall.len() - 1]),
                median(&cpu),
                median(&sorted(figures.iter().map(|each| each.bytes as f64 / each.frames as f64))),
            );
        }
    }

    fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        values
    }

    fn median(sorted: &[f64]) -> f64 {
        let middle = sorted.len() / 2;
        if sorted.len().is_multiple_of(2) {
            (sorted[middle - 1] + sorted[middle]) / 2.0
        } else {
            sorted[middle]
        }
    }
}
