//! Results of a measurement, as a table and as a scenario.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek};

use crate::orders::{Measured, Observation};

/// Least queue of a scenario in seconds: a link needs room for a few packets.
const LEAST_QUEUE: f64 = 0.005;
/// Share of losses from which a scenario has it (this project): a probe sends some thousand segments.
const LEAST_LOSS: f64 = 0.0005;

/// Read the results of all uplinks.
///
/// # Errors
/// If the file is not one of results.
pub(crate) fn read(mut file: File) -> io::Result<Vec<Measured>> {
    file.rewind()?;
    BufReader::new(file).lines().map(|line| Ok(serde_json::from_str(&line?)?)).collect()
}

/// The results in at most 80 columns.
pub(crate) fn table(interfaces: &[String], measured: &[Measured]) -> String {
    let mut text = format!(
        "{:<15}  {:>11}  {:>9}  {:>8}  {:>10}  {:>8}  {:>5}\n",
        "uplink", "down Mbit/s", "up Mbit/s", "delay ms", "queue down", "queue up", "loss"
    );
    for (interface, measured) in interfaces.iter().zip(measured) {
        let _ = match measured {
            Measured::Links { down, up } => writeln!(
                text,
                "{interface:<15}  {:>11.2}  {:>9.2}  {:>8.1}  {:>7.0} ms  {:>5.0} ms  {:>5}",
                down.rate * 1e-6,
                up.rate * 1e-6,
                1e3 * delay(down, up),
                1e3 * down.queue,
                1e3 * up.queue,
                down.loss.map_or("–".to_owned(), |loss| format!("{:.1}%", 100.0 * loss)),
            ),
            Measured::Problem(problem) => writeln!(text, "{interface:<15}  {problem}"),
        };
    }
    text
}

/// One-way delay in seconds: a half of the smallest round-trip time.
fn delay(down: &Observation, up: &Observation) -> f64 {
    down.min_rtt.min(up.min_rtt) / 2.0
}

/// A scenario with the uplinks as paths.
pub(crate) fn scenario(interfaces: &[String], measured: &[Measured]) -> String {
    let mut text =
        "# Uplinks as anabranch proxy measure has seen them. The forward direction is the \
                    download.\n#\n#   anabranch advise FILE\n\nname = \"uplinks\"\n\
                    duration = \"60s\"\nwarm_up = \"5s\"\n"
            .to_owned();
    for (interface, measured) in interfaces.iter().zip(measured) {
        let Measured::Links { down, up } = measured else { continue };
        let direction = |seen: &Observation| {
            let (rate, queue) = (seen.rate.round(), 1e3 * seen.queue.max(LEAST_QUEUE));
            format!("rate = \"{rate}bit/s\"\nlimit = \"{queue:.0}ms\"\n")
        };
        let delay = 1e3 * delay(down, up);
        let _ = write!(text, "\n[[path]]\nname = \"{interface}\"\n{}", direction(down));
        let _ = writeln!(text, "delay = \"{delay:.2}ms\" # one way");
        if let Some(loss) = down.loss.filter(|loss| *loss >= LEAST_LOSS) {
            let _ = writeln!(text, "loss = \"{:.2}%\"", 100.0 * loss);
        }
        let _ = write!(text, "[path.reverse]\n{}", direction(up));
    }
    text += "\n[[connection]]\nname = \"download\"\nworkload = { kind = \"bulk\" }\n";
    text
}

#[cfg(test)]
mod tests {
    use anabranch_sim::scenario::Scenario;

    use super::*;

    fn results() -> (Vec<String>, Vec<Measured>) {
        let down = Observation { rate: 8.01e6, min_rtt: 0.0201, queue: 0.08, loss: Some(0.012) };
        let up = Observation { rate: 1.04e9, min_rtt: 0.0203, queue: 0.0001, loss: None };
        let names = ["a-name-of-15-by", "wwan0"].map(str::to_owned).to_vec();
        (names, vec![Measured::Links { down, up }, Measured::Problem("no link".to_owned())])
    }

    #[test]
    fn a_table_has_at_most_80_columns() {
        let (names, measured) = results();
        let table = table(&names, &measured);
        assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
        assert!(table.contains("8.01") && table.contains("1.2%"), "{table}");
        assert!(table.contains("wwan0            no link"), "{table}");
    }

    #[test]
    fn the_simulator_takes_the_scenario() {
        let (names, measured) = results();
        let text = scenario(&names, &measured);
        let scenario = Scenario::from_toml(&text, "uplinks.toml").expect("a scenario");
        assert_eq!(scenario.paths.len(), 1);
        assert!(text.contains("loss = \"1.20%\""), "{text}");
    }
}
