//! Places for connections whose request has not arrived or was refused.
//!
//! Anybody can open a connection to a relay. If all places are taken, a further connection takes the
//! oldest one. A client's request arrives within a round-trip time, so the oldest one is hardly ever a
//! client's.

use std::collections::BTreeMap;
use std::sync::Mutex;

use tokio::sync::oneshot;

use super::lock;

/// The places, in the order in which they were taken.
#[derive(Default)]
pub(super) struct PendingPlaces(Mutex<Places>);

#[derive(Default)]
struct Places {
    next: u64,
    /// Each sender is dropped when another connection takes the place.
    taken: BTreeMap<u64, oneshot::Sender<()>>,
}

/// A place, until it is dropped or another connection takes it.
pub(super) struct PendingPlace<'a> {
    all: &'a PendingPlaces,
    number: u64,
    lost: oneshot::Receiver<()>,
}

impl PendingPlaces {
    /// A place for a further connection. With more than `places` connections, the oldest ones lose
    /// theirs.
    pub(super) fn enter(&self, places: usize) -> PendingPlace<'_> {
        let (kept, lost) = oneshot::channel();
        let Places { next, taken } = &mut *lock(&self.0);
        let number = *next;
        *next += 1;
        taken.insert(number, kept);
        while taken.len() > places {
            taken.pop_first();
        }
        PendingPlace { all: self, number, lost }
    }
}

impl PendingPlace<'_> {
    /// Wait until another connection takes the place.
    pub(super) async fn lost(&mut self) {
        let _ = (&mut self.lost).await;
    }
}

impl Drop for PendingPlace<'_> {
    fn drop(&mut self) {
        lock(&self.all.0).taken.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_all_places_taken_the_oldest_is_lost() {
        let is_lost = |place: &mut PendingPlace<'_>| {
            place.lost.try_recv() == Err(oneshot::error::TryRecvError::Closed)
        };
        let all = PendingPlaces::default();
        let mut places: Vec<_> = (0..4).map(|_| all.enter(3)).collect();
        assert_eq!(places.iter_mut().map(is_lost).collect::<Vec<_>>(), [true, false, false, false]);
        // A connection that has lost its place takes nobody else's when it ends.
        places.remove(0);
        // A place that is given back is free.
        places.pop();
        places.push(all.enter(3));
        assert!(!places.iter_mut().any(is_lost));
        // Fewer places are left than connections: the newest has one.
        places.push(all.enter(1));
        assert_eq!(places.iter_mut().map(is_lost).collect::<Vec<_>>(), [true, true, true, false]);
    }
}
