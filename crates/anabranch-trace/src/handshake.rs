//! Handshakes: MP_CAPABLE exchanges keys, and MP_JOIN proves their knowledge. RFC 8684 §3.1, §3.2.

use anabranch_wire::mptcp::{CapableFlags, CapableKeys, MpCapable, MpJoin};
use anabranch_wire::{Flags, Instant};

use crate::analyser::{Analyser, SegmentContext, since};
use crate::connection::Protocol;
use crate::keys::Version;
use crate::rules::Rule;
use crate::subflow::SubflowKind;

impl Analyser {
    /// Follow the handshake of a subflow.
    pub(crate) fn handshake(&mut self, context: &SegmentContext<'_>) {
        let flags = context.flags;
        if flags.contains(Flags::RST) {
            return;
        }
        let segment = &context.sighting.segment;
        if flags.contains(Flags::SYN) {
            let half = &mut self.subflows[context.subflow].halves[context.direction];
            half.set_syn(segment.header.seq);
            half.window_scale = context.options.window_scale;
            half.mss = context.options.mss;
            half.has_syn_options = context.has_all_options;
            if flags.contains(Flags::ACK) { self.syn_ack(context) } else { self.syn(context) }
        } else {
            self.after_syns(context);
        }
    }

    fn syn(&mut self, context: &SegmentContext<'_>) {
        // A retransmitted SYN, or the second SYN of a simultaneous open.
        if self.subflows[context.subflow].connection.is_some()
            || self.subflows[context.subflow].join.token.is_some()
        {
            return;
        }
        let (capable, join) = handshake_options(context);
        let subflow = &mut self.subflows[context.subflow];
        match (capable, join) {
            (Some(capable), _) => self.capable_syn(context, capable),
            (None, Some(join)) => {
                subflow.kind = SubflowKind::Join;
                self.join_syn(context, join);
            }
            // An option that was cut may have opened a connection or a join.
            (None, None) if !context.has_all_options => subflow.kind = SubflowKind::Begun,
            (None, None) => {
                self.begin(context.subflow, Protocol::Tcp, context.at);
            }
        }
    }

    fn capable_syn(&mut self, context: &SegmentContext<'_>, capable: MpCapable) {
        let version = Version::of(capable.version);
        let subflow = &mut self.subflows[context.subflow];
        subflow.kind = SubflowKind::Initial;
        subflow.is_other_version = version.is_none();
        let Some(version) = version else {
            self.begin(context.subflow, Protocol::Other, context.at);
            let text = format!("version {}: not decoded", capable.version);
            return self.event(context, "other_version", text);
        };
        let index = self.begin(context.subflow, Protocol::Mptcp(Some(version)), context.at);
        self.connections[index as usize].flags[0] = Some(capable.flags);
        self.check_capable(context, capable, version);
        // RFC 6824 §3.1: in version 0, the SYN carries the initiator's key.
        if let (Version::V0, CapableKeys::Sender(key)) = (version, capable.keys) {
            self.learn_key(index, 0, key, version);
        }
    }

    /// Check the fields of MP_CAPABLE, and whether its form matches the step of the handshake.
    fn check_capable(
        &mut self,
        context: &SegmentContext<'_>,
        capable: MpCapable,
        version: Version,
    ) {
        // RFC 8684 §3.1: MP_CAPABLE must specify an algorithm.
        if !has_algorithm(capable.flags, version) {
            self.violation(context, Rule::NoAlgorithm, "no algorithm in MP_CAPABLE".into());
        }
        // RFC 8684 §3.1, figure 4, and RFC 6824 §3.1, figure 4: each step has its own form.
        let syn = context.flags.contains(Flags::SYN);
        let ack = context.flags.contains(Flags::ACK);
        let fits = match (capable.keys, version) {
            (CapableKeys::None, Version::V1) => syn && !ack,
            (CapableKeys::Sender(_), Version::V1) => syn && ack,
            (CapableKeys::Sender(_), Version::V0) => syn,
            (CapableKeys::Both { .. }, _) | (CapableKeys::WithData { .. }, Version::V1) => !syn,
            (CapableKeys::None | CapableKeys::WithData { .. }, Version::V0) => false,
        };
        if !fits {
            let bytes = capable.bytes_len();
            let text = format!("MP_CAPABLE of {bytes} bytes in this step");
            self.violation(context, Rule::WrongStep, text);
        }
    }

