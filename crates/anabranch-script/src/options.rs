//! TCP options in the notation of scripts.

/// The options of a segment.
#[derive(Clone, Debug, Default)]
pub(crate) struct OptionList {
    pub(crate) items: Vec<OptionSpec>,
    /// Whether other options are allowed: `<...>` or `<mss 1460, ...>`.
    pub(crate) open: bool,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Number(u64),
    /// `*`: any value of an outgoing segment.
    Any,
    /// `auto`: the value that the RFC demands.
    Auto,
    /// `bad`: any other value.
    Bad,
    /// `skey`: a variable. It is captured from an outgoing segment, unless it is known already.
    Name(String),
    /// `ckey=2`: a variable with its value.
    Define(String, u64),
    /// `sha256_32(skey)`: the token of a key.
    TokenOf(String),
}

/// Size of a data sequence number or DATA_ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// `dack4`, `dsn4`: four bytes.
    Four,
    /// `dack8`, `dsn8`: eight bytes.
    Eight,
    /// `dack`, `dsn`: either size, only in outgoing segments.
    Either,
}

#[derive(Clone, Debug)]
pub(crate) struct DataNumber {
    pub(crate) width: Width,
    pub(crate) value: Value,
}

#[derive(Clone, Debug)]
pub(crate) struct MappingSpec {
    pub(crate) data_seq: DataNumber,
    pub(crate) subflow_seq: Value,
    pub(crate) len: Value,
    /// The checksum; `None` for `nocs`.
    pub(crate) checksum: Option<Value>,
}

/// An address by its owner and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressName {
    Host(u8),
    Peer(u8),
}

#[derive(Clone, Debug)]
pub(crate) enum OptionSpec {
    Nop,
    Mss(Value),
    SackOk,
    WindowScale(Value),
    Timestamps {
        value: Value,
        echo: Value,
    },
    /// Blocks, relative to the initial sequence number of the receiver of the option.
    Sack(Vec<(u32, u32)>),
    Capable {
        version: u8,
        /// The byte, A to H from the highest bit on.
        flags: u8,
        keys: Vec<Value>,
        data_len: Option<u16>,
        checksum: Option<Value>,
    },
    JoinSyn {
        backup: bool,
        address_id: Value,
        token: Value,
        nonce: Value,
    },
    JoinSynAck {
        backup: bool,
        address_id: Value,
        hmac: Value,
        nonce: Value,
    },
    JoinAck {
        hmac: Value,
    },
    Dss {
        data_ack: Option<DataNumber>,
        mapping: Option<MappingSpec>,
        fin: bool,
    },
    AddAddress {
        address_id: Value,
        address: AddressName,
        port: Option<u16>,
        /// `None` for an echo.
        hmac: Option<Value>,
    },
    RemoveAddress(Vec<u8>),
    Prio {
        backup: bool,
    },
    Fail {
        data_seq: Value,
    },
    Fastclose {
        key: Value,
    },
    Reset {
        reason: Value,
        transient: Option<bool>,
    },
    /// `raw[1e 03 ff]`: bytes as they are.
    Raw(Vec<u8>),
}

impl OptionSpec {
    /// Its name in scripts.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            OptionSpec::Nop => "nop",
            OptionSpec::Mss(_) => "mss",
            OptionSpec::SackOk => "sackOK",
            OptionSpec::WindowScale(_) => "wscale",
            OptionSpec::Timestamps { .. } => "TS",
            OptionSpec::Sack(_) => "sack",
            OptionSpec::Capable { .. } => "mpcapable",
            OptionSpec::JoinSyn { .. } => "mp_join_syn",
            OptionSpec::JoinSynAck { .. } => "mp_join_syn_ack",
            OptionSpec::JoinAck { .. } => "mp_join_ack",
            OptionSpec::Dss { .. } => "dss",
            OptionSpec::AddAddress { .. } => "add_address",
            OptionSpec::RemoveAddress(_) => "remove_address",
            OptionSpec::Prio { .. } => "mp_prio",
            OptionSpec::Fail { .. } => "mp_fail",
            OptionSpec::Fastclose { .. } => "mp_fastclose",
            OptionSpec::Reset { .. } => "mp_reset",
            OptionSpec::Raw(_) => "raw",
        }
    }
}
