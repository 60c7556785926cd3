//! Composition of the segments that the peer sends, from their notation in a script.

use anabranch_wire::mptcp::{
    AddAddr, CapableFlags, CapableKeys, Dss, Mapping, MpCapable, MpFail, MpFastclose, MpJoin,
    MpPrio, MpTcprst, RemoveAddr, ResetReason, WideOrNarrow,
};
use anabranch_wire::{
    DataSeq, Piece, SackBlock, Segment, SeqNumber, TcpHeader, TcpOptions, Timestamps, dss_checksum,
};

use crate::flows::Flows;
use crate::keys;
use crate::options::{AddressName, DataNumber, MappingSpec, OptionSpec, Value, Width};
use crate::script::SegmentSpec;

/// Compose the segment, or explain why that is impossible.
pub(crate) fn compose(spec: &SegmentSpec, flows: &mut Flows) -> Result<Segment, String> {
    let flow = flows.named_or_new(spec.path);
    let mut options = TcpOptions::default();
    for option in &spec.options.items {
        Composer { flows: &mut *flows, flow, options: &mut options }.add(option)?;
    }
    let bytes = options.bytes_len();
    if bytes > anabranch_wire::MAX_OPTION_BYTES {
        return Err(format!("the options take {bytes} bytes; at most 40 fit"));
    }
    let flow = &flows.all[flow];
    let host_isn = flow.host_isn.unwrap_or_default();
    let offset = spec.text_seq().wrapping_sub(1).wrapping_add(flow.ahead_in);
    Ok(Segment {
        source: flow.peer,
        destination: flow.host,
        header: TcpHeader {
            seq: flow.peer_isn + spec.seq,
            ack: spec.ack.map_or(SeqNumber::default(), |ack| host_isn + ack),
            flags: spec.flags,
            window: spec.window.unwrap_or(u16::MAX),
            urgent: spec.urgent.unwrap_or(0),
        },
        options,
        payload: Piece::pattern(u64::from(offset), spec.len).into(),
        ecn: spec.ecn.unwrap_or(0),
        checksum_ok: !spec.corrupt,
    })
}

struct Composer<'a> {
    flows: &'a mut Flows,
    flow: usize,
    options: &'a mut TcpOptions,
}

