//! Draws a scenario from a seed: topology, policies, middleboxes, faults and workload.
//!
//! All temporary disturbances end by [`CALM_AT`], or by [`OPEN_AT`] if a window stays closed. Only
//! middleboxes that act on each segment may continue. A connection that can complete at all
//! therefore completes before the end of the run.

use std::fmt::Write;

use anabranch_config::{Description, Selection, WrittenSelection, named};
use anabranch_net::Discipline;
use anabranch_net::rng::{Draws, stream_seed};
use anabranch_proto::congestion::CongestionControlConfig;
use anabranch_proto::path_manager::PathManagerConfig;
use anabranch_proto::platform::PlatformConfig;
use anabranch_proto::remedy::RemedyConfig;
use anabranch_proto::scheduler::SchedulerConfig;

/// Virtual seconds after which no path changes.
pub(crate) const CALM_AT: u64 = 20;
/// Virtual seconds after which no window stays closed. It exceeds the duration of 15 consecutive
/// timeouts: 924 s if the first timeout is 200 ms.
pub(crate) const OPEN_AT: u64 = 1300;
/// Virtual seconds of a run: long enough for two series of 15 consecutive timeouts.
pub(crate) const DURATION: u64 = 3000;

/// A sequence of random numbers.
pub(crate) struct Dice {
    draws: Draws,
    drawn: u64,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Dice { draws: Draws::new(stream_seed(seed, "soak")), drawn: 0 }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.drawn += 1;
        self.draws.bits(self.drawn) % n
    }

    /// True with probability 1/`n`.
    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[self.below(from.len() as u64) as usize]
    }

    /// The name of one of these entries.
    fn named(&mut self, from: &[Description]) -> &'static str {
        from[self.below(from.len() as u64) as usize].name
    }

    /// A number from `least` to `most`, uniform in its logarithm.
    fn spread(&mut self, least: f64, most: f64) -> u64 {
        self.drawn += 1;
        (least * libm::pow(most / least, self.draws.uniform(self.drawn))) as u64
    }
}

/// Facts about a scenario that the check needs in addition to the outcome.
pub(crate) struct SoakScenario {
    pub(crate) toml: String,
    /// A middlebox changes the stream.
    pub(crate) rewrites: bool,
    /// The flows, in the order of the outcome's tables.
    pub(crate) flows: Vec<DrawnFlow>,
}

/// Data of a connection in one direction.
pub(crate) struct DrawnFlow {
    /// Number of the connection.
    pub(crate) connection: u64,
    /// Bytes to transfer.
    pub(crate) size: u64,
    /// The hosts use keep-alive.
    pub(crate) keep_alive: bool,
    /// The hosts request DSS checksums.
    pub(crate) checksums: bool,
    /// The connection may end with an error.
    pub(crate) may_fail: bool,
}

/// The scenario of `seed`.
pub(crate) fn scenario(seed: u64) -> SoakScenario {
    let mut dice = Dice::new(seed);
    let mut toml =
        format!("name = \"soak-{seed}\"\nduration = \"{DURATION}s\"\nsample_interval = \"100s\"\n");
    let paths = dice.between(1, 3);
    let families = dice.pick(&["IPv4", "IPv4", "IPv4", "IPv4", "IPv6", "mixed"]);
    let mixed = families == "mixed";
    let mut boxes = Boxes::default();
    for index in 0..paths {
        let ipv6 = families == "IPv6" || mixed && index % 2 == 1;
        path(&mut dice, &mut toml, &mut boxes, index, (ipv6, !mixed));
    }
    let rewrites = boxes.rewrite;
    let mut drawn = SoakScenario { toml, rewrites, flows: Vec::new() };
    for index in 0..dice.between(1, 2) {
        connection(&mut dice, &mut drawn, &boxes, index, mixed);
    }
    if dice.one_in(8) {
        let rate = dice.spread(50.0, 2_000.0);
        let _ = write!(
            drawn.toml,
            "[[cross_traffic]]\npath = \"p0\"\nrate = \"{rate}kbit/s\"\n\
             on = {{ kind = \"exponential\", mean = \"200ms\" }}\noff = \"10s\"\n"
        );
    }
    drawn
}

