//! Runs that a driver advances step by step, inspects and changes.

use anabranch_net::PacketPlace;
use anabranch_sim::scenario::Scenario;
use anabranch_sim::{Options, RunOutcome, Side, Simulation, run};
use anabranch_wire::{Duration, Instant, Packet};

const PHONE: &str = r#"
    name = "phone"
    duration = "12s"
    warm_up = "2s"
    [[path]]
    name = "wifi"
    rate = "8Mbit/s"
    delay = "10ms"
    limit = "54packets"
    loss = "0.5%"
    [[path]]
    name = "3g"
    rate = "2Mbit/s"
    delay = "75ms"
    limit = "334packets"
    jitter = "50ms"
    [[connection]]
    receive_buffer = "200KiB"
    send_buffer = "200KiB"
    remedies = { opportunistic_retransmission = true, penalisation = "conext13" }
    workload = { kind = "blocks", block_size = "8KiB" }
"#;

fn scenario(changes: &str) -> Scenario {
    let text = PHONE.replacen(
        "[[path]]\n    name = \"3g\"",
        &format!("{changes}\n[[path]]\n    name = \"3g\""),
        1,
    );
    Scenario::from_toml(&text, "phone.toml").expect("a right scenario")
}

fn start(scenario: &Scenario, ledger: bool) -> Simulation<'static> {
    let options = Options::default().ledger(ledger).trace(true);
    Simulation::new(scenario, 1, options).expect("a run")
}

fn whole(scenario: &Scenario, ledger: bool) -> RunOutcome {
    run(scenario, 1, Options::default().ledger(ledger)).expect("a run")
}

/// Both outcomes are the same. Names the first table that differs, because tables are long.
fn assert_same(found: &RunOutcome, expected: &RunOutcome) {
    for (one, other) in found.tables.iter().zip(&expected.tables) {
        assert!(one == other, "the table {} differs", one.name);
    }
    assert!(found == expected, "the tables agree, but not the rest");
}

/// The accounts of both outcomes are the same but for `bytes` in each row. The ledger learns at the
/// next event, or at a pause, that a link has run empty.
fn assert_close(found: &RunOutcome, expected: &RunOutcome, bytes: u64) {
    assert_eq!(found.digest, expected.digest);
    let [found, expected] = [found, expected].map(|each| each.table("capacity").expect("a ledger"));
    let [found_bytes, expected_bytes] =
        [found, expected].map(|each| each.column("bytes").expect("a column").numbers());
    assert_eq!(found.column("cause"), expected.column("cause"));
    assert_eq!(found_bytes.iter().sum::<u64>(), expected_bytes.iter().sum::<u64>());
    for (row, (one, other)) in found_bytes.iter().zip(&expected_bytes).enumerate() {
        assert!(one.abs_diff(*other) <= bytes, "row {row}: {one} and {other} bytes");
    }
}

/// Look at everything that a driver can see.
fn look(simulation: &mut Simulation<'_>) {
    let waiting: u64 = simulation.paths().links().map(|(_, _, link)| link.packets_inside()).sum();
    let seen = simulation.paths().links().map(|(_, _, link)| link.packets().count()).sum::<usize>();
    assert_eq!(seen as u64, waiting, "every packet has a place");
    simulation.capacity();
    simulation.activities();
    simulation.totals();
}

#[test]
fn neither_steps_nor_looks_change_the_outcome() {
    let scenario = scenario("");
    for ledger in [false, true] {
        let expected = whole(&scenario, ledger);
        let mut by_time = start(&scenario, ledger);
        while !by_time.is_over() {
            by_time.step_until(by_time.now() + Duration::from_micros(7_301)).expect("a step");
            look(&mut by_time);
        }
        let mut by_event = start(&scenario, ledger);
        while by_event.step_event().expect("an event") {
            if by_event.events().is_multiple_of(50) {
                look(&mut by_event);
            }
        }
        for stepped in [by_time.finish(), by_event.finish()] {
            if ledger {
                assert_close(&stepped, &expected, 0);
            } else {
                assert_same(&stepped, &expected);
            }
        }
    }
}