    fn syn_ack(&mut self, context: &SegmentContext<'_>) {
        let (capable, join) = handshake_options(context);
        let first = {
            let subflow = &mut self.subflows[context.subflow];
            !std::mem::replace(&mut subflow.is_established, true)
        };
        match self.subflows[context.subflow].kind {
            SubflowKind::Initial if !self.subflows[context.subflow].is_other_version => {
                self.capable_syn_ack(context, capable, first);
            }
            SubflowKind::Join => match join {
                Some(MpJoin::SynAck { address_id, truncated_hmac, nonce, .. }) => {
                    let join = &mut self.subflows[context.subflow].join;
                    join.nonces[1] = Some(nonce);
                    join.ids[1] = Some(address_id);
                    join.answered.get_or_insert(context.at.time);
                    if first {
                        self.join_syn_ack(context, truncated_hmac);
                    }
                }
                Some(_) => self.violation_of_join(context),
                None if first && context.has_all_options => {
                    self.event(context, "join_refused", "SYN/ACK without MP_JOIN".into());
                }
                None => {}
            },
            // The SYN was not captured, but the SYN/ACK shows the kind of the subflow.
            SubflowKind::Begun => {
                let Some(capable) = capable else { return };
                let (key, version) = (sender_key(capable.keys), Version::of(capable.version));
                if let (Some(key), Some(version)) = (key, version) {
                    let protocol = Protocol::Mptcp(Some(version));
                    let index = self.begin(context.subflow, protocol, context.at);
                    self.subflows[context.subflow].kind = SubflowKind::Initial;
                    self.connections[index as usize].flags[1] = Some(capable.flags);
                    self.learn_key(index, 1, key, version);
                }
            }
            _ => {}
        }
    }

    fn capable_syn_ack(
        &mut self,
        context: &SegmentContext<'_>,
        capable: Option<MpCapable>,
        first: bool,
    ) {
        let Some(index) = self.subflows[context.subflow].connection else { return };
        let Some(version) = self.connections[index as usize].version() else { return };
        let of_version = |capable: &MpCapable| capable.version == version.number();
        let Some(capable) = capable.filter(of_version) else {
            // RFC 8684 §3.1: without MP_CAPABLE in the SYN/ACK, the connection is TCP.
            let is_unknown = self.connections[index as usize].keys[1].is_none();
            if first && is_unknown && context.has_all_options {
                self.fall_back(context, "no MP_CAPABLE in the SYN/ACK");
            }
            return;
        };
        if first {
            self.check_capable(context, capable, version);
        }
        let connection = &mut self.connections[index as usize];
        connection.flags[1] = Some(capable.flags);
        if let (CapableKeys::Sender(key), None) = (capable.keys, connection.keys[1]) {
            self.learn_key(index, 1, key, version);
        }
    }

    fn learn_key(&mut self, connection: u32, host: usize, key: u64, version: Version) {
        self.connections[connection as usize].set_key(host, key, version);
        self.tokens.insert(version.token(key), (connection, host));
    }

    fn join_syn(&mut self, context: &SegmentContext<'_>, join: MpJoin) {
        let MpJoin::Syn { backup, address_id, token, nonce } = join else {
            return self.violation_of_join(context);
        };
        let state = &mut self.subflows[context.subflow].join;
        state.token = Some(token);
        state.nonces[0] = Some(nonce);
        state.ids[0] = Some(address_id);
        state.is_backup = backup;
        // RFC 8684 §3.2: the token identifies the connection at the host that receives the SYN.
        if let Some((connection, asked)) = self.tokens.get(&token).copied() {
            self.attach(context.subflow, connection, asked == 0);
            self.connections[connection as usize].tokens_right += 1;
            self.check_denied(context);
        }
        let words = if backup { ", backup" } else { "" };
        self.event(context, "join", format!("token {token:08x}, address {address_id}{words}"));
    }

    /// RFC 8684 §3.1: with the C flag set, no subflow may be opened to that address and port.
    fn check_denied(&mut self, context: &SegmentContext<'_>) {
        let destination = context.sighting.segment.destination;
        let Some((connection, host)) = self.home(context) else { return };
        // In version 0, the bit names an algorithm.
        if connection.version() != Some(Version::V1) {
            return;
        }
        let denied = connection.flags[1 - host].is_some_and(|flags| flags.deny_join_to_source)
            && connection.ends[1 - host] == destination;
        if denied {
            self.violation(context, Rule::DeniedAddress, format!("join to {destination}"));
        }
    }

    /// Check that a host does not join after a fallback to TCP. RFC 8684 §3.7. The host's segment
    /// answers a segment seen at `asked`. Only this time can be compared with events at other places.
    fn check_fallen_back(&mut self, context: &SegmentContext<'_>, asked: Instant) {
        let Some((connection, host)) = self.home(context) else { return };
        if connection.gave_up[host].is_some_and(|since| since < asked) {
            let text = "MP_JOIN from a host that has fallen back to TCP".into();
            self.violation(context, Rule::JoinAfterFallback, text);
        }
    }

