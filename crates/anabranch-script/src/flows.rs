//! The subflows of a script, their numbers and keys, and the script's variables.

use std::collections::BTreeMap;

use anabranch_wire::mptcp::{CapableKeys, MpJoin};
use anabranch_wire::{DataSeq, Flags, Segment, SeqNumber, SocketAddress};

use crate::keys;
use crate::layout::{Layout, PEER_EPHEMERAL, PORT};
use crate::script::PathName;

/// A subflow or TCP connection.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) name: PathName,
    pub(crate) host: SocketAddress,
    pub(crate) peer: SocketAddress,
    /// Initial sequence number of the host; unknown until the host has sent a SYN.
    pub(crate) host_isn: Option<SeqNumber>,
    pub(crate) peer_isn: SeqNumber,
    /// Difference between the host's timestamps and the script's.
    pub(crate) clock_offset: Option<u32>,
    /// The host's last timestamp.
    pub(crate) last_stamp: Option<u32>,
    /// Index into [`Flows::keys`].
    pub(crate) connection: usize,
    pub(crate) host_nonce: Option<u32>,
    pub(crate) peer_nonce: Option<u32>,
    /// Difference between data sequence numbers and subflow sequence numbers in the peer's mappings.
    pub(crate) ahead_in: u32,
    /// The same difference in the host's mappings.
    pub(crate) ahead_out: u32,
}

/// The keys of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScriptKeys {
    pub(crate) host: Option<u64>,
    pub(crate) peer: Option<u64>,
}

impl ScriptKeys {
    /// The host's initial data sequence number.
    pub(crate) fn host_base(self) -> Option<DataSeq> {
        self.host.map(|key| DataSeq(keys::initial_data_seq(key)))
    }

    /// The peer's initial data sequence number.
    pub(crate) fn peer_base(self) -> Option<DataSeq> {
        self.peer.map(|key| DataSeq(keys::initial_data_seq(key)))
    }

    /// Both keys in the order of the peer's HMACs: the peer's key first.
    pub(crate) fn of_peer(self) -> Result<(u64, u64), String> {
        let peer = self.peer.ok_or("the peer's key is unknown: write key[ckey=2] first")?;
        let host = self.host.ok_or("the host's key is unknown: it has sent none")?;
        Ok((peer, host))
    }

