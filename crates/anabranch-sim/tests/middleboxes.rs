//! What connections make of middleboxes: each box, in each phase that it can act in.
//! RFC 8684 §3.7; Raiciu et al., NSDI 2012; Honda et al., IMC 2011; Hesmans et al., HotMiddlebox 2013.

mod common;

use anabranch_sim::Outcome;
use common::{column, run};

/// Octets that a connection carries.
const OCTETS: u64 = 500_000;

/// Where the boxes stand.
#[derive(Clone, Copy, Debug)]
enum Place {
    OnlyPath,
    FirstOfTwo,
    SecondOfTwo,
    BothPaths,
}

const PLACES: [Place; 4] =
    [Place::OnlyPath, Place::FirstOfTwo, Place::SecondOfTwo, Place::BothPaths];

fn scenario(boxes: &str, place: Place, direction: &str, family: &str) -> String {
    let path = |name: &str, rate: &str, delay: &str, has_boxes: bool| {
        let boxes = if has_boxes { boxes } else { "" };
        format!(
            "[[path]]\nname = \"{name}\"\nrate = \"{rate}\"\ndelay = \"{delay}\"\n\
             limit = \"50packets\"\nloss = \"0.5%\"\nfamily = \"{family}\"\n{boxes}\n\
             [path.reverse]\nloss = \"0.5%\"\n"
        )
    };
    let first = path("first", "10Mbit/s", "10ms", !matches!(place, Place::SecondOfTwo));
    let second = match place {
        Place::OnlyPath => String::new(),
        _ => path("second", "5Mbit/s", "30ms", !matches!(place, Place::FirstOfTwo)),
    };
    format!(
        "name = \"box\"\nduration = \"60s\"\nsample_interval = \"10s\"\n{first}{second}\
         [[connection]]\n{}\ndirection = \"{direction}\"\n\
         send_buffer = \"200kB\"\nreceive_buffer = \"200kB\"\n\
         workload = {{ kind = \"bulk\", size = \"{OCTETS}B\" }}\n",
        std::env::var("KEYS").unwrap_or_default()
    )
}

fn strip(options: &str, segments: &str, more: &str) -> String {
    format!(
        "[[path.middlebox]]\nkind = \"strip_options\"\noptions = [\"{options}\"]\nsegments = [{segments}]\n{more}\n"
    )
}

fn summary(outcome: &Outcome) -> String {
    let one = |name| column(outcome, "connections", name)[0];
    let mut carried = [0; 2];
    for (path, octets) in column(outcome, "subflows", "path").iter().zip(column(
        outcome,
        "subflows",
        "octets_received",
    )) {
        carried[*path as usize] += octets;
    }
    let last = column(outcome, "connection_samples", "time_ns").len();
    format!(
        "{}{}{}{} {:?} {last}",
        if one("is_mptcp") == 1 { "M" } else { "T" },
        if one("completed") == 1 { "" } else { " INCOMPLETE" },
        if one("failed") == 1 { " failed" } else { "" },
        if one("corrupt_octets") > 0 { " CORRUPT" } else { "" },
        carried.map(|octets| octets > 10_000),
    )
}

