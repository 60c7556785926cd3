//! Tests of the send queue: writes, mappings, acknowledgements and copies.

use bytes::Bytes;

use super::*;
use crate::platform::BufferModel;

pub(super) fn queue_of(bytes: u64) -> SendQueue {
    SendQueue::new(SendBuffer::new(&BufferModel::PAYLOAD, false, Some(bytes)))
}

#[test]
fn writes_beyond_the_buffer_are_cut() {
    let mut queue = queue_of(1000);
    assert_eq!(queue.write(Piece::pattern(0, 800)), 800);
    assert_eq!(queue.write(Piece::pattern(800, 800)), 200);
    assert_eq!(queue.space(), 0);
    queue.map_next(600, Slot(0), SubflowSet::EMPTY);
    assert!(queue.acknowledge(401));
    assert_eq!(queue.space(), 400);
}

#[test]
fn small_writes_are_copied_together_into_one_segment() {
    let mut queue = queue_of(1000);
    for byte in 0..50_u8 {
        queue.write(Piece::Shared(Bytes::from(vec![byte; 10])));
    }
    let payload = queue.map_next(95, Slot(0), SubflowSet::EMPTY);
    let expected: Vec<u8> = (0..95).map(|n| (n / 10) as u8).collect();
    assert_eq!(payload.to_vec(), expected);
    assert_eq!(
        queue.map_next(10, Slot(0), SubflowSet::EMPTY).to_vec(),
        [9, 9, 9, 9, 9, 10, 10, 10, 10, 10]
    );
}

#[test]
fn single_bytes_take_few_pieces() {
    let mut queue = queue_of(10_000);
    for byte in 0..10_000_u32 {
        queue.write(Piece::Shared(Bytes::from(vec![byte as u8])));
    }
    assert_eq!(queue.pieces.len(), 10_000_usize.div_ceil(LONGEST_JOINED));
    let payload = queue.map_next(5_000, Slot(0), SubflowSet::EMPTY);
    assert!(payload.to_vec().into_iter().eq((0..5_000_u32).map(|byte| byte as u8)));
}

#[test]
fn a_segment_over_the_border_of_two_writes_shares_their_memory() {
    let mut queue = queue_of(10_000);
    let writes = [Bytes::from(vec![1; 1000]), Bytes::from(vec![2; 1000])];
    for write in &writes {
        queue.write(Piece::Shared(write.clone()));
    }
    queue.map_next(400, Slot(0), SubflowSet::EMPTY);
    let mut places = Vec::new();
    let payload = queue.map_next(1000, Slot(0), SubflowSet::EMPTY);
    payload.for_each_slice(|slice| places.push((slice.as_ptr(), slice.len())));
    assert_eq!(places, [(writes[0][400..].as_ptr(), 600), (writes[1].as_ptr(), 400)]);
}

/// Starts of the data that is resent now on the subflow in `slot`.
pub(super) fn sent_again(queue: &mut SendQueue, slot: Slot) -> Vec<u64> {
    let mut starts = Vec::new();
    while let Some(mapped) = queue.next_reinjection() {
        starts.push(mapped.start);
        queue.retransmit_on(mapped.start, mapped.len, slot);
    }
    starts
}

#[test]
fn data_goes_out_again_in_order_as_far_as_nobody_else_has_it_under_way() {
    // RFC 8684 §3.3.6
    let mut queue = queue_of(10_000);
    queue.write(Piece::pattern(0, 4_000));
    for slot in [0, 0, 2] {
        queue.map_next(1000, Slot(slot), SubflowSet::EMPTY);
    }
    queue.assign_next(1000, Slot(3), 1000);
    for _ in 0..2 {
        queue.reinject_first(2);
    }
    assert_eq!(sent_again(&mut queue, Slot(1)), [1, 1001]);
    queue.reinject_carried(Slot(1), SubflowSet::of(Slot(0)));
    assert_eq!(sent_again(&mut queue, Slot(1)), [0; 0]);
    for _ in 0..2 {
        queue.reinject_carried(Slot(1), SubflowSet::of(Slot(2)));
    }
    assert_eq!(sent_again(&mut queue, Slot(4)), [1, 1001]);
    // The subflows that carried the data end one by one. Assigned data has not been carried.
    for (gone, left) in [(0, [].as_slice()), (1, &[]), (4, &[1, 1001]), (2, &[2001])] {
        queue.forget_carrier(Slot(gone));
        for _ in 0..2 {
            queue.reinject_uncarried();
        }
        assert_eq!(sent_again(&mut queue, Slot(5)), left, "{gone} is gone");
    }
}