/// Effects of the middleboxes that matter for the rest of the scenario.
#[derive(Default)]
struct Boxes {
    /// A middlebox changes the stream.
    rewrite: bool,
    /// A middlebox forgets connections, so a host may lose its peer.
    forget: bool,
    /// Something may end a connection with an error: a middlebox that strips options, changes data
    /// or acknowledges data, or an interface that goes down.
    harm: bool,
    /// There is a middlebox.
    any: bool,
    /// Paths may lead to different addresses of the server.
    several_addresses: bool,
    /// A path leads via another, which may be a black hole for large packets.
    narrow: bool,
    /// A middlebox takes over retransmissions. It does not know of path MTUs, so large segments that it
    /// has acknowledged would be lost behind it.
    proxy: bool,
}

fn path(
    dice: &mut Dice,
    toml: &mut String,
    boxes: &mut Boxes,
    index: u64,
    (ipv6, may_share): (bool, bool),
) {
    let (rate, delay) = (dice.spread(500.0, 50_000.0), dice.spread(100.0, 300_000.0));
    let limit = dice.spread(2.0, 300.0);
    let _ = write!(
        toml,
        "[[path]]\nname = \"p{index}\"\nrate = \"{rate}kbit/s\"\ndelay = \"{delay}us\"\n\
         limit = \"{limit}packets\"\n"
    );
    if dice.one_in(3) {
        let (jitter, model) = (dice.spread(100.0, 200_000.0), dice.pick(&["fifo", "reordering"]));
        let _ = write!(toml, "jitter = \"{jitter}us\"\njitter_model = \"{model}\"\n");
    }
    if dice.one_in(3) {
        let _ = writeln!(toml, "loss = \"{}%\"", dice.pick(&["0.1", "1", "3", "8"]));
    }
    if ipv6 {
        toml.push_str("family = \"ipv6\"\n");
    }
    let _ = writeln!(toml, "mtu = \"{}B\"", dice.pick(&["1500", "1500", "1500", "1280", "9000"]));
    // Links that take smaller packets than the hosts send. Without answers, they are black holes.
    if dice.one_in(4) {
        toml.push_str("icmp = false\n");
    }
    if index > 0 && may_share && !boxes.proxy && dice.one_in(4) {
        let _ = writeln!(toml, "via = \"p{}\"", dice.below(index));
        boxes.narrow = true;
    }
    let is_routed = routing(dice, toml, boxes, index);
    if dice.one_in(4) {
        let kind = dice.named(&Discipline::ALL[1..]);
        let _ = writeln!(toml, "queue = {{ kind = \"{kind}\" }}");
    }
    if dice.one_in(8) {
        toml.push_str(
            "burst_loss = { to_bad = \"1%\", to_good = \"20%\", loss_in_bad = \"50%\" }\n",
        );
    }
    if dice.one_in(4) {
        let (rate, loss) = (dice.spread(500.0, 20_000.0), dice.pick(&["0", "1", "5"]));
        let _ = writeln!(toml, "reverse = {{ rate = \"{rate}kbit/s\", loss = \"{loss}%\" }}");
    }
    let count = [0, 0, 0, 0, 1, 1, 1, 2][dice.below(8) as usize];
    for _ in 0..if is_routed { 0 } else { count } {
        middlebox(dice, toml, boxes);
        boxes.any = true;
    }
    changes(dice, toml, boxes);
}

