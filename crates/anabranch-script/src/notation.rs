//! Segments in the notation of scripts.

use std::fmt::Write;

use anabranch_wire::mptcp::{
    AddAddr, CapableFlags, CapableKeys, Control, Dss, MpCapable, MpJoin, WideOrNarrow,
};
use anabranch_wire::{CE, DataSeq, ECT_0, Flags, Segment, SeqNumber, TcpOptions};

use crate::flows::{Flow, Flows, ScriptKeys};
use crate::keys;
use crate::script::PathName;

/// The segment in the notation of scripts, without its time.
pub(crate) fn segment(segment: &Segment, outgoing: bool, flows: &Flows) -> String {
    let (host, peer) = if outgoing {
        (segment.source, segment.destination)
    } else {
        (segment.destination, segment.source)
    };
    let index = flows.find(host, peer);
    let flow = index.map(|index| &flows.all[index]);
    let side = SideBases::new(flow, index.map(|index| flows.keys(index)), outgoing);
    let header = &segment.header;
    let mut text = (if outgoing { ">" } else { "<" }).to_owned();
    match segment.ecn {
        0 => {}
        ECT_0 => text += " [ect0]",
        CE => text += " [ce]",
        _ => text += " [ect1]",
    }
    text += &path(flow.map(|flow| flow.name));
    let seq = header.seq.0.wrapping_sub(side.own.0);
    let end = seq.wrapping_add(segment.payload.len() as u32);
    let _ = write!(text, " {} {seq}:{end}({})", flags(header.flags), segment.payload.len());
    if header.flags.contains(Flags::ACK) {
        let _ = write!(text, " ack {}", header.ack.0.wrapping_sub(side.others.0));
    }
    let _ = write!(text, " win {}", header.window);
    let options = options(&segment.options, &side, flow, flows);
    if !options.is_empty() {
        let _ = write!(text, " <{}>", options.join(", "));
    }
    text
}

/// The initial numbers to which a side's numbers are relative.
struct SideBases {
    outgoing: bool,
    own: SeqNumber,
    others: SeqNumber,
    own_base: Option<DataSeq>,
    others_base: Option<DataSeq>,
    keys: ScriptKeys,
}

impl SideBases {
    fn new(flow: Option<&Flow>, keys: Option<ScriptKeys>, outgoing: bool) -> Self {
        let host = flow.and_then(|flow| flow.host_isn).unwrap_or_default();
        let peer = flow.map(|flow| flow.peer_isn).unwrap_or_default();
        let keys = keys.unwrap_or_default();
        let (own, others) = if outgoing { (host, peer) } else { (peer, host) };
        let (host_base, peer_base) = (keys.host_base(), keys.peer_base());
        let (own_base, others_base) =
            if outgoing { (host_base, peer_base) } else { (peer_base, host_base) };
        SideBases { outgoing, own, others, own_base, others_base, keys }
    }
}

fn path(name: Option<PathName>) -> String {
    let Some(name) = name.filter(|name| *name != PathName::FIRST) else { return String::new() };
    let number = if name.number == 1 { String::new() } else { format!("/{}", name.number) };
    format!(" host{}-peer{}{number}", name.host, name.peer)
}

pub(crate) fn flags(flags: Flags) -> String {
    let letters = [
        (Flags::SYN, 'S'),
        (Flags::FIN, 'F'),
        (Flags::RST, 'R'),
        (Flags::PSH, 'P'),
        (Flags::URG, 'U'),
        (Flags::ECE, 'E'),
        (Flags::CWR, 'W'),
        (Flags::ACK, '.'),
    ];
    let set: String = letters
        .iter()
        .filter(|(flag, _)| flags.contains(*flag))
        .map(|(_, letter)| letter)
        .collect();
    if set.is_empty() { "-".to_owned() } else { set }
}

