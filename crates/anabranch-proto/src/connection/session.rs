//! The agreement between the hosts: the protocol they use, and their keys. RFC 8684 §3.1.

use anabranch_wire::mptcp::{CapableFlags, CapableKeys, MpCapable, VERSION};
use anabranch_wire::{Checksum, DataSeq, SeqNumber, SocketAddress};

use crate::config::{ConnectionConfig, Protocol};
use crate::keys;

/// Role of this host: which of the two sent the first SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Initiator,
    Listener,
}

/// The protocol of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Undecided until the handshake is complete.
    Negotiating,
    /// Multipath TCP.
    Mptcp(Peer),
    /// Plain TCP, from the start or by fallback.
    Tcp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Opening,
    Open,
    Ended,
}

/// The other host's key, and its initial data sequence number, which follows from the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Peer {
    key: u64,
    idsn: DataSeq,
}

/// The keys of both hosts.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionKeys {
    pub(super) local: u64,
    pub(super) remote: u64,
}

/// Random numbers that the hosts have chosen for a join. RFC 8684 §3.2.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Nonces {
    pub(super) local: u32,
    pub(super) remote: u32,
}

impl SessionKeys {
    /// HMAC that proves to the peer that this host knows both keys. RFC 8684 §3.2.
    pub(super) fn proof(self, nonces: Nonces) -> [u8; 32] {
        keys::join_hmac(self.local, self.remote, nonces.local, nonces.remote)
    }

    /// HMAC that this host expects from the peer.
    pub(super) fn proof_of_peer(self, nonces: Nonces) -> [u8; 32] {
        keys::join_hmac(self.remote, self.local, nonces.remote, nonces.local)
    }
}

/// The agreed protocol and keys, and whether the connection is open.
pub(super) struct Session {
    role: Role,
    mode: Mode,
    status: Status,
    key: u64,
    idsn: DataSeq,
    /// Mappings have checksums. RFC 8684 §3.1.
    checksums: bool,
    /// Whether the peer may open further subflows to the local address and port of the first
    /// subflow. RFC 8684 §3.1, the "C" flag.
    allows_joins_at_first: bool,
    /// Address and port at which this host accepts no further subflows.
    closed_here: Option<SocketAddress>,
    /// Address and port at which the peer accepts none.
    closed_there: Option<SocketAddress>,
    /// Bytes of the initiator's stream that the SYN carried. They have no data sequence numbers. RFC
    /// 8684 appendix B.
    in_syn: u16,
}

impl Session {
    /// A session without agreement yet. This host's key is `key`.
    pub(super) fn new(role: Role, key: u64, config: &ConnectionConfig) -> Self {
        Session {
            role,
            mode: match config.protocol {
                Protocol::Mptcp => Mode::Negotiating,
                Protocol::Tcp => Mode::Tcp,
            },
            status: Status::Opening,
            key,
            idsn: keys::initial_data_seq(key),
            checksums: config.dss_checksum,
            allows_joins_at_first: config.allow_join_initial_addr_port,
            closed_here: None,
            closed_there: None,
            in_syn: 0,
        }
    }

    #[inline]
    pub(super) fn is_mptcp(&self) -> bool {
        matches!(self.mode, Mode::Mptcp(_))
    }

    #[inline]
    pub(super) fn is_tcp(&self) -> bool {
        matches!(self.mode, Mode::Tcp)
    }

    #[inline]
    pub(super) fn is_negotiating(&self) -> bool {
        matches!(self.mode, Mode::Negotiating)
    }

    #[inline]
    pub(super) fn is_initiator(&self) -> bool {
        self.role == Role::Initiator
    }

    #[inline]
    pub(super) fn is_listener(&self) -> bool {
        self.role == Role::Listener
    }

    /// Returns `true` if the handshake of the first subflow is in progress.
    #[inline]
    pub(super) fn is_opening(&self) -> bool {
        self.status == Status::Opening
    }