impl Composer<'_> {
    fn add(&mut self, option: &OptionSpec) -> Result<(), String> {
        match option {
            OptionSpec::Nop => {}
            OptionSpec::Mss(value) => self.options.mss = Some(plain(value)? as u16),
            OptionSpec::SackOk => self.options.sack_permitted = true,
            OptionSpec::WindowScale(value) => self.options.window_scale = Some(plain(value)? as u8),
            OptionSpec::Timestamps { value, echo } => self.timestamps(value, echo)?,
            OptionSpec::Sack(blocks) => self.sack(blocks),
            OptionSpec::Raw(bytes) => {
                let mut all = self.options.unknown.as_deref().unwrap_or_default().to_vec();
                all.extend(bytes);
                self.options.unknown = Some(all.into());
            }
            OptionSpec::Dss { data_ack, mapping, fin } => {
                self.dss(data_ack.as_ref(), mapping.as_ref(), *fin)?;
            }
            other => self.control(other)?,
        }
        Ok(())
    }

    fn timestamps(&mut self, value: &Value, echo: &Value) -> Result<(), String> {
        let flow = &self.flows.all[self.flow];
        let echo = match echo {
            Value::Auto => flow.last_stamp.unwrap_or(0),
            Value::Number(0) => 0,
            other => (plain(other)? as u32).wrapping_add(flow.clock_offset.unwrap_or(0)),
        };
        self.options.timestamps = Some(Timestamps { value: plain(value)? as u32, echo });
        Ok(())
    }

    fn sack(&mut self, blocks: &[(u32, u32)]) {
        let base = self.flows.all[self.flow].host_isn.unwrap_or_default();
        for (start, end) in blocks {
            self.options.sack.push(SackBlock { start: base + *start, end: base + *end });
        }
    }

    fn dss(
        &mut self,
        data_ack: Option<&DataNumber>,
        mapping: Option<&MappingSpec>,
        fin: bool,
    ) -> Result<(), String> {
        let keys = self.flows.keys(self.flow);
        let data_ack = data_ack.map(|number| {
            let base =
                keys.host_base().ok_or("dack needs the host's key, which it has not sent")?;
            number_of(number, base)
        });
        let mapping = mapping.map(|mapping| {
            let base =
                keys.peer_base().ok_or("dsn needs the peer's key: write key[ckey=2] first")?;
            self.mapping(mapping, base, fin)
        });
        let (data_ack, mapping) = (data_ack.transpose()?, mapping.transpose()?);
        self.options.dss = Some(Dss { data_ack, mapping, data_fin: fin });
        Ok(())
    }

    fn mapping(&mut self, spec: &MappingSpec, base: DataSeq, fin: bool) -> Result<Mapping, String> {
        let subflow_seq = limited("ssn", &spec.subflow_seq, u32::MAX.into())? as u32;
        let len = limited("dll", &spec.len, u16::MAX.into())? as u16;
        let relative = plain(&spec.data_seq.value)?;
        if subflow_seq > 0 {
            self.flows.all[self.flow].ahead_in = (relative as u32).wrapping_sub(subflow_seq);
        }
        let bytes = u32::from(len) - u32::from(fin && len > 0);
        let payload = Piece::pattern(relative.wrapping_sub(1), bytes).into();
        let sum = || dss_checksum(base + relative, SeqNumber(subflow_seq), len, &payload);
        Ok(Mapping {
            data_seq: number_of(&spec.data_seq, base)?,
            subflow_seq: SeqNumber(subflow_seq),
            len,
            checksum: spec.checksum.as_ref().map(|value| checksum(value, sum)).transpose()?,
        })
    }

    fn control(&mut self, option: &OptionSpec) -> Result<(), String> {
        match option {
            OptionSpec::Capable { .. } => self.capable(option),
            OptionSpec::JoinSyn { .. }
            | OptionSpec::JoinSynAck { .. }
            | OptionSpec::JoinAck { .. } => self.join(option),
            OptionSpec::AddAddress { address_id, address, port, hmac } => {
                self.add_address(address_id, *address, *port, hmac.as_ref())
            }
            _ => self.signal(option),
        }
    }

    fn capable(&mut self, option: &OptionSpec) -> Result<(), String> {
        let OptionSpec::Capable { version, flags, keys, data_len, checksum: sum } = option else {
            return Ok(());
        };
        let values = keys.iter().map(|key| self.key(key)).collect::<Result<Vec<_>, _>>()?;
        if let Some(sender) = values.first() {
            self.flows.keys_mut(self.flow).peer.get_or_insert(*sender);
        }
        let keys = match (values.as_slice(), data_len) {
            ([], _) => CapableKeys::None,
            ([sender], _) => CapableKeys::Sender(*sender),
            ([sender, receiver, ..], None) => {
                CapableKeys::Both { sender: *sender, receiver: *receiver }
            }
            ([sender, receiver, ..], Some(data_len)) => {
                let first = DataSeq(keys::initial_data_seq(*sender)) + 1u64;
                let payload = Piece::pattern(0, u32::from(*data_len)).into();
                let right = || dss_checksum(first, SeqNumber(1), *data_len, &payload);
                let checksum = sum.as_ref().map(|value| checksum(value, right)).transpose()?;
                let (sender, receiver) = (*sender, *receiver);
                CapableKeys::WithData { sender, receiver, data_len: *data_len, checksum }
            }
        };
        let flags = capable_flags(*flags);
        self.options.control_mut().capable = Some(MpCapable { version: *version, flags, keys });
        Ok(())
    }

    fn key(&mut self, value: &Value) -> Result<u64, String> {
        match value {
            Value::Define(name, number) => {
                self.flows.variables.insert(name.clone(), *number);
                Ok(*number)
            }
            Value::Name(name) => self.flows.variable(name),
            other => plain(other),
        }
    }

    fn join(&mut self, option: &OptionSpec) -> Result<(), String> {
        let join = match option {
            OptionSpec::JoinSyn { backup, address_id, token, nonce } => {
                let token = self.token(token)?;
                let (address_id, nonce) = (self.address_id(address_id)?, self.nonce(nonce)?);
                MpJoin::Syn { backup: *backup, address_id, token, nonce }
            }
            OptionSpec::JoinSynAck { backup, address_id, hmac, nonce } => {
                let (address_id, nonce) = (self.address_id(address_id)?, self.nonce(nonce)?);
                let right = self.hmac()?;
                let bytes = right[..8].try_into().expect("an HMAC has 32 bytes");
                let truncated_hmac = or_else(hmac, u64::from_be_bytes(bytes))?;
                MpJoin::SynAck { backup: *backup, address_id, truncated_hmac, nonce }
            }
            OptionSpec::JoinAck { hmac } => {
                let mut bytes: [u8; 20] = self.hmac()?[..20].try_into().expect("32 bytes");
                bytes[0] ^= u8::from(*hmac == Value::Bad);
                MpJoin::Ack { hmac: bytes }
            }
            _ => return Ok(()),
        };
        self.options.control_mut().join = Some(join);
        Ok(())
    }

    /// The token of the connection to join. From now on the flow belongs to that connection.
    fn token(&mut self, value: &Value) -> Result<u32, String> {
        let newest = self.flows.newest_connection();
        let newest = newest.ok_or("a join needs the key of a connection: none is known")?;
        let own = self.flows.keys_of(newest).host.map(keys::token).unwrap_or_default();
        let token = match value {
            Value::TokenOf(name) => keys::token(self.flows.variable(name)?),
            other => or_else(other, u64::from(own))? as u32,
        };
        let named = self.flows.connection_of(token, |keys| keys.host);
        self.flows.all[self.flow].connection = named.unwrap_or(newest);
        Ok(token)
    }

    fn nonce(&mut self, value: &Value) -> Result<u32, String> {
        let nonce = or_else(value, 0x1000 + self.flow as u64)? as u32;
        self.flows.all[self.flow].peer_nonce = Some(nonce);
        Ok(nonce)
    }

    /// The identifier of the peer's address, which is the address's number.
    fn address_id(&self, value: &Value) -> Result<u8, String> {
        let id = Value::Number(or_else(value, u64::from(self.flows.all[self.flow].name.peer))?);
        Ok(limited("address_id", &id, u8::MAX.into())? as u8)
    }

    /// The HMAC that the peer sends.
    fn hmac(&self) -> Result<[u8; 32], String> {
        let flow = &self.flows.all[self.flow];
        let nonces = flow.peer_nonce.zip(flow.host_nonce);
        let nonces = nonces.ok_or("an HMAC needs both nonces: write the SYN and SYN/ACK first")?;
        Ok(keys::join_hmac(self.flows.keys(self.flow).of_peer()?, nonces))
    }

    fn add_address(
        &mut self,
        address_id: &Value,
        name: AddressName,
        port: Option<u16>,
        hmac: Option<&Value>,
    ) -> Result<(), String> {
        let (address, number) = match name {
            AddressName::Host(number) => (self.flows.layout.host(number), number),
            AddressName::Peer(number) => (self.flows.layout.peer(number), number),
        };
        let address_id = or_else(address_id, u64::from(number))? as u8;
        let truncated_hmac = match hmac {
            None => None,
            Some(value) => {
                let keys = self.flows.keys(self.flow).of_peer()?;
                let right = keys::address_hmac(keys, address_id, address, port.unwrap_or(0));
                Some(or_else(value, right)?)
            }
        };
        self.options.control_mut().add_addr =
            Some(AddAddr { address_id, address, port, truncated_hmac });
        Ok(())
    }

    fn signal(&mut self, option: &OptionSpec) -> Result<(), String> {
        let keys = self.flows.keys(self.flow);
        let control = self.options.control_mut();
        match option {
            OptionSpec::RemoveAddress(ids) => control.remove_addr = RemoveAddr::new(ids),
            OptionSpec::Prio { backup } => control.prio = Some(MpPrio { backup: *backup }),
            OptionSpec::Fail { data_seq } => {
                // RFC 8684 §3.7: the number belongs to the failed data, which the host sent.
                let base = keys.host_base().ok_or("mp_fail needs the host's key")?;
                control.fail = Some(MpFail { data_seq: base + plain(data_seq)? });
            }
            OptionSpec::Fastclose { key } => {
                let host = keys.host.ok_or("mp_fastclose needs the host's key")?;
                let receiver_key = match key {
                    Value::Name(name) => self.flows.variable(name)?,
                    Value::Define(_, number) => *number,
                    other => or_else(other, host)?,
                };
                control.fastclose = Some(MpFastclose { receiver_key });
            }
            OptionSpec::Reset { reason, transient } => {
                let reason = ResetReason(plain(reason)? as u8);
                let transient = transient.unwrap_or(false);
                control.reset = Some(MpTcprst { unassigned: 0, transient, reason });
            }
            _ => {}
        }
        Ok(())
    }
}