#[test]
fn on_the_way_to_tcp_what_is_only_assigned_is_new_data_again() {
    // RFC 8684 §3.7
    let mut queue = queue_of(10_000);
    queue.write(Piece::pattern(0, 3_000));
    queue.map_next(1000, Slot(0), SubflowSet::EMPTY);
    queue.assign_next(1000, Slot(0), 1000);
    queue.become_plain();
    assert_eq!((queue.nxt(), queue.unsent(), queue.next_copy(Slot(0))), (1001, 2000, None));
    assert_eq!(queue.map_next(1000, Slot(0), SubflowSet::EMPTY).len(), 1000);
    assert!(queue.acknowledge(2001));
}

#[test]
fn a_failed_subflow_gives_back_only_what_nobody_else_carried() {
    let mut queue = queue_of(10_000);
    queue.write(Piece::pattern(0, 3_000));
    queue.map_next(1000, Slot(0), SubflowSet::EMPTY);
    queue.map_next(1000, Slot(1), SubflowSet::EMPTY);
    queue.map_next(1000, Slot(0), SubflowSet::EMPTY);
    queue.retransmit_on(1, 1000, Slot(1));
    for start in [1, 2001] {
        queue.reinject(start, start + 1000, SubflowSet::of(Slot(1)));
    }
    let mapped = queue.next_reinjection().expect("one segment");
    assert_eq!(mapped.start, 2001);
    queue.retransmit_on(2001, 1000, Slot(1));
    assert!(queue.next_reinjection().is_none());
}

#[test]
fn an_acknowledgement_inside_a_segment_leaves_its_rest_to_be_sent_again() {
    let mut queue = queue_of(10_000);
    queue.write(Piece::pattern(0, 2_000));
    queue.map_next(1000, Slot(0), SubflowSet::EMPTY);
    queue.reinject(1, 1001, SubflowSet::of(Slot(1)));
    assert!(queue.acknowledge(401));
    let rest = queue.next_reinjection().expect("the rest");
    assert_eq!((rest.start, rest.len), (401, 600));
    let payload = queue.retransmit_on(401, 1000, Slot(1)).expect("mapped");
    assert!(payload.len() == 600 && payload.matches_pattern(400));
}

#[test]
fn a_reinjection_on_a_subflow_with_smaller_segments_is_split() {
    let mut queue = queue_of(10_000);
    queue.write(Piece::pattern(0, 1_000));
    queue.map_next(1000, Slot(0), SubflowSet::EMPTY);
    queue.reinject(1, 1001, SubflowSet::of(Slot(1)));
    assert_eq!(queue.retransmit_on(1, 600, Slot(1)).expect("mapped").len(), 600);
    let rest = queue.next_reinjection().expect("the rest");
    assert_eq!((rest.start, rest.len), (601, 400));
    assert!(!rest.carried_by().contains(Slot(1)) && rest.carried_by().contains(Slot(0)));
}

#[test]
fn all_parts_of_a_segment_that_was_split_are_given_back() {
    let mut queue = queue_of(10_000);
    queue.write(Piece::pattern(0, 1_000));
    queue.map_next(1000, Slot(0), SubflowSet::EMPTY);
    queue.reinject_first(1);
    queue.retransmit_on(1, 600, Slot(1));
    queue.retransmit_on(601, 600, Slot(1));
    assert!(queue.next_reinjection().is_none());
    queue.reinject(1, 1001, SubflowSet::EMPTY);
    for start in [1, 601] {
        assert_eq!(queue.next_reinjection().map(|part| part.start), Some(start));
        queue.retransmit_on(start, 600, Slot(2));
    }
}

#[test]
fn each_subflow_carries_its_copies_in_order_and_none_of_what_was_acknowledged() {
    let mut queue = queue_of(10_000);
    queue.write(Piece::pattern(0, 4_000));
    let mut others = SubflowSet::of(Slot(1));
    others.insert(Slot(2));
    for _ in 0..3 {
        queue.map_next(1000, Slot(0), others);
    }
    assert_eq!(queue.next_copy(Slot(1)), Some(1));
    queue.retransmit_on(1, 1000, Slot(1));
    assert_eq!(queue.next_copy(Slot(1)), Some(1001));
    queue.acknowledge(2001);
    assert_eq!((queue.next_copy(Slot(1)), queue.next_copy(Slot(2))), (Some(2001), Some(2001)));
    queue.retransmit_on(2001, 400, Slot(2));
    assert_eq!(queue.next_copy(Slot(2)), Some(2401));
    queue.forget_carrier(Slot(2));
    queue.acknowledge(3001);
    assert_eq!((queue.next_copy(Slot(1)), queue.next_copy(Slot(2))), (None, None));
    assert!(queue.pending_copies().is_empty());
    queue.map_next(1000, Slot(0), others);
    assert_eq!((queue.next_copy(Slot(1)), queue.next_copy(Slot(2))), (Some(3001), Some(3001)));
}
