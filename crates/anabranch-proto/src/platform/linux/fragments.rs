//! A send buffer that is charged with bytes and filled by page fragments, as that of Multipath TCP
//! is.
//!
//! Linux checks the limit before it copies, and then copies up to the end of a page fragment. The
//! buffer therefore exceeds its limit by up to a fragment (`mptcp_sendmsg`).

use anabranch_wire::Duration;

use crate::platform::{DataRetransmission, Extent, Pause};

/// Payload of a page fragment: 32 KiB less its header (`struct mptcp_data_frag`).
const FRAGMENT: u64 = 32_768 - 40;

/// The data-level retransmission timer follows the timers of the subflows, and resends the oldest
/// fragment on a subflow whose queues are empty (`mptcp_timeout_from_subflow`, `__mptcp_retrans`,
/// `mptcp_subflow_get_retrans`). Linux does not back off. The engine does, so that an outage of all
/// paths does not make the timer fire all the time.
pub(crate) const DATA_RETRANSMISSION: DataRetransmission = DataRetransmission {
    // TCP_RTO_MIN
    pause: Pause::PendingTimers { none: Duration::from_millis(200) },
    bytes: FRAGMENT as u32,
    needs_idle_subflow: true,
};

/// Bytes that may be written at once.
pub(crate) fn room(limit: u64, extent: Extent) -> u64 {
    let Extent { una, end, .. } = extent;
    if end - una >= limit {
        return 0;
    }
    // Stream offsets begin at 1.
    let filled = (una - 1).saturating_add(limit).div_ceil(FRAGMENT).saturating_mul(FRAGMENT);
    filled.saturating_add(1) - end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_fragment_below_the_limit_is_filled() {
        let room = |una, end| room(100_000, Extent { una, nxt: end, end });
        assert_eq!(room(1, 1), 4 * FRAGMENT);
        assert_eq!(room(1, 99_001), 4 * FRAGMENT - 99_000);
        assert_eq!(room(1, 100_001), 0);
        assert_eq!(room(FRAGMENT, FRAGMENT + 4), 5 * FRAGMENT - FRAGMENT - 3);
    }
}
