//! Comparison of a segment from the stack under test with the segment that the script expects.

use anabranch_wire::mptcp::{AddAddr, CapableKeys, Control, Dss, MpCapable, MpJoin, WideOrNarrow};
use anabranch_wire::{Checksum, DataSeq, Flags, Piece, Segment, TcpOptions};

use crate::flows::{Flows, ScriptKeys};
use crate::keys;
use crate::notation;
use crate::options::{AddressName, DataNumber, MappingSpec, OptionSpec, Value, Width};
use crate::script::SegmentSpec;

/// All differences between the segments. If there are none, the script's variables take their values.
pub(crate) fn compare(
    spec: &SegmentSpec,
    segment: &Segment,
    flow: usize,
    flows: &mut Flows,
    stamp_slack: u32,
) -> Vec<String> {
    let mut judge = Comparison {
        spec,
        segment,
        flow,
        flows,
        stamp_slack,
        differences: Vec::new(),
        captured: Vec::new(),
        clock_offset: None,
    };
    judge.header();
    judge.options();
    judge.payload();
    let ahead = judge.ahead();
    let Comparison { differences, captured, clock_offset, .. } = judge;
    if differences.is_empty() {
        flows.variables.extend(captured);
        let flow = &mut flows.all[flow];
        // A mapping also covers later segments without one.
        if !segment.payload.is_empty() {
            flow.ahead_out = ahead;
        }
        flow.clock_offset = flow.clock_offset.or(clock_offset);
    }
    differences
}

struct Comparison<'a> {
    spec: &'a SegmentSpec,
    segment: &'a Segment,
    flow: usize,
    flows: &'a Flows,
    /// Largest error of a timestamp, in ticks.
    stamp_slack: u32,
    differences: Vec<String>,
    captured: Vec<(String, u64)>,
    clock_offset: Option<u32>,
}