#[test]
fn a_change_during_a_run_is_one_of_its_scenario() {
    let changes = r#"
        [[path.change]]
        at = "4000001us"
        rate = "3Mbit/s"
        delay = "40ms"
        [[path.change]]
        at = "6s"
        state = "down"
        noticed = true
        [[path.change]]
        at = "8s"
        loss = "2%"
        applies_to = "reverse"
        [[path.change]]
        at = "9s"
        state = "up"
        noticed = true
    "#;
    let changed = scenario(changes);
    for ledger in [false, true] {
        let mut session = start(&scenario(""), ledger);
        for change in &changed.paths[0].changes {
            let before = change.at.saturating_sub(Duration::from_micros(1));
            session.step_until(Instant::ZERO + before).expect("a step");
            session.schedule(0, change).expect("a path, and a time to come");
        }
        session.step_until(Instant::FAR_FUTURE).expect("a run");
        assert_ne!(session.digest(), whole(&scenario(""), false).digest);
        if ledger {
            // Two full packets at most, at each of three changes.
            assert_close(&session.finish(), &whole(&changed, true), 9_000);
        } else {
            assert_same(&session.finish(), &whole(&changed, false));
        }
    }
}

#[test]
fn the_account_so_far_is_that_of_a_shorter_run() {
    let scenario = scenario("");
    let shorter = Scenario { duration: Duration::from_secs(7), ..scenario.clone() };
    let expected = whole(&shorter, true);
    let mut simulation = start(&scenario, true);
    simulation.step_until(Instant::ZERO + shorter.duration).expect("a step");
    assert_eq!(simulation.capacity().as_ref(), expected.table("capacity"));
    for table in &simulation.totals() {
        assert_eq!(Some(table), expected.table(table.name));
    }
    let ended = expected.table("activities").expect("a table").rows();
    let (closed, open) = simulation.activities().expect("a ledger");
    assert_eq!(closed.rows() + open.rows(), ended);
    assert!(open.rows() > 0, "intervals last");
}

#[test]
fn the_packets_of_a_link_are_where_it_says() {
    let mut simulation = start(&scenario(""), true);
    simulation.step_until(Instant::ZERO + Duration::from_secs(5)).expect("a step");
    let now = simulation.now();
    let link = simulation.paths().link_of(1, Side::Client);
    let queued: Vec<usize> = link
        .packets()
        .filter_map(|(place, _)| match place {
            PacketPlace::Queue { ahead } => Some(ahead),
            _ => None,
        })
        .collect();
    assert_eq!(queued, (0..link.queue_packets() as usize).collect::<Vec<_>>());
    assert!(!queued.is_empty(), "3G has a queue");
    let mut flying = 0;
    for (place, packet) in link.packets() {
        assert!(matches!(packet, Packet::Tcp(_)));
        match place {
            PacketPlace::Transmission { left_at, delivery } => {
                assert!(now <= left_at && left_at <= delivery)
            }
            PacketPlace::Propagation { delivery } => {
                assert!(now <= delivery && delivery <= now + Duration::from_millis(130));
                flying += 1;
            }
            _ => {}
        }
    }
    assert!(flying > 0, "packets propagate");
}

#[test]
fn the_contents_of_both_buffers_agree() {
    let mut simulation = start(&scenario(""), true);
    simulation.step_until(Instant::ZERO + Duration::from_secs(5)).expect("a step");
    let contents = [Side::Client, Side::Server].map(|side| {
        let host = simulation.host(side);
        let id = host.connection_id(0).expect("a connection");
        host.endpoint.contents(id).expect("it is open")
    });
    let [receiver, sender] = contents;
    assert!(sender.acknowledged <= receiver.delivered && receiver.delivered < sender.sent);
    assert!(sender.written - sender.acknowledged <= 200 * 1024);
    assert!(
        receiver
            .out_of_order
            .iter()
            .all(|range| range.start > receiver.delivered && range.end <= sender.sent)
    );
    assert!(sender.blocking.is_some(), "data is unacknowledged");
}

#[test]
fn decisions_are_recorded_on_request() {
    let mut simulation = start(&scenario(""), true);
    simulation.step_until(Instant::ZERO + Duration::from_secs(5)).expect("a step");
    let decisions = std::iter::from_fn(|| simulation.poll_trace(Side::Server, 0)).count();
    assert!(decisions > 1_000, "a decision for each segment");
    let mut silent = Simulation::new(&scenario(""), 1, Options::default()).expect("a run");
    silent.step_until(Instant::ZERO + Duration::from_secs(5)).expect("a step");
    assert_eq!(silent.poll_trace(Side::Server, 0), None);
}
