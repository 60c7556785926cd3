//! Scenarios: parsing, writing, and errors.

use core::num::NonZeroU64;

use anabranch_net::units::{ByteCount, Probability, QueueLimit, Rate};
use anabranch_net::{JitterModel, LinkChange, ScheduledChange, ShaperConfig, StateChange};
use anabranch_proto::remedy::{PenalisationConfig, PenalisationFormName};

use super::policy_tests::{default_of, path_manager, scheduler};
use super::*;
use crate::workload::{Blocks, Bulk};

pub(super) const SMALLEST: &str = r#"
name = "smallest"
duration = "100s"

[[path]]
name = "wifi"
rate = "8Mbit/s"
delay = "10ms"
limit = "54packets"

[[connection]]
[connection.workload]
kind = "bulk"
"#;

pub(super) const FULL: &str = r#"
name = "wifi-3g"
description = "all keys away from their defaults"
duration = "100s"
warm_up = "5s"
sample_interval = "50ms"

[[path]]
name = "wifi"
rate = "8Mbit/s"
delay = "10ms"
limit = "80ms"
jitter = "2ms"
jitter_model = "reordering"
loss = "0.5%"
mtu = "1400B"
[path.reverse]
rate = "1Mbit/s"
delay = "12ms"
limit = "infinite"
jitter = "1ms"
loss = "1%"
[[path.change]]
at = "10s"
state = "down"
[[path.change]]
at = "20s"
state = "up"
rate = "2Mbit/s"
delay = "40ms"
jitter = "5ms"
loss = "2%"
applies_to = "forward"
[[path.change]]
at = "30s"
state = "suspend"
applies_to = "reverse"

[[path]]
name = "3g"
rate = "2Mbit/s"
delay = "75ms"
limit = "200KiB"

[[connection]]
name = "main"
paths = ["3g", "wifi"]
protocol = "mptcp"
direction = "upload"
start = "1s"
send_buffer = "200KiB"
receive_buffer = "200kB"
congestion_control = "new_reno"
scheduler = "min_rtt"
path_manager = "initial_only"
remedies = { opportunistic_retransmission = true, penalisation = "nsdi12" }
host = "rfc"
nagle = false
keep_alive = "60s"
dss_checksum = true
allow_join_initial_addr_port = false
late_fallback = false
ecn = true
pacing = true
sack = false
timestamps = false
hystart = true
[connection.workload]
kind = "blocks"
block_size = "16KiB"
count = 100

[[connection]]
protocol = "tcp"
paths = ["3g"]
[connection.workload]
kind = "bulk"
size = "16MiB"
"#;

pub(super) fn read(text: &str) -> Scenario {
    Scenario::from_toml(text, "test.toml").unwrap()
}

/// The error for [`FULL`] with `right` replaced by `wrong`.
fn error(right: &str, wrong: &str) -> String {
    assert!(FULL.contains(right), "{right}");
    error_of(&FULL.replacen(right, wrong, 1))
}

pub(super) fn error_of(text: &str) -> String {
    let error = Scenario::from_toml(text, "wifi.toml").unwrap_err().to_string();
    assert_eq!(error.lines().count(), 1);
    error
}

fn congestion_control(name: &str) -> Policy<CongestionControl> {
    CongestionControl::named(name).into()
}

fn rate(text: &str) -> Rate {
    text.parse().unwrap()
}

