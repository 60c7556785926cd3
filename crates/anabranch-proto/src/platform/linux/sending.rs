//! Linux's count of the data that it sends, and its waiting to send more at a time.

use anabranch_wire::Duration;

use super::segments_at_a_time;
use crate::platform::Burst;

/// The congestion window and loss recovery count segments, whatever their length (`tcp_cwnd_test`,
/// `tcp_cong_control`, `tcp_cwnd_reduction`).
pub(crate) const COUNTS_SEGMENTS: bool = true;

/// Returns `true` if a sender in fast recovery may send a segment more than has arrived. Linux
/// allows it only after an acknowledgement that advances and shows no further loss
/// (`tcp_cwnd_reduction`).
pub(crate) fn catches_up_after(is_safe: bool) -> bool {
    is_safe
}

/// The acknowledgement that ends a fast recovery lets the window grow as later ones do
/// (`tcp_cong_control`).
pub(crate) const GROWS_WITH_THE_END_OF_RECOVERY: bool = true;

/// A sender waits for more room only if it has sent something no longer than this ago.
const RECENT: Duration = Duration::from_millis(1);
/// It waits only if the next acknowledgement is due within this time, or is late.
const SOON: Duration = Duration::from_millis(1);
/// It does not wait if this part of the congestion window is free (`tcp_tso_win_divisor`).
const ENOUGH: u64 = 3;

/// Returns `true` if a sender waits until it can send as much as it sends at a time. It does so
/// only if acknowledgements come in quick succession (`tcp_tso_should_defer` as of 6.12.117). The
/// rest of a socket buffer is sent as soon as all of it can be, unless more data may join it. A
/// single segment never waits (`tcp_write_xmit`).
pub(crate) fn defers(burst: &Burst<'_>) -> bool {
    let Burst { waiting, available_cwnd, since_last, since_oldest, view } = *burst;
    let mss = u64::from(view.mss);
    let srtt = view.srtt.unwrap_or(Duration::ZERO);
    let ends = if waiting.first < waiting.all { waiting.first } else { u64::MAX };
    waiting.first > mss
        && available_cwnd < ends
        && available_cwnd < segments_at_a_time(view) * mss
        && available_cwnd < view.cwnd / ENOUGH
        && since_last <= RECENT
        && since_oldest + SOON.min(srtt / 2) >= srtt
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Unsent;
    use crate::view::SubflowView;
    use crate::view::tests::view;

    fn waiting(all: u64, first: u64) -> Unsent {
        Unsent { all, first, at_a_time: all }
    }

    #[test]
    fn more_room_is_awaited_while_acknowledgements_come_in_quick_succession() {
        // A window of 20 segments over 2 ms. Its oldest segment was sent 1 ms ago.
        let short = SubflowView { paced_window: 18_000, ..view(0, 2) };
        let ms = Duration::from_millis;
        let burst = Burst {
            waiting: waiting(9_000, 9_000),
            available_cwnd: 4_000,
            since_last: ms(1),
            since_oldest: ms(1),
            view: &short,
        };
        assert_eq!(segments_at_a_time(&short), 16);
        assert!(defers(&burst));
        for at_once in [
            Burst { waiting: waiting(1_000, 1_000), ..burst },
            Burst { waiting: waiting(9_000, 1_000), ..burst },
            Burst { waiting: waiting(9_000, 4_000), ..burst },
            Burst { available_cwnd: 6_667, ..burst },
            Burst { since_last: ms(1) + Duration::from_nanos(1), ..burst },
            Burst { since_oldest: Duration::from_nanos(999_999), ..burst },
        ] {
            assert!(!defers(&at_once), "{at_once:?}");
        }
        let joined = Burst { waiting: waiting(4_000, 4_000), ..burst };
        assert!(defers(&joined), "data may join the last socket buffer");
        // Two segments at a time on a long path.
        let long = SubflowView { paced_window: 18_000, ..view(0, 100) };
        assert!(!defers(&Burst {
            available_cwnd: 2_000,
            since_oldest: ms(99),
            view: &long,
            ..burst
        }));
        assert!(defers(&Burst {
            available_cwnd: 1_000,
            since_oldest: ms(99),
            view: &long,
            ..burst
        }));
        assert!(!defers(&Burst {
            available_cwnd: 1_000,
            since_oldest: ms(98),
            view: &long,
            ..burst
        }));
    }
}