/// Draws the server's addresses and the egress of a path. Returns `true` if it has an egress. Neither
/// path then has a middlebox, because one that sees half of a connection may break it.
fn routing(dice: &mut Dice, toml: &mut String, boxes: &mut Boxes, index: u64) -> bool {
    let addresses = dice.pick(&["1", "1", "1", "1", "1", "1, 2", "2, 1", "2"]);
    let _ = writeln!(toml, "routing.server_addresses = [{addresses}]");
    boxes.several_addresses |= addresses != "1";
    if index == 0 || boxes.any || !dice.one_in(6) {
        return false;
    }
    let host = dice.pick(&["client", "server"]);
    let _ = writeln!(toml, "routing.{host}_egress = \"p{}\"", dice.below(index));
    boxes.narrow = true;
    true
}

/// Outages and other changes, which all end by [`CALM_AT`].
fn changes(dice: &mut Dice, toml: &mut String, boxes: &mut Boxes) {
    let calm = CALM_AT * 1000;
    let mut at = dice.between(10, 3_000);
    for _ in 0..dice.between(0, 3) {
        let until = (at + dice.spread(20.0, 15_000.0)).min(calm - 1);
        if at >= until {
            break;
        }
        let (begin, end, more) = match dice.below(4) {
            0 => ("state = \"down\"", "state = \"up\"", "noticed = true\n"),
            1 => ("state = \"suspend\"", "state = \"resume\"", ""),
            2 => ("loss = \"40%\"", "loss = \"0%\"", ""),
            _ => ("state = \"down\"", "state = \"up\"", ""),
        };
        boxes.harm |= !more.is_empty();
        let one_way = more.is_empty() && dice.one_in(4);
        let applies = if one_way { "applies_to = \"reverse\"\n" } else { "" };
        let _ = write!(
            toml,
            "[[path.change]]\nat = \"{at}ms\"\n{begin}\n{more}{applies}\
             [[path.change]]\nat = \"{until}ms\"\n{end}\n{more}{applies}"
        );
        at = until + dice.between(10, 5_000);
    }
}

fn middlebox(dice: &mut Dice, toml: &mut String, boxes: &mut Boxes) {
    toml.push_str("[[path.middlebox]]\n");
    let calm = CALM_AT * 1000;
    match dice.below(14) {
        0 | 1 => {
            boxes.harm = true;
            let options = dice.pick(&["mptcp", "mptcp", "dss", "mp_join", "unknown"]);
            let segments = dice.pick(&["syn", "syn_ack", "third_ack", "data", "ack", "all"]);
            let all = segments == "all";
            let _ = writeln!(toml, "kind = \"strip_options\"\noptions = [\"{options}\"]");
            if !all {
                let _ = writeln!(toml, "segments = [\"{segments}\"]");
            }
            if dice.one_in(2) {
                let _ = writeln!(toml, "after_packets = {}", dice.between(1, 60));
            }
            one_side(dice, toml);
            if dice.one_in(3) {
                let _ = writeln!(toml, "until = \"{}ms\"", dice.between(100, calm));
            }
        }
        2 => {
            toml.push_str("kind = \"nat\"\n");
            if dice.one_in(2) {
                (boxes.forget, boxes.harm) = (true, true);
                let _ = writeln!(toml, "rebind_at = \"{}ms\"", dice.between(100, calm));
            }
        }
        3 => toml.push_str("kind = \"rewrite_isn\"\n"),
        4 => {
            let on = dice.pick(&["all", "first"]);
            boxes.harm |= on == "first";
            let size = dice.between(100, 1200);
            let _ = writeln!(
                toml,
                "kind = \"split_segments\"\nsize = \"{size}B\"\noptions_on = \"{on}\""
            );
        }
        5 => {
            boxes.harm = true;
            toml.push_str("kind = \"coalesce\"\n");
        }
        6 => {
            let change = dice.pick(&["replace", "insert", "remove"]);
            let (bytes, at) = (dice.between(1, 40), dice.spread(1.0, 500_000.0));
            let _ = write!(
                toml,
                "kind = \"rewrite_payload\"\nchange = \"{change}\"\nbytes = {bytes}\n\
                 at = \"{at}B\"\n"
            );
            (boxes.rewrite, boxes.harm) = (true, true);
        }
        7 => {
            if boxes.narrow {
                toml.push_str("kind = \"clamp_mss\"\n");
                return;
            }
            (boxes.harm, boxes.proxy) = (true, true);
            toml.push_str("kind = \"proactive_ack\"\n");
        }
        8 => {
            let kind = dice.pick(&["normalise", "hole_refusal"]);
            let _ = writeln!(toml, "kind = \"{kind}\"");
        }
        9 | 10 => shrink_window(dice, toml),
        11 | 12 => bare_segments(dice, toml),
        _ => {
            let syns = dice.pick(&["mptcp", "all"]);
            let until = dice.between(100, 5_000);
            let _ = write!(
                toml,
                "kind = \"blackhole_options\"\nsyns = \"{syns}\"\nuntil = \"{until}ms\"\n"
            );
        }
    }
}