#[test]
fn what_is_left_out_has_the_documented_defaults() {
    let (delay, limit) = (Duration::from_millis(10), QueueLimit::Packets(54));
    let reverse = Reverse {
        rate: Some(rate("8Mbit/s")),
        trace: None,
        delay: Some(delay),
        limit: Some(limit),
        jitter: Some(Duration::ZERO),
        loss: Some(Probability::ZERO),
        loss_trace: None,
    };
    let path = Path {
        name: "wifi".to_owned(),
        rate: reverse.rate,
        trace: None,
        delay,
        limit,
        jitter: Duration::ZERO,
        loss: Probability::ZERO,
        reverse,
        jitter_model: JitterOrder::Fifo,
        mtu: 1_500,
        icmp: true,
        family: Family::Ipv4,
        burst_loss: None,
        loss_trace: None,
        queue: Queue::default(),
        shaper: ShaperConfig::default(),
        via: Via::default(),
        routing: Routing::default(),
        middleboxes: vec![],
        changes: vec![],
    };
    let connection = Connection {
        name: "connection-1".to_owned(),
        paths: Paths::new(vec![0], std::slice::from_ref(&path)),
        protocol: Protocol::Mptcp,
        direction: Directions::Download,
        start: Duration::ZERO,
        stack: None,
        host: default_of("linux"),
        send_buffer: None,
        receive_buffer: None,
        congestion_control: congestion_control("lia").into(),
        scheduler: scheduler("min_rtt").into(),
        path_manager: path_manager("full_mesh").into(),
        limits: Limits::default(),
        remedies: vec![],
        shared_bottleneck_detection: None,
        nagle: true,
        keep_alive: None,
        dss_checksum: false,
        allow_join_initial_addr_port: true,
        late_fallback: true,
        ecn: false,
        mtu_probing: MtuProbing::default(),
        pacing: false,
        sack: true,
        timestamps: true,
        hystart: false.into(),
        workload: Workload::Bulk(Bulk { size: None }),
    };
    let expected = Scenario {
        name: "smallest".to_owned(),
        description: String::new(),
        duration: Duration::from_secs(100),
        warm_up: Duration::ZERO,
        sample_interval: Duration::from_millis(100),
        paths: vec![path],
        connections: vec![connection],
        cross_traffic: vec![],
    };
    assert_eq!(read(SMALLEST), expected);
}

#[test]
fn every_key_arrives_where_it_belongs() {
    let scenario = read(FULL);
    assert_eq!(scenario.description, "all keys away from their defaults");
    assert_eq!(scenario.warm_up, Duration::from_secs(5));
    assert_eq!(scenario.sample_interval, Duration::from_millis(50));
    let [wifi, third_generation] = &scenario.paths[..] else { panic!("two paths") };
    assert_eq!((wifi.rate, wifi.delay), (Some(rate("8Mbit/s")), Duration::from_millis(10)));
    assert_eq!(wifi.limit, QueueLimit::Time(Duration::from_millis(80)));
    assert_eq!((wifi.jitter, wifi.loss), (Duration::from_millis(2), "0.5%".parse().unwrap()));
    let reverse = Reverse {
        rate: Some(rate("1Mbit/s")),
        trace: None,
        delay: Some(Duration::from_millis(12)),
        limit: Some(QueueLimit::Infinite),
        jitter: Some(Duration::from_millis(1)),
        loss: "1%".parse().ok(),
        loss_trace: None,
    };
    assert_eq!(wifi.reverse, reverse);
    assert_eq!((wifi.jitter_model, wifi.mtu), (JitterOrder::Reordering, 1_400));
    assert_eq!(third_generation.reverse_link(), third_generation.forward_link());
    let penalisation = PenalisationConfig { form: PenalisationFormName::Nsdi12 };
    let main = Connection {
        name: "main".to_owned(),
        paths: Paths::new(vec![1, 0], &scenario.paths),
        protocol: Protocol::Mptcp,
        direction: Directions::Upload,
        start: Duration::from_secs(1),
        stack: None,
        host: default_of("rfc"),
        send_buffer: Some(ByteCount::new(204_800)),
        receive_buffer: Some(ByteCount::new(200_000)),
        congestion_control: congestion_control("new_reno").into(),
        scheduler: scheduler("min_rtt").into(),
        path_manager: path_manager("initial_only").into(),
        limits: Limits::default(),
        remedies: vec![penalisation.into(), default_of("opportunistic_retransmission")],
        shared_bottleneck_detection: None,
        nagle: false,
        keep_alive: Some(Duration::from_secs(60)),
        dss_checksum: true,
        allow_join_initial_addr_port: false,
        late_fallback: false,
        ecn: true,
        mtu_probing: MtuProbing::default(),
        pacing: true,
        sack: false,
        timestamps: false,
        hystart: true.into(),
        workload: Workload::Blocks(Blocks {
            block_size: ByteCount::new(16_384),
            count: NonZeroU64::new(100),
        }),
    };
    assert_eq!(scenario.connections[0], main);
    assert_eq!(
        scenario.connections[1].workload,
        Workload::Bulk(Bulk { size: Some(ByteCount::new(16_777_216)) })
    );
}

