//! A script as a value.

use anabranch_wire::{Duration, Flags};

use crate::options::OptionList;
use crate::settings::Settings;

/// A parsed script.
#[derive(Clone, Debug)]
pub struct Script {
    /// Name of the file, as it was given.
    pub file: String,
    /// The first comment: what the script shows.
    pub shows: String,
    /// What its header sets.
    pub settings: Settings,
    pub(crate) events: Vec<Event>,
}

/// One line of a script: at this time, this happens or must happen.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) line: u32,
    pub(crate) time: Time,
    /// As it was written, on one line, without its time.
    pub(crate) text: String,
    /// The time as it was written.
    pub(crate) time_text: String,
    pub(crate) action: Action,
}

/// When an event happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    /// `*`: whenever.
    Any,
    /// `0.1`, `+0.1`.
    Exactly(Moment),
    /// `+0.1~+0.3`: some time from the one to the other.
    Within(Moment, Moment),
    /// `+0...+0.2`: a call that begins at the one and returns at the other.
    Blocking(Moment, Moment),
}

/// A time from the start of the script, or from the event before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) relative: bool,
    pub(crate) offset: Duration,
}

#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// `<`: the peer sends a segment.
    Inbound(SegmentSpec),
    /// `>`: the stack must send a segment.
    Outbound(SegmentSpec),
    /// `>?`: the stack may send a segment once, from here on.
    Permitted(SegmentSpec),
    Call(Call),
    Assert {
        fact: Fact,
        relation: Relation,
        expected: FactValue,
    },
    /// An interface goes down or comes up.
    Address {
        host: u8,
        up: bool,
    },
}

/// A segment as a script writes it.
#[derive(Clone, Debug)]
pub(crate) struct SegmentSpec {
    pub(crate) path: PathName,
    /// ECN field of the IP header.
    pub(crate) ecn: Option<u8>,
    /// The TCP checksum is wrong.
    pub(crate) corrupt: bool,
    pub(crate) flags: Flags,
    /// Relative to the sender's initial sequence number.
    pub(crate) seq: u32,
    pub(crate) len: u32,
    /// Relative to the receiver's initial sequence number.
    pub(crate) ack: Option<u32>,
    pub(crate) window: Option<u16>,
    pub(crate) urgent: Option<u16>,
    pub(crate) options: OptionList,
}

impl SegmentSpec {
    /// The sequence number of its first byte of text, which follows a SYN. RFC 9293 §3.4.
    pub(crate) fn text_seq(&self) -> u32 {
        self.seq.wrapping_add(u32::from(self.flags.contains(Flags::SYN)))
    }
}

/// The addresses of a subflow: `host0-peer1`; `host0-peer1/2` is the second between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathName {
    pub(crate) host: u8,
    pub(crate) host_port: Option<u16>,
    pub(crate) peer: u8,
    pub(crate) peer_port: Option<u16>,
    pub(crate) number: u8,
}

impl PathName {
    /// The path of segments that name none.
    pub(crate) const FIRST: PathName =
        PathName { host: 0, host_port: None, peer: 0, peer_port: None, number: 1 };
}

/// A system call, and what it must return.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) what: SystemCall,
    pub(crate) result: CallResult,
}

/// Sockets are numbers, as the script gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SystemCall {
    Socket {
        mptcp: bool,
    },
    Bind {
        socket: u32,
        host: Option<u8>,
        port: Option<u16>,
    },
    Listen {
        socket: u32,
    },
    Accept {
        socket: u32,
    },
    Connect {
        socket: u32,
        peer: u8,
        port: Option<u16>,
    },
    Write {
        socket: u32,
        len: u32,
    },
    Read {
        socket: u32,
        len: u32,
    },
    Shutdown {
        socket: u32,
    },
    Close {
        socket: u32,
    },
    Set {
        socket: u32,
        option: SetOption,
    },
    /// Of SO_ERROR.
    GetError {
        socket: u32,
    },
    /// `fcntl(F_SETFL)`.
    SetBlocking {
        socket: u32,
        blocking: bool,
    },
    /// Accepted for scripts that were written for packetdrill; does nothing.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetOption {
    Known(crate::stack::SocketOption),
    /// SO_REUSEADDR: addresses are always free.
    Ignored,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallResult {
    /// `...`
    Any,
    Value(u32),
    /// The name of an error, as errno.h has it.
    Error(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    Connection,
    Subflows,
    Cwnd,
}

/// How a fact relates to the value that a script expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// `==`
    Equal,
    /// `<=`, of numbers.
    AtMost,
    /// `>=`, of numbers.
    AtLeast,
}

impl Relation {
    pub(crate) fn holds(self, came: FactValue, expected: FactValue) -> bool {
        match (self, came, expected) {
            (Relation::AtMost, FactValue::Number(came), FactValue::Number(most)) => came <= most,
            (Relation::AtLeast, FactValue::Number(came), FactValue::Number(least)) => came >= least,
            _ => came == expected,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FactValue {
    Tcp,
    Mptcp,
    Number(u64),
}
