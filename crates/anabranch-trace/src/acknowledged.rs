//! The acknowledged data of each direction of a connection, at the level that counts for it.

use anabranch_wire::Instant;

use crate::analyser::Analyser;
use crate::connection::{Connection, Protocol};
use crate::subflow::{Half, Subflow};

/// Acknowledged bytes of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Acknowledged {
    pub(crate) bytes: u64,
    /// Time of the last acknowledgement of bytes that were not acknowledged before.
    pub(crate) last: Option<Instant>,
}

impl Analyser {
    /// For each connection, the acknowledged bytes of each host: by DATA_ACKs, and by TCP after a
    /// fallback and in plain TCP. A DATA_FIN and a FIN are no bytes.
    pub(crate) fn acknowledged(&self) -> Vec<[Acknowledged; 2]> {
        let mut all: Vec<_> = self.connections.iter().map(by_data_acks).collect();
        for subflow in &self.subflows {
            let Some(home) = subflow.connection else { continue };
            let connection = &self.connections[home as usize];
            for host in [0, 1] {
                let half = &subflow.halves[host ^ usize::from(subflow.is_turned)];
                let total = &mut all[home as usize][host];
                if !matches!(connection.protocol, Protocol::Mptcp(_)) {
                    total.bytes += half.acknowledged().max(0) as u64;
                    total.last = total.last.max(half.acked_at);
                } else if connection.fallback.is_some() {
                    let bytes = after_fallback(connection, subflow, host);
                    if bytes > total.bytes as i64 {
                        *total = Acknowledged { bytes: bytes as u64, last: half.acked_at };
                    }
                }
            }
        }
        all
    }
}

fn by_data_acks(connection: &Connection) -> [Acknowledged; 2] {
    [0, 1].map(|host| {
        let stream = &connection.streams[host];
        // Without all the data, a DATA_ACK may exceed the data in the capture.
        let largest_data_ack = stream
            .largest_data_ack
            .filter(|(place, _)| connection.is_incomplete && *place > stream.acked);
        let (acked, last) = largest_data_ack
            .map_or((stream.acked, stream.acked_at), |(place, time)| (place, Some(time)));
        let fin = i64::from(stream.fin.is_some_and(|fin| acked > fin));
        Acknowledged { bytes: (acked - fin).max(0) as u64, last }
    })
}

/// The place in the data of `host` up to which TCP acknowledged it on the subflow that is left.
/// RFC 8684 §3.7: after the fallback, the data is the rest of that subflow's bytes.
fn after_fallback(connection: &Connection, subflow: &Subflow, host: usize) -> i64 {
    let half = &subflow.halves[host ^ usize::from(subflow.is_turned)];
    let acked = half.acknowledged();
    if let Some((from, data)) = half.infinite {
        return if acked > from { data + (acked - from) } else { 0 };
    }
    match half.unmapped.iter().next() {
        Some((lowest, _)) if acked > lowest => connection.streams[host].next + (acked - lowest),
        _ => 0,
    }
}

impl Half {
    /// The place up to which the bytes were acknowledged, without the FIN.
    fn acknowledged(&self) -> i64 {
        let acked = self.acked.unwrap_or(0);
        acked - i64::from(self.fin.is_some_and(|fin| acked > fin))
    }
}
