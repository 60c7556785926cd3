//! A faulty scheduler can neither lose data nor stall a connection.

use anabranch_proto::scheduler::{Decision, ScheduleContext, Scheduler};
use anabranch_proto::view::{Slot, SubflowId, SubflowSet};

use crate::pair::{Pair, ms, on_any_platform};

/// Gives the same answer in the same situation.
#[derive(Clone, Copy, Debug)]
struct Always(fn(&ScheduleContext<'_>) -> Decision);

impl Scheduler for Always {
    fn schedule(&mut self, context: &ScheduleContext<'_>) -> Decision {
        (self.0)(context)
    }
}

/// Upload 300 kB over two paths and return the number of invalid decisions.
fn bad_decisions(answer: fn(&ScheduleContext<'_>) -> Decision) -> u64 {
    let config = on_any_platform().scheduler(move || Box::new(Always(answer)));
    let mut pair = Pair::new(2, config.clone(), config).with_slow_path(1, ms(30));
    pair.run_ms(200);
    pair.upload(300_000, 60_000);
    assert_eq!(pair.received, [0, 300_000]);
    let stats = pair.client.connection_stats(pair.now, pair.connection).expect("it is open");
    stats.bad_decisions
}

#[test]
fn waiting_without_end_is_overridden_once_nothing_is_in_flight() {
    assert!(bad_decisions(|_| Decision::Wait { until: None }) > 0);
}

#[test]
fn waiting_until_the_present_time_does_not_stall_the_connection() {
    assert!(bad_decisions(|context| Decision::Wait { until: Some(context.now) }) > 0);
}

#[test]
fn no_data_is_sent_on_a_subflow_that_does_not_exist() {
    let unknown =
        |_: &ScheduleContext<'_>| Decision::Send(SubflowId { slot: Slot(31), generation: 0 });
    assert!(bad_decisions(unknown) > 0);
    let stale =
        |_: &ScheduleContext<'_>| Decision::Send(SubflowId { slot: Slot(0), generation: 9 });
    assert!(bad_decisions(stale) > 0);
    assert!(bad_decisions(|_| Decision::Duplicate(SubflowSet::EMPTY)) > 0);
    assert!(bad_decisions(|_| Decision::Duplicate(SubflowSet::of(Slot(9)))) > 0);
}

#[test]
fn a_copy_for_no_subflow_is_invalid_even_while_data_is_in_flight() {
    let for_nobody = |context: &ScheduleContext<'_>| {
        let first = &context.subflows[0];
        let now = first.bytes_in_flight == 0 && first.can_send();
        if now { Decision::Send(first.id) } else { Decision::Duplicate(SubflowSet::EMPTY) }
    };
    assert!(bad_decisions(for_nobody) > 0);
}

#[test]
fn copies_for_full_subflows_wait_for_room() {
    let for_all = |context: &ScheduleContext<'_>| {
        let mut all = SubflowSet::EMPTY;
        context.subflows.iter().for_each(|view| all.insert(view.id.slot));
        Decision::Duplicate(all)
    };
    assert_eq!(bad_decisions(for_all), 0);
}

#[test]
fn no_data_is_assigned_to_a_subflow_that_does_not_exist() {
    let stale = |context: &ScheduleContext<'_>| {
        let first = context.subflows[0].id;
        Decision::Assign(SubflowId { generation: first.generation + 1, ..first })
    };
    assert!(bad_decisions(stale) > 0);
}

#[test]
fn no_data_is_sent_on_a_full_subflow() {
    assert!(bad_decisions(|context| Decision::Send(context.subflows[0].id)) > 0);
}

#[test]
fn waiting_while_data_is_in_flight_is_valid() {
    // One segment at a time on the first subflow: slow, but the data makes progress without help.
    let one_by_one = |context: &ScheduleContext<'_>| {
        let first = &context.subflows[0];
        let now = first.bytes_in_flight == 0 && first.can_send();
        if now { Decision::Send(first.id) } else { Decision::Wait { until: None } }
    };
    assert_eq!(bad_decisions(one_by_one), 0);
}

#[test]
fn a_scheduler_that_waits_until_a_time_is_asked_again_then() {
    // Sends a segment every five milliseconds.
    #[derive(Debug, Default)]
    struct Paced(Option<anabranch_wire::Instant>);
    impl Scheduler for Paced {
        fn schedule(&mut self, context: &ScheduleContext<'_>) -> Decision {
            match self.0 {
                Some(at) if context.now < at => Decision::Wait { until: Some(at) },
                _ => Decision::Send(context.subflows[0].id),
            }
        }

        fn on_sent(&mut self, _subflow: SubflowId, bytes: u64) {
            assert!(bytes > 0);
            self.0 = Some(self.0.unwrap_or(anabranch_wire::Instant::ZERO) + ms(5));
        }
    }
    let config = on_any_platform().scheduler(|| Box::new(Paced::default()));
    let mut pair = Pair::new(1, config.clone(), config);
    pair.upload(100_000, 1_000);
    assert_eq!(pair.received, [0, 100_000]);
    assert!(pair.now.as_millis() >= 5 * 100_000 / 1_448, "{:?}", pair.now);
}
