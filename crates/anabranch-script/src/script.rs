//! Parsed scripts.

use anabranch_wire::{Duration, Flags};

use crate::options::OptionList;
use crate::settings::ScriptSettings;

/// A parsed script.
#[derive(Clone, Debug)]
pub struct Script {
    /// Name of the file as given by the caller.
    pub file: String,
    /// The first comment, which says what the script shows.
    pub shows: String,
    /// The settings of the header.
    pub settings: ScriptSettings,
    pub(crate) events: Vec<ScriptEvent>,
}

/// One event of a script, which happens or must happen at its time.
#[derive(Clone, Debug)]
pub(crate) struct ScriptEvent {
    pub(crate) line: u32,
    pub(crate) time: Time,
    /// The event as written, on one line, without its time.
    pub(crate) text: String,
    /// The time as written.
    pub(crate) time_text: String,
    pub(crate) action: Action,
}

/// The time of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    /// `*`: any time.
    Any,
    /// `0.1`, `+0.1`: an exact time.
    Exactly(Moment),
    /// `+0.1~+0.3`: any time in this range.
    Within(Moment, Moment),
    /// `+0...+0.2`: a call that starts at the first time and returns at the second.
    Blocking(Moment, Moment),
}

/// A time, counted from the start of the script or from the previous event.
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
    /// `>?`: from now on, the stack may send this segment once.
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

/// A segment in a script.
#[derive(Clone, Debug)]
pub(crate) struct SegmentSpec {
    pub(crate) path: PathName,
    /// ECN field of the IP header.
    pub(crate) ecn: Option<u8>,
    /// Whether the TCP checksum is wrong.
    pub(crate) corrupt: bool,
    pub(crate) flags: Flags,
    /// Sequence number, relative to the sender's initial sequence number.
    pub(crate) seq: u32,
    pub(crate) len: u32,
    /// Acknowledgement number, relative to the receiver's initial sequence number.
    pub(crate) ack: Option<u32>,
    pub(crate) window: Option<u16>,
    pub(crate) urgent: Option<u16>,
    pub(crate) options: OptionList,
}

impl SegmentSpec {
    /// The sequence number of the first payload byte, which follows a SYN. RFC 9293 §3.4.
    pub(crate) fn text_seq(&self) -> u32 {
        self.seq.wrapping_add(u32::from(self.flags.contains(Flags::SYN)))
    }
}

/// The addresses of a subflow: `host0-peer1`. `host0-peer1/2` is the second subflow between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathName {
    pub(crate) host: u8,
    pub(crate) host_port: Option<u16>,
    pub(crate) peer: u8,
    pub(crate) peer_port: Option<u16>,
    pub(crate) number: u8,
}

impl PathName {
    /// The path of segments that do not name one.
    pub(crate) const FIRST: PathName =
        PathName { host: 0, host_port: None, peer: 0, peer_port: None, number: 1 };
}

/// A system call, and its expected result.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) what: SystemCall,
    pub(crate) result: CallResult,
}

/// A system call. Sockets have the numbers that the script gives them.
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
    /// `getsockopt` of SO_ERROR.
    GetError {
        socket: u32,
    },
    /// `fcntl(F_SETFL)`.
    SetBlocking {
        socket: u32,
        blocking: bool,
    },
    /// A call that does nothing. It is accepted for scripts written for packetdrill.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetOption {
    Known(crate::stack::SocketOption),
    /// SO_REUSEADDR, which is ignored because addresses are always free.
    Ignored,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallResult {
    /// `...`: any result.
    Any,
    Value(u32),
    /// An error, by its name in errno.h.
    Error(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    Connection,
    Subflows,
    Cwnd,
}

/// The relation between a fact and the value in a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// `==`
    Equal,
    /// `<=`, for numbers.
    AtMost,
    /// `>=`, for numbers.
    AtLeast,
}

impl Relation {
    pub(crate) fn holds(self, actual: FactValue, expected: FactValue) -> bool {
        match (self, actual, expected) {
            (Relation::AtMost, FactValue::Number(actual), FactValue::Number(most)) => {
                actual <= most
            }
            (Relation::AtLeast, FactValue::Number(actual), FactValue::Number(least)) => {
                actual >= least
            }
            _ => actual == expected,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FactValue {
    Tcp,
    Mptcp,
    Number(u64),
}