#[test]
fn changes_go_to_the_links_that_they_apply_to() {
    let scenario = read(FULL);
    let (forward, reverse) = (scenario.paths[0].forward_link(), scenario.paths[0].reverse_link());
    let at = |change: &ScheduledChange| change.at.as_millis();
    assert_eq!(forward.changes.iter().map(at).collect::<Vec<_>>(), [10_000, 20_000]);
    assert_eq!(reverse.changes.iter().map(at).collect::<Vec<_>>(), [10_000, 30_000]);
    let change = LinkChange {
        rate: Some(rate("2Mbit/s")),
        delay: Some(Duration::from_millis(40)),
        jitter: Some(Duration::from_millis(5)),
        loss: Some("2%".parse().unwrap()),
        state: Some(StateChange::Up),
    };
    assert_eq!(forward.changes[1].change, change);
    assert_eq!(forward.capacity, rate("8Mbit/s").into());
    assert_eq!(reverse.capacity, rate("1Mbit/s").into());
    assert_eq!(reverse.limit, QueueLimit::Infinite);
    assert_eq!(reverse.jitter_model, JitterModel::Reordering);
}

#[test]
fn defaults_of_tcp_differ() {
    let two_paths = FULL.replace("paths = [\"3g\"]\n", "");
    let tcp = &read(&two_paths).connections[1];
    assert_eq!(*tcp.paths, [0]);
    assert_eq!(tcp.name, "connection-2");
    assert_eq!((&*tcp.congestion_control, *tcp.hystart), (&congestion_control("cubic"), true));
    let lia = two_paths.replace("\"tcp\"", "\"tcp\"\ncongestion_control = \"lia\"");
    let expected = congestion_control("lia");
    assert_eq!(*read(&lia).connections[1].congestion_control, expected);
}

#[test]
fn the_normalised_form_spells_out_every_default_that_is_a_value() {
    let expected = r#"name = "smallest"
description = ""
duration = "100s"
warm_up = "0s"
sample_interval = "100ms"

[[path]]
name = "wifi"
rate = "8Mbit/s"
delay = "10ms"
limit = "54packets"
jitter = "0s"
jitter_model = "fifo"
loss = "0%"
mtu = "1500B"
family = "ipv4"
change = []

[path.queue]
kind = "drop_tail"

[path.reverse]
rate = "8Mbit/s"
delay = "10ms"
limit = "54packets"
jitter = "0s"
loss = "0%"

[[connection]]
name = "connection-1"
paths = ["wifi"]
protocol = "mptcp"
direction = "download"
start = "0s"
congestion_control = "lia"
scheduler = "min_rtt"
path_manager = "full_mesh"
nagle = true
late_fallback = true
hystart = false

[connection.host]
buffers = "payload"
kind = "linux"

[connection.remedies]

[connection.workload]
kind = "bulk"
"#;
    assert_eq!(read(SMALLEST).to_toml(), expected);
    assert_eq!(read(&read(FULL).to_toml()), read(FULL));
}

#[test]
fn values_without_or_with_wrong_units() {
    assert_eq!(
        error("\"8Mbit/s\"", "\"8\""),
        r#"wifi.toml: path[0].rate: "8" has no unit; write a rate such as "8Mbit/s""#
    );
    assert_eq!(
        error("\"8Mbit/s\"", "8"),
        r#"wifi.toml: path[0].rate: "8" has no unit; write a rate such as "8Mbit/s""#
    );
    assert_eq!(
        error("\"0.5%\"", "0.005"),
        r#"wifi.toml: path[0].loss: "0.005" has no unit; write a probability such as "1%""#
    );
    assert_eq!(
        error("\"8Mbit/s\"", "\"-8Mbit/s\""),
        r#"wifi.toml: path[0].rate: "-8Mbit/s": a rate cannot be negative"#
    );
    assert_eq!(
        error("\"8Mbit/s\"", "\"8mbps\""),
        r#"wifi.toml: path[0].rate: "8mbps": tc reads "mbps" as bytes per second; write "8Mbit/s" for bits per second"#
    );
    assert_eq!(
        error("\"80ms\"", "\"0packets\""),
        r#"wifi.toml: path[0].limit: "0packets": a queue needs room for at least one packet"#
    );
    assert_eq!(
        error("\"1Mbit/s\"", "\"1Mbit\""),
        r#"wifi.toml: path[0].reverse.rate: "1Mbit": unknown unit "Mbit"; a rate ends in bit/s, kbit/s, Mbit/s, Gbit/s or Tbit/s"#
    );
    assert_eq!(
        error("\"20s\"", "\"20\""),
        r#"wifi.toml: path[0].change[1].at: "20" has no unit; write a duration such as "20ms""#
    );
    assert_eq!(
        error("\"16MiB\"", "\"16Mb\""),
        r#"wifi.toml: connection[1].workload.size: "16Mb": unknown unit "Mb"; did you mean "MB"?"#
    );
}