    /// Both keys in the order of the host's HMACs: the host's key first.
    pub(crate) fn of_host(self) -> Result<(u64, u64), String> {
        self.of_peer().map(|(peer, host)| (host, peer))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Flows {
    pub(crate) layout: Layout,
    peer_isn: u32,
    pub(crate) all: Vec<Flow>,
    keys: Vec<ScriptKeys>,
    pub(crate) variables: BTreeMap<String, u64>,
}

impl Flows {
    pub(crate) fn new(layout: Layout, peer_isn: u32) -> Self {
        Flows { layout, peer_isn, all: Vec::new(), keys: Vec::new(), variables: BTreeMap::new() }
    }

    pub(crate) fn keys(&self, flow: usize) -> ScriptKeys {
        self.keys[self.all[flow].connection]
    }

    pub(crate) fn keys_mut(&mut self, flow: usize) -> &mut ScriptKeys {
        &mut self.keys[self.all[flow].connection]
    }

    /// The flow with this name.
    pub(crate) fn named(&self, name: PathName) -> Option<usize> {
        self.all.iter().position(|flow| {
            let this = flow.name;
            (this.host, this.peer, this.number) == (name.host, name.peer, name.number)
                && name.host_port.is_none_or(|port| port == flow.host.port)
                && name.peer_port.is_none_or(|port| port == flow.peer.port)
        })
    }

    /// The flow with this name. If there is none, the peer opens a new flow.
    pub(crate) fn named_or_new(&mut self, name: PathName) -> usize {
        if let Some(found) = self.named(name) {
            return found;
        }
        // The peer joins the port of the first subflow.
        let default = self.all.first().map_or(PORT, |first| first.host.port);
        let peer_port = PEER_EPHEMERAL + self.all.len() as u16;
        let host =
            SocketAddress::new(self.layout.host(name.host), name.host_port.unwrap_or(default));
        let peer =
            SocketAddress::new(self.layout.peer(name.peer), name.peer_port.unwrap_or(peer_port));
        self.add(name, host, peer)
    }

    /// The flow that an outgoing segment belongs to, or a new flow if there is none.
    fn of_outgoing(&mut self, segment: &Segment) -> Option<usize> {
        let (host, peer) = (segment.source, segment.destination);
        if let Some(found) = self.find(host, peer) {
            return Some(found);
        }
        let host_number = self.layout.host_number(host.address)?;
        let peer_number = self.layout.peer_number(peer.address)?;
        let alike = |flow: &&Flow| (flow.name.host, flow.name.peer) == (host_number, peer_number);
        let number = 1 + self.all.iter().filter(alike).count() as u8;
        let (host_port, peer_port) = (None, None);
        let name = PathName { host: host_number, host_port, peer: peer_number, peer_port, number };
        Some(self.add(name, host, peer))
    }

    pub(crate) fn find(&self, host: SocketAddress, peer: SocketAddress) -> Option<usize> {
        self.all.iter().position(|flow| (flow.host, flow.peer) == (host, peer))
    }

    fn add(&mut self, name: PathName, host: SocketAddress, peer: SocketAddress) -> usize {
        let step = 1_000_000 * self.all.len() as u32;
        self.all.push(Flow {
            name: PathName { host_port: None, peer_port: None, ..name },
            host,
            peer,
            host_isn: None,
            peer_isn: SeqNumber(self.peer_isn) + step,
            clock_offset: None,
            last_stamp: None,
            connection: self.keys.len(),
            host_nonce: None,
            peer_nonce: None,
            ahead_in: 0,
            ahead_out: 0,
        });
        self.keys.push(ScriptKeys::default());
        self.all.len() - 1
    }

    /// The connection with this token, derived from the key of the host or of the peer.
    pub(crate) fn connection_of(
        &self,
        token: u32,
        key: fn(&ScriptKeys) -> Option<u64>,
    ) -> Option<usize> {
        self.keys.iter().position(|keys| key(keys).map(keys::token) == Some(token))
    }

    /// The connection that was opened last.
    pub(crate) fn newest_connection(&self) -> Option<usize> {
        self.keys.iter().rposition(|keys| keys.host.is_some())
    }

    pub(crate) fn keys_of(&self, connection: usize) -> ScriptKeys {
        self.keys[connection]
    }

    /// Record the numbers in a segment that the host sends.
    pub(crate) fn observe(&mut self, segment: &Segment) -> Option<usize> {
        let index = self.of_outgoing(segment)?;
        let flow = &mut self.all[index];
        if segment.header.flags.contains(Flags::SYN) {
            flow.host_isn = Some(segment.header.seq);
        }
        if let Some(stamps) = segment.options.timestamps {
            flow.last_stamp = Some(stamps.value);
        }
        let Some(control) = &segment.options.control else { return Some(index) };
        match control.join {
            Some(MpJoin::Syn { token, nonce, .. }) => {
                flow.host_nonce = Some(nonce);
                if let Some(connection) = self.connection_of(token, |keys| keys.peer) {
                    self.all[index].connection = connection;
                }
            }
            Some(MpJoin::SynAck { nonce, .. }) => flow.host_nonce = Some(nonce),
            _ => {}
        }
        if let Some(key) = control.capable.and_then(|capable| sender_key(capable.keys)) {
            self.keys_mut(index).host.get_or_insert(key);
        }
        Some(index)
    }

    /// The value of a variable.
    pub(crate) fn variable(&self, name: &str) -> Result<u64, String> {
        let value = self.variables.get(name).copied();
        value.ok_or_else(|| format!("{name} has no value yet"))
    }

    /// The name of a variable with this value, or the number.
    pub(crate) fn name_of(&self, value: u64) -> String {
        let known = self.variables.iter().find(|(_, other)| **other == value);
        known.map_or_else(|| format!("{value:#x}"), |(name, _)| name.clone())
    }
}

/// The key of the host that sends an MP_CAPABLE.
pub(crate) fn sender_key(keys: CapableKeys) -> Option<u64> {
    match keys {
        CapableKeys::None => None,
        CapableKeys::Sender(sender)
        | CapableKeys::Both { sender, .. }
        | CapableKeys::WithData { sender, .. } => Some(sender),
    }
}