fn shrink_window(dice: &mut Dice, toml: &mut String) {
    let to = dice.pick(&["0", "0", "1", "600", "3000", "20000"]);
    let shut = dice.one_in(8);
    let (every, lasts) = (dice.spread(10.0, 3_000.0), dice.spread(2.0, 3_000.0));
    let (lasts, until) = match shut {
        // The first small window starts at half of the mean interval or later.
        true => (2_000 * OPEN_AT, 1_000 * OPEN_AT),
        false => (lasts, dice.between(100, 1_000 * CALM_AT)),
    };
    let _ = write!(
        toml,
        "kind = \"shrink_window\"\nto = \"{to}B\"\nevery = \"{every}ms\"\nfor = \"{lasts}ms\"\n\
         until = \"{until}ms\"\nrefuse = {}\n",
        dice.one_in(2)
    );
    one_side(dice, toml);
}

fn bare_segments(dice: &mut Dice, toml: &mut String) {
    let probability = dice.pick(&["1", "10", "50", "100"]);
    let _ = writeln!(toml, "kind = \"bare_segments\"\nprobability = \"{probability}%\"");
    one_side(dice, toml);
}

/// With probability 1/3, limit the middlebox to one direction.
fn one_side(dice: &mut Dice, toml: &mut String) {
    if dice.one_in(3) {
        let side = dice.pick(&["forward", "reverse"]);
        let _ = writeln!(toml, "applies_to = \"{side}\"");
    }
}

/// A parameter of a host, with its value.
fn choice(name: &str, value: &str) -> String {
    format!(", {name} = \"{value}\"")
}

/// A platform, with a random choice for each parameter that has a list of choices and applies with the
/// choices before.
fn host(dice: &mut Dice) -> String {
    let all = PlatformConfig::READERS;
    let platform = &all[dice.below(all.len() as u64) as usize];
    let mut host = format!("{{ kind = \"{}\"", platform.description.name);
    for parameter in (platform.parameters)() {
        let names = parameter.choices();
        let needed = parameter.only_with.as_ref().map(|(name, value)| choice(name, value));
        if !names.is_empty() && needed.is_none_or(|needed| host.contains(&needed)) {
            host += &choice(parameter.name, dice.pick(&names));
        }
    }
    host + " }"
}