#[test]
fn unknown_keys() {
    assert_eq!(
        error("delay = \"75ms\"", "dealy = \"75ms\""),
        r#"wifi.toml: path[1].dealy: unknown key; did you mean "delay"?"#
    );
    assert_eq!(
        error("warm_up", "warmup"),
        r#"wifi.toml: warmup: unknown key; did you mean "warm_up"?"#
    );
    assert_eq!(
        error("applies_to", "direction"),
        "wifi.toml: path[0].change[1].direction: unknown key \
         (valid: at, rate, delay, jitter, loss, state, applies_to, noticed)"
    );
    assert_eq!(
        error("[path.reverse]", "[path.reverse]\nmtu = \"1500B\""),
        "wifi.toml: path[0].reverse.mtu: unknown key (valid: rate, trace, delay, limit, jitter, loss, loss_trace)"
    );
    assert_eq!(
        error("count = 100", "counts = 100"),
        r#"wifi.toml: connection[0].workload.counts: unknown key; did you mean "count"?"#
    );
}

#[test]
fn unknown_names() {
    assert_eq!(
        error("\"min_rtt\"", "\"min_rt\""),
        r#"wifi.toml: connection[0].scheduler: unknown scheduler "min_rt"; did you mean "min_rtt"? (valid: min_rtt, round_robin, redundant, blest, ecf, otias, sttf, daps, linux, mptcp_org, mptcp_org_round_robin)"#
    );
    assert_eq!(
        error("\"new_reno\"", "\"reno\""),
        r#"wifi.toml: connection[0].congestion_control: unknown congestion control "reno"; did you mean "new_reno"? (valid: new_reno, cubic, cubic_linux, lia, olia, balia, wvegas, lia_linux, bbr, bbr3)"#
    );
    assert_eq!(
        error("\"new_reno\"", "\"vegas\""),
        r#"wifi.toml: connection[0].congestion_control: unknown congestion control "vegas"; did you mean "wvegas"? (valid: new_reno, cubic, cubic_linux, lia, olia, balia, wvegas, lia_linux, bbr, bbr3)"#
    );
    assert_eq!(
        error("\"initial_only\"", "\"fullmesh\""),
        r#"wifi.toml: connection[0].path_manager: unknown path manager "fullmesh"; did you mean "full_mesh"? (valid: full_mesh, initial_only, ndiffports, backup, single_path, drepas)"#
    );
    assert_eq!(
        error("\"rfc\"", "\"bsd\""),
        r#"wifi.toml: connection[0].host: unknown host "bsd" (valid: linux, rfc, mptcp.org-0.89)"#
    );
    assert_eq!(
        error("\"rfc\"", "{ kind = \"rfc\", buffers = \"socket\" }"),
        r#"wifi.toml: connection[0].host.buffers: belongs to kind = "linux"; remove it, or write that kind"#
    );
    assert_eq!(
        error("\"reordering\"", "\"reorder\""),
        r#"wifi.toml: path[0].jitter_model: unknown jitter model "reorder"; did you mean "reordering"? (valid: fifo, reordering)"#
    );
    assert_eq!(
        error("\"down\"", "\"dwon\""),
        r#"wifi.toml: path[0].change[0].state: unknown state "dwon"; did you mean "down"? (valid: up, down, suspend, resume)"#
    );
    assert_eq!(
        error("\"forward\"", "\"forwards\""),
        r#"wifi.toml: path[0].change[1].applies_to: unknown direction "forwards"; did you mean "forward"? (valid: forward, reverse, both)"#
    );
    assert_eq!(
        error("\"blocks\"", "\"block\""),
        r#"wifi.toml: connection[0].workload.kind: unknown workload "block"; did you mean "blocks"? (valid: bulk, blocks, cbr, on_off, request_response)"#
    );
    assert_eq!(
        error("\"upload\"", "\"up\""),
        r#"wifi.toml: connection[0].direction: unknown direction "up"; did you mean "upload"? (valid: download, upload, both)"#
    );
    assert_eq!(
        error("\"mptcp\"", "\"mtcp\""),
        r#"wifi.toml: connection[0].protocol: unknown protocol "mtcp"; did you mean "mptcp"? (valid: mptcp, tcp)"#
    );
    assert_eq!(
        error("[\"3g\", \"wifi\"]", "[\"3g\", \"wfi\"]"),
        r#"wifi.toml: connection[0].paths[1]: unknown path "wfi"; did you mean "wifi"? (valid: wifi, 3g)"#
    );
}

