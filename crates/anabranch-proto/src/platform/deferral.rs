//! A sender may wait until the congestion window has room for more than a segment.

use anabranch_wire::Duration;

use super::linux::segments_at_a_time;
use super::{Burst, Deferral};

impl Deferral {
    /// Returns `true` if the sender waits. It does so only if acknowledgements come in quick
    /// succession. The rest of a socket buffer is sent as soon as all of it can be, unless more data
    /// may join it. A single segment never waits (`tcp_write_xmit`).
    pub(crate) fn waits(&self, burst: &Burst<'_>) -> bool {
        let Burst { waiting, available_cwnd, since_last, since_oldest, paced_window, .. } = *burst;
        let Burst { fewest_at_a_time, view, .. } = *burst;
        let mss = u64::from(view.mss);
        let srtt = view.srtt.unwrap_or(Duration::ZERO);
        let ends = if waiting.first < waiting.all { waiting.first } else { u64::MAX };
        waiting.first > mss
            && available_cwnd < ends
            && available_cwnd < segments_at_a_time(view, paced_window, fewest_at_a_time) * mss
            && available_cwnd < view.cwnd / self.enough
            && since_last <= self.recent
            && since_oldest + self.soon.min(srtt / 2) >= srtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::{Platform, Unsent};
    use crate::view::tests::view;

    const LINUX: &Deferral = match Platform::linux_socket().deferral {
        Some(deferral) => deferral,
        None => unreachable!(),
    };

    fn waiting(all: u64, first: u64) -> Unsent {
        Unsent { all, first, at_a_time: all }
    }

    #[test]
    fn more_room_is_awaited_while_acknowledgements_come_in_quick_succession() {
        // A window of 20 segments over 2 ms. Its oldest segment was sent 1 ms ago.
        let short = view(0, 2);
        let ms = Duration::from_millis;
        let burst = Burst {
            waiting: waiting(9_000, 9_000),
            available_cwnd: 4_000,
            since_last: ms(1),
            since_oldest: ms(1),
            paced_window: 18_000,
            fewest_at_a_time: 2,
            view: &short,
        };
        assert_eq!(segments_at_a_time(&short, 18_000, 2), 16);
        assert!(LINUX.waits(&burst));
        for at_once in [
            Burst { waiting: waiting(1_000, 1_000), ..burst },
            Burst { waiting: waiting(9_000, 1_000), ..burst },
            Burst { waiting: waiting(9_000, 4_000), ..burst },
            Burst { available_cwnd: 6_667, ..burst },
            Burst { since_last: ms(1) + Duration::from_nanos(1), ..burst },
            Burst { since_oldest: Duration::from_nanos(999_999), ..burst },
        ] {
            assert!(!LINUX.waits(&at_once), "{at_once:?}");
        }
        let joined = Burst { waiting: waiting(4_000, 4_000), ..burst };
        assert!(LINUX.waits(&joined), "data may join the last socket buffer");
        // Two segments at a time on a long path.
        let long = view(0, 100);
        assert!(!LINUX.waits(&Burst {
            available_cwnd: 2_000,
            since_oldest: ms(99),
            view: &long,
            ..burst
        }));
        assert!(LINUX.waits(&Burst {
            available_cwnd: 1_000,
            since_oldest: ms(99),
            view: &long,
            ..burst
        }));
        assert!(!LINUX.waits(&Burst {
            available_cwnd: 1_000,
            since_oldest: ms(98),
            view: &long,
            ..burst
        }));
    }
}