impl Comparison<'_> {
    fn differ(&mut self, what: &str, expected: impl ToString, actual: impl ToString) {
        let (expected, actual) = (expected.to_string(), actual.to_string());
        self.differences.push(format!("{what}: expected {expected}, got {actual}"));
    }

    fn equal<T: PartialEq + ToString>(&mut self, what: &str, expected: T, actual: T) {
        if expected != actual {
            self.differ(what, expected, actual);
        }
    }

    /// Compare a number with the script's, or capture it. `right` is the value that the RFC demands.
    fn value(&mut self, what: &str, expected: &Value, actual: u64, right: Option<u64>) {
        let wanted = match expected {
            Value::Any => return,
            Value::Number(number) | Value::Define(_, number) => Some(*number),
            Value::Auto => right,
            Value::Bad => {
                if right == Some(actual) {
                    self.differ(what, "a wrong one", format!("{actual:#x}"));
                }
                return;
            }
            Value::TokenOf(name) => {
                self.flows.variables.get(name).map(|key| u64::from(keys::token(*key)))
            }
            Value::Name(name) => match self.flows.variables.get(name) {
                Some(known) => Some(*known),
                None => return self.captured.push((name.clone(), actual)),
            },
        };
        match wanted {
            Some(wanted) if wanted == actual => {}
            Some(wanted) if wanted > 0xffff || actual > 0xffff => {
                self.differ(what, format!("{wanted:#x}"), format!("{actual:#x}"));
            }
            Some(wanted) => self.differ(what, wanted, actual),
            None => self.differ(what, "a value that depends on unknown keys", actual),
        }
    }

    fn header(&mut self) {
        let (spec, header) = (self.spec, &self.segment.header);
        let flow = &self.flows.all[self.flow];
        let (host_isn, peer_isn) = (flow.host_isn.unwrap_or_default(), flow.peer_isn);
        // The host may set PSH as it likes (RFC 9293 §3.9.1.2): it counts only if the script has it.
        let hidden = if spec.flags.contains(Flags::PSH) { Flags(0) } else { Flags::PSH };
        let mut actual = Flags(header.flags.0 & !hidden.0);
        // RFC 9293 §3.5.2: most resets may or may not acknowledge.
        if spec.flags == Flags::RST && actual == Flags::RST | Flags::ACK {
            actual = Flags::RST;
        }
        if spec.flags != actual {
            self.differ("flags", notation::flags(spec.flags), notation::flags(actual));
        }
        self.equal("sequence number", spec.seq, header.seq.0.wrapping_sub(host_isn.0));
        self.equal("length", spec.len as usize, self.segment.payload.len());
        if let Some(ack) = spec.ack
            && header.flags.contains(Flags::ACK)
        {
            self.equal("acknowledgement", ack, header.ack.0.wrapping_sub(peer_isn.0));
        }
        if let Some(window) = spec.window {
            self.equal("window", window, header.window);
        }
        if let Some(urgent) = spec.urgent {
            self.equal("urgent pointer", urgent, header.urgent);
        }
        if let Some(ecn) = spec.ecn {
            self.equal("ECN field", ecn, self.segment.ecn);
        }
    }

    /// Compare the payload with the test pattern at the offsets of its sequence numbers.
    fn payload(&mut self) {
        let segment = self.segment;
        if segment.payload.is_empty() || !self.differences.is_empty() {
            return;
        }
        let offset = self.spec.text_seq().wrapping_sub(1).wrapping_add(self.ahead());
        if !segment.payload.matches_pattern(u64::from(offset)) {
            self.differences
                .push("payload: differs from the bytes that the application wrote".to_owned());
        }
    }

    /// Difference between data sequence numbers and subflow sequence numbers.
    fn ahead(&self) -> u32 {
        let mapping = self.segment.options.dss.and_then(|dss| dss.mapping);
        let base = self.flows.keys(self.flow).host_base();
        match mapping.zip(base) {
            Some((mapping, base)) => {
                let relative = mapping.data_seq.resolve(base).distance_from(base);
                (relative as u32).wrapping_sub(mapping.subflow_seq.0)
            }
            None => self.flows.all[self.flow].ahead_out,
        }
    }

    fn options(&mut self) {
        let mut left = self.segment.options.clone();
        for option in &self.spec.options.items {
            self.option(option, &mut left);
        }
        if !self.spec.options.open {
            let unexpected = notation::option_names(&left);
            if !unexpected.is_empty() {
                self.differences.push(format!("unexpected options: {}", unexpected.join(", ")));
            }
        }
    }

    /// Compare one option, and remove it.
    fn option(&mut self, option: &OptionSpec, left: &mut TcpOptions) {
        match option {
            OptionSpec::Nop => {}
            OptionSpec::Mss(value) => match left.mss.take() {
                Some(mss) => self.value("mss", value, u64::from(mss), None),
                None => self.missing(option),
            },
            OptionSpec::SackOk if std::mem::take(&mut left.sack_permitted) => {}
            OptionSpec::WindowScale(value) => match left.window_scale.take() {
                Some(shift) => self.value("wscale", value, u64::from(shift), None),
                None => self.missing(option),
            },
            OptionSpec::Timestamps { value, echo } => match left.timestamps.take() {
                Some(stamps) => self.timestamps(value, echo, stamps.value, stamps.echo),
                None => self.missing(option),
            },
            OptionSpec::Sack(blocks) => self.sack(blocks, left),
            OptionSpec::Raw(bytes) => match left.unknown.take() {
                Some(unknown) if *unknown == **bytes => {}
                Some(unknown) => {
                    self.differ("raw", format!("{bytes:02x?}"), format!("{unknown:02x?}"))
                }
                None => self.missing(option),
            },
            OptionSpec::Dss { data_ack, mapping, fin } => match left.dss.take() {
                Some(dss) => self.dss(&dss, data_ack.as_ref(), mapping.as_ref(), *fin),
                None => self.missing(option),
            },
            OptionSpec::SackOk => self.missing(option),
            other => {
                let mut control = left.control.take().unwrap_or_default();
                self.control(other, &mut control);
                left.control = Some(control);
            }
        }
    }

    fn missing(&mut self, option: &OptionSpec) {
        self.differences.push(format!("missing option: {}", option.name()));
    }

    fn timestamps(&mut self, value: &Value, echo: &Value, actual: u32, actual_echo: u32) {
        if let Value::Number(expected) = value {
            let expected = *expected as u32;
            match self.flows.all[self.flow].clock_offset {
                None => self.clock_offset = Some(actual.wrapping_sub(expected)),
                Some(offset) => {
                    let actual = actual.wrapping_sub(offset);
                    if actual.wrapping_sub(expected).wrapping_add(self.stamp_slack)
                        > 2 * self.stamp_slack
                    {
                        self.differ("TS val", expected, actual);
                    }
                }
            }
        }
        if !matches!(echo, Value::Auto) {
            self.value("TS ecr", echo, u64::from(actual_echo), None);
        }
    }

    fn sack(&mut self, blocks: &[(u32, u32)], left: &mut TcpOptions) {
        let base = self.flows.all[self.flow].peer_isn;
        let text = |blocks: &[(u32, u32)]| {
            let words = blocks.iter().map(|(start, end)| format!("{start}:{end}"));
            words.collect::<Vec<_>>().join(" ")
        };
        let actual = std::mem::take(&mut left.sack);
        let relative = actual
            .as_slice()
            .iter()
            .map(|block| (block.start.0.wrapping_sub(base.0), block.end.0.wrapping_sub(base.0)));
        let relative: Vec<_> = relative.collect();
        if relative.is_empty() {
            self.differences.push("missing option: sack".to_owned());
        } else if relative != blocks {
            self.differ("sack", text(blocks), text(&relative));
        }
    }

    fn dss(
        &mut self,
        dss: &Dss,
        data_ack: Option<&DataNumber>,
        mapping: Option<&MappingSpec>,
        fin: bool,
    ) {
        let keys = self.flows.keys(self.flow);
        match (data_ack, dss.data_ack) {
            (None, None) => {}
            (Some(expected), Some(actual)) => {
                self.data_number("dack", expected, actual, keys.peer_base());
            }
            (Some(_), None) => self.differences.push("missing DATA_ACK".to_owned()),
            (None, Some(_)) => self.unexpected_dss("DATA_ACK", dss, keys),
        }
        match (mapping, dss.mapping) {
            (None, None) => {}
            (Some(expected), Some(_)) => self.mapping(dss, expected, keys),
            (Some(_), None) => self.differences.push("missing mapping".to_owned()),
            (None, Some(_)) => self.unexpected_dss("mapping", dss, keys),
        }
        if fin != dss.data_fin {
            let word = |fin| if fin { "set" } else { "clear" };
            self.differ("DATA_FIN", word(fin), word(dss.data_fin));
        }
    }

    fn unexpected_dss(&mut self, what: &str, dss: &Dss, keys: ScriptKeys) {
        let text = notation::dss_text(dss, keys.host_base(), keys.peer_base());
        self.differences.push(format!("unexpected {what}: {text}"));
    }

    fn data_number(
        &mut self,
        name: &str,
        expected: &DataNumber,
        actual: WideOrNarrow,
        base: Option<DataSeq>,
    ) {
        let bytes = actual.bytes_len();
        let wanted = match expected.width {
            Width::Four => 4,
            Width::Eight => 8,
            Width::Either => bytes,
        };
        self.equal(&format!("bytes of {name}"), wanted, bytes);
        let Some(base) = base else {
            return self.differences.push(format!("{name}: the key is unknown"));
        };
        let relative = actual.resolve(base).distance_from(base);
        self.value(name, &expected.value, relative as u64, None);
    }

    fn mapping(&mut self, dss: &Dss, expected: &MappingSpec, keys: ScriptKeys) {
        let Some(mapping) = dss.mapping else { return };
        self.data_number("dsn", &expected.data_seq, mapping.data_seq, keys.host_base());
        self.value("ssn", &expected.subflow_seq, u64::from(mapping.subflow_seq.0), None);
        self.value("dll", &expected.len, u64::from(mapping.len), None);
        let right = keys.host_base().map(|base| {
            let full = mapping.data_seq.resolve(base);
            let at = full.distance_from(base).wrapping_sub(1) as u64;
            let bytes = u32::from(mapping.len) - u32::from(dss.data_fin && mapping.len > 0);
            let mut sum = Checksum::of_dss_pseudo_header(full, mapping.subflow_seq, mapping.len);
            sum.add_payload(&Piece::pattern(at, bytes).into());
            sum
        });
        self.checksum(expected.checksum.as_ref(), mapping.checksum, right);
    }

    fn checksum(&mut self, expected: Option<&Value>, actual: Option<u16>, right: Option<Checksum>) {
        match (expected, actual) {
            (None, None) => {}
            (None, Some(actual)) => self.differ("checksum", "none", format!("{actual:#06x}")),
            (Some(_), None) => self.differ("checksum", "one", "none"),
            (Some(Value::Auto), Some(actual)) => {
                if right.is_some_and(|sum| !sum.verifies(actual)) {
                    self.differ("checksum", "a right one", format!("{actual:#06x}"));
                }
            }
            (Some(value), Some(actual)) => self.value("checksum", value, u64::from(actual), None),
        }
    }

    fn control(&mut self, option: &OptionSpec, control: &mut Control) {
        match option {
            OptionSpec::Capable { .. } => match control.capable.take() {
                Some(capable) => self.capable(option, &capable),
                None => self.missing(option),
            },
            OptionSpec::JoinSyn { .. }
            | OptionSpec::JoinSynAck { .. }
            | OptionSpec::JoinAck { .. } => match control.join.take() {
                Some(join) => self.join(option, &join),
                None => self.missing(option),
            },
            OptionSpec::AddAddress { .. } => match control.add_addr.take() {
                Some(add) => self.add_address(option, &add),
                None => self.missing(option),
            },
            _ => self.signal(option, control),
        }
    }

    fn capable(&mut self, option: &OptionSpec, capable: &MpCapable) {
        let OptionSpec::Capable { version, flags, keys, data_len, checksum } = option else {
            return;
        };
        self.equal("version", *version, capable.version);
        let byte = notation::capable_byte(capable.flags);
        if byte != *flags {
            self.differ("MP_CAPABLE", notation::flag_names(*flags), notation::flag_names(byte));
        }
        let (actual, actual_len, sum) = match capable.keys {
            CapableKeys::None => (vec![], None, None),
            CapableKeys::Sender(key) => (vec![key], None, None),
            CapableKeys::Both { sender, receiver } => (vec![sender, receiver], None, None),
            CapableKeys::WithData { sender, receiver, data_len, checksum } => {
                (vec![sender, receiver], Some(data_len), checksum)
            }
        };
        self.equal("keys", keys.len(), actual.len());
        for (key, actual) in keys.iter().zip(actual) {
            self.value("key", key, actual, None);
        }
        let text = |len: Option<u16>| len.map_or_else(|| "none".to_owned(), |len| len.to_string());
        self.equal("mpcdatalen", text(*data_len), text(actual_len));
        if let Some(len) = actual_len {
            let right = self.flows.keys(self.flow).host_base().map(|base| {
                let one = anabranch_wire::SeqNumber(1);
                let mut sum = Checksum::of_dss_pseudo_header(base + 1u64, one, len);
                sum.add_payload(&Piece::pattern(0, u32::from(len)).into());
                sum
            });
            self.checksum(checksum.as_ref(), sum, right);
        }
    }

    fn join(&mut self, option: &OptionSpec, join: &MpJoin) {
        let flow = &self.flows.all[self.flow];
        let own_id = Some(u64::from(flow.name.host));
        let nonces = flow.host_nonce.zip(flow.peer_nonce);
        let keys = self.flows.keys(self.flow);
        let hmac =
            keys.of_host().ok().zip(nonces).map(|(keys, nonces)| keys::join_hmac(keys, nonces));
        match (option, *join) {
            (
                OptionSpec::JoinSyn { backup, address_id, token, nonce },
                MpJoin::Syn { backup: actual, address_id: id, token: t, nonce: n },
            ) => {
                self.equal("backup", *backup, actual);
                self.value("address_id", address_id, u64::from(id), own_id);
                let right = keys.peer.map(|key| u64::from(keys::token(key)));
                self.value("token", token, u64::from(t), right);
                self.value("nonce", nonce, u64::from(n), Some(u64::from(n)));
            }
            (
                OptionSpec::JoinSynAck { backup, address_id, hmac: expected, nonce },
                MpJoin::SynAck { backup: actual, address_id: id, truncated_hmac, nonce: n },
            ) => {
                self.equal("backup", *backup, actual);
                self.value("address_id", address_id, u64::from(id), own_id);
                let right = hmac.map(|hmac| {
                    u64::from_be_bytes(hmac[..8].try_into().expect("an HMAC has 32 bytes"))
                });
                self.value("sender_hmac", expected, truncated_hmac, right);
                self.value("nonce", nonce, u64::from(n), Some(u64::from(n)));
            }
            (OptionSpec::JoinAck { hmac: expected }, MpJoin::Ack { hmac: actual }) => {
                let is_right = hmac.is_some_and(|hmac| hmac[..20] == actual);
                if *expected == Value::Auto && !is_right {
                    self.differences.push("sender_hmac: wrong".to_owned());
                }
            }
            _ => self.missing(option),
        }
    }

    fn add_address(&mut self, option: &OptionSpec, add: &AddAddr) {
        let OptionSpec::AddAddress { address_id, address, port, hmac } = option else { return };
        let layout = self.flows.layout;
        let (expected, number) = match *address {
            AddressName::Host(number) => (layout.host(number), number),
            AddressName::Peer(number) => (layout.peer(number), number),
        };
        self.value("address_id", address_id, u64::from(add.address_id), Some(u64::from(number)));
        self.equal("address", expected, add.address);
        self.equal("port", port.unwrap_or(0), add.port.unwrap_or(0));
        let keys = self.flows.keys(self.flow).of_host().ok();
        let right = keys.map(|keys| {
            keys::address_hmac(keys, add.address_id, add.address, add.port.unwrap_or(0))
        });
        match (hmac, add.truncated_hmac) {
            (None, None) => {}
            (Some(expected), Some(actual)) => self.value("hmac", expected, actual, right),
            (None, Some(_)) => self.differ("ADD_ADDR", "an echo", "an announcement"),
            (Some(_), None) => self.differ("ADD_ADDR", "an announcement", "an echo"),
        }
    }

    fn signal(&mut self, option: &OptionSpec, control: &mut Control) {
        let keys = self.flows.keys(self.flow);
        let found = match option {
            OptionSpec::RemoveAddress(ids) => control.remove_addr.take().map(|actual| {
                self.equal("address_id", format!("{ids:?}"), format!("{:?}", actual.address_ids()));
            }),
            OptionSpec::Prio { backup } => {
                control.prio.take().map(|actual| self.equal("backup", *backup, actual.backup))
            }
            OptionSpec::Fail { data_seq } => control.fail.take().map(|actual| {
                let base = keys.peer_base().unwrap_or_default();
                let relative = actual.data_seq.distance_from(base) as u64;
                self.value("mp_fail dsn", data_seq, relative, None);
            }),
            OptionSpec::Fastclose { key } => control
                .fastclose
                .take()
                .map(|actual| self.value("key", key, actual.receiver_key, keys.peer)),
            OptionSpec::Reset { reason, transient } => control.reset.take().map(|actual| {
                self.value("reset reason", reason, u64::from(actual.reason.0), None);
                if let Some(transient) = transient {
                    self.equal("transient", *transient, actual.transient);
                }
            }),
            _ => None,
        };
        if found.is_none() {
            self.missing(option);
        }
    }
}