#[test]
fn errors_show_control_characters_as_escapes() {
    let text = format!("\"\\u001b[31mred\" = 1\n{SMALLEST}");
    assert!(
        error_of(&text).starts_with("wifi.toml: \\u{1b}[31mred: unknown key"),
        "{}",
        error_of(&text)
    );
    let text = format!("name = \u{1b}[31m\n{SMALLEST}");
    assert!(error_of(&text).contains("`name = \\u{1b}[31m`"), "{}", error_of(&text));
}

#[test]
fn missing_keys() {
    assert_eq!(
        error("delay = \"75ms\"\n", ""),
        "wifi.toml: path[1].delay: missing; this key is required"
    );
    assert_eq!(
        error("duration = \"100s\"\n", ""),
        "wifi.toml: duration: missing; this key is required"
    );
    assert_eq!(
        error("kind = \"bulk\"\n", ""),
        "wifi.toml: connection[1].workload.kind: missing; this key is required"
    );
    let no_connection = SMALLEST.split("[[connection]]").next().unwrap();
    assert_eq!(error_of(no_connection), "wifi.toml: connection: missing; this key is required");
    assert_eq!(
        error_of(&format!("connection = []\n{no_connection}")),
        "wifi.toml: connection: []: write at least one [[connection]]"
    );
    assert_eq!(
        error("at = \"10s\"\nstate = \"down\"", "at = \"10s\""),
        "wifi.toml: path[0].change[0]: changes nothing; \
         write at least one of rate, delay, jitter, loss and state"
    );
}

#[test]
fn values_of_another_type() {
    assert_eq!(error("\"wifi-3g\"", "3"), "wifi.toml: name: found integer `3`, expected a string");
    assert_eq!(
        error("\"8Mbit/s\"", "true"),
        r#"wifi.toml: path[0].rate: found boolean `true`, expected a rate such as "8Mbit/s""#
    );
    assert_eq!(
        error("nagle = false", "nagle = \"no\""),
        r#"wifi.toml: connection[0].nagle: found string "no", expected a boolean"#
    );
    assert_eq!(
        error("count = 100", "count = 0"),
        "wifi.toml: connection[0].workload.count: 0: must be 1 or more"
    );
    assert_eq!(
        error("count = 100", "count = -1"),
        "wifi.toml: connection[0].workload.count: -1: must be 1 or more"
    );
    for (value, found) in
        [("-1", "integer `-1`"), ("300", "integer `300`"), ("\"2\"", "string \"2\"")]
    {
        assert_eq!(
            error("nagle = false", &format!("limits = {{ subflows = {value} }}")),
            format!(
                "wifi.toml: connection[0].limits.subflows: found {found}, \
                 expected a whole number from 0 to 255"
            )
        );
    }
    assert_eq!(
        error("[\"3g\", \"wifi\"]", "\"3g\""),
        r#"wifi.toml: connection[0].paths: found string "3g", expected an array"#
    );
    assert_eq!(
        error_of(&SMALLEST.replace("[[path]]", "[path]")),
        "wifi.toml: path: found a table, expected an array; write [[path]]"
    );
    assert_eq!(
        error_of(
            &SMALLEST.replace("[connection.workload]\nkind = \"bulk\"", "workload = \"bulk\"")
        ),
        r#"wifi.toml: connection[0].workload: found string "bulk", expected a table"#
    );
}

#[test]
fn text_that_is_not_toml() {
    // The text between the place and the line comes from the TOML parser.
    for (text, place, line) in [
        ("name = \"a\"\n  duration = 100s\n", "line 2, column 14", "`duration = 100s`"),
        ("name = \"a\"\nname = \"b\"\n", "line 2, column 1", "`name = \"b\"`"),
        ("name = \"é\" x", "line 1, column 12", "`name = \"é\" x`"),
        ("[[path]\n", "line 1, column 8", "`[[path]`"),
        ("[path]\n[path]\n", "line 2, column 2", "`[path]`; write [[path]]"),
    ] {
        let error = error_of(text);
        assert!(error.starts_with(&format!("wifi.toml: {place}: ")), "{error}");
        assert!(error.ends_with(&format!(" in {line}")), "{error}");
    }
}