    /// Returns `true` if the handshake of the first subflow is complete and the connection is not
    /// over.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.status == Status::Open
    }

    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        self.status == Status::Ended
    }

    /// Returns `true` if the application knows this connection. RFC 9293 §3.10.7.4: a listening
    /// application need not learn of an attempt that never became a connection.
    pub(super) fn is_known(&self) -> bool {
        self.is_initiator() || !self.is_opening()
    }

    /// The handshake of the first subflow is complete.
    pub(super) fn open(&mut self) {
        self.status = Status::Open;
    }

    /// The connection is over, either in order or with an error.
    pub(super) fn end(&mut self) {
        self.status = Status::Ended;
    }

    /// The keys; `None` without Multipath TCP.
    #[inline]
    pub(super) fn keys(&self) -> Option<SessionKeys> {
        match self.mode {
            Mode::Mptcp(peer) => Some(SessionKeys { local: self.key, remote: peer.key }),
            Mode::Negotiating | Mode::Tcp => None,
        }
    }

    /// This host's key.
    pub(super) fn key(&self) -> u64 {
        self.key
    }

    /// This host's token, by which joins identify the connection.
    pub(super) fn token(&self) -> u32 {
        keys::token(self.key)
    }

    /// The data sequence number of this host's byte at `offset`.
    #[inline]
    pub(super) fn data_seq(&self, offset: u64) -> DataSeq {
        self.idsn + offset
    }

    /// The data sequence number at which the peer's offsets begin; 0 before the agreement.
    #[inline]
    pub(super) fn peer_idsn(&self) -> DataSeq {
        match self.mode {
            Mode::Mptcp(peer) => peer.idsn,
            Mode::Negotiating | Mode::Tcp => DataSeq(0),
        }
    }

    /// The SYN carried the first `bytes` of the stream. RFC 8684 appendix B: the first byte that
    /// follows them is mapped to the second data sequence number, as without them.
    pub(super) fn had_data_in_syn(&mut self, bytes: u16) {
        self.in_syn = bytes;
        if self.is_initiator() {
            self.idsn = keys::initial_data_seq(self.key) + u64::from(bytes).wrapping_neg();
        }
    }

    /// Offset of the initiator's first byte that has a data sequence number.
    #[inline]
    pub(super) fn first_mapped(&self) -> u64 {
        1 + u64::from(self.in_syn)
    }

    /// Returns `true` if the SYN carried data.
    #[inline]
    pub(super) fn has_data_in_syn(&self) -> bool {
        self.in_syn > 0
    }

    /// Returns `true` if mappings have checksums.
    #[inline]
    pub(super) fn checksums(&self) -> bool {
        self.checksums
    }

    /// RFC 8684 §3.1: checksums are used if either host requires them.
    pub(super) fn handle_checksum_flag(&mut self, flags: CapableFlags) {
        self.checksums |= flags.checksum_required;
    }

    /// MP_CAPABLE with the properties that this host offers, or that both have agreed on. RFC 8684
    /// §3.1.
    pub(super) fn capable(&self, keys: CapableKeys) -> MpCapable {
        let flags = CapableFlags {
            checksum_required: self.checksums,
            deny_join_to_source: !self.allows_joins_at_first,
            ..CapableFlags::PLAIN
        };
        MpCapable { version: VERSION, flags, keys }
    }

    /// MP_CAPABLE with the keys of both hosts, if both are known.
    pub(super) fn capable_with_keys(&self) -> Option<MpCapable> {
        let SessionKeys { local, remote } = self.keys()?;
        Some(self.capable(CapableKeys::Both { sender: local, receiver: remote }))
    }

    /// The initiator's key and flags, if it repeats both keys, this host's key is correct, and the
    /// checksum flag agrees. RFC 8684 §3.1 requires the initiator to repeat that flag. If it differs,
    /// a middlebox has changed the flags, and the two hosts do not agree.
    pub(super) fn initiator(&self, capable: &MpCapable) -> Option<(u64, CapableFlags)> {
        let (CapableKeys::Both { sender, receiver }
        | CapableKeys::WithData { sender, receiver, .. }) = capable.keys
        else {
            return None;
        };
        let agreed = receiver == self.key && capable.flags.checksum_required == self.checksums;
        agreed.then_some((sender, capable.flags))
    }

    /// Returns `true` unless the checksum of a DATA_FIN without payload is wrong. It covers only the
    /// pseudo-header. RFC 8684 §3.3.3.
    pub(super) fn admits_data_fin(&self, data: u64, checksum: Option<u16>) -> bool {
        let data_seq = self.peer_idsn() + data;
        let sum = Checksum::of_dss_pseudo_header(data_seq, SeqNumber(0), 1);
        checksum.is_none_or(|checksum| sum.verifies(checksum))
    }

    /// Both hosts use Multipath TCP. `remote` is the peer's key, and `flags` are its requests. The
    /// first subflow runs from `here` to `there`.
    pub(super) fn agree(
        &mut self,
        remote: u64,
        flags: CapableFlags,
        here: SocketAddress,
        there: SocketAddress,
    ) {
        let in_syn = if self.is_listener() { u64::from(self.in_syn) } else { 0 };
        let idsn = keys::initial_data_seq(remote) + in_syn.wrapping_neg();
        self.mode = Mode::Mptcp(Peer { key: remote, idsn });
        self.closed_here = (!self.allows_joins_at_first).then_some(here);
        self.closed_there = flags.deny_join_to_source.then_some(there);
    }

    /// The connection is plain TCP from now on. RFC 8684 §3.7.
    pub(super) fn fall_back(&mut self) {
        self.mode = Mode::Tcp;
    }

    /// Returns `true` if this host accepts no further subflows at `end`.
    pub(super) fn is_closed_here(&self, end: SocketAddress) -> bool {
        self.closed_here == Some(end)
    }

    /// Returns `true` if the peer accepts no further subflows at `end`.
    pub(super) fn is_closed_there(&self, end: SocketAddress) -> bool {
        self.closed_there == Some(end)
    }
}
