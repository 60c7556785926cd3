//! Number of socket buffers that hold sent data, as Linux cuts it.

use super::*;
use crate::subflow::scoreboard::Scoreboard;

#[test]
fn segments_that_are_sent_at_once_share_socket_buffers_of_two() {
    let mut board = Scoreboard::default();
    let mut send = |n: u64, flags, millis| {
        let payload = Payload::from(Piece::pattern(0, 100));
        board.push(1 + n * 100, payload, None, flags, Instant::ZERO + ms(millis));
        board.buffers()
    };
    // Three at once, one alone, and two of which the first ends a write.
    let (plain, pushed) = (Flags::ACK, Flags::ACK | Flags::PSH);
    assert_eq!([0, 1, 2].map(|n| send(n, plain, 5)), [1, 1, 2]);
    assert_eq!(send(3, plain, 6), 3);
    assert_eq!([(4, pushed), (5, plain)].map(|(n, flags)| send(n, flags, 7)), [4, 5]);
    // The first buffer remains until its second segment is acknowledged.
    for (una, buffers) in [(101, 5), (201, 4), (401, 2), (601, 0)] {
        board.acknowledge(una, |_| {});
        assert_eq!(board.buffers(), buffers, "{una}");
    }
}