#[test]
fn values_that_contradict_each_other() {
    assert_eq!(
        error("warm_up = \"5s\"", "warm_up = \"100s\""),
        r#"wifi.toml: warm_up: "100s": must be less than the duration, "100s""#
    );
    assert_eq!(
        error("start = \"1s\"", "start = \"200s\""),
        r#"wifi.toml: connection[0].start: "200s": must be less than the duration, "100s""#
    );
    assert_eq!(
        error("name = \"3g\"", "name = \"wifi\""),
        r#"wifi.toml: path[1].name: "wifi" is already the name of path[0]; choose another"#
    );
    assert_eq!(
        error("name = \"main\"", "name = \"connection-2\""),
        r#"wifi.toml: connection[1].name: "connection-2" is already the name of connection[0]; choose another"#
    );
    assert_eq!(
        error("[\"3g\", \"wifi\"]", "[\"3g\", \"3g\"]"),
        r#"wifi.toml: connection[0].paths[1]: "3g" is listed twice; list each path once"#
    );
    assert_eq!(
        error("[\"3g\", \"wifi\"]", "[]"),
        "wifi.toml: connection[0].paths: []: name at least one path"
    );
    assert_eq!(
        error("paths = [\"3g\"]", "paths = [\"wifi\", \"3g\"]"),
        r#"wifi.toml: connection[1].paths: ["wifi", "3g"]: tcp uses one path; name one, or write protocol = "mptcp""#
    );
    assert_eq!(
        error("block_size = \"16KiB\"", "size = \"16KiB\""),
        r#"wifi.toml: connection[0].workload.size: belongs to kind = "bulk"; remove it, or write that kind"#
    );
    assert_eq!(
        error("size = \"16MiB\"", "count = 3"),
        r#"wifi.toml: connection[1].workload.count: belongs to kind = "blocks", "cbr", "on_off" or "request_response"; remove it, or write one of these kinds"#
    );
    assert_eq!(
        error("size = \"16MiB\"", "block_size = \"1kB\""),
        r#"wifi.toml: connection[1].workload.block_size: belongs to kind = "blocks" or "cbr"; remove it, or write one of these kinds"#
    );
}

const SHARED: &str = r#"
name = "shared"
duration = "1s"
[[path]]
name = "core"
rate = "8Mbit/s"
delay = "1ms"
limit = "infinite"
[[path]]
name = "a"
via = "core"
rate = "1Gbit/s"
delay = "1ms"
limit = "infinite"
[[path]]
name = "b"
via = "core"
rate = "1Gbit/s"
delay = "1ms"
limit = "infinite"
[[connection]]
workload = { kind = "bulk" }
"#;

#[test]
fn a_path_goes_via_one_that_is_listed_before_it() {
    let scenario = read(SHARED);
    let via: Vec<Vec<_>> = scenario
        .paths
        .iter()
        .map(|path| path.via.hops().iter().map(|hop| (hop.path, hop.reversed)).collect())
        .collect();
    assert_eq!(via, [vec![], vec![(0, false)], vec![(0, false)]]);
    // By default a connection uses all paths except those that other paths go via.
    assert_eq!(*scenario.connections[0].paths, [1, 2]);
    let wrong = |from: &str, to: &str| error_of(&SHARED.replacen(from, to, 1));
    assert_eq!(
        wrong("via = \"core\"", "via = \"cor\""),
        r#"wifi.toml: path[1].via: unknown earlier path "cor"; did you mean "core"? (valid: core)"#
    );
    assert_eq!(
        wrong("name = \"core\"", "name = \"core\"\nvia = \"a\""),
        r#"wifi.toml: path[0].via: "a": list that path before the paths that go via it"#
    );
}

#[test]
fn keys_of_another_workload() {
    let with =
        |workload: &str| error_of(&SHARED.replacen("workload = { kind = \"bulk\" }", workload, 1));
    assert_eq!(
        with("workload = { kind = \"cbr\" }"),
        r#"wifi.toml: connection[0].workload.rate: missing; kind = "cbr" needs it, such as rate = "500kbit/s""#
    );
    assert_eq!(
        with("workload = { kind = \"blocks\", rate = \"1Mbit/s\" }"),
        r#"wifi.toml: connection[0].workload.rate: belongs to kind = "cbr"; remove it, or write that kind"#
    );
}

