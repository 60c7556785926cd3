//! Multipath TCP options (TCP option kind 30), RFC 8684 §3 and §4.

mod address;
mod capable;
mod dss;
mod fail;
mod fastclose;
mod join;
mod prio;
mod reset;

pub use address::{AddAddr, RemoveAddr};
pub use capable::{CapableFlags, CapableKeys, MpCapable};
pub use dss::{Dss, Mapping, WideOrNarrow};
pub use fail::MpFail;
pub use fastclose::MpFastclose;
pub use join::MpJoin;
pub use prio::MpPrio;
pub use reset::{MpTcprst, ResetReason};

/// TCP option kind of Multipath TCP. RFC 8684 §9.
pub const KIND: u8 = 30;

/// The protocol version that this crate speaks. RFC 8684 §3.1.
pub const VERSION: u8 = 1;

/// The options other than DSS, which are rare: a segment that carries any of them owns one
/// `Control` on the heap, so that ordinary data segments stay small.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// MP_CAPABLE, RFC 8684 §3.1.
    pub capable: Option<MpCapable>,
    /// MP_JOIN, RFC 8684 §3.2.
    pub join: Option<MpJoin>,
    /// ADD_ADDR, RFC 8684 §3.4.1.
    pub add_addr: Option<AddAddr>,
    /// REMOVE_ADDR, RFC 8684 §3.4.2.
    pub remove_addr: Option<RemoveAddr>,
    /// MP_PRIO, RFC 8684 §3.3.8.
    pub prio: Option<MpPrio>,
    /// MP_FAIL, RFC 8684 §3.7.
    pub fail: Option<MpFail>,
    /// MP_FASTCLOSE, RFC 8684 §3.5.
    pub fastclose: Option<MpFastclose>,
    /// MP_TCPRST, RFC 8684 §3.6.
    pub reset: Option<MpTcprst>,
}