    fn join_syn_ack(&mut self, context: &SegmentContext<'_>, found: u64) {
        if self.subflows[context.subflow].connection.is_none() {
            self.find_by_hmac(context, found);
        }
        self.check_fallen_back(context, self.subflows[context.subflow].begin.time);
        let Some(expected) = self.expected_hmac(context, 1) else { return };
        let expected = u64::from_be_bytes(*expected.first_chunk().expect("20 bytes"));
        self.judge_hmac(context, expected == found, "SYN/ACK");
    }

    /// Find the connection of a join with an unknown token by its HMAC. If the HMAC matches, the
    /// token is wrong.
    fn find_by_hmac(&mut self, context: &SegmentContext<'_>, found: u64) {
        let join = &self.subflows[context.subflow].join;
        let ([Some(asking), Some(asked)], Some(token)) = (join.nonces, join.token) else { return };
        let known = self.connections.iter().enumerate().rev().take(MOST_TRIED);
        let made = known.flat_map(|(index, connection)| {
            [0, 1].map(|host| {
                let keys = connection.version().zip(connection.keys_of(host));
                let hmac = keys.map(|(version, keys)| version.join_hmac(keys, [asked, asking]));
                (index as u32, host, hmac)
            })
        });
        let owner = made
            .into_iter()
            .find(|(_, _, hmac)| hmac.is_some_and(|hmac| hmac[..8] == found.to_be_bytes()));
        let Some((connection, host, _)) = owner else { return };
        self.attach(context.subflow, connection, host == 0);
        let text =
            format!("unknown token {token:08x}; the HMAC is that of connection {connection}");
        self.violation(context, Rule::TokenUnknown, text);
    }

    /// The expected HMAC of one side of a join. Side 0 opened the subflow.
    fn expected_hmac(&self, context: &SegmentContext<'_>, side: usize) -> Option<[u8; 20]> {
        let subflow = &self.subflows[context.subflow];
        let connection = &self.connections[subflow.connection? as usize];
        let keys = connection.keys_of(side ^ usize::from(subflow.is_turned))?;
        let nonces = [subflow.join.nonces[side]?, subflow.join.nonces[1 - side]?];
        Some(connection.version()?.join_hmac(keys, nonces))
    }

    fn judge_hmac(&mut self, context: &SegmentContext<'_>, is_right: bool, place: &str) {
        let join = &mut self.subflows[context.subflow].join;
        if is_right {
            join.right += 1;
            if let Some((connection, _)) = self.home(context) {
                connection.hmacs_right += 1;
            }
        } else {
            join.wrong += 1;
            let text = format!("the HMAC in the {place} does not match keys and nonces");
            self.violation(context, Rule::JoinHmac, text);
        }
    }

    /// Process segments after the SYNs: third ACKs, and proofs that they arrived.
    fn after_syns(&mut self, context: &SegmentContext<'_>) {
        let (capable, join) = handshake_options(context);
        if let Some(capable) = capable {
            self.third_ack(context, capable);
        }
        let subflow = &mut self.subflows[context.subflow];
        if context.direction == 0
            && subflow.rtt.is_none()
            && let (Some(syn), true) = (subflow.syn_at, subflow.is_established)
        {
            subflow.rtt = Some(since(syn, context.at.time));
        }
        if subflow.kind != SubflowKind::Join || subflow.is_other_version {
            return;
        }
        match join {
            Some(MpJoin::Ack { hmac }) if context.direction == 0 => {
                if !std::mem::replace(&mut subflow.join.has_third, true) {
                    self.join_third_ack(context, hmac);
                }
            }
            Some(_) => self.violation_of_join(context),
            None => {
                let third = subflow.join.has_third;
                subflow.join.has_fourth |= context.direction == 1 && third;
            }
        }
        self.check_early(context);
    }

    fn join_third_ack(&mut self, context: &SegmentContext<'_>, found: [u8; 20]) {
        if let Some(answered) = self.subflows[context.subflow].join.answered {
            self.check_fallen_back(context, answered);
        }
        if let Some(expected) = self.expected_hmac(context, 0) {
            self.judge_hmac(context, expected == found, "third ACK");
        }
    }

    /// Check that a join carries no data before its third ACK is acknowledged. RFC 8684 §3.2.
    fn check_early(&mut self, context: &SegmentContext<'_>) {
        let join = &self.subflows[context.subflow].join;
        let is_ready = if context.direction == 0 { join.has_fourth } else { join.has_third };
        let is_first = !join.complained;
        if context.sighting.segment.payload_len > 0 && !is_ready && is_first {
            self.subflows[context.subflow].join.complained = true;
            let text = "data on a join before the end of its handshake".into();
            self.violation(context, Rule::EarlyData, text);
        }
    }

