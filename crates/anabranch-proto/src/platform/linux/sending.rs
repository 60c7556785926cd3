//! How Linux counts what it sends, and when it waits to send more at a time.

use anabranch_wire::Duration;

use super::segments_at_a_time;
use crate::platform::Burst;

/// The congestion window and loss recovery count segments, whatever their length (`tcp_cwnd_test`,
/// `tcp_cong_control`, `tcp_cwnd_reduction`).
pub(crate) const COUNTS_SEGMENTS: bool = true;

/// May a sender in fast recovery send a segment more than has arrived? Only after an acknowledgement
/// that moves on and shows no further loss (`tcp_cwnd_reduction`).
pub(crate) fn catches_up_after(is_safe: bool) -> bool {
    is_safe
}

/// A sender waits for more room only if it has sent something no longer than this ago.
const RECENT: Duration = Duration::from_millis(1);
/// It does not wait if this part of the congestion window is free (`tcp_tso_win_divisor`).
const ENOUGH: u64 = 3;

/// Does a sender wait until it can send as much as it sends at a time? Only if acknowledgements come
/// in quick succession, and the next one is not late (`tcp_tso_should_defer`).
pub(crate) fn defers(burst: &Burst<'_>) -> bool {
    let Burst { waiting, room, since_last, since_oldest, view } = *burst;
    let mss = u64::from(view.mss);
    waiting > mss
        && room < segments_at_a_time(view) * mss
        && room < view.cwnd / ENOUGH
        && since_last <= RECENT
        && since_oldest >= view.srtt.unwrap_or(Duration::ZERO) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::SubflowView;
    use crate::view::tests::view;

    #[test]
    fn more_room_is_awaited_while_acknowledgements_come_in_quick_succession() {
        // A window of 20 segments over 2 ms.
        let short = SubflowView { paced_window: 18_000, ..view(0, 2) };
        let ms = Duration::from_millis;
        let burst = Burst {
            waiting: 9_000,
            room: 4_000,
            since_last: ms(1),
            since_oldest: ms(1),
            view: &short,
        };
        assert_eq!(segments_at_a_time(&short), 16);
        assert!(defers(&burst));
        for at_once in [
            Burst { waiting: 1_000, ..burst },
            Burst { room: 6_667, ..burst },
            Burst { since_last: ms(1) + Duration::from_nanos(1), ..burst },
            Burst { since_oldest: Duration::from_nanos(999_999), ..burst },
        ] {
            assert!(!defers(&at_once), "{at_once:?}");
        }
        // Two segments at a time on a long path.
        let long = SubflowView { paced_window: 18_000, ..view(0, 100) };
        assert!(!defers(&Burst { room: 2_000, since_oldest: ms(50), view: &long, ..burst }));
        assert!(defers(&Burst { room: 1_000, since_oldest: ms(50), view: &long, ..burst }));
    }
}