#[test]
fn keys_of_another_queue_discipline() {
    let with = |queue: &str| error_of(&SHARED.replacen("limit = \"infinite\"", queue, 1));
    assert_eq!(
        with("limit = \"infinite\"\nqueue = { kind = \"red\", max_burst = \"5ms\" }"),
        r#"wifi.toml: path[0].queue.max_burst: belongs to kind = "pie"; remove it, or write that kind"#
    );
    assert_eq!(
        with("limit = \"infinite\"\nqueue = { weight = \"1%\" }"),
        r#"wifi.toml: path[0].queue.weight: belongs to kind = "red"; remove it, or write that kind"#
    );
    assert_eq!(
        with("limit = \"infinite\"\nqueue = { kind = \"red\", min_packets = 20 }"),
        "wifi.toml: path[0].queue.max_packets: 15: must be more than min_packets, 20"
    );
    assert_eq!(
        with("limit = \"infinite\"\nqueue = { kind = \"fq_codel\", quantum = \"255B\" }"),
        r#"wifi.toml: path[0].queue.quantum: "255B": must be at least 256B, as in Linux"#
    );
    assert_eq!(
        with("limit = \"infinite\"\nqueue = { kind = \"pie\", update_interval = \"9us\" }"),
        r#"wifi.toml: path[0].queue.update_interval: must be at least 1ms"#
    );
}

#[test]
fn wvegas_has_no_hystart() {
    assert_eq!(
        error("\"new_reno\"", "\"wvegas\""),
        "wifi.toml: connection[0].hystart: true: wvegas has its own rule to end slow start; remove this key"
    );
}

#[test]
fn values_out_of_range() {
    for mtu in ["575B", "65536B"] {
        assert_eq!(
            error("\"1400B\"", &format!("{mtu:?}")),
            format!("wifi.toml: path[0].mtu: {mtu:?}: must be between 576B and 65535B")
        );
    }
    for (key, right) in [("duration", "100s"), ("sample_interval", "50ms")] {
        assert_eq!(
            error(&format!("{key} = \"{right}\""), &format!("{key} = \"0s\"")),
            format!("wifi.toml: {key}: \"0s\": must be longer than zero")
        );
    }
    for (key, right, place) in [
        ("send_buffer", "200KiB", "connection[0].send_buffer"),
        ("receive_buffer", "200kB", "connection[0].receive_buffer"),
        ("block_size", "16KiB", "connection[0].workload.block_size"),
        ("size", "16MiB", "connection[1].workload.size"),
    ] {
        assert_eq!(
            error(&format!("\n{key} = \"{right}\""), &format!("\n{key} = \"0B\"")),
            format!("wifi.toml: {place}: \"0B\": must be at least one byte")
        );
    }
    for (right, place) in
        [("wifi-3g", "name"), ("3g", "path[1].name"), ("main", "connection[0].name")]
    {
        assert_eq!(
            error(&format!("name = \"{right}\""), "name = \" \""),
            format!("wifi.toml: {place}: \" \": a name needs at least one letter")
        );
    }
}

#[test]
fn the_schema_knows_what_is_required_and_what_is_allowed() {
    let schema: serde_json::Value = serde_json::from_str(&Scenario::json_schema()).unwrap();
    let strings = |value: &serde_json::Value| -> Vec<String> {
        value.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(schema["title"], "Scenario");
    assert_eq!(strings(&schema["required"]), ["name", "duration", "path", "connection"]);
    assert_eq!(schema["properties"]["path"]["minItems"], 1);
    let definitions = &schema["$defs"];
    assert_eq!(strings(&definitions["Path"]["required"]), ["name", "delay", "limit"]);
    assert_eq!(strings(&definitions["Connection"]["required"]), ["workload"]);
    assert_eq!(definitions["Reverse"]["required"], serde_json::Value::Null);
    assert_eq!(definitions["Path"]["additionalProperties"], false);
    assert_eq!(strings(&definitions["DistributionOfSize"]["required"]), ["kind"]);
    assert_eq!(definitions["Path"]["properties"]["mtu"]["default"], "1500B");
    assert_eq!(definitions["Rate"]["type"], "string");
    assert_eq!(definitions["Workload"]["oneOf"][1]["properties"]["count"]["minimum"], 1);
    assert!(!Scenario::json_schema().contains("null"), "TOML has no null");
}