/// The flags of MP_CAPABLE, with A as the highest bit. RFC 8684 §3.1.
pub(crate) fn capable_flags(byte: u8) -> CapableFlags {
    CapableFlags {
        checksum_required: byte & 0x80 != 0,
        extensibility: byte & 0x40 != 0,
        deny_join_to_source: byte & 0x20 != 0,
        unassigned: byte & 0x1e,
        hmac_sha256: byte & 0x01 != 0,
    }
}

fn number_of(number: &DataNumber, base: DataSeq) -> Result<WideOrNarrow, String> {
    let full = base + plain(&number.value)?;
    Ok(match number.width {
        Width::Eight => WideOrNarrow::Wide(full),
        Width::Four | Width::Either => WideOrNarrow::Narrow(full.low32()),
    })
}

fn checksum(value: &Value, right: impl Fn() -> u16) -> Result<u16, String> {
    match value {
        Value::Auto => Ok(right()),
        Value::Bad => Ok(right() ^ 1),
        other => Ok(plain(other)? as u16),
    }
}

/// The script's value: `right` for `auto`, another value for `bad`.
fn or_else(value: &Value, right: u64) -> Result<u64, String> {
    match value {
        Value::Auto => Ok(right),
        Value::Bad => Ok(right ^ 1),
        other => plain(other),
    }
}

/// The number, if it fits into the field.
fn limited(name: &str, value: &Value, most: u64) -> Result<u64, String> {
    let number = plain(value)?;
    if number <= most {
        Ok(number)
    } else {
        Err(format!("{name} is {number}; at most {most} fits"))
    }
}

fn plain(value: &Value) -> Result<u64, String> {
    match value {
        Value::Number(number) | Value::Define(_, number) => Ok(*number),
        _ => Err("a segment from the peer needs a number instead of * or a name".to_owned()),
    }
}