fn options(
    options: &TcpOptions,
    side: &SideBases,
    flow: Option<&Flow>,
    flows: &Flows,
) -> Vec<String> {
    let mut all = Vec::new();
    all.extend(options.mss.map(|mss| format!("mss {mss}")));
    all.extend(options.sack_permitted.then(|| "sackOK".to_owned()));
    if let Some(stamps) = options.timestamps {
        let offset = flow.and_then(|flow| flow.clock_offset).unwrap_or(0);
        let (mut value, mut echo) = (stamps.value, stamps.echo);
        let hosts = if side.outgoing { &mut value } else { &mut echo };
        *hosts = if *hosts == 0 { 0 } else { hosts.wrapping_sub(offset) };
        all.push(format!("TS val {value} ecr {echo}"));
    }
    all.extend(options.window_scale.map(|shift| format!("wscale {shift}")));
    all.extend(options.dss.as_ref().map(|dss| self::dss(dss, side)));
    if let Some(control) = &options.control {
        self::control(control, side, flow, flows, &mut all);
    }
    let blocks = options.sack.as_slice().iter().map(|block| {
        let [start, end] = [block.start, block.end].map(|edge| edge.0.wrapping_sub(side.others.0));
        format!(" {start}:{end}")
    });
    let blocks: String = blocks.collect();
    all.extend((!blocks.is_empty()).then(|| format!("sack{blocks}")));
    if let Some(bytes) = &options.unknown {
        let bytes: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        all.push(format!("raw[{}]", bytes.join(" ")));
    }
    all
}

/// `dack8=1`, with a relative number if its base is known.
fn data_number(name: &str, number: WideOrNarrow, base: Option<DataSeq>) -> String {
    let bytes = number.bytes_len();
    match base {
        Some(base) => {
            let relative = number.resolve(base).distance_from(base);
            format!(" {name}{bytes}={relative}")
        }
        None => {
            let raw = match number {
                WideOrNarrow::Wide(full) => full.0,
                WideOrNarrow::Narrow(low) => u64::from(low),
            };
            format!(" {name}{bytes}={raw:#x}")
        }
    }
}

pub(crate) fn dss_text(dss: &Dss, own: Option<DataSeq>, others: Option<DataSeq>) -> String {
    let mut text = "dss".to_owned();
    if let Some(ack) = dss.data_ack {
        text += &data_number("dack", ack, others);
    }
    if let Some(mapping) = dss.mapping {
        text += &data_number("dsn", mapping.data_seq, own);
        let _ = write!(text, " ssn={} dll={}", mapping.subflow_seq.0, mapping.len);
        text += if mapping.checksum.is_some() { " cksum" } else { " nocs" };
    }
    text + if dss.data_fin { " fin" } else { "" }
}

fn dss(dss: &Dss, side: &SideBases) -> String {
    dss_text(dss, side.own_base, side.others_base)
}

fn control(
    control: &Control,
    side: &SideBases,
    flow: Option<&Flow>,
    flows: &Flows,
    all: &mut Vec<String>,
) {
    all.extend(control.capable.as_ref().map(|capable| self::capable(capable, side, flows)));
    all.extend(control.join.as_ref().map(|join| self::join(join, side, flow)));
    all.extend(control.add_addr.as_ref().map(|add| add_address(add, side, flows)));
    if let Some(remove) = &control.remove_addr {
        let ids: Vec<_> = remove.address_ids().iter().map(u8::to_string).collect();
        all.push(format!("remove_address address_id=[{}]", ids.join(", ")));
    }
    all.extend(control.prio.map(|prio| format!("mp_prio backup={}", u8::from(prio.backup))));
    all.extend(control.fail.map(|fail| {
        let number = WideOrNarrow::Wide(fail.data_seq);
        format!("mp_fail{}", data_number("dsn", number, side.others_base))
    }));
    all.extend(
        control.fastclose.map(|f| format!("mp_fastclose key[{}]", flows.name_of(f.receiver_key))),
    );
    all.extend(control.reset.map(|reset| {
        format!("mp_reset reason={} transient={}", reset.reason.0, u8::from(reset.transient))
    }));
}

pub(crate) fn capable_byte(flags: CapableFlags) -> u8 {
    u8::from(flags.checksum_required) << 7
        | u8::from(flags.extensibility) << 6
        | u8::from(flags.deny_join_to_source) << 5
        | flags.unassigned
        | u8::from(flags.hmac_sha256)
}

pub(crate) fn flag_names(byte: u8) -> String {
    let set = ('a'..='h').zip(0..).filter(|(_, bit)| byte & (0x80 >> bit) != 0);
    let names: Vec<_> = set.map(|(letter, _)| format!("flag_{letter}")).collect();
    format!("flags[{}]", names.join("|"))
}

