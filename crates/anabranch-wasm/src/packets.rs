//! The packets inside the links, as rows of numbers.

use anabranch_net::{Link, PacketPlace};
use anabranch_sim::Side;
use anabranch_sim::driver::port_of;
use anabranch_wire::mptcp::WideOrNarrow;
use anabranch_wire::{DataSeq, Instant, Packet, Segment};

use crate::session::{Decisions, Engine};

/// Numbers of a packet: path of its link, direction (0 towards the client), place (0 queue, 1
/// transmission, 2 propagation), position in its place, path of its route, payload bytes, kind, and
/// offset of its data in the stream or −1.
pub(crate) const WIDTH: usize = 8;

/// Kinds of packets.
const DATA: u8 = 0;
const REINJECTION: u8 = 1;
const CONTROL: u8 = 2;
const OTHER: u8 = 3;

/// All packets inside the links. The position of a packet is the number of packets ahead in a queue,
/// and otherwise the part of the way behind it.
pub(crate) fn packets(engine: &mut Engine) -> Vec<f64> {
    let now = engine.simulation().now();
    let reinjected = engine.decisions().reinjected();
    let mut rows = Vec::new();
    let mut found = Vec::new();
    let paths = engine.simulation_mut().paths();
    for (path, towards, link) in paths.links() {
        for (place, packet) in link.packets() {
            let route = paths.path_of_packet(towards, packet).unwrap_or(path);
            found.push((
                path,
                towards,
                position(link, now, place),
                route,
                PacketFields::of(packet, towards),
            ));
        }
    }
    for (path, towards, (place, at), route, shown) in found {
        let is_again =
            shown.data.is_some_and(|data| reinjected.contains(&(shown.connection, data)));
        let kind = if is_again { REINJECTION } else { shown.kind };
        let offset = offset_of(engine.decisions(), towards, &shown);
        rows.extend([
            path as f64,
            f64::from(towards as u8),
            f64::from(place),
            at,
            route as f64,
            shown.payload as f64,
            f64::from(kind),
            offset.map_or(-1.0, f64::from),
        ]);
    }
    rows
}

fn offset_of(decisions: &Decisions, towards: Side, shown: &PacketFields) -> Option<u32> {
    decisions.offset(shown.connection, towards.opposite(), shown.data?)
}

/// The facts of a packet that the picture shows.
struct PacketFields {
    kind: u8,
    connection: usize,
    payload: usize,
    /// Low 32 bits of the data sequence number.
    data: Option<u32>,
}

impl PacketFields {
    fn of(packet: &Packet, towards: Side) -> Self {
        let Packet::Tcp(segment) = packet else {
            return PacketFields { kind: OTHER, connection: 0, payload: 0, data: None };
        };
        let payload = segment.payload.len();
        let data = data_seq(segment).filter(|_| payload > 0);
        let kind = if payload > 0 { DATA } else { CONTROL };
        let server = match towards {
            Side::Client => segment.source,
            Side::Server => segment.destination,
        };
        let connection = usize::from(server.port.saturating_sub(port_of(0)));
        PacketFields { kind, connection, payload, data }
    }
}

/// The low 32 bits suffice: nobody looks at 4 GiB of a run at a time.
fn data_seq(segment: &Segment) -> Option<u32> {
    Some(match segment.options.dss?.mapping?.data_seq {
        WideOrNarrow::Wide(DataSeq(number)) => number as u32,
        WideOrNarrow::Narrow(low) => low,
    })
}

fn position(link: &Link, now: Instant, place: PacketPlace) -> (u8, f64) {
    let part =
        |left: f64, whole: f64| if whole > 0.0 { 1.0 - (left / whole).min(1.0) } else { 1.0 };
    match place {
        PacketPlace::Queue { ahead } => (0, ahead as f64),
        PacketPlace::Opportunity { bytes_left } => (1, part(f64::from(bytes_left), 1_500.0)),
        PacketPlace::Transmission { left_at, .. } => {
            let left = left_at.saturating_since(now).as_secs_f64();
            (1, part(left, 12_000.0 / link.rate().as_bits_per_second() as f64))
        }
        PacketPlace::Propagation { delivery } => {
            let left = delivery.saturating_since(now).as_secs_f64();
            (2, part(left, link.delay().as_secs_f64()))
        }
    }
}