#[test]
fn explore() {
    let kind = |text: &str| format!("[[path.middlebox]]\nkind = {text}\n");
    let rows: Vec<(String, String)> = vec![
        ("nothing".into(), String::new()),
        (
            "strip mptcp all".into(),
            strip("mptcp", "\"syn\", \"syn_ack\", \"third_ack\", \"data\", \"ack\"", ""),
        ),
        (
            "strip unknown all".into(),
            strip("unknown", "\"syn\", \"syn_ack\", \"third_ack\", \"data\", \"ack\"", ""),
        ),
        ("strip mptcp syn".into(), strip("mptcp", "\"syn\"", "")),
        ("strip mptcp syn_ack".into(), strip("mptcp", "\"syn_ack\"", "")),
        ("strip mptcp third".into(), strip("mptcp", "\"third_ack\"", "")),
        ("strip mptcp data".into(), strip("mptcp", "\"data\"", "")),
        ("strip mptcp ack".into(), strip("mptcp", "\"ack\"", "")),
        ("strip mptcp not syn".into(), strip("mptcp", "\"third_ack\", \"data\", \"ack\"", "")),
        ("strip capable data".into(), strip("mp_capable", "\"data\"", "")),
        ("strip join syn".into(), strip("mp_join", "\"syn\"", "")),
        ("strip join syn_ack".into(), strip("mp_join", "\"syn_ack\"", "")),
        ("strip join third".into(), strip("mp_join", "\"third_ack\"", "")),
        ("strip dss all".into(), strip("dss", "\"third_ack\", \"data\", \"ack\"", "")),
        ("strip dss after 60".into(), strip("dss", "\"data\", \"ack\"", "after_packets = 60")),
        ("strip all after 60".into(), strip("mptcp", "\"data\", \"ack\"", "after_packets = 60")),
        ("strip add_addr".into(), strip("add_addr", "\"data\", \"ack\"", "")),
        ("strip dss data fwd".into(), strip("dss", "\"data\"", "applies_to = \"forward\"")),
        ("nat".into(), kind("\"nat\"")),
        ("nat rebind".into(), kind("\"nat\"\nrebind_at = \"300ms\"")),
        ("nat off".into(), kind("\"nat\"\nuntil = \"300ms\"")),
        ("nat on".into(), kind("\"nat\"\nfrom = \"300ms\"")),
        ("nat idle".into(), kind("\"nat\"\nidle_timeout = \"5ms\"")),
        ("isn".into(), kind("\"rewrite_isn\"")),
        ("isn off".into(), kind("\"rewrite_isn\"\nuntil = \"300ms\"")),
        ("split all".into(), kind("\"split_segments\"")),
        ("split first".into(), kind("\"split_segments\"\noptions_on = \"first\"")),
        ("coalesce".into(), kind("\"coalesce\"")),
        ("coalesce big".into(), kind("\"coalesce\"\nsize = \"60kB\"\ndelay = \"5ms\"")),
        (
            "coalesce+split".into(),
            kind(
                "\"coalesce\"\nsize = \"60kB\"\n[[path.middlebox]]\nkind = \"split_segments\"\nsize = \"1400B\"",
            ),
        ),
        ("replace".into(), kind("\"rewrite_payload\"\nchange = \"replace\"\nat = \"100kB\"")),
        ("insert".into(), kind("\"rewrite_payload\"\nchange = \"insert\"\nat = \"100kB\"")),
        ("remove".into(), kind("\"rewrite_payload\"\nchange = \"remove\"\nat = \"100kB\"")),
        ("proactive".into(), kind("\"proactive_ack\"")),
        ("proactive off".into(), kind("\"proactive_ack\"\nuntil = \"300ms\"")),
        ("normalise".into(), kind("\"normalise\"")),
        ("hole".into(), kind("\"hole_refusal\"")),
        ("blackhole".into(), kind("\"blackhole_options\"")),
        ("blackhole join".into(), kind("\"blackhole_options\"\nsyns = \"mp_join\"")),
        ("blackhole all".into(), kind("\"blackhole_options\"\nsyns = \"all\"")),
    ];
    let only = std::env::var("ONLY").unwrap_or_default();
    for (name, boxes) in rows.into_iter().filter(|(name, _)| name.contains(&only)) {
        for place in PLACES {
            let mut seen: Vec<(String, u32)> = Vec::new();
            let started = std::process::id();
            let _ = started;
            for direction in ["download", "upload"] {
                for seed in 0..5 {
                    let family = if seed % 2 == 0 { "ipv4" } else { "ipv6" };
                    let outcome = run(&scenario(&boxes, place, direction, family), seed);
                    let text = format!("{direction} {}", summary(&outcome));
                    let text = text.rsplit_once(' ').map(|(a, _)| a.to_owned()).unwrap();
                    match seen.iter_mut().find(|(t, _)| *t == text) {
                        Some((_, n)) => *n += 1,
                        None => seen.push((text, 1)),
                    }
                }
            }
            println!("{name:20} {place:?}: {seen:?}");
        }
    }
}

#[test]
fn one_run() {
    let Ok(boxes) = std::env::var("BOX") else { return };
    let boxes = format!("[[path.middlebox]]\n{}\n", boxes.replace(';', "\n"));
    let place = match std::env::var("PLACE").unwrap().as_str() {
        "1" => Place::OnlyPath,
        "F" => Place::FirstOfTwo,
        "S" => Place::SecondOfTwo,
        _ => Place::BothPaths,
    };
    let direction = std::env::var("DIRECTION").unwrap();
    let mut file = std::fs::File::create("/tmp/w_mb.pcapng").unwrap();
    let outcome = common::run_with(
        &scenario(&boxes, place, &direction, "ipv4"),
        0,
        anabranch_sim::Options { capture: Some(&mut file), ..Default::default() },
    );
    println!("{}", summary(&outcome));
    for name in
        ["time_ns", "octets_delivered", "out_of_order_octets", "window_room", "unsent_octets"]
    {
        let c = column(&outcome, "connection_samples", name);
        println!("{name}: {:?} .. {:?} ({})", &c[..c.len().min(14)], c.last(), c.len());
    }
    for t in ["connections", "subflows"] {
        for (name, c) in &common::table(&outcome, t).columns {
            println!("{t}.{name}: {c:?}");
        }
    }
}
