//! Measurements of known links.

use anabranch_sim::scenario::Scenario;
use serde_json::Value;

use crate::cases::{CELLULAR, PORT, RELAY, Result, WIFI, World, require};
use crate::rooms::output;

const BUDGET: f64 = 30e6;

/// Rate, delay and queue of both links are found, and the probes keep to their budget. Only clients with
/// the secret can probe.
pub(crate) fn finds_the_links() -> Result {
    let world = World::new([WIFI, CELLULAR])?;
    let _relay = world.start_relay("")?;
    let out = world.folder.file("uplinks.toml");
    let measure = |secret: &str| {
        let arguments = format!(
            "measure --uplink c1 --uplink c2 --relay {RELAY}:{PORT} --secret-file {secret} \
             --budget 30MB --out {}",
            out.display()
        );
        output(&mut world.proxy(&world.client, &arguments))
    };
    let table = measure(&world.secret())?;
    println!("{table}");
    let carried = carried(&world, "c1")? + carried(&world, "c2")?;
    println!("    {:.1} MB over both links", carried * 1e-6);
    require(carried < BUDGET, format!("{carried} bytes are more than the budget"))?;
    let text = std::fs::read_to_string(&out)?;
    let scenario = Scenario::from_toml(&text, "uplinks.toml")?;
    // Rate in bit/s, one-way delay in ms, queue in ms.
    for (path, [rate, delay, queue]) in
        scenario.paths.iter().zip([[8e6, 10.0, 81.0], [2e6, 75.0, 1998.0]])
    {
        let forward = path.rate.ok_or("a rate")?.as_bits_per_second() as f64;
        let reverse = path.reverse.rate.ok_or("a rate")?.as_bits_per_second() as f64;
        for found in [forward, reverse] {
            require((found / rate - 1.0).abs() < 0.1, format!("{}: {found} bit/s", path.name))?;
        }
        let found = path.delay.as_nanos() as f64 * 1e-6;
        require((found - delay).abs() < 3.0, format!("{}: delay {found} ms", path.name))?;
        let limit = path.limit.to_string();
        let found = anabranch_net::units::parse_duration(&limit)?.as_nanos() as f64 * 1e-6;
        require((0.6..1.3).contains(&(found / queue)), format!("{}: queue {limit}", path.name))?;
    }
    let wrong = world.folder.file("wrong");
    std::fs::copy(world.folder.file("secret"), &wrong)?;
    std::fs::write(&wrong, "another secret with enough characters")?;
    let refused = measure(&wrong.display().to_string());
    require(refused.is_err_and(|error| error.to_string().contains("exit status: 1")), "refused")
}

/// Bytes in both directions over an interface of the client.
fn carried(world: &World, interface: &str) -> Result<f64> {
    let text = world.client.run(&format!("ip -j -s link show dev {interface}"))?;
    let all: Value = serde_json::from_str(&text)?;
    let of = |direction: &str| all[0]["stats64"][direction]["bytes"].as_f64().unwrap_or(f64::MAX);
    Ok(of("rx") + of("tx"))
}