fn connection(dice: &mut Dice, drawn: &mut SoakScenario, boxes: &Boxes, index: u64, mixed: bool) {
    let size = dice.spread(100.0, 1_500_000.0);
    let checksum = dice.one_in(2);
    let tcp = dice.one_in(12);
    let direction = dice.pick(&["upload", "download", "both"]);
    let (send, receive) = (dice.spread(8_000.0, 2e6), dice.spread(8_000.0, 2e6));
    let late_fallback = dice.one_in(2);
    let toml = &mut drawn.toml;
    let _ = write!(
        toml,
        "[[connection]]\ndirection = \"{direction}\"\nstart = \"{}ms\"\n\
         send_buffer = \"{send}B\"\nreceive_buffer = \"{receive}B\"\nhost = {}\n",
        index * dice.between(0, 3_000),
        host(dice),
    );
    let (mut path_manager, mut limited) = ("", false);
    if tcp {
        toml.push_str("protocol = \"tcp\"\n");
    } else {
        path_manager = multipath(dice, toml, mixed || boxes.several_addresses);
        // Hosts that keep few subflows may have none left, or no way to a second address.
        if dice.one_in(8) {
            limited = true;
            let (subflows, addresses) = (dice.below(4), dice.below(3));
            let _ = writeln!(
                toml,
                "limits = {{ subflows = {subflows}, add_addr_accepted = {addresses} }}"
            );
        }
        let _ = writeln!(toml, "dss_checksum = {checksum}\nlate_fallback = {late_fallback}");
    }
    let no_joins = !tcp && dice.one_in(12);
    if no_joins {
        toml.push_str("allow_join_initial_addr_port = false\n");
    }
    // A host that only receives does not notice that its peer has vanished, unless keep-alive is
    // on: RFC 9293 §3.8.4.
    let keep_alive = boxes.forget || no_joins || dice.one_in(3);
    if keep_alive {
        toml.push_str("keep_alive = \"60s\"\n");
    }
    let _ = writeln!(toml, "ecn = {}", dice.one_in(3));
    let probing = dice.pick(&["off", "on_black_hole", "always"]);
    let _ = writeln!(toml, "mtu_probing = \"{probing}\"");
    let _ = writeln!(toml, "pacing = {}", dice.one_in(6));
    // Some hosts without SACK, some without timestamps, and some without both.
    let _ = writeln!(toml, "sack = {}\ntimestamps = {}", !dice.one_in(4), !dice.one_in(4));
    let _ = writeln!(toml, "workload = {{ kind = \"bulk\", size = \"{size}B\" }}");
    // A path manager that opens no further subflow cannot replace one that has failed. In a black
    // hole, a search must have the time to find what passes.
    let black_hole = boxes.narrow && (probing == "off" || path_manager == "single_path");
    let may_fail = boxes.harm || black_hole || limited || path_manager == "initial_only";
    // Data that goes both ways is two flows.
    for _ in 0..if direction == "both" { 2 } else { 1 } {
        drawn.flows.push(DrawnFlow {
            connection: index,
            size,
            keep_alive,
            checksums: checksum && !tcp,
            may_fail,
        });
    }
}

/// Draws the policies of a connection. Returns the name of its path manager.
fn multipath(dice: &mut Dice, toml: &mut String, several_destinations: bool) -> &'static str {
    let scheduler = dice.named(SchedulerConfig::ALL);
    let congestion_control = dice.named(CongestionControlConfig::ALL);
    // Most connections should use all paths.
    let fits = |each: &&Description| {
        let config: PathManagerConfig = named(each.name).expect("it needs no parameters");
        !several_destinations || config.part().heeds_announcements()
    };
    let fit = PathManagerConfig::ALL.iter().filter(fits);
    let fit: Vec<&'static str> = fit.map(|each| each.name).collect();
    let by_default = PathManagerConfig::default().name();
    let path_manager = if dice.one_in(2) { by_default } else { dice.pick(&fit) };
    let remedies = RemedyConfig::ALL.iter().filter(|_| dice.one_in(4));
    let remedies: Vec<String> = remedies.map(|each| format!("{} = true", each.name)).collect();
    let remedies = remedies.join(", ");
    let _ = write!(
        toml,
        "scheduler = \"{scheduler}\"\ncongestion_control = \"{congestion_control}\"\n\
         path_manager = \"{path_manager}\"\nremedies = {{ {remedies} }}\nnagle = {}\n",
        dice.one_in(2),
    );
    path_manager
}
