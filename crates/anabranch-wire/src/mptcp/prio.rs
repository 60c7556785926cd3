//! MP_PRIO (subtype 5): changing a subflow's priority. RFC 8684 §3.3.8.

/// MP_PRIO: the sender asks for this subflow to be used as backup, or as a regular one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpPrio {
    /// B: use as backup only.
    pub backup: bool,
}
