//! Shapers in scenarios.

use anabranch_net::shaper::{DummynetConfig, MininetConfig, TbfConfig};
use anabranch_net::units::ByteCount;
use anabranch_net::{JitterModel, ShaperConfig};
use anabranch_wire::Duration;

use super::tests::read;
use super::{Path, Scenario};

/// A path with these further keys.
fn text(limit: &str, keys: &str) -> String {
    format!(
        "name = \"shaped\"\nduration = \"1s\"\n\
         [[path]]\nname = \"wifi\"\ndelay = \"10ms\"\nlimit = {limit:?}\n{keys}\n\
         [[connection]]\nworkload = {{ kind = \"bulk\" }}\n"
    )
}

fn path(limit: &str, keys: &str) -> Path {
    let scenario = read(&text(limit, &format!("rate = \"8Mbit/s\"\n{keys}")));
    assert_eq!(read(&scenario.to_toml()), scenario);
    scenario.paths[0].clone()
}

/// The error message without its location.
fn error(limit: &str, keys: &str) -> String {
    let error = Scenario::from_toml(&text(limit, keys), "shaped.toml").unwrap_err().to_string();
    error.strip_prefix("shaped.toml: path[0].").expect("the place").to_owned()
}

#[test]
fn a_shaper_is_a_name_or_a_table() {
    let plain = path("54packets", "");
    assert_eq!(plain.shaper, ShaperConfig::default());
    assert_eq!(path("54packets", "shaper = \"plain\""), plain);
    let tbf = path("100kB", "shaper = { kind = \"tbf\", burst = \"5kB\" }");
    assert_eq!(tbf.shaper, TbfConfig { burst: ByteCount::new(5_000) }.into());
    assert_eq!(tbf.reverse_link().shaper, tbf.shaper);
    let dummynet = path("50packets", "shaper = { kind = \"dummynet\", tick = \"100us\" }");
    assert_eq!(dummynet.shaper, DummynetConfig { tick: Duration::from_micros(100) }.into());
}

#[test]
fn mininet_applies_jitter_and_loss_to_both_directions() {
    let jittery = "shaper = \"mininet\"\njitter = \"4ms\"\nloss = \"1%\"";
    let link = path("100packets", jittery).reverse_link();
    assert_eq!(link.shaper, MininetConfig {}.into());
    assert_eq!((link.jitter, link.loss), (Duration::from_millis(4), "1%".parse().unwrap()));
    assert_eq!(link.jitter_model, JitterModel::Reordering);
    let link = path("100packets", &format!("{jittery}\nreverse.jitter = \"0s\"")).reverse_link();
    assert_eq!((link.jitter, link.loss), (Duration::ZERO, "1%".parse().unwrap()));
    let link = path("100packets", &jittery.replace("mininet", "netem")).reverse_link();
    assert_eq!((link.jitter, link.loss), (Duration::ZERO, "0%".parse().unwrap()));
    assert_eq!(link.jitter_model, JitterModel::Fifo);
}

#[test]
fn what_a_tool_cannot_make_is_explained() {
    let problems = [
        (
            "80ms",
            "rate = \"8Mbit/s\"\nshaper = \"mininet\"",
            "limit: \"80ms\": shaper = \"mininet\" counts packets; write a limit such as \
             \"100packets\"",
        ),
        (
            "54packets",
            "rate = \"8Mbit/s\"\nshaper = \"netem\"\nreverse.limit = \"1MB\"",
            "reverse.limit: \"1MB\": shaper = \"netem\" counts packets; write a limit such as \
             \"100packets\"",
        ),
        (
            "54packets",
            "rate = \"8Mbit/s\"\nshaper = \"tbf\"",
            "limit: \"54packets\": shaper = \"tbf\" counts bytes; write a limit such as \"100kB\" \
             or \"80ms\"",
        ),
        (
            "80ms",
            "rate = \"8Mbit/s\"\nshaper = { kind = \"tbf\", burst = \"1500B\" }",
            "shaper.burst: \"1500B\": must be between 1514B, an Ethernet frame with the path's MTU, \
             and 1GB",
        ),
        (
            "54packets",
            "rate = \"8Mbit/s\"\nshaper = \"netem\"\njitter_model = \"reordering\"",
            "jitter_model: \"reordering\": shaper = \"netem\" keeps packets in order; remove this key",
        ),
        (
            "54packets",
            "rate = \"8Mbit/s\"\nshaper = \"dummynet\"\nqueue = { kind = \"codel\" }",
            "queue: kind = \"codel\": shaper = \"dummynet\" has a queue of its own; remove this key, \
             or the shaper",
        ),
        (
            "54packets",
            "trace = { milliseconds = \"0 3\" }\nshaper = \"mininet\"",
            "trace: shaper = \"mininet\" needs a rate; write rate, or remove the shaper",
        ),
        (
            "54packets",
            "rate = \"8Mbit/s\"\nshaper = { kind = \"dummynet\", tick = \"0s\" }",
            "shaper.tick: \"0s\": must be longer than zero",
        ),
        (
            "54packets",
            "rate = \"8Mbit/s\"\nshaper = { kind = \"netem\", burst = \"9kB\" }",
            "shaper.burst: belongs to kind = \"tbf\"; remove it, or write that kind",
        ),
        (
            "54packets",
            "rate = \"8Mbit/s\"\nshaper = \"mininett\"",
            "shaper: unknown shaper \"mininett\"; did you mean \"mininet\"? (valid: plain, mininet, \
             netem, tbf, dummynet)",
        ),
    ];
    for (limit, keys, problem) in problems {
        assert_eq!(error(limit, keys), problem);
    }
}