fn capable(capable: &MpCapable, side: &SideBases, flows: &Flows) -> String {
    // The script defines the peer's key.
    let own = |key| match flows.name_of(key) {
        name if side.outgoing || name.starts_with("0x") => name,
        name => format!("{name}={key:#x}"),
    };
    let flags = flag_names(capable_byte(capable.flags));
    let keys = match capable.keys {
        CapableKeys::None => "nokey".to_owned(),
        CapableKeys::Sender(key) => format!("key[{}]", own(key)),
        CapableKeys::Both { sender, receiver } => {
            format!("key[{}, {}]", own(sender), flows.name_of(receiver))
        }
        CapableKeys::WithData { sender, receiver, data_len, checksum } => format!(
            "key[{}, {}] mpcdatalen {data_len} {}",
            own(sender),
            flows.name_of(receiver),
            if checksum.is_some() { "cksum" } else { "nocs" }
        ),
    };
    format!("mpcapable v{} {flags} {keys}", capable.version)
}

/// HMACs and checksums are shown as `auto` if they are right and as `bad` if they are wrong, because
/// their digits do not help a reader.
fn verdict(is_right: bool) -> &'static str {
    if is_right { "auto" } else { "bad" }
}

fn join(join: &MpJoin, side: &SideBases, flow: Option<&Flow>) -> String {
    let nonces = flow.and_then(|flow| flow.host_nonce.zip(flow.peer_nonce));
    let hmac = nonces.zip(side.keys.of_host().ok()).map(|(nonces, keys)| {
        if side.outgoing {
            keys::join_hmac(keys, nonces)
        } else {
            keys::join_hmac((keys.1, keys.0), (nonces.1, nonces.0))
        }
    });
    match join {
        MpJoin::Syn { backup, address_id, token, nonce } => {
            let key = if side.outgoing { side.keys.peer } else { side.keys.host };
            let token = if key.map(keys::token) == Some(*token) {
                "auto".to_owned()
            } else {
                format!("{token:#x}")
            };
            let backup = if *backup { "backup=1 " } else { "" };
            format!("mp_join_syn {backup}address_id={address_id} token={token} nonce={nonce:#x}")
        }
        MpJoin::SynAck { backup, address_id, truncated_hmac, nonce } => {
            let right = hmac.is_some_and(|hmac| hmac[..8] == truncated_hmac.to_be_bytes());
            let backup = if *backup { "backup=1 " } else { "" };
            let hmac = verdict(right);
            format!(
                "mp_join_syn_ack {backup}address_id={address_id} sender_hmac={hmac} nonce={nonce:#x}"
            )
        }
        MpJoin::Ack { hmac: actual } => {
            let right = hmac.is_some_and(|hmac| hmac[..20] == *actual);
            format!("mp_join_ack sender_hmac={}", verdict(right))
        }
    }
}

fn add_address(add: &AddAddr, side: &SideBases, flows: &Flows) -> String {
    let layout = flows.layout;
    let name = layout.host_number(add.address).map(|number| format!("host{number}"));
    let name = name.or_else(|| layout.peer_number(add.address).map(|n| format!("peer{n}")));
    let name = name.unwrap_or_else(|| add.address.to_string());
    let port = add.port.map(|port| format!(" port={port}")).unwrap_or_default();
    let keys = if side.outgoing { side.keys.of_host() } else { side.keys.of_peer() };
    let right = keys
        .map(|keys| keys::address_hmac(keys, add.address_id, add.address, add.port.unwrap_or(0)));
    let proof = match add.truncated_hmac {
        Some(hmac) => format!("hmac={}", verdict(right == Ok(hmac))),
        None => "addr_echo".to_owned(),
    };
    format!("add_address address_id={} addr[{name}]{port} {proof}", add.address_id)
}

/// The options of a segment, by their names in scripts.
pub(crate) fn option_names(options: &TcpOptions) -> Vec<&'static str> {
    let empty = Control::default();
    let control = options.control.as_deref().unwrap_or(&empty);
    let all = [
        (options.mss.is_some(), "mss"),
        (options.sack_permitted, "sackOK"),
        (options.timestamps.is_some(), "TS"),
        (options.window_scale.is_some(), "wscale"),
        (!options.sack.is_empty(), "sack"),
        (options.dss.is_some(), "dss"),
        (control.capable.is_some(), "mpcapable"),
        (control.join.is_some(), "mp_join"),
        (control.add_addr.is_some(), "add_address"),
        (control.remove_addr.is_some(), "remove_address"),
        (control.prio.is_some(), "mp_prio"),
        (control.fail.is_some(), "mp_fail"),
        (control.fastclose.is_some(), "mp_fastclose"),
        (control.reset.is_some(), "mp_reset"),
        (options.unknown.is_some(), "raw"),
    ];
    all.into_iter().filter(|(there, _)| *there).map(|(_, name)| name).collect()
}