    /// Process an MP_CAPABLE after the SYNs, which carries both keys.
    fn third_ack(&mut self, context: &SegmentContext<'_>, capable: MpCapable) {
        let (sender, receiver) = match capable.keys {
            CapableKeys::Both { sender, receiver }
            | CapableKeys::WithData { sender, receiver, .. } => (sender, receiver),
            _ if self.subflows[context.subflow].is_other_version => return,
            _ => {
                let version = self.version(context).or(Version::of(capable.version));
                return version.map_or((), |version| self.check_capable(context, capable, version));
            }
        };
        let Some(version) = Version::of(capable.version) else { return };
        let subflow = &self.subflows[context.subflow];
        let index = match (subflow.connection, subflow.kind) {
            (Some(index), SubflowKind::Initial) => index,
            (None, SubflowKind::Begun) => {
                self.subflows[context.subflow].kind = SubflowKind::Initial;
                self.begin(context.subflow, Protocol::Mptcp(Some(version)), context.at)
            }
            // Its first option was a DSS, so the handshake is unknown.
            (Some(_), SubflowKind::Begun) => return,
            _ => {
                let text = "MP_CAPABLE on a subflow that is not the first".into();
                return self.violation(context, Rule::WrongStep, text);
            }
        };
        if self.connections[index as usize].version() != Some(version) {
            return;
        }
        let connection = &self.connections[index as usize];
        let (host, known) = (context.direction, connection.keys);
        // RFC 8684 §3.1: the third ACK confirms the decision on checksums.
        let agreed = connection.has_checksums();
        let is_first = !connection.is_confirmed;
        if is_first && agreed.is_some_and(|agreed| agreed != capable.flags.checksum_required) {
            let text = "the A flag contradicts the SYNs".into();
            self.violation(context, Rule::ChecksumFlag, text);
        }
        for (of, key) in [(host, sender), (1 - host, receiver)] {
            match known[of] {
                None => self.learn_key(index, of, key, version),
                Some(known) if known != key => {
                    let whose = if of == 0 { "initiator" } else { "listener" };
                    let text =
                        format!("the {whose}'s key is {key:016x}; it was {known:016x} before");
                    self.violation(context, Rule::KeyMismatch, text);
                }
                Some(_) => {}
            }
        }
        self.connections[index as usize].is_confirmed = true;
        if is_first {
            let tokens = [sender, receiver].map(|key| version.token(key));
            let text = format!("tokens {:08x} and {:08x}", tokens[host], tokens[1 - host]);
            self.event(context, "mp_capable", text);
        }
    }

    fn violation_of_join(&mut self, context: &SegmentContext<'_>) {
        self.violation(context, Rule::WrongStep, "MP_JOIN in the form of another context".into());
    }

    /// Process a reset, which may refuse a join.
    pub(crate) fn on_reset(&mut self, context: &SegmentContext<'_>) {
        let subflow = &self.subflows[context.subflow];
        let refused = subflow.kind == SubflowKind::Join && !subflow.is_established;
        // A connection that began before the capture may have this token.
        let knows_all = self.begun.is_empty() && !self.tokens.is_empty();
        if let (true, None, Some(token)) =
            (refused && knows_all, subflow.connection, subflow.join.token)
        {
            // RFC 8684 §3.2: a host answers an unknown token with a RST.
            let text = format!("unknown token {token:08x}, and the peer refused the join");
            let mut whom = self.whom(context);
            whom.direction = 0;
            let clause = Rule::TokenUnknown.clause_in(None);
            self.watch.violation(context.at, whom, Rule::TokenUnknown, clause, text);
        }
    }

    /// The connection falls back to TCP.
    pub(crate) fn fall_back(&mut self, context: &SegmentContext<'_>, why: &'static str) {
        let Some((connection, _)) = self.home(context) else { return };
        if connection.fall_back(context.at, why) {
            self.event(context, "fallback", why.to_owned());
        }
    }
}

fn handshake_options(context: &SegmentContext<'_>) -> (Option<MpCapable>, Option<MpJoin>) {
    context
        .options
        .control
        .as_deref()
        .map_or((None, None), |control| (control.capable, control.join))
}

/// Returns `true` if the flags name an algorithm. In version 0 these are bits C to H (RFC 6824
/// §3.1), in version 1 bits D to H.
fn has_algorithm(flags: CapableFlags, version: Version) -> bool {
    let is_known = flags.hmac_sha256 || flags.unassigned != 0;
    is_known || (version == Version::V0 && flags.deny_join_to_source)
}

fn sender_key(keys: CapableKeys) -> Option<u64> {
    match keys {
        CapableKeys::Sender(key) => Some(key),
        _ => None,
    }
}

/// Largest number of connections whose keys are tried on a join with an unknown token.
const MOST_TRIED: usize = 1_000;
